"""Which policies read the clock, and of which all that they do with it can be recorded."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from policyeng.bundle.dependencies import PolicyReach
from policyeng.bundle.policy_types import Policy
from policyeng.later import lazy_pattern

if TYPE_CHECKING:  # what reads bundles and works out what is stored with the built-in one is rarely needed
    from policyeng.bundle.dependencies import PolicyReach

#: Modules that know neither clock nor chance nor the machine, but for `_MACHINE` in them.
_PURE = lazy_pattern(
    r"(?:__future__|abc|base64|bisect|collections|dataclasses|datetime|decimal|enum|fractions|functools|hashlib|heapq"
    r"|ipaddress|itertools|json|math|numbers|operator|re2?|statistics|string|textwrap|typing|types|unicodedata"
    r"|urllib\.parse|zoneinfo)(?:\..*)?"
    r"|policyeng(?:\.bundle|\.facts.*|\.models.*|\.parsing\.json_pointer|\.redaction)?"
)

#: Names that read the machine's clock, files or input, or depend on the state of the process.
_MACHINE = frozenset({"now", "today", "utcnow", "fromtimestamp", "open", "input", "id", "hash", "globals", "global"})

#: Errors that do not reveal the type of a value.
_CAUGHT = frozenset({"ValueError", "KeyError", "IndexError", "StopIteration", "OverflowError", "ZeroDivisionError"})

#: Types of what can be filled later.
_COLLECTIONS = frozenset(
    {
        "dict",
        "list",
        "set",
        "defaultdict",
        "Counter",
        "OrderedDict",
        "deque",
        "ChainMap",
        "SimpleNamespace",
        "bytearray",
    }
)

#: Methods that change a collection.
_CHANGING = frozenset(
    {"add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "setdefault"}
    | {"subtract", "update", "move_to_end"}
)


def reads_clock(policy: Policy, reach: PolicyReach) -> bool:
    """Return whether a policy can read a clock: `as_of`, or in Python that of the machine.

    Args:
        policy: of a bundle.
        reach: what it can read of its input.
    """
    if policy.rules:
        # A document that is evaluated as it is has no clock; the compiler refuses builtins that read one.
        return reach.clock and policy.input_form == "policy"
    return reach.clock or not _is_pure(policy)


def is_recorded(policy: Policy) -> bool:
    """Return whether all that a policy does with `as_of` can be recorded while it is evaluated.

    In Python it must be pure, keep no state between evaluations, and not detect the recording clock: it does not use
    `type`, and catches only errors that values raise.
    """
    if policy.rules:
        return True
    tree = ast.parse(policy.python.text if policy.python else b"")
    kept = set(_names_of_module(tree))
    nodes = [*ast.walk(tree)]
    lasting = [node.value for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)]
    lasting += [one for node in nodes if isinstance(node, ast.arguments) for one in (*node.defaults, *node.kw_defaults)]
    is_keeping = any(map(_is_to_be_filled, lasting)) or any(_changes(node, kept) for node in nodes)
    return _is_pure(policy) and not is_keeping and not any(map(_is_noticing, nodes))


def _is_to_be_filled(value: ast.expr | None) -> bool:
    """Whether a value looks as if something is to be put into it: it is empty, or made by a call of a collection."""
    if isinstance(value, ast.Call):
        return (getattr(value.func, "id", "") or getattr(value.func, "attr", "")) in _COLLECTIONS
    return isinstance(value, ast.List | ast.Dict) and not (value.elts if isinstance(value, ast.List) else value.keys)


def _names_of_module(tree: ast.Module) -> Iterator[str]:
    """Return the names of objects that live as long as a module."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
        else:
            yield from (name.id for name in ast.walk(node) if isinstance(name, ast.Name))


def _is_noticing(node: ast.AST) -> bool:
    if isinstance(node, ast.ExceptHandler):
        caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
        return not all(isinstance(one, ast.Name) and one.id in _CAUGHT for one in caught)
    return isinstance(node, ast.Name) and node.id == "type"


def _changes(node: ast.AST, kept: Collection[str]) -> bool:
    """Whether something that lasts may be changed."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGING:
        return _root(node.func) in kept
    return (
        isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load) and _root(node) in kept
    )


def _root(node: ast.AST) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


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
