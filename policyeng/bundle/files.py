"""The files of a bundle, as bytes by path."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from policyeng.bundle.header import carries_our_header, rego_metadata
from policyeng.bundle.manifest import Manifest, bundle_json, bundle_yaml, manifest_of
from policyeng.bundle.signature_policy import SIGNATURES, Signature, Verification
from policyeng.errors import BundleError
from policyeng.facts.catalogue import built_in_root
from policyeng.later import lazy_pattern

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

DATA_NAMES = frozenset({"data.json", "data.yaml", "data.yml"})
TEMPLATE_NAMES = frozenset({"template.yaml", "template.yml"})
CONSTRAINT_NAMES = frozenset({"constraint.yaml", "constraint.yml"})
#: Folders without foreign policies.
TEST_FOLDERS = frozenset({"test", "tests", "testdata"})
_CASES = frozenset({"cases.yaml", "cases.yml"})
_YAML = (".yaml", ".yml")
_GATEKEEPER = lazy_pattern(rb"(?:templates|constraints)\.gatekeeper\.sh/")
_NAMES = DATA_NAMES | TEMPLATE_NAMES | CONSTRAINT_NAMES | {".manifest"}


def files_of(root: Path) -> dict[PurePosixPath, bytes]:
    """Return every file of a bundle's directory that counts, by path relative to it.

    Raises:
        BundleError: it is no directory, a file cannot be read, or a link leads out of it.
    """
    if not root.is_dir():
        raise BundleError(f"`{root}` is not a directory", remedy="name a directory that holds policies")
    return _read(root, counting=True)


def every_file_of(root: Path) -> dict[PurePosixPath, bytes]:
    """Return every file below a directory, by path relative to it: what a signature has to cover.

    Raises:
        BundleError: a file cannot be read, or a link leads out of it.
    """
    return _read(root, counting=False)


def select_files(tree: Mapping[PurePosixPath, bytes]) -> dict[PurePosixPath, bytes]:
    """Return the files that count: Rego without tests, data, Python policies, the manifest, Gatekeeper's templates."""
    return {path: content for path, content in tree.items() if _may_count(path) and _counts(path, content)}


def is_gatekeepers(path: PurePosixPath, content: bytes) -> bool:
    """Return whether a file may contain templates or constraints: by name, or YAML that names Gatekeeper's groups."""
    if path.name in TEMPLATE_NAMES | CONSTRAINT_NAMES:
        return True
    other = path.suffix not in _YAML or path.name in DATA_NAMES or path.name in _CASES
    return not other and _GATEKEEPER.search(content) is not None


def _counts(path: PurePosixPath, content: bytes) -> bool:
    return path.suffix in (".rego", ".py") or path.name in _NAMES or is_gatekeepers(path, content)


def _may_count(path: PurePosixPath) -> bool:
    name = path.name
    if name in _CASES or not (name.endswith((".rego", ".py", *_YAML)) or name in _NAMES):
        return False
    hidden = _is_hidden(path) and name != ".manifest"
    test = name.endswith("_test.rego") or name == "conftest.py" or (name.startswith("test_") and name.endswith(".py"))
    return not hidden and not test


def _is_hidden(path: PurePosixPath) -> bool:
    return any(part.startswith((".", "__")) for part in path.parts)


def _read(root: Path, *, counting: bool) -> dict[PurePosixPath, bytes]:
    found: dict[PurePosixPath, bytes] = {}
    names, linked = _names(root)
    top = os.path.realpath(root)
    for relative in sorted(map(PurePosixPath, linked)):
        if not (counting and _is_hidden(relative)):
            _require_within(root / relative, top)
    for relative in sorted(map(PurePosixPath, names)):
        path = root / relative
        if counting and not _may_count(relative):
            continue
        if path.is_symlink():
            _require_within(path, top)
        if path.is_file():
            try:
                content = path.read_bytes()
            except OSError as error:
                raise _unreadable(error, path) from None
            if not counting or _counts(relative, content):
                found[relative] = content
    return found


def _require_within(link: Path, top: str) -> None:
    """Refuse a link that leads out: an untrusted directory could add any file of this machine to a bundle."""
    target = os.path.realpath(link)
    if os.path.commonpath((target, top)) != top:
        remedy = "put a copy in its place, or take it away"
        raise BundleError("the link leads out of the directory of the policies", place=(str(link),), remedy=remedy)


class FilesState(NamedTuple):
    """What shows that files have not changed: names, sizes and times; `latest` is the time of the latest change."""

    text: str
    latest: int


