"""`policyeng.facts.reservations`: what never stops, and what a reservation covers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from policyeng.facts import Facts
from policyeng.facts.ids import index_scopes, positions_near
from policyeng.facts.reservations import (
    UNTOLD,
    ReservationScope,
    count_steady_nodes,
    limits_of,
    reserves,
    sizes_reserved,
    sizes_wanted,
)

SIZES = {
    name.lower(): {"name": name, "series": series, "family": "f", "vcpus": 1, "memory_gib": 1, "gpus": 0, "fpgas": 0}
    | {"source": "s"}
    for name, series in {"A1": "A", "A2": "A", "B1": "B"}.items()
}
FACTS = Facts.from_document({"vm_sizes": SIZES})
PLACE = ReservationScope(
    "/subscriptions/s/resourceGroups/rg/providers/x/y/z", "A1", "eastus", datetime(2026, 6, 1, tzinfo=UTC)
)

GROUP = "/providers/Microsoft.Management/managementGroups/m"


def _reservation(size: object = "A1", location: object = "eastus", **properties: object) -> dict[str, Any]:
    stated = {"reservedResourceType": "VirtualMachines", "appliedScopeType": "Shared", **properties}
    return {"location": location, "sku": {"name": size}, "properties": stated}


CASES = [
    (_reservation(), True),
    (_reservation("A2"), False),
    (_reservation("A2", instanceFlexibility="On"), True),
    (_reservation("A2", instanceFlexibility="NotSupported"), False),
    (_reservation("B1", instanceFlexibility="On"), False),
    (_reservation("C1", instanceFlexibility="On"), None),
    (_reservation(7), None),
    (_reservation(location="East US"), True),
    (_reservation(location="east"), False),
    (_reservation(location=7), None),
    (_reservation(location=7, provisioningState="Expired"), False),
    (_reservation(expiryDate="2026-06-02"), True),
    (_reservation(expiryDate="2026-06-01"), False),
    (_reservation(expiryDate="2026-06-02", expiryDateTime="2026-06-01T00:00:00Z"), False),
    (_reservation(expiryDateTime="2026-06-01T00:00:00.0000010Z"), True),
    (_reservation(expiryDateTime="2026-06-01T02:00:00+02:00"), False),
    (_reservation(expiryDateTime="0001-01-01T00:00:00+23:59"), False),
    (_reservation(expiryDateTime="9999-12-31T23:59:59-23:59"), True),
    (_reservation(expiryDate="2026-13-01"), None),
    (_reservation(expiryDate=["2027-01-01"]), None),
    (_reservation(benefitStartTime="2026-06-01T00:00:00Z"), True),
    (_reservation(benefitStartTime=" "), True),
    (_reservation(benefitStartTime="soon"), None),
    (_reservation(benefitStartTime=0), None),
    (_reservation(expiryDateTime=" ", expiryDate="2026-06-01"), False),
    (_reservation(expiryDateTime="", expiryDate=" "), True),
    (_reservation(expiryDateTime="2026-07-01T00:00:00"), None),
    (_reservation(benefitStartTime="2026-06-01T00:00:01Z"), False),
    (_reservation(provisioningState="succeeded"), True),
    (_reservation(provisioningState="Pending"), False),
    (_reservation(provisioningState=""), None),
    (_reservation(reservedResourceType="SqlDatabases"), False),
    (_reservation(reservedResourceType=None), None),
    (_reservation(appliedScopeType="Single", appliedScopes=["/subscriptions/S"]), True),
    (_reservation(appliedScopeType="Single", appliedScopes=["/subscriptions/s2", 7]), False),
    (_reservation(appliedScopeType="Single", appliedScopes=["/subscriptions/s/resourceGroups/r"]), False),
    (_reservation(appliedScopeType="Single", appliedScopes="/subscriptions/s"), None),
    (_reservation(appliedScopeType="Single", appliedScopeProperties={"subscriptionId": "/subscriptions/s"}), True),
    (_reservation(appliedScopeType=None, appliedScopes=["/subscriptions/s2"]), False),
    (_reservation(appliedScopeType=None), True),
    (_reservation(appliedScopeType="ManagementGroup"), None),
    (_reservation(appliedScopeType="ManagementGroup", appliedScopeProperties={"managementGroupId": GROUP}), None),
    (_reservation(appliedScopeType=None, appliedScopeProperties={"managementGroupId": GROUP}), None),
    (_reservation(appliedScopeType=None, appliedScopes="/subscriptions/s"), None),
    (_reservation(appliedScopeType="Single", appliedScopes=[GROUP, "/subscriptions/s"]), True),
    (_reservation(appliedScopeType="Planet"), None),
    ({"properties": "text", "sku": [], "location": {}}, None),
    ({}, None),
]
RESERVATIONS = [
    *(reservation for reservation, _ in CASES),
    *(
        _reservation(size, instanceFlexibility=how)
        for size in ("A2", "B1", "C1", "D1", 7, None)
        for how in ("On", "Off")
    ),
]


@pytest.mark.parametrize(("reservation", "expected"), CASES)
def test_what_a_reservation_covers(reservation: dict[str, Any], expected: bool | None) -> None:
    """One condition that surely fails decides; else one that is unknown leaves it open."""
    assert reserves(reservation, PLACE, FACTS) is expected


@pytest.mark.parametrize("size", ["A1", "a1", "A2", "B1", "C1", "D1"])
def test_what_may_cover_a_size_is_found_by_it(size: str) -> None:
    """What neither its words for sizes nor its scopes lead to does not cover it; what does is no guess."""
    place = replace(PLACE, size=size)
    for reservation in RESERVATIONS:
        found = set(sizes_reserved(reservation, FACTS)).intersection(sizes_wanted(size, FACTS))
        is_near = positions_near(index_scopes([limits_of(reservation)]), place.arm_id) == [0]
        covers = reserves(reservation, place, FACTS)
        assert covers is False or (found and is_near), reservation
        assert not covers or not found <= set(UNTOLD), reservation


def test_a_place_without_a_region_may_be_anywhere() -> None:
    """Nothing is covered for sure."""
    assert reserves(_reservation(), ReservationScope(PLACE.arm_id, "A1", None, PLACE.as_of), FACTS) is None


@pytest.mark.parametrize("resource", [{}, {"type": 7}, {"type": "Microsoft.Compute/virtualMachines", "properties": []}])
def test_what_is_no_compute_keeps_no_nodes(resource: dict[str, Any]) -> None:
    """No shape of a document raises."""
    assert count_steady_nodes(resource, {}) == []
