"""ARM templates: their resources, the places of fields, and values known only at deployment."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyeng import evaluate
from policyeng.bundle import Bundle
from policyeng.errors import InputError
from policyeng.models import JsonObject, lowered
from policyeng.parsing.json_text import DEFAULT_MAX_BYTES
from policyeng.sources import FORMATS, DocumentContext, arm_template, read_inputs
from policyeng.sources.arm_resource import service_made
from policyeng.sources.parsed import UNKNOWN_SCOPE, ParsedDocument, Placed, Surroundings, remark
from policyeng.sources.templates import Unresolved
from policyeng.sources.text import read_text
from policyeng.testing.observed_reads import observe
from tests.effort import effort

GROUP = "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/rg-ml"
ML = "Microsoft.MachineLearningServices"
SCHEMA = "https://schema.management.azure.com/schemas/2019-04-01/{}.json#"
REAL = Path(__file__).resolve().parents[2] / "shared" / "real"

WORKSPACE: JsonObject = {"type": f"{ML}/workspaces", "apiVersion": "2024-10-01", "name": "ws", "properties": {}}
COMPUTE: JsonObject = {
    "type": f"{ML}/workspaces/computes",
    "name": "ws/c",
    "properties": {"computeType": "AmlCompute", "properties": {"vmSize": "Standard_DS3_v2"}},
}


def template(*resources: JsonObject, schema: str = "deploymentTemplate", **more: object) -> JsonObject:
    """A template that deploys these."""
    return {"$schema": SCHEMA.format(schema), "contentVersion": "1.0.0.0", "resources": list(resources), **more}


def nested(inner: object, scope: str = "", **more: object) -> JsonObject:
    """A deployment of a template; `scope` is where its expressions are evaluated."""
    options = {"expressionEvaluationOptions": {"scope": scope}} if scope else {}
    parameters = more.pop("parameters", None)
    properties: JsonObject = {"mode": "Incremental", "template": inner, **options}
    if parameters is not None:
        properties["parameters"] = parameters
    return {"type": "Microsoft.Resources/deployments", "name": "inner", "properties": properties, **more}


def read(document: object, scope: str = GROUP, **parameters: object) -> ParsedDocument:
    """The template, deployed to a resource group that is known."""
    assert arm_template.detect(document)
    return arm_template.read(document, Surroundings(file="main.json", scope=scope, parameters=parameters))


def only(reading: ParsedDocument) -> Placed:
    """The one resource, where everything could be read."""
    assert not reading.refusals
    (placed,) = reading.resources
    return placed


def own(placed: Placed) -> dict[str, str]:
    """The fields that are unreadable because of the template itself."""
    made = service_made(placed.resource["type"])
    return {pointer: reason for pointer, reason in placed.unreadable.items() if made.get(pointer) != reason}


def ids(reading: ParsedDocument, scope: str = GROUP) -> list[str]:
    """The part after the scope in the ids."""
    return [placed.resource["id"].removeprefix(scope) for placed in reading.resources]


# ---------------------------------------------------------------- templates and other documents


@pytest.mark.parametrize(
    "schema",
    [
        "deploymentTemplate",
        "subscriptionDeploymentTemplate",
        "managementGroupDeploymentTemplate",
        "tenantDeploymentTemplate",
        "deploymentParameters",
    ],
)
def test_templates_and_their_parameters_are_detected(schema: str) -> None:
    """By `$schema`, whatever its version, its host and its case."""
    document = template(schema=schema)
    assert arm_template.detect(document)
    assert next(name for name, each in FORMATS.items() if each.detect(document)) == "arm-template"
    assert arm_template.detect({**document, "$schema": document["$schema"].upper().rstrip("#") + " "})


@pytest.mark.parametrize(
    "document",
    [None, [], {}, {"$schema": 1}, {"$schema": "https://azuremlschemas.azureedge.net/latest/amlCompute.schema.json"}],
)
def test_nothing_else_is_detected(document: object) -> None:
    """A template has its `$schema`."""
    assert not arm_template.detect(document)


def test_parameter_files_contain_no_resource() -> None:
    """They are understood, and used with their template."""
    reading = arm_template.read({"$schema": SCHEMA.format("deploymentParameters"), "parameters": {}})
    assert reading.nothing == "values of template parameters; they are used with their template"


def test_a_template_without_resources_is_refused() -> None:
    """One with an empty list deploys nothing."""
    broken = arm_template.read({"$schema": SCHEMA.format("deploymentTemplate")})
    assert [refusal.message for refusal in broken.refusals] == ["a template without `resources`"]
    assert read(template()).nothing == "a template that deploys no resources"


@pytest.mark.parametrize(
    ("resource", "message"),
    [
        (3, "not a resource: a number where an object should be"),
        ({"name": "x"}, "a resource without a `type` such as `Microsoft.MachineLearningServices/workspaces`"),
        ({"type": "A.B/c"}, "a resource without a `name`"),
        ({"type": "A.B/c/d", "name": "x"}, "`A.B/c/d` takes 2 names, not 1"),
        ({"type": "A.B/c", "name": "x//y"}, "a part of the name `x//y` is empty"),
        (
            {**WORKSPACE, "copy": {"name": "c", "count": 801}},
            "the `count` of a copy loop is `801`; it should be 0 to 800",
        ),
        ({**WORKSPACE, "copy": {"name": "c"}}, "the `count` of a copy loop is null; it should be 0 to 800"),
    ],
)
def test_other_values_than_resources_are_refused(resource: Any, message: str) -> None:
    """The others are not touched by it."""
    reading = read(template(resource, {**WORKSPACE, "name": "other"}))
    assert [refusal.message for refusal in reading.refusals] == [message]
    assert ids(reading) == [f"/providers/{ML}/workspaces/other"]


# ---------------------------------------------------------------- names and ids


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ([WORKSPACE, COMPUTE], [f"{ML}/workspaces/ws", f"{ML}/workspaces/ws/computes/c"]),
        (
            [{**WORKSPACE, "resources": [{**COMPUTE, "type": "computes", "name": "c"}]}],
            [f"{ML}/workspaces/ws", f"{ML}/workspaces/ws/computes/c"],
        ),
        ([{**WORKSPACE, "resources": [COMPUTE]}], [f"{ML}/workspaces/ws", f"{ML}/workspaces/ws/computes/c"]),
        (
            [{"type": f"{ML}/workspaces/providers/roleAssignments", "name": "ws/Microsoft.Authorization/g"}],
            [f"{ML}/workspaces/ws/providers/Microsoft.Authorization/roleAssignments/g"],
        ),
        (
            [{**WORKSPACE, "resources": [{"type": "providers/locks", "name": "Microsoft.Authorization/l"}]}],
            [f"{ML}/workspaces/ws", f"{ML}/workspaces/ws/providers/Microsoft.Authorization/locks/l"],
        ),
        (
            [{**WORKSPACE, "resources": [{"type": "Microsoft.Authorization/locks", "name": "l"}]}],
            [f"{ML}/workspaces/ws", f"{ML}/workspaces/ws/providers/Microsoft.Authorization/locks/l"],
        ),
        (
            [{"type": "Microsoft.Authorization/locks", "name": "l", "scope": f"{ML}/workspaces/ws"}],
            [f"{ML}/workspaces/ws/providers/Microsoft.Authorization/locks/l"],
        ),
        (
            [
                {
                    "type": "Microsoft.Insights/diagnosticSettings",
                    "name": "d",
                    "scope": f"[resourceId('{ML}/workspaces', 'ws')]",
                }
            ],
            [f"{ML}/workspaces/ws/providers/Microsoft.Insights/diagnosticSettings/d"],
        ),
    ],
    ids=["full", "child", "full-child", "old-extension", "child-extension", "child-provider", "relative", "whole"],
)
def test_names_and_types_make_ids(resources: list[JsonObject], expected: list[str]) -> None:
    """Children, extensions in all their forms, and whole names."""
    reading = read(template(*resources))
    assert not reading.refusals
    assert ids(reading) == [f"/providers/{tail}" for tail in expected]
    assert all(placed.resource["name"] == placed.resource["id"].rsplit("/", 1)[-1] for placed in reading.resources)
    assert not any(own(placed) for placed in reading.resources)


def test_a_child_of_an_unnamed_workspace_is_in_it() -> None:
    """The placeholder of the name is alike in both."""
    parameters = {"workspaceName": {"type": "string"}}
    name = "[toLower(parameters('workspaceName'))]"
    compute = {**COMPUTE, "name": "[format('{0}/{1}', parameters('workspaceName'), 'c')]"}
    reading = read(template({**WORKSPACE, "name": name}, compute, parameters=parameters), scope=UNKNOWN_SCOPE)

    workspace, child = reading.resources
    assert workspace.resource["id"] == f"{UNKNOWN_SCOPE}/providers/{ML}/workspaces/{{workspaceName}}"
    assert child.resource["id"] == f"{workspace.resource['id']}/computes/c"
    assert "name" not in workspace.resource
    assert child.resource["name"] == "c"
    assert set(own(workspace)) == {"/id", "/name"}
    assert "give `--parameters workspaceName=...`" in own(workspace)["/id"]
    assert "give `--scope`" in own(workspace)["/id"]
    assert reading.movable == UNKNOWN_SCOPE


def test_two_resources_that_are_called_alike_are_both_kept() -> None:
    """The second states its place."""
    parameters = {"n": {"type": "string"}}
    resource = {**WORKSPACE, "name": "[parameters('n')]"}
    reading = read(template(resource, {**resource, "tags": {"a": "b"}}, parameters=parameters))
    assert ids(reading) == [f"/providers/{ML}/workspaces/{tail}" for tail in ("{n}", "{n@~resources~1}")]


def test_a_whole_name_that_is_not_known_still_makes_an_id() -> None:
    """There is something for each part of the type, and no part is empty."""
    reading = read(template({**COMPUTE, "name": "[parameters('n')]"}, parameters={"n": {"type": "string"}}))
    assert ids(reading) == [f"/providers/{ML}/workspaces/{{workspaces of n}}/computes/{{n}}"]


def test_a_missing_scope_is_reported() -> None:
    """A given scope is no fault."""
    assert "give `--scope`" in own(only(read(template(WORKSPACE), scope=UNKNOWN_SCOPE)))["/id"]
    assert own(only(read(template(WORKSPACE)))) == {}


@pytest.mark.parametrize(
    ("schema", "resource", "identity"),
    [
        (
            "subscriptionDeploymentTemplate",
            {"type": "Microsoft.Resources/resourceGroups", "name": "g"},
            "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/g",
        ),
        (
            "tenantDeploymentTemplate",
            {"type": "Microsoft.Authorization/roleDefinitions", "name": "r"},
            "/providers/Microsoft.Authorization/roleDefinitions/r",
        ),
        (
            "managementGroupDeploymentTemplate",
            {"type": "Microsoft.Authorization/roleDefinitions", "name": "r"},
            "/providers/Microsoft.Management/managementGroups/{managementGroup}"
            "/providers/Microsoft.Authorization/roleDefinitions/r",
        ),
    ],
)
def test_templates_are_deployed_to_other_scopes(schema: str, resource: JsonObject, identity: str) -> None:
    """Subscriptions, management groups and the tenant."""
    assert only(read(template(resource, schema=schema))).resource["id"] == identity


def test_relations_follow_from_the_ids() -> None:
    """An id of the template's own, and one of which only the scope is not known, are taken as they are.

    An unknown name is one segment in braces, but of an unknown type nothing is known.
    """
    parameters = {"aks": {"type": "string"}, "other": {"type": "string"}}
    cluster = {"type": "Microsoft.ContainerService/managedClusters", "name": "[parameters('aks')]", "properties": {}}
    properties = {
        "computeType": "AKS",
        "resourceId": "[resourceId('Microsoft.ContainerService/managedClusters', parameters('aks'))]",
        "properties": {
            "known": "[resourceId('A.B/c', 'd')]",
            "partly": "[resourceId('A.B/c', format('net-{0}', uniqueString('x')))]",
            "unknown": "[resourceId(parameters('other'), 'd')]",
        },
    }
    reading = read(template(cluster, {**COMPUTE, "properties": properties}, parameters=parameters), UNKNOWN_SCOPE)
    first, second = reading.resources

    assert second.resource["properties"]["resourceId"] == first.resource["id"]
    assert second.resource["properties"]["isAttachedCompute"] is True
    assert second.resource["properties"]["properties"] == {
        "known": f"{UNKNOWN_SCOPE}/providers/A.B/c/d",
        "partly": f"{UNKNOWN_SCOPE}/providers/A.B/c/{{net-uniquestring(x)}}",
    }
    assert set(own(second)) == {"/id", "/properties/properties/unknown"}


# ---------------------------------------------------------------- values


def test_unknown_values_are_left_out_and_unreadable() -> None:
    """A leaf hides none of its siblings; an entry of a list leaves its place."""
    parameters = {"x": {"type": "string"}, "location": {"type": "string", "defaultValue": "[resourceGroup().location]"}}
    resource = {
        **WORKSPACE,
        "location": "[parameters('location')]",
        "tags": {"a": "[parameters('x')]", "b": "c"},
        "properties": {"publicNetworkAccess": "[parameters('x')]", "ipAllowlist": ["1.1.1.1", "[parameters('x')]"]},
    }
    placed = only(read(template(resource, parameters=parameters)))

    assert placed.resource["tags"] == {"b": "c"}
    assert placed.resource["properties"] == {"ipAllowlist": ["1.1.1.1", None]}
    assert "location" not in placed.resource
    reasons = own(placed)
    assert set(reasons) == {
        "/location",
        "/tags/a",
        "/properties/publicNetworkAccess",
        "/properties/ipAllowlist/1",
    }
    assert reasons["/tags/a"] == "`[parameters('x')]`: the parameter `x` has no value; give `--parameters x=...`"
    assert "give `--parameters location=<region>`" in reasons["/location"]


def test_whole_properties_that_are_not_known_are_unreadable() -> None:
    """So is whether the compute is attached, which they state."""
    reading = read(template({**COMPUTE, "properties": "[parameters('p')]"}, parameters={"p": {"type": "object"}}))
    placed = only(reading)
    assert "properties" not in placed.resource
    assert set(own(placed)) == {"/properties", "/properties/isAttachedCompute"}


@pytest.mark.parametrize(
    ("properties", "attached"),
    [
        ({"computeType": "AmlCompute"}, False),
        ({"computeType": "Kubernetes"}, True),
        ({"computeType": "AKS"}, False),
        ({"computeType": "AKS", "resourceId": " "}, False),
        ({"computeType": "AKS", "resourceId": "/subscriptions/s"}, True),
        ({"computeType": "AKS", "resourceId": "[parameters('x')]"}, None),
        ({"computeType": "[parameters('x')]"}, None),
    ],
)
def test_attachment_follows_from_what_is_known(properties: JsonObject, attached: object) -> None:
    """It is unreadable where that is unknown."""
    document = template({**COMPUTE, "properties": properties}, parameters={"x": {"type": "string"}})
    placed = only(read(document))
    assert placed.resource["properties"].get("isAttachedCompute") is attached
    assert ("/properties/isAttachedCompute" in own(placed)) is (attached is None)


def test_nulls_are_absent_and_keys_are_evaluated() -> None:
    """A key may be an expression, as those of assigned identities are."""
    identity = {"type": "UserAssigned", "userAssignedIdentities": {"[resourceId('A.B/c', 'd')]": {}}}
    placed = only(read(template({**WORKSPACE, "sku": "[null()]", "identity": identity, "properties": {"a": None}})))
    assert "sku" not in placed.resource
    assert placed.resource["properties"] == {}
    assert placed.resource["identity"]["userAssignedIdentities"] == {f"{GROUP}/providers/A.B/c/d": {}}


def test_properties_are_read_without_case() -> None:
    """`VMSize` is what ARM takes for `vmSize`; names that users give stay."""
    properties = {"ComputeType": "AmlCompute", "Properties": {"VMSize": "x"}}
    document = template({**COMPUTE, "Tags": {"vmsize": "y"}, "properties": properties})
    placed = only(read(document))
    assert placed.resource["properties"]["properties"] == {"vmSize": "x"}
    assert placed.resource["tags"] == {"vmsize": "y"}
    assert placed.fields["/properties/properties/vmSize"] == "/resources/0/properties/Properties/VMSize"


def test_unknown_keys_are_reported() -> None:
    """With the nearest one that there is."""
    reading = read(template({**WORKSPACE, "propertis": {}}))
    assert reading.remarks == (remark("/resources/0/propertis", "unknown key `propertis`; did you mean `properties`"),)


# ---------------------------------------------------------------- conditions and copies


@pytest.mark.parametrize(
    ("condition", "found"),
    [(True, 1), (False, 0), ("[equals(1, 2)]", 0), ("[not(false())]", 1), ("false", 0)],
)
def test_a_condition_decides(condition: object, found: int) -> None:
    """A resource that is not deployed is not there."""
    assert len(read(template({**WORKSPACE, "condition": condition})).resources) == found


@pytest.mark.parametrize(("condition", "refused"), [(False, 0), ("[not(empty(parameters('x')))]", 0), (True, 1)])
def test_resources_that_are_not_deployed_need_no_name(condition: object, refused: int) -> None:
    """The name of an optional resource is often a parameter that is empty unless the resource is wanted."""
    optional = {**WORKSPACE, "condition": condition, "name": "[parameters('x')]"}
    reading = read(template(optional, parameters={"x": {"type": "string", "defaultValue": ""}}))
    assert (len(reading.refusals), reading.resources) == (refused, ())


def test_a_resource_that_may_be_deployed_is_unreadable_as_a_whole() -> None:
    """Every policy on it is unknown; those on a copy of which the number is not known, too."""
    parameters = {"x": {"type": "bool"}, "n": {"type": "int"}}
    loop = {"name": "c", "count": "[parameters('n')]"}
    reading = read(
        template(
            {**WORKSPACE, "condition": "[parameters('x')]"},
            {**WORKSPACE, "condition": "[not(parameters('x'))]"},
            {**COMPUTE, "name": "[format('ws/c{0}', copyIndex())]", "copy": loop},
            parameters=parameters,
        )
    )
    assert [own(placed)[""].partition(":")[0] for placed in reading.resources] == [
        "its condition is not known",
        "its condition is not known",
        "the number of copies is not known",
    ]
    assert len(set(ids(reading))) == 3


def test_copies_are_made() -> None:
    """Of resources, and of properties; fields have the place of the loop's input."""
    loop = {"name": "machines", "count": "[length(variables('names'))]"}
    rules = {"name": "rules", "count": 2, "input": {"ip": "[concat('10.0.0.', copyIndex('rules', 1))]"}}
    document = template(
        {
            **COMPUTE,
            "name": "[concat('ws/', variables('names')[copyIndex()])]",
            "copy": loop,
            "properties": {"copy": [rules], "n": "[copyIndex('machines')]"},
        },
        variables={"names": ["a", "b"]},
    )
    reading = read(document)

    assert ids(reading) == [f"/providers/{ML}/workspaces/ws/computes/{name}" for name in "ab"]
    assert [placed.resource["properties"]["n"] for placed in reading.resources] == [0, 1]
    placed = reading.resources[0]
    assert placed.resource["properties"]["rules"] == [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}]
    assert placed.fields["/properties/rules/1"] == "/resources/0/properties/copy/0/input"
    assert "copy" not in placed.resource


