"""Nothing unresolved ever passes or fails: a field that makes a difference makes policies unknown when it is unread.

For the cases of all policies: wherever another value of a field, of the evaluated resource or of another of the estate,
would change an outcome, leaving the field out as unreadable, or as not carried by the format, gives `unknown`.
The suite draws some cases of each policy; `python -m tests.test_unresolved 0 [POLICY ...]` takes all of them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any, NamedTuple

import orjson
import pytest

from policyeng import evaluate
from policyeng.bundle import Bundle, Policy, load_bundle
from policyeng.bundle.cases import DEFAULT_AS_OF, Case, baselines_of, estate, read_cases
from policyeng.evaluation.pointers import has_value, value_at
from policyeng.models import JsonObject, Snapshot, lowered
from policyeng.sources.parsed import UNKNOWN_SCOPE
from policyeng.testing.runner import without
from tests.effort import effort, sweep

REASON = "not stated"
WORKSPACE = "microsoft.machinelearningservices/workspaces"
#: Whose findings hang on resources of other subscriptions: no snapshot contains two variants.
ALONE = {
    "AML-COST-106",
    "AML-DR-001",
    "AML-DR-002",
    "AML-DR-003",
    "AML-DR-004",
    "AML-NET-104",
    "AML-RBAC-101",
    "AML-RBAC-102",
    "AML-RBAC-104",
}
#: How many variants share a snapshot, each in subscriptions of its own.
BATCH = 40
#: How many values of a field are tried.
VALUES = 7
HOME = "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/rg-ml"
_HOME = re.compile(rb"(?i)" + HOME.encode() + rb"(?=[/\"])")
_SUBSCRIPTION = re.compile(rb"(?i)(/subscriptions/[^/\"]+)")
#: Objects whose keys are free: a format carries such a one as a whole.
_WHOLE = re.compile(r"^(.*?/(?:kvTags|tags|filter|notifications))/.*")
_NUMBERED = re.compile(r"~(\d+)(?=/|$)")

#: By resource id, the outcome of its finding.
Outcomes = Mapping[str, str]


class Leaf(NamedTuple):
    """A field of a resource of an estate: the position of the resource, and the JSON Pointer."""

    at: int
    pointer: str


@dataclass(frozen=True)
class Trial:
    """A case of a policy, with no more resources than make a difference to the policy."""

    policy: Policy
    alone: Bundle
    name: str
    case: Case
    document: JsonObject
    pool: Mapping[tuple[str, str], Sequence[Any]]

    def outcomes(self, snapshot: Snapshot) -> Outcomes:
        """The outcome of each resource that the policy evaluates."""
        evaluation = evaluate(
            self.alone,
            snapshot,
            as_of=self.case.as_of or DEFAULT_AS_OF,
            parameters={self.policy.id: self.case.parameters},
        )
        return {finding.resource: finding.outcome.value for finding in evaluation.findings}

    def several(self, documents: Iterable[JsonObject]) -> Iterator[Outcomes]:
        """The outcomes of several estates, as many at once as can be."""
        # The ids in parameters are those of the first estate.
        apart = self.policy.id in ALONE or b"/subscriptions/" in orjson.dumps(self.case.parameters).lower()
        whole, size = list(documents), 1 if apart else BATCH
        for begin in range(0, len(whole), size):
            some = whole[begin : begin + size]
            found: list[dict[str, str]] = [{} for _ in some]
            for identity, outcome in self.outcomes(snapshot_of(*some)).items():
                number = _NUMBERED.search(identity)
                found[int(number[1]) if number else 0][_NUMBERED.sub("", identity)] = outcome
            yield from found


def snapshot_of(*documents: JsonObject, **more: object) -> Snapshot:
    """Several estates in one snapshot: subscriptions and stated ids get the number of their estate."""
    together: dict[str, list[JsonObject]] = {}
    for number, document in enumerate(documents):
        suffix = f"~{number}" if number else ""
        text = _SUBSCRIPTION.sub(rb"\g<1>" + suffix.encode(), orjson.dumps(document))
        for kind, entries in orjson.loads(text).items():
            if kind in ("approvals", "workloads"):
                entries = [{**entry, "id": entry["id"] + suffix} for entry in entries]
            together.setdefault(kind, []).extend(entries)
    return Snapshot.model_validate({**together, **more})


def document_of(snapshot: Snapshot) -> JsonObject:
    """An estate as JSON."""
    stated = snapshot.model_dump(
        mode="json", by_alias=True, include={"approvals", "workloads", "quotas", "metrics", "principals"}
    )
    return {"resources": list(snapshot.resources), **stated}


def leaves(value: object, pointer: str = "") -> Iterator[str]:
    """The JSON Pointers of everything in a document that has no members."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    inner = [(str(key).replace("~", "~0").replace("/", "~1"), member) for key, member in members]
    if not inner:
        yield pointer
    for key, member in inner:
        yield from leaves(member, f"{pointer}/{key}")


