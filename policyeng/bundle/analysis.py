"""Analysis of Rego modules from their syntax trees: language version, package, rules and reads."""

from __future__ import annotations

from collections.abc import Callable

from policyeng.errors import BundleError
from policyeng.frozen import replace
from policyeng.named import NamedTuple

#: Modules whose analysis is kept in memory; a bundle rarely has as many.
_MOST_KEPT = 2048


class AnalyzedRule(NamedTuple):
    """One rule of a module: `form` is `set`, `value`, `true`, `map`, `function` or `default`."""

    name: str
    form: str
    line: int


class ModuleAnalysis(NamedTuple):
    """One Rego module.

    Attributes:
        rego_v0: written in Rego v0.
        package: without `data`.
        rules: in their order; several bodies of one head are one rule.
        reads: references to `input` and `data`, through imports too, as far as their parts are constant.
        words: the parts of references, and the texts, that are names.
        types: the lower-case ARM types, and namespaces, outside `facts.coverage.LISTED` that texts name.
    """

    rego_v0: bool
    package: str
    rules: tuple[AnalyzedRule, ...]
    reads: frozenset[str]
    words: frozenset[str]
    types: frozenset[str]


_kept: dict[tuple[str, bool | None], ModuleAnalysis] = {}
#: What keeps analyses that earlier runs stored, for when one is asked for.
_stored: list[Callable[[], None]] = []


def analysis_of(source: str, rego_v0: bool | None, place: str) -> ModuleAnalysis:
    """Return the analysis of a module, which is parsed once.

    Args:
        source: its text.
        rego_v0: whether it is Rego v0; None where it is not stated: a module that parses as v1 is v1, and any other v0.
        place: how messages name it.

    Raises:
        BundleError: it does not parse.
    """
    found = _kept.get((source, rego_v0))
    while found is None and _stored:
        _stored.pop()()
        found = _kept.get((source, rego_v0))
    if found is None:
        from policyeng.bundle.rego_trees import analyzed, tree_of  # what earlier runs analysed needs no parser
        from policyeng.rego import ModuleText, RegoError

        try:
            found = analyzed(tree_of(source, rego_v0))
        except RegoError as error:
            fault = replace(error.diagnostics[0], source=ModuleText(place, source))
            where = f"{place}:{fault.line}:{fault.column}"
            raise BundleError(str(fault).removeprefix(f"{where}: "), place=(where,)) from None
        add_analysis(source, rego_v0, found)
    return found


def add_analysis(source: str, rego_v0: bool | None, analysis: ModuleAnalysis) -> None:
    """Add an analysis that an earlier run stored."""
    if len(_kept) >= _MOST_KEPT:
        _kept.clear()
    _kept[source, rego_v0] = _kept[source, analysis.rego_v0] = analysis


def set_loader(keep_all: Callable[[], None]) -> None:
    """Set a function that loads stored analyses when the first unknown one is needed."""
    _stored[:] = [keep_all]


def is_reference_to(read: str, package: str) -> bool:
    """Return whether a reference below `data` leads to a package, above or below it; names are without `data`."""
    return not read or f"{read}.".startswith(f"{package}.") or f"{package}.".startswith(f"{read}.")
