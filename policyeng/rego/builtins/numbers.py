"""Arithmetic, bits and ranges of numbers, numbers with units, and semantic versions."""

from __future__ import annotations

import fractions
import re

from policyeng.rego import numbers
from policyeng.rego.budget import charge, charged
from policyeng.rego.builtins.registry import (
    BuiltinError,
    OperandError,
    UnsupportedError,
    builtin,
    check_number,
    check_string,
    wrong_type,
)
from policyeng.rego.builtins.strings import lower
from policyeng.rego.values import Value, is_number

#: OPA computes with machine integers of 32 bits exactly, and rounds others as floats.
_SMALL = range(-(1 << 31), 1 << 31)


@builtin("plus")
def add(left: Value, right: Value) -> Value:
    """Add two numbers."""
    if type(left) is int and type(right) is int:
        return left + right
    return numbers.add(check_number(1, left), check_number(2, right))


@builtin("minus")
def subtract(left: Value, right: Value) -> Value:
    """Subtract a number from another, or the members of a set from another."""
    if type(left) is int and type(right) is int:
        return left - right
    if type(left) is set and type(right) is set:
        return charged(left - right)
    if is_number(left) and is_number(right):
        return numbers.subtract(left, right)
    if not is_number(left) and type(left) is not set:
        raise wrong_type(1, left, "number", "set")
    raise wrong_type(2, right, "set" if is_number(right) else "number")


@builtin("mul")
def multiply(left: Value, right: Value) -> Value:
    """Multiply two numbers."""
    if type(left) is int and type(right) is int:
        return numbers.check_size(left * right)
    return numbers.multiply(check_number(1, left), check_number(2, right))


@builtin("div")
def divide(left: Value, right: Value) -> Value:
    """Divide a number by another."""
    if type(left) is int and type(right) is int and left in _SMALL and right in _SMALL and right and not left % right:
        return left // right
    check_number(1, left)
    check_number(2, right)
    try:
        return numbers.divide(left, right)
    except ZeroDivisionError:
        raise BuiltinError("divide by zero") from None


@builtin("rem")
def take_remainder(left: Value, right: Value) -> Value:
    """Return the remainder of two integers, with the sign of the dividend."""
    if type(left) is int and type(right) is int and left >= 0 and right > 0:
        return left % right
    check_number(1, left)
    check_number(2, right)
    try:
        return numbers.remainder(left, right)
    except ZeroDivisionError:
        raise BuiltinError("modulo by zero") from None
    except ValueError as error:
        raise BuiltinError(str(error)) from None


@builtin("abs")
def take_absolute(value: Value) -> Value:
    """Return a number without its sign."""
    if type(value) is int and value in _SMALL:
        return abs(value)
    return numbers.from_fraction(abs(_rounded(value)))


@builtin("round")
def round_half_away(value: Value) -> Value:
    """Round to the nearest integer, half away from zero."""
    if type(value) is int and value in _SMALL:
        return value
    exact = _rounded(value)
    half = fractions.Fraction(1, 2)
    return int(numbers.round_to_mantissa(exact - half if exact < 0 else exact + half))


@builtin("ceil")
def round_up(value: Value) -> Value:
    """Round up to an integer; OPA gives 1 for what is between -1 and 0."""
    if type(value) is int and value in _SMALL:
        return value
    exact = _rounded(value)
    whole = int(exact)
    return whole if whole < 0 or whole == exact else whole + 1


@builtin("floor")
def round_down(value: Value) -> Value:
    """Round down to an integer; OPA gives 0 for what is between -1 and 0."""
    if type(value) is int and value in _SMALL:
        return value
    exact = _rounded(value)
    whole = int(exact)
    return whole if whole >= 0 or whole == exact else whole - 1


def _rounded(value: Value) -> fractions.Fraction:
    return numbers.round_to_mantissa(numbers.to_fraction(check_number(1, value)))


def _check_big_integer(position: int, value: Value) -> int:
    if type(value) is int:
        return value
    if not is_number(value):
        raise wrong_type(position, value, "integer")
    found = numbers.to_integer(value)
    if found is None:
        raise OperandError(f"operand {position} must be integer number but got floating-point number")
    return found


