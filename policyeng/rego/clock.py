"""Record until when, and since when, an evaluation that reads the clock has the same result.

A clock is a number of microseconds since 1970. Each comparison with it shows at which time the outcome changes. If the
clock is not used in another way, the evaluation has the same result between the nearest of these times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
#: What is recorded for any other use of the clock.
OTHER_USE = ("/as_of", "the clock is used otherwise than in a comparison")


def microseconds_of(moment: datetime) -> int:
    """Return the microseconds since 1970 of an aware moment."""
    return (moment - _EPOCH) // _MICROSECOND


class Unchanged(NamedTuple):
    """The range of times, in microseconds, in which evaluations have the same result; None for no limit.

    Attributes:
        since: the first of them.
        until: the first one after them.
    """

    since: int | None = None
    until: int | None = None

    def includes(self, clock: datetime) -> bool:
        """Return whether evaluations have the same result at a clock."""
        now = microseconds_of(clock)
        return (self.since is None or self.since <= now) and (self.until is None or now < self.until)

    def both(self, other: Unchanged) -> Unchanged:
        """Return the times that are in this range and in another one."""
        since = max((one for one in (self.since, other.since) if one is not None), default=None)
        until = min((one for one in (self.until, other.until) if one is not None), default=None)
        return Unchanged(since, until)

    @classmethod
    def only(cls, clock: datetime) -> Unchanged:
        """Return the range of one time."""
        now = microseconds_of(clock)
        return cls(now, now + 1)


class Clock:
    """The clock of evaluations of which the comparisons are recorded.

    Attributes:
        moment: what it shows.
        unchanged: between which clocks they have the same result; None once the clock was used in another way.
        note: is called with each moment that the clock is compared with, in microseconds.
    """

    def __init__(self, moment: datetime) -> None:
        """Take the moment, which is in UTC."""
        self.moment = moment
        self.now = microseconds_of(moment)
        self.unchanged: Unchanged | None = Unchanged()
        self.note: Callable[[int], object] | None = None

    def has_come(self, moment: int) -> bool:
        """Return whether the clock has reached a moment, in microseconds, and record that it was compared with it."""
        known = self.unchanged
        if self.note is not None:
            self.note(moment)
        if self.now >= moment:
            if known is not None and (known.since is None or known.since < moment):
                self.unchanged = known._replace(since=moment)
            return True
        if known is not None and (known.until is None or known.until > moment):
            self.unchanged = known._replace(until=moment)
        return False

    def give_up(self) -> None:
        """Record that the clock was used in another way."""
        self.unchanged = None

    def restart(self, moments: Iterable[int] = ()) -> None:
        """Forget what was recorded but comparisons with some moments, in microseconds."""
        self.unchanged = Unchanged()
        for moment in moments:
            self.has_come(moment)
