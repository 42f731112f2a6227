"""A prepared snapshot whose resources change in place, in time that depends on the change alone."""

from __future__ import annotations

from bisect import bisect_left
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import orjson
from msgspec import structs

from policyeng.engines.embedded import Documents, change_copies, mark_copies
from policyeng.engines.tracing import NAMES
from policyeng.evaluation.context import EvaluationContext
from policyeng.evaluation.coverage import Homes
from policyeng.evaluation.prepared_snapshot import (
    OF_RESOURCES,
    Becomes,
    Path,
    find_position,
    has_json_types,
    resource_subject,
    workload_subject,
)
from policyeng.evaluation.tracing import (
    Differences,
    SubjectChange,
    is_added_or_removed,
    name_of,
    row_between,
)
from policyeng.evaluation.unknown_markers import (
    EXTENDABLE,
    HOSTS,
    LazyObject,
    Markings,
    can_change_in_place,
    mark_for_bundle,
    mark_snapshot,
    marked,
)
from policyeng.facts.ids import fold_id, place_in_arm, workspace_of
from policyeng.models import WORKSPACE_TYPE, Origin, Resource, lowered
from policyeng.rego.tracing import escape
from policyeng.rego.values import Value
from policyeng.workloads import Workload
from policyeng.workloads.lookup import Reader, reader

#: Replaces a subject that no longer exists.
_GONE = Resource("", {}, "", "", "")
#: The collections that change with resources.
_CHANGING = ("resources", "workloads", "by_id", "by_type", *OF_RESOURCES)


class Rows(NamedTuple):
    """The subjects that change, and the later state of resources by id as `folded_id` returns it."""

    becomes: Mapping[str, Becomes]
    resources: Sequence[SubjectChange]
    workloads: Sequence[SubjectChange]

    @property
    def all(self) -> Sequence[SubjectChange]:
        """All changed subjects, resources first."""
        return (*self.resources, *self.workloads)

    @property
    def sides(self) -> Iterator[Resource]:
        """The existing states of all changed subjects."""
        return (side for row in self.all for side in (row.before, row.after) if side is not None)


