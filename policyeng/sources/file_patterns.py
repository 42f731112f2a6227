"""Selection of the files below a directory: patterns in `.gitignore` syntax, and paths that other options name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from policyeng.errors import UsageError
from policyeng.later import lazy_pattern
from policyeng.named import NamedTuple
from policyeng.sources.file_dependencies import note_content

if TYPE_CHECKING:  # loaded only where there are patterns
    from pathspec import GitIgnoreSpec

EXCLUDED = "excluded by `exclude`"
IGNORED = "ignored by a `.gitignore` (`--no-gitignore` reads it)"
NAMED_ELSEWHERE = "another option names it"

_SPECIAL = lazy_pattern(r"([*?\[\]\\ !#])")


class FileWalk(NamedTuple):
    """What is excluded from directories.

    Attributes:
        exclude: patterns as `excluded` returns them.
        gitignore: exclude what `.gitignore` files list.
        others: absolute paths of files that other options name.
    """

    exclude: tuple[str, ...] = ()
    gitignore: bool = True
    others: frozenset[Path] = frozenset()


#: Everything but what `.gitignore` files list.
EVERYTHING = FileWalk()


def excluded(patterns: Iterable[str], folder: Path) -> tuple[str, ...]:
    """Return patterns that are relative to a directory in the form for `FileWalk.exclude`.

    Raises:
        UsageError: one of them is not a pattern.
    """
    found = []
    for pattern in patterns:
        whole = _anchor(pattern, folder.resolve())
        if not whole or not _is_pattern(whole):
            remedy = "use the syntax of `.gitignore`, such as `tests/fixtures/`"
            raise UsageError(f"`{pattern}` is not a file pattern", remedy=remedy)
        found.append(whole)
    return tuple(found)


def resolve_paths(paths: Iterable[str | Path | None]) -> frozenset[Path]:
    """Return absolute paths for `FileWalk.others`; None is ignored."""
    return frozenset(whole for path in paths if path is not None and (whole := _resolve(Path(path))))


def _anchor(pattern: str, folder: Path) -> str:
    """Convert a pattern of a directory's `.gitignore` to one relative to the root; empty for a comment."""
    sign, text = ("!", pattern[1:]) if pattern.startswith("!") else ("", pattern)
    text = text.removeprefix("\\") if text.startswith(("\\!", "\\#")) else text
    if not text.strip() or pattern.startswith("#"):
        return ""
    anywhere = "" if "/" in text.rstrip().removesuffix("/") else "**/"
    return f"{sign}{_SPECIAL.sub(_escape, folder.as_posix()).rstrip('/')}/{anywhere}{text.removeprefix('/')}"


def _escape(letter: re.Match[str]) -> str:
    return f"\\{letter[1]}"


class Rules:
    """The rules that exclude files below one directory."""

    def __init__(self, directory: Path, walk: FileWalk) -> None:
        """Read the `.gitignore` files above an absolute directory, up to the top of its repository.

        A rule that excludes the directory itself is ignored, because the user named the directory.
        """
        self._root = directory
        self._walk = walk
        self._exclude = _make_spec(self._without_root(walk.exclude))
        above: list[str] = []
        folders = [self._root, *self._root.parents]
        top = next((at for at, folder in enumerate(folders) if (folder / ".git").exists()), 0)
        for folder in reversed(folders[1 : top + 1]) if walk.gitignore else ():
            above += _read_gitignore(folder)
        self._lines = {self._root.parent: self._without_root(above)}
        self._specs: dict[Path, GitIgnoreSpec | None] = {}

    def why_left_out(self, path: Path, end: str = "") -> str:
        """Return why an absolute path is excluded, or an empty string; `end` is a slash for a directory.

        Call it for the entries of a directory before those of its subdirectories.
        """
        name = path.as_posix().lstrip("/") + end
        if path in self._walk.others:
            return NAMED_ELSEWHERE
        if self._exclude is not None and self._exclude.match_file(name):
            return EXCLUDED
        spec = self._ignored_in(path.parent) if self._walk.gitignore else None
        return IGNORED if spec is not None and spec.match_file(name) else ""

    def _ignored_in(self, folder: Path) -> GitIgnoreSpec | None:
        if folder not in self._specs:
            above = self._lines.get(folder.parent, self._lines[self._root.parent])
            own = _read_gitignore(folder)
            self._lines[folder] = [*above, *own]
            known = self._specs.get(folder.parent)
            self._specs[folder] = known if known is not None and not own else _make_spec(self._lines[folder])
        return self._specs[folder]

    def _without_root(self, patterns: Sequence[str]) -> list[str]:
        name = f"{self._root.as_posix().lstrip('/')}/"
        return [one for one in patterns if (spec := _make_spec([one])) is not None and not spec.match_file(name)]


def _make_spec(patterns: Sequence[str]) -> GitIgnoreSpec | None:
    if not patterns:
        return None
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(patterns)


def _read_gitignore(folder: Path) -> list[str]:
    """Return the patterns of a directory's `.gitignore`."""
    path = folder / ".gitignore"
    try:
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
    except OSError:
        content = b""
    note_content(path, content or None)
    lines = content.decode("utf-8", "replace").removeprefix("\ufeff").splitlines()
    return [one for line in lines if (one := _anchor(line, folder)) and _is_pattern(one)]


def _is_pattern(pattern: str) -> bool:
    """Check whether a pattern can be matched; Git also ignores lines that cannot."""
    try:
        return _make_spec([pattern]) is not None
    except (ValueError, re.error):
        return False


def _resolve(path: Path) -> Path | None:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        return None
