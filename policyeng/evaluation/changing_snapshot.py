"""A prepared snapshot whose resources change in place, in time that depends on the change alone."""

from __future__ import annotations

from bisect import bisect_left
from collections import ChainMap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import orjson
from msgspec import structs

from policyeng.bundle import Bundle
from policyeng.bundle.policy_types import NESTED
from policyeng.engines import embedded
from policyeng.engines.tracing import NAMES
from policyeng.evaluation.context import EvaluationContext
from policyeng.evaluation.matching import PlannedColumn, Selector, Taking, selectors_in
from policyeng.evaluation.prepared_snapshot import (
    OF_RESOURCES,
    Becomes,
    Moves,
    Path,
    find_position,
    has_json_types,
    resource_subject,
    workload_subject,
)
from policyeng.evaluation.tracing import (
    Differences,
    Numbers,
    Reads,
    SubjectChange,
    is_added_or_removed,
    name_of,
    row_between,
)
from policyeng.evaluation.unknown_markers import mark_for_bundle, marked
from policyeng.facts.ids import fold_id, place_in_arm, workspace_of
from policyeng.models import Origin, Resource, lowered
from policyeng.rego.values import Value
from policyeng.workloads import Workload
from policyeng.workloads.lookup import Reader, reader

#: Replaces a subject that no longer exists.
_GONE = Resource("", {}, "", "", "")


class Rows(NamedTuple):
    """The subjects that change, and the later state of resources by id as `folded_id` returns it."""

    becomes: Mapping[str, Becomes]
    resources: Sequence[SubjectChange]
    workloads: Sequence[SubjectChange]

    @property
    def all(self) -> Sequence[SubjectChange]:
        """All changed subjects, resources first."""
        return (*self.resources, *self.workloads)