def general(pointer: str) -> str:
    """A pointer with `*` for positions in lists."""
    return re.sub(r"/\d+(?=/|$)", "/*", pointer)


def with_value(document: object, parts: Sequence[str], value: object) -> Any:
    """A copy with a value at a pointer, the objects above it made where they lack."""
    if not parts:
        return value
    key, rest = parts[0].replace("~1", "/").replace("~0", "~"), parts[1:]
    if isinstance(document, list) and key.isdigit() and int(key) < len(document):
        return [with_value(one, rest, value) if at == int(key) else one for at, one in enumerate(document)]
    members = document if isinstance(document, dict) else {}
    return {**members, key: with_value(members.get(key), rest, value)}


@cache
def built_in() -> Bundle:
    """The catalogue."""
    return load_bundle()


@cache
def cases_of(policy: str) -> Sequence[tuple[str, Case]]:
    """The cases of a policy by name."""
    file = next(read_cases(one) for one in built_in().policies if one.id == policy)
    return [(f"{expected} {name}", case) for expected, name, case in file.named()] if file else []


@cache
def pool_of(policy: str) -> Mapping[tuple[str, str], Sequence[Any]]:
    """By type and pointer, the values in the cases of a policy, then those of the others."""
    baselines = baselines_of(built_in())
    found: dict[tuple[str, str], dict[bytes, Any]] = {}
    for one in sorted(built_in().policies, key=lambda one: one.id != policy):
        for _, case in cases_of(one.id):
            for stem, patch in [(case.baseline, case.patch), *case.with_.items()]:
                kind = lowered(baselines.resources[stem]["type"]) if stem else ""
                for pointer in leaves(patch):
                    if (value := value_at(patch, pointer)) is not None and pointer:
                        known = found.setdefault((kind, general(pointer)), {})
                        known.setdefault(orjson.dumps(value), value)
                        if one.id == policy:
                            found.setdefault(("own", kind), {})[pointer.encode()] = pointer
    return {key: list(values.values()) for key, values in found.items()}


def trials(policy: Policy, cases: Sequence[tuple[str, Case]]) -> Iterator[Trial]:
    """Cases, each with the evaluated resource, its workspace, and the resources that make a difference in one."""
    baselines, alone, pool = baselines_of(built_in()), built_in().only([policy]), pool_of(policy.id)
    whole = [Trial(policy, alone, name, case, document_of(estate(baselines, case, name)), pool) for name, case in cases]
    needed = {WORKSPACE}
    for trial in whole if looks_around(policy) else ():
        needed |= differing(trial, needed)
    for trial in whole:
        own = evaluated_in(trial, baselines.resources)
        kept = [one for one in trial.document["resources"] if one["id"] == own or kind_of(one) in needed]
        yield Trial(policy, alone, trial.name, trial.case, {**trial.document, "resources": kept}, pool)


def kind_of(resource: JsonObject) -> str:
    """The type of a resource, for comparing."""
    return lowered(str(resource["type"]))


def looks_around(policy: Policy) -> bool:
    """Whether a policy can see more than the evaluated resource and its workspace."""
    source = (built_in().roots[0] / policy.file).read_text(encoding="utf-8")
    return "snapshot" in source or any(target.type == "workload" for target in policy.header.judges)


def evaluated_in(trial: Trial, baselines: Mapping[str, JsonObject]) -> str:
    """The id of the baseline that a case evaluates."""
    stem = trial.case.baseline
    return str(trial.case.patch.get("id", baselines[stem]["id"])) if stem else ""


def differing(trial: Trial, known: Container[str]) -> set[str]:
    """The further types whose resources, but for the evaluated one, change anything that is found in a case."""
    own, resources = evaluated_in(trial, baselines_of(built_in()).resources), trial.document["resources"]
    before, found = findings_in(trial, resources), set()
    for kind in {kind_of(one) for one in resources if kind_of(one) not in known}:
        rest = [one for one in resources if kind_of(one) != kind or one["id"] == own]
        gone = {one["id"] for one in resources} - {one["id"] for one in rest}
        after = findings_in(trial, rest)
        if any(after.get(identity) != findings for identity, findings in before.items() if identity not in gone):
            found.add(kind)
    return found


def findings_in(trial: Trial, resources: Sequence[JsonObject]) -> Mapping[str, object]:
    """By resource id, all that is found when only some resources are there."""
    evaluation = evaluate(
        trial.alone,
        snapshot_of({**trial.document, "resources": resources}),
        as_of=trial.case.as_of or DEFAULT_AS_OF,
        parameters={trial.policy.id: trial.case.parameters},
    )
    return {one.resource: (one.outcome, one.denials, one.unknowns) for one in evaluation.findings}


