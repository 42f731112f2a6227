"""The algebra of Azure permissions: which actions a role's permission blocks grant.

A block grants what its `actions` match and its `notActions` do not; a role grants what any of its blocks grants. In a
pattern `*` matches any characters, also none and also slashes, and `/*/` also matches a single slash, so
`computes/*/write` includes `computes/write`. Matching ignores case.
Source: learn.microsoft.com, "Understand Azure role definitions", actions, notActions, dataActions, notDataActions.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise

from policyeng.facts.words import fold, get_inside
from policyeng.models import JsonObject, lowered

#: By plane, the keys of a permission block: what it gives, and what it takes back.
_CONTROL_PLANE = ("actions", "notActions")
_DATA_PLANE = ("dataActions", "notDataActions")


@lru_cache(maxsize=4096)
def _parts(pattern: str) -> tuple[str, tuple[tuple[str, int], ...]]:
    """Split a pattern at each `*`; what follows one has the number of characters that it may share with what precedes.

    A `*` between slashes can match nothing, together with one of the slashes.
    """
    texts = pattern.split("*")
    shared = (int(before.endswith("/") and text.startswith("/")) for before, text in pairwise(texts))
    return texts[0], tuple(zip(texts[1:], shared, strict=True))


def _fits(pattern: str, action: str) -> bool:
    """Check a lower-case action against a lower-case pattern, in linear time.

    The first place where the text between two `*` fits is as good as any later one, because a `*` follows it.
    """
    first, rest = _parts(pattern)
    if not rest:
        return first == action
    if not action.startswith(first):
        return False
    position = len(first)
    for text, shared in rest[:-1]:
        found = action.find(text, position - shared)
        if found < 0:
            return False
        position = found + len(text)
    last, shared = rest[-1]
    return action.endswith(last, position - shared)


def action_matches(pattern: str, action: str) -> bool:
    """Return whether a pattern matches an action, in linear time."""
    return _fits(lowered(pattern), lowered(action))


def covered(pattern: str, by_patterns: Iterable[str]) -> bool:
    """Return whether every action that `pattern` matches is matched by one of `by_patterns`, over all strings.

    One word decides it: the pattern with each `*` replaced by a character that occurs in none of the patterns. A
    pattern that matches that word can match the character only with a `*`, and so matches any other text in its place,
    also nothing; and for a character between slashes, also a single slash. So either one pattern covers everything,
    or the word itself is an action that no pattern covers.
    """
    others = [lowered(other) for other in by_patterns]
    pattern = lowered(pattern)
    used = set(pattern).union(*others)
    fresh = next(character for character in map(chr, range(0x110000)) if character not in used)
    word = pattern.replace("*", fresh)
    return any(_fits(other, word) for other in others)


def granted(permissions: object, action: str, *, data_action: bool = False) -> bool | None:
    """Return whether permission blocks grant an action; blocks add up.

    None if it depends on the condition of a block, or on invalid values: the permissions are not a list, a block is
    not an object, or its patterns are not lists of strings (absent and null are none).

    Args:
        permissions: objects with `actions`, `notActions`, `dataActions`, `notDataActions` and `condition`.
        action: one action in full; a `*` in it is taken as that character.
        data_action: use the data plane (`dataActions` minus `notDataActions`).
    """
    if not isinstance(permissions, list | tuple):
        return None
    plane = _DATA_PLANE if data_action else _CONTROL_PLANE
    results = {_granted(block, action, plane) for block in permissions}
    return True if True in results else None if None in results else False


def _granted(block: object, action: str, plane: tuple[str, str]) -> bool | None:
    if not isinstance(block, dict) or not _is_readable(block, plane):
        return None
    given, taken = (any(action_matches(pattern, action) for pattern in block.get(key) or ()) for key in plane)
    if taken or not given:
        return False
    return None if is_conditional(block) else True


def is_sound(block: object) -> bool:
    """Return whether the actions and notActions of a permission block are valid: lists of strings, null or absent."""
    return isinstance(block, dict) and _is_readable(block, _CONTROL_PLANE)


def _is_readable(block: JsonObject, keys: Iterable[str]) -> bool:
    lists = [block[key] for key in keys if block.get(key) is not None]
    return all(isinstance(one, list) and all(isinstance(pattern, str) for pattern in one) for one in lists)


def is_conditional(document: object) -> bool:
    """Return whether a permission block or the properties of an assignment have a condition; any non-string counts.

    Source: learn.microsoft.com, "What is Azure attribute-based access control (Azure ABAC)?", conditions.
    """
    condition = get_inside(document, "condition")
    return condition is not None and not (isinstance(condition, str) and fold(condition) is None)