class ChangingSnapshot:
    """A prepared snapshot whose resources can be added, changed and removed. It is not thread-safe.

    The position of a subject never changes: a new subject is added at the end, and a removed one leaves its position
    empty. Resources have different ids, ignoring case and a final slash, and so do workloads.

    Attributes:
        context: the current snapshot, with no planned pairs.
    """

    def __init__(self, prepared: EvaluationContext) -> None:
        """Copy all parts that can change; the prepared snapshot stays as it is."""
        estate, document = prepared.estate, prepared.estate.document
        snapshot = prepared.snapshot
        self._origins = dict(snapshot.origins)
        if snapshot.texts:  # needed for the source locations of fields
            snapshot = snapshot.model_copy(update={"origins": self._origins})
        #: The collections that change with resources, by name.
        self._collections: dict[str, Value] = {
            "resources": list(document["resources"]),
            "workloads": list(document["workloads"]),
            "by_id": dict(document["by_id"]),
            "by_type": {kind: list(alike) for kind, alike in document["by_type"].items()},
        }
        for name in OF_RESOURCES:
            self._collections[name] = {
                key: {kind: list(ids) for kind, ids in lists.items()} if name in NESTED else list(lists)
                for key, lists in document[name].items()
            }
        changing = replace(
            estate,
            subjects=list(estate.subjects),
            document=document | self._collections,
            digest="",
            derivation=estate.derivation.copy(),
        )
        #: The names of the subjects, by the `id()` of their documents.
        self._names = {id(subject.document): name_of(subject) for subject in estate.subjects}
        made = {NAMES: {id(changing.documents): self._names}}
        self.context = replace(prepared, snapshot=snapshot, estate=changing, planned=(), made=made)
        self._ids = list(document["by_id"])
        self._workload_ids = [lowered(workload["id"]) for workload in document["workloads"]]
        self._ids_by_type = {kind: [lowered(one["id"]) for one in alike] for kind, alike in document["by_type"].items()}
        #: Positions by lower-case id, and positions of resources and of workloads by id as `folded_id` returns it; the
        #: last two keep removed subjects.
        self._position = {key: at for at, key in enumerate(self._ids)}
        self._resources = {fold_id(key): at for at, key in enumerate(self._ids)}
        first = len(self._ids)
        self._workloads = {fold_id(key): at for at, key in enumerate(self._workload_ids, first)}
        #: Positions of all other subjects, by id as `folded_id` returns it.
        self._others: dict[str, list[int]] = {}
        for at, subject in enumerate(estate.subjects[first + len(self._workload_ids) :], first + len(self._workloads)):
            self._others.setdefault(fold_id(subject.reported_id), []).append(at)
        #: Positions of the subjects that are or were in a workspace, by its lower-case id; it need not exist.
        self._inside: dict[str, set[int]] = {}
        for at, subject in enumerate(estate.subjects[: first + len(self._workload_ids)]):
            self._note_home(at, subject)

        #: Positions of resources and workloads that are partly unknown.
        self._partly: dict[int, None] = {}
        for at, subject in enumerate(estate.subjects[: first + len(self._workload_ids)]):
            if subject.unreadable or subject.carried:
                text = orjson.dumps(subject.document)
                edit = self._edit_resource if at < first else self._edit_workload
                edit(Edits(), SubjectChange(at, lowered(subject.reported_id), subject, subject, text))
        self.context = self._context_after()

    @property
    def subjects(self) -> list[Resource]:
        """The subjects by position."""
        return self.context.estate.subjects

    def position_of(self, folded: str) -> int | None:
        """Return the position of an existing resource, by its id as `folded_id` returns it."""
        at = self._resources.get(folded)
        return at if at is not None and self.is_there(at) else None

    def positions_of(self, folded: str) -> list[int]:
        """Return the positions of all existing subjects with an id, as `folded_id` returns it."""
        found = [self._resources.get(folded), self._workloads.get(folded), *self._others.get(folded, ())]
        return [at for at in found if at is not None and self.is_there(at)]

    def is_there(self, at: int) -> bool:
        """Check whether a subject exists at a position."""
        return at < len(self.subjects) and self.subjects[at] is not _GONE

    def twin(self, at: int) -> int | None:
        """Return the position of the workload with the id of a resource, or the reverse."""
        folded = fold_id(self.subjects[at].reported_id)
        pair = self._resources.get(folded, -1), self._workloads.get(folded, -1)
        found = pair[0] if pair[1] == at else pair[1] if pair[0] == at else -1
        return found if found >= 0 and self.is_there(found) else None

    def inside(self, workspace: str) -> Iterator[int]:
        """Yield the positions of the subjects in a workspace, by its lower-case id; the workspace need not exist."""
        for at in sorted(self._inside.get(workspace, ())):
            if self.is_there(at) and _find_workspace(self.subjects[at]) == workspace:
                yield at

    def rows(self, becomes: Mapping[str, Becomes]) -> Rows:
        """Return the subjects that change, come or go; the keys of `becomes` are ids as `folded_id` returns them."""
        becomes = {key: after.read() for key, after in becomes.items()}
        slots = list(self._slots(becomes))
        moved = {key: -1 if after is None else at for at, key, _, after in slots}
        position = ChainMap(moved, self._position)
        resources = [_row_at(at, key, before, after, position) for at, key, before, after in slots]
        taken = len(self.subjects) + sum(at >= len(self.subjects) for at, *_ in slots)
        return Rows(becomes, resources, list(self._workload_rows(becomes, position, taken)))

    def differences(self, rows: Rows) -> Differences:
        """Return the differences that rows cause; a row can be the same as before."""
        differing = (one for row in rows.all for one in row_between(row.key, row.before, row.after))
        return Differences(differing, self.context.estate.view)

    def _slots(self, becomes: Mapping[str, Becomes]) -> Iterator[tuple[int, str, Resource | None, Becomes | None]]:
        """Yield the position, the lower-case id and both states of each resource that changes, comes or goes."""
        subjects, new = self.subjects, len(self.subjects)
        for folded, after in sorted(becomes.items()):
            at = self._resources.get(folded)
            before = subjects[at] if at is not None and self.is_there(at) else None
            was = lowered(before.document["id"]) if before is not None else None
            key = None if after.resource is None else lowered(after.resource["id"])
            if before is not None and was is not None and was != key:
                yield at if at is not None else -1, was, before, None
            if key is not None:
                if at is None:
                    at, new = new, new + 1
                yield at, key, before if was == key else None, after

    def _workload_rows(
        self, becomes: Mapping[str, Becomes], position: Mapping[str, int], new: int
    ) -> Iterator[SubjectChange]:
        subjects, derivation = self.subjects, self.context.estate.derivation
        for source, derived in derivation.again(_readers(becomes)).items():
            known = derivation.derived.get(source)
            were = {lowered(one.reported_id): one for one in (known.workloads if known else ())}
            are = {lowered(one.reported_id): one for one in (derived.workloads if derived else ())}
            for key in {**were, **are}:
                at = self._workloads.get(fold_id(key))
                if at is None:
                    at, new = new, new + 1
                was, now = subjects[at] if key in were else None, are.get(key)
                if source not in becomes and was and now and _is_same(were[key], now):
                    continue
                if now is None:
                    yield SubjectChange(at, key, was, None)
                    continue
                after = workload_subject(now, position, self._origin(now.reported_id, becomes))
                yield SubjectChange(at, key, was, after, orjson.dumps(now.document))

    def _origin(self, arm_id: str, becomes: Mapping[str, Becomes]) -> Origin | None:
        """Return the origin of the subject with an id after the change."""
        folded = fold_id(arm_id)
        change = becomes.get(folded)
        return self._origins.get(lowered(arm_id)) if change is None else change.notes.origin

    def is_read_alike(self, rows: Rows, row: SubjectChange) -> bool:
        """Check whether the unknown parts and the source locations of a subject stay the same."""
        before, after = row.before, row.after
        if before is None or after is None or before.location != after.location:
            return False
        becomes = rows.becomes.get(fold_id(row.key))
        if becomes is not None and becomes.notes.origin != self._origins.get(row.key):
            return False
        return (before.unreadable, before.possible, before.carried) == (
            after.unreadable,
            after.possible,
            after.carried,
        )

    @contextmanager
    def changed(self, rows: Rows, differences: Differences) -> Iterator[EvaluationContext]:
        """Change the snapshot inside a `with` block.

        Args:
            rows: the result of `rows`.
            differences: the differences of these rows.
        """
        edits = Edits()
        try:
            self._edit(edits, rows, differences)
            yield self._context_after()
        finally:
            edits.take_back()

    def change(self, edits: Edits, rows: Rows, differences: Differences) -> None:
        """Change the snapshot until the edits are taken back; see `changed`."""
        derivation, read = self.context.estate.derivation, _readers(rows.becomes)
        again = derivation.again(read)
        for key in read:
            edits.keep(derivation.estate.resources, key)
        for source in again:
            edits.keep(derivation.derived, source)
        derivation.change(read, again)
        self._edit(edits, rows, differences)
        for row in rows.all:
            if row.after is not None:
                self._note_home(row.position, row.after)
        edits.keep(vars(self), "context")
        self.context = self._context_after()

    def _context_after(self) -> EvaluationContext:
        """Return the context with the current unknown parts."""
        context, estate = self.context, self.context.estate
        # Policies cache what they find in the lists of one snapshot object, and these lists change in place.
        changed = replace(estate, document={**estate.document})
        vars(changed)["documents"] = estate.documents
        markings = mark_for_bundle(context.bundle, changed, sorted(self._partly))
        return replace(context, estate=changed, made=embedded.without_copies(context.made), markings=markings)

    def _note_home(self, at: int, subject: Resource) -> None:
        if home := _find_workspace(subject):
            self._inside.setdefault(home, set()).add(at)

    def _edit(self, edits: Edits, rows: Rows, differences: Differences) -> None:
        for row in rows.resources:
            self._edit_resource(edits, row)
            self._edit_origin(edits, row, rows.becomes[fold_id(row.key)])
        for row in rows.workloads:
            self._edit_workload(edits, row)
        for path, moves in differences.entries:
            _edit_index(edits, self._collections, path, moves)
        for row in rows.resources:
            if (row.before is None) != (row.after is None):
                to = self._position.get(row.key, -1)
                for at in self.inside(row.key):
                    if self.subjects[at].workspace != to:
                        edits.splice(self.subjects, at, 1, [structs.replace(self.subjects[at], workspace=to)])

    def _edit_resource(self, edits: Edits, row: SubjectChange) -> None:
        folded, at = fold_id(row.key), bisect_left(self._ids, row.key)
        if row.before is None:
            edits.splice(self._ids, at, 0, [row.key])
            edits.put(self._position, row.key, row.position)
            edits.put(self._resources, folded, row.position)
        elif row.after is None:
            edits.splice(self._ids, at, 1, [])
            edits.drop(self._position, row.key)
        kinds = [side and side.target_type for side in (row.before, row.after)]
        places = [
            (kind, bisect_left(self._ids_by_type.get(kind, ()), row.key), int(kind == kinds[0]), kind == kinds[1])
            for kind in dict.fromkeys(filter(None, kinds))
        ]
        document, collections = _document_of(row), self._collections
        self._edit_subject(edits, row, document)
        edits.splice(collections["resources"], at, int(row.before is not None), [] if row.after is None else [document])
        if row.after is None:
            edits.drop(collections["by_id"], row.key)
        else:
            edits.put(collections["by_id"], row.key, document)
        by_type = collections["by_type"]
        for kind, at_kind, was, now in places:
            if kind not in by_type:
                edits.put(by_type, kind, [document])
            elif len(by_type[kind]) == was and not now:
                edits.drop(by_type, kind)
            else:
                edits.splice(by_type[kind], at_kind, was, [document] if now else [])
        for kind, at_kind, was, now in places:
            edits.splice(self._ids_by_type.setdefault(kind, []), at_kind, was, [row.key] if now else [])

    def _edit_origin(self, edits: Edits, row: SubjectChange, becomes: Becomes) -> None:
        """Set the origin of a resource."""
        if row.after is not None and becomes.notes.origin is not None:
            edits.put(self._origins, row.key, becomes.notes.origin)
        elif row.key in self._origins:
            edits.drop(self._origins, row.key)

    def _edit_workload(self, edits: Edits, row: SubjectChange) -> None:
        at, gone = bisect_left(self._workload_ids, row.key), int(row.before is not None)
        edits.splice(self._workload_ids, at, gone, [] if row.after is None else [row.key])
        edits.put(self._workloads, fold_id(row.key), row.position)
        document = _document_of(row)
        self._edit_subject(edits, row, document)
        edits.splice(self._collections["workloads"], at, gone, [] if row.after is None else [document])

    def _edit_subject(self, edits: Edits, row: SubjectChange, document: Value) -> None:
        """Set the later state of a row in the lists of subjects."""
        at, gone = row.position, int(row.position < len(self.subjects))
        edits.splice(self.subjects, at, gone, [row.after or _GONE])
        if row.after is not None and (row.after.unreadable or row.after.carried):
            edits.put(self._partly, at, None)
        elif at in self._partly:
            edits.drop(self._partly, at)
        documents, names = self.context.estate.documents, self._names
        if gone and id(documents[at]) in names:
            edits.drop(names, id(documents[at]))
        if row.after is not None:
            edits.put(names, id(document), name_of(row.after))
        edits.splice(documents, at, gone, [document])