def values_for(trial: Trial, leaf: Leaf) -> Iterator[Any]:
    """Plausible other values of a field."""
    resource = trial.document["resources"][leaf.at]
    now = value_at(resource, leaf.pointer) if has_value(resource, leaf.pointer) else None
    pool = trial.pool.get((kind_of(resource), general(leaf.pointer)), ())
    made: list[Any] = list(pool[: VALUES - 3])
    if isinstance(now, bool):
        made.append(not now)
    elif isinstance(now, int | float):
        made += [0, 1, 10]
    elif isinstance(now, str) and now.startswith("/"):
        kind = now.rsplit("/", 2)[-2]
        same = [str(one["id"]) for one in trial.document["resources"] if str(one["id"]).rsplit("/", 2)[-2] == kind]
        made = [*same[:3], f"{now}-x", *made]
    elif isinstance(now, str):
        made.append(f"{now}x")
    seen = [now]
    for value in made:
        if value not in seen or type(value) is not type(now):
            seen.append(value)
            yield value


def fields(trial: Trial) -> Iterator[Leaf]:
    """Every field of every resource, and those that cases of the policy give such a resource."""
    for at, resource in enumerate(trial.document["resources"]):
        more = [one for one in trial.pool.get(("own", kind_of(resource)), ()) if can_have(resource, one)]
        for pointer in dict.fromkeys((*leaves(resource), *more)):
            if pointer.split("/")[1] not in ("id", "type", "name"):
                yield Leaf(at, pointer)


def can_have(resource: JsonObject, pointer: str) -> bool:
    """Whether a resource may get a field without becoming another kind of thing: only objects grow."""
    parts = pointer.split("/")
    above = ["/".join(parts[:length]) for length in range(1, len(parts))]
    parents = [value_at(resource, one) if one else resource for one in above if has_value(resource, one) or not one]
    return all(isinstance(one, dict) for one in parents) and not any(part.isdigit() for part in parts)


def edited(document: JsonObject, leaf: Leaf, value: object) -> JsonObject:
    """An estate with another value of a field; None takes it away."""
    resources = list(document["resources"])
    one = resources[leaf.at]
    parts = leaf.pointer.split("/")[1:]
    resources[leaf.at] = without(one, leaf.pointer) if value is None else with_value(one, parts, value)
    return {**document, "resources": resources}


def sensitive(trial: Trial) -> Mapping[Leaf, set[str]]:
    """By field, whose outcome another value of it changes; not where an evaluated one passes whatever it is."""
    variants = [(leaf, value) for leaf in fields(trial) for value in (None, *values_for(trial, leaf))]
    changed = (edited(trial.document, leaf, value) for leaf, value in variants)
    first, *rest, last = trial.several([trial.document, *changed, trial.document])
    assert first == last == trial.outcomes(snapshot_of(trial.document)), "the variants touch each other"
    found: dict[Leaf, set[str]] = {}
    for (leaf, _), outcomes in zip(variants, rest, strict=True):
        for identity in {*first, *outcomes}:
            pair = {first.get(identity, "pass"), outcomes.get(identity, "pass")}
            if len(pair) > 1:
                found.setdefault(leaf, set()).add(identity)
    return found


def holes(trial: Trial) -> Iterator[str]:
    """Where an unread field still passes, fails or keeps a resource from being evaluated."""
    found = sensitive(trial)
    # What the organisation declares of a workload replaces what cannot be read of it.
    declared = {lowered(str(one["sourceId"])).removesuffix("/") for one in trial.document["workloads"]}
    for leaf, whose in with_above(found).items():
        resource = trial.document["resources"][leaf.at]
        less = edited(trial.document, leaf, None)
        key, own = lowered(str(resource["id"])), general(leaf.pointer)
        own = _WHOLE.sub(r"\1", own)
        pointers = {_WHOLE.sub(r"\1", general(one)) for one in leaves(resource)}
        marks: dict[str, tuple[JsonObject, JsonObject]] = {"unreadable": (less, {leaf.pointer: REASON})}
        if leaf in found and not own.endswith("*"):  # a format carries a field of all members of a list, or of none
            rest = [one for one in pointers if not related(one, own)]
            none = edited(trial.document, Leaf(leaf.at, own), None)
            marks["carried"] = none, {"pointers": rest, "reason": REASON}
        for how, (document, mark) in marks.items():
            outcomes = trial.outcomes(snapshot_of(document, **{how: {key: mark}}))
            for identity in sorted(one for one in whose if lowered(one) not in declared):
                if outcomes.get(identity) != "unknown":
                    description = f"{leaf.pointer}: {outcomes.get(identity, 'not evaluated')} {identity}"
                    yield f"{trial.policy.id} {how} {resource['type']} {description} [{trial.name}]"


