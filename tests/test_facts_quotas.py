"""`policyeng.facts.quotas`: what computes take of which quota at full scale."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyeng.facts import Facts
from policyeng.facts.quotas import LOW_PRIORITY_FAMILY, Demand, demand_of, full_scale, quota_key
from policyeng.models import JsonObject

ML = "Microsoft.MachineLearningServices/workspaces"
ROW = {"name": "S", "series": "S", "memory_gib": 1, "gpus": 0, "fpgas": 0, "source": "s", "vcpus": 4}
FACTS = Facts.from_document({"vm_sizes": {"s": {**ROW, "family": "standard S Family"}}})


def aml(kind: str, nodes: object = None, size: object = "S", priority: object = None) -> JsonObject:
    """A cluster or an instance."""
    inner = {"vmSize": size, "vmPriority": priority, "scaleSettings": {"maxNodeCount": nodes}}
    return {"type": f"{ML}/computes", "location": "East US", "properties": {"computeType": kind, "properties": inner}}


def deployment(capacity: object, **scale: object) -> JsonObject:
    """A managed online deployment without a region."""
    body = {"instanceType": "s", "scaleSettings": scale}
    return {"type": f"{ML}/onlineEndpoints/deployments", "sku": {"capacity": capacity}, "properties": body}


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        (aml("AmlCompute", 3), ("standard S Family", "eastus", 12)),
        (aml("AmlCompute", "3", priority="dedicated"), ("standard S Family", "eastus", 12)),
        (aml("AmlCompute", 3, priority="LOWPRIORITY"), (LOW_PRIORITY_FAMILY, "eastus", 12)),
        (aml("AmlCompute", 3, priority="Spot"), (None, "eastus", 12)),
        (aml("AmlCompute", 3, priority=""), (None, "eastus", 12)),
        (aml("AmlCompute", "many"), ("standard S Family", "eastus", None)),
        (aml("AmlCompute", 3, "X"), (None, "eastus", None)),
        (aml("AmlCompute", 0, "X"), (None, "eastus", 0)),
        (aml("ComputeInstance", 3, priority="LowPriority"), ("standard S Family", "eastus", 4)),
        (aml("ComputeInstance", size=7), (None, "eastus", None)),
        (deployment(2), ("standard S Family", "westus", 8)),
        (deployment(None), ("standard S Family", "westus", 4)),
        (deployment(2, scaleType="default", maxInstances=5), ("standard S Family", "westus", 8)),
        (deployment(2, scaleType="TargetUtilization", maxInstances=5), ("standard S Family", "westus", 20)),
        (deployment(2, scaleType="targetUtilization"), ("standard S Family", "westus", 4)),
        (deployment("two"), ("standard S Family", "westus", None)),
    ],
)
def test_demand_of_a_compute(resource: JsonObject, expected: tuple[str | None, str | None, int | None]) -> None:
    """Nodes at full scale times the vCPUs of the size, from the quota of the family or of low priority."""
    demand = demand_of(resource, {"location": "West US"}, FACTS)

    assert (demand.family, demand.region, demand.vcpus) == expected


def test_what_names_no_region_takes_from_no_place() -> None:
    """Without a workspace in the snapshot the region is undecided."""
    demand = demand_of(deployment(2), None, FACTS)

    assert demand.quota is None
    assert demand.may_take_from(("standardsfamily", "eastus"))
    assert not demand.may_take_from(("standarddfamily", "eastus"))


def test_names_of_families_compare_without_case_and_spaces() -> None:
    """Azure spells some families with spaces."""
    assert quota_key("Standard NCASv3_T4 Family", "East US") == quota_key("standardNCASv3_T4Family", "eastus")


DEMANDS = st.lists(
    st.builds(
        Demand,
        st.sampled_from(["A", "a ", "B", None]),
        st.sampled_from(["x", "y", None]),
        st.sampled_from([0, 1, 5, None]),
    ),
    max_size=8,
)


@given(DEMANDS, st.randoms(use_true_random=False))
def test_sums_lose_nothing(demands: list[Demand], order: random.Random) -> None:
    """Every vCPU is in one place or undecided, in any order; zeroes are nowhere."""
    whole = full_scale(demands)
    shuffled = order.sample(demands, len(demands))
    known = [demand for demand in demands if demand not in whole.undecided]

    assert full_scale(shuffled).vcpus == whole.vcpus
    assert sum(whole.vcpus.values()) == sum(demand.vcpus or 0 for demand in known)
    assert all(demand.quota in whole.vcpus for demand in known if demand.vcpus)
    assert all(vcpus > 0 for vcpus in whole.vcpus.values())
    assert all((demand.quota is None or demand.vcpus is None) and demand.vcpus != 0 for demand in whole.undecided)


@given(DEMANDS, DEMANDS)
def test_sums_add_up(ours: list[Demand], theirs: list[Demand]) -> None:
    """Two workspaces together take what each takes."""
    first, second, both = full_scale(ours), full_scale(theirs), full_scale([*ours, *theirs])

    assert both.undecided == first.undecided + second.undecided
    assert both.vcpus == {
        place: first.vcpus.get(place, 0) + second.vcpus.get(place, 0) for place in {*first.vcpus, *second.vcpus}
    }
