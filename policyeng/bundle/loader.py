"""Loader of bundles from directories and archives in OPA's layout."""

from __future__ import annotations

import pickle
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import starmap
from operator import is_
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TypedDict, cast

import orjson

from policyeng import __version__, cache, prebuilt
from policyeng.bundle import analysis
from policyeng.bundle.analysis import PolicyReach
from policyeng.bundle.files import FilesState, state_of
from policyeng.bundle.header_cache import READ_BY
from policyeng.bundle.policy_types import Policy
from policyeng.errors import BundleError, UsageError
from policyeng.facts import Facts
from policyeng.facts.arm_casing import Spellings
from policyeng.facts.catalogue import built_in_root
from policyeng.models import JsonObject, lowered, read_only

if TYPE_CHECKING:
    from policyeng.azure_policy.assignments import PolicyNote
    from policyeng.bundle.analysis import ModuleAnalysis, PolicyReach
    from policyeng.bundle.files import BundleOrigin, PolicySource
    from policyeng.bundle.left_out import LeftOutModule
    from policyeng.bundle.signature_policy import Verification

#: Nanoseconds for which a file has to be unchanged: within the tick of a clock it may change again and look the same.
_SETTLED = 2_000_000_000
#: What is worked out of a bundle for every run, and stored with it.
_WORKED_OUT = (
    "has_own_python",
    "queried_types",
    "clocked",
    "controls",
    "data_bytes",
    "facts",
    "places",
    "reaches",
    "spellings",
)


def built_in(read: Callable[[], Bundle]) -> Bundle:
    """Return the built-in bundle as the wheel brings it, or from the cache, or read it and store it.

    Raises:
        BundleError: as of `read`.
    """
    if prebuilt.is_installed():
        from policyeng.bundle.prebuilt_bundle import load  # a checkout has none

        if (prebuilt_bundle := load(built_in_root())) is not None:
            return prebuilt_bundle
    # Before any file is read: what changes meanwhile has another state, under which the entry is never found.
    state = state_of(built_in_root()) if cache.directory() is not None else None
    if state is None:
        return read()
    key = cache.key_of(
        "bundle", __version__, sys.version, cache.state_of_code(*READ_BY), str(built_in_root()), state.text
    )
    if stored := cache.load(key):
        bundle: Bundle = pickle.loads(stored[0])  # noqa: S301  # from a private file, its digest verified
        analysis.set_loader(partial(_analyses, bundle, stored[1]))
        return bundle
    bundle = read()
    if _is_settled(state):
        analyses = work_out(bundle)
        with suppress(TypeError, AttributeError, pickle.PicklingError):  # such as a value of a Python policy
            cache.store(key, [pickle.dumps(bundle, protocol=5), pickle.dumps(analyses, protocol=5)])
    return bundle


def work_out(bundle: Bundle) -> list[ModuleAnalysis]:
    """Work out of a bundle what every run needs, and return the analyses of its modules."""
    for name in _WORKED_OUT:
        getattr(bundle, name)
    return list(starmap(analysis.analysis_of, _modules(bundle)))


def _is_settled(state: FilesState) -> bool:
    return state.latest < time.time_ns() - _SETTLED


def _analyses(bundle: Bundle, stored: bytes | memoryview) -> None:
    """Keep the analyses of the modules: most runs need what was worked out of them alone."""
    for (source, rego_v0, _), known in zip(_modules(bundle), pickle.loads(stored), strict=True):  # noqa: S301  # as above
        analysis.add_analysis(source, rego_v0, known)


def _modules(bundle: Bundle) -> list[tuple[str, bool, str]]:
    return [(source, path in bundle.rego_v0, path) for path, source in bundle.modules]


_NO_POLICY = "a policy is a Rego module with our header, or with a rule `deny`, `warn` or `violation`"


class WantedInputs(TypedDict):
    """What readers of inputs return: documents as they are written, the resources in them, or both."""

    documents: bool
    resources: bool