def with_above(found: Mapping[Leaf, set[str]]) -> Mapping[Leaf, set[str]]:
    """Fields, and the objects and lists that contain them."""
    whole: dict[Leaf, set[str]] = {}
    for leaf, whose in found.items():
        parts = leaf.pointer.split("/")
        for length in range(2, len(parts) + 1):
            whole.setdefault(Leaf(leaf.at, "/".join(parts[:length])), set()).update(whose)
    return whole


def related(pointer: str, other: str) -> bool:
    """Whether a pointer is another one, above or below it."""
    one, two = lowered(f"{pointer}/"), lowered(f"{other}/")
    return one.startswith(two) or two.startswith(one)


def holes_of(policy: str, most: int | None = None, seed: int = 7) -> list[str]:
    """The holes in all cases of a policy, or in so many that are drawn."""
    known = list(cases_of(policy))
    random = Random(f"{seed} {policy}")
    drawn = known if most is None else random.sample(known, min(most, len(known)))
    one = next(one for one in built_in().policies if one.id == policy)
    return [hole for trial in trials(one, drawn) for hole in holes(trial)]


@pytest.mark.parametrize("policy", sweep([policy.id for policy in built_in().policies[:: effort(3, 1)]], 8))
def test_an_unread_field_that_makes_a_difference_is_unknown(policy: str) -> None:
    """In a case of every third policy, or some of each; all of them by hand."""
    assert holes_of(policy, effort(1, 4)) == []


#: Where the resources of an estate may lie whose place is not stated.
PLACES = (
    HOME,
    "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/rg-other",
    "/subscriptions/22222222-2222-2222-2222-222222222222/resourceGroups/rg-other",
)
#: The facts about an organisation, independent of any deployment.
ELSEWHERE = ("microsoft.consumption", "microsoft.capacity", "microsoft.authorization", "microsoft.advisor")


def moved(document: JsonObject, place: str) -> Snapshot:
    """An estate whose resources lie in another resource group; budgets, roles, approvals and quotas stay."""
    stays = [one for one in document["resources"] if kind_of(one).startswith(ELSEWHERE)]
    goes = {
        "resources": [one for one in document["resources"] if one not in stays],
        **{kind: document[kind] for kind in ("workloads", "metrics")},
    }
    there = orjson.loads(_HOME.sub(place.encode(), orjson.dumps(goes)))
    marks = {lowered(one["id"]): {"/id": REASON} for one in there["resources"]} if place == UNKNOWN_SCOPE else {}
    resources = [*there.pop("resources"), *stays]
    return Snapshot.model_validate({**document, **there, "resources": resources, "unreadable": marks})


@pytest.mark.parametrize("policy", sweep([policy.id for policy in built_in().policies], 8))
def test_outcomes_that_depend_on_the_place_are_unknown_until_it_is_stated(policy: str) -> None:
    """Where the resource group of the deployment is not stated, what differs between groups is not decided."""
    one = next(one for one in built_in().policies if one.id == policy)
    random = Random(f"7 {policy}")
    cases = random.sample(cases_of(policy), min(8, len(cases_of(policy))))
    for name, case in cases:
        document = document_of(estate(baselines_of(built_in()), case, name))
        trial = Trial(one, built_in().only([one]), name, case, document, {})
        placed = [_at_home(trial.outcomes(moved(document, place)), place) for place in PLACES]
        unplaced = _at_home(trial.outcomes(moved(document, UNKNOWN_SCOPE)), UNKNOWN_SCOPE)
        for identity in unplaced.keys() | placed[0].keys():
            stated = {outcomes.get(identity, "not evaluated") for outcomes in placed}
            is_same = stated in ({"fail"}, {"unknown"}) or stated <= {"pass", "not evaluated"}
            allowed = {"unknown", *(stated if is_same else ())}
            allowed |= {"not evaluated"} & stated  # what is not deployed is not measured
            assert unplaced.get(identity, "not evaluated") in allowed, (name, identity, stated)


def _at_home(outcomes: Outcomes, place: str) -> Outcomes:
    """Outcomes by the ids that the resources have at home."""
    return {lowered(identity).replace(lowered(place), lowered(HOME)): outcome for identity, outcome in outcomes.items()}


if __name__ == "__main__":
    most = int(sys.argv[1])
    chosen = sys.argv[2:] or [policy.id for policy in built_in().policies]
    with ProcessPoolExecutor(2) as processes:
        for policy, found in zip(chosen, processes.map(holes_of, chosen, [most or None] * len(chosen)), strict=True):
            short = {hole.partition(" [")[0]: hole for hole in found}
            sys.stdout.write("\n".join([f"{policy}: {len(short)} holes", *short.values(), ""]))
            sys.stdout.flush()
