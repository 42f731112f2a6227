"""Record what evaluations read from a snapshot, and find the evaluations that a change can affect."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from itertools import islice, zip_longest
from types import MappingProxyType
from typing import Any, NamedTuple

import orjson
from msgspec.structs import replace

from policyeng.bundle import SnapshotView
from policyeng.engines.request import EvaluationRequest, Pair
from policyeng.engines.tracing import Traced, trace
from policyeng.evaluation.context import EvaluationContext
from policyeng.evaluation.matching import is_of_kind, selectors_in
from policyeng.evaluation.prepared_snapshot import Moves, Path, list_index_changes
from policyeng.facts.computes import CLUSTER_TYPE, COMPUTE_TYPE
from policyeng.models import JsonObject, Resource, lowered
from policyeng.rego.tracing import Kind, RecordedReads, escape


class SubjectChange(NamedTuple):
    """A subject that changes.

    Attributes:
        position: its position among the subjects; -1 if it is not needed.
        key: the sort key among the subjects of its kind.
        before, after: None if the subject does not exist in that state.
    """

    position: int
    key: str
    before: Resource | None
    after: Resource | None


#: A policy of a bundle and a subject of a snapshot, by position.
Numbers = tuple[int, int]

#: The types of subjects that are not resources.
_STATED = frozenset(("workload", "approval", "document"))
#: The indices that are built from fields of computes and clusters.
_FROM_FIELDS = ("/snapshot/by_host", "/snapshot/by_subnet")
_NOTHING = object()


def name_of(subject: Resource) -> str:
    """Return the name of a subject in recorded reads."""
    kind = subject.target_type if subject.target_type in _STATED else ""
    return f"{kind}:{lowered(subject.reported_id)}"


def trace_pairs(prepared: EvaluationContext, work: EvaluationRequest) -> Iterator[tuple[Pair, Traced]]:
    """Evaluate pairs, and record what each reads, by the names that `name_of` returns.

    Args:
        prepared: a snapshot.
        work: a request for this snapshot.

    Raises:
        EngineError: the bundle does not compile.
    """
    return trace(work, lambda: [name_of(subject) for subject in prepared.estate.subjects])


class Differences:
    """The differences between two states of a snapshot, by the places where policies read them.

    Attributes:
        rows: the subjects that differ.
        members: pointers into the input, of collections whose members differ.
        keys: pointers into the input that exist in only one of the states.
        entries: changes in the indices of resources, as `moves_between` returns them.
    """

    def __init__(self, rows: Iterable[SubjectChange], view: SnapshotView) -> None:
        """Compare two states.

        Args:
            rows: the subjects that may differ.
            view: the earlier state.
        """
        self.rows = list(rows)
        self._view = view
        self._by_name = {_name_of(row): row for row in self.rows}
        self.members: set[str] = set()
        self.keys: set[str] = set()
        self.entries: Sequence[tuple[Path, Moves]] = list(list_index_changes(_pair_sides(self.rows)))
        self._compare_lists()
        self._compare_indices()
        if any(_is_marked_differently(row) and _has_indexed_fields(row) for row in self.rows):
            self.members.update(_FROM_FIELDS)

    @property
    def documents(self) -> Iterable[str]:
        """The names of the subjects that differ."""
        return self._by_name

    def meets(self, read: RecordedReads, workspace: str = "") -> bool:
        """Check whether a read can have a different result.

        Args:
            read: a read by an evaluation of the earlier state.
            workspace: lower-case id of the workspace of the evaluated subject.
        """
        if read.document != "input":
            return read.document in self._by_name and self.meets_in(*read)
        pointer, kind = read.pointer, read.kind
        if pointer == "/workspace":
            return any(row.key == workspace and is_added_or_removed(row) for row in self.rows)
        above = pointer.rpartition("/")[0]
        if pointer in self.keys or above in self.keys or above in self.members:
            return True
        if kind != "value" and pointer in self.members:
            return True
        if kind == "keys" and any(key.rpartition("/")[0] == pointer for key in self.keys):
            return True
        return kind == "whole" and self.meets_whole(pointer)

    def meets_in(self, document: str, pointer: str, kind: Kind) -> bool:
        """Check whether a read of a subject that differs can have a different result."""
        differing = self._paths[document]
        if differing is None:
            return True
        pointer = lowered(pointer)
        place = f"{pointer}/"
        for path, is_key in differing:
            if place.startswith(f"{path}/"):
                return True
            if kind == "whole" and path.startswith(place):
                return True
            if is_key and kind == "keys" and path.rpartition("/")[0] == pointer:
                return True
        return False

    def meets_whole(self, pointer: str) -> bool:
        """Check whether something differs at or below a place of the input."""
        place = f"{pointer}/"
        return any(f"{one}/".startswith(place) or place.startswith(f"{one}/") for one in self.holders)

    @cached_property
    def holders(self) -> Sequence[str]:
        """The places of the input that differ, and the collections that contain them."""
        found = {*self.members, *self.keys}
        for row in self.rows:
            for side in (row.before, row.after):
                if side is not None and side.target_type in _STATED:
                    found.add(f"/snapshot/{side.target_type}s")
                elif side is not None:
                    kind, key = escape(side.target_type), escape(row.key)
                    found |= {"/snapshot/resources", f"/snapshot/by_type/{kind}", f"/snapshot/by_id/{key}"}
        return sorted(found)

    @cached_property
    def _paths(self) -> Mapping[str, Sequence[tuple[str, bool]] | None]:
        """The places that differ by document, and whether they exist in only one state; None for all places."""
        return {name: _find_differing_places(row) for name, row in self._by_name.items()}

    def _compare_lists(self) -> None:
        """Compare `by_id`, `by_type`, `resources` and `workloads`."""
        moved: dict[str, list[int]] = {}
        for row in self.rows:
            sides = [side for side in (row.before, row.after) if side is not None]
            if sides[0].target_type in _STATED:
                if len(sides) == 1:
                    self.members.add(f"/snapshot/{sides[0].target_type}s")
                continue
            if is_added_or_removed(row):
                self.members |= {"/snapshot/resources", f"/snapshot/by_type/{escape(sides[0].target_type)}"}
                self.keys.add(f"/snapshot/by_id/{escape(row.key)}")
            kinds = [side and side.target_type for side in (row.before, row.after)]
            if kinds[0] != kinds[1]:
                for kind, change in zip(kinds, (-1, 1), strict=True):
                    if kind is not None:
                        moved.setdefault(kind, []).append(change)
        for kind, changes in moved.items():
            place = f"/snapshot/by_type/{escape(kind)}"
            self.members.add(place)
            before = len(self._view.by_type[kind]) if kind in self._view.by_type else 0
            if not before or not before + sum(changes):
                self.keys.add(place)

    def _compare_indices(self) -> None:
        """Compare the indices of resources."""
        emptied: dict[str, set[str]] = {}
        for path, moves in self.entries:
            name, *keys = path
            place = "/".join(("/snapshot", name, *map(escape, keys)))
            holder = place.rpartition("/")[0]
            index: Mapping[str, Any] = getattr(self._view, name)
            known: Mapping[str, Sequence[str]] | None = index if len(keys) == 1 else index.get(keys[0])
            ids = known.get(keys[-1], ()) if known else ()
            after = len(ids) + sum(now - was for was, now in moves.values())
            self.members.add(place)
            if not (after and ids):
                self.keys.add(place)
            if len(keys) == 1:
                continue
            if not known:
                self.keys.add(holder)
            elif not after:
                # A container without entries is removed, too.
                emptied.setdefault(holder, set()).add(keys[-1])
                self.keys.update([holder] if len(emptied[holder]) == len(known) else [])


class Reads:
    """An index of what pairs read, to find the pairs that a difference can affect.

    Attributes:
        undecided: the pairs that are unknown or errors, with all their reads.
        own: the reads of each pair from its own subject; equal sets are shared.
    """

    def __init__(self) -> None:
        """Create an empty index."""
        self.undecided: dict[Numbers, Traced] = {}
        self._blind: set[Numbers] = set()
        self.own: dict[Numbers, frozenset[tuple[str, Kind]]] = {}
        self._owns: dict[frozenset[tuple[str, Kind]], frozenset[tuple[str, Kind]]] = {}
        #: The pairs by document, pointer and kind of read.
        self._at: dict[str, dict[str, dict[Kind, set[Numbers]]]] = {}
        #: The pairs that read members of a collection in the input, by the pointer of the collection.
        self._below: dict[str, set[Numbers]] = {}
        #: The sorted pointers into the input that pairs read completely.
        self._wholes: list[str] = []

    def add(self, numbers: Numbers, traced: Traced, own: str) -> None:
        """Add the reads of a pair; `own` is the name of its subject."""
        if traced.judgement.error is not None or traced.judgement.unknowns:
            self.undecided[numbers] = traced
        if traced.reads is None:
            self._blind.add(numbers)
            return
        of_own = frozenset((pointer, kind) for document, pointer, kind in traced.reads if document == own)
        self.own[numbers] = self._owns.setdefault(of_own, of_own)
        for document, pointer, kind in traced.reads:
            is_of_snapshot = pointer.startswith("/snapshot") or (kind == "whole" and not pointer)
            if document == own or (document == "input" and not is_of_snapshot):
                continue
            there = self._at.setdefault(document, {}).setdefault(pointer, {})
            if document == "input":
                self._below.setdefault(pointer.rpartition("/")[0], set()).add(numbers)
                if kind == "whole" and kind not in there:
                    insort(self._wholes, pointer)
            there.setdefault(kind, set()).add(numbers)

    def forget(self, numbers: Numbers) -> None:
        """Remove a pair from `undecided` and `own`."""
        self.undecided.pop(numbers, None)
        self.own.pop(numbers, None)

    def keeps(self, numbers: Numbers, differences: Differences, own: str) -> bool:
        """Check whether all reads of a pair from its own subject, which `own` names, have the same result."""
        known = self.own.get(numbers)
        if known is None or own not in differences.documents:
            return known is not None
        return not any(differences.meets_in(own, pointer, kind) for pointer, kind in known)

    def affected_by(self, differences: Differences) -> set[Numbers]:
        """Return the pairs that can read something different, other than in their own subjects."""
        found = set(self._blind) if differences.rows else set()
        for name in differences.documents:
            for pointer, readers in self._at.get(name, {}).items():
                for kind, pairs in readers.items():
                    if differences.meets_in(name, pointer, kind):
                        found |= pairs
        at = self._at.get("input", {})
        for place in differences.members:
            found.update(*(pairs for kind, pairs in at.get(place, {}).items() if kind != "value"))
            found |= self._below.get(place, set())
        for place in differences.keys:
            found.update(*at.get(place, {}).values(), self._below.get(place, ()))
            found |= at.get(place.rpartition("/")[0], {}).get("keys", set())
        for place in differences.holders if self._wholes else ():
            for pointer in self._wholes_near(place):
                found |= at[pointer]["whole"]
        return found

    def _wholes_near(self, place: str) -> Iterator[str]:
        """Yield the completely read pointers at, above and below a place."""
        above = place
        while True:
            at = bisect_left(self._wholes, above)
            if at < len(self._wholes) and self._wholes[at] == above:
                yield above
            if not above:
                break
            above = above.rpartition("/")[0]
        for pointer in islice(self._wholes, bisect_left(self._wholes, f"{place}/"), None):
            if not pointer.startswith(f"{place}/"):
                return
            yield pointer


def rows_of(earlier: Sequence[Resource], later: Sequence[Resource]) -> Iterator[SubjectChange]:
    """Compare all subjects of two states, and yield those that can differ."""
    were, are = _by_key(earlier), _by_key(later)
    for key in {**were, **are}:
        for before, after in zip_longest(were.get(key, ()), are.get(key, ())):
            yield from row_between(key[1], before, after)


def row_between(key: str, before: Resource | None, after: Resource | None) -> Iterator[SubjectChange]:
    """Yield one row without a position, or nothing if nothing can differ."""
    if before is not after and not (before and after and _is_same(before, after)):
        yield SubjectChange(-1, key, before, after)


def touched_pairs(
    prepared: EvaluationContext,
    moment: datetime,
    wanted: Mapping[int, Sequence[int]],
    differences: Differences,
    traced: Mapping[Numbers, Traced] = MappingProxyType({}),
) -> dict[Numbers, bool]:
    """Check for each pair whether something that it reads differs or can differ.

    Args:
        prepared: the earlier state.
        moment: the evaluation time, in UTC.
        wanted: positions of subjects by the number of the policy; subjects of other types than its own are ignored.
        differences: the differences to the later state.
        traced: known reads of pairs of the earlier state.
    """
    subjects, judges = prepared.estate.subjects, selectors_in(prepared.bundle)
    evaluated = {
        number: [at for at in positions if any(is_of_kind(subjects[at], one) for one in judges[number])]
        for number, positions in wanted.items()
    }
    context = prepared.with_pairs(evaluated)
    # A pair that is undecided without an evaluation depends on its subject alone.
    touched = {
        (column.policy, position): name_of(subjects[position]) in differences.documents
        for column in context.planned
        for position in column.undecided
    }
    request = context.work(moment)
    known = [pair for pair in request.pairs if (pair.policy, pair.subject) in traced]
    unknown = {
        policy: left
        for policy, positions in request.positions.items()
        if (left := [position for position in positions if (policy, position) not in traced])
    }
    again = trace_pairs(prepared, replace(request, positions=unknown)) if unknown else ()
    for pair, (_, reads, _) in (*((pair, traced[pair.policy, pair.subject]) for pair in known), *again):
        workspace = lowered(subjects[pair.workspace].reported_id) if pair.workspace >= 0 else ""
        is_touched = reads is None or any(differences.meets(read, workspace) for read in reads)
        touched[pair.policy, pair.subject] = is_touched
    return touched


def is_added_or_removed(row: SubjectChange) -> bool:
    """Check whether a subject exists in only one state, or is completely unknown in only one state."""
    before, after = row.before, row.after
    return before is None or after is None or ("" in before.unreadable) != ("" in after.unreadable)


def _name_of(row: SubjectChange) -> str:
    side = row.before or row.after
    return name_of(side) if side is not None else ""


def _pair_sides(rows: Iterable[SubjectChange]) -> Iterator[tuple[str, JsonObject | None, JsonObject | None]]:
    """Yield the key and both states of each row that is a resource."""
    for row in rows:
        side = row.before or row.after
        if side is not None and side.target_type not in _STATED:
            yield row.key, row.before and row.before.document, row.after and row.after.document


def _is_marked_differently(row: SubjectChange) -> bool:
    """Check whether the unknown parts of a subject differ."""
    before, after = ((dict(side.unreadable), side.carried) if side else ({}, None) for side in (row.before, row.after))
    return before != after


def _has_indexed_fields(row: SubjectChange) -> bool:
    return any(
        side is not None and side.target_type in (COMPUTE_TYPE, CLUSTER_TYPE) for side in (row.before, row.after)
    )


def _find_differing_places(row: SubjectChange) -> Sequence[tuple[str, bool]] | None:
    """Return the places that differ in lower case, because unread places can have any case; None for all places."""
    before, after = row.before, row.after
    if before is None or after is None or before.carried != after.carried:
        return None
    if (before.reported_id, before.reported_type) != (after.reported_id, after.reported_type):
        return None
    unread = dict(before.unreadable.items() ^ after.unreadable.items())
    places = [(pointer.partition("/*")[0], True) for pointer in unread]
    return [
        (lowered(path), is_key) for path, is_key in (*places, *_walk_differences(before.document, after.document, ""))
    ]


def _walk_differences(before: JsonObject, after: JsonObject, above: str) -> Iterator[tuple[str, bool]]:
    """Yield the places where two objects differ, and whether they exist in only one; a list is one place."""
    for key in {**before, **after}:
        one, other = before.get(key, _NOTHING), after.get(key, _NOTHING)
        if one is other:
            continue
        here = f"{above}/{escape(key)}"
        if isinstance(one, dict) and isinstance(other, dict):
            yield from _walk_differences(one, other, here)
        elif not _is_equal(one, other):
            yield here, one is _NOTHING or other is _NOTHING


def _is_equal(one: object, other: object) -> bool:
    """Check whether two JSON values are the same; in Python 1, 1.0 and true are equal."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_equal, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_equal(value, other[key]) for key, value in one.items())
    return one == other


def _is_same(before: Resource, after: Resource) -> bool:
    is_read_alike = (before.unreadable, before.carried) == (after.unreadable, after.carried)
    # Compared as JSON, because 1 equals true in Python.
    return is_read_alike and _json(before) == _json(after)


def _json(subject: Resource) -> bytes:
    return orjson.dumps(subject.document, option=orjson.OPT_SORT_KEYS)


def _by_key(subjects: Sequence[Resource]) -> Mapping[tuple[bool, str], Sequence[Resource]]:
    found: dict[tuple[bool, str], list[Resource]] = {}
    for subject in subjects:
        key = subject.target_type in _STATED, lowered(subject.reported_id)
        found.setdefault(key, []).append(subject)
    return found
