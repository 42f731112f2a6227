"""Lines are written whole, so that threads that print at once do not mix them."""

from __future__ import annotations

import sys
from io import StringIO

import pytest

from policyeng.cli.printing import say


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

    say("waiting: no longer audited", error=error)

    assert [text for text in stream.each if text] == ["waiting: no longer audited\n"]