def test_a_property_copied_an_unknown_number_of_times_is_unreadable() -> None:
    """The whole list is."""
    rules = {"name": "rules", "count": "[parameters('n')]", "input": 1}
    placed = only(read(template({**WORKSPACE, "properties": {"copy": [rules]}}, parameters={"n": {"type": "int"}})))
    assert set(own(placed)) == {"/properties/rules"}


def test_the_second_language_has_symbolic_names_and_existing_resources() -> None:
    """Existing resources are not evaluated."""
    document = {
        **template(languageVersion="2.0"),
        "resources": {"ws": {**WORKSPACE, "existing": True}, "ws::c": COMPUTE},
    }
    placed = only(read(document))
    assert (placed.resource["type"], placed.pointer) == (f"{ML}/workspaces/computes", "/resources/ws::c")


def test_more_resources_than_are_taken_are_refused() -> None:
    """Copies of copies do not grow without end."""
    loop = {"name": "c", "count": 800}
    many = template({**WORKSPACE, "name": "[concat('w', copyIndex())]", "copy": loop})
    reading = read(template(nested(many, copy=loop, name="[concat('d', copyIndex())]")))
    assert len(reading.resources) < 5000
    assert any("more than 5000 resources" in refusal.message for refusal in reading.refusals)


# ---------------------------------------------------------------- parameters


