"""Bundle archives in OPA's format: a reader of untrusted ones, with limits, and a writer of reproducible ones."""

from __future__ import annotations

import io
import re
import struct
import tarfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import orjson
from msgspec.structs import replace

from policyeng.bundle.analysis import ModuleAnalysis, analysis_of
from policyeng.bundle.assembling import join_document
from policyeng.bundle.external_policies import with_templates
from policyeng.bundle.files import DATA_NAMES, BundleOrigin, text_of
from policyeng.bundle.loader import Bundle
from policyeng.bundle.manifest import MANIFEST, Manifest, manifest_of
from policyeng.bundle.signature_policy import SIGNATURES
from policyeng.bundle.signing import SigningKey, signed
from policyeng.errors import BundleError
from policyeng.models import JsonObject
from policyeng.rego.paths import split_package

_BLOCK = 512
_END = bytes(_BLOCK)
_REBUILD = "build the archive again, or download it again"
_LINKED = "put a copy of the file in its place"
_REFUSED_KINDS = {
    b"1": "a hard link",
    b"2": "a symbolic link",
    b"3": "a device",
    b"4": "a device",
    b"6": "a named pipe",
    b"S": "a sparse file",
}
_DRIVE = re.compile(r"[A-Za-z]:")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """Limits of an archive: compressed bytes, bytes of all members, bytes of one member, and the number of members."""

    archive: int = 64 * 1024 * 1024
    total: int = 128 * 1024 * 1024
    member: int = 64 * 1024 * 1024
    members: int = 10_000


@dataclass(frozen=True, slots=True)
class TarMembers:
    """The regular files of a tar.

    Attributes:
        files: contents by path, without a leading `/` or `./`.
        rooted: every name begins with `/`, as OPA writes them.
    """

    files: dict[PurePosixPath, bytes]
    rooted: bool


@dataclass(frozen=True, slots=True)
class _TarEntry:
    kind: bytes
    name: str
    content: bytes


def read_members(content: bytes, archive: str, limits: ArchiveLimits) -> TarMembers:
    """Return the regular files of a tar.

    Raises:
        BundleError: the tar file is corrupt or truncated, exceeds the limits, or has a member that is not a
            regular file, points outside or repeats; names the archive, the member and the remedy.
    """
    files: dict[PurePosixPath, bytes] = {}
    rooted: list[bool] = []
    for entry in _entries(content, archive, limits):
        path = _path(entry.name, archive)
        if entry.kind == b"5":
            continue
        if path in files:
            raise _refuse(archive, str(path), "duplicate member", "keep one of the two")
        files[path] = entry.content
        rooted.append(entry.name.startswith("/"))
    if any(rooted) and not (all(rooted) and PurePosixPath("data.json") in files):
        name = f"/{list(files)[rooted.index(True)]}"
        raise _refuse(archive, name, "the name of the member is absolute", "store it relative to the bundle's root")
    return TarMembers(files, rooted=any(rooted))


