"""Reading of one entry as an ARM resource: it is accepted unchanged, or refused with the reason."""

from __future__ import annotations

import re

from policyeng.facts.arm_casing import ENVELOPE, top_level_name
from policyeng.facts.ids import types_of
from policyeng.later import lazy_pattern
from policyeng.models import JsonObject, lowered
from policyeng.parsing.json_pointer import escaped
from policyeng.parsing.json_text import shortened
from policyeng.sources.parsed import Placed, Refusal, format_value, keys_seen, kind_of
from policyeng.sources.printed_resources import is_printed_flat, nest_printed

_NO_PROPERTIES = {"/properties": "the document lists the resource without its `properties`"}
_SAVE_GET = "save the response of the REST API to GET (`az rest --method get --url <id>?api-version=...`)"
_PLACEHOLDERS = lazy_pattern(r"[{}<>]")
#: `$(name)` of Azure Pipelines anywhere; `$NAME` of a shell as the complete text; `__NAME__` of a token replacement
#: anywhere, except in lower case inside a name such as `team__ml__prod`. The limit of the length keeps the time linear.
_TOKEN = lazy_pattern(
    r"\$\(|\A\s*(?:azureml:)?\$\w+\s*\Z|__[A-Z][A-Z0-9_]{0,127}__|(?<![^\W_])__\w{1,128}__(?![^\W_])", re.ASCII
)


def read_entry(entry: object, pointer: str) -> Placed | Refusal:
    """Read one JSON value as an ARM resource.

    A missing `type` is derived from a full ARM id. If `properties` is missing, it is reported as unreadable.
    """
    if not isinstance(entry, dict):
        return Refusal(pointer, f"not an ARM resource: {kind_of(entry)} where an object should be", _SAVE_GET)
    if not entry.keys() <= ENVELOPE and (other := _find_respelled_keys(entry)):
        if isinstance(other, Refusal):
            return other._replace(pointer=pointer + other.pointer)
        read = read_entry({other.get(key, key): value for key, value in entry.items()}, pointer)
        if isinstance(read, Refusal):
            return read
        fields = {f"/{name}": f"{pointer}/{escaped(key)}" for key, name in other.items()}
        return read._replace(fields={**fields, **read.fields})
    if "_" in "".join(entry):
        key = next(key for key in entry if "_" in key)
        message = f"not an ARM resource: keys such as `{shortened(key)}` are from the output of a command"
        return Refusal(pointer, message, _SAVE_GET)
    identity, kind = entry.get("id"), entry.get("type")
    if "limit" in entry and "unit" in entry and "properties" not in entry:
        remedy = "list quotas under `quotas` in a native snapshot, with their region"
        return Refusal(pointer, "a quota or usage entry, not a resource", remedy, holds_nothing=True)
    if not isinstance(identity, str) or not identity:
        return _refuse_without_id(entry, pointer)
    types = types_of(identity)
    if is_placeholder(identity) or is_placeholder(kind):
        return Refusal(pointer, "`id` or `type` is a placeholder, not a value", "replace the placeholder with a value")
    if not types:
        if kind is None and "properties" not in entry:
            return _refuse_without_id(entry, pointer)
        message = f"`id` is not the full ARM id of a resource: `{shortened(identity)}`"
        return Refusal(pointer, message, "give it as `/subscriptions/.../providers/<namespace>/<type>/<name>`")
    if kind is not None and not (isinstance(kind, str) and lowered(kind) in types):
        message = f"`id` has the type `{shortened(_written_type(identity, types))}`, but `type` is {format_value(kind)}"
        return Refusal(pointer, message, "correct the one that is wrong")
    return _check_properties(entry if kind else {**entry, "type": _written_type(identity, types)}, pointer)


def with_top_level_names(entry: JsonObject) -> JsonObject:
    """Return an object with its resource keys in ARM's spelling, or unchanged if two keys have the same name."""
    other = {} if entry.keys() <= ENVELOPE else _find_respelled_keys(entry)
    if not other or isinstance(other, Refusal):
        return entry
    return {other.get(key, key): value for key, value in entry.items()}


