"""The fields of Azure Service Operator's Machine Learning objects.

The names are ARM's, to which `aso_casing` has converted references. Source: `spec` in the CRDs of
github.com/Azure/azure-service-operator, `v2/api/machinelearningservices/{v1api20210701,v1api20240401}/structure.txt`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from policyeng.models import JsonObject, lowered
from policyeng.sources.field_mapping import Bring, FieldMapping, UnfitError, boolean, convert_integer, text

Rows = tuple[FieldMapping, ...]


def convert_members(value: object) -> JsonObject:
    """Return an object unchanged."""
    if isinstance(value, dict):
        return value
    raise UnfitError("an object")


def entries(value: object) -> list[object]:
    """Return a list unchanged."""
    if isinstance(value, list):
        return value
    raise UnfitError("a list")


def convert_identity(value: object) -> object:
    """Convert ASO's list of user-assigned identities to ARM's map by id."""
    body = dict(convert_members(value))
    listed = body.pop("userAssignedIdentities", None)
    if listed is None or isinstance(listed, dict):
        return body if listed is None else {**body, "userAssignedIdentities": listed}
    ids = [entry.get("id") if isinstance(entry, dict) else None for entry in entries(listed)]
    if not all(isinstance(arm_id, str) for arm_id in ids):
        raise UnfitError("an object whose identities are references with known ids")
    return {**body, "userAssignedIdentities": {str(arm_id): {} for arm_id in ids}}


def with_properties(*outer: str) -> Bring:
    """Return a converter of ASO's flat objects to ARM's, with all but the keys `outer` below `properties`."""

    def bring(value: object) -> object:
        return [
            {key: entry[key] for key in outer if key in entry}
            | {"properties": {key: member for key, member in entry.items() if key not in outer}}
            for entry in entries(value)
            if isinstance(entry, dict)
        ]

    return bring


def _rows(bring: Bring, *names: str, below: str = "") -> Rows:
    return tuple(FieldMapping(f"/{name}", f"{below}/{name}", bring) for name in names)


def _get_inside(bring: Bring, *names: str) -> Rows:
    return _rows(bring, *names, below="/properties")


def _unchecked(*names: str) -> Rows:
    return tuple(FieldMapping(f"/{name}", "") for name in names)


class Table(NamedTuple):
    """The rows of one kind, and the rows added in the API version 2024-04-01."""

    rows: Rows
    since_2024: Rows = ()

    @property
    def newest(self) -> Rows:
        """Return the rows of the newest version, which every other version is converted to."""
        return self.rows + self.since_2024

    def of(self, version: str) -> Rows:
        """Return the rows of an `apiVersion`; all rows if it has no date, or a later one."""
        date = re.search(r"\d{8}", version)
        return self.rows if date and date[0] < "20240401" else self.newest


_ENVELOPE: Rows = (
    *_rows(text, "location"),
    *_rows(convert_members, "tags", "sku"),
    *_rows(convert_identity, "identity"),
    *_unchecked("$propertyBag", "azureName", "operatorSpec", "originalVersion", "owner", "systemData"),
)

WORKSPACE = Table(
    (
        *_ENVELOPE,
        *_get_inside(
            text,
            "applicationInsights",
            "containerRegistry",
            "description",
            "discoveryUrl",
            "friendlyName",
            "imageBuildCompute",
            "keyVault",
            "primaryUserAssignedIdentity",
            "publicNetworkAccess",
            "storageAccount",
        ),
        *_get_inside(boolean, "allowPublicAccessWhenBehindVnet", "hbiWorkspace"),
        *_get_inside(
            convert_members, "encryption/identity", "encryption/keyVaultProperties", "serviceManagedResourcesSettings"
        ),
        *_get_inside(with_properties("name"), "sharedPrivateLinkResources"),
    ),
    (
        *_rows(text, "kind"),
        *_get_inside(text, "hubResourceId"),
        *_get_inside(boolean, "enableDataIsolation", "v1LegacyMode"),
        *_get_inside(entries, "associatedWorkspaces"),
        *_get_inside(
            convert_members, "featureStoreSettings", "managedNetwork", "serverlessComputeSettings", "workspaceHubConfig"
        ),
    ),
)

REGISTRY = Table(
    (
        *_ENVELOPE,
        *_rows(text, "kind"),
        *_get_inside(text, "discoveryUrl", "intellectualPropertyPublisher", "mlFlowRegistryUri", "publicNetworkAccess"),
        *_get_inside(convert_members, "managedResourceGroup"),
        *_get_inside(entries, "regionDetails"),
        *_get_inside(with_properties("id", "location"), "registryPrivateEndpointConnections"),
    )
)

#: The spec of kinds whose `properties` have variants, and the `properties` of a connection.
OUTER = Table((*_ENVELOPE, *_unchecked("properties")))
CONNECTION = Table(
    (
        *_get_inside(text, "authType", "category", "expiryTime", "group", "target", "valueFormat"),
        *_get_inside(boolean, "isSharedToAll"),
        *_get_inside(convert_members, "metadata"),
        *_get_inside(entries, "sharedUserList"),
        *_unchecked("credentials", "value"),
    )
)

#: Fields with another shape in ARM; if a part is unknown, the complete field is.
RESHAPED = frozenset(
    {"/identity", "/properties/registryPrivateEndpointConnections", "/properties/sharedPrivateLinkResources"}
)

#: The fields below the key of a compute's kind.
COMPUTE = Table(
    (
        *_get_inside(text, "computeLocation", "computeType", "description", "resourceId"),
        *_get_inside(boolean, "disableLocalAuth"),
        *_unchecked("properties"),
    )
)


class Variant(NamedTuple):
    """One kind of compute: its `computeType`, and the fields of its inner `properties`."""

    compute_type: str
    table: Table


def _compute(*rows: FieldMapping) -> Rows:
    """Return the rows with targets in the inner `properties`."""
    return tuple(row._replace(target=f"/properties/properties{row.target}") if row.target else row for row in rows)


_CLUSTER = Table(
    _compute(
        *_rows(boolean, "enableNodePublicIp", "isolatedNetwork"),
        *_rows(text, "osType", "remoteLoginPortPublicAccess", "vmPriority", "vmSize"),
        *_rows(convert_integer, "scaleSettings/maxNodeCount", "scaleSettings/minNodeCount"),
        *_rows(text, "scaleSettings/nodeIdleTimeBeforeScaleDown", "subnet/id", "virtualMachineImage/id"),
        *_rows(text, "userAccountCredentials/adminUserName"),
    ),
    _compute(*_rows(convert_members, "propertyBag")),
)
_INSTANCE = Table(
    _compute(
        *_rows(text, "applicationSharingPolicy", "computeInstanceAuthorizationType", "subnet/id", "vmSize"),
        *_rows(convert_members, "personalComputeInstanceSettings", "setupScripts", "sshSettings"),
    ),
    _compute(
        *_rows(boolean, "enableNodePublicIp"), *_rows(entries, "customServices"), *_rows(convert_members, "schedules")
    ),
)
_AKS = Table(
    _compute(
        *_rows(convert_integer, "agentCount"),
        *_rows(text, "agentVmSize", "clusterFqdn", "clusterPurpose", "loadBalancerSubnet", "loadBalancerType"),
        *_rows(convert_members, "aksNetworkingConfiguration", "sslConfiguration"),
    )
)
_KUBERNETES = Table(
    _compute(
        *_rows(
            text,
            "defaultInstanceType",
            "extensionInstanceReleaseTrain",
            "extensionPrincipalId",
            "namespace",
            "vcName",
        ),
        *_rows(convert_members, "instanceTypes"),
        *_unchecked("relayConnectionString", "serviceBusConnectionString"),
    )
)
_MACHINE = Table(
    _compute(
        *_rows(text, "address", "virtualMachineSize"),
        *_rows(convert_integer, "sshPort"),
        *_rows(boolean, "isNotebookInstanceCompute"),
        *_rows(convert_members, "administratorAccount"),
    ),
    _compute(*_rows(convert_integer, "notebookServerPort")),
)
_HDINSIGHT = Table(
    _compute(
        *_rows(text, "address"), *_rows(convert_integer, "sshPort"), *_rows(convert_members, "administratorAccount")
    )
)
_SPARK = Table(
    _compute(
        *_rows(convert_members, "autoPauseProperties", "autoScaleProperties"),
        *_rows(convert_integer, "nodeCount"),
        *_rows(
            text,
            "nodeSize",
            "nodeSizeFamily",
            "poolName",
            "resourceGroup",
            "sparkVersion",
            "subscriptionId",
            "workspaceName",
        ),
    )
)

#: By the key below `spec.properties` in lower case.
COMPUTES: Mapping[str, Variant] = {
    lowered(compute_type): Variant(compute_type, table)
    for compute_type, table in {
        "AKS": _AKS,
        "AmlCompute": _CLUSTER,
        "ComputeInstance": _INSTANCE,
        "DataFactory": Table(()),
        "DataLakeAnalytics": Table(_compute(*_rows(text, "dataLakeStoreAccountName"))),
        "Databricks": Table(_compute(*_rows(text, "workspaceUrl"), *_unchecked("databricksAccessToken"))),
        "HDInsight": _HDINSIGHT,
        "Kubernetes": _KUBERNETES,
        "SynapseSpark": _SPARK,
        "VirtualMachine": _MACHINE,
    }.items()
}
