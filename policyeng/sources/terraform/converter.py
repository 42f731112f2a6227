"""Conversion of an instance of the azurerm provider to ARM shape by the table of its kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from typing import NamedTuple

from msgspec.structs import replace

from policyeng.facts import Facts
from policyeng.facts.catalogue import built_in_root
from policyeng.models import Carried, JsonObject, SourceNames, lowered
from policyeng.parsing.json_pointer import escaped, filled, keys_of, value_at
from policyeng.parsing.json_text import DEFAULT_MAX_BYTES, parse_json, shortened
from policyeng.sources import field_mapping
from policyeng.sources.arm_resource import attached, is_placeholder
from policyeng.sources.field_mapping import FieldMapping, list_names, mapped, put_value, without_nulls
from policyeng.sources.parsed import Placed
from policyeng.sources.terraform.instances import AFTER_APPLY, SENSITIVE, Instance
from policyeng.sources.terraform.related_resources import ZONE_GROUP
from policyeng.sources.terraform.resolution import KINDS, ResolvedInstances, SettledAttributes
from policyeng.sources.terraform.resource_types import IDENTITY_NAMED, BlockPresence, Blocks, Lent

ASSIGNMENT = "azurerm_role_assignment"
_DEFINITION = "azurerm_role_definition"
_ID, _NAME = "role_definition_id", "role_definition_name"
_BUILT_IN = "/providers/Microsoft.Authorization/roleDefinitions/"


def with_role(estate: ResolvedInstances, instance: Instance, settled: SettledAttributes) -> SettledAttributes:
    """Return the attributes of an assignment, with the name of its role replaced by an id."""
    name = settled.values.get(_NAME)
    is_named = isinstance(name, str) or estate.configuration.expression(instance, f"/{_NAME}") is not None
    other = _NAME if settled.values.get(_ID) is not None or not is_named else _ID
    values = {key: value for key, value in settled.values.items() if key != other}
    unread = {at: why for at, why in settled.unread.items() if at != f"/{other}"}
    if other == _ID and isinstance(name, str):
        found = _find_own_role(estate, name) or _find_built_in_role(name)
        if found:
            values[_NAME] = found
        else:
            unread[f"/{_NAME}"] = _unknown(name)
    return SettledAttributes(values, unread)


def _unknown(name: str) -> str:
    known = f"`{_NAME}` is `{shortened(name)}`, which is neither created here nor a known built-in role"
    return f"{known}; set `{_ID}`, or check the state after apply, too (`terraform show -json`)"


def _find_own_role(estate: ResolvedInstances, name: str) -> str:
    """Return the id of the document's custom role with a name; empty unless there is exactly one."""
    ids = {
        estate.identity(one)
        for one in estate.instances
        if one.type == _DEFINITION and lowered(str(one.values.get("name") or "")) == lowered(name)
    }
    return ids.pop() if len(ids) == 1 else ""


def _find_built_in_role(name: str) -> str:
    role = _catalogue().role(name)
    return f"{_BUILT_IN}{role.guid}" if role is not None and lowered(role.name) == lowered(name.strip()) else ""


@cache
def _catalogue() -> Facts:
    tables = {name: built_in_root() / "facts" / name / "data.json" for name in ("roles", "roles_elsewhere")}
    return Facts.from_document(
        {name: parse_json(path.read_bytes(), str(path), max_bytes=DEFAULT_MAX_BYTES) for name, path in tables.items()}
    )


_NOT_CARRIED = "the azurerm provider has no attribute for it; check the deployed resource, too"
_NOT_LENT = (
    "it is the `{source}` of the resource that `{by}` names, which is not in the document; "
    "add it, or check the deployed resource, too"
)
_SUBNET = "/subnet/id"
_ZONES = "privateDnsZoneConfigs"


def convert_instance(estate: ResolvedInstances, instance: Instance) -> Placed:
    """Return the ARM resource of an instance whose type is in `KINDS`."""
    kind = KINDS[instance.type]
    settled = estate.settled(instance, {**IDENTITY_NAMED, **kind.named}, kind.unstated)
    if instance.type == ASSIGNMENT:
        settled = with_role(estate, instance, settled)
    if kind.either:
        filled_in = {key: value for key, value in settled.values.items() if key not in kind.either or value != []}
        settled = settled._replace(values=filled_in)
    made = mapped(kind.table, settled.values, instance.attributes, _unresolved(kind.table, settled))
    unreadable = {**made.unreadable, **_within(kind.table, settled)}
    resource: JsonObject = {"id": estate.identity(instance), "type": kind.place.arm_type}
    resource |= without_nulls(made.resource)
    for pointer, value in kind.fixed.items():
        put_value(resource, pointer, value)
    for pointer in kind.lists:
        _convert_indexed(resource, pointer)
    for pointer, secrets in kind.secrets.items():
        _put_secret_kind(resource, unreadable, pointer, secrets, instance)
    for pointer, lent in kind.lent.items():
        if (value := _get_from_other(estate, settled, lent)) is not None:
            put_value(resource, pointer, value)
        else:
            unreadable[pointer] = _NOT_LENT.format(by=lent.by[1:], source=lent.source[1:])
    resource = attached(resource, unreadable)
    if why := estate.why_unplaced(instance):
        unreadable["/id"] = why
    unreadable |= _explain_unknown_network(resource, kind.table)
    carried, names = _list_carried(instance.type), _list_names(instance.type)
    return Placed(
        resource,
        instance.pointer,
        unreadable,
        carried,
        made.fields,
        names=replace(names, address=instance.address, base=instance.attributes),
    )


