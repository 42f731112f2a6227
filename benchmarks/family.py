"""What this process and all that it started take together, by /proc: seconds of CPU and megabytes of memory.

Memory is PSS: a page that several processes share counts once, in parts. Where the kernel does not say it, it is RSS.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

_TICKS = os.sysconf("SC_CLK_TCK")
_PROC = Path("/proc")


def family() -> list[int]:
    """This process and those that descend from it."""
    parents = {number: fields[1] for number, fields in _statistics()}
    found = [os.getpid()]
    for number in found:
        found += [child for child, parent in parents.items() if int(parent) == number]
    return found


def cpu_seconds() -> float:
    """Seconds of CPU of the family so far, with those of children that ended and were waited for."""
    members = set(family())
    ticks = sum(sum(map(int, fields[11:15])) for number, fields in _statistics() if number in members)
    return ticks / _TICKS


def memory_mb(of: Callable[[int], bool] = lambda _: True) -> float:
    """Megabytes that the family holds now; `of` says of which members."""
    return sum(_held(number) for number in family() if of(number)) / 1024


def _statistics() -> Iterator[tuple[int, list[str]]]:
    """The fields of `stat` after the name of the program, so that the first is the state, by process."""
    for path in _PROC.glob("[0-9]*/stat"):
        with suppress(OSError):
            yield int(path.parent.name), path.read_text().rpartition(") ")[2].split()


def _held(number: int) -> int:
    """In KB."""
    for name, key in (("smaps_rollup", "Pss:"), ("status", "VmRSS:")):
        with suppress(OSError):
            for line in (_PROC / str(number) / name).read_text().splitlines():
                if line.startswith(key):
                    return int(line.split()[1])
    return 0


@dataclass
class Watch:
    """The most memory that the family holds while this is open, looked at every so many seconds."""

    every: float = 0.1
    peak_mb: float = 0.0
    _ended: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        while True:
            self.peak_mb = max(self.peak_mb, memory_mb())
            if self._ended.wait(self.every):
                return
