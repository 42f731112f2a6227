"""Generators of snapshots and of the documents of foreign policies, built from what their Rego reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from random import Random

from policyeng.bundle import Policy
from policyeng.models import WORKSPACE_TYPE, JsonObject, lowered
from policyeng.parsing.json_pointer import keys_of
from policyeng.verify.generators.estates import DOCUMENT, EstateGenerator, copied_object, in_second_group, renamed
from policyeng.verify.generators.json_mutations import ODD_TEXTS, Json, draw_boolean, draw_odd_value, edit_somewhere
from policyeng.verify.generators.near_compliant import unique
from policyeng.verify.generators.targeted_edits import draw_resource, edit, subject, value

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
            policies = estates.judging.get(lowered(str(resources[position].get("type", ""))), [])
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


def judges_documents(policy: Policy) -> bool:
    """Check whether a policy evaluates documents rather than resources."""
    return any(lowered(judged.type) == DOCUMENT for judged in policy.header.judges)


def draw_entries(random: Random, estates: EstateGenerator, focus: Policy) -> list[JsonObject]:
    """Return entries for `documents` of a snapshot, with most of what the policy in focus and others read."""
    judging = [policy for policy in estates.bundle.policies if judges_documents(policy)]
    documents = []
    for number in range(random.randrange(1, 4)):
        content: Json = {}
        policies = [focus] if judges_documents(focus) else []
        if not policies or draw_boolean(random, 0.3):
            policies.append(random.choice(judging))
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
