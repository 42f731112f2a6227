"""Read a directory or an archive of policies as a bundle: the layout is OPA's, nothing is registered anywhere."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TypedDict

import orjson

from policyeng.bundle.dependencies import PolicyReach
from policyeng.bundle.policy_types import Policy
from policyeng.bundle.stored_bundle import built_in
from policyeng.errors import BundleError
from policyeng.facts import Facts
from policyeng.facts.arm_casing import Spellings
from policyeng.frozen import field, frozen, replace
from policyeng.later import lazy_pattern
from policyeng.models import JsonObject, lowered, read_only

if TYPE_CHECKING:  # what reads bundles and works out what is stored with the built-in one is rarely needed
    from policyeng.bundle.analysis import ModuleAnalysis
    from policyeng.bundle.dependencies import PolicyReach
    from policyeng.bundle.files import BundleOrigin
    from policyeng.bundle.signature_policy import Verification

#: Modules that know neither clock nor chance nor the machine, but for `_MACHINE` in them.
_PURE = lazy_pattern(
    r"(?:__future__|abc|base64|bisect|collections|dataclasses|datetime|decimal|enum|fractions|functools|hashlib|heapq"
    r"|ipaddress|itertools|json|math|numbers|operator|re|statistics|string|textwrap|typing|types|unicodedata"
    r"|urllib\.parse|zoneinfo)(?:\..*)?"
    r"|policyeng(?:\.bundle|\.facts.*|\.models.*)?"
)
#: What reads the machine's clock, files or input, or hangs on what else runs in the process.
_MACHINE = frozenset({"now", "today", "utcnow", "fromtimestamp", "open", "input", "id", "hash", "globals", "global"})

#: Errors that say nothing of the type of a value.
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

    In Python it must be pure, keep nothing from one evaluation for the next one, and not notice what stands for the
    clock: it asks for no `type`, and catches only errors that values raise.
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
    """The names of what lasts as long as a module."""
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


_NO_POLICY = "a policy is a Rego module with our header, or with a rule `deny`, `warn` or `violation`"


class WantedInputs(TypedDict):
    """What the readers of inputs are told to keep: documents as they are written, the resources in them, or both."""

    documents: bool
    resources: bool


@frozen
class Bundle:
    """Policies with everything they need, as read from one or several directories and archives.

    Attributes:
        revision: from `.manifest`; empty without one.
        digest: SHA-256 over the paths and contents of every module and Python policy and over the `data` document, as
            hexadecimal; the same for a directory and the archive built from it.
        policies: those in force, sorted by id.
        modules: Rego (path, source) without tests, sorted by path.
        data: the `data` document of OPA.
        rego_v0: the paths of the modules that are written in Rego v0.
        idle: the policies that are not in force.
        lent: the roots, of `lib` and `facts`, that are the built-in bundle's and not its own.
        given: what was joined into `data` besides, as `--data` names it, with absolute paths.
        origins: what it was read from, with the files that count; none for a bundle that was made otherwise.
    """

    name: str
    revision: str
    digest: str
    policies: tuple[Policy, ...]
    modules: tuple[tuple[str, str], ...]
    data: JsonObject
    roots: tuple[Path, ...] = ()
    rego_v0: frozenset[str] = frozenset()
    idle: tuple[Policy, ...] = ()
    lent: frozenset[str] = frozenset()
    given: tuple[str, ...] = ()
    origins: tuple[BundleOrigin, ...] = field(default=(), repr=False, compare=False)

    @cached_property
    def facts(self) -> Facts:
        """The catalogue in `data.facts`, as values."""
        return Facts.from_document(self.data.get("facts", {}))

    @cached_property
    def data_bytes(self) -> bytes:
        """The `data` document as JSON."""
        return as_json(self.data)

    @cached_property
    def overruns(self) -> dict[str, int]:
        """How often policies exceeded their limit since the bundle was loaded, by id; engines count it."""
        return {}

    @cached_property
    def reaches(self) -> tuple[PolicyReach, ...]:
        """What of its input each policy in force can read."""
        from policyeng.bundle.dependencies import reaches_of

        return reaches_of(self.policies, self.modules, self.rego_v0)

    @cached_property
    def asked_types(self) -> Mapping[int, frozenset[str]]:
        """By the number of a policy in force, the ARM types that it may look up and that not every snapshot lists."""
        from policyeng.bundle.referenced_types import names_types

        if not names_types(self.policies, self._analyses()):
            return {}
        return {number: reach.types for number, reach in enumerate(self.reaches) if reach.types}

    @cached_property
    def defaults(self) -> tuple[JsonObject, ...]:
        """The parameters of each policy in force where none are given, read-only."""
        return tuple(read_only({**policy.header.defaults}) for policy in self.policies)

    @cached_property
    def clocked(self) -> tuple[bool, ...]:
        """Whether each policy in force can read the clock."""
        return tuple(map(reads_clock, self.policies, self.reaches))

    @cached_property
    def clock_recorded(self) -> tuple[bool, ...]:
        """Whether all that each policy in force does with the clock can be recorded while it is evaluated."""
        return tuple(map(is_recorded, self.policies))

    @cached_property
    def spellings(self) -> Spellings:
        """By lower-case type of resources, the names that policies look for there, by themselves in lower case."""
        from policyeng.bundle.property_casing import spellings_of

        return spellings_of(self.policies, self._analyses())

    @cached_property
    def places(self) -> Mapping[str, str]:
        """The file of each module by its path, within the archive for one of an archive."""
        trees = [(origin.root, origin.tree) for origin in self.origins]
        found = {}
        for path, _ in self.modules:
            roots = [root for root, tree in trees if PurePosixPath(path) in tree]
            found[path] = str(roots[0] / path) if len(roots) == 1 else path
        return found

    @property
    def wanted(self) -> WantedInputs:
        """What of inputs its policies judge."""
        judged = {lowered(kind.type) for policy in self.policies for kind in policy.header.judges}
        return {"documents": "document" in judged, "resources": judged != {"document"}}

    def only(self, policies: Iterable[Policy]) -> Bundle:
        """The same bundle with fewer policies in force; modules, data and digest stay."""
        chosen = tuple(policies)
        if chosen == self.policies:
            return self
        ids = {policy.id for policy in chosen}
        idle = tuple(policy for policy in (*self.policies, *self.idle) if policy.id not in ids)
        return self._with_same_data(replace(self, policies=chosen, idle=idle))

    def run_python(self, *, twins: bool = False) -> None:
        """Run the modules of the Python policies in force, so that their faults are found before anything is evaluated.

        Args:
            twins: also those of the Python twins of Rego policies.

        Raises:
            BundleError: a module cannot be run, or declares something else than its text states.
        """
        for policy in self.policies:
            if policy.python is not None and (twins or not policy.rules):
                _ = policy.python.functions

    def rewritten(self, policy: Policy, modules: Iterable[tuple[str, str]], digest: str) -> Bundle:
        """The bundle with one policy in force, which is not as it was read, and the modules that it needs."""
        return self._with_same_data(
            replace(self, policies=(policy,), idle=(), modules=tuple(modules), digest=digest, origins=())
        )

    def _analyses(self) -> Iterator[ModuleAnalysis]:
        from policyeng.bundle.analysis import analysis_of

        return (analysis_of(source, path in self.rego_v0, path) for path, source in self.modules)

    def _with_same_data(self, other: Bundle) -> Bundle:
        """The other bundle, with what was worked out of the data."""
        vars(other).update({name: vars(self)[name] for name in ("facts", "data_bytes") if name in vars(self)})
        return other


def load_bundle(
    *paths: str | Path, data: Sequence[str | Path] = (), verification: Verification | None = None
) -> Bundle:
    """Read the built-in policies, or those of the given directories and archives joined.

    Those with policies of ours and without packages under `lib` or data under `facts` are lent ours, so that their
    policies can use them. The built-in policies are trusted as they are installed; `verification` concerns what
    `paths` name. `data` are files and directories of JSON and YAML that are joined into `data`, as `--data` names them.

    Raises:
        BundleError: a directory, archive, signature, module, header or data document is not well formed, or an id
            or the package of a policy stands twice, or no policy is found.
        UsageError: the key or the algorithm of `verification` cannot be used.
    """
    bundle = _opened(paths, data, verification) if paths or data or verification else built_in(_opened)
    if not bundle.policies:
        raise BundleError("no policy was found", place=tuple(map(str, paths[:1])), remedy=_NO_POLICY)
    return bundle


def _opened(
    paths: Sequence[str | Path] = (), data: Sequence[str | Path] = (), verification: Verification | None = None
) -> Bundle:
    from policyeng.bundle.assembling import bundle_of
    from policyeng.bundle.files import open_origins

    return bundle_of(open_origins(paths, verification), data)


def as_json(data: JsonObject) -> bytes:
    """Return a data document as JSON, keys sorted.

    Raises:
        BundleError: it holds what JSON cannot.
    """
    try:
        return orjson.dumps(data, option=orjson.OPT_SORT_KEYS)
    except TypeError as error:
        what = f"a data document holds what JSON cannot: {str(error).lower()}"
        raise BundleError(what, remedy="write numbers within 64 bits, or text") from None
