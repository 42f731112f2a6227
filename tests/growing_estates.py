"""Estates that grow in three ways, with ever more of everything that policies relate."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

import orjson

from benchmarks.estates import EDITS, ROOT
from policyeng.bundle.cases import STATED, Baselines
from policyeng.models import JsonObject

_SUBSCRIPTION, _PERSON = "11111111-1111-1111-1111-111111111111", "77777777-7777-7777-7777-777777777777"
_GROUP = f"/subscriptions/{_SUBSCRIPTION}/resourceGroups/rg-ml"
_WORKSPACE = f"{_GROUP}/providers/Microsoft.MachineLearningServices/workspaces/ws-ml"
_ROLES = f"/subscriptions/{_SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions"
_OWNER = "8e3af657-a8ff-443c-a75c-2fe8c4bcb635"
_MONTH = {"from": "2026-05-01T00:00:00Z", "to": "2026-05-31T00:00:00Z"}
#: What is measured in a workspace, with the values.
_METRICS: tuple[tuple[str, JsonObject], ...] = (
    ("computes/notebook", {"name": "diskFreeBytes", "unit": "bytes", "minimum": 9_000_000_000}),
    ("computes/notebook", {"name": "lastActivity", "unit": "time"}),
    ("computes/cluster", {"name": "cpuUtilization", "unit": "percent", "p95": 80}),
    ("computes/cluster", {"name": "memoryUtilization", "unit": "percent", "p95": 80}),
    ("onlineEndpoints/endpoint", {"name": "requestsPerMinute", "unit": "count", "total": 0}),
)
#: Work that the baselines have none of.
_WORKLOADS: tuple[JsonObject, ...] = (
    {"id": "gpu-service", "purpose": "realtime-inference", "target": "aks", "accelerator": "gpu"},
    {"id": "gpu-batch", "purpose": "batch-inference", "target": "compute-cluster", "accelerator": "gpu"},
    {"id": "fpga-service", "purpose": "realtime-inference", "target": "aks", "accelerator": "fpga"},
    {"id": "local-service", "purpose": "realtime-inference", "target": "local"},
    {"id": "function", "purpose": "realtime-inference", "target": "functions", "cadence": "sporadic"},
)
_SUBNETS = ("/subnets/training", "/subnets/aks", "/subnets/aci", "/subnets/vm")
#: Ids of approvals and declared workloads, and families of quotas.
_STATED: tuple[str, ...] = (
    '"A-1',
    '"blue-model',
    '"score-dev-model',
    '"exploration',
    '"standardMSFamily',
    '"standardFSv2Family',
)
_STATED += tuple(f'"{workload["id"]}' for workload in _WORKLOADS)


def subscriptions(size: int) -> bytes:
    """Return subscriptions side by side, each with every baseline and what is stated for it."""
    return _copies(size, [f"/{_SUBSCRIPTION}"])


def workspaces(size: int) -> bytes:
    """Return workspaces of one resource group, which is also that of all budgets, quotas, approvals and so on."""
    return _copies(size, ["/ws-ml"])


def computes(size: int) -> bytes:
    """Return one workspace, with as many of everything else."""
    return _copies(size, [])


#: Makes an estate of a size.
Estate = Callable[[int], bytes]
ESTATES: tuple[Estate, ...] = (subscriptions, workspaces, computes)


def _copies(size: int, parents: Iterable[str]) -> bytes:
    """Return copies of all baselines, with other names of resources and parents; what can fail does in every other."""
    baselines = Baselines.read(ROOT / "samples" / "baselines")
    stated = _stated(baselines.stated)
    texts = [
        orjson.dumps({"resources": list(_edited(baselines.resources, edits)), **stated}).decode()
        for edits in ((), EDITS)
    ]
    names = {f"/{resource['id'].rpartition('/')[2]}" for resource in baselines.resources.values()}
    names -= {"/ws-ml", "/vnet-ml"}
    names |= {*parents, *_SUBNETS, *_STATED, _PERSON}
    named = re.compile(rf"({'|'.join(map(re.escape, sorted(names, reverse=True)))})(?=[\"/])")
    found: dict[str, list[JsonObject]] = {"resources": [], **{name: [] for name in STATED}}
    for number in range(size):
        text = texts[number % 2]
        made = orjson.loads(named.sub(rf"\g<1>-{number}", text) if number else text)
        for name, entries in made.items():
            found[name] += entries
    return orjson.dumps({"snapshotVersion": 1, **found, "resources": _united(found["resources"])})


def _edited(
    resources: Mapping[str, JsonObject], edits: Iterable[tuple[str, Callable[[JsonObject], object]]]
) -> Iterator[JsonObject]:
    """Return baselines after edits; the owner of the resource group is who approves."""
    for stem, resource in resources.items():
        edited = copy.deepcopy(resource)
        if stem == "role_assignment":
            edited["properties"].update(scope=_GROUP, roleDefinitionId=f"{_ROLES}/{_OWNER}")
        for of, edit in edits:
            if of == stem and stem != "role_assignment":
                edit(edited)
        yield edited


def _stated(stated: Mapping[str, list[JsonObject]]) -> dict[str, list[JsonObject]]:
    approvals = [{**approval, "approvedBy": _PERSON} for approval in stated["approvals"]]
    metrics = [{"resourceId": f"{_WORKSPACE}/{measured}", **_MONTH, **values} for measured, values in _METRICS]
    workloads = [{**workload, "workspaceId": _WORKSPACE} for workload in _WORKLOADS]
    return {**stated, "approvals": approvals, "metrics": metrics, "workloads": [*stated["workloads"], *workloads]}


def _united(resources: Iterable[JsonObject]) -> list[JsonObject]:
    """Return resources, in which copies with one id are one: a network with the subnets of all."""
    found: dict[str, JsonObject] = {}
    for resource in resources:
        first = found.setdefault(resource["id"], resource)
        if first is not resource and "subnets" in first["properties"]:
            first["properties"]["subnets"] += resource["properties"]["subnets"]
    return list(found.values())
