"""Compute that never stops and is paid by the hour."""

from collections.abc import Iterator, Mapping, Sequence

from policyeng import Denial, PolicyInput, Unknown, policy
from policyeng.facts.computes import region_of
from policyeng.facts.ids import ScopeIndex, index_scopes, positions_near
from policyeng.facts.reservations import (
    RESERVATION_TYPE,
    UNTOLD,
    ReservationScope,
    count_steady_nodes,
    limits_of,
    reserves,
    sizes_reserved,
    sizes_wanted,
)
from policyeng.facts.words import fold, list_stated, require_all
from policyeng.models import JsonObject


@policy(
    id="AML-COST-106",
    title="Steady compute is covered by a reservation",
    description='"Best for predictable workloads with consistent usage": reserved instances. What never scales to zero '
    "is predictable: a cluster with `minNodeCount` above 0, and the pools of AKS that run. It passes where a "
    "whole snapshot has no reservations at all, or one in force for its series (without `instanceFlexibility` its "
    "size), its region and its scope. Low-priority and spot nodes cannot be reserved and are not evaluated.",
    related_resources=["https://learn.microsoft.com/azure/cost-management-billing/reservations/"],
    severity="info",
    judges=[
        {
            "type": "Microsoft.MachineLearningServices/workspaces/computes",
            "where": {"/properties/computeType": ["AmlCompute", "AKS"]},
        },
        "Microsoft.ContainerService/managedClusters",
    ],
    remediation={
        "text": "Buy a reservation of the series for the region (`az reservations reservation-order purchase "
        "--reserved-resource-type VirtualMachines --sku <size> --location <region> ...`), or let the compute scale to "
        "zero (`az ml compute update --name <cluster> --min-instances 0`).",
        "patch": [
            {"op": "test", "path": "/properties/computeType", "value": "AmlCompute"},
            {"op": "replace", "path": "/properties/properties/scaleSettings/minNodeCount", "value": 0},
        ],
    },
    source='002 "Pricing Models and Cost Optimization Strategies"',
    monotone_in={"/properties/properties/scaleSettings/minNodeCount": "lower"},
    since="0.1.0",
    applies=lambda given: bool(count_steady_nodes(given.resource, given.snapshot.by_id)),
)
def reserved_compute(given: PolicyInput) -> Iterator[Denial | Unknown]:
    """Deny every size of machines that never stop and that no reservation covers."""
    if not (given.snapshot.by_type.get(RESERVATION_TYPE) or given.snapshot.incomplete):
        return
    region = region_of(given.resource, given.workspace)
    for steady in count_steady_nodes(given.resource, given.snapshot.by_id):
        size, path = str(steady.node.size), steady.node.path
        if steady.count is None or fold(steady.node.size) is None:
            missing = "how many nodes it keeps cannot be told" if steady.count is None else "the size is not stated"
            yield Unknown(msg=missing, path=path)
            continue
        place = ReservationScope(given.resource["id"], size, region, given.as_of)
        is_covered = _is_covered(place, given)
        if is_covered:
            continue
        require_all(given.snapshot.by_type, RESERVATION_TYPE)
        if is_covered is None:
            yield Unknown(msg="whether one of the reservations covers it cannot be told", path=path)
        elif given.snapshot.incomplete:
            yield Unknown(msg="the snapshot is incomplete: a reservation may exist", path=path)
        else:
            known = given.facts.size(size)
            actual = {"size": size, "region": region, "nodes": steady.count}
            expected = f"a reservation of the series {known.series}" if known else f"a reservation of {size}"
            yield Denial(msg="no reservation covers nodes that never stop", path=path, actual=actual, expected=expected)


def _is_covered(place: ReservationScope, given: PolicyInput) -> bool | None:
    """Whether a reservation covers a place, of those whose sizes and scope may."""
    indexed = given.snapshot.once(("AML-COST-106",), lambda: _indexed(given))
    answer: bool | None = False
    for size in sizes_wanted(place.size, given.facts):
        reservations, scopes = indexed.get(size, ((), {}))
        for position in positions_near(scopes, place.arm_id):
            covers = reserves(reservations[position], place, given.facts)
            if covers or (covers is None and size in UNTOLD):
                return covers
            answer = None if covers is None else answer
    return answer


def _indexed(given: PolicyInput) -> Mapping[str, tuple[Sequence[JsonObject], ScopeIndex]]:
    """Return the reservations by the sizes that they may cover, with their positions by scope."""
    found: dict[str, list[JsonObject]] = {}
    for reservation in list_stated(given.snapshot.by_type, RESERVATION_TYPE):
        for size in sizes_reserved(reservation, given.facts):
            found.setdefault(size, []).append(reservation)
    return {size: (several, index_scopes(map(limits_of, several))) for size, several in found.items()}
