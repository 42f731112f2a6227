"""Run audits at the times of their schedules."""

from __future__ import annotations

import logging
import os
import random
import select
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from signal import SIGHUP
from types import FrameType
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from policyeng.audit.notifications import lines_of, send_notifications, store_failure_messages
from policyeng.audit.records import AuditRun, History
from policyeng.audit.runner import run_estate
from policyeng.audit.store import open_store
from policyeng.audit.store.connection import RUNNING
from policyeng.audit.store.store import Turned
from policyeng.configuration import Settings
from policyeng.configuration.settings import EstateSettings
from policyeng.context import EvaluationSetup
from policyeng.engines import OpaOptions
from policyeng.errors import PolicyengError, UsageError
from policyeng.report.phrases import count, to_the_second

_log = logging.getLogger("policyeng.schedule")


@dataclass(frozen=True, slots=True)
class Auditing:
    """How the estates of a schedule are audited.

    Attributes:
        load_setup: reads the policies and exemptions of the settings, again for every run, because they change.
        engine, opa: of the evaluations.
        jobs, full: as in `run_estate`.
        environ: the variables for the URLs of targets.
    """

    load_setup: Callable[[Settings], EvaluationSetup]
    engine: str
    opa: OpaOptions
    jobs: int
    full: bool
    environ: Mapping[str, str]

    def audit(self, estate: EstateSettings, settings: Settings) -> bool:
        """Audit an estate, and notify its targets. Return whether it could be audited."""
        try:
            began = time.monotonic()
            with open_store(settings.store, create=True) as store:
                setup = self.load_setup(settings)
                options = setup.options(datetime.now(UTC), self.engine, self.opa)
                run = run_estate(store, estate, setup, options, jobs=self.jobs, full=self.full)
                _log_run(run, store.turned(run), time.monotonic() - began)
        except Exception as error:  # one estate that cannot be audited ends neither the schedule nor the others
            self._failed(estate, settings, error)
            return False
        finally:
            self.notify(settings)
        return True

    def notify(self, settings: Settings) -> None:
        """Send new and failed notifications, and report errors."""
        if not settings.notify:
            return
        try:
            with open_store(settings.store, create=True) as store:
                deliveries = send_notifications(store, settings.notify, self.environ, datetime.now(UTC))
            for line in lines_of(deliveries):
                _log.info("%s", line)
        except Exception as error:  # the run is stored; its notifications are sent the next time
            _log.error("not notified, tried again later: %s", reason_of(error))

    def failed(self, estate: EstateSettings, settings: Settings, reason: str) -> None:
        """Report that an estate was not audited, and notify its targets."""
        _log_estate(logging.ERROR, estate.name, f"not audited: {reason}")
        if not settings.notify:
            return
        try:
            with open_store(settings.store, create=True) as store:
                store_failure_messages(store, settings.notify, estate.name, reason, datetime.now(UTC))
        except Exception as error:  # most often the reason for the failure, too
            _log_estate(logging.ERROR, estate.name, f"the failure cannot be notified: {reason_of(error)}")

    def _failed(self, estate: EstateSettings, settings: Settings, error: Exception) -> None:
        if isinstance(error, PolicyengError) and error.message == RUNNING:
            _log_estate(logging.WARNING, estate.name, "skipped: another process is auditing it")
        else:
            self.failed(estate, settings, reason_of(error))


def reason_of(error: Exception) -> str:
    """Return the reason of a failure on one line, with the type of an unexpected error."""
    reason = str(error) if isinstance(error, PolicyengError) else f"{type(error).__name__}: {error}"
    return " ".join(reason.split())


def _log_estate(level: int, estate: str, message: str, **fields: object) -> None:
    """Log a message about an estate, which is a field, too."""
    _log.log(level, "%s: %s", estate, message, extra={"fields": {"estate": estate, **fields}})


def _log_run(run: AuditRun, turned: Turned, seconds: float) -> None:
    counts = ", ".join(_counts(run, turned))
    message = f"run {run.number}: {counts}, exit {run.exit_code}, {seconds:.1f} s, head {run.hash[:12]}"
    _log_estate(
        logging.INFO,
        run.estate,
        message,
        run=run.number,
        parts=run.parts,
        failures=run.summary.fail,
        new=turned.new,
        fixed=turned.fixed,
        exit_code=run.exit_code,
        duration_ms=round(seconds * 1000),
        head=run.hash,
    )


def _counts(run: AuditRun, turned: Turned) -> Iterator[str]:
    summary = run.summary
    yield count(run.parts, "part")
    yield f"{count(summary.fail, 'failure')} ({turned.new} new, {turned.fixed} fixed)"
    if summary.unknown:
        yield f"{summary.unknown} unknown"
    for number, noun in ((summary.error, "error"), (len(run.problems), "problem")):
        if number:
            yield count(number, noun)


_REMEDY = 'write five fields, such as `cron = "0 3 * * *"`'
_INSTANT = timedelta(microseconds=1)


