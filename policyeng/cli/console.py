"""Printing without typer, which takes longer to load than a small report to make."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from policyeng.later import lazy_pattern

#: What the user wrote, and words: one that is longer than this fills the screen and says no more.
_LONGEST = 300
_QUOTED_OR_WORD = lazy_pattern(rf"`[^`\n]*`|\S{{{_LONGEST + 1},}}")


def say(text: str, *, error: bool = False) -> None:
    """Print a line to standard output, or to standard error; nowhere when that was closed before we started.

    Errors repeat what the user wrote: there a terminal obeys none of it, and what is very long is cut.
    """
    stream = sys.stderr if error else sys.stdout
    if stream is not None:
        # One write for the line and its end: `print` writes them apart, and another thread may print in between.
        print(f"{_harmless(text) if error else text}\n", end="", file=stream, flush=True)


def _harmless(text: str) -> str:
    from policyeng.report.escaping import visible

    shown = visible(text, keep="\n\t")  # compilers quote lines of source
    return _QUOTED_OR_WORD.sub(_cut, shown)


def _cut(found: re.Match[str]) -> str:
    whole = found[0]
    if len(whole) <= _LONGEST:
        return whole
    return f"{whole[: _LONGEST // 2]}…{'`' if whole[0] == '`' else ''}"


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person reads a stream; Python has None for one that was closed before it started."""
    return stream is not None and stream.isatty()


def look() -> tuple[bool, int]:
    """Whether standard output takes colour, and the columns to wrap text at: 100 where it is no terminal."""
    if not is_terminal(sys.stdout):
        return False, 100
    return "NO_COLOR" not in os.environ, min(os.get_terminal_size(sys.stdout.fileno()).columns, 160)


@contextmanager
def busy(what: str) -> Iterator[None]:
    """Say on a terminal's standard error what takes long, and take it away again; silent elsewhere.

    No thread animates it: locks that a thread holds stay locked in processes that are forked meanwhile.
    """
    if not is_terminal(sys.stderr):
        yield
        return
    line = f"{what} ..."[: max(0, os.get_terminal_size(sys.stderr.fileno()).columns - 1)]
    _draw(f"{line}\r")
    try:
        yield
    finally:
        _draw(f"{' ' * len(line)}\r")


def _draw(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
