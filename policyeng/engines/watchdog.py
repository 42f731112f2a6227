"""Enforce limits of evaluations in this process: one thread raises an exception in threads that exceed them.

A function called through `within_deadline` can use one second of CPU time, and ten seconds of wall-clock time. If the
process grows by more than `MEMORY_LIMIT` and by half during evaluations, every evaluation that takes longer than a tick
ends, because it is unknown which of them allocates. A single call of a function in C, such as `sum(range(10**12))`,
cannot be ended, because Python raises only between its own instructions.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar
from weakref import WeakValueDictionary

R = TypeVar("R")

_HAS_CPU_CLOCK = hasattr(time, "pthread_getcpuclockid")
#: The limit of CPU time in seconds; of wall-clock time if the platform has no clock for each thread.
LIMIT = 1.0
#: The limit of wall-clock time in seconds, for busy machines.
WALL_LIMIT = 10.0 if _HAS_CPU_CLOCK else LIMIT
#: The limit of memory growth during an evaluation in bytes, or half the size of the process if that is more; only if
#: the platform reports it.
MEMORY_LIMIT = 100_000_000
_MEMORY = Path("/proc/self/statm")
_PAGE = os.sysconf("SC_PAGE_SIZE") if _MEMORY.exists() else 0
#: Seconds between two checks of the evaluations.
_TICK = 0.05
_NOWHERE = "", 0


class DeadlineExceededError(Exception):
    """An evaluation that took longer, or more memory, than its limit.

    Attributes:
        file: the file of the policy, as in its code; empty if it is unknown.
        line: from 1; 0 if it is unknown.
    """

    def __init__(self, file: str, line: int, limit: str) -> None:
        """Store the place at which the evaluation ended, and the exceeded limit."""
        place = f"{file}:{line}: " if file else ""
        super().__init__(f"{place}the evaluation takes more than {limit}; change the policy to read less")
        self.file, self.line = file, line


class _Interrupt(BaseException):
    """An exception that ends an evaluation; `except Exception` in a policy does not catch it."""


class _Watched(threading.local):
    """The slot of each thread."""

    def __init__(self) -> None:
        """Create the slot of this thread."""
        self.slot = _Slot()


class _Slot:
    """The state of the evaluation in a thread.

    Attributes:
        began: start in seconds of `time.monotonic`; 0 if there is no evaluation.
        raised: whether the watchdog raised an exception in the evaluation.
        raising: whether the watchdog is about to raise.
        seen: the `began` for which the watchdog stored the CPU time.
        used: CPU time of the thread at that time in seconds.
        memory: size of the process at the previous tick in bytes.
        exceeded: the exceeded limit.
    """

    __slots__ = ("__weakref__", "began", "clock", "exceeded", "ident", "memory", "raised", "raising", "seen", "used")

    def __init__(self) -> None:
        """Register this thread with the watchdog."""
        self.ident = threading.get_ident()
        self.clock = time.pthread_getcpuclockid(self.ident) if _HAS_CPU_CLOCK else 0
        self.began = self.seen = self.used = 0.0
        self.raised = self.raising = False
        self.memory = 0
        self.exceeded = f"{LIMIT:g} s"
        _slots[self.ident] = self


_slots: WeakValueDictionary[int, _Slot] = WeakValueDictionary()
_watched = _Watched()


class _Watchdog:
    """The thread that monitors the evaluations of all others; it sleeps if there are none.

    Attributes:
        asleep: whether it is sleeping or not started.
        memory: size of the process at the last tick in bytes.
    """

    def __init__(self) -> None:
        self.asleep = True
        self.memory = 0
        self._alarm = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        """Start to monitor a new evaluation."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="policyeng-watchdog", daemon=True)
                self._thread.start()
            self.memory = _measure_memory()
            self.asleep = False
            self._alarm.set()

    def _watch(self) -> None:
        while True:
            time.sleep(_TICK)
            before, self.memory = self.memory, _measure_memory()
            evaluating = [_check_limits(slot, before, self.memory) for slot in _all_slots()]
            if any(evaluating):
                continue
            self._alarm.clear()
            self.asleep = True
            # An evaluation that began before `asleep` was set must be monitored, too.
            if not any(slot.began for slot in _all_slots()):
                self._alarm.wait()
            self.asleep = False


