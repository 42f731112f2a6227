"""Role assignments: which roles they assign, where they reach, and what they grant there.

`policies/lib/roles.rego` is the same in Rego. Functions return None if the answer depends on a condition, on the
members of a management group, or on an invalid value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from policyeng.facts.catalogue import Facts
from policyeng.facts.ids import guid_of, parts_of
from policyeng.facts.permissions import granted, is_conditional, is_sound
from policyeng.facts.words import fold, get_inside, trim
from policyeng.models import WORKSPACE_TYPE, JsonObject

_MANAGEMENT_GROUPS = ("providers", "microsoft.management", "managementgroups")
_ASSIGNMENTS = ("providers", "microsoft.authorization", "roleassignments")


@dataclass(frozen=True, slots=True)
class AssignedRole:
    """A role that an assignment names; `permissions` as its definition states them, so of any shape."""

    guid: str
    name: str
    permissions: object

    @property
    def is_sound(self) -> bool:
        """Whether the permissions are a list of blocks that can all be read."""
        return isinstance(self.permissions, list | tuple) and all(map(is_sound, self.permissions))


def assigned_roles(
    assignment: JsonObject, by_id: Mapping[str, JsonObject], by_guid: Mapping[str, Sequence[str]], facts: Facts
) -> list[AssignedRole]:
    """Return the role of an assignment: the built-in one, or its definition in the snapshot; none if unknown.

    A built-in role that acts elsewhere has no permissions: it grants nothing of Machine Learning.
    """
    guid = guid_of(get_inside(assignment, "properties", "roleDefinitionId"))
    built_in = facts.role(guid)
    if built_in is not None and built_in.guid == guid:
        return [AssignedRole(guid, built_in.name, built_in.permissions)]
    defined = (by_id[key] for key in by_guid.get(guid, ()))
    return [AssignedRole(guid, _name(role), get_inside(role, "properties", "permissions")) for role in defined]


def is_listed(names: Iterable[str], entries: Iterable[str]) -> bool:
    """Return whether a list of role names, GUIDs and ids has one of some names and GUIDs."""
    spelled = {name for entry in entries for name in (fold(entry), guid_of(entry))}
    return any(fold(name) in spelled for name in names if fold(name))


def scope_of(assignment: JsonObject) -> tuple[str, ...] | None:
    """Return the parts of the id that an assignment reaches, in lower case; None when that cannot be read.

    It is `properties.scope`, or else the part of its own id before the assignment.
    """
    stated = get_inside(assignment, "properties", "scope")
    if stated is not None and (fold(stated) or not isinstance(stated, str)):
        return parts_of(trim(stated)) if isinstance(stated, str) else None
    parts = parts_of(assignment.get("id")) or ()
    return parts[:-4] if parts[-4:-1] == _ASSIGNMENTS else None


def reaches_workspace(
    assignment: JsonObject,
    by_scope: Mapping[str, Mapping[str, Sequence[str]]],
    by_type: Mapping[str, Sequence[JsonObject]],
) -> bool:
    """Return whether the scope is a workspace of the snapshot or above one; a management group counts as above.

    A snapshot without a workspace is treated as the access list of one: any scope that can be or contain one counts.
    """
    scope = scope_of(assignment)
    if scope is None:
        return False
    if not scope or scope[:3] == _MANAGEMENT_GROUPS:
        return True
    if by_type.get(WORKSPACE_TYPE):
        return WORKSPACE_TYPE in by_scope.get("/" + "/".join(scope), ())
    holders = {2: scope[0] == "subscriptions", 4: scope[2:3] == ("resourcegroups",)}
    return holders.get(len(scope), len(scope) == 8 and "/".join(scope[5:7]) == WORKSPACE_TYPE)


def granted_by(assignment: JsonObject, role: AssignedRole, action: str) -> bool | None:
    """Return whether an assignment of a role grants an action within its scope."""
    answer = granted(role.permissions, action)
    return None if answer and is_conditional(get_inside(assignment, "properties")) else answer


def _name(definition: JsonObject) -> str:
    name = get_inside(definition, "properties", "roleName")
    return trim(name) if isinstance(name, str) and fold(name) else guid_of(definition["id"])
