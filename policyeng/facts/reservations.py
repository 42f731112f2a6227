"""Reservations of virtual machines: which machines run all the time, and whether a reservation covers them.

How many machines are reserved is not compared. Source: learn.microsoft.com, REST reference of
`Microsoft.Capacity/reservationOrders/reservations`, version 2022-11-01, and "How the Azure reservation discount is
applied to virtual machines".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime

from msgspec import Struct

from policyeng.facts import ids
from policyeng.facts.catalogue import Facts
from policyeng.facts.computes import NodeSize, cluster_of, kind_of, node_sizes, own_size, pools
from policyeng.facts.numbers import parse_whole_number
from policyeng.facts.times import moment
from policyeng.facts.words import fold, get_inside, squeeze
from policyeng.models import JsonObject

RESERVATION_TYPE = "microsoft.capacity/reservationorders/reservations"
#: What `appliedScopeProperties` may name, the narrowest first.
_SCOPES = ("resourceGroup", "subscription", "managementGroup")
#: The kinds of scope that name scopes.
_LIMITED = ("single", "managementgroup")
#: Words for unknown sizes, and for all sizes of a series.
UNTOLD = _ANY, _FLEXIBLE = "any", "flexible"


class Steady(Struct, frozen=True):
    """Machines of one size that run all the time; `count` is None where it cannot be read."""

    node: NodeSize
    count: int | None


class ReservationScope(Struct, frozen=True):
    """Where machines run that may be reserved: the id that the scope must contain, the size, the region, and when."""

    arm_id: str
    size: str
    region: str | None
    as_of: datetime


def count_steady_nodes(resource: JsonObject, by_id: Mapping[str, JsonObject]) -> list[Steady]:
    """Return the machines of a compute or managed cluster that never stop; none if all of them may.

    Low-priority and spot machines cannot be reserved and are left out. An AKS compute that states no size of its own is
    left to its managed cluster.
    """
    kind, own = kind_of(resource), own_size(resource)
    inner = get_inside(resource, "properties", "properties")
    found: list[Steady] = []
    if kind == "amlcompute" and own and fold(get_inside(inner, "vmPriority")) != "lowpriority":
        found = [Steady(own, _count(get_inside(inner, "scaleSettings", "minNodeCount"), absent=0))]
    elif kind == "aks" and own and (own.size is not None or cluster_of(resource, by_id) is None):
        found = [Steady(own, _count(get_inside(inner, "agentCount"), absent=1))]
    elif kind == "managedcluster" and not _is_stopped(resource.get("properties")):
        found = list(_list_steady_pools(resource))
    return [steady for steady in found if steady.count != 0]


def _list_steady_pools(cluster: JsonObject) -> Iterator[Steady]:
    """Yield the pools that run; of one that scales itself, the nodes that it keeps."""
    nodes, stated = node_sizes(cluster, {}) or [], pools(cluster)
    if not stated:
        yield from (Steady(node, None) for node in nodes)
        return
    for node, pool in zip(nodes, stated, strict=True):
        if fold(get_inside(pool, "scaleSetPriority")) != "spot" and not _is_stopped(pool):
            scales_itself = get_inside(pool, "enableAutoScaling") is True and get_inside(pool, "minCount") is not None
            yield Steady(node, _count(get_inside(pool, "minCount" if scales_itself else "count"), absent=1))


def _count(stated: object, *, absent: int) -> int | None:
    return absent if stated is None else parse_whole_number(stated)


def _is_stopped(properties: object) -> bool:
    return fold(get_inside(properties, "powerState", "code")) == "stopped"


def reserves(reservation: JsonObject, place: ReservationScope, facts: Facts) -> bool | None:
    """Check whether a reservation is active for the machines of a place; None if the snapshot does not show it.

    It is active from `benefitStartTime` until `expiryDateTime` or midnight (UTC) of `expiryDate`, while its state is
    Succeeded; dates that are not set do not limit it. Its size covers the whole series if `instanceFlexibility` is On.
    Its scope is shared, or the listed subscriptions and resource groups; the subscriptions of a management group are
    unknown.
    """
    results = [part(reservation, place, facts) for part in _PARTS]
    return next((answer for answer in (False, None) if answer in results), True)


def _is_of_machines(reservation: JsonObject, _place: ReservationScope, _facts: Facts) -> bool | None:
    kind = fold(get_inside(reservation, "properties", "reservedResourceType"))
    return kind == "virtualmachines" if kind else None


def _is_in_force(reservation: JsonObject, place: ReservationScope, _facts: Facts) -> bool | None:
    stated = get_inside(reservation, "properties")
    state, start = get_inside(stated, "provisioningState"), _unless_blank(get_inside(stated, "benefitStartTime"))
    end = _unless_blank(get_inside(stated, "expiryDateTime")) or _unless_blank(get_inside(stated, "expiryDate"))
    begins, ends = moment(start), moment(end)
    if state is not None and fold(state) != "succeeded":
        return False if fold(state) else None
    if (begins is None and start is not None) or (ends is None and end is not None):
        return None
    return not (begins and begins > place.as_of) and not (ends and ends <= place.as_of)


def _unless_blank(stated: object) -> object:
    return None if isinstance(stated, str) and fold(stated) is None else stated


def _is_in_region(reservation: JsonObject, place: ReservationScope, _facts: Facts) -> bool | None:
    region = squeeze(reservation.get("location"))
    return region == place.region if region and place.region else None


def _is_of_size(reservation: JsonObject, place: ReservationScope, facts: Facts) -> bool | None:
    name = fold(get_inside(reservation, "sku", "name"))
    if name is None:
        return None
    if name == fold(place.size):
        return True
    if fold(get_inside(reservation, "properties", "instanceFlexibility")) != "on":
        return False
    reserved, own = facts.size(name), facts.size(place.size)
    return reserved.series == own.series if reserved and own else None


def sizes_reserved(reservation: JsonObject, facts: Facts) -> Iterator[str]:
    """Yield what the sizes of machines that a reservation may cover are looked up by; see `sizes_wanted`."""
    name = fold(get_inside(reservation, "sku", "name"))
    if name is None:
        yield _ANY
        return
    yield f"size {name}"
    if fold(get_inside(reservation, "properties", "instanceFlexibility")) == "on":
        reserved = facts.size(name)
        yield f"series {reserved.series}" if reserved else _ANY
        yield _FLEXIBLE


def sizes_wanted(size: str, facts: Facts) -> tuple[str, ...]:
    """Return what reservations that may cover machines of a size are found by; all others surely do not.

    Of those that are found by one of `UNTOLD`, which come last, none surely does.
    """
    own = facts.size(size)
    return f"size {fold(size)}", f"series {own.series}" if own else _FLEXIBLE, _ANY


def _is_in_scope(reservation: JsonObject, place: ReservationScope, _facts: Facts) -> bool | None:
    kind, scopes = _scopes_of(reservation)
    if kind == "shared":
        return True
    if kind not in _LIMITED or not scopes:
        return None
    results = [ids.covers(scope, place.arm_id) for scope in scopes]
    return next((answer for answer in (True, None) if answer in results), False)


def _scopes_of(reservation: JsonObject) -> tuple[str, list[str]]:
    """Return what kind of scope a reservation has, and the scopes that it names."""
    stated = get_inside(reservation, "properties")
    more = [get_inside(stated, "appliedScopeProperties", f"{level}Id") for level in _SCOPES]
    named = get_inside(stated, "appliedScopes") or [scope for scope in more if scope][:1]
    kind = fold(get_inside(stated, "appliedScopeType")) or ("single" if named else "shared")
    return kind, [scope for scope in named if isinstance(scope, str)] if isinstance(named, list) else []


def limits_of(reservation: JsonObject) -> list[str]:
    """Return the scopes that surely limit a reservation, or `/` where they may not."""
    kind, scopes = _scopes_of(reservation)
    return scopes if kind in _LIMITED and scopes else ["/"]


_PARTS: tuple[Callable[[JsonObject, ReservationScope, Facts], bool | None], ...] = (
    _is_of_machines,
    _is_in_force,
    _is_in_region,
    _is_of_size,
    _is_in_scope,
)