def can_change(prepared: EvaluationContext) -> bool:
    """Check whether a snapshot can change: no error can end, policies evaluate resources, and ids distinguish these."""
    snapshot, estate = prepared.snapshot, prepared.estate
    if snapshot.documents or any(problem.level == "error" for problem in estate.problems):
        return False
    ids = {fold_id(str(resource.get("id"))) for resource in snapshot.resources}
    count, others = len(estate.document["resources"]), [fold_id(one.reported_id) for one in estate.subjects]
    workloads, stated = others[count : (last := count + len(estate.document["workloads"]))], others[last:]
    return (
        all(policy.input_form == "policy" for policy in prepared.bundle.policies)
        and len(snapshot.resources) == count == len(ids)
        and len({*workloads}) == len(workloads)
        and len({*stated}) == len(stated)
        and ids.isdisjoint(stated)
    )


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
            name: dict(document[name]) if name == "by_id" else _copy(document[name]) for name in _CHANGING
        }
        subjects = list(estate.subjects)
        changing = replace(
            estate,
            subjects=subjects,
            document=document | self._collections,
            digest="",
            derivation=estate.derivation.copy(),
        )
        #: The names of the subjects, by the `id()` of their documents.
        self._names = {id(subject.document): name_of(subject) for subject in subjects}
        made = {NAMES: {id(changing.documents): self._names}}
        self.context = replace(prepared, snapshot=snapshot, estate=changing, planned=(), made=made)
        first = len(document["resources"])
        last = first + len(document["workloads"])
        #: Positions by lower-case id, and positions of resources and of workloads by id as `folded_id` returns it; the
        #: last two keep removed subjects.
        self._position = {subject.key: at for at, subject in enumerate(subjects[:first])}
        self._resources = {fold_id(subject.key): at for at, subject in enumerate(subjects[:first])}
        self._workloads = {fold_id(subject.key): at for at, subject in enumerate(subjects[first:last], first)}
        #: Positions of the subjects that are or were in a workspace, by its lower-case id; it need not exist.
        self._inside: dict[str, set[int]] = {}
        #: Positions of resources and workloads that are partly unknown.
        self._partly: dict[int, None] = {}
        for at, subject in enumerate(subjects[:last]):
            self._inside.setdefault(_find_workspace(subject), set()).add(at)
            if _is_partly_unknown(subject):
                self._edit_subject(Edits(), SubjectChange(at, subject.key, subject, subject))
        self._homes = self._find_homes()
        self.context = replace(self.context, markings=self._mark())

    @property
    def subjects(self) -> list[Resource]:
        """The subjects by position."""
        return self.context.estate.subjects

    def position_of(self, folded: str) -> int | None:
        """Return the position of an existing resource, by its id as `folded_id` returns it."""
        at = self._resources.get(folded)
        return at if at is not None and self.is_there(at) else None

    def is_there(self, at: int) -> bool:
        """Check whether a subject exists at a position."""
        return at < len(self.subjects) and self.subjects[at] is not _GONE

    def twin(self, at: int) -> int:
        """Return the position of the workload with the id of a resource, or the reverse; -1 if there is none."""
        folded = fold_id(self.subjects[at].reported_id) if self.is_there(at) else ""
        pair = self._resources.get(folded, -1), self._workloads.get(folded, -1)
        found = pair[1 - pair.index(at)] if at in pair else -1
        return found if found >= 0 and self.is_there(found) else -1

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
            was = before.key if before is not None else None
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
                after = now and workload_subject(now, position, self._origin(now.reported_id, becomes))
                yield SubjectChange(at, key, was, after)

    def _origin(self, arm_id: str, becomes: Mapping[str, Becomes]) -> Origin | None:
        """Return the origin of the subject with an id after the change."""
        change = becomes.get(fold_id(arm_id))
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

    def changes_homes(self, differences: Differences) -> bool:
        """Check whether a change alters which lists must cover a scope, and with it what is known of other resources.

        Call it while the snapshot is changed.
        """
        estate = self.context.estate
        is_limited = estate.covers is not None or estate.gaps != ()
        return is_limited and _moves_scopes(differences) and self._find_homes() != self._homes

    def change(self, edits: Edits, rows: Rows, differences: Differences) -> None:
        """Change the snapshot until the edits are taken back; what is derived from it afterwards needs `keep`.

        Args:
            edits: receive what undoes the change.
            rows: the result of `rows`.
            differences: the differences of these rows.
        """
        context, estate = self.context, self.context.estate
        copies = mark_copies(context.made, context.markings.all(), estate.document, estate.documents)
        keeps_markings = self._keeps_markings(rows, differences, copies)
        changing = copies if keeps_markings else ()
        for row in rows.all:
            self._edit_subject(edits, row, changing)
        for row in rows.resources:
            self._edit_origin(edits, row, rows.becomes[fold_id(row.key)])
        for path, moves in differences.entries:
            for key, (was, now) in moves.items():
                self._edit_list(edits, path, key, was, [key] * now, changing)
        for row in rows.resources:
            if (row.before is None) != (row.after is None):
                to = self._position.get(row.key, -1)
                for at in self.inside(row.key):
                    if self.subjects[at].workspace != to:
                        edits.splice(self.subjects, at, 1, [structs.replace(self.subjects[at], workspace=to)])
        # Policies cache what they find in the lists of one snapshot object, and these lists change in place.
        changed = replace(estate, document={**estate.document})
        vars(changed)["documents"] = estate.documents
        made = change_copies(context.made, are_kept=keeps_markings)
        edits.keep(vars(self), "context")
        self.context = replace(context, estate=changed, made=made)
        if not keeps_markings:
            self.context = replace(self.context, markings=self._mark())
        elif self._partly and context.markings.marking is None:
            marking = mark_snapshot(changed, placed=sorted(self._partly), homes=self._homes)
            self.context = replace(self.context, markings=context.markings._replace(marking=marking))

    @contextmanager
    def changed(self, rows: Rows, differences: Differences) -> Iterator[EvaluationContext]:
        """Change the snapshot inside a `with` block; see `change`."""
        edits = Edits()
        try:
            self.change(edits, rows, differences)
            yield self.context
        finally:
            edits.take_back()

    def keep(self, edits: Edits, rows: Rows) -> None:
        """Let further changes start from the workloads of this one, until the edits are taken back."""
        derivation, read = self.context.estate.derivation, _readers(rows.becomes)
        again = derivation.again(read)
        for key in read:
            edits.keep(derivation.estate.resources, key)
        for source in again:
            edits.keep(derivation.derived, source)
        derivation.change(read, again)

    def _mark(self) -> Markings:
        return mark_for_bundle(self.context.bundle, self.context.estate, sorted(self._partly))

    def _find_homes(self) -> Homes:
        return Homes.of(self._collections["by_scope"])

    def _keeps_markings(self, rows: Rows, differences: Differences, copies: Sequence[Documents]) -> bool:
        """Check whether the unknown parts of other subjects and of lists stay the same, so that copies with them do."""
        names = {"by_type", "workloads", *(path[0] for path, _ in differences.entries)}
        return not copies or (
            not _moves_scopes(differences)
            and not any(side.target_type in HOSTS and _is_partly_unknown(side) for side in rows.sides)
            and not any(
                is_added_or_removed(row) and not _types_of(row).isdisjoint(EXTENDABLE) for row in rows.resources
            )
            and all(can_change_in_place(copy.snapshot, self._collections, names) for copy in copies)
        )

    def _edit_subject(self, edits: Edits, row: SubjectChange, copies: Iterable[Documents] = ()) -> None:
        """Set the later state of a row in all collections but the indices."""
        at, before, after = row.position, row.before, row.after
        gone, document = int(at < len(self.subjects)), _document_of(row)
        name = name_of(after or before or _GONE)
        for path in dict.fromkeys((*_lists_with(before), *_lists_with(after))):
            come = [document] if path in _lists_with(after) else []
            self._edit_list(edits, path, name, int(path in _lists_with(before)), come, copies)
        if name.startswith(":"):  # a resource
            holders = [(self._position, at), (self._collections["by_id"], document)]
            holders += [
                (copy.snapshot["by_id"], document)
                for copy in copies
                if copy.snapshot["by_id"] is not self._collections["by_id"]
            ]
            for holder, value in holders:
                edits.put(holder, row.key, value if after is not None else ABSENT)
        edits.put(self._resources if name.startswith(":") else self._workloads, fold_id(row.key), at)
        edits.splice(self.subjects, at, gone, [after or _GONE])
        edits.put(self._partly, at, None if after is not None and _is_partly_unknown(after) else ABSENT)
        documents = self.context.estate.documents
        if gone:
            edits.put(self._names, id(documents[at]), ABSENT)
        if after is not None:
            edits.put(self._names, id(document), name)
            self._inside.setdefault(_find_workspace(after), set()).add(at)
        edits.splice(documents, at, gone, [document])

    def _edit_origin(self, edits: Edits, row: SubjectChange, becomes: Becomes) -> None:
        """Set the origin of a resource."""
        origin = becomes.notes.origin if row.after is not None else None
        edits.put(self._origins, row.key, ABSENT if origin is None else origin)

    def _edit_list(
        self, edits: Edits, path: Path, key: str, was: int, come: Sequence[Value], copies: Iterable[Documents]
    ) -> None:
        """Replace members of a sorted list; an entry of an index is removed if it becomes empty, but not the index.

        Args:
            edits: receive what undoes the change.
            path: the name of a collection, and the keys in it.
            key: the id in a list of ids, or the name of a subject in a list of documents.
            was: how many members there are.
            come: the members that replace these.
            copies: copies with markers, to change in the same way.
        """
        *above, last = path
        holders = [self._collections]
        for step in above:
            if step not in holders[-1]:
                edits.put(holders[-1], step, {})
            holders.append(holders[-1][step])
        if last not in holders[-1]:
            edits.put(holders[-1], last, [])
        members = holders[-1][last]
        at = bisect_left(members, key, key=lambda one: one if type(one) is str else self._names[id(one)])
        edits.splice(members, at, was, come)
        for step, holder in zip(reversed(path[1:]), reversed(holders), strict=False):
            if not holder[step]:
                edits.put(holder, step, ABSENT)
        for copy in copies:
            known = copy.snapshot[path[0]]
            if isinstance(known, LazyObject):
                edits.repeat(partial(known.refresh, path[1]))
            elif known is not self._collections[path[0]]:
                edits.splice(known, at, was, come)


