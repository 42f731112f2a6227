"""Plausible snapshots: realistic workspaces with real sizes, regions, roles, computes and targets.

They are baselines that are moved into separate workspaces and then varied: another kind of compute, a size of the
catalog, an existing role, a setting from a case. Nothing in them is odd, and not everything is compliant.
"""

from __future__ import annotations

import re
from random import Random
from typing import Any

import orjson

from policyeng.bundle import Policy
from policyeng.bundle.cases import STATED
from policyeng.facts.computes import COMPUTE_TYPE
from policyeng.facts.words import get_inside
from policyeng.models import WORKSPACE_TYPE, JsonObject, lowered
from policyeng.verify.generators.estates import EstateGenerator, copied_object
from policyeng.verify.generators.json_mutations import copied, draw_boolean, place_of, put_value
from policyeng.verify.generators.near_compliant import unique
from policyeng.verify.generators.targeted_edits import subject

REGIONS = (
    *("eastus", "eastus", "eastus2", "westus2", "westus3", "southcentralus", "northeurope", "westeurope", "uksouth"),
    *("francecentral", "germanywestcentral", "swedencentral", "switzerlandnorth", "japaneast", "australiaeast"),
)
#: The values of `computeType`.
COMPUTES = (
    *("AmlCompute", "ComputeInstance", "AKS", "Kubernetes", "VirtualMachine", "HDInsight", "DataFactory"),
    *("Databricks", "DataLakeAnalytics", "SynapseSpark", "Batch"),
)
#: The members of resources with a VM size.
_SIZES = frozenset({"vmSize", "agentVmSize", "virtualMachineSize", "instanceType"})
_ASSIGNMENT_TYPE = "microsoft.authorization/roleassignments"
_JOB_TYPE = "microsoft.machinelearningservices/workspaces/jobs"
_PRINCIPALS = tuple(f"{digit * 8}-7777-7777-7777-777777777777" for digit in "34579")
_PRINCIPAL_TYPES = ("User", "Group", "ServicePrincipal")
#: The scopes of additional workspaces: another group, another subscription, the same group.
_MOVES = (
    (re.compile(r"(?i)(/resourceGroups/[^/\"]+)"), r"\1-2"),
    (re.compile(r"(?i)(/subscriptions/)[^/\"]+"), r"\g<1>22222222-2222-2222-2222-222222222222"),
    (re.compile(r"(?i)(Microsoft\.MachineLearningServices/workspaces/[^/\"]+)"), r"\1-3"),
)
#: The maximum number of workspaces.
MOST = 1 + len(_MOVES)


def draw_plausible(random: Random, estates: EstateGenerator, focus: Policy, workspaces: int) -> JsonObject:
    """Return a document with some workspaces, up to `MOST`.

    Each has a part of the baselines, and one or two resources that the policy in focus selects.
    """
    document: JsonObject = {"resources": [], **{kind: [] for kind in STATED}}
    share = random.choice((0.1, 0.15, 0.2, 0.6)) / workspaces**0.8
    for number in range(workspaces):
        resources = [
            _move_entry(resource, number)
            for resource in estates.baselines.resources.values()
            if lowered(str(resource["type"])) == WORKSPACE_TYPE or draw_boolean(random, share)
        ]
        resources += [
            _move_entry(subject(random, estates, focus, f"-p{n}"), number) for n in range(random.choice((0, 1, 1)))
        ]
        region = random.choice(REGIONS)
        for resource in resources:
            _vary(random, estates, resource, region)
        _connect(random, resources)
        document["resources"] += resources
        for kind in STATED:
            entries = estates.baselines.stated.get(kind, ())
            document[kind] += [_move_statement(entry, number) for entry in entries if draw_boolean(random, 0.8)]
    document["resources"] = unique(document["resources"])
    return document


def _move_entry(entry: JsonObject, number: int) -> JsonObject:
    """Return a copy in or around the workspace with a number."""
    text = orjson.dumps(entry).decode()
    if number:
        pattern, there = _MOVES[number - 1]
        text = pattern.sub(there, text)
    moved: JsonObject = orjson.loads(text)
    return moved


