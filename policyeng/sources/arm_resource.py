"""Reading of one entry as an ARM resource: as ARM writes it or as commands print it, without what the service sets."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache

from msgspec.structs import replace

from policyeng.facts.arm_casing import ENVELOPE, top_level_name
from policyeng.facts.ids import types_of
from policyeng.facts.letters import find_odd_letter
from policyeng.facts.words import is_blank
from policyeng.later import lazy_pattern
from policyeng.models import JsonObject, Problem, lowered
from policyeng.parsing.json_pointer import escaped, value_at
from policyeng.parsing.json_text import kind_of, shortened
from policyeng.schema import ResourceType, find_type, fold_name, list_types
from policyeng.sources.parsed import Placed, format_value, keys_seen, refuse

_CONNECTIONS = ("privateEndpointConnections",)
#: By lower-case type, the members with lists of resources that are flattened, too.
_PRINTED: Mapping[str, tuple[str, ...]] = {
    "microsoft.authorization/locks": (),
    "microsoft.authorization/policyassignments": (),
    "microsoft.authorization/policyexemptions": (),
    "microsoft.cognitiveservices/accounts": _CONNECTIONS,
    "microsoft.containerregistry/registries": _CONNECTIONS,
    "microsoft.insights/autoscalesettings": (),
    "microsoft.insights/components": (),
    "microsoft.insights/diagnosticsettings": (),
    "microsoft.insights/metricalerts": (),
    "microsoft.keyvault/vaults": _CONNECTIONS,
    "microsoft.network/privateendpoints": (
        "privateLinkServiceConnections",
        "manualPrivateLinkServiceConnections",
    ),
    "microsoft.network/privateendpoints/privatednszonegroups": ("privateDnsZoneConfigs",),
    "microsoft.network/virtualnetworks": ("subnets",),
    "microsoft.network/virtualnetworks/subnets": (),
    "microsoft.security/pricings": (),
    "microsoft.storage/storageaccounts": _CONNECTIONS,
}
#: By lower-case type, the members that commands print under another name.
_RENAMED: Mapping[str, Mapping[str, str]] = {
    "microsoft.storage/storageaccounts": {
        "enableHttpsTrafficOnly": "supportsHttpsTrafficOnly",
        "networkRuleSet": "networkAcls",
    }
}
_STATE = "provisioningState"
#: The members of a resource in another one that are not below its `properties`, in lower case: ARM ignores the case.
_OF_PARTS = frozenset({"etag", "id", "location", "name", "resourcegroup", "type"})


def is_printed_flat(arm_type: str) -> bool:
    """Check whether commands flatten the resources of a type."""
    return lowered(arm_type) in _PRINTED


def list_flattened(arm_type: str) -> tuple[str, ...]:
    """Return the JSON Pointers of lists of resources that are flattened within resources of a type."""
    return tuple(f"/properties/{key}" for key in _PRINTED.get(lowered(arm_type), ()))


def nest_printed(entry: JsonObject, pointer: str) -> Placed:
    """Return a resource in ARM's form; what has that form already is unchanged.

    Args:
        entry: of a type that commands flatten, with or without `properties`.
        pointer: its JSON Pointer in the document.
    """
    fields: dict[str, str] = {}
    kind = lowered(entry["type"])
    if isinstance(entry.get("properties"), dict):
        properties, base = entry["properties"], f"{pointer}/properties"
    else:
        renamed, properties, base = _RENAMED.get(kind, {}), {}, pointer
        for key, value in entry.items():
            if key not in ENVELOPE or key == _STATE:
                name = renamed.get(key, key)
                properties[name] = value
                fields[f"/properties/{escaped(name)}"] = f"{pointer}/{escaped(key)}"
    lists = {
        key: [
            _nest_part(part, f"/properties/{key}/{at}", f"{base}/{key}/{at}", fields) for at, part in enumerate(parts)
        ]
        for key in _PRINTED[kind]
        if isinstance(parts := properties.get(key), list) and any(map(_is_flat, parts))
    }
    if not fields:
        return Placed(entry, pointer)
    own = {key: value for key, value in entry.items() if key in ENVELOPE and key not in (_STATE, "properties")}
    return Placed({**own, "properties": {**properties, **lists}}, pointer, fields=fields)


def _is_flat(part: object) -> bool:
    if not isinstance(part, dict):
        return False
    names = set(map(lowered, part))
    return "properties" not in names and not names <= _OF_PARTS


def _nest_part(part: object, here: str, there: str, fields: dict[str, str]) -> object:
    if not isinstance(part, dict) or not _is_flat(part):
        return part
    fields.update(_find_places(part, here, there))
    own = {key: value for key, value in part.items() if lowered(key) in _OF_PARTS}
    return {**own, "properties": {key: value for key, value in part.items() if lowered(key) not in _OF_PARTS}}


def _find_places(part: JsonObject, here: str, there: str) -> Iterator[tuple[str, str]]:
    yield here, there
    for key in part:
        if lowered(key) not in _OF_PARTS:
            yield f"{here}/properties/{escaped(key)}", f"{there}/{escaped(key)}"


#: Why the properties of a resource in a list without them are unreadable; a resource that is put has none then.
NO_PROPERTIES = "the document lists the resource without its `properties`"
_SAVE_GET = "save the response of the REST API to GET (`az rest --method get --url <id>?api-version=...`)"
_PLACEHOLDERS = lazy_pattern(r"[{}<>]")
#: `$(name)` of Azure Pipelines anywhere; `$NAME` of a shell as the complete text; `__NAME__` of a token replacement
#: anywhere, except in lower case inside a name such as `team__ml__prod`. The limit of the length keeps the time linear.
_TOKEN = lazy_pattern(
    r"\$\(|\A\s*(?:azureml:)?\$\w+\s*\Z|__[A-Z][A-Z0-9_]{0,127}__|(?<![^\W_])__\w{1,128}__(?![^\W_])", re.ASCII
)


def read_entry(entry: object, pointer: str) -> Placed | Problem:
    """Read one JSON value as an ARM resource.

    A missing `type` is derived from a full ARM id. If `properties` is missing, it is reported as unreadable.
    """
    if isinstance(entry, dict) and _is_ordinary(entry):
        return Placed(entry, pointer)
    if not isinstance(entry, dict):
        return refuse(pointer, f"not an ARM resource: {kind_of(entry)} where an object should be", _SAVE_GET)
    if not entry.keys() <= ENVELOPE and (other := _find_respelled_keys(entry)):
        if isinstance(other, Problem):
            return replace(other, place=pointer + other.place)
        read = read_entry({other.get(key, key): value for key, value in entry.items()}, pointer)
        if isinstance(read, Problem):
            return read
        fields = {f"/{name}": f"{pointer}/{escaped(key)}" for key, name in other.items()}
        return read._replace(fields={**fields, **read.fields})
    if "_" in "".join(entry):
        key = next(key for key in entry if "_" in key)
        message = f"not an ARM resource: keys such as `{shortened(key)}` are from the output of a command"
        return refuse(pointer, message, _SAVE_GET, "ambiguous" if has_arm_properties(entry) else "part")
    identity, kind = entry.get("id"), entry.get("type")
    if "limit" in entry and "unit" in entry and "properties" not in entry:
        remedy = "list quotas under `quotas` in a native snapshot, with their region"
        return refuse(pointer, "a quota or usage entry, not a resource", remedy, kind="empty")
    if not isinstance(identity, str) or not identity:
        return _refuse_without_id(entry, pointer)
    types = types_of(identity)
    for name, stated in (("type", kind), ("id", type_in_id(identity) if types else "")):
        if isinstance(stated, str) and not is_placeholder(stated) and (misspelt := describe_misspelt("type", stated)):
            return refuse(f"{pointer}/{name}", misspelt, "write it in ASCII, without spaces", kind="ambiguous")
    if is_placeholder(identity) or is_placeholder(kind):
        return refuse(pointer, "`id` or `type` is a placeholder, not a value", "replace the placeholder with a value")
    if not types:
        if kind is None and "properties" not in entry:
            return _refuse_without_id(entry, pointer)
        message = f"`id` is not the full ARM id of a resource: `{shortened(identity)}`"
        return refuse(pointer, message, "give it as `/subscriptions/.../providers/<namespace>/<type>/<name>`")
    if kind is not None and not (isinstance(kind, str) and lowered(kind) in types):
        message = f"`id` has the type `{shortened(type_in_id(identity))}`, but `type` is {format_value(kind)}"
        return refuse(pointer, message, "correct the one that is wrong")
    return _check_properties(entry if kind else {**entry, "type": type_in_id(identity)}, pointer)


def _is_ordinary(entry: JsonObject) -> bool:
    """Check whether a value is a resource as ARM returns it; this is for speed, and most are."""
    if not entry.keys() <= ENVELOPE:
        return False
    identity, kind = entry.get("id"), entry.get("type")
    if type(identity) is not str or type(kind) is not str or type(entry.get("properties")) is not dict:
        return False
    key, folded = identity.lower(), kind.lower()
    head, _, tail = key.rpartition("/providers/")
    own = tail.split("/")
    return (
        head.startswith("/")
        and len(own) > 2
        and len(own) % 2 == 1
        and "/".join((own[0], *own[1::2])) == folded
        and "//" not in key
        and not key.endswith("/")
        and key.isascii()
        and key.isprintable()
        and " " not in key
        and "_" not in "".join(entry)
        and folded not in _PRINTED
        and not _PLACEHOLDERS.search(key)
    )


def with_top_level_names(entry: JsonObject) -> JsonObject:
    """Return an object with its resource keys in ARM's spelling, or unchanged if two keys have the same name."""
    other = {} if entry.keys() <= ENVELOPE else _find_respelled_keys(entry)
    if not other or isinstance(other, Problem):
        return entry
    return {other.get(key, key): value for key, value in entry.items()}