def test_parameters_are_given() -> None:
    """`--parameters` precedes the default; values that do not fit are reported."""
    parameters = {
        "name": {"type": "string", "defaultValue": "d", "maxLength": 3},
        "n": {"type": "int", "maxValue": 3, "defaultValue": 1},
        "kind": {"type": "string", "allowedValues": ["A", "B"], "defaultValue": "A"},
        "on": {"type": "bool", "defaultValue": False},
    }
    resource = {
        **WORKSPACE,
        "name": "[parameters('name')]",
        "kind": "[parameters('kind')]",
        "properties": {"n": "[parameters('n')]", "on": "[parameters('on')]"},
    }
    reading = read(template(resource, parameters=parameters), name=1234, n=4, kind="C", on="true", nam="x")

    placed = only(reading)
    assert (placed.resource["name"], placed.resource["kind"]) == ("1234", "C")
    assert placed.resource["properties"] == {"n": 4, "on": True}
    assert sorted((each.place, each.message) for each in reading.remarks) == [
        ("/parameters", "the template has no parameter `nam`; did you mean `name`"),
        ("/parameters/kind", "the value of the parameter `kind` is `C`; it may be `A`, `B`"),
        ("/parameters/n", "the value of the parameter `n` is 4 and may not be above 3"),
        ("/parameters/name", "the value of the parameter `name` is 4 and may not be above 3"),
    ]


