"""Modules of policies of others that cannot be compiled: what is left out with them, and what is known of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from policyeng.bundle.analysis import ModuleAnalysis, analysis_of
from policyeng.bundle.files import text_of
from policyeng.bundle.header import rego_metadata
from policyeng.bundle.manifest import bundle_yaml
from policyeng.bundle.rego_trees import analyzed
from policyeng.errors import BundleError
from policyeng.later import lazy_pattern
from policyeng.rego.paths import read_path, split_package
from policyeng.rego.syntax import Module, Rule, Var, walk

#: What of a module that does not parse is known by its lines: the package, and the names of rules.
_PACKAGE = lazy_pattern(r"""^[ \t]*package[ \t]++([A-Za-z_](?:[\w.]|\["[^"\\\n]*+"\])*+)""", 0)
_RULE = lazy_pattern(r"(?:default[ \t]+)?([A-Za-z_]\w*)", 0)
_NO_WORD = lazy_pattern(r"\W", 0)


class LeftOutModule(NamedTuple):
    """A module that is not evaluated.

    Attributes:
        path: in the bundle.
        package: without `data`, such as `main` or `hooks["test.target"]`.
        names: of its rules; for one that does not parse, the words that lines begin with.
        reason: with the file and the line.
    """

    path: str
    package: str
    names: frozenset[str]
    reason: str

    @classmethod
    def of(cls, path: str, analysis: ModuleAnalysis, reason: str) -> LeftOutModule:
        """Return a module that parses, and is left out for a reason."""
        return cls(path, analysis.package, frozenset(rule.name for rule in analysis.rules), reason)

    @classmethod
    def unreadable(cls, path: PurePosixPath, source: str, error: BundleError) -> LeftOutModule:
        """Return a module that does not parse."""
        lines = source.splitlines()
        package = next((match[1] for line in lines if (match := _PACKAGE.match(line))), "")
        try:
            split_package(package)
        except ValueError:
            package = f"_{_NO_WORD.sub('_', path.stem)}".removeprefix("_" if path.stem[:1].isalpha() else "")
        names = {match[1] for line in lines if (match := _RULE.match(line))} - {"package", "import"}
        return cls(str(path), package, frozenset(names), f"the module cannot be compiled: {first_line(error)}")

    def is_needed_by(self, analysis: ModuleAnalysis, local_names: Collection[str]) -> bool:
        """Return whether a module reads a rule of this one.

        Args:
            analysis: of the module.
            local_names: the names that its bodies and heads use, some of which may be rules of its package.
        """
        if analysis.package == self.package and not self.names.isdisjoint(local_names):
            return True
        package = ".".join(split_package(self.package))  # the names of a reference are separated by dots alone
        for read in analysis.reads:
            root, _, path = read.partition(".")
            if root != "data":
                continue
            if f"{package}.".startswith(f"{path}.") or not path:
                return True
            below = path.removeprefix(f"{package}.") if path.startswith(f"{package}.") else ""
            if below.partition(".")[0] in self.names:
                return True
        return False


def first_line(error: Exception) -> str:
    """Return the first line of a message, without the excerpt below it."""
    return str(error).partition("\n")[0]


def unreadable_modules(
    root: Path, tree: Mapping[PurePosixPath, bytes], is_v0: Callable[[PurePosixPath], bool | None]
) -> Iterator[LeftOutModule]:
    """Yield the modules of a root that do not parse, or whose METADATA does not."""
    for path, content in tree.items():
        if path.suffix != ".rego":
            continue
        source, place = text_of(content, root / path), str(root / path)
        try:
            analysis_of(source, is_v0(path), place)
            if (block := rego_metadata(source)) is not None:
                bundle_yaml(block, place)
        except BundleError as error:
            yield LeftOutModule.unreadable(path, source, error)


def faults_of(rules: Iterable[str], modules: Iterable[LeftOutModule]) -> list[str]:
    """Return why rules, by their paths such as `data.main.deny`, are not whole: modules with parts of them."""
    paths = [read_path(path) for path in rules]
    return [
        module.reason
        for module in modules
        if any(split_package(module.package) == path[:-1] and path[-1] in module.names for path in paths)
    ]


def without_dependents(
    modules: Mapping[str, Module], left_out: list[LeftOutModule], foreign: Mapping[str, str]
) -> dict[str, Module]:
    """Return the modules that can be evaluated; what is left out takes with it what reads its rules.

    Args:
        modules: as parsed, by file.
        left_out: what is left out already; what depends on it is added.
        foreign: the path in the bundle of each file of the policies of others; no other module is left out.
    """
    remaining = {file: module for file, module in modules.items() if foreign.get(file) not in _paths(left_out)}
    is_complete = not left_out
    while not is_complete:
        is_complete = True
        for file, module in list(remaining.items()):
            analysis = analyzed(module)
            names = _local_names(module)
            cause = next((one for one in left_out if one.is_needed_by(analysis, names)), None)
            if cause is not None and file in foreign:
                reason = f"{file}: it depends on `{cause.path}`, which is left out: {cause.reason}"
                left_out.append(LeftOutModule.of(foreign[file], analysis, reason))
                del remaining[file]
                is_complete = False
    return remaining


def _paths(modules: Iterable[LeftOutModule]) -> set[str]:
    return {module.path for module in modules}


def _local_names(module: Module) -> set[str]:
    """Return the names that bodies and heads use, without those of the rules that they define."""
    names: set[str] = set()
    for rule in walk(module.rules):
        if isinstance(rule, Rule):
            head = rule.head
            parts = [rule.body, head.args or [], head.ref.path, head.key, head.value]
            names |= {node.name for node in walk(parts) if isinstance(node, Var)}
    return names
