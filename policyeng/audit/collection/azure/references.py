"""Resources that others refer to: attached machines and clusters, networks and hubs, in any scope."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from policyeng.audit.collection.azure.client import Client, Loss
from policyeng.audit.collection.azure.resource_types import (
    COMPUTES,
    CONNECTIONS,
    IN_NAMED,
    JOBS,
    NETWORKS,
    POLICY_ASSIGNMENTS,
    POLICY_SETS,
    SUBNETS,
    WORKSPACES,
    Listing,
    version_of,
)
from policyeng.audit.collection.azure.snapshot_builder import SnapshotBuilder
from policyeng.audit.collection.azure.workers import Task
from policyeng.evaluation.pointers import values_at
from policyeng.facts.ids import types_of
from policyeng.facts.subnets import subnets_of
from policyeng.models import JsonObject, lowered

_CLUSTERS = "Microsoft.ContainerService/managedClusters"
#: The JSON Pointers to ids of other resources, by type.
_NAMES = {
    COMPUTES: (
        "/properties/resourceId",
        "/properties/properties/subnet/id",
        "/properties/properties/aksNetworkingConfiguration/subnetId",
    ),
    WORKSPACES: (
        "/properties/hubResourceId",
        "/properties/storageAccount",
        "/properties/keyVault",
        "/properties/containerRegistry",
        "/properties/applicationInsights",
        "/properties/privateEndpointConnections/*/properties/privateEndpoint/id",
    ),
    CONNECTIONS: ("/properties/metadata/ResourceId",),
    JOBS: (
        "/properties/componentId",
        "/properties/environmentId",
        "/properties/jobs/*/componentId",
    ),
    f"{WORKSPACES}/onlineEndpoints/deployments": ("/properties/environmentId",),
    f"{WORKSPACES}/batchEndpoints/deployments": ("/properties/environmentId",),
    POLICY_ASSIGNMENTS: ("/properties/policyDefinitionId",),
    _CLUSTERS: (
        "/properties/agentPoolProfiles/*/vnetSubnetID",
        "/properties/agentPoolProfiles/*/podSubnetID",
    ),
}


def tasks(
    client: Client,
    gathered: SnapshotBuilder,
    inside: Callable[[str], Iterable[Task]],
    read: Callable[[Listing, str], Iterable[Task]],
) -> Iterator[Task]:
    """Yield tasks for the referenced resources that were not requested yet.

    Missing ones are skipped: policies check for them. `inside` yields the tasks for everything in a hub, because its
    projects use it; `read` reads a list of a resource.
    """
    named = {
        target for kind in _NAMES for resource in gathered.of_type(kind) for target in _find_references(resource, kind)
    }
    for target, kind in sorted(named):
        if lowered(target) not in gathered.resources and gathered.first_time(target):
            yield partial(_ask, client, gathered, inside, read, target, kind)


def note_incomplete_clusters(gathered: SnapshotBuilder, root: str) -> None:
    """Note that clusters are incomplete if nodes are in subnets: clusters without references were not requested."""
    if any(subnets_of(one) for kind in (COMPUTES, _CLUSTERS) for one in gathered.of_type(kind)):
        gathered.leave(_CLUSTERS, root, "only those that were named were read")


def _find_references(resource: JsonObject, kind: str) -> Iterator[tuple[str, str]]:
    """Yield the ids that a resource refers to, with their lower-case types; networks instead of subnets."""
    for pointer in _NAMES[kind]:
        for value in values_at(resource, pointer):
            if not isinstance(value, str):
                continue
            identity = value.removesuffix("/")
            kinds = types_of(identity)
            if kinds[:1] == (lowered(SUBNETS),):
                identity, kinds = identity.rpartition("/")[0].rpartition("/")[0], (lowered(NETWORKS),)
            if kind == POLICY_ASSIGNMENTS and kinds[:1] != (lowered(POLICY_SETS),):
                continue  # the id is enough for a single definition
            if kind == CONNECTIONS and not set(kinds[:1]) <= set(IN_NAMED):
                continue  # what a connection leads to need not be of Azure Machine Learning
            if kinds:
                yield lowered(identity), kinds[0]


def _ask(
    client: Client,
    gathered: SnapshotBuilder,
    inside: Callable[[str], Iterable[Task]],
    read: Callable[[Listing, str], Iterable[Task]],
    target: str,
    kind: str,
) -> Iterable[Task]:
    version = version_of(kind)
    answer = client.get(target, {"api-version": version}) if version else Loss("it is not known how to read this type")
    if not isinstance(answer, Loss):
        resource = gathered.take(answer, kind, target)
        if resource and kind == lowered(WORKSPACES):
            yield from inside(resource["id"])
        for listing in IN_NAMED.get(kind, ()) if resource else ():
            yield partial(read, listing, target)
        if resource and kind == lowered(NETWORKS):
            gathered.ask(kind, resource["id"])
    elif answer.is_absent:
        gathered.ask(kind, target)
    else:
        gathered.lack(kind, target, answer)
