"""Which policies read the clock."""

from __future__ import annotations

import ast
import re

from policyeng.bundle.declaration import Policy
from policyeng.bundle.reaching import Reach

#: Modules that know neither clock nor chance nor the machine, but for `_MACHINE` in them.
_PURE = re.compile(
    r"(?:__future__|abc|base64|bisect|collections|dataclasses|datetime|decimal|enum|fractions|functools|hashlib|heapq"
    r"|ipaddress|itertools|json|math|numbers|operator|re|statistics|string|textwrap|typing|types|unicodedata"
    r"|urllib\.parse|zoneinfo)(?:\..*)?"
    r"|policyeng(?:\.bundle|\.facts.*|\.models.*)?"
)
#: What reads the machine's clock, files or input, or hangs on what else runs in the process.
_MACHINE = frozenset({"now", "today", "utcnow", "fromtimestamp", "open", "input", "id", "hash", "globals", "global"})


def reads_clock(policy: Policy, reach: Reach) -> bool:
    """Return whether a policy can read a clock: `as_of`, or in Python that of the machine.

    Args:
        policy: of a bundle.
        reach: what it can read of its input.
    """
    if policy.rules:
        # A document that is evaluated as it is has no clock; the compiler refuses builtins that read one.
        return reach.clock and policy.input_form == "policy"
    return reach.clock or not _is_pure(policy)


def _is_pure(policy: Policy) -> bool:
    """Whether Python imports nothing, and names nothing, by which it could learn more than it is given."""
    text = policy.python.text if policy.python else b""
    return bool(text) and all(map(_is_harmless, ast.walk(ast.parse(text))))


def _is_harmless(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        return all(_PURE.fullmatch(alias.name) for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        names = {alias.name for alias in node.names}
        return not node.level and bool(_PURE.fullmatch(node.module or ".")) and names.isdisjoint(_MACHINE)
    if isinstance(node, ast.Global | ast.Nonlocal):
        return False
    named = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return named not in _MACHINE and not (named.startswith("__") and named != "__name__")
