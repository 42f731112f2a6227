"""What a policy says where it is shown nothing of other resources but what its header declares: it has to be the same.

One judgement proves of all resources and all their fields at once that none but the declared ones make a difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from typing import Self

import orjson

from policyeng.bundle import Bundle, Policy
from policyeng.bundle.header_parts import WORKSPACE
from policyeng.bundle.parameters import parameters_of
from policyeng.engines import Judgement, Pair, Work, judge
from policyeng.evaluation.estate import Estate, Subject, estate_of
from policyeng.evaluation.plan import plan
from policyeng.facts.ids import scopes_of
from policyeng.models import JsonObject, Snapshot, lowered
from policyeng.strict.json_pointer import keys_of
from policyeng.verify.drawing.edits import Json
from policyeng.verify.laws.consulting import Neighbours
from policyeng.verify.laws.law import Trial, Violation

_NO_RESOURCES = ("workload", "approval", "document")
#: Stands for a subscription whose resources are hidden: which subscriptions there are is no matter of neighbours.
_KEPT = "/providers/Microsoft.Placeholder/placeholders/kept"
#: How many policies are tried on an example, and each of them on how many of what it judges.
_POLICIES, _SUBJECTS = 4, 6
#: No more resources than these are named that a policy reads undeclared.
_NAMED = 3
_TOGETHER = "it reads: several resources, none of which makes a difference by itself"
_UNDECLARED = (
    "shown what its header declares alone, the policy says something else; declare all it reads under `consults`"
)


@dataclass(frozen=True)
class Shown:
    """A snapshot of which more or less is shown; `parameters` has one object for each policy of the bundle."""

    bundle: Bundle
    snapshot: Snapshot
    estate: Estate
    parameters: Sequence[JsonObject]
    as_of: datetime

    @classmethod
    def of(cls, bundle: Bundle, snapshot: Snapshot, parameters: Sequence[JsonObject], as_of: datetime) -> Self:
        """A snapshot made ready for judging."""
        return cls(bundle, snapshot, estate_of(snapshot, bundle.facts), parameters, as_of)

    def pairs(self, policy: Policy) -> list[Pair]:
        """What a policy judges, less what is decided before it runs."""
        number = next(at for at, one in enumerate(self.bundle.policies) if one.id == policy.id)
        planned = plan(self.bundle.only([policy]), self.estate)
        return [entry.pair._replace(policy=number) for entry in planned if not entry.unknowns]

    def with_all(self, pairs: Sequence[Pair]) -> list[Judgement]:
        """What is said with all of the snapshot in sight."""
        subjects = [subject.document for subject in self.estate.subjects]
        return self._judged(self.estate, subjects, pairs)

    def with_declared(self, pair: Pair, *, also: str = "") -> Judgement:
        """What is said with only the judged, its workspace and what the header declares in sight.

        The resource with the lower-case id `also` is in sight with all that it states.
        """
        subject, by_id = self.estate.subjects[pair.subject], self.estate.view.by_id
        home = self.estate.subjects[pair.workspace].reported_id if pair.workspace >= 0 else ""
        whole = (lowered(subject.reported_id), lowered(home), also)
        fields = self._declared(pair)
        in_sight = by_id.keys() & {*whole, *fields}
        shown = [by_id[key] if key in whole else _only(by_id[key], fields[key]) for key in in_sight]
        kept = {scope for key in by_id for scope in scopes_of(key)[:1]}
        shown += [{"id": f"{scope}{_KEPT}", "type": "Microsoft.Placeholder/placeholders"} for scope in sorted(kept)]
        return self._beside(subject, home, shown, pair.policy)

    def undeclared(self, pair: Pair) -> Iterator[str]:
        """The lower-case ids of the resources each of which makes a difference when it comes into sight."""
        said = said_by(self.with_declared(pair))
        return (key for key in self.estate.view.by_id if said_by(self.with_declared(pair, also=key)) != said)

    def _declared(self, pair: Pair) -> Mapping[str, set[str]]:
        """By lower-case id of each resource that the header declares, the JSON Pointers at which it may be read.

        They are those that would make the finding unknown if nobody could read them.
        """
        consults = self.bundle.policies[pair.policy].header.consults
        pointers = {one.removeprefix(WORKSPACE) for entry in consults for one in (*entry.reads, *entry.through[1:])}
        found: dict[str, set[str]] = {}
        while met := self._unread(pair, pointers, found):  # only a few of them are said at a time
            for key, pointer in met:
                found.setdefault(key, {entry.naming for entry in consults if entry.naming}).add(pointer)
        return found

    def _unread(self, pair: Pair, pointers: set[str], found: Mapping[str, set[str]]) -> set[tuple[str, str]]:
        """Some ids and pointers of those not yet found that a policy consults, were they not readable."""
        subjects = []
        for at, subject in enumerate(self.estate.subjects):
            is_other = at not in pair[1:] and subject.judged_type not in _NO_RESOURCES
            left = pointers - found.get(lowered(subject.reported_id), set()) if is_other else ()
            subjects.append(subject._replace(unreadable=dict.fromkeys(left, ""), carried=None))
        neighbours = Neighbours(subjects, [at for at, subject in enumerate(subjects) if subject.unreadable])
        consults = self.bundle.policies[pair.policy].header.consults
        telling = neighbours.telling(consults, self.parameters[pair.policy])
        unknowns = neighbours.unknowns(telling, pair.subject)
        met = (unknown.path.rpartition(":") for unknown in unknowns)
        return {(lowered(key), pointer) for key, _, pointer in met}

    def _beside(self, subject: Subject, home: str, shown: Sequence[JsonObject], number: int) -> Judgement:
        """What is said of a subject, as it was derived from the whole snapshot, beside what is shown."""
        snapshot = self.snapshot.model_copy(update={"resources": (*shown,), "unreadable": {}, "carried": {}})
        estate = estate_of(snapshot, self.bundle.facts)
        workloads = [subject.document] if subject.judged_type == "workload" else []
        estate = replace(
            estate,
            view=replace(estate.view, workloads=workloads),
            document=orjson.dumps({**orjson.loads(estate.document), "workloads": workloads}),
        )
        subjects = [*estate.view.resources, *workloads, *estate.view.approvals]
        at = next(at for at, one in enumerate(subjects) if one == subject.document)
        ids = [lowered(str(resource["id"])) for resource in estate.view.resources]
        return self._judged(estate, subjects, [Pair(number, at, ids.index(lowered(home)) if home else -1)])[0]

    def _judged(self, estate: Estate, subjects: Sequence[JsonObject], pairs: Sequence[Pair]) -> list[Judgement]:
        work = Work(
            bundle=self.bundle,
            snapshot=estate.view,
            subjects=subjects,
            document=estate.document,
            pairs=pairs,
            parameters=self.parameters,
            as_of=self.as_of,
        )
        return judge(work)


def unlike_declared(trial: Trial) -> Violation | None:
    """The first of some judgements that is another one where only what the header declares is in sight."""
    bundle, example = trial.bundle, trial.example
    parameters = parameters_of(bundle, example.parameters)
    shown = Shown.of(bundle, trial.snapshot, parameters, example.as_of.astimezone(UTC))
    policies = [policy for policy in bundle.policies if policy.input_form == "policy"]
    chosen = trial.random("declared").sample(policies, min(_POLICIES, len(policies)))
    pairs = [pair for policy in chosen for pair in shown.pairs(policy)[:_SUBJECTS]]
    for pair, judgement in zip(pairs, shown.with_all(pairs), strict=True):
        said = shown.with_declared(pair)
        if said_by(judgement) != said_by(said):
            read = [f"it reads: {key}" for key in islice(shown.undeclared(pair), _NAMED)]
            lines = (
                *(read or [_TOGETHER]),
                f"shown all:          {_spelled(judgement)}",
                f"shown the declared: {_spelled(said)}",
            )
            subject = shown.estate.subjects[pair.subject]
            return Violation(_UNDECLARED, bundle.policies[pair.policy].id, subject.reported_id, lines)
    return None


def _spelled(judgement: Judgement) -> str:
    """A judgement in one line."""
    if not judgement.applies:
        return "no finding"
    said = [f"{one.msg} ({one.path})" for one in (*judgement.denials, *judgement.unknowns)]
    outcome = "error" if judgement.error else "fail" if judgement.denials else "unknown" if said else "pass"
    return ": ".join(filter(None, (outcome, judgement.error or "; ".join(said))))


def said_by(judgement: Judgement) -> object:
    """What a judgement says, in one order and without the wording of errors."""
    said = (sorted(map(repr, judgement.denials)), sorted(map(repr, judgement.unknowns)))
    return judgement.applies, said, judgement.error is None


def _only(resource: JsonObject, pointers: set[str]) -> JsonObject:
    """A resource with nothing but what stands at some JSON Pointers; it keeps its id and its type."""
    places = [keys_of(pointer) for pointer in pointers]
    kept = _members(resource, places) if all(places) else resource
    return {**kept, "id": resource["id"], "type": resource["type"]}


def _at(value: Json, places: Sequence[Sequence[str]]) -> Json:
    """What stands at some places; what stands in the way, such as a text where an object should, stays."""
    if isinstance(value, dict) and all(places):
        return _members(value, places)
    if isinstance(value, list) and all(places):
        return [_at(entry, inner) if (inner := _below(str(at), places)) else None for at, entry in enumerate(value)]
    return value


def _members(value: Mapping[str, Json], places: Sequence[Sequence[str]]) -> dict[str, Json]:
    below = {key: _below(key, places) for key in value}
    return {key: _at(value[key], inner) for key, inner in below.items() if inner}


def _below(key: str, places: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    return [rest for head, *rest in places if head == "*" or lowered(head) == lowered(key)]