def _find_respelled_keys(entry: JsonObject) -> dict[str, str] | Problem:
    """Return the ARM spelling of each key that is spelled differently, or a refusal if two keys have the same name."""
    other: dict[str, str] = {}
    for key in entry:
        name = top_level_name(key)
        if name == key:
            continue
        first = name if name in entry else next((one for one, known in other.items() if known == name), None)
        if first is not None:
            message = f"`{shortened(key)}` and `{shortened(first)}` are the same member: ARM ignores case in names"
            return refuse(f"/{escaped(key)}", message, "remove one of them", kind="ambiguous")
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


def has_arm_properties(entry: JsonObject) -> bool:
    """Check whether a resource has properties of ARM; commands print a map of the user under the same name."""
    properties, kind = entry.get("properties"), entry.get("type")
    if not isinstance(properties, dict) or "/" not in str(kind or "/"):
        return False
    identity = entry.get("id")
    known = find_type(str(kind or (type_in_id(identity) if isinstance(identity, str) and types_of(identity) else "")))
    names = _properties_of(known) if known else _all_properties()
    return any(fold_name(name) in names for name in properties)


def _properties_of(known: ResourceType) -> Collection[str]:
    part = known.body.at("/properties")
    return part.spellings if part is not None else ()


@lru_cache(maxsize=1)
def _all_properties() -> frozenset[str]:
    """Return the names that any type has below `properties`, without case."""
    return frozenset(name for known in filter(None, map(find_type, list_types())) for name in _properties_of(known))


