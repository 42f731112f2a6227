"""The files of a bundle, as bytes by path."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from policyeng.errors import BundleError

DATA_NAMES = frozenset({"data.json", "data.yaml", "data.yml"})


def built_in_root() -> Path:
    """The directory of the built-in policies: inside an installed package, or beside it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "policies"
    return installed if installed.is_dir() else package.parent / "policies"


def files_of(root: Path) -> dict[PurePosixPath, bytes]:
    """Every file of a bundle that counts: Rego without tests, data documents, Python policies, the manifest."""
    if not root.is_dir():
        raise BundleError(f"`{root}` is not a directory", remedy="name a directory that holds policies")
    found: dict[PurePosixPath, bytes] = {}
    for path in sorted(root.rglob("*")):
        relative = PurePosixPath(path.relative_to(root).as_posix())
        hidden = any(part.startswith((".", "__")) for part in relative.parts) and relative.name != ".manifest"
        test = path.name.endswith("_test.rego") or path.name == "conftest.py" or path.match("test_*.py")
        wanted = path.suffix in {".rego", ".py"} or path.name in DATA_NAMES or path.name == ".manifest"
        if wanted and not hidden and not test and path.is_file():
            found[relative] = path.read_bytes()
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
