"""The decision log: what was decided, as JSON Lines, written by a thread of its own that no decision waits for."""

from __future__ import annotations

import logging
import sys
import threading
from collections import Counter, deque
from collections.abc import Mapping
from enum import StrEnum
from typing import Protocol

import orjson

from policyeng.server.decision_record import line_of, timestamp
from policyeng.server.service import Answered
from policyeng.server.shared_memory import SharedLock

_log = logging.getLogger("policyeng.server")
#: How many entries go to the disk in one step, at most.
_BATCH = 64


class Fate(StrEnum):
    """What became of an entry."""

    WRITTEN = "written"
    DROPPED = "dropped"
    FAILED = "failed"


class Sink(Protocol):
    """Where lines go.

    Attributes:
        torn: bytes of a line that a process before began and did not end, and that were taken away.
    """

    torn: int

    def write(self, lines: bytes) -> None:
        """Append whole lines; raises OSError when that cannot be."""

    def close(self) -> None:
        """Write no more."""


class Standard:
    """Standard output, as where lines go."""

    torn = 0

    def __init__(self) -> None:
        self._stream = sys.stdout.buffer  # while a policy in Python runs, `sys.stdout` is another stream
        self._writing = SharedLock()

    def write(self, lines: bytes) -> None:
        """Write them, on a line of their own where a worker was killed while it wrote."""
        with self._writing as was_killed:
            self._stream.write(b"\n" * was_killed + lines)
            self._stream.flush()

    def close(self) -> None:
        """Leave it open: it is not ours."""


class DecisionLog:
    """Entries on their way to a sink.

    An entry that finds no place, because the sink is slow, is dropped; one that the sink refuses is lost. Both are
    counted, and an entry `{"gap": {"dropped": N, "failed": N}}` stands where they would, once there is something to
    write to again.

    Args:
        sink: where lines go.
        labels: of the server, in each entry.
        waiting: entries that may wait.
        waiting_bytes: of the requests that they are about, together.

    Attributes:
        fates: how many entries were written, dropped, and lost because they could not be written.
    """

    def __init__(
        self, sink: Sink, labels: Mapping[str, str], *, waiting: int = 4096, waiting_bytes: int = 64 << 20
    ) -> None:
        self._sink, self._labels = sink, labels
        self._waiting, self._waiting_bytes = waiting, waiting_bytes
        self.fates: Counter[Fate] = Counter()
        self._entries: deque[Answered] = deque()
        self._bytes = 0
        self._gap: Counter[str] = Counter()
        self._failing = False
        self._ended = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        if sink.torn:
            self._write([])

    @property
    def waiting(self) -> int:
        """How many entries wait now."""
        return len(self._entries)

    def start(self) -> threading.Thread:
        """Begin to write, with a thread that only this process has: a fork would not take one along."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="policyeng-decision-log", daemon=True)
            self._thread.start()
        return self._thread

    def answered(self, answered: Answered) -> None:
        """Have what came of a request written; it takes no time, whatever the sink does."""
        with self._changed:
            self.start()
            if len(self._entries) >= self._waiting or self._bytes + answered.size > self._waiting_bytes:
                self._lose(Fate.DROPPED, 1)
                return
            self._entries.append(answered)
            self._bytes += answered.size
            self._changed.notify()

    def close(self, seconds: float = 5.0) -> None:
        """Write what waits, and end; a sink that takes longer than `seconds` is not waited for."""
        with self._changed:
            self._ended = True
            thread = self.start()
            self._changed.notify()
        thread.join(seconds)
        if thread.is_alive():
            _log.warning("decision log: %d entries are not written: it is too slow", self.waiting)

    def _run(self) -> None:
        while batch := self._take():
            self._write(self._lines(batch))
        if self._gap or self._sink.torn:
            self._write([])
        self._sink.close()

    def _take(self) -> list[Answered]:
        """Return a limited number of waiting entries; none at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._entries or self._ended)
            batch = [self._entries.popleft() for _ in range(min(_BATCH, len(self._entries)))]
            self._bytes -= sum(each.size for each in batch)
            return batch

    def _lines(self, batch: list[Answered]) -> list[bytes]:
        lines = []
        for answered in batch:
            try:
                lines.append(line_of(answered, self._labels))
            except Exception:  # a thread that ends would end the log
                _log.exception("decision log: the entry of `%s` cannot be written down", answered.decision_id)
                with self._changed:
                    self._lose(Fate.FAILED, 1)
        return lines

    def _write(self, lines: list[bytes]) -> None:
        """Write the lines of entries, and before them what is missing."""
        with self._changed:
            gap, self._gap = self._gap, Counter()
        gap["torn_bytes"], self._sink.torn = gap["torn_bytes"] + self._sink.torn, 0
        try:
            self._sink.write(b"".join([*self._missing(+gap), *lines]))
        except (OSError, ValueError) as error:  # ValueError of a stream that is closed
            self._fail(error, gap, len(lines))
            return
        self.fates[Fate.WRITTEN] += len(lines)
        if self._failing:
            _log.warning("decision log: it is written again")
        self._failing = False

    def _missing(self, gap: Counter[str]) -> list[bytes]:
        """Return the line that records a gap, if there is one."""
        entry = {"gap": dict(gap), "timestamp": timestamp(), "labels": dict(self._labels)}
        return [orjson.dumps(entry) + b"\n"] if gap else []

    def _fail(self, error: Exception, gap: Counter[str], count: int) -> None:
        with self._changed:
            self._gap += gap
            self._lose(Fate.FAILED, count)
        if not self._failing:
            _log.warning("decision log: it cannot be written, and decisions go on without it: %s", error)
        self._failing = True

    def _lose(self, fate: Fate, count: int) -> None:
        self.fates[fate] += count
        self._gap[str(fate)] += count
