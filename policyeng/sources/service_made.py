"""What only the service says once a resource exists, so that nothing which describes it before then can carry it.

Source: the OpenAPI of Microsoft.MachineLearningServices 2025-12-01 (`readOnly: true`), and of the other providers.
"""

from __future__ import annotations

from collections.abc import Mapping

from policyeng.models import lowered

_REASON = "the service says it once the resource exists, and this describes it before"
_POINTERS: Mapping[str, tuple[str, ...]] = {
    "microsoft.machinelearningservices/workspaces": (
        "/properties/provisioningState",
        "/properties/privateEndpointConnections",
        "/properties/privateLinkCount",
        "/properties/workspaceId",
    ),
    "microsoft.machinelearningservices/workspaces/computes": (
        "/properties/provisioningState",
        "/properties/isAttachedCompute",
        "/properties/properties/state",
        "/properties/properties/lastOperation",
        "/properties/properties/connectivityEndpoints",
        "/properties/properties/errors",
        "/properties/properties/currentNodeCount",
        "/properties/properties/nodeStateCounts",
    ),
    "microsoft.containerservice/managedclusters": ("/properties/powerState", "/properties/provisioningState"),
}


def service_made(arm_type: str) -> dict[str, str]:
    """By JSON Pointer, why a resource of this type cannot say it before it exists."""
    pointers = _POINTERS.get(lowered(arm_type), ("/properties/provisioningState",))
    return dict.fromkeys(pointers, _REASON)
