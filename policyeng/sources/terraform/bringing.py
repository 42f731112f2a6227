"""One instance of the azurerm provider brought into ARM shape by the table of its kind."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from policyeng.models import Carried, JsonObject
from policyeng.sources import mapping
from policyeng.sources.arm_entry import is_placeholder
from policyeng.sources.mapping import Field, mapped, put
from policyeng.sources.reading import Placed
from policyeng.sources.service_made import attached
from policyeng.sources.terraform import roles
from policyeng.sources.terraform.estate import KINDS, Estate, Settled
from policyeng.sources.terraform.instances import Instance
from policyeng.sources.terraform.kinds import Blocks, Lent
from policyeng.strict.json_pointer import escaped, value_at

_NOT_CARRIED = "the azurerm provider has no attribute for it; check what is deployed, too"
_NOT_LENT = "it is the `{source}` of what `{by}` names, which is not here; add it, or check what is deployed, too"
_SUBNET = "/subnet/id"


def brought(estate: Estate, instance: Instance) -> Placed:
    """The ARM resource of an instance whose type is among `KINDS`."""
    kind = KINDS[instance.type]
    settled = estate.settled(instance, kind.named, kind.unstated)
    if instance.type == roles.ASSIGNMENT:
        settled = roles.with_role(estate, instance, settled)
    made = mapped(kind.table, settled.values, instance.attributes, _unresolved(kind.table, settled))
    unreadable = {**made.unreadable, **_within(kind.table, settled)}
    resource: JsonObject = {"id": estate.identity(instance), "type": kind.place.arm_type}
    if isinstance(made.resource.get("tags"), dict):
        made.resource["tags"] = {key: value for key, value in made.resource["tags"].items() if value is not None}
    resource |= made.resource
    for pointer, value in kind.fixed.items():
        put(resource, pointer, value)
    for pointer in kind.lists:
        _listed(resource, pointer)
    for pointer, lent in kind.lent.items():
        if (value := _borrowed(estate, settled, lent)) is not None:
            put(resource, pointer, value)
        else:
            unreadable[pointer] = _NOT_LENT.format(by=lent.by[1:], source=lent.source[1:])
    resource = attached(resource, unreadable)
    if why := estate.why_unplaced(instance):
        unreadable["/id"] = why
    unreadable |= _elsewhere(resource, kind.table)
    return Placed(resource, instance.pointer, unreadable, _carried(instance.type), made.fields)


@cache
def _carried(terraform_type: str) -> Carried:
    kind = KINDS[terraform_type]
    any_such: JsonObject = {"type": kind.place.arm_type}
    for pointer, value in kind.fixed.items():
        put(any_such, pointer, value)
    more = ("/id", "/type", "/properties/isAttachedCompute", *kind.fixed, *kind.foreign, *kind.lent)
    return mapping.carried(any_such, kind.table, _NOT_CARRIED, *more)


def _borrowed(estate: Estate, settled: Settled, lent: Lent) -> object:
    """What another resource of the document lends; None where it is not there, or does not say it."""
    arm_id = value_at(settled.values, lent.by)
    lender = estate.by_id(arm_id) if isinstance(arm_id, str) else None
    return value_at(lender.values, lent.source) if lender is not None else None


def _unresolved(table: tuple[Field, ...], settled: Settled) -> Mapping[str, str]:
    """Why rows cannot be read: what they begin with, or a part of what is not taken part by part."""
    unresolved = dict(settled.unread)
    for row in table:
        inside = [why for at, why in settled.unread.items() if at.startswith(f"{row.source}/")]
        if inside and not _in_parts(row, settled):
            unresolved[row.source] = inside[0]
    return unresolved


def _in_parts(row: Field, settled: Settled) -> bool:
    """Whether an attribute is taken part by part: an object such as tags, or blocks that are all there."""
    value = value_at(settled.values, row.source)
    if isinstance(row.bring, Blocks):
        return isinstance(value, list) and all(isinstance(block, dict) for block in value)
    return isinstance(value, dict)


def _within(table: tuple[Field, ...], settled: Settled) -> dict[str, str]:
    """Why parts of attributes cannot be read that are taken part by part, such as one tag."""
    found: dict[str, str] = {}
    for row in table:
        if row.target and _in_parts(row, settled):
            for at, why in settled.unread.items():
                if at.startswith(f"{row.source}/"):
                    inside = at[len(row.source) :]
                    parts = row.bring.targets(inside) if isinstance(row.bring, Blocks) else (inside,)
                    found |= {row.target + part: why for part in parts}
    return found


def _listed(resource: JsonObject, pointer: str) -> None:
    """Make a list of what a table filled by place."""
    found = value_at(resource, pointer)
    if isinstance(found, dict):
        parent = value_at(resource, pointer.rpartition("/")[0])
        if isinstance(parent, dict):
            parent[pointer.rpartition("/")[2]] = [found[key] for key in sorted(found)]


def _elsewhere(resource: JsonObject, table: tuple[Field, ...]) -> dict[str, str]:
    """Why it is open which network a subnet belongs to that the plan makes somewhere."""
    return {
        f"{row.target.removesuffix('/id')}/{escaped('subscription')}": (
            "the plan does not say which subscription the subnet is in; give `--scope`"
        )
        for row in table
        if row.target.endswith(_SUBNET) and is_placeholder(value_at(resource, row.target))
    }
