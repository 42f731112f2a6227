"""Fields that only some kinds of resources have, so that on any other kind their absence is known in every format.

Policies that judge several kinds of resources inspect the fields of all of them.
"""

from __future__ import annotations

from collections.abc import Mapping

_CLUSTER, _INSTANCE, _AKS, _MACHINE = "AmlCompute", "ComputeInstance", "AKS", "VirtualMachine"
_ATTACHED = frozenset(
    {_AKS, _MACHINE, "Kubernetes", "SynapseSpark", "Databricks", "DataFactory", "DataLakeAnalytics", "HDInsight"}
)
_COMPUTES = _ATTACHED | {_CLUSTER, _INSTANCE}
_NODES = frozenset({_CLUSTER, _INSTANCE})

#: By ARM pointer, the compute types, and of other resources the ARM types below the provider, that have the field.
#: Source: the OpenAPI of Microsoft.MachineLearningServices 2025-12-01 and of Microsoft.ContainerService.
_ONLY_OF: Mapping[str, frozenset[str]] = {
    "/properties/agentPoolProfiles": frozenset({"managedClusters"}),
    "/properties/powerState": frozenset({"managedClusters"}),
    "/properties/endpointComputeType": frozenset({"workspaces/onlineEndpoints/deployments"}),
    "/properties/instanceType": frozenset({"workspaces/onlineEndpoints/deployments"}),
    # The SDK of old wrote it into jobs; nothing that is deployed from a file has it.
    "/properties/compute_id": frozenset(),
    "/properties/computeType": _COMPUTES,
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


def foreign_to(kind: str) -> tuple[str, ...]:
    """The ARM pointers that a kind of resource does not have.

    Args:
        kind: a compute type (`AmlCompute`), or an ARM type below its provider (`managedClusters`).
    """
    return tuple(pointer for pointer, kinds in _ONLY_OF.items() if kind not in kinds)
