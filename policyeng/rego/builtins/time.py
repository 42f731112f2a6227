"""Builtins that compute with times, which are nanoseconds since 1970. Nothing here reads the clock."""

from __future__ import annotations

import re
from calendar import isleap, monthrange
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Decimal
from functools import cache, lru_cache
from math import isfinite
from typing import NamedTuple

from policyeng.rego.budget import charge
from policyeng.rego.builtins.registry import (
    BuiltinError,
    UnsupportedError,
    builtin,
    check_integer,
    check_number,
    check_string,
    wrong_type,
)
from policyeng.rego.numbers import round_to_mantissa, to_fraction
from policyeng.rego.values import Value, is_number

_SECOND = 1_000_000_000
_DAY = 86400
_SMALLEST, _LARGEST = -(1 << 63), (1 << 63) - 1
_EPOCH = datetime(1970, 1, 1)  # times of a zone's `fromutc` have no offset of their own
_EPOCH_DAY = _EPOCH.toordinal()
#: Years, months or days from which on the calendar of Go may wrap around.
_FAR = 1 << 31
_OUTSIDE = "time outside of valid range"

_RFC3339 = "2006-01-02T15:04:05Z07:00"
_LONGEST_RFC3339 = 40
_RFC3339_NANO = "2006-01-02T15:04:05.999999999Z07:00"
_LAYOUTS = {
    "ANSIC": "Mon Jan _2 15:04:05 2006",
    "UnixDate": "Mon Jan _2 15:04:05 MST 2006",
    "RubyDate": "Mon Jan 02 15:04:05 -0700 2006",
    "RFC822": "02 Jan 06 15:04 MST",
    "RFC822Z": "02 Jan 06 15:04 -0700",
    "RFC850": "Monday, 02-Jan-06 15:04:05 MST",
    "RFC1123": "Mon, 02 Jan 2006 15:04:05 MST",
    "RFC1123Z": "Mon, 02 Jan 2006 15:04:05 -0700",
    "RFC3339": _RFC3339,
    "RFC3339Nano": _RFC3339_NANO,
}
_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_SHORT_DAYS = tuple(name[:3] for name in _DAYS)
_SHORT_MONTHS = tuple(name[:3] for name in _MONTHS)
#: The parts of a layout of Go.
_CHUNK = re.compile(
    r"January|Jan(?![a-z])|Monday|Mon(?![a-z])|MST|0[1-6]|002|15|1|2006|2|_2(?!006)|__2|3|4|5|PM|pm"
    r"|[-Z]07(?:0000|:00:00|00|:00)?|[.,](?:0+|9+)(?![0-9])"
)
_RUNS = re.compile(" +|[^ ]+")
#: What reads each part of a layout; a part that begins with a zero takes two digits.
_NUMBER, _OPTIONAL_FRACTION = "([0-9]{1,2}+)", "([.,][0-9]++)?+"
_ZONE_OFFSET = "[+-](?:0++(?![0-9])|0*+(?:[1-9]|1[0-9]|2[0-3])(?![0-9]))"
_PARTS = {
    **dict.fromkeys(("1", "2", "15", "3", "4", "5"), _NUMBER),
    **dict.fromkeys(("01", "02", "03", "04", "05"), "([0-9]{2})"),
    "2006": "([0-9]{4})",
    "06": "([0-9]{2}|[+-][0-9])",
    "_2": f" ?+{_NUMBER}",
    "__2": " {0,2}+([0-9]{1,3}+)",
    "002": "([0-9]{3})",
    "PM": "([AP]M)",
    "pm": "([ap]m)",
    "January": f"(?i:({'|'.join(_MONTHS)}))",
    "Jan": f"(?i:({'|'.join(_SHORT_MONTHS)}))",
    "Monday": f"(?i:({'|'.join(_DAYS)}))",
    "Mon": f"(?i:({'|'.join(_SHORT_DAYS)}))",
    "MST": (
        f"((?>UTC|ChST|MeST|GMT(?:{_ZONE_OFFSET})?|(?=.{{3}}){_ZONE_OFFSET}"
        "|(?:[A-Z]{4}T|[A-Z]{3}T|WITA|[A-Z]{3})(?![A-Z])))"
    ),
}
#: Parts that are read to the same place, and the largest number of each.
_SAME_PARTS = {"01": "1", "02": "2", "_2": "2", "__2": "002", "03": "15", "3": "15", "04": "4", "05": "5"}
_SAME_PARTS |= {"January": "Jan", "Monday": "Mon", "pm": "PM"}
_LARGEST_NUMBERS = {
    "1": 12,
    "01": 12,
    "2": 99,
    "_2": 99,
    "02": 99,
    "15": 23,
    "3": 12,
    "03": 12,
    "4": 59,
    "04": 59,
    "5": 59,
    "05": 59,
}
#: An offset that Go takes for none.
_NO_OFFSET = -1
_DURATION_PART = re.compile(r"(?!\Z)([0-9]*)(?:\.([0-9]*))?([^.0-9]*)")
_EXTENDED_DURATION = re.compile(r"([-+]?)((?:[0-9.]+(?:ms|us|µs|ns|[a-z]))+)")
_EXTENDED_PART = re.compile(r"(?<![0-9.])([0-9.]+)(ms|us|µs|ns|[a-z])")
_UNITS = {
    "ns": 1, "us": 1000, "µs": 1000, "μs": 1000, "ms": 1_000_000, "s": _SECOND, "m": 60 * _SECOND, "h": 3600 * _SECOND,
}  # fmt: skip
_HOURS = {"d": 24, "w": 7 * 24, "y": 365 * 24}


