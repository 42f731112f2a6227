"""Audit estates at their times until a signal ends it."""

from __future__ import annotations

import logging
import os
import select
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from signal import SIGHUP
from types import FrameType

from apscheduler.events import EVENT_JOB_MAX_INSTANCES, EVENT_JOB_MISSED, JobExecutionEvent, JobSubmissionEvent
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler

from policyeng.audit.scheduling.job import Auditing
from policyeng.audit.scheduling.planner import PlannedAudit, planned
from policyeng.audit.store import open_store
from policyeng.configuration import Settings
from policyeng.errors import PolicyengError
from policyeng.report.phrases import to_the_second

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


#: The job that sends what waits; no estate has a name with a space.
_NOTICES = "send notices"
#: So many estates are audited at once; further ones wait.
_AT_ONCE = 64
#: Seconds between two looks at what waits to be sent.
_SENDING = 60
#: Seconds between two looks at whether the run under way has ended.
_LOOKING = 0.1


class Schedule:
    """Estates that are audited at their times, in parallel: one that waits for a server delays no other.

    Args:
        read: reads the settings; called again on SIGHUP.
        auditing: how they are audited.
        drain: seconds that the runs under way are given to end after SIGTERM.

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
        self._running: set[str] = set()
        self._sending = False
        self._ending = threading.Event()
        logging.getLogger("apscheduler").addHandler(logging.NullHandler())  # what it has to say is said here
        self._scheduler = BackgroundScheduler(
            timezone=UTC, executors={"default": ThreadPoolExecutor(_AT_ONCE), _NOTICES: ThreadPoolExecutor(1)}
        )
        self._scheduler.add_listener(self._passed_over, EVENT_JOB_MISSED | EVENT_JOB_MAX_INSTANCES)

    def run(self) -> int:
        """Audit until SIGTERM or SIGINT: exit 0, also where a run under way does not end in time.

        A second of these signals ends the process at once. SIGHUP reads the settings again.
        """
        with heard() as signals:
            now = datetime.now(UTC)
            for plan in self._plans.values():
                self._add(plan, now)
            self._scheduler.add_job(
                self._send, "interval", seconds=_SENDING, id=_NOTICES, executor=_NOTICES, next_run_time=now
            )
            self._scheduler.start()
            while (number := signals.next(None)) not in ENDING:
                if number == SIGHUP:
                    self._reload()
            return self._end(signals)

    def _planned(self, settings: Settings) -> Mapping[str, PlannedAudit]:
        with open_store(settings.store, create=True) as store:
            return planned(settings.estates, store)

    def _add(self, plan: PlannedAudit, now: datetime) -> None:
        name = plan.estate.name
        following = plan.following(now)
        if too_late := plan.too_late(now):
            self._say(f"{name}: missed since {to_the_second(too_late)}, too late to be made up for")
        self._say(f"{name}: next {to_the_second(following) if following else 'never'}")
        grace = None if plan.times.every is not None else max(1, int(plan.estate.grace.total_seconds()))
        self._scheduler.add_job(
            self._audit,
            plan.times,
            args=(name,),
            id=name,
            next_run_time=following,
            misfire_grace_time=grace,
            coalesce=True,
            max_instances=1,
            replace_existing=True,
        )

    def _audit(self, name: str) -> None:
        """Audit an estate, unless it waited for others and is not to be audited any more."""
        plan, settings = self._plans.get(name), self._settings
        if self._ending.is_set():
            return
        if plan is None:
            self._say(f"{name}: dropped while it waited")
            return
        self._running.add(name)
        try:
            self._auditing.audit(plan.estate, settings)
        finally:
            self._running.discard(name)

    def _send(self) -> None:
        """Send what waits."""
        if self._ending.is_set():
            return
        self._sending = True
        try:
            self._auditing.tell(self._settings)
        finally:
            self._sending = False

    def _passed_over(self, event: JobExecutionEvent | JobSubmissionEvent) -> None:
        """Say that a time went by without an audit; called on the threads of the scheduler."""
        plan, settings = self._plans.get(event.job_id), self._settings
        if plan is None:
            return
        if event.code == EVENT_JOB_MISSED:
            at = to_the_second(event.scheduled_run_time)
            self._auditing.failed(plan.estate, settings, f"missed at {at}, too late to be made up for")
        else:
            self._say(f"{event.job_id}: passed over: its last audit is waiting or running still")

    def _reload(self) -> None:
        """Read the settings again; a fault leaves those that were read before."""
        try:
            settings = self._read()
            plans = self._planned(settings)
        except PolicyengError as error:
            self._say(f"the configuration stays as it was: {error}")
            return
        before, self._settings, self._plans = self._plans, settings, plans
        for name in before.keys() - plans.keys():
            self._scheduler.remove_job(name)
            self._say(f"{name}: no longer audited")
        now = datetime.now(UTC)
        for name, plan in plans.items():
            if name not in before or before[name].estate != plan.estate:
                self._add(plan, now)
        self._say("the configuration was read again")

    def _end(self, signals: Signals) -> int:
        self._ending.set()
        self._scheduler.shutdown(wait=False)
        until = time.monotonic() + self._drain
        for name in sorted(self._running):
            self._say(f"ends when the audit of {name} has ended, within {self._drain:g} s")
        while (self._running or self._sending) and time.monotonic() < until:
            if (number := signals.next(_LOOKING)) in ENDING:
                os._exit(128 + (number or 0))
        for name in sorted(self._running):
            self._say(f"{name}: not audited: it did not end in time; the runs before are kept")
        if self._running or self._sending:  # the interpreter would wait for their threads
            os._exit(0)
        return 0


def audit_due(settings: Settings, auditing: Auditing) -> bool:
    """Audit what is due, once; whether all of it could be audited.

    Raises:
        PolicyengError: the store cannot be used, or no estate has times.
    """
    with open_store(settings.store, create=True) as store:
        plans = planned(settings.estates, store)
    due = [plan.estate for plan in plans.values() if plan.due(datetime.now(UTC))]
    if not due:
        auditing.tell(settings)  # what did not arrive before
    audited = [auditing.audit(estate, settings) for estate in due]
    return all(audited)