def test_a_secret_of_a_key_vault_is_unreadable() -> None:
    """The reason states where it is."""
    document = template({**WORKSPACE, "kind": "[parameters('k')]"}, parameters={"k": {"type": "string"}})
    placed = only(read(document, k=Unresolved("the value of the parameter `k` is in a key vault")))
    assert own(placed)["/kind"].endswith("the value of the parameter `k` is in a key vault")


def write(folder: Path, name: str, document: object) -> Path:
    """A document as a file."""
    path = folder / name
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_the_parameter_file_next_to_a_template_is_used(tmp_path: Path) -> None:
    """It is reported, and so are the others; `--parameters` precedes it."""
    parameters = {"name": {"type": "string"}, "kind": {"type": "string"}}
    resource = {**WORKSPACE, "name": "[parameters('name')]", "kind": "[parameters('kind')]"}
    path = write(tmp_path, "azuredeploy.json", template(resource, parameters=parameters))
    given: JsonObject = {"name": {"value": "GEN-UNIQUE"}}
    given["kind"] = {"reference": {"keyVault": {}, "secretName": "s"}}
    values = {"$schema": SCHEMA.format("deploymentParameters"), "parameters": given}
    write(tmp_path, "azuredeploy.parameters.json", values)
    write(tmp_path, "azuredeploy.parameters.us.json", values)

    inputs = read_inputs([path])
    (resource,) = inputs.snapshot.resources
    assert resource["name"] == "GEN-UNIQUE"
    assert "in a key vault" in inputs.snapshot.unreadable[lowered(resource["id"])]["/kind"]
    assert [problem.message for problem in inputs.problems] == [
        "parameters without a value in `--parameters` take it from `azuredeploy.parameters.json` in the same directory",
        "the directory has other parameter files: `azuredeploy.parameters.us.json`; to use one of them, give it "
        "as `--parameters`",
    ]
    inputs = read_inputs([path], context=DocumentContext(parameters={"kind": "Hub"}))
    assert inputs.snapshot.resources[0]["kind"] == "Hub"


