"""Fields that the service sets when it creates a resource, so a description of a future resource cannot have them.

Source: the OpenAPI of Microsoft.MachineLearningServices 2025-12-01 (`readOnly: true`), and of the other providers.
"""

from __future__ import annotations

from collections.abc import Mapping

from policyeng.models import JsonObject, lowered
from policyeng.parsing.json_pointer import value_at

_REASON = "the service sets it when it creates the resource, and this input describes the resource before that"
_POINTERS: Mapping[str, tuple[str, ...]] = {
    "microsoft.machinelearningservices/workspaces": (
        "/properties/provisioningState",
        "/properties/privateEndpointConnections",
        "/properties/privateLinkCount",
        "/properties/workspaceId",
        "/properties/managedNetwork/status",
    ),
    "microsoft.machinelearningservices/workspaces/computes": (
        "/properties/provisioningState",
        "/properties/properties/state",
        "/properties/properties/lastOperation",
        "/properties/properties/connectivityEndpoints",
        "/properties/properties/osImageMetadata",
        "/properties/properties/errors",
        "/properties/properties/currentNodeCount",
        "/properties/properties/nodeStateCounts",
    ),
    "microsoft.containerservice/managedclusters": ("/properties/powerState", "/properties/provisioningState"),
    **dict.fromkeys(
        (
            "microsoft.cognitiveservices/accounts",
            "microsoft.containerregistry/registries",
            "microsoft.keyvault/vaults",
            "microsoft.storage/storageaccounts",
        ),
        ("/properties/privateEndpointConnections", "/properties/provisioningState"),
    ),
}
#: By a field of these, the object that it is in and that the service only adds to: without the object, it has none.
_ADDED_TO = {"/properties/managedNetwork/status": "/properties/managedNetwork"}
_COMPUTE = "microsoft.machinelearningservices/workspaces/computes"
#: The pointers that determine whether a compute is attached; for AKS, `resourceId` does too.
_ATTACHED_BY = ("", "/properties", "/properties/computeType")


def service_made(arm_type: str, reason: str = _REASON) -> dict[str, str]:
    """Return the fields that the service sets for a resource type, with the reason why each is not known."""
    pointers = _POINTERS.get(lowered(arm_type), ("/properties/provisioningState",))
    return dict.fromkeys(pointers, reason)


def drop_additions(resource: JsonObject, unreadable: Mapping[str, str]) -> Mapping[str, str]:
    """Return why parts of a resource cannot be read, without fields of the service in an object that is not stated.

    Args:
        resource: of any type.
        unreadable: by JSON Pointer into it, why a part cannot be read.
    """
    absent = {field for field, above in _ADDED_TO.items() if field in unreadable and value_at(resource, above) is None}
    return {field: reason for field, reason in unreadable.items() if field not in absent} if absent else unreadable


def attached(resource: JsonObject, unreadable: dict[str, str]) -> JsonObject:
    """Add `isAttachedCompute` to a resource that is a compute; if it is not known, add the reason to `unreadable`.

    Args:
        resource: of any type.
        unreadable: by JSON Pointer into it, why a part cannot be read.
    """
    if lowered(resource["type"]) != _COMPUTE:
        return resource
    properties = resource.get("properties")
    stated: JsonObject = properties if isinstance(properties, dict) else {}
    of_its_kind = ("/properties/resourceId",) if _is_aks(stated.get("computeType")) else ()
    reason = next((unreadable[pointer] for pointer in (*_ATTACHED_BY, *of_its_kind) if pointer in unreadable), "")
    if reason and "isAttachedCompute" not in stated:
        unreadable["/properties/isAttachedCompute"] = reason
        return resource
    return with_attachment(resource)


def with_attachment(resource: JsonObject) -> JsonObject:
    """Add the `isAttachedCompute` that the service will set for a compute; it follows from the compute's type.

    Source: the OpenAPI, "whether the compute was provisioned by user and brought from outside".
    """
    properties = resource.get("properties")
    if not isinstance(properties, dict) or "isAttachedCompute" in properties:
        return resource
    kind = properties.get("computeType")
    kind = lowered(kind) if isinstance(kind, str) else ""
    if kind in ("amlcompute", "computeinstance"):
        attached = False
    elif _is_aks(kind):
        attached = bool(properties.get("resourceId"))
    elif kind in ("kubernetes", "virtualmachine", "hdinsight", "databricks", "datalakeanalytics", "synapsespark"):
        attached = True
    else:
        return resource
    return {**resource, "properties": {**properties, "isAttachedCompute": attached}}


def _is_aks(kind: object) -> bool:
    return isinstance(kind, str) and lowered(kind) == "aks"
