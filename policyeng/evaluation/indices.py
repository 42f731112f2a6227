"""Indices of a snapshot, built once, so that no policy walks through all of it for one resource.

Policies see each of them as a member of `input.snapshot`. They hold ids and positions, never copies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from policyeng.facts.computes import CLUSTER_TYPE, COMPUTE_TYPE
from policyeng.facts.ids import folded_id, guid_of, scopes_of
from policyeng.facts.subnets import subnets_of
from policyeng.facts.words import folded, inside
from policyeng.models import JsonObject, lowered

ROLE_DEFINITION_TYPE = "microsoft.authorization/roledefinitions"


class Indices(NamedTuple):
    """Ways into a snapshot; all keys and ids are in lower case, and all lists in the order of what they lead to.

    Resources and approvals are in the order of their ids; metrics, principals and quotas (which have no index) in that
    of their text as JSON.

    Attributes:
        by_scope: id of a subscription, resource group or workspace to the types of the resources at or under it, and to
            their ids.
        by_host: id of any resource, without a slash at its end, to the ids of the computes whose
            `properties.resourceId` names it.
        by_subnet: id of a subnet, without a slash at its end, to the ids of the computes and managed clusters whose
            nodes sit in it.
        by_guid: last part of the id of a role definition to the ids of the role definitions that end in it.
        by_series: VM series to the positions of its approvals in `approvals`.
        by_measured: id of a resource, without a slash at its end, to the positions of its metrics in `metrics`.
        by_principal: id of a principal to its positions in `principals`.
    """

    by_scope: Mapping[str, Mapping[str, Sequence[str]]]
    by_host: Mapping[str, Sequence[str]]
    by_subnet: Mapping[str, Sequence[str]]
    by_guid: Mapping[str, Sequence[str]]
    by_series: Mapping[str, Sequence[int]]
    by_measured: Mapping[str, Sequence[int]]
    by_principal: Mapping[str, Sequence[int]]


def indices_of(by_id: Mapping[str, JsonObject], stated: Mapping[str, Sequence[JsonObject]]) -> Indices:
    """The indices of resources by lower-case id, and of the `approvals`, `metrics` and `principals` that are stated."""
    by_scope: dict[str, dict[str, list[str]]] = {}
    by_host: dict[str, list[str]] = {}
    by_subnet: dict[str, list[str]] = {}
    by_guid: dict[str, list[str]] = {}
    for key, resource in by_id.items():
        kind = lowered(resource["type"])
        for scope in scopes_of(key):
            by_scope.setdefault(scope, {}).setdefault(kind, []).append(key)
        if kind in (COMPUTE_TYPE, CLUSTER_TYPE):
            for subnet in subnets_of(resource):
                by_subnet.setdefault(subnet, []).append(key)
        if kind == COMPUTE_TYPE:
            host = inside(resource, "properties", "resourceId")
            if isinstance(host, str):
                by_host.setdefault(folded_id(host), []).append(key)
        elif kind == ROLE_DEFINITION_TYPE and (guid := guid_of(key)):
            by_guid.setdefault(guid, []).append(key)
    return Indices(
        by_scope,
        by_host,
        by_subnet,
        by_guid,
        by_series=_positions(stated["approvals"], _series_of),
        by_measured=_positions(stated["metrics"], lambda metric: folded_id(metric["resourceId"])),
        by_principal=_positions(stated["principals"], lambda principal: folded(principal["id"])),
    )


def _positions(entries: Iterable[JsonObject], key_of: Callable[[JsonObject], str | None]) -> dict[str, list[int]]:
    """Where the entries of each key stand; those without a key are left out."""
    found: dict[str, list[int]] = {}
    for position, entry in enumerate(entries):
        key = key_of(entry)
        if key is not None:
            found.setdefault(key, []).append(position)
    return found


def _series_of(approval: JsonObject) -> str | None:
    return folded(approval.get("series")) if folded(approval.get("kind")) == "vmseries" else None
