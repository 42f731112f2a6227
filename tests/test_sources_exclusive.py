"""A document is of one format: no member that is added to it hides what it contains, alone or in a directory."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

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
    assert inputs.skipped == ()


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
