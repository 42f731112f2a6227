"""Printing without typer, which takes longer to load than a small report takes to create."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, TextIO

from policyeng.later import lazy_pattern

if TYPE_CHECKING:
    from policyeng.models import Evaluation

#: Longer quotations and words are cut in messages.
_LONGEST = 300
#: The values of `--color`; None where the terminal decides.
_COLORS = {"always": True, "never": False, "auto": None}
_QUOTED_OR_WORD = lazy_pattern(rf"`[^`\n]*`|\S{{{_LONGEST + 1},}}")


def print_line(text: str, *, error: bool = False) -> None:
    """Print a line to standard output or standard error, unless that stream was closed before the start.

    Errors quote user input, so control characters are escaped and very long words are cut.
    """
    stream = sys.stderr if error else sys.stdout
    if stream is not None:
        # A single write: `print` writes the line end separately, and another thread may print in between.
        print(f"{_escape(text) if error else text}\n", end="", file=stream, flush=True)


def print_errors(evaluation: Evaluation) -> None:
    """Print errors on standard error for report formats that do not show them."""
    for problem in evaluation.problems:
        if problem.level == "error":
            place = f"{problem.place}: " if problem.place else ""
            print_line(f"policyeng: {place}{problem.message}", error=True)


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


def detect_terminal(color: str | None = None) -> tuple[bool, int]:
    """Return whether to color standard output, and its width in columns: 100 if it is not a terminal.

    Args:
        color: `always`, `never` or `auto`. By default the environment decides: `NO_COLOR` is for never, `FORCE_COLOR`
            for always (no-color.org, force-color.org), and a terminal with `TERM=dumb` has no colors.

    Raises:
        UsageError: the value is none of these.
    """
    is_tty = is_terminal(sys.stdout)
    width = min(os.get_terminal_size(sys.stdout.fileno()).columns, 160) if is_tty else 100
    if color is not None and color.lower() not in _COLORS:
        from policyeng.errors import UsageError

        raise UsageError(f"unknown value `{color}` of --color", remedy=f"choose from {', '.join(_COLORS)}")
    chosen = _COLORS[(color or "auto").lower()]
    if chosen is None and color is None:
        chosen = _color_of_environment()
    return is_tty and os.environ.get("TERM") != "dumb" if chosen is None else chosen, width


def _color_of_environment() -> bool | None:
    if os.environ.get("NO_COLOR"):
        return False
    return True if os.environ.get("FORCE_COLOR", "0") not in ("", "0", "false") else None