class Edits:
    """Changes of collections in place that can be undone."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], object]] = []

    def put(self, holder: dict[Value, Value], key: str | int, value: object) -> None:
        """Set the value of a key."""
        if key in holder:
            self._undo.append(partial(holder.__setitem__, key, holder[key]))
        else:
            self._undo.append(partial(holder.__delitem__, key))
        holder[key] = value

    def keep(self, holder: MutableMapping[Value, Value], key: object) -> None:
        """Restore the current value of a key when the edits are undone, however it changes until then."""
        if key in holder:
            self._undo.append(partial(holder.__setitem__, key, holder[key]))
        else:
            self._undo.append(partial(holder.pop, key, None))

    def drop(self, holder: dict[Value, Value], key: str | int) -> None:
        """Remove a key."""
        self._undo.append(partial(holder.__setitem__, key, holder.pop(key)))

    def splice(self, members: list[Any], at: int, gone: int, come: Sequence[object]) -> None:
        """Replace members of a list."""
        self._undo.append(partial(members.__setitem__, slice(at, at + len(come)), members[at : at + gone]))
        members[at : at + gone] = come

    def take_back(self) -> None:
        """Undo all edits."""
        for undo in reversed(self._undo):
            undo()


def _edit_index(edits: Edits, collections: Mapping[str, Value], path: Path, moves: Moves) -> None:
    """Add or remove ids in the entry at a path; remove the entry if it becomes empty, but not the index."""
    name, *above, last = path
    index = holder = collections[name]
    for step in above:
        if step not in index:
            edits.put(index, step, {})
        holder = index[step]
    if last not in holder:
        edits.put(holder, last, [])
    ids = holder[last]
    for key, (was, now) in moves.items():
        edits.splice(ids, bisect_left(ids, key), was, [key] * now)
    if not ids:
        edits.drop(holder, last)
        if above and not holder:
            edits.drop(index, above[0])


def _row_at(
    at: int, key: str, before: Resource | None, becomes: Becomes | None, position: Mapping[str, int]
) -> SubjectChange:
    if becomes is None or becomes.resource is None:
        return SubjectChange(at, key, before, None)
    text = orjson.dumps(becomes.resource, option=orjson.OPT_SORT_KEYS)
    resource = becomes.resource if has_json_types(becomes.resource) else orjson.loads(text)
    after = resource_subject(key, resource, becomes.notes, becomes.remarks)
    after.workspace = find_position(after, place_in_arm(key), position)
    return SubjectChange(at, key, before, after, text)


def _document_of(row: SubjectChange) -> Value:
    """Return the later state of a row, with markers for unknown parts."""
    if row.after is None:
        return {}
    is_partly_unknown = row.after.unreadable or row.after.carried
    return marked(row.after, row.after.document) if is_partly_unknown else row.after.document


def _readers(becomes: Mapping[str, Becomes]) -> dict[str, Reader | None]:
    return {
        key: reader(after.resource, after.notes.unreadable, after.notes.carried) if after.resource else None
        for key, after in becomes.items()
    }


def _find_workspace(subject: Resource) -> str:
    """Return the lower-case id of the workspace of a resource or workload; empty if none, or for a workspace."""
    if subject.target_type == "workload":
        return lowered(subject.document.get("workspaceId") or "")
    key = lowered(subject.document["id"])
    home = workspace_of(key)
    return home if home is not None and home != key else ""


def _is_same(one: Workload, other: Workload) -> bool:
    """Check whether two workloads are the same; they are compared as JSON, because 1 equals true in Python."""
    return (one.unreadable, one.possible) == (other.unreadable, other.possible) and orjson.dumps(
        one.document
    ) == orjson.dumps(other.document)


#: Positions of subjects by the number of a policy.
Pairs = dict[int, set[int]]


class Affected(NamedTuple):
    """The pairs to evaluate again, before a change and after it.

    Attributes:
        same: the other pairs of changed or named subjects, which keep their findings.
    """

    before: Pairs
    after: Pairs
    same: Pairs


class Invalidation:
    """An index of the pairs that changes of a snapshot can affect."""

    def __init__(self, bundle: Bundle, snapshot: ChangingSnapshot, planned: Iterable[PlannedColumn]) -> None:
        """Index all pairs of a snapshot."""
        self._bundle = bundle
        self._snapshot = snapshot
        #: The numbers of the policies that apply to a subject, by its position.
        self._policies_of: dict[int, Sequence[int]] = {}
        found: dict[int, list[int]] = {}
        for column in planned:
            for position in column.all():
                found.setdefault(position, []).append(column.policy)
        self._policies_of.update(found)

    @cached_property
    def _by_kind(self) -> Mapping[str, Sequence[tuple[int, Selector]]]:
        """The policies that apply to subjects of a lower-case type, with their selectors."""
        found: dict[str, list[tuple[int, Selector]]] = {}
        for number, judges in enumerate(selectors_in(self._bundle)):
            for selector in judges:
                found.setdefault(selector.kind, []).append((number, selector))
        return found

    @cached_property
    def _of_both(self) -> Set[int]:
        """The policies that evaluate both workloads and resources."""
        kinds = ({selector.kind for selector in judges} for judges in selectors_in(self._bundle))
        return {number for number, found in enumerate(kinds) if "workload" in found and len(found) > 1}

    def by(
        self,
        rows: Rows,
        differences: Differences,
        reads: Collection[Reads],
        named: Iterable[int] = (),
        further: Iterable[Numbers] = (),
    ) -> Affected:
        """Return the pairs that a change can affect, which are those that read something that differs.

        Args:
            rows: the changed subjects.
            differences: the differences in these subjects.
            reads: recorded reads of the pairs before the change; the reads of other pairs are unknown.
            named: positions of other subjects whose pairs to return.
            further: other pairs to evaluate again.
        """
        replaced = {row.position for row in rows.all if row.before}
        applying = {row.position: set(self._policies_for(row)) for row in rows.all}
        before: Pairs = {}
        reading = (numbers for one in reads for numbers in one.affected_by(differences))
        for number, at in (*reading, *self._in_workspaces(rows.all), *further):
            if number in self._policies_of.get(at, ()):  # the reader may no longer exist
                before.setdefault(number, set()).add(at)
        unaffected = set(self._unaffected(rows, differences, reads, applying))
        for at in replaced:
            for number in self._policies_of.get(at, ()):
                if (number, at) not in unaffected:
                    before.setdefault(number, set()).add(at)
        for number, at in list(self._twins(before)):
            before[number].add(at)
        after = {number: positions - replaced for number, positions in before.items()}
        for at, numbers in applying.items():
            for number in numbers:
                if (number, at) not in unaffected or at in before.get(number, ()):
                    after.setdefault(number, set()).add(at)
        same: Pairs = {}
        for number, at in self._all_of({*named, *replaced}):
            if at not in before.get(number, ()):
                same.setdefault(number, set()).add(at)
        return Affected(before, after, same)

    def _unaffected(
        self, rows: Rows, differences: Differences, reads: Collection[Reads], applying: Mapping[int, Set[int]]
    ) -> Iterator[Numbers]:
        """Yield the pairs of changed subjects that read nothing that differs."""
        for row in rows.all:
            if row.before and row.after and self._snapshot.is_read_alike(rows, row):
                own = name_of(row.after)
                for number in applying[row.position] & set(self._policies_of.get(row.position, ())):
                    if any(one.keeps((number, row.position), differences, own) for one in reads):
                        yield number, row.position

    def change(self, edits: Edits, rows: Iterable[SubjectChange]) -> None:
        """Change the snapshot until the edits are taken back."""
        for row in rows:
            edits.keep(self._policies_of, row.position)
            self._policies_of.pop(row.position, None)
            if applying := sorted(set(self._policies_for(row))):
                self._policies_of[row.position] = applying

    def _in_workspaces(self, rows: Iterable[SubjectChange]) -> Iterator[Numbers]:
        """Yield the pairs in workspaces that come or go, for policies that read workspaces."""
        reaches = self._bundle.reaches
        for row in rows:
            for at in self._snapshot.inside(row.key) if is_added_or_removed(row) else ():
                yield from ((number, at) for number in self._policies_of.get(at, ()) if reaches[number].workspace)

    def _policies_for(self, row: SubjectChange) -> Iterator[int]:
        """Yield the policies that apply to the later state of a subject."""
        if row.after is None:
            return
        matcher = Taking(row.after)
        selectors = self._by_kind.get(row.after.target_type, ())
        yield from (number for number, selector in selectors if matcher.takes(selector))

    def _all_of(self, own: Iterable[int]) -> Iterator[Numbers]:
        """Yield all pairs of some subjects, and of the subjects with the same ids."""
        twins = (self._snapshot.twin(at) for at in own)
        for at in {*own, *(twin for twin in twins if twin is not None)}:
            yield from ((number, at) for number in self._policies_of.get(at, ()))

    def _twins(self, pairs: Pairs) -> Iterator[Numbers]:
        """Yield the pairs of the same policies with the subjects of the same ids.

        A finding does not state which of the two subjects it is about.
        """
        for number, positions in pairs.items():
            for at in list(positions) if number in self._of_both else ():
                twin = self._snapshot.twin(at)
                if twin is not None and number in self._policies_of.get(twin, ()):
                    yield number, twin
