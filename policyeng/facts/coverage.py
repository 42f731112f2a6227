"""Which resources of a scope an input has all of: entries `TYPE at ID`, at and below which none is left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from policyeng.facts.ids import folded_id, scopes_of
from policyeng.models import JsonObject, lowered

_WORKSPACES = "Microsoft.MachineLearningServices/workspaces"
#: The types that policies look up; a snapshot that does not state what it covers has all of these.
LISTED = (
    *(f"{_WORKSPACES}{part}" for part in ("", "/computes", "/jobs", "/services")),
    *(f"{_WORKSPACES}/{kind}Endpoints{part}" for kind in ("online", "batch") for part in ("", "/deployments")),
    "Microsoft.Compute/virtualMachines",
    "Microsoft.ContainerService/managedClusters",
    "Microsoft.ContainerInstance/containerGroups",
    "Microsoft.Network/virtualNetworks",
    "Microsoft.Network/virtualNetworks/subnets",
    "Microsoft.Authorization/roleDefinitions",
    "Microsoft.Authorization/roleAssignments",
    "Microsoft.Consumption/budgets",
    "Microsoft.CostManagement/budgets",
    "Microsoft.Capacity/reservationOrders/reservations",
    "Microsoft.Advisor/recommendations",
)
#: They by their names in lower case.
SPELLED = {lowered(kind): kind for kind in LISTED}
#: What a snapshot covers that does not state it.
EVERYTHING = tuple(f"{kind} at /" for kind in LISTED)


def covered_by(resources: Iterable[JsonObject], *, is_list: bool) -> Iterator[str]:
    """Yield what resources show to be covered: their types, in their subscriptions.

    Args:
        resources: with string `id` and `type`.
        is_list: they answer one request, which may list what lies in one other resource.
    """
    for resource in resources:
        arm_id = resource["id"]
        scope = next(iter(scopes_of(arm_id)), "/")
        if is_list and lowered(resource["type"]).count("/") > 1:
            scope = folded_id(arm_id).rpartition("/")[0].rpartition("/")[0]
        yield f"{lowered(resource['type'])} at {scope}"
