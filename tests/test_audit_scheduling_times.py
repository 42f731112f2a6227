"""When estates are due: cron as people know it, in time zones that change their clocks, and intervals."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyeng.audit.scheduling.planner import Times, missed, times_of, upcoming
from policyeng.configuration.estates import EstateSettings
from policyeng.errors import UsageError

BERLIN = ZoneInfo("Europe/Berlin")
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


def times(cron: str, zone: str = "UTC") -> Times:
    """The times of an estate with a cron expression."""
    return Times(EstateSettings(name="e", inputs=("x",), cron=cron, timezone=zone))


def following(cron: str, start: datetime, number: int, zone: str = "UTC") -> list[str]:
    """The next times, in the time zone and with its offset."""
    found, at = [], start
    asked = times(cron, zone)
    for _ in range(number):
        at = asked.after(at) or start
        found.append(at.astimezone(ZoneInfo(zone)).strftime("%m-%d %a %H:%M%z"))
    return found


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        ("0 3 * * *", ["06-01 Mon 03:00+0000", "06-02 Tue 03:00+0000"]),
        ("0 3 * * 0", ["06-07 Sun 03:00+0000", "06-14 Sun 03:00+0000"]),
        ("0 3 * * 7", ["06-07 Sun 03:00+0000", "06-14 Sun 03:00+0000"]),
        ("0 3 * * 1", ["06-01 Mon 03:00+0000", "06-08 Mon 03:00+0000"]),
        ("0 3 * * 1-5/2", ["06-01 Mon 03:00+0000", "06-03 Wed 03:00+0000"]),
        ("0 3 * * SAT,Sun", ["06-06 Sat 03:00+0000", "06-07 Sun 03:00+0000"]),
        ("0 3 * * 6-1", ["06-01 Mon 03:00+0000", "06-06 Sat 03:00+0000"]),
        ("0 3 * * */3", ["06-03 Wed 03:00+0000", "06-06 Sat 03:00+0000"]),
        ("*/20 3-4 * * *", ["06-01 Mon 03:00+0000", "06-01 Mon 03:20+0000"]),
        ("0 0 1 JAN *", ["01-01 Fri 00:00+0000", "01-01 Sat 00:00+0000"]),
    ],
)
def test_cron_is_read_as_cron_reads_it(cron: str, expected: list[str]) -> None:
    """Days of the week count from Sunday, and one day of two kinds suffices."""
    assert following(cron, datetime(2026, 5, 31, 12, tzinfo=UTC), 2) == expected


def test_either_day_suffices() -> None:
    """The thirteenth and every Friday, as cron has it, and not Friday the thirteenth alone."""
    found = following("0 0 13 * 5", datetime(2026, 6, 1, tzinfo=UTC), 4)

    assert found == ["06-05 Fri 00:00+0000", "06-12 Fri 00:00+0000", "06-13 Sat 00:00+0000", "06-19 Fri 00:00+0000"]


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        ("30 2 * * *", ["03-29 Sun 03:30+0200", "03-30 Mon 02:30+0200"]),
        ("15,45 2 * * *", ["03-29 Sun 03:15+0200", "03-29 Sun 03:45+0200", "03-30 Mon 02:15+0200"]),
        ("0 2-3 * * *", ["03-29 Sun 03:00+0200", "03-30 Mon 02:00+0200", "03-30 Mon 03:00+0200"]),
        ("0 3 * * *", ["03-29 Sun 03:00+0200", "03-30 Mon 03:00+0200"]),
        ("0 * * * *", ["03-29 Sun 03:00+0200", "03-29 Sun 04:00+0200"]),
        ("*/30 * * * *", ["03-29 Sun 01:30+0100", "03-29 Sun 03:00+0200", "03-29 Sun 03:30+0200"]),
    ],
)
def test_an_hour_that_is_left_out_loses_no_audit(cron: str, expected: list[str]) -> None:
    """At two o'clock on 29 March 2026 it is three o'clock in Berlin."""
    start = datetime(2026, 3, 29, 1, 10, tzinfo=BERLIN)

    assert following(cron, start, len(expected), "Europe/Berlin") == expected


def test_what_was_left_out_is_due_after_the_change_too() -> None:
    """Who starts within the hour after the change finds what falls into it."""
    asked = times("30 2 * * *", "Europe/Berlin")

    assert asked.after(datetime(2026, 3, 29, 3, 10, tzinfo=BERLIN)) == datetime(2026, 3, 29, 1, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        ("30 2 * * *", ["10-25 Sun 02:30+0200", "10-26 Mon 02:30+0100"]),
        ("15,45 2 * * *", ["10-25 Sun 02:15+0200", "10-25 Sun 02:45+0200", "10-26 Mon 02:15+0100"]),
        ("0 3 * * *", ["10-25 Sun 03:00+0100", "10-26 Mon 03:00+0100"]),
        ("0 * * * *", ["10-25 Sun 02:00+0200", "10-25 Sun 02:00+0100", "10-25 Sun 03:00+0100"]),
        ("30 */2 * * *", ["10-25 Sun 02:30+0200", "10-25 Sun 02:30+0100", "10-25 Sun 04:30+0100"]),
    ],
)
def test_an_hour_that_comes_twice_has_one_audit_unless_every_hour_has(cron: str, expected: list[str]) -> None:
    """At three o'clock on 25 October 2026 it is two o'clock again in Berlin."""
    start = datetime(2026, 10, 25, 1, 50, tzinfo=BERLIN)

    assert following(cron, start, len(expected), "Europe/Berlin") == expected


def test_half_an_hour_that_is_left_out_comes_in_order() -> None:
    """On Lord Howe Island clocks are put forward by thirty minutes, so that two past and one before change places."""
    start = datetime(2026, 10, 4, 1, 59, tzinfo=ZoneInfo("Australia/Lord_Howe"))

    found = following("10,35 2 * * *", start, 3, "Australia/Lord_Howe")

    assert found == ["10-04 Sun 02:35+1100", "10-04 Sun 02:40+1100", "10-05 Mon 02:10+1100"]


@given(
    minute=st.sampled_from(["0", "7", "*/15", "10,50"]),
    hour=st.sampled_from(["*", "2", "1-3", "*/2", "0,2,23"]),
    zone=st.sampled_from(["Europe/Berlin", "UTC", "Australia/Lord_Howe", "America/New_York"]),
    start=st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1), timezones=st.just(UTC)),
)
def test_times_move_on(minute: str, hour: str, zone: str, start: datetime) -> None:
    """Each is later than the one before, none lies between, and none is more than a day and an hour off."""
    asked = times(f"{minute} {hour} * * *", zone)
    first = asked.after(start)
    assert first is not None
    second = asked.after(first)
    assert second is not None

    assert start < first < second
    assert asked.after(first - timedelta(seconds=1)) == first
    assert first - start <= timedelta(hours=25)


@pytest.mark.parametrize(
    ("cron", "why"),
    [
        ("61 * * * *", "61"),
        ("0 3 * * 8", "`8` is no day of the week"),
        ("0 3 * * x", "`x` is no day of the week"),
        ("0 3 * *", "there are not five fields"),
        ("@daily", "there are not five fields"),
        ("0 0 31 2 *", "that time never comes"),
        ("0 3 * * 1/x", "invalid"),
        ("0 3 * * 1/0", ""),
    ],
)
def test_what_is_no_cron_expression_is_refused(cron: str, why: str) -> None:
    """Naming the estate, and how one looks."""
    with pytest.raises(UsageError, match="is no cron expression") as refused:
        times(cron)

    assert why in str(refused.value)
    assert str(refused.value).startswith("estate e: ")


def test_an_estate_without_times_has_none() -> None:
    """It is audited when somebody asks for it."""
    assert times_of(EstateSettings(name="e", inputs=("x",))) is None


NOW = datetime(2026, 6, 10, 3, 20, tzinfo=UTC)


@pytest.mark.parametrize(
    ("last", "grace", "expected"),
    [
        (NOW - timedelta(days=3), HOUR, NOW - 20 * MINUTE),
        (NOW - timedelta(days=3), 10 * MINUTE, None),
        (NOW - 19 * MINUTE, HOUR, None),
        (NOW - 20 * MINUTE, HOUR, None),
        (NOW - 21 * MINUTE, HOUR, NOW - 20 * MINUTE),
        (None, HOUR, NOW - 20 * MINUTE),
        (None, 10 * MINUTE, None),
        (NOW - timedelta(days=3), timedelta(days=2), NOW - 20 * MINUTE),
    ],
)
def test_a_time_that_was_missed_is_made_up_for_once_and_within_its_grace(
    last: datetime | None, grace: timedelta, expected: datetime | None
) -> None:
    """Of several that were missed, the newest; none that a run has begun at or after."""
    assert missed(times("0 3 * * *"), last, NOW, grace) == expected


def test_an_interval_that_is_overdue_is_due() -> None:
    """However late it is, as it says how old an audit may get; then it goes on from the run that makes up for it."""
    asked = Times(EstateSettings(name="e", inputs=("x",), every=6 * HOUR))

    assert missed(asked, None, NOW, MINUTE) == NOW
    assert missed(asked, NOW - timedelta(days=30), NOW, MINUTE) is not None
    assert missed(asked, NOW - 5 * HOUR, NOW, MINUTE) is None
    assert upcoming(asked, NOW - 5 * HOUR, NOW) == NOW + HOUR
    assert asked.get_next_fire_time(NOW, NOW + HOUR) == NOW + 6 * HOUR


def test_jitter_delays_and_never_hurries() -> None:
    """By up to what it says, each time anew."""
    asked = Times(EstateSettings(name="e", inputs=("x",), cron="0 3 * * *", jitter=5 * MINUTE))
    due = datetime(2026, 6, 11, 3, tzinfo=UTC)

    found = {asked.get_next_fire_time(None, NOW) or NOW for _ in range(50)}

    assert len(found) > 1
    assert all(due <= each <= due + 5 * MINUTE for each in found)
    assert asked.after(NOW) == due