class _Time(NamedTuple):
    """A moment as a zone shows it."""

    seconds: int
    nanoseconds: int
    zone: tzinfo

    @property
    def offset(self) -> int:
        """The offset of the zone in seconds."""
        return _offset(self.zone, self.seconds)

    @property
    def local(self) -> tuple[date, int]:
        """The date and the seconds of the day."""
        days, seconds = divmod(self.seconds + self.offset, _DAY)
        return date.fromordinal(_EPOCH_DAY + days), seconds

    @property
    def clock(self) -> tuple[int, int, int]:
        """The hour, minute and second."""
        seconds = self.local[1]
        return seconds // 3600, seconds // 60 % 60, seconds % 60

    @property
    def zone_name(self) -> str:
        """The abbreviation of the zone."""
        return self.zone.fromutc(_naive(self.seconds).replace(tzinfo=self.zone)).tzname() or ""


@builtin("time.parse_ns")
def parse_time(layout: Value, text: Value) -> Value:
    """Parse a time with a layout of Go."""
    form = check_string(1, layout)
    return _check_range(_parse(_LAYOUTS.get(form, form), check_string(2, text)))


@builtin("time.parse_rfc3339_ns")
def parse_rfc3339_time(text: Value) -> Value:
    """Parse a time in the format of RFC 3339."""
    check_string(1, text)
    return _parse_rfc3339(text) if len(text) <= _LONGEST_RFC3339 else _check_range(_parse(_RFC3339, text))


@lru_cache(maxsize=1024)
def _parse_rfc3339(text: str) -> Value:
    # Policies compare the same few times again and again.
    return _check_range(_parse(_RFC3339, text))


@builtin("time.parse_duration_ns")
def parse_duration(text: Value) -> Value:
    """Parse a duration of Go, which may have days, weeks and years."""
    check_string(1, text)
    rewritten = text
    if any(unit in text for unit in _HOURS):
        found = _EXTENDED_DURATION.fullmatch(text)
        if found is None:
            raise BuiltinError(f'time: invalid duration "{text}"')
        parts = (_to_hours(*part.groups()) for part in _EXTENDED_PART.finditer(found[2]))
        rewritten = found[1] + "".join(parts)
    try:
        return _parse_duration(rewritten)
    except ValueError as error:
        raise BuiltinError(f'time: {error} "{text}"') from None


@builtin("time.format")
def format_time(moment: Value) -> Value:
    """Format a time with a layout of Go."""
    time = _read(moment)
    layout = check_string(1, moment[2]) if type(moment) is list and len(moment) > 2 else ""
    return _format(time, _LAYOUTS.get(layout, layout) or _RFC3339_NANO)


@builtin("time.date")
def get_date(moment: Value) -> Value:
    """Return the year, month and day of a time."""
    day = _read(moment).local[0]
    return [day.year, day.month, day.day]


@builtin("time.clock")
def get_clock(moment: Value) -> Value:
    """Return the hour, minute and second of a time."""
    return list(_read(moment).clock)


@builtin("time.weekday")
def get_weekday(moment: Value) -> Value:
    """Return the English name of the day of the week of a time."""
    return _DAYS[_read(moment).local[0].isoweekday() % 7]


