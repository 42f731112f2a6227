"""The Kubernetes objects in lists and admission reviews, their kinds, and their ARM types and ids."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from msgspec.structs import replace

from policyeng.facts.ids import types_of
from policyeng.models import JsonObject, lowered
from policyeng.sources.parsed import NamedThing, Surroundings

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


#: Groups whose objects are detected without `metadata`, so an object without it is refused and not skipped.
_OWN_GROUPS = frozenset({ML_GROUP, EXTENSION_GROUP})
#: How many objects of the same kind and name in equally near documents are compared.
_MOST_COPIES = 20


class KubernetesObject(NamedTuple):
    """An object with its JSON Pointer in the document; or why there is none, in `nothing`."""

    object: object
    pointer: str
    nothing: str = ""


def is_object(value: object) -> bool:
    """Check whether a value is a Kubernetes object: `apiVersion`, `kind` and `metadata`.

    The `apiVersion` of ARM has no group.
    """
    if not isinstance(value, dict) or not isinstance(value.get("apiVersion"), str):
        return False
    kind, arm_type, group = value.get("kind"), value.get("type"), group_of(value["apiVersion"])
    is_arm = not group and isinstance(arm_type, str) and lowered(arm_type).startswith("microsoft.")
    if not isinstance(kind, str) or is_arm:
        return False
    return isinstance(value.get("metadata"), dict) or is_list(value) or group in _OWN_GROUPS


def is_list(value: JsonObject) -> bool:
    """Check whether an object is a list of objects, with a kind such as `List` or `WorkspaceList`."""
    kind = value.get("kind")
    return isinstance(kind, str) and kind.endswith("List") and isinstance(value.get("items"), list)


def is_review(value: object) -> bool:
    """Check whether a value is an admission review."""
    return (
        isinstance(value, dict)
        and value.get("kind") == "AdmissionReview"
        and (group_of(value.get("apiVersion")) == "admission.k8s.io" or isinstance(value.get("request"), dict))
    )


def list_objects(document: object) -> Iterator[KubernetesObject]:
    """Yield the objects of a document in order; items of a typed list get its `apiVersion` and `kind`."""
    waiting = [KubernetesObject(document, "")]
    while waiting:
        value, pointer, _ = waiting.pop()
        entries, below = _entries(value, pointer)
        if entries is not None:
            waiting += [KubernetesObject(entry, f"{below}/{index}") for index, entry in enumerate(entries)][::-1]
        elif isinstance(value, dict) and is_review(value):
            yield _object_of_review(value, pointer)
        else:
            yield KubernetesObject(value, pointer)


def _entries(value: object, pointer: str) -> tuple[list[object] | None, str]:
    if isinstance(value, list):
        return value, pointer
    if not isinstance(value, dict) or not is_list(value) or group_of(value.get("apiVersion")) == EXTENSION_GROUP:
        return None, pointer
    given = {} if value["kind"] == "List" else {"apiVersion": value.get("apiVersion"), "kind": value["kind"][:-4]}
    return [{**given, **item} if isinstance(item, dict) else item for item in value["items"]], f"{pointer}/items"


def _object_of_review(review: JsonObject, pointer: str) -> KubernetesObject:
    request = review.get("request")
    if not isinstance(request, dict):
        return KubernetesObject(None, pointer, "an admission review without a request")
    if request.get("operation") == "DELETE":
        return KubernetesObject(None, pointer, "an admission review of a deletion: nothing to check")
    if not isinstance(request.get("object"), dict):
        return KubernetesObject(None, pointer, "an admission review without an object")
    return KubernetesObject(request["object"], f"{pointer}/request/object")


def get_inner(value: object, *path: str) -> object:
    """Return the value below a path of keys; None if there is none."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def words(value: object) -> str:
    """Return a text without surrounding space; empty if the value is not text."""
    return value.strip() if isinstance(value, str) else ""


def name_of(document: JsonObject) -> str:
    """Return the Azure name of an object, escaped for an id; empty if it has none."""
    name = words(get_inner(document, "spec", "azureName")) or words(get_inner(document, "metadata", "name"))
    return name.replace("/", "~")


