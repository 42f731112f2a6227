"""Documents that do not say where they are deployed to, and would meet: each keeps ids of its own.

Two templates that both make a workspace `ws`, in whatever resource group each is deployed to, describe two workspaces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from policyeng.models import lowered
from policyeng.sources.reading import Loaded, Reading


def kept_apart(documents: Sequence[Loaded]) -> list[Loaded]:
    """The documents, those moved whose `movable` ids are already those of other resources.

    The same resource in two files stays one. Documents of one file that begin their ids alike are moved together.
    """
    taken: dict[str, object] = {}
    apart: list[Loaded] = []
    for file, of_file in groupby(documents, lambda document: document.file):
        together = list(of_file)
        every = [_widened(document.reading, taken) for document in together]
        moving = {reading.movable for reading in every if _contradicts(reading, taken)}
        for document in together:
            reading = _widened(document.reading, taken)
            if reading.movable in moving:
                reading = _moved(reading, file)
            if _contradicts(reading, taken):  # another document of the same file
                reading = _moved(reading, file)
            for placed in reading.resources:
                taken.setdefault(lowered(placed.resource["id"]), placed.resource)
            apart.append(document._replace(reading=reading))
    return apart


def _widened(reading: Reading, taken: Mapping[str, object]) -> Reading:
    """The reading with all of its subscription movable, which is not known either, where only that contradicts."""
    subscription = reading.movable.partition("/resourceGroups/")[0]
    wider = replace(reading, movable=subscription)
    contradicts = "{" in subscription and not _contradicts(reading, taken) and _contradicts(wider, taken)
    return wider if contradicts else reading


def _contradicts(reading: Reading, taken: Mapping[str, object]) -> bool:
    """Whether other resources have ids that a document does not state itself."""
    return bool(reading.movable) and any(
        taken.get(lowered(placed.resource["id"]), placed.resource) != placed.resource
        for placed in reading.resources
        if _below(placed.resource["id"], reading.movable)
    )


def _moved(reading: Reading, file: str) -> Reading:
    """The reading with another beginning of its movable ids, which names the file."""
    target = f"{reading.movable.rstrip('}')}@{file.replace('/', '~')}" + "}" * reading.movable.endswith("}")
    resources = tuple(
        placed._replace(
            resource={key: _replaced(value, reading.movable, target) for key, value in placed.resource.items()}
        )
        for placed in reading.resources
    )
    return replace(reading, resources=resources, movable=target)


def _replaced(value: object, old: str, new: str) -> object:
    """The value with every id below `old` moved below `new`, wherever it stands."""
    if isinstance(value, dict):
        return {key: _replaced(inner, old, new) for key, inner in value.items()}
    if isinstance(value, list):
        return [_replaced(inner, old, new) for inner in value]
    return new + value[len(old) :] if isinstance(value, str) and _below(value, old) else value


def _below(identity: str, scope: str) -> bool:
    return f"{lowered(identity)}/".startswith(f"{lowered(scope)}/")
