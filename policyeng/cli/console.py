"""Printing and a progress line, without typer, which takes longer to load than a small report takes to create."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from time import monotonic
from typing import TYPE_CHECKING, TextIO

from policyeng.later import lazy_pattern
from policyeng.progress import listening

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


def print_parts(parts: Iterable[str]) -> None:
    """Print a text that comes in parts, with one line end after it; nothing for an empty text."""
    if sys.stdout is None:
        return
    waiting, is_empty = "", True
    for part in parts:
        # The last part is printed with its line end, in a single write as `print_line` does.
        if text := waiting.rstrip("\n"):
            sys.stdout.write(text)
            is_empty = False
        waiting = waiting[len(text) :] + part
    text = waiting.rstrip("\n")
    if text or not is_empty:
        print_line(text)


def print_form(render: Callable[..., str], value: object, format_: str) -> None:
    """Print a value in a format; text has the colors and the width of the terminal."""
    color, width = detect_terminal()
    text = render(value, color=color, width=width) if format_ == "text" else render(value)
    print_line(text.rstrip("\n"))


def print_errors(evaluation: Evaluation) -> None:
    """Print errors on standard error, and what was not read and is relevant, for formats that do not show them."""
    for problem in evaluation.problems:
        if problem.level == "error":
            place = f"{problem.place}: " if problem.place else ""
            print_line(f"policyeng: {place}{problem.message}", error=True)
    if any(entry.relevant for entry in evaluation.ledger):
        from policyeng.report.phrases import ledger_sentence  # most runs read everything

        print_line(f"policyeng: {ledger_sentence(evaluation.ledger)}", error=True)


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


#: The seconds between two changes of the line, and those before the time left is estimated.
_INTERVAL, _EARLIEST = 0.1, 1.0


@contextmanager
def show_progress(what: str, unit: str = "", total: int = 0) -> Iterator[Callable[..., None]]:
    """Show a progress line on standard error, and remove it afterwards; silent if that is not a terminal.

    Without a total, work inside the block that uses `policyeng.progress.counted` changes the line. The function that
    the block receives changes it, too: with the number of items done, and of all items if that is not `total`. No
    thread animates the line: a lock of a thread would stay locked in forked processes.

    Args:
        what: such as `evaluating`.
        unit: what is counted, in the plural.
        total: the number of items, if the block counts them itself.
    """
    if not is_terminal(sys.stderr):
        yield lambda *_: None
        return
    line = _ProgressLine(what, unit, total)
    with line.shown(), nullcontext() if total else listening(line.update):
        yield line.update


class _ProgressLine:
    def __init__(self, what: str, unit: str, total: int) -> None:
        self._what, self._unit, self._total = what, unit, total
        self._start = self._next = monotonic()
        self._width = 0

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the line, and remove it afterwards."""
        self._draw(f"{self._what} ...")
        try:
            yield
        finally:
            self._draw("", end="\r")

    def update(self, done: int, total: int = 0) -> None:
        """Show how much is done, if the line has not changed for a while."""
        now = monotonic()
        if now >= self._next and done:
            self._next = now + _INTERVAL
            self._draw(self.text(done, total or self._total, now - self._start))

    def text(self, done: int, total: int, seconds: float) -> str:
        """Return the line, with the time left if it can be estimated."""
        counts = f"{done:,} of {total:,}" if total else f"{done:,}"
        line = f"{self._what}: {counts}{f' {self._unit}' if self._unit else ''}"
        if total and seconds >= _EARLIEST:
            line += f", {_format_seconds(seconds / done * max(0, total - done))} left"
        return line

    def _draw(self, text: str, end: str = "") -> None:
        cut = text[: max(0, os.get_terminal_size(sys.stderr.fileno()).columns - 1)]
        sys.stderr.write(f"\r{cut.ljust(self._width)}{end}")
        sys.stderr.flush()
        self._width = len(cut)


def _format_seconds(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
