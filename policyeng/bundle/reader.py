"""Read a directory or an archive of policies as a bundle: the layout is OPA's, nothing is registered anywhere."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath

import orjson

from policyeng.bundle.data_documents import join_document
from policyeng.bundle.declaration import Policy
from policyeng.bundle.discovery import policies_of
from policyeng.bundle.origins import Origin, open_origins
from policyeng.bundle.signing import Verification
from policyeng.bundle.tree import DATA_NAMES, text_of
from policyeng.errors import BundleError
from policyeng.facts import Facts
from policyeng.models import JsonObject


@dataclass(frozen=True)
class Bundle:
    """Policies with everything they need, as read from one or several directories and archives.

    Attributes:
        revision: from `.manifest`; empty without one.
        digest: SHA-256 over the paths and contents of every module and Python policy and over the `data` document, as
            hexadecimal; the same for a directory and the archive built from it.
        policies: sorted by id.
        modules: Rego (path, source) without tests, sorted by path.
        data: the `data` document of OPA.
        rego_v0: the paths of the modules that are written in Rego v0.
    """

    name: str
    revision: str
    digest: str
    policies: tuple[Policy, ...]
    modules: tuple[tuple[str, str], ...]
    data: JsonObject
    roots: tuple[Path, ...] = ()
    rego_v0: frozenset[str] = frozenset()

    @cached_property
    def facts(self) -> Facts:
        """The catalogue in `data.facts`, as values."""
        return Facts.from_document(self.data.get("facts", {}))

    @cached_property
    def data_bytes(self) -> bytes:
        """The `data` document as JSON."""
        return _json(self.data)

    def only(self, policies: Iterable[Policy]) -> Bundle:
        """The same bundle with fewer policies in force; modules, data and digest stay."""
        return replace(self, policies=tuple(policies))


def load_bundle(*paths: str | Path, verification: Verification | None = None) -> Bundle:
    """Read the built-in policies, or those of the given directories and archives joined.

    Those without packages under `lib` or data under `facts` are lent ours, so that their policies can use them. The
    built-in policies are trusted as they are installed; `verification` concerns what `paths` name.

    Raises:
        BundleError: a directory, archive, signature, module, header or data document is not well formed, or an id
            or the package of a policy stands twice.
        UsageError: the key or the algorithm of `verification` cannot be used.
    """
    return bundle_of(open_origins(paths, verification))


def bundle_of(origins: Sequence[Origin]) -> Bundle:
    """The bundle of what was opened.

    Raises:
        BundleError: a module, header or data document is not well formed, or an id or package stands twice.
    """
    modules, python, data, policies = _read_all(origins)
    own = [origin for origin in origins if not origin.lent]
    return Bundle(
        name=", ".join(origin.name for origin in own),
        revision=", ".join(filter(None, (origin.manifest.revision for origin in own))),
        digest=_digest(modules, python, _json(data)),
        policies=_unique(policies),
        modules=tuple(sorted(modules)),
        data=data,
        roots=tuple(origin.root for origin in origins),
    )


def _read_all(
    origins: Sequence[Origin],
) -> tuple[list[tuple[str, str]], dict[PurePosixPath, bytes], JsonObject, list[Policy]]:
    modules: list[tuple[str, str]] = []
    python: dict[PurePosixPath, bytes] = {}
    data: JsonObject = {}
    policies: list[Policy] = []
    for origin in origins:
        for path, content in sorted(origin.tree.items()):
            if path.name in DATA_NAMES:
                join_document(data, path, content, origin.root)
            elif path.suffix == ".rego":
                modules.append((str(path), text_of(content, origin.root / path)))
            elif path.suffix == ".py":
                python[path] = content
        policies += policies_of(origin.root, origin.tree)
    return modules, python, data, policies


def _digest(modules: Iterable[tuple[str, str]], python: Mapping[PurePosixPath, bytes], data: bytes) -> str:
    """Over what is judged with, not over how it lies in files: an archive joins documents, and is the same bundle."""
    parts = {(path, source.encode()) for path, source in modules}
    parts |= {(str(path), content) for path, content in python.items()}
    digest = hashlib.sha256()
    for path, content in (*sorted(parts), ("data", data)):
        digest.update(f"{path}\0{hashlib.sha256(content).hexdigest()}\n".encode())
    return digest.hexdigest()


def _json(data: JsonObject) -> bytes:
    try:
        return orjson.dumps(data, option=orjson.OPT_SORT_KEYS)
    except TypeError as error:
        what = f"a data document holds what JSON cannot: {str(error).lower()}"
        raise BundleError(what, remedy="write numbers within 64 bits, or text") from None


def _unique(policies: Iterable[Policy]) -> tuple[Policy, ...]:
    seen: dict[str, Policy] = {}
    packages: dict[str, Policy] = {}
    for policy in policies:
        if policy.id in seen:
            places = f"`{seen[policy.id].file}` and `{policy.file}`"
            raise BundleError(f"the id `{policy.id}` stands twice, in {places}", remedy="give one of them another id")
        seen[policy.id] = policy
        own = policy.rules if policy.input_form == "policy" else ()  # those of others are read by package
        for package in {rule.rpartition(".")[0] for _, rule in own}:
            if package in packages:  # each would report the denials of both
                places = f"`{packages[package].file}` and `{policy.file}`"
                what = f"two policies share the package `{package.removeprefix('data.')}`, in {places}"
                raise BundleError(what, remedy="give one of them a package of its own")
            packages[package] = policy
    return tuple(sorted(seen.values(), key=lambda policy: policy.id))
