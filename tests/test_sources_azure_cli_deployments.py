"""Deployments in files of the Azure CLI: units, enums, node counts, computes, and the workloads that they are."""

from __future__ import annotations

import pytest

from policyeng.models import JsonObject
from policyeng.sources.azure_cli import endpoints
from tests.azure_cli_work import WORKSPACE, kind_of, only, workload
from tests.workload_parts import ML

SCHEMA = "https://azuremlschemas.azureedge.net/latest/{}.schema.json"
ONLINE: JsonObject = {"$schema": SCHEMA.format("managedOnlineDeployment"), "name": "blue", "endpoint_name": "ep"}
BATCH: JsonObject = {"$schema": SCHEMA.format("modelBatchDeployment"), "name": "d", "endpoint_name": "be"}
CLUSTER: JsonObject = {
    "id": f"{WORKSPACE}/computes/cpu",
    "type": f"{ML}/computes",
    "properties": {"computeType": "AmlCompute", "properties": {"vmSize": "Standard_CPU"}},
}


def properties(document: JsonObject) -> JsonObject:
    """The `properties` of the resource."""
    found: JsonObject = only(document).resource["properties"]
    return found


def test_an_online_deployment_is_brought_into_arm_shape() -> None:
    """Its node count is the capacity of its SKU, milliseconds and seconds are durations."""
    written = {
        **ONLINE,
        "tags": {"stage": "prod"},
        "instance_type": "Standard_DS3_v2",
        "instance_count": 2,
        "egress_public_network_access": "disabled",
        "app_insights_enabled": True,
        "model": "azureml:m:1",
        "environment": "azureml:e:2",
        "scale_settings": {
            "type": "target_utilization",
            "min_instances": 1,
            "max_instances": 3,
            "polling_interval": 10,
        },
        "request_settings": {"request_timeout_ms": 90000, "max_queue_wait_ms": 500},
        "liveness_probe": {"initial_delay": 10, "failure_threshold": 30},
    }
    assert only(written).resource == {
        "id": f"{WORKSPACE}/onlineEndpoints/ep/deployments/blue",
        "name": "blue",
        "type": "Microsoft.MachineLearningServices/workspaces/onlineEndpoints/deployments",
        "tags": {"stage": "prod"},
        "sku": {"name": "Default", "capacity": 2},
        "properties": {
            "endpointComputeType": "Managed",
            "instanceType": "Standard_DS3_v2",
            "egressPublicNetworkAccess": "Disabled",
            "appInsightsEnabled": True,
            "model": f"{WORKSPACE}/models/m/versions/1",
            "environmentId": f"{WORKSPACE}/environments/e/versions/2",
            "scaleSettings": {
                "scaleType": "TargetUtilization",
                "minInstances": 1,
                "maxInstances": 3,
                "pollingInterval": "PT10S",
            },
            "requestSettings": {"requestTimeout": "PT90S", "maxQueueWait": "PT0.5S"},
            "livenessProbe": {"initialDelay": "PT10S", "failureThreshold": 30},
        },
    }


def test_the_defaults_that_the_cli_sends() -> None:
    """The SKU `Default` and no insights; a node count and an egress it does not make up."""
    resource = only({**ONLINE, "instance_type": "x"}).resource
    assert resource["sku"] == {"name": "Default"}
    assert resource["properties"] == {
        "endpointComputeType": "Managed",
        "instanceType": "x",
        "appInsightsEnabled": False,
    }


@pytest.mark.parametrize(("written", "arm"), [("enabled", "Enabled"), ("disabled", "Disabled")])
def test_egress(written: str, arm: str) -> None:
    """Both sides."""
    assert properties({**ONLINE, "egress_public_network_access": written})["egressPublicNetworkAccess"] == arm


@pytest.mark.parametrize(("written", "arm"), [("default", "Default"), ("target_utilization", "TargetUtilization")])
def test_kinds_of_scaling(written: str, arm: str) -> None:
    """Both sides."""
    assert properties({**ONLINE, "scale_settings": {"type": written}})["scaleSettings"] == {"scaleType": arm}


@pytest.mark.parametrize(
    ("written", "arm"), [(0, "PT0S"), (1, "PT0.001S"), (1500, "PT1.5S"), (5000, "PT5S"), ("PT9S", "PT9S")]
)
def test_milliseconds(written: object, arm: str) -> None:
    """Whole numbers of milliseconds; a duration stays."""
    found = properties({**ONLINE, "request_settings": {"request_timeout_ms": written}})
    assert found["requestSettings"]["requestTimeout"] == arm


@pytest.mark.parametrize("written", [1.5, "soon", True, -1, 10**400])
def test_other_values_than_milliseconds_are_unreadable(written: object) -> None:
    """Never a duration made up."""
    placed = only({**ONLINE, "request_settings": {"request_timeout_ms": written}})
    assert "/properties/requestSettings/requestTimeout" in placed.unreadable


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({}, "Managed"),
        ({"type": "managed"}, "Managed"),
        ({"type": "kubernetes"}, "Kubernetes"),
        ({"$schema": SCHEMA.format("kubernetesOnlineDeployment")}, "Kubernetes"),
    ],
)
def test_the_compute_of_an_online_deployment(change: JsonObject, kind: str) -> None:
    """`type` states it, else the schema, else it is managed."""
    assert properties({**ONLINE, **change})["endpointComputeType"] == kind


