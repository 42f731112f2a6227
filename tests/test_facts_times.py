"""Moments as documents write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from policyeng.facts.times import moment


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-06-01T00:00:00Z", datetime(2026, 6, 1, tzinfo=UTC)),
        (" 2026-06-01t00:00:00z\n", datetime(2026, 6, 1, tzinfo=UTC)),
        ("2026-06-01 02:00:00+02:00", datetime(2026, 6, 1, 2, tzinfo=timezone(timedelta(hours=2)))),
        ("2026-06-01T00:00:00.1234567Z", datetime(2026, 6, 1, 0, 0, 0, 123456, tzinfo=UTC)),
        ("2026-06-01T00:00:00.5Z", datetime(2026, 6, 1, 0, 0, 0, 500000, tzinfo=UTC)),
        ("2026-06-01", datetime(2026, 6, 1, tzinfo=UTC)),
        ("0001-01-01T00:00:00+14:00", datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14)))),
    ],
)
def test_a_moment_is_aware(text: str, expected: datetime) -> None:
    """RFC 3339 in any zone, with any fraction, and dates alone."""
    assert moment(text) == expected


@pytest.mark.parametrize(
    "value",
    [
        *(None, 0, 1780272000, True, [], "", " ", "yesterday", "2026-06-31", "0000-01-01", "20260601", "2026-W23-1"),
        *("2026-06-01T00:00:00", "2026-06-01T00:00Z", "2026-06-01T25:00:00Z", "2026-06-01T00:00:60Z", "٢٠٢٦-06-01"),
    ],
)
def test_what_is_no_moment_is_none(value: object) -> None:
    """Another form, a time without a zone, a day that is not, another type: nothing is guessed."""
    assert moment(value) is None
