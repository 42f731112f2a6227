"""Role assignments: which roles they assign, where they reach, and what they grant there.

`policies/lib/roles.rego` says the same in Rego. Answers are three-valued: None where a condition decides, where the
members of a management group would, or where something cannot be read.
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
    """Return the role of an assignment: its definition in the snapshot, or the built-in one; none if unknown.

    A built-in role that acts elsewhere has no permissions: it grants nothing of Machine Learning.
    """
    guid = guid_of(get_inside(assignment, "properties", "roleDefinitionId"))
    defined = [by_id[key] for key in by_guid.get(guid, ())]
    if defined:
        return [AssignedRole(guid, _name(one), get_inside(one, "properties", "permissions")) for one in defined]
    known = facts.role(guid)
    return [AssignedRole(guid, known.name, known.permissions)] if known is not None and known.guid == guid else []


def is_listed(names: Iterable[str], entries: Iterable[str]) -> bool:
    """Say whether a list of role names, GUIDs and ids has one of some names and GUIDs."""
    spelled = {said for entry in entries for said in (fold(entry), guid_of(entry))}
    return any(fold(name) in spelled for name in names if fold(name))


def scope_of(assignment: JsonObject) -> tuple[str, ...] | None:
    """Return the parts of the id that an assignment reaches, in lower case; None when that cannot be read.

    It is `properties.scope`, else what stands before the assignment in its own id.
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
    """Say whether the scope is a workspace of the snapshot or above one; a management group counts as above.

    Without any workspace in the snapshot an access list is read as that of one: whatever can be one or hold one counts.
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
    """Say whether an assignment of a role grants an action where it reaches."""
    said = granted(role.permissions, action)
    return None if said and is_conditional(get_inside(assignment, "properties")) else said


def _name(definition: JsonObject) -> str:
    name = get_inside(definition, "properties", "roleName")
    return trim(name) if isinstance(name, str) and fold(name) else guid_of(definition["id"])
