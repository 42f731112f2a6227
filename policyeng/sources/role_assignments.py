"""Role assignments and role definitions from `az role ... list`, and hand-written custom roles.

All are converted to ARM resources: `Microsoft.Authorization/roleAssignments` and `.../roleDefinitions`.
A role definition without an id gets one from its first assignable scope, then
`/providers/Microsoft.Authorization/roleDefinitions/`, then its `name` if that is a GUID, else the name of the role.
Source: https://learn.microsoft.com/azure/role-based-access-control/role-definitions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from policyeng.models import JsonObject, Problem
from policyeng.parsing.json_pointer import escaped
from policyeng.parsing.json_text import shortened
from policyeng.sources.arm_resource import is_placeholder, read_entry
from policyeng.sources.parsed import ALONE, ParsedDocument, Placed, Surroundings, next_page, reading_of, refuse

SUMMARY = "role assignments and definitions from `az role ... list`, and custom roles"

_ASSIGNMENT = "Microsoft.Authorization/roleAssignments"
_DEFINITION = "Microsoft.Authorization/roleDefinitions"
_ASSIGNMENT_KEYS = ("roleDefinitionId", "principalId", "scope")
#: Included if not null; ARM does not have `principalName` and `roleDefinitionName`.
_MORE_ASSIGNMENT_KEYS = (
    "principalType",
    "condition",
    "conditionVersion",
    "description",
    "delegatedManagedIdentityResourceId",
    "createdOn",
    "createdBy",
    "updatedOn",
    "updatedBy",
)
SHAPES: tuple[frozenset[str], ...] = (
    frozenset(
        {
            *("id", "name", "type", "scope", "roledefinitionid", "roledefinitionname", "principalid", "principalname"),
            *("principaltype", "condition", "conditionversion", "description", "delegatedmanagedidentityresourceid"),
            *("createdon", "createdby", "updatedon", "updatedby", "resourcegroup", "canDelegate".lower()),
        }
    ),
    frozenset(
        {
            *("id", "name", "type", "rolename", "roletype", "description", "assignablescopes", "permissions"),
            *("actions", "notactions", "dataactions", "notdataactions", "iscustom", "createdon", "createdby"),
            *("updatedon", "updatedby", "condition", "conditionversion"),
        }
    ),
    frozenset({"name", "properties"}),
    frozenset({"nextlink", "value"}),
)
_ACTION_KEYS = ("actions", "notActions", "dataActions", "notDataActions")
_GUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_SCOPES = "/properties/assignableScopes"


def detect(document: object) -> bool:
    """Check whether the document contains a role assignment or definition in another form than ARM's."""
    return _form_of(document) is not None or any(_form_of(entry) is not None for entry in _entries(document))


def read(document: object, around: Surroundings = ALONE) -> ParsedDocument:  # noqa: ARG001  # the document is complete
    """Read role assignments and definitions; entries in ARM's form are unchanged."""
    is_list = isinstance(document, list)
    wrapped = isinstance(document, dict) and isinstance(document.get("value"), list)
    base = "/value/" if wrapped else "/"
    entries = (
        _read(entry, f"{base}{index}" if is_list or wrapped else "") for index, entry in enumerate(_entries(document))
    )
    return reading_of(entries, next_page(document) if isinstance(document, dict) else "")


def _entries(document: object) -> list[object]:
    if isinstance(document, dict) and isinstance(document.get("value"), list):
        return list(document["value"])
    return document if isinstance(document, list) else [document]


def _form_of(entry: object) -> str | None:
    """Return the form of a value: `assignment`, `definition`, `written`, `body`, or None for any other."""
    if not isinstance(entry, dict):
        return None
    if "principalId" in entry and "roleDefinitionId" in entry:
        return "assignment"
    if "roleName" in entry and "permissions" in entry:
        return "definition"
    folded = {key.lower() for key in entry}
    if {"actions", "assignablescopes"} <= folded and folded & {"name", "rolename"}:
        return "written"
    properties = entry.get("properties")
    if "id" not in entry and isinstance(properties, dict) and "roleName" in properties and "permissions" in properties:
        return "body"
    return None


def _read(entry: object, pointer: str) -> Placed | Problem:
    form = _form_of(entry)
    if form is None or not isinstance(entry, dict):
        return read_entry(entry, pointer)
    if form == "assignment":
        return _read_assignment(entry, pointer)
    if form == "written":
        names: dict[str, str] = {}
        for key in entry:
            if (first := names.setdefault(key.lower(), key)) != key:
                message = f"`{shortened(key)}` and `{shortened(first)}` are the same member"
                return refuse(f"{pointer}/{escaped(key)}", message, "remove one of them", kind="ambiguous")
        return _read_definition(_convert_written(entry), pointer)
    if form == "body":
        return _read_definition({"type": _DEFINITION, "name": entry.get("name"), **entry["properties"]}, pointer)
    return _read_definition(entry, pointer)


