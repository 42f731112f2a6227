"""Numbers with units."""

from __future__ import annotations

import re
from fractions import Fraction

from policyeng.rego import numbers
from policyeng.rego.builtins.registry import BuiltinError, builtin, check_string
from policyeng.rego.builtins.strings import lower
from policyeng.rego.values import Value

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE]([+-]?[0-9]+))?")
#: OPA reads six digits.
_LONG_EXPONENT = re.compile(r"[0-9]{7}")
_PREFIXES = "kmgtpe"
_BYTES: dict[str, int] = {"": 1}
for _power, _prefix in enumerate(_PREFIXES, 1):
    _BYTES |= dict.fromkeys((_prefix, _prefix + "b"), 1000**_power)
    _BYTES |= dict.fromkeys((_prefix + "i", _prefix + "ib"), 1024**_power)
# OPA takes the float next to a thousandth.
_UNITS = {"": Fraction(1), "m": Fraction(0.001), "M": Fraction(1000**2)}
for _power, _prefix in enumerate(_PREFIXES, 1):
    if _prefix != "m":
        _UNITS |= dict.fromkeys((_prefix, _prefix.upper()), Fraction(1000**_power))
    _UNITS |= dict.fromkeys((_prefix + "i", _prefix.upper() + "i"), Fraction(1024**_power))


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
    exact = _read(name, "amount", number) * _UNITS[unit]
    if exact.denominator == 1:
        return numbers.check_size(exact.numerator)
    # OPA writes ten digits after the point, half away from zero.
    digits = int(abs(exact) * 10**10 + Fraction(1, 2))
    return numbers.parse_number(f"{'-' if exact < 0 else ''}{digits // 10**10}.{digits % 10**10:010}")


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


def _read(name: str, what: str, text: str) -> Fraction:
    found = _NUMBER.fullmatch(text)
    if found is None:
        raise BuiltinError(f"{name}: could not parse {what} to a number")
    if abs(int(found[1] or 0)) > numbers.LARGEST_EXPONENT or len(text) > numbers.LARGEST_EXPONENT:
        raise numbers.NumberTooLargeError("the number is out of range")
    return Fraction(text)
