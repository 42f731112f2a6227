"""The law that only what a policy reads can change its outcome."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import Any, Literal, NamedTuple, TypeAlias

from pydantic import ValidationError

from policyeng.bundle import Bundle, Policy
from policyeng.bundle.header import WORKSPACE
from policyeng.evaluation import EvaluationContext
from policyeng.evaluation.matching import plan, selectors_of
from policyeng.evaluation.pointers import has_value, values_at
from policyeng.evaluation.prepared_snapshot import estate_of
from policyeng.evaluation.summary import by_pair
from policyeng.evaluation.tracing import Differences, rows_of, touched_pairs
from policyeng.facts.ids import fold_id, workspace_of
from policyeng.models import WORKSPACE_TYPE, Finding, JsonObject, Model, Resource, Snapshot, lowered
from policyeng.parsing.json_pointer import escaped, keys_of, list_index, member
from policyeng.testing.observed_reads import observe
from policyeng.verify.generators.estates import copied_object
from policyeng.verify.generators.json_mutations import (
    Json,
    Place,
    altered,
    copied,
    draw_boolean,
    draw_odd_value,
    place_of,
    places,
    put_value,
    remove,
)
from policyeng.verify.generators.vocabulary import Vocabulary, vocabulary_of
from policyeng.verify.laws.law import Law, LawContext, Trial, Violation, format_finding

#: Where the resource that a workload is derived from can have tags.
_TAGS = ("/tags", "/properties/tags", "/properties/kvTags")
_LISTS = ("resources", "approvals", "workloads")
#: A change of the value at a JSON Pointer of a document.
Change: TypeAlias = Callable[[JsonObject, str], None]


class SnapshotField(NamedTuple):
    """A field of a snapshot: the list, the position of the entry in it, and a JSON Pointer into the entry."""

    of: Literal["resources", "approvals", "workloads"]
    position: int
    pointer: str


def list_selected(trial: Trial, policy: Policy) -> list[Resource]:
    """Return the resources of an example that a policy selects, even those to which it then does not apply."""
    estate = estate_of(trial.snapshot, trial.bundle.facts)
    alone = trial.bundle.only([policy])
    return [estate.subjects[position] for column in plan(alone, estate) for position in column.all()]


class Attempt(NamedTuple):
    """A test of a contract of a header on one resource, at one place."""

    subject: Resource
    policy: Policy
    place: str


def attempts(trial: Trial, random: Random, stated: Mapping[str, Sequence[str]], of_workloads: bool) -> list[Attempt]:
    """Return one attempt for each resource, or for each workload, so that a single evaluation covers all of them.

    `stated` has the places of contracts by policy id. Attempts that would change the findings of other resources are
    out: workspaces, approvals, fields of the workspace, and policies that consult other resources.
    workspaces, approvals, what is in the workspace, and policies that consult other resources.
    """
    before = by_pair(trial.evaluation)
    alone = [policy for policy in trial.bundle.policies if policy.id in stated and is_alone(trial.bundle, policy)]
    result = []
    for subject in estate_of(trial.snapshot, trial.bundle.facts).subjects:
        is_workload = subject.target_type == "workload"
        if is_workload != of_workloads or subject.target_type in ("approval", "document", WORKSPACE_TYPE):
            continue
        selecting = [
            policy for policy in alone if is_evaluated_by(policy, subject) and pair_of(policy, subject) in before
        ]
        places = [Attempt(subject, policy, place) for policy in selecting for place in stated[policy.id]]
        result += [random.choice(places)] if places else []
    return result


def is_evaluated_by(policy: Policy, subject: Resource) -> bool:
    """Check whether a policy selects resources of this type; a workload has the id and type of its source."""
    return any(lowered(target.type) == subject.target_type for target in policy.header.judges)


def is_alone(bundle: Bundle, policy: Policy) -> bool:
    """Check whether a policy reads only the resource and its workspace, and selects types that no other one reads."""
    kinds = {lowered(target.type) for target in policy.header.judges}
    return not observe(bundle, policy).others and kinds.isdisjoint(("approval", WORKSPACE_TYPE))


def fields_of(snapshot: Snapshot, subject: Resource, pointer: str) -> Iterator[SnapshotField]:
    """Yield the fields of the snapshot that a JSON Pointer into a resource or workload refers to, if any."""
    key = fold_id(subject.reported_id)
    if subject.target_type == "approval":
        yield from (
            SnapshotField("approvals", at, pointer) for at, one in enumerate(snapshot.approvals) if _is(one.id, key)
        )
    elif subject.target_type == "workload" and not pointer.startswith(WORKSPACE):
        for at, one in enumerate(snapshot.workloads):
            if _is(one.id, key) or _is(one.source_id, key):
                yield SnapshotField("workloads", at, pointer)
        if pointer == "/tags" or pointer.startswith("/tags/"):
            below = pointer.removeprefix("/tags")
            yield from (field for place in _TAGS for field in _of_resources(snapshot, key, place + below))
    elif subject.target_type != "document":
        home = workspace_of(subject.home) or ""
        yield from _of_resources(snapshot, home if pointer.startswith(WORKSPACE) else key, pointer)


def _is(identity: object, key: str) -> bool:
    return isinstance(identity, str) and fold_id(identity) == key


def _of_resources(snapshot: Snapshot, key: str, pointer: str) -> Iterator[SnapshotField]:
    own = pointer.removeprefix(WORKSPACE)
    yield from (
        SnapshotField("resources", at, own) for at, one in enumerate(snapshot.resources) if _is(one.get("id"), key)
    )


def change_fields(
    snapshot: Snapshot, fields: Iterable[SnapshotField], change: Change
) -> tuple[Snapshot, list[SnapshotField]]:
    """Return the snapshot with fields changed by `change`, and the fields that have changed.

    A value that the model of the snapshot rejects, such as an unknown target, is not changed.
    """
    lists: dict[str, list[Any]] = {name: list(getattr(snapshot, name)) for name in _LISTS}
    changed_fields = []
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
        changed_fields.append(field)
    return snapshot.model_copy(update={name: tuple(entries) for name, entries in lists.items()}), changed_fields


def _document_of(entry: JsonObject | Model) -> JsonObject:
    return entry if isinstance(entry, dict) else entry.model_dump(mode="json", by_alias=True)


def format_at(snapshot: Snapshot, field: SnapshotField) -> str:
    """Return the values of a field in one line."""
    document = _document_of(getattr(snapshot, field.of)[field.position])
    values = [*values_at(document, field.pointer)]
    return f"{document['id']}:{field.pointer} is {', '.join(map(repr, values)) or 'absent'}"


def _is_same(one: Json, other: Json) -> bool:
    """Check whether two documents are equal; in JSON, true is not a number."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_same, one, other))
    return type(one) is type(other) and one == other


