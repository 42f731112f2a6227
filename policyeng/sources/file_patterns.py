"""Which files below a directory are looked at: patterns in the syntax of `.gitignore`, and what other options name."""

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
    """What is left out of directories.

    Attributes:
        exclude: patterns as `anchored` gives them.
        gitignore: leave out what `.gitignore` files list.
        others: whole paths of files that other options name.
    """

    exclude: tuple[str, ...] = ()
    gitignore: bool = True
    others: frozenset[Path] = frozenset()


#: Everything but what `.gitignore` files list.
EVERYTHING = FileWalk()


def excluded(patterns: Iterable[str], folder: Path) -> tuple[str, ...]:
    """Patterns that are relative to a folder, for `FileWalk.exclude`.

    Raises:
        UsageError: one of them is none.
    """
    found = []
    for pattern in patterns:
        whole = _anchored(pattern, folder.resolve())
        if not whole or not _is_pattern(whole):
            remedy = "write it as in a `.gitignore`, such as `tests/fixtures/`"
            raise UsageError(f"`{pattern}` is no pattern of files to exclude", remedy=remedy)
        found.append(whole)
    return tuple(found)


def whole_paths(paths: Iterable[str | Path | None]) -> frozenset[Path]:
    """Paths for `FileWalk.others`; None is no path."""
    return frozenset(whole for path in paths if path is not None and (whole := _whole(Path(path))))


def _anchored(pattern: str, folder: Path) -> str:
    """A pattern of a folder's `.gitignore` as one that means the same below the root; empty for a comment."""
    sign, text = ("!", pattern[1:]) if pattern.startswith("!") else ("", pattern)
    text = text.removeprefix("\\") if text.startswith(("\\!", "\\#")) else text
    if not text.strip() or pattern.startswith("#"):
        return ""
    anywhere = "" if "/" in text.rstrip().removesuffix("/") else "**/"
    return f"{sign}{_SPECIAL.sub(_escaped, folder.as_posix()).rstrip('/')}/{anywhere}{text.removeprefix('/')}"


def _escaped(letter: re.Match[str]) -> str:
    return f"\\{letter[1]}"


class Rules:
    """The rules for what lies below one directory that is walked."""

    def __init__(self, directory: Path, walk: FileWalk) -> None:
        """Read the `.gitignore` files above a directory, given whole, up to the top of its repository.

        A rule that leaves out the directory itself is none, because the user named it.
        """
        self._root = directory
        self._walk = walk
        self._exclude = _spec(self._without_root(walk.exclude))
        above: list[str] = []
        folders = [self._root, *self._root.parents]
        top = next((at for at, folder in enumerate(folders) if (folder / ".git").exists()), 0)
        for folder in reversed(folders[1 : top + 1]) if walk.gitignore else ():
            above += _listed_in(folder)
        self._lines = {self._root.parent: self._without_root(above)}
        self._specs: dict[Path, GitIgnoreSpec | None] = {}

    def why_left_out(self, path: Path, end: str = "") -> str:
        """Why a whole path is not looked at, with `end` a slash for that of a folder; empty when it is.

        What lies in a folder is asked about after what lies in the folder above.
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
            own = _listed_in(folder)
            self._lines[folder] = [*above, *own]
            known = self._specs.get(folder.parent)
            self._specs[folder] = known if known is not None and not own else _spec(self._lines[folder])
        return self._specs[folder]

    def _without_root(self, patterns: Sequence[str]) -> list[str]:
        name = f"{self._root.as_posix().lstrip('/')}/"
        return [one for one in patterns if (spec := _spec([one])) is not None and not spec.match_file(name)]


def _spec(patterns: Sequence[str]) -> GitIgnoreSpec | None:
    if not patterns:
        return None
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(patterns)


def _listed_in(folder: Path) -> list[str]:
    """The patterns of the `.gitignore` of a folder."""
    path = folder / ".gitignore"
    try:
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
    except OSError:
        content = b""
    note_content(path, content or None)
    lines = content.decode("utf-8", "replace").removeprefix("\ufeff").splitlines()
    return [one for line in lines if (one := _anchored(line, folder)) and _is_pattern(one)]


def _is_pattern(pattern: str) -> bool:
    """Whether a pattern can be matched; git, too, ignores a line of a `.gitignore` that cannot."""
    try:
        return _spec([pattern]) is not None
    except (ValueError, re.error):
        return False


def _whole(path: Path) -> Path | None:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        return None
