"""The definition of a Terraform resource type: its ARM type, its parent, and the table of its attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from policyeng.models import JsonObject
from policyeng.parsing.json_pointer import list_index
from policyeng.sources.field_mapping import FieldMapping, UnfitError, mapped, text

WORKSPACE = "Microsoft.MachineLearningServices/workspaces"
SUBNET = "Microsoft.Network/virtualNetworks/subnets"
CLUSTER = "Microsoft.ContainerService/managedClusters"


class Addressed(NamedTuple):
    """How the id of a resource is made that does not exist yet.

    Attributes:
        arm_type: such as `Microsoft.Network/virtualNetworks/subnets`.
        parent: the attribute with the id of its parent; empty for a resource in the resource group that it names.
        within: the attribute with the name of its parent below that, such as `virtual_network_name`.
        name: the attribute with its name.
        in_subscription: whether it is in the subscription, not in a resource group.
    """

    arm_type: str
    parent: str = ""
    within: str = ""
    name: str = "name"
    in_subscription: bool = False


class Unstated(NamedTuple):
    """An attribute that is computed unless the configuration sets it.

    Attributes:
        source: its JSON Pointer in the attributes.
        value: what the provider then requests; None for nothing, so Azure's default applies.
        unless: a pointer; if there is a value, the attribute is known only after apply.
    """

    source: str
    value: object = None
    unless: str = ""


class Lent(NamedTuple):
    """What the provider takes from another resource: the attribute with its id, and the attribute there."""

    by: str
    source: str


class TerraformResourceType(NamedTuple):
    """One kind of resource.

    Attributes:
        place: how its id is made.
        table: its attributes; a row without a target is known, but no policy checks it.
        fixed: by ARM pointer, what follows from the kind alone.
        foreign: ARM pointers that no resource of the kind has, though policies inspect them of others.
        named: by attribute pointer, the ARM type of the resource that it names; empty for any.
        unstated: attributes that are computed unless the configuration sets them.
        lists: ARM pointers at which the table fills places of a list.
        lent: by ARM pointer, what the provider takes from another resource.
        either: attributes of which one has the blocks of a field, so an empty one means nothing.
        secrets: by ARM pointer, attributes with secrets and the value that the field has if one of them is set; the
            last value applies if none is.
    """

    place: Addressed
    table: tuple[FieldMapping, ...]
    fixed: Mapping[str, object] = {}
    foreign: tuple[str, ...] = ()
    named: Mapping[str, str] = {}
    unstated: tuple[Unstated, ...] = ()
    lists: tuple[str, ...] = ()
    lent: Mapping[str, Lent] = {}
    either: tuple[str, ...] = ()
    secrets: Mapping[str, tuple[tuple[str, str], ...]] = {}


def passed(*names: str) -> tuple[FieldMapping, ...]:
    """Return rows of attributes that no policy checks."""
    return tuple(FieldMapping(f"/{name}", "") for name in names)


def convert_identity(value: object) -> object:
    """Convert the type of an identity to ARM's, without the provider's space after the comma."""
    return str(text(value)).replace(", ", ",")


def keys(value: object) -> JsonObject:
    """Convert a list of ids to ARM's object of user-assigned identities."""
    if isinstance(value, list) and all(isinstance(entry, str) for entry in value):
        return {entry: {} for entry in value}
    raise UnfitError("a list of ids")


def access(value: object) -> object:
    """Convert a boolean to `Enabled` or `Disabled`."""
    if isinstance(value, bool):
        return "Enabled" if value else "Disabled"
    raise UnfitError("true or false")


@dataclass(frozen=True, slots=True)
class BlockPresence:
    """A converter of a block to what having it means, whatever of its attributes is known.

    Attributes:
        present: the ARM value with the block.
        absent: the ARM value without it, where the configuration has an empty list of blocks.
    """

    present: str
    absent: str | None = None

    def __call__(self, value: object) -> object:
        """Return the ARM value.

        Raises:
            UnfitError: the value is neither a block nor a list of blocks.
        """
        if not isinstance(value, list | dict):
            raise UnfitError("a block")
        return self.present if value or isinstance(value, dict) else self.absent


@dataclass(frozen=True, slots=True)
class Blocks:
    """A converter of a list of blocks by a table.

    Attributes:
        table: its rows, with pointers within a block and within what it becomes.
        fixed: the default fields of every converted block.
        numbered: they become an object with the keys `1`, `2`, ... and no list.
    """

    table: tuple[FieldMapping, ...]
    fixed: Mapping[str, object] = field(default_factory=dict)
    numbered: bool = False

    def __call__(self, value: object) -> object:
        """Return the ARM value.

        Raises:
            UnfitError: the value is not a list of blocks, or a block has an invalid value.
        """
        if not isinstance(value, list) or not all(isinstance(block, dict) for block in value):
            raise UnfitError("a list of blocks")
        every = [mapped(self.table, block, "") for block in value]
        if any(one.unreadable for one in every):
            raise UnfitError(
                f"a list of blocks in which {next(why for one in every for why in one.unreadable.values())}"
            )
        made = [{**self.fixed, **one.resource} for one in every]
        return {str(at): one for at, one in enumerate(made, 1)} if self.numbered else made

    def targets(self, inside: str) -> tuple[str, ...]:
        """Return the ARM pointers of a pointer within the list (`/0/memory`); empty if no policy checks it."""
        _, at, *rest = inside.split("/")
        place = list_index(at)
        number = str(place + 1) if self.numbered and place is not None else at
        within = f"/{'/'.join(rest)}/" if rest else "/"
        rows = (row for row in self.table if within.startswith(f"{row.source}/") or f"{row.source}/".startswith(within))
        return tuple(f"/{number}{row.target}" for row in rows)


#: What most resources have.
COMMON = (FieldMapping("/name", "/name", text), FieldMapping("/tags", "/tags"), *passed("id", "timeouts"))
LOCATED = (*COMMON, FieldMapping("/location", "/location", text))
GROUPED = (*LOCATED, *passed("resource_group_name"))
IDENTITY = (
    FieldMapping("/identity/0/type", "/identity/type", convert_identity),
    FieldMapping("/identity/0/identity_ids", "/identity/userAssignedIdentities", keys),
    FieldMapping("/identity/0/principal_id", "/identity/principalId", text),
    FieldMapping("/identity/0/tenant_id", "/identity/tenantId", text),
)
#: The ARM types of the resources that attributes of these rows name.
IDENTITY_NAMED = {"/identity/0/identity_ids": "Microsoft.ManagedIdentity/userAssignedIdentities"}
