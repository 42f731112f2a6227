"""A progress line on standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from time import monotonic

from policyeng.cli.console import is_terminal
from policyeng.progress import listening

#: The seconds between two changes of the line, and those before the time left is estimated.
_INTERVAL, _EARLIEST = 0.1, 1.0


@contextmanager
def show_progress(what: str, unit: str = "", total: int = 0) -> Iterator[Callable[..., None]]:
    """Show a progress line on standard error, and remove it afterwards; silent if that is not a terminal.

    Without a total, work inside the block that uses `policyeng.progress.counted` changes the line. The function that
    the block receives changes it, too: with the number of items done, and of all items if that is not `total`. No
    thread animates the line: a lock that a thread holds would stay locked in forked processes.

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
