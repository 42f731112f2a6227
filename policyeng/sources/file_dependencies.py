"""The file system queries that were made while a document was read, to detect later changes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from policyeng.named import NamedTuple


class FileDependency(NamedTuple):
    """A query and its result.

    Attributes:
        question: a name in `_QUESTIONS`.
        path: as it was queried.
        answer: the digest of a content or of names; empty if there is none.
    """

    question: str
    path: Path
    answer: str


_witness: ContextVar[list[FileDependency] | None] = ContextVar("policyeng_witness", default=None)


@contextmanager
def witnessed() -> Iterator[list[FileDependency]]:
    """Record the queries that are made inside the block."""
    asked: list[FileDependency] = []
    token = _witness.set(asked)
    try:
        yield asked
    finally:
        _witness.reset(token)


def note_content(path: Path, content: bytes | None) -> None:
    """Record the content of a file as far as it was read; None if it could not be read."""
    _note("content", path, lambda: digest_of(content))


def note_names(path: Path, names: list[str]) -> None:
    """Record the names in a directory."""
    _note("names", path, lambda: _digest_of_names(names))


def note_file(path: Path, *, is_file: bool) -> None:
    """Record whether a file exists."""
    _note("file", path, lambda: _told(is_file=is_file))


def answer(question: str, path: Path) -> str:
    """Return the current result of a recorded query."""
    return _QUESTIONS[question](path)


def digest_of(content: bytes | None) -> str:
    """Return the recorded form of a file's content."""
    return "" if content is None else hashlib.sha256(content).hexdigest()


def _note(question: str, path: Path, told: Callable[[], str]) -> None:
    asked = _witness.get()
    if asked is not None:
        asked.append(FileDependency(question, path, told()))


def _content(path: Path) -> str:
    try:
        return digest_of(path.read_bytes())
    except (OSError, ValueError):
        return ""


def _names(path: Path) -> str:
    try:
        return _digest_of_names(sorted(inner.name for inner in path.iterdir()))
    except OSError:
        return _digest_of_names([])


def _file(path: Path) -> str:
    return _told(is_file=path.is_file())


def _digest_of_names(names: list[str]) -> str:
    return digest_of(json.dumps(names).encode())


def _told(*, is_file: bool) -> str:
    return "yes" if is_file else "no"


_QUESTIONS: Mapping[str, Callable[[Path], str]] = {"content": _content, "names": _names, "file": _file}
