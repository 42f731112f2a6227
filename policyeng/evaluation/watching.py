"""A clock that notes what it is compared with, so that it is known until when the answers stay the same.

A policy that has nothing of the clock but the outcome of comparisons takes the same way through its code, and so says
the same, at every moment at which all of them come out as they did. What else it asks of the clock spoils the watch.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from datetime import tzinfo as timezone
from typing import Any, ClassVar, TypeAlias, cast

_SECOND = timedelta(seconds=1)
#: What changes with a clock: itself, what lies between it and another moment, and the length of that in some unit.
_Value: TypeAlias = datetime | timedelta | float


class Watch:
    """What is asked of a clock while something is judged.

    Attributes:
        as_of: what the clock shows.
        moments: those at which a comparison comes out otherwise.
        spoilt: something was asked that is no comparison, so nothing is known of other moments.
    """

    def __init__(self, as_of: datetime) -> None:
        """Show a moment, in UTC."""
        self.as_of = as_of
        self.moments: set[datetime] = set()
        self.spoilt = False

    @property
    def clock(self) -> datetime:
        """Stands for the moment; what is worked out of it by adding, subtracting and dividing is watched as well."""
        return cast("datetime", _Moment(self, self.as_of, 1))

    def meets(self, after: timedelta) -> None:
        """Note a moment by how much later than `as_of` it is."""
        with suppress(OverflowError):  # no clock will show it
            self.moments.add(self.as_of + after)


class _Watched:
    """Something that changes with the clock, and evenly; whatever it gives is right, but only some of it is watched."""

    __slots__ = ("_rate", "_value", "_watch")
    _kind: ClassVar[type]
    _like: ClassVar[tuple[type, ...]]
    _value: Any
    _rate: float

    def __init__(self, watch: Watch, value: _Value, rate: float) -> None:
        """Take a value that grows by `rate` with each second: in seconds, or in the unit of a number."""
        self._watch, self._value, self._rate = watch, value, rate

    @property  # type: ignore[misc]  # whoever asks for the class is told that of the value
    def __class__(self) -> type:
        return self._kind

    def _compared(self, other: object, compare: Callable[..., bool]) -> bool:
        if issubclass(type(other), _Watched):
            watched = cast("_Watched", other)
            self._watch.spoilt |= watched._rate != self._rate
            return compare(self._value, watched._value)
        if not isinstance(other, self._like):
            return cast("bool", NotImplemented)
        with suppress(TypeError):  # what has no zone is neither before nor after what has one
            self._watch.meets(self._until(cast("_Value", other)))
        return compare(self._value, other)

    def _until(self, other: _Value) -> timedelta:
        after: timedelta = (other - self._value) / self._rate
        return after

    def __lt__(self, other: object) -> bool:
        return self._compared(other, operator.lt)

    def __le__(self, other: object) -> bool:
        return self._compared(other, operator.le)

    def __gt__(self, other: object) -> bool:
        return self._compared(other, operator.gt)

    def __ge__(self, other: object) -> bool:
        return self._compared(other, operator.ge)

    def __eq__(self, other: object) -> bool:
        return self._compared(other, operator.eq)

    def __ne__(self, other: object) -> bool:
        return self._compared(other, operator.ne)

    def __getattr__(self, name: str) -> object:
        self._watch.spoilt = True
        return getattr(self._value, name)


def _telling(name: str) -> Callable[..., object]:
    """An operator that says more than a comparison does: it gives what it gives of the value."""

    def told(self: _Watched, *given: object) -> object:
        self._watch.spoilt = True
        method = getattr(type(self._value), name, None)
        return NotImplemented if method is None else method(self._value, *given)

    return told


for _name in (
    *("hash", "repr", "str", "format", "reduce_ex", "abs", "int", "float", "round", "floor", "ceil", "trunc", "pos"),
    *("neg", "add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv", "rfloordiv", "mod"),
    *("rmod", "divmod", "rdivmod", "pow", "rpow"),
):
    setattr(_Watched, f"__{_name}__", _telling(f"__{_name}__"))


class _Moment(_Watched):
    """The clock, or a moment that is always as far from it."""

    __slots__ = ()
    _kind = datetime
    _like = (datetime,)

    @property
    def tzinfo(self) -> timezone | None:
        return cast("datetime", self._value).tzinfo

    def astimezone(self, zone: timezone) -> _Moment:
        return _Moment(self._watch, self._value.astimezone(zone), 1)

    def __add__(self, other: object) -> object:
        return self._moved(other, operator.add)

    __radd__ = __add__

    def __sub__(self, other: object) -> object:
        if type(other) is datetime:
            return _Span(self._watch, self._value - other, 1)
        return self._moved(other, operator.sub)

    def __rsub__(self, other: object) -> object:
        if type(other) is datetime:
            return _Span(self._watch, other - self._value, -1)
        return NotImplemented

    def _moved(self, other: object, move: Callable[..., datetime]) -> object:
        if type(other) is not timedelta:
            self._watch.spoilt = True
            return move(self._value, other)
        try:
            moved = move(self._value, other)
        except OverflowError:
            self._watch.spoilt = True
            raise
        # Later clocks cannot be moved as far.
        self._watch.meets(datetime.max.replace(tzinfo=moved.tzinfo) - max(moved, self._watch.as_of))
        return _Moment(self._watch, moved, 1)


class _Span(_Watched):
    """How much earlier or later than the clock something is."""

    __slots__ = ()
    _kind = timedelta
    _like = (timedelta,)

    def __bool__(self) -> bool:
        return self != timedelta()

    def __neg__(self) -> _Span:
        return _Span(self._watch, -self._value, -self._rate)

    def __truediv__(self, other: object) -> object:
        if type(other) is not timedelta:
            self._watch.spoilt = True
            return self._value / other
        return _Number(self._watch, self._value / other, self._rate * (_SECOND / other))

    def total_seconds(self) -> _Number:
        return _Number(self._watch, self._value.total_seconds(), self._rate)


class _Number(_Watched):
    """The length of a span in some unit."""

    __slots__ = ()
    _kind = float
    _like = (int, float)

    def _until(self, other: _Value) -> timedelta:
        try:
            return timedelta(seconds=(other - self._value) / self._rate)
        except (OverflowError, ValueError):  # beyond all calendars, or no number
            return timedelta.max

    def __bool__(self) -> bool:
        return self != 0

    def __truediv__(self, other: object) -> object:
        if type(other) is not int and type(other) is not float:
            self._watch.spoilt = True
            return self._value / other
        return _Number(self._watch, self._value / other, self._rate / other)