@builtin("bits.and")
def and_bits(left: Value, right: Value) -> Value:
    """Return the bits that are in both integers."""
    return _check_big_integer(1, left) & _check_big_integer(2, right)


@builtin("bits.or")
def or_bits(left: Value, right: Value) -> Value:
    """Return the bits that are in either integer."""
    return _check_big_integer(1, left) | _check_big_integer(2, right)


@builtin("bits.xor")
def xor_bits(left: Value, right: Value) -> Value:
    """Return the bits that are in one of the integers."""
    return _check_big_integer(1, left) ^ _check_big_integer(2, right)


@builtin("bits.negate")
def negate_bits(value: Value) -> Value:
    """Return the other bits."""
    return ~_check_big_integer(1, value)


@builtin("bits.lsh")
def shift_left(value: Value, distance: Value) -> Value:
    """Shift bits to the left."""
    base, places = _check_big_integer(1, value), _check_distance(distance)
    if base and places > 4 * numbers.LARGEST_EXPONENT:
        raise numbers.NumberTooLargeError("the number is out of range")
    return numbers.check_size(base << places) if base else 0


@builtin("bits.rsh")
def shift_right(value: Value, distance: Value) -> Value:
    """Shift bits to the right."""
    return _check_big_integer(1, value) >> _check_distance(distance)


def _check_distance(distance: Value) -> int:
    places = _check_big_integer(2, distance)
    if places < 0:
        raise OperandError("operand 2 must be an unsigned integer number but got a negative integer")
    # OPA takes the lowest 64 bits.
    return places & ((1 << 64) - 1)


@builtin("numbers.range")
def list_range(first: Value, last: Value) -> Value:
    """List the integers from one to another, both included, up or down."""
    return _list_range(_check_big_integer(1, first), _check_big_integer(2, last), 1)


@builtin("numbers.range_step")
def list_range_with_step(first: Value, last: Value, step: Value) -> Value:
    """List the integers from one to another with a distance between them."""
    start, end, distance = _check_big_integer(1, first), _check_big_integer(2, last), _check_big_integer(3, step)
    if distance <= 0:
        raise BuiltinError("numbers.range_step: step must be a positive integer")
    return _list_range(start, end, distance)


def _list_range(first: int, last: int, step: int) -> list[int]:
    charge(abs(last - first) // step + 1)
    return list(range(first, last + 1, step) if first <= last else range(first, last - 1, -step))


_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE]([+-]?[0-9]+))?")
#: OPA reads six digits.
_LONG_EXPONENT = re.compile(r"[0-9]{7}")
_PREFIXES = "kmgtpe"
_BYTES: dict[str, int] = {"": 1}
for _power, _prefix in enumerate(_PREFIXES, 1):
    _BYTES |= dict.fromkeys((_prefix, _prefix + "b"), 1000**_power)
    _BYTES |= dict.fromkeys((_prefix + "i", _prefix + "ib"), 1024**_power)
# OPA takes the float next to a thousandth.
_UNITS: dict[str, float] = {"": 1, "m": 0.001, "M": 1000**2}
for _power, _prefix in enumerate(_PREFIXES, 1):
    if _prefix != "m":
        _UNITS |= dict.fromkeys((_prefix, _prefix.upper()), 1000**_power)
    _UNITS |= dict.fromkeys((_prefix + "i", _prefix.upper() + "i"), 1024**_power)


@builtin("units.parse_bytes")
def parse_bytes(text: Value) -> Value:
    """Read a number of bytes, as `10KiB`."""
    name = "units.parse_bytes"
    number, unit = _split(name, lower(check_string(1, text)))
    if unit not in _BYTES:
        raise BuiltinError(f"{name}: byte unit {unit} not recognized")
    exact = numbers.round_to_mantissa(_read(name, "byte amount", number))
    return numbers.check_size(int(numbers.round_to_mantissa(exact * _BYTES[unit])))


@builtin("units.parse")
def parse_units(text: Value) -> Value:
    """Read a number with a unit, as `10Ki` or `5m`."""
    name = "units.parse"
    number, unit = _split(name, check_string(1, text))
    unit = unit[:1] + lower(unit[1:])
    if unit not in _UNITS:
        raise BuiltinError(f"{name}: unit {unit} not recognized")
    exact = _read(name, "amount", number) * fractions.Fraction(_UNITS[unit])
    if exact.denominator == 1:
        return numbers.check_size(exact.numerator)
    # OPA writes ten digits after the point, half away from zero.
    digits = int(abs(exact) * 10**10 + fractions.Fraction(1, 2))
    return numbers.read_number(f"{'-' if exact < 0 else ''}{digits // 10**10}.{digits % 10**10:010}")


