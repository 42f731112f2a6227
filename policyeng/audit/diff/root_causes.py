"""Causes of a flip: the smallest sets of differences that undo it if reverted, verified by evaluation.

The search begins with few units: the resource, its workspace, the rest of the snapshot, the policy, its parameters,
the exemptions, the engine and the clock. Units that undo the flip are then divided, down to places of a resource.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from functools import cached_property
from itertools import combinations, islice
from math import comb
from typing import NamedTuple, TypeVar

import orjson
from msgspec.structs import replace

from policyeng import exemptions as exempting
from policyeng._performance import uncollected
from policyeng.audit.diff.inputs import (
    Became,
    Cause,
    CauseKind,
    FindingKey,
    PathChange,
    State,
    Status,
    index_findings,
    status_of,
)
from policyeng.bundle import Policy
from policyeng.engines import engine_version
from policyeng.errors import BundleError, EngineError, UsageError
from policyeng.evaluation import EvaluationContext, evaluate_pairs, find_scopes, prepare
from policyeng.evaluation.changing_snapshot import ChangingSnapshot, can_change
from policyeng.evaluation.matching import Taking, is_of_kind, selectors_of
from policyeng.evaluation.prepared_snapshot import Becomes, Notes
from policyeng.facts.arm_casing import Spellings, as_arm_reads
from policyeng.facts.ids import fold_id, workspace_of
from policyeng.models import Carried, Document, Exemption, JsonObject, Model, Resource, Snapshot, lowered
from policyeng.parsing.json_pointer import escaped, filled, keys_of, member
from policyeng.redaction import masked
from policyeng.report.phrases import rfc3339

#: The value of an absent member; different from null.
NOTHING = object()


class JsonDifference(NamedTuple):
    """A differing place, as a JSON Pointer, with the values of both sides (or `NOTHING`)."""

    path: str
    before: object
    after: object


def edits(before: object, after: object, at: str = "") -> Iterator[JsonDifference]:
    """Yield the deepest places where two JSON values differ. Lists of different lengths are one place."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({**before, **after}):
            yield from edits(before.get(key, NOTHING), after.get(key, NOTHING), f"{at}/{escaped(key)}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from edits(one, other, f"{at}/{index}")
    elif type(before) is not type(after) or before != after:  # 1 and true are equal to Python, and so are 1 and 1.0
        yield JsonDifference(at, before, after)


def reverted(after: JsonObject, edit: JsonDifference) -> JsonObject:
    """Return the later document with one difference reverted. Unaffected parts are shared."""
    keys = keys_of(edit.path)
    made = _without(after, keys) if edit.before is NOTHING else filled(after, keys, edit.before)
    return made if isinstance(made, dict) else after  # what differs between two objects lies below them


def _without(document: object, keys: list[str]) -> object:
    """Return a copy without the member at the path of keys."""
    key, *rest = keys
    if rest:
        return filled(document, [key], _without(member(document, key), rest))
    return {name: value for name, value in document.items() if name != key} if isinstance(document, dict) else document


def mask_difference(edit: JsonDifference) -> PathChange:
    """Return a difference for reports, with masked secrets."""
    change = "came" if edit.before is NOTHING else "went" if edit.after is NOTHING else "changed"
    before, after = (None if side is NOTHING else masked(side, edit.path) for side in (edit.before, edit.after))
    return PathChange(path=edit.path, change=change, before=before, after=after)


class Item(NamedTuple):
    """The key of an item: an ARM id, the id of a statement, or for `CauseKind.SNAPSHOT` the name of a member."""

    kind: CauseKind
    key: str


class ItemEntry(NamedTuple):
    """The entry of an item.

    Attributes:
        name: in its original spelling.
        value: the resource, the statement or the member itself.
        document: the same as JSON, for differences.
        unreadable, carried: the notes on a resource.
    """

    name: str
    value: object
    document: JsonObject
    unreadable: Mapping[str, str] = {}
    carried: Carried | None = None


#: The entries of each item: usually one, several if an id is repeated.
Items = Mapping[Item, tuple[ItemEntry, ...]]

#: By kind, the attribute of a snapshot with the statements of that kind, and the members that identify them.
_STATED: Mapping[CauseKind, tuple[str, tuple[str, ...]]] = {
    CauseKind.APPROVAL: ("approvals", ("id",)),
    CauseKind.WORKLOAD: ("workloads", ("id",)),
    CauseKind.PRINCIPAL: ("principals", ("id",)),
    CauseKind.QUOTA: ("quotas", ("scope", "region", "family")),
    CauseKind.EVIDENCE: ("evidence", ("id",)),
    CauseKind.METRIC: ("metrics", ("resourceId", "name")),
}
_MEMBERS = {name: getattr(Snapshot(), name) for name in ("scope", "taken_at", "incomplete", "covers")}


def items_of(snapshot: Snapshot) -> Items:
    """Return the items of a snapshot, without source locations."""
    found: dict[Item, tuple[ItemEntry, ...]] = {}

    def add(kind: CauseKind, name: str, entry: ItemEntry) -> None:
        item = Item(kind, fold_id(name))
        found[item] = (*found.get(item, ()), entry)

    for resource in snapshot.resources:
        name = str(resource.get("id", ""))
        key = lowered(name)
        notes = snapshot.unreadable.get(key, {}), snapshot.carried.get(key)
        add(CauseKind.RESOURCE, name, ItemEntry(name, resource, resource, *notes))
    for kind, (attribute, keys) in _STATED.items():
        for stated in getattr(snapshot, attribute):
            document = stated.model_dump(mode="json", by_alias=True)
            name = " ".join(str(document[key]) for key in keys)
            add(kind, name, ItemEntry(name, stated, document))
    for written in snapshot.documents:
        content = {"content": written.content}
        add(CauseKind.DOCUMENT, written.name, ItemEntry(written.name, written, content))
    for name, default in _MEMBERS.items():
        if (value := getattr(snapshot, name)) != default:
            add(CauseKind.SNAPSHOT, name, ItemEntry(name, value, {name: _plain(value)}))
    return found


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else str(value)


def find_differences(before: Items, after: Items) -> list[Item]:
    """Return the items that differ, sorted."""
    return sorted(item for item in {**before, **after} if not _is_same(before.get(item, ()), after.get(item, ())))


def _is_same(before: tuple[ItemEntry, ...], after: tuple[ItemEntry, ...]) -> bool:
    return len(before) == len(after) and all(
        (one.unreadable, one.carried) == (other.unreadable, other.carried)
        and (one.document is other.document or not any(True for _ in edits(one.document, other.document)))
        for one, other in zip(before, after, strict=True)
    )


def edits_of(before: tuple[ItemEntry, ...], after: tuple[ItemEntry, ...]) -> list[JsonDifference]:
    """Return the differences of an item, if both sides have one entry with the same notes; otherwise none."""
    if len(before) != 1 or len(after) != 1:
        return []
    one, other = before[0], after[0]
    if (one.unreadable, one.carried) != (other.unreadable, other.carried):
        return []
    return list(edits(one.document, other.document))


def revert_partly(after: tuple[ItemEntry, ...], undone: Iterable[JsonDifference]) -> tuple[ItemEntry, ...]:
    """Return the later entry of an item with some differences reverted."""
    (entry,) = after
    document = entry.document
    for edit in undone:
        document = reverted(document, edit)
    value: object = document
    if isinstance(entry.value, Document):
        value = entry.value.model_copy(update={"content": document["content"]})
    elif isinstance(entry.value, Model):
        value = type(entry.value).model_validate(document)
    return (entry._replace(value=value, document=document, name=str(document.get("id", entry.name))),)


def snapshot_of(base: Snapshot, items: Items) -> Snapshot:
    """Return a snapshot with these items, and the source locations of `base`."""
    resources = [entry for item, entries in items.items() if item.kind is CauseKind.RESOURCE for entry in entries]
    update: dict[str, object] = {
        "resources": tuple(entry.value for entry in resources),
        "unreadable": {lowered(entry.name): entry.unreadable for entry in resources if entry.unreadable},
        "carried": {lowered(entry.name): entry.carried for entry in resources if entry.carried},
    }
    for kind, attribute in [*((kind, name) for kind, (name, _) in _STATED.items()), (CauseKind.DOCUMENT, "documents")]:
        update[attribute] = tuple(
            entry.value for item, entries in items.items() if item.kind is kind for entry in entries
        )
    for name, default in _MEMBERS.items():
        entries = items.get(Item(CauseKind.SNAPSHOT, name), ())
        update[name] = entries[0].value if entries else default
    return base.model_copy(update=update)


#: What to evaluate: the id of a policy, and the lower-case type and folded id of the resource.
QueriedFindings = Collection[tuple[str, str, str]]
#: The entries of an item, if any.
Entries = tuple[ItemEntry, ...]


class Splicing:
    """A prepared snapshot with changing resources; only the requested findings are evaluated."""

    def __init__(self, prepared: EvaluationContext, queried: QueriedFindings) -> None:
        """Use a prepared snapshot with all of its pairs; `fits` returns whether it can be spliced."""
        self._snapshot = ChangingSnapshot(prepared)
        self._spellings = prepared.bundle.spellings
        numbers = {policy.id: number for number, policy in enumerate(prepared.bundle.policies)}
        self._policies: dict[tuple[str, str], list[int]] = {}
        for policy, kind, identity in queried:
            if policy in numbers:
                self._policies.setdefault((kind, identity), []).append(numbers[policy])
        subjects = prepared.estate.subjects
        self._positions = {at for at, subject in enumerate(subjects) if _key(subject) in self._policies}

    @staticmethod
    def fits(prepared: EvaluationContext) -> bool:
        """Return whether a snapshot can be spliced: it can change, and all of its lists were read."""
        return not prepared.estate.gaps and can_change(prepared)

    @contextmanager
    def after(self, changes: Mapping[Item, Entries]) -> Iterator[EvaluationContext | None]:
        """Prepare the snapshot with these resources; None if one of them cannot be evaluated."""
        becomes: dict[str, Becomes] = {}
        for item, entries in changes.items():
            made = _becomes(entries, self._spellings)
            if made is None:
                yield None
                return
            becomes[item.key] = made
        rows = self._snapshot.rows(becomes)
        with self._snapshot.changed(rows, self._snapshot.differences(rows)) as context:
            yield context.with_pairs(self._wanted(context, {row.position for row in rows.all}))

    def _wanted(self, context: EvaluationContext, changed: Set[int]) -> dict[int, set[int]]:
        """Return the requested pairs, of unchanged and changed subjects: positions by the number of the policy."""
        wanted = dict[int, set[int]]()
        for at in self._positions | changed:
            subject = context.estate.subjects[at]
            numbers = self._policies.get(_key(subject), ())
            taking = Taking(subject)
            for number in numbers:
                judges = selectors_of(context.bundle.policies[number].header)
                if any(is_of_kind(subject, one) and taking.takes(one) for one in judges):
                    wanted.setdefault(number, set()).add(at)
        return wanted


def _key(subject: Resource) -> tuple[str, str]:
    return lowered(subject.reported_type), fold_id(subject.reported_id)


def _becomes(entries: Entries, spellings: Spellings) -> Becomes | None:
    if not entries:
        return Becomes(None)
    if len(entries) > 1:
        return None
    (entry,) = entries
    named = all(isinstance(entry.document.get(name), str) and entry.document[name] for name in ("id", "type"))
    try:
        orjson.dumps(entry.document)
    except TypeError:  # a number that JSON has no room for
        return None
    if not named:
        return None
    spelled = as_arm_reads(entry.document, entry.document["type"], spellings)
    if spelled.twice or spelled.part is not entry.document:  # what is made ready notes the places of such members
        return None
    return Becomes(entry.document, Notes(entry.unreadable, entry.carried))


class StateFactor(NamedTuple):
    """One difference between two states.

    Attributes:
        key: the key of the item of a snapshot, or the id of an exemption; empty for single ones.
        path: a place in the item; None for the complete item.
    """

    kind: CauseKind
    key: str = ""
    path: str | None = None

    @property
    def item(self) -> Item:
        """The item in the snapshot."""
        return Item(self.kind, self.key)


#: The causes outside the snapshot.
_OUTSIDE_SNAPSHOT = (CauseKind.POLICY, CauseKind.PARAMETERS, CauseKind.EXEMPTION, CauseKind.ENGINE, CauseKind.CLOCK)
#: What does not affect the preparation of a snapshot.
_WITHOUT = (CauseKind.EXEMPTION, CauseKind.ENGINE, CauseKind.CLOCK)


class Counterfactuals:
    """The states between two others, each evaluated once for the requested findings."""

    def __init__(self, before: State, after: State, queried: Iterable[FindingKey]) -> None:
        self.before, self.after = before, after
        self._queried = {key[:3] for key in queried}
        self._known: dict[frozenset[StateFactor], Mapping[FindingKey, Status] | None] = {}
        self._prepared: dict[frozenset[StateFactor], EvaluationContext] = {}
        self._spliced: dict[frozenset[StateFactor], Splicing | None] = {}

    @cached_property
    def items(self) -> tuple[Items, Items]:
        """The items of both snapshots."""
        return items_of(self.before.snapshot), items_of(self.after.snapshot)

    @cached_property
    def differing(self) -> list[Item]:
        """The items of the snapshots that differ."""
        return find_differences(*self.items)

    @cached_property
    def in_force(self) -> tuple[Mapping[str, Exemption], Mapping[str, Exemption]]:
        """The active exemptions by id, before and after, of any policies."""
        before, after = (
            {one.id: one for one in state.options.exemptions if one.created_at <= state.options.as_of < one.expires_at}
            for state in (self.before, self.after)
        )
        return before, after

    def edits(self, item: Item) -> list[JsonDifference]:
        """Return the differences of an item, if they are at places."""
        if item.kind is CauseKind.SNAPSHOT:
            return []
        before, after = (side.get(item, ()) for side in self.items)
        return edits_of(before, after)

    def status(self, key: FindingKey, undone: Set[StateFactor]) -> Status | None:
        """Return the finding with some factors reverted.

        Raises:
            LookupError: not known, because these policies, parameters or engines are incompatible.
        """
        chosen = frozenset(undone)
        if chosen not in self._known:
            self._known[chosen] = self._judged(chosen)
        statuses = self._known[chosen]
        if statuses is None:
            raise LookupError
        return statuses.get(key)

    def undoes(self, key: FindingKey, undone: Set[StateFactor], wanted: Status | None) -> bool:
        """Check whether reverting some factors gives the wanted finding."""
        try:
            return self.status(key, undone) == wanted
        except LookupError:
            return False

    @uncollected()
    def _judged(self, undone: frozenset[StateFactor]) -> Mapping[FindingKey, Status] | None:
        """Evaluate the requested findings with some factors reverted."""
        kinds = {factor.kind for factor in undone}

        def side(kind: CauseKind) -> State:
            return self.before if kind in kinds else self.after

        exemptions = self._exemptions({factor.key for factor in undone if factor.kind is CauseKind.EXEMPTION})
        options = replace(side(CauseKind.ENGINE).options, as_of=side(CauseKind.CLOCK).options.as_of)
        try:
            with self._ready(undone) as prepared:
                findings = evaluate_pairs(prepared, options)
                takes = {policy.id for policy in prepared.bundle.policies if policy.header.exemptable}
                in_force = [one for one in exemptions if one.policy in takes]
                homes = find_scopes(prepared.estate.subjects) if in_force else {}
        except (BundleError, EngineError, UsageError):
            return None
        marked = [exempting.marked_by(finding, in_force, homes, _ignore_exemption_use) for finding in findings]
        return {key: status for key, finding in index_findings(marked).items() if (status := status_of(finding))}

    def _exemptions(self, undone: Collection[str]) -> list[Exemption]:
        """Return the active exemptions, with some reverted."""
        before, after = self.in_force
        chosen = {name: one for name, one in after.items() if name not in undone}
        chosen |= {name: one for name, one in before.items() if name in undone}
        return [chosen[name] for name in sorted(chosen)]

    @contextmanager
    def _ready(self, undone: frozenset[StateFactor]) -> Iterator[EvaluationContext]:
        """Prepare a state; clock, engine and exemptions do not affect it."""
        resources = frozenset(factor for factor in undone if factor.kind is CauseKind.RESOURCE)
        others = frozenset(factor for factor in undone if factor.kind not in _WITHOUT) - resources
        if resources and "opa" not in (self.before.options.engine, self.after.options.engine):
            splicing = self._splicing(others)
            if splicing is not None:
                with splicing.after(self._changes(resources)) as spliced:
                    if spliced is not None:
                        yield spliced
                        return
        yield self._whole(resources | others).only(
            lambda policy, subject: (
                (policy.id, lowered(subject.reported_type), fold_id(subject.reported_id)) in self._queried
            )
        )

    def _whole(self, undone: frozenset[StateFactor]) -> EvaluationContext:
        """Return a prepared state with all of its pairs."""
        if undone not in self._prepared:
            if len(self._prepared) >= _KEPT:
                del self._prepared[next(iter(self._prepared))]
            kinds = {factor.kind for factor in undone}
            bundle = (self.before if CauseKind.POLICY in kinds else self.after).bundle
            parameters = (self.before if CauseKind.PARAMETERS in kinds else self.after).options.parameters
            self._prepared[undone] = prepare(bundle, self._snapshot(undone), parameters)
        return self._prepared[undone]

    def _splicing(self, undone: frozenset[StateFactor]) -> Splicing | None:
        """Return the shared part of states that differ in resources; None if these are prepared one by one."""
        if undone not in self._spliced:
            while len(self._spliced) >= _KEPT:
                del self._spliced[next(iter(self._spliced))]
            prepared = self._whole(undone)
            self._spliced[undone] = Splicing(prepared, self._queried) if Splicing.fits(prepared) else None
        return self._spliced[undone]

    def _changes(self, undone: Iterable[StateFactor]) -> dict[Item, tuple[ItemEntry, ...]]:
        """Return the entries of items with reverted differences."""
        before, after = self.items
        whole: set[Item] = set()
        places: dict[Item, set[str]] = {}
        for factor in undone:
            if factor.path is None:
                whole.add(factor.item)
            else:
                places.setdefault(factor.item, set()).add(factor.path)
        changes = {
            item: revert_partly(after[item], (edit for edit in self.edits(item) if edit.path in paths))
            for item, paths in places.items()
        }
        return changes | {item: before.get(item, ()) for item in whole}

    def _snapshot(self, undone: Iterable[StateFactor]) -> Snapshot:
        changes = self._changes(factor for factor in undone if factor.kind not in _OUTSIDE_SNAPSHOT)
        if not changes:
            return self.after.snapshot
        items = {**self.items[1], **changes}
        return snapshot_of(self.after.snapshot, {item: entries for item, entries in items.items() if entries})


#: How many snapshots are kept ready: the next question is often about the same one, at another clock.
_KEPT = 8


def _ignore_exemption_use(_: str) -> None:
    """Ignore which exemptions are used."""


#: The maximum number of places listed per item; the snapshots have all of them.
_MOST_PATHS = 50


def describe_causes(worlds: Counterfactuals, key: FindingKey, factors: Iterable[StateFactor]) -> Iterator[Cause]:
    """Yield the cause of each reverted item, with its places."""
    places: dict[StateFactor, list[str]] = {}
    for factor in sorted(factors, key=lambda one: (list(CauseKind).index(one.kind), one.key, one.path or "")):
        found = places.setdefault(factor._replace(path=None), [])
        if factor.path is not None:
            found.append(factor.path)
    for factor, paths in places.items():
        yield _describe_cause(worlds, key, factor, paths)


def _describe_cause(worlds: Counterfactuals, key: FindingKey, factor: StateFactor, paths: list[str]) -> Cause:
    before, after = worlds.before, worlds.after
    if factor.kind is CauseKind.POLICY:
        return _policy_cause(before, after, key.policy)
    if factor.kind is CauseKind.PARAMETERS:
        given = edits(before.options.parameters.get(key.policy, {}), after.options.parameters.get(key.policy, {}))
        return Cause(kind=factor.kind, change="changed", subject=key.policy, paths=tuple(map(mask_difference, given)))
    if factor.kind is CauseKind.EXEMPTION:
        return _exemption(worlds, factor.key)
    if factor.kind is CauseKind.ENGINE:
        versions = [f"{one.engine} {engine_version(one.engine, one.opa)}" for one in (before.options, after.options)]
        return Cause(kind=factor.kind, change="changed", before=versions[0], after=versions[1])
    if factor.kind is CauseKind.CLOCK:
        return Cause(
            kind=factor.kind, change="changed", before=rfc3339(before.options.as_of), after=rfc3339(after.options.as_of)
        )
    return _item(worlds, factor.item, paths)


def _policy_cause(before: State, after: State, policy_id: str) -> Cause:
    """Return a changed policy, or its shared code and data with their differences."""
    digests = [digest_of(state, policy_id) for state in (before, after)]
    if digests[0] != digests[1]:
        change = _change(*digests)
        return Cause(kind=CauseKind.POLICY, change=change, subject=policy_id, before=digests[0], after=digests[1])
    paths = islice(map(mask_difference, edits(before.bundle.data, after.bundle.data)), _MOST_PATHS)
    digests = [state.bundle.digest for state in (before, after)]
    name = after.bundle.name
    return Cause(
        kind=CauseKind.LIBRARY, change="changed", subject=name, paths=tuple(paths), before=digests[0], after=digests[1]
    )


def _item(worlds: Counterfactuals, item: Item, paths: list[str]) -> Cause:
    """Return a cause in the snapshot, with the relevant places, or all places."""
    before, after = (side.get(item, ()) for side in worlds.items)
    name = (after or before)[0].name
    if not before or not after:
        return Cause(kind=item.kind, change=_change(before, after), subject=name)
    known = edits(before[0].document, after[0].document)
    changes = [mask_difference(edit) for edit in known if not paths or edit.path in paths]
    if (before[0].unreadable, before[0].carried) != (after[0].unreadable, after[0].carried):
        changes += _find_readable_places(before[0].unreadable, after[0].unreadable)
    return Cause(kind=item.kind, change="changed", subject=name, paths=tuple(changes[:_MOST_PATHS]))


def _find_readable_places(before: Iterable[str], after: Iterable[str]) -> Iterator[PathChange]:
    """Yield the places that only one side can read."""
    for path in sorted({*before} ^ {*after}):
        sides = ["cannot be read" if path in side else "can be read" for side in (before, after)]
        yield PathChange(path=path, change="changed", before=sides[0], after=sides[1])


def _exemption(worlds: Counterfactuals, name: str) -> Cause:
    before, after = (side.get(name) for side in worlds.in_force)
    ends = [rfc3339(one.expires_at) if one else "" for one in (before, after)]
    change: Became = "changed"
    if before is None:
        change = "began"
    elif after is None:
        change = "lapsed" if _has_lapsed(worlds, name) else "ended"
    return Cause(kind=CauseKind.EXEMPTION, change=change, subject=name, before=ends[0], after=ends[1])


def _has_lapsed(worlds: Counterfactuals, name: str) -> bool:
    """Check whether an exemption has expired. Stores contain only active ones, so the earlier run can have it."""
    stated = {one.id: one for one in (*worlds.before.options.exemptions, *worlds.after.options.exemptions)}
    return stated[name].expires_at <= worlds.after.options.as_of


def _change(before: object, after: object) -> Became:
    return "came" if not before else "went" if not after else "changed"


def digest_of(state: State, policy_id: str) -> str:
    """Return the SHA-256 of a policy with its header; empty if it is not active."""
    policy = next((policy for policy in state.bundle.policies if policy.id == policy_id), None)
    if policy is None:
        return ""
    digest = hashlib.sha256(orjson.dumps(policy.header.model_dump(mode="json"), option=orjson.OPT_SORT_KEYS))
    if policy.python is not None:
        digest.update(policy.python.text)
    if policy.azure is not None:
        digest.update(orjson.dumps(policy.azure.policy.definition.rule, option=orjson.OPT_SORT_KEYS))
    for path, source in state.bundle.modules:
        if path == policy.file:
            digest.update(source.encode())
    return digest.hexdigest()


_Subset = TypeVar("_Subset", bound=Hashable)

#: How many sets are tried before a set is taken of which nothing can be left out, though another may be smaller.
MOST = 96


def find_smallest_sets(
    units: Sequence[_Subset], undoes: Callable[[frozenset[_Subset]], bool], most: int = MOST
) -> list[frozenset[_Subset]]:
    """Return every smallest set that undoes a flip, in the order of the units.

    Args:
        units: the differences, which undo the flip together.
        undoes: returns whether a set undoes the flip; deterministic.
        most: the largest number of tests. Beyond it, the result is one set of which no member can be omitted, but which
            might not be the smallest.
    """
    tried = 0
    for size in range(1, len(units)):
        tried += comb(len(units), size)
        if tried > most:
            return [_shrink(frozenset(units), units, undoes)]
        found = [chosen for chosen in map(frozenset, combinations(units, size)) if undoes(chosen)]
        if found:
            return found
    return [frozenset(units)]


def _shrink(
    whole: frozenset[_Subset], units: Sequence[_Subset], undoes: Callable[[frozenset[_Subset]], bool]
) -> frozenset[_Subset]:
    """Remove the unneeded members of a set: first halves, then quarters, then single members.

    Source: Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002 (ddmin, complements).
    """
    kept = [unit for unit in units if unit in whole]
    size = len(kept)
    while size:
        size = max(size // 2, 1)
        before, at = len(kept), 0
        while at < len(kept):
            fewer = kept[:at] + kept[at + size :]
            if fewer and undoes(frozenset(fewer)):
                kept = fewer
            else:
                at += size
        if size == 1 and len(kept) == before:
            break
    return frozenset(kept)


#: Factors that are undone together.
_Unit = frozenset[StateFactor]
#: The maximum number of alternative causes per flip.
_MOST_ALTERNATIVES = 5


class CauseSearch:
    """A search for the causes of flips between two states."""

    def __init__(self, worlds: Counterfactuals) -> None:
        self._worlds = worlds

    def causes(self, key: FindingKey, wanted: Status | None) -> tuple[tuple[Cause, ...], ...]:
        """Return the causes of one flip; none if another evaluation does not reproduce the earlier finding.

        Args:
            key: the key of the finding.
            wanted: the earlier finding.
        """
        units = self._units(key, narrow=True)
        if not self._undoes(key, wanted, units):
            units = self._units(key, narrow=False)
            if not self._undoes(key, wanted, units):
                return ()
        sets = find_smallest_sets(units, lambda chosen: self._undoes(key, wanted, chosen))
        found: dict[frozenset[StateFactor], None] = {}
        for chosen in sets[:_MOST_ALTERNATIVES]:
            for apart in self._apart(key, wanted, sorted(chosen, key=units.index)):
                found.setdefault(apart)
        return tuple(tuple(describe_causes(self._worlds, key, apart)) for apart in list(found)[:_MOST_ALTERNATIVES])

    def _undoes(self, key: FindingKey, wanted: Status | None, units: Iterable[_Unit]) -> bool:
        return self._worlds.undoes(key, frozenset[StateFactor]().union(*units), wanted)

    def _apart(
        self, key: FindingKey, wanted: Status | None, units: Sequence[_Unit]
    ) -> Iterator[frozenset[StateFactor]]:
        """Units that undo together, each taken apart as far as it goes; of the first there may be several ways."""
        first, *others = units
        ways = self._ways(key, wanted, first, others)
        for way in ways:
            fixed: list[_Unit] = [way]
            for number, unit in enumerate(others):
                fixed.append(self._ways(key, wanted, unit, [*fixed, *others[number + 1 :]])[0])
            yield frozenset[StateFactor]().union(*fixed)

    def _ways(self, key: FindingKey, wanted: Status | None, unit: _Unit, others: Sequence[_Unit]) -> list[_Unit]:
        """Return the smallest parts of a unit that undo a flip with other units: factors first, then places."""
        sets = self._parts(key, wanted, sorted(unit), others) if len(unit) > 1 else [unit]
        ways: list[_Unit] = []
        for chosen in sets[:_MOST_ALTERNATIVES]:
            factors = sorted(chosen)
            if len(factors) == 1:
                ways += self._places(key, wanted, factors[0], others)
                continue
            kept = [frozenset([factor]) for factor in factors]
            for number, factor in enumerate(factors):
                kept[number] = self._places(key, wanted, factor, [*others, *kept[:number], *kept[number + 1 :]])[0]
            ways.append(frozenset[StateFactor]().union(*kept))
        return ways

    def _places(
        self, key: FindingKey, wanted: Status | None, factor: StateFactor, others: Sequence[_Unit]
    ) -> list[_Unit]:
        """Return the smallest sets of places of an item that undo a flip with other units, or the complete item."""
        places = [factor._replace(path=edit.path) for edit in self._worlds.edits(factor.item)]
        whole = [frozenset([factor])]
        if not places or not self._undoes(key, wanted, [frozenset(places), *others]):
            return whole
        return self._parts(key, wanted, places, others)

    def _parts(
        self, key: FindingKey, wanted: Status | None, factors: Sequence[StateFactor], others: Sequence[_Unit]
    ) -> list[_Unit]:
        return find_smallest_sets(factors, lambda chosen: self._undoes(key, wanted, [chosen, *others]))

    def _units(self, key: FindingKey, *, narrow: bool) -> list[_Unit]:
        """Return the possible causes of a flip; with `narrow`, without those that the policy does not read."""
        worlds = self._worlds
        before, after = worlds.before, worlds.after
        own, workspace, others = _by_nearness(key, worlds.differing)
        units = [frozenset(map(_factor, items)) for items in (own, workspace) if items]
        if others and not (narrow and _reads_nothing_else(key, (before, after))):
            units.append(frozenset(map(_factor, others)))
        if before.bundle.digest != after.bundle.digest or _policy(key, before) is None or _policy(key, after) is None:
            units.append(frozenset([StateFactor(CauseKind.POLICY)]))
        if before.options.parameters.get(key.policy, {}) != after.options.parameters.get(key.policy, {}):
            units.append(frozenset([StateFactor(CauseKind.PARAMETERS)]))
        units += [frozenset([StateFactor(CauseKind.EXEMPTION, name)]) for name in self._exemptions(key)]
        if before.options.engine != after.options.engine:
            units.append(frozenset([StateFactor(CauseKind.ENGINE)]))
        if before.options.as_of != after.options.as_of:
            units.append(frozenset([StateFactor(CauseKind.CLOCK)]))
        return units

    def _exemptions(self, key: FindingKey) -> list[str]:
        """Return the exemptions of the policy that differ between the sides."""
        before, after = self._worlds.in_force
        names = sorted(name for name in {**before, **after} if before.get(name) != after.get(name))
        return [name for name in names if (before.get(name) or after[name]).policy == key.policy]


def _factor(item: Item) -> StateFactor:
    return StateFactor(item.kind, item.key)


def _by_nearness(key: FindingKey, items: Iterable[Item]) -> tuple[list[Item], list[Item], list[Item]]:
    """Divide differing items into those of the resource, its workspace, and others."""
    home = workspace_of(key.resource)
    own, workspace, others = list[Item](), list[Item](), list[Item]()
    for item in items:
        if item.key == key.resource and item.kind is not CauseKind.SNAPSHOT:
            own.append(item)
        elif item.kind is CauseKind.RESOURCE and item.key == home:
            workspace.append(item)
        else:
            others.append(item)
    return own, workspace, others


def _reads_nothing_else(key: FindingKey, states: Iterable[State]) -> bool:
    """Check whether the policy, on both sides, reads only the resource and its workspace."""
    for state in states:
        for policy, reach in zip(state.bundle.policies, state.bundle.reaches, strict=True):
            if policy.id == key.policy and (reach.others or _is_derived(policy)):
                return False
    return True


def _is_derived(policy: Policy) -> bool:
    """Check whether a policy evaluates workloads, which are derived from several resources."""
    return any(lowered(target.type) == "workload" for target in policy.header.judges)


def _policy(key: FindingKey, state: State) -> Policy | None:
    return next((policy for policy in state.bundle.policies if policy.id == key.policy), None)