@builtin("time.add_date")
def add_to_date(moment: Value, years: Value, months: Value, days: Value) -> Value:
    """Add years, months and days to a time."""
    time = _read(moment)
    added = (check_integer(2, years), check_integer(3, months), check_integer(4, days))
    day, seconds = time.local
    if max(map(abs, added)) > _FAR:
        raise UnsupportedError("a date so far away is not supported")
    local = _unix(day.year + added[0], day.month + added[1], day.day + added[2], seconds)
    _check_range(local * _SECOND, 2 * _DAY * _SECOND)
    unix = local - _offset(time.zone, local - _offset(time.zone, local))
    return _check_range(unix * _SECOND + time.nanoseconds)


@builtin("time.diff")
def get_difference(left: Value, right: Value) -> Value:
    """Return the years, months, days, hours, minutes and seconds between two times."""
    first, second = _read(left), _read(right)
    second = second._replace(zone=first.zone)
    if first[:2] > second[:2]:
        first, second = second, first
    start, end = first.local[0], second.local[0]
    parts = [end.year - start.year, end.month - start.month, end.day - start.day]
    parts += [one - other for one, other in zip(second.clock, first.clock, strict=True)]
    sizes = (0, 12, monthrange(start.year, start.month)[1], 24, 60, 60)
    for place in range(5, 0, -1):
        if parts[place] < 0:
            parts[place] += sizes[place]
            parts[place - 1] -= 1
    return parts


def reads_as(layout: str, text: str) -> bool:
    """Return whether a text is a time in a layout of Go."""
    try:
        _parse(layout, text)
    except BuiltinError:
        return False
    return True


def _read(moment: Value) -> _Time:
    kind = type(moment)
    zone: tzinfo = UTC
    number = moment
    if kind is list and moment:
        number = check_number(1, moment[0])
        if len(moment) > 1:
            zone = _zone(check_string(1, moment[1]))
    elif kind is bool or not is_number(moment):
        raise wrong_type(1, moment, "either number (ns) or [number (ns), string (tz)]")
    if kind is list and len(moment) > 2:
        check_string(1, moment[2])
    exact = round_to_mantissa(to_fraction(number))
    if exact.denominator != 1 or not _SMALLEST <= exact <= _LARGEST:
        raise BuiltinError("timestamp too big")
    return _Time(*divmod(exact.numerator, _SECOND), zone)


def _zone(name: str) -> tzinfo:
    if name in ("", "UTC"):
        return UTC
    if name == "Local":
        raise UnsupportedError("the time zone Local depends on the machine")
    if ".." in name or name[0] in "/\\":
        raise BuiltinError("time: invalid location name")
    try:
        from zoneinfo import ZoneInfo  # most policies name no time zone

        return ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        if not _has_zones():
            raise UnsupportedError(
                f"unknown time zone {name}: this machine has no time zones; install `policyeng[rego]`"
            ) from None
        raise BuiltinError(f"unknown time zone {name}") from None


@cache
def _has_zones() -> bool:
    from zoneinfo import available_timezones

    return bool(available_timezones())


def _naive(seconds: int) -> datetime:
    return _EPOCH + timedelta(seconds=seconds)


def _offset(zone: tzinfo, seconds: int) -> int:
    if zone is UTC:
        return 0
    offset = zone.fromutc(_naive(seconds).replace(tzinfo=zone)).utcoffset()
    return offset.days * _DAY + offset.seconds if offset else 0


def _check_range(nanoseconds: int, tolerance: int = 0) -> int:
    if not _SMALLEST - tolerance <= nanoseconds <= _LARGEST + tolerance:
        raise BuiltinError(_OUTSIDE)
    return nanoseconds


def _unix(year: int, month: int, day: int, seconds: int) -> int:
    """Return the seconds since 1970 of a date, whose month and day may be beyond their range.

    Raises:
        BuiltinError: 64 bits have no nanoseconds for it.
    """
    carry, month = divmod(month - 1, 12)
    try:
        days = date(year + carry, month + 1, 1).toordinal() - _EPOCH_DAY
    except (ValueError, OverflowError):
        raise BuiltinError(_OUTSIDE) from None
    return (days + day - 1) * _DAY + seconds


