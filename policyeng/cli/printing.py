"""Printing without typer, which takes longer to load than a small report to make."""

from __future__ import annotations

import os
import sys
from typing import TextIO


def say(text: str, *, error: bool = False) -> None:
    """Print a line to standard output, or to standard error; nowhere when that was closed before we started."""
    stream = sys.stderr if error else sys.stdout
    if stream is not None:
        print(text, file=stream, flush=True)  # the place where printing happens


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person reads a stream; Python has None for one that was closed before it started."""
    return stream is not None and stream.isatty()


def look() -> tuple[bool, int]:
    """Whether standard output takes colour, and the columns to wrap text at: 100 where it is no terminal."""
    if not is_terminal(sys.stdout):
        return False, 100
    return "NO_COLOR" not in os.environ, min(os.get_terminal_size(sys.stdout.fileno()).columns, 160)