def state_of(root: Path) -> FilesState | None:
    """Return the state of the files that count in the directory of a bundle; None with links or without access."""
    seen: list[str] = []
    latest = 0
    try:
        for entry, is_read in _entries(root):
            if not is_read:
                seen.append(entry.path)
                continue
            status = entry.stat()
            latest = max(latest, status.st_ctime_ns)
            times = f"{status.st_mtime_ns} {status.st_ctime_ns}"
            seen.append(f"{entry.path} {status.st_ino} {status.st_size} {times}")
    except OSError:
        return None
    return FilesState("\n".join(sorted(seen)), latest)


def contents_of(root: Path) -> dict[str, bytes] | None:
    """Return all of which `state_of` returns the state, by relative path; None with links or without access.

    What counts by its name alone is empty.
    """
    start = len(os.fspath(root)) + 1
    contents = {}
    try:
        for entry, is_read in _entries(root):
            path = entry.path[start:].replace(os.sep, "/")
            contents[path] = b""
            if is_read:
                with open(entry.path, "rb", buffering=0) as file:  # noqa: PTH123  # a path object for each takes longer
                    contents[path] = file.read()
    except OSError:
        return None
    return contents


def _entries(root: Path) -> Iterator[tuple[os.DirEntry[str], bool]]:
    """Yield the files of a bundle's directory that may count, and whether their contents do.

    Raises:
        OSError: a directory cannot be read, or there is a link, and what it leads to may change unseen.
    """
    folders = [os.fspath(root)]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                name = entry.name
                if entry.is_symlink():
                    raise OSError(f"{entry.path} is a link")
                if entry.is_dir():
                    if not name.startswith((".", "__")):
                        folders.append(entry.path)
                elif name in _CASES or name.endswith("_test.rego"):
                    yield entry, False
                elif name in _NAMES or name.endswith((".rego", ".py", *_YAML)):
                    yield entry, True


def _names(root: Path) -> tuple[list[str], list[str]]:
    """Everything below a directory that is no directory, and the links to directories, which are not followed.

    The walk is over strings: one over `Path` objects takes longer than evaluating a small snapshot.
    """

    def refuse(error: OSError) -> None:
        raise _unreadable(error, Path(error.filename)) from None

    top = os.fspath(root)
    found: list[str] = []
    linked: list[str] = []
    for folder, folders, names in os.walk(top, onerror=refuse):
        below = os.path.relpath(folder, top) if folder != top else ""
        found += (os.path.join(below, name) for name in names)  # noqa: PTH118  # strings, see above
        links = (name for name in folders if os.path.islink(os.path.join(folder, name)))  # noqa: PTH114, PTH118  # see above
        linked += (os.path.join(below, name) for name in links)  # noqa: PTH118  # strings, see above
    return found, linked


def _unreadable(error: OSError, path: Path) -> BundleError:
    reason = (error.strerror or "unreadable").lower()
    return BundleError(f"cannot be read ({reason})", place=(str(path),), remedy="make it readable")


def text_of(content: bytes, path: Path) -> str:
    """Return the text of a file of a bundle, with Unix line ends.

    Raises:
        BundleError: it is not UTF-8.
    """
    try:
        return content.decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise BundleError(f"not UTF-8 at byte {error.start}", place=(str(path),)) from error


#: Roots that our own bundle lends to one that does not bring them.
_LENT = ("lib", "facts")
_PACKAGE = lazy_pattern(rb"^package[ \t]+(\w+)", re.MULTILINE)


class BundleOrigin(Struct, frozen=True):
    """A directory or archive that a bundle is read from.

    Attributes:
        name: of the directory, or of the archive without its ending.
        root: the directory, or the archive.
        tree: the relevant files, by path within the bundle.
        members: all files, relevant or not.
        lent: whether it is the part of the built-in bundle that the others use.
        azure_policy: whether it has definitions of Azure Policy, and nothing else that counts.
        signed: whether it has a signature; `signature` is its content, if it was verified.
    """

    name: str
    root: Path
    tree: Mapping[PurePosixPath, bytes]
    manifest: Manifest
    lent: bool = False
    members: tuple[PurePosixPath, ...] = ()
    signed: bool = False
    signature: Signature | None = None
    azure_policy: bool = False


#: What policies are read from: a directory, an archive, the name of an installed package of policies, or the texts of
#: files by their paths in a directory.
PolicySource = str | Path | Mapping[str, str]
#: The name by which `--policy` means the built-in policies.
BUILT_IN = "policyeng"
#: The entry point group in which packages of policies name the package that contains their directory.
ENTRY_POINTS = "policyeng.policies"


