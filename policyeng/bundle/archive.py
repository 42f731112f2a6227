"""Read a bundle archive, whoever wrote it: nothing is unpacked, and nothing is inflated beyond the limit."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath

from policyeng.bundle.manifest import MANIFEST, manifest_of
from policyeng.bundle.tar_members import Limits, Members, members_of
from policyeng.errors import BundleError

_GZIP = 31  # zlib's word for a gzip header and its checksum
_FETCH = "build the archive anew, or fetch it again"
_PACKAGE = re.compile(r"^package[ \t]+([\w.]+)", re.MULTILINE)
#: Members by which an archive of OPA shows that the sources of its policies are no longer whole, with the remedy.
_UNREADABLE = {
    "policy.wasm": ("was compiled to WebAssembly", "build it with `opa build --target rego`"),
    "plan.json": ("was compiled to a plan", "build it with `opa build --target rego`"),
    "plan.pb": ("was compiled to a plan", "build it with `opa build --target rego`"),
    "patch.json": ("holds changes to another bundle", "name the bundle that they change"),
    ".manifest.pb": ("has a manifest in protobuf", "build it with a `.manifest` in JSON"),
}


def read_archive(path: Path, limits: Limits | None = None) -> Members:
    """The members of an archive.

    Raises:
        BundleError: the file cannot be read, is no gzip, is cut off or damaged, or its tar is refused; names the
            archive, the member and the remedy.
    """
    limits = limits or Limits()
    if not path.is_file():
        remedy = "name a directory that holds policies, or an archive `*.tar.gz`"
        raise BundleError(f"`{path}` is not a directory, and no archive either", remedy=remedy)
    try:
        with path.open("rb") as stream:
            content = stream.read(min(path.stat().st_size, limits.archive) + 1)
    except OSError as error:
        reason = (error.strerror or "unreadable").lower()
        raise BundleError(f"cannot be read ({reason})", place=(str(path),), remedy="make it readable") from None
    if len(content) > limits.archive:
        what = f"the archive is larger than {limits.archive} bytes"
        raise BundleError(what, place=(str(path),), remedy="leave out what is no policy")
    return members_of(_inflated(content, str(path), limits), str(path), limits)


def policy_tree(members: Members, archive: Path) -> dict[PurePosixPath, bytes]:
    """The members at the paths that the files had in the bundle's directory.

    OPA puts the path of the directory on its command line before the names of modules; it is taken off again.

    Raises:
        BundleError: the archive is one from which OPA dropped the sources or the headers of policies.
    """
    for name, (what, remedy) in _UNREADABLE.items():
        if any(path.name == name for path in members.files):
            raise BundleError(f"the archive {what}", place=(str(archive), name), remedy=remedy)
    if not members.rooted:
        return members.files
    if any(path.parts[0] == "optimized" for path in members.files):
        remedy = "build it without `--optimize`, or with `policyeng bundle build`"
        raise BundleError(
            "`opa build` optimized the policies and dropped their headers", place=(str(archive),), remedy=remedy
        )
    prefix = _prefix(members.files)
    tree = {
        path.relative_to(prefix) if path.suffix == ".rego" and path.is_relative_to(prefix) else path: content
        for path, content in members.files.items()
    }
    if len(tree) < len(members.files):
        raise BundleError("two modules have one path", place=(str(archive),), remedy="build it from one directory")
    manifest = manifest_of(tree, archive)
    if manifest.file_rego_versions:
        before = f"/{prefix}/" if prefix.parts else "/"
        versions = {f"/{name.removeprefix(before)}": at for name, at in manifest.file_rego_versions.items()}
        tree[MANIFEST] = replace(manifest, file_rego_versions=versions).content()
    return tree


def _inflated(content: bytes, archive: str, limits: Limits) -> bytes:
    stream = zlib.decompressobj(_GZIP)
    try:
        inflated = stream.decompress(content, limits.total + 1)
    except zlib.error as error:
        if content[:2] != b"\x1f\x8b":
            if Path(archive).suffix in (".rego", ".py"):
                what = "one file is no bundle of policies"
                raise BundleError(
                    what, place=(archive,), remedy=f"name its directory, `{Path(archive).parent}`"
                ) from None
            remedy = "name a directory that holds policies, or an archive `*.tar.gz`"
            raise BundleError("not a gzip file", place=(archive,), remedy=remedy) from None
        reason = "its checksum is wrong" if "check" in str(error) else "its bytes are damaged"
        raise BundleError(f"the archive cannot be inflated: {reason}", place=(archive,), remedy=_FETCH) from None
    if len(inflated) > limits.total:
        what = f"the archive inflates to more than {limits.total} bytes"
        raise BundleError(what, place=(archive,), remedy="leave out what is no policy")
    if not stream.eof:
        raise BundleError("the archive is cut off", place=(archive,), remedy=_FETCH)
    if stream.unused_data:
        raise BundleError("something follows the end of the gzip stream", place=(archive,), remedy=_FETCH)
    return inflated


def _prefix(files: Mapping[PurePosixPath, bytes]) -> PurePosixPath:
    """What stands before the modules' own paths: the part that their packages do not explain."""
    found = {
        prefix
        for path, content in files.items()
        if path.suffix == ".rego" and (prefix := _before_package(path, content)) is not None
    }
    return found.pop() if len(found) == 1 else PurePosixPath()


def _before_package(path: PurePosixPath, content: bytes) -> PurePosixPath | None:
    package = _PACKAGE.search(content.decode(errors="replace"))
    if package is None:
        return None
    names = tuple(package[1].split("."))
    for place in (path.parent, path.with_suffix(""), path.with_name(path.stem.removesuffix("_test"))):
        if place.parts[-len(names) :] == names:
            return PurePosixPath(*place.parts[: -len(names)])
    return None
