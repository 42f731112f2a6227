"""Endpoints in files of the Azure CLI: every row of their tables, omitted values, placeholders."""

from __future__ import annotations

import pytest

from policyeng.models import JsonObject
from policyeng.sources import az_output, azure_cli
from policyeng.sources.azure_cli import endpoints
from policyeng.sources.parsed import ALONE, UNKNOWN_WORKSPACE, Placed
from tests.azure_cli_work import WORKSPACE, around, entries, kind_of, only

SCHEMA = "https://azuremlschemas.azureedge.net/latest/{}.schema.json "
ONLINE: JsonObject = {"$schema": SCHEMA.format("managedOnlineEndpoint"), "name": "ep"}
BATCH: JsonObject = {"$schema": SCHEMA.format("batchEndpoint"), "name": "be"}
USER = f"{WORKSPACE.split('/providers/')[0]}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/u"


def test_an_online_endpoint_is_brought_into_arm_shape() -> None:
    """Every key of the file has its place; the id is in the workspace."""
    written = {
        **ONLINE,
        "tags": {"owner": "a"},
        "description": "{not a placeholder}",
        "auth_mode": "aad_token",
        "public_network_access": "disabled",
        "traffic": {"blue": 90},
        "mirror_traffic": {"green": 10},
        "identity": {"type": "user_assigned", "user_assigned_identities": [{"resource_id": f"azureml:{USER}"}]},
        "properties": {"enforce_access": "true"},
    }
    assert only(written).resource == {
        "id": f"{WORKSPACE}/onlineEndpoints/ep",
        "name": "ep",
        "type": "Microsoft.MachineLearningServices/workspaces/onlineEndpoints",
        "tags": {"owner": "a"},
        "identity": {"type": "UserAssigned", "userAssignedIdentities": {USER: {}}},
        "properties": {
            "authMode": "AADToken",
            "publicNetworkAccess": "Disabled",
            "traffic": {"blue": 90},
            "mirrorTraffic": {"green": 10},
            "description": "{not a placeholder}",
            "properties": {"enforce_access": "true"},
        },
    }


@pytest.mark.parametrize(
    ("written", "arm"), [("key", "Key"), ("aml_token", "AMLToken"), ("aad_token", "AADToken"), ("AADToken", "AADToken")]
)
def test_ways_to_authenticate(written: str, arm: str) -> None:
    """ARM spells them without an underscore."""
    assert only({**ONLINE, "auth_mode": written}).resource["properties"]["authMode"] == arm


@pytest.mark.parametrize(
    ("written", "arm"), [("enabled", "Enabled"), ("disabled", "Disabled"), ("Disabled", "Disabled")]
)
def test_public_network_access(written: str, arm: str) -> None:
    """Of any case."""
    assert only({**ONLINE, "public_network_access": written}).resource["properties"]["publicNetworkAccess"] == arm


def test_the_defaults_that_the_cli_sends() -> None:
    """`azure-ai-ml` sends a key and a system-assigned identity for online, Entra tokens for batch endpoints."""
    online, batch = only(ONLINE).resource, only(BATCH).resource
    assert online["properties"] == {"authMode": "Key"}
    assert online["identity"] == {"type": "SystemAssigned"}
    assert batch["properties"] == {"authMode": "AADToken"}
    assert "publicNetworkAccess" not in online["properties"]
    assert "/properties/publicNetworkAccess" not in only(ONLINE).unreadable


def test_the_output_of_a_command_is_taken_as_it_is() -> None:
    """Nothing is added to what has an id, and the id is taken as written."""
    arm_id = (
        "/subscriptions/s/resourceGroups/r/providers/Microsoft.MachineLearningServices/workspaces/w/onlineEndpoints/e"
    )
    printed = {"id": arm_id, "name": "e", "auth_mode": "key", "identity": {}, "provisioning_state": "Succeeded"}
    placed = only(printed)
    assert placed.resource["id"] == arm_id
    assert "identity" not in placed.resource
    assert "/properties/provisioningState" not in placed.unreadable


@pytest.mark.parametrize("reference", ["azureml:k8s", "k8s", f"azureml:{WORKSPACE}/computes/k8s"])
def test_a_kubernetes_endpoint_names_its_compute_by_id(reference: str) -> None:
    """However it is written."""
    placed = only({**ONLINE, "$schema": SCHEMA.format("kubernetesOnlineEndpoint"), "compute": reference})
    assert placed.resource["properties"]["compute"] == f"{WORKSPACE}/computes/k8s"


def test_a_batch_endpoint_has_a_default_deployment() -> None:
    """Below `defaults`."""
    placed = only({**BATCH, "defaults": {"deployment_name": "d"}})
    assert placed.resource["properties"]["defaults"] == {"deploymentName": "d"}


@pytest.mark.parametrize("value", ["<mode>", "{{ mode }}", "${{ mode }}", "$MODE", "$(mode)"])
def test_placeholders_are_unreadable(value: str) -> None:
    """It is left out of the resource, and the reason names it and what to do."""
    placed = only({**ONLINE, "auth_mode": value})
    assert "authMode" not in placed.resource["properties"]
    assert (
        placed.unreadable["/properties/authMode"]
        == f"`auth_mode` is the placeholder `{value}`; replace it with a value"
    )


