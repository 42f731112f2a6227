"""Syntax trees of Rego modules: outlines, the spelling of members, and which policies read the clock."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from policyeng.bundle.analysis import AnalyzedRule, ModuleAnalysis, PolicyReach, analysis_of, find_types
from policyeng.bundle.files import text_of
from policyeng.bundle.header import WORKSPACE, PolicyHeader, rego_metadata
from policyeng.bundle.manifest import bundle_yaml, manifest_of
from policyeng.bundle.policy_types import Policy
from policyeng.facts.arm_casing import Spellings
from policyeng.later import lazy_pattern
from policyeng.models import WORKSPACE_TYPE, lowered
from policyeng.parsing.json_pointer import keys_of
from policyeng.rego import Diagnostic, RegoError, parse_module
from policyeng.rego.errors import LIMIT_ERROR
from policyeng.rego.paths import write_part
from policyeng.rego.syntax import Head, Module, Ref, Scalar, Var, constant_names, dotted_name, walk
from policyeng.rego.syntax import Rule as RuleNode

if TYPE_CHECKING:
    from policyeng.bundle.analysis import PolicyReach

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
        if as_v1.code == LIMIT_ERROR:
            raise
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
    first, *rest = constant_names(tree.package.path)
    package = f"{first}{''.join(map(write_part, rest))}"
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
    if head.args:
        return "function"
    if head.ref.path:
        return "map"
    if head.key is not None:
        return "set"
    return "true" if isinstance(head.value, Scalar) and isinstance(head.value.value, bool) else "value"


#: Names of rules that Conftest and Gatekeeper evaluate; the rest of the name, if any, follows an underscore.
DENYING = ("deny", "violation", "warn")


class Outline(NamedTuple):
    """One Rego module of a directory.

    Attributes:
        path: relative to the root.
        rego_v0: written in Rego v0.
        package: without `data`.
        reads: references to `input` and `data`, as far as their parts are names.
        metadata: the `# METADATA` block above its `package`; None without one.
    """

    root: Path
    path: PurePosixPath
    source: str
    rego_v0: bool
    package: str
    rules: tuple[AnalyzedRule, ...]
    reads: frozenset[str]
    metadata: object

    @property
    def place(self) -> str:
        """How messages name the module."""
        return str(self.root / self.path)


def outlines_of(root: Path, tree: Mapping[PurePosixPath, bytes], ours: Collection[str] = frozenset()) -> list[Outline]:
    """Return the Rego modules of one root that can contain policies.

    Args:
        root: the directory or archive.
        tree: its files.
        ours: the paths of its policies that carry our header.

    Raises:
        BundleError: a module reads neither as v1 nor as v0, or the manifest is wrong.
    """
    manifest = manifest_of(tree, root)
    found = []
    for path, content in sorted(tree.items()):
        if path.suffix != ".rego":
            continue
        source, place, version = text_of(content, root / path), str(root / path), manifest.is_v0(path)
        analysis = analysis_of(source, version, place)
        if version is not False or (str(path) not in ours and _may_have_policies(analysis)):
            block = rego_metadata(source)
            metadata = bundle_yaml(block, place) if block is not None else None
            v0, package, rules, reads = analysis[:4]
            found.append(Outline(root, path, source, v0, package, rules, reads, metadata))
    return found


def _may_have_policies(analysis: ModuleAnalysis) -> bool:
    return any(rule.name.startswith(DENYING) for rule in analysis.rules)


#: The name of a member with more than one word, such as `vmSize`, alone and as a text of Python.
_MIXED = lazy_pattern(r"[a-z][a-z0-9]*[A-Z][A-Za-z0-9]*")
_MIXED_TEXT = lazy_pattern(rf"[\"'/]({_MIXED.pattern})(?=[\"'/])")


def spellings_of(policies: Iterable[Policy], modules: Iterable[ModuleAnalysis]) -> Spellings:
    """Return by lower-case type of resources the names of members that policies look for, by themselves in lower case.

    Those of the empty type are for all: a policy does not state what the resource is that another names.

    Args:
        policies: their headers declare names, or the text of those in Python has them.
        modules: those in Rego.

    Of two spellings of one name the first in the alphabet is taken, so that it is the same one every time.
    """
    found: dict[str, set[str]] = {"": {word for module in modules for word in module.words if _MIXED.fullmatch(word)}}
    for policy in policies:
        header = policy.header
        if policy.python is not None:
            found[""].update(_MIXED_TEXT.findall(policy.python.text.decode(errors="replace")))
        for arm_type, pointer in _pointers(header):
            of_workspace = pointer.startswith(WORKSPACE)
            found.setdefault(WORKSPACE_TYPE if of_workspace else lowered(arm_type), set()).update(keys_of(pointer))
    return {
        arm_type: {lowered(name): name for name in sorted(names, reverse=True)} for arm_type, names in found.items()
    }


def _pointers(header: PolicyHeader) -> Iterator[tuple[str, str]]:
    for target in header.judges:
        yield from ((target.type, pointer) for pointer in (*header.inspects, *target.where))
        yield from ((target.type, pointer) for one in header.consults for pointer in one.through[:1])
    for one in header.consults:
        yield from ((one.type, pointer) for pointer in (*one.reads, *one.through[1:], *filter(None, [one.naming])))


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
        # A document that is evaluated as it is has no clock.
        return reach.now or (reach.clock and policy.input_form == "policy")
    return reach.clock or (policy.azure is None and not _is_pure(policy))


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
    """Return whether a value is an empty collection or a call that makes one."""
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
    """Return whether a node may change an object that lives as long as a module."""
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
    """Return whether the Python of a policy imports and names nothing that could give it more than its input."""
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