def reachable(random: Random, document: JsonObject, pointer: str) -> Place | None:
    """Return a JSON Pointer as a place that can be set without changes above it; None if there is none."""
    place = place_of(random, document, pointer)
    container: object = document
    for step in place[:-1]:
        container = member(container, str(step))
    is_settable = isinstance(container, dict) or (
        isinstance(container, list) and member(container, str(place[-1])) is not None
    )
    return place if is_settable else None


def get_value(document: object, place: Sequence[str | int]) -> tuple[bool, Json]:
    """Return whether a place has a value, and the value, which is None if it has none."""
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
    """Check whether a JSON Pointer equals another one or leads below it."""
    parts, outer = keys_of(pointer), keys_of(above)
    return parts[: len(outer)] == outer and pointer.startswith(WORKSPACE) == above.startswith(WORKSPACE)


def vocabulary(grounds: LawContext) -> Vocabulary:
    """Return the vocabulary of the policies without the values in cases and baselines."""
    known: Vocabulary = grounds.once("vocabulary of the policies", lambda: vocabulary_of(grounds.bundle, ()))
    return known


def list_read_pointers(grounds: LawContext) -> Sequence[str]:
    """Return the JSON Pointers that any policy reads, in the resource itself or in another one."""
    result: Sequence[str] = grounds.once("what policies look at", lambda: _list_read_pointers(grounds.bundle))
    return result


def _list_read_pointers(bundle: Bundle) -> Sequence[str]:
    observed = [observe(bundle, policy) for policy in bundle.policies]
    elsewhere = (pointer for one in observed for pointers in one.others.values() for pointer in pointers)
    return sorted({*elsewhere, *(pointer for one in observed for pointer in (*one.own, *one.workspace))})


def count_tests(grounds: LawContext) -> Counter[tuple[str, str, str]]:
    """Return how often each contract of a header was tested: a count per finding, by law, policy and place."""
    counts: Counter[tuple[str, str, str]] = grounds.once("contracts tried", Counter)
    return counts


def pair_of(policy: Policy, subject: Resource) -> tuple[str, str, str]:
    """Return the key of `by_pair` for the finding of a policy about a resource."""
    return policy.id, lowered(subject.reported_type), lowered(subject.reported_id)


def reasons(finding: Finding | None) -> set[tuple[str, str]]:
    """Return the message and path of each denial."""
    return {(denial.msg, denial.path) for denial in finding.denials} if finding else set()


#: The suffix of the id of a copied resource.
_COPY = "-copy"
#: How many resources are changed at once, drawn at random.
_AT_ONCE = (1, 1, 2, 4, 8)
_UNREAD = "the finding changes although nothing that the policy was observed to read changes"