# ---------------------------------------------------------------- templates inside templates


def test_the_scope_of_evaluation_decides_what_nested_expressions_see() -> None:
    """Outer is the default; in the second language it is inner."""
    inner = template({**WORKSPACE, "name": "[variables('n')]"}, variables={"n": "inside"})
    outer_variables = {"n": "outside"}
    assert ids(read(template(nested(inner), variables=outer_variables)))[0].endswith("/outside")
    assert ids(read(template(nested(inner, "outer"), variables=outer_variables)))[0].endswith("/outside")
    assert ids(read(template(nested(inner, "inner"), variables=outer_variables)))[0].endswith("/inside")
    second = template(nested(inner), variables=outer_variables, languageVersion="2.0")
    assert ids(read(second))[0].endswith("/inside")


def test_a_nested_template_gets_values_and_another_place() -> None:
    """Values go down through copies and expressions; ids lie where it is deployed to."""
    inner = template(
        {**WORKSPACE, "name": "[parameters('a')]", "tags": "[parameters('t')]", "kind": "[resourceGroup().name]"},
        parameters={"a": {"type": "string"}, "t": {"type": "object"}, "c": {"type": "array"}},
    )
    values = {
        "a": "[if(true(), createObject('value', parameters('x')), createObject('value', 'no'))]",
        "t": {"value": {"k": "[parameters('x')]"}},
        "c": {"copy": [{"name": "value", "count": 2, "input": 1}]},
    }
    deployment = nested(inner, "inner", parameters=values, resourceGroup="other", subscriptionId="s")
    document = template(deployment, parameters={"x": {"type": "string", "defaultValue": "v"}})
    placed = only(read(document))

    assert placed.resource["id"] == f"/subscriptions/s/resourceGroups/other/providers/{ML}/workspaces/v"
    assert placed.resource["tags"] == {"k": "v"}
    assert placed.resource["kind"] == "other"
    assert placed.pointer == "/resources/0/properties/template/resources/0"


