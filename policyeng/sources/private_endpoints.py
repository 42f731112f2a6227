"""The connections that private endpoints of a document create when it is deployed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from policyeng.facts.ids import fold_id
from policyeng.facts.words import fold, get_inside
from policyeng.models import JsonObject, lowered
from policyeng.parsing.json_pointer import value_at
from policyeng.sources.field_mapping import put_value
from policyeng.sources.parsed import Placed

_TYPE = "microsoft.network/privateendpoints"
_CONNECTIONS = "/properties/privateEndpointConnections"
_LINKS = "/properties/privateLinkServiceConnections"
_STATE = "privateLinkServiceConnectionState"


class _Connection(NamedTuple):
    target: str
    value: JsonObject


def add_connections(entries: Mapping[str, Placed]) -> dict[str, Placed]:
    """Return resources, those of which the connections are not known yet with those of the private endpoints.

    The service approves a connection without an approval by hand when the private endpoint is created. Others may
    exist, so the list is still not known as a whole.

    Args:
        entries: the resources by id in lower case.
    """
    by_target: dict[str, list[JsonObject]] = {}
    for connection in _list_connections(entries.values()):
        by_target.setdefault(connection.target, []).append(connection.value)
    return {
        key: _with_connections(entry, by_target[fold_id(key)]) if fold_id(key) in by_target else entry
        for key, entry in entries.items()
    }


def _list_connections(entries: Iterable[Placed]) -> Iterator[_Connection]:
    """Yield the connections that are approved, or will be."""
    for entry in entries:
        resource = entry.resource
        if lowered(resource["type"]) != _TYPE:
            continue
        connections = value_at(resource, _LINKS)
        for index, connection in enumerate(connections) if isinstance(connections, list) else ():
            target = fold(get_inside(connection, "properties", "privateLinkServiceId"))
            state = fold(get_inside(connection, "properties", _STATE, "status"))
            is_known = _is_known(entry, f"{_LINKS}/{index}/properties/{_STATE}")
            if target and is_known and state in (None, "approved"):
                properties = {"privateEndpoint": {"id": resource["id"]}, _STATE: {"status": "Approved"}}
                yield _Connection(fold_id(target), {"properties": properties})


def _is_known(entry: Placed, pointer: str) -> bool:
    """Check whether a resource surely exists, and nothing at, above or below a pointer into it is unreadable."""
    return not any(f"{pointer}/".startswith(f"{part}/") or part.startswith(f"{pointer}/") for part in entry.unreadable)


def _with_connections(entry: Placed, connections: list[JsonObject]) -> Placed:
    """Return a resource with connections if its own are not known."""
    reason = entry.unreadable.get(_CONNECTIONS)
    if reason is None and entry.carried is not None and _CONNECTIONS not in entry.carried.pointers:
        reason = entry.carried.reason
    if reason is None or value_at(entry.resource, _CONNECTIONS) is not None:
        return entry
    resource = {**entry.resource, "properties": {**(entry.resource.get("properties") or {})}}
    put_value(resource, _CONNECTIONS, connections)
    known = {pointer: why for pointer, why in entry.unreadable.items() if pointer != _CONNECTIONS}
    return entry._replace(resource=resource, unreadable={**known, f"{_CONNECTIONS}/{len(connections)}": reason})
