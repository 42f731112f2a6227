"""Estates of any size, the same for the same size: subscriptions with a workspace, its computes and what is around."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from policyeng.bundle.cases import Baselines
from policyeng.models import JsonObject

SEED = 20261121
ROOT = Path(__file__).resolve().parents[1]
#: Approvals are read through as a list by the policies; an organisation has some of them, however large it is.
APPROVALS = 20

_SIZES = (
    "Standard_DS3_v2",
    "Standard_D4s_v5",
    "Standard_NC6",
    "Standard_NC24rs_v3",
    "Standard_M128ms",
    "Standard_X1",
    None,
)
_CONTRIBUTOR = "/providers/Microsoft.Authorization/roleDefinitions/b24988ac-6180-42a0-ab88-20f7382dd24c"
#: Each edit makes a policy fail or undecided for the resource of that file in the baselines.
EDITS: tuple[tuple[str, Callable[[Any], object]], ...] = (
    ("workspace", lambda it: it["properties"].update(publicNetworkAccess="Enabled")),
    ("workspace", lambda it: it["properties"].update(managedNetwork={"isolationMode": "AllowInternetOutbound"})),
    ("workspace", lambda it: it.update(tags={"environment": "dev", "data-classification": "regulated"})),
    ("compute_cluster", lambda it: it["properties"]["properties"].update(vmPriority="LowPriority")),
    ("compute_cluster", lambda it: it["properties"]["properties"].pop("subnet", None)),
    ("compute_instance", lambda it: it["properties"]["properties"].update(vmSize="Standard_NC6")),
    ("compute_instance", lambda it: it["properties"]["properties"].pop("idleTimeBeforeShutdown", None)),
    ("kubernetes_compute", lambda it: it["properties"].update(resourceId=it["properties"]["resourceId"] + "-gone")),
    ("managed_cluster", lambda it: it["properties"].update(agentPoolProfiles=[{"name": "a", "vmSize": "Standard_X1"}])),
    ("service_aci", lambda it: it.update(tags={"environment": "production"})),
    ("role_assignment", lambda it: it["properties"].update(roleDefinitionId=_CONTRIBUTOR)),
)
_EDITED = 0.25
#: Resources that are useless without another one before them.
_DEPENDENT = {"advisor_recommendation", "batch_deployment", "budget", "online_deployment", "service_aci", "service_aks"}
_DEPENDENT |= {"job_automl", "job_command", "job_pipeline", "job_sweep"}


def document(size: int) -> bytes:
    """Return a native snapshot of exactly `size` resources, as JSON."""
    return _document(Baselines.read(ROOT / "samples" / "baselines"), size, 0)


def fleet(workspaces: int, size: int) -> Iterator[tuple[str, bytes]]:
    """Native snapshots of exactly `size` resources each, no two alike, as JSON under names of files."""
    baselines = Baselines.read(ROOT / "samples" / "baselines")
    for number in range(workspaces):
        yield f"workspace-{number:05}.json", _document(baselines, size, number * size)


def _document(baselines: Baselines, size: int, number: int) -> bytes:
    """Return a snapshot of subscriptions that are numbered from one."""
    chance = random.Random(SEED + number)
    resources: list[JsonObject] = []
    stated: dict[str, list[JsonObject]] = {"approvals": [], "workloads": []}
    while len(resources) < size:
        rename = _renaming(baselines, number)
        resources += rename(list(_subscription(baselines.resources, chance)))
        for name, entries in stated.items():
            given = [{**entry, "id": f"{entry['id']}-{number}"} for entry in baselines.stated[name]]
            entries += rename(given) if name == "workloads" or number < APPROVALS else []
        number += 1
    kept = resources[:size]
    ids = {resource["id"] for resource in kept}
    stated["workloads"] = [entry for entry in stated["workloads"] if entry.get("sourceId", entry["workspaceId"]) in ids]
    return orjson.dumps({"snapshotVersion": 1, "resources": kept, **stated})


def _renaming(baselines: Baselines, number: int) -> Callable[[list[JsonObject]], list[JsonObject]]:
    """Move resources into the subscription of a number, in every id that they contain."""
    here = baselines.resources["workspace"]["id"].split("/")[2]
    there = f"{number:08x}{here[8:]}"

    def rename(resources: list[JsonObject]) -> list[JsonObject]:
        moved: list[JsonObject] = orjson.loads(orjson.dumps(resources).replace(here.encode(), there.encode()))
        return moved

    return rename


def _subscription(baselines: Mapping[str, JsonObject], chance: random.Random) -> Iterator[JsonObject]:
    """Return the baselines, some with edits, their parents, and a few more clusters and instances."""
    inside = [stem for stem, resource in baselines.items() if resource["id"].startswith("/subscriptions/")]
    for stem in sorted(inside, key=lambda stem: (stem != "workspace", stem in _DEPENDENT, stem)):
        yield _perhaps_edited(stem, baselines[stem], chance)
        if stem in {"compute_cluster", "compute_instance"}:
            for copied in range(chance.randint(1, 4)):
                another = _perhaps_edited(stem, baselines[stem], chance)
                another["name"] = f"{another['name']}-{copied}"
                another["id"] = f"{another['id']}-{copied}"
                another["properties"]["properties"]["vmSize"] = chance.choice(_SIZES)
                yield another


def _perhaps_edited(stem: str, resource: JsonObject, chance: random.Random) -> JsonObject:
    edited = copy.deepcopy(resource)
    for of, edit in EDITS:
        if of == stem and chance.random() < _EDITED:
            edit(edited)
    return edited
