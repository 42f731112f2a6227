"""Where in a snapshot the fields of what is judged stand, and snapshots with something else there.

A workload is derived: what it says of itself stands in declarations, and its tags with the resource that it is derived
from. Fields that only derivation gives, such as a target that a compute decides, stand nowhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import Any, Literal, NamedTuple, TypeAlias

from pydantic import ValidationError

from policyeng.bundle import Bundle, Policy
from policyeng.bundle.header_validators import WORKSPACE
from policyeng.evaluation.plan import plan
from policyeng.evaluation.pointers import values_at
from policyeng.evaluation.prepared_snapshot import Resource, estate_of
from policyeng.facts.ids import folded_id, workspace_of
from policyeng.models import WORKSPACE_TYPE, Finding, JsonObject, Model, Snapshot, lowered
from policyeng.parsing.json_pointer import keys_of, list_index, member
from policyeng.testing.observed_reads import observe
from policyeng.verify.generators.estates import copied_object
from policyeng.verify.generators.json_mutations import Json, Place, place_of
from policyeng.verify.generators.vocabulary import Vocabulary, vocabulary_of
from policyeng.verify.laws.law import LawContext, Trial, by_pair

#: Where the tags of what a workload is derived from may stand.
_TAGS = ("/tags", "/properties/tags", "/properties/kvTags")
_LISTS = ("resources", "approvals", "workloads")
#: Changes what stands at a JSON Pointer of a document.
Change: TypeAlias = Callable[[JsonObject, str], None]


class SnapshotField(NamedTuple):
    """A field of an entry of a snapshot: which of its lists, at which position, at which JSON Pointer."""

    of: Literal["resources", "approvals", "workloads"]
    position: int
    pointer: str


def judged_by(trial: Trial, policy: Policy) -> list[Resource]:
    """What a policy judges of an example, also where it then does not apply."""
    estate = estate_of(trial.snapshot, trial.bundle.facts)
    alone = trial.bundle.only([policy])
    return [estate.subjects[entry.pair.subject] for entry in plan(alone, estate)]


class Attempt(NamedTuple):
    """A contract of a header that is tried on something judged, at one place of it."""

    subject: Resource
    policy: Policy
    place: str


def attempts(trial: Trial, random: Random, stated: Mapping[str, Sequence[str]], of_workloads: bool) -> list[Attempt]:
    """One attempt for each resource, or each workload, so that all of them can be made at once.

    `stated` has the places of contracts by policy id. Left out is what would change the findings of something else:
    workspaces, approvals, what stands in the workspace, and policies that consult other resources.
    """
    before = by_pair(trial.evaluation)
    alone = [policy for policy in trial.bundle.policies if policy.id in stated and is_alone(trial.bundle, policy)]
    found = []
    for subject in estate_of(trial.snapshot, trial.bundle.facts).subjects:
        is_workload = subject.judged_type == "workload"
        if is_workload != of_workloads or subject.judged_type in ("approval", "document", WORKSPACE_TYPE):
            continue
        judging = [policy for policy in alone if judges(policy, subject) and pair_of(policy, subject) in before]
        places = [Attempt(subject, policy, place) for policy in judging for place in stated[policy.id]]
        found += [random.choice(places)] if places else []
    return found


def judges(policy: Policy, subject: Resource) -> bool:
    """Whether a policy judges things of this kind; a workload bears the id and type of what it is derived from."""
    return any(lowered(judged.type) == subject.judged_type for judged in policy.header.judges)


def is_alone(bundle: Bundle, policy: Policy) -> bool:
    """Whether a policy reads nothing but what it judges and the workspace, and judges what nobody else reads."""
    kinds = {lowered(judged.type) for judged in policy.header.judges}
    return not observe(bundle, policy).others and kinds.isdisjoint(("approval", WORKSPACE_TYPE))


def fields_of(snapshot: Snapshot, subject: Resource, pointer: str) -> Iterator[SnapshotField]:
    """The fields that a JSON Pointer into something judged stands for; none where it stands nowhere."""
    key = folded_id(subject.reported_id)
    if subject.judged_type == "approval":
        yield from (
            SnapshotField("approvals", at, pointer) for at, one in enumerate(snapshot.approvals) if _is(one.id, key)
        )
    elif subject.judged_type == "workload" and not pointer.startswith(WORKSPACE):
        for at, one in enumerate(snapshot.workloads):
            if _is(one.id, key) or _is(one.source_id, key):
                yield SnapshotField("workloads", at, pointer)
        if pointer == "/tags" or pointer.startswith("/tags/"):
            below = pointer.removeprefix("/tags")
            yield from (field for place in _TAGS for field in _of_resources(snapshot, key, place + below))
    elif subject.judged_type != "document":
        home = workspace_of(subject.home) or ""
        yield from _of_resources(snapshot, home if pointer.startswith(WORKSPACE) else key, pointer)


def _is(identity: object, key: str) -> bool:
    return isinstance(identity, str) and folded_id(identity) == key


def _of_resources(snapshot: Snapshot, key: str, pointer: str) -> Iterator[SnapshotField]:
    own = pointer.removeprefix(WORKSPACE)
    yield from (
        SnapshotField("resources", at, own) for at, one in enumerate(snapshot.resources) if _is(one.get("id"), key)
    )


def changed(
    snapshot: Snapshot, fields: Iterable[SnapshotField], change: Change
) -> tuple[Snapshot, list[SnapshotField]]:
    """The snapshot with fields changed by `change`, which gets a document and the JSON Pointer; and which have changed.

    What a model of the snapshot does not take, such as a target that there is not, stays as it was.
    """
    lists: dict[str, list[Any]] = {name: list(getattr(snapshot, name)) for name in _LISTS}
    done = []
    for field in fields:
        entry = lists[field.of][field.position]
        document = _document_of(entry)
        other = copied_object(document)
        change(other, field.pointer)
        if _is_same(other, document):
            continue
        try:
            lists[field.of][field.position] = other if isinstance(entry, dict) else type(entry).model_validate(other)
        except ValidationError:
            continue
        done.append(field)
    return snapshot.model_copy(update={name: tuple(entries) for name, entries in lists.items()}), done


def _document_of(entry: JsonObject | Model) -> JsonObject:
    return entry if isinstance(entry, dict) else entry.model_dump(mode="json", by_alias=True)


def spelled_at(snapshot: Snapshot, field: SnapshotField) -> str:
    """What stands at a field, in a line."""
    document = _document_of(getattr(snapshot, field.of)[field.position])
    values = [*values_at(document, field.pointer)]
    return f"{document['id']}:{field.pointer} is {', '.join(map(repr, values)) or 'absent'}"


def _is_same(one: Json, other: Json) -> bool:
    """Whether two documents say the same; in JSON, true is no number."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_same, one, other))
    return type(one) is type(other) and one == other


