"""Small resources that workloads are derived from, all in one workspace, and a catalogue of three sizes."""

from __future__ import annotations

from typing import Any

from policyeng.facts import Facts
from policyeng.models import JsonObject, Snapshot
from policyeng.workloads import Workload, derive

ML = "Microsoft.MachineLearningServices/workspaces"
WS = f"/subscriptions/s/resourceGroups/rg/providers/{ML}/ws"


def _size(name: str, gpus: float = 0, fpgas: int = 0) -> JsonObject:
    row = {"name": name, "series": "X", "family": "x", "vcpus": 4, "memory_gib": 16, "source": "test"}
    return {name.lower(): {**row, "gpus": gpus, "fpgas": fpgas}}


FACTS = Facts.from_document(
    {"vm_sizes": _size("Standard_CPU") | _size("Standard_GPU", gpus=0.5) | _size("Standard_FPGA", fpgas=1)}
)


def compute(name: str, kind: object, **details: object) -> JsonObject:
    """A compute of the workspace."""
    return {
        "id": f"{WS}/computes/{name}",
        "type": f"{ML}/computes",
        "properties": {"computeType": kind, "properties": details},
    }


def job(properties: object, **rest: object) -> JsonObject:
    """A job of the workspace; a command unless stated otherwise."""
    filled = {"jobType": "Command", **properties} if isinstance(properties, dict) else properties
    return {"id": f"{WS}/jobs/j", "type": f"{ML}/jobs", "properties": filled, **rest}


def online(properties: object, **rest: object) -> JsonObject:
    """An online deployment."""
    kind = f"{ML}/onlineEndpoints/deployments"
    return {"id": f"{WS}/onlineEndpoints/e/deployments/d", "type": kind, "properties": properties, **rest}


def endpoint(reference: object) -> JsonObject:
    """The endpoint of that deployment."""
    return {"id": f"{WS}/onlineEndpoints/E", "type": f"{ML}/onlineEndpoints", "properties": {"compute": reference}}


def batch(properties: object) -> JsonObject:
    """A batch deployment."""
    kind = f"{ML}/batchEndpoints/deployments"
    return {"id": f"{WS}/batchEndpoints/e/deployments/d", "type": kind, "properties": properties}


def service(properties: object, **rest: object) -> JsonObject:
    """A version-1 web service."""
    return {"id": f"{WS}/services/s", "type": f"{ML}/services", "properties": properties, **rest}


CLUSTER = compute("cpu", "AmlCompute", vmSize="STANDARD_CPU")
GPUS = compute("gpu", "AmlCompute", vmSize="Standard_GPU")
K8S = compute(
    "k8s",
    "Kubernetes",
    instanceTypes={"big": {"resources": {"limits": {"nvidia.com/gpu": "2"}}}, "small": {"resources": None}},
)
AKS = compute("aks", "AKS", agentVmSize="Standard_FPGA")


def one(*resources: JsonObject, **snapshot: Any) -> Workload:
    """The only workload of a snapshot."""
    (found,) = derive(Snapshot.model_validate({"resources": resources, **snapshot}), FACTS)
    return found