@dataclass(frozen=True)
class Bundle:
    """Policies with everything they need, as read from one or several directories and archives.

    Attributes:
        revision: from `.manifest`; empty without one.
        digest: SHA-256 over the paths and contents of every module and Python policy and over the `data` document, as
            hexadecimal; the same for a directory and the archive built from it.
        policies: the active ones, sorted by id.
        modules: Rego (path, source) without tests, sorted by path.
        data: the `data` document of OPA.
        rego_v0: the paths of the modules that are written in Rego v0.
        idle: the inactive policies.
        lent: the roots, of `lib` and `facts`, that are the built-in bundle's and not its own.
        given: what was joined into `data` besides, as `--data` names it, with absolute paths.
        origins: what it was read from, with the files that count; none for a bundle that was made otherwise.
        framework_text: the framework documents by name, as JSON; empty without any.
        foreign: the paths of modules that come from a directory or archive without a policy of ours.
        lenient: the paths of modules in which a builtin that fails is undefined; the others are strict.
        left_out: modules of others that do not parse.
        azure_notes: what readers must know of definitions of Azure Policy.
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
    framework_text: bytes = field(default=b"", repr=False)
    foreign: frozenset[str] = frozenset()
    lenient: frozenset[str] = frozenset()
    left_out: tuple[LeftOutModule, ...] = ()
    azure_notes: tuple[PolicyNote, ...] = ()

    @cached_property
    def frameworks(self) -> JsonObject:
        """The framework documents by name: those of the bundle, or else the built-in ones."""
        from policyeng.bundle.policy_selection import shipped_frameworks

        found: JsonObject = orjson.loads(self.framework_text) if self.framework_text else shipped_frameworks()
        return found

    @cached_property
    def controls(self) -> Mapping[str, tuple[str, ...]]:
        """By the id of a policy, active or not, the controls that it tests, as `FRAMEWORK:CONTROL`.

        Raises:
            BundleError: a header maps its policy to a control to which a framework maps it, too.
        """
        from policyeng.bundle.policy_selection import controls_of

        return controls_of((*self.policies, *self.idle), self.frameworks)

    def __repr__(self) -> str:
        return f"<Bundle {self.name}: {len(self.policies)} policies, digest {self.digest[:12]}>"

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
    def has_own_python(self) -> bool:
        """Whether a Python policy did not come with policyeng; those that did are tested to change no input."""
        shipped = {str(path) for origin in self.origins if origin.root == built_in_root() for path in origin.tree}
        return any(policy.python is not None and policy.file not in shipped for policy in self.policies)

    @cached_property
    def reaches(self) -> tuple[PolicyReach, ...]:
        """The input that each active policy can read."""
        from policyeng.bundle.analysis import reaches_of

        return reaches_of(self.policies, self.modules, self.rego_v0)

    @cached_property
    def queried_types(self) -> Mapping[int, frozenset[str]]:
        """By the number of an active policy, the ARM types that it may look up and that not every snapshot lists."""
        from policyeng.bundle.analysis import names_types

        if not names_types(self.policies, self._analyses()):
            return {}
        return {number: reach.types for number, reach in enumerate(self.reaches) if reach.types}

    @cached_property
    def defaults(self) -> tuple[JsonObject, ...]:
        """The default parameters of each active policy, read-only."""
        return tuple(read_only({**policy.header.defaults}) for policy in self.policies)

    @cached_property
    def clocked(self) -> tuple[bool, ...]:
        """Whether each active policy can read the clock."""
        from policyeng.bundle.rego_trees import reads_clock

        return tuple(map(reads_clock, self.policies, self.reaches))

    @cached_property
    def clock_recorded(self) -> tuple[bool, ...]:
        """Whether all that each active policy does with the clock can be recorded while it is evaluated."""
        from policyeng.bundle.rego_trees import is_recorded

        return tuple(map(is_recorded, self.policies))

    @cached_property
    def spellings(self) -> Spellings:
        """By lower-case type of resources, the names that policies look for there, by themselves in lower case."""
        from policyeng.bundle.rego_trees import spellings_of

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

    def name_of(self, policy: Policy) -> str:
        """Return the name of the directory or archive that a policy is from, or of the bundle if there are several."""
        names = [origin.name for origin in self.origins if PurePosixPath(policy.file) in origin.tree]
        return names[0] if len(names) == 1 else self.name

    @property
    def wanted(self) -> WantedInputs:
        """Return which inputs its policies evaluate."""
        types = {lowered(kind.type) for policy in self.policies for kind in policy.header.judges}
        return {"documents": "document" in types, "resources": types != {"document"}}

    def only(self, policies: Iterable[Policy]) -> Bundle:
        """Return the same bundle with fewer active policies; modules, data and digest stay."""
        chosen = tuple(policies)
        if len(chosen) == len(self.policies) and all(map(is_, chosen, self.policies)):
            return self
        ids = {policy.id for policy in chosen}
        idle = tuple(policy for policy in (*self.policies, *self.idle) if policy.id not in ids)
        other = self._with_same_data(replace(self, policies=chosen, idle=idle))
        if "reaches" in vars(self):
            known = {id(policy): reach for policy, reach in zip(self.policies, self.reaches, strict=True)}
            if all(id(policy) in known for policy in chosen):
                vars(other)["reaches"] = tuple(known[id(policy)] for policy in chosen)
        return other

    def run_python(self, *, twins: bool = False) -> None:
        """Run the modules of the active Python policies, so that their faults are found before anything is evaluated.

        Args:
            twins: also those of the Python twins of Rego policies.

        Raises:
            BundleError: a module cannot be run, or declares something else than its text states.
        """
        for policy in self.policies:
            if policy.python is not None and (twins or not policy.rules):
                _ = policy.python.functions

    def rewritten(self, policy: Policy, modules: Iterable[tuple[str, str]], digest: str) -> Bundle:
        """Return the bundle with one active policy, which is not as it was read, and the modules that it needs."""
        return self._with_same_data(
            replace(self, policies=(policy,), idle=(), modules=tuple(modules), digest=digest, origins=())
        )

    def _analyses(self) -> Iterator[ModuleAnalysis]:
        from policyeng.bundle.analysis import analysis_of

        return (analysis_of(source, path in self.rego_v0, path) for path, source in self.modules)

    def _with_same_data(self, other: Bundle) -> Bundle:
        """Return the other bundle, with what was worked out of the data."""
        vars(other).update(
            {name: vars(self)[name] for name in ("facts", "data_bytes", "frameworks", "controls") if name in vars(self)}
        )
        return other


def load_bundle(
    *sources: PolicySource | Sequence[PolicySource],
    data: Sequence[str | Path] = (),
    verification: Verification | None = None,
    require_policies: bool = True,
    azure_policy: Sequence[str | Path] = (),
    built_in_too: bool = False,
) -> Bundle:
    """Read the built-in policies, or the policies of other sources as one bundle.

    Sources without packages under `lib` or data under `facts` can use the built-in ones.

    Args:
        sources: directories, archives, names of installed packages of policies (entry points of the group
            `policyeng.policies`), texts of files by their paths in a directory, or lists of these.
        data: files and directories of JSON and YAML to merge into `data`, as `--data` names them.
        verification: whose signatures the sources need; the built-in policies need none.
        azure_policy: files and directories with definitions, initiatives, assignments and exemptions of Azure Policy,
            and with the aliases of resource providers. Without sources only these are evaluated.
        built_in_too: without sources, evaluate the built-in policies, too.
        require_policies: refuse sources without policies, such as a library, of which only unit tests can run.

    Raises:
        BundleError: a directory, archive, signature, module, header or data document is not well formed, or an id
            or the package of a policy is used twice, or no policy is found.
        UsageError: a source has another type, or the key or the algorithm of `verification` cannot be used.
    """
    paths: list[PolicySource] = []
    for source in sources:
        paths += source if isinstance(source, list | tuple) else [cast("PolicySource", source)]
    for part in paths:
        if not isinstance(part, str | Path | Mapping):
            remedy = "give a path, the name of an installed package of policies, or a dict of file texts by path"
            raise UsageError(f"cannot read policies from `{type(part).__name__}`", remedy=remedy)
    if azure_policy:
        bundle = _opened(paths, data, verification, tuple(map(Path, azure_policy)), built_in=built_in_too)
    else:
        bundle = _opened(paths, data, verification) if paths or data or verification else built_in(_opened)
    if any(policy.header.controls for policy in bundle.policies):
        _ = bundle.controls  # a mapping that is stated twice is an error
    if require_policies and not bundle.policies:
        place = tuple(str(path) for path in paths[:1] if not isinstance(path, Mapping))
        raise BundleError("no policy was found", place=place, remedy=_NO_POLICY)
    return bundle


def _opened(
    paths: Sequence[PolicySource] = (),
    data: Sequence[str | Path] = (),
    verification: Verification | None = None,
    azure_policy: Sequence[Path] = (),
    *,
    built_in: bool = True,
) -> Bundle:
    from policyeng.bundle.assembling import bundle_of
    from policyeng.bundle.files import open_origins

    origins = open_origins(paths, verification, built_in=built_in)
    if azure_policy:
        from policyeng.bundle.azure_policies import open_azure_policies  # most runs have none

        origins += open_azure_policies(azure_policy)
    return bundle_of(origins, data)


def as_json(data: JsonObject) -> bytes:
    """Return a data document as JSON, keys sorted.

    Raises:
        BundleError: it contains a value that JSON cannot.
    """
    try:
        return orjson.dumps(data, option=orjson.OPT_SORT_KEYS)
    except TypeError as error:
        what = f"a data document holds what JSON cannot: {str(error).lower()}"
        raise BundleError(what, remedy="write numbers within 64 bits, or text") from None
