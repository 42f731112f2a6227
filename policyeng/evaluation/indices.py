"""Indices of a snapshot, built once, so that no policy walks through all of it for one resource.

Policies see each of them as a member of `input.snapshot`. They hold ids and positions, never copies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from policyeng.facts import scopes_of
from policyeng.facts.computes import COMPUTE_TYPE
from policyeng.facts.words import folded, inside, trimmed
from policyeng.models import JsonObject, lowered

ROLE_DEFINITION_TYPE = "microsoft.authorization/roledefinitions"


class Indices(NamedTuple):
    """Ways into a snapshot; all keys and ids are in lower case, all lists in the order of the snapshot.

    Attributes:
        by_scope: id of a subscription, resource group or workspace to the types of the resources at or under it, and to
            their ids.
        by_host: id of any resource, without a slash at its end, to the ids of the computes whose
            `properties.resourceId` names it.
        by_guid: last part of the id of a role definition to the ids of the role definitions that end in it.
        by_series: VM series to the positions of its approvals in `approvals`.
    """

    by_scope: Mapping[str, Mapping[str, Sequence[str]]]
    by_host: Mapping[str, Sequence[str]]
    by_guid: Mapping[str, Sequence[str]]
    by_series: Mapping[str, Sequence[int]]


def indices_of(by_id: Mapping[str, JsonObject], approvals: Iterable[JsonObject]) -> Indices:
    """The indices of resources by lower-case id, and of approvals."""
    by_scope: dict[str, dict[str, list[str]]] = {}
    by_host: dict[str, list[str]] = {}
    by_guid: dict[str, list[str]] = {}
    for key, resource in by_id.items():
        kind = lowered(resource["type"])
        for scope in scopes_of(key):
            by_scope.setdefault(scope, {}).setdefault(kind, []).append(key)
        if kind == COMPUTE_TYPE:
            host = inside(resource, "properties", "resourceId")
            if isinstance(host, str):
                by_host.setdefault(lowered(host).removesuffix("/"), []).append(key)
        elif kind == ROLE_DEFINITION_TYPE and (guid := _last_part(key)):
            by_guid.setdefault(guid, []).append(key)
    by_series: dict[str, list[int]] = {}
    for position, approval in enumerate(approvals):
        series = folded(approval.get("series"))
        if series is not None and folded(approval.get("kind")) == "vmseries":
            by_series.setdefault(series, []).append(position)
    return Indices(by_scope, by_host, by_guid, by_series)


def _last_part(key: str) -> str:
    return next((part for part in reversed(trimmed(key).split("/")) if part), "")
