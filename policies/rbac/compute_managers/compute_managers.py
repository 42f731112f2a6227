"""The Python twin of AML-RBAC-101, written on its own so that the suite can hold the two against each other."""

from collections.abc import Iterator

from policyeng import Denial, PolicyInput, Unknown, policy
from policyeng.facts import manages_compute
from policyeng.facts.words import trimmed
from policyeng.models import WORKSPACE_TYPE, JsonObject, lowered

ROLE = "/properties/roleDefinitionId"


def _reaches_workspace(given: PolicyInput) -> bool:
    scope = _scope(given.resource)
    if not scope or scope[:3] == ["providers", "microsoft.management", "managementgroups"]:
        return True
    if given.snapshot.by_type.get(WORKSPACE_TYPE):
        return WORKSPACE_TYPE in given.snapshot.by_scope.get("/" + "/".join(scope), ())
    holders = {2: scope[:1] == ["subscriptions"], 4: scope[2:3] == ["resourcegroups"]}
    return holders.get(len(scope), len(scope) == 8 and "/".join(scope[5:7]) == WORKSPACE_TYPE)


@policy(applies=_reaches_workspace)
def compute_managers(given: PolicyInput) -> Iterator[Denial | Unknown]:
    """Deny a role that grants a compute action and is not listed as a compute manager role."""
    scope, guid = _scope(given.resource), _guid(_inner(given.resource, "roleDefinitionId"))
    if scope is None:
        yield Unknown(msg="the scope of the assignment cannot be read", path="/properties/scope")
    roles, listed = _roles(given, guid), given.parameters["compute_manager_roles"]
    names = {guid, *(lowered(name) for name, _ in roles)} - {""}
    if names & {spelled for entry in listed for spelled in (lowered(trimmed(entry)), _guid(entry))}:
        return
    if not roles:
        yield Unknown(msg="neither the snapshot nor the catalogue has the role", path=ROLE)
    for name, permissions in roles:
        blocks = permissions if isinstance(permissions, list) else [None]
        sound = [block for block in blocks if isinstance(block, dict) and _is_sound(block)]
        if len(sound) < len(blocks):
            yield Unknown(msg="the permissions of the role cannot be read", path=ROLE)
        granted = manages_compute(sound, given.parameters["compute_actions"]) if scope is not None else []
        if granted and _inner(given.resource, "condition") not in (None, ""):
            yield Unknown(msg="the condition decides whether compute can be managed", path="/properties/condition")
        elif granted:
            denied = "a role that is no compute manager role can manage compute"
            yield Denial(msg=denied, path=ROLE, actual={"role": name, "actions": granted}, expected=listed)


def _roles(given: PolicyInput, guid: str) -> list[tuple[str, object]]:
    defined = [given.snapshot.by_id[key] for key in given.snapshot.by_guid.get(guid, ())]
    named = [(_inner(one, "roleName"), _inner(one, "permissions")) for one in defined]
    rows = [given.facts.document.get(table, {}).get(guid) for table in ("roles", "roles_elsewhere")]
    known = [(name if isinstance(name, str) and name else guid, permissions) for name, permissions in named]
    return known or [(row["name"], row.get("permissions", [])) for row in rows if row]


def _is_sound(block: JsonObject) -> bool:
    lists = [block[key] for key in ("actions", "notActions") if block.get(key) is not None]
    return all(isinstance(one, list) and all(isinstance(pattern, str) for pattern in one) for one in lists)


def _scope(assignment: JsonObject) -> list[str] | None:
    stated, parts = _inner(assignment, "scope"), _parts(assignment["id"]) or []
    inside = parts[-4:-1] == ["providers", "microsoft.authorization", "roleassignments"]
    return _parts(stated) if stated not in (None, "") else parts[:-4] if inside else None


def _inner(resource: JsonObject, key: str) -> object:
    properties = resource.get("properties")
    found = properties.get(key) if isinstance(properties, dict) else None
    return trimmed(found) if isinstance(found, str) else found


def _parts(arm_id: object) -> list[str] | None:
    first, *parts = lowered(arm_id).removesuffix("/").split("/") if isinstance(arm_id, str) else [" "]
    return [] if arm_id == "/" else parts if parts and not first and all(map(trimmed, parts)) else None


def _guid(arm_id: object) -> str:
    return lowered(trimmed(arm_id).rstrip("/").rpartition("/")[2]) if isinstance(arm_id, str) else ""
