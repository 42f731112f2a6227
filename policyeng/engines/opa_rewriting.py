"""Rewrite Rego for an OPA server: reject modules that call the host, and move modules to other paths of `data`."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from policyeng.bundle.rego_trees import aliases_of, tree_of
from policyeng.errors import EngineError
from policyeng.rego import RegoError
from policyeng.rego.builtins import REFUSED
from policyeng.rego.syntax import Call, Module, Ref, Var, dotted_name, walk

#: Builtins for tests and debugging.
_FOR_TESTS = frozenset({"print", "trace"})
#: A replacement in a text: start, end and new text.
TextEdit = tuple[int, int, str]


def syntax_of(path: str, source: str, *, rego_v0: bool = False) -> Module:
    """Return the syntax tree of a module.

    Raises:
        EngineError: it is not Rego.
    """
    try:
        return tree_of(source, rego_v0)
    except RegoError as error:
        fault = error.diagnostics[0]
        raise EngineError(fault.message, place=(f"{path}:{fault.line}",)) from None


@lru_cache(maxsize=1024)  # called for the same modules with every snapshot
def require_pure(path: str, source: str, rego_v0: bool = False) -> None:
    """Reject a module that calls the host, as the embedded engine does.

    Raises:
        EngineError: the module names such a builtin, or is not Rego.
    """
    tree = syntax_of(path, source, rego_v0=rego_v0)
    aliases = aliases_of(tree)
    for node in walk(tree.rules):
        name = dotted_name(node) if isinstance(node, Ref) else ""
        if isinstance(node, Call) and dotted_name(node.operator) in _FOR_TESTS:
            name = dotted_name(node.operator)
        elif name not in REFUSED:
            continue
        if name.partition(".")[0] not in aliases:
            line, _ = tree.source.position(node.start)
            message = f"`{name}` is not available to policies, which can read only their input"
            raise EngineError(message, place=(f"{path}:{line}",))


def package_root(path: str, source: str) -> str:
    """Return the first part of a module's package.

    Raises:
        EngineError: it is not Rego.
    """
    return dotted_name(syntax_of(path, source).package).split(".")[1]


def relocated(path: str, source: str, prefix: str) -> str:
    """Return a module with its package and its references to `data` below a dotted `prefix`; lines do not move.

    Raises:
        EngineError: it is not Rego.
    """
    tree = syntax_of(path, source)
    package = tree.package.path[0].start
    references = (node for node in walk([tree.imports, tree.rules]) if isinstance(node, Ref))
    ends = (ref.head.end for ref in references if isinstance(ref.head, Var) and ref.head.name == "data")
    return edited(source, [(package, package, f"{prefix}."), *((end, end, f".{prefix}") for end in ends)])


def edited(source: str, edits: Iterable[TextEdit]) -> str:
    """Return a text with replacements that do not overlap; duplicates are applied once."""
    parts, position = list[str](), 0
    for start, end, text in sorted(set(edits)):
        parts += source[position:start], text
        position = end
    return "".join((*parts, source[position:]))
