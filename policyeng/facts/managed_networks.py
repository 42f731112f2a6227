"""Managed networks that are resources of their own, put where policies look for them: into their workspaces.

A workspace can have outbound rules as children `outboundRules`, and since API version 2025-09-01 its managed network as
the child `managedNetworks/default`, with `outboundRules` below it. Source: https://learn.microsoft.com/azure/templates/microsoft.machinelearningservices/workspaces/managednetworks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from policyeng.facts.ids import fold_id, name_of
from policyeng.models import JsonObject, lowered
from policyeng.parsing.json_pointer import escaped, filled, keys_of, value_at

SETTINGS = "/properties/managedNetwork"
ISOLATION_MODE = f"{SETTINGS}/isolationMode"
_RULES = f"{SETTINGS}/outboundRules"
_BELOW_WORKSPACE = "/managednetworks/"
_BELOW_NETWORK = "/outboundrules/"
#: The parts between the slashes of the id of a workspace: how many, and those before its name.
_DEPTH, _WORKSPACE = 9, ("providers", "microsoft.machinelearningservices", "workspaces")
#: The types of managed networks and outbound rules below a workspace.
_PARTS = (["managednetworks"], ["managednetworks", "outboundrules"], ["outboundrules"])


class NetworkPart(NamedTuple):
    """A managed network, or one of its outbound rules.

    Attributes:
        unreadable: by JSON Pointer into the resource, why a part of it cannot be read.
    """

    resource: JsonObject
    unreadable: Mapping[str, str]


class WholeNetwork(NamedTuple):
    """A workspace with its managed network in it.

    Attributes:
        unreadable: by JSON Pointer into the resource, why a part of it cannot be read.
        fields: by JSON Pointer into the resource, the id of the part that it is from, and the JSON Pointer into that.
    """

    resource: JsonObject
    unreadable: Mapping[str, str]
    fields: Mapping[str, tuple[str, str]]


def workspace_of_part(arm_id: str) -> str:
    """Return the id of the workspace, as `folded_id` gives it, of a managed network or an outbound rule.

    Empty for others.
    """
    parts = fold_id(arm_id).split("/")
    workspace, below = parts[:_DEPTH], parts[_DEPTH:]
    is_part = below[::2] in _PARTS and len(below) % 2 == 0
    return "/".join(workspace) if is_part and tuple(workspace[-4:-1]) == _WORKSPACE else ""


def default_network_of(workspace: str) -> str:
    """Return the id of the managed network of a workspace, whose id is as `folded_id` gives it."""
    return f"{workspace}{_BELOW_WORKSPACE}default"


def place_of(arm_id: str) -> str:
    """Return the JSON Pointer in the workspace of what a managed network or an outbound rule states."""
    return f"{_RULES}/{escaped(name_of(arm_id))}" if _BELOW_NETWORK in fold_id(arm_id) else SETTINGS


def with_parts(workspace: JsonObject, unreadable: Mapping[str, str], parts: Iterable[NetworkPart]) -> WholeNetwork:
    """Put managed networks and outbound rules into their workspace; what they state replaces what it states."""
    resource: object = workspace
    unread, fields = dict(unreadable), dict[str, tuple[str, str]]()
    for part in parts:
        arm_id = part.resource["id"]
        target = place_of(arm_id)
        source = SETTINGS if target == SETTINGS else "/properties"
        stated = value_at(part.resource, source)
        if isinstance(stated, dict):
            here = value_at(resource, target)
            merged = {**here, **stated} if isinstance(here, dict) else stated
            resource = filled(resource, keys_of(target), merged)
            fields |= {f"{target}/{escaped(key)}": (arm_id, f"{source}/{escaped(key)}") for key in stated}
        else:
            unread[target] = f"`{name_of(arm_id)}` states no object at `{source}`"
        for pointer, reason in part.unreadable.items():
            if f"{source}/".startswith(f"{pointer}/"):
                unread[target] = reason
            elif pointer.startswith(f"{source}/"):
                unread[target + pointer.removeprefix(source)] = reason
    return WholeNetwork(resource if isinstance(resource, dict) else workspace, unread, fields)


def differs(workspace: JsonObject, part: JsonObject) -> bool:
    """Return whether a workspace and its managed network both state an isolation mode, and not the same one."""
    modes = [value_at(one, ISOLATION_MODE) for one in (workspace, part)]
    folded = [lowered(mode) if isinstance(mode, str) else mode for mode in modes]
    return None not in modes and folded[0] != folded[1]
