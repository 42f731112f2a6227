"""Text as `fmt.Sprintf` of Go writes it, for the kinds of arguments that OPA gives it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from math import frexp, isfinite, ldexp

from policyeng.rego.budget import charge
from policyeng.rego.builtins.registry import UnsupportedError
from policyeng.rego.values import Value, is_number, is_printable, number_text, quote, to_text

#: The largest width and precision of Go.
_MOST = 1_000_000
_LARGEST_RUNE = 0x10FFFF
_NUMBER = re.compile(r"[0-9]*")
_SIMPLE = re.compile(r"%([sdv%])")
_BASES = {"b": ("b", "0b"), "o": ("o", "0"), "O": ("o", "0"), "d": ("d", ""), "x": ("x", "0x"), "X": ("X", "0X")}
_CACHED_LENGTH = 1000
#: Results up to this size are not charged for.
_SMALL = 4096


@dataclass
class _Flags:
    """The flags, width and precision of one verb.

    Attributes:
        is_go: `%#v`.
    """

    minus: bool = False
    plus: bool = False
    sharp: bool = False
    space: bool = False
    zero: bool = False
    is_go: bool = False
    width: int | None = None
    precision: int | None = None


@dataclass(frozen=True)
class _BigInteger:
    """An integer of more than 64 bits, which Go formats in its own way."""

    value: int


_FLAGS = {"#": "sharp", "0": "zero", "+": "plus", "-": "minus", " ": "space"}


def format_text(text: str, arguments: list[Value]) -> str:
    """Return a text with its verbs replaced by arguments.

    Raises:
        UnsupportedError: the result would be an address, or depend on how a number is written.
    """
    plan = _plan(text) if len(text) <= _CACHED_LENGTH else None
    if plan is not None and len(plan) == 2 * len(arguments) + 1:
        parts = list(plan)
        place = 1
        for argument in arguments:
            kind, verb = type(argument), parts[place]
            if kind is str and verb != "d":
                parts[place] = argument
            elif kind is int and verb != "s":
                parts[place] = str(argument)
            elif verb != "d" and not is_number(argument):
                parts[place] = to_text(argument)
            else:
                break
            place += 2
        else:
            size = sum(map(len, parts))
            if size > _SMALL:
                charge(size)
            return "".join(parts)
    return _Printer(text, [_convert(one) for one in arguments]).print_all()


@lru_cache(maxsize=512)
def _plan(text: str) -> tuple[str, ...] | None:
    """Return literal texts and simple verbs by turns, None where a verb is not simple."""
    parts = [""]
    for place, part in enumerate(_SIMPLE.split(text)):
        if place % 2 and part != "%":
            parts += [part, ""]
        elif place % 2:
            parts[-1] += "%"
        elif "%" in part:
            return None
        else:
            parts[-1] += part
    return tuple(parts)


def _convert(argument: Value) -> str | int | float | _BigInteger:
    """Return what OPA gives to Go for a value: a number by its text, anything else as text."""
    kind = type(argument)
    if kind is str:
        return str(argument)
    if kind is int:
        return int(argument) if -(1 << 63) <= argument < 1 << 63 else _BigInteger(argument)
    if not is_number(argument):
        return to_text(argument)
    near = float(argument)
    if not isfinite(near):
        # OPA writes it as the policy or the input does, with any exponent.
        raise UnsupportedError(f"sprintf: the number {number_text(argument)} is out of the range of 64-bit floats")
    return near


class _Printer:
    """One call of `Sprintf`."""

    def __init__(self, text: str, arguments: list[str | int | float | _BigInteger]) -> None:
        self._text = text
        self._arguments = arguments
        self._parts: list[str] = []
        self._place = 0
        self._next = 0
        self._reordered = False
        self._good_index = True

    def print_all(self) -> str:
        """Return the text."""
        while self._place < len(self._text):
            start = self._text.find("%", self._place)
            end = len(self._text) if start < 0 else start
            self._write(self._text[self._place : end])
            self._place = end + 1
            if start >= 0:
                self._print_verb()
        if not self._reordered and self._next < len(self._arguments):
            extra = (f"{_name(one)}={_format(one, 'v', _Flags())}" for one in self._arguments[self._next :])
            self._write(f"%!(EXTRA {', '.join(extra)})")
        return "".join(self._parts)

    def _write(self, text: str) -> None:
        charge(len(text))
        self._parts.append(text)

    def _peek(self) -> str:
        return self._text[self._place : self._place + 1]

    def _print_verb(self) -> None:
        flags = _Flags()
        self._good_index = True
        while (name := _FLAGS.get(self._peek())) is not None:
            setattr(flags, name, True)
            self._place += 1
        after_index = self._read_index()
        if self._peek() == "*":
            after_index = False
            flags.width = self._take_integer("%!(BADWIDTH)")
            if flags.width is not None and flags.width < 0:
                flags.width, flags.minus, flags.zero = -flags.width, True, False
        else:
            flags.width = self._read_number()
            if after_index and flags.width is not None:
                self._good_index = False
        if self._peek() == "." and self._place + 1 < len(self._text):
            after_index = self._read_precision(flags, after_index)
        if not after_index:
            self._read_index()
        if self._place >= len(self._text):
            self._write("%!(NOVERB)")
        else:
            self._place += 1
            self._print_argument(self._text[self._place - 1], flags)

    def _read_precision(self, flags: _Flags, after_index: bool) -> bool:
        self._place += 1
        if after_index:
            self._good_index = False
        after_index = self._read_index()
        if self._peek() == "*":
            flags.precision = self._take_integer("%!(BADPREC)", 0)
            return False
        flags.precision = self._read_number() or 0
        return after_index

    def _print_argument(self, verb: str, flags: _Flags) -> None:
        if verb == "%":
            self._write("%")
        elif not self._good_index:
            self._write(f"%!{verb}(BADINDEX)")
        elif self._next >= len(self._arguments):
            self._write(f"%!{verb}(MISSING)")
        else:
            if verb in "vw":
                flags.is_go, flags.sharp, flags.plus = flags.sharp, False, False
            charge((flags.width or 0) + (flags.precision or 0))
            self._write(_format(self._arguments[self._next], verb, flags))
            self._next += 1

    def _read_number(self) -> int | None:
        """Read digits; a number that is too large ends the text, as in Go."""
        found = _NUMBER.match(self._text, self._place)
        digits = found[0] if found else ""
        if not digits:
            return None
        if _overflows(digits):
            self._place = len(self._text)
            return None
        self._place += len(digits)
        return int(digits)

    def _take_integer(self, wrong: str, least: int = -_MOST) -> int | None:
        """Take the argument of a `*`."""
        self._place += 1
        found = None
        if self._next < len(self._arguments):
            argument = self._arguments[self._next]
            self._next += 1
            if type(argument) is int and abs(argument) <= _MOST:
                found = argument
        if found is None or found < least:
            self._write(wrong)
            return None
        return found

    def _read_index(self) -> bool:
        """Read `[n]`; return whether it was one."""
        if self._peek() != "[":
            return False
        self._reordered = True
        end = self._text.find("]", self._place + 1)
        if end < 0 or len(self._text) - self._place < 3:
            self._good_index = False
            self._place += 1
            return False
        digits = self._text[self._place + 1 : end]
        self._place = end + 1
        if not digits.isascii() or not digits.isdecimal() or _overflows(digits):
            self._good_index = False
            return False
        index = int(digits) - 1
        if 0 <= index < len(self._arguments):
            self._next = index
        else:
            self._good_index = False
        return True


def _overflows(digits: str) -> bool:
    """Return whether Go gives up: the value of all but the last digit is too large."""
    before = digits[:-1].lstrip("0")
    return len(before) > len(str(_MOST)) or int(before or 0) > _MOST


def _name(argument: str | int | float | _BigInteger) -> str:
    kind = type(argument)
    return "string" if kind is str else "int64" if kind is int else "float64" if issubclass(kind, float) else "*big.Int"


def _format(argument: str | int | float | _BigInteger, verb: str, flags: _Flags) -> str:
    if verb == "T":
        return _pad(_cut(_name(argument), flags), flags)
    if isinstance(argument, str):
        return _format_string(argument, verb, flags)
    if isinstance(argument, _BigInteger):
        return _format_big_integer(argument.value, verb, flags)
    if isinstance(argument, int):
        return _format_integer(argument, verb, flags)
    return _format_float(argument, verb, flags)


def _refuse(argument: str | int | float, verb: str, flags: _Flags) -> str:
    return f"%!{verb}({_name(argument)}={_format(argument, 'v', flags)})"


def _pad(text: str, flags: _Flags) -> str:
    if not flags.width:
        return text
    if flags.minus:
        return text.ljust(flags.width)
    return text.rjust(flags.width, "0" if flags.zero else " ")


def _cut(text: str, flags: _Flags) -> str:
    return text if flags.precision is None else text[: flags.precision]


def _format_string(text: str, verb: str, flags: _Flags) -> str:
    if verb in "xX":
        return _format_bytes(text, verb, flags)
    if verb == "q" or (verb == "v" and flags.is_go):
        text = _cut(text, flags)
        can_be_raw = all(char == "\t" or (char not in "`\x7f\ufeff" and char >= " ") for char in text)
        return _pad(f"`{text}`" if flags.sharp and can_be_raw else quote(text, '"', flags.plus), flags)
    if verb in "sv":
        return _pad(_cut(text, flags), flags)
    return _refuse(text, verb, flags)


def _format_bytes(text: str, verb: str, flags: _Flags) -> str:
    data = text.encode()[: flags.precision]
    if not data:
        return _pad("", flags)
    prefix = f"0{verb}" if flags.sharp else ""
    shown = prefix + (data.hex(" ").replace(" ", " " + prefix) if flags.space else data.hex())
    return _pad(shown.upper() if verb == "X" else shown, flags)


def _format_integer(value: int, verb: str, flags: _Flags) -> str:
    if verb in "cqU":
        # A negative number is a large unsigned one.
        return _format_rune(value & ((1 << 64) - 1), verb, flags)
    base, prefix = _BASES.get("d" if verb == "v" else verb, ("", ""))
    if not base:
        return _refuse(value, verb, flags)
    spaces = replace(flags, zero=False)
    signed = value < 0 or flags.plus or flags.space
    least = flags.precision
    if least == 0 and not value:
        return _pad("", spaces)
    if least is None:
        least = (flags.width or 0) - signed if flags.zero and not flags.minus else 0
    digits = format(abs(value), base).rjust(least, "0")
    if flags.sharp and not (prefix == "0" and digits.startswith("0")):
        digits = prefix + digits
    if verb == "O":
        digits = "0o" + digits
    return _pad(_sign(value < 0, flags) + digits, spaces)


def _sign(is_negative: bool, flags: _Flags) -> str:
    return "-" if is_negative else "+" if flags.plus else " " if flags.space else ""


def _format_rune(code: int, verb: str, flags: _Flags) -> str:
    if verb == "U":
        shown = f"U+{code:X}" if code > 0xFFFF else f"U+{code:04X}"
        shown = f"U+{shown[2:].rjust(flags.precision or 0, '0')}"
        if flags.sharp and code <= _LARGEST_RUNE and is_printable(chr(code)):
            shown += f" '{chr(code)}'"
        return _pad(shown, replace(flags, zero=False))
    char = "\ufffd" if code > _LARGEST_RUNE or 0xD800 <= code < 0xE000 else chr(code)
    return _pad(char if verb == "c" else quote(char, "'", flags.plus), flags)


def _format_big_integer(value: int, verb: str, flags: _Flags) -> str:
    if verb in "pw":
        raise UnsupportedError(f"sprintf: %{verb} of an integer of more than 64 bits is not supported")
    base, prefix = _BASES.get("d" if verb in "sv" else verb, ("", ""))
    if not base:
        return f"%!{verb}(big.Int={value})"
    prefix = "0o" if verb == "O" else prefix if flags.sharp else ""
    digits = format(abs(value), base).rjust(flags.precision or 0, "0")
    sign = _sign(value < 0, flags)
    width = flags.width or 0
    if flags.zero and not flags.minus and flags.precision is None:
        digits = digits.rjust(width - len(sign) - len(prefix), "0")
    shown = sign + prefix + digits
    return shown.ljust(width) if flags.minus else shown.rjust(width)


def _format_float(value: float, verb: str, flags: _Flags) -> str:
    if verb not in "vbgGxXfFeE":
        return _refuse(value, verb, flags)
    style = {"v": "g", "F": "f"}.get(verb, verb)
    precision = flags.precision
    if precision is None and style in "feE":
        precision = 6
    shown = write_float(abs(value), style, precision)
    if flags.sharp and verb != "b":
        shown = _keep_zeros(shown, style, precision)
    is_negative = str(value).startswith("-")
    sign = _sign(is_negative, flags)
    if sign and flags.zero and not flags.minus and (flags.plus or is_negative or flags.space):
        return sign + shown.rjust((flags.width or 0) - 1, "0")
    return _pad(sign + shown, flags)


def write_float(value: float, style: str, precision: int | None) -> str:
    """Write a float that is not negative as `strconv.FormatFloat`."""
    if style in "xX":
        shown = _write_hexadecimal(value, precision)
        return shown.upper() if style == "X" else shown
    if style == "b":
        exponent = max(frexp(value)[1] - 53, -1074) if value else -1074
        return f"{int(ldexp(value, -exponent))}p{exponent:+d}"
    if style in "feE":
        return format(value, f".{precision}{style}")
    if not value:
        return "0"
    # Digits and exponent: `d.ddde+dd`.
    shown = _show_shortest(value) if precision is None else format(value, f".{max(precision, 1) - 1}e")
    mantissa, _, power = shown.partition("e")
    digits, exponent = mantissa.replace(".", "").rstrip("0"), int(power)
    limit = 6 if precision is None else max(precision, 1)
    if precision is not None and limit > len(digits) > exponent:
        limit = len(digits)
    if exponent < -4 or exponent >= limit:
        fraction = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{digits[0]}{fraction}{'E' if style == 'G' else 'e'}{exponent:+03d}"
    if exponent < 0:
        return f"0.{'0' * (-exponent - 1)}{digits}"
    whole, fraction = digits[: exponent + 1].ljust(exponent + 1, "0"), digits[exponent + 1 :]
    return f"{whole}.{fraction}" if fraction else whole


def _show_shortest(value: float) -> str:
    """Return the fewest digits that show a float, with an exponent."""
    _, digits, exponent = Decimal(repr(value)).as_tuple()
    return f"{digits[0]}.{''.join(map(str, digits[1:]))}e{int(exponent) + len(digits) - 1}"


def _write_hexadecimal(value: float, precision: int | None) -> str:
    fraction, exponent = frexp(value)
    # The first bit is at 60.
    mantissa, exponent = int(ldexp(fraction, 61)), exponent - 1 if value else 0
    if precision is not None and precision < 15:
        shift = precision * 4
        extra = (mantissa << shift) & ((1 << 60) - 1)
        mantissa >>= 60 - shift
        mantissa += extra | (mantissa & 1) > 1 << 59
        mantissa <<= 60 - shift
        if mantissa >> 61:
            mantissa, exponent = mantissa >> 1, exponent + 1
    digits = f"{mantissa & ((1 << 60) - 1):015x}"
    digits = digits.rstrip("0") if precision is None else digits[:precision].ljust(precision, "0")
    return f"0x{mantissa >> 60}{'.' if digits else ''}{digits}p{exponent:+03d}"


def _keep_zeros(shown: str, style: str, precision: int | None) -> str:
    """Add the point and the zeros that the flag `#` keeps."""
    least = (6 if precision is None else precision) if style in "gGx" else 0
    ends = "pP" if style in "xX" else "pPeE"
    end = next((place for place, char in enumerate(shown) if char in ends), len(shown))
    number, tail = shown[:end], shown[end:]
    least -= len(number.replace(".", "").lstrip("0"))
    if "." not in number:
        least -= number == "0"
        number += "."
    return number + "0" * least + tail
