"""Names of members in a snapshot, which ARM reads without case and policies look for as ARM spells them."""

from __future__ import annotations

from collections.abc import Sequence

from policyeng.facts.arm_casing import REMOVE_ONE, Spellings, as_arm_reads, respelled_pointer, twice_said
from policyeng.models import JsonObject, Origin, Problem, Snapshot, lowered


def with_known_names(snapshot: Snapshot, spellings: Spellings) -> tuple[Snapshot, list[Problem]]:
    """Return a snapshot with the names of members as ARM spells them, and an error for each that is there twice.

    A resource with such a member stays as it is, and the member is unreadable: which of the two ARM takes is unknown.

    Args:
        snapshot: of any format, or made by a program.
        spellings: names that policies look for, as `Bundle.spellings` has them.
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
            problems.append(_twice(identity, spelled.twice, origin, snapshot))
            # Policies read it by the name that ARM has for it, which may be neither of the two.
            pointers = (*spelled.twice, respelled_pointer(spelled.twice[0]))
            reasons = dict.fromkeys(pointers, twice_said(spelled.twice))
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


def _twice(identity: str, pointers: Sequence[str], origin: Origin | None, snapshot: Snapshot) -> Problem:
    """The error, with both places where the file is known."""
    message = twice_said(pointers)
    if origin is not None and origin.file in snapshot.texts:
        lines = snapshot.texts[origin.file].places([origin.pointer_to(pointer) for pointer in pointers])
        places = [f"{origin.file}:{line}:{column}" for line, column in lines]
        message = f"{message} ({places[0]} and {places[1]})"
    return Problem(level="error", message=f"{message}; {REMOVE_ONE}", place=identity)
