"""The resource types to read from Azure, with the versions of their APIs and their lists.

The preview version of Machine Learning is used because stable ones do not have all fields that policies read, such as
`idleTimeBeforeShutdown` of an instance. Source of the versions: the REST reference of each service on
learn.microsoft.com, and azure-rest-api-specs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from policyeng.models import lowered

ML = "Microsoft.MachineLearningServices"
WORKSPACES = f"{ML}/workspaces"
COMPUTES = f"{WORKSPACES}/computes"
JOBS = f"{WORKSPACES}/jobs"
ASSIGNMENTS = "Microsoft.Authorization/roleAssignments"
DEFINITIONS = "Microsoft.Authorization/roleDefinitions"
NETWORKS = "Microsoft.Network/virtualNetworks"
#: Virtual networks contain them.
SUBNETS = f"{NETWORKS}/subnets"
RESERVATIONS = "Microsoft.Capacity/reservationOrders/reservations"
ADVICE = "Microsoft.Advisor/recommendations"
#: One budget may be known by either type.
BUDGETS = ("Microsoft.Consumption/budgets", "Microsoft.CostManagement/budgets")
DIAGNOSTICS = "Microsoft.Insights/diagnosticSettings"
LOCKS = "Microsoft.Authorization/locks"
POLICY_ASSIGNMENTS = "Microsoft.Authorization/policyAssignments"
POLICY_SETS = "Microsoft.Authorization/policySetDefinitions"
PRIVATE_ENDPOINTS = "Microsoft.Network/privateEndpoints"
CONNECTIONS = f"{WORKSPACES}/connections"
AI_SERVICES = "Microsoft.CognitiveServices/accounts"

_ML_VERSION = "2025-07-01-preview"
#: What was requested before version 2 of the workspace; Azure may no longer know these types.
SERVICES = f"{WORKSPACES}/services"

#: The version of the API by lower-case type. A type of Machine Learning that is not named has the one of all.
_VERSIONS: Mapping[str, str] = {
    lowered(kind): version
    for kind, version in {
        SERVICES: "2021-04-01",
        ADVICE: "2023-01-01",
        ASSIGNMENTS: "2022-04-01",
        LOCKS: "2020-05-01",
        POLICY_ASSIGNMENTS: "2023-04-01",
        POLICY_SETS: "2023-04-01",
        "Microsoft.Authorization/policyExemptions": "2022-07-01-preview",
        "Microsoft.Authorization/roleAssignmentScheduleInstances": "2020-10-01",
        DEFINITIONS: "2022-04-01",
        "Microsoft.Batch/batchAccounts": "2024-07-01",
        RESERVATIONS: "2022-11-01",
        **dict.fromkeys((AI_SERVICES, f"{AI_SERVICES}/deployments", f"{AI_SERVICES}/raiPolicies"), "2024-10-01"),
        "Microsoft.Compute/virtualMachines": "2024-07-01",
        **dict.fromkeys(BUDGETS, "2023-11-01"),
        "Microsoft.ContainerRegistry/registries": "2023-07-01",
        "Microsoft.ContainerService/managedClusters": "2024-09-01",
        "Microsoft.DataFactory/factories": "2018-06-01",
        "Microsoft.DataLakeAnalytics/accounts": "2016-11-01",
        "Microsoft.Databricks/workspaces": "2024-05-01",
        "Microsoft.HDInsight/clusters": "2021-06-01",
        "Microsoft.Insights/autoscaleSettings": "2022-10-01",
        "Microsoft.Insights/components": "2020-02-02",
        DIAGNOSTICS: "2021-05-01-preview",
        "Microsoft.Insights/metricAlerts": "2018-03-01",
        "Microsoft.KeyVault/vaults": "2023-07-01",
        "Microsoft.Kubernetes/connectedClusters": "2024-01-01",
        PRIVATE_ENDPOINTS: "2024-05-01",
        f"{PRIVATE_ENDPOINTS}/privateDnsZoneGroups": "2024-05-01",
        NETWORKS: "2024-05-01",
        "Microsoft.Security/pricings": "2024-01-01",
        "Microsoft.Storage/storageAccounts": "2023-05-01",
        "Microsoft.Synapse/workspaces": "2021-06-01",
        "Microsoft.Synapse/workspaces/bigDataPools": "2021-06-01",
    }.items()
}
METRICS_VERSION = "2023-10-01"
USAGES_VERSION = _ML_VERSION


def version_of(kind: str) -> str:
    """Return the version of the API for a type; empty for other types."""
    folded = lowered(kind)
    return _VERSIONS.get(folded) or (_ML_VERSION if folded.startswith(f"{lowered(ML)}/") else "")


class Listing(NamedTuple):
    """A list of resources of a type.

    Attributes:
        kind: the type.
        path: the path below the id of the scope.
        query: the parameters other than the version.
        may_lack: whether an unknown list means that there are no such resources.
        below: the lists of each of these resources.
        newest: the number of newest resources to read; 0 for all.
    """

    kind: str
    path: str
    query: Mapping[str, str] = {}
    may_lack: bool = False
    below: tuple[Listing, ...] = ()
    newest: int = 0


def _list_in_scope(kind: str, **stated: object) -> Listing:
    """Return a list of a subscription or a resource group."""
    return Listing(kind, f"/providers/{kind}", **stated)  # type: ignore[arg-type]  # the fields of Listing


def _list_in_workspace(name: str, parent: str = WORKSPACES, **stated: object) -> Listing:
    """Return a list in a workspace, or in another resource."""
    return Listing(f"{parent}/{name}", f"/{name}", **stated)  # type: ignore[arg-type]  # the fields of Listing


#: So many versions of one model or environment are read.
VERSIONS_READ = 10

_SETTINGS = _list_in_scope(DIAGNOSTICS)
IN_WORKSPACE = (
    _list_in_workspace("computes"),
    _list_in_workspace(
        "onlineEndpoints", below=(_list_in_workspace("deployments", f"{WORKSPACES}/onlineEndpoints"), _SETTINGS)
    ),
    _list_in_workspace("batchEndpoints", below=(_list_in_workspace("deployments", f"{WORKSPACES}/batchEndpoints"),)),
    _list_in_workspace("serverlessEndpoints", may_lack=True),
    _list_in_workspace("privateEndpointConnections"),
    _list_in_workspace("datastores"),
    _list_in_workspace("connections"),
    _list_in_workspace("data"),
    _list_in_workspace(
        "environments", below=(_list_in_workspace("versions", f"{WORKSPACES}/environments", newest=VERSIONS_READ),)
    ),
    _list_in_workspace("models", below=(_list_in_workspace("versions", f"{WORKSPACES}/models", newest=VERSIONS_READ),)),
    _list_in_workspace("schedules", query={"listViewType": "All"}),
    _list_in_workspace("outboundRules", may_lack=True),
    _list_in_workspace("services", may_lack=True),
    _SETTINGS,
)
#: What is listed at the requested scope, also if that is one workspace.
AT_SCOPE = (
    _list_in_scope(ASSIGNMENTS),
    _list_in_scope(DEFINITIONS),
    _list_in_scope(LOCKS),
    _list_in_scope(POLICY_ASSIGNMENTS),
    _list_in_scope("Microsoft.Authorization/policyExemptions"),
    _list_in_scope("Microsoft.Authorization/roleAssignmentScheduleInstances"),
)
#: What is listed in the subscription, whatever was requested: locks of the subscription protect what is in it, and
#: alerts and autoscale settings can be in any resource group.
IN_SUBSCRIPTION = (
    _list_in_scope(LOCKS),
    _list_in_scope("Microsoft.Insights/metricAlerts"),
    _list_in_scope("Microsoft.Insights/autoscaleSettings"),
    _list_in_scope("Microsoft.Security/pricings"),
)
#: What is listed in a subscription or a resource group. Machines and clusters are read only if workspaces refer to
#: them: others are not related to Machine Learning, but would be evaluated.
IN_GROUP = (
    _list_in_scope(f"{ML}/registries", may_lack=True, below=(_SETTINGS,)),
    _list_in_scope(PRIVATE_ENDPOINTS, below=(_list_in_workspace("privateDnsZoneGroups", PRIVATE_ENDPOINTS),)),
    _list_in_scope(NETWORKS),
)
#: By lower-case type, the lists in a resource that another one names.
IN_NAMED: Mapping[str, tuple[Listing, ...]] = {
    lowered(PRIVATE_ENDPOINTS): (_list_in_workspace("privateDnsZoneGroups", PRIVATE_ENDPOINTS),),
    lowered(AI_SERVICES): (
        _list_in_workspace("deployments", AI_SERVICES),
        _list_in_workspace("raiPolicies", AI_SERVICES),
    ),
}
EVERYWHERE = Listing(RESERVATIONS, "/providers/Microsoft.Capacity/reservations")


_INNER = tuple(one for one in IN_WORKSPACE if one.kind.startswith(WORKSPACES))
#: The types of all resources in workspaces; each follows its parent.
INSIDE = (
    *(one.kind for one in _INNER),
    *(below.kind for one in _INNER for below in one.below if below.kind.startswith(WORKSPACES)),
    JOBS,
)


def below_workspaces() -> tuple[str, ...]:
    """Return the types in workspaces, which are unknown if workspaces cannot be listed."""
    may_lack = {one.kind for one in _INNER if one.may_lack}
    return tuple(kind for kind in INSIDE if kind not in may_lack)
