"""An ARM estate as the commands of the Azure CLI print it: one list of each ARM type, with the ids of ARM.

Written after real outputs: the keys of the files, those that only an output has, and what the CLI loses.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from policyeng.models import JsonObject
from tests.writers import azure_cli
from tests.writers.azure_cli import CARRIES
from tests.writers.azure_cli_values import at, opened, snake

__all__ = ["CARRIES", "expressible", "loses", "write"]

UNSUPPORTED = "*** unsupported compute type ***"


def expressible(resource: JsonObject) -> bool:
    """Whether a command prints such a resource; of some computes, without their type."""
    return resource["type"].lower() in CARRIES


def loses(resource: JsonObject) -> Sequence[str]:
    """What no command prints: of some computes next to everything."""
    return ("/identity", "/location", "/properties") if _is_unsupported(resource) else azure_cli.loses(resource)


def write(resources: list[JsonObject]) -> dict[str, bytes]:
    """The outputs by the name of the file that they are saved in."""
    by_type: dict[str, list[JsonObject]] = {}
    for resource in filter(expressible, resources):
        by_type.setdefault(resource["type"].rpartition("/")[2].lower(), []).append(entity(resource))
    return {f"{kind}.json": json.dumps(entries, indent=2).encode() for kind, entries in by_type.items()}


def entity(resource: JsonObject) -> JsonObject:
    """One resource as `show` prints it."""
    properties = resource["properties"]
    kind = resource["type"].rpartition("/")[2].lower()
    if _is_unsupported(resource):
        written: JsonObject = {key: resource.get(key) for key in ("name", "location", "tags")}
        written |= {"type": UNSUPPORTED, "resource_id": properties.get("resourceId")}
    else:
        written = azure_cli.document(resource)
    written = {key: value for key, value in written.items() if key not in ("$schema", "kind")}
    principal = {
        "principal_id": at(resource, "identity", "principalId"),
        "tenant_id": at(resource, "identity", "tenantId"),
    }
    if "identity" in written:
        written["identity"] |= {key: value for key, value in principal.items() if value is not None}
    printed = {**written, "id": resource["id"], "resourceGroup": resource["id"].split("/")[4]}
    if kind == "computes":
        printed |= _of_compute(properties)
    elif kind == "workspaces":
        printed |= {"discovery_url": properties.get("discoveryUrl"), "network_acls": None, **_hub(resource)}
        printed["mlflow_tracking_uri"] = properties.get("mlFlowTrackingUri")
    elif kind == "datastores":
        printed["credentials"] = printed.get("credentials") or {}
    return {key: value for key, value in printed.items() if value is not None}


def _is_unsupported(resource: JsonObject) -> bool:
    computes = resource["type"].lower().endswith("/computes")
    return computes and resource["properties"]["computeType"] not in azure_cli.COMPUTES


def _of_compute(properties: JsonObject) -> JsonObject:
    inner = properties.get("properties") or {}
    more: JsonObject = {"provisioning_state": properties.get("provisioningState")}
    if properties["computeType"] == "AmlCompute":
        more["ssh_public_access_enabled"] = opened(inner.get("remoteLoginPortPublicAccess")) or False
        more["network_settings"] = {"subnet": at(inner, "subnet", "id")} if at(inner, "subnet", "id") else {}
    if properties["computeType"] == "ComputeInstance":
        done = inner.get("lastOperation")
        more["state"] = inner.get("state")
        more["last_operation"] = None if done is None else {str(snake(key)): value for key, value in done.items()}
    return more


def _hub(resource: JsonObject) -> JsonObject:
    return {"associated_workspaces": []} if (resource.get("kind") or "").lower() == "hub" else {}