class _Missing:
    """The type of `ABSENT`."""


#: The value of a key that does not exist.
ABSENT = _Missing()


class Edits:
    """Changes of collections in place that can be undone."""

    def __init__(self) -> None:
        self._values: dict[tuple[int, object], tuple[Value, object]] = {}
        self._lists: list[tuple[list[Any], slice, Sequence[object]]] = []
        self._repeated: list[Callable[[], object]] = []

    def keep(self, holder: Value, key: object) -> None:
        """Restore the current value of a key when the edits are undone, however it changes until then."""
        self._values.setdefault((id(holder), key), (holder, dict.get(holder, key, ABSENT)))

    def put(self, holder: Value, key: object, value: object) -> None:
        """Set the value of a key, or remove the key."""
        self.keep(holder, key)
        _set(holder, key, value)

    def splice(self, members: list[Any], at: int, gone: int, come: Sequence[object]) -> None:
        """Replace members of a list, which can be one with markers."""
        before = list.__getitem__(members, slice(at, at + gone))
        self._lists.append((members, slice(at, at + len(come)), before))
        list.__setitem__(members, slice(at, at + gone), come)

    def repeat(self, function: Callable[[], object]) -> None:
        """Call a function now, and when the edits are undone."""
        function()
        self._repeated.append(function)

    def clear(self) -> None:
        """Forget how to undo the edits."""
        for log in (self._values, self._lists, self._repeated):
            log.clear()

    def take_back(self) -> None:
        """Undo all edits."""
        for members, place, before in reversed(self._lists):
            list.__setitem__(members, place, before)
        for (_, key), (holder, value) in self._values.items():
            _set(holder, key, value)
        for function in self._repeated:
            function()


