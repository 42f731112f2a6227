"""Audits of estates at their times, until a signal."""

from __future__ import annotations

import os
import random
import select
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from signal import SIGHUP
from types import FrameType

from policyeng.audit.scheduling.job import Auditing
from policyeng.audit.scheduling.planner import PlannedAudit, planned
from policyeng.audit.store import open_store
from policyeng.configuration import Settings
from policyeng.errors import PolicyengError
from policyeng.report.phrases import to_the_second

ENDING = (signal.SIGTERM, signal.SIGINT)
_HANDLED = (*ENDING, signal.SIGHUP)


class Signals:
    """The received signals that are not processed yet."""

    def __init__(self, wakeups: int) -> None:
        self._wakeups = wakeups
        self._pending: deque[int] = deque()

    def note(self, number: int, _: FrameType | None) -> None:
        """Store a signal, as its handler."""
        self._pending.append(number)

    def next(self, seconds: float) -> int | None:
        """Wait for the next signal, and return it; None when none arrives in time."""
        if not self._pending and select.select([self._wakeups], [], [], seconds)[0]:
            os.read(self._wakeups, 512)
        return self._pending.popleft() if self._pending else None


@contextmanager
def handle_signals() -> Iterator[Signals]:
    """Receive SIGTERM, SIGINT and SIGHUP, in the main thread only. The previous handlers are restored at the end."""
    wakeups, waking = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signals = Signals(wakeups)
    waking_before = signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
    before = {number: signal.signal(number, signals.note) for number in _HANDLED}
    try:
        yield signals
    finally:
        for number, action in before.items():
            signal.signal(number, action)
        signal.set_wakeup_fd(waking_before)
        os.close(wakeups)
        os.close(waking)


#: The number of estates that are audited at once; others wait.
_AT_ONCE = 64
#: The seconds between two deliveries of waiting notifications.
_DELIVERY_INTERVAL = 60
#: The longest wait for a time, in seconds: the clock can be set meanwhile.
_LONGEST_WAIT = 60.0
#: The seconds between two checks whether the active runs have ended.
_POLL = 0.1
#: How late an audit may start without a grace period.
_LEAST_GRACE = timedelta(seconds=1)


