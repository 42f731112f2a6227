"""The computes of the azurerm provider, as tables.

Source: https://registry.terraform.io/providers/hashicorp/azurerm/latest/docs, and the provider's code for what it asks
Azure for (`ssh` of an instance opens it to the public network; `location` of a cluster is that of its nodes; an AKS
cluster is attached with the location that the cluster has, and nothing is sent of its nodes).
"""

from __future__ import annotations

from collections.abc import Mapping

from policyeng.sources.mapping import Field, UnfitError, boolean, inverted, text, whole
from policyeng.sources.terraform.kinds import (
    CLUSTER,
    IDENTITY,
    LOCATED,
    SUBNET,
    WORKSPACE,
    Addressed,
    Kind,
    Lent,
    Unstated,
    access,
    passed,
)

_COMPUTE = f"{WORKSPACE}/computes"


def _shown(value: object) -> object:
    """An `ssh` block is what opens an instance to the public network."""
    if isinstance(value, list):
        return "Enabled" if value else "Disabled"
    raise UnfitError("a block")


_IN_WORKSPACE = "machine_learning_workspace_id"
_COMPUTE_ROWS = (
    *LOCATED,
    *IDENTITY,
    *passed(_IN_WORKSPACE),
    Field("/description", "/properties/description"),
    Field("/local_auth_enabled", "/properties/disableLocalAuth", inverted),
)
_INNER = "/properties/properties"
_NODES = (
    Field("/subnet_resource_id", f"{_INNER}/subnet/id", text),
    Field("/node_public_ip_enabled", f"{_INNER}/enableNodePublicIp", boolean),
)
_IDLE = f"{_INNER}/scaleSettings/nodeIdleTimeBeforeScaleDown"
_AML_COMPUTE = Kind(
    Addressed(_COMPUTE, parent=_IN_WORKSPACE),
    (
        *_COMPUTE_ROWS,
        *_NODES,
        Field("/location", "/properties/computeLocation", text),
        Field("/vm_size", f"{_INNER}/vmSize", text),
        Field("/vm_priority", f"{_INNER}/vmPriority", text),
        Field("/scale_settings/0/min_node_count", f"{_INNER}/scaleSettings/minNodeCount", whole),
        Field("/scale_settings/0/max_node_count", f"{_INNER}/scaleSettings/maxNodeCount", whole),
        Field("/scale_settings/0/node_idle_time_before_scale_down", _IDLE, text),
        Field("/scale_settings/0/scale_down_nodes_after_idle_duration", _IDLE, text),
        Field("/ssh_public_access_enabled", f"{_INNER}/remoteLoginPortPublicAccess", access),
        Field("/ssh/0/admin_username", f"{_INNER}/userAccountCredentials/adminUserName", text),
        Field("/ssh/0/key_value", f"{_INNER}/userAccountCredentials/adminUserSshPublicKey", text),
        Field("/ssh/0/admin_password", ""),
    ),
    fixed={"/properties/computeType": "AmlCompute"},
    named={"/subnet_resource_id": SUBNET, f"/{_IN_WORKSPACE}": WORKSPACE},
    unstated=(Unstated("/ssh_public_access_enabled", value=False),),
)
_INSTANCE = Kind(
    Addressed(_COMPUTE, parent=_IN_WORKSPACE),
    (
        *_COMPUTE_ROWS,
        *_NODES,
        Field("/virtual_machine_size", f"{_INNER}/vmSize", text),
        Field("/authorization_type", f"{_INNER}/computeInstanceAuthorizationType"),
        Field("/assign_to_user/0/object_id", f"{_INNER}/personalComputeInstanceSettings/assignedUser/objectId", text),
        Field("/assign_to_user/0/tenant_id", f"{_INNER}/personalComputeInstanceSettings/assignedUser/tenantId", text),
        Field("/ssh", f"{_INNER}/sshSettings/sshPublicAccess", _shown),
        Field("/ssh/0/public_key", f"{_INNER}/sshSettings/adminPublicKey", text),
        Field("/ssh/0/username", f"{_INNER}/sshSettings/adminUserName"),
        Field("/ssh/0/port", f"{_INNER}/sshSettings/sshPort"),
    ),
    fixed={"/properties/computeType": "ComputeInstance"},
    # An instance is where its workspace is.
    foreign=("/properties/computeLocation",),
    named={"/subnet_resource_id": SUBNET, f"/{_IN_WORKSPACE}": WORKSPACE},
    unstated=(Unstated("/location"),),
)
_AKS = Kind(
    Addressed(_COMPUTE, parent=_IN_WORKSPACE),
    (
        *_COMPUTE_ROWS,
        Field("/kubernetes_cluster_id", "/properties/resourceId", text),
        Field("/cluster_purpose", f"{_INNER}/clusterPurpose", text),
        Field("/ssl/0/cname", f"{_INNER}/sslConfiguration/cname"),
        Field("/ssl/0/leaf_domain_label", f"{_INNER}/sslConfiguration/leafDomainLabel"),
        Field("/ssl/0/overwrite_existing_domain", f"{_INNER}/sslConfiguration/overwriteExistingDomain"),
    ),
    fixed={"/properties/computeType": "AKS"},
    # It attaches a cluster that is there, and sends nothing of its nodes and its network.
    foreign=tuple(
        f"{_INNER}/{name}"
        for name in ("agentCount", "agentVmSize", "aksNetworkingConfiguration", "loadBalancerSubnet", "systemServices")
    ),
    lent={"/properties/computeLocation": Lent("/kubernetes_cluster_id", "/location")},
    named={"/kubernetes_cluster_id": CLUSTER, f"/{_IN_WORKSPACE}": WORKSPACE},
)
_SYNAPSE = Kind(
    Addressed(_COMPUTE, parent=_IN_WORKSPACE),
    (
        *_COMPUTE_ROWS,
        Field("/location", "/properties/computeLocation", text),
        Field("/synapse_spark_pool_id", "/properties/resourceId", text),
    ),
    fixed={"/properties/computeType": "SynapseSpark"},
    foreign=(_INNER,),  # it sends none
    named={"/synapse_spark_pool_id": "Microsoft.Synapse/workspaces/bigDataPools", f"/{_IN_WORKSPACE}": WORKSPACE},
)

COMPUTES: Mapping[str, Kind] = {
    "azurerm_machine_learning_compute_cluster": _AML_COMPUTE,
    "azurerm_machine_learning_compute_instance": _INSTANCE,
    "azurerm_machine_learning_inference_cluster": _AKS,
    "azurerm_machine_learning_synapse_spark": _SYNAPSE,
}
