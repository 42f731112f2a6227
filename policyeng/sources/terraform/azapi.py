"""The azapi provider: ARM bodies as they are, of resources (`azapi_resource`) and over them (`azapi_update_resource`).

Source: https://registry.terraform.io/providers/Azure/azapi/latest/docs. Version 1 has `body` as a JSON string, version
2 as an object.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from policyeng.errors import InputError
from policyeng.facts.arm_casing import respell, respell_pointer
from policyeng.models import Carried, JsonObject, Problem, SourceNames, lowered
from policyeng.parsing.json_pointer import escaped, filled, keys_of, value_at
from policyeng.parsing.json_text import DEFAULT_MAX_BYTES, parse_json
from policyeng.schema import find_type
from policyeng.sources.arm_resource import attached, describe_misspelt, is_placeholder, service_made
from policyeng.sources.field_mapping import FieldMapping, list_names, mapped, text, without_nulls
from policyeng.sources.parsed import Placed, refuse
from policyeng.sources.templates import carrier_of
from policyeng.sources.terraform.instances import MAX_DEPTH, Instance
from policyeng.sources.terraform.resolution import AZAPI_UPDATE, ResolvedInstances
from policyeng.sources.terraform.resource_types import IDENTITY

_ROWS = (
    FieldMapping("/name", "/name", text),
    FieldMapping("/location", "/location", text),
    FieldMapping("/tags", "/tags"),
    *IDENTITY,
)
#: Where the fields of a resource are among the attributes.
_NAMES = {**list_names(_ROWS), **{f"/{part}": f"/body/{part}" for part in ("properties", "kind", "sku")}}
_UPDATED = "an update states only its changes; add the deployed resource"
_WRITE_ONLY = "`sensitive_body` contains parts of it and is not read; check the deployed resource instead"
#: The parts of a body that are not attributes.
_BODY = ("/properties", "/kind", "/sku")
_ENVELOPE = frozenset({"identity", "kind", "location", "name", "properties", "sku", "tags", "type"})
_NOT_IN_STATE = (
    "azapi stores only the `body` in the state, and its `output` does not contain it; "
    "add it to `response_export_values`, or check the deployed resource instead"
)


def convert_azapi(estate: ResolvedInstances, instance: Instance) -> Placed | Problem:
    """Return the ARM resource of an `azapi_resource`, or the part that an `azapi_update_resource` sets."""
    arm_type = estate.arm_type(instance)
    if "/" not in arm_type:
        remedy = "set `type` to `<namespace>/<type>@<version>`"
        return refuse(instance.pointer, f"the ARM type of `{instance.address}` is unknown", remedy)
    if misspelt := describe_misspelt("type", arm_type):
        return refuse(f"{instance.attributes}/type", misspelt, "write it in ASCII, without spaces")
    settled = estate.settled(instance, {})
    body = _object(instance, "body")
    if body is None:
        remedy = "write it with `jsonencode` or as an object"
        return refuse(f"{instance.attributes}/body", f"the `body` of `{instance.address}` is not a JSON object", remedy)
    made = mapped(_ROWS, settled.values, instance.attributes, settled.unread)
    body, of_body = _respell(instance, body, arm_type)
    unreadable = {**made.unreadable, **_of_body(settled.unread, arm_type)}
    if settled.values.get("sensitive_body") is not None or "/sensitive_body" in settled.unread:
        unreadable["/properties"] = _WRITE_ONLY
    own: JsonObject = {"id": estate.identity(instance), "type": arm_type, **made.resource}
    resource = {**without_places(body, unreadable), **own}
    if instance.type != AZAPI_UPDATE:  # an update removes what it sets to null
        resource = _without_nulls(resource)
    if why := estate.why_unplaced(instance):
        unreadable["/id"] = why
    fields = {**of_body, **made.fields}
    names = SourceNames(address=instance.address, base=instance.attributes, fields=_NAMES)
    if instance.type == AZAPI_UPDATE:
        carried = Carried(pointers=("/id", "/type", *list_leaves(body)), reason=_UPDATED)
        return Placed(resource, instance.pointer, unreadable, carried, fields, names=names)
    resource = attached(resource, unreadable)
    return _with_made(estate, instance, Placed(resource, instance.pointer, unreadable, None, fields, names=names))


def _with_made(estate: ResolvedInstances, instance: Instance, placed: Placed) -> Placed:
    """Return the resource with the service's values from `output`, and why the others are unknown."""
    arm_type = placed.resource["type"]
    if not estate.is_state and len(instance.before) <= 1:  # it is created, or replaced
        made = service_made(arm_type)
        output: JsonObject = {}
    else:
        made, output = service_made(arm_type, _NOT_IN_STATE), _object(instance, "output") or {}
    resource, unreadable, fields = placed.resource, dict[str, str](), dict(placed.fields)
    for at, why in made.items():
        if value_at(resource, at) is None and (known := value_at(output, at)) is not None:
            filled_in = filled(resource, keys_of(at), known)
            resource = filled_in if isinstance(filled_in, dict) else resource
            fields[at] = _place(instance, "output", at)
        elif value_at(resource, at) is None:
            unreadable[at] = why
    return placed._replace(resource=resource, unreadable={**unreadable, **placed.unreadable}, fields=fields)


