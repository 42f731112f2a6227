"""The kinds of Azure Service Operator: the ARM type of each, what it lies in, and how much of it is judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from policyeng.models import lowered

ML_GROUP = "machinelearningservices.azure.com"
EXTENSION_GROUP = "amlarc.azureml.com"


class Kind(NamedTuple):
    """One kind of object.

    Attributes:
        arm_type: the ARM type that it becomes.
        parent: the group and kind of what owns it, in lower case; empty where that is a resource group.
        read: it is brought into ARM shape; of the others only the ids are known.
        extension: it lies in whatever owns it, be that of any other kind.
    """

    arm_type: str
    parent: tuple[str, str] | tuple[()] = ()
    read: bool = False
    extension: bool = False


_WORKSPACE = (ML_GROUP, "workspace")
_NETWORK = ("network.azure.com", "virtualnetwork")
_CLUSTER = ("containerservice.azure.com", "managedcluster")

#: By group and kind in lower case. Source: the CRDs of github.com/Azure/azure-service-operator (`v2/api`).
KINDS: Mapping[tuple[str, str], Kind] = {
    _WORKSPACE: Kind("Microsoft.MachineLearningServices/workspaces", read=True),
    (ML_GROUP, "workspacescompute"): Kind(
        "Microsoft.MachineLearningServices/workspaces/computes", _WORKSPACE, read=True
    ),
    (ML_GROUP, "workspacesconnection"): Kind(
        "Microsoft.MachineLearningServices/workspaces/connections", _WORKSPACE, read=True
    ),
    (ML_GROUP, "registry"): Kind("Microsoft.MachineLearningServices/registries", read=True),
    _NETWORK: Kind("Microsoft.Network/virtualNetworks", read=True),
    ("network.azure.com", "virtualnetworkssubnet"): Kind(
        "Microsoft.Network/virtualNetworks/subnets", _NETWORK, read=True
    ),
    ("network.azure.com", "networkinterface"): Kind("Microsoft.Network/networkInterfaces"),
    ("network.azure.com", "networksecuritygroup"): Kind("Microsoft.Network/networkSecurityGroups"),
    ("network.azure.com", "natgateway"): Kind("Microsoft.Network/natGateways"),
    ("network.azure.com", "publicipaddress"): Kind("Microsoft.Network/publicIPAddresses"),
    ("network.azure.com", "routetable"): Kind("Microsoft.Network/routeTables"),
    ("compute.azure.com", "virtualmachine"): Kind("Microsoft.Compute/virtualMachines", read=True),
    ("compute.azure.com", "disk"): Kind("Microsoft.Compute/disks"),
    ("compute.azure.com", "diskencryptionset"): Kind("Microsoft.Compute/diskEncryptionSets"),
    ("compute.azure.com", "image"): Kind("Microsoft.Compute/images"),
    _CLUSTER: Kind("Microsoft.ContainerService/managedClusters", read=True),
    ("containerservice.azure.com", "managedclustersagentpool"): Kind(
        "Microsoft.ContainerService/managedClusters/agentPools", _CLUSTER, read=True
    ),
    ("authorization.azure.com", "roleassignment"): Kind(
        "Microsoft.Authorization/roleAssignments", read=True, extension=True
    ),
    ("containerregistry.azure.com", "registry"): Kind("Microsoft.ContainerRegistry/registries"),
    ("datafactory.azure.com", "factory"): Kind("Microsoft.DataFactory/factories"),
    ("insights.azure.com", "component"): Kind("Microsoft.Insights/components"),
    ("keyvault.azure.com", "vault"): Kind("Microsoft.KeyVault/vaults"),
    ("managedidentity.azure.com", "userassignedidentity"): Kind("Microsoft.ManagedIdentity/userAssignedIdentities"),
    ("storage.azure.com", "storageaccount"): Kind("Microsoft.Storage/storageAccounts"),
    ("synapse.azure.com", "workspace"): Kind("Microsoft.Synapse/workspaces"),
    ("synapse.azure.com", "workspacesbigdatapool"): Kind(
        "Microsoft.Synapse/workspaces/bigDataPools", ("synapse.azure.com", "workspace")
    ),
}

#: The kind whose name is that of what contains all others; a reference to it is the scope of a deployment.
RESOURCE_GROUP = ("resources.azure.com", "resourcegroup")


def key_of(group: object, kind: object) -> tuple[str, str]:
    """A group and a kind as `KINDS` has them; blank where they are no text."""
    return (lowered(group) if isinstance(group, str) else "", lowered(kind) if isinstance(kind, str) else "")


def group_of(api_version: object) -> str:
    """The group of an `apiVersion` such as `network.azure.com/v1api20201101`; blank for the core one."""
    return lowered(api_version).rpartition("/")[0] if isinstance(api_version, str) else ""
