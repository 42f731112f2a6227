"""Add markers for the unknown parts of a snapshot to the input of policies."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import NamedTuple

from policyeng.bundle import Bundle
from policyeng.bundle.header import WORKSPACE
from policyeng.evaluation.coverage import Coverage, Gap, Homes, coverage_of, unplaced
from policyeng.evaluation.pointers import keys_of, unread
from policyeng.evaluation.prepared_snapshot import ROLE_DEFINITION_TYPE, PreparedSnapshot
from policyeng.facts.computes import CLUSTER_TYPE, COMPUTE_TYPE
from policyeng.facts.coverage import is_whole
from policyeng.facts.ids import fold_id, is_open
from policyeng.facts.subnets import SUBNET_POINTERS
from policyeng.models import Carried, Resource, Unknown, lowered
from policyeng.parsing.json_pointer import escaped, list_index
from policyeng.rego import markers
from policyeng.rego.markers import Cause, MarkedList, MarkedObject
from policyeng.rego.values import Value

#: The largest number of unknowns about other resources: a thousand fields can be unread for one reason.
_MOST = 5
#: An unknown part of an id is text in braces, which policies compare themselves.
_SYMBOLIC = frozenset(("/id", "/type"))
_HOST = "/properties/resourceId"
#: The types, besides workspaces, of resources on which policies look up extension resources. If such a resource has
#: none at all, the lists of each type decide whether it is known to have none.
EXTENDABLE = (
    "microsoft.machinelearningservices/registries",
    "microsoft.machinelearningservices/workspaces/batchendpoints",
    "microsoft.machinelearningservices/workspaces/onlineendpoints",
)
#: The types of resources whose unknown parts make indices of resources incomplete.
HOSTS = (COMPUTE_TYPE, CLUSTER_TYPE)


_UNREADABLE, _CARRIED = attrgetter("unreadable"), attrgetter("carried")


class OpenObject(MarkedObject):
    """An object from which entries can be missing; `lacks` returns the causes for a key."""

    __slots__ = ("_lacks",)

    def __init__(
        self, entries: Mapping[str, Value], causes: tuple[Cause, ...], lacks: Callable[[str], tuple[Cause, ...]]
    ) -> None:
        dict.__init__(self, entries)
        self.open, self._lacks = causes, lacks

    def lacks(self, key: object) -> tuple[Cause, ...]:
        """Return why there may be an entry under a key."""
        return self._lacks(key) if type(key) is str else ()


class LazyObject(OpenObject):
    """An open object whose values get their markers when they are first read.

    A snapshot has as many of them as scopes, and a policy reads few.
    """

    __slots__ = ("_entries", "_mark_value", "_unmarked")

    def __init__(
        self,
        entries: Mapping[str, Value],
        causes: tuple[Cause, ...],
        lacks: Callable[[str], tuple[Cause, ...]],
        mark_value: Callable[[str, Value], Value],
    ) -> None:
        """Store the values without markers; `mark_value` is a function of a key and its value."""
        super().__init__(entries, causes, lacks)
        self._entries, self._mark_value, self._unmarked = entries, mark_value, set(entries)

    def get(self, key: Value, default: Value = None) -> Value:
        """Return a value with its markers or the default, or raise."""
        if type(key) is str and key in self._unmarked:
            self._mark(key)
        return super().get(key, default)

    def stored(self) -> ItemsView[Value, Value]:
        """Return all entries with their markers."""
        for key in tuple(self._unmarked):
            self._mark(key)
        return super().stored()

    def refresh(self, key: str) -> None:
        """Mark a value again when it is next read, because the entries changed in place."""
        if key in self._entries:
            dict.__setitem__(self, key, self._entries[key])
            self._unmarked.add(key)
        else:
            dict.pop(self, key, None)
            self._unmarked.discard(key)

    def _mark(self, key: str) -> None:
        # Another thread may do the same. The key goes last, so that no thread reads a value without its markers.
        dict.__setitem__(self, key, self._mark_value(key, self._entries[key]))
        self._unmarked.discard(key)


class EstateMarking:
    """The unknown parts of the subjects of a snapshot, and its incomplete lists of resources."""

    def __init__(
        self,
        subjects: Sequence[Resource],
        partly: Sequence[int],
        coverage: Coverage,
        stated: Sequence[Gap],
        named: frozenset[str],
        *,
        is_placed: bool = False,
    ) -> None:
        """Store the unknown parts.

        Args:
            subjects: the subjects of the snapshot.
            partly: the positions of subjects that are partly unreadable.
            coverage: the lists of resources that were read.
            stated: the metrics and quotas that could not be read.
            named: the types outside `facts.coverage.LISTED` that policies read.
            is_placed: whether the documents of the subjects already contain their markers.
        """
        self.named = named
        self._is_placed = is_placed
        self._subjects = subjects
        self._partly = partly
        self._coverage = coverage
        self._stated = stated

    def mark(
        self, snapshot: Mapping[str, Value], documents: Sequence[Value]
    ) -> tuple[dict[str, Value], Sequence[Value]]:
        """Return copies of a snapshot and of its list of subjects with markers; unchanged parts are shared.

        Args:
            snapshot: the members of the snapshot as policies see it, by name.
            documents: its subjects, as the same objects.
        """
        whole, found = (dict(snapshot), documents) if self._is_placed else self._mark_subjects(snapshot, documents)
        if self._coverage.has_holes:
            self._open_lists(whole)
        elif self._coverage.is_open:
            self._open_scopes(whole)
        for name, causes in (("by_host", self._hosts()), ("by_subnet", self._subnets()), ("by_guid", self._roles())):
            if lost := tuple(causes):
                lists = {key: MarkedList(ids, lost) for key, ids in snapshot[name].items()}
                whole[name] = MarkedObject(lists, lost)
        for gap in self._stated:
            self._open_stated(whole, gap)
        return whole, found

    def _mark_subjects(
        self, snapshot: Mapping[str, Value], documents: Sequence[Value]
    ) -> tuple[dict[str, Value], Sequence[Value]]:
        """Return copies with markers in subjects."""
        found = list(documents)
        for at in self._partly:
            found[at] = marked(self._subjects[at], documents[at])
        changed = {id(documents[at]): found[at] for at in self._partly}
        whole = dict(snapshot)
        for name in ("resources", "workloads", "approvals"):
            whole[name] = _like(snapshot[name], [changed.get(id(one), one) for one in snapshot[name]])
        whole["by_id"] = _like(
            snapshot["by_id"], {key: changed.get(id(one), one) for key, one in snapshot["by_id"].items()}
        )
        whole["by_type"] = _like(
            snapshot["by_type"],
            {
                kind: _like(members, [changed.get(id(one), one) for one in members])
                for kind, members in snapshot["by_type"].items()
            },
        )
        return whole, found

    def unknowns(self, causes: Iterable[Cause], subject: int, workspace: int) -> tuple[Unknown, ...]:
        """Return the unknowns of an evaluation, with paths as in findings.

        Args:
            causes: why the evaluation is undecided.
            subject: the position of the subject.
            workspace: the position of its workspace; -1 for none.
        """
        own = f"{self._subjects[subject].reported_id}:"
        above = f"{self._subjects[workspace].reported_id}:" if workspace >= 0 else own
        found, elsewhere = set[Cause](), set[Cause]()
        for pointer, reason in causes:
            if pointer.startswith(own):
                found.add((pointer.removeprefix(own), reason))
            elif pointer.startswith(above):
                found.add((WORKSPACE + pointer.removeprefix(above), reason))
            else:
                elsewhere.add((pointer, reason))
        kept = [*sorted(found), *sorted(elsewhere)[:_MOST]]
        return tuple(Unknown(msg=reason, path=pointer) for pointer, reason in kept)

    def _open_scopes(self, marked: dict[str, Value]) -> None:
        """Mark what is in and on the scopes that are not stated as incomplete, if everything else was read."""
        types = marked.get("by_extended", {})
        opened = {arm_id: self._open_extensions(types, arm_id) for arm_id in filter(is_open, _list_extendable(marked))}
        marked["by_extended"] = MarkedObject({**types, **opened})
        marked["by_id"] = OpenObject(marked["by_id"], (self._coverage.anywhere,), self._lacks_id)

    def _open_lists(self, marked: dict[str, Value]) -> None:
        """Mark the lists of resources that were not read as incomplete."""
        coverage, lacks, anywhere = self._coverage, self._coverage.lacks, (self._coverage.anywhere,)

        def open_scope(scope: str, types: Mapping[str, Value]) -> Value:
            return self._open_types(types, coverage.lacks_above if scope == "/" else partial(lacks, scope=scope))

        extended, scopes = marked.get("by_extended", {}), {"/": {}, **marked.get("by_scope", {})}
        extendable = {arm_id: extended.get(arm_id, {}) for arm_id in _list_extendable(marked)}
        marked |= {
            "by_extended": LazyObject(
                extendable, anywhere, self._lacks_scope, lambda arm_id, _: self._open_extensions(extended, arm_id)
            ),
            "by_scope": LazyObject(scopes, anywhere, self._lacks_scope, open_scope),
            "by_type": self._open_types(marked["by_type"], lambda kind: lacks(kind, "")),
            "resources": MarkedList(marked["resources"], anywhere),
            "by_id": OpenObject(marked["by_id"], anywhere, self._lacks_id),
            "workloads": _mark_list(marked["workloads"], lacks("workload", "")),
        }

    def _open_extensions(self, types: Mapping[str, Value], arm_id: str) -> LazyObject:
        """Return the extension resources on an id by type, marked as incomplete where lists were not read."""
        return self._open_types(types.get(arm_id, {}), partial(self._coverage.lacks_on, arm_id))

    def _open_types(self, lists: Mapping[str, Value], lacks: Callable[[str], tuple[Cause, ...]]) -> LazyObject:
        """Return lists of ids by type, marked as incomplete where `lacks` returns causes for the type."""
        return LazyObject(
            lists, (self._coverage.anywhere,), lacks, lambda kind, members: _mark_list(members, lacks(kind))
        )

    def _lacks_id(self, key: str) -> tuple[Cause, ...]:
        """Return why a resource that is not in the snapshot can exist."""
        if is_open(key):
            return unplaced(key)
        parts = key.rpartition("/providers/")[2].split("/")
        causes = self._coverage.lacks("/".join((parts[0], *parts[1::2])), key)
        return tuple((f"{key}:", reason) for _, reason in causes)

    def _lacks_scope(self, scope: str) -> tuple[Cause, ...]:
        """Return why a scope without resources can have resources."""
        return next(filter(None, (self._coverage.lacks(kind, scope) for kind in self._coverage.kinds)), ())

    def _open_stated(self, marked: dict[str, Value], gap: Gap) -> None:
        """Mark the metrics or the quotas as incomplete."""
        causes = ((gap.unknown.path, gap.unknown.msg),)
        marked[gap.kind] = MarkedList(list.__iter__(marked[gap.kind]), causes)
        if gap.kind == "metrics":
            measured = marked.get("by_measured", {})
            positions_by_key = {
                key: MarkedList(list.__iter__(positions), causes) if gap.meets(key) else positions
                for key, positions in dict.items(measured)
            }
            marked["by_measured"] = OpenObject(
                positions_by_key, causes, lambda key: _both(causes if gap.meets(key) else (), measured, key)
            )

    def _hosts(self) -> Iterator[Cause]:
        yield from self._coverage.lacks(COMPUTE_TYPE, "")
        yield from self._unread((COMPUTE_TYPE,), (_HOST,))

    def _subnets(self) -> Iterator[Cause]:
        for kind in HOSTS:
            yield from self._coverage.lacks(kind, "")
        yield from self._unread(HOSTS, SUBNET_POINTERS)

    def _roles(self) -> Iterator[Cause]:
        yield from self._coverage.lacks(ROLE_DEFINITION_TYPE, "")

    def _unread(self, kinds: tuple[str, ...], pointers: Iterable[str]) -> Iterator[Cause]:
        """Yield the causes for unreadable fields from which an index is built."""
        for at in self._partly:
            one = self._subjects[at]
            if one.target_type in kinds:
                lost = unread(one.document, one.unreadable, one.carried, pointers)
                yield from ((f"{one.reported_id}:{pointer}", reason) for pointer, reason in lost)


def mark_snapshot(
    estate: PreparedSnapshot,
    named: frozenset[str] = frozenset(),
    placed: Sequence[int] | None = None,
    homes: Homes | None = None,
) -> EstateMarking | None:
    """Return the unknown parts of a snapshot; None if everything is known.

    Args:
        estate: the snapshot.
        named: the lower-case types and namespaces outside `facts.coverage.LISTED` that policies read.
        placed: the positions of partly unreadable subjects, if their documents already contain the markers.
        homes: those of the snapshot, if they are known.
    """
    subjects, partly = estate.subjects, placed or ()
    if placed is None and (any(map(_UNREADABLE, subjects)) or any(map(_CARRIED, subjects))):
        partly = [at for at, one in enumerate(subjects) if (one.unreadable or one.carried) and not one.is_gap]
    is_known = not estate.gaps and is_whole(estate.covers) and (estate.covers is None or not named)
    if is_known and not partly:
        return None
    stated = [gap for gap in estate.gaps if gap.is_stated]
    homes = homes or Homes.of(estate.view.by_scope)
    if is_known:
        homes = Homes.of({})._replace(is_open=homes.is_open)
    coverage = coverage_of(estate.covers, homes, estate.gaps, named)
    if not partly and not coverage.has_holes:
        return None
    return EstateMarking(estate.subjects, partly, coverage, stated, named, is_placed=placed is not None)


class Markings(NamedTuple):
    """The unknown parts of a snapshot for all policies, and for policies with more unknowns by their number."""

    marking: EstateMarking | None
    apart: Mapping[int, EstateMarking]

    def all(self) -> Iterable[EstateMarking]:
        """Return them once for each set of types that policies read."""
        return {one.named: one for one in (self.marking, *self.apart.values()) if one is not None}.values()


#: Of a snapshot of which everything is known.
NO_MARKINGS = Markings(None, {})


def mark_for_bundle(bundle: Bundle, estate: PreparedSnapshot, placed: Sequence[int] | None = None) -> Markings:
    """Return the unknown parts of a snapshot for the policies of a bundle; `placed` is as for `marking_of`."""
    common = mark_snapshot(estate, frozenset(), placed)
    if estate.covers is None or not is_whole(estate.covers):
        return Markings(common, {})
    homes = Homes.of(estate.view.by_scope)
    found = {named: mark_snapshot(estate, named, placed, homes) for named in frozenset(bundle.queried_types.values())}
    apart = {number: marking for number, named in bundle.queried_types.items() if (marking := found[named])}
    return Markings(common, apart)


def can_change_in_place(copy: Mapping[str, Value], snapshot: Mapping[str, Value], names: Iterable[str]) -> bool:
    """Check whether members of a copy with markers can follow changes of the same members of the snapshot."""
    return all(copy[name] is snapshot[name] or type(copy[name]) in (LazyObject, MarkedList) for name in names)


def _list_extendable(marked: Mapping[str, Value]) -> Iterator[str]:
    """Yield the lower-case ids of the scopes and resources on which policies look up extension resources."""
    yield "/"
    yield from dict.keys(marked.get("by_scope", {}))
    yield from dict.keys(marked.get("by_extended", {}))
    for kind in EXTENDABLE:
        yield from (fold_id(_id_of(one)) for one in marked["by_type"].get(kind, ()))


def _id_of(document: Value) -> str:
    """Return the id of a resource, which can be completely unknown."""
    is_unknown = type(document) in markers.MARKERS
    found: str = markers.cause_of(document)[0].removesuffix(":") if is_unknown else document["id"]
    return found


def _mark_list(members: Value, causes: tuple[Cause, ...]) -> Value:
    """Return a list, marked as incomplete if there are causes."""
    return MarkedList(members, causes) if causes else members


def _both(causes: tuple[Cause, ...], other: Value, key: str) -> tuple[Cause, ...]:
    return causes or (other.lacks(key) if isinstance(other, MarkedObject) else ())


def _like(holder: Value, members: Value) -> Value:
    """Return members in a collection of the same type."""
    return type(holder)(members)


# Markers inside documents.


class _Place(NamedTuple):
    """A place in a resource, and what its format can express there.

    Attributes:
        prefix: the start of the pointers in causes.
        carried: pointers, as segments below the place, that the format can express.
    """

    prefix: str
    reason: str
    carried: tuple[tuple[str, ...], ...]

    def below(self, key: str) -> _Place:
        inner = tuple(
            segments[1:] for segments in self.carried if segments[0] == "*" or lowered(segments[0]) == lowered(key)
        )
        return _Place(f"{self.prefix}/{escaped(key)}", self.reason, inner)


def marked(subject: Resource, document: Value) -> Value:
    """Return the document of a subject with markers."""
    prefix = f"{subject.reported_id}:"
    found = document
    for pointer, reason in subject.unreadable.items():
        if pointer not in _SYMBOLIC:
            found = _mark_unreadable(found, list(keys_of(pointer)), (f"{prefix}{pointer}", reason))
    return _mark_inexpressible(found, _place(prefix, subject.carried)) if subject.carried is not None else found


def _place(prefix: str, carried: Carried) -> _Place:
    return _Place(prefix, carried.reason, tuple(tuple(keys_of(pointer)) for pointer in carried.pointers))


def _mark_inexpressible(value: Value, place: _Place) -> Value:
    """Return a value with markers for missing members that its format cannot express."""
    if type(value) in markers.MARKERS or () in place.carried:
        return value
    if isinstance(value, dict):
        entries = {key: _mark_inexpressible(member, place.below(key)) for key, member in dict.items(value)}
        heads = {lowered(segments[0]) for segments in place.carried}
        if "*" in heads:
            return MarkedObject(entries) if isinstance(value, MarkedObject) else _like(value, entries)

        def lacks(key: str) -> tuple[Cause, ...]:
            return () if lowered(key) in heads else ((f"{place.prefix}/{escaped(key)}", place.reason),)

        return OpenObject(entries, ((place.prefix, place.reason),), lacks)
    if isinstance(value, list):
        items = [_mark_inexpressible(item, place.below(str(index))) for index, item in enumerate(list.__iter__(value))]
        return MarkedList(items, value.causes) if isinstance(value, MarkedList) else _like(value, items)
    return value


def _mark_unreadable(value: Value, path: list[str], cause: Cause) -> Value:
    """Return a value with a marker at a path, or at the deepest existing place on the path."""
    if type(value) in markers.MARKERS:
        return value
    if not path or not isinstance(value, dict | list):
        return markers.UnknownValue(*cause)
    key, *further = path
    if isinstance(value, dict):
        entries = dict(dict.items(value))
        names = [name for name in entries if key == "*" or lowered(name) == lowered(key)]
        for name in names:
            entries[name] = _mark_unreadable(entries[name], further, cause)
        if key not in entries and key != "*":
            entries[key] = markers.UnknownValue(*cause)
            names.append(key)
        return _rebuild(value, entries, [entries[name] for name in names])
    items = list(list.__iter__(value))
    index = list_index(key)
    places = range(len(items)) if key == "*" else [] if index is None or index >= len(items) else [index]
    for at in places:
        items[at] = _mark_unreadable(items[at], further, cause)
    return _rebuild(value, items, [items[at] for at in places]) if places else MarkedList(items, (cause,))


def _rebuild(value: Value, members: Value, marked_members: Iterable[Value]) -> Value:
    """Return members in a collection of the type for members with markers."""
    is_marked = isinstance(value, markers.Special) or any(type(one) in markers.MARKERS for one in marked_members)
    if not is_marked:
        return _like(value, members)
    if isinstance(value, dict):
        return MarkedObject(members)
    return MarkedList(members, value.causes if isinstance(value, MarkedList) else ())
