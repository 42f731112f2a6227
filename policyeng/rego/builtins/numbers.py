"""Arithmetic, bits and ranges of numbers."""

from __future__ import annotations

import fractions

from policyeng.rego import numbers
from policyeng.rego.budget import charge, charged
from policyeng.rego.builtins.registry import BuiltinError, OperandError, builtin, check_number, wrong_type
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
