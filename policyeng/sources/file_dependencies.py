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


_recorder: ContextVar[list[FileDependency] | None] = ContextVar("policyeng_witness", default=None)


@contextmanager
def record_queries() -> Iterator[list[FileDependency]]:
    """Record the queries that are made inside the block."""
    recorded: list[FileDependency] = []
    token = _recorder.set(recorded)
    try:
        yield recorded
    finally:
        _recorder.reset(token)


def note_content(path: Path, content: bytes | None) -> None:
    """Record the content of a file as far as it was read; None if it could not be read."""
    _record("content", path, lambda: digest_of(content))


def note_names(path: Path, names: list[str]) -> None:
    """Record the names in a directory."""
    _record("names", path, lambda: _digest_of_names(names))


def note_file(path: Path, *, is_file: bool) -> None:
    """Record whether a file exists."""
    _record("file", path, lambda: _yes_or_no(is_file=is_file))


def answer(question: str, path: Path) -> str:
    """Return the current result of a recorded query."""
    return _QUESTIONS[question](path)


def digest_of(content: bytes | None) -> str:
    """Return the recorded form of a file's content."""
    return "" if content is None else hashlib.sha256(content).hexdigest()


def _record(question: str, path: Path, make_answer: Callable[[], str]) -> None:
    recorded = _recorder.get()
    if recorded is not None:
        recorded.append(FileDependency(question, path, make_answer()))


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
    return _yes_or_no(is_file=path.is_file())


def _digest_of_names(names: list[str]) -> str:
    return digest_of(json.dumps(names).encode())


def _yes_or_no(*, is_file: bool) -> str:
    return "yes" if is_file else "no"


_QUESTIONS: Mapping[str, Callable[[Path], str]] = {"content": _content, "names": _names, "file": _file}