def test_outputs_of_deployments_are_known_to_the_others() -> None:
    """Wherever they are, by name, symbolic name or id; one that leads to itself is not known."""
    inner = template(
        WORKSPACE,
        outputs={
            "id": {"type": "string", "value": f"[resourceId('{ML}/workspaces', 'ws')]"},
            "loop": {"type": "string", "value": "[parameters('p')]"},
        },
        parameters={"p": {"type": "string", "defaultValue": ""}},
    )
    circle = {"p": {"value": "[reference('inner').outputs.loop.value]"}}
    by = ("'inner'", "resourceId('Microsoft.Resources/deployments', 'inner')")
    using = [
        {"type": "A.B/c", "name": f"n{n}", "properties": {"id": f"[reference({name}).outputs.id.value]"}}
        for n, name in enumerate(by)
    ]
    reading = read(template(*using, nested(inner, "inner", parameters=circle)))
    first, second, workspace = reading.resources
    assert first.resource["properties"] == second.resource["properties"] == {"id": workspace.resource["id"]}
    lost = template(
        {**WORKSPACE, "kind": "[reference('inner').outputs.loop.value]"}, nested(inner, "inner", parameters=circle)
    )
    assert "/kind" in own(read(lost).resources[0])


def test_a_deployment_that_may_not_be_made_makes_all_of_it_uncertain() -> None:
    """A deployment that is not made leaves nothing."""
    inner = template(WORKSPACE)
    unsure = template(nested(inner, condition="[parameters('x')]"), parameters={"x": {"type": "bool"}})
    assert "" in own(only(read(unsure)))
    assert read(template(nested(inner, condition=False))).resources == ()


@pytest.mark.parametrize(
    ("link", "file"),
    [
        ({"relativePath": "modules/ws.json"}, "modules/ws.json"),
        ({"uri": "https://raw.example/x/modules/ws.json?sas=1"}, "ws.json"),
        ({"uri": "[uri(parameters('base'), 'modules/ws.json')]"}, "modules/ws.json"),
        ({"uri": "[concat(parameters('base'), 'modules/ws.json', parameters('sas'))]"}, "modules/ws.json"),
    ],
)
def test_linked_templates_are_read_from_the_same_directory(tmp_path: Path, link: JsonObject, file: str) -> None:
    """A missing template is reported, and the snapshot is not whole."""
    deployment = nested(None, parameters={"n": {"value": "linked"}})
    del deployment["properties"]["template"]
    deployment["properties"]["templateLink"] = link
    parameters = {"base": {"type": "string"}, "sas": {"type": "string"}}
    path = write(tmp_path, "main.json", template(deployment, parameters=parameters))
    missing = read_inputs([path])
    assert not missing.snapshot.resources
    assert missing.problems[0].level == "error"
    assert "the template of the deployment `inner` is not read" in missing.snapshot.incomplete[0]
    assert "no template `modules/ws.json` next to the file; add it at that path" in missing.snapshot.incomplete[0]
    (tmp_path / file).parent.mkdir(exist_ok=True)
    inner = template({**WORKSPACE, "name": "[parameters('n')]"}, parameters={"n": {"type": "string"}})
    write(tmp_path, file, inner)
    inputs = read_inputs([path])
    assert [resource["id"].rsplit("/", 1)[-1] for resource in inputs.snapshot.resources] == ["linked"]
    assert next(iter(inputs.snapshot.origins.values())).file == str(tmp_path / file)


def test_templates_that_link_to_themselves_end(tmp_path: Path) -> None:
    """The depth of deployments is bounded, and deeper ones are reported as missing."""
    deployment = nested(None)
    deployment["properties"] = {"templateLink": {"relativePath": "main.json"}}
    path = write(tmp_path, "main.json", template(deployment, WORKSPACE))
    assert "nested deeper than 8 levels" in read_inputs([path]).snapshot.incomplete[0]


def test_a_role_is_assigned_at_its_scope() -> None:
    """`properties.scope`, which ARM states for an assignment, is where the template puts it."""
    role = {"type": "Microsoft.Authorization/roleAssignments", "name": "g", "properties": {"principalId": "p"}}
    assert only(read(template(role))).resource["properties"]["scope"] == GROUP
    scoped = only(read(template({**role, "scope": "[parameters('s')]"}, parameters={"s": {"type": "string"}})))
    assert "/properties/scope" in own(scoped)
    assert scoped.resource["properties"] == {"principalId": "p"}


# ---------------------------------------------------------------- places, gaps and real files


