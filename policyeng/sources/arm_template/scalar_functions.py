"""The functions of ARM templates on scalars: logic, numbers, strings.

Each takes the known values of its arguments and raises ExpressionError for invalid ones.
Source: https://learn.microsoft.com/azure/azure-resource-manager/templates/template-functions.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from urllib.parse import quote, unquote, urljoin

import orjson

from policyeng.models import lowered
from policyeng.parsing.json_pointer import list_index
from policyeng.sources.arm_template.expressions import ExpressionError
from policyeng.sources.parsed import kind_of

#: A function; it raises only ExpressionError, and TypeError for a wrong number of arguments.
Function = Callable[..., object]

_LARGEST = 2**63
_LONGEST_TEXT = 1_048_576
_BRACES = re.compile(r"\{\{|\}\}|\{([0-9]+)(?:,-?[0-9]+)?(?::([^{}]*))?\}")


def a_text(value: object) -> str:
    """Return the value, which must be a string."""
    if isinstance(value, str):
        return value
    raise ExpressionError(f"{kind_of(value)} where a string should be")


def a_number(value: object) -> int:
    """Return the value, which must be an integer."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ExpressionError(f"{kind_of(value)} where a whole number should be")


def a_boolean(value: object) -> bool:
    """Return the value, which must be a boolean."""
    if isinstance(value, bool):
        return value
    raise ExpressionError(f"{kind_of(value)} where true or false should be")


def a_list(value: object) -> list[object]:
    """Return the value, which must be a list."""
    if isinstance(value, list):
        return value
    raise ExpressionError(f"{kind_of(value)} where a list should be")


def an_object(value: object) -> dict[str, object]:
    """Return the value, which must be an object."""
    if isinstance(value, dict):
        return value
    raise ExpressionError(f"{kind_of(value)} where an object should be")


def is_equal(left: object, right: object) -> bool:
    """Check whether two values are equal: 1 is not true, and strings are compared with case."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(is_equal(value, right[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(is_equal, left, right))
    return left == right


def convert_to_text(value: object) -> str:
    """Convert a value to text: a string is unchanged, any other value becomes JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value)
    try:
        return orjson.dumps(value).decode()
    except TypeError as error:
        raise ExpressionError("a number is too large to be written as text") from error


def _compare(left: object, right: object) -> int:
    """Compare two numbers or two strings: return a number below, equal to or above 0."""
    if isinstance(left, str) and isinstance(right, str):
        return (left > right) - (left < right)
    return (a_number(left) > a_number(right)) - (a_number(left) < a_number(right))


def _convert_integer(value: object) -> int:
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?[0-9]{1,19}\s*", value):
        return _check_size(int(value))
    if isinstance(value, float) and abs(value) < _LARGEST:
        return int(value)
    return a_number(value)


def _check_size(number: int) -> int:
    if -_LARGEST <= number < _LARGEST:
        return number
    raise ExpressionError("a number has more than 64 bits")


def _bool(value: object) -> bool:
    if isinstance(value, str) and lowered(value) in ("true", "false", "1", "0"):
        return lowered(value) in ("true", "1")
    return bool(value) if type(value) is int else a_boolean(value)


def _divide(left: object, right: object) -> tuple[int, int]:
    """Return quotient and remainder, rounded towards zero."""
    dividend, divisor = a_number(left), a_number(right)
    if divisor == 0:
        raise ExpressionError("division by zero")
    quotient = abs(dividend) // abs(divisor)
    quotient = quotient if (dividend < 0) == (divisor < 0) else -quotient
    return quotient, dividend - divisor * quotient


def _format(pattern: object, *arguments: object) -> str:
    texts = [convert_to_text(argument) for argument in arguments]

    def filled(found: re.Match[str]) -> str:
        if found[1] is None:
            return found[0][0]
        at = list_index(found[1])
        if at is None or at >= len(texts):
            raise ExpressionError(f"`{found[0]}` refers to an argument that is missing")
        if not (found[2] and isinstance(arguments[at], int)):
            return texts[at]
        width = re.fullmatch(r"[Dd0]([0-9]{0,2})", found[2])
        if width is None:
            raise ExpressionError(f"the number format `{found[2]}` is not supported")
        return texts[at].zfill(int(width[1] or 1) if found[2][0] in "Dd" else len(found[2]))

    return check_length(_BRACES.sub(filled, a_text(pattern)))


