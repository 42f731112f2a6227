"""A watched clock: it answers as a moment does, knows what it was compared with, and when more was asked of it."""

from __future__ import annotations

import copy
import json
import math
import operator
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from random import Random

import pytest

from policyeng.evaluation.watching import Watch

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
OTHER = NOW + 31 * DAY


@pytest.mark.parametrize(
    ("ask", "moment"),
    [
        (lambda now: now > OTHER, OTHER),
        (lambda now: operator.le(OTHER, now), OTHER),
        (lambda now: now == OTHER, OTHER),
        (lambda now: max(now, OTHER), OTHER),
        (lambda now: now - (NOW - 9 * DAY) > 10 * DAY, NOW + DAY),
        (lambda now: (OTHER - now) / DAY <= 30, NOW + DAY),
        (lambda now: -(now - OTHER) < 30 * DAY, NOW + DAY),
        (lambda now: (now - NOW).total_seconds() / 86400 > 3, NOW + 3 * DAY),
        (lambda now: now - 3 * DAY >= NOW, NOW + 3 * DAY),
        (lambda now: not (now - OTHER), OTHER),
        (lambda now: now.astimezone(timezone(timedelta(hours=2))) < OTHER, OTHER),
    ],
)
def test_the_moment_of_a_comparison_is_noted(ask: Callable[[datetime], object], moment: datetime) -> None:
    """The answer is that of the moment; at the noted one, and nowhere else in reach, it is another."""
    watch = Watch(NOW)

    assert ask(watch.clock) == ask(NOW)
    assert {one for one in watch.moments if one.year < 9999} == {moment}
    assert not watch.spoilt
    around = {bool(ask(moment + by * timedelta.resolution) == ask(NOW)) for by in (-1, 0, 1)}
    assert around == {True, False} or ask(moment) == OTHER


@pytest.mark.parametrize(
    "ask",
    [
        lambda now: now.year,
        lambda now: f"{now:%Y}",
        str,
        repr,
        hash,
        lambda now: now.isoformat(),
        lambda now: {now: 1}[NOW],
        lambda now: (now - OTHER).days,
        lambda now: (now - OTHER) // DAY,
        lambda now: abs(now - OTHER),
        lambda now: int((now - OTHER) / DAY),
        lambda now: round((now - OTHER) / DAY),
        lambda now: math.floor((now - OTHER) / DAY),
        lambda now: math.sqrt((now - NOW) / DAY),
        lambda now: 2 * ((now - OTHER) / DAY),
        lambda now: 3 * DAY - (now - OTHER),
        lambda now: (now - OTHER) < (OTHER - now),
        copy.copy,
        copy.deepcopy,
        lambda now: json.dumps({"now": now}, default=str),
        lambda now: now.replace(year=2030),
        lambda now: now - now,
    ],
)
def test_what_is_more_than_a_comparison_spoils_the_watch(ask: Callable[[datetime], object]) -> None:
    """And is answered as ever."""
    watch = Watch(NOW)

    assert ask(watch.clock) == ask(NOW)
    assert watch.spoilt


@pytest.mark.parametrize(
    ("ask", "kind"),
    [
        (lambda now: now < "2026", TypeError),
        (lambda now: now < datetime(2026, 1, 1), TypeError),  # without a zone on purpose
        (lambda now: now + timedelta.max, OverflowError),
    ],
)
def test_what_a_moment_refuses_a_watched_one_refuses(ask: Callable[[datetime], object], kind: type[Exception]) -> None:
    """A policy that catches it goes on in the same way."""
    with pytest.raises(kind):
        ask(NOW)
    with pytest.raises(kind):
        ask(Watch(NOW).clock)


def test_it_is_a_moment_to_whoever_asks() -> None:
    """Also what is worked out of it."""
    clock = Watch(NOW).clock

    assert isinstance(clock, datetime)
    assert isinstance(clock - OTHER, timedelta)
    assert isinstance((clock - OTHER) / DAY, float)
    assert clock.tzinfo is UTC
    assert clock != "2026"


def test_between_noted_moments_a_way_through_code_stays_the_same() -> None:
    """Random comparisons of random moments, moved and divided: what they come to changes only at noted ones."""
    random = Random(3)  # noqa: S311  # nothing here is secret
    ways = (operator.lt, operator.le, operator.gt, operator.ge)
    for _ in range(400):
        asked = [(random.choice(ways), OTHER + random.randint(-9, 9) * DAY, random.randint(0, 9)) for _ in range(4)]

        def way(now: datetime, asked: list[tuple[Callable[..., bool], datetime, int]] = asked) -> list[bool]:
            said = [compare(now, other - days * DAY) for compare, other, days in asked]
            return said + [compare((now - other) / DAY, days) for compare, other, days in asked if said[0]]

        start = OTHER + random.randint(-20, 20) * timedelta(hours=12)
        watch = Watch(start)
        said = way(watch.clock)
        later = start + timedelta(hours=random.randint(1, 240))
        if not any(start <= moment <= later for moment in watch.moments):
            assert way(later) == said
