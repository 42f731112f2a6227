"""Changes of an estate, at random: resources that come, are replaced, patched or deleted, one or several at once."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from policyeng.models import WORKSPACE_TYPE, Carried, Change, JsonObject, Operation, Snapshot, lowered
from policyeng.verify.generators.estates import copied_object
from policyeng.verify.generators.json_mutations import (
    altered,
    copied,
    draw_boolean,
    draw_odd_value,
    edit_somewhere,
    place_of,
    put_value,
    remove,
    value_in,
)

#: How many resources are changed at once.
_AT_ONCE = (1, 1, 1, 1, 2, 3, 6)
#: What the tags of a resource become, now and then: environments and classifications that policies distinguish.
_TAGS = ("production", "dev", "regulated", "confidential", "hbi", "")


def changes_of_estate(
    random: Random, snapshot: Snapshot, others: Sequence[JsonObject] = (), pointers: Sequence[str] = ()
) -> list[Change]:
    """Some changes of a snapshot; ids now and then in other letters.

    Args:
        random: chance.
        snapshot: what is changed; resources without an id or a type are left alone.
        others: resources that may come, such as those of another estate.
        pointers: fields that are changed more often than others, such as those that policies inspect.
    """
    existing = [resource for resource in snapshot.resources if _is_named(resource)]
    made = []
    for _ in range(random.choice(_AT_ONCE)):
        if not existing or draw_boolean(random, 0.05):
            made.append(_unfounded(random))
            continue
        resource = random.choice(existing)
        if draw_boolean(random, 0.2):
            # What others lie in, or look to, is changed more often than its number makes likely.
            resource = random.choice([one for one in existing if lowered(one["type"]) == WORKSPACE_TYPE] or existing)
        made.append(_change(random, resource, existing, others, pointers))
    return made


def _is_named(resource: JsonObject) -> bool:
    return all(isinstance(resource.get(name), str) and resource[name] for name in ("id", "type"))


def _unfounded(random: Random) -> Change:
    """A change of what is not there."""
    identity = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/nowhere"
    if draw_boolean(random, 0.5):
        return Change(operation=Operation.DELETE, id=identity)
    return Change(operation=Operation.PATCH, id=identity, patch={"tags": {"a": "b"}})


def _change(
    random: Random,
    resource: JsonObject,
    existing: Sequence[JsonObject],
    others: Sequence[JsonObject],
    pointers: Sequence[str],
) -> Change:
    identity = _spelled(random, resource["id"])
    kind = random.randrange(8)
    if kind == 0:
        return Change(operation=Operation.DELETE, id=identity)
    if kind == 1:
        return _replacing(random, copied_object(random.choice([*others, *existing])))
    if kind == 2:
        copy = copied_object(resource)
        copy["id"] = f"{copy['id']}-{random.randrange(3)}"
        return _replacing(random, copy)
    edited = _edited(random, resource, existing, pointers)
    if kind <= 4:
        patch = {
            key: value for key, value in edited.items() if value != resource.get(key) and key not in ("id", "type")
        }
        patch |= {key: None for key in resource if key not in edited and key not in ("id", "type")}
        return Change(operation=Operation.PATCH, id=identity, patch=patch)
    if draw_boolean(random, 0.15):
        edited["id"] = _spelled(random, edited["id"])
    if draw_boolean(random, 0.1):
        edited["type"] = random.choice(existing)["type"]
    return _replacing(random, edited)


def _edited(
    random: Random, resource: JsonObject, existing: Sequence[JsonObject], pointers: Sequence[str]
) -> JsonObject:
    """A resource with a few values changed: anywhere, where policies look, in its tags, or to what else there is."""
    edited = copied_object(resource)
    for _ in range(random.choice((1, 1, 2, 3))):
        way = random.randrange(4)
        if way == 0:
            edit_somewhere(random, edited)
        elif way == 1 and pointers:
            place = place_of(random, edited, random.choice(pointers))
            if place and place[0] not in ("id", "type"):
                _changed_at(random, edited, place)
        elif way == 2:
            tags = dict(edited["tags"]) if isinstance(edited.get("tags"), dict) else {}
            key = random.choice([*tags, "environment", "data-classification"])
            edited["tags"] = tags | {key: random.choice(_TAGS)}
        else:
            _moved(random, edited, [one["id"] for one in existing])
    return edited


def _changed_at(random: Random, edited: JsonObject, place: tuple[str | int, ...]) -> None:
    try:
        value = value_in(edited, place)
    except (KeyError, IndexError, TypeError):
        put_value(edited, place, draw_odd_value(random))
        return
    if draw_boolean(random, 0.3):
        remove(edited, place)
    else:
        put_value(edited, place, altered(random, copied(value)))


def _moved(random: Random, document: JsonObject, ids: Sequence[str]) -> None:
    """Let a reference to another resource lead to another one, or to none."""
    found = list(_references(document, ()))
    if found:
        put_value(
            document, random.choice(found), random.choice((*random.sample(ids, min(3, len(ids))), f"{ids[0]}-gone"))
        )


def _references(value: object, above: tuple[str | int, ...]) -> list[tuple[str | int, ...]]:
    if isinstance(value, dict):
        return [
            place
            for key, member in value.items()
            if key != "id" or above
            for place in _references(member, (*above, key))
        ]
    if isinstance(value, list):
        return [place for at, member in enumerate(value) for place in _references(member, (*above, at))]
    return [above] if isinstance(value, str) and "/providers/" in value else []


def _replacing(random: Random, resource: JsonObject) -> Change:
    """A create or a replace, of a resource of which now and then not all can be read."""
    unreadable: dict[str, str] = {}
    carried = None
    if draw_boolean(random, 0.1):
        unreadable = {random.choice(("/properties", "/tags", "/location", "")): "it is not said"}
    elif draw_boolean(random, 0.05):
        carried = Carried(pointers=("/location", "/properties/computeType"), reason="the format says no more")
    return Change(
        operation=random.choice((Operation.CREATE, Operation.REPLACE)),
        id=_spelled(random, resource["id"]),
        resource=resource,
        unreadable=unreadable,
        carried=carried,
    )


def _spelled(random: Random, identity: str) -> str:
    """An id in other letters, now and then."""
    if not draw_boolean(random, 0.15):
        return identity
    return random.choice((identity.upper(), identity.lower(), f"{identity.removesuffix('/')}/"))
