"""The files of a bundle, as bytes by path."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from policyeng.errors import BundleError

DATA_NAMES = frozenset({"data.json", "data.yaml", "data.yml"})
TEMPLATE_NAMES = frozenset({"template.yaml", "template.yml"})
CONSTRAINT_NAMES = frozenset({"constraint.yaml", "constraint.yml"})
#: Folders that hold no policies of others.
TEST_FOLDERS = frozenset({"test", "tests", "testdata"})
_CASES = frozenset({"cases.yaml", "cases.yml"})
_YAML = (".yaml", ".yml")
_GATEKEEPER = re.compile(rb"(?:templates|constraints)\.gatekeeper\.sh/")
_NAMES = DATA_NAMES | TEMPLATE_NAMES | CONSTRAINT_NAMES | {".manifest"}


def built_in_root() -> Path:
    """The directory of the built-in policies: inside an installed package, or beside it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "policies"
    return installed if installed.is_dir() else package.parent / "policies"


def files_of(root: Path) -> dict[PurePosixPath, bytes]:
    """Every file of a bundle's directory that counts, by path relative to it.

    Raises:
        BundleError: it is no directory, a file cannot be read, or a link leads out of it.
    """
    if not root.is_dir():
        raise BundleError(f"`{root}` is not a directory", remedy="name a directory that holds policies")
    return _read(root, counting=True)


def every_file_of(root: Path) -> dict[PurePosixPath, bytes]:
    """Every file below a directory, by path relative to it: what a signature has to cover.

    Raises:
        BundleError: a file cannot be read, or a link leads out of it.
    """
    return _read(root, counting=False)


def counted(tree: Mapping[PurePosixPath, bytes]) -> dict[PurePosixPath, bytes]:
    """The files that count: Rego without tests, data, Python policies, the manifest, Gatekeeper's templates."""
    return {path: content for path, content in tree.items() if _may_count(path) and _counts(path, content)}


def is_gatekeepers(path: PurePosixPath, content: bytes) -> bool:
    """Whether a file may hold templates or constraints: by its name, or YAML that names Gatekeeper's groups."""
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
    """Refuse a link that leads out: a directory of somebody else could bring any file of this machine into a bundle."""
    target = os.path.realpath(link)
    if os.path.commonpath((target, top)) != top:
        remedy = "put a copy in its place, or take it away"
        raise BundleError("the link leads out of the directory of the policies", place=(str(link),), remedy=remedy)


def _names(root: Path) -> tuple[list[str], list[str]]:
    """Everything below a directory that is no directory, and the links to directories, which are not followed.

    The walk is over strings: one over paths takes longer than judging a small snapshot.
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
    """The text of a file of a bundle, with Unix line ends.

    Raises:
        BundleError: it is not UTF-8.
    """
    try:
        return content.decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise BundleError(f"not UTF-8 at byte {error.start}", place=(str(path),)) from error
