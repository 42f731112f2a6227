"""Write the pages of policies to a directory, and take away those of policies that are gone."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath

from policyeng.cli.files import write
from policyeng.errors import UsageError
from policyeng.frozen import replace
from policyeng.policy_docs import MARK, PolicyPage
from policyeng.report.phrases import count


def linked(pages: Sequence[PolicyPage], roots: Sequence[Path], output: Path) -> list[PolicyPage]:
    """The pages with links to the files of their policies, where these and the pages lie below the current directory.

    What is installed elsewhere, or in an environment below it, has no place that would be there for other readers.
    """
    here, folder = Path.cwd(), output.resolve()
    if not folder.is_relative_to(here):
        return list(pages)
    return [replace(page, link=_link(_found(page.policy.file, roots), here, folder)) for page in pages]


def write_pages(folder: Path, files: Mapping[str, str]) -> str:
    """Write the files of a directory of pages, take away what else was written so, and say how many these were.

    Raises:
        UsageError: a file of that name is somebody's own, or the directory cannot be written.
    """
    present = {path.name: path for path in _markdown_files(folder)}
    for name in files:
        if name in present and not _is_ours(present[name]):
            what = "the file was not written by this command, and is left as it is"
            raise UsageError(what, place=(str(present[name]),), remedy="move it away, or name another directory")
    changed = {name: text for name, text in files.items() if name not in present or _read(present[name]) != text}
    left_over = [path for name, path in present.items() if name not in files and _is_ours(path)]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in changed.items():
            write(folder / name, text, "page", private=False)
        for path in left_over:
            path.unlink()
    except OSError as error:
        raise UsageError(_reason("the pages cannot be written", error), place=(str(folder),)) from error
    return (
        f"{folder}: {count(len(files), 'page')}: {len(changed)} written, {len(files) - len(changed)} as before, "
        f"{len(left_over)} removed"
    )


def _markdown_files(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == ".md") if folder.exists() else []
    except OSError as error:
        raise UsageError(_reason("the directory cannot be read", error), place=(str(folder),)) from error


def _is_ours(path: Path) -> bool:
    return path.is_file() and _read(path).startswith(f"{MARK}\n")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UsageError(_reason("the file cannot be read", error), place=(str(path),)) from error


def _found(file: str, roots: Sequence[Path]) -> Path | None:
    """The file of a policy; none for one in an archive."""
    paths = ((root / file).resolve() for root in roots)
    return next((path for path in paths if path.is_file()), None)


def _link(path: Path | None, here: Path, folder: Path) -> str:
    if path is None or not path.is_relative_to(here):
        return ""
    installed = any(part.startswith(".") or part == "site-packages" for part in path.relative_to(here).parts)
    return "" if installed else PurePath(os.path.relpath(path, folder)).as_posix()


def _reason(what: str, error: OSError) -> str:
    return f"{what}: {(error.strerror or str(error)).lower()}"
