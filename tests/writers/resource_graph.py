"""Write an estate as `az graph query` prints it: rows with lower-case types, and only of what the service indexes."""

from __future__ import annotations

import json
from collections.abc import Sequence

from policyeng.models import JsonObject

_UNSEEN = ("computes", "connections", "datastores", "jobs", "schedules", "services")


def expressible(resource: JsonObject) -> bool:
    """Whether Azure Resource Graph lists resources of the type."""
    kind = str(resource["type"]).lower()
    return not (kind.startswith("microsoft.machinelearningservices/") and kind.rpartition("/")[2] in _UNSEEN)


def loses(_: JsonObject) -> Sequence[str]:
    """What no row states."""
    return ("/eTag", "/etag")


def write(resources: list[JsonObject]) -> dict[str, bytes]:
    """One file with a row for each resource that is listed."""
    rows = [_row(resource) for resource in resources if expressible(resource)]
    response = {"count": len(rows), "data": rows, "skip_token": None, "total_records": len(rows)}
    return {"graph.json": json.dumps(response, indent=2).encode()}


def _row(resource: JsonObject) -> JsonObject:
    segments = str(resource["id"]).split("/")
    return {
        "extendedLocation": None,
        "id": resource["id"],
        "identity": resource.get("identity"),
        "kind": resource.get("kind", ""),
        "location": resource.get("location", ""),
        "managedBy": "",
        "name": resource.get("name") or segments[-1],
        "plan": None,
        "properties": resource.get("properties"),
        "resourceGroup": segments[4].lower() if len(segments) > 4 else "",
        "sku": resource.get("sku"),
        "subscriptionId": segments[2] if len(segments) > 2 else "",
        "tags": resource.get("tags"),
        "tenantId": "22222222-2222-2222-2222-222222222222",
        "type": str(resource["type"]).lower(),
        "zones": None,
    }
