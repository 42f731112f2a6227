"""Time spans in which a condition is true, exact to the second."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

_SECOND = timedelta(seconds=1)


class PossibleSpan(NamedTuple):
    """A time in which a class is possible, or is not; `begins` is None where nothing is known before."""

    begins: datetime | None
    possible: bool


def samples(moments: Sequence[datetime], as_of: datetime) -> list[datetime]:
    """Return the moments in order with the clock among them, one between each two, and one before and after them all.

    A finding may change at a moment or right after it; the samples in between distinguish these.
    """
    known = sorted({*moments, as_of})
    between = [_find_midpoint(one, other) for one, other in pairwise(known)]
    day = timedelta(days=1)
    outer = [moved for moved in (_shift(known[0], -day), _shift(known[-1], day)) if moved]
    return sorted({*known, *between, *outer})


def spans(sampled: Sequence[datetime], held: Sequence[bool], holds: Callable[[datetime], bool]) -> list[PossibleSpan]:
    """Return the times between changes.

    Args:
        sampled: moments in order.
        held: at each of them, whether it holds.
        holds: whether it does at any moment; asked between two samples that differ.
    """
    found = [PossibleSpan(None, held[0])]
    for number in range(1, len(sampled)):
        if held[number] != held[number - 1]:
            begins = _find_first_change(sampled[number - 1], sampled[number], held[number], holds)
            found.append(PossibleSpan(begins, held[number]))
    return found


def _find_first_change(before: datetime, after: datetime, wanted: bool, holds: Callable[[datetime], bool]) -> datetime:
    """Return the first second after one moment, up to another, at which the answer is another one."""
    while after - before > _SECOND:
        middle = _find_midpoint(before, after)
        if holds(middle) == wanted:
            after = middle
        else:
            before = middle
    return after


def _find_midpoint(one: datetime, other: datetime) -> datetime:
    middle = one + (other - one) / 2
    rounded = middle.replace(microsecond=0)
    return rounded if rounded > one else middle


def _shift(moment: datetime, by: timedelta) -> datetime | None:
    try:
        return moment + by
    except OverflowError:
        return None


def day(moment: datetime) -> str:
    """Return a moment as its day, with the time where that is not its first second."""
    moment = moment.astimezone(UTC)
    midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    return f"{moment:%Y-%m-%d}" if moment - midnight <= _SECOND else f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def describe_spans(found: Sequence[PossibleSpan]) -> str:
    """Return the spans in words."""
    if len(found) == 1:
        return "possible at all known dates" if found[0].possible else "impossible at all known dates"
    parts = []
    for number, span in enumerate(found):
        ends = found[number + 1].begins if number + 1 < len(found) else None
        word = "possible" if span.possible else "impossible"
        since = f" from {day(span.begins)} on" if span.begins else ""
        until = f" {_until(ends)}" if ends else ""
        parts.append(f"{word}{since.removesuffix(' on') if until else since}{until}")
    return ", ".join(parts)


def _until(ends: datetime) -> str:
    """Until the last day before something ends; where it ends within a day, before that moment."""
    midnight = ends.replace(hour=0, minute=0, second=0, microsecond=0)
    return f"until {day(ends - timedelta(days=1))}" if ends - midnight <= _SECOND else f"before {day(ends)}"
