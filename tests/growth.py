"""How the cost of work grows with its size, measured so that other work on the machine does not count."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

#: Work that grows with its size takes 4 times as much for 4 times the size, quadratic work 16 times.
FACTOR = 4
_LINEAR = 11
#: Below this the clock of the processor measures its own steps.
_SMALLEST_SECONDS = 0.005


def cpu_growth(work: Callable[[int], object], size: int, *, rounds: int = 3) -> float:
    """Return how many times the CPU time of this thread grows from `size` to `FACTOR * size`.

    Each size takes its best of some rounds, because another process can only make a round slower. The smaller size
    counts as 5 ms at the least.
    """
    small, large = (min(_cpu_seconds(work, at) for _ in range(rounds)) for at in (size, FACTOR * size))
    return large / max(small, _SMALLEST_SECONDS)


def assert_linear(work: Callable[[int], object], size: int) -> None:
    """Fail where the work grows much faster than its size; one round suffices where it does not.

    Raises:
        AssertionError: four times the size takes more than eleven times the CPU time.
    """
    if cpu_growth(work, size, rounds=1) >= _LINEAR:
        growth = cpu_growth(work, size)
        assert growth < _LINEAR, f"{FACTOR} times the size took {growth:.1f} times the CPU time"


def _cpu_seconds(work: Callable[[int], object], size: int) -> float:
    gc.disable()  # how often it runs depends on what the process did before
    try:
        started = time.thread_time()
        work(size)
        return time.thread_time() - started
    finally:
        gc.enable()


def steps(work: Callable[[], object]) -> int:
    """Return how many instructions of Python a piece of work takes in this thread: the same number each time.

    What a function in C does counts as one.
    """
    counted = 0

    def count(frame: FrameType, event: str, _: object) -> Any:
        nonlocal counted
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        counted += event == "opcode"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        work()
    finally:
        sys.settrace(before)
    return counted
