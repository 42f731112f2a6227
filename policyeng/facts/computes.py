"""Computes and the resources that have their nodes. `policies/lib/computes.rego` is the same in Rego."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from policyeng.facts.catalogue import Facts, VmSize
from policyeng.facts.ids import fold_id, name_of, workspace_of
from policyeng.facts.numbers import parse_whole_number
from policyeng.facts.words import Regulated, fold, format_value, get_inside, regulated, squeeze
from policyeng.models import JsonObject, lowered
from policyeng.named import NamedTuple

COMPUTE_TYPE = "microsoft.machinelearningservices/workspaces/computes"
CLUSTER_TYPE = "microsoft.containerservice/managedclusters"
MACHINE_TYPE = "microsoft.compute/virtualmachines"
DEPLOYMENT_TYPE = "microsoft.machinelearningservices/workspaces/onlineendpoints/deployments"
_KINDS = {CLUSTER_TYPE: "managedcluster", DEPLOYMENT_TYPE: "deployment"}
_SIZE_PLACES = {
    "amlcompute": ("properties", "properties", "vmSize"),
    "computeinstance": ("properties", "properties", "vmSize"),
    "aks": ("properties", "properties", "agentVmSize"),
    "virtualmachine": ("properties", "properties", "virtualMachineSize"),
    "deployment": ("properties", "instanceType"),
}
#: The kinds whose nodes Azure Machine Learning takes from its own quota: clusters, instances and managed deployments.
MANAGED_KINDS = ("amlcompute", "computeinstance", "deployment")


class NodeSize(NamedTuple):
    """A VM size of the nodes of a compute: its JSON Pointer, and the value there (None for none)."""

    path: str
    size: object


def kind_of(resource: JsonObject) -> str | None:
    """Return the compute type in lower case, `managedcluster` or `deployment` (a managed one).

    None for anything else.
    """
    resource_type = lowered(str(resource.get("type")))
    if resource_type == COMPUTE_TYPE:
        return fold(get_inside(resource, "properties", "computeType"))
    kind = _KINDS.get(resource_type)
    if kind == "deployment" and fold(get_inside(resource, "properties", "endpointComputeType")) in (
        "kubernetes",
        "k8s",
    ):
        return None  # its nodes are the cluster's
    return kind


def own_size(resource: JsonObject) -> NodeSize | None:
    """Return the pointer and the value of the VM size of a compute or deployment.

    None if it has no such field.
    """
    return _own_size(resource, kind_of(resource))


def _own_size(resource: JsonObject, kind: str | None) -> NodeSize | None:
    place = _SIZE_PLACES.get(kind or "")
    return NodeSize("/" + "/".join(place), get_inside(resource, *place)) if place else None


def managed(
    by_id: Mapping[str, JsonObject], by_scope: Mapping[str, Mapping[str, Sequence[str]]], scopes: Iterable[str]
) -> Iterator[tuple[JsonObject, JsonObject | None]]:
    """Yield the clusters, instances and managed deployments of scopes, each with its workspace if known.

    The scopes are keys of `by_scope`, and none is inside another.
    """
    for kinds in (by_scope.get(scope, {}) for scope in scopes):
        for key in (*kinds.get(COMPUTE_TYPE, ()), *kinds.get(DEPLOYMENT_TYPE, ())):
            if kind_of(by_id[key]) in MANAGED_KINDS:
                yield by_id[key], by_id.get(workspace_of(key) or "")


def find_size(resource: JsonObject, facts: Facts) -> VmSize | None:
    """Return the catalogue's row of the VM size that a compute or deployment states.

    None for a size that it does not know.
    """
    return size_of(resource, kind_of(resource), facts)


def size_of(resource: JsonObject, kind: str | None, facts: Facts) -> VmSize | None:
    """Return the same of what is of a kind, as `kind_of` gives it."""
    place = _SIZE_PLACES.get(kind or "")
    size = get_inside(resource, *place) if place else None
    return facts.size(size) if isinstance(size, str) else None


def region_of(resource: JsonObject, workspace: JsonObject | None) -> str | None:
    """Return the region of the nodes, for comparing: the compute's own, else the resource's, else the workspace's."""
    is_compute = lowered(str(resource.get("type"))) == COMPUTE_TYPE  # nothing else has a `computeLocation`
    places = (
        get_inside(resource, "properties", "computeLocation") if is_compute else None,
        get_inside(resource, "location"),
        get_inside(workspace, "location"),
    )
    return next(filter(None, map(squeeze, places)), None)


