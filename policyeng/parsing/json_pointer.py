"""JSON Pointers (RFC 6901): their tokens, and the values that they refer to; JSON Merge Patch (RFC 7396)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

#: More digits are no place in a list that fits into memory.
_MOST_DIGITS = 9


def escaped(key: object) -> str:
    """Return a key as a token of a JSON Pointer."""
    return str(key).replace("~", "~0").replace("/", "~1")


def unescaped(token: str) -> str:
    """Return the key for a token of a JSON Pointer."""
    return token.replace("~1", "/").replace("~0", "~")


def keys_of(pointer: str) -> list[str]:
    """Return the keys that lead to the place."""
    return [unescaped(token) for token in pointer.split("/")[1:]]


def list_index(key: str) -> int | None:
    """Return the place in a list that a key means; None for what is no such place."""
    is_index = key.isascii() and key.isdigit() and len(key) <= _MOST_DIGITS
    return int(key) if is_index else None


def member(holder: object, key: str) -> object:
    """Return the value in a list or an object at a key; None if there is none."""
    if isinstance(holder, list):
        index = list_index(key)
        return holder[index] if index is not None and index < len(holder) else None
    return holder.get(key) if isinstance(holder, dict) else None


def value_at(document: object, pointer: str) -> object:
    """Return the value at a JSON Pointer; None if there is none."""
    for key in keys_of(pointer):
        document = member(document, key)
    return document


def filled(source: object, parts: Sequence[str], value: object) -> object:
    """Return a copy with a value at a path of keys and of places in lists; only what lies on the path is copied."""
    if not parts:
        return value
    key, *rest = parts
    at = list_index(key)
    if isinstance(source, list) and at is not None and at <= len(source):
        return [*source[:at], filled(source[at] if at < len(source) else None, rest, value), *source[at + 1 :]]
    known = source if isinstance(source, dict) else {}
    return {**known, key: filled(known.get(key), rest, value)}


def merged(target: Any, patch: Any, *, keep_null: bool = False) -> Any:
    """Return a document with a merge patch applied; `keep_null` keeps deletions, to merge two patches.

    Nothing that is given is changed, and what no patch touches is shared. Both are trees of JSON values.
    """
    if not isinstance(patch, dict):
        return patch
    outcome = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None and not keep_null:
            outcome.pop(key, None)
        else:
            outcome[key] = merged(outcome.get(key), value, keep_null=keep_null)
    return outcome