def open_origins(
    paths: Sequence[PolicySource], verification: Verification | None = None, *, built_in: bool = True
) -> list[BundleOrigin]:
    """Return the origins of a bundle; without paths, the built-in bundle if `built_in` is set.

    Raises:
        BundleError: a directory, archive or installed package cannot be read, or its signature is not valid or missing.
        UsageError: the key or the algorithm of `verification` cannot be used.
    """
    if verification is not None:
        verification.require_key()
    if not (paths or built_in):
        return []
    ours = files_of(built_in_root())
    if not paths:
        return [BundleOrigin("policyeng", built_in_root(), ours, manifest_of(ours, built_in_root()))]
    origins = [
        _open_texts(path, verification) if isinstance(path, Mapping) else _open(_find_root(path), verification)
        for path in paths
    ]
    if not any(is_ours(path, content) for origin in origins for path, content in origin.tree.items()):
        return origins
    present = {name for origin in origins for name in _top(origin)}
    wanted = {root for root in _LENT if root not in present}
    lent = {path: content for path, content in ours.items() if path.parts[0] in wanted}
    return [*origins, BundleOrigin("policyeng", built_in_root(), lent, Manifest(), lent=True)] if lent else origins


def is_installed(name: str) -> bool:
    """Check whether a package of policies with a name is installed."""
    return name == BUILT_IN or bool(_list_installed(name))


def _list_installed(name: str) -> Collection[EntryPoint]:
    from importlib.metadata import entry_points

    return entry_points(group=ENTRY_POINTS, name=name)


def _find_root(path: str | Path) -> Path:
    """Return the directory or archive of a path, or of the name of an installed package of policies."""
    root = Path(path)
    if str(path) == BUILT_IN and not root.exists():
        return built_in_root()
    for entry in () if root.exists() else _list_installed(str(path)):
        try:
            package = entry.load()
        except Exception as error:
            message = f"the installed package of policies cannot be loaded: {error}"
            raise BundleError(message, place=(str(path),), remedy="install it again, or name a directory") from error
        return Path(package.__path__[0] if hasattr(package, "__path__") else package)
    return root


def _open_texts(texts: Mapping[str, str], verification: Verification | None) -> BundleOrigin:
    """Return the origin of a bundle whose files are in memory."""
    if verification is not None and not verification.allow_unsigned_directory:
        raise BundleError("files in memory carry no signature", remedy="load a signed archive or directory")
    root = Path("<files>")
    tree = select_files({PurePosixPath(path): text.encode() for path, text in sorted(texts.items())})
    return BundleOrigin(root.name, root, tree, manifest_of(tree, root), members=tuple(tree))


def _open(root: Path, verification: Verification | None) -> BundleOrigin:
    name = root.resolve().name.removesuffix(".gz").removesuffix(".tar")
    if root.is_dir():
        signed = _is_signed(root)
        if verification is None or (verification.allow_unsigned_directory and not signed):
            tree = files_of(root)
            return BundleOrigin(name, root, tree, manifest_of(tree, root), members=tuple(tree), signed=signed)
        files = every_file_of(root)
        tree = files
    else:
        from policyeng.bundle.archive import (
            policy_tree,
            read_archive,  # most runs read directories
        )

        members = read_archive(root)
        files, tree = members.files, policy_tree(members, root)
    signature = _verified(files, root, verification) if verification else None
    tree = select_files(tree)
    manifest = manifest_of(tree, root)
    return BundleOrigin(
        name, root, tree, manifest, members=tuple(files), signed=SIGNATURES in files, signature=signature
    )


def _is_signed(root: Path) -> bool:
    """Return whether a directory has a signature.

    Raises:
        BundleError: something with its name exists that is not a regular file. Verifying skips such entries, so it
            could hide that the signature was removed.
    """
    place = root / SIGNATURES
    if place.is_symlink() or (place.exists() and not place.is_file()):
        remedy = "remove it, and sign the directory with `policyeng bundle sign`"
        raise BundleError("the signature is not a regular file", place=(str(place),), remedy=remedy)
    return place.exists()


def _verified(files: Mapping[PurePosixPath, bytes], root: Path, verification: Verification) -> Signature:
    from policyeng.bundle.signing import verify  # most runs verify nothing

    return verify(files, str(root), verification)


def is_ours(path: PurePosixPath, content: bytes) -> bool:
    """Return whether a file is, or may be, a policy of ours: Python, or Rego with a header."""
    if path.suffix != ".rego":
        return path.suffix == ".py"
    block = rego_metadata(text_of(content, Path(path)))
    return block is not None and carries_our_header(bundle_yaml(block, str(path)))


def _top(origin: BundleOrigin) -> Iterator[str]:
    """Yield the top-level names of an origin: folders, first parts of packages, keys of a data document."""
    for path, content in origin.tree.items():
        if path.suffix == ".rego" and (package := _PACKAGE.search(content)):
            yield package[1].decode()
        if len(path.parts) > 1:
            yield path.parts[0]
        elif path.name in DATA_NAMES:
            place = origin.root / path
            document = (
                bundle_json(content, str(place))
                if path.suffix == ".json"
                else bundle_yaml(text_of(content, place), str(place))
            )
            yield from document if isinstance(document, dict) else ()
