"""The kinds of Azure Service Operator: their ARM types and parents, and whether they are checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from policyeng.models import lowered

ML_GROUP = "machinelearningservices.azure.com"
EXTENSION_GROUP = "amlarc.azureml.com"


class KubernetesKind(NamedTuple):
    """One kind of object.

    Attributes:
        arm_type: the ARM type that it becomes.
        parent: the group and kind of its owner, in lower case; empty if that is a resource group.
        read: whether it is converted to ARM shape; only the ids of the others are known.
        extension: whether its owner can be of any kind.
        versions: the versions of a kind that releases of the operator serve, the newest last. They and others, such as
            the versions that the operator stores, are read like the newest.
    """

    arm_type: str
    parent: tuple[str, str] | tuple[()] = ()
    read: bool = False
    extension: bool = False
    versions: tuple[str, ...] = ()


_WORKSPACE = (ML_GROUP, "workspace")
_NETWORK = ("network.azure.com", "virtualnetwork")
_PRIVATE_ENDPOINT = ("network.azure.com", "privateendpoint")
_CLUSTER = ("containerservice.azure.com", "managedcluster")

_ML_VERSIONS = ("v1api20210701", "v1api20240401")
_NETWORK_VERSIONS = ("v1api20201101", "v1api20240301")
_CLUSTER_VERSIONS = (
    "v1api20210501",
    "v1api20230201",
    "v1api20230202preview",
    "v1api20231001",
    "v1api20231102preview",
    "v1api20240402preview",
    "v1api20240901",
    "v1api20250801",
)

#: By group and kind in lower case. Source: the CRDs of github.com/Azure/azure-service-operator (`v2/api`); versions:
#: https://azure.github.io/azure-service-operator/reference, release 2.16.
KINDS: Mapping[tuple[str, str], KubernetesKind] = {
    _WORKSPACE: KubernetesKind("Microsoft.MachineLearningServices/workspaces", read=True, versions=_ML_VERSIONS),
    (ML_GROUP, "workspacescompute"): KubernetesKind(
        "Microsoft.MachineLearningServices/workspaces/computes", _WORKSPACE, read=True, versions=_ML_VERSIONS
    ),
    (ML_GROUP, "workspacesconnection"): KubernetesKind(
        "Microsoft.MachineLearningServices/workspaces/connections", _WORKSPACE, read=True, versions=_ML_VERSIONS
    ),
    (ML_GROUP, "registry"): KubernetesKind(
        "Microsoft.MachineLearningServices/registries", read=True, versions=("v1api20240401",)
    ),
    _NETWORK: KubernetesKind("Microsoft.Network/virtualNetworks", read=True, versions=_NETWORK_VERSIONS),
    ("network.azure.com", "virtualnetworkssubnet"): KubernetesKind(
        "Microsoft.Network/virtualNetworks/subnets", _NETWORK, read=True, versions=_NETWORK_VERSIONS
    ),
    _PRIVATE_ENDPOINT: KubernetesKind(
        "Microsoft.Network/privateEndpoints", read=True, versions=("v1api20220701", "v1api20240301")
    ),
    ("network.azure.com", "privateendpointsprivatednszonegroup"): KubernetesKind(
        "Microsoft.Network/privateEndpoints/privateDnsZoneGroups",
        _PRIVATE_ENDPOINT,
        read=True,
        versions=("v1api20220701", "v1api20240301"),
    ),
    ("network.azure.com", "privatednszone"): KubernetesKind("Microsoft.Network/privateDnsZones"),
    ("network.azure.com", "networkinterface"): KubernetesKind("Microsoft.Network/networkInterfaces"),
    ("network.azure.com", "networksecuritygroup"): KubernetesKind("Microsoft.Network/networkSecurityGroups"),
    ("network.azure.com", "natgateway"): KubernetesKind("Microsoft.Network/natGateways"),
    ("network.azure.com", "publicipaddress"): KubernetesKind("Microsoft.Network/publicIPAddresses"),
    ("network.azure.com", "routetable"): KubernetesKind("Microsoft.Network/routeTables"),
    ("compute.azure.com", "virtualmachine"): KubernetesKind(
        "Microsoft.Compute/virtualMachines", read=True, versions=("v1api20201201", "v1api20220301")
    ),
    ("compute.azure.com", "disk"): KubernetesKind("Microsoft.Compute/disks"),
    ("compute.azure.com", "diskencryptionset"): KubernetesKind("Microsoft.Compute/diskEncryptionSets"),
    ("compute.azure.com", "image"): KubernetesKind("Microsoft.Compute/images"),
    _CLUSTER: KubernetesKind("Microsoft.ContainerService/managedClusters", read=True, versions=_CLUSTER_VERSIONS),
    ("containerservice.azure.com", "managedclustersagentpool"): KubernetesKind(
        "Microsoft.ContainerService/managedClusters/agentPools", _CLUSTER, read=True, versions=_CLUSTER_VERSIONS
    ),
    ("authorization.azure.com", "roleassignment"): KubernetesKind(
        "Microsoft.Authorization/roleAssignments",
        read=True,
        extension=True,
        versions=("v1api20200801preview", "v1api20220401"),
    ),
    ("containerregistry.azure.com", "registry"): KubernetesKind(
        "Microsoft.ContainerRegistry/registries", read=True, versions=("v1api20210901", "v1api20230701")
    ),
    ("datafactory.azure.com", "factory"): KubernetesKind("Microsoft.DataFactory/factories"),
    ("insights.azure.com", "component"): KubernetesKind(
        "Microsoft.Insights/components", read=True, versions=("v1api20200202",)
    ),
    ("insights.azure.com", "diagnosticsetting"): KubernetesKind(
        "Microsoft.Insights/diagnosticSettings", read=True, extension=True, versions=("v1api20210501preview",)
    ),
    ("keyvault.azure.com", "vault"): KubernetesKind(
        "Microsoft.KeyVault/vaults", read=True, versions=("v1api20210401preview", "v1api20230701")
    ),
    ("managedidentity.azure.com", "userassignedidentity"): KubernetesKind(
        "Microsoft.ManagedIdentity/userAssignedIdentities"
    ),
    ("storage.azure.com", "storageaccount"): KubernetesKind(
        "Microsoft.Storage/storageAccounts",
        read=True,
        versions=("v1api20210401", "v1api20220901", "v1api20230101"),
    ),
    ("synapse.azure.com", "workspace"): KubernetesKind("Microsoft.Synapse/workspaces"),
    ("synapse.azure.com", "workspacesbigdatapool"): KubernetesKind(
        "Microsoft.Synapse/workspaces/bigDataPools", ("synapse.azure.com", "workspace")
    ),
}

#: The kind of resource groups, which contain all others; a reference to one is the scope of a deployment.
RESOURCE_GROUP = ("resources.azure.com", "resourcegroup")


def key_of(group: object, kind: object) -> tuple[str, str]:
    """Return the key of a group and a kind in `KINDS`; parts that are not text are empty."""
    return (lowered(group) if isinstance(group, str) else "", lowered(kind) if isinstance(kind, str) else "")


def group_of(api_version: object) -> str:
    """Return the group of an `apiVersion` such as `network.azure.com/v1api20201101`; empty for the core group."""
    return lowered(api_version).rpartition("/")[0] if isinstance(api_version, str) else ""
