"""The algebra of Azure permissions: which actions a role's permission blocks grant.

A block grants what its `actions` match and its `notActions` do not; a role grants what any of its blocks grants. In a
pattern `*` stands for any run of characters, also none and also with slashes, and `/*/` also for a single slash, so
`computes/*/write` takes `computes/write` in. Case never counts.
Source: learn.microsoft.com, "Understand Azure role definitions", actions, notActions, dataActions, notDataActions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from policyeng.errors import InputError
from policyeng.models import JsonObject, lowered

_COMPUTES = "Microsoft.MachineLearningServices/workspaces/computes"

#: The actions that create, change, delete, start or stop a compute.
COMPUTE_MANAGEMENT_ACTIONS = (
    f"{_COMPUTES}/write",
    f"{_COMPUTES}/delete",
    f"{_COMPUTES}/start/action",
    f"{_COMPUTES}/stop/action",
    f"{_COMPUTES}/restart/action",
)


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> re.Pattern[str]:
    """A regular expression for a lower-case pattern that never backtracks over more than its last `*`.

    The first place where the text between two `*` fits is as good as any later one, because a `*` follows it; so each
    is tried once (an atomic group). A `*` between slashes gives up the second slash and asks for one before the rest:
    that slash may be the first one, which is how `/*/` stands for a single `/`.
    """
    first, *rest = pattern.split("*")
    expression, before = re.escape(first), first
    for position, literal in enumerate(rest, start=1):
        between_slashes = before.endswith("/") and literal.startswith("/")
        fixed = "(?<=/)" + re.escape(literal[1:]) if between_slashes else re.escape(literal)
        expression += f".*{fixed}" if position == len(rest) else f"(?>.*?{fixed})"
        before = literal
    return re.compile(expression, re.DOTALL)


def action_matches(pattern: str, action: str) -> bool:
    """Say whether a pattern stands for an action, in time linear in both for each `*`."""
    return _compiled(lowered(pattern)).fullmatch(lowered(action)) is not None


def covered(pattern: str, by_patterns: Iterable[str]) -> bool:
    """Say whether every action that `pattern` stands for is matched by one of `by_patterns`, over all strings.

    One word decides it: the pattern with each `*` replaced by a character that occurs in none of the patterns. What
    matches that word can have met the character only with a `*`, and so matches whatever else stands in its place,
    also nothing; and where the character stood between slashes, also the single slash. Hence one pattern covers all
    of it or the word itself is an action that none covers.
    """
    others = [lowered(other) for other in by_patterns]
    pattern = lowered(pattern)
    used = set(pattern).union(*others)
    fresh = next(character for character in map(chr, range(0x110000)) if character not in used)
    word = pattern.replace("*", fresh)
    return any(_compiled(other).fullmatch(word) for other in others)


def _patterns(block: JsonObject, key: str) -> list[str]:
    """The patterns under one key of a permission block; absent and null are none.

    Raises:
        InputError: the key holds anything but a list of strings.
    """
    patterns = block.get(key) or []
    if not isinstance(patterns, list) or not all(isinstance(pattern, str) for pattern in patterns):
        raise InputError(f"`{key}` of a permission is not a list of strings", remedy="give a list of action patterns")
    return patterns


def grants(permissions: Iterable[JsonObject], action: str, *, data_action: bool = False) -> bool:
    """Say whether permission blocks grant an action.

    Args:
        permissions: objects with `actions`, `notActions`, `dataActions` and `notDataActions`, any of them absent.
        action: one action in full; a `*` in it is taken as that character.
        data_action: ask the data plane (`dataActions` minus `notDataActions`).

    Raises:
        InputError: a block does not hold lists of strings.
    """
    given, taken = ("dataActions", "notDataActions") if data_action else ("actions", "notActions")
    return any(
        any(action_matches(pattern, action) for pattern in _patterns(block, given))
        and not any(action_matches(pattern, action) for pattern in _patterns(block, taken))
        for block in permissions
    )


def manages_compute(
    permissions: Sequence[JsonObject], actions: Iterable[str] = COMPUTE_MANAGEMENT_ACTIONS
) -> list[str]:
    """List which of some actions, by default those that manage a compute, permission blocks grant, in their order.

    Raises:
        InputError: a block does not hold lists of strings.
    """
    return [action for action in actions if grants(permissions, action)]
