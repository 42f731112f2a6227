"""Syntax trees of the Rego modules of a bundle, and what is asked of them; see `analysis` for what is kept of each."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache

from policyeng.bundle.analysis import AnalyzedRule, ModuleAnalysis, analysis_of
from policyeng.bundle.referenced_types import find_types
from policyeng.rego import Diagnostic, RegoError, parse_module
from policyeng.rego.syntax import Head, Module, Ref, Scalar, Var, dotted_name, walk
from policyeng.rego.syntax import Rule as RuleNode

_WORD = re.compile(r"[A-Za-z_]\w*")


@lru_cache(maxsize=256)
def tree_of(source: str, rego_v0: bool | None = None) -> Module:
    """Return the syntax tree of a module, which nothing may change; `rego_v0` as in `analysis_of`.

    Raises:
        RegoError: it does not parse.
    """
    if rego_v0 is not None:
        return parse_module("", source, 0 if rego_v0 else 1)
    try:
        return parse_module("", source, 1)
    except RegoError as error:
        as_v1 = error.diagnostics[0]
    try:
        return parse_module("", source, 0)
    except RegoError as error:
        as_v0 = error.diagnostics[0]
        if as_v1.offset > as_v0.offset:
            # It is meant as v1: as v0 it would be wrong sooner.
            raise RegoError(as_v1) from None
        message = f"it reads neither as Rego v1 ({_shorten(as_v1)}) nor as v0 ({_shorten(as_v0)})"
        raise RegoError(Diagnostic(as_v1.code, message, as_v1.source, as_v1.offset)) from None


def trees_of(modules: Iterable[tuple[str, str]], rego_v0: Collection[str], package: str) -> list[Module]:
    """Return the syntax trees of the modules of a package.

    Args:
        modules: (path, text) of those that may be of it.
        rego_v0: the paths of modules in Rego v0.
        package: without `data`.

    Raises:
        BundleError: a module does not parse.
    """
    return [
        tree_of(source, path in rego_v0)
        for path, source in modules
        if analysis_of(source, path in rego_v0, path).package == package
    ]


def brace_before(tree: Module, place: int) -> int | None:
    """Return where the brace is that comes before a place, with nothing but white space and comments between."""
    text = tree.source.text
    comments = [comment.start for comment in tree.comments if comment.start < place]
    end = len(text[:place].rstrip())
    while comments and comments[-1] > text.rfind("\n", 0, end):
        end = len(text[: comments.pop()].rstrip())
    return end - 1 if text[:end].endswith("{") else None


def names_read(tree: Module) -> Iterator[str]:
    """Yield every reference to `input` and `data`, as far as its parts are constant."""
    aliases = aliases_of(tree)
    heads = set[int]()
    for node in walk(tree.rules):
        if isinstance(node, Ref):
            name = dotted_name(node)
            heads.add(id(node.head))
        elif isinstance(node, Var) and id(node) not in heads:
            name = node.name
        else:
            continue
        root, dot, rest = name.partition(".")
        path = root if root in ("input", "data") else aliases.get(root)
        if path is not None:
            yield f"{path}{dot}{rest}"


def aliases_of(tree: Module) -> dict[str, str]:
    """Return by the name of an import the reference that it is, without keywords and versions."""
    imported = ((entry, dotted_name(entry.path)) for entry in tree.imports)
    return {
        entry.alias or path.rpartition(".")[2]: path
        for entry, path in imported
        if path.partition(".")[0] in ("input", "data")
    }


def _shorten(fault: Diagnostic) -> str:
    return f"line {fault.line}: {fault.message}"


def analyzed(tree: Module) -> ModuleAnalysis:
    """Return the analysis of a module by its syntax tree."""
    package = ".".join(str(part.value) for part in tree.package.path if isinstance(part, Scalar))
    # A further body of a rule begins behind its head.
    rules = tuple(_outline(rule, tree) for rule in tree.rules if rule.start <= rule.head.start)
    values = {node.value for node in walk([tree.imports, tree.rules]) if isinstance(node, Scalar)}
    texts = [value for value in values if isinstance(value, str)]
    words = frozenset(filter(_WORD.fullmatch, texts))
    reads = frozenset(names_read(tree))
    return ModuleAnalysis(tree.version == 0, package, rules, reads, words, frozenset(find_types(texts)))


def _outline(rule: RuleNode, tree: Module) -> AnalyzedRule:
    head = rule.head
    name = head.ref.head.name if isinstance(head.ref.head, Var) else ""
    return AnalyzedRule(name, "default" if rule.default else _form(head), tree.source.position(rule.start)[0])


def _form(head: Head) -> str:
    if head.args is not None:
        return "function"
    if head.ref.path:
        return "map"
    if head.key is not None:
        return "set"
    return "true" if isinstance(head.value, Scalar) and isinstance(head.value.value, bool) else "value"