class Times:
    """The times at which an estate is due.

    Args:
        estate: one that has `cron` or `every`.

    Raises:
        UsageError: its cron expression is invalid.
    """

    def __init__(self, estate: EstateSettings) -> None:
        self.every = estate.every
        self.zone = ZoneInfo(estate.timezone)
        self._cron = estate.cron
        if self.every is None:
            try:
                CronSim(self._cron, datetime.now(UTC))
            except CronSimError as error:
                message = f"`{self._cron}` is not a cron expression ({str(error).lower()})"
                raise UsageError(message, place=(f"estate {estate.name}",), remedy=_REMEDY) from None

    def after(self, moment: datetime) -> datetime:
        """Return the first time after a moment, in UTC and without jitter."""
        if self.every is not None:
            return moment.astimezone(UTC) + self.every
        times = (time.astimezone(UTC) for time in CronSim(self._cron, moment.astimezone(self.zone)))
        # In the second pass of a repeated hour, cronsim starts with the times of the first.
        return next(time for time in times if time > moment)


def times_of(estate: EstateSettings) -> Times | None:
    """Return when an estate is due; None for one without times.

    Raises:
        UsageError: its cron expression is invalid.
    """
    return Times(estate) if estate.cron or estate.every is not None else None


def missed(times: Times, last: datetime | None, now: datetime, grace: timedelta) -> datetime | None:
    """Return the newest missed time that an audit still makes up for, if any.

    An interval limits the age of an audit: an overdue audit is always made up for, and the first is due at once.

    Args:
        times: when the estate is due.
        last: when its last run started; None without one.
        now: the current time.
        grace: how late an audit still makes up for a cron time.
    """
    if times.every is not None:
        due = now if last is None else times.after(last)
        return due if due <= now else None
    newest = None
    at = times.after(max(now - grace, last or now - grace) - _INSTANT)
    while at <= now:
        newest, at = at, times.after(at)
    return newest if last is None or newest is None or newest > last else None


def upcoming(times: Times, last: datetime | None, now: datetime) -> datetime:
    """Return the first time in the future."""
    if times.every is not None:
        return max(now, times.after(last)) if last is not None else now
    return times.after(now)


@dataclass(frozen=True, slots=True)
class PlannedAudit:
    """An estate and when it is due.

    Attributes:
        estate: its configuration.
        times: when it is due.
        last: when its last run started; None without one.
    """

    estate: EstateSettings
    times: Times
    last: datetime | None = None

    def due(self, now: datetime) -> datetime | None:
        """Return a missed time that an audit makes up for now, if any."""
        return missed(self.times, self.last, now, self.estate.grace)

    def following(self, now: datetime) -> datetime:
        """Return when the next audit starts: at once if it makes up for a missed time."""
        return self.due(now) or upcoming(self.times, self.last, now)

    def too_late(self, now: datetime) -> datetime | None:
        """Return the first time since the last run that was missed by more than the grace period, if any."""
        if self.last is None or self.times.every is not None:
            return None
        first = self.times.after(self.last)
        return first if first < now - self.estate.grace else None


def planned(estates: Sequence[EstateSettings], history: History | None) -> Mapping[str, PlannedAudit]:
    """Return the estates that have times, by name.

    Args:
        estates: all configured estates.
        history: the earlier runs; None without any.

    Raises:
        UsageError: the times of an estate are invalid, or no estate has times.
    """
    plans = {plan.estate.name: plan for plan in _plan(estates, history)}
    if not plans:
        remedy = 'add `cron = "0 3 * * *"` or `every = "PT6H"` to an `[[estates]]` table'
        raise UsageError("no estate has audit times", remedy=remedy)
    return plans


def _plan(estates: Sequence[EstateSettings], history: History | None) -> Iterator[PlannedAudit]:
    for estate in estates:
        times = times_of(estate)
        if times is not None:
            runs = history.runs(estate.name, last=1) if history is not None else ()
            yield PlannedAudit(estate, times, runs[-1].started_at if runs else None)


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
            missed_since = f"missed since {to_the_second(too_late)}, too late to be made up for"
            _log_estate(logging.WARNING, name, missed_since)
        _log_estate(logging.INFO, name, f"next {to_the_second(self._next[name])}")

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
            _log_estate(logging.WARNING, name, "skipped: its last audit is still waiting or running")
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
                _log_estate(logging.INFO, name, "dropped while it waited")
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
                self._auditing.notify(self._settings)
            finally:
                self._sending = False
            self._ending.wait(_DELIVERY_INTERVAL)

    def _reload(self) -> None:
        """Read the settings again; the previous ones stay active if these are faulty."""
        try:
            settings = self._read()
            plans = self._planned(settings)
        except PolicyengError as error:
            _log.error("the configuration is unchanged: %s", error)
            return
        before, self._settings, self._plans = self._plans, settings, plans
        for name in before.keys() - plans.keys():
            del self._next[name]
            _log_estate(logging.INFO, name, "no longer audited")
        now = datetime.now(UTC)
        for name, plan in plans.items():
            if name not in before or before[name].estate != plan.estate:
                self._add(plan, now)
        _log.info("read the configuration again")

    def _end(self, signals: Signals) -> int:
        self._ending.set()
        self._pool.shutdown(wait=False, cancel_futures=True)
        until = time.monotonic() + self._drain
        for name in sorted(self._running):
            _log_estate(logging.INFO, name, f"waiting up to {self._drain:g} s for the active audit")
        while (self._running or self._sending) and time.monotonic() < until:
            if (number := signals.next(_POLL)) in ENDING:
                os._exit(128 + (number or 0))
        for name in sorted(self._running):
            _log_estate(logging.ERROR, name, "not audited: it did not end in time; earlier runs are unchanged")
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
        auditing.notify(settings)  # notifications that failed before
    audited = [auditing.audit(estate, settings) for estate in due]
    return all(audited)
