"""Conversion of an Azure CLI document to an ARM resource by a table of fields, without unresolved values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import NamedTuple

from policyeng.models import JsonObject, SourceNames, dotted, lowered
from policyeng.parsing.json_pointer import escaped
from policyeng.sources.arm_resource import is_placeholder, stands_for_value
from policyeng.sources.azure_cli.base import build_id, unplaced
from policyeng.sources.azure_cli.value_converters import prose, unfit_tags
from policyeng.sources.field_mapping import (
    FieldMapping,
    Mapped,
    list_carried_fields,
    list_names,
    mapped,
    put_value,
    without,
)
from policyeng.sources.parsed import Placed, Surroundings, format_value
from policyeng.sources.server_generated import service_made

NO_KEY = "the Azure CLI has no key for it"
NO_NAME = "the file has no `name`, so the service or the command line sets one; add it to the file"
#: How deep objects are searched for placeholders; no field that policies check is deeper.
_DEPTH = 12


class CliDefaults(NamedTuple):
    """What a file omits and the CLI or the service adds.

    Attributes:
        defaults: by ARM pointer, the value that the CLI sends if the file has none.
        unresolved: by pointer in the document, why a value is not known yet.
        unreadable: by ARM pointer, why the value is unknown.
        parents: the names of the parents below the workspace; an empty string if the file has none.
        elsewhere: ARM pointers that only other variants of the type have, so they are known to be absent.
    """

    defaults: Mapping[str, object] = {}
    unresolved: Mapping[str, str] = {}
    unreadable: Mapping[str, str] = {}
    parents: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()


def place_resource(
    document: JsonObject,
    pointer: str,
    around: Surroundings,
    arm_type: str,
    table: tuple[FieldMapping, ...],
    made: CliDefaults,
) -> Placed:
    """Return the resource of a document; without a name it gets a placeholder that is unique to the file."""
    done = convert_object(table, document, pointer, made.unresolved)
    resource = {"properties": {}, **without(done.resource, done.unreadable)}
    for target, value in made.defaults.items():
        if not any(f"{field}/".startswith(f"{target}/") for field in done.fields):
            put_value(resource, target, value)
    name = name_of(document.get("name"))
    absent = absent_name(around)
    arm_id = build_id(
        {**document, "name": name or absent}, arm_type, around, *(each or absent for each in made.parents)
    )
    unreadable = {**_service_made(arm_type, done.fields), **unplaced(arm_id), **made.unreadable, **done.unreadable}
    if not name:
        unreadable["/name"] = NO_NAME
    if is_placeholder(arm_id):
        unreadable.setdefault("/id", NO_NAME)
    return Placed(
        {"id": arm_id, **({"name": name} if name else {}), "type": arm_type, **resource},
        pointer,
        unreadable,
        # The CLI sets the location to that of the workspace.
        list_carried_fields({"type": arm_type}, table, NO_KEY, "/name", "/location", *made.defaults, *made.elsewhere),
        {"/id": f"{pointer}/name", **done.fields},
        names=SourceNames(address=dotted(pointer), base=pointer, fields=list_names(table)),
    )


def convert_object(
    table: tuple[FieldMapping, ...], source: JsonObject, pointer: str, unresolved: Mapping[str, str] | None = None
) -> Mapped:
    """Convert an object by a table, without placeholders and values where an object is expected."""
    unfit = unfit_tags(table, source)
    source = without(source, unfit) if unfit else source
    open_values = {**_find_misplaced(table, source), **unfit, **(unresolved or {})}
    free = {row.source for row in table if row.bring is prose or not row.target}
    pruned = _pruned(source, "", free, open_values)
    done = mapped(table, pruned, pointer, open_values)
    below = {
        row.target + at[len(row.source) :]: reason
        for at, reason in open_values.items()
        for row in table
        if row.target and at.startswith(f"{row.source}/")
    }
    return done._replace(unreadable={**below, **done.unreadable})


def schema_name(document: JsonObject) -> str:
    """Return the last part of `$schema` in lower case, without `.schema.json`; empty if there is none."""
    schema = document.get("$schema")
    last = lowered(schema.strip().rstrip("/").rpartition("/")[2]) if isinstance(schema, str) else ""
    return last.removesuffix(".json").removesuffix(".schema")


def list_known_keys(*tables: Iterable[FieldMapping], within: Iterable[str] = ()) -> dict[str, tuple[str, ...]]:
    """Return the keys in tables by the JSON Pointer of their parent: the top, and the objects `within`.

    The tables must have all keys that the CLI accepts in those objects.
    """
    sources = [row.source for table in tables for row in table]
    return {
        holder: tuple(
            dict.fromkeys(
                source[len(holder) + 1 :].split("/")[0] for source in sources if source.startswith(f"{holder}/")
            )
        )
        for holder in ("", *within)
    }


def name_of(value: object) -> str:
    """Return a name as text; empty if it is a placeholder or not a name."""
    if isinstance(value, bool) or not isinstance(value, (str, int)) or is_open(value):
        return ""
    return str(value).strip()


def absent_name(around: Surroundings) -> str:
    """Return the placeholder for a name that a file does not have."""
    file = around.file.replace("/", "~")
    return f"{{{PurePath(file).name or 'name'}}}"


def is_open(value: object) -> bool:
    """Check whether a value is a placeholder."""
    return isinstance(value, str) and stands_for_value(value)


def _service_made(arm_type: str, stated: Mapping[str, str]) -> dict[str, str]:
    return {target: reason for target, reason in service_made(arm_type).items() if target not in stated}


def _find_misplaced(table: Iterable[FieldMapping], source: JsonObject) -> dict[str, str]:
    """Return by pointer a message for each value where a table expects an object."""
    rows = list(table)
    own = {row.source for row in rows}
    found: dict[str, str] = {}
    for holder in dict.fromkeys(above for row in rows for above in _above(row.source) if above not in own):
        value: object = source
        for key in holder.split("/")[1:]:
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None and not isinstance(value, dict):
            found[holder] = f"`{holder[1:]}` is {format_value(value)}; it should be an object"
    return found


def _above(pointer: str) -> Iterator[str]:
    parts = pointer.split("/")
    return ("/".join(parts[:length]) for length in range(2, len(parts)))


def _pruned(source: JsonObject, base: str, free: set[str], open_values: dict[str, str]) -> JsonObject:
    """Return a copy without placeholders, and add each to `open_values`; a list with one is omitted completely."""
    kept: JsonObject = {}
    for key, value in source.items():
        at = f"{base}/{escaped(key)}"
        if at in free:
            kept[key] = value
        elif isinstance(value, dict) and at.count("/") < _DEPTH:
            kept[key] = _pruned(value, at, free, open_values)
        elif (found := next(filter(is_open, value if isinstance(value, list) else [value]), None)) is not None:
            open_values.setdefault(at, f"`{at[1:]}` is the placeholder {format_value(found)}; replace it with a value")
        else:
            kept[key] = value
    return kept
