"""Match policies to subjects by type and by required values, and find the pairs for which this is unknown."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from policyeng._performance import IdentityKey
from policyeng.bundle import Bundle, Policy
from policyeng.bundle.constraint_match import labels_of_namespaces
from policyeng.bundle.header import ANY_TYPE, PolicyHeader
from policyeng.evaluation.pointers import unread, value_at
from policyeng.evaluation.prepared_snapshot import PreparedSnapshot
from policyeng.models import Resource, Unknown, lowered


class Selector(NamedTuple):
    """One entry of `judges`: a lower-case type, and the keys of the allowed values by JSON Pointer."""

    kind: str
    where: tuple[tuple[str, frozenset[object]], ...]


def is_of_kind(subject: Resource, selector: Selector) -> bool:
    """Check whether a subject has the type of an entry, whatever values it has."""
    if selector.kind == ANY_TYPE:
        return "/" in subject.target_type and not subject.is_gap
    return subject.target_type == selector.kind


def selectors_of(header: PolicyHeader) -> tuple[Selector, ...]:
    """Return the entries of `judges` of a header; the same header returns the same objects."""
    return _selectors(IdentityKey(header))


@lru_cache(maxsize=8)
def _all_selectors(key: IdentityKey[Bundle]) -> Sequence[tuple[Selector, ...]]:
    return [selectors_of(policy.header) for policy in key.value.policies]


def selectors_in(bundle: Bundle) -> Sequence[tuple[Selector, ...]]:
    """Return the entries of `judges` of each policy of a bundle."""
    return _all_selectors(IdentityKey(bundle))


def key_of(value: object) -> object:
    """Return a key by which values are compared: strings without case, integers and booleans; None for other types."""
    if isinstance(value, str):
        return lowered(value)
    return (type(value), value) if type(value) in (bool, int) else None


@lru_cache(maxsize=1024)
def _selectors(key: IdentityKey[PolicyHeader]) -> tuple[Selector, ...]:
    return tuple(
        Selector(lowered(entry.type), tuple((at, _allowed_keys(allowed)) for at, allowed in entry.where.items()))
        for entry in key.value.judges
    )


def _allowed_keys(allowed: Iterable[str | bool | int]) -> frozenset[object]:
    """Return the keys of the allowed values; 1 and 0 match true and false."""
    booleans = {(int, int(value)) for value in allowed if isinstance(value, bool)}
    return frozenset(booleans.union(map(key_of, allowed)))


#: The key of subjects whose value cannot be read and can be anything.
_ANY = object()
_ByKey: TypeAlias = Mapping[object, Set[int]]


class TargetMatcher:
    """An index of the subjects of a snapshot, built as policies need it."""

    def __init__(self, subjects: Sequence[Resource]) -> None:
        self._subjects = subjects
        self._by_type: dict[str, list[int]] = {}
        for index, subject in enumerate(subjects):
            self._by_type.setdefault(subject.target_type, []).append(index)
        self._by_value: dict[tuple[str, str], _ByKey] = {}
        self._taken: dict[tuple[Selector, ...], Sequence[int]] = {}

    def of_type(self, kind: str) -> Sequence[int]:
        """Return the sorted positions of the subjects of a lower-case type."""
        if kind == ANY_TYPE and ANY_TYPE not in self._by_type:
            selector = Selector(ANY_TYPE, ())
            every = [number for number, subject in enumerate(self._subjects) if is_of_kind(subject, selector)]
            self._by_type[ANY_TYPE] = every
        return self._by_type.get(kind, ())

    def taken(self, judges: tuple[Selector, ...]) -> Sequence[int]:
        """Return the sorted positions of the subjects that match at least one entry.

        An unreadable field excludes a subject only if none of its possible values is allowed.
        """
        known = self._taken.get(judges)
        if known is None:
            [first, *others] = map(self._find_matches, judges)
            known = self._taken[judges] = sorted({*first}.union(*others)) if others else sorted(first)
        return known

    def _find_matches(self, selector: Selector) -> Iterable[int]:
        """Return the positions of the subjects that have, or can have, an allowed value at every pointer."""
        found: Iterable[int] = self.of_type(selector.kind)
        for pointer, allowed in selector.where if found else ():
            by_key = self._positions_by_key(selector.kind, pointer)
            found = {index for key in (*allowed, _ANY) for index in by_key.get(key, ())}.intersection(found)
        return found

    def _positions_by_key(self, kind: str, pointer: str) -> _ByKey:
        """Return the positions of the subjects of a type by their possible keys at a pointer."""
        known = self._by_value.get((kind, pointer))
        if known is None:
            found: dict[object, set[int]] = {}
            for index in self.of_type(kind):
                for key in _keys(self._subjects[index], pointer):
                    found.setdefault(key, set()).add(index)
            known = self._by_value[kind, pointer] = found
        return known


class Taking:
    """A matcher for one subject, which looks up each value once for all policies."""

    def __init__(self, subject: Resource) -> None:
        self._subject = subject
        self._keys: dict[str, Sequence[object]] = {}

    def takes(self, selector: Selector) -> bool:
        """Check whether an entry, which has the type of the subject, matches it."""
        for pointer, allowed in selector.where:
            keys = self._keys.get(pointer)
            if keys is None:
                keys = self._keys[pointer] = tuple(_keys(self._subject, pointer))
            if allowed.isdisjoint(keys) and _ANY not in keys:
                return False
        return True


def list_unreadable(judges: Iterable[Selector], subject: Resource) -> tuple[Unknown, ...]:
    """Return an unknown for each unreadable field that decides whether one of the entries matches a subject."""
    found: dict[str, str] = {}
    for selector in judges:
        if not is_of_kind(subject, selector):
            continue
        lost = dict[str, str]()
        for pointer, allowed in selector.where:
            keys = set(_keys(subject, pointer))
            if not keys <= allowed:
                lost.update(unread(subject.document, subject.unreadable, subject.carried, (pointer,)))
                if not keys & {*allowed, _ANY}:
                    break
        else:
            if not lost:
                return ()
            found |= lost
    return tuple(Unknown(msg=reason, path=path) for path, reason in sorted(found.items()))


def _keys(subject: Resource, pointer: str) -> Iterable[object]:
    if any(unread(subject.document, subject.unreadable, subject.carried, (pointer,))):
        possible = subject.possible.get(pointer)
        return (_ANY,) if possible is None else map(key_of, possible)
    return (key_of(value_at(subject.document, pointer)),)


class PlannedColumn(NamedTuple):
    """The subjects to which a policy can apply.

    Attributes:
        policy: the number of the policy in the bundle.
        positions: the positions of the subjects that an engine evaluates, in ascending order.
        undecided: why the others cannot be decided, by position; no engine evaluates them.
    """

    policy: int
    positions: Sequence[int]
    undecided: Mapping[int, tuple[Unknown, ...]] = MappingProxyType({})

    @property
    def size(self) -> int:
        """The number of subjects."""
        return len(self.positions) + len(self.undecided)

    def all(self) -> Sequence[int]:
        """Return the positions of all subjects, in ascending order."""
        return sorted((*self.positions, *self.undecided)) if self.undecided else self.positions


def plan(
    bundle: Bundle, estate: PreparedSnapshot, wanted: Mapping[int, Collection[int]] | None = None
) -> Iterator[PlannedColumn]:
    """Yield the subjects to which each policy can apply, ordered by policy; policies without any are left out.

    With `wanted`, yield only those: positions of subjects by the number of the policy.
    """
    subjects, judges = estate.subjects, selectors_in(bundle)
    matched_positions = _match_all(bundle, subjects) if wanted is None else sorted(wanted.items())
    namespaces: Mapping[str, Mapping[str, object]] = {}
    if any(policy.match and policy.match.namespace_labels is not None for policy in bundle.policies):
        namespaces = labels_of_namespaces(subject.document for subject in subjects)
    for number, matched in matched_positions:
        policy = bundle.policies[number]
        column = PlannedColumn(number, sorted(matched))
        if (
            policy.match is not None
            or policy.undecided
            or any(_is_partly_unknown(subjects[position]) for position in matched)
        ):
            column = _plan_partly(column, policy, judges[number], subjects, namespaces)
        if column.size:
            yield column


def _is_partly_unknown(subject: Resource) -> bool:
    return bool(subject.unreadable) or subject.carried is not None or subject.is_gap


def _plan_partly(
    column: PlannedColumn,
    policy: Policy,
    judges: Sequence[Selector],
    subjects: Sequence[Resource],
    namespaces: Mapping[str, Mapping[str, object]],
) -> PlannedColumn:
    """Separate the subjects of a column that are undecided, and remove those to which the policy does not apply."""
    evaluated: list[int] = []
    undecided: dict[int, tuple[Unknown, ...]] = {}
    for index in column.positions:
        subject = subjects[index]
        unknowns: tuple[Unknown, ...] = (Unknown(msg=policy.undecided),) if policy.undecided else ()
        if subject.is_gap:
            unknowns = (Unknown(msg=subject.unreadable[""], path=""),)
        elif not unknowns and (subject.unreadable or subject.carried):
            unknowns = list_unreadable(judges, subject)
        if policy.match is not None and not subject.is_gap:
            reason = policy.match.unknown(subject.document, namespaces)
            if reason is None:
                continue
            unknowns = (*unknowns, Unknown(msg=reason)) if reason else unknowns
        if unknowns:
            undecided[index] = unknowns
        else:
            evaluated.append(index)
    return PlannedColumn(column.policy, evaluated, undecided)


def _match_all(bundle: Bundle, subjects: Sequence[Resource]) -> Iterator[tuple[int, Collection[int]]]:
    """Return the number of each policy with the positions of the subjects to which it applies."""
    matcher = TargetMatcher(subjects)
    return ((number, matcher.taken(judges)) for number, judges in enumerate(selectors_in(bundle)))
