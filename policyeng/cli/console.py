"""Printing without typer, which takes longer to load than a small report takes to create."""

from __future__ import annotations

import os
import re
import sys
from typing import TextIO

from policyeng.later import lazy_pattern

#: Longer quotations and words are cut in messages.
_LONGEST = 300
_QUOTED_OR_WORD = lazy_pattern(rf"`[^`\n]*`|\S{{{_LONGEST + 1},}}")


def print_line(text: str, *, error: bool = False) -> None:
    """Print a line to standard output or standard error, unless that stream was closed before the start.

    Errors quote user input, so control characters are escaped and very long words are cut.
    """
    stream = sys.stderr if error else sys.stdout
    if stream is not None:
        # A single write: `print` writes the line end separately, and another thread may print in between.
        print(f"{_escape(text) if error else text}\n", end="", file=stream, flush=True)


def _escape(text: str) -> str:
    from policyeng.report.escaping import visible

    shown = visible(text, keep="\n\t")  # compilers quote lines of source
    return _QUOTED_OR_WORD.sub(_shorten, shown)


def _shorten(found: re.Match[str]) -> str:
    whole = found[0]
    if len(whole) <= _LONGEST:
        return whole
    return f"{whole[: _LONGEST // 2]}…{'`' if whole[0] == '`' else ''}"


def is_terminal(stream: TextIO | None) -> bool:
    """Check whether a stream is a terminal; a stream that was closed before Python started is None."""
    return stream is not None and stream.isatty()


def detect_terminal() -> tuple[bool, int]:
    """Return whether standard output supports color, and its width in columns: 100 if it is not a terminal."""
    if not is_terminal(sys.stdout):
        return False, 100
    return "NO_COLOR" not in os.environ, min(os.get_terminal_size(sys.stdout.fileno()).columns, 160)