def test_a_type_that_is_a_placeholder_decides_nothing() -> None:
    """Neither managed nor on Kubernetes."""
    placed = only({**ONLINE, "type": "<type>"})
    assert "endpointComputeType" not in placed.resource.get("properties", {})
    assert "/properties/endpointComputeType" in placed.unreadable


def test_a_kubernetes_deployment_requests_resources() -> None:
    """`nvidia.com/gpu` is `gpu` in ARM."""
    requested = {"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"nvidia.com/gpu": 1}}
    found = properties({**ONLINE, "type": "kubernetes", "resources": requested})
    assert found["containerResourceRequirements"] == {
        "containerResourceRequests": {"cpu": "1", "memory": "2Gi"},
        "containerResourceLimits": {"gpu": 1},
    }
    compute = {"id": f"{WORKSPACE}/computes/k", "type": f"{ML}/computes", "properties": {"computeType": "Kubernetes"}}
    at = {"id": f"{WORKSPACE}/onlineEndpoints/ep", "type": f"{ML}/onlineEndpoints", "properties": {"compute": "k"}}
    found_work = workload({**ONLINE, "type": "kubernetes", "resources": requested}, compute, at)
    assert (found_work.document["target"], found_work.document["accelerator"]) == ("kubernetes", "gpu")


@pytest.mark.parametrize(
    "reference", [{"path": "./m"}, "azureml:m@latest", "azureml://registries/r/models/m/labels/l", "./m"]
)
def test_an_asset_without_a_version_is_unreadable(reference: object) -> None:
    """Only the service knows what it becomes."""
    placed = only({**ONLINE, "model": reference})
    assert "model" not in placed.resource["properties"]
    assert "it should be a reference" in placed.unreadable["/properties/model"]


def test_a_managed_deployment_is_real_time_inference() -> None:
    """On a managed endpoint, with the accelerator of its size."""
    found = workload({**ONLINE, "instance_type": "standard_gpu"}).document
    assert (found["purpose"], found["target"], found["accelerator"]) == ("realtime-inference", "managed-online", "gpu")


def test_a_batch_deployment_is_brought_into_arm_shape() -> None:
    """The newer `settings` and the older keys at the top mean the same."""
    settings = {
        "mini_batch_size": 5,
        "max_concurrency_per_instance": 2,
        "error_threshold": -1,
        "output_action": "append_row",
        "logging_level": "info",
        "output_file_name": "p.csv",
        "retry_settings": {"max_retries": 3, "timeout": 30},
    }
    written = {**BATCH, "compute": "azureml:cpu", "resources": {"instance_count": 2}, "model": "azureml:m:1"}
    brought = properties({**written, "type": "model", "settings": settings})
    assert brought == {
        "compute": f"{WORKSPACE}/computes/cpu",
        "resources": {"instanceCount": 2},
        "model": {"referenceType": "Id", "assetId": f"{WORKSPACE}/models/m/versions/1"},
        "miniBatchSize": 5,
        "maxConcurrencyPerInstance": 2,
        "errorThreshold": -1,
        "outputAction": "AppendRow",
        "loggingLevel": "Info",
        "outputFileName": "p.csv",
        "retrySettings": {"maxRetries": 3, "timeout": "PT30S"},
    }
    assert properties({**written, **settings, "$schema": SCHEMA.format("batchDeployment")}) == brought


def test_a_batch_deployment_of_a_pipeline_runs_where_its_settings_state() -> None:
    """Its target is the default compute, and it is a pipeline."""
    written = {**BATCH, "type": "pipeline", "component": "azureml:c:1", "settings": {"default_compute": "azureml:cpu"}}
    assert properties(written)["deploymentConfiguration"] == {
        "deploymentConfigurationType": "PipelineComponent",
        "settings": {"default_compute": f"{WORKSPACE}/computes/cpu"},
        "componentId": {"referenceType": "Id", "assetId": f"{WORKSPACE}/components/c/versions/1"},
    }
    found = workload(written, CLUSTER).document
    assert (found["target"], found["features"]) == ("compute-cluster", ["pipeline"])


def test_a_deployment_without_an_endpoint_has_one_of_its_own() -> None:
    """The command line names it; its id is unreadable."""
    placed = only({key: value for key, value in ONLINE.items() if key != "endpoint_name"})
    assert placed.resource["id"] == f"{WORKSPACE}/onlineEndpoints/{{work.yml}}/deployments/blue"
    assert "/id" in placed.unreadable


@pytest.mark.parametrize(
    ("document", "arm_type"),
    [
        ({"endpoint_name": "e", "instance_type": "x"}, endpoints.ONLINE_DEPLOYMENT),
        ({"endpoint_name": "e", "model": "azureml:m:1"}, endpoints.ONLINE_DEPLOYMENT),
        ({"endpoint_name": "e", "model": "azureml:m:1", "compute": "azureml:c"}, endpoints.BATCH_DEPLOYMENT),
        ({"endpoint_name": "e", "component": "azureml:c:1"}, endpoints.BATCH_DEPLOYMENT),
    ],
)
def test_without_a_schema_the_content_decides(document: JsonObject, arm_type: str) -> None:
    """`endpoint_name` is a key of deployments alone."""
    kind = kind_of({"name": "d", **document})
    assert kind is not None
    assert kind.arm_type == arm_type


def test_a_value_in_place_of_an_object_hides_all_below() -> None:
    """Nothing of it counts as absent."""
    placed = only({**BATCH, "compute": "azureml:cpu", "resources": "two"})
    assert "it should be an object" in placed.unreadable["/properties/resources/instanceCount"]
