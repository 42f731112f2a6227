"""Who owns a resource: what its tag `owner` says, else that of its workspace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from policyeng.facts.ids import folded_id
from policyeng.models import JsonObject, Snapshot, lowered

#: The name of the tag, in any letter case.
TAG = "owner"
#: For what has none.
NOBODY = ""
_WORKSPACES = "/providers/microsoft.machinelearningservices/workspaces/"


def owners_of(snapshot: Snapshot) -> Mapping[str, str]:
    """By resource id, folded as `folded_id` has it, the owner that each resource states itself."""
    stated = ((resource.get("id"), _tagged(resource)) for resource in snapshot.resources)
    return {folded_id(arm_id): owner for arm_id, owner in stated if isinstance(arm_id, str) and owner}


def owner_of(resource: str, owners: Mapping[str, str]) -> str:
    """The owner of a resource, or of the workspace that it belongs to; `NOBODY` where neither states one."""
    arm_id = folded_id(resource)
    return owners.get(arm_id) or owners.get(_workspace(arm_id)) or NOBODY


def is_owner(owner: str, wanted: Iterable[str]) -> bool:
    """Whether an owner is among those that are named, in any letter case."""
    return lowered(owner) in map(lowered, wanted)


def _workspace(arm_id: str) -> str:
    before, found, rest = arm_id.partition(_WORKSPACES)
    return f"{before}{found}{rest.partition('/')[0]}"


def _tagged(resource: JsonObject) -> str:
    tags = resource.get("tags")
    if not isinstance(tags, dict):
        return NOBODY
    said = (value for name, value in tags.items() if lowered(str(name)) == TAG and isinstance(value, str))
    return next((value.strip() for value in said if value.strip()), NOBODY)
