"""Which policies apply to which subjects, and which of these pairs a missing or unresolved field already decides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from policyeng.bundle import Bundle, Policy
from policyeng.engines import Pair
from policyeng.evaluation.estate import Estate, Subject
from policyeng.models import JsonObject, Unknown

_ABSENT = object()


@dataclass(frozen=True, slots=True)
class Planned:
    """A pair to judge; with `unknowns` it is decided already and no engine sees it."""

    pair: Pair
    unknowns: tuple[Unknown, ...]


def plan(bundle: Bundle, estate: Estate) -> Iterator[Planned]:
    """Every pair of a policy and a subject that it judges, policies first."""
    by_type: dict[str, list[int]] = {}
    for index, subject in enumerate(estate.subjects):
        by_type.setdefault(subject.judged_type, []).append(index)
    for number, policy in enumerate(bundle.policies):
        for index in sorted(
            {index for judged in policy.header.judges for index in by_type.get(judged.type.lower(), ())}
        ):
            subject = estate.subjects[index]
            unknowns = _unknowns(policy, subject, estate.subjects)
            if _narrowed(policy, subject):
                yield Planned(Pair(number, index, subject.workspace), unknowns)


def _narrowed(policy: Policy, subject: Subject) -> bool:
    """Whether one of the policy's `judges` takes the subject; an unreadable field never rules it out."""
    return any(
        judged.type.lower() == subject.judged_type
        and all(_allowed(subject, pointer, allowed) for pointer, allowed in judged.where.items())
        for judged in policy.header.judges
    )


def _allowed(subject: Subject, pointer: str, allowed: Sequence[str | bool | int]) -> bool:
    if any(_overlap(pointer, unreadable) for unreadable in subject.unreadable):
        return True
    value = value_at(subject.document, pointer)
    if isinstance(value, str):
        return value.lower() in {entry.lower() for entry in allowed if isinstance(entry, str)}
    return any(value is entry or (type(value) is int and value == entry) for entry in allowed)


def _unknowns(policy: Policy, subject: Subject, subjects: Sequence[Subject]) -> tuple[Unknown, ...]:
    """One unknown for every unreadable field that the policy inspects or is narrowed by."""
    own = {pointer for pointer in policy.header.inspects if not pointer.startswith("workspace:")}
    own |= {pointer for judged in policy.header.judges for pointer in judged.where}
    found = {
        Unknown.model_construct(msg=reason, path=unreadable)
        for unreadable, reason in subject.unreadable.items()
        if any(_overlap(pointer, unreadable) for pointer in own)
    }
    if subject.workspace >= 0:
        inspected = [pointer.removeprefix("workspace:") for pointer in policy.header.inspects if pointer not in own]
        found |= {
            Unknown.model_construct(msg=reason, path=f"workspace:{unreadable}")
            for unreadable, reason in subjects[subject.workspace].unreadable.items()
            if any(_overlap(pointer, unreadable) for pointer in inspected)
        }
    return tuple(sorted(found, key=lambda unknown: (unknown.path, unknown.msg)))


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
