"""Read a directory of policies as a bundle: the layout is OPA's, nothing is registered anywhere."""

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
from policyeng.bundle.parsing import bundle_json
from policyeng.bundle.tree import DATA_NAMES, built_in_root, files_of, text_of
from policyeng.errors import BundleError
from policyeng.facts import Facts
from policyeng.models import JsonObject

#: Roots that our own bundle lends to one that does not bring them.
_LENT = ("lib", "facts")


@dataclass(frozen=True)
class Bundle:
    """Policies with everything they need, as read from one or several directories.

    Attributes:
        revision: from `.manifest`; empty without one.
        digest: SHA-256 over the paths and contents of every module, data document and Python policy, as hexadecimal.
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
        return orjson.dumps(self.data)

    def only(self, policies: Iterable[Policy]) -> Bundle:
        """The same bundle with fewer policies in force; modules, data and digest stay."""
        return replace(self, policies=tuple(policies))


def load_bundle(*directories: str | Path) -> Bundle:
    """Read the built-in policies, or those of the given directories joined.

    A directory without packages under `lib` or data under `facts` is lent ours, so that its policies can use them.

    Raises:
        BundleError: a directory, module, header or data document is not well formed, or an id stands twice.
    """
    ours = built_in_root()
    roots = tuple(Path(directory) for directory in directories) or (ours,)
    files = [files_of(root) for root in roots]
    if directories:
        present = {path.parts[0] for tree in files for path in tree if len(path.parts) > 1}
        lent = {path: content for path, content in files_of(ours).items() if path.parts[0] in _LENT}
        files.append({path: content for path, content in lent.items() if path.parts[0] not in present})
        roots = (*roots, ours)
    digest, modules, data, policies = _read_all(roots, files)
    revisions = [_revision(root) for root in roots[: len(directories) or 1]]
    name = ", ".join(root.resolve().name for root in roots[: len(directories) or 1])
    return Bundle(
        name="policyeng" if not directories else name,
        revision=", ".join(filter(None, revisions)),
        digest=digest,
        policies=_unique(policies),
        modules=tuple(sorted(modules)),
        data=data,
        roots=roots,
    )


def _read_all(
    roots: Sequence[Path], files: Sequence[Mapping[PurePosixPath, bytes]]
) -> tuple[str, list[tuple[str, str]], JsonObject, list[Policy]]:
    modules: list[tuple[str, str]] = []
    data: JsonObject = {}
    policies: list[Policy] = []
    digest = hashlib.sha256()
    for root, tree in zip(roots, files, strict=True):
        for path, content in sorted(tree.items()):
            digest.update(f"{path}\0{hashlib.sha256(content).hexdigest()}\n".encode())
            if path.name in DATA_NAMES:
                join_document(data, path, content, root)
            elif path.suffix == ".rego":
                modules.append((str(path), text_of(content, root / path)))
        policies += policies_of(root, tree)
    return digest.hexdigest(), modules, data, policies


def _revision(root: Path) -> str:
    manifest = root / ".manifest"
    if not manifest.is_file():
        return ""
    document = bundle_json(manifest.read_bytes(), str(manifest))
    revision = document.get("revision", "") if isinstance(document, dict) else ""
    return revision if isinstance(revision, str) else ""


def _unique(policies: Iterable[Policy]) -> tuple[Policy, ...]:
    seen: dict[str, Policy] = {}
    for policy in policies:
        if policy.id in seen:
            places = f"`{seen[policy.id].file}` and `{policy.file}`"
            raise BundleError(f"the id `{policy.id}` stands twice, in {places}", remedy="give one of them another id")
        seen[policy.id] = policy
    return tuple(sorted(seen.values(), key=lambda policy: policy.id))
