"""The workloads of online and batch deployments and of version-1 services."""

from __future__ import annotations

import pytest

from policyeng.models import JsonObject
from tests.workload_parts import AKS, CLUSTER, GPUS, K8S, WS, batch, endpoint, one, online, service

LIMITS = "containerResourceLimits"


@pytest.mark.parametrize(
    ("properties", "compute_name", "target", "accelerator"),
    [
        ({"endpointComputeType": "managed", "instanceType": "Standard_GPU"}, None, "managed-online", "gpu"),
        ({"endpointComputeType": "Managed"}, None, "managed-online", None),
        ({"instanceType": "Standard_CPU"}, None, None, None),
        ({"endpointComputeType": "AzureMLCompute"}, "gpu", "compute-cluster", "gpu"),
        ({"endpointComputeType": "Kubernetes"}, "azureml:K8s", "kubernetes", "none"),
        ({"endpointComputeType": "Kubernetes"}, f"{WS}/computes/aks", "aks", "none"),
        ({"endpointComputeType": "Kubernetes"}, "cpu", None, "none"),
        ({"endpointComputeType": "Kubernetes"}, None, None, "none"),
        ({"endpointComputeType": "Kubernetes", "instanceType": "big"}, "k8s", "kubernetes", "gpu"),
        ({"endpointComputeType": "Kubernetes", "instanceType": "new"}, "k8s", "kubernetes", None),
        (
            {"endpointComputeType": "Kubernetes", "containerResourceRequirements": {LIMITS: {"gpu": '"1"'}}},
            "aks",
            "aks",
            "gpu",
        ),
        (
            {"endpointComputeType": "Kubernetes", "containerResourceRequirements": {LIMITS: {"gpu": "0"}}},
            "aks",
            "aks",
            "none",
        ),
        (
            {"endpointComputeType": "Kubernetes", "containerResourceRequirements": {LIMITS: {"gpu": "all"}}},
            "aks",
            "aks",
            None,
        ),
    ],
)
def test_online_deployments(
    properties: JsonObject, compute_name: str | None, target: str | None, accelerator: str | None
) -> None:
    """Managed ones by their instance type, Kubernetes ones by their endpoint's compute and their containers."""
    found = one(online(properties), endpoint(compute_name), CLUSTER, GPUS, K8S, AKS).document
    assert (found["purpose"], found["target"], found["accelerator"]) == ("realtime-inference", target, accelerator)


@pytest.mark.parametrize(
    ("properties", "target", "accelerator", "features"),
    [
        ({"compute": "gpu"}, "compute-cluster", "gpu", []),
        ({"resources": {"instanceType": "Standard_GPU"}}, "serverless", "gpu", []),
        ({"compute": 1}, None, None, []),
        (None, None, None, []),
        (
            {
                "deploymentConfiguration": {
                    "deploymentConfigurationType": "PipelineComponent",
                    "settings": {"default_compute": "cpu"},
                }
            },
            "compute-cluster",
            "none",
            ["pipeline"],
        ),
    ],
)
def test_batch_deployments(
    properties: object, target: str | None, accelerator: str | None, features: list[str]
) -> None:
    """The compute that the deployment names, or the default of its pipeline component, or serverless."""
    found = one(batch(properties), CLUSTER, GPUS).document
    assert (found["purpose"], found["target"]) == ("batch-inference", target)
    assert (found["accelerator"], found["features"]) == (accelerator, features)


@pytest.mark.parametrize(
    ("properties", "target", "accelerator", "memory"),
    [
        ({"computeType": "aci"}, "aci", "none", None),
        (
            {"computeType": "ACI", "ContainerResourceRequirements": {"gpu": "1", "memoryInGB": "47.5"}},
            "aci",
            "gpu",
            47.5,
        ),
        ({"computeType": "AKS", "containerResourceRequirements": {"fpga": 1, "memoryInGB": 48}}, "aks", "fpga", 48),
        ({"computeType": "AKS", "containerResourceRequirements": {"gpu": 1, "fpga": 1}}, "aks", None, None),
        ({"computeType": "IOT"}, None, "none", None),
        ({"computeType": "ACI", "containerResourceRequirements": {"memoryInGB": "much"}}, "aci", "none", None),
        ({"computeType": "ACI", "containerResourceRequirements": {"memoryInGB": "1_000"}}, "aci", "none", None),
        ({"computeType": "ACI", "containerResourceRequirements": {"memoryInGB": "\u0664\u0668"}}, "aci", "none", None),
        ({"computeType": "ACI", "containerResourceRequirements": {"memoryInGB": "9" * 24}}, "aci", "none", 1e24),
        ({"computeType": "ACI", "containerResourceRequirements": {"memoryInGB": "9" * 400}}, "aci", "none", None),
        ("none", None, None, None),
    ],
)
def test_version_one_services(
    properties: object, target: str | None, accelerator: str | None, memory: float | None
) -> None:
    """ACI and AKS are targets; GPUs, FPGAs and memory are what the container requests, also as text."""
    found = one(service(properties)).document
    assert (found["purpose"], found["target"]) == ("realtime-inference", target)
    assert (found["accelerator"], found["memoryGiB"]) == (accelerator, memory)


def test_a_service_names_its_compute() -> None:
    """The computeName leads to the compute of the workspace; one that the snapshot lacks is undecided, not absent."""
    assert one(service({"computeType": "AKS", "computeName": "AKS"}), AKS).document["computeId"] == f"{WS}/computes/aks"
    assert "gone" in one(service({"computeType": "AKS", "computeName": "gone"})).unreadable["/computeId"]
