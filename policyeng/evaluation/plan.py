"""Which policies apply to which subjects, and which of these pairs a missing or unresolved field already decides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from policyeng.bundle import Bundle, Policy
from policyeng.engines import Pair
from policyeng.evaluation.consulted import Neighbours
from policyeng.evaluation.estate import Estate, Subject
from policyeng.evaluation.pointers import unread, value_at
from policyeng.models import JsonObject, Unknown, lowered, made

_Where = Mapping[str, Sequence[str | bool | int]]


class Planned(NamedTuple):
    """A pair to judge; with `unknowns` it is decided already and no engine sees it."""

    pair: Pair
    unknowns: tuple[Unknown, ...] = ()


def plan(bundle: Bundle, estate: Estate, parameters: Sequence[JsonObject] | None = None) -> Iterator[Planned]:
    """Every pair of a policy and a subject that it judges, policies first.

    `parameters` has one object per policy; without it the defaults count.
    """
    subjects = estate.subjects
    unreadable = {index for index, subject in enumerate(subjects) if subject.unreadable or subject.carried}
    partly = unreadable | {index for index, subject in enumerate(subjects) if subject.workspace in unreadable}
    narrowing = _Narrowing(subjects, unreadable)
    neighbours = Neighbours(subjects, unreadable) if unreadable else None
    for number, policy in enumerate(bundle.policies):
        given = parameters[number] if parameters is not None else policy.header.defaults
        for index in sorted(narrowing.taken(policy)):
            unknowns = _unknowns(policy, subjects[index], subjects) if index in partly else ()
            if neighbours and policy.header.consults:
                unknowns += neighbours.unknowns(policy.header.consults, given, index)
            if policy.undecided:
                unknowns = (Unknown(msg=policy.undecided),)
            yield Planned(Pair(number, index, subjects[index].workspace), unknowns)


class _Narrowing:
    """The subjects that policies judge, found by type and by the values that policies are narrowed to."""

    def __init__(self, subjects: Sequence[Subject], unreadable: set[int]) -> None:
        self._subjects = subjects
        self._by_type: dict[str, set[int]] = {}
        self._unreadable: dict[str, set[int]] = {}
        for index, subject in enumerate(subjects):
            by_type = self._unreadable if index in unreadable else self._by_type
            by_type.setdefault(subject.judged_type, set()).add(index)
        self._by_value: dict[tuple[str, str], dict[object, set[int]]] = {}

    def taken(self, policy: Policy) -> set[int]:
        """Positions of the subjects that one of the policy's `judges` takes.

        An unreadable field rules a subject out only where every value that it may have would.
        """
        found = set[int]()
        for judged in policy.header.judges:
            kind = lowered(judged.type)
            found |= self._having(kind, judged.where)
            keys = {pointer: _allowed_keys(allowed) for pointer, allowed in judged.where.items()}
            for index in self._unreadable.get(kind, ()):
                subject = self._subjects[index]
                if all(_allowed(subject, pointer, allowed) for pointer, allowed in keys.items()):
                    found.add(index)
        return found

    def _having(self, kind: str, where: _Where) -> set[int]:
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


def _allowed(subject: Subject, pointer: str, keys: Set[object]) -> bool:
    if any(unread(subject.document, subject.unreadable, subject.carried, [pointer])):
        possible = subject.possible.get(pointer)
        return possible is None or not keys.isdisjoint(map(_key_of, possible))
    key = _key_of(value_at(subject.document, pointer))
    return key is not None and key in keys


def _unknowns(policy: Policy, subject: Subject, subjects: Sequence[Subject]) -> tuple[Unknown, ...]:
    """One unknown for every unreadable field that the policy inspects or is narrowed by."""
    own = {pointer for pointer in policy.header.inspects if not pointer.startswith("workspace:")}
    judges = [judged for judged in policy.header.judges if lowered(judged.type) == subject.judged_type]
    own |= {pointer for judged in judges for pointer in judged.where}
    found = {
        made(Unknown, msg=reason, path=path)
        for path, reason in unread(subject.document, subject.unreadable, subject.carried, own)
    }
    if subject.workspace >= 0:
        workspace = subjects[subject.workspace]
        inspected = [pointer.removeprefix("workspace:") for pointer in policy.header.inspects if pointer not in own]
        found |= {
            made(Unknown, msg=reason, path=f"workspace:{path}")
            for path, reason in unread(workspace.document, workspace.unreadable, workspace.carried, inspected)
        }
    return tuple(sorted(found, key=lambda unknown: (unknown.path, unknown.msg)))
