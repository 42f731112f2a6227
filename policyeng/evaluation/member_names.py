"""Normalize the names of members in a snapshot, because ARM ignores their case and policies do not."""

from __future__ import annotations

from collections.abc import Sequence

from policyeng.facts.arm_casing import REMOVE_ONE, Spellings, as_arm_reads, describe_duplicate, respell_pointer
from policyeng.models import JsonObject, Origin, Problem, Snapshot, lowered


def with_known_names(snapshot: Snapshot, spellings: Spellings) -> tuple[Snapshot, list[Problem]]:
    """Return a snapshot with member names as ARM spells them, and an error for each duplicate member.

    A resource with a duplicate member is not changed, and the member is unreadable, because it is unknown which of the
    two ARM uses.

    Args:
        snapshot: a snapshot from any source.
        spellings: the names that policies read, as in `Bundle.spellings`.
    """
    resources: list[JsonObject] = []
    origins: dict[str, Origin] = {}
    unreadable: dict[str, dict[str, str]] = {}
    problems: list[Problem] = []
    for resource in snapshot.resources:
        identity, kind = resource.get("id"), resource.get("type")
        if not (isinstance(identity, str) and isinstance(kind, str)):
            resources.append(resource)
            continue
        spelled = as_arm_reads(resource, kind, spellings)
        resources.append(spelled.part)
        if spelled.part is resource and not spelled.twice:
            continue
        key = lowered(identity)
        origin = snapshot.origins.get(key)
        if spelled.twice:
            problems.append(_describe_duplicate(identity, spelled.twice, origin, snapshot))
            # Policies read it by the ARM name, which can be different from both.
            pointers = (*spelled.twice, respell_pointer(spelled.twice[0]))
            reasons = dict.fromkeys(pointers, describe_duplicate(spelled.twice))
            unreadable[key] = {**snapshot.unreadable.get(key, {}), **reasons}
        elif origin is not None and spelled.fields:
            fields = {pointer: origin.pointer_to(there) for pointer, there in spelled.fields.items()}
            origins[key] = origin.model_copy(update={"fields": {**origin.fields, **fields}})
    if all(new is old for new, old in zip(resources, snapshot.resources, strict=True)) and not problems:
        return snapshot, []
    changes = {
        "resources": tuple(resources),
        "origins": {**snapshot.origins, **origins},
        "unreadable": {**snapshot.unreadable, **unreadable},
    }
    return snapshot.model_copy(update=changes), problems


def _describe_duplicate(identity: str, pointers: Sequence[str], origin: Origin | None, snapshot: Snapshot) -> Problem:
    """Return the error for a duplicate member, with both locations if the file is known."""
    message = describe_duplicate(pointers)
    if origin is not None and origin.file in snapshot.texts:
        lines = snapshot.texts[origin.file].places([origin.pointer_to(pointer) for pointer in pointers])
        places = [f"{origin.file}:{line}:{column}" for line, column in lines]
        message = f"{message} ({places[0]} and {places[1]})"
    return Problem(level="error", message=f"{message}; {REMOVE_ONE}", place=identity)
