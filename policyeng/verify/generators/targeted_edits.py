"""Directed edits: what a policy judges, changed where it looks, with the values that make a difference to it."""

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
    edit_somewhere,
    happens,
    odd,
    place_of,
    put,
    remove,
)

_ABOVE = "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/rg-ml"
#: Numbers just beside another one.
_NEAR = (0, 0, 1, -1, 1, -1, 1, -1, 0.001, -0.001)


def subject(random: Random, estates: EstateGenerator, focus: Policy, suffix: str) -> JsonObject:
    """A resource that a policy judges, in the spelling of its header; the caller's to change."""
    judged = random.choice(focus.header.judges)
    if judged.type in STATEMENTS or judged.type == DOCUMENT:
        return made(random, estates, random.choice(estates.types or [WORKSPACE_TYPE]))
    known = [entry for entry in estates.by_type.get(lowered(judged.type), ()) if fits(judged, entry)]
    if known and happens(random, 0.8):
        return renamed(random.choice(known), suffix)
    resource = made(random, estates, judged.type)
    for pointer, allowed in judged.where.items():
        put(resource, place_of(random, resource, pointer), random.choice(allowed))
    return resource


def made(random: Random, estates: EstateGenerator, kind: str) -> JsonObject:
    """A resource of a type: a renamed baseline, or an empty one with the id that such a resource has."""
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
    """Change something that a policy looks at when it judges a resource of an estate, or anything if it looks nowhere.

    What is changed is copied before; the list is changed. `pointer` is where the policy looks, any such place unless
    given.
    """
    words = estates.vocabulary.words[policy.id]
    pointers = words.pointers if happens(random, 0.9) or not words.narrowing else words.narrowing
    pointer = pointer or random.choice(pointers or ("/properties",))
    if pointer.startswith("workspace:"):
        position = _workspace_of(resources, position)
    holder = resources[position] = copied_object(resources[position])
    if not pointers:  # then any place is as good
        edit_somewhere(random, holder)
        return
    place = place_of(random, holder, pointer.removeprefix("workspace:"))
    if not place or place[0] in ("id", "type"):
        return
    if happens(random, 0.15):
        remove(holder, place)
    else:
        put(holder, place, value(random, estates, policy, pointer))


def _workspace_of(resources: list[JsonObject], position: int) -> int:
    """The position of the workspace of a resource, its own if there is none."""
    home = workspace_of(str(resources[position]["id"])) or ""
    homes = (other for other, entry in enumerate(resources) if lowered(str(entry["id"])) == home)
    return next(homes, position) if home else position


def value(random: Random, estates: EstateGenerator, policy: Policy, pointer: str) -> Json:
    """A value for a place: what stands there elsewhere, a word of the policy, just beside one of these, or odd."""
    words = estates.vocabulary.words[policy.id]
    near, standing = words.near.get(pointer, ()), words.standing.get(pointer, ())
    kind = random.randrange(10)
    if near and kind < (4 if standing else 7):
        return beside(random, random.choice(near))
    if standing and kind < 7:
        word = copied(random.choice(standing))
        return word if kind < 5 else beside(random, word)
    if not near and words.own and kind < 6:
        return beside(random, random.choice(words.own))
    if kind < 9:
        word = copied(random.choice(estates.spoken(random, policy) or [odd(random)]))
        return word if happens(random, 0.8) else altered(random, word)
    return odd(random)


def beside(random: Random, word: Json) -> Json:
    """A value or one just beside it: a little more or less, the other of two, now and then spelled otherwise."""
    if isinstance(word, bool):
        return word if happens(random, 0.5) else not word
    if isinstance(word, int | float):
        return word + random.choice(_NEAR)
    return copied(word) if happens(random, 0.7) else altered(random, copied(word))
