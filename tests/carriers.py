"""Templates wrapped into the resources that carry them, in every format that has such resources."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from random import Random
from typing import NamedTuple

from policyeng.models import JsonObject

SUBSCRIPTION = "/subscriptions/11111111-1111-1111-1111-111111111111"
SCOPE = f"{SUBSCRIPTION}/resourceGroups/rg-ml"
SCHEMA = "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#"


class Wrapped(NamedTuple):
    """A document with a template in it.

    Attributes:
        is_stored: the carrier does not state where the template is deployed to.
    """

    document: JsonObject
    is_stored: bool = False


#: Wraps a template that is deployed to a resource group.
Wrapping = Callable[[JsonObject, str], Wrapped]


def template(*resources: JsonObject, **more: object) -> JsonObject:
    """A template of these resources."""
    return {"$schema": SCHEMA, "contentVersion": "1.0.0.0", **more, "resources": list(resources)}


def resource(arm_type: str, properties: JsonObject, *, scope: str = SCOPE, **more: object) -> JsonObject:
    """A carrier as a REST body has it."""
    namespace, *kinds = arm_type.split("/")
    path = "/".join(f"{kind}/carrier" for kind in kinds)
    return {"id": f"{scope}/providers/{namespace}/{path}", "type": arm_type, **more, "properties": properties}


def escaped(value: object) -> object:
    """A value with its expressions as text, for a place in another template where they are not evaluated."""
    if isinstance(value, dict):
        return {str(escaped(key)): escaped(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [escaped(inner) for inner in value]
    return f"[{value}" if isinstance(value, str) and value.startswith("[") else value


def inner_deployment(body: JsonObject) -> JsonObject:
    """A template that deploys the template."""
    options = {"scope": "inner"}
    properties = {"mode": "Incremental", "expressionEvaluationOptions": options, "template": body}
    return template({"type": "Microsoft.Resources/deployments", "name": "inner", "properties": properties})


def inner_stack(body: JsonObject) -> JsonObject:
    """A template that deploys a stack with the template."""
    return template(
        {
            "type": "microsoft.resources/DEPLOYMENTSTACKS",
            "name": "inner",
            "properties": {"actionOnUnmanage": {"resources": "detach"}, "Template": escaped(body)},
        }
    )


#: Templates in templates, which can be wrapped again.
INNER: Mapping[str, Callable[[JsonObject], JsonObject]] = {"deployment": inner_deployment, "stack": inner_stack}


def _rest(arm_type: str, member: str = "template", *, is_text: bool = False, kind: str = "") -> Wrapping:
    is_stored = arm_type not in ("Microsoft.Resources/deployments", "Microsoft.Resources/deploymentStacks")

    def wrapping(body: JsonObject, scope: str) -> Wrapped:
        stated: object = json.dumps(body) if is_text else body
        return Wrapped(resource(arm_type, {"mode": "Incremental", member: stated}, scope=scope, kind=kind), is_stored)

    return wrapping


def _native(body: JsonObject, scope: str) -> Wrapped:
    deployment = resource(
        "Microsoft.Resources/deployments", {"TEMPLATE": body, "provisioningState": "Succeeded"}, scope=scope
    )
    return Wrapped({"snapshotVersion": 1, "resources": [deployment]})


def _graph(body: JsonObject, scope: str) -> Wrapped:
    row = resource("microsoft.resources/deploymentstacks", {"template": body}, scope=scope)
    row |= {"resourceGroup": scope.rpartition("/")[2], "subscriptionId": scope.split("/")[2], "name": "carrier"}
    return Wrapped({"count": 1, "data": [row], "total_records": 1})


def _what_if(body: JsonObject, scope: str) -> Wrapped:
    stack = resource("Microsoft.Resources/deploymentStacks", {"template": body}, scope=scope)
    return Wrapped(
        {"status": "Succeeded", "changes": [{"resourceId": stack["id"], "changeType": "Create", "after": stack}]}
    )


def _change(body: JsonObject, scope: str) -> Wrapped:
    return Wrapped(
        {
            "operation": "create",
            "resource": resource("Microsoft.Resources/deployments", {"template": body}, scope=scope),
        }
    )


def _stored_in_template(body: JsonObject, _: str) -> Wrapped:
    kind = "Microsoft.Resources/templateSpecs/versions"
    version = {"type": kind, "name": "spec/1", "properties": {"mainTemplate": escaped(body)}}
    return Wrapped(template(version), is_stored=True)


def plan(kind: str, values: JsonObject, actions: tuple[str, ...] = ("create",)) -> JsonObject:
    """A Terraform plan with one resource."""
    address: JsonObject = {"address": f"{kind}.it", "mode": "managed", "type": kind, "name": "it"}
    change = {"actions": list(actions), "before": None, "after": values, "after_unknown": {}}
    return {
        "format_version": "1.2",
        "planned_values": {"root_module": {"resources": [{**address, "values": values}]}},
        "resource_changes": [{**address, "change": change}],
        "configuration": {},
    }


def _azurerm(kind: str, attribute: str, *, is_stored: bool = False) -> Wrapping:
    def wrapping(body: JsonObject, scope: str) -> Wrapped:
        values = {"name": "it", "resource_group_name": scope.rpartition("/")[2], attribute: json.dumps(body)}
        return Wrapped(plan(f"azurerm_{kind}", values), is_stored)

    return wrapping


def _azapi(arm_type: str, *, is_text: bool = False) -> Wrapping:
    def wrapping(body: JsonObject, scope: str) -> Wrapped:
        stored: object = (
            {"Properties": {"template": body}} if not is_text else json.dumps({"properties": {"template": body}})
        )
        return Wrapped(plan("azapi_resource", {"type": arm_type, "name": "it", "parent_id": scope, "body": stored}))

    return wrapping


def _state(body: JsonObject, scope: str) -> Wrapped:
    kind, name = "azurerm_resource_group_template_deployment", "it"
    values = {"name": "it", "resource_group_name": scope.rpartition("/")[2], "template_content": json.dumps(body)}
    entry: JsonObject = {"address": f"{kind}.{name}", "mode": "managed", "type": kind, "name": name, "values": values}
    return Wrapped({"format_version": "1.0", "values": {"root_module": {"resources": [entry]}}})


_DEPLOYMENTS, _STACKS = "Microsoft.Resources/deployments", "Microsoft.Resources/deploymentStacks"
#: By name, what wraps a template into a whole document.
WRAPPINGS: Mapping[str, Wrapping] = {
    "template": lambda body, _: Wrapped(body),
    "template with a template spec": _stored_in_template,
    "body of a deployment": _rest(_DEPLOYMENTS),
    "body of a stack": _rest(_STACKS),
    "body of a template spec": _rest("Microsoft.Resources/templateSpecs/versions", "mainTemplate"),
    "body of an application definition": _rest(
        "Microsoft.Solutions/applicationDefinitions", "mainTemplate", is_text=True
    ),
    "artifact of a blueprint": _rest("Microsoft.Blueprint/blueprints/artifacts", kind="template"),
    "snapshot": _native,
    "resource graph": _graph,
    "azurerm group": _azurerm("resource_group_template_deployment", "template_content"),
    "azurerm, old": _azurerm("template_deployment", "template_body"),
    "azurerm definition": _azurerm("managed_application_definition", "main_template", is_stored=True),
    "azapi deployment": _azapi(f"{_DEPLOYMENTS}@2022-09-01"),
    "azapi stack": _azapi(f"{_STACKS}@2024-03-01", is_text=True),
    "state": _state,
}
#: Those that state what changes, and not what exists.
CHANGE_WRAPPINGS: Mapping[str, Wrapping] = {**WRAPPINGS, "what-if": _what_if, "change": _change}


def wrapped(random: Random, body: JsonObject, name: str, depth: int, scope: str = SCOPE) -> Wrapped:
    """A template in as many others, and in a document by the name of its wrapping."""
    for _ in range(depth):
        body = random.choice(list(INNER.values()))(body)
    return CHANGE_WRAPPINGS[name](body, scope)