class Schedule:
    """Estates that are audited at their times, in parallel: one that waits for a server does not delay the others.

    Args:
        read: reads the settings; called again on SIGHUP.
        auditing: how the estates are audited.
        drain: seconds that the active runs are given to end after SIGTERM.

    Raises:
        PolicyengError: the settings or the store cannot be used, or no estate has times.
    """

    def __init__(self, read: Callable[[], Settings], auditing: Auditing, *, drain: float) -> None:
        self._read = read
        self._auditing = auditing
        self._say = auditing.say
        self._drain = drain
        self._settings = read()
        self._plans = self._planned(self._settings)
        self._next: dict[str, datetime] = {}
        self._submitted: set[str] = set()
        self._running: set[str] = set()
        self._sending = False
        self._ending = threading.Event()
        self._pool = ThreadPoolExecutor(_AT_ONCE)

    def run(self) -> int:
        """Audit until SIGTERM or SIGINT: exit 0, also if an active run does not end in time.

        A second of these signals ends the process at once. SIGHUP reads the settings again.
        """
        with handle_signals() as signals:
            now = datetime.now(UTC)
            for plan in self._plans.values():
                self._add(plan, now)
            threading.Thread(target=self._send, daemon=True).start()
            while (number := signals.next(self._submit_due())) not in ENDING:
                if number == SIGHUP:
                    self._reload()
            return self._end(signals)

    def _planned(self, settings: Settings) -> Mapping[str, PlannedAudit]:
        with open_store(settings.store, create=True) as store:
            return planned(settings.estates, store)

    def _add(self, plan: PlannedAudit, now: datetime) -> None:
        name = plan.estate.name
        self._next[name] = plan.following(now)
        if too_late := plan.too_late(now):
            self._say(f"{name}: missed since {to_the_second(too_late)}, too late to be made up for")
        self._say(f"{name}: next {to_the_second(self._next[name])}")

    def _submit_due(self) -> float:
        """Submit the audits that are due, and return the seconds until the next is."""
        now = datetime.now(UTC)
        for name, at in self._next.items():
            if at <= now:
                self._submit(self._plans[name], at, now)
        wait = (min(self._next.values()) - now).total_seconds()
        return min(max(wait, 0.0), _LONGEST_WAIT)

    def _submit(self, plan: PlannedAudit, at: datetime, now: datetime) -> None:
        name, jitter = plan.estate.name, plan.estate.jitter
        while (following := plan.times.after(at)) <= now:  # several were missed: audit for the newest
            at = following
        self._next[name] = following + random.random() * jitter  # noqa: S311  # spreads load
        if name in self._submitted:
            self._say(f"{name}: skipped: its last audit is still waiting or running")
            return
        self._submitted.add(name)
        self._pool.submit(self._audit, name, at)

    def _audit(self, name: str, at: datetime) -> None:
        """Audit an estate that was due at a time, unless it waited too long or is no longer to be audited."""
        try:
            plan, settings = self._plans.get(name), self._settings
            if self._ending.is_set():
                return
            if plan is None:
                self._say(f"{name}: dropped while it waited")
            elif plan.times.every is None and datetime.now(UTC) - at > max(plan.estate.grace, _LEAST_GRACE):
                reason = f"missed at {to_the_second(at)}, too late to be made up for"
                self._auditing.failed(plan.estate, settings, reason)
            else:
                self._running.add(name)
                self._auditing.audit(plan.estate, settings)
        finally:
            self._running.discard(name)
            self._submitted.discard(name)

    def _send(self) -> None:
        """Send waiting notifications, again and again."""
        while not self._ending.is_set():
            self._sending = True
            try:
                self._auditing.tell(self._settings)
            finally:
                self._sending = False
            self._ending.wait(_DELIVERY_INTERVAL)

    def _reload(self) -> None:
        """Read the settings again; the previous ones stay active if these are faulty."""
        try:
            settings = self._read()
            plans = self._planned(settings)
        except PolicyengError as error:
            self._say(f"the configuration is unchanged: {error}")
            return
        before, self._settings, self._plans = self._plans, settings, plans
        for name in before.keys() - plans.keys():
            del self._next[name]
            self._say(f"{name}: no longer audited")
        now = datetime.now(UTC)
        for name, plan in plans.items():
            if name not in before or before[name].estate != plan.estate:
                self._add(plan, now)
        self._say("read the configuration again")

    def _end(self, signals: Signals) -> int:
        self._ending.set()
        self._pool.shutdown(wait=False, cancel_futures=True)
        until = time.monotonic() + self._drain
        for name in sorted(self._running):
            self._say(f"{name}: waiting up to {self._drain:g} s for the active audit")
        while (self._running or self._sending) and time.monotonic() < until:
            if (number := signals.next(_POLL)) in ENDING:
                os._exit(128 + (number or 0))
        for name in sorted(self._running):
            self._say(f"{name}: not audited: it did not end in time; earlier runs are unchanged")
        if self._running or self._sending:  # the interpreter would wait for the threads
            os._exit(0)
        return 0


def audit_due(settings: Settings, auditing: Auditing) -> bool:
    """Audit the estates that are due, once. Return whether all of them could be audited.

    Raises:
        PolicyengError: the store cannot be used, or no estate has times.
    """
    with open_store(settings.store, create=True) as store:
        plans = planned(settings.estates, store)
    due = [plan.estate for plan in plans.values() if plan.due(datetime.now(UTC))]
    if not due:
        auditing.tell(settings)  # notifications that failed before
    audited = [auditing.audit(estate, settings) for estate in due]
    return all(audited)