def _entries(content: bytes, archive: str, limits: ArchiveLimits) -> Iterator[_TarEntry]:
    """Files and directories under their full names."""
    position, members, headers, name = 0, 0, 0, ""
    while (header := content[position : position + _BLOCK]) != _END:
        entry = _entry(header, content, position, archive)
        position += _BLOCK + -(-len(entry.content) // _BLOCK) * _BLOCK
        headers += 1
        if headers > 4 * limits.members:
            raise _refuse_too_many(archive, limits)
        if entry.kind in (b"x", b"g", b"L"):
            name = _read_long_name(entry, archive) or name
            continue
        members += 1
        if members > limits.members:
            raise _refuse_too_many(archive, limits)
        entry, name = _TarEntry(entry.kind, name or entry.name, entry.content), ""
        _require_plain(entry, archive, limits)
        yield entry
    rest = len(content) - position
    if rest < 2 * _BLOCK:
        raise _refuse(archive, "", "the tar is cut off: its end is missing", _REBUILD)
    if content.count(0, position) != rest:
        raise _refuse(archive, "", "something follows the end of the tar", _REBUILD)


def _entry(header: bytes, content: bytes, position: int, archive: str) -> _TarEntry:
    if len(header) < _BLOCK:
        raise _refuse(archive, "", "the tar is cut off: its end is missing", _REBUILD)
    spaced = sum(header) - sum(header[148:156]) + 8 * ord(" ")
    if _octal(header[148:156]) != spaced:
        raise _refuse(archive, "", f"the tar is damaged at byte {position}", _REBUILD)
    name = header[:100].split(b"\0")[0]
    if header[257:265] == b"ustar\x0000" and (prefix := header[345:500].split(b"\0")[0]):
        name = prefix + b"/" + name
    kind = header[156:157].replace(b"\0", b"0")
    text = _text(name, archive)
    size = _octal(header[124:136])
    if size is None:
        raise _refuse(archive, text, "the size of the member is not written in octal digits", _REBUILD)
    start = position + _BLOCK
    if start + size > len(content):
        raise _refuse(archive, text, "the tar is cut off within the member", _REBUILD)
    return _TarEntry(kind, text, content[start : start + size])


def _octal(field: bytes) -> int | None:
    digits = field.strip(b" \0")
    return int(digits, 8) if re.fullmatch(rb"[0-7]{1,12}", digits) else None


def _text(name: bytes, archive: str) -> str:
    try:
        return name.decode()
    except UnicodeDecodeError:
        raise _refuse(archive, repr(name)[2:-1], "the name of the member is not UTF-8", "rename the file") from None


def _read_long_name(header: _TarEntry, archive: str) -> str:
    """Return the name that an extended header gives the next member; empty when it gives none."""
    if header.kind == b"L":
        return _text(header.content.rstrip(b"\0"), archive)
    name, rest = "", header.content.rstrip(b"\0")
    while rest:
        length = re.match(rb"([1-9][0-9]{0,8}) ", rest)
        line = rest[: int(length[1])] if length else b""
        key, equals, value = line[length.end() :].partition(b"=") if length else (b"", b"", b"")
        if not equals or not line.endswith(b"\n") or len(line) != int(length[1] if length else 0):
            raise _refuse(archive, header.name, "the extended header is damaged", _REBUILD)
        if key in (b"size", b"linkpath", b"hdrcharset") or key.startswith(b"GNU.sparse"):
            what = f"the extended header sets `{_text(key, archive)}`"
            raise _refuse(archive, header.name, what, "write a plain tar")
        if key == b"path":
            if header.kind == b"g":
                raise _refuse(archive, header.name, "the extended header names every member", "write a plain tar")
            name = _text(value[:-1], archive)
        rest = rest[len(line) :]
    return name


def _require_plain(entry: _TarEntry, archive: str, limits: ArchiveLimits) -> None:
    if entry.kind not in (b"0", b"5"):
        what = _REFUSED_KINDS.get(entry.kind, "no regular file")
        raise _refuse(archive, entry.name, f"the member is {what}", _LINKED)
    if entry.kind == b"5" and entry.content:
        raise _refuse(archive, entry.name, "the directory has a content", _REBUILD)
    if len(entry.content) > limits.member:
        what = f"the member is larger than {limits.member} bytes"
        raise _refuse(archive, entry.name, what, "a bundle holds policies and small documents: leave it out")


def _path(name: str, archive: str) -> PurePosixPath:
    shown = name.encode("unicode_escape").decode()
    if "\\" in name or _DRIVE.match(name) or name.startswith("//"):
        raise _refuse(archive, shown, "the name of the member is a Windows path", "write names with single `/`")
    if _CONTROL.search(name):
        raise _refuse(archive, shown, "the name of the member holds a control character", "rename the file")
    path = PurePosixPath(name.lstrip("/"))
    if ".." in path.parts:
        raise _refuse(archive, shown, "the name of the member leads out of the bundle", "store it without `..`")
    return path


def _refuse_too_many(archive: str, limits: ArchiveLimits) -> BundleError:
    remedy = "a bundle holds policies and small documents: leave the rest out"
    return _refuse(archive, "", f"the archive has more than {limits.members} members", remedy)


def _refuse(archive: str, member: str, what: str, remedy: str) -> BundleError:
    return BundleError(what, place=(archive, member), remedy=remedy)


_GZIP = 31  # zlib's word for a gzip header and its checksum
_FETCH = "build the archive again, or download it again"
_REDUCE = "remove files that are not policies"
_PACKAGE = re.compile(r"^package[ \t]+([\w.]+)", re.MULTILINE)
#: Members by which an archive of OPA shows that the sources of its policies are no longer whole, with the remedy.
_UNREADABLE = {
    "policy.wasm": ("was compiled to WebAssembly", "build it with `opa build --target rego`"),
    "plan.json": ("was compiled to a plan", "build it with `opa build --target rego`"),
    "plan.pb": ("was compiled to a plan", "build it with `opa build --target rego`"),
    "patch.json": ("holds changes to another bundle", "name the bundle that they change"),
    ".manifest.pb": ("has a manifest in protobuf", "build it with a `.manifest` in JSON"),
}


def read_archive(path: Path, limits: ArchiveLimits | None = None) -> TarMembers:
    """Return the members of an archive.

    Raises:
        BundleError: the file cannot be read, is not a gzip file, is truncated or corrupt, or its tar file is refused;
            names the archive, the member and the remedy.
    """
    limits = limits or ArchiveLimits()
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
        raise BundleError(what, place=(str(path),), remedy=_REDUCE)
    return read_members(_inflated(content, str(path), limits), str(path), limits)


def policy_tree(members: TarMembers, archive: Path) -> dict[PurePosixPath, bytes]:
    """Return the members at the paths that the files had in the bundle's directory.

    OPA puts the path of the directory on its command line before the names of modules; it is removed here.

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


def _inflated(content: bytes, archive: str, limits: ArchiveLimits) -> bytes:
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
        raise BundleError(what, place=(archive,), remedy=_REDUCE)
    if not stream.eof:
        raise BundleError("the archive is cut off", place=(archive,), remedy=_FETCH)
    if stream.unused_data:
        raise BundleError("something follows the end of the gzip stream", place=(archive,), remedy=_FETCH)
    return inflated


def _prefix(files: Mapping[PurePosixPath, bytes]) -> PurePosixPath:
    """Return the common prefix of the modules' paths: the part that is not in their package names."""
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
            stated += {split_package(analysis.package)[0] for analysis in _analyses(origin)}
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
        package = "/".join(split_package(analysis_of(source, path in bundle.rego_v0, path).package))
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