def _move_statement(entry: JsonObject, number: int) -> JsonObject:
    """Return a statement about a moved workspace, with its own id."""
    moved = _move_entry(entry, number)
    if number and moved != entry and "id" in moved:
        moved["id"] = f"{moved['id']}-{number}"
    return moved


def _vary(random: Random, estates: EstateGenerator, resource: JsonObject, region: str) -> None:
    """Set the region of a resource, and vary its kind, size, role, and settings from cases."""
    if "location" in resource:
        resource["location"] = region
    kind = lowered(str(resource["type"]))
    if kind == COMPUTE_TYPE and draw_boolean(random, 0.35):
        resource["properties"] = _compute(random, estates, str(resource["id"]))
    if kind == _ASSIGNMENT_TYPE:
        _assign(random, estates, resource)
    holders: list[Any] = [resource.get("properties"), get_inside(resource, "properties", "properties")]
    for holder in holders:
        for name in _SIZES.intersection(holder) if isinstance(holder, dict) else ():
            if draw_boolean(random, 0.5):
                holder[name] = _size(random, estates)
    policies = estates.judging.get(kind, ())
    while policies and draw_boolean(random, 0.4):
        words = estates.vocabulary.words[random.choice(policies).id]
        pointers = [pointer for pointer in words.pointers if pointer.startswith("/") and words.standing[pointer]]
        if pointers:
            pointer = random.choice(pointers)
            if (place := place_of(random, resource, pointer))[0] not in ("id", "type"):
                put_value(resource, place, copied(random.choice(words.standing[pointer])))


def _compute(random: Random, estates: EstateGenerator, identity: str) -> JsonObject:
    """Return the properties of a compute of a random kind: those of a baseline, or those of every attached one."""
    kind = random.choice(COMPUTES)
    known = [
        one["properties"]
        for one in estates.by_type.get(COMPUTE_TYPE, ())
        if lowered(str(get_inside(one, "properties", "computeType"))) == lowered(kind)
    ]
    if known:
        return copied_object(random.choice(known))
    there = f"{identity.rpartition('/providers/')[0]}/providers/Microsoft.{kind}/accounts/{lowered(kind)}"
    return {"computeType": kind, "resourceId": there, "provisioningState": "Succeeded", "properties": {}}


def _assign(random: Random, estates: EstateGenerator, resource: JsonObject) -> None:
    """Set a random built-in role and principal in a role assignment."""
    roles = estates.bundle.facts.document.get("roles", {})
    if roles and draw_boolean(random, 0.6):
        definition = f"/providers/Microsoft.Authorization/roleDefinitions/{random.choice(list(roles))}"
        put_value(resource, ("properties", "roleDefinitionId"), definition)
    if draw_boolean(random, 0.5):
        put_value(resource, ("properties", "principalId"), random.choice(_PRINCIPALS))
        put_value(resource, ("properties", "principalType"), random.choice(_PRINCIPAL_TYPES))


def _size(random: Random, estates: EstateGenerator) -> str:
    """Return a VM size of the catalog: any, or one of those that are isolated or will retire."""
    facts = estates.bundle.facts.document
    tables = [facts.get(name) for name in ("vm_sizes", "vm_sizes", "isolated_sizes", "retired_sizes")]
    rows = random.choice([table for table in tables if table] or [{"Standard_DS3_v2": {}}])
    name = random.choice(list(rows))
    return str(rows[name].get("name", name))


def _connect(random: Random, resources: list[JsonObject]) -> None:
    """Connect jobs to a random compute of their workspace, or to none."""
    computes = [str(one["id"]) for one in resources if lowered(str(one["type"])) == COMPUTE_TYPE]
    for resource in resources:
        if lowered(str(resource["type"])) == _JOB_TYPE and draw_boolean(random, 0.6):
            put_value(resource, ("properties", "computeId"), random.choice([*computes, "serverless"]))
