"""Quotas of vCPUs: what computes take of them at full scale, by VM family and region.

Azure Machine Learning takes the nodes of clusters, instances and managed online deployments from quotas of its own,
one per VM family and region; low-priority nodes of all families share another one. AKS and attached machines draw on
the quotas of the subscription's virtual machines and are not counted. Source: learn.microsoft.com, "Manage and
increase quotas and limits for resources with Azure Machine Learning".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from policyeng.facts.catalogue import Facts
from policyeng.facts.computes import (
    kind_of,
    max_instances,
    max_nodes,
    region_of,
    size_of,
)
from policyeng.facts.words import fold, get_inside, squeeze
from policyeng.models import JsonObject

#: The name that Azure gives to the quota of all low-priority nodes of a region.
LOW_PRIORITY_FAMILY = "lowPriorityCores"


#: What a quota is for: a VM family and a region, both for comparing.
QuotaKey = tuple[str, str]


class Demand(NamedTuple):
    """What a compute takes of a quota at full scale; None for what is undecided."""

    family: str | None
    region: str | None
    vcpus: int | None

    @property
    def quota(self) -> QuotaKey | None:
        """Which quota it takes from; None when that is undecided."""
        return quota_key(self.family, self.region) if self.family and self.region else None

    def may_take_from(self, quota: QuotaKey) -> bool:
        """Return whether it takes from a quota, for all that is known."""
        family, region = quota
        return (self.family is None or squeeze(self.family) == family) and self.region in (None, region)


class FullScale(NamedTuple):
    """The sum of demands: vCPUs per quota as far as they are known, and the demands that are not wholly known."""

    vcpus: Mapping[QuotaKey, int]
    undecided: tuple[Demand, ...]


@lru_cache(maxsize=4096)
def quota_key(family: str, region: str) -> QuotaKey:
    """Return a VM family and a region for comparing: Azure spells the names of some families with spaces."""
    return squeeze(family) or "", squeeze(region) or ""


def demand_of(resource: JsonObject, workspace: JsonObject | None, facts: Facts) -> Demand:
    """Return what a cluster, an instance or a managed deployment takes at full scale.

    Its workspace, None when the snapshot lacks it, gives the region where nothing else does.
    """
    kind = kind_of(resource)
    size = size_of(resource, kind, facts)
    nodes, family = _nodes(resource, kind), _family(resource, kind, size.family if size else None)
    vcpus = nodes * size.vcpus if size is not None and nodes is not None else None
    return Demand(family, region_of(resource, workspace), 0 if nodes == 0 else vcpus)


def full_scale(demands: Iterable[Demand]) -> FullScale:
    """Add demands up; those of nothing are left out."""
    vcpus: dict[QuotaKey, int] = {}
    undecided: list[Demand] = []
    for demand in demands:
        quota = demand.quota
        if quota is None or demand.vcpus is None:
            undecided += [] if demand.vcpus == 0 else [demand]
        elif demand.vcpus:
            vcpus[quota] = vcpus.get(quota, 0) + demand.vcpus
    return FullScale(vcpus, tuple(undecided))


def _family(resource: JsonObject, kind: str | None, family: str | None) -> str | None:
    """Return the family whose quota counts; None too for a priority that Azure does not have."""
    if kind != "amlcompute":
        return family
    priority = get_inside(resource, "properties", "properties", "vmPriority")
    if fold(priority) == "lowpriority":
        return LOW_PRIORITY_FAMILY
    return family if priority is None or fold(priority) == "dedicated" else None


def _nodes(resource: JsonObject, kind: str | None) -> int | None:
    """Return how many nodes there are at full scale; a stopped instance keeps its quota, so that it can start again."""
    if kind == "computeinstance":
        return 1
    if kind == "amlcompute":
        return max_nodes(resource)
    return max_instances(resource)
