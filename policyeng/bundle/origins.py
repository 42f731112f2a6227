"""Open what a bundle is read from: directories and archives, each verified before anything in it is used."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from policyeng.bundle.header import carries_our_header, rego_metadata
from policyeng.bundle.manifest import Manifest, manifest_of
from policyeng.bundle.parsing import bundle_json, bundle_yaml
from policyeng.bundle.tree import DATA_NAMES, built_in_root, counted, every_file_of, files_of, text_of
from policyeng.bundle.verification import SIGNATURES, Signature, Verification
from policyeng.errors import BundleError
from policyeng.frozen import frozen

#: Roots that our own bundle lends to one that does not bring them.
_LENT = ("lib", "facts")
_PACKAGE = re.compile(rb"^package[ \t]+(\w+)", re.MULTILINE)


@frozen
class Origin:
    """A directory or archive that a bundle is read from.

    Attributes:
        name: of the directory, or of the archive without its ending.
        root: the directory, or the archive.
        tree: the files that count, by path within the bundle.
        members: everything in it, whether it counts or not.
        lent: it is the part of the built-in bundle that the others use.
        signed: it carries a signature; `signature` is what it says, when it was verified.
    """

    name: str
    root: Path
    tree: Mapping[PurePosixPath, bytes]
    manifest: Manifest
    lent: bool = False
    members: tuple[PurePosixPath, ...] = ()
    signed: bool = False
    signature: Signature | None = None


def open_origins(paths: Sequence[str | Path], verification: Verification | None = None) -> list[Origin]:
    """The origins of a bundle, the built-in ones last where they are lent; without paths the built-in bundle alone.

    Raises:
        BundleError: a directory or archive cannot be read, or its signature does not hold or is missing.
        UsageError: the key or the algorithm of `verification` cannot be used.
    """
    if verification is not None:
        verification.require_key()
    ours = files_of(built_in_root())
    if not paths:
        return [Origin("policyeng", built_in_root(), ours, manifest_of(ours, built_in_root()))]
    origins = [_open(Path(path), verification) for path in paths]
    if not any(_is_ours(path, content) for origin in origins for path, content in origin.tree.items()):
        return origins
    present = {name for origin in origins for name in _top(origin)}
    wanted = {root for root in _LENT if root not in present}
    lent = {path: content for path, content in ours.items() if path.parts[0] in wanted}
    return [*origins, Origin("policyeng", built_in_root(), lent, Manifest(), lent=True)] if lent else origins


def _open(root: Path, verification: Verification | None) -> Origin:
    name = root.resolve().name.removesuffix(".gz").removesuffix(".tar")
    if root.is_dir():
        signed = _is_signed(root)
        if verification is None or (verification.allow_unsigned_directory and not signed):
            tree = files_of(root)
            return Origin(name, root, tree, manifest_of(tree, root), members=tuple(tree), signed=signed)
        files = every_file_of(root)
        tree = files
    else:
        from policyeng.bundle.archive import policy_tree, read_archive  # most runs read directories

        members = read_archive(root)
        files, tree = members.files, policy_tree(members, root)
    signature = _verified(files, root, verification) if verification else None
    tree = counted(tree)
    manifest = manifest_of(tree, root)
    return Origin(name, root, tree, manifest, members=tuple(files), signed=SIGNATURES in files, signature=signature)


def _is_signed(root: Path) -> bool:
    """Return whether a directory has a signature.

    Raises:
        BundleError: something of its name is there that is not a regular file. Verifying skips such entries, so it
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


def _is_ours(path: PurePosixPath, content: bytes) -> bool:
    """Whether a file is, or may be, a policy of ours: Python, or Rego with a header."""
    if path.suffix != ".rego":
        return path.suffix == ".py"
    block = rego_metadata(text_of(content, Path(path)))
    return block is not None and carries_our_header(bundle_yaml(block, str(path)))


def _top(origin: Origin) -> Iterator[str]:
    """What an origin has at the top: folders, first parts of packages, the keys of a data document that lies there."""
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