class _Change(NamedTuple):
    """A resource that is added, deleted (`becomes` is None) or changed at one JSON Pointer."""

    key: str
    was: JsonObject | None
    becomes: JsonObject | None
    pointer: str = ""

    @property
    def description(self) -> str:
        """The change in one line."""
        if self.was is None:
            return f"added: {self.key}"
        return f"changed: {self.key}:{self.pointer}" if self.becomes is not None else f"deleted: {self.key}"


def _find_violations(trial: Trial) -> Violation | None:
    changes = _draw(trial.random("observed"), trial)
    if not changes:
        return None
    before, after = trial.prepared, trial.ready(_with(trial.snapshot, changes))
    rows = list(rows_of(before.estate.subjects, after.estate.subjects))
    wanted = {column.policy: column.all() for column in before.planned}
    touched = touched_pairs(before, trial.example.as_of, wanted, Differences(rows, before.estate.view))
    # Whether a policy selects a changed resource is decided before it reads anything.
    changed = {lowered(side.reported_id) for row in rows for side in (row.before, row.after) if side is not None}
    skipped = {_key(before, *numbers) for numbers, is_touched in touched.items() if is_touched}
    found, again = by_pair(trial.evaluation), by_pair(trial.evaluate_prepared(after))
    for pair in sorted({*found, *again} - skipped):
        one, other = found.get(pair), again.get(pair)
        is_own = pair[2] in changed and (one is None or other is None or _is_narrowed(trial, pair[0]))
        if not is_own and _outcome(one) != _outcome(other):
            shown = one or other
            lines = (
                *(change.description for change in changes),
                f"before: {format_finding(one)}",
                f"after:  {format_finding(other)}",
            )
            return Violation(_UNREAD, pair[0], shown.resource if shown else pair[2], lines)
    return None


LAW = Law(
    number=3,
    name="observed",
    sentence="a finding depends on nothing that the evaluation was not observed to read",
    reference="non-interference, as a metamorphic relation: Chen et al., Metamorphic testing (ACM CSUR 51, 2018)",
    violated=_find_violations,
)


def _key(prepared: EvaluationContext, number: int, at: int) -> tuple[str, str, str]:
    subject = prepared.estate.subjects[at]
    return prepared.bundle.policies[number].id, lowered(subject.reported_type), lowered(subject.reported_id)


def _is_narrowed(trial: Trial, identity: str) -> bool:
    """Check whether a policy selects only some of the resources of a type."""
    policy = next(policy for policy in trial.bundle.policies if policy.id == identity)
    return any(one.where for one in selectors_of(policy.header))


def _outcome(finding: Finding | None) -> object:
    return finding and (finding.outcome, finding.denials, finding.unknowns)


def _draw(random: Random, trial: Trial) -> list[_Change]:
    """Draw resources to delete, to change at one place, or to add."""
    known = {lowered(resource["id"]): resource for resource in trial.snapshot.resources if _is_named(resource)}
    changes: list[_Change] = []
    for key in random.sample(sorted(known), min(random.choice(_AT_ONCE), len(known))):
        kind, resource = random.randrange(4), known[key]
        copy = {**resource, "id": f"{resource['id']}{_COPY}"}
        if kind == 0:
            changes.append(_Change(key, resource, None))
        elif kind == 1 and lowered(copy["id"]) not in known:
            changes.append(_Change(lowered(copy["id"]), None, copy))
        else:
            changes += _edit(random, key, resource, list_read_pointers(trial.grounds))
    return changes


def _is_named(resource: JsonObject) -> bool:
    return all(isinstance(resource.get(name), str) and resource[name] for name in ("id", "type"))


def _edit(random: Random, key: str, resource: JsonObject, pointers: Sequence[str]) -> Iterator[_Change]:
    """Yield a change that replaces or removes the value at one place, often one that policies read."""
    document = copied_object(resource)
    stated = [pointer for pointer in pointers if has_value(document, pointer) and pointer not in ("/id", "/type")]
    open_places = [place for place in places(document) if place[0] not in ("id", "type")]
    if not open_places:
        return
    is_directed = bool(stated) and draw_boolean(random, 0.5)
    place = place_of(random, document, random.choice(stated)) if is_directed else random.choice(open_places)
    exists, value = get_value(document, place)
    if draw_boolean(random, 0.4):
        remove(document, place)
    elif exists and draw_boolean(random, 0.5):
        put_value(document, place, altered(random, copied(value)))
    else:
        put_value(document, place, draw_odd_value(random))
    yield _Change(key, resource, document, "".join(f"/{escaped(step)}" for step in place))


def _with(snapshot: Snapshot, changes: Iterable[_Change]) -> Snapshot:
    by_key = {change.key: change.becomes for change in changes if change.was is not None}
    remaining = [
        by_key.get(lowered(resource["id"]), resource) if _is_named(resource) else resource
        for resource in snapshot.resources
    ]
    added = [change.becomes for change in changes if change.was is None]
    resources = tuple(resource for resource in (*remaining, *added) if resource is not None)
    return snapshot.model_copy(update={"resources": resources})
