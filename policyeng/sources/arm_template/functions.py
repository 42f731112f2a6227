"""The functions of ARM templates: on scalars, lists, objects and networks, and on the deployment scope."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_network
from urllib.parse import quote, unquote, urljoin

import orjson

from policyeng.models import lowered
from policyeng.parsing.json_pointer import list_index
from policyeng.sources.arm_template.expressions import (
    ExpressionError,
    TemplateScope,
    find_unresolved,
    stand_in,
    text_of,
)
from policyeng.sources.parsed import kind_of
from policyeng.sources.templates import Unresolved

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


#: The maximum length of a range in ARM.
_LONGEST_RANGE = 10_000
#: A limit for functions that compare all pairs of entries.
_LONGEST_COMPARED = 2_000

_ABSENT = Unresolved("absent")


def member(holder: object, key: object) -> object:
    """Return the member with a key, compared without case, or the entry at an index.

    Raises:
        ExpressionError: it does not exist.
    """
    found = _member(holder, key)
    if found is _ABSENT:
        raise ExpressionError(f"there is no `{key}` in it")
    return found


def _member(holder: object, key: object) -> object:
    if isinstance(holder, dict) and isinstance(key, str):
        if key in holder:
            return holder[key]
        return next((value for name, value in holder.items() if lowered(name) == lowered(key)), _ABSENT)
    if isinstance(holder, list | str) and isinstance(key, int) and not isinstance(key, bool):
        return holder[key] if 0 <= key < len(holder) else _ABSENT
    if holder is None:
        return _ABSENT
    raise ExpressionError("it has no members")


def _try_get(holder: object, *keys: object) -> object:
    for key in keys:
        if isinstance(holder, Unresolved):
            return holder
        holder = _member(holder, key)
        if holder is _ABSENT:
            return None
    return holder


def _concat(*parts: object) -> object:
    if parts and all(isinstance(part, list) for part in parts):
        return [entry for part in parts for entry in a_list(part)]
    if any(isinstance(part, list | dict) for part in parts):
        raise ExpressionError("lists and strings cannot be joined")
    return check_length("".join(map(convert_to_text, parts)))


def _union(*parts: object) -> object:
    if all(isinstance(part, list) for part in parts):
        return _distinct([entry for part in parts for entry in a_list(part)])
    merged: dict[str, object] = {}
    for part in parts:
        merged = _merge(merged, an_object(part))
    return merged


def _merge(left: dict[str, object], right: dict[str, object]) -> dict[str, object]:
    """Merge objects recursively; lists are replaced. Keys are compared without case."""
    names = {lowered(key): key for key in left}
    merged = dict(left)
    for key, value in right.items():
        own = names.get(lowered(key), key)
        mine = merged.get(own)
        if isinstance(mine, dict) and isinstance(value, dict):
            merged[own] = _merge(mine, value)
        elif isinstance(mine, Unresolved) and isinstance(value, dict):
            merged[own] = mine  # its other members are not known
        elif value is None and mine is not None:
            merged[own] = Unresolved("it is not documented whether null replaces a value in `union`", "{union}")
        else:
            merged[own] = value
    return merged


def _distinct(entries: list[object]) -> list[object]:
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
    _distinct([entry for part in (first, *others) for entry in a_list(part)])  # checks the limit
    return [
        entry
        for entry in _distinct(a_list(first))
        if all(any(is_equal(entry, one) for one in a_list(other)) for other in others)
    ]


def _contains(holder: object, sought: object) -> bool:
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


def _create_object(*pairs: object) -> object:
    if len(pairs) % 2:
        raise ExpressionError("a key has no value")
    if unknown := next((key for key in pairs[::2] if isinstance(key, Unresolved)), None):
        return unknown
    return {a_text(key): value for key, value in zip(pairs[::2], pairs[1::2], strict=True)}


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


def _flatten(parts: object) -> object:
    if unknown := next((part for part in a_list(parts) if isinstance(part, Unresolved)), None):
        return unknown
    return [entry for part in a_list(parts) for entry in a_list(part)]


def _merge_shallowly(parts: object) -> object:
    if unknown := next((part for part in a_list(parts) if isinstance(part, Unresolved)), None):
        return unknown
    return {key: value for part in a_list(parts) for key, value in an_object(part).items()}


def _empty(value: object) -> bool:
    return value is None or _length(value) == 0


#: Functions that combine values, which can be unresolved, by name in lower case.
MAKING: Mapping[str, Function] = {"createarray": lambda *entries: list(entries), "createobject": _create_object}

#: Functions of lists and objects whose content can be unresolved, by name in lower case.
SHALLOW: Mapping[str, Function] = {
    "array": lambda value: value if isinstance(value, list) else [value],
    "empty": _empty,
    "first": lambda value: _end(value, 0),
    "flatten": _flatten,
    "items": _items,
    "last": lambda value: _end(value, -1),
    "length": _length,
    "objectkeys": lambda value: sorted(an_object(value)),
    "shallowmerge": _merge_shallowly,
    "skip": lambda value, count: _part(value, count, skipped=True),
    "take": lambda value, count: _part(value, count, skipped=False),
    "tryget": _try_get,
}

#: Functions whose arguments must be resolved completely, by name in lower case.
WHOLE: Mapping[str, Function] = {
    **CIDR_FUNCTIONS,
    "indexof": lambda entries, sought: _index(entries, sought, last=False),
    "intersection": _intersection,
    "join": _join,
    "lastindexof": lambda entries, sought: _index(entries, sought, last=True),
    "max": lambda *values: max(_numbers(values)),
    "min": lambda *values: min(_numbers(values)),
    "range": _range,
}

#: Functions that compare entries of lists, which must be resolved, but not values of objects; `concat` compares none.
BY_KEY: Mapping[str, Function] = {"concat": _concat, "contains": _contains, "union": _union}


_GUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_WHERE = "the location of the resource group is not known; give `--parameters location=<region>`"
_LATER = "it is known only at deployment"


def id_below(base: str, arm_type: str, names: Sequence[str]) -> str:
    """Return the ARM id of a resource.

    Args:
        base: the id of what it is deployed to, or that it extends.
        arm_type: such as `Microsoft.Storage/storageAccounts/blobServices`.
        names: one for each part of the type after the first.

    Raises:
        ExpressionError: there are more or fewer names.
    """
    provider, *kinds = arm_type.split("/")
    if len(kinds) != len(names) or not kinds:
        raise ExpressionError(f"`{arm_type}` takes {len(kinds)} names, not {len(names)}")
    if lowered(arm_type) == "microsoft.resources/resourcegroups":
        return f"{base}/resourceGroups/{names[0]}"
    below = "".join(f"/{kind}/{name}" for kind, name in zip(kinds, names, strict=True))
    return f"{base}/providers/{provider}{below}"


def _split_arguments(arguments: Sequence[object]) -> tuple[str, list[str], Unresolved | None]:
    """Return the type and the names in the arguments, and the first unresolved one."""
    if not arguments:
        raise ExpressionError("the type of a resource is missing")
    if isinstance(arguments[0], Unresolved):
        raise ExpressionError("the type of the resource is not known")
    kind = a_text(arguments[0]).strip("/")
    names = [name for argument in arguments[1:] for name in text_of(argument).strip("/").split("/")]
    missing = kind.count("/") - len(names)
    unknown = find_unresolved(list(arguments))
    if missing > 0 and unknown is not None and len(arguments) == 2:
        names = [f"{{{kind.split('/')[-1]} of {names[0].strip('{}')}}}"] * missing + names
    return kind, names, unknown


def _make_id(base: str, reason: str, arguments: Sequence[object]) -> object:
    kind, names, unknown = _split_arguments(arguments)
    text = id_below(base, kind, names)
    if unknown is not None:
        return Unresolved(unknown.reason, text)
    return Unresolved(reason, text) if "{" in base else text


def _resource_id(scope: TemplateScope, *arguments: object) -> object:
    """Apply `resourceId([subscriptionId], [resourceGroupName], resourceType, name, ...)`."""
    at = next((index for index, entry in enumerate(arguments[:3]) if isinstance(entry, str) and "/" in entry), None)
    if at is None:
        if unknown := find_unresolved(list(arguments)):
            return Unresolved(unknown.reason, stand_in("resourceId", arguments))
        raise ExpressionError("the type of a resource is missing")
    base, reason = scope.place.id, scope.place.reason
    before = [text_of(argument).replace("/", "~") for argument in arguments[:at]]
    unknown = find_unresolved(list(arguments[:at]))
    if at == 2:
        base = f"/subscriptions/{before[0]}/resourceGroups/{before[1]}"
    elif at == 1 and _GUID.fullmatch(before[0]):
        base = "/subscriptions/" + "/".join([before[0], *base.split("/")[3:5]])
    elif at == 1:
        base = f"{scope.place.subscription}/resourceGroups/{before[0]}"
    return _make_id(base, unknown.reason if unknown else reason, arguments[at:])


def _subscription_id(scope: TemplateScope, *arguments: object) -> object:
    """Apply `subscriptionResourceId([subscriptionId], resourceType, name, ...)`."""
    base, reason = scope.place.subscription, scope.place.reason
    if arguments and "/" not in text_of(arguments[0]):
        unknown = find_unresolved([arguments[0]])
        base = f"/subscriptions/{text_of(arguments[0])}"
        reason, arguments = unknown.reason if unknown else reason, arguments[1:]
    return _make_id(base, reason, arguments)


def _extension_id(scope: TemplateScope, base: object, *arguments: object) -> object:  # noqa: ARG001  # the signature is fixed
    """Apply `extensionResourceId(baseResourceId, resourceType, name, ...)`."""
    unknown = find_unresolved([base])
    identity = _make_id(text_of(base).rstrip("/"), "", arguments)
    return Unresolved(unknown.reason, text_of(identity)) if unknown else identity


def _management_group_id(scope: TemplateScope, *arguments: object) -> object:
    """Apply `managementGroupResourceId([managementGroupId], resourceType, name, ...)`."""
    base, reason = scope.place.id, scope.place.reason
    if arguments and "/" not in text_of(arguments[0]):
        base = f"/providers/Microsoft.Management/managementGroups/{text_of(arguments[0])}"
        arguments = arguments[1:]
    return _make_id(base, reason, arguments)


def _resource_group(scope: TemplateScope) -> object:
    place = scope.place
    segments = place.id.split("/")
    if len(segments) != 5 or lowered(segments[3]) != "resourcegroups":
        raise ExpressionError("the template is not deployed to a resource group")
    return {
        "id": place.stated(place.id),
        "name": place.stated(segments[4]),
        "type": "Microsoft.Resources/resourceGroups",
        "location": Unresolved(_WHERE, "{location}"),
        "tags": Unresolved(f"the tags of the resource group: {_LATER}", "{tags}"),
        "managedBy": Unresolved(f"who manages the resource group: {_LATER}", "{managedBy}"),
        "properties": {"provisioningState": "Succeeded"},
    }


def _subscription(scope: TemplateScope) -> object:
    whole = scope.place.subscription
    if not whole:
        raise ExpressionError("the template is not deployed to a subscription")
    return {
        "id": scope.place.stated(whole),
        "subscriptionId": scope.place.stated(whole.split("/")[2]),
        "tenantId": Unresolved(f"the tenant of the subscription: {_LATER}", "{tenantId}"),
        "displayName": Unresolved(f"the name of the subscription: {_LATER}", "{subscriptionName}"),
    }


def call_in_scope(name: str, scope: TemplateScope, arguments: Sequence[object]) -> object:
    """Apply a function of `SCOPE_FUNCTIONS`, whose arguments are strings.

    Raises:
        ExpressionError: an argument is null, a list or an object, or the function fails.
    """
    unfit = next((kind_of(argument) for argument in arguments if isinstance(argument, list | dict | None)), "")
    if unfit:
        raise ExpressionError(f"{unfit} where a string should be")
    return SCOPE_FUNCTIONS[name](scope, *arguments)


#: By name in lower case.
SCOPE_FUNCTIONS: Mapping[str, Callable[..., object]] = {
    "extensionresourceid": _extension_id,
    "managementgroupresourceid": _management_group_id,
    "resourcegroup": _resource_group,
    "resourceid": _resource_id,
    "subscription": _subscription,
    "subscriptionresourceid": _subscription_id,
    "tenantresourceid": lambda scope, *arguments: _make_id("", scope.place.reason, arguments),
}