def _respell(instance: Instance, body: JsonObject, arm_type: str) -> tuple[JsonObject, dict[str, str]]:
    """Return the body with ARM's names, and the places of the parts that differ from their ARM pointers."""
    tops = {key: _top(key, arm_type) for key in body}
    names = {key: key if top in body else top for key, top in tops.items()}
    fields = {f"/{escaped(name)}": _place(instance, "body", f"/{escaped(key)}") for key, name in names.items()}
    spelled = {name: body[key] for key, name in names.items()}
    if "properties" not in spelled:
        return spelled, fields
    inner: dict[str, str] = {}
    spelled["properties"] = respell(spelled["properties"], arm_type, inner, fields["/properties"], "/properties")
    if isinstance(instance.values.get("body"), str):
        inner = dict.fromkeys(inner, fields["/properties"])
    return spelled, {**fields, **inner}


def _top(key: str, arm_type: str) -> str:
    """Return a key of a body in ARM's spelling."""
    without_case = find_type(arm_type) is not None or carrier_of(arm_type, {}) is not None
    return lowered(key) if without_case and lowered(key) in _ENVELOPE else key


def _object(instance: Instance, attribute: str) -> JsonObject | None:
    """Return an attribute that is an object or its JSON text; empty if it is absent, None for other values."""
    value = instance.values.get(attribute)
    if isinstance(value, str):
        try:
            value = parse_json(value.encode(), attribute, max_bytes=DEFAULT_MAX_BYTES) if value.strip() else {}
        except InputError:
            return None
    if value is None:
        return {}
    return value if isinstance(value, dict) else None


def _of_body(unread: Mapping[str, str], arm_type: str) -> dict[str, str]:
    """Return by ARM pointer why parts of the body cannot be read."""
    found: dict[str, str] = {}
    for at, why in unread.items():
        if at in ("/body", ""):
            found |= dict.fromkeys(_BODY, why)
        elif at.startswith("/body/"):
            first, _, rest = at.removeprefix("/body/").partition("/")
            top = f"/{_top(first, arm_type)}"
            found[top + (respell_pointer(f"/{rest}", arm_type, top) if rest else "")] = why
    return found


def _without_nulls(resource: JsonObject) -> JsonObject:
    """Return a resource without null members, which ARM takes as absent; a template in it has its own nulls."""
    return resource if carrier_of(resource["type"], resource) is not None else without_nulls(resource)


def without_places(body: JsonObject, unreadable: Iterable[str]) -> JsonObject:
    """Return the body without the places that are unreadable."""
    for at in unreadable:
        body = _shorten(body, keys_of(at))
    return body


def _shorten(source: JsonObject, parts: list[str]) -> JsonObject:
    key, *rest = parts
    if key not in source:
        return source
    if not rest:
        return {other: value for other, value in source.items() if other != key}
    inner = source[key]
    return {**source, key: _shorten(inner, rest)} if isinstance(inner, dict) else source


def _place(instance: Instance, attribute: str, pointer: str) -> str:
    """Return the place of a part of an attribute; for JSON text, the place of the attribute."""
    at = f"{instance.attributes}/{attribute}"
    return at if isinstance(instance.values.get(attribute), str) else at + pointer


def list_leaves(value: JsonObject, *, empty: bool = True) -> Iterator[str]:
    """Yield the pointers of values that are not objects, and of empty objects if `empty`."""
    waiting: list[tuple[str, object, int]] = [("", value, 0)]
    while waiting:
        pointer, inner, depth = waiting.pop()
        if isinstance(inner, dict) and inner and depth < MAX_DEPTH:
            waiting += ((f"{pointer}/{escaped(key)}", one, depth + 1) for key, one in inner.items())
        elif pointer and pointer not in ("/id", "/type") and (empty or inner != {}):
            yield pointer


_OWN = ("/id", "/type", "/name")


class Update(NamedTuple):
    """An `azapi_update_resource` and the part of a resource that it sets."""

    instance: Instance
    part: Placed


class Updated(NamedTuple):
    """The updated resources, and the updates of resources that are not in the document."""

    whole: list[Placed]
    parts: list[Placed]


