"""Evaluate rules over an input with a clock that records what it is compared with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import NoReturn, cast

from policyeng.rego import markers, runtime
from policyeng.rego.builtins import load_function
from policyeng.rego.clock import OTHER_USE, Clock, microseconds_of
from policyeng.rego.decided_results import MarkedThread
from policyeng.rego.markers import UnknownValue
from policyeng.rego.tracing import Recorder
from policyeng.rego.values import Value, is_list_less

_NANOSECONDS = 1000
#: The nanoseconds that Rego can parse, in 64 bits.
_FIRST, _LAST = -(1 << 63), (1 << 63) - 1


class ClockText(UnknownValue):
    """The clock as text. Nothing can be learned of it but its year, and the number that it is parsed to."""

    __slots__ = ("clock",)

    def __init__(self, clock: Clock) -> None:
        """Take the clock."""
        super().__init__(*OTHER_USE)
        self.clock = clock

    def __getitem__(self, part: slice) -> str:
        """Return the year; it lasts until the next one begins."""
        moment = self.clock.moment
        if part != slice(0, 4) or moment.year == datetime.max.year:
            _refuse(self)
        self.clock.has_come(microseconds_of(datetime(moment.year, 1, 1, tzinfo=UTC)))
        self.clock.has_come(microseconds_of(datetime(moment.year + 1, 1, 1, tzinfo=UTC)))
        return f"{moment.year:04}"


class ClockNumber(UnknownValue):
    """The clock in nanoseconds, or what comes of adding to it or of subtracting it: `sign * clock + offset`."""

    __slots__ = ("clock", "offset", "sign")

    def __init__(self, clock: Clock, sign: int = 1, offset: int = 0) -> None:
        """Take the clock."""
        super().__init__(*OTHER_USE)
        self.clock, self.sign, self.offset = clock, sign, offset

    __hash__ = UnknownValue.__hash__

    def __lt__(self, other: object) -> bool:
        """Compare with a number that does not depend on the clock."""
        if type(other) is not int:
            _refuse(self)
        if self.sign > 0:
            return not self.clock.has_come(-((self.offset - other) // _NANOSECONDS))
        return self.clock.has_come((self.offset - other) // _NANOSECONDS + 1)

    def __le__(self, other: object) -> bool:
        """Compare with a number that does not depend on the clock."""
        return self < other + 1 if type(other) is int else _refuse(self)

    def __gt__(self, other: object) -> bool:
        """Compare with a number that does not depend on the clock."""
        return not self <= other

    def __ge__(self, other: object) -> bool:
        """Compare with a number that does not depend on the clock."""
        return not self < other

    def __add__(self, other: object) -> ClockNumber:
        """Return a later number."""
        return ClockNumber(self.clock, self.sign, self.offset + other) if type(other) is int else _refuse(self)

    __radd__ = __add__

    def __sub__(self, other: object) -> ClockNumber:
        """Return an earlier number."""
        return ClockNumber(self.clock, self.sign, self.offset - other) if type(other) is int else _refuse(self)

    def __rsub__(self, other: object) -> ClockNumber:
        """Return how much later a number is."""
        return ClockNumber(self.clock, -self.sign, other - self.offset) if type(other) is int else _refuse(self)


def _refuse(value: UnknownValue) -> NoReturn:
    raise markers.Undecided(markers.cause_of(value))


_SHOWN = {ClockText: str, ClockNumber: int}


def _type(value: Value) -> type:
    """Return the type of a value for compiled code, which the clock has like any other text or number."""
    kind = type(value)
    return _SHOWN.get(kind, kind)


def _is_less(left: Value, right: Value) -> bool:
    """Compare values, of which lists may have the clock among their items."""
    if type(left) is ClockNumber or type(right) is ClockNumber:
        return bool(left < right)
    if not (type(left) is list and type(right) is list and ClockNumber in map(type, (*left, *right))):
        return bool(MarkedThread.names["is_less"](left, right))
    return is_list_less(left, right, _is_less)


class _Remembered(runtime.Remembered):
    """A cache of a function's results for strings; for the clock the function is always called."""

    __slots__ = ()

    def __getitem__(self, text: Value) -> Value:
        """Return the cached result; results for the clock are not cached."""
        return self.function(text) if type(text) in _SHOWN else super().__getitem__(text)


def _subtract(subtract: Callable[[Value, Value], Value], left: Value, right: Value) -> Value:
    return left - right if ClockNumber in (type(left), type(right)) else subtract(left, right)


def _parse(parse: Callable[[Value], Value], text: Value) -> Value:
    if type(text) is not ClockText:
        return parse(text)
    clock: Clock = text.clock
    if not clock.has_come(-(-_FIRST // _NANOSECONDS)) or clock.has_come(_LAST // _NANOSECONDS):
        _refuse(text)
    return ClockNumber(clock)


class ClockThread(MarkedThread):
    """Evaluates the plain form of a program over an input with a clock that records what it is compared with.

    What uses the clock in another way raises `Undecided`, and so does what meets another marker.
    """

    names: Mapping[str, Value] = {**MarkedThread.names, "Remembered": _Remembered, "is_less": _is_less}

    def load(self, code: Value, compiled: Value) -> None:
        """Define the functions of compiled modules."""
        self._clock: Clock | None = None
        self.globals["__builtins__"]["type"] = _type
        super().load(code, compiled)
        for name, function in (("time.parse_rfc3339_ns", _parse), ("minus", _subtract)):
            if short := compiled.builtins.get(name):
                self.globals[short] = partial(function, self.globals[short])

    def now(self) -> Value:
        """Return the clock as a number that records what it is compared with."""
        return _parse(load_function("time.parse_rfc3339_ns"), self.time)

    @contextmanager
    def recording(self, names: Mapping[int, str] | None = None) -> Iterator[Recorder]:
        """Record what several calls of an evaluation read, and what they compare the clock with."""
        clock = cast("Clock", self._clock)
        self.joins.use(None)  # what they compared then would be missing
        with super().recording(names) as recorder:
            clock.note = recorder.note_moment
            try:
                yield recorder
            finally:
                clock.note = None

    def show(self, clock: Clock) -> ClockText:
        """Return the value for the clock in an input, and clear the results for another clock."""
        if clock is not self._clock:
            self.joins.use(None)
            self._clock = clock
        return ClockText(clock)