def looks_like_arm(value: object) -> bool:
    """Check whether a JSON value looks like an ARM resource, well formed or not."""
    if not isinstance(value, dict):
        return False
    has_other_keys = "_" in "".join(value)
    value = with_top_level_names(value)
    identity, kind = value.get("id"), value.get("type")
    if has_other_keys and not has_arm_properties(value):
        return False  # the output of a command
    if isinstance(kind, str) and "/" not in kind and not is_placeholder(kind) and "properties" not in value:
        return False  # a `type` in the output of a command
    if isinstance(identity, str) and types_of(identity):
        return True
    if "properties" not in value and not isinstance(identity, str):
        return False
    return isinstance(kind, str) and ("/" in kind or kind == "string")


def describe_misspelt(member: str, text: str) -> str:
    """Return why a text cannot be a type, or another technical name that a member states; empty if it can."""
    letter = find_odd_letter(text)
    return f"`{member}` contains {letter}, so it names nothing: `{shortened(ascii(text)[1:-1])}`" if letter else ""


def type_in_id(identity: str) -> str:
    """Return the type in the ARM id of a resource, as it is written."""
    start = lowered(identity).rfind("/providers/")
    if start < 0:
        return types_of(identity)[0]
    named = identity[start + len("/providers/") :].split("/")
    return "/".join((named[0], *named[1::2]))


def _refuse_without_id(entry: JsonObject, pointer: str) -> Problem:
    kind = entry.get("type")
    if is_placeholder(kind):
        return refuse(pointer, "`id` or `type` is a placeholder, not a value", "replace the placeholder with a value")
    if isinstance(kind, str):
        other = next((key for key in entry if lowered(key) == "resourceid"), "")
        remedy = f"rename `{other}` to `id`" if other else "add its full ARM `id`"
        return refuse(pointer, "a resource without `id`", remedy)
    if "properties" in entry:
        message = "a request body or a part of a resource: `properties` without `id` and `type`"
        return refuse(pointer, message, _SAVE_GET)
    message = f"not a resource, because it has neither `id` nor `type`: {keys_seen(entry) or 'an empty object'}"
    return refuse(pointer, message, _SAVE_GET, kind="empty")


