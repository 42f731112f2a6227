"""Static analysis of which parts of its input a policy can read; the result is never too small."""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping

from policyeng.bundle.analysis import ModuleAnalysis, analysis_of, is_reference_to
from policyeng.bundle.policy_types import Policy
from policyeng.bundle.referenced_types import find_referenced, types_in_python
from policyeng.later import lazy_pattern
from policyeng.named import NamedTuple

#: The members of `input.snapshot` that no change of a resource changes.
_STATED = frozenset(
    {"scope", "takenAt", "taken_at", "approvals", "quotas", "metrics", "principals", "evidence", "incomplete"}
    | {"by_series", "by_measured", "by_principal"}
)
#: What a snapshot states and collectors may fail to read, with how policies name it: as a member or a key.
_COLLECTED = {"metrics": ("metrics", "by_measured"), "quotas": ("quotas",)}
_IN_PYTHON = {name: lazy_pattern(rf"[.\"'](?:{'|'.join(named)})\b(?! import)") for name, named in _COLLECTED.items()}
#: Modules that Python policies may import and that never see a policy's input, but what it gives them.
_OURS = ("policyeng.facts", "policyeng.models")
#: What of a policy's input the facts of `PolicyReach` are about, by attribute.
_WORKSPACE, _CLOCK, _SNAPSHOT = "workspace", "as_of", "snapshot"
#: Ways to an attribute that do not name it.
_VEILED = frozenset(
    {"getattr", "vars", "eval", "exec", "attrgetter", "fields", "asdict", "astuple", "format", "format_map"}
)


class PolicyReach(NamedTuple):
    """The input that a policy can read in addition to the evaluated resource and its parameters.

    Attributes:
        workspace: the workspace of the evaluated resource.
        clock: `as_of`.
        others: other resources in the snapshot.
        workloads: workloads among that, by their own name.
        collected: `metrics` and `quotas`, where its text or one that it leads to names them at all.
        types: ARM types outside `facts.coverage.LISTED` that it may look up, in lower case, and namespaces.
    """

    workspace: bool
    clock: bool
    others: bool
    workloads: bool
    collected: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()


EVERYTHING = PolicyReach(workspace=True, clock=True, others=True, workloads=True, collected=frozenset(_COLLECTED))


def reaches_of(
    policies: Iterable[Policy], modules: Iterable[tuple[str, str]], rego_v0: Collection[str]
) -> tuple[PolicyReach, ...]:
    """Return what each policy can read.

    `modules` are those of its bundle, and `rego_v0` the paths of those in Rego v0.
    """
    packages: dict[str, list[ModuleAnalysis]] = {}
    for path, source in modules:
        analysis = analysis_of(source, path in rego_v0, path)
        packages.setdefault(analysis.package, []).append(analysis)
    reads = {package: _Reads.of(analyses, packages) for package, analyses in packages.items()}
    return tuple(_in_rego(policy.package, reads) if policy.rules else _in_python(policy) for policy in policies)


class _Reads(NamedTuple):
    """What the modules of a package name: parts of the input, such as `snapshot.by_id`, and packages."""

    inputs: frozenset[str]
    packages: frozenset[str]
    words: frozenset[str]
    types: frozenset[str]

    @classmethod
    def of(cls, analyses: Iterable[ModuleAnalysis], packages: Iterable[str]) -> _Reads:
        """Return the reads of modules; its packages are those at, above or below a reference."""
        reads = [read.partition(".") for analysis in analyses for read in analysis.reads]
        named = {name for root, _, name in reads if root == "data"}
        led = frozenset(package for package in packages if any(is_reference_to(name, package) for name in named))
        words = frozenset(word for analysis in analyses for word in analysis.words)
        types = frozenset(kind for analysis in analyses for kind in analysis.types)
        return cls(frozenset(name for root, _, name in reads if root == "input"), led, words, types)


def _in_rego(package: str, reads: Mapping[str, _Reads]) -> PolicyReach:
    """Return what is reached from a package, through all the packages that it names."""
    seen, waiting, inputs, words, types = set[str](), [package], set[str](), set[str](), set[str]()
    while waiting:
        here = waiting.pop()
        if here not in seen and here in reads:
            seen.add(here)
            inputs |= reads[here].inputs
            words |= reads[here].words
            types |= reads[here].types
            waiting += reads[here].packages
    looked_up = frozenset((*types, *find_referenced(words)))
    if "" in inputs:
        return EVERYTHING._replace(types=looked_up)
    parts = [tuple(name.split(".")) for name in inputs]
    collected = frozenset(name for name, named in _COLLECTED.items() if not words.isdisjoint(named))
    of_snapshot = {part[1:2] for part in parts if part[0] == _SNAPSHOT}
    return _find_reachable({part[0] for part in parts}, of_snapshot, collected)._replace(types=looked_up)


def _find_reachable(members: set[str], of_snapshot: set[tuple[str, ...]], collected: frozenset[str]) -> PolicyReach:
    return PolicyReach(
        workspace=_WORKSPACE in members,
        clock=_CLOCK in members,
        others=any(not name or name[0] not in _STATED for name in of_snapshot),
        workloads=("workloads",) in of_snapshot,
        collected=collected,
    )


def _in_python(policy: Policy) -> PolicyReach:
    """Return what the text of a policy's module names; everything where it can reach what it does not name."""
    text = policy.python.text if policy.python else b""
    tree = ast.parse(text)
    if not (text and _is_plain(tree)):
        return EVERYTHING._replace(types=types_in_python(tree))
    read = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    further = [node for node in read if isinstance(node.value, ast.Attribute) and node.value.attr == _SNAPSHOT]
    collected = frozenset(name for name, named in _IN_PYTHON.items() if named.search(text.decode()))
    of_snapshot: set[tuple[str, ...]] = {(node.attr,) for node in further}
    if len(further) < sum(node.attr == _SNAPSHOT for node in read):  # it is given away whole
        of_snapshot.add(())
    return _find_reachable({node.attr for node in read}, of_snapshot, collected)._replace(types=types_in_python(tree))


def _is_plain(tree: ast.AST) -> bool:
    """Check whether everything that a module reads is visible in its text."""
    nodes = list(ast.walk(tree))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    names |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    is_veiled = any(name in _VEILED or name.startswith("__") for name in names)
    is_veiled = is_veiled or any(isinstance(node, ast.MatchClass) for node in nodes)
    return not is_veiled and all(map(_is_known, _imported(nodes)))


def _imported(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "" if node.level else node.module or ""


def _is_known(name: str) -> bool:
    """Return whether what a module imports can read no more of an input than it is given."""
    top = name.partition(".")[0]
    return name in ("policyeng", "policyeng.bundle") or name.startswith(_OURS) or top in sys.stdlib_module_names