def _format(time: _Time, layout: str) -> str:
    day, _ = time.local
    hour, minute, second = time.clock
    year_day = day.timetuple().tm_yday
    fields: dict[str, Callable[[], str]] = {
        "January": lambda: _MONTHS[day.month - 1],
        "Jan": lambda: _SHORT_MONTHS[day.month - 1],
        "1": lambda: str(day.month),
        "01": lambda: f"{day.month:02}",
        "Monday": lambda: _DAYS[day.isoweekday() % 7],
        "Mon": lambda: _SHORT_DAYS[day.isoweekday() % 7],
        "2": lambda: str(day.day),
        "_2": lambda: f"{day.day:2}",
        "02": lambda: f"{day.day:02}",
        "__2": lambda: f"{year_day:3}",
        "002": lambda: f"{year_day:03}",
        "15": lambda: f"{hour:02}",
        "3": lambda: str(hour % 12 or 12),
        "03": lambda: f"{hour % 12 or 12:02}",
        "4": lambda: str(minute),
        "04": lambda: f"{minute:02}",
        "5": lambda: str(second),
        "05": lambda: f"{second:02}",
        "2006": lambda: f"{day.year:04}",
        "06": lambda: f"{day.year % 100:02}",
        "PM": lambda: "PM" if hour >= 12 else "AM",
        "pm": lambda: "pm" if hour >= 12 else "am",
        "MST": lambda: time.zone_name,
    }

    def write(found: re.Match[str]) -> str:
        chunk = found[0]
        if chunk in fields:
            return fields[chunk]()
        if chunk[0] in "-Z":
            return _format_offset(time.offset, chunk)
        return _format_fraction(time.nanoseconds, chunk)

    charge(8 * len(layout))
    return _CHUNK.sub(write, layout)


def _format_offset(offset: int, chunk: str) -> str:
    if chunk[0] == "Z" and offset == 0:
        return "Z"
    minutes = abs(offset) // 60
    hours = f"{'-' if offset <= -60 else '+'}{minutes // 60:02}"
    if len(chunk) == 3:
        return hours
    colon = ":" if ":" in chunk else ""
    seconds = f"{colon}{abs(offset) % 60:02}" if len(chunk) - len(colon) * 2 == 7 else ""
    return f"{hours}{colon}{minutes % 60:02}{seconds}"


def _format_fraction(nanoseconds: int, chunk: str) -> str:
    count = (len(chunk) - 1) & 0xFFF
    if chunk[1] == "0":
        return f"{chunk[0]}{nanoseconds:09}"[: count + 1]
    digits = f"{nanoseconds:09}"[:count].rstrip("0")
    return f"{chunk[0]}{digits}" if digits else ""


@lru_cache(maxsize=256)
def _reader(layout: str) -> tuple[re.Pattern[str], list[str]]:
    """Return what reads a text with a layout, and the part of the layout for each of its groups."""
    charge(8 * len(layout))
    chunks = list(_CHUNK.finditer(layout))
    pattern, parts, place = "", [], 0
    for index, found in enumerate(chunks):
        chunk = found[0]
        pattern += _literal(layout[place : found.start()]) + (_PARTS.get(chunk) or _read_part(chunk))
        parts.append(chunk)
        place = found.end()
        if chunk in ("5", "05") and not (index + 1 < len(chunks) and chunks[index + 1][0][0] in ".,"):
            pattern += _OPTIONAL_FRACTION
            parts.append(".9")
    # Nothing that is read repeats in two ways, so reading takes linear time.
    return re.compile(pattern + _literal(layout[place:]), re.ASCII | re.DOTALL), parts


def _literal(text: str) -> str:
    """Return what reads text of a layout; runs of spaces are the same, and may be absent at the end."""
    return "".join(r"(?: ++|\Z)" if run[0] == " " else re.escape(run) for run in _RUNS.findall(text))


def _read_part(chunk: str) -> str:
    """Return what reads the offset of a zone or a fraction of a second."""
    if chunk[0] in "-Z":
        offset = "[+-]" + re.sub("[0-9]", "[0-9]", chunk[1:])
        return f"(Z|{offset})" if chunk[0] == "Z" else f"({offset})"
    count = (len(chunk) - 1) & 0xFFF
    if chunk[1] == "9" or not count:
        return _OPTIONAL_FRACTION if count else "([.,])"
    digits = min(count, 9)
    return f"([.,](?:[0-9]{{{digits}}}|[+-][0-9]{{{digits - 1}}})).{{{count - digits}}}"


