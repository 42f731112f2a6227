"""Printing without typer, which takes longer to load than a small report to make."""

from __future__ import annotations

import sys


def say(text: str, *, error: bool = False) -> None:
    """Print a line to standard output, or to standard error; nowhere when that was closed before we started."""
    stream = sys.stderr if error else sys.stdout
    if stream is not None:
        print(text, file=stream, flush=True)  # the place where printing happens