def test_findings_are_at_the_line_of_the_field(tmp_path: Path, bundle: Bundle) -> None:
    """In a template with comments and texts of several lines, in a copy, and in a nested template."""
    path = tmp_path / "main.json"
    path.write_text(
        """{
  // what it is
  "$schema": "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#",
  "resources": [
    {
      "type": "Microsoft.MachineLearningServices/workspaces",
      "name": "[concat('w',
                's')]", /* over two lines */
      "properties": {
        "publicNetworkAccess": "[concat('En', 'abled')]"
      }
    },
    {"type": "Microsoft.Resources/deployments", "name": "d", "properties": {"template": {"resources": [
      {
        "type": "Microsoft.MachineLearningServices/workspaces",
        "name": "inner",
        "properties": {
          "publicNetworkAccess": "Enabled"
        }
      }
    ]}}}
  ]
}
""",
        encoding="utf-8",
    )
    inputs = read_inputs([path], context=DocumentContext(scope=GROUP))
    assert not inputs.problems
    findings = [entry for entry in evaluate(bundle, inputs.snapshot).findings if entry.policy == "AML-NET-001"]
    places = {}
    for finding in findings:
        assert finding.outcome == "fail"
        place = finding.location.fields["/properties/publicNetworkAccess"]
        places[finding.resource.rsplit("/", 1)[-1]] = (finding.location.line, place.line, place.column)
    assert places == {"ws": (5, 10, 32), "inner": (14, 18, 34)}


def test_unknown_values_neither_pass_nor_fail(tmp_path: Path, bundle: Bundle) -> None:
    """The policy that inspects one is unknown, with the expression, the cause and the remedy."""
    resource = {**WORKSPACE, "properties": {"publicNetworkAccess": "[parameters('access')]"}}
    path = write(tmp_path, "main.json", template(resource, parameters={"access": {"type": "string"}}))
    (finding,) = (
        entry for entry in evaluate(bundle, read_inputs([path]).snapshot).findings if entry.policy == "AML-NET-001"
    )
    assert finding.outcome == "unknown"
    assert [unknown.msg for unknown in finding.unknowns] == [
        "`[parameters('access')]`: the parameter `access` has no value; give `--parameters access=...`"
    ]


#: What our policies inspect and no template can state, by type: the service sets it.
GAPS = {
    f"{ML}/workspaces": {
        "/properties/managedNetwork/status/status",
        "/properties/privateEndpointConnections",
        "/properties/privateEndpointConnections/*/properties/privateEndpoint/id",
        "/properties/privateEndpointConnections/*/properties/privateLinkServiceConnectionState/status",
    },
    f"{ML}/workspaces/computes": {
        "/properties",
        "/properties/properties/connectivityEndpoints/publicIpAddress",
        "/properties/properties/lastOperation/operationTime",
        "/properties/properties/lastOperation/operationTrigger",
        "/properties/properties/osImageMetadata/isLatestOsImageVersion",
        "/properties/properties/state",
    },
    "Microsoft.ContainerService/managedClusters": {"/properties/powerState/code"},
    f"{ML}/workspaces/onlineEndpoints": {"/properties/provisioningState"},
    f"{ML}/workspaces/onlineEndpoints/deployments": {"/properties"},
    f"{ML}/workspaces/jobs": {"/properties"},
    "Microsoft.Authorization/roleAssignments": set(),
}


@pytest.mark.parametrize("kind", GAPS)
def test_what_no_template_can_state(kind: str, bundle: Bundle) -> None:
    """The pointers of our policies that are unreadable in every template, and nothing is left out silently."""
    names = "/".join("n" for _ in kind.split("/")[1:])
    placed = only(read(template({"type": kind, "name": names, "properties": {}})))
    assert placed.carried is None
    inspected = {
        pointer
        for policy in bundle.policies
        if any(lowered(target.type) == lowered(kind) for target in policy.header.judges)
        for pointer in observe(bundle, policy).pointers
    }
    found = {
        pointer
        for pointer in inspected
        if any(f"{pointer}/".startswith(f"{gap}/") or gap.startswith(f"{pointer}/") for gap in placed.unreadable)
    }
    assert found == GAPS[kind]


def _types(value: Any, parent: str = "") -> Iterator[str]:
    """The types of Machine Learning resources in a document, in whatever template of it."""
    if isinstance(value, list):
        for entry in value:
            yield from _types(entry, parent)
    elif isinstance(value, dict):
        kind = value.get("type")
        if isinstance(kind, str) and "name" in value and kind.startswith(ML) and value.get("existing") is not True:
            yield kind
        for key, entry in value.items():
            yield from _types(entry) if key != "existing" else ()


