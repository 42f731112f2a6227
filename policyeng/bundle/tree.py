"""The files of a bundle, as bytes by path."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from policyeng.errors import BundleError

DATA_NAMES = frozenset({"data.json", "data.yaml", "data.yml"})


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
    """The files that count: Rego without tests, data documents, Python policies, the manifest."""
    return {path: content for path, content in tree.items() if _counts(path)}


def _counts(path: PurePosixPath) -> bool:
    hidden = any(part.startswith((".", "__")) for part in path.parts) and path.name != ".manifest"
    test = path.name.endswith("_test.rego") or path.name == "conftest.py" or path.match("test_*.py")
    wanted = path.suffix in {".rego", ".py"} or path.name in DATA_NAMES or path.name == ".manifest"
    return wanted and not hidden and not test


def _read(root: Path, *, counting: bool) -> dict[PurePosixPath, bytes]:
    found: dict[PurePosixPath, bytes] = {}
    for path in sorted(root.rglob("*")):
        relative = PurePosixPath(path.relative_to(root).as_posix())
        if (not counting or _counts(relative)) and path.is_file():
            try:
                found[relative] = path.read_bytes()
            except OSError as error:
                reason = (error.strerror or "unreadable").lower()
                raise BundleError(f"cannot be read ({reason})", place=(str(path),), remedy="make it readable") from None
    return found


def text_of(content: bytes, path: Path) -> str:
    """The text of a file of a bundle, with Unix line ends.

    Raises:
        BundleError: it is not UTF-8.
    """
    try:
        return content.decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise BundleError(f"not UTF-8 at byte {error.start}", place=(str(path),)) from error
