"""Look up values by JSON Pointer (RFC 6901), and find the pointers that cannot be read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from policyeng.models import Carried, JsonObject, lowered
from policyeng.parsing.json_pointer import keys_of as keys_in
from policyeng.parsing.json_pointer import list_index

_ABSENT = object()
#: The largest number of pointers in a call whose result is cached.
_SHORT = 64


keys_of = lru_cache(maxsize=1 << 12)(keys_in)  # few pointers, each used thousands of times


def has_value(document: JsonObject, pointer: str) -> bool:
    """Check whether a document has a value at a JSON Pointer."""
    return value_at(document, pointer) is not _ABSENT


def value_at(document: JsonObject, pointer: str) -> object:
    """Return the value at a JSON Pointer, or a sentinel that equals nothing else if there is none."""
    return next(values_at(document, pointer), _ABSENT)


def values_at(document: JsonObject, pointer: str) -> Iterator[object]:
    """Yield the values at a JSON Pointer; `*` matches every member of a list, or of an object without that key."""
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
    """Check whether one JSON Pointer equals the other or contains it; `*` matches any one segment.

    Keys are compared without case, because Azure ignores the case of tag names.
    """
    pairs = zip(pointer.split("/"), other.split("/"), strict=False)
    return all(left == right or "*" in (left, right) or lowered(left) == lowered(right) for left, right in pairs)


def unread(
    document: JsonObject, unreadable: Mapping[str, str], carried: Carried | None, inspected: Iterable[str]
) -> Iterator[tuple[str, str]]:
    """Yield each inspected pointer that cannot be read, with the reason.

    Args:
        document: the resource.
        unreadable: as in `Snapshot`, for this resource.
        carried: as in `Snapshot`, for this resource.
        inspected: the pointers to check.
    """
    if not unreadable and carried is None:
        return
    pointers = tuple(inspected)
    for pointer in _find_overlaps(tuple(unreadable), pointers):
        yield pointer, unreadable[pointer]
    if carried is not None:
        known = set(_find_overlaps(pointers, carried.pointers))
        for pointer in pointers:
            if pointer not in known and not has_value(document, pointer):
                yield pointer, carried.reason


def _find_overlaps(pointers: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    """Return the pointers that overlap with one of the others.

    Results of short calls are cached, because very many resources have the same unreadable pointers.
    """
    find = _find_overlaps_cached if len(pointers) + len(others) <= _SHORT else _find_overlaps_uncached
    return find(pointers, others)


def _find_overlaps_uncached(pointers: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(pointer for pointer in pointers if any(overlap(pointer, other) for other in others))


_find_overlaps_cached = lru_cache(maxsize=1 << 12)(_find_overlaps_uncached)
