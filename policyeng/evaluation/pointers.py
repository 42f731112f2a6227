"""JSON Pointers (RFC 6901) into resources: what stands there, and what of it cannot be read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from policyeng.models import Carried, JsonObject, lowered
from policyeng.parsing.json_pointer import keys_of as keys_in
from policyeng.parsing.json_pointer import list_index

_ABSENT = object()
#: So many pointers at most are in a question whose answer is kept.
_SHORT = 64


keys_of = lru_cache(maxsize=1 << 12)(keys_in)  # few pointers are asked for, thousands of times


def has_value(document: JsonObject, pointer: str) -> bool:
    """Whether something stands at a JSON Pointer."""
    return value_at(document, pointer) is not _ABSENT


def value_at(document: JsonObject, pointer: str) -> object:
    """The value at a JSON Pointer; a value equal to nothing else when there is none."""
    return next(values_at(document, pointer), _ABSENT)


def values_at(document: JsonObject, pointer: str) -> Iterator[object]:
    """The values at a JSON Pointer; `*` stands for every member of a list or object that has no such key."""
    values: list[object] = [document]
    for key in keys_of(pointer):
        values = [member for value in values for member in _members(value, key)]
    yield from values


def _members(value: object, key: str) -> Iterable[object]:
    if isinstance(value, dict):
        return [value[key]] if key in value else value.values() if key == "*" else ()
    if isinstance(value, list):
        index = list_index(key)
        return value if key == "*" else [value[index]] if index is not None and index < len(value) else ()
    return ()


@lru_cache(maxsize=1 << 14)
def overlap(pointer: str, other: str) -> bool:
    """Whether one JSON Pointer is the other or above it; `*` stands for any one segment.

    Keys compare without case: those of tags have none in Azure.
    """
    pairs = zip(pointer.split("/"), other.split("/"), strict=False)
    return all(left == right or "*" in (left, right) or lowered(left) == lowered(right) for left, right in pairs)


def unread(
    document: JsonObject, unreadable: Mapping[str, str], carried: Carried | None, inspected: Iterable[str]
) -> Iterator[tuple[str, str]]:
    """Each pointer into a resource that cannot be read among those inspected, with the reason.

    `unreadable` and `carried` are those of a snapshot.
    """
    if not unreadable and carried is None:
        return
    pointers = tuple(inspected)
    for pointer in _met(tuple(unreadable), pointers):
        yield pointer, unreadable[pointer]
    if carried is not None:
        said = set(_met(pointers, carried.pointers))
        for pointer in pointers:
            if pointer not in said and not has_value(document, pointer):
                yield pointer, carried.reason


def _met(pointers: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    """Those of some pointers that overlap with one of others.

    What cannot be read is the same of very many resources, so short answers are kept.
    """
    return (_met_known if len(pointers) + len(others) <= _SHORT else _met_worked_out)(pointers, others)


def _met_worked_out(pointers: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(pointer for pointer in pointers if any(overlap(pointer, other) for other in others))


_met_known = lru_cache(maxsize=1 << 12)(_met_worked_out)
