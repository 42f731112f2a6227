"""The azapi provider: ARM bodies as they are, of resources (`azapi_resource`) and over them (`azapi_update_resource`).

Source: https://registry.terraform.io/providers/Azure/azapi/latest/docs. Version 1 has `body` as a JSON string, version
2 as an object.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from policyeng.errors import InputError
from policyeng.models import Carried, JsonObject, lowered
from policyeng.sources.mapping import Field, mapped, text
from policyeng.sources.reading import Placed, Refusal
from policyeng.sources.service_made import service_made, with_attachment
from policyeng.sources.terraform.estate import Estate
from policyeng.sources.terraform.instances import MAX_DEPTH, Instance
from policyeng.sources.terraform.kinds import IDENTITY
from policyeng.strict.json_pointer import escaped, keys_of, value_at
from policyeng.strict.json_text import DEFAULT_MAX_BYTES, parse_json

_ROWS = (
    Field("/name", "/name", text),
    Field("/location", "/location", text),
    Field("/tags", "/tags"),
    *IDENTITY,
)
_UPDATED = "the plan only says what it changes of it; add what is deployed"
_WRITE_ONLY = "`sensitive_body` holds parts of it, and is not read; judge what is deployed instead"
#: What a body can hold beside what the attributes say.
_BODY = ("/properties", "/kind", "/sku")
_COMPUTE = "microsoft.machinelearningservices/workspaces/computes"


def brought(estate: Estate, instance: Instance) -> Placed | Refusal:
    """The ARM resource of an `azapi_resource`, or the part of one that an `azapi_update_resource` sets."""
    arm_type = estate.arm_type(instance)
    if "/" not in arm_type:
        remedy = "give it as `<namespace>/<type>@<version>`"
        return Refusal(instance.pointer, f"`{instance.address}` has no ARM type that is known", remedy)
    settled = estate.settled(instance, {})
    body = _body(instance)
    if body is None:
        remedy = "write it with `jsonencode` or as an object"
        return Refusal(f"{instance.attributes}/body", f"the `body` of `{instance.address}` is no JSON object", remedy)
    made = mapped(_ROWS, settled.values, instance.attributes, settled.unread)
    unreadable = {**made.unreadable, **_of_body(settled.unread)}
    if settled.values.get("sensitive_body") is not None or "/sensitive_body" in settled.unread:
        unreadable["/properties"] = _WRITE_ONLY
    resource = {"id": estate.identity(instance), "type": arm_type, **without_places(body, unreadable), **made.resource}
    if why := estate.why_unplaced(instance):
        unreadable["/id"] = why
    fields = {f"/{escaped(key)}": _place(instance, key) for key in body} | dict(made.fields)
    if instance.type == "azapi_update_resource":
        carried = Carried(pointers=("/id", "/type", *leaves(body)), reason=_UPDATED)
        return Placed(resource, instance.pointer, unreadable, carried, fields)
    if lowered(arm_type) == _COMPUTE:
        resource = with_attachment(resource)
    made_there = {at: why for at, why in service_made(arm_type).items() if value_at(resource, at) is None}
    return Placed(resource, instance.pointer, {**made_there, **unreadable}, None, fields)


def _body(instance: Instance) -> JsonObject | None:
    body = instance.values.get("body")
    if isinstance(body, str):
        try:
            body = parse_json(body.encode(), "body", max_bytes=DEFAULT_MAX_BYTES) if body.strip() else {}
        except InputError:
            return None
    if body is None:
        return {}
    return body if isinstance(body, dict) else None


def _of_body(unread: Mapping[str, str]) -> dict[str, str]:
    """By ARM pointer, why what the body says cannot be read."""
    found: dict[str, str] = {}
    for at, why in unread.items():
        if at in ("/body", ""):
            found |= dict.fromkeys(_BODY, why)
        elif at.startswith("/body/"):
            found[at.removeprefix("/body")] = why
    return found


def without_places(body: JsonObject, unreadable: Iterable[str]) -> JsonObject:
    """The body without the places that are unreadable, in which null stands or what may not stay."""
    for at in unreadable:
        body = _cut(body, keys_of(at))
    return body


def _cut(source: JsonObject, parts: list[str]) -> JsonObject:
    key, *rest = parts
    if key not in source:
        return source
    if not rest:
        return {other: value for other, value in source.items() if other != key}
    inner = source[key]
    return {**source, key: _cut(inner, rest)} if isinstance(inner, dict) else source


def _place(instance: Instance, key: str) -> str:
    at = f"{instance.attributes}/body"
    return at if isinstance(instance.values.get("body"), str) else f"{at}/{escaped(key)}"


def leaves(value: JsonObject, *, empty: bool = True) -> Iterator[str]:
    """The pointers of all that is not an object itself, or is one with nothing in it (unless not `empty`)."""
    waiting: list[tuple[str, object, int]] = [("", value, 0)]
    while waiting:
        pointer, inner, depth = waiting.pop()
        if isinstance(inner, dict) and inner and depth < MAX_DEPTH:
            waiting += ((f"{pointer}/{escaped(key)}", one, depth + 1) for key, one in inner.items())
        elif pointer and pointer not in ("/id", "/type") and (empty or inner != {}):
            yield pointer
