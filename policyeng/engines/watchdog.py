"""Limits of evaluations in this process: one thread raises in every other whose evaluation exceeds them.

What is called through `within_deadline` may use a second of the CPU, or ten of the clock where it waits or has to
share the machine. Where the process grows by more than `MEMORY_LIMIT` and by half meanwhile, every evaluation that
takes longer than a tick ends, because nothing shows which of them allocates. Nothing ends a single call of a function
in C, such as `sum(range(10**12))`: Python raises between its own instructions only.
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
#: Seconds of CPU time that an evaluation may take; of wall-clock time where the platform has no clock per thread.
LIMIT = 1.0
#: Seconds of wall-clock time that an evaluation may take, on a machine that is busy with others, too.
WALL_LIMIT = 10.0 if _HAS_CPU_CLOCK else LIMIT
#: Bytes by which the process may grow during an evaluation, where the platform shows them; half its size where that is
#: more.
MEMORY_LIMIT = 100_000_000
_MEMORY = Path("/proc/self/statm")
_PAGE = os.sysconf("SC_PAGE_SIZE") if _MEMORY.exists() else 0
#: Seconds between two looks at what is evaluated.
_TICK = 0.05
_NOWHERE = "", 0


class DeadlineExceededError(Exception):
    """An evaluation that took longer, or more memory, than its limit.

    Attributes:
        file: of the policy, as its code has it; empty where it is not known.
        line: from 1; 0 where it is not known.
    """

    def __init__(self, file: str, line: int, limit: str) -> None:
        """Take the place at which it was ended, and what it exceeded."""
        place = f"{file}:{line}: " if file else ""
        super().__init__(f"{place}the evaluation takes more than {limit}; make the policy look at less")
        self.file, self.line = file, line


class _Interrupt(BaseException):
    """What is raised in an evaluation; no `except Exception` of a policy catches it."""


class _Watched(threading.local):
    """The slot of each thread."""

    def __init__(self) -> None:
        """Make the one of this thread."""
        self.slot = _Slot()


class _Slot:
    """What a thread evaluates.

    Attributes:
        began: seconds of `time.monotonic`; 0 while nothing is evaluated.
        raised: whether something was raised in the evaluation.
        raising: whether the watchdog is about to raise.
        seen: of which `began` the watchdog has noted the CPU time.
        used: seconds of CPU time of the thread at that moment.
        memory: bytes of the process at the tick before.
        exceeded: the limit for which something was raised.
    """

    __slots__ = ("__weakref__", "began", "clock", "exceeded", "ident", "memory", "raised", "raising", "seen", "used")

    def __init__(self) -> None:
        """Take this thread, and let the watchdog know of it."""
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
    """The thread that looks after the evaluations of all others; it sleeps while there are none.

    Attributes:
        asleep: whether it has to be woken up, or is not there yet.
        memory: bytes of the process at the last tick.
    """

    def __init__(self) -> None:
        self.asleep = True
        self.memory = 0
        self._alarm = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        """Have it look after an evaluation that has begun."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="policyeng-watchdog", daemon=True)
                self._thread.start()
            self.memory = _used_memory()
            self.asleep = False
            self._alarm.set()

    def _watch(self) -> None:
        while True:
            time.sleep(_TICK)
            before, self.memory = self.memory, _used_memory()
            evaluating = [_look_after(slot, before, self.memory) for slot in _all_slots()]
            if any(evaluating):
                continue
            self._alarm.clear()
            self.asleep = True
            # An evaluation that began before it could know has to be looked after all the same.
            if not any(slot.began for slot in _all_slots()):
                self._alarm.wait()
            self.asleep = False


@cache
def _raising() -> Callable[[int, int | None], int]:
    """Return what raises in a thread, by its id, the class of an address; None takes back what is not raised yet."""
    import ctypes  # what exceeds a limit is rare; the watchdog loads it before it raises anything

    raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
    raise_in.argtypes = (ctypes.c_ulong, ctypes.c_void_p)
    return raise_in


def _all_slots() -> list[_Slot]:
    return [slot for reference in _slots.valuerefs() if (slot := reference()) is not None]


def _used_memory() -> int:
    return int(_MEMORY.read_bytes().split()[1]) * _PAGE if _PAGE else 0


def _look_after(slot: _Slot, before: int, memory: int) -> bool:
    """Raise in a thread whose evaluation exceeds a limit, again at each tick; return whether it evaluates anything.

    Args:
        slot: of the thread.
        before: bytes of the process at the last tick.
        memory: bytes of the process.
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
    """Reset the state in a forked process: it has neither the threads nor the owners of the locks."""
    global _watchdog, _watched, _slots
    _watchdog, _slots = _Watchdog(), WeakValueDictionary()
    _watched = _Watched()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def within_deadline(space: dict[str, Any], function: Callable[..., R], *arguments: object) -> R:
    """Call a function, and end it when it takes too long.

    Args:
        space: the globals of the policy's code, by which the place is found at which it is ended.
        function: what is called; it should catch what the policy may raise, so that what that refers to is freed
            within the deadline, too: freeing a generator runs its `finally`.
        *arguments: what it is called with.

    Raises:
        DeadlineExceededError: it takes too long, whatever it made of what was raised in it.
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
            if (slot.raising or slot.raised) and _settle(slot):
                raise DeadlineExceededError(*place, slot.exceeded) from None
    except _Interrupt:
        # It came between two of the lines above; at most one more may come.
        try:
            _settle(slot)
        except _Interrupt:
            _settle(slot)
    raise DeadlineExceededError(*place, slot.exceeded) from None


def _settle(slot: _Slot) -> bool:
    """Take back what may still be raised in this thread, whose evaluation has ended; return whether any was."""
    try:
        while slot.raising:
            time.sleep(0)
        _raising()(slot.ident, None)
    except _Interrupt:
        return _settle(slot)
    raised, slot.raised = slot.raised, False
    return raised


def _place(traceback: TracebackType | None, space: dict[str, Any]) -> tuple[str, int]:
    place = _NOWHERE
    while traceback is not None:
        if traceback.tb_frame.f_globals is space:
            place = traceback.tb_frame.f_code.co_filename, traceback.tb_lineno
        traceback = traceback.tb_next
    return place
