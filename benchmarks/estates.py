"""Estates of any size, the same for the same size: subscriptions with a workspace, its computes and what is around."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from policyeng.bundle.cases import Baselines
from policyeng.facts.coverage import FURTHER, LISTED
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
_CHANGED = 0.1
#: Resources that are useless without another one before them.
_DEPENDENT = {"advisor_recommendation", "batch_deployment", "budget", "online_deployment", "service_aci", "service_aks"}
_DEPENDENT |= {"job_automl", "job_command", "job_pipeline", "job_sweep"}


def document(size: int) -> bytes:
    """Return a native snapshot of exactly `size` resources, as JSON."""
    return _document(Baselines.read(ROOT / "samples" / "baselines"), size, 0)


def covered(size: int) -> bytes:
    """Return `document` with a statement that every list of every type was read."""
    listed = [f"{kind} at /" for kind in (*LISTED, *FURTHER)]
    return orjson.dumps(orjson.loads(document(size)) | {"covers": listed})


def realistic(size: int) -> bytes:
    """Return `document` with tags, dates and sizes that differ in every resource."""
    chance = random.Random(SEED)
    snapshot = orjson.loads(document(size))
    for resource in snapshot["resources"]:
        owner, center = f"user{chance.randint(0, 400)}@example.com", str(chance.randint(1000, 9999))
        created = {"createdOn": f"2026-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}T00:00:00Z"}
        resource["tags"] = {**(resource.get("tags") or {}), "owner": owner, "costCenter": center}
        if isinstance(properties := resource.get("properties"), dict):
            properties |= created | {"description": f"made for {owner} by {chance.getrandbits(32):08x}"}
            if isinstance(inner := properties.get("properties"), dict) and "vmSize" in inner:
                inner["vmSize"] = chance.choice(_SIZES[:-1])
    return orjson.dumps(snapshot)


def harsh(size: int) -> bytes:
    """Return `document` with every tenth scalar below `properties` changed."""
    chance = random.Random(SEED)
    snapshot = orjson.loads(document(size))
    for resource in snapshot["resources"]:
        if "properties" in resource:
            resource["properties"] = _changed(resource["properties"], chance)
    return orjson.dumps(snapshot)


def _changed(value: Any, chance: random.Random) -> Any:
    if isinstance(value, dict):
        return {key: _changed(member, chance) for key, member in value.items()}
    if isinstance(value, list):
        return [_changed(member, chance) for member in value]
    if value is None or chance.random() >= _CHANGED:
        return value
    if isinstance(value, bool):
        return not value
    return f"{value}-{chance.getrandbits(16):04x}" if isinstance(value, str) else value + chance.randint(1, 50)


#: The estates by what the tables call them.
KINDS: Mapping[str, Callable[[int], bytes]] = {
    "copies of the samples": document,
    "the same, with `covers`": covered,
    "free tags, dates and sizes": realistic,
    "a tenth of all values changed": harsh,
}


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