def check_length(text: str) -> str:
    """Check that a text is not too long."""
    if len(text) > _LONGEST_TEXT:
        raise ExpressionError(f"the result has more than {_LONGEST_TEXT} characters")
    return text


def _replace(text: object, old: object, new: object) -> str:
    whole, part, other = a_text(text), a_text(old), a_text(new)
    if not part:
        raise ExpressionError("the text to replace is empty")
    if len(whole) + whole.count(part) * len(other) > _LONGEST_TEXT:
        raise ExpressionError(f"the result has more than {_LONGEST_TEXT} characters")
    return whole.replace(part, other)


def _substring(text: object, start: object, length: object = None) -> str:
    whole, first = a_text(text), a_number(start)
    size = len(whole) - first if length is None else a_number(length)
    if not (0 <= first <= len(whole) and 0 <= size <= len(whole) - first):
        raise ExpressionError("the range is outside of the string")
    return whole[first : first + size]


def _pad(value: object, width: object, letter: object = " ") -> str:
    if not 0 <= a_number(width) <= _LONGEST_TEXT or len(a_text(letter)) != 1:
        raise ExpressionError("the padding is not one character, or the length is too large")
    return convert_to_text(value).rjust(a_number(width), a_text(letter))


def _split(text: object, signs: object) -> list[object]:
    every = [a_text(sign) for sign in (signs if isinstance(signs, list) else [signs])]
    parts = re.split("|".join(re.escape(sign) for sign in every if sign), a_text(text)) if any(every) else [text]
    return list(parts)


def _decode(text: object) -> str:
    try:
        return base64.b64decode(a_text(text), validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise ExpressionError("it is not base64-encoded text") from error


def _json(text: object) -> object:
    try:
        return orjson.loads(a_text(text).encode("utf-8", "surrogatepass"))
    except (orjson.JSONDecodeError, RecursionError) as error:
        raise ExpressionError("it is not JSON") from error


def _encode(text: object) -> str:
    try:
        return base64.b64encode(a_text(text).encode()).decode()
    except UnicodeEncodeError as error:
        raise ExpressionError("it is not valid text") from error


def _quote(text: object) -> str:
    try:
        return quote(a_text(text), safe="")
    except UnicodeEncodeError as error:
        raise ExpressionError("it is not valid text") from error


def _uri(base: object, relative: object) -> str:
    try:
        return urljoin(a_text(base), a_text(relative))
    except ValueError as error:
        raise ExpressionError("it is not a URI") from error


#: By name in lower case.
FUNCTIONS: Mapping[str, Function] = {
    "add": lambda left, right: _check_size(a_number(left) + a_number(right)),
    "base64": _encode,
    "base64tojson": lambda text: _json(_decode(text)),
    "base64tostring": _decode,
    "bool": _bool,
    "div": lambda left, right: _divide(left, right)[0],
    "endswith": lambda text, end: lowered(a_text(text)).endswith(lowered(a_text(end))),
    "equals": is_equal,
    "false": lambda: False,
    "float": lambda value: value if isinstance(value, float) else float(_convert_integer(value)),
    "format": _format,
    "greater": lambda left, right: _compare(left, right) > 0,
    "greaterorequals": lambda left, right: _compare(left, right) >= 0,
    "int": _convert_integer,
    "json": _json,
    "less": lambda left, right: _compare(left, right) < 0,
    "lessorequals": lambda left, right: _compare(left, right) <= 0,
    "mod": lambda left, right: _divide(left, right)[1],
    "mul": lambda left, right: _check_size(a_number(left) * a_number(right)),
    "not": lambda value: not a_boolean(value),
    "null": lambda: None,
    "padleft": _pad,
    "replace": _replace,
    "split": _split,
    "startswith": lambda text, start: lowered(a_text(text)).startswith(lowered(a_text(start))),
    "string": convert_to_text,
    "sub": lambda left, right: _check_size(a_number(left) - a_number(right)),
    "substring": _substring,
    "tolower": lambda text: lowered(a_text(text)),
    "toupper": lambda text: a_text(text).upper(),
    "trim": lambda text: a_text(text).strip(),
    "true": lambda: True,
    "uri": _uri,
    "uricomponent": _quote,
    "uricomponenttostring": lambda text: unquote(a_text(text)),
}
