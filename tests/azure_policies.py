"""Azure Policy documents for tests, written after the published ones that they name."""

from __future__ import annotations

from typing import Any

from policyeng.models import JsonObject

WORKSPACE = "Microsoft.MachineLearningServices/workspaces"
COMPUTE = f"{WORKSPACE}/computes"
GROUP = "/subscriptions/s1/resourceGroups/rg"
ID = f"{GROUP}/providers/{WORKSPACE}/w"
#: The folder of built-in definitions in ids.
DEFINITIONS = "/providers/Microsoft.Authorization/policyDefinitions"


def definition(name: str, condition: Any, effect: Any = "[parameters('effect')]", **properties: Any) -> JsonObject:
    """Return a definition with the parameter `effect`."""
    details = properties.pop("details", None)
    then = {"effect": effect} | ({"details": details} if details is not None else {})
    default = properties.pop("default", "Audit")
    parameters = {"effect": {"type": "String", "defaultValue": default}} | properties.pop("parameters", {})
    return {
        "name": name,
        "type": "Microsoft.Authorization/policyDefinitions",
        "properties": {
            "displayName": f"Title of {name}",
            "mode": "Indexed",
            "parameters": parameters,
            **properties,
            "policyRule": {"if": condition, "then": then},
        },
    }


def of_type(kind: str, *conditions: Any) -> JsonObject:
    """Return a condition on resources of a type."""
    return {"allOf": [{"field": "type", "equals": kind}, *conditions]}


def public_access(name: str = "public", **properties: Any) -> JsonObject:
    """Return a definition after Azure/azure-policy Workspace_PublicNetworkAccessDisabled_Audit.json."""
    field = {"field": f"{WORKSPACE}/publicNetworkAccess", "notEquals": "Disabled"}
    return definition(name, of_type(WORKSPACE, field), **properties)


def diagnostics(**details: Any) -> JsonObject:
    """Return a definition after Azure/azure-policy AuditDiagnosticLog_Audit.json."""
    logs = "Microsoft.Insights/diagnosticSettings/logs[*]"
    condition = {"count": {"field": logs, "where": {"field": f"{logs}.enabled", "equals": "true"}}, "greater": 0}
    given = {"type": "Microsoft.Insights/diagnosticSettings", "existenceCondition": condition} | details
    return definition("logs", of_type(WORKSPACE), default="AuditIfNotExists", details=given)


def initiative(name: str, *members: JsonObject, **properties: Any) -> JsonObject:
    """Return an initiative of members from `member`."""
    body = {"displayName": f"Initiative {name}", "policyDefinitions": list(members), **properties}
    return {"name": name, "type": "Microsoft.Authorization/policySetDefinitions", "properties": body}


def member(name: str, reference: str = "", groups: tuple[str, ...] = (), **parameters: Any) -> JsonObject:
    """Return a member of an initiative."""
    return {
        "policyDefinitionId": f"{DEFINITIONS}/{name}",
        "policyDefinitionReferenceId": reference or name,
        "parameters": {key: {"value": value} for key, value in parameters.items()},
        "groupNames": list(groups),
    }


def assignment(name: str, target: str, scope: str = "/subscriptions/s1", **properties: Any) -> JsonObject:
    """Return an assignment; a target that begins with `set:` is an initiative."""
    kind = "policySetDefinitions" if target.startswith("set:") else "policyDefinitions"
    identity = f"/providers/Microsoft.Authorization/{kind}/{target.removeprefix('set:')}"
    body = {"displayName": f"Assignment {name}", "policyDefinitionId": identity, "scope": scope, **properties}
    return {"name": name, "type": "Microsoft.Authorization/policyAssignments", "properties": body}


def workspace(**properties: Any) -> JsonObject:
    """Return a workspace."""
    return {"id": ID, "name": "w", "type": WORKSPACE, "location": "westeurope", "properties": properties}


def setting(*enabled: bool, of: str = ID, name: str = "d") -> JsonObject:
    """Return a diagnostic setting with logs."""
    kind = "Microsoft.Insights/diagnosticSettings"
    logs = [{"category": f"c{number}", "enabled": value} for number, value in enumerate(enabled)]
    return {"id": f"{of}/providers/{kind}/{name}", "name": name, "type": kind, "properties": {"logs": logs}}


def snapshot(*resources: JsonObject, **members: Any) -> JsonObject:
    """Return a native snapshot."""
    return {"snapshotVersion": 1, "scope": "/subscriptions/s1", "resources": list(resources), **members}
