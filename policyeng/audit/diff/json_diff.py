"""Differences of JSON documents, and documents with single differences reverted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from policyeng.audit.diff.records import PathChange
from policyeng.models import JsonObject
from policyeng.parsing.json_pointer import escaped, filled, keys_of, member
from policyeng.redaction import masked

#: What stands where nothing does; null is something.
NOTHING = object()


class JsonDifference(NamedTuple):
    """A differing place, as a JSON Pointer, with the values of both sides (or `NOTHING`)."""

    path: str
    before: object
    after: object


def edits(before: object, after: object, at: str = "") -> Iterator[JsonDifference]:
    """Yield the deepest places where two JSON values differ. Lists of different lengths are one place."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({**before, **after}):
            yield from edits(before.get(key, NOTHING), after.get(key, NOTHING), f"{at}/{escaped(key)}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from edits(one, other, f"{at}/{index}")
    elif type(before) is not type(after) or before != after:  # 1 and true are equal to Python, and so are 1 and 1.0
        yield JsonDifference(at, before, after)


def reverted(after: JsonObject, edit: JsonDifference) -> JsonObject:
    """Return the later document with one difference reverted. Unaffected parts are shared."""
    keys = keys_of(edit.path)
    made = _without(after, keys) if edit.before is NOTHING else filled(after, keys, edit.before)
    return made if isinstance(made, dict) else after  # what differs between two objects lies below them


def _without(document: object, keys: list[str]) -> object:
    """Return a copy without the member at the path of keys."""
    key, *rest = keys
    if rest:
        return filled(document, [key], _without(member(document, key), rest))
    return {name: value for name, value in document.items() if name != key} if isinstance(document, dict) else document


def mask_difference(edit: JsonDifference) -> PathChange:
    """Return a difference for reports, with masked secrets."""
    change = "came" if edit.before is NOTHING else "went" if edit.after is NOTHING else "changed"
    before, after = (None if side is NOTHING else masked(side, edit.path) for side in (edit.before, edit.after))
    return PathChange(path=edit.path, change=change, before=before, after=after)