@cache
def _list_names(terraform_type: str) -> SourceNames:
    """Return the names of the fields of a type of resources."""
    table = KINDS[terraform_type].table
    units = frozenset(row.target for row in table if isinstance(row.bring, Blocks))
    return SourceNames(fields=list_names(table), units=units)


def convert_zone_group(estate: ResolvedInstances, instance: Instance) -> Placed | None:
    """Return the group of DNS zones that a private endpoint has, which is a resource of its own in ARM."""
    kind, block = ZONE_GROUP, "/private_dns_zone_group/0"
    settled = estate.settled(instance, kind.named)
    has_block = value_at(settled.values, block) is not None
    if not has_block and not any(at.startswith("/private_dns_zone_group") for at in settled.unread):
        return None
    made = mapped(kind.table, settled.values, instance.attributes, settled.unread)
    inside = {at: why for at, why in settled.unread.items() if at.startswith("/private_dns_zone_group")}
    unreadable = dict(made.unreadable)
    if inside and _ZONES not in made.resource.get("properties", {}):
        unreadable[f"/properties/{_ZONES}"] = next(iter(inside.values()))
    name = value_at(settled.values, f"{block}/name")
    above = estate.identity(instance)
    resource: JsonObject = {
        "id": f"{above}/privateDnsZoneGroups/{name if isinstance(name, str) else '{name}'}",
        "type": kind.place.arm_type,
        **made.resource,
    }
    if why := estate.why_unplaced(instance):
        unreadable["/id"] = why
    carried = field_mapping.list_carried_fields(resource, kind.table, _NOT_CARRIED, "/id", "/type")
    fields = {"/properties": f"{instance.attributes}{block}", **made.fields}
    return Placed(resource, f"{instance.attributes}{block}", unreadable, carried, fields)


@cache
def _list_carried(terraform_type: str) -> Carried:
    kind = KINDS[terraform_type]
    any_such: JsonObject = {"type": kind.place.arm_type}
    for pointer, value in kind.fixed.items():
        put_value(any_such, pointer, value)
    more = ("/id", "/type", "/properties/isAttachedCompute", *kind.fixed, *kind.foreign, *kind.lent, *kind.secrets)
    return field_mapping.list_carried_fields(any_such, kind.table, _NOT_CARRIED, *more)


def _put_secret_kind(
    resource: JsonObject,
    unreadable: dict[str, str],
    pointer: str,
    secrets: tuple[tuple[str, str], ...],
    instance: Instance,
) -> None:
    """Set a field to the kind of secret that an instance has, whose value is not read."""
    for attribute, word in secrets:
        reason = instance.unread.get(f"/{attribute}") if attribute else ""
        if reason == AFTER_APPLY:
            unreadable[pointer] = f"`{attribute}` is known only after apply; check the deployed resource, too"
            return
        if not attribute or reason == SENSITIVE or instance.values.get(attribute) not in (None, ""):
            put_value(resource, pointer, word)
            return


def _get_from_other(estate: ResolvedInstances, settled: SettledAttributes, lent: Lent) -> object:
    """Return a value from another resource of the document; None if it is missing."""
    arm_id = value_at(settled.values, lent.by)
    lender = estate.by_id(arm_id) if isinstance(arm_id, str) else None
    return value_at(lender.values, lent.source) if lender is not None else None


def _unresolved(table: tuple[FieldMapping, ...], settled: SettledAttributes) -> Mapping[str, str]:
    """Return why rows cannot be read: the value, or a part of a value that is converted as a unit."""
    unresolved = dict(settled.unread)
    for row in table:
        inside = [why for at, why in settled.unread.items() if at.startswith(f"{row.source}/")]
        if inside and not _is_present(row, settled) and not _in_parts(row, settled):
            unresolved[row.source] = inside[0]
    return unresolved


def _is_present(row: FieldMapping, settled: SettledAttributes) -> bool:
    """Check whether a row says that a block is there, which no unknown attribute of the block changes."""
    return isinstance(row.bring, BlockPresence) and value_at(settled.values, row.source) is not None


def _in_parts(row: FieldMapping, settled: SettledAttributes) -> bool:
    """Check whether an attribute is converted part by part: an object such as tags, or known blocks."""
    value = value_at(settled.values, row.source)
    if isinstance(row.bring, Blocks):
        return isinstance(value, list) and all(isinstance(block, dict) for block in value)
    return isinstance(value, dict)


