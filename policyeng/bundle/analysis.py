"""What the syntax tree of a Rego module shows before anything is compiled: language version, package, rules, reads."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from policyeng.errors import BundleError
from policyeng.rego import Diagnostic, RegoError, parse_module
from policyeng.rego.syntax import Head, Module, Ref, Scalar, Var, dotted_name, walk
from policyeng.rego.syntax import Rule as RuleNode

#: An analysis as JSON.
Stored: TypeAlias = tuple[bool, str, list[tuple[str, str, int]], list[str], list[str]]

_WORD = re.compile(r"[A-Za-z_]\w*")
#: Modules whose analysis is kept in memory; a bundle rarely has as many.
_MOST_KEPT = 2048


class Rule(NamedTuple):
    """One rule of a module: `form` is `set`, `value`, `true`, `map`, `function` or `default`."""

    name: str
    form: str
    line: int


class Analysis(NamedTuple):
    """One Rego module.

    Attributes:
        rego_v0: written in Rego v0.
        package: without `data`.
        rules: in their order; several bodies of one head are one rule.
        reads: references to `input` and `data`, through imports too, as far as their parts are constant.
        words: the parts of references, and the texts, that are names.
    """

    rego_v0: bool
    package: str
    rules: tuple[Rule, ...]
    reads: frozenset[str]
    words: frozenset[str]

    @classmethod
    def load(cls, stored: Stored) -> Analysis:
        """Return the analysis that `dump` gave."""
        rego_v0, package, rules, reads, words = stored
        return cls(rego_v0, package, tuple(Rule(*rule) for rule in rules), frozenset(reads), frozenset(words))

    def dump(self) -> Stored:
        """Return it as JSON."""
        rules = [(rule.name, rule.form, rule.line) for rule in self.rules]
        return self.rego_v0, self.package, rules, sorted(self.reads), sorted(self.words)


_kept: dict[tuple[str, bool | None], Analysis] = {}


def analysis_of(source: str, rego_v0: bool | None, place: str) -> Analysis:
    """Return the analysis of a module, which is parsed once.

    Args:
        source: its text.
        rego_v0: whether it is Rego v0; None where nothing says so: a module that parses as v1 is v1, and any other v0.
        place: how messages name it.

    Raises:
        BundleError: it does not parse.
    """
    found = _kept.get((source, rego_v0))
    if found is None:
        try:
            found = _analyzed(tree_of(source, rego_v0))
        except RegoError as error:
            fault = error.diagnostics[0]
            raise BundleError(f"the module cannot be read: {fault.message}", place=(f"{place}:{fault.line}",)) from None
        keep(source, rego_v0, found)
    return found


def keep(source: str, rego_v0: bool | None, analysis: Analysis) -> None:
    """Keep an analysis that an earlier run stored."""
    if len(_kept) >= _MOST_KEPT:
        _kept.clear()
    _kept[source, rego_v0] = _kept[source, analysis.rego_v0] = analysis


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
        message = f"it reads neither as Rego v1 ({_short(as_v1)}) nor as v0 ({_short(as_v0)})"
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


def leads_to(read: str, package: str) -> bool:
    """Return whether a reference below `data` leads to a package, above or below it; names are without `data`."""
    return not read or f"{read}.".startswith(f"{package}.") or f"{package}.".startswith(f"{read}.")


def references_of(tree: Module) -> Iterator[tuple[Ref | Var, str]]:
    """Yield every reference to `input` and `data`, and its name as far as its parts are constant."""
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
            yield node, f"{path}{dot}{rest}"


def aliases_of(tree: Module) -> dict[str, str]:
    """Return by the name of an import the reference that it is, without keywords and versions."""
    imported = ((entry, dotted_name(entry.path)) for entry in tree.imports)
    return {
        entry.alias or path.rpartition(".")[2]: path
        for entry, path in imported
        if path.partition(".")[0] in ("input", "data")
    }


def _short(fault: Diagnostic) -> str:
    return f"line {fault.line}: {fault.message}"


def _analyzed(tree: Module) -> Analysis:
    package = ".".join(part.value for part in tree.package.path if isinstance(part, Scalar))
    # A further body of a rule begins behind its head.
    rules = tuple(_outlined(rule, tree) for rule in tree.rules if rule.start <= rule.head.start)
    texts = {node.value for node in walk([tree.imports, tree.rules]) if isinstance(node, Scalar)}
    words = frozenset(text for text in texts if isinstance(text, str) and _WORD.fullmatch(text))
    reads = frozenset(name for _, name in references_of(tree))
    return Analysis(tree.version == 0, package, rules, reads, words)


def _outlined(rule: RuleNode, tree: Module) -> Rule:
    head = rule.head
    name = head.ref.head.name if isinstance(head.ref.head, Var) else ""
    return Rule(name, "default" if rule.default else _form(head), tree.source.position(rule.start)[0])


def _form(head: Head) -> str:
    if head.args is not None:
        return "function"
    if head.ref.path:
        return "map"
    if head.key is not None:
        return "set"
    return "true" if isinstance(head.value, Scalar) and isinstance(head.value.value, bool) else "value"
