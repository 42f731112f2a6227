"""A clock for Python policies that records their comparisons.

The recording clock is not a `datetime`, so functions in C reject it instead of reading it unrecorded. It can be
compared, and times and durations can be added to it and subtracted from it. Any other use ends the evaluation.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import NoReturn

from policyeng.rego.clock import OTHER_USE, Clock, microseconds_of
from policyeng.rego.markers import TOUCHED, Undecided
from policyeng.rego.values import Value

_MICROSECOND, _DAY = timedelta(microseconds=1), timedelta(days=1)
#: More microseconds than between any two times.
_FARTHEST = 1 << 59
_FIRST, _LAST = (microseconds_of(one.replace(tzinfo=UTC)) for one in (datetime.min, datetime.max))


class _RecordedValue:
    """A value that depends on the clock: `sign * clock + offset`, in microseconds."""

    __slots__ = ("_clock", "_offset", "_sign")

    def __init__(self, clock: Clock, sign: int = 1, offset: int = 0) -> None:
        self._clock, self._sign, self._offset = clock, sign, offset

    def __getattr__(self, name: str) -> Value:
        self._refuse(name)

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        self._clock.give_up()
        raise Undecided(OTHER_USE)

    def _is_below(self, moment: int) -> bool:
        """Check whether the value is below another one, in microseconds."""
        if self._sign > 0:
            return not self._clock.has_come(moment - self._offset)
        return self._clock.has_come(self._offset - moment + 1)

    def _measure(self, other: object) -> tuple[int, int] | None:
        """Return the least value not below another one, and the least above it; None for other types."""
        raise NotImplementedError

    def _compared(self, other: object) -> tuple[int, int]:
        return self._measure(other) or self._refuse()

    def __lt__(self, other: object) -> bool:
        return self._is_below(self._compared(other)[0])

    def __le__(self, other: object) -> bool:
        return self._is_below(self._compared(other)[1])

    def __gt__(self, other: object) -> bool:
        return not self <= other

    def __ge__(self, other: object) -> bool:
        return not self < other


for _name in (*TOUCHED.split(), "reduce_ex"):  # a copy would not be recorded
    if f"__{_name}__" not in vars(_RecordedValue):
        setattr(_RecordedValue, f"__{_name}__", _RecordedValue._refuse)


class RecordedMoment(_RecordedValue):
    """The clock, or a time at a fixed distance from it."""

    __slots__ = ()

    __class__ = property(lambda _: datetime)  # it passes for it

    @property
    def tzinfo(self) -> tzinfo:
        """The time zone, which does not depend on the clock."""
        return UTC

    def _measure(self, other: object) -> tuple[int, int] | None:
        moment = _moment(other)
        return None if moment is None else (moment, moment + 1)

    def __add__(self, other: object) -> RecordedMoment:
        if type(other) is not timedelta:
            self._refuse()
        offset = self._offset + other // _MICROSECOND
        # A time outside the range of `datetime` is an error.
        if not self._clock.has_come(_FIRST - offset) or self._clock.has_come(_LAST - offset):
            self._refuse()
        return RecordedMoment(self._clock, 1, offset)

    __radd__ = __add__

    def __sub__(self, other: object) -> Value:
        if type(other) is timedelta:
            return self + -other
        moment = _moment(other)
        return self._refuse() if moment is None else _RecordedDuration(self._clock, 1, self._offset - moment)

    def __rsub__(self, other: object) -> _RecordedDuration:
        moment = _moment(other)
        return self._refuse() if moment is None else _RecordedDuration(self._clock, -1, moment - self._offset)


class _RecordedDuration(_RecordedValue):
    """The duration between the clock and a time."""

    __slots__ = ()

    __class__ = property(lambda _: timedelta)  # it passes for it

    def _measure(self, other: object) -> tuple[int, int] | None:
        return (found := other // _MICROSECOND, found + 1) if type(other) is timedelta else None

    def _divide(self, other: object, divide: Callable[[Value, Value], Value]) -> _RecordedNumber:
        if type(other) is not timedelta or other <= timedelta(0):
            self._refuse()
        return _RecordedNumber(self, divide, other)

    def __truediv__(self, other: object) -> _RecordedNumber:
        return self._divide(other, operator.truediv)

    def __floordiv__(self, other: object) -> _RecordedNumber:
        return self._divide(other, operator.floordiv)

    @property
    def days(self) -> _RecordedNumber:
        """The whole days."""
        return self._divide(_DAY, operator.floordiv)

    def total_seconds(self) -> _RecordedNumber:
        """Return the duration in seconds."""
        return self._divide(timedelta(seconds=1), operator.truediv)


class _RecordedNumber(_RecordedValue):
    """The quotient of two durations."""

    __slots__ = ("_divide", "_unit")

    def __init__(self, duration: _RecordedDuration, divide: Callable[[Value, Value], Value], unit: timedelta) -> None:
        super().__init__(duration._clock, duration._sign, duration._offset)
        self._divide, self._unit = divide, unit

    __class__ = property(lambda number: float if number._divide is operator.truediv else int)  # it passes for it

    def _measure(self, other: object) -> tuple[int, int] | None:
        if type(other) not in (int, float) or other != other:  # NaN is below nothing
            return None
        measured = self._divide, self._unit, other
        return _least(*measured, operator.lt), _least(*measured, operator.le)


@lru_cache(maxsize=4096)
def _least(divide: Callable[..., Value], unit: timedelta, other: float, is_below: Callable[..., bool]) -> int:
    """Return the shortest duration, in microseconds, whose quotient is no longer below a number, by halving."""
    below, least = -_FARTHEST, _FARTHEST
    while least - below > 1:
        middle = (below + least) // 2
        if is_below(divide(timedelta(microseconds=middle), unit), other):
            below = middle
        else:
            least = middle
    return least


def _moment(value: object) -> int | None:
    """Return a time with a zone in microseconds; None for other values."""
    if type(value) is not datetime or value.tzinfo is None or value.utcoffset() is None:
        return None
    return microseconds_of(value)