def _set(holder: Value, key: object, value: object) -> None:
    if value is ABSENT:
        dict.pop(holder, key, None)
    else:
        dict.__setitem__(holder, key, value)


def _copy(collection: Value) -> Value:
    """Return a copy of a list, or of an index with its lists."""
    if isinstance(collection, list):
        return list(collection)
    return {key: _copy(value) for key, value in collection.items()}


#: The beginnings of pointers to scopes, the number of slashes in them, and the end of one to workspaces in a scope.
_SCOPES, _OF_SCOPE, _WORKSPACES = ("/snapshot/by_scope/", "/snapshot/by_extended/"), 3, f"/{escape(WORKSPACE_TYPE)}"


def _moves_scopes(differences: Differences) -> bool:
    """Check whether a scope comes to have resources or workspaces, or no longer has any."""
    return any(
        place.startswith(_SCOPES) and (place.count("/") == _OF_SCOPE or place.endswith(_WORKSPACES))
        for place in differences.keys
    )


def _row_at(
    at: int, key: str, before: Resource | None, becomes: Becomes | None, position: Mapping[str, int]
) -> SubjectChange:
    if becomes is None or becomes.resource is None:
        return SubjectChange(at, key, before, None)
    resource = becomes.resource
    if not has_json_types(resource):
        resource = orjson.loads(orjson.dumps(resource, option=orjson.OPT_SORT_KEYS))
    after = resource_subject(key, resource, becomes.notes, becomes.remarks)
    after.workspace = find_position(after, place_in_arm(key), position)
    return SubjectChange(at, key, before, after)


def _lists_with(subject: Resource | None) -> Sequence[Path]:
    """Return the lists that have the document of a subject."""
    if subject is None:
        return ()
    if subject.target_type == "workload":
        return (("workloads",),)
    return (("resources",), ("by_type", subject.target_type))


def _is_partly_unknown(subject: Resource) -> bool:
    return bool(subject.unreadable) or subject.carried is not None


def _types_of(row: SubjectChange) -> Set[str]:
    return {side.target_type for side in (row.before, row.after) if side is not None}


def _document_of(row: SubjectChange) -> Value:
    """Return the later state of a row, with markers for unknown parts."""
    if row.after is None:
        return {}
    return marked(row.after, row.after.document) if _is_partly_unknown(row.after) else row.after.document


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
