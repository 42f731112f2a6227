"""Which resources of a scope an input has all of: entries `TYPE at ID`, at and below which none is left out."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from policyeng.facts.ids import fold_id, scopes_of, segments, types_of
from policyeng.later import lazy_pattern
from policyeng.models import JsonObject, LedgerEntry, Snapshot, lowered

#: The pattern of an ARM type.
TYPE = r"[A-Za-z]\w*(?:\.\w+)+(?:/\w+)+"
#: How much alike two names are, from 0 to 1, of which one is a misspelling of the other.
_CLOSE = 0.85
_ENTRY = lazy_pattern(rf"(?P<kind>{TYPE}) at (?P<scope>/\S*)")

_LINE = lazy_pattern(
    rf"(?P<kind>metrics|quotas|{TYPE}) at (?P<scope>/\S*?)(?P<asked>, as asked)?: (?P<reason>.+)",
    re.S,
)
_SCOPE = lazy_pattern(r"/(?:subscriptions/[^/]+(?:/resourceGroups/[^/]+)?)?", re.IGNORECASE)

_WORKSPACES = "Microsoft.MachineLearningServices/workspaces"
#: The types that policies look up, with the plural noun for each; a snapshot that does not state what it covers has all
#: of these.
NOUNS = {
    _WORKSPACES: "workspaces",
    f"{_WORKSPACES}/computes": "computes",
    f"{_WORKSPACES}/jobs": "jobs",
    f"{_WORKSPACES}/services": "AKS and ACI services",
    f"{_WORKSPACES}/onlineEndpoints": "online endpoints",
    f"{_WORKSPACES}/onlineEndpoints/deployments": "online deployments",
    f"{_WORKSPACES}/batchEndpoints": "batch endpoints",
    f"{_WORKSPACES}/batchEndpoints/deployments": "batch deployments",
    "Microsoft.Compute/virtualMachines": "virtual machines",
    "Microsoft.ContainerService/managedClusters": "AKS clusters",
    "Microsoft.ContainerInstance/containerGroups": "container groups",
    "Microsoft.Network/virtualNetworks": "virtual networks",
    "Microsoft.Network/virtualNetworks/subnets": "subnets",
    "Microsoft.Authorization/roleDefinitions": "role definitions",
    "Microsoft.Authorization/roleAssignments": "role assignments",
    "Microsoft.Consumption/budgets": "budgets",
    "Microsoft.CostManagement/budgets": "Cost Management budgets",
    "Microsoft.Capacity/reservationOrders/reservations": "reservations",
    "Microsoft.Advisor/recommendations": "Advisor recommendations",
}
LISTED = tuple(NOUNS)
#: The names of other lower-case types in messages, and the command of the Azure CLI that lists them, if there is one.
FURTHER = {
    "microsoft.authorization/locks": ("locks", "az lock list"),
    "microsoft.authorization/policyassignments": ("policy assignments", "az policy assignment list"),
    "microsoft.authorization/policyexemptions": ("policy exemptions", "az policy exemption list"),
    "microsoft.authorization/roleassignmentscheduleinstances": ("schedules of role assignments", ""),
    "microsoft.containerregistry/registries": ("container registries", "az acr list"),
    "microsoft.insights/autoscalesettings": ("autoscale settings", "az monitor autoscale list"),
    "microsoft.insights/components": ("Application Insights components", ""),
    "microsoft.insights/diagnosticsettings": ("diagnostic settings", "az monitor diagnostic-settings list"),
    "microsoft.insights/metricalerts": ("metric alerts", "az monitor metrics alert list"),
    "microsoft.keyvault/vaults": ("key vaults", "az keyvault list"),
    "microsoft.machinelearningservices/registries": ("registries", ""),
    "microsoft.machinelearningservices/workspaces/components/versions": ("versions of components", ""),
    "microsoft.machinelearningservices/workspaces/environments/versions": ("versions of environments", ""),
    "microsoft.machinelearningservices/workspaces/schedules": ("schedules", ""),
    "microsoft.network/privateendpoints": ("private endpoints", "az network private-endpoint list"),
    "microsoft.network/privateendpoints/privatednszonegroups": ("DNS zone groups", ""),
    "microsoft.security/pricings": ("plans of Defender for Cloud", "az security pricing list"),
    "microsoft.storage/storageaccounts": ("storage accounts", "az storage account list"),
}
#: They by their names in lower case.
SPELLED = {lowered(kind): kind for kind in LISTED}
#: What a snapshot covers that does not state it.
EVERYTHING = tuple(f"{kind} at /" for kind in LISTED)


class Covered(NamedTuple):
    """An entry `TYPE at ID`: all resources of a type at and below an id were read."""

    kind: str
    scope: str


def parse_entry(text: str) -> Covered | None:
    """Take an entry apart; None where it is no `TYPE at ID`."""
    found = _ENTRY.fullmatch(text)
    return Covered(found["kind"], found["scope"]) if found and segments(found["scope"]) is not None else None


@lru_cache(maxsize=64)
def is_whole(covers: tuple[str, ...] | None) -> bool:
    """Return whether entries cover all of the types in `LISTED`; None is for everything."""
    return covers is None or set(covers).issuperset(EVERYTHING)


def similar_type(kind: str) -> str:
    """Return the type that policies look up of which another is surely a misspelling; empty where there is none."""
    parts = lowered(kind).split("/")
    if lowered(kind) not in SPELLED:
        for known, spelled in SPELLED.items():
            others = known.split("/")
            differing = [pair for pair in zip(parts, others, strict=False) if pair[0] != pair[1]]
            if len(parts) == len(others) and len(differing) == 1 and _is_close(*differing[0]):
                return spelled
    return ""


def _is_close(one: str, other: str) -> bool:
    """Return whether two names differ in a letter or two; longer ones may be names of two types."""
    from difflib import SequenceMatcher

    return abs(len(one) - len(other)) < 2 and SequenceMatcher(None, one, other, autojunk=False).ratio() > _CLOSE


def covered_by(resources: Iterable[JsonObject], *, is_list: bool) -> Iterator[str]:
    """Yield what resources show to be covered: their types, in their subscriptions.

    Args:
        resources: with string `id` and `type`.
        is_list: whether they are the response to one request, which may list the children of another resource.
    """
    for resource in resources:
        arm_id = resource["id"]
        scope = next(iter(scopes_of(arm_id)), "/")
        if is_list and lowered(resource["type"]).count("/") > 1:
            scope = fold_id(arm_id).rpartition("/")[0].rpartition("/")[0]
        yield f"{lowered(resource['type'])} at {scope}"


def match_line(line: str) -> re.Match[str] | None:
    """Parse a line of `incomplete`; None if it is not in the form of a list that was not read."""
    match = _LINE.fullmatch(line)
    return match if match and (_SCOPE.fullmatch(match["scope"]) or types_of(match["scope"])) else None


def list_unread(lines: Iterable[str], files: Collection[str] = ()) -> Iterator[LedgerEntry]:
    """Yield the entries of the ledger for lines of `incomplete`; a line may begin with one of the files.

    What was not requested is not relevant: who collected the snapshot decided that.
    """
    for line in lines:
        file, separator, reason = line.partition(": ")
        match = match_line(line)
        is_placed = bool(separator) and file in files
        yield LedgerEntry(
            place=file if is_placed else "",
            reason=reason if is_placed else line,
            relevant=match is None or not match["asked"],
        )


def ledger_of(snapshot: Snapshot) -> tuple[LedgerEntry, ...]:
    """Return everything that was not read of the inputs of a snapshot."""
    return (*snapshot.ledger, *list_unread(snapshot.incomplete, snapshot.texts))
