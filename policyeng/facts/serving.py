"""The machine that inference runs on, and whether it has room for the model.

Source: the founding document 001, "Compute targets for inference": "Start with a machine that has 150% of the RAM your
model requires".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from policyeng.facts.catalogue import Facts, VmSize
from policyeng.facts.computes import cluster_of, kind_of, node_sizes, own_size
from policyeng.facts.words import fold, get_inside
from policyeng.models import JsonObject, lowered

#: How much memory a machine has for each GiB that its model needs.
HEADROOM = 1.5


#: The targets that run on machines of a size; Container Instances, Functions and the like have none.
SIZED_TARGETS = ("managed-online", "kubernetes", "aks", "compute-cluster", "serverless", None)


class Machine(Struct, frozen=True):
    """The machine that serves a workload; `size` is None if unknown, with the reason."""

    size: VmSize | None
    reason: str = ""


def has_room(memory_gib: float, model_gib: float) -> bool:
    """Return whether so much memory is half again what a model needs; exactly that is enough.

    It is the memory that is divided: a need that was worked out as 14 / 1.5 is then still met by 14.
    """
    return model_gib <= memory_gib / HEADROOM


def source_of(workload: JsonObject, by_id: Mapping[str, JsonObject]) -> JsonObject | None:
    """Return the deployment or service that a workload was derived from; None for one that is only declared."""
    return _at(workload.get("sourceId"), by_id)


def serving_machine(workload: JsonObject, by_id: Mapping[str, JsonObject], facts: Facts) -> Machine:
    """Return the machine of a workload: of its deployment where that states one, else of the compute that it runs on.

    A managed cluster has the nodes of all its pools, and Kubernetes places what it runs where there is room: there it
    is the largest of them.
    """
    source = source_of(workload, by_id)
    if source is None:
        return Machine(None, "no deployment in the snapshot says which machine serves it")
    stated = _find_stated_size(source, workload)
    if stated is not None:
        return _largest([stated], facts)
    compute = _at(workload.get("computeId"), by_id)
    if compute is None:
        return Machine(None, "the compute that serves it cannot be told")
    nodes = node_sizes(compute, by_id)
    if not nodes:
        cluster = cluster_of(compute, by_id)
        nodes = node_sizes(cluster, by_id) if cluster is not None else None
    if not nodes:
        return Machine(None, "what states the size of its machines is not in the snapshot")
    return _largest([node.size for node in nodes], facts)


def _find_stated_size(source: JsonObject, workload: JsonObject) -> object:
    """Return what a deployment states of its machines: the size if managed online, the resources if serverless."""
    if kind_of(source) == "deployment" and (size := own_size(source)):
        is_managed = fold(get_inside(source, "properties", "endpointComputeType")) == "managed"
        return size.size if size.size is not None or not is_managed else ""
    if workload.get("target") == "serverless":
        return get_inside(source, "properties", "resources", "instanceType") or ""
    return None


def _largest(stated: Iterable[object], facts: Facts) -> Machine:
    sizes = [facts.size(size) if isinstance(size, str) else None for size in stated]
    known = [size for size in sizes if size]
    if len(known) < len(sizes):
        return Machine(None, "the size of its machines is not stated, or not in the catalogue")
    return Machine(max(known, key=lambda size: (size.memory_gib, lowered(size.name))))


def _at(arm_id: object, by_id: Mapping[str, JsonObject]) -> JsonObject | None:
    return by_id.get(lowered(arm_id)) if isinstance(arm_id, str) else None