def test_every_real_template_is_read() -> None:
    """All 69 of them, and every type of Machine Learning resource that may be deployed comes out."""
    folder = REAL / "arm_template"
    if not folder.is_dir():
        pytest.skip(f"no real documents at {folder}")
    counts: Counter[str] = Counter()
    for path in sorted(folder.rglob("*.json")):
        inputs = read_inputs([path])
        format_name = next((read.format for read in inputs.read), "")
        counts["read"] += format_name == "arm-template"
        counts["nothing"] += any("values of template parameters" in skipped.reason for skipped in inputs.ledger)
        if format_name != "arm-template":
            continue
        errors = [problem.message for problem in inputs.problems if problem.level == "error"]
        assert not [message for message in errors if "is not read: " not in message], path
        found = [
            resource for resource in inputs.snapshot.resources if lowered(resource["type"]).startswith(lowered(ML))
        ]
        counts["Machine Learning"] += len(found)
        document = read_text(path.read_bytes(), path.name, max_bytes=DEFAULT_MAX_BYTES).documents[0][1]
        assert "condition" in path.read_text() or {*map(lowered, _types(document))} <= {
            lowered(resource["type"]) for resource in found
        }
    assert counts == {"read": 69, "nothing": 46, "Machine Learning": 96}


def test_real_bicep_is_refused_with_the_command_that_compiles_it() -> None:
    """Nothing of it is evaluated."""
    folder = REAL / "arm_template"
    if not folder.is_dir():
        pytest.skip(f"no real documents at {folder}")
    paths = sorted(folder.rglob("*.bicep"))
    assert len(paths) == 41
    for path in paths:
        (problem,) = read_inputs([path]).problems
        assert "az bicep build --file" in problem.message


# ---------------------------------------------------------------- documents that are a little wrong

SCALARS = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        10**9,
        1e300,
        "",
        "[",
        "[]",
        "[parameters('x')]",
        "[copyIndex()]",
        "{x}",
        "/",
        "é",
        "[variables('v')]",
    ]
)
KEYS = st.sampled_from(["type", "name", "properties", "copy", "count", "scope", "template", "resources", "value", "v"])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=5
)


def _documents() -> list[str]:
    own_ones = [
        template(WORKSPACE, COMPUTE, nested(template({**WORKSPACE, "copy": {"name": "c", "count": 2}}), "inner"))
    ]
    texts = [json.dumps(document) for document in own_ones]
    for path in sorted((REAL / "arm_template").rglob("*.json")) if REAL.is_dir() else ():
        if path.stat().st_size < 20_000:
            try:
                texts.append(json.dumps(read_text(path.read_bytes(), path.name, max_bytes=10**6).documents[0][1]))
            except InputError:
                continue
    return texts


DOCUMENTS = _documents()


@st.composite
def mutants(draw: st.DrawFn) -> object:
    """A real template in which some places have another value or another key."""
    holder: dict[str, Any] = {"": json.loads(draw(st.sampled_from(DOCUMENTS)))}
    for _ in range(draw(st.integers(1, 3))):
        place: Any = holder
        while isinstance(place, dict | list) and place:
            key = draw(st.sampled_from(list(place) if isinstance(place, dict) else list(range(len(place)))))
            inner = place[key]
            if not isinstance(inner, dict | list) or not inner or draw(st.integers(0, 5)) == 0:
                place[key] = draw(VALUES)
                if isinstance(place, dict) and draw(st.booleans()):
                    place[draw(KEYS)] = place.pop(key)
                break
            place = inner
    return holder.get("", holder)


@settings(max_examples=effort(60, 300), deadline=None)
@given(mutants() | VALUES)
def test_every_document_is_read(document: object) -> None:
    """Nothing is raised, and every resource has an id, a type and places that are pointers."""
    reading = arm_template.read(document, Surroundings(parameters={"x": {"deep": [1]}}))
    for placed in reading.resources:
        assert placed.resource["id"].startswith("/")
        assert "/" in placed.resource["type"]
        assert all(pointer == "" or pointer.startswith("/") for pointer in (*placed.unreadable, *placed.fields))
        json.dumps(placed.resource)


def test_the_response_of_an_export_is_its_template() -> None:
    """Where the export ended with an error, the template is not whole, and the warning has the text of the error."""
    inner = template({"type": "Microsoft.MachineLearningServices/workspaces", "name": "w", "apiVersion": "x"})
    error = {"code": "ExportTemplateCompletedWithErrors", "message": "Could not get resources of a type."}
    whole, partly = read({"template": inner}), read({"template": inner, "error": error})

    assert arm_template.detect({"template": inner, "error": error})
    assert [name for name, reader in FORMATS.items() if reader.detect({"template": inner})] == ["arm-template"]
    assert [placed.pointer for placed in whole.resources] == ["/template/resources/0"]
    assert whole.incomplete == ()
    assert partly.resources == whole.resources
    assert error["code"] in partly.incomplete[0]
    assert error["message"] in partly.incomplete[0]


def test_unrelated_templates_of_a_directory_share_no_resource(tmp_path: Path) -> None:
    """Also where both deploy something of one name to another resource group of a subscription that is not known."""
    for name, location in (("a", "westus"), ("b", "eastus")):
        endpoint = {
            "type": "Microsoft.Network/privateEndpoints",
            "name": "pe",
            "apiVersion": "x",
            "location": location,
            "properties": {},
        }
        document = template(nested(template(endpoint), resourceGroup="network"))
        (tmp_path / f"{name}.json").write_text(json.dumps(document), encoding="utf-8")
    read_both = read_inputs([tmp_path])

    assert [problem.message for problem in read_both.problems if problem.level == "error"] == []
    assert len({resource["id"] for resource in read_both.snapshot.resources}) == 2