def _check_properties(entry: JsonObject, pointer: str) -> Placed | Problem:
    properties = entry.get("properties")
    if isinstance(properties, dict):
        return nest_printed(entry, pointer) if is_printed_flat(entry["type"]) else Placed(entry, pointer)
    if properties is not None:
        return refuse(pointer, f"`properties` is {kind_of(properties)}, not an object", _SAVE_GET)
    flat = [key for key in entry if key not in ENVELOPE]
    if flat and is_printed_flat(entry["type"]):
        return nest_printed(entry, pointer)
    if flat:
        message = f"a flattened listing: `{shortened(flat[0])}` is next to `id`, and `properties` is missing"
        return refuse(pointer, message, _SAVE_GET)
    return Placed(entry, pointer, {"/properties": NO_PROPERTIES})


_REASON = "the service sets it when it creates the resource, and this input describes the resource before that"
_POINTERS: Mapping[str, tuple[str, ...]] = {
    "microsoft.machinelearningservices/workspaces": (
        "/properties/provisioningState",
        "/properties/privateEndpointConnections",
        "/properties/privateLinkCount",
        "/properties/workspaceId",
        "/properties/managedNetwork/status",
    ),
    "microsoft.machinelearningservices/workspaces/computes": (
        "/properties/provisioningState",
        "/properties/properties/state",
        "/properties/properties/lastOperation",
        "/properties/properties/connectivityEndpoints",
        "/properties/properties/osImageMetadata",
        "/properties/properties/errors",
        "/properties/properties/currentNodeCount",
        "/properties/properties/nodeStateCounts",
    ),
    "microsoft.containerservice/managedclusters": ("/properties/powerState", "/properties/provisioningState"),
    **dict.fromkeys(
        (
            "microsoft.cognitiveservices/accounts",
            "microsoft.containerregistry/registries",
            "microsoft.keyvault/vaults",
            "microsoft.storage/storageaccounts",
        ),
        ("/properties/privateEndpointConnections", "/properties/provisioningState"),
    ),
}
#: By a field of these, the object that it is in and that the service only adds to: without the object, it has none.
_ADDED_TO = {"/properties/managedNetwork/status": "/properties/managedNetwork"}
_COMPUTE = "microsoft.machinelearningservices/workspaces/computes"
#: The pointers that determine whether a compute is attached; for AKS, `resourceId` does too.
_ATTACHED_BY = ("", "/properties", "/properties/computeType")


def service_made(arm_type: str, reason: str = _REASON) -> dict[str, str]:
    """Return the fields that the service sets for a resource type, with the reason why each is not known."""
    pointers = _POINTERS.get(lowered(arm_type), ("/properties/provisioningState",))
    return dict.fromkeys(pointers, reason)


def drop_additions(resource: JsonObject, unreadable: Mapping[str, str]) -> Mapping[str, str]:
    """Return why parts of a resource cannot be read, without fields of the service in an object that is not stated.

    Args:
        resource: of any type.
        unreadable: by JSON Pointer into it, why a part cannot be read.
    """
    absent = {field for field, above in _ADDED_TO.items() if field in unreadable and value_at(resource, above) is None}
    return {field: reason for field, reason in unreadable.items() if field not in absent} if absent else unreadable


def attached(resource: JsonObject, unreadable: dict[str, str]) -> JsonObject:
    """Add `isAttachedCompute` to a resource that is a compute; if it is not known, add the reason to `unreadable`.

    Args:
        resource: of any type.
        unreadable: by JSON Pointer into it, why a part cannot be read.
    """
    if lowered(resource["type"]) != _COMPUTE:
        return resource
    properties = resource.get("properties")
    stated: JsonObject = properties if isinstance(properties, dict) else {}
    of_its_kind = ("/properties/resourceId",) if _is_aks(stated.get("computeType")) else ()
    reason = next((unreadable[pointer] for pointer in (*_ATTACHED_BY, *of_its_kind) if pointer in unreadable), "")
    if reason and "isAttachedCompute" not in stated:
        unreadable["/properties/isAttachedCompute"] = reason
        return resource
    return with_attachment(resource)


def with_attachment(resource: JsonObject) -> JsonObject:
    """Add the `isAttachedCompute` that the service will set for a compute; it follows from the compute's type.

    Source: the OpenAPI, "whether the compute was provisioned by user and brought from outside".
    """
    properties = resource.get("properties")
    if not isinstance(properties, dict) or "isAttachedCompute" in properties:
        return resource
    kind = properties.get("computeType")
    kind = lowered(kind) if isinstance(kind, str) else ""
    if kind in ("amlcompute", "computeinstance"):
        attached = False
    elif _is_aks(kind):
        attached = not is_blank(properties.get("resourceId"))
    elif kind in ("kubernetes", "virtualmachine", "hdinsight", "databricks", "datalakeanalytics", "synapsespark"):
        attached = True
    else:
        return resource
    return {**resource, "properties": {**properties, "isAttachedCompute": attached}}


def _is_aks(kind: object) -> bool:
    return isinstance(kind, str) and lowered(kind) == "aks"
