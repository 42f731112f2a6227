"""The decision log: no decision waits for it, and what it lacks is counted and reported."""

from __future__ import annotations

import io
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from policyeng.models import JsonObject
from policyeng.server.decision_log import NAME, DecisionLog, Fate, Segments, Standard
from policyeng.server.service import Answered

LABELS = {"id": "me"}


class Slow:
    """A sink that is blocked, or refuses."""

    torn = 0

    def __init__(self) -> None:
        self.open = threading.Event()
        self.refusing = False
        self.lines: list[JsonObject] = []

    def write(self, lines: bytes) -> None:
        """Once it is open, unless it refuses."""
        assert self.open.wait(60)
        if self.refusing:
            raise OSError(28, "No space left on device")
        self.lines += map(orjson.loads, lines.splitlines())

    def close(self) -> None:
        """There is nothing to end."""


def plain(number: int = 0, **more: Any) -> Answered:
    """A request that came to nothing."""
    moment = datetime(2026, 6, 1, tzinfo=UTC)
    return Answered("admit", f"d{number}", "r", "", moment, 0.001, 200, **more)


def test_a_slow_sink_blocks_no_one(caplog: pytest.LogCaptureFixture) -> None:
    """Entries without a place are dropped and counted, and the gap is noted at its place."""
    sink = Slow()
    log = DecisionLog(sink, LABELS, waiting=3, waiting_bytes=1000)
    log.answered(plain(0, size=10))
    while log.waiting:  # the thread has it and is blocked
        threading.Event().wait(0.001)
    for number in range(1, 8):
        log.answered(plain(number, size=10))
    assert (log.waiting, log.fates[Fate.DROPPED]) == (3, 4)
    sink.open.set()
    log.close()

    assert [line.get("decision_id") or line["gap"] for line in sink.lines] == [
        "d0",
        {"dropped": 4},
        "d1",
        "d2",
        "d3",
    ]
    assert log.fates == {Fate.WRITTEN: 4, Fate.DROPPED: 4}
    assert caplog.messages == []


def test_bodies_that_wait_are_bounded_by_their_bytes() -> None:
    """However few they are."""
    sink = Slow()
    log = DecisionLog(sink, LABELS, waiting_bytes=100)
    log.answered(plain(0, size=101))
    assert log.fates[Fate.DROPPED] == 1
    sink.open.set()
    log.close()
    assert [line["gap"] for line in sink.lines] == [{"dropped": 1}]


def test_a_sink_that_refuses_is_reported_once_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    """Until it takes again: then there is a gap, and what came later."""
    sink = Slow()
    sink.refusing = True
    sink.open.set()
    log = DecisionLog(sink, LABELS)
    for number in range(3):
        log.answered(plain(number))
        while log.fates[Fate.FAILED] <= number:
            threading.Event().wait(0.001)
    sink.refusing = False
    log.answered(plain(3))
    log.close()

    assert [line.get("decision_id") or line["gap"] for line in sink.lines] == [{"failed": 3}, "d3"]
    assert [message.split(":")[1].strip() for message in caplog.messages] == [
        "it cannot be written, and decisions go on without it",
        "it is written again",
    ]


def test_an_entry_that_cannot_be_written_down_ends_no_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It is counted, and those next to it are written."""
    log = DecisionLog(Segments(tmp_path), LABELS)
    log.answered(plain(0))
    log.answered(plain(1, document={1: {"key": {2}}}, outcome="nothing of ours"))
    log.answered(plain(2))
    log.close()

    lines = [orjson.loads(line) for line in (tmp_path / NAME).read_bytes().splitlines()]
    assert [line["decision_id"] for line in lines if "decision_id" in line] == ["d0", "d2"]
    assert [line["gap"] for line in lines if "gap" in line] == [{"failed": 1}]
    assert "the entry of `d1` cannot be written down" in caplog.text


def test_an_old_torn_line_is_reported_at_once(tmp_path: Path) -> None:
    """Before the first entry."""
    (tmp_path / NAME).write_text('{"decision_id": "old"}\n{"decis', encoding="utf-8")
    DecisionLog(Segments(tmp_path), LABELS).close()

    old, gap = map(orjson.loads, (tmp_path / NAME).read_bytes().splitlines())
    assert (old, gap["gap"]) == ({"decision_id": "old"}, {"torn_bytes": 7})


def test_standard_output_is_a_sink(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is closed is a sink that refuses."""
    out = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdout", out)
    log = DecisionLog(Standard(), LABELS)
    log.answered(plain(7))
    log.close()
    assert orjson.loads(out.buffer.getvalue())["decision_id"] == "d7"
    out.close()
    log = DecisionLog(Standard(), LABELS)
    log.answered(plain(8))
    log.close()
    assert log.fates == {Fate.FAILED: 1}
