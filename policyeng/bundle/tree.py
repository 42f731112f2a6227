"""The files of a bundle, as bytes by path."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
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
        BundleError: it is no directory, or a file cannot be read.
    """
    if not root.is_dir():
        raise BundleError(f"`{root}` is not a directory", remedy="name a directory that holds policies")
    return _read(root, counting=True)


def every_file_of(root: Path) -> dict[PurePosixPath, bytes]:
    """Every file below a directory, by path relative to it: what a signature has to cover.

    Raises:
        BundleError: a file cannot be read.
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
    hidden = any(part.startswith((".", "__")) for part in path.parts) and name != ".manifest"
    test = name.endswith("_test.rego") or name == "conftest.py" or (name.startswith("test_") and name.endswith(".py"))
    return not hidden and not test


def _read(root: Path, *, counting: bool) -> dict[PurePosixPath, bytes]:
    found: dict[PurePosixPath, bytes] = {}
    for relative in sorted(map(PurePosixPath, _names(root))):
        path = root / relative
        if (not counting or _may_count(relative)) and path.is_file():
            try:
                content = path.read_bytes()
            except OSError as error:
                raise _unreadable(error, path) from None
            if not counting or _counts(relative, content):
                found[relative] = content
    return found


def _names(root: Path) -> Iterator[str]:
    """Everything below a directory that is no directory, relative to it; links to directories are not followed.

    The walk is over strings: one over paths takes longer than judging a small snapshot.
    """

    def refuse(error: OSError) -> None:
        raise _unreadable(error, Path(error.filename)) from None

    top = os.fspath(root)
    for folder, _, names in os.walk(top, onerror=refuse):
        below = os.path.relpath(folder, top) if folder != top else ""
        yield from (os.path.join(below, name) for name in names)  # noqa: PTH118  # strings, see above


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