def test_one_tag_that_is_a_placeholder_leaves_the_others() -> None:
    """It is unreadable under its own name."""
    placed = only({**ONLINE, "tags": {"owner": "<you>", "stage": "prod"}})
    assert placed.resource["tags"] == {"stage": "prod"}
    assert "/tags/owner" in placed.unreadable


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"tags": ["a"]}, "/tags"),
        ({"auth_mode": 5}, "/properties/authMode"),
        ({"identity": "system"}, "/identity/type"),
        ({"identity": {"type": "user_assigned", "user_assigned_identities": "u"}}, "/identity/userAssignedIdentities"),
        ({"traffic": 100}, "/properties/traffic"),
    ],
)
def test_a_value_of_a_wrong_type_is_unreadable(change: JsonObject, pointer: str) -> None:
    """Neither absent nor taken as it is."""
    placed = only({**ONLINE, **change})
    assert "it should be" in placed.unreadable[pointer]


def test_a_file_without_a_name_has_one_of_its_own() -> None:
    """The command line may name it; two such files never meet."""
    placed = only({"$schema": ONLINE["$schema"]})
    assert placed.resource["id"] == f"{WORKSPACE}/onlineEndpoints/{{work.yml}}"
    assert {"/id", "/name"} <= placed.unreadable.keys()


def test_a_name_that_is_a_placeholder_is_none() -> None:
    """Its id is unreadable."""
    placed = only({**ONLINE, "name": "$ENDPOINT_NAME"})
    assert "name" not in placed.resource
    assert "/id" in placed.unreadable


def test_outside_of_any_workspace_the_id_is_unreadable() -> None:
    """Its workspace is not stated."""
    [placed] = endpoints.KINDS[0].bring(ONLINE, "", ALONE)
    assert isinstance(placed, Placed)
    assert placed.resource["id"] == f"{UNKNOWN_WORKSPACE}/onlineEndpoints/ep"
    assert "`--workspace`" in placed.unreadable["/id"]


@pytest.mark.parametrize(
    ("document", "arm_type"),
    [
        ({"name": "e", "auth_mode": "key"}, endpoints.ONLINE),
        ({"name": "e", "auth_mode": "key", "traffic": {}}, endpoints.ONLINE),
        ({"name": "e", "auth_mode": "aad_token", "defaults": {}}, endpoints.BATCH),
        ({"name": "e", "auth_mode": "aad_token", "id": f"{WORKSPACE}/batchEndpoints/e"}, endpoints.BATCH),
    ],
)
def test_without_a_schema_the_content_decides(document: JsonObject, arm_type: str) -> None:
    """`auth_mode` is a key of endpoints alone."""
    kind = kind_of(document)
    assert kind is not None
    assert kind.arm_type == arm_type


def test_unknown_keys_are_known_to_be_so() -> None:
    """The kind names all that it may have, so that others can be remarked upon."""
    assert {"auth_mode", "traffic", "compute", "identity"} <= set(endpoints.KINDS[0].known[""])
    assert "trafic" not in endpoints.KINDS[0].known[""]


def test_fields_lead_back_to_the_file() -> None:
    """Where names differ, the place in the file is known."""
    [placed] = entries({**ONLINE, "auth_mode": "key"})
    assert isinstance(placed, Placed)
    assert placed.fields["/properties/authMode"] == "/auth_mode"
    assert placed.fields["/id"] == "/name"


MODEL = "azureml://registries/azureml-mistral/models/Mistral-Large"


@pytest.mark.parametrize("more", [{}, {"auth_mode": "key"}, {"auth_mode": "KEY", "tags": {"a": "b"}}])
def test_a_serverless_endpoint_accepts_a_key_by_default(more: JsonObject) -> None:
    """The form of the documentation has a name and a model; no key is unknown to the CLI."""
    reading = azure_cli.read({"name": "s", "model_id": MODEL, **more}, around())

    [placed] = reading.resources
    assert reading.problems == ()
    assert placed.resource["type"].endswith("/workspaces/serverlessEndpoints")
    assert placed.resource["sku"] == {"name": "Consumption"}
    assert placed.resource["properties"] == {"authMode": "Key", "modelSettings": {"modelId": MODEL}}


@pytest.mark.parametrize("mode", ["aad", "$(MODE)"])
def test_another_mode_of_a_serverless_endpoint_is_unknown(mode: str) -> None:
    """`ServerlessEndpoint._to_rest_object` drops it, so the file does not tell the mode."""
    placed = only({"name": "s", "model_id": MODEL, "auth_mode": mode})

    assert "authMode" not in placed.resource["properties"]
    assert "does not send `auth_mode`" in placed.unreadable["/properties/authMode"]


def test_a_command_prints_the_mode_of_a_serverless_endpoint() -> None:
    """The service's words are those of ARM."""
    identity = f"{WORKSPACE}/serverlessEndpoints/s"
    printed = {"id": identity, "name": "s", "model_id": MODEL, "auth_mode": "aad", "provisioning_state": "succeeded"}

    [placed] = az_output.read(printed, around()).resources

    assert placed.resource["id"] == identity
    assert placed.resource["properties"]["authMode"] == "AAD"


@pytest.mark.parametrize(
    "document",
    [
        {"name": "d", "endpoint_name": "e", "model_id": MODEL},
        {"name": "d", "type": "command", "model_id": MODEL},
        {"model_id": MODEL},
        {"name": "d", "model_id": 3},
    ],
)
def test_other_documents_with_a_model_are_no_serverless_endpoints(document: JsonObject) -> None:
    """Deployments name their endpoint, jobs have a type, and an endpoint has a name and the id of a model."""
    kind = kind_of(document)

    assert kind is None or not kind.arm_type.endswith("serverlessEndpoints")
