"""What was asked of the file system while a document was read, so that it can be asked again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from policyeng.named import NamedTuple


class FileDependency(NamedTuple):
    """A question and its answer.

    Attributes:
        question: a name of `_QUESTIONS`.
        path: as it was asked for.
        answer: the digest of a content or of names; empty where there is none.
    """

    question: str
    path: Path
    answer: str


_witness: ContextVar[list[FileDependency] | None] = ContextVar("policyeng_witness", default=None)


@contextmanager
def witnessed() -> Iterator[list[FileDependency]]:
    """Note what is asked inside the block."""
    asked: list[FileDependency] = []
    token = _witness.set(asked)
    try:
        yield asked
    finally:
        _witness.reset(token)


def note_content(path: Path, content: bytes | None) -> None:
    """Note what a file holds, as far as it was read; None where it could not be."""
    _note("content", path, lambda: digest_of(content))


def note_names(path: Path, names: list[str]) -> None:
    """Note what lies in a directory."""
    _note("names", path, lambda: _digest_of_names(names))


def note_file(path: Path, *, is_file: bool) -> None:
    """Note whether there is a file."""
    _note("file", path, lambda: _told(is_file=is_file))


def answer(question: str, path: Path) -> str:
    """What a question that was noted is answered now."""
    return _QUESTIONS[question](path)


def digest_of(content: bytes | None) -> str:
    """How the content of a file is noted."""
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
