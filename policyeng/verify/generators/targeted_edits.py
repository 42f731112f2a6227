"""Targeted edits: resources that a policy selects, changed where it reads, with values that can change its outcome."""

from __future__ import annotations

from random import Random

from policyeng.bundle import Policy
from policyeng.facts.ids import workspace_of
from policyeng.models import WORKSPACE_TYPE, JsonObject, lowered
from policyeng.verify.generators.estates import DOCUMENT, STATEMENTS, EstateGenerator, copied_object, fits, renamed
from policyeng.verify.generators.json_mutations import (
    Json,
    altered,
    copied,
    draw_boolean,
    draw_odd_value,
    edit_somewhere,
    place_of,
    put_value,
    remove,
)

_ABOVE = "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/rg-ml"
#: The steps to numbers next to another one.
_NEAR = (0, 0, 1, -1, 1, -1, 1, -1, 0.001, -0.001)


def subject(random: Random, estates: EstateGenerator, focus: Policy, suffix: str) -> JsonObject:
    """Return a resource that a policy selects, spelled as in its header; the caller may change it."""
    judged = random.choice(focus.header.judges)
    if judged.type in STATEMENTS or judged.type == DOCUMENT:
        return draw_resource(random, estates, random.choice(estates.types or [WORKSPACE_TYPE]))
    known = [entry for entry in estates.by_type.get(lowered(judged.type), ()) if fits(judged, entry)]
    if known and draw_boolean(random, 0.8):
        return renamed(random.choice(known), suffix)
    resource = draw_resource(random, estates, judged.type)
    for pointer, allowed in judged.where.items():
        put_value(resource, place_of(random, resource, pointer), random.choice(allowed))
    return resource


def draw_resource(random: Random, estates: EstateGenerator, kind: str) -> JsonObject:
    """Return a resource of a type: a renamed baseline, or an empty one with a suitable id."""
    if known := estates.by_type.get(lowered(kind)):
        return renamed(random.choice(known), f"-{random.randrange(6)}")
    namespace, *kinds = kind.split("/")
    names = "".join(f"/{part}/{'ws' if part == 'workspaces' else f'x{random.randrange(6)}'}" for part in kinds)
    identity = f"{_ABOVE}/providers/{namespace}{names or '/x'}"
    return {"id": identity, "name": identity.rpartition("/")[2], "type": kind, "properties": {}}


def edit(
    random: Random,
    estates: EstateGenerator,
    policy: Policy,
    resources: list[JsonObject],
    position: int,
    pointer: str = "",
) -> None:
    """Change a field that a policy reads in a resource or its workspace, or any field if it reads none.

    The resource is copied first, and replaced in the list. `pointer` is a place that the policy reads; by default, a
    random one.
    """
    words = estates.vocabulary.words[policy.id]
    pointers = words.pointers if draw_boolean(random, 0.9) or not words.narrowing else words.narrowing
    pointer = pointer or random.choice(pointers or ("/properties",))
    if pointer.startswith("workspace:"):
        position = _workspace_of(resources, position)
    holder = resources[position] = copied_object(resources[position])
    if not pointers:  # every place is equivalent
        edit_somewhere(random, holder)
        return
    place = place_of(random, holder, pointer.removeprefix("workspace:"))
    if not place or place[0] in ("id", "type"):
        return
    if draw_boolean(random, 0.15):
        remove(holder, place)
    else:
        put_value(holder, place, value(random, estates, policy, pointer))


def _workspace_of(resources: list[JsonObject], position: int) -> int:
    """Return the position of the workspace of a resource, or its own if there is none."""
    home = workspace_of(str(resources[position]["id"])) or ""
    homes = (other for other, entry in enumerate(resources) if lowered(str(entry["id"])) == home)
    return next(homes, position) if home else position


def value(random: Random, estates: EstateGenerator, policy: Policy, pointer: str) -> Json:
    """Return a value for a place: one from elsewhere, a word of the policy, one next to these, or an odd one."""
    words = estates.vocabulary.words[policy.id]
    near, standing = words.near.get(pointer, ()), words.standing.get(pointer, ())
    kind = random.randrange(10)
    if near and kind < (4 if standing else 7):
        return draw_nearby(random, random.choice(near))
    if standing and kind < 7:
        word = copied(random.choice(standing))
        return word if kind < 5 else draw_nearby(random, word)
    if not near and words.own and kind < 6:
        return draw_nearby(random, random.choice(words.own))
    if kind < 9:
        word = copied(random.choice(estates.spoken(random, policy) or [draw_odd_value(random)]))
        return word if draw_boolean(random, 0.8) else altered(random, word)
    return draw_odd_value(random)


def draw_nearby(random: Random, word: Json) -> Json:
    """Return a value or one next to it: a little more or less, the other boolean, sometimes spelled differently."""
    if isinstance(word, bool):
        return word if draw_boolean(random, 0.5) else not word
    if isinstance(word, int | float):
        return word + random.choice(_NEAR)
    return copied(word) if draw_boolean(random, 0.7) else altered(random, copied(word))
