"""The `.manifest` of a bundle. Source: openpolicyagent.org/docs/management-bundles, "Bundle File Format"."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

import orjson
from msgspec import Struct, field

from policyeng.errors import BundleError, InputError
from policyeng.models import JsonObject
from policyeng.parsing.json_text import parse_json


def bundle_json(content: bytes, place: str) -> object:
    """Return a JSON document of a bundle.

    Raises:
        BundleError: what `parse_json` refuses, with its place.
    """
    try:
        return parse_json(content, place)
    except InputError as error:
        raise BundleError(error.message, place=error.place, remedy=error.remedy) from error


def bundle_yaml(text: str, place: str) -> object:
    """Return a YAML document of a bundle.

    Raises:
        BundleError: what `parse_yaml` refuses, with its place.
    """
    from policyeng.parsing.yaml_text import parse_yaml  # most runs find every header in the cache

    try:
        return parse_yaml(text.encode(), place).value
    except InputError as error:
        raise BundleError(error.message, place=error.place, remedy=error.remedy) from error


def bundle_manifests(text: str, place: str) -> list[object]:
    """Return the documents of a YAML file as Kubernetes reads them.

    Raises:
        BundleError: what `parse_kubernetes_yaml` refuses, with its place.
    """
    from policyeng.parsing.yaml_text import parse_kubernetes_yaml  # most bundles have none

    try:
        return [document.value for document in parse_kubernetes_yaml(text.encode(), place)]
    except InputError as error:
        raise BundleError(error.message, place=error.place, remedy=error.remedy) from error


MANIFEST = PurePosixPath(".manifest")
#: What a builtin that fails can be in policies of others.
BUILTIN_ERRORS = ("undefined", "error")


class Manifest(Struct, frozen=True):
    """The manifest of a bundle.

    Attributes:
        roots: the paths of the `data` document that the bundle owns; None if not stated, which means all of it.
        rego_version: 0 or 1; None if not stated.
        file_rego_versions: versions that differ, by path or pattern, with a leading `/`.
        metadata: the metadata of the author; policyeng adds its own under `policyeng`.
    """

    revision: str = ""
    roots: tuple[str, ...] | None = None
    rego_version: int | None = None
    file_rego_versions: Mapping[str, int] = field(default_factory=dict)
    metadata: JsonObject = field(default_factory=dict)

    @property
    def recorded_digest(self) -> str:
        """The digest that `policyeng bundle build` wrote into it; empty when it was not built so."""
        ours = self.metadata.get("policyeng")
        digest = ours.get("digest") if isinstance(ours, dict) else ""
        return digest if isinstance(digest, str) else ""

    @property
    def builtin_errors(self) -> str:
        """What a builtin that fails is, `undefined` or `error`; empty if it is not stated."""
        ours = self.metadata.get("policyeng")
        return str(ours.get("builtin_errors", "")) if isinstance(ours, dict) else ""

    def is_v0(self, path: PurePosixPath) -> bool | None:
        """Return whether it states that a module is Rego v0; None where it leaves it open."""
        stated = [number for pattern, number in self.file_rego_versions.items() if path.match(pattern.lstrip("/"))]
        number = stated[0] if stated else self.rego_version
        return None if number is None else number == 0

    def content(self) -> bytes:
        """Return the file, keys sorted."""
        document: JsonObject = {"revision": self.revision, "metadata": self.metadata}
        if self.roots is not None:
            document["roots"] = list(self.roots)
        if self.rego_version is not None:
            document["rego_version"] = self.rego_version
        if self.file_rego_versions:
            document["file_rego_versions"] = dict(self.file_rego_versions)
        return orjson.dumps(document, option=orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2) + b"\n"


def manifest_of(tree: Mapping[PurePosixPath, bytes], root: object) -> Manifest:
    """Return the manifest among the files of a bundle; an empty one without it.

    Raises:
        BundleError: it is not JSON, or a value has a type that OPA would refuse.
    """
    if MANIFEST not in tree:
        return Manifest()
    place = f"{root}/{MANIFEST}"
    document = bundle_json(tree[MANIFEST], place)
    if not isinstance(document, dict):
        raise BundleError("the manifest is not an object", place=(place,), remedy='write `{"revision": "..."}`')
    roots = document.get("roots")
    versions = document.get("file_rego_versions") or {}
    metadata = document.get("metadata") or {}
    revision = document.get("revision") or ""
    fits = {
        "revision": isinstance(revision, str),
        "roots": roots is None or (isinstance(roots, list) and all(isinstance(part, str) for part in roots)),
        "rego_version": document.get("rego_version") in (None, 0, 1),
        "file_rego_versions": isinstance(versions, dict) and all(part in (0, 1) for part in versions.values()),
        "metadata": isinstance(metadata, dict),
    }
    for name, fit in fits.items():
        if not fit:
            raise BundleError(
                f"`{name}` of the manifest does not fit", place=(place,), remedy="see OPA's bundle format"
            )
    manifest = Manifest(
        revision, None if roots is None else tuple(roots), document.get("rego_version"), versions, metadata
    )
    if manifest.builtin_errors not in ("", *BUILTIN_ERRORS):
        message = f"`metadata.policyeng.builtin_errors` of the manifest is `{manifest.builtin_errors}`"
        raise BundleError(message, place=(place,), remedy=f"write one of {', '.join(BUILTIN_ERRORS)}")
    return manifest