def updated(estate: ResolvedInstances, every: Iterable[Placed], updates: Iterable[Update]) -> Updated:
    """Apply updates to their resources; ambiguous updates come last."""
    all_placed = list(every)
    count = len(all_placed)
    places: dict[str, dict[str, list[int]]] = {}
    for at, one in enumerate(all_placed):
        _record_place(places, one, at)
    aims = [(update, estate.is_aimed(update.instance)) for update in updates]
    for update, aimed in sorted(aims, key=lambda pair: not pair[1]):
        same_type, key = places.get(lowered(update.part.resource["type"]), {}), lowered(update.part.resource["id"])
        exact = same_type.get(key, ()) if aimed else ()
        for at in exact:
            all_placed[at] = _over(all_placed[at], update.part)
        possible = [at for one, indexes in same_type.items() if not aimed or _may_be(one, key) for at in indexes]
        for at in () if exact else possible:
            all_placed[at] = _remove_ambiguous(all_placed[at], update, _why(update, aimed=aimed))
        if not exact and not (possible and _is_within(estate, update.instance)):
            _record_place(places, update.part, len(all_placed))
            all_placed.append(update.part)
    return Updated(all_placed[:count], all_placed[count:])


def _is_within(estate: ResolvedInstances, update: Instance) -> bool:
    """Check whether the `resource_id` of an update comes only from managed resources of its type."""
    found = estate.configuration.sources(update, "/resource_id")
    wanted = lowered(estate.arm_type(update))
    ours = (not one.is_data and lowered(estate.arm_type(one)) == wanted for one in found.instances)
    return found.whole and bool(found.instances) and all(ours)


def _record_place(places: dict[str, dict[str, list[int]]], placed: Placed, at: int) -> None:
    """Record the place of a resource by its type, then by its id."""
    ids = places.setdefault(lowered(placed.resource["type"]), {})
    ids.setdefault(lowered(placed.resource["id"]), []).append(at)


def _why(update: Update, *, aimed: bool) -> str:
    setting = f"`{update.instance.address}` may set it"
    if aimed:
        return f"{setting}: it updates `{update.part.resource['id']}`, which may be this resource; pass `--scope`"
    return f"{setting}: the resource that it updates is known only after apply; check the state after apply, too"


def _may_be(one: str, other: str) -> bool:
    """Check whether two ids in lower case can be equal once all of their names are known."""
    pairs = list(zip(ours := one.split("/"), theirs := other.split("/"), strict=False))
    open_still = (left == right or is_placeholder(left) or is_placeholder(right) for left, right in pairs)
    return len(ours) == len(theirs) and all(open_still)


def _remove_ambiguous(placed: Placed, update: Update, why: str) -> Placed:
    """Return the resource without the fields that an ambiguous update sets."""
    touched = dict.fromkeys((*_set(update.part), *_unread(update.part)), why)
    return placed._replace(
        resource=without_places(placed.resource, touched),
        unreadable={**placed.unreadable, **touched},
    )


def _over(placed: Placed, update: Placed) -> Placed:
    settings = {key: value for key, value in update.resource.items() if f"/{key}" not in _OWN}
    places = tuple(_set(update))
    unreadable = {
        at: why for at, why in placed.unreadable.items() if not any(f"{at}/".startswith(f"{one}/") for one in places)
    }
    carried = placed.carried
    if carried is not None and update.carried is not None:
        carried = Carried(pointers=(*carried.pointers, *places), reason=carried.reason)
    unknown = _unread(update)
    return placed._replace(
        resource=without_places(_without_nulls(_merged(placed.resource, settings)), unknown),
        unreadable={**unreadable, **unknown},
        carried=carried,
        fields={**placed.fields, **{one: _find_place(update.fields, one) for one in places}},
    )


def _set(update: Placed) -> Iterator[str]:
    """Yield the pointers that an update sets; an empty object changes nothing."""
    settings = {key: value for key, value in update.resource.items() if f"/{key}" not in _OWN}
    return list_leaves(settings, empty=False)


def _unread(update: Placed) -> dict[str, str]:
    """Return by pointer why values of an update cannot be read."""
    return {at: why for at, why in update.unreadable.items() if at not in _OWN}


def _find_place(fields: Mapping[str, str], pointer: str) -> str:
    """Return the place of a pointer in the document, by its nearest parent in `fields`."""
    above = pointer
    while above not in fields and above:
        above = above.rpartition("/")[0]
    return fields.get(above, "") + pointer[len(above) :]


def _merged(base: JsonObject, over: JsonObject) -> JsonObject:
    merged = dict(base)
    for key, value in over.items():
        existing = merged.get(key)
        merged[key] = _merged(existing, value) if isinstance(existing, dict) and isinstance(value, dict) else value
    return merged
