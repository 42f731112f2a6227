"""Fields that only some kinds of resources have, so that on any other kind their absence is known in every format.

Policies that judge several kinds of resources inspect the fields of all of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from policyeng.models import JsonObject, lowered
from policyeng.strict.json_pointer import value_at

_COMPUTE = "workspaces/computes"
_CLUSTER, _INSTANCE, _AKS, _MACHINE = "amlcompute", "computeinstance", "aks", "virtualmachine"
_NODES = frozenset({_CLUSTER, _INSTANCE})
_ATTACHED = frozenset(
    {_AKS, _MACHINE, "kubernetes", "synapsespark", "databricks", "datafactory", "datalakeanalytics", "hdinsight"}
)
_COMPUTES = _NODES | _ATTACHED
_ONLINE = "workspaces/onlineendpoints/deployments"

#: By ARM pointer, what has the field: compute types, and ARM types below their provider; all in lower case.
#: Source: the OpenAPI of Microsoft.MachineLearningServices 2025-12-01, Microsoft.ContainerService, Microsoft.Compute.
_ONLY_OF: Mapping[str, frozenset[str]] = {
    "/properties/agentPoolProfiles": frozenset({"managedclusters"}),
    "/properties/powerState": frozenset({"managedclusters"}),
    "/properties/hardwareProfile": frozenset({"virtualmachines"}),
    "/properties/endpointComputeType": frozenset({_ONLINE}),
    "/properties/instanceType": frozenset({_ONLINE}),
    "/properties/resources": frozenset({"workspaces/jobs", "workspaces/batchendpoints/deployments"}),
    # The SDK of old wrote it into jobs; nothing that is deployed from a file has it.
    "/properties/compute_id": frozenset(),
    # Only jobs of API version 2021-03-01-preview have it, which no other format makes.
    "/properties/compute/target": frozenset(),
    "/properties/computeType": _COMPUTES | {"workspaces/services"},
    "/properties/computeLocation": _COMPUTES,
    "/properties/resourceId": _ATTACHED,
    "/properties/properties/agentCount": frozenset({_AKS}),
    "/properties/properties/agentVmSize": frozenset({_AKS}),
    "/properties/properties/aksNetworkingConfiguration": frozenset({_AKS}),
    "/properties/properties/clusterPurpose": frozenset({_AKS}),
    "/properties/properties/virtualMachineSize": frozenset({_MACHINE}),
    "/properties/properties/vmSize": _NODES,
    "/properties/properties/subnet": _NODES,
    "/properties/properties/vmPriority": frozenset({_CLUSTER}),
    "/properties/properties/scaleSettings": frozenset({_CLUSTER}),
    "/properties/properties/idleTimeBeforeShutdown": frozenset({_INSTANCE}),
    "/properties/properties/schedules": frozenset({_INSTANCE}),
    "/properties/properties/lastOperation": frozenset({_INSTANCE}),
    "/properties/properties/state": frozenset({_INSTANCE}),
}


def foreign_to(resource: JsonObject) -> tuple[str, ...]:
    """The ARM pointers that no resource of its `type` has, nor a compute of its `computeType` where that is known."""
    below = lowered(resource["type"]).partition("/")[2]
    kinds = frozenset({below})
    if below == _COMPUTE:
        stated = value_at(resource, "/properties/computeType")
        kinds = frozenset({lowered(stated)}) if isinstance(stated, str) else _COMPUTES
    return tuple(pointer for pointer, having in _ONLY_OF.items() if kinds.isdisjoint(having))
