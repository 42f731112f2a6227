"""Which estates a schedule audits, and when the next time of each is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from apscheduler.triggers.base import BaseTrigger
from apscheduler.triggers.cron import CronTrigger

from policyeng.audit.records import History
from policyeng.configuration.estates import EstateSettings
from policyeng.errors import UsageError

_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FORM = 'write five fields, as in `cron = "0 3 * * *"`'
#: Clocks are put forward by no more, but for islands that changed the day.
_GAP = timedelta(hours=3)
_INSTANT = timedelta(microseconds=1)


class Times(BaseTrigger):  # type: ignore[misc]  # APScheduler has no types
    """When an estate is due; APScheduler asks for one time after the other.

    Args:
        estate: one that has `cron` or `every`.

    Raises:
        UsageError: its cron expression or time zone does not fit.
    """

    def __init__(self, estate: EstateSettings) -> None:
        self.every = estate.every
        self._jitter = estate.jitter.total_seconds()
        self.zone = _zone(estate)
        self._by_wall = False
        self._crons: Sequence[CronTrigger] = ()
        if estate.every is None:
            self._by_wall = not _fields(estate)[1].startswith("*")
            self._crons = _crons(estate, ZoneInfo("UTC") if self._by_wall else self.zone)
            if self.after(datetime.now(UTC)) is None:
                raise _unfit(estate, "that time never comes")

    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime | None:
        """The next time, with its jitter; APScheduler calls it."""
        following = self.after(previous_fire_time or now)
        later: datetime | None = self._apply_jitter(following, self._jitter, now)
        return later

    def after(self, moment: datetime) -> datetime | None:
        """The first time after a moment, in UTC and without jitter; None where none comes."""
        if self.every is not None:
            return moment.astimezone(UTC) + self.every
        if self._by_wall:
            return self._by_the_wall(moment)
        return min(_times(self._crons, moment, self.zone), default=None)

    def _by_the_wall(self, moment: datetime) -> datetime | None:
        """The first time after a moment of those that a clock on the wall shows.

        What falls into an hour that is left out comes later than what stands beside it, so that a few are looked at.
        """
        wall = moment.astimezone(self.zone).replace(tzinfo=UTC) - _GAP
        found: list[datetime] = []
        end = None
        while (shown := min(_times(self._crons, wall, UTC), default=None)) is not None and (
            end is None or shown <= end
        ):
            instant = shown.replace(tzinfo=self.zone).astimezone(UTC)
            if instant > moment:
                found.append(instant)
                end = end or shown + _GAP
            wall = shown
        return min(found, default=None)


def times_of(estate: EstateSettings) -> Times | None:
    """When an estate is due; None for one that is only audited when somebody asks for it.

    Raises:
        UsageError: its cron expression or time zone does not fit.
    """
    return Times(estate) if estate.cron or estate.every is not None else None


def missed(times: Times, last: datetime | None, now: datetime, grace: timedelta) -> datetime | None:
    """The newest time that was missed and is still made up for; None where there is none.

    An interval says how old an audit may get: one that is overdue is always made up for, and the first is due at once.

    Args:
        times: when the estate is due.
        last: when its last run began; None where there is none.
        now: the present.
        grace: how late a time of cron is still made up for.
    """
    if times.every is not None:
        due = now if last is None else times.after(last)
        return due if due is not None and due <= now else None
    newest = None
    at = times.after(max(now - grace, last or now - grace) - _INSTANT)
    while at is not None and at <= now:
        newest, at = at, times.after(at)
    return newest if last is None or newest is None or newest > last else None


def upcoming(times: Times, last: datetime | None, now: datetime) -> datetime | None:
    """The first time that is yet to come."""
    if times.every is not None:
        return max(now, times.after(last) or now) if last is not None else now
    return times.after(now)


def _times(crons: Sequence[CronTrigger], moment: datetime, zone: tzinfo) -> Iterator[datetime]:
    """The first time of each after a moment, in UTC; a sum in another zone would forget which of two hours it is in."""
    later = (moment.astimezone(UTC) + _INSTANT).astimezone(zone)
    for cron in crons:
        following = cron.get_next_fire_time(None, later)
        if following is not None:
            yield following.astimezone(UTC)


def _zone(estate: EstateSettings) -> ZoneInfo:
    try:
        return ZoneInfo(estate.timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        remedy = "write one of the IANA time zones, as in `Europe/Berlin`"
        raise UsageError(f"`{estate.timezone}` is no time zone", place=(_place(estate),), remedy=remedy) from None


def _crons(estate: EstateSettings, zone: ZoneInfo) -> Sequence[CronTrigger]:
    """One trigger; two where a day of the month and one of the week are given, as either suffices."""
    minute, hour, day, month, weekday = _fields(estate)
    days = [(day, weekday)]
    if not day.startswith("*") and not weekday.startswith("*"):
        days = [(day, "*"), ("*", weekday)]
    try:
        return [
            CronTrigger(
                minute=minute, hour=hour, day=of_month, month=month, day_of_week=_weekdays(of_week), timezone=zone
            )
            for of_month, of_week in days
        ]
    except (ValueError, IndexError) as error:
        raise _unfit(estate, str(error).partition(";")[0].rstrip(".").lower()) from None


def _fields(estate: EstateSettings) -> list[str]:
    fields = estate.cron.lower().split()
    if len(fields) != 5:
        raise _unfit(estate, "there are not five fields")
    return fields


def _weekdays(field: str) -> str:
    """Days of the week by their names: APScheduler counts them otherwise.

    Raises:
        ValueError: there is no such day.
    """
    if field == "*":
        return field
    named: dict[str, None] = {}
    for part in field.split(","):
        span, _, step = part.partition("/")
        first, dash, last = ("0", "-", "6") if span == "*" else span.partition("-")
        begin, end = _weekday(first), _weekday(last) if dash else (6 if step else _weekday(first))
        end += 7 if end < begin else 0
        named |= dict.fromkeys(_DAYS[day % 7] for day in range(begin, end + 1, int(step or 1)))
    return ",".join(named)


def _weekday(text: str) -> int:
    if text in _DAYS:
        return _DAYS.index(text)
    if not text.isdecimal() or int(text) > 7:
        raise ValueError(f"`{text}` is no day of the week")
    return int(text)


def _unfit(estate: EstateSettings, why: str) -> UsageError:
    return UsageError(f"`{estate.cron}` is no cron expression ({why})", place=(_place(estate),), remedy=_FORM)


def _place(estate: EstateSettings) -> str:
    return f"estate {estate.name}"


@dataclass(frozen=True, slots=True)
class PlannedAudit:
    """An estate and when it is due.

    Attributes:
        estate: as it is configured.
        times: when it is due.
        last: when its last run began; None without one.
    """

    estate: EstateSettings
    times: Times
    last: datetime | None = None

    def due(self, now: datetime) -> datetime | None:
        """A time that was missed and is made up for now; None where there is none."""
        return missed(self.times, self.last, now, self.estate.grace)

    def following(self, now: datetime) -> datetime | None:
        """When it is audited next: now, where a time was missed that is made up for."""
        return self.due(now) or upcoming(self.times, self.last, now)

    def too_late(self, now: datetime) -> datetime | None:
        """The first time since the last run that was missed and is not made up for; None where there is none."""
        if self.last is None or self.times.every is not None:
            return None
        first = self.times.after(self.last)
        return first if first is not None and first < now - self.estate.grace else None


def planned(estates: Sequence[EstateSettings], history: History | None) -> Mapping[str, PlannedAudit]:
    """The estates that have times, by name.

    Args:
        estates: all that are configured.
        history: where their last runs are; None where there are none.

    Raises:
        UsageError: the times of one do not fit, or none has any.
    """
    plans = {plan.estate.name: plan for plan in _planned(estates, history)}
    if not plans:
        remedy = 'add `cron = "0 3 * * *"` or `every = "PT6H"` to an `[[estates]]` table'
        raise UsageError("no estate has a time to be audited at", remedy=remedy)
    return plans


def _planned(estates: Sequence[EstateSettings], history: History | None) -> Iterator[PlannedAudit]:
    for estate in estates:
        times = times_of(estate)
        if times is not None:
            runs = history.runs(estate.name, last=1) if history is not None else ()
            yield PlannedAudit(estate, times, runs[-1].started_at if runs else None)