def max_nodes(cluster: JsonObject) -> int | None:
    """Return the largest scale of a compute cluster; None when it is not a whole number."""
    return parse_whole_number(get_inside(cluster, "properties", "properties", "scaleSettings", "maxNodeCount"))


def max_instances(deployment: JsonObject) -> int | None:
    """Return the instance count of an online deployment, or its autoscale maximum; None if it is invalid.

    The default is that of Azure, which is 1 for both.
    """
    scale = get_inside(deployment, "properties", "scaleSettings")
    scales_itself = fold(get_inside(scale, "scaleType")) == "targetutilization"
    stated = get_inside(scale, "maxInstances") if scales_itself else get_inside(deployment, "sku", "capacity")
    return 1 if stated is None else parse_whole_number(stated)


def node_sizes(resource: JsonObject, by_id: Mapping[str, JsonObject]) -> list[NodeSize] | None:
    """Return the sizes of all nodes of a resource, as far as the snapshot states them; None for what has no nodes.

    A size that ought to be stated and is not is None; there is no entry where another resource states it.
    """
    kind = kind_of(resource)
    if kind == "managedcluster":
        return _pool_sizes(resource)
    if kind == "kubernetes":
        return []
    own = _own_size(resource, kind)
    if own is None:
        return None
    sizes = [own] if own.size is not None or kind not in ("aks", "virtualmachine") else []
    if kind == "virtualmachine":
        machine = _find_named(get_inside(resource, "properties", "resourceId"), by_id, MACHINE_TYPE)
        size = get_inside(machine, "properties", "hardwareProfile", "vmSize")
        sizes += [NodeSize("/properties/resourceId", size)] if fold(size) else []
    return sizes


def _pool_sizes(cluster: JsonObject) -> list[NodeSize]:
    place = "/properties/agentPoolProfiles"
    sizes = [NodeSize(f"{place}/{at}/vmSize", pool.get("vmSize")) for at, pool in enumerate(pools(cluster))]
    return sizes or [NodeSize(place, None)]


def pools(cluster: JsonObject) -> list[JsonObject]:
    """Return the node pools of a managed cluster, in its order.

    Empty for what is no object, none where it states no list.
    """
    stated = get_inside(cluster, "properties", "agentPoolProfiles")
    return [pool if isinstance(pool, dict) else {} for pool in stated] if isinstance(stated, list) else []


def cluster_of(compute: JsonObject, by_id: Mapping[str, JsonObject]) -> JsonObject | None:
    """Return the managed cluster of the snapshot that an AKS or Kubernetes compute is attached to."""
    return _find_named(get_inside(compute, "properties", "resourceId"), by_id, CLUSTER_TYPE)


def backed_by(
    cluster: JsonObject, by_id: Mapping[str, JsonObject], by_host: Mapping[str, Sequence[str]]
) -> Iterator[JsonObject]:
    """Yield the AKS and Kubernetes computes that run on a managed cluster."""
    for key in by_host.get(fold_id(str(cluster["id"])), ()):
        if kind_of(by_id[key]) in ("aks", "kubernetes"):
            yield by_id[key]


def compute_regulated(
    resource: JsonObject,
    workspace: JsonObject | None,
    by_id: Mapping[str, JsonObject],
    by_host: Mapping[str, Sequence[str]],
    classifications: Iterable[str],
) -> Regulated:
    """Return as `words.regulated`.

    A managed cluster belongs to no workspace, its own tag or any compute on it makes it so.
    """
    words = list(classifications)
    if kind_of(resource) != "managedcluster":
        return regulated(resource, workspace, words)
    on_it = backed_by(resource, by_id, by_host)
    homes = [(compute, by_id.get(workspace_of(str(compute["id"])) or "")) for compute in on_it]
    through = (_through(compute, regulated(compute, home, words)) for compute, home in homes)
    answers = [regulated(resource, {}, words), *through]
    return next(answer for wanted in (True, None, False) for answer in answers if answer.decided is wanted)


def _through(compute: JsonObject, regulated: Regulated) -> Regulated:
    name = format_value(name_of(str(compute["id"])))
    return Regulated(regulated.decided, f"for the compute {name} on it: {regulated.reason}")


def _find_named(reference: object, by_id: Mapping[str, JsonObject], wanted: str) -> JsonObject | None:
    """Return what a reference names, if it is of the wanted type."""
    named = by_id.get(fold_id(reference)) if isinstance(reference, str) else None
    return named if named is not None and lowered(str(named.get("type"))) == wanted else None
