"""Signals as values: a loop asks which have come, so that nothing is done in the midst of something else."""

from __future__ import annotations

import os
import select
import signal
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = (signal.SIGTERM, signal.SIGINT)
_HEARD = (*ENDING, signal.SIGHUP)


class Signals:
    """The signals that have come and nobody has asked for yet."""

    def __init__(self, woken: int) -> None:
        self._woken = woken
        self._came: deque[int] = deque()

    def note(self, number: int, _: FrameType | None) -> None:
        """Take a signal, as its handler."""
        self._came.append(number)

    def next(self, seconds: float | None) -> int | None:
        """The next signal; None when none comes in time.

        Args:
            seconds: how long to wait; None waits until one comes.
        """
        if not self._came and select.select([self._woken], [], [], seconds)[0]:
            os.read(self._woken, 512)
        return self._came.popleft() if self._came else None


@contextmanager
def heard() -> Iterator[Signals]:
    """Hear SIGTERM, SIGINT and SIGHUP; only the main thread can. What heard them before does so again at the end."""
    woken, waking = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signals = Signals(woken)
    woke_before = signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
    before = {number: signal.signal(number, signals.note) for number in _HEARD}
    try:
        yield signals
    finally:
        for number, action in before.items():
            signal.signal(number, action)
        signal.set_wakeup_fd(woke_before)
        os.close(woken)
        os.close(waking)
