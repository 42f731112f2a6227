"""Numbers as OPA computes with them.

Integers are exact; everything else has a mantissa of 64 bits and the fewest digits that show it.
"""

from __future__ import annotations

import fractions
import re
from decimal import Decimal
from math import isfinite

from policyeng.rego.values import Value, WrittenDecimal, WrittenFloat, number_text

_MANTISSA_BITS = 64
#: OPA reads and prints numbers in time that grows with their exponent; nothing a policy needs is beyond this.
LARGEST_EXPONENT = 4000
_MOST_BITS = LARGEST_EXPONENT * 10 // 3
#: What a mantissa of 64 bits needs at most.
_MOST_DIGITS = 21
_FLOAT_DIGITS = 17
#: From this exponent on, Go writes what is computed and not integral with its exponent.
_LEAST_WRITTEN_EXPONENT = 6
#: Floats that are not closer to zero have all their digits.
_LARGEST_PLAIN_EXPONENT = 290
#: Zeros after the point are allowed, as in `1.0`.
_INT64 = re.compile(r"[+-]?(?=[0-9.]{1,19}\Z)([0-9]*)(?:\.0*)?", re.ASCII)


class NumberTooLargeError(ArithmeticError):
    """A number whose exponent is beyond `LARGEST_EXPONENT`."""

    code = "eval_builtin_error"


def parse_number(text: str) -> Value:
    """Read a number of JSON or of Rego.

    Args:
        text: digits with an optional sign, fraction and exponent.

    Raises:
        NumberTooLargeError: its exponent or its number of digits is out of range.
    """
    if len(text) > LARGEST_EXPONENT:
        raise NumberTooLargeError(f"a number of {len(text):,} characters is too long")
    digits = text[1:] if text.startswith("-") else text
    if digits.isdecimal():
        return int(text)
    return from_decimal(Decimal(text))


def read_number(text: str) -> Value:
    """Read a number as `parse_number` does, with its text where it is not what is written for the number."""
    number = parse_number(text)
    if type(number) is Decimal:
        return WrittenDecimal(text)
    return WrittenFloat(text) if isinstance(number, float) and number_text(number) != text else number


def from_decimal(exact: Decimal) -> Value:
    """Return a float where its `repr` shows the same number, the decimal itself elsewhere.

    Raises:
        NumberTooLargeError: its exponent is out of range.
    """
    if exact and abs(exact.adjusted()) > LARGEST_EXPONENT:
        raise NumberTooLargeError(f"the number {exact:.3e} is out of range")
    near = float(exact)
    if not isfinite(near) or Decimal(repr(near)) != exact:
        return exact
    # A plain float equals the integer that its bits are; what is shown may be another.
    return WrittenFloat(number_text(near)) if near.is_integer() and near != exact else near


def to_fraction(value: Value) -> fractions.Fraction:
    """Return the exact decimal value of a number."""
    return fractions.Fraction(repr(value)) if isinstance(value, float) else fractions.Fraction(value)


def to_integer(value: Value) -> int | None:
    """Return an integral number as an int, None for any other."""
    if type(value) is int:
        return value
    exact = to_fraction(value)
    return exact.numerator if exact.denominator == 1 else None


def round_to_mantissa(exact: fractions.Fraction, bits: int = _MANTISSA_BITS) -> fractions.Fraction:
    """Round to the nearest number with a mantissa of 64 bits, or of so many, half to even."""
    if not exact:
        return exact
    numerator, denominator = abs(exact.numerator), exact.denominator
    shift = numerator.bit_length() - denominator.bit_length() - bits
    # The quotient of two such numbers may have a bit more.
    if numerator << max(-shift, 0) >= denominator << max(shift, 0) + bits:
        shift += 1
    denominator <<= max(shift, 0)
    whole, rest = divmod(numerator << max(-shift, 0), denominator)
    if 2 * rest > denominator or (2 * rest == denominator and whole % 2):
        whole += 1
    if exact.numerator < 0:
        whole = -whole
    return fractions.Fraction(whole << shift) if shift >= 0 else fractions.Fraction(whole, 1 << -shift)


