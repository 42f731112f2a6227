"""Static analysis of policies: the version, package and rules of Rego modules, and what a policy can read."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from policyeng.bundle.policy_types import Policy
from policyeng.errors import BundleError
from policyeng.facts.coverage import SPELLED, TYPE
from policyeng.later import lazy_pattern
from policyeng.models import lowered
from policyeng.rego.paths import split_package

if TYPE_CHECKING:
    from policyeng.azure_policy.effects import CompiledPolicy

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
        package: without `data`, as Rego writes it: `hooks["test.target"]`.
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
#: What keeps analyses that earlier runs stored, for when one is needed.
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
    if "[" in package:  # the names of a reference are separated by dots alone
        package = ".".join(split_package(package))
    return not read or f"{read}.".startswith(f"{package}.") or f"{package}.".startswith(f"{read}.")


_TYPE = lazy_pattern(TYPE)
_NAMESPACE = lazy_pattern(r"microsoft\.\w+")
#: Namespaces of types that every snapshot lists, and of scopes; alone they name no other type.
_KNOWN = frozenset((*(kind.partition("/")[0] for kind in SPELLED), "microsoft.billing", "microsoft.management"))
#: What ends the name of an action, which looks like a type otherwise.
_ACTIONS = frozenset({"action", "delete", "read", "write"})
#: By members of resources that contain an id, the type of what has it.
_REFERENCES = {
    "applicationInsights": "microsoft.insights/components",
    "containerRegistry": "microsoft.containerregistry/registries",
    "keyVault": "microsoft.keyvault/vaults",
    "keyVaultArmId": "microsoft.keyvault/vaults",
    "primaryUserAssignedIdentity": "microsoft.managedidentity/userassignedidentities",
    "privateEndpoint": "microsoft.network/privateendpoints",
    "storageAccount": "microsoft.storage/storageaccounts",
}

#: What in the text of a Python module may name a type, or a namespace.
_NAMED = lazy_pattern(r"""["'](?:[^"'\n]*providers)?/?([A-Za-z]\w*+\.[\w./]++)""")
_REFERRING = lazy_pattern(rf"\b(?:{'|'.join(_REFERENCES)})\b")


def find_types(texts: Iterable[str]) -> Iterator[str]:
    """Yield the lower-case types, and namespaces without one, that texts name, also as parts of ids."""
    for text in texts:
        parts = lowered(text).strip("/").split("/")
        if "providers" in parts[:-1]:
            parts = parts[len(parts) - parts[::-1].index("providers") :]
            parts = [parts[0], *parts[1::2]]
        kind = "/".join(parts)
        if kind not in SPELLED and kind not in _KNOWN and parts[-1] not in _ACTIONS:
            yield from (kind,) if _TYPE.fullmatch(kind) or _NAMESPACE.fullmatch(kind) else ()


def find_referenced(words: Iterable[str]) -> Iterator[str]:
    """Yield the lower-case types of what a policy looks up by the ids in members of resources, from the words in it."""
    known = frozenset(words)
    if "by_id" in known:
        yield from (_REFERENCES[word] for word in known & _REFERENCES.keys())


def names_types(policies: Iterable[Policy], modules: Iterable[ModuleAnalysis]) -> bool:
    """Return whether any policy may name a type that it looks up, which takes less time than to find out which."""
    policies = tuple(policies)
    if any(policy.azure is not None and policy.azure.looks_up for policy in policies):
        return True
    if any(module.types or not module.words.isdisjoint(_REFERENCES) for module in modules):
        return True
    texts = (policy.python.text.decode(errors="replace") for policy in policies if policy.python)
    return any(_REFERRING.search(text) or any(find_types(_NAMED.findall(text))) for text in texts)


def types_in_python(tree: ast.AST) -> frozenset[str]:
    """Return the types that a Python module names, without those in headers of policies."""
    nodes = list(_outside_headers(tree))
    texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    words = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return frozenset((*find_types(texts), *find_referenced(texts | words)))


def _outside_headers(tree: ast.AST) -> Iterator[ast.AST]:
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        headers = node.decorator_list if isinstance(node, ast.FunctionDef) else []
        waiting += (below for below in ast.iter_child_nodes(node) if below not in headers)
        waiting += (part for header in headers for part in ast.walk(header) if isinstance(part, ast.Lambda))


#: The members of `input.snapshot` that no change of a resource changes.
_STATED = frozenset(
    {"scope", "takenAt", "taken_at", "approvals", "quotas", "metrics", "principals", "evidence", "incomplete"}
    | {"by_series", "by_measured", "by_principal"}
)
#: What a snapshot states and collectors may fail to read, with how policies name it: as a member or a key.
_COLLECTED = {"metrics": ("metrics", "by_measured"), "quotas": ("quotas",)}
_IN_PYTHON = {name: lazy_pattern(rf"[.\"'](?:{'|'.join(named)})\b(?! import)") for name, named in _COLLECTED.items()}
#: Modules that Python policies may import and that never see a policy's input, but what it gives them.
_OURS = ("policyeng.facts", "policyeng.models", "policyeng.parsing", "policyeng.redaction")
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
        now: the builtin `time.now_ns`.
    """

    workspace: bool
    clock: bool
    others: bool
    workloads: bool
    collected: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()
    now: bool = False


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
    return tuple(_in_rego(policy.package, reads) if policy.rules else _outside_rego(policy) for policy in policies)


def _outside_rego(policy: Policy) -> PolicyReach:
    return _in_python(policy) if policy.azure is None else _in_azure_policy(policy.azure)


def _in_azure_policy(policy: CompiledPolicy) -> PolicyReach:
    types = frozenset(find_types([policy.related_type]))
    return PolicyReach(
        workspace=False, clock=policy.reads_clock, others=policy.reads_others, workloads=False, types=types
    )


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
    # The builtin `time.now_ns` is the time of the evaluation, too, also where the input has none.
    now = "now_ns" in words
    if "" in inputs:
        return EVERYTHING._replace(types=looked_up, now=now)
    parts = [tuple(name.split(".")) for name in inputs]
    collected = frozenset(name for name, named in _COLLECTED.items() if not words.isdisjoint(named))
    of_snapshot = {part[1:2] for part in parts if part[0] == _SNAPSHOT}
    found = _find_reachable({part[0] for part in parts}, of_snapshot, collected)
    return found._replace(types=looked_up, now=now, clock=found.clock or now)


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
    return (
        name in ("policyeng", "policyeng.bundle") or name.startswith(_OURS) or top in {*sys.stdlib_module_names, "re2"}
    )