@cache
def _raising() -> Callable[[int, int | None], int]:
    """Return a function that raises a class, by address, in a thread, by id; None cancels a pending exception."""
    import ctypes  # exceeded limits are rare; the watchdog loads it before it raises

    raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
    raise_in.argtypes = (ctypes.c_ulong, ctypes.c_void_p)
    return raise_in


def _all_slots() -> list[_Slot]:
    return [slot for reference in _slots.valuerefs() if (slot := reference()) is not None]


def _measure_memory() -> int:
    return int(_MEMORY.read_bytes().split()[1]) * _PAGE if _PAGE else 0


def _check_limits(slot: _Slot, before: int, memory: int) -> bool:
    """Raise in a thread whose evaluation exceeds a limit, again at each tick; return whether it has an evaluation.

    Args:
        slot: the slot of the thread.
        before: size of the process at the last tick in bytes.
        memory: size of the process in bytes.
    """
    began = slot.began
    if not began:
        return False
    used = time.clock_gettime(slot.clock) if _HAS_CPU_CLOCK else 0.0
    if slot.seen != began:
        slot.seen, slot.used, slot.memory = began, used, before
    late = used - slot.used > LIMIT or time.monotonic() - began > WALL_LIMIT
    most = max(MEMORY_LIMIT, slot.memory // 2)
    if late or memory - slot.memory > most:
        raise_in = _raising()
        # The first to end an evaluation sets `began`, then waits while `raising`.
        slot.raising = True
        if slot.began == began:
            slot.raised = True
            slot.exceeded = f"{LIMIT:g} s" if late else f"{most // 1_000_000} MB"
            raise_in(slot.ident, id(_Interrupt))
        slot.raising = False
    return True


_watchdog = _Watchdog()


def _forget() -> None:
    """Reset the state in a forked process, which has neither the threads nor the owners of the locks."""
    global _watchdog, _watched, _slots
    _watchdog, _slots = _Watchdog(), WeakValueDictionary()
    _watched = _Watched()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def within_deadline(space: dict[str, Any], function: Callable[..., R], *arguments: object) -> R:
    """Call a function, and end it if it takes too long.

    Args:
        space: the globals of the policy's code, used to find the place at which it ended.
        function: the function. It should catch exceptions of the policy, so that objects they refer to are freed within
            the deadline, too: freeing a generator runs its `finally`.
        *arguments: the arguments of the function.

    Raises:
        DeadlineExceededError: the function takes too long, even if it catches the exception.
    """
    slot = _watched.slot
    place = _NOWHERE
    try:
        try:
            slot.began = time.monotonic()
            if _watchdog.asleep:
                _watchdog.wake()
            try:
                return function(*arguments)
            except _Interrupt as interrupt:
                place = _place(interrupt.__traceback__, space)
        finally:
            slot.began = 0.0
            if (slot.raising or slot.raised) and _cancel_pending(slot):
                raise DeadlineExceededError(*place, slot.exceeded) from None
    except _Interrupt:
        # It was raised between two of the lines above; at most one more can follow.
        try:
            _cancel_pending(slot)
        except _Interrupt:
            _cancel_pending(slot)
    raise DeadlineExceededError(*place, slot.exceeded) from None


def restart_deadline() -> None:
    """Restart the limits for the next evaluation of a function that `within_deadline` calls."""
    _watched.slot.began = time.monotonic()


def _cancel_pending(slot: _Slot) -> bool:
    """Cancel a pending exception in this thread after its evaluation; return whether one was raised."""
    try:
        while slot.raising:
            time.sleep(0)
        _raising()(slot.ident, None)
    except _Interrupt:
        return _cancel_pending(slot)
    raised, slot.raised = slot.raised, False
    return raised


def _place(traceback: TracebackType | None, space: dict[str, Any]) -> tuple[str, int]:
    place = _NOWHERE
    while traceback is not None:
        if traceback.tb_frame.f_globals is space:
            place = traceback.tb_frame.f_code.co_filename, traceback.tb_lineno
        traceback = traceback.tb_next
    return place
