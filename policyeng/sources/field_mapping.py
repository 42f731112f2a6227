"""Tables that bring an object of another format into ARM shape: one row for each field, kept as values.

A row names the field there by JSON Pointer, the field here by JSON Pointer, and how the value is brought over. Whatever
ARM field no row leads to, the format cannot carry.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping
from typing import NamedTuple

from policyeng.models import Carried, JsonObject, lowered
from policyeng.parsing.json_pointer import escaped, keys_of, value_at
from policyeng.sources.parsed import spelled

_COMPUTE = "workspaces/computes"
_CLUSTER, _INSTANCE, _AKS, _MACHINE = "amlcompute", "computeinstance", "aks", "virtualmachine"
_NODES = frozenset({_CLUSTER, _INSTANCE})
_ATTACHED = frozenset(
    {_AKS, _MACHINE, "kubernetes", "synapsespark", "databricks", "datafactory", "datalakeanalytics", "hdinsight"}
)
_COMPUTES = _NODES | _ATTACHED
_ONLINE = "workspaces/onlineendpoints/deployments"

#: By ARM pointer, what has the field: compute types, and ARM types below their provider; all in lower case.
#: Source: the OpenAPI of Microsoft.MachineLearningServices 2025-12-01, Microsoft.ContainerService, Microsoft.Compute.
_ONLY_OF: Mapping[str, frozenset[str]] = {
    "/properties/agentPoolProfiles": frozenset({"managedclusters"}),
    "/properties/powerState": frozenset({"managedclusters"}),
    "/properties/hardwareProfile": frozenset({"virtualmachines"}),
    "/properties/endpointComputeType": frozenset({_ONLINE}),
    "/properties/instanceType": frozenset({_ONLINE}),
    "/properties/resources": frozenset({"workspaces/jobs", "workspaces/batchendpoints/deployments"}),
    # The SDK of old wrote it into jobs; nothing that is deployed from a file has it.
    "/properties/compute_id": frozenset(),
    # Only jobs of API version 2021-03-01-preview have it, which no other format makes.
    "/properties/compute/target": frozenset(),
    "/properties/computeType": _COMPUTES | {"workspaces/services"},
    "/properties/computeLocation": _COMPUTES,
    "/properties/resourceId": _ATTACHED,
    "/properties/properties/agentCount": frozenset({_AKS}),
    "/properties/properties/agentVmSize": frozenset({_AKS}),
    "/properties/properties/aksNetworkingConfiguration": frozenset({_AKS}),
    "/properties/properties/clusterPurpose": frozenset({_AKS}),
    "/properties/properties/virtualMachineSize": frozenset({_MACHINE}),
    "/properties/properties/vmSize": _NODES,
    "/properties/properties/subnet": _NODES,
    "/properties/properties/vmPriority": frozenset({_CLUSTER}),
    "/properties/properties/scaleSettings": frozenset({_CLUSTER}),
    "/properties/properties/idleTimeBeforeShutdown": frozenset({_INSTANCE}),
    "/properties/properties/schedules": frozenset({_INSTANCE}),
    "/properties/properties/lastOperation": frozenset({_INSTANCE}),
    "/properties/properties/state": frozenset({_INSTANCE}),
}


def foreign_to(resource: JsonObject) -> tuple[str, ...]:
    """The ARM pointers that no resource of its `type` has, nor a compute of its `computeType` where that is known."""
    below = lowered(resource["type"]).partition("/")[2]
    kinds = frozenset({below})
    if below == _COMPUTE:
        stated = value_at(resource, "/properties/computeType")
        kinds = frozenset({lowered(stated)}) if isinstance(stated, str) else _COMPUTES
    return tuple(pointer for pointer, having in _ONLY_OF.items() if kinds.isdisjoint(having))


Bring = Callable[[object], object]

#: A whole number of 64 bits, written as text.
_WHOLE = re.compile(r"\s*-?[0-9]{1,18}\s*")


class UnfitError(ValueError):
    """A value that its field cannot have; the text says what it should be."""


class FieldMapping(NamedTuple):
    """One row: JSON Pointer there, JSON Pointer in the ARM resource (empty: nothing of it is judged), and the bringing.

    `bring` gives the ARM value, or raises UnfitError for one that the field cannot have.
    """

    source: str
    target: str
    bring: Bring = lambda value: value


class Mapped(NamedTuple):
    """What a table makes of an object.

    Attributes:
        resource: the ARM fields that it fills, nested.
        fields: by ARM pointer, the pointer there.
        unreadable: by ARM pointer, why the value that stands there could not be brought over.
        unknown: pointers there of keys that no row knows.
    """

    resource: JsonObject
    fields: Mapping[str, str]
    unreadable: Mapping[str, str]
    unknown: tuple[str, ...]


def mapped(
    table: Iterable[FieldMapping], source: JsonObject, pointer: str, unresolved: Mapping[str, str] | None = None
) -> Mapped:
    """Bring an object into ARM shape; a null counts as absent.

    Args:
        table: its rows; of two that fill one ARM field the later goes before, where its field is there.
        source: the object.
        pointer: its JSON Pointer in the document.
        unresolved: by JSON Pointer into the object, why a value is not known yet; it counts for all below it.
    """
    rows = tuple(table)
    resource: JsonObject = {}
    fields: dict[str, str] = {}
    unreadable: dict[str, str] = {}
    for row in rows:
        why = next((reason for at, reason in (unresolved or {}).items() if f"{row.source}/".startswith(f"{at}/")), "")
        value = value_at(source, row.source)
        if row.target and (why or value is not None):
            fields[row.target] = pointer + row.source
            try:
                if why:
                    unreadable[row.target] = why
                else:
                    unreadable.pop(row.target, None)
                    put(resource, row.target, row.bring(value))
            except UnfitError as error:
                unreadable[row.target] = f"`{row.source[1:]}` is {spelled(value)}; it should be {error}"
    return Mapped(resource, fields, unreadable, tuple(_unknown(rows, source, pointer)))


def carried(resource: JsonObject, table: Iterable[FieldMapping], reason: str, *more: str) -> Carried:
    """What a table can fill of a resource, beside it the ARM pointers `more`, and what no such resource has."""
    targets = dict.fromkeys((*(row.target for row in table if row.target), *more, *foreign_to(resource)))
    return Carried(pointers=tuple(targets), reason=reason)


def put(resource: JsonObject, pointer: str, value: object) -> None:
    """Set a value at a JSON Pointer of plain keys, making the objects on the way; objects are joined."""
    *parents, last = keys_of(pointer)
    here = resource
    for part in parents:
        if not isinstance(here.get(part), dict):
            here[part] = {}
        here = here[part]
    if isinstance(value, dict) and isinstance(here.get(last), dict):
        here[last] = {**here[last], **value}
    else:
        here[last] = value


def without(resource: JsonObject, dropped: Container[str], above: str = "") -> JsonObject:
    """A copy of an object without what stands at some JSON Pointers, none of which leads through a list."""
    return {
        key: without(inner, dropped, pointer) if isinstance(inner, dict) else inner
        for key, inner in resource.items()
        if (pointer := f"{above}/{escaped(key)}") not in dropped
    }


def text(value: object) -> object:
    """A string that is not blank."""
    if isinstance(value, str) and value.strip():
        return value
    raise UnfitError("text")


def boolean(value: object) -> object:
    """A boolean, also written as a string."""
    folded = lowered(value) if isinstance(value, str) else value
    if folded in (True, False, "true", "false") and type(folded) is not int:
        return folded in (True, "true")
    raise UnfitError("true or false")


def inverted(value: object) -> object:
    """The opposite boolean."""
    return not boolean(value)


def whole(value: object) -> object:
    """A whole number, also written as a string."""
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise UnfitError("a whole number")


def duration(unit: str) -> Bring:
    """An ISO 8601 duration from a whole number of `S` (seconds) or `M` (minutes); a duration stays as it is."""

    def bring(value: object) -> object:
        if isinstance(value, str) and lowered(value.strip()).startswith("p"):
            return value.strip()
        return f"PT{whole(value)}{unit}"

    return bring


def chosen(words: Mapping[object, object]) -> Bring:
    """One of the words of an enumeration, without case, hyphens and underscores; other text stays as it is written."""
    known = {_folded(word): value for word, value in words.items()}

    def bring(value: object) -> object:
        folded = _folded(value)
        return text(value) if isinstance(folded, (list, dict)) or folded not in known else known[folded]

    return bring


def _folded(word: object) -> object:
    return lowered(word).replace("_", "").replace("-", "") if isinstance(word, str) else word


def _unknown(rows: Iterable[FieldMapping], source: JsonObject, pointer: str) -> Iterable[str]:
    first = {row.source.split("/")[1] for row in rows if row.source}
    return (f"{pointer}/{escaped(key)}" for key in source if escaped(key) not in first)
