"""Indices of a snapshot, with which policies avoid a scan of the complete snapshot for each resource.

Policies see each of them as a member of `input.snapshot`. They contain ids and positions, not copies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from policyeng.facts.computes import CLUSTER_TYPE, COMPUTE_TYPE
from policyeng.facts.ids import extended_by, fold_id, guid_of, scopes_of
from policyeng.facts.subnets import subnets_of
from policyeng.facts.words import fold, get_inside
from policyeng.models import JsonObject, lowered
from policyeng.named import NamedTuple

ROLE_DEFINITION_TYPE = "microsoft.authorization/roledefinitions"


class Indices(NamedTuple):
    """Indices of a snapshot; keys and ids are in lower case, and lists have the order of the indexed entries.

    Resources and approvals are in the order of their ids; metrics, principals and quotas (which have no index) in that
    of their text as JSON. The keys of the indices of resources are sorted.

    Attributes:
        by_scope: id of a subscription, resource group, workspace or private endpoint to the types of the resources at
            or below it, and to their ids; `/` to those of the resources in no subscription.
        by_extended: id of any resource or scope, without a slash at its end, to the types of the extension resources on
            it, such as diagnostic settings and locks, and to their ids.
        by_host: id of any resource, without a slash at its end, to the ids of the computes whose
            `properties.resourceId` names it.
        by_subnet: id of a subnet, without a slash at its end, to the ids of the computes and managed clusters whose
            nodes are in it.
        by_guid: last part of the id of a role definition to the ids of the role definitions that end with it.
        by_series: VM series to the positions of its approvals in `approvals`.
        by_measured: id of a resource, without a slash at its end, to the positions of its metrics in `metrics`.
        by_principal: id of a principal to its positions in `principals`.
    """

    by_scope: Mapping[str, Mapping[str, Sequence[str]]]
    by_extended: Mapping[str, Mapping[str, Sequence[str]]]
    by_host: Mapping[str, Sequence[str]]
    by_subnet: Mapping[str, Sequence[str]]
    by_guid: Mapping[str, Sequence[str]]
    by_series: Mapping[str, Sequence[int]]
    by_measured: Mapping[str, Sequence[int]]
    by_principal: Mapping[str, Sequence[int]]


#: The indices of resources: each maps one or two keys to a list of ids.
OF_RESOURCES = ("by_scope", "by_extended", "by_host", "by_subnet", "by_guid")

#: The place of an id in the indices of resources: the name of an index, and the keys in it.
Path = tuple[str, ...]
#: How often an id is in an entry before and after a change, by id.
Moves = dict[str, tuple[int, int]]


def indices_of(by_id: Mapping[str, JsonObject], stated: Mapping[str, Sequence[JsonObject]]) -> Indices:
    """Build the indices of resources by lower-case id, and of the stated `approvals`, `metrics` and `principals`."""
    found: dict[Path, list[str]] = {}
    for key, resource in by_id.items():
        for path in paths_of(key, resource):
            found.setdefault(path, []).append(key)
    by_resource: dict[str, dict[str, Any]] = {name: {} for name in OF_RESOURCES}
    for path in sorted(found):
        *above, last = path
        index: dict[str, Any] = by_resource
        for key in above:
            index = index.setdefault(key, {})
        index[last] = found[path]
    return Indices(
        **by_resource,
        by_series=_positions(stated["approvals"], _series_of),
        by_measured=_positions(stated["metrics"], lambda metric: fold_id(metric["resourceId"])),
        by_principal=_positions(stated["principals"], lambda principal: fold(principal["id"])),
    )


def paths_of(key: str, resource: JsonObject) -> Iterator[Path]:
    """Yield each place of a resource's lower-case id in the indices of resources, repeated as often as it is there."""
    kind = lowered(resource["type"])
    for scope in scopes_of(key) or ("/",):
        yield "by_scope", scope, kind
    if extended := extended_by(key):
        yield "by_extended", extended, kind
    if kind in (COMPUTE_TYPE, CLUSTER_TYPE):
        for subnet in subnets_of(resource):
            yield "by_subnet", subnet
    if kind == COMPUTE_TYPE:
        host = get_inside(resource, "properties", "resourceId")
        if isinstance(host, str):
            yield "by_host", fold_id(host)
    elif kind == ROLE_DEFINITION_TYPE and (guid := guid_of(key)):
        yield "by_guid", guid


def list_index_changes(
    changes: Iterable[tuple[str, JsonObject | None, JsonObject | None]],
) -> Iterator[tuple[Path, Moves]]:
    """Yield the entries of the indices of resources that a change affects.

    Args:
        changes: lower-case ids with the resources before and after the change, None if there is none.
    """
    found: dict[Path, Moves] = {}
    for key, *sides in changes:
        old, new = (list(paths_of(key, side)) if side is not None else [] for side in sides)
        for path in {*old, *new} if old != new else ():
            was, now = old.count(path), new.count(path)
            if was != now:
                found.setdefault(path, {})[key] = was, now
    yield from sorted(found.items())


def _positions(entries: Iterable[JsonObject], key_of: Callable[[JsonObject], str | None]) -> dict[str, list[int]]:
    """Return the positions of the entries by key; entries without a key are ignored."""
    found: dict[str, list[int]] = {}
    for position, entry in enumerate(entries):
        key = key_of(entry)
        if key is not None:
            found.setdefault(key, []).append(position)
    return found


def _series_of(approval: JsonObject) -> str | None:
    return fold(approval.get("series")) if fold(approval.get("kind")) == "vmseries" else None
