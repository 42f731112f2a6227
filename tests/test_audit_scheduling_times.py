"""When estates are due: cron as in Debian, in time zones that change their clocks, and intervals."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyeng.audit.scheduler import Times, missed, times_of, upcoming
from policyeng.configuration.settings import EstateSettings
from policyeng.errors import UsageError

BERLIN = ZoneInfo("Europe/Berlin")
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


def times(cron: str, zone: str = "UTC") -> Times:
    """The times of an estate with a cron expression."""
    return Times(EstateSettings(name="e", inputs=("x",), cron=cron, timezone=zone))


def following(cron: str, start: datetime, number: int, zone: str = "UTC") -> list[str]:
    """The next times, in the time zone and with its offset."""
    results, at = [], start
    tested = times(cron, zone)
    for _ in range(number):
        at = tested.after(at)
        results.append(at.astimezone(ZoneInfo(zone)).strftime("%m-%d %a %H:%M%z"))
    return results


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        ("0 3 * * *", ["06-01 Mon 03:00+0000", "06-02 Tue 03:00+0000"]),
        ("0 3 * * 0", ["06-07 Sun 03:00+0000", "06-14 Sun 03:00+0000"]),
        ("0 3 * * 7", ["06-07 Sun 03:00+0000", "06-14 Sun 03:00+0000"]),
        ("0 3 * * 1", ["06-01 Mon 03:00+0000", "06-08 Mon 03:00+0000"]),
        ("0 3 * * 1-5/2", ["06-01 Mon 03:00+0000", "06-03 Wed 03:00+0000"]),
        ("0 3 * * SAT,Sun", ["06-06 Sat 03:00+0000", "06-07 Sun 03:00+0000"]),
        ("0 3 * * */3", ["06-03 Wed 03:00+0000", "06-06 Sat 03:00+0000"]),
        ("*/20 3-4 * * *", ["06-01 Mon 03:00+0000", "06-01 Mon 03:20+0000"]),
        ("0 0 1 JAN *", ["01-01 Fri 00:00+0000", "01-01 Sat 00:00+0000"]),
    ],
)
def test_cron_expressions_mean_what_cron_documents(cron: str, expected: list[str]) -> None:
    """Days of the week count from Sunday."""
    assert following(cron, datetime(2026, 5, 31, 12, tzinfo=UTC), 2) == expected


def test_either_day_suffices() -> None:
    """The expression matches the thirteenth and every Friday, as in cron, and not only Friday the thirteenth."""
    results = following("0 0 13 * 5", datetime(2026, 6, 1, tzinfo=UTC), 4)

    assert results == ["06-05 Fri 00:00+0000", "06-12 Fri 00:00+0000", "06-13 Sat 00:00+0000", "06-19 Fri 00:00+0000"]


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        ("30 2 * * *", ["03-29 Sun 03:00+0200", "03-30 Mon 02:30+0200"]),
        ("15,45 2 * * *", ["03-29 Sun 03:00+0200", "03-30 Mon 02:15+0200"]),
        ("0 2-3 * * *", ["03-29 Sun 03:00+0200", "03-30 Mon 02:00+0200", "03-30 Mon 03:00+0200"]),
        ("0 3 * * *", ["03-29 Sun 03:00+0200", "03-30 Mon 03:00+0200"]),
        ("0 * * * *", ["03-29 Sun 03:00+0200", "03-29 Sun 04:00+0200"]),
        ("*/30 * * * *", ["03-29 Sun 01:30+0100", "03-29 Sun 03:00+0200", "03-29 Sun 03:30+0200"]),
    ],
)
def test_times_in_a_skipped_hour_move_to_its_end(cron: str, expected: list[str]) -> None:
    """At two o'clock on 29 March 2026, clocks in Berlin are set to three."""
    start = datetime(2026, 3, 29, 1, 10, tzinfo=BERLIN)

    assert following(cron, start, len(expected), "Europe/Berlin") == expected


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
def test_a_repeated_hour_has_one_audit_unless_the_expression_is_hourly(cron: str, expected: list[str]) -> None:
    """At three o'clock on 25 October 2026, clocks in Berlin are set to two."""
    start = datetime(2026, 10, 25, 1, 50, tzinfo=BERLIN)

    assert following(cron, start, len(expected), "Europe/Berlin") == expected


@given(
    minute=st.sampled_from(["0", "7", "*/15", "10,50"]),
    hour=st.sampled_from(["*", "2", "1-3", "*/2", "0,2,23"]),
    zone=st.sampled_from(["Europe/Berlin", "UTC", "Australia/Lord_Howe", "America/New_York"]),
    start=st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1), timezones=st.just(UTC)),
)
def test_times_move_on(minute: str, hour: str, zone: str, start: datetime) -> None:
    """Each is later than the one before, none is between, and the next is at most a day and an hour away."""
    tested = times(f"{minute} {hour} * * *", zone)
    first = tested.after(start)

    assert start < first < tested.after(first)
    assert tested.after(first - timedelta(seconds=1)) == first
    assert first - start <= timedelta(hours=25)


@pytest.mark.parametrize(
    ("cron", "why"),
    [
        ("61 * * * *", "bad minute"),
        ("0 3 * * 8", "bad day-of-week"),
        ("0 3 * * x", "bad day-of-week"),
        ("0 3 * * 6-1", "bad day-of-week"),
        ("0 3 * *", "wrong number of fields"),
        ("@daily", "wrong number of fields"),
        ("0 0 31 2 *", "bad day-of-month"),
        ("0 3 * * 1/x", "bad day-of-week"),
        ("0 3 * * 1/0", "bad day-of-week"),
    ],
)
def test_invalid_cron_expressions_are_rejected(cron: str, why: str) -> None:
    """The error names the estate and the field, and has an example."""
    with pytest.raises(UsageError) as caught:
        times(cron)

    assert f"estate e: `{cron}` is not a cron expression ({why})" in str(caught.value)


def test_an_estate_without_times_has_none() -> None:
    """Only `policyeng audit run` audits it."""
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
def test_missed_times_are_made_up_for_once_and_within_the_grace_period(
    last: datetime | None, grace: timedelta, expected: datetime | None
) -> None:
    """Of several missed times the newest; none at or before the start of the last run."""
    assert missed(times("0 3 * * *"), last, NOW, grace) == expected


def test_an_overdue_interval_is_due() -> None:
    """However late it is, because the interval limits the age of an audit."""
    tested = Times(EstateSettings(name="e", inputs=("x",), every=6 * HOUR))

    assert missed(tested, None, NOW, MINUTE) == NOW
    assert missed(tested, NOW - timedelta(days=30), NOW, MINUTE) is not None
    assert missed(tested, NOW - 5 * HOUR, NOW, MINUTE) is None
    assert upcoming(tested, NOW - 5 * HOUR, NOW) == NOW + HOUR
    assert tested.after(NOW) == NOW + 6 * HOUR