def reachable(random: Random, document: JsonObject, pointer: str) -> Place | None:
    """A JSON Pointer as a place that can be set without changing anything above it; None where there is no such one."""
    place = place_of(random, document, pointer)
    holder: object = document
    for step in place[:-1]:
        holder = member(holder, str(step))
    is_held = isinstance(holder, dict) or (isinstance(holder, list) and member(holder, str(place[-1])) is not None)
    return place if is_held else None


def stands_at(document: object, place: Sequence[str | int]) -> tuple[bool, Json]:
    """Whether something stands at a place, and what; None also where nothing does."""
    value: Any = document
    for step in place:
        if isinstance(value, dict) and str(step) in value:
            value = value[str(step)]
        elif isinstance(value, list) and (index := list_index(str(step))) is not None and index < len(value):
            value = value[index]
        else:
            return False, None
    return True, value


def is_below(pointer: str, above: str) -> bool:
    """Whether a JSON Pointer is another one or leads on from there."""
    parts, outer = keys_of(pointer), keys_of(above)
    return parts[: len(outer)] == outer and pointer.startswith(WORKSPACE) == above.startswith(WORKSPACE)


def vocabulary(grounds: LawContext) -> Vocabulary:
    """What the policies speak of, without what stands in cases and baselines."""
    spoken: Vocabulary = grounds.once("vocabulary of the policies", lambda: vocabulary_of(grounds.bundle, ()))
    return spoken


def looked_at(grounds: LawContext) -> Sequence[str]:
    """The JSON Pointers that any policy reads, in the resource itself or in another."""
    found: Sequence[str] = grounds.once("what policies look at", lambda: _looked_at(grounds.bundle))
    return found


def _looked_at(bundle: Bundle) -> Sequence[str]:
    observed = [observe(bundle, policy) for policy in bundle.policies]
    elsewhere = (pointer for one in observed for pointers in one.others.values() for pointer in pointers)
    return sorted({*elsewhere, *(pointer for one in observed for pointer in (*one.own, *one.workspace))})


def tried(grounds: LawContext) -> Counter[tuple[str, str, str]]:
    """How often each contract of a header was put to the test: by law, policy and place, a count per finding."""
    counts: Counter[tuple[str, str, str]] = grounds.once("contracts tried", Counter)
    return counts


def pair_of(policy: Policy, subject: Resource) -> tuple[str, str, str]:
    """How `by_pair` calls the finding of a policy about a subject."""
    return policy.id, lowered(subject.reported_type), lowered(subject.reported_id)


def reasons(finding: Finding | None) -> set[tuple[str, str]]:
    """The message and path of each denial."""
    return {(denial.msg, denial.path) for denial in finding.denials} if finding else set()