def _within(table: tuple[FieldMapping, ...], settled: SettledAttributes) -> dict[str, str]:
    """Return why parts of attributes cannot be read, such as one tag."""
    found: dict[str, str] = {}
    for row in table:
        if row.target and not _is_present(row, settled) and _in_parts(row, settled):
            for at, why in settled.unread.items():
                if at.startswith(f"{row.source}/"):
                    inside = at[len(row.source) :]
                    parts = row.bring.targets(inside) if isinstance(row.bring, Blocks) else (inside,)
                    found |= {row.target + part: why for part in parts}
    return found


def _convert_indexed(resource: JsonObject, pointer: str) -> None:
    """Replace an object with indexes as keys by a list."""
    found = value_at(resource, pointer)
    if isinstance(found, dict):
        parent = value_at(resource, pointer.rpartition("/")[0])
        if isinstance(parent, dict):
            parent[pointer.rpartition("/")[2]] = [found[key] for key in sorted(found)]


def _explain_unknown_network(resource: JsonObject, table: tuple[FieldMapping, ...]) -> dict[str, str]:
    """Return why the network of a planned subnet is unknown."""
    return {
        f"{row.target.removesuffix('/id')}/{escaped('subscription')}": (
            "the plan does not name the subscription of the subnet; pass `--scope`"
        )
        for row in table
        if row.target.endswith(_SUBNET) and is_placeholder(value_at(resource, row.target))
    }


class _Fold(NamedTuple):
    """The target of a nested type: its parent type, the ARM pointer, and whether that is a list or an object."""

    parent: str
    pointer: str
    is_list: bool


_FOLDS: Mapping[str, _Fold] = {
    "microsoft.machinelearningservices/workspaces/outboundrules": _Fold(
        "microsoft.machinelearningservices/workspaces", "/properties/managedNetwork/outboundRules", is_list=False
    ),
    "microsoft.containerservice/managedclusters/agentpools": _Fold(
        "microsoft.containerservice/managedclusters", "/properties/agentPoolProfiles", is_list=True
    ),
}
#: The nested types, in lower case.
FOLDED = frozenset(_FOLDS)


def fold_children(every: Iterable[Placed]) -> list[Placed]:
    """Return the resources, with nested ones moved into their parents.

    A resource without its parent in the document stays. An unknown parent makes the field unreadable in all candidates.
    """
    whole: list[Placed] = []
    parts: dict[str, list[Placed]] = {}
    for placed in every:
        if lowered(placed.resource["type"]) in _FOLDS:
            above = placed.resource["id"].rpartition("/")[0].rpartition("/")[0]
            parts.setdefault(lowered(above), []).append(placed)
        else:
            whole.append(placed)
    joined = [_with(placed, parts.pop(lowered(placed.resource["id"]), ())) for placed in whole]
    homeless = {_fold_of(part): part for above, nested in parts.items() for part in nested if _is_open(above)}
    opened = [_opened(placed, homeless) for placed in joined]
    return [*opened, *(part for nested in parts.values() for part in nested)]


def _fold_of(part: Placed) -> _Fold:
    return _FOLDS[lowered(part.resource["type"])]


def _is_open(above: str) -> bool:
    """Check whether the last name of an id is unknown; the placeholder of a planned resource has a dot."""
    last = above.rpartition("/")[2]
    return is_placeholder(last) and "." not in last


def _opened(placed: Placed, homeless: Mapping[_Fold, Placed]) -> Placed:
    unreadable = {
        fold.pointer: f"it is known only after apply whether `{part.resource['id'].rpartition('/')[2]}` belongs to it"
        for fold, part in homeless.items()
        if fold.parent == lowered(placed.resource["type"])
    }
    return placed._replace(unreadable={**placed.unreadable, **unreadable}) if unreadable else placed


def _with(parent: Placed, parts: Sequence[Placed]) -> Placed:
    """Return the parent with its nested resources, their places and their unreadable parts."""
    resource: object = parent.resource
    unreadable, fields = dict(parent.unreadable), dict(parent.fields)
    for fold, several in groupby(parts, _fold_of):
        existing = value_at(resource, fold.pointer)
        listed = list(existing) if isinstance(existing, list) else []
        by_name = dict(existing) if isinstance(existing, dict) else {}
        for part in several:
            name, properties = part.resource.get("name"), part.resource.get("properties") or {}
            base = f"{fold.pointer}/{len(listed) if fold.is_list else escaped(str(name))}"
            if fold.is_list:
                listed.append({**({"name": name} if name else {}), **properties})
            elif name:
                by_name[str(name)] = properties
            else:
                base = fold.pointer
                unreadable[base] = next(iter(part.unreadable.values()), "a name is known only after apply")
                continue
            fields |= {base: part.pointer, **dict(_move(part.fields, base))}
            unreadable |= dict(_move(part.unreadable, base))
        resource = filled(resource, keys_of(fold.pointer), listed if fold.is_list else by_name)
    return parent._replace(
        resource=resource if isinstance(resource, dict) else parent.resource, unreadable=unreadable, fields=fields
    )


def _move(pointers: Mapping[str, str], base: str) -> Iterator[tuple[str, str]]:
    for pointer, value in pointers.items():
        if pointer.startswith("/properties/"):
            yield base + pointer.removeprefix("/properties"), value
        elif pointer == "/name":
            yield f"{base}/name", value