def _find_respelled_keys(entry: JsonObject) -> dict[str, str] | Refusal:
    """Return the ARM spelling of each key that is spelled differently, or a refusal if two keys have the same name."""
    other: dict[str, str] = {}
    for key in entry:
        name = top_level_name(key)
        if name == key:
            continue
        first = name if name in entry else next((one for one, known in other.items() if known == name), None)
        if first is not None:
            message = f"`{shortened(key)}` and `{shortened(first)}` are the same member: ARM ignores case in names"
            return Refusal(f"/{escaped(key)}", message, "remove one of them")
        other[key] = name
    return other


def is_resource_id(text: str) -> bool:
    """Check whether a text is the full ARM id of a resource and not a placeholder."""
    return bool(types_of(text)) and not is_placeholder(text)


def is_placeholder(value: object) -> bool:
    """Check whether a value is a placeholder: `string`, `{name}`, `<name>`."""
    if not isinstance(value, str):
        return False
    return value == "string" or _PLACEHOLDERS.search(value) is not None


def stands_for_value(text: str) -> bool:
    """Check whether a text is or contains a substitution token: a placeholder, `$NAME`, `$(name)`, `__NAME__`.

    Not for prose and programs, which can contain all of these for other reasons.
    """
    return is_placeholder(text) or bool(_TOKEN.search(text))


def looks_like_arm(value: object) -> bool:
    """Check whether a JSON value looks like an ARM resource, well formed or not."""
    if not isinstance(value, dict) or "_" in "".join(value):
        return False
    value = with_top_level_names(value)
    identity, kind = value.get("id"), value.get("type")
    if isinstance(kind, str) and "/" not in kind and not is_placeholder(kind) and "properties" not in value:
        return False  # a `type` in the output of a command
    if isinstance(identity, str) and types_of(identity):
        return True
    if "properties" not in value and not isinstance(identity, str):
        return False
    return isinstance(kind, str) and ("/" in kind or kind == "string")


def _written_type(identity: str, types: tuple[str, ...]) -> str:
    start = lowered(identity).rfind("/providers/")
    if start < 0:
        return types[0]
    named = identity[start + len("/providers/") :].split("/")
    return "/".join((named[0], *named[1::2]))


def _refuse_without_id(entry: JsonObject, pointer: str) -> Refusal:
    kind = entry.get("type")
    if is_placeholder(kind):
        return Refusal(pointer, "`id` or `type` is a placeholder, not a value", "replace the placeholder with a value")
    if isinstance(kind, str):
        other = next((key for key in entry if lowered(key) == "resourceid"), "")
        remedy = f"rename `{other}` to `id`" if other else "add its full ARM `id`"
        return Refusal(pointer, "a resource without `id`", remedy)
    if "properties" in entry:
        message = "a request body or a part of a resource: `properties` without `id` and `type`"
        return Refusal(pointer, message, _SAVE_GET)
    message = f"not a resource, because it has neither `id` nor `type`: {keys_seen(entry) or 'an empty object'}"
    return Refusal(pointer, message, _SAVE_GET, holds_nothing=True)


def _check_properties(entry: JsonObject, pointer: str) -> Placed | Refusal:
    properties = entry.get("properties")
    if isinstance(properties, dict):
        return nest_printed(entry, pointer) if is_printed_flat(entry["type"]) else Placed(entry, pointer)
    if properties is not None:
        return Refusal(pointer, f"`properties` is {kind_of(properties)}, not an object", _SAVE_GET)
    flat = [key for key in entry if key not in ENVELOPE]
    if flat and is_printed_flat(entry["type"]):
        return nest_printed(entry, pointer)
    if flat:
        message = f"a flattened listing: `{shortened(flat[0])}` is next to `id`, and `properties` is missing"
        return Refusal(pointer, message, _SAVE_GET)
    return Placed(entry, pointer, _NO_PROPERTIES)
