"""What a process and all that it started take together, by /proc: seconds of CPU and megabytes of memory."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

_PER_SECOND = os.sysconf("SC_CLK_TCK")
_PROC = Path("/proc")


def family(root: int) -> list[int]:
    """Return a process and its descendants."""
    parents = {number: int(fields[1]) for number, fields in _statistics()}
    found = [root]
    for number in found:
        found += [child for child, parent in parents.items() if parent == number]
    return found


def cpu_seconds(root: int) -> float:
    """Seconds of CPU of a family so far, with those of children that ended and were waited for."""
    members = set(family(root))
    return sum(_ticks(fields) for number, fields in _statistics() if number in members) / _PER_SECOND


def _ticks(fields: list[str]) -> int:
    return sum(map(int, fields[11:15]))


def _statistics() -> Iterator[tuple[int, list[str]]]:
    """Return the fields of `stat` after the name of the program, by process; the first is the state."""
    for path in _PROC.glob("[0-9]*/stat"):
        with suppress(OSError):
            yield int(path.parent.name), path.read_text().rpartition(") ")[2].split()


def _memory_of(number: int, file: str, key: str) -> float:
    """Megabytes by a line of a file of a process; none when it has just ended."""
    with suppress(OSError):
        for line in (_PROC / str(number) / file).read_text().splitlines():
            if line.startswith(key):
                return int(line.split()[1]) / 1024
    return 0.0


@dataclass
class Watch:
    """The most memory that a family has while this is open, measured again and again.

    Attributes:
        root: the process at its head.
        every: seconds between two looks.
        pss_mb: the memory of its members, where a page that several share counts once.
        rss_mb: the same, where it counts for each of them.
        head_cpu: seconds of CPU of the process at its head alone.
    """

    root: int
    every: float = 0.1
    pss_mb: float = 0.0
    rss_mb: float = 0.0
    head_cpu: float = 0.0
    _ended: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._ended.wait(self.every):
            members = family(self.root)
            self.pss_mb = max(self.pss_mb, sum(_memory_of(number, "smaps_rollup", "Pss:") for number in members))
            self.rss_mb = max(self.rss_mb, sum(_memory_of(number, "status", "VmRSS:") for number in members))
            own = [fields for number, fields in _statistics() if number == self.root and fields[0] != "Z"]
            self.head_cpu = sum(map(int, own[0][11:13])) / _PER_SECOND if own else self.head_cpu