@dataclass(frozen=True, slots=True)
class Names:
    """The ARM ids of the objects of one document, and of the objects that they refer to.

    Attributes:
        around: the deployment scope of the document, and the lookup of objects in other documents.
        known: the objects of the document, by group, kind, namespace and name.
        home: the scope of objects that are in no document; the scope of the document if empty.
    """

    around: Surroundings
    known: Mapping[Hashable, JsonObject]
    home: str = ""

    def identity(self, document: JsonObject) -> str:
        """Return the ARM id of an object: the id from the service, or an id below its owner.

        Raises:
            KeyError: there is no such kind, or its owner is unknown.
        """
        kind = KINDS[key_of(group_of(document.get("apiVersion")), document.get("kind"))]
        stated = get_inner(document, "status", "id")
        if isinstance(stated, str) and lowered(kind.arm_type) in types_of(stated):
            return stated
        name = name_of(document) or "{name}"
        if not kind.parent:
            return f"{self.owner(document) or self.around.scope}/providers/{kind.arm_type}/{name}"
        return f"{self.owner(document)}/{kind.arm_type.rpartition('/')[2]}/{name}"

    def owner(self, document: JsonObject) -> str:
        """Return the ARM id of an object's owner; empty if that is a resource group without an id.

        Raises:
            KeyError: the owner is unknown.
        """
        kind = KINDS[key_of(group_of(document.get("apiVersion")), document.get("kind"))]
        owner = get_inner(document, "spec", "owner")
        if words(get_inner(owner, "armId")):
            return words(get_inner(owner, "armId")).rstrip("/")
        key = kind.parent or RESOURCE_GROUP
        if kind.extension and get_inner(owner, "kind"):
            key = key_of(get_inner(owner, "group"), get_inner(owner, "kind"))
            if key in KINDS and KINDS[key].extension:
                raise KeyError(key)  # prevents cycles of owners
        name = words(get_inner(owner, "name"))
        if key == RESOURCE_GROUP:
            return ""
        return self.named(key, name, words(get_inner(document, "metadata", "namespace")), owns=True)

    def named(self, key: tuple[str, str], name: str, namespace: str, *, owns: bool = False) -> str:
        """Return the ARM id of the object of a kind and name.

        Args:
            key: group and kind in lower case.
            name: of the object.
            namespace: of the object that refers to it; both are in the same one.
            owns: whether it owns the object that refers to it, and so exists.

        Raises:
            KeyError: the id is unknown, because of an unknown kind, a missing parent object, or different objects in
                equally near documents.
        """
        scope = self.home or self.around.scope
        if key == RESOURCE_GROUP:
            return scope
        there = self.known.get((*key, namespace, lowered(name)))
        if there is not None:
            return self.identity(there)
        found = self.around.find((*key, namespace, lowered(name)))
        if found:
            return self._identity_of(found)
        kind = KINDS[key]
        if key == (ML_GROUP, "workspace") and owns:
            around = self.around.workspace
            if not name or lowered(around.rpartition("/")[2]) == lowered(name):
                return around
        if kind.parent:
            raise KeyError(key)
        return f"{scope}/providers/{kind.arm_type}/{name.replace('/', '~') or '{name}'}"

    def _identity_of(self, found: Sequence[NamedThing]) -> str:
        """Return the ARM id of an object in other documents.

        Raises:
            KeyError: the documents have different ids, or there are too many.
        """
        ids: dict[str, str] = {}
        for thing, neighbors, find in found[:_MOST_COPIES]:
            identity = Names(replace(self.around, find=find), neighbors).identity(thing)
            ids.setdefault(lowered(identity), identity)
        if len(ids) > 1 or len(found) > _MOST_COPIES:
            raise KeyError(*ids)
        return next(iter(ids.values()))


def names_in(document: object) -> dict[Hashable, JsonObject]:
    """Return the objects of a document that represent Azure resources, by group, kind, namespace and name."""
    known: dict[Hashable, JsonObject] = {}
    for entry in list_objects(document):
        there = entry.object
        if isinstance(there, dict):
            key = key_of(group_of(there.get("apiVersion")), there.get("kind"))
            namespace = words(get_inner(there, "metadata", "namespace"))
            if key in KINDS:
                known.setdefault((*key, namespace, lowered(words(get_inner(there, "metadata", "name")))), there)
    return known
