"""The values of Rego as Python values: equality, order, keys and text.

A null is None, a boolean a bool, a string a str, an array a list, an object a dict, a set a set. A number is an int
of any size, a float, which means the decimal number that its `repr` shows, or a Decimal where a float does not show
the same digits. A `WrittenFloat` and a `WrittenDecimal` also have the text that they were read from. Nothing ever
changes a value once it is made.

Members of sets and keys of objects are in a hashable form: a string, a number or null is itself, everything else is a
`ValueKey`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Self

from policyeng.rego.budget import charge, charged

Value = Any

#: Up to here, each float that is a whole number has the bits of what it shows.
_LARGEST_EXACT = 1 << 53
_ESCAPED_MARKUP = re.compile("[<>&\u2028\u2029]")


class _Written:
    """A number that keeps the text that it was read from, and compares as the decimal number that it means.

    Attributes:
        text: how it was written.
    """

    __slots__ = ()
    text: str

    def __new__(cls, text: str) -> Self:
        """Read it from a text."""
        number = super().__new__(cls, text)  # type: ignore[call-arg]  # of float or Decimal
        number.text = text  # type: ignore[misc]  # a slot of each subclass
        return number

    def __eq__(self, other: object) -> bool:
        """Compare the decimal numbers; Python would compare with the bits of a float."""
        return bool(to_decimal(self) == to_decimal(other))

    def __ne__(self, other: object) -> bool:
        """Return the opposite of equality, which `float` would decide by its bits."""
        return not self == other

    def __lt__(self, other: Value) -> bool:
        """Order as `__eq__` compares."""
        return bool(to_decimal(self) < to_decimal(other))

    def __le__(self, other: Value) -> bool:
        """Order as `__eq__` compares."""
        return bool(to_decimal(self) <= to_decimal(other))

    def __gt__(self, other: Value) -> bool:
        """Order as `__eq__` compares."""
        return bool(to_decimal(self) > to_decimal(other))

    def __ge__(self, other: Value) -> bool:
        """Order as `__eq__` compares."""
        return bool(to_decimal(self) >= to_decimal(other))

    def __hash__(self) -> int:
        """Return what an equal integer has, or an equal float where no integer is."""
        return hash(float(self) if isinstance(self, float) and not self.is_integer() else to_decimal(self))

    def __reduce__(self) -> tuple[type[Self], tuple[str]]:
        """Keep the text in a copy."""
        return type(self), (self.text,)


class WrittenFloat(_Written, float):
    """A float that was written otherwise than floats are, such as `1.50` or `1e3`, and is written so again.

    Its `repr` shows the same number as the text. A float whose bits are another integer than its `repr` shows, such as
    `1e23`, is one as well.
    """

    __slots__ = ("text",)


class WrittenDecimal(_Written, Decimal):
    """A number with more digits than a float, which is written as it was."""

    __slots__ = ("text",)


def to_decimal(value: Value) -> Value:
    """Return the decimal number that a float or a `WrittenDecimal` means; anything else is itself."""
    if isinstance(value, float):
        return Decimal(repr(value))
    return Decimal(value) if type(value) is WrittenDecimal else value


def _exact(value: float) -> float:
    """Return a float that equals the integer that it shows: Python compares a plain one by its bits."""
    if -_LARGEST_EXACT <= value <= _LARGEST_EXACT or to_decimal(value) == value:
        return value
    return WrittenFloat(number_text(value))


#: The order of the types of values.
_RANKS = {
    type(None): 0,
    bool: 1,
    int: 2,
    float: 2,
    WrittenFloat: 2,
    Decimal: 2,
    WrittenDecimal: 2,
    str: 3,
    list: 6,
    dict: 7,
    set: 8,
}
_NAMES = {
    type(None): "null",
    bool: "boolean",
    int: "number",
    float: "number",
    WrittenFloat: "number",
    Decimal: "number",
    WrittenDecimal: "number",
    str: "string",
    list: "array",
    dict: "object",
    set: "set",
}
_PLAIN_KEYS = frozenset((str, int, WrittenFloat, Decimal, WrittenDecimal, type(None)))
_NUMBERS = frozenset((int, float, WrittenFloat, Decimal, WrittenDecimal))


class Undefined(dict[Any, Any]):
    """The type of `UNDEFINED`: an empty object, so that a chain of `get` goes through it."""

    __slots__ = ()

    def __bool__(self) -> bool:
        """Return False."""
        return False

    def get(self, key: Value, default: Value = None) -> Value:  # noqa: ARG002  # the interface of dict
        """Return `UNDEFINED`."""
        return self

    def __repr__(self) -> str:
        """Return its name."""
        return "UNDEFINED"

    def __reduce__(self) -> str:
        """Stay the same object in a copy."""
        return "UNDEFINED"


UNDEFINED = Undefined()


class ValueKey:
    """A boolean, array, object or set in the hashable form of a key.

    Attributes:
        value: what it is the key of.
    """

    __slots__ = ("_form", "_hash", "value")

    def __init__(self, value: Value) -> None:
        """Take a value that is not hashable, or a boolean, which Python takes for a number."""
        self.value = value
        self._form = _freeze(value)
        self._hash = hash(self._form)

    def __eq__(self, other: object) -> bool:
        """Compare the values exactly."""
        return type(other) is ValueKey and self._form == other._form

    def __hash__(self) -> int:
        """Return the same number for equal values."""
        return self._hash

    def __reduce__(self) -> tuple[type[ValueKey], tuple[Value]]:
        """Create it again where it is read: each process hashes texts differently."""
        return ValueKey, (self.value,)

    def __repr__(self) -> str:
        """Show the value."""
        return f"Key({self.value!r})"


def _freeze(value: Value) -> Value:
    kind = type(value)
    if kind is bool:
        return ("boolean", value)
    if kind is list:
        return ("array", *map(_freeze, value))
    if kind is dict:
        return ("object", frozenset((key, _freeze(item)) for key, item in value.items()))
    if kind is set:
        return ("set", frozenset(value))
    return _exact(value) if kind is float else value


def to_key(value: Value) -> Value:
    """Return the hashable form of a value."""
    kind = type(value)
    if kind in _PLAIN_KEYS:
        return value
    return _exact(value) if kind is float else ValueKey(value)


def from_key(key: Value) -> Value:
    """Return the value of a hashable form."""
    return key.value if type(key) is ValueKey else key


def members(collection: set[Value]) -> list[Value]:
    """Return the members of a set in their order."""
    return [from_key(key) for key in ordered_keys(collection)]


def ordered_keys(keys: Value) -> list[Value]:
    """Return hashable forms in the order of their values."""
    try:
        return sorted(keys)
    except TypeError:
        # Of several types, or with a `ValueKey`.
        return sorted(keys, key=lambda key: sort_key(from_key(key)))


def make_set(values: Value) -> set[Value]:
    """Return the set of values."""
    return {to_key(value) for value in values}


def equal(left: Value, right: Value) -> bool:
    """Return whether two values are equal. A boolean is not a number; 1.0 is 1."""
    if left is right:
        return True
    kind, other = type(left), type(right)
    if kind is str:
        return other is str and bool(left == right)
    if kind is not other:
        # Python compares a float by its bits with an integer or a decimal.
        return kind in _NUMBERS and other in _NUMBERS and bool(to_decimal(left) == to_decimal(right))
    if kind is list:
        return len(left) == len(right) and all(map(equal, left, right))
    if kind is dict:
        return left.keys() == right.keys() and all(equal(item, right[key]) for key, item in left.items())
    return bool(left == right)


def is_number(value: Value) -> bool:
    """Return whether a value is a number."""
    return type(value) in _NUMBERS


def type_name(value: Value) -> str:
    """Return the name of the type of a value, as `type_name` of Rego."""
    return _NAMES[type(value)]


def sort_key(value: Value) -> tuple[Value, ...]:
    """Return what sorts values of any types in the order of Rego: null, boolean, number, string, array, object, set."""
    kind = type(value)
    rank = _RANKS[kind]
    if kind is float or kind is WrittenFloat:
        return rank, to_decimal(value)
    if kind is list:
        return rank, tuple(map(sort_key, value))
    if kind is dict:
        return rank, tuple((sort_key(from_key(key)), sort_key(value[key])) for key in ordered_keys(value))
    if kind is set:
        return rank, tuple(map(sort_key, members(value)))
    return (rank,) if value is None else (rank, value)


def is_less(left: Value, right: Value) -> bool:
    """Return whether one value is before another."""
    kind = type(left)
    if kind is type(right):
        if kind is str or kind is int:
            return bool(left < right)
        if kind is list:
            return is_list_less(left, right, is_less)
    return sort_key(left) < sort_key(right)


def is_list_less(left: Value, right: Value, is_less: Callable[[Value, Value], bool]) -> bool:
    """Return whether one array is before another in the order of their items."""
    for item, other in zip(left, right, strict=False):
        if is_less(item, other):
            return True
        if is_less(other, item):
            return False
    return len(left) < len(right)


def sort_values(values: Value) -> list[Value]:
    """Return values in their order."""
    found = list(values)
    kinds = set(map(type, found))
    return sorted(found) if kinds <= {str} or kinds <= {int} else sorted(found, key=sort_key)


def number_text(value: Value) -> str:
    """Return a number as OPA writes it."""
    if type(value) is int:
        return str(value)
    if type(value) is WrittenFloat or type(value) is WrittenDecimal:
        return str(value.text)
    text = repr(value) if type(value) is float else str(value).lower()
    mantissa, separator, exponent = text.partition("e")
    if not separator:
        return text
    # Go writes at least two digits of an exponent, with a sign.
    return f"{mantissa}e{exponent[0] if exponent[0] in '+-' else '+'}{exponent.lstrip('+-').rjust(2, '0')}"


def to_text(value: Value) -> str:
    """Return a value as Rego text: strings in quotes, sets in braces, keys and members in their order."""
    kind = type(value)
    if kind is str:
        return quote(value)
    if value is None:
        return "null"
    if kind is bool:
        return "true" if value else "false"
    if kind is list:
        return f"[{', '.join(map(to_text, value))}]"
    if kind is dict:
        return f"{{{', '.join(f'{to_text(from_key(key))}: {to_text(value[key])}' for key in ordered_keys(value))}}}"
    if kind is set:
        return f"{{{', '.join(map(to_text, members(value)))}}}" if value else "set()"
    return number_text(value)


def to_json(value: Value, *, written: bool = False) -> Value:
    """Return a value with sets as arrays and keys as strings, as OPA does: a key that is not a string is its text.

    Args:
        value: what to convert.
        written: leave each `WrittenFloat` and `WrittenDecimal` as it is, which few writers of JSON know.
    """
    kind = type(value)
    if kind is list:
        return [to_json(item, written=written) for item in value]
    if kind is set:
        return [to_json(item, written=written) for item in members(value)]
    if kind is dict:
        return {_json_key(from_key(key)): to_json(value[key], written=written) for key in ordered_keys(value)}
    if written:
        return value
    return float(value) if kind is WrittenFloat else Decimal(value) if kind is WrittenDecimal else value


def _json_key(key: Value) -> str:
    return key if type(key) is str else write_json(key)


_MARKUP = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_WORDS = {None: "null", True: "true", False: "false"}


def write_json(value: Value, newline: str = "", indent: str = "") -> str:
    """Write a value as JSON as Go does: keys in their order, markup escaped.

    Args:
        value: what to write.
        newline: what begins a line, its line end included; without it, all is on one line.
        indent: what lines of inner values begin with in addition.

    Raises:
        BudgetExceededError: it takes more than is left.
        RecursionError: it is nested too deeply.
    """
    from json.encoder import encode_basestring  # loaded when something is written

    colon = ": " if newline else ":"

    def write(value: Value, newline: str) -> str:
        kind = type(value)
        if kind is str:
            return charged(_ESCAPED_MARKUP.sub(lambda found: _MARKUP[found[0]], encode_basestring(value)))
        if value is None or kind is bool:
            return _WORDS[value]
        if kind is not list and kind is not dict:
            return number_text(value)
        inner = newline + indent
        charge(len(inner) * len(value))
        if kind is list:
            opening, closing, items = "[", "]", [write(item, inner) for item in value]
        else:
            opening, closing = "{", "}"
            items = [f"{write(key, inner)}{colon}{write(value[key], inner)}" for key in sorted(value)]
        return f"{opening}{inner}{f',{inner}'.join(items)}{newline}{closing}" if items else opening + closing

    return charged(write(to_json(value, written=True), newline))


_ESCAPES = {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v", "\\": r"\\"}
#: What Unicode 15, which Go 1.26 has, has more than Unicode 14, which Python 3.11 has.
_PRINTABLE_IN_GO = re.compile(
    "[\u0cf3\u0ece\U00010efd-\U00010eff\U0001123f-\U00011241\U00011b00-\U00011b09\U00011f00-\U00011f10"
    "\U00011f12-\U00011f3a\U00011f3e-\U00011f59\U0001342f\U00013440-\U00013455\U0001b132\U0001b155"
    "\U0001d2c0-\U0001d2d3\U0001df25-\U0001df2a\U0001e030-\U0001e06d\U0001e08f\U0001e4d0-\U0001e4f9\U0001f6dc"
    "\U0001f774-\U0001f776\U0001f77b-\U0001f77f\U0001f7d9\U0001fa75-\U0001fa77\U0001fa87\U0001fa88"
    "\U0001faad-\U0001faaf\U0001fabb-\U0001fabd\U0001fabf\U0001face\U0001facf\U0001fada\U0001fadb\U0001fae8"
    "\U0001faf7\U0001faf8\U0002b739\U00031350-\U000323af]"
)


def quote(text: str, mark: str = '"', only_ascii: bool = False) -> str:
    """Return a text in quotes with the escapes of Go.

    Args:
        text: what to quote.
        mark: the quotes.
        only_ascii: whether every other character is escaped.
    """
    if text.isprintable() and mark not in text and "\\" not in text and (not only_ascii or text.isascii()):
        return f"{mark}{text}{mark}"
    return f"{mark}{''.join(_escape(char, mark, only_ascii) for char in text)}{mark}"


def _escape(char: str, mark: str, only_ascii: bool) -> str:
    if char == mark:
        return "\\" + char
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char < " " or char == "\x7f":
        return f"\\x{ord(char):02x}"
    if is_printable(char) and (not only_ascii or char.isascii()):
        return char
    return f"\\u{ord(char):04x}" if char < "\U00010000" else f"\\U{ord(char):08x}"


def is_printable(char: str) -> bool:
    """Return whether Go prints a character as itself."""
    return char.isprintable() or _PRINTABLE_IN_GO.match(char) is not None
