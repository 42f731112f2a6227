"""When the estates of a schedule are due."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from policyeng.audit.records import History
from policyeng.configuration.estates import EstateSettings
from policyeng.errors import UsageError

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
