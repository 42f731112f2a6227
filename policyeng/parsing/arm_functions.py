"""The functions of ARM expressions on scalars and on networks; templates and Azure Policy share them."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from urllib.parse import quote, unquote, urljoin

import orjson

from policyeng.models import lowered
from policyeng.parsing.arm_expressions import ExpressionError
from policyeng.parsing.json_pointer import list_index
from policyeng.parsing.json_text import kind_of

#: A function; it raises only ExpressionError, and TypeError for a wrong number of arguments.
Function = Callable[..., object]

_LARGEST = 2**63
#: The maximum length of a range in ARM.
_LONGEST_RANGE = 10_000
#: A limit for functions that compare all pairs of entries.
_LONGEST_COMPARED = 2_000
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
    """Convert a value to text: a string is unchanged, any other value but null becomes JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value)
    if value is None:
        raise ExpressionError("null where a string should be")  # it is not documented as which text it is written
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
SCALAR_FUNCTIONS: Mapping[str, Function] = {
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


_CIDR = re.compile(r"[0-9A-Fa-f.:]{2,45}/[0-9]{1,3}")


def _network(text: object) -> IPv4Network | IPv6Network:
    written = a_text(text)
    try:
        if _CIDR.fullmatch(written):
            return ip_network(written)
    except ValueError:  # an invalid address or length, or an address inside the network
        pass
    raise ExpressionError("it is not a network in CIDR notation, such as `10.144.0.0/20`")


def _usable(network: IPv4Network | IPv6Network) -> tuple[int, int]:
    """Return the offsets of the first and the last usable address from the network address."""
    last = network.num_addresses - 1
    if network.version == 6:
        return 0, last
    if last < 3:
        raise ExpressionError("the usable addresses of such a small network are not documented")
    return 1, last - 1


def _parsed(text: object) -> object:
    """Apply `parseCidr(network)`; only IPv4 has a `broadcast`."""
    network = _network(text)
    first, last = _usable(network)
    ends = {"broadcast": str(network.broadcast_address)} if network.version == 4 else {}
    return {
        "network": str(network.network_address),
        "netmask": str(network.netmask),
        **ends,
        "firstUsable": str(network.network_address + first),
        "lastUsable": str(network.network_address + last),
        "cidr": network.prefixlen,
    }


def _subnet(text: object, length: object, index: object) -> str:
    """Apply `cidrSubnet(network, newCIDR, subnetIndex)`; indexes start at 0."""
    network, prefix, position = _network(text), a_number(length), a_number(index)
    if not network.prefixlen <= prefix <= network.max_prefixlen:
        raise ExpressionError(f"a subnet of it has a length of {network.prefixlen} to {network.max_prefixlen}")
    if not 0 <= position < 2 ** (prefix - network.prefixlen):
        raise ExpressionError("it has no subnet of that index")
    start = network.network_address + position * 2 ** (network.max_prefixlen - prefix)
    return f"{start}/{prefix}"


def _host(text: object, index: object) -> str:
    """Apply `cidrHost(network, hostIndex)`; index 0 is the address after the network address, also in IPv6."""
    network, position = _network(text), a_number(index)
    _, last = _usable(network)
    if not 0 <= position < last:
        raise ExpressionError("it has no usable address of that index")
    return str(network.network_address + 1 + position)


#: By name in lower case.
CIDR_FUNCTIONS: Mapping[str, Function] = {"cidrhost": _host, "cidrsubnet": _subnet, "parsecidr": _parsed}


def concat(*parts: object) -> object:
    """Join lists into a list, or other values into text."""
    if parts and all(isinstance(part, list) for part in parts):
        return [entry for part in parts for entry in a_list(part)]
    if any(isinstance(part, list | dict) for part in parts):
        raise ExpressionError("lists and strings cannot be joined")
    return check_length("".join(map(convert_to_text, parts)))


def distinct(entries: list[object]) -> list[object]:
    """Return the entries of a list without those that are equal to an earlier one."""
    if len(entries) > _LONGEST_COMPARED:
        raise ExpressionError(f"it compares more than {_LONGEST_COMPARED} entries")
    distinct: list[object] = []
    for entry in entries:
        if not any(is_equal(entry, other) for other in distinct):
            distinct.append(entry)
    return distinct


def _intersection(first: object, *others: object) -> object:
    if isinstance(first, dict):
        return {
            key: value
            for key, value in first.items()
            if all(key in an_object(other) and is_equal(value, an_object(other)[key]) for other in others)
        }
    distinct([entry for part in (first, *others) for entry in a_list(part)])  # checks the limit
    return [
        entry
        for entry in distinct(a_list(first))
        if all(any(is_equal(entry, one) for one in a_list(other)) for other in others)
    ]


def contains(holder: object, sought: object) -> bool:
    """Check whether an object has a key, a list an entry, or a text a part."""
    if isinstance(holder, dict):
        return any(lowered(key) == lowered(convert_to_text(sought)) for key in holder)
    if isinstance(holder, list):
        return any(is_equal(entry, sought) for entry in holder)
    return convert_to_text(sought) in a_text(holder)


def _length(value: object) -> int:
    if isinstance(value, str | list | dict):
        return len(value)
    raise ExpressionError("it has no length")


def _end(value: object, index: int) -> object:
    if isinstance(value, str):
        return value[index] if value else ""
    return a_list(value)[index] if value else None


def _part(value: object, count: object, *, skipped: bool) -> object:
    number = max(0, a_number(count))
    whole = value if isinstance(value, str) else a_list(value)
    return whole[number:] if skipped else whole[:number]


def _range(start: object, count: object) -> list[object]:
    if not 0 <= a_number(count) <= _LONGEST_RANGE:
        raise ExpressionError(f"a range has 0 to {_LONGEST_RANGE} numbers")
    return list(range(a_number(start), a_number(start) + a_number(count)))


def _numbers(values: tuple[object, ...]) -> list[int]:
    numbers = [a_number(value) for value in (a_list(values[0]) if isinstance(values[0], list) else values)]
    if not numbers:
        raise ExpressionError("there are no numbers")
    return numbers


def _items(value: object) -> list[object]:
    return [{"key": key, "value": inner} for key, inner in sorted(an_object(value).items())]


def _index(entries: object, sought: object, *, last: bool) -> int:
    if isinstance(entries, str):
        text, part = lowered(entries), lowered(a_text(sought))
        return text.rfind(part) if last else text.find(part)
    found = [index for index, entry in enumerate(a_list(entries)) if is_equal(entry, sought)]
    return -1 if not found else found[-1 if last else 0]


def _join(parts: object, sign: object = ",") -> str:
    return check_length(a_text(sign).join(convert_to_text(part) for part in a_list(parts)))


def _empty(value: object) -> bool:
    return value is None or _length(value) == 0


#: On lists and objects, by name in lower case; values in them are handed on as they are.
SHALLOW_FUNCTIONS: Mapping[str, Function] = {
    "array": lambda value: value if isinstance(value, list) else [value],
    "empty": _empty,
    "first": lambda value: _end(value, 0),
    "items": _items,
    "last": lambda value: _end(value, -1),
    "length": _length,
    "objectkeys": lambda value: sorted(an_object(value)),
    "skip": lambda value, count: _part(value, count, skipped=True),
    "take": lambda value, count: _part(value, count, skipped=False),
}
#: On lists and objects, of which they read values, by name in lower case.
DEEP_FUNCTIONS: Mapping[str, Function] = {
    "indexof": lambda entries, sought: _index(entries, sought, last=False),
    "intersection": _intersection,
    "join": _join,
    "lastindexof": lambda entries, sought: _index(entries, sought, last=True),
    "max": lambda *values: max(_numbers(values)),
    "min": lambda *values: min(_numbers(values)),
    "range": _range,
}
