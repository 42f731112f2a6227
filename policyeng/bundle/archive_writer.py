"""Writer of reproducible bundle archives in OPA's format."""

from __future__ import annotations

import io
import re
import struct
import tarfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

import orjson

from policyeng.bundle.analysis import ModuleAnalysis, analysis_of
from policyeng.bundle.data_documents import join_document
from policyeng.bundle.files import DATA_NAMES, BundleOrigin, text_of
from policyeng.bundle.gatekeeper import with_templates
from policyeng.bundle.loader import Bundle
from policyeng.bundle.manifest import MANIFEST, Manifest
from policyeng.bundle.signature_policy import SIGNATURES
from policyeng.bundle.signing import signed
from policyeng.bundle.signing_keys import SigningKey
from policyeng.errors import BundleError
from policyeng.frozen import replace
from policyeng.models import JsonObject

_GLOB = re.compile(r"[*?\\\[\]{}]")
# No time, no name, best compression, no operating system.
_GZIP_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"


def archive_files(
    bundle: Bundle, origins: Sequence[BundleOrigin], revision: str = "", key: SigningKey | None = None
) -> dict[PurePosixPath, bytes]:
    """Return the files of the archive of a bundle, signed when there is a key.

    Modules and Python policies lie as they do in their directories; the data documents of one folder are one
    `data.json`; the manifest carries the revision, the roots and the digest. Tests and cases are left out.

    Raises:
        BundleError: two origins have one file or different Rego versions, or something is outside the roots.
    """
    # OPA reads no templates, so their modules lie in the archive, too.
    origins = [replace(origin, tree=with_templates(origin.root, origin.tree)[0]) for origin in origins]
    files = _documents(origins)
    for origin in origins:
        for path, content in origin.tree.items():
            if path.name in DATA_NAMES or path.name == MANIFEST.name:
                continue
            if files.setdefault(path, content) != content:
                places = ", ".join(str(other.root) for other in origins if path in other.tree)
                remedy = "rename one of them, or build two archives"
                raise BundleError(f"two files are called `{path}`", place=(places,), remedy=remedy)
    manifest = _manifest(bundle, origins, revision)
    _require_within_roots(manifest.roots or (), bundle)
    files[MANIFEST] = manifest.content()
    if key is not None:
        files[SIGNATURES] = signed(files, key)
    return files


def archive_bytes(files: Mapping[PurePosixPath, bytes]) -> bytes:
    """Return a reproducible gzipped tar of files, sorted by name."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path, content in sorted(files.items()):
            member = tarfile.TarInfo(str(path))
            member.size, member.mode = len(content), 0o644
            tar.addfile(member, io.BytesIO(content))
    plain = buffer.getvalue()
    stream = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    deflated = stream.compress(plain) + stream.flush()
    return _GZIP_HEADER + deflated + struct.pack("<LL", zlib.crc32(plain), len(plain))


def _documents(origins: Sequence[BundleOrigin]) -> dict[PurePosixPath, bytes]:
    """Return one `data.json` per folder: the existing one, or the folder's documents joined."""
    by_folder: dict[PurePosixPath, list[tuple[BundleOrigin, PurePosixPath]]] = {}
    for origin in origins:
        for path in sorted(origin.tree):
            if path.name in DATA_NAMES:
                by_folder.setdefault(path.parent, []).append((origin, path))
    files: dict[PurePosixPath, bytes] = {}
    for folder, documents in by_folder.items():
        origin, path = documents[0]
        content = origin.tree[path]
        if len(documents) > 1 or path.suffix != ".json":
            joined: JsonObject = {}
            for other, place in documents:
                join_document(joined, PurePosixPath(place.name), other.tree[place], other.root / folder)
            content = orjson.dumps(joined, option=orjson.OPT_SORT_KEYS)
        files[folder / "data.json"] = content
    return files


def _manifest(bundle: Bundle, origins: Sequence[BundleOrigin], revision: str) -> Manifest:
    own = [origin.manifest for origin in origins if not origin.lent]
    versions = {1 if manifest.rego_version is None else manifest.rego_version for manifest in own}
    if len(versions) > 1:
        places = ", ".join(str(origin.root) for origin in origins if not origin.lent)
        raise BundleError("the bundles are of different Rego versions", place=(places,), remedy="build two archives")
    metadata: JsonObject = {}
    files: dict[str, int] = {}
    for manifest in own:
        metadata.update(manifest.metadata)
        files.update(manifest.file_rego_versions)
    version = versions.pop()
    if version == 1:
        files.update({_GLOB.sub(r"\\\g<0>", path): 0 for path in bundle.rego_v0})
    # OPA compares them with paths that begin with `/` in a directory, and without one in our archive.
    files = {f"{slash}{name.lstrip('/')}": at for name, at in files.items() for slash in ("", "/")}
    ours = metadata.get("policyeng")
    metadata["policyeng"] = {**(ours if isinstance(ours, dict) else {}), "digest": bundle.digest}
    return Manifest(revision or bundle.revision, _roots(origins), version, files, metadata)


def _roots(origins: Sequence[BundleOrigin]) -> tuple[str, ...]:
    """Return the roots that the manifests state, joined by those of the origins that state none.

    None lies within another.
    """
    stated: list[str] = []
    for origin in origins:
        if origin.manifest.roots is not None:
            stated += [root.strip("/") for root in origin.manifest.roots]
        elif origin.lent:
            stated += {path.parts[0] for path in origin.tree}
        else:
            stated += {analysis.package.partition(".")[0] for analysis in _analyses(origin)}
            stated += _data_roots(origin)
    unique = sorted(set(stated))
    return tuple(root for root in unique if not any(other != root and _within(root, other) for other in unique))


def _analyses(origin: BundleOrigin) -> Iterator[ModuleAnalysis]:
    for path, content in origin.tree.items():
        if path.suffix == ".rego":
            place = origin.root / path
            yield analysis_of(text_of(content, place), origin.manifest.is_v0(path), str(place))


def _data_roots(origin: BundleOrigin) -> set[str]:
    data: JsonObject = {}
    for path, content in origin.tree.items():
        if path.name in DATA_NAMES:
            join_document(data, path, content, origin.root)
    return set(data)


def _require_within_roots(roots: Sequence[str], bundle: Bundle) -> None:
    """Refuse what OPA would refuse: a module or a part of the data outside the manifest's roots."""
    remedy = "add it to `roots` in the `.manifest`"
    for path, source in bundle.modules:
        package = analysis_of(source, path in bundle.rego_v0, path).package.replace(".", "/")
        if not any(_within(package, root) for root in roots):
            raise BundleError(f"the package `{package}` is outside the manifest's roots", place=(path,), remedy=remedy)
    pending: list[tuple[str, object]] = [("", bundle.data)]
    while pending:
        path, value = pending.pop()
        if any(_within(path, root) for root in roots):
            continue
        if not isinstance(value, dict) or (path and not any(_within(root, path) for root in roots)):
            raise BundleError(f"the data at `{path}` is outside the manifest's roots", remedy=remedy)
        pending += [(f"{path}/{key}".lstrip("/"), below) for key, below in value.items()]


def _within(path: str, root: str) -> bool:
    return not root or path == root or path.startswith(f"{root}/")
