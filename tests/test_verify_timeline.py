"""The times in which a condition is true, exact to the second between sampled moments."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from policyeng.bundle.moments import PossibleSpan, day, describe_spans, samples, spans

START = datetime(2026, 1, 1, tzinfo=UTC)
SECONDS = st.integers(1, 400 * 86400)


def at(text: str) -> datetime:
    """A moment in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@given(st.lists(SECONDS, min_size=1, max_size=4, unique=True))
def test_a_change_is_found_to_the_second(changes: list[int]) -> None:
    """The first second of a change between two different moments is found."""
    moments = sorted(START + timedelta(seconds=second) for second in changes)

    def is_true(moment: datetime) -> bool:
        return sum(change <= moment for change in moments) % 2 == 0

    sampled = samples([*moments, START], START)
    found = spans(sampled, [is_true(moment) for moment in sampled], is_true)

    assert [span.begins for span in found] == [None, *moments]
    assert [span.possible for span in found] == [number % 2 == 0 for number in range(len(moments) + 1)]


def test_a_change_right_after_a_moment_is_found_before_the_next() -> None:
    """Between any two moments lies one more, so a condition that is only true in between is seen."""
    first, last = at("2026-03-01"), at("2026-03-09")

    def is_true(moment: datetime) -> bool:
        return first < moment < last

    sampled = samples([first, last], first)
    found = spans(sampled, [is_true(moment) for moment in sampled], is_true)

    assert describe_spans(found) == (
        "impossible until 2026-02-28, possible from 2026-03-01 until 2026-03-08, impossible from 2026-03-09 on"
    )


def test_spans_in_words() -> None:
    """The last day of a time is the one before the next begins; hours are stated where they matter."""
    assert describe_spans([PossibleSpan(None, True)]) == "possible at all known dates"
    assert describe_spans([PossibleSpan(None, False)]) == "impossible at all known dates"
    assert describe_spans([PossibleSpan(None, True), PossibleSpan(at("2026-03-01"), False)]) == (
        "possible until 2026-02-28, impossible from 2026-03-01 on"
    )
    assert describe_spans([PossibleSpan(None, False), PossibleSpan(at("2026-03-01T12:00:00"), True)]) == (
        "impossible before 2026-03-01T12:00:00Z, possible from 2026-03-01T12:00:00Z on"
    )
    assert day(at("2026-03-01T00:00:01")) == "2026-03-01"
