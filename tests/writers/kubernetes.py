"""Write an estate as manifests of Azure Service Operator, version 2024-04-01.

After the CRDs of github.com/Azure/azure-service-operator and its samples: ids of other resources are references, the
kind of a compute is a key, user-assigned identities are a list.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

import yaml

from policyeng.models import JsonObject

#: What `--scope` names: an object states no more of its owner than the name.
SCOPE = "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/rg-ml/"
_KINDS = {
    "microsoft.machinelearningservices/workspaces": ("machinelearningservices.azure.com/v1api20240401", "Workspace"),
    "microsoft.machinelearningservices/workspaces/computes": (
        "machinelearningservices.azure.com/v1api20240401",
        "WorkspacesCompute",
    ),
    "microsoft.machinelearningservices/registries": ("machinelearningservices.azure.com/v1api20240401", "Registry"),
    "microsoft.network/virtualnetworks": ("network.azure.com/v1api20201101", "VirtualNetwork"),
    "microsoft.network/virtualnetworks/subnets": ("network.azure.com/v1api20201101", "VirtualNetworksSubnet"),
    "microsoft.compute/virtualmachines": ("compute.azure.com/v1api20201201", "VirtualMachine"),
    "microsoft.containerservice/managedclusters": ("containerservice.azure.com/v1api20231001", "ManagedCluster"),
}
_KEYS = {"AKS": "aks", "HDInsight": "hdInsight"}
_COMPUTES = (
    "AKS",
    "AmlCompute",
    "ComputeInstance",
    "DataFactory",
    "DataLakeAnalytics",
    "Databricks",
    "HDInsight",
    "Kubernetes",
    "SynapseSpark",
    "VirtualMachine",
)
_TOP = ("identity", "kind", "location", "sku", "tags")
#: What only the service states, or no manifest can.
_LEFT_OUT = {
    "microsoft.machinelearningservices/workspaces": (
        "ipAllowlist",
        "networkAcls",
        "privateEndpointConnections",
        "privateLinkCount",
        "provisioningState",
        "softDeleteEnabled",
        "systemDatastoresAuthMode",
        "workspaceId",
    ),
    "microsoft.machinelearningservices/workspaces/computes": (
        "createdOn",
        "isAttachedCompute",
        "modifiedOn",
        "provisioningErrors",
        "provisioningState",
    ),
}
_INNER_LEFT_OUT = (
    "connectivityEndpoints",
    "createdBy",
    "currentNodeCount",
    "enableOSPatching",
    "enableRootAccess",
    "enableSSO",
    "errors",
    "idleTimeBeforeShutdown",
    "lastOperation",
    "nodeStateCounts",
    "osImageMetadata",
    "state",
)
#: Ids of other resources below `properties`, with what a manifest calls them.
_REFERENCES = {
    "applicationInsights": "applicationInsightsReference",
    "containerRegistry": "containerRegistryReference",
    "hubResourceId": "hubResourceReference",
    "keyVault": "keyVaultReference",
    "primaryUserAssignedIdentity": "primaryUserAssignedIdentityReference",
    "resourceId": "resourceReference",
    "storageAccount": "storageAccountReference",
}


def expressible(resource: JsonObject) -> bool:
    """Whether there is a kind of object for a resource."""
    kind = str(resource["type"]).lower()
    if kind not in _KINDS or not str(resource["id"]).startswith(SCOPE):
        return False
    properties = resource.get("properties", {})
    if not isinstance(properties.get("agentPoolProfiles", []), list) or not properties.keys().isdisjoint(_TOP):
        return False
    return not kind.endswith("/computes") or properties.get("computeType") in _COMPUTES


def expressed(resource: JsonObject) -> JsonObject:
    """What a manifest states of a resource."""
    kept = deepcopy(resource)
    kind = str(resource["type"]).lower()
    for key in _LEFT_OUT.get(kind, ("provisioningState", "powerState")):
        kept["properties"].pop(key, None)
    if kind.endswith("/computes"):
        for key in _INNER_LEFT_OUT:
            (kept["properties"].get("properties") or {}).pop(key, None)
    kept["properties"].get("encryption", {}).pop("status", None)
    return {key: value for key, value in kept.items() if key in (*_TOP, "id", "name", "type", "properties")}


def loses(_: JsonObject) -> Sequence[str]:
    """Nothing but what `expressed` leaves out."""
    return ()


def write(resources: list[JsonObject]) -> dict[str, bytes]:
    """One file with a document for each resource that can be stated."""
    documents = [_object(expressed(resource)) for resource in resources if expressible(resource)]
    return {"manifests.yaml": yaml.safe_dump_all(documents, sort_keys=False).encode()}


def _object(resource: JsonObject) -> JsonObject:
    version, kind = _KINDS[str(resource["type"]).lower()]
    names = str(resource["id"]).split("/")
    spec: JsonObject = {
        "azureName": names[-1],
        "owner": {"name": names[-3] if kind.startswith(_CHILDREN) else names[4]},
    }
    spec |= {key: resource[key] for key in _TOP if resource.get(key) is not None}
    if "identity" in spec:
        spec["identity"] = _identity(spec["identity"])
    properties = resource["properties"]
    if kind == "WorkspacesCompute":
        compute_type = properties["computeType"]
        key = _KEYS.get(compute_type, compute_type[0].lower() + compute_type[1:])
        inner = properties.get("properties")
        properties = _referring(properties) | ({"properties": _compute(inner)} if inner is not None else {})
        spec["properties"] = {key: {name: value for name, value in properties.items() if value is not None}}
    else:
        spec |= _workspace(_referring(properties)) if kind == "Workspace" else properties
        if "agentPoolProfiles" in properties:
            spec["agentPoolProfiles"] = [_pool(pool) for pool in properties["agentPoolProfiles"]]
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": names[-1].lower(), "namespace": "default"},
        "spec": spec,
    }


_CHILDREN = ("WorkspacesCompute", "VirtualNetworksSubnet")


def _identity(identity: JsonObject) -> JsonObject:
    listed = [{"reference": {"armId": arm_id}} for arm_id, _ in (identity.get("userAssignedIdentities") or {}).items()]
    return {"type": identity["type"]} | ({"userAssignedIdentities": listed} if listed else {})


def _referring(properties: JsonObject) -> JsonObject:
    return {
        _REFERENCES.get(key, key): {"armId": value} if key in _REFERENCES else value
        for key, value in properties.items()
        if value is not None
    }


def _workspace(properties: JsonObject) -> JsonObject:
    stated = deepcopy(properties)
    rules = stated.get("managedNetwork", {}).get("outboundRules", {})
    for name, rule in rules.items():
        if rule["type"] == "PrivateEndpoint":
            destination = rule["destination"]
            destination["serviceResourceReference"] = {"armId": destination.pop("serviceResourceId")}
            rules[name] = {"privateEndpoint": rule}
        else:
            rules[name] = {"fqdn" if rule["type"] == "FQDN" else "serviceTag": rule}
    serverless = stated.get("serverlessComputeSettings", {})
    if "serverlessComputeCustomSubnet" in serverless:
        subnet = serverless.pop("serverlessComputeCustomSubnet")
        serverless["serverlessComputeCustomSubnetReference"] = {"armId": subnet}
    vault = stated.get("encryption", {}).get("keyVaultProperties", {})
    if "keyVaultArmId" in vault:
        vault["keyVaultArmReference"] = {"armId": vault.pop("keyVaultArmId")}
    return stated


def _compute(properties: JsonObject) -> JsonObject:
    stated = deepcopy(properties)
    for key in ("subnet", "virtualMachineImage"):
        if isinstance(stated.get(key), dict):
            stated[key] = {"reference": {"armId": stated[key]["id"]}}
    networking = stated.get("aksNetworkingConfiguration") or {}
    if "subnetId" in networking:
        networking["subnetReference"] = {"armId": networking.pop("subnetId")}
    if "adminUserPassword" in (stated.get("userAccountCredentials") or {}):
        stated["userAccountCredentials"]["adminUserPassword"] = {"name": "secret", "key": "password"}
    return {key: value for key, value in stated.items() if value is not None}


def _pool(pool: JsonObject) -> JsonObject:
    stated = deepcopy(pool)
    if "vnetSubnetID" in stated:
        stated["vnetSubnetReference"] = {"armId": stated.pop("vnetSubnetID")}
    return stated
