"""Field tables of the Azure CLI documents, and the conversion by them.

The authority on how the CLI converts a file to ARM shape is its SDK: azure-ai-ml 1.35.2, the
marshmallow schemas below `azure/ai/ml/_schema` and `_to_rest_object` of the entities below `azure/ai/ml/entities`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from policyeng.models import JsonObject, SourceNames, dotted
from policyeng.parsing.json_pointer import escaped, value_at
from policyeng.parsing.json_text import shortened
from policyeng.sources.arm_resource import stands_for_value
from policyeng.sources.azure_cli.value_converters import tags, unfit_tags
from policyeng.sources.field_mapping import FieldMapping, list_carried_fields, list_names, mapped, put_value, without
from policyeng.sources.parsed import Placed, kind_of
from policyeng.sources.server_generated import service_made

NOT_CARRIED = "Azure CLI documents have no key for it; check the deployed resource as the REST API returns it"
NO_NAME = "the file has no `name`; add it"

#: Keys with text for people, in which nothing is a placeholder.
_PROSE = ("description", "display_name", "friendly_name")
#: Converters that do not move the parts of a value, so one unresolved part does not hide the others.
_AS_THEY_ARE = (FieldMapping._field_defaults["bring"], tags)


class Sent(NamedTuple):
    """A value that the CLI sends for an ARM field without a key in the file.

    Attributes:
        target: the ARM field.
        value: the value.
        within: the CLI sends it only if the file has a part of this ARM object.
        printed: the value also applies to a command's output.
    """

    target: str
    value: object
    within: str = ""
    printed: bool = False


class Lossy(NamedTuple):
    """A value that a command prints for more than one ARM value: key, value, ARM field, and the reason."""

    source: str
    value: object
    target: str
    reason: str


class DocumentTables(NamedTuple):
    """The tables of one kind of document.

    Attributes:
        table: the keys of a file.
        printed: the keys of a command's output only; the CLI ignores them in a file.
        sent: the values that the CLI adds.
        never: ARM fields that no such resource has, so they are known to be absent.
        always: the keys that a command's output always has; without one of them the output is incomplete.
        lossy: values of a command's output that are ambiguous.
    """

    table: tuple[FieldMapping, ...]
    printed: tuple[FieldMapping, ...] = ()
    sent: tuple[Sent, ...] = ()
    never: tuple[str, ...] = ()
    always: tuple[str, ...] = ()
    lossy: tuple[Lossy, ...] = ()

    @property
    def rows(self) -> tuple[FieldMapping, ...]:
        """Return all rows."""
        return self.table + self.printed


def convert_document(
    shape: DocumentTables, resource: JsonObject, document: JsonObject, pointer: str, reasons: Mapping[str, str]
) -> Placed:
    """Convert a document to a resource by its tables.

    Args:
        shape: the tables.
        resource: its `id` and `type`, to which the tables add.
        document: a file, or a command's output, which has an `id`.
        pointer: its JSON Pointer.
        reasons: by JSON Pointer into the document, further reasons why values are unknown.
    """
    printed = "id" in document
    rows = shape.rows if printed else shape.table
    settled, unresolved, inside = _resolve_document(rows, document)
    found = mapped(rows, settled, pointer, {**unresolved, **reasons})
    unreadable = {} if printed else service_made(resource["type"])
    unreadable.update({**found.unreadable, **inside})
    if "/name" in unreadable or not (printed or "/name" in found.fields):
        unreadable["/name"] = unreadable["/id"] = unreadable.get("/name", NO_NAME)
    whole = {**resource, **found.resource}
    for sent in shape.sent:
        within = not sent.within or any(f"{target}/".startswith(f"{sent.within}/") for target in found.fields)
        known = sent.target in found.fields or value_at(whole, sent.target) is not None
        if (sent.printed or not printed) and within and not known:
            put_value(whole, sent.target, sent.value)
    whole = without(whole, unreadable.keys() - {"/id", "/name"})
    whole.setdefault("properties", {})
    fields = {"/name": f"{pointer}/name", **found.fields}
    more = (*(sent.target for sent in shape.sent), *shape.never, *unreadable)
    stated = list_carried_fields(whole, rows, NOT_CARRIED, "/id", "/name", "/type", *more)
    names = SourceNames(address=dotted(pointer), base=pointer, fields=list_names(rows))
    return Placed(whole, pointer, unreadable, stated, fields, names=names)


def convert_output(shape: DocumentTables, document: JsonObject, given: Placed) -> Placed:
    """Return the resource of a command's output, without values that the output omits or prints ambiguously."""
    unreadable: dict[str, str] = {}
    cut = [key for key in shape.always if key not in document]
    if cut:
        reason = f"the output is incomplete: `az ml` always prints `{cut[0]}`; save all of the output"
        unreadable |= {row.target: reason for row in shape.rows if row.target and row.target not in given.fields}
        unreadable.pop("/name", None)
    for lossy in shape.lossy:
        if document.get(lossy.source) == lossy.value:
            unreadable[lossy.target] = lossy.reason
    return given._replace(resource=without(given.resource, unreadable), unreadable={**given.unreadable, **unreadable})


