"""The kinds of objects of a run: definitions that take any `spec`, and objects that are evaluated."""

from __future__ import annotations

from typing import NamedTuple

from policyeng.models import JsonObject

GROUP_ID = "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/rg-ml"
SUBNETS = f"{GROUP_ID}/providers/Microsoft.Network/virtualNetworks/vnet-ml/subnets"
NAMESPACE = "ml"
_TAGS = {"owner": "ml-platform@contoso.example", "cost-center": "4711", "environment": "production"}


class Custom(NamedTuple):
    """A kind of the cluster."""

    group: str
    version: str
    kind: str
    plural: str
    #: Versions that are served in addition to `version`, which is the one that is stored.
    others: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        """As objects have it."""
        return f"{self.group}/{self.version}"

    def path(self, name: str = "", namespace: str = NAMESPACE) -> str:
        """Where its objects are in the API; with a name that one."""
        place = f"/apis/{self.api_version}/namespaces/{namespace}/{self.plural}"
        return f"{place}/{name}" if name else place

    def definition(self) -> JsonObject:
        """Its definition; like those of the operator with a status that only the operator writes."""
        anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        versions = [
            {
                "name": name,
                "served": True,
                "storage": name == self.version,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}},
                },
            }
            for name in (self.version, *self.others)
        ]
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{self.plural}.{self.group}"},
            "spec": {
                "group": self.group,
                "scope": "Namespaced",
                "names": {"kind": self.kind, "plural": self.plural, "singular": self.kind.lower()},
                "versions": versions,
            },
        }


_ML_GROUP, _OLD_VERSION = "machinelearningservices.azure.com", "v1api20210701"
WORKSPACE = Custom(_ML_GROUP, "v1api20240401", "Workspace", "workspaces", (_OLD_VERSION,))
#: The same, as clients of an old version see it.
OLD = WORKSPACE._replace(version=_OLD_VERSION)
COMPUTE = Custom(_ML_GROUP, "v1api20240401", "WorkspacesCompute", "workspacescomputes")
#: As an older operator serves it: without the version that the first webhook names.
CLUSTER = Custom("containerservice.azure.com", "v1api20231001", "ManagedCluster", "managedclusters")
INSTANCE_TYPE = Custom("amlarc.azureml.com", "v1alpha1", "InstanceType", "instancetypes")
#: Of the operator too, and none that is evaluated.
VAULT = Custom("keyvault.azure.com", "v1api20230701", "Vault", "vaults")
KINDS = (WORKSPACE, COMPUTE, CLUSTER, INSTANCE_TYPE, VAULT)


def new(kind: Custom, name: str, spec: JsonObject, namespace: str = NAMESPACE) -> JsonObject:
    """An object."""
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}


def workspace(name: str, access: str, kind: Custom = WORKSPACE) -> JsonObject:
    """Return a workspace with `publicNetworkAccess: {access}`."""
    owner = {"armId": GROUP_ID}
    return new(kind, name, {"owner": owner, "location": "eastus", "publicNetworkAccess": access, "tags": _TAGS})


def compute(
    name: str, least: int, most: int = 2, namespace: str = NAMESPACE, size: str = "Standard_DS3_v2"
) -> JsonObject:
    """A cluster of the workspace `ws`, which keeps `least` nodes while it is idle."""
    cluster = {
        "vmSize": size,
        "vmPriority": "Dedicated",
        "osType": "Linux",
        "enableNodePublicIp": False,
        "remoteLoginPortPublicAccess": "Disabled",
        "isolatedNetwork": False,
        "scaleSettings": {"minNodeCount": least, "maxNodeCount": most, "nodeIdleTimeBeforeScaleDown": "PT2M"},
        "subnet": {"reference": {"armId": f"{SUBNETS}/training"}},
    }
    spec = {
        "owner": {"name": "ws"},
        "location": "eastus",
        "identity": {"type": "SystemAssigned"},
        "tags": _TAGS,
        "properties": {
            "amlCompute": {"computeType": "AmlCompute", "disableLocalAuth": True, "properties": cluster},
        },
    }
    return new(COMPUTE, name, spec, namespace)


def managed_cluster() -> JsonObject:
    """The cluster behind two attached computes."""
    pool = {"name": "system", "count": 3, "mode": "System", "vnetSubnetReference": {"armId": f"{SUBNETS}/aks"}}
    return new(CLUSTER, "aks-ml", {"owner": {"name": "rg-ml"}, "location": "eastus", "agentPoolProfiles": [pool]})