def _parse(layout: str, text: str) -> int:
    """Parse a time as Go does where the local zone is UTC."""
    reader, parts = _reader(layout)
    read = reader.fullmatch(text)
    if read is None:
        raise BuiltinError("parsing time: cannot parse the text with the layout")
    numbers = {"2006": 0, "1": -1, "2": -1, "002": -1, "15": 0, "4": 0, "5": 0, ".": 0}
    afternoon: bool | None = None
    is_utc, offset = False, 0
    for part, word in zip(parts, read.groups(), strict=True):
        name = _SAME_PARTS.get(part, part)
        if word is None or name == "Mon":
            continue
        if name in numbers:
            numbers[name] = int(word)
            if numbers[name] > _LARGEST_NUMBERS.get(part, 9999):
                raise BuiltinError(f"parsing time: {word} out of range")
        elif name == "06":
            numbers["2006"] = int(word) + (1900 if int(word) >= 69 else 2000)
        elif name == "Jan":
            numbers["1"] = _SHORT_MONTHS.index(word[:3].capitalize()) + 1
        elif name == "PM":
            afternoon = word in ("PM", "pm") or bool(afternoon)
        elif word in ("Z", "UTC"):
            is_utc = True
        elif part[0] in "-Z":
            offset = _read_offset(word)
        elif part[0] in ".,":
            digits = word[1:10]
            numbers["."] = int(digits) * 10 ** (9 - len(digits)) if digits.strip("+-") else 0
    return _finish(numbers, afternoon, 0 if is_utc or offset == _NO_OFFSET else offset)


def _read_offset(word: str) -> int:
    digits = word[1:].replace(":", "").ljust(6, "0")
    hours, minutes, seconds = (int(digits[start : start + 2]) for start in (0, 2, 4))
    if hours > 24 or minutes > 60 or seconds > 60:
        raise BuiltinError("parsing time: time zone offset out of range")
    offset = (hours * 60 + minutes) * 60 + seconds
    return -offset if word[0] == "-" else offset


def _finish(numbers: dict[str, int], afternoon: bool | None, offset: int) -> int:
    year, month, day, year_day, hour = (numbers[part] for part in ("2006", "1", "2", "002", "15"))
    if afternoon and hour < 12:
        hour += 12
    elif afternoon is False and hour == 12:
        hour = 0
    if month == 0:
        raise BuiltinError("parsing time: month out of range")
    if year_day >= 0:
        if not 1 <= year_day <= 365 + isleap(year):
            raise BuiltinError("parsing time: day-of-year out of range")
        found = date(2000 + (not isleap(year)), 1, 1) + timedelta(year_day - 1)
        if month not in (-1, found.month) or day not in (-1, found.day):
            raise BuiltinError("parsing time: day-of-year does not match the date")
        month, day = found.month, found.day
    month, day = max(month, 1), 1 if day < 0 else day
    if not 1 <= day <= monthrange(year, month)[1]:
        raise BuiltinError("parsing time: day out of range")
    unix = _unix(year, month, day, hour * 3600 + numbers["4"] * 60 + numbers["5"])
    return (unix - offset) * _SECOND + numbers["."]


def _to_hours(digits: str, unit: str) -> str:
    if unit not in _HOURS:
        return digits + unit
    try:
        hours = float(digits) * _HOURS[unit]
    except ValueError:
        hours = float("inf")
    if not isfinite(hours):
        raise BuiltinError(f'time: invalid duration: bad value "{digits}" for unit "{unit}"')
    return f"{Decimal(repr(hours)):f}h"


def _parse_duration(text: str) -> int:
    """Parse as Go does.

    Raises:
        ValueError: it is not a duration.
    """
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return 0
    if not rest:
        raise ValueError("invalid duration")
    total = 0
    for found in _DURATION_PART.finditer(rest):
        whole, fraction, unit = found[1], found[2] or "", found[3]
        if not whole and not fraction:
            raise ValueError("invalid duration")
        if not unit:
            raise ValueError("missing unit in duration")
        if unit not in _UNITS:
            raise ValueError(f'unknown unit "{unit}" in duration')
        total += _scale(whole, fraction, _UNITS[unit])
        if total > 1 << 63:
            raise ValueError("invalid duration")
    if text[0] == "-":
        return -total
    if total > _LARGEST:
        raise ValueError("invalid duration")
    return total


def _scale(whole: str, fraction: str, unit: int) -> int:
    significant = whole.lstrip("0")
    if len(significant) > 19 or int(significant or "0") > (1 << 63) // unit:
        raise ValueError("invalid duration")
    # Go stops where the next digit may not fit, and computes the fraction with floats.
    part, scale = 0, 1.0
    for digit in fraction:
        if part > _LARGEST // 10:
            break
        following = part * 10 + int(digit)
        if following > 1 << 63:
            break
        part, scale = following, scale * 10
    return int(significant or "0") * unit + int(float(part) * (float(unit) / scale))