def explain_placeholder(key: str, text: str) -> str:
    """Return the message for a key whose value is a placeholder."""
    return f"`{key}` is the placeholder `{shortened(text)}`; replace it with a value"


def unknown_keys(shape: DocumentTables, document: JsonObject) -> Iterator[tuple[str, str, list[str]]]:
    """Yield the keys that the CLI rejects: JSON Pointer, key, and the keys that it knows there."""
    known: dict[str, dict[str, None]] = {}
    for source in ("/$schema", "/id", "/name", "/resourceGroup", *(row.source for row in shape.rows)):
        parts = source.split("/")
        for length in range(1, len(parts)):
            known.setdefault("/".join(parts[:length]), {})[parts[length]] = None
    # The inside of a value that one row converts as a unit is not checked.
    for row in shape.rows:
        known.pop(row.source, None)
    for above, keys in known.items():
        inner = value_at(document, above)
        for key in inner if isinstance(inner, dict) else ():
            if escaped(key) not in keys:
                yield f"{above}/{escaped(key)}", key, list(keys)


def _resolve_document(
    rows: Iterable[FieldMapping], document: JsonObject
) -> tuple[JsonObject, dict[str, str], dict[str, str]]:
    """Return the document without unresolved values, and the reasons by document pointer and by ARM pointer."""
    by_source = {row.source: row for row in rows if row.target}
    unresolved = dict(_misshapen(by_source, document))
    # Tags have the same pointers in ARM and in the document.
    inside = unfit_tags(rows, document)
    document = without(document, inside) if inside else document
    dropped: set[str] = set()
    checked = {key: value for key, value in document.items() if key not in _PROSE}
    for pointer, value, in_list in _unresolved_values(checked, "", in_list=False):
        reason = explain_placeholder(pointer[1:], value)
        above = _row_above(by_source, pointer)
        if above is None:
            unresolved[pointer] = reason
        elif above.bring in _AS_THEY_ARE and not in_list:
            dropped.add(pointer)
            inside[above.target + pointer.removeprefix(above.source)] = reason
        else:
            unresolved[above.source] = reason
    settled = without(document, dropped) if dropped else document
    return settled, unresolved, inside


def _row_above(rows: Mapping[str, FieldMapping], pointer: str) -> FieldMapping | None:
    """Return the row whose value strictly contains a pointer."""
    parts = pointer.split("/")
    return next((rows[above] for end in range(2, len(parts)) if (above := "/".join(parts[:end])) in rows), None)


def _misshapen(rows: Mapping[str, FieldMapping], document: JsonObject) -> Iterator[tuple[str, str]]:
    """Yield the keys for which the rows expect an object and the document has another value."""
    for source in rows:
        parts = source.split("/")
        for end in range(2, len(parts)):
            value = value_at(document, "/".join(parts[:end]))
            if value is not None and not isinstance(value, dict):
                key = "/".join(parts[1:end])
                yield f"/{key}", f"`{key}` is {kind_of(value)}; it should be an object"
                break


def _unresolved_values(value: object, pointer: str, *, in_list: bool) -> Iterator[tuple[str, str, bool]]:
    """Yield the pointer of each placeholder, the placeholder, and whether it is in a list."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _unresolved_values(inner, f"{pointer}/{escaped(key)}", in_list=in_list)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _unresolved_values(inner, f"{pointer}/{index}", in_list=True)
    elif isinstance(value, str) and stands_for_value(value):
        yield pointer, value, in_list
