"""Tables that convert an object of another format to an ARM resource, with one row for each field.

A row has the JSON Pointer of the source field, the JSON Pointer of the ARM field and a function that converts the
value. The format cannot express an ARM field that is in no row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping
from typing import NamedTuple

from policyeng.models import Carried, JsonObject, lowered
from policyeng.parsing.json_pointer import escaped, keys_of, value_at
from policyeng.sources.parsed import format_value

_COMPUTE = "workspaces/computes"
_CLUSTER, _INSTANCE, _AKS, _MACHINE = "amlcompute", "computeinstance", "aks", "virtualmachine"
_NODES = frozenset({_CLUSTER, _INSTANCE})
_ATTACHED = frozenset(
    {_AKS, _MACHINE, "kubernetes", "synapsespark", "databricks", "datafactory", "datalakeanalytics", "hdinsight"}
)
_COMPUTES = _NODES | _ATTACHED
_ONLINE = "workspaces/onlineendpoints/deployments"

#: By ARM pointer, the compute types and ARM types (without the provider) that have the field; all in lower case.
#: Source: the OpenAPI of Microsoft.MachineLearningServices 2025-12-01, Microsoft.ContainerService, Microsoft.Compute.
_ONLY_OF: Mapping[str, frozenset[str]] = {
    "/properties/agentPoolProfiles": frozenset({"managedclusters"}),
    "/properties/powerState": frozenset({"managedclusters"}),
    "/properties/hardwareProfile": frozenset({"virtualmachines"}),
    "/properties/endpointComputeType": frozenset({_ONLINE}),
    "/properties/instanceType": frozenset({_ONLINE}),
    "/properties/resources": frozenset({"workspaces/jobs", "workspaces/batchendpoints/deployments"}),
    # An older SDK wrote it into jobs; nothing that is deployed from a file has it.
    "/properties/compute_id": frozenset(),
    # Only jobs of API version 2021-03-01-preview have it, and no other format creates those.
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


def list_foreign_pointers(resource: JsonObject) -> tuple[str, ...]:
    """Return the ARM pointers that no resource of its `type`, or compute of its `computeType` if known, has."""
    below = lowered(resource["type"]).partition("/")[2]
    kinds = frozenset({below})
    if below == _COMPUTE:
        stated = value_at(resource, "/properties/computeType")
        kinds = frozenset({lowered(stated)}) if isinstance(stated, str) else _COMPUTES
    return tuple(pointer for pointer, having in _ONLY_OF.items() if kinds.isdisjoint(having))


Bring = Callable[[object], object]

#: An integer of 64 bits, written as text.
_INTEGER = re.compile(r"\s*-?[0-9]{1,18}\s*")


class UnfitError(ValueError):
    """A value that its field cannot have; the text states what it should be."""


class FieldMapping(NamedTuple):
    """One row: the source pointer, the ARM pointer (empty if no policy uses the field) and the conversion.

    `bring` returns the ARM value, or raises UnfitError for a value that the field cannot have.
    """

    source: str
    target: str
    bring: Bring = lambda value: value


class Mapped(NamedTuple):
    """The result of a table for an object.

    Attributes:
        resource: the ARM fields that it sets, nested.
        fields: the source pointer by ARM pointer.
        unreadable: by ARM pointer, why the value could not be converted.
        unknown: source pointers of keys that are in no row.
    """

    resource: JsonObject
    fields: Mapping[str, str]
    unreadable: Mapping[str, str]
    unknown: tuple[str, ...]


def mapped(
    table: Iterable[FieldMapping], source: JsonObject, pointer: str, unresolved: Mapping[str, str] | None = None
) -> Mapped:
    """Convert an object to ARM fields; a null counts as absent.

    Args:
        table: its rows; of two rows for the same ARM field, the later one wins if its source field exists.
        source: the object.
        pointer: its JSON Pointer in the document.
        unresolved: by JSON Pointer into the object, why a value is not known yet; it applies to everything below.
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
                    put_value(resource, row.target, row.bring(value))
            except UnfitError as error:
                unreadable[row.target] = f"`{row.source[1:]}` is {format_value(value)}; it should be {error}"
    return Mapped(resource, fields, unreadable, tuple(_find_unknown_keys(rows, source, pointer)))


def list_carried_fields(resource: JsonObject, table: Iterable[FieldMapping], reason: str, *more: str) -> Carried:
    """Return the fields that a format can express: those of a table, `more`, and fields that never apply."""
    targets = dict.fromkeys((*(row.target for row in table if row.target), *more, *list_foreign_pointers(resource)))
    return Carried(pointers=tuple(targets), reason=reason)


def list_names(table: Iterable[FieldMapping]) -> dict[str, str]:
    """Return by ARM pointer the source pointer of each field; of two names the later one."""
    return {row.target: row.source for row in table if row.target}


def put_value(resource: JsonObject, pointer: str, value: object) -> None:
    """Set a value at a JSON Pointer of plain keys; missing parents are created, and objects are merged."""
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
    """Return a copy of an object without the values at some JSON Pointers, which must not lead through lists."""
    return {
        key: without(inner, dropped, pointer) if isinstance(inner, dict) else inner
        for key, inner in resource.items()
        if (pointer := f"{above}/{escaped(key)}") not in dropped
    }


def without_nulls(value: JsonObject) -> JsonObject:
    """Return a copy of an object without members that are null, at any depth; entries of lists stay."""
    return {key: _drop_nulls(inner) for key, inner in value.items() if inner is not None}


def _drop_nulls(value: object) -> object:
    if isinstance(value, dict):
        return without_nulls(value)
    return [_drop_nulls(entry) for entry in value] if isinstance(value, list) else value


def text(value: object) -> object:
    """Convert a string that is not blank."""
    if isinstance(value, str) and value.strip():
        return value
    raise UnfitError("text")


def boolean(value: object) -> object:
    """Convert a boolean, also one that is written as a string."""
    folded = lowered(value) if isinstance(value, str) else value
    if folded in (True, False, "true", "false") and type(folded) is not int:
        return folded in (True, "true")
    raise UnfitError("true or false")


def invert(value: object) -> object:
    """Convert a boolean to its opposite."""
    return not boolean(value)


def convert_integer(value: object) -> object:
    """Convert an integer, also one that is written as a string."""
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise UnfitError("a whole number")


def duration(unit: str) -> Bring:
    """Return a conversion from an integer of `S` (seconds) or `M` (minutes) to an ISO 8601 duration."""

    def bring(value: object) -> object:
        if isinstance(value, str) and lowered(value.strip()).startswith("p"):
            return value.strip()
        return f"PT{convert_integer(value)}{unit}"

    return bring


def convert_word(words: Mapping[object, object]) -> Bring:
    """Return a conversion of enumeration words that ignores case, hyphens and underscores; other text is unchanged."""
    known = {_fold_word(word): value for word, value in words.items()}

    def bring(value: object) -> object:
        folded = _fold_word(value)
        return text(value) if isinstance(folded, (list, dict)) or folded not in known else known[folded]

    return bring


def _fold_word(word: object) -> object:
    return lowered(word).replace("_", "").replace("-", "") if isinstance(word, str) else word


def _find_unknown_keys(rows: Iterable[FieldMapping], source: JsonObject, pointer: str) -> Iterable[str]:
    first = {row.source.split("/")[1] for row in rows if row.source}
    return (f"{pointer}/{escaped(key)}" for key in source if escaped(key) not in first)
