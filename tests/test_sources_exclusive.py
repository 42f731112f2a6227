"""A document is of one format: no member that is added to it hides what it contains, alone or in a directory."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyeng.models import JsonObject
from policyeng.sources import FORMATS, parse_changes, read_inputs
from policyeng.sources.changes import CHANGE_FORMATS
from policyeng.sources.detection import find_second
from policyeng.sources.discovery import Named
from policyeng.sources.text import read_text
from tests.fuzzing import ODD_SCALARS

SAMPLES = Path(__file__).resolve().parents[1] / "samples" / "formats"
GROUP = "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/rg-ml"
PROVIDERS = f"{GROUP}/providers"
ML = "Microsoft.MachineLearningServices"
TEMPLATE = "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#"
CLI = "https://azuremlschemas.azureedge.net/latest"

WORKSPACE: JsonObject = {
    "id": f"{PROVIDERS}/{ML}/workspaces/w",
    "type": f"{ML}/workspaces",
    "name": "w",
    "location": "eastus",
    "properties": {"publicNetworkAccess": "Enabled"},
}
STORAGE: JsonObject = {
    "id": f"{PROVIDERS}/Microsoft.Storage/storageAccounts/s",
    "type": "Microsoft.Storage/storageAccounts",
    "properties": {"publicNetworkAccess": "Enabled"},
}
ASSIGNMENT: JsonObject = {
    "id": f"{PROVIDERS}/Microsoft.Authorization/roleAssignments/a",
    "principalId": "p",
    "principalType": "User",
    "roleDefinitionId": "/providers/Microsoft.Authorization/roleDefinitions/8e3af657-a8ff-443c-a75c-2fe8c4bcb635",
    "scope": GROUP,
}
ROLE: JsonObject = {"Name": "r", "IsCustom": True, "Actions": ["*"], "NotActions": [], "AssignableScopes": [GROUP]}
PRINTED: JsonObject = {
    "id": WORKSPACE["id"],
    "name": "w",
    "location": "eastus",
    "public_network_access": "Enabled",
    "discovery_url": "https://x",
}
ATTRIBUTES: JsonObject = {"id": WORKSPACE["id"], "name": "w", "location": "eastus"}
IN_TERRAFORM: JsonObject = {
    "address": "azurerm_machine_learning_workspace.w",
    "mode": "managed",
    "type": "azurerm_machine_learning_workspace",
    "name": "w",
}
SHOWN_STATE: JsonObject = {
    "format_version": "1.0",
    "terraform_version": "1.9.5",
    "values": {"root_module": {"resources": [{**IN_TERRAFORM, "values": ATTRIBUTES}]}},
}
STATE_FILE: JsonObject = {
    "version": 4,
    "serial": 1,
    "lineage": "x",
    "terraform_version": "1.9.5",
    "resources": [{**IN_TERRAFORM, "instances": [{"attributes": ATTRIBUTES}]}],
}


@cache
def bases() -> Mapping[str, JsonObject]:
    """Documents of every format: the samples and more."""
    found: dict[str, JsonObject] = {}
    for path in sorted(SAMPLES.rglob("*")):
        if path.suffix in (".json", ".yaml", ".yml"):
            text = read_text(path.read_bytes(), path.name, max_bytes=1 << 20)
            found |= {f"{path.name}{pointer}": one for pointer, one in text.documents if isinstance(one, dict)}
    for name in ("cluster.yml", "deployment.yml", "endpoint.yml"):
        found[f"{name} without a schema"] = {key: value for key, value in found[name].items() if key != "$schema"}
    return found | {
        "resource": WORKSPACE,
        "resource without a type": {key: value for key, value in WORKSPACE.items() if key != "type"},
        "resource of another type": STORAGE,
        "list": {"value": [WORKSPACE]},
        "example": {"parameters": {}, "responses": {"200": {"body": WORKSPACE}}},
        "rows": {"data": [WORKSPACE], "count": 1, "totalRecords": 1},
        "exported": {"template": found["main.json"]},
        "native": {"snapshotVersion": 1, "resources": [WORKSPACE]},
        "assignment": ASSIGNMENT,
        "role": ROLE,
        "printed": PRINTED,
        "shown state": SHOWN_STATE,
        "state file": STATE_FILE,
        "review": {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {"operation": "CREATE", "object": found["manifests.yaml/0"]},
        },
    }


#: Members that identify documents in which there is nothing to check, or less.
ADDED: Mapping[str, JsonObject] = {
    "workspace-config": {"subscription_id": "x", "resource_group": "x", "workspace_name": "x"},
    "plan": {"format_version": "1.2", "planned_values": {}, "resource_changes": []},
    "a version of Terraform": {"format_version": "1.2", "terraform_version": "1.9"},
    "planned values": {"planned_values": {}},
    "values": {"format_version": "1.2", "values": {}},
    "state file": {"version": 4, "serial": 1, "lineage": "x", "terraform_version": "1", "resources": []},
    "log": {"@level": "info", "@message": "x", "@timestamp": "x"},
    "encrypted": {"encrypted_data": "x", "encryption_version": "v0"},
    "template": {"$schema": TEMPLATE, "contentVersion": "1.0.0.0", "resources": []},
    "schema of a template": {"$schema": TEMPLATE},
    "parameters": {"$schema": TEMPLATE.replace("Template", "Parameters"), "parameters": {}},
    "exported": {"template": {"$schema": TEMPLATE, "resources": []}},
    "schema of an environment": {"$schema": f"{CLI}/environment.schema.json"},
    "environment": {"$schema": f"{CLI}/environment.schema.json", "name": "e", "image": "i", "version": "1"},
    "compute": {"name": "w", "type": "amlcompute", "size": "x"},
    "JSON schema": {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"},
    "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}},
    "objects": {"apiVersion": "v1", "kind": "List", "items": []},
    "kustomization": {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": []},
    "review": {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"operation": "DELETE"}},
    "rows": {"data": [], "count": 0, "totalRecords": 0},
    "change of a resource": {"beforeSnapshot": {}, "changeId": "x"},
    "history": {"snapshots": [], "count": 0},
    "query": {"query": "x", "status": {}},
    "list": {"value": []},
    "example": {"parameters": {}, "responses": {"200": {"body": {}}}},
    "example of rows": {"parameters": {}, "responses": {"200": {"body": {"data": [], "count": 0}}}},
    "status": {"status": "Succeeded"},
    "error": {"error": {"code": "x", "message": "y"}},
    "failure": {"ERROR": "x"},
    "keys": {"primaryKey": "x", "tokenType": "y"},
    "role": {"Name": "x", "Actions": [], "AssignableScopes": []},
    "assignment": {"principalId": "x", "roleDefinitionId": "y"},
    "native": {"snapshotVersion": 1, "resources": []},
    "changes": {"changes": []},
    "operation": {"operation": "delete"},
    "what-if": {"status": "Succeeded", "changes": []},
    "changes of what-if": {"changes": [{"changeType": "NoChange", "resourceId": WORKSPACE["id"]}]},
    "printed": {"creation_context": {}, "provisioning_state": "Succeeded", "name": "x"},
    "id": {"id": f"{PROVIDERS}/Microsoft.Foo/bars/x"},
    "type": {"type": "Microsoft.Foo/bars"},
    "type of JSON": {"type": "object"},
    "underscore": {"foo_bar": 1},
    "any": {"foo": 1},
    "properties": {"properties": {}},
    "report": {"reportVersion": 1, "findings": []},
    "exemptions": {"exemptions": []},
    "SARIF": {"runs": [], "version": "2.1.0"},
    "quota": {"limit": 1, "unit": "x"},
    "Resources": {"Resources": []},
}
NAMES = sorted({name for each in CHANGE_FORMATS.values() for shape in each.SHAPES for name in shape})
VALUES = st.sampled_from([*ODD_SCALARS, [], {}, [{}], TEMPLATE, f"{CLI}/environment.schema.json", "1.2", "v1", "Other"])


def merged(base: JsonObject, added: JsonObject) -> Iterator[bytes]:
    """A document with more members, before and after its own; what it has stays as it is."""
    more = {key: value for key, value in added.items() if key not in base}
    if more:
        yield json.dumps({**more, **base}).encode()
        yield json.dumps({**base, **more}).encode()


def checked(content: bytes, *, found: bool) -> dict[str, object] | None:
    """The properties of what is read, by id; None if there is an error."""
    inputs = read_inputs([Named("x.json", None, found=found, content=content)])
    if any(problem.level == "error" for problem in inputs.problems):
        return None
    return {one["id"].lower(): one.get("properties") for one in inputs.snapshot.resources}


def changed(content: bytes) -> set[str] | None:
    """The ids of what changes; None if there is an error."""
    read = parse_changes(content, "x.json")
    if any(problem.level == "error" for problem in read.problems):
        return None
    return {change.id.lower() for change in read.changes}


def assert_nothing_is_hidden(base: JsonObject, added: JsonObject) -> None:
    """What is read without the added members is read with them, or there is an error."""
    content = json.dumps(base).encode()
    before, puts = checked(content, found=True), changed(content)
    assert before is not None
    assert puts is not None
    for more in merged(base, added):
        for found in (True, False):
            after = checked(more, found=found)
            assert after is None or len(after) >= len(before), (added, found)
        sent = changed(more)
        assert sent is None or len(sent) >= len(puts), added


@pytest.mark.parametrize("added", ADDED)
@pytest.mark.parametrize("name", [name for name in bases() if name != "main.parameters.json"])
def test_no_set_of_members_hides_a_document(name: str, added: str) -> None:
    """Neither alone nor as a file of a directory, neither for `check` nor for `admit`."""
    assert_nothing_is_hidden(bases()[name], ADDED[added])


@given(
    name=st.sampled_from([name for name in bases() if name != "main.parameters.json"]),
    added=st.dictionaries(st.sampled_from(NAMES), VALUES, min_size=1, max_size=4),
)
def test_no_member_of_any_format_hides_a_document(name: str, added: JsonObject) -> None:
    """Adding members to a document never turns what is read into nothing."""
    assert_nothing_is_hidden(bases()[name], added)


@pytest.mark.attack
@pytest.mark.parametrize("found", [True, False])
@pytest.mark.parametrize(
    ("document", "formats", "keys"),
    [
        ({**ADDED["workspace-config"], **ADDED["object"]}, ("workspace-config", "kubernetes"), "`apiVersion`, `kind`"),
        ({**WORKSPACE, **ADDED["workspace-config"]}, ("workspace-config", "arm-rest"), "`properties`"),
        ({**WORKSPACE, **ADDED["plan"]}, ("terraform", "arm-rest"), "`planned_values`"),
        ({**WORKSPACE, **ADDED["rows"]}, ("resource-graph", "arm-rest"), "`data`, `count`"),
        ({**SHOWN_STATE, "planned_values": {}}, ("terraform",), "`planned_values`"),
    ],
)
def test_a_document_of_two_formats_is_an_error(
    document: JsonObject, formats: tuple[str, ...], keys: str, found: bool
) -> None:
    """It names both formats and the members, wherever the document is from."""
    inputs = read_inputs([Named("x.json", None, found=found, content=json.dumps(document).encode())])

    [problem] = inputs.problems
    assert problem.level == "error"
    assert all(f"`{name}`" in problem.message for name in formats)
    assert keys in problem.message
    assert inputs.ledger == ()


def test_a_format_that_the_user_names_opens_no_hole() -> None:
    """`--from` does not make one of two formats of a document; what its reader does not find there is not known."""
    content = json.dumps({**ADDED["workspace-config"], **WORKSPACE}).encode()
    for name in FORMATS:
        inputs = read_inputs([Named("x.json", None, content=content)], from_format=name)
        unreadable = inputs.snapshot.unreadable.get(WORKSPACE["id"].lower(), {})
        is_error = any(problem.level == "error" for problem in inputs.problems)
        assert is_error or "/properties/publicNetworkAccess" in unreadable, name


@pytest.mark.parametrize("name", bases())
def test_documents_of_one_format_are_not_of_two(name: str) -> None:
    """Their members are in one shape of their format, so that nothing else has to be looked at."""
    document = bases()[name]
    [reads, *_] = [each for each in CHANGE_FORMATS if CHANGE_FORMATS[each].detect(document)]
    assert find_second(reads, document, CHANGE_FORMATS) == ""


ODD_LETTERS = {"space": " ", "no-break space": "\u00a0", "zero-width space": "\u200b", "null": "\0"}


def misspellings(name: str) -> Iterator[str]:
    """A technical name with letters that no one sees, or that look like its own."""
    for letter in ODD_LETTERS.values():
        yield from (name + letter, letter + name, name[: len(name) // 2] + letter + name[len(name) // 2 :])
    at = name.lower().find("m", 1)
    yield name[:at] + "\uff4d" + name[at + 1 :]
    if "s" in name.lower():
        at = name.lower().rfind("s")
        yield name[:at] + "\u017f" + name[at + 1 :]


TYPED: Mapping[str, tuple[JsonObject, tuple[str | int, ...]]] = {
    "resource": (WORKSPACE, ("type",)),
    "list": ({"value": [WORKSPACE]}, ("value", 0, "type")),
    "rows": (bases()["rows"], ("data", 0, "type")),
    "native": (bases()["native"], ("resources", 0, "type")),
    "template": (bases()["main.json"], ("resources", 0, "type")),
    "azure-cli": (bases()["cluster.yml without a schema"], ("type",)),
    "kind": (bases()["manifests.yaml/0"], ("kind",)),
    "apiVersion": (bases()["manifests.yaml/0"], ("apiVersion",)),
    "plan": (bases()["plan.json"], ("planned_values", "root_module", "resources", 0, "type")),
    "body of a plan": (
        {
            "format_version": "1.2",
            "planned_values": {
                "root_module": {
                    "resources": [
                        {
                            "address": "azapi_resource.w",
                            "mode": "managed",
                            "type": "azapi_resource",
                            "name": "w",
                            "values": {"type": f"{ML}/workspaces@2024-04-01", "name": "w", "parent_id": GROUP},
                        }
                    ]
                }
            },
        },
        ("planned_values", "root_module", "resources", 0, "values", "type"),
    ),
}


def replaced(document: JsonObject, path: tuple[str | int, ...], value: object) -> JsonObject:
    """A copy with one other value."""
    copied: JsonObject = json.loads(json.dumps(document))
    holder: Any = copied
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    return copied


@pytest.mark.attack
@pytest.mark.parametrize("found", [True, False])
@pytest.mark.parametrize("name", TYPED)
def test_a_misspelt_type_is_an_error(name: str, found: bool) -> None:
    """It names the place and the letter, alone and next to what is fine."""
    document, path = TYPED[name]
    right: Any = document
    for key in path:
        right = right[key]
    fine = Named("fine.json", None, found=found, content=json.dumps(STORAGE).encode())
    for wrong in misspellings(right.partition("@")[0]):
        content = json.dumps(replaced(document, path, wrong)).encode()
        for more in ([], [fine]):
            inputs = read_inputs([Named("x.json", None, found=found, content=content), *more])
            [problem] = [each for each in inputs.problems if each.level == "error"]
            assert f"`{path[-1]}` contains" in problem.message, ascii(wrong)
            assert f"/{path[-1]}" in problem.place + problem.message
        assert any(each.level == "error" for each in parse_changes(content, "x.json").problems)


DEPLOYMENT: JsonObject = {
    "type": "Microsoft.Resources/deployments",
    "apiVersion": "2022-09-01",
    "name": "d",
    "properties": {"mode": "Incremental", "template": {"$schema": TEMPLATE, "resources": []}},
}
IN_TEMPLATE: JsonObject = {"type": f"{ML}/workspaces", "apiVersion": "2024-04-01", "name": "w", "properties": {}}


def template(*resources: JsonObject, **more: object) -> JsonObject:
    """A template with resources."""
    return {"$schema": TEMPLATE, "contentVersion": "1.0.0.0", "resources": list(resources), **more}


def with_twice(document: JsonObject, *path: str | int) -> JsonObject:
    """A copy in which a member is there a second time, in other letters."""
    holder: Any = document
    for key in path[:-1]:
        holder = holder[key]
    last = str(path[-1])
    other = last.swapcase()
    return replaced(document, (*path[:-1], other), holder[path[-1]])


TWICE = {
    "resources of a template": with_twice(template(IN_TEMPLATE), "resources"),
    "schema of a template": with_twice(template(IN_TEMPLATE), "$schema"),
    "parameter": with_twice(template(parameters={"a": {"type": "string"}}), "parameters", "a"),
    "type of a parameter": with_twice(template(parameters={"a": {"type": "string"}}), "parameters", "a", "type"),
    "variable": with_twice(template(variables={"a": 1}), "variables", "a"),
    "type of a resource": with_twice(template(IN_TEMPLATE), "resources", 0, "type"),
    "properties of a resource": with_twice(template(IN_TEMPLATE), "resources", 0, "properties"),
    "resource of a resource": with_twice(template({**IN_TEMPLATE, "resources": []}), "resources", 0, "resources"),
    "symbolic name": with_twice(template(resources={"a": IN_TEMPLATE}), "resources", "a"),
    "mode of a deployment": with_twice(template(DEPLOYMENT), "resources", 0, "properties", "mode"),
    "template of a deployment": with_twice(template(DEPLOYMENT), "resources", 0, "properties", "template"),
    "nested resources": with_twice(template(DEPLOYMENT), "resources", 0, "properties", "template", "resources"),
    "exported": {"template": with_twice(template(IN_TEMPLATE), "resources")},
    "parameter file": with_twice(
        {"$schema": TEMPLATE.replace("Template", "Parameters"), "parameters": {"a": {"value": 1}}}, "parameters", "a"
    ),
    "resource": with_twice(STORAGE, "properties"),
    "list": {"value": [with_twice(STORAGE, "type")]},
    "rows": {"data": [with_twice(STORAGE, "properties")], "count": 1},
    "native": {"snapshotVersion": 1, "resources": [with_twice(STORAGE, "properties")]},
    "role": with_twice(ROLE, "Actions"),
}


@pytest.mark.attack
@pytest.mark.parametrize("found", [True, False])
@pytest.mark.parametrize("name", TWICE)
def test_a_member_that_is_there_twice_is_an_error(name: str, found: bool) -> None:
    """ARM reads names without case, so it is not known which one counts, wherever the document is from."""
    content = json.dumps(TWICE[name]).encode()
    inputs = read_inputs([Named("x.json", None, found=found, content=content)])

    assert [problem.level for problem in inputs.problems] == ["error"]
    assert "same member" in inputs.problems[0].message
    assert any(problem.level == "error" for problem in parse_changes(content, "x.json").problems)


def test_an_exact_duplicate_is_an_error_wherever_it_is_found() -> None:
    """The strict readers refuse it."""
    content = json.dumps(template(IN_TEMPLATE)).encode().replace(b'"resources"', b'"resources": [], "resources"')
    for found in (True, False):
        inputs = read_inputs([Named("x.json", None, found=found, content=content)])
        assert [problem.level for problem in inputs.problems] == ["error"]


def test_names_of_other_systems_differ_by_case() -> None:
    """Kubernetes, Terraform and the Azure CLI read names as they are written."""
    document = {**bases()["manifests.yaml/0"], "Spec": {}}
    inputs = read_inputs([Named("x.json", None, content=json.dumps(document).encode())])
    assert len(inputs.snapshot.resources) == 1
