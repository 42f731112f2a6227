"""Estates with random markers, evaluated by all Rego policies, and the same estates with values instead."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import orjson

from benchmarks.estates import document
from benchmarks.preparing import MOMENT, prepared, selections
from policyeng import rego
from policyeng.engines.embedded import modules_of
from policyeng.models import lowered
from policyeng.rego.decided_results import DecidedResult
from policyeng.rego.linking import link
from policyeng.rego.markers import MarkedList, MarkedObject, show
from policyeng.rego.thread import Thread
from policyeng.rego.tracing import RecordedReads
from policyeng.rego.values import UNDEFINED
from tests.markings import ODD, Marking, Tally, find, pointers

_SUBJECTS = ("resources", "workloads", "approvals", "documents")
#: What the paths of rules are called.
_ROLES = ("applies", "deny", "unknown")


class Verdict(NamedTuple):
    """The outcome of a policy for a subject.

    Attributes:
        outcome: `pass`, `fail`, `unknown`, `error`, `skipped` or `undecided`.
        denials: their messages and places.
    """

    outcome: str
    denials: frozenset[tuple[str, str]] = frozenset()


class MarkedEstate:
    """An estate of some resources, planned for all Rego policies.

    Attributes:
        handled: how many pairs were evaluated again in the form that handles markers.
    """

    def __init__(self, folder: Path, size: int) -> None:
        file = folder / "estate.json"
        file.write_bytes(document(size))
        bundle = list(selections().values())[-1]
        self.made = prepared(bundle, file)
        self.work = self.made.work
        self.program = link(modules_of(bundle), orjson.loads(bundle.data_bytes))
        self.snapshot: dict[str, Any] = orjson.loads(orjson.dumps(self.work.document))
        self.parameters = orjson.loads(orjson.dumps(self.work.parameters))
        self.rules: list[dict[str, str]] = [dict(policy.rules) for policy in bundle.policies]
        self.handled = 0

    def inputs(self, snapshot: dict[str, Any]) -> Iterator[tuple[dict[str, str], dict[str, Any]]]:
        """The rules and the input of each pair."""
        subjects = [subject for name in _SUBJECTS for subject in snapshot.get(name, ())]
        for pair in self.work.pairs:
            yield (
                self.rules[pair.policy],
                {
                    "resource": subjects[pair.subject],
                    "workspace": subjects[pair.workspace] if pair.workspace >= 0 else None,
                    "snapshot": snapshot,
                    "parameters": self.parameters[pair.policy],
                    "as_of": MOMENT,
                },
            )

    def indexed(self, resources: list[Any], rest: dict[str, Any]) -> dict[str, Any]:
        """A snapshot of resources, indexed by what they are without markers."""
        by_id: dict[str, Any] = {}
        by_type: dict[str, list[Any]] = {}
        for plain, resource in zip(self.snapshot["resources"], resources, strict=True):
            by_id[lowered(plain["id"])] = resource
            by_type.setdefault(lowered(plain["type"]), []).append(resource)
        entries = {**dict(dict.items(rest)), "resources": resources, "by_id": by_id, "by_type": by_type}
        return MarkedObject(entries) if isinstance(rest, MarkedObject) else entries

    def evaluate(self, snapshot: dict[str, Any]) -> list[Verdict]:
        """The outcomes of a snapshot without markers."""
        thread = self.program.thread()
        found = []
        for rules, input_ in self.inputs(snapshot):
            thread.begin(input_)
            found.append(_conclude(rules, lambda path: _plain(thread, path)))  # called at once
        return found

    def evaluate_marked(self, snapshot: dict[str, Any]) -> list[Verdict]:
        """The outcomes of a snapshot with markers, first in the plain form."""
        marked, handled = self.program.marked_thread(), self.program.handled_thread()
        found = []
        for rules, input_ in self.inputs(snapshot):
            marked.begin(input_)
            try:
                found.append(_conclude(rules, lambda path: _plain(marked, path)))
            except rego.Undecided:
                self.handled += 1
                handled.begin(input_)
                found.append(_conclude(rules, lambda path: handled.decide(handled.uncached(path))))
        return found

    def evaluate_handled(self, snapshot: dict[str, Any]) -> list[Verdict]:
        """The outcomes in the form that handles markers alone."""
        handled = self.program.handled_thread()
        found = []
        for rules, input_ in self.inputs(snapshot):
            handled.begin(input_)
            found.append(_conclude(rules, lambda path: handled.decide(handled.uncached(path))))
        return found


def _plain(thread: Thread, path: str) -> DecidedResult:
    return DecidedResult(thread.call(thread.uncached(path)), ())


def _conclude(rules: dict[str, str], query: Callable[[str], DecidedResult]) -> Verdict:
    try:
        outcomes = {role: query(rules[role]) for role in _ROLES if role in rules}
    except rego.EvaluationError:
        return Verdict("error")
    applies = outcomes.get("applies", DecidedResult(True, ()))
    if applies.undecided:
        return Verdict("undecided")
    if applies.value is not True:
        return Verdict("skipped")
    denied = outcomes["deny"]
    if denied.value is not UNDEFINED and len(denied.value):
        texts = map(show, denied.value)
        return Verdict("fail", frozenset((text["msg"], text.get("path", "")) for text in texts))
    unknown = outcomes.get("unknown", DecidedResult([], ()))
    if denied.undecided or unknown.undecided:
        return Verdict("undecided")
    return Verdict("unknown" if unknown.value else "pass")


def check_soundness(estate: MarkedEstate, seed: int, most: int, samples: int) -> Tally:
    """Put random markers into an estate, and compare the outcomes with those for random values."""
    random = Random(seed)  # noqa: S311  # nothing here is secret
    plain = estate.snapshot
    places = [find(plain["resources"], place) for place in pointers(plain["resources"])]
    values = [*ODD, *random.sample(places, min(len(places), 300))]
    touched = set(random.sample(range(len(plain["resources"])), min(len(plain["resources"]), random.randint(1, most))))
    resources = {index: Marking.draw(random, plain["resources"][index], 4) for index in touched}
    rest = {name: value for name, value in plain.items() if name not in ("resources", "by_id", "by_type")}
    # Subjects are counted by their places.
    fixed = [
        f"/{name}{place}" for name in _SUBJECTS for place in ("", *(f"/{i}" for i in range(len(rest.get(name, ())))))
    ]
    marking = Marking.draw(random, rest, 3, fixed) if random.random() < 0.5 else Marking(rest, [], [])
    rows = [resources[i].marked if i in resources else one for i, one in enumerate(plain["resources"])]
    marked = estate.indexed(rows, marking.marked)
    lists = random.sample(sorted(marked["by_type"]), min(3, len(marked["by_type"]))) if random.random() < 0.5 else []
    for kind in lists:
        marked["by_type"][kind] = MarkedList(marked["by_type"][kind], ((f"/by_type/{kind}", "not listed"),))
    is_open = random.random() < 0.3
    if is_open:
        for name in ("by_type", "by_id"):
            marked[name] = MarkedObject(marked[name], ((f"/{name}", "not listed"),))

    verdicts = estate.evaluate_marked(marked)
    counts: Counter[str] = Counter(pairs=len(verdicts), undecided=sum(one.outcome == "undecided" for one in verdicts))
    violations = []
    for _ in range(samples):
        made = [
            resources[i].substitute(random, values) if i in resources else one
            for i, one in enumerate(plain["resources"])
        ]
        concrete = estate.indexed(made, marking.substitute(random, values))
        for kind in lists:
            for _ in range(random.randint(0, 2)):
                another = copy.deepcopy(random.choice([*concrete["by_type"][kind], *made]))
                concrete["by_type"][kind].insert(random.randint(0, len(concrete["by_type"][kind])), another)
        if is_open and random.random() < 0.7:
            another = random.choice(made)
            concrete["by_type"].setdefault(random.choice([kind.lower() for kind in _KINDS]), [another])
            concrete["by_id"].setdefault(str(random.choice(places)).lower(), another)
        for number, (one, other) in enumerate(zip(verdicts, estate.evaluate(concrete), strict=True)):
            if one.outcome == "undecided":
                continue
            counts["decided"] += 1
            if one.outcome != other.outcome or not one.denials <= other.denials:
                if other.outcome == "error":
                    counts["hidden errors"] += 1
                    continue
                policy = estate.made.bundle.policies[estate.work.pairs[number].policy].id
                violations.append(
                    f"seed {seed}: {policy} of subject {estate.work.pairs[number].subject}: {one}, {other}"
                )
    return Tally(counts, violations)


_KINDS = (
    "Microsoft.MachineLearningServices/workspaces/computes",
    "Microsoft.MachineLearningServices/workspaces",
    "Microsoft.ContainerService/managedClusters",
    "Microsoft.Compute/virtualMachines",
    "Microsoft.Network/virtualNetworks",
    "Microsoft.Consumption/budgets",
)


class Traced(NamedTuple):
    """The outcome of a policy for a subject, and what it read."""

    said: Verdict
    reads: frozenset[RecordedReads]


def trace(estate: MarkedEstate, snapshot: dict[str, Any]) -> list[Traced]:
    """The outcomes of the policies while their reads are recorded; resources are documents by their ids."""
    names = {id(resource): key for key, resource in dict.items(snapshot["by_id"])}
    marked, handled = estate.program.marked_thread(), estate.program.handled_thread()
    found = []
    for rules, input_ in estate.inputs(snapshot):
        marked.begin(input_)
        try:
            with marked.recording(names) as recorder:
                verdict = _conclude(rules, lambda path: _plain(marked, path))
        except rego.Undecided:
            handled.begin(input_)
            with handled.recording(names) as recorder:
                verdict = _conclude(rules, lambda path: handled.decide(handled.uncached(path)))
        found.append(Traced(verdict, frozenset(recorder.reads)))
    return found


def is_affected(reads: frozenset[RecordedReads], document: str, pointer: str) -> bool:
    """Whether a value that is replaced, added or removed may matter to what read something."""
    above = pointer.rpartition("/")[0]
    for read in reads:
        if read.document != document:
            if read.kind == "whole" and read.document == "input":
                return True
            continue
        if f"{read.pointer}/".startswith(f"{pointer}/"):
            return True
        if read.kind != "value" and read.pointer == above:
            return True
        if read.kind == "whole" and pointer.startswith(f"{read.pointer}/"):
            return True
    return False


def check_reads(estate: MarkedEstate, seed: int, changes: int) -> Tally:
    """Change random fields of resources, and compare the outcomes of policies that did not read them."""
    random = Random(seed)  # noqa: S311  # nothing here is secret
    plain = estate.snapshot
    rest = {name: value for name, value in plain.items() if name not in ("resources", "by_id", "by_type")}
    traced = trace(estate, estate.indexed(plain["resources"], rest))
    counts: Counter[str] = Counter()
    violations = []
    for _ in range(changes):
        index = random.randrange(len(plain["resources"]))
        resource = plain["resources"][index]
        place = random.choice(pointers(resource))
        if random.random() < 0.3:
            place = f"{place.rpartition('/')[0]}/{random.choice(('added', 'subnet', 'vmSize', 'owner', 'kind'))}"
            if not isinstance(find(resource, place.rpartition("/")[0]), dict):
                continue
        changed = copy.deepcopy(resource)
        holder, key = find(changed, place.rpartition("/")[0]), place.rpartition("/")[2].replace("~1", "/")
        if isinstance(holder, list):
            holder[int(key)] = random.choice(ODD)
        elif key in holder and random.random() < 0.3:
            del holder[key]
        else:
            holder[key] = random.choice(ODD)
        rows = [changed if number == index else one for number, one in enumerate(plain["resources"])]
        after = estate.evaluate(estate.indexed(rows, rest))
        for number, (one, other) in enumerate(zip(traced, after, strict=True)):
            affected = is_affected(one.reads, lowered(resource["id"]), place)
            counts["affected" if affected else "not affected"] += 1
            counts["changed"] += one.said != other
            if not affected and one.said != other:
                policy = estate.made.bundle.policies[estate.work.pairs[number].policy].id
                violations.append(f"seed {seed}: {policy}: {resource['id']}{place}: {one.said}, {other}")
    return Tally(counts, violations)