def from_fraction(exact: fractions.Fraction, bits: int = _MANTISSA_BITS) -> Value:
    """Return a number with a mantissa of 64 bits, or of so many, as the shortest decimal that reads back as it.

    Raises:
        NumberTooLargeError: its exponent is out of range.
    """
    check_exponent(exact)
    rounded = round_to_mantissa(exact, bits)
    if not rounded:
        return 0
    if rounded.denominator == 1 and rounded.numerator.bit_length() <= bits:
        return rounded.numerator
    # Go takes the same distance on both sides of a power of two, though what is below it is closer.
    unit = fractions.Fraction(2) ** (rounded.numerator.bit_length() - rounded.denominator.bit_length() - bits + 1)
    is_even = (rounded / unit).numerator % 2 == 0
    exponent = _decimal_exponent(rounded)
    least, candidate = 1, fractions.Fraction(0)
    if abs(exponent) < _LARGEST_PLAIN_EXPONENT:
        # What a float does not show needs more digits than floats have.
        least, candidate = _FLOAT_DIGITS, fractions.Fraction(repr(float(rounded)))
    for digits in range(least, _MOST_DIGITS + 1):
        distance = 2 * abs(candidate - rounded)
        if distance < unit or (distance == unit and is_even):
            break
        scale = fractions.Fraction(10) ** (exponent - digits + 1)
        candidate = round(rounded / scale) * scale
    if candidate.denominator == 1:
        return candidate.numerator
    scale = fractions.Fraction(10) ** (exponent - _MOST_DIGITS)
    shortest = Decimal(int(candidate / scale)).scaleb(exponent - _MOST_DIGITS).normalize()
    number = from_decimal(shortest)
    if type(number) is float and exponent >= _LEAST_WRITTEN_EXPONENT:
        return WrittenFloat(f"{shortest:e}".replace("e+", "e+0") if exponent < 10 else f"{shortest:e}")
    return number


def _decimal_exponent(exact: fractions.Fraction) -> int:
    exponent = len(str(abs(exact.numerator))) - len(str(exact.denominator))
    return exponent if abs(exact) >= fractions.Fraction(10) ** exponent else exponent - 1


def add(left: Value, right: Value) -> Value:
    """Add two numbers."""
    if type(left) is int and type(right) is int:
        return left + right
    whole = _integers(left, right)
    return whole[0] + whole[1] if whole else from_fraction(_operand(left) + _operand(right))


def subtract(left: Value, right: Value) -> Value:
    """Subtract a number from another."""
    if type(left) is int and type(right) is int:
        return left - right
    whole = _integers(left, right)
    return whole[0] - whole[1] if whole else from_fraction(_operand(left) - _operand(right))


def multiply(left: Value, right: Value) -> Value:
    """Multiply two numbers."""
    whole = _integers(left, right)
    return check_size(whole[0] * whole[1]) if whole else from_fraction(_operand(left) * _operand(right))


def divide(left: Value, right: Value) -> Value:
    """Divide a number by another.

    Raises:
        ZeroDivisionError: the divisor is zero.
    """
    return from_fraction(_operand(left) / _operand(right))


def remainder(left: Value, right: Value) -> Value:
    """Return the remainder of two integers, with the sign of the dividend.

    Raises:
        ZeroDivisionError: the divisor is zero.
        ValueError: one is not an integer.
    """
    whole = _integers(left, right)
    if whole is None:
        raise ValueError("modulo on floating-point number")
    rest = abs(whole[0]) % abs(whole[1])
    return -rest if whole[0] < 0 else rest


def _integers(left: Value, right: Value) -> tuple[int, int] | None:
    first, second = to_integer(left), to_integer(right)
    return None if first is None or second is None else (first, second)


def _operand(value: Value) -> fractions.Fraction:
    return round_to_mantissa(to_fraction(value))


def check_size(value: int) -> int:
    """Return an integer that is not too large to be written.

    Raises:
        NumberTooLargeError: it is.
    """
    if value.bit_length() > _MOST_BITS:
        raise NumberTooLargeError("the number is out of range")
    return value


def check_exponent(exact: fractions.Fraction) -> None:
    """Check that a number is neither too large nor too small to be written.

    Raises:
        NumberTooLargeError: it is.
    """
    if abs(exact.numerator.bit_length() - exact.denominator.bit_length()) > _MOST_BITS:
        raise NumberTooLargeError("the number is out of range")


def to_int64(value: Value) -> int | None:
    """Return a number that OPA stores as an integer of 64 bits, None for any other."""
    return _in_64_bits(value) if type(value) is int else parse_int64(number_text(value))


def parse_int64(text: str) -> int | None:
    """Read an integer of 64 bits as OPA does, None for any other text."""
    found = _INT64.fullmatch(text)
    if found is None:
        return None
    digits = int(found[1] or 0)
    return _in_64_bits(-digits if text.startswith("-") else digits)


def _in_64_bits(value: int) -> int | None:
    return value if -(1 << 63) <= value < 1 << 63 else None
