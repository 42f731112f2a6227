"""Which policies apply to which subjects, and which of these pairs a missing or unresolved field already decides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from policyeng.bundle import Bundle, Policy
from policyeng.engines import Pair
from policyeng.evaluation.estate import Estate, Subject
from policyeng.models import JsonObject, Unknown, lowered

_ABSENT = object()
_Where = Mapping[str, Sequence[str | bool | int]]


class Planned(NamedTuple):
    """A pair to judge; with `unknowns` it is decided already and no engine sees it."""

    pair: Pair
    unknowns: tuple[Unknown, ...] = ()


def plan(bundle: Bundle, estate: Estate) -> Iterator[Planned]:
    """Every pair of a policy and a subject that it judges, policies first."""
    subjects = estate.subjects
    unreadable = {index for index, subject in enumerate(subjects) if subject.unreadable or subject.carried}
    partly = unreadable | {index for index, subject in enumerate(subjects) if subject.workspace in unreadable}
    readable = _Readable(subjects, unreadable)
    for number, policy in enumerate(bundle.policies):
        narrowed = {index for index in unreadable if _narrowed(policy, subjects[index])}
        for judged in policy.header.judges:
            narrowed |= readable.having(lowered(judged.type), judged.where)
        for index in sorted(narrowed):
            unknowns = _unknowns(policy, subjects[index], subjects) if index in partly else ()
            if policy.undecided:
                unknowns = (Unknown(msg=policy.undecided),)
            yield Planned(Pair(number, index, subjects[index].workspace), unknowns)


class _Readable:
    """The subjects without an unreadable field, found by type and by the values that policies are narrowed to."""

    def __init__(self, subjects: Sequence[Subject], unreadable: set[int]) -> None:
        self._subjects = subjects
        self._by_type: dict[str, set[int]] = {}
        for index, subject in enumerate(subjects):
            if index not in unreadable:
                self._by_type.setdefault(subject.judged_type, set()).add(index)
        self._by_value: dict[tuple[str, str], dict[object, set[int]]] = {}

    def having(self, kind: str, where: _Where) -> set[int]:
        """Positions of the subjects of a lower-case type that have one of the allowed values at every pointer."""
        found = self._by_type.get(kind, set())
        for pointer, allowed in where.items():
            by_value = self._values(kind, pointer)
            found = found & {index for key in _allowed_keys(allowed) for index in by_value.get(key, ())}
        return found

    def _values(self, kind: str, pointer: str) -> dict[object, set[int]]:
        """The subjects of a type by what stands at a pointer; looked at once, however many policies ask."""
        known = self._by_value.get((kind, pointer))
        if known is None:
            known = self._by_value[kind, pointer] = {}
            for index in self._by_type.get(kind, ()):
                known.setdefault(_key_of(value_at(self._subjects[index].document, pointer)), set()).add(index)
        return known


def _key_of(value: object) -> object:
    """What values are alike by: texts without case, whole numbers and booleans as they are; None for anything else."""
    if isinstance(value, str):
        return lowered(value)
    return (type(value), value) if type(value) in (bool, int) else None


def _allowed_keys(allowed: Iterable[str | bool | int]) -> set[object]:
    """The keys of the values that are allowed; 1 and 0 pass for true and false."""
    booleans = {(int, int(entry)) for entry in allowed if isinstance(entry, bool)}
    return booleans.union(map(_key_of, allowed))


def _narrowed(policy: Policy, subject: Subject) -> bool:
    """Whether one of the policy's `judges` takes the subject.

    An unreadable field rules it out only where every value that it may have would.
    """
    return any(
        lowered(judged.type) == subject.judged_type
        and all(_allowed(subject, pointer, allowed) for pointer, allowed in judged.where.items())
        for judged in policy.header.judges
    )


def _allowed(subject: Subject, pointer: str, allowed: Iterable[str | bool | int]) -> bool:
    keys = _allowed_keys(allowed)
    if any(_overlap(pointer, unreadable) for unreadable in subject.unreadable):
        possible = subject.possible.get(pointer)
        return possible is None or not keys.isdisjoint(map(_key_of, possible))
    key = _key_of(value_at(subject.document, pointer))
    return key is not None and key in keys


def _unknowns(policy: Policy, subject: Subject, subjects: Sequence[Subject]) -> tuple[Unknown, ...]:
    """One unknown for every unreadable field that the policy inspects or is narrowed by."""
    own = {pointer for pointer in policy.header.inspects if not pointer.startswith("workspace:")}
    own |= {pointer for judged in policy.header.judges for pointer in judged.where}
    found = {Unknown.model_construct(msg=reason, path=path) for path, reason in _unread(subject, own)}
    if subject.workspace >= 0:
        inspected = [pointer.removeprefix("workspace:") for pointer in policy.header.inspects if pointer not in own]
        found |= {
            Unknown.model_construct(msg=reason, path=f"workspace:{path}")
            for path, reason in _unread(subjects[subject.workspace], inspected)
        }
    return tuple(sorted(found, key=lambda unknown: (unknown.path, unknown.msg)))


def _unread(subject: Subject, inspected: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each pointer that cannot be read among those inspected, with the reason."""
    pointers = list(inspected)
    for unreadable, reason in subject.unreadable.items():
        if any(_overlap(pointer, unreadable) for pointer in pointers):
            yield unreadable, reason
    if subject.carried is not None:
        for pointer in pointers:
            said = any(_overlap(pointer, known) for known in subject.carried.pointers)
            if not said and not has_value(subject.document, pointer):
                yield pointer, subject.carried.reason


def _overlap(pointer: str, other: str) -> bool:
    """Whether one JSON Pointer is the other or above it; `*` stands for any one segment."""
    pairs = zip(pointer.split("/"), other.split("/"), strict=False)
    return all(left == right or "*" in (left, right) for left, right in pairs)


def has_value(document: JsonObject, pointer: str) -> bool:
    """Whether something stands at a JSON Pointer."""
    return value_at(document, pointer) is not _ABSENT


def value_at(document: JsonObject, pointer: str) -> object:
    """The value at a JSON Pointer (RFC 6901); a value equal to nothing else when there is none."""
    value: object = document
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            return _ABSENT
    return value