def _split(name: str, text: str) -> tuple[str, str]:
    text = text.replace('"', "")
    if " " in text:
        raise BuiltinError(f"{name}: spaces not allowed in resource strings")
    end = _find_unit(name, text)
    if not end:
        raise BuiltinError(f"{name}: no {'byte ' if name.endswith('bytes') else ''}amount provided")
    return text[:end], text[end:]


def _find_unit(name: str, text: str) -> int:
    place, length = 0, len(text)
    while place < length:
        char = text[place]
        if char not in "0123456789.eE+-":
            return place
        if char in "eE":
            after = text[place + 1 : place + 2]
            if not after or after not in "0123456789+-":
                return place
            place += after in "+-"
            if _LONG_EXPONENT.match(text, place + 1):
                raise BuiltinError(f"{name}: exponent too large")
        place += 1
    return length


def _read(name: str, what: str, text: str) -> fractions.Fraction:
    found = _NUMBER.fullmatch(text)
    if found is None:
        raise BuiltinError(f"{name}: could not parse {what} to a number")
    if abs(int(found[1] or 0)) > numbers.LARGEST_EXPONENT or len(text) > numbers.LARGEST_EXPONENT:
        raise numbers.NumberTooLargeError("the number is out of range")
    return fractions.Fraction(text)


_IDENTIFIERS = re.compile(r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*")
_NUMERIC = re.compile(r"0|[1-9][0-9]*")
_LARGEST = (1 << 63) - 1

_Version = tuple[tuple[int, ...], list[str]]


@builtin("semver.is_valid")
def is_valid_version(version: Value) -> Value:
    """Return whether a value is a semantic version."""
    return type(version) is str and _parse(version) is not None


@builtin("semver.compare")
def compare_versions(left: Value, right: Value) -> Value:
    """Return -1, 0 or 1 where the first version is less than, equal to or greater than the second."""
    check_string(1, left)
    check_string(2, right)
    versions = []
    for position, text in enumerate((left, right), 1):
        version = _parse(text)
        if version is None:
            raise BuiltinError(f"operand {position}: string {text} is not a valid SemVer")
        versions.append(version)
    (first, first_release), (second, second_release) = versions
    if first != second:
        return 1 if first > second else -1
    return _compare_releases(first_release, second_release)


def _parse(text: str) -> _Version | None:
    core, plus, metadata = text.removeprefix("v").partition("+")
    core, minus, release = core.partition("-")
    if plus and not _IDENTIFIERS.fullmatch(metadata):
        return None
    if minus and not _IDENTIFIERS.fullmatch(release):
        return None
    identifiers = release.split(".") if minus else []
    if any(len(one) > 1 and one[0] == "0" and one.isdigit() for one in identifiers):
        return None
    parts = core.split(".")
    if len(parts) != 3 or not all(len(part) < 20 and _NUMERIC.fullmatch(part) for part in parts):
        return None
    numbers = tuple(map(int, parts))
    return (numbers, identifiers) if max(numbers) <= _LARGEST else None


def _compare_releases(left: list[str], right: list[str]) -> int:
    if left == right:
        return 0
    if not left or not right:
        return 1 if not left else -1
    for first, second in zip(left, right, strict=False):
        if first == second:
            continue
        numeric, other_numeric = first.isdigit(), second.isdigit()
        if numeric != other_numeric:
            return -1 if numeric else 1
        # Go reads a number beyond 64 bits as the largest one.
        ours = (_saturate(first), "") if numeric else (0, first)
        theirs = (_saturate(second), "") if numeric else (0, second)
        if ours != theirs:
            return 1 if ours > theirs else -1
    if len(left) == len(right):
        raise UnsupportedError("the versions differ only in numbers beyond 64 bits")  # OPA does not end here
    return 1 if len(left) > len(right) else -1


def _saturate(digits: str) -> int:
    return _LARGEST if len(digits) > 19 else min(int(digits), _LARGEST)
