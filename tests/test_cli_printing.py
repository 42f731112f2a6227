"""Lines are written whole, so that threads that print at once do not mix them."""

from __future__ import annotations

import os
import sys
import termios
import threading
from io import StringIO

import pytest

from policyeng.cli.console import print_line, show_progress
from policyeng.progress import counted


class Writes(StringIO):
    """A stream that keeps each write by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.each: list[str] = []

    def write(self, text: str) -> int:
        """Keep what is written."""
        self.each.append(text)
        return len(text)


@pytest.mark.parametrize("error", [False, True])
def test_a_line_and_its_end_are_one_write(error: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two writes another thread could print."""
    stream = Writes()
    monkeypatch.setattr(sys, "stderr" if error else "stdout", stream)

    print_line("waiting: no longer audited", error=error)

    assert [text for text in stream.each if text] == ["waiting: no longer audited\n"]


@pytest.mark.parametrize(("columns", "shown"), [(80, "judging 7 resources ..."), (12, "judging 7 r"), (0, "")])
def test_progress_is_shown_and_cleared(columns: int, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal, within a line of it, and by no thread, which a fork would not take along."""
    before = threading.enumerate()
    ours, theirs = os.openpty()
    termios.tcsetwinsize(theirs, (24, columns))
    with os.fdopen(theirs, "w", encoding="utf-8") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        with show_progress("judging 7 resources"):
            assert threading.enumerate() == before
            output = os.read(ours, 100)
        gone = os.read(ours, 100)
    os.close(ours)

    assert output.decode() == f"\r{shown}"
    assert gone.decode() == f"\r{' ' * len(shown)}\r"


@pytest.mark.parametrize(
    ("total", "unit", "lines"),
    [
        (4, "files", ["1 of 4 files", "2 of 4 files, 2 s left", "3 of 4 files, 1 s left"]),
        (0, "", ["1", "2", "3"]),
    ],
)
def test_counts_and_the_time_left_are_shown(
    total: int, unit: str, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the outermost loop alone; without the time left before it can be estimated."""
    times = iter([0.0, 0.0, 0.5, 2.0, 3.0])
    monkeypatch.setattr("policyeng.cli.console.monotonic", lambda: next(times))
    ours, theirs = os.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    with os.fdopen(theirs, "w", encoding="utf-8") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        with show_progress("reading", unit):
            inner = [list(counted(range(9), 9)) for _ in counted(range(4), total)]
        output = os.read(ours, 1000).decode()
    os.close(ours)

    assert inner == [list(range(9))] * 4
    assert [line.strip() for line in output.split("\r") if ":" in line] == [f"reading: {line}" for line in lines]


def test_nothing_is_counted_without_a_listener() -> None:
    """A plain run and a server pay nothing for it."""
    items = [1, 2, 3]

    assert counted(items, 3) is items
