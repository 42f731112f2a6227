"""Generate documents of resources: values of schemas, plausible values of settings, and whole documents."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any

import orjson

from policyeng.bundle import Policy
from policyeng.bundle.cases import STATED
from policyeng.bundle.header import fits
from policyeng.facts.computes import COMPUTE_TYPE
from policyeng.facts.words import get_inside
from policyeng.models import WORKSPACE_TYPE, JsonObject, lowered
from policyeng.parsing.json_pointer import keys_of
from policyeng.verify.generators.estates import DOCUMENT, EstateGenerator, copied_object, in_second_group, renamed
from policyeng.verify.generators.json_mutations import (
    ODD_TEXTS,
    Json,
    copied,
    draw_boolean,
    draw_odd_value,
    edit_somewhere,
    place_of,
    put_value,
)
from policyeng.verify.generators.near_compliant import draw_resource, edit, subject, unique, value


def fitting(random: Random, schema: JsonObject, words: Sequence[Json]) -> Json:
    """Return a value that fits a parameter's schema, from the policy's words; the default if the draw does not fit."""
    value = _draw(random, schema, words)
    return value if fits(schema, value) else copied(schema.get("default"))


def _draw(random: Random, schema: JsonObject, words: Sequence[Json]) -> Json:
    if "const" in schema:
        return copied(schema["const"])
    if schema.get("enum"):
        return copied(random.choice(schema["enum"]))
    for either in ("anyOf", "oneOf"):
        if schema.get(either):
            return _draw(random, random.choice(schema[either]), words)
    kinds = schema.get("type")
    kind = random.choice(kinds) if isinstance(kinds, list) and kinds else kinds
    if kind == "object":
        return _object(random, schema, words)
    if kind == "array":
        least = schema.get("minItems", 0)
        count = random.randint(least, max(least, schema.get("maxItems", least + 3)))
        return [_draw(random, schema.get("items", {}), words) for _ in range(count)]
    if kind == "string":
        return random.choice([word for word in words if isinstance(word, str)] or ["x"])
    return _scalar(random, kind, schema, words)


def _scalar(random: Random, kind: object, schema: JsonObject, words: Sequence[Json]) -> Json:
    if kind == "boolean":
        return draw_boolean(random, 0.5)
    if kind in ("integer", "number"):
        least = schema.get("minimum", 0)
        most = max(least, schema.get("maximum", least + 10 ** random.randrange(1, 5)))  # bounds may conflict
        return random.randint(int(least), int(most)) if kind == "integer" else random.uniform(least, most)
    if kind == "null":
        return None
    return copied(random.choice(words)) if words and draw_boolean(random, 0.5) else draw_odd_value(random)


def _object(random: Random, schema: JsonObject, words: Sequence[Json]) -> Json:
    properties = schema.get("properties", {})
    required = schema.get("required", [])
    drawn: dict[str, Json] = {
        name: _draw(random, properties.get(name, {}), words)
        for name in dict.fromkeys([*required, *properties])
        if name in required or draw_boolean(random, 0.5)
    }
    more = schema.get("additionalProperties", {})
    texts = [word for word in words if isinstance(word, str) and word]
    if more is not False and texts:
        inner = more if isinstance(more, dict) else {}
        for _ in range(random.randrange(3)):
            drawn.setdefault(random.choice(texts), _draw(random, inner, words))
    return drawn


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
    policies = estates.policies_by_type.get(kind, ())
    while policies and draw_boolean(random, 0.4):
        words = estates.vocabulary.words[random.choice(policies).id]
        pointers = [pointer for pointer in words.pointers if pointer.startswith("/") and words.standing[pointer]]
        if pointers:
            pointer = random.choice(pointers)
            value = copied(random.choice(words.standing[pointer]))
            place = place_of(random, resource, pointer)
            if place[0] not in ("id", "type") and (place != ("properties",) or isinstance(value, dict)):
                put_value(resource, place, value)


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


#: The number of baselines in a snapshot; few snapshots are large.
_SHARES = (0.1, 0.1, 0.2, 0.2, 0.3, 0.7)
#: Types that no policy selects, and texts that are not types.
_OTHER_TYPES = (
    "Microsoft.Storage/storageAccounts",
    "Microsoft.KeyVault/vaults",
    "Acme.Other/things/parts",
    "x",
    " ",
    "/",
)
_PARTS = ("properties", "tags", "kind", "sku", "location", "identity", "name", "zones")


def edited(random: Random, estates: EstateGenerator, focus: Policy) -> JsonObject:
    """Return some of the baselines and resources that one policy selects, many of them edited, some of them oddly."""
    share = random.choice(_SHARES)
    chosen = [resource for resource in estates.baselines.resources.values() if draw_boolean(random, share)]
    chosen += [] if WORKSPACE_TYPE in {lowered(str(one["type"])) for one in chosen} else _workspaces(estates)
    resources = list(chosen)
    if chosen and draw_boolean(random, 0.5):
        resources.append(renamed(random.choice(chosen), "-2"))
    for number in range(random.randrange(1, 5)):
        resources.append(subject(random, estates, focus, f"-f{number}"))
        while draw_boolean(random, 0.6):
            edit(random, estates, focus, resources, len(resources) - 1)
    if draw_boolean(random, 0.12):
        resources += in_second_group([resource for resource in resources if draw_boolean(random, 0.7)])
    _edit_many(random, estates, focus, resources)
    return _document(random, resources) | estates.stated()


def draw_arbitrary(random: Random, estates: EstateGenerator, focus: Policy) -> JsonObject:
    """Return resources of selected and other types with arbitrary content."""
    resources = _workspaces(estates)
    for _ in range(random.randrange(1, 12)):
        kind = random.choice(estates.types or [WORKSPACE_TYPE])
        resource = draw_resource(random, estates, random.choice(_OTHER_TYPES) if draw_boolean(random, 0.1) else kind)
        for key in _PARTS:
            if draw_boolean(random, 0.3):
                resource[key] = (
                    {"properties": draw_odd_value(random)}
                    if key == "properties" and draw_boolean(random, 0.7)
                    else draw_odd_value(random)
                )
        resources.append(resource)
    _edit_many(random, estates, focus, resources)
    document = _document(random, resources)
    if draw_boolean(random, 0.3):
        document["scope"] = random.choice((*ODD_TEXTS, "/subscriptions/11111111-1111-1111-1111-111111111111"))
    return document


def _workspaces(estates: EstateGenerator) -> list[JsonObject]:
    return list(estates.by_type.get(WORKSPACE_TYPE, ()))


def _document(random: Random, resources: list[JsonObject]) -> JsonObject:
    random.shuffle(resources)
    document: JsonObject = {"resources": unique(resources)}
    if draw_boolean(random, 0.1):
        document["incomplete"] = ["roles: forbidden"]
    return document


def _edit_many(random: Random, estates: EstateGenerator, focus: Policy, resources: list[JsonObject]) -> None:
    """Edit resources, from a few of them to most; those that change are copied first."""
    share = random.choice((0.1, 0.4, 0.6))
    for position in range(len(resources)):
        while draw_boolean(random, share):
            policies = estates.policies_by_type.get(lowered(str(resources[position].get("type", ""))), [])
            if policies and draw_boolean(random, 0.8):
                is_focus = draw_boolean(random, 0.4) and any(policy.id == focus.id for policy in policies)
                edit(random, estates, focus if is_focus else random.choice(policies), resources, position)
            else:
                resources[position] = copied_object(resources[position])
                edit_somewhere(random, resources[position])
    if resources and draw_boolean(random, 0.15):
        position = random.randrange(len(resources))
        resources[position] = _respell(random, resources[position])


def _respell(random: Random, resource: JsonObject) -> JsonObject:
    """Return a resource with its id or type in other letter case, which is still the same resource."""
    key = random.choice(("id", "type"))
    return {**resource, key: random.choice((str.upper, str.lower, str.title))(str(resource[key]))}


#: The longest list that is generated where a policy reads every member.
_MOST = 3


def evaluates_documents(policy: Policy) -> bool:
    """Check whether a policy evaluates documents rather than resources."""
    return any(lowered(target.type) == DOCUMENT for target in policy.header.judges)


def draw_entries(random: Random, estates: EstateGenerator, focus: Policy) -> list[JsonObject]:
    """Return entries for `documents` of a snapshot, with most of what the policy in focus and others read."""
    evaluating = [policy for policy in estates.bundle.policies if evaluates_documents(policy)]
    documents = []
    for number in range(random.randrange(1, 4)):
        content: Json = {}
        policies = [focus] if evaluates_documents(focus) else []
        if not policies or draw_boolean(random, 0.3):
            policies.append(random.choice(evaluating))
        for policy in policies:
            content = _fill_document(random, estates, policy, content)
        if isinstance(content, dict) and content and draw_boolean(random, 0.1):
            edit_somewhere(random, content, kept=())
        documents.append({"file": f"drawn-{number}.json", "content": content})
    return documents


def _fill_document(random: Random, estates: EstateGenerator, policy: Policy, content: Json) -> Json:
    """Return a document with most of what a policy reads."""
    for pointer in estates.vocabulary.words[policy.id].pointers:
        if draw_boolean(random, 0.85):
            draw = partial(value, random, estates, policy, pointer)
            content = _set_path(random, content, keys_of(pointer), draw)
    return content


def _set_path(random: Random, current: Json, keys: Sequence[str], draw: Callable[[], Json]) -> Json:
    """Return a value with a new value at the path `keys`; `*` is every member, of a short list if there is none."""
    if not keys:
        return draw()
    key, *rest = keys
    if key == "*" and not isinstance(current, dict):
        members = current if isinstance(current, list) and current else [None] * random.randrange(1, _MOST + 1)
        return [_set_path(random, member, rest, draw) for member in members]
    inner = current if isinstance(current, dict) else {}
    named = (sorted(inner) or ["x"]) if key == "*" else [key]
    return {**inner, **{name: _set_path(random, inner.get(name), rest, draw) for name in named}}
