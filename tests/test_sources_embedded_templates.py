"""Resources in the templates that other resources carry are read as if the template were a document."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import given as given_
from hypothesis import strategies as st

from policyeng.admission.changes import apply_changes
from policyeng.models import JsonObject, Snapshot
from policyeng.sources import Inputs, normalize_context, parse_changes, read_inputs
from policyeng.sources.templates import CARRIERS
from tests.carriers import SCOPE, SUBSCRIPTION, inner_deployment, plan, resource, template

WORKSPACE: JsonObject = {
    "type": "Microsoft.MachineLearningServices/workspaces",
    "apiVersion": "2025-12-01",
    "name": "[parameters('name')]",
    "properties": {"publicNetworkAccess": "[parameters('access')]"},
}
PARAMETERS: JsonObject = {
    "name": {"type": "string", "defaultValue": "ws"},
    "access": {"type": "string", "defaultValue": "Enabled"},
}
TEMPLATE = template(WORKSPACE, parameters=PARAMETERS)
DEPLOYMENT = "Microsoft.Resources/deployments"
STACK = "Microsoft.Resources/deploymentStacks"
GROUP = "azurerm_resource_group_template_deployment"
ID = "/providers/Microsoft.MachineLearningServices/workspaces/ws"


def read(document: object, scope: str = SCOPE) -> Inputs:
    """A document read as `policyeng check` reads standard input."""
    return read_inputs(["-"], stdin=json.dumps(document, indent=1).encode(), context=normalize_context(scope, "", {}))


def workspaces(inputs: Inputs) -> dict[str, Any]:
    """By id, the access of each workspace, or why it is not known."""
    snapshot = inputs.snapshot
    return {
        one["id"]: one["properties"].get("publicNetworkAccess")
        or snapshot.unreadable[one["id"].lower()]["/properties/publicNetworkAccess"]
        for one in snapshot.resources
        if one["type"] == WORKSPACE["type"]
    }


def errors(inputs: Inputs) -> list[str]:
    """The messages of what could not be read."""
    return [problem.message for problem in inputs.problems if problem.level == "error"]


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        (SCOPE, SCOPE),
        (SUBSCRIPTION, SUBSCRIPTION),
        ("/providers/Microsoft.Management/managementGroups/mg", "/providers/Microsoft.Management/managementGroups/mg"),
        ("", ""),
    ],
)
def test_a_deployment_is_placed_by_its_own_id(scope: str, expected: str) -> None:
    """At a resource group, a subscription, a management group and the tenant."""
    body = resource(DEPLOYMENT, {"mode": "Incremental", "template": TEMPLATE}, scope=scope)
    assert workspaces(read(body, scope=f"{SUBSCRIPTION}/resourceGroups/other")) == {f"{expected}{ID}": "Enabled"}


def test_parameters_have_the_values_that_the_carrier_states() -> None:
    """They are plain values, and not expressions of any template."""
    values = {"access": {"value": "Disabled"}, "name": {"value": "ws"}}
    body = resource(DEPLOYMENT, {"template": TEMPLATE, "parameters": values})
    assert workspaces(read(body)) == {f"{SCOPE}{ID}": "Disabled"}


def test_names_of_members_are_read_without_case() -> None:
    """Those of the carrier and of the template, as ARM reads them."""
    body = {key.upper() if key != "$schema" else key: value for key, value in TEMPLATE.items()}
    carrier = resource(DEPLOYMENT, {"TEMPLATE": body, "Parameters": {"access": {"value": "Disabled"}}})
    assert workspaces(read(carrier)) == {f"{SCOPE}{ID}": "Disabled"}
    assert workspaces(read(body)) == {f"{SCOPE}{ID}": "Enabled"}
    inner = {"type": DEPLOYMENT, "name": "x", "properties": {"Template": template({**WORKSPACE, "name": "ws"})}}
    assert list(workspaces(read(template(inner, parameters=PARAMETERS)))) == [f"{SCOPE}{ID}"]


@pytest.mark.parametrize(
    "more",
    [
        {"parametersLink": {"uri": "https://x.example/p.json"}},
        {"parameters": "no JSON"},
        {"parameters": {"access": {"value": "Disabled"}, "ACCESS": {"value": "Enabled"}}},
        {"parameters": {"access": {"reference": {"keyVault": {"id": "x"}, "secretName": "y"}}}},
    ],
)
def test_parameters_that_are_not_known_are_unreadable(more: JsonObject) -> None:
    """Never the default of the template, which the deployment replaces."""
    body = resource(DEPLOYMENT, {"template": template({**WORKSPACE, "name": "ws"}, parameters=PARAMETERS), **more})
    (found,) = workspaces(read(body)).values()
    assert "[parameters('access')]" in found


def test_a_stack_deploys_to_its_deployment_scope() -> None:
    """Without one, or with an empty one, it deploys to its own scope."""
    other = f"{SUBSCRIPTION}/resourceGroups/other"
    for stated, expected in ((other, other), ("", SUBSCRIPTION)):
        body = resource(STACK, {"deploymentScope": stated, "template": TEMPLATE}, scope=SUBSCRIPTION)
        assert workspaces(read(body)) == {f"{expected}{ID}": "Enabled"}


def test_stored_templates_do_not_meet_resources_that_exist() -> None:
    """A template spec does not state where it is deployed to, so its resources have ids of their own."""
    versions = [
        {**resource("Microsoft.Resources/templateSpecs/versions", {"mainTemplate": TEMPLATE}), "id": identity}
        for identity in (f"{SCOPE}/providers/Microsoft.Resources/templateSpecs/s/versions/{number}" for number in "12")
    ]
    there = {"id": f"{SCOPE}{ID}", "type": WORKSPACE["type"], "properties": {"publicNetworkAccess": "Disabled"}}
    inputs = read({"snapshotVersion": 1, "resources": [*versions, there]})
    assert not errors(inputs)
    assert list(workspaces(inputs).values()).count("Enabled") == 2
    assert "does not state where" in next(iter(inputs.snapshot.unreadable.values()))["/id"]


@pytest.mark.parametrize(
    "body",
    [
        resource(DEPLOYMENT, {"provisioningState": "Succeeded", "mode": "Incremental", "outputResources": []}),
        resource(DEPLOYMENT, {"provisioningState": "Failed", "templateLink": {"uri": "https://x.example/t.json"}}),
        resource(STACK, {"provisioningState": "succeeded", "resources": []}),
        resource("Microsoft.Resources/deploymentScripts", {"provisioningState": "Succeeded", "scriptContent": "az"}),
        resource("Microsoft.Solutions/applications", {"provisioningState": "Succeeded"}),
        resource("Microsoft.Solutions/applicationDefinitions", {"isEnabled": True, "artifacts": []}),
        {key: value for key, value in resource(DEPLOYMENT, {}).items() if key != "properties"},
        {
            "value": [
                resource("Microsoft.Blueprint/blueprints/artifacts", {"roleDefinitionId": "x"}, kind="roleAssignment")
            ]
        },
    ],
)
def test_records_of_deployments_state_nothing(body: JsonObject) -> None:
    """Existing resources are listed by themselves, and a listing of a resource group is not full of errors."""
    inputs = read(body)
    assert not inputs.problems
    assert not inputs.snapshot.incomplete


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            resource(DEPLOYMENT, {"templateLink": {"uri": "https://x.example/t.json"}}),
            "the document does not contain it",
        ),
        (resource(DEPLOYMENT, {"template": "{"}), "it is text that is not JSON"),
        (resource(DEPLOYMENT, {"template": []}), "it is a list, not an object"),
        (resource(DEPLOYMENT, {"template": {"contentVersion": "1"}}), "a template without `resources`"),
        (resource(DEPLOYMENT, {"template": template(), "TEMPLATE": TEMPLATE}), "it has several templates"),
        (resource(DEPLOYMENT, {"template": {**template(), "Resources": [WORKSPACE]}}), "it has `resources` twice"),
        (resource("Microsoft.Resources/deploymentScripts", {"scriptContent": "az"}), "it runs a script"),
        (
            resource("Microsoft.Solutions/applications", {"applicationDefinitionId": "x"}),
            "managed application definition",
        ),
        (
            resource("Microsoft.Blueprint/blueprintAssignments", {"blueprintId": "x"}),
            "the templates are in a blueprint",
        ),
        (template({"type": STACK, "name": "x", "properties": "[reference('y')]"}), "the document neither contains it"),
        (template({"type": STACK, "name": "x", "properties": {"template": "[reference('y')]"}}), "it is not known"),
        (
            template({"type": STACK, "name": "x", "properties": {"template": {"resources": "[reference('y').z]"}}}),
            "its `resources` are not known",
        ),
        (
            template({"type": STACK, "name": "x", "properties": {"template": {"resources": ["[reference('y').z]"]}}}),
            "a resource that is not known",
        ),
        (
            template({"type": "Microsoft.Resources/deploymentScripts", "name": "x", "properties": {}}),
            "`x` (`Microsoft.Resources/deploymentScripts`) deploys is not read: it runs a script",
        ),
        (template({"type": DEPLOYMENT, "name": "x", "properties": {"template": {"res": []}}}), "without `resources`"),
        (plan("azurerm_resource_deployment_script_azure_cli", {"name": "x"}), "it runs a script"),
        (plan("azurerm_managed_application", {"name": "x"}), "managed application definition"),
        (plan("azurerm_blueprint_assignment", {"name": "x"}), "the templates are in a blueprint"),
        (plan(GROUP, {"name": "x", "template_spec_version_id": "/x"}), "the document does not contain it"),
        (plan(GROUP, {"name": "x", "template_content": "{"}), "it is text that is not JSON"),
        (
            plan("azapi_resource_action", {"type": f"{DEPLOYMENT}@2022-09-01", "method": "PUT"}),
            "it deploys resources that it does not name",
        ),
        (
            plan(
                "azapi_update_resource", {"type": f"{DEPLOYMENT}@1", "resource_id": f"{SCOPE}/providers/{DEPLOYMENT}/x"}
            ),
            "the document does not contain it",
        ),
    ],
)
def test_unreadable_templates_are_errors(body: JsonObject, message: str) -> None:
    """It names the carrier, and nothing passes because it is not seen."""
    found = errors(read(body))
    assert len(found) == 1
    assert message in found[0]


def test_a_value_that_a_plan_does_not_know_is_an_error_or_unreadable() -> None:
    """A template known only after apply hides everything; one parameter hides what depends on it."""
    values: JsonObject = {"name": "x", "resource_group_name": "rg-ml", "template_content": json.dumps(TEMPLATE)}
    unknown = plan(GROUP, values)
    unknown["resource_changes"][0]["change"]["after_unknown"] = {"template_content": True}
    (message,) = errors(read(unknown))
    assert "`template_content` is known only after apply" in message

    body = {"properties": {"template": TEMPLATE, "parameters": {"access": {}}}}
    values = {"name": "x", "type": f"{DEPLOYMENT}@2022-09-01", "parent_id": SCOPE, "body": body}
    partly = plan("azapi_resource", values)
    after = {"body": {"properties": {"parameters": {"access": {"value": True}}}}}
    partly["resource_changes"][0]["change"]["after_unknown"] = after
    assert "known only after apply" in workspaces(read(partly))[f"{SCOPE}{ID}"]


def test_terraform_deployments_are_placed_and_given_parameters() -> None:
    """At the scope of their attributes, with parameters as JSON text or as a map."""
    content = {"template_content": json.dumps(TEMPLATE)}
    given = {"parameters_content": json.dumps({"access": {"value": "Disabled"}})}
    found = {
        kind: workspaces(read(plan(f"azurerm_{kind}", {"name": "x", **content, **values})))
        for kind, values in (
            ("resource_group_template_deployment", {"resource_group_name": "rg", **given}),
            ("subscription_template_deployment", {"location": "x"}),
            ("management_group_template_deployment", {"management_group_id": "/providers/m.m/managementGroups/g"}),
            ("tenant_template_deployment", {}),
            ("template_deployment", {"resource_group_name": "rg", "parameters": {"access": "Disabled"}}),
        )
    }
    assert found == {
        "resource_group_template_deployment": {f"{SUBSCRIPTION}/resourceGroups/rg{ID}": "Disabled"},
        "subscription_template_deployment": {f"{SUBSCRIPTION}{ID}": "Enabled"},
        "management_group_template_deployment": {f"/providers/m.m/managementGroups/g{ID}": "Enabled"},
        "tenant_template_deployment": {ID: "Enabled"},
        "template_deployment": {f"{SUBSCRIPTION}/resourceGroups/rg{ID}": "Disabled"},
    }


def test_a_template_spec_that_a_plan_looks_up_is_read() -> None:
    """`template_spec_version_id` names it, and `template_body` of the data source has it."""
    version = f"{SCOPE}/providers/Microsoft.Resources/templateSpecs/s/versions/1"
    document = plan(GROUP, {"name": "x", "resource_group_name": "rg-ml", "template_spec_version_id": version})
    kind = "azurerm_template_spec_version"
    data = {"address": f"data.{kind}.s", "mode": "data", "type": kind, "name": "s"}
    data["values"] = {"id": version, "template_body": json.dumps(TEMPLATE)}  # type: ignore[assignment]
    document["prior_state"] = {"values": {"root_module": {"resources": [data]}}}
    assert workspaces(read(document)) == {f"{SCOPE}{ID}": "Enabled"}


def test_findings_point_into_the_carrier() -> None:
    """At the resource in an object, and at the attribute where the template is text."""
    inputs = read(resource(DEPLOYMENT, {"template": inner_deployment(TEMPLATE)}))
    origin = inputs.snapshot.origins[f"{SCOPE}{ID}".lower()]
    assert origin.pointer == "/properties/template/resources/0/properties/template/resources/0"
    assert origin.line > 20

    values = {"name": "x", "resource_group_name": "rg-ml", "template_content": json.dumps(TEMPLATE)}
    document = plan(GROUP, values)
    origin = read(document).snapshot.origins[f"{SCOPE}{ID}".lower()]
    lines = json.dumps(document, indent=1).splitlines()
    assert origin.pointer.endswith("/values/template_content/resources/0")
    assert '"template_content"' in lines[origin.line - 1]


def test_what_stays_in_a_plan_and_what_a_state_has_are_records() -> None:
    """A script that has run is not run again; a template is evaluated all the same."""
    script = "azurerm_resource_deployment_script_azure_cli"
    document = plan(script, {"name": "x"}, ("no-op",))
    document["resource_changes"][0]["change"]["before"] = {"name": "x"}
    resources = document["planned_values"]["root_module"]["resources"]
    state = {"format_version": "1.0", "values": {"root_module": {"resources": resources}}}
    assert not errors(read(document))
    assert not errors(read(state))

    values = {"name": "x", "resource_group_name": "rg-ml", "template_content": json.dumps(TEMPLATE)}
    document = plan(GROUP, values, ("no-op",))
    document["resource_changes"][0]["change"]["before"] = values
    assert workspaces(read(document)) == {f"{SCOPE}{ID}": "Enabled"}


def test_all_templates_of_a_document_have_the_limits_of_one() -> None:
    """Many carriers that each deploy thousands of resources are refused; so is a carrier whose id is not its own."""
    many = {**WORKSPACE, "name": "[string(copyIndex())]", "copy": {"name": "c", "count": 800}}
    bodies = [resource(DEPLOYMENT, {"template": template(many, many, many, many)}) for _ in range(4)]
    for number, body in enumerate(bodies):
        body["id"] += str(number)
    inputs = read({"value": bodies})
    assert any("more than 5000 resources" in message for message in errors(inputs))
    assert len(inputs.snapshot.resources) <= 5000 + len(bodies)

    values = {"id": SCOPE, "name": "x", "resource_group_name": "rg-ml", "template_content": json.dumps(TEMPLATE)}
    (message,) = errors(read(plan(GROUP, values)))
    assert "is not the id of a `Microsoft.Resources/deployments`" in message


_LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), st.sampled_from(["", "[", "[x()]", "[[a]", "{", "1", "/"]))
_ODD = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                ["template", "parameters", "resources", "type", "name", "copy", "properties", "mode", "value", "count"]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given_(kind=st.sampled_from(sorted(CARRIERS)), odd=_ODD, name=st.sampled_from(["template", "mainTemplate", "x"]))
def test_whatever_a_carrier_contains_is_read_or_refused(kind: str, odd: object, name: str) -> None:
    """As a document, in a template and as a change; nothing is raised."""
    body = resource(kind, {name: {"resources": [odd], "parameters": odd}, "parameters": odd, "actionOnUnmanage": odd})
    read({"value": [body, resource(kind, {name: odd})]})
    read(template({"type": kind, "name": "/".join("x" * kind.count("/")), "properties": {name: {"resources": [odd]}}}))
    parsed = parse_changes(json.dumps(body).encode(), "change.json")
    apply_changes(Snapshot(), parsed.changes)