def _read_assignment(entry: JsonObject, pointer: str) -> Placed | Problem:
    for key in ("id", *_ASSIGNMENT_KEYS):
        if not isinstance(entry.get(key), str) or not entry[key]:
            return refuse(pointer, f"a role assignment without `{key}`", f"add `{key}` as a string")
    properties = {key: entry[key] for key in _ASSIGNMENT_KEYS}
    properties |= {key: entry[key] for key in _MORE_ASSIGNMENT_KEYS if entry.get(key) is not None}
    resource = {"id": entry["id"], "name": entry.get("name"), "type": _ASSIGNMENT, "properties": properties}
    read = read_entry(resource, pointer)
    if isinstance(read, Problem) or "principalType" in properties:
        return read
    return read._replace(unreadable={"/properties/principalType": "the list does not state the type of the principal"})


def _convert_written(entry: JsonObject) -> JsonObject:
    """Convert a hand-written custom role, with keys in any case, to the form of `az role definition list`."""
    folded = {key.lower(): value for key, value in entry.items()}
    custom = folded.get("iscustom", True)
    permission = {key: folded.get(key.lower()) for key in _ACTION_KEYS}
    return {
        "name": folded.get("id"),
        "roleName": folded.get("rolename") or folded.get("name"),
        "roleType": "BuiltInRole" if custom is False else "CustomRole",
        "description": folded.get("description"),
        "assignableScopes": folded.get("assignablescopes"),
        "permissions": [permission],
    }


def _read_definition(entry: JsonObject, pointer: str) -> Placed | Problem:
    name, scopes, permissions = entry.get("roleName"), entry.get("assignableScopes"), entry.get("permissions")
    if not isinstance(name, str) or not name:
        return refuse(pointer, "a role definition without a role name", "give it a name")
    if not _are_texts(scopes) or not scopes:
        message = f"the role definition `{shortened(name)}` has no list of assignable scopes"
        return refuse(pointer, message, "give `AssignableScopes` as a list of ARM ids")
    allowed = [_permission(part) for part in permissions] if isinstance(permissions, list) else [None]
    if None in allowed:
        message = f"the role definition `{shortened(name)}` has actions that are not lists of strings"
        return refuse(pointer, message, "give `Actions`, `NotActions`, `DataActions`, `NotDataActions` as lists")
    properties = {
        "roleName": name,
        "type": _role_type(entry),
        "description": entry.get("description"),
        "assignableScopes": scopes,
        "permissions": allowed,
    }
    guid = entry.get("name")
    last = guid if isinstance(guid, str) and _GUID.fullmatch(guid) else name.replace("/", "-")
    identity = entry.get("id") or f"{scopes[0].rstrip('/')}/providers/{_DEFINITION}/{last}"
    resource = {"id": identity, "name": guid or last, "type": _DEFINITION, "properties": properties}
    return _place_definition(resource, pointer, given_id=bool(entry.get("id")))


def _place_definition(resource: JsonObject, pointer: str, *, given_id: bool) -> Placed | Problem:
    """Place a role definition; a placeholder among its scopes, which may not exist yet, makes only these unreadable."""
    scopes = resource["properties"]["assignableScopes"]
    placeholder = next((scope for scope in scopes if is_placeholder(scope)), None)
    if placeholder is not None and not given_id and not resource["id"].startswith("/"):
        message = f"a role template: its scope `{shortened(placeholder)}` is a placeholder"
        return refuse(pointer, message, "replace the placeholder", kind="empty")
    if placeholder is None or given_id:
        return read_entry(resource, pointer)
    return Placed(resource, pointer, {_SCOPES: f"`{shortened(placeholder)}` contains a placeholder"})


def _role_type(entry: JsonObject) -> str:
    """Return `CustomRole` or `BuiltInRole`; a role that states neither is a custom one."""
    for stated in (entry.get("roleType"), entry.get("type")):
        if isinstance(stated, str) and stated.lower() in ("customrole", "builtinrole"):
            return "CustomRole" if stated.lower() == "customrole" else "BuiltInRole"
    return "CustomRole"


def _permission(part: object) -> JsonObject | None:
    if not isinstance(part, Mapping):
        return None
    actions = {key: part.get(key) or [] for key in _ACTION_KEYS}
    if not all(_are_texts(value) for value in actions.values()):
        return None
    extra = {key: part[key] for key in ("condition", "conditionVersion") if part.get(key) is not None}
    return {**actions, **extra}


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)
