"""The functions of Azure Policy on values; those that templates have, too, are shared with them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address, ip_network

from policyeng.azure_policy.values import MISSING, Value, fold, is_same, member, read, truth
from policyeng.models import JsonObject
from policyeng.parsing.arm_expressions import ExpressionError
from policyeng.parsing.arm_functions import (
    DEEP_FUNCTIONS,
    SCALAR_FUNCTIONS,
    SHALLOW_FUNCTIONS,
    Function,
    a_list,
    a_number,
    a_text,
    an_object,
    concat,
    contains,
    convert_to_text,
)


def _or_empty(value: object) -> object:
    """Return an empty text for null, as Azure Policy joins a missing field."""
    return "" if value is None else value


def _create_object(*pairs: object) -> JsonObject:
    if len(pairs) % 2:
        raise ExpressionError("a key has no value")
    return {a_text(key): value for key, value in zip(pairs[::2], pairs[1::2], strict=True)}


def _union(*parts: object) -> object:
    if all(isinstance(part, list) for part in parts):
        entries: list[object] = []
        for part in parts:
            entries += [entry for entry in a_list(part) if not any(is_same(entry, other) for other in entries)]
        return entries
    merged: JsonObject = {}
    for part in parts:
        merged |= an_object(part)
    return merged


def get_member(holder: Value, key: Value) -> Value:
    """Return the member of an object or the entry of a list; `MISSING` where there is none."""
    if isinstance(holder, dict) and isinstance(key, str):
        return member(holder, key)
    if isinstance(holder, list) and isinstance(key, int) and not isinstance(key, bool):
        return read(holder[key], ()) if 0 <= key < len(holder) else MISSING
    return MISSING


def _try_get(holder: object, *keys: object) -> object:
    for key in keys:
        holder = get_member(holder, key)
    return None if holder is MISSING else holder


def _moment(text: object) -> datetime:
    try:
        moment = datetime.fromisoformat(a_text(text))
    except ValueError as error:
        raise ExpressionError("it is not a time in the form of ISO 8601") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def format_moment(moment: datetime) -> str:
    """Return a time as Azure Policy writes it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _add_days(text: object, days: object) -> str:
    try:
        return format_moment(_moment(text) + timedelta(days=a_number(days)))
    except OverflowError as error:
        raise ExpressionError("the time is out of range") from error


def _range(text: object) -> tuple[int, int, int]:
    """Return the version, the first and the last address of a range, network or address."""
    first, dash, last = a_text(text).partition("-")
    try:
        if dash:
            start, end = ip_address(first.strip()), ip_address(last.strip())
            return start.version, int(start), int(end)
        network = ip_network(first.strip(), strict=False)
    except ValueError as error:
        raise ExpressionError("it is not a range of IP addresses") from error
    return network.version, int(network[0]), int(network[-1])


def _ip_range_contains(outer: object, inner: object) -> bool:
    version, first, last = _range(outer)
    other, start, end = _range(inner)
    return version == other and first <= start and end <= last


def _contains(holder: object, sought: object) -> bool:
    if isinstance(holder, list):
        return any(is_same(entry, sought) for entry in holder)
    if isinstance(holder, dict):
        return contains(holder, sought)
    return fold(convert_to_text(sought)) in fold(a_text(holder))


#: By name in lower case; arguments that are missing are null.
FUNCTIONS: Mapping[str, Function] = {
    **SCALAR_FUNCTIONS,
    **SHALLOW_FUNCTIONS,
    **DEEP_FUNCTIONS,
    "adddays": _add_days,
    "concat": lambda *parts: concat(*map(_or_empty, parts)),
    "contains": _contains,
    "createarray": lambda *entries: list(entries),
    "createobject": _create_object,
    "equals": is_same,
    "first": lambda value: None if value is None else SHALLOW_FUNCTIONS["first"](value),
    "format": lambda pattern, *parts: SCALAR_FUNCTIONS["format"](pattern, *map(_or_empty, parts)),
    "iprangecontains": _ip_range_contains,
    "last": lambda value: None if value is None else SHALLOW_FUNCTIONS["last"](value),
    "length": lambda value: 0 if value is None else SHALLOW_FUNCTIONS["length"](value),
    "not": lambda value: not truth(value),
    "string": lambda value: convert_to_text(_or_empty(value)),
    "tryget": _try_get,
    "union": _union,
}
#: Functions whose result nobody but Azure knows, with the reason.
UNDECIDABLE: Mapping[str, str] = {
    "uniquestring": "how Azure computes it is not published",
    "guid": "how Azure computes it is not published",
    "newguid": "it is another one each time",
    "claims": "there is no request",
    "reference": "it is read from Azure",
    "managementgroup": "the management group is not in the snapshot",
    "tenant": "the tenant is not in the snapshot",
}
