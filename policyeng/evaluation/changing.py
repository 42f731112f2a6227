"""A snapshot that was made ready, after some of its resources have changed: everything that stays is shared."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import orjson

from policyeng.bundle import SnapshotView
from policyeng.engines.embedded import changed_documents
from policyeng.evaluation.context import EvaluationContext
from policyeng.evaluation.estate import Becomes, Estate, Resource, resource_subject, workload_subject
from policyeng.evaluation.indices import OF_RESOURCES, Path, indexed_again, with_ids
from policyeng.evaluation.rows import Row, Slot, late_first, numbered, spliced
from policyeng.facts.ids import folded_id, workspace_of
from policyeng.models import JsonObject, Origin, ReadOnlyDict, ReadOnlyList, lowered, read_only, with_members
from policyeng.workloads import Workload
from policyeng.workloads.reading import reader


class Changed(NamedTuple):
    """A snapshot after a change.

    Attributes:
        prepared: ready to be judged, with no pair planned.
        resources, workloads: the subjects that change, come or go.
        position: by the position of a subject before, that after; what went has none.
    """

    prepared: EvaluationContext
    resources: Sequence[Row]
    workloads: Sequence[Row]
    position: Mapping[int, int]


class Layout:
    """Where everything stands in a snapshot that was made ready; worked out once for many changes.

    No two of its resources have one id, whatever its case and with or without a slash, and no two of its workloads.
    """

    def __init__(self, prepared: EvaluationContext) -> None:
        self.prepared = prepared
        estate = prepared.estate
        self.ids = list(estate.view.by_id)
        self.by_folded = {folded_id(key): at for at, key in enumerate(self.ids)}
        #: Where the workloads begin, and where what stands behind them does.
        self.first, self.rest = len(self.ids), len(self.ids) + len(estate.view.workloads)
        self.workloads = [lowered(subject.reported_id) for subject in estate.subjects[self.first : self.rest]]

    @cached_property
    def inside(self) -> Mapping[str, Sequence[int]]:
        """By lower-case id of a workspace, there or not, the positions of what lies in it, but itself."""
        found: dict[str, list[int]] = {}
        for at, key in enumerate(self.ids):
            home = workspace_of(key)
            if home is not None and home != key:
                found.setdefault(home, []).append(at)
        for at, subject in enumerate(self.prepared.estate.subjects[self.first : self.rest], self.first):
            if home := lowered(subject.document.get("workspaceId") or ""):
                found.setdefault(home, []).append(at)
        return found

    def changed(self, becomes: Mapping[str, Becomes]) -> Changed:
        """The snapshot after a change; `becomes` is by id as `folded_id` gives it."""
        becomes = {key: after.read() for key, after in becomes.items()}
        slots = sorted(self._slots(becomes), key=late_first, reverse=True)
        stay = all(slot.before and slot.stays for slot in slots)
        ids = self.ids if stay else spliced(self.ids, slots, [slot.key if slot.stays else None for slot in slots])
        position = self._position if stay else {key: at for at, key in enumerate(ids)}
        resources = [_placed(slot, becomes, position) for slot in slots]
        workloads = sorted(self._workloads(becomes, position), key=late_first, reverse=True)
        rows = numbered((*workloads, *resources))
        workloads, resources = rows[: len(workloads)], rows[len(workloads) :]
        now = self._positions
        if not all(row.before and row.after for row in rows):
            old = [None if row.after is None else row.position if row.before else -1 for row in rows]
            now = {was: at for at, was in enumerate(spliced(now, rows, old)) if was >= 0}
        subjects = self._subjects(rows, now, position, moved=not stay)
        view, entries = self._view(resources, workloads, ids, stay=stay)
        estate = self.prepared.estate
        estate = Estate(tuple(subjects), view, b"", "", estate.problems, estate.derivation, estate.gaps, estate.covers)
        splices = [_splice("workloads", row, self.first) for row in workloads]
        splices += [_splice("resources", row, 0) for row in resources]
        made = changed_documents(self.prepared.made, splices, entries)
        bundle, parameters = self.prepared.bundle, self.prepared.parameters
        prepared = EvaluationContext(bundle, self.prepared.snapshot, parameters, estate, (), made)
        return Changed(prepared, resources, workloads, now)

    @cached_property
    def _position(self) -> Mapping[str, int]:
        return {key: at for at, key in enumerate(self.ids)}

    @cached_property
    def _positions(self) -> Mapping[int, int]:
        return {at: at for at in range(len(self.prepared.estate.subjects))}

    def _slots(self, becomes: Mapping[str, Becomes]) -> Iterator[Slot]:
        """Where resources change, come or go."""
        subjects = self.prepared.estate.subjects
        for folded, after in becomes.items():
            at = self.by_folded.get(folded)
            key = None if after.resource is None else lowered(after.resource["id"])
            if at is not None:
                yield Slot(at, self.ids[at], subjects[at], self.ids[at] == key)
            if key is not None and (at is None or self.ids[at] != key):
                yield Slot(bisect_left(self.ids, key), key, None, True)

    def _workloads(self, becomes: Mapping[str, Becomes], position: Mapping[str, int]) -> Iterator[Row]:
        """The workloads that change, come or go."""
        subjects, derivation = self.prepared.estate.subjects, self.prepared.estate.derivation
        readers = {
            key: reader(after.resource, after.notes.unreadable, after.notes.carried) if after.resource else None
            for key, after in becomes.items()
        }
        for source, derived in derivation.again(readers).items():
            known = derivation.derived.get(source)
            were = {lowered(one.reported_id): one for one in (known.workloads if known else ())}
            are = {lowered(one.reported_id): one for one in (derived.workloads if derived else ())}
            for key in {**were, **are}:
                at = self.first + bisect_left(self.workloads, key)
                was, now = subjects[at] if key in were else None, are.get(key)
                if source not in becomes and was and now and _is_same(were[key], now):
                    continue
                if now is None:
                    yield Row(at, key, was, None)
                    continue
                after = workload_subject(now, position, self._origin(now.reported_id, becomes))
                yield Row(at, key, was, after, orjson.dumps(now.document))

    def _origin(self, arm_id: str, becomes: Mapping[str, Becomes]) -> Origin | None:
        """Where what has an id was read, after the change."""
        held = becomes.get(folded_id(arm_id))
        return self.prepared.snapshot.origins.get(lowered(arm_id)) if held is None else held.notes.origin

    def _subjects(
        self, rows: Sequence[Row], now: Mapping[int, int], position: Mapping[str, int], *, moved: bool
    ) -> list[Resource]:
        """All subjects after the change; those that stay are told where their workspaces stand now."""
        subjects = list(self.prepared.estate.subjects)
        for home, inside in self._in_workspaces.items() if moved else ():
            if (to := now.get(home, -1)) != home:
                for at in inside:
                    subjects[at] = Resource._make((*subjects[at][:5], to, *subjects[at][6:]))
        after = spliced(subjects, rows, [row.after for row in rows])
        for row in rows:
            for child in self.inside.get(row.key, ()) if row.before is None else ():
                at = now.get(child, -1)
                if at >= 0 and row.key in position and after[at].workspace != position[row.key]:
                    after[at] = after[at]._replace(workspace=position[row.key])
        return after

    @cached_property
    def _in_workspaces(self) -> Mapping[int, Sequence[int]]:
        """By the position of a workspace, the positions of what has it."""
        found: dict[int, list[int]] = {}
        for at, subject in enumerate(self.prepared.estate.subjects):
            if subject.workspace >= 0:
                found.setdefault(subject.workspace, []).append(at)
        return found

    @cached_property
    def _kinds(self) -> Sequence[str]:
        return [subject.judged_type for subject in self.prepared.estate.subjects[: self.first]]

    def _by_type_of(self, resources: Iterable[JsonObject], rows: Sequence[Row]) -> JsonObject:
        kinds = spliced(self._kinds, rows, [row.after and row.after.judged_type for row in rows])
        by_type: dict[str, list[JsonObject]] = {}
        for kind, resource in zip(kinds, resources, strict=True):
            by_type.setdefault(kind, []).append(resource)
        return ReadOnlyDict((kind, ReadOnlyList(alike)) for kind, alike in by_type.items())

    def _view(
        self, rows: Sequence[Row], workloads: Sequence[Row], ids: Sequence[str], *, stay: bool
    ) -> tuple[SnapshotView, list[tuple[Path, bytes | None]]]:
        """The snapshot as policies see it, and the entries of indices that are others."""
        view = self.prepared.estate.view
        resources = ReadOnlyList(spliced(view.resources, rows, [row.after and row.after.document for row in rows]))
        first = [row._replace(position=row.position - self.first) for row in workloads]
        changed: dict[str, Any] = {
            "resources": resources,
            "workloads": ReadOnlyList(
                spliced(view.workloads, first, [row.after and row.after.document for row in workloads])
            ),
        }
        if stay:
            changed["by_id"] = with_members(view.by_id, {row.key: resources[row.position] for row in rows})
        else:
            changed["by_id"] = ReadOnlyDict(zip(ids, resources, strict=True))
        changed["by_type"] = _by_type(view, rows) if stay and _of_same_type(rows) else self._by_type_of(resources, rows)
        indices: dict[str, Any] = {name: getattr(view, name) for name in OF_RESOURCES}
        entries: list[tuple[Path, bytes | None]] = []
        for path, there in indexed_again(_sides(rows), indices):
            indices = with_ids(indices, path, there)
            entries.append((path, orjson.dumps(there) if there else None))
        return view.fresh(**changed, **indices), entries


def _of_same_type(rows: Iterable[Row]) -> bool:
    return all(row.before and row.after and row.before.judged_type == row.after.judged_type for row in rows)


def _by_type(view: SnapshotView, rows: Iterable[Row]) -> JsonObject:
    """The resources by type where each takes the place of one of its type."""
    changed = dict[str, Sequence[JsonObject]]()
    for row in rows:
        if row.before and row.after:
            kind, was, becomes = row.before.judged_type, row.before.document, row.after.document
            alike = changed.get(kind) or view.by_type[kind]
            changed[kind] = ReadOnlyList([becomes if held is was else held for held in alike])
    return with_members(view.by_type, changed)


def _placed(slot: Slot, becomes: Mapping[str, Becomes], position: Mapping[str, int]) -> Row:
    resource, notes, remarks = becomes[folded_id(slot.key)]
    if resource is None or not slot.stays:
        return Row(slot.position, slot.key, slot.before, None)
    text = orjson.dumps(resource, option=orjson.OPT_SORT_KEYS)
    after = resource_subject(slot.key, read_only(resource), position, notes, remarks)
    return Row(slot.position, slot.key, slot.before, after, text)


def _splice(name: str, row: Row, first: int) -> tuple[str, int, int, list[bytes]]:
    return name, row.position - first, int(row.before is not None), [row.text] if row.after else []


def _is_same(one: Workload, other: Workload) -> bool:
    """Whether two workloads say the same; as JSON, because 1 and true are equal to Python."""
    return (one.unreadable, one.possible) == (other.unreadable, other.possible) and orjson.dumps(
        one.document
    ) == orjson.dumps(other.document)


def _sides(rows: Iterable[Row]) -> Iterator[tuple[str, JsonObject | None, JsonObject | None]]:
    return ((row.key, row.before and row.before.document, row.after and row.after.document) for row in rows)
