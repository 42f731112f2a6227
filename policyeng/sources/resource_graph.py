"""Results of Azure Resource Graph: rows of resources, as the REST API, `az graph query` and the portal return them.

Source: https://learn.microsoft.com/rest/api/azureresourcegraph/resourcegraph/resources/resources.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from policyeng.errors import InputError
from policyeng.facts.arm_casing import ENVELOPE, top_level_name
from policyeng.facts.ids import types_of
from policyeng.models import JsonObject, Problem, lowered
from policyeng.parsing.json_pointer import escaped
from policyeng.parsing.json_text import DEFAULT_MAX_BYTES, kind_of, parse_json
from policyeng.sources.arm_resource import read_entry, with_top_level_names
from policyeng.sources.arm_rest import example_body
from policyeng.sources.parsed import (
    ALONE,
    ParsedDocument,
    Placed,
    Surroundings,
    keys_seen,
    reading_of,
    refuse,
)

SUMMARY = "rows of Azure Resource Graph, from `az graph query` or the REST API"

_COUNTS = frozenset({"$skipToken", "count", "facets", "resultTruncated", "skip_token", "totalRecords", "total_records"})
_EXAMPLE = frozenset({"$schema", "description", "operationid", "parameters", "responses", "title"})
SHAPES: tuple[frozenset[str], ...] = (
    frozenset({"data", "error"} | set(map(lowered, _COUNTS))),
    _EXAMPLE,
    frozenset({"nextlink", "value"}),
    frozenset({"beforesnapshot", "aftersnapshot", "changeid", "changetype", "propertychanges", "resourceid"}),
    frozenset({"changes", "$skiptoken", "count", "totalrecords"}),
    frozenset({"$skiptoken", "count", "snapshots"}),
    frozenset({"query", "status"}),
)
_PROJECT = "end the query with `| project id, name, type, location, tags, identity, sku, kind, properties`"
#: The columns that a query without a projection returns for every row. The value of a missing one is not known.
_COLUMNS = ("identity", "kind", "location", "properties", "sku", "tags")
_TRUNCATED = "the query found more rows than the file contains; get the next page with `az graph query --skip-token`"
_CHANGES = "changes to resources over time, not their current state"


class _QueryRow(NamedTuple):
    """A row with its JSON Pointer, and the pointers of its columns if they are not its members."""

    value: object
    pointer: str
    fields: dict[str, str]


def detect(document: object) -> bool:
    """Check whether the document is a response of Azure Resource Graph, even one without a resource."""
    body, _ = _find_body(document)
    if isinstance(body, list):
        return any(_is_row(entry) for entry in body) or _describe_other_response(body) != ""
    return isinstance(body, dict) and (_is_response(body) or _describe_other_response(body) != "")


def read(document: object, around: Surroundings = ALONE) -> ParsedDocument:  # noqa: ARG001  # the document is complete
    """Read the rows that are resources; columns that the query omitted are unreadable."""
    body, base = _find_body(document)
    nothing = _describe_other_response(body)
    if nothing:
        return ParsedDocument(nothing=nothing)
    table = body if isinstance(body, list) else body.get("data") if isinstance(body, dict) else None
    if not isinstance(table, list | dict):
        message = f"not rows of Azure Resource Graph: {kind_of(table)} where a list or a table should be"
        return ParsedDocument(problems=(refuse(base, message, "give the output of `az graph query -o json`"),))
    rows = list(_iterate_rows(table, base if isinstance(body, list) else f"{base}/data"))
    if not rows:
        return ParsedDocument(nothing="a query without results", truncated=_why_truncated(body, 0))
    return reading_of((_read_row(row) for row in rows), _why_truncated(body, len(rows)))


def _find_body(document: object) -> tuple[object, str]:
    """Return the response, which can be inside an example of the REST API, and its JSON Pointer."""
    example = example_body(document) if isinstance(document, dict) else None
    return (document, "") if example is None else (example[1], f"/responses/{escaped(example[0])}/body")


def _is_response(body: JsonObject) -> bool:
    return isinstance(body.get("data"), list | dict) and not _COUNTS.isdisjoint(body)


def _is_row(value: object) -> bool:
    """Check whether a value is a row of a query without a projection: it has columns that ARM resources do not have."""
    return (
        isinstance(value, dict)
        and {"id", "resourceGroup", "subscriptionId", "type"} <= value.keys()
        and isinstance(value["id"], str)
        and bool(types_of(value["id"]))
    )


def _describe_other_response(body: object) -> str:
    """Describe a response of Azure Resource Graph without resources; return an empty string for any other document."""
    if isinstance(body, list):
        return _CHANGES if body and all(isinstance(entry, dict) and "changeId" in entry for entry in body) else ""
    if not isinstance(body, dict):
        return ""
    changes, operations = body.get("changes"), body.get("value")
    if {"beforeSnapshot", "changeId"} <= body.keys() or (
        isinstance(changes, list) and _describe_other_response(changes)
    ):
        return _CHANGES
    if isinstance(body.get("snapshots"), dict | list) and "count" in body:
        return "the history of resources, not their current state"
    if isinstance(operations, list) and operations and all(map(_is_operation, operations)):
        return "the operations of Azure Resource Graph"
    status = body.get("status")
    if body.keys() == {"query", "status"} and isinstance(body["query"], str) and isinstance(status, dict):
        return "a query that Azure Resource Graph generated"
    return ""


def _is_operation(value: object) -> bool:
    name = value.get("name") if isinstance(value, dict) and "display" in value else None
    return isinstance(name, str) and lowered(name).startswith("microsoft.resourcegraph/")


def _iterate_rows(table: list[object] | JsonObject, pointer: str) -> Iterator[_QueryRow]:
    if isinstance(table, list):
        yield from (_QueryRow(row, f"{pointer}/{index}", {}) for index, row in enumerate(table))
        return
    columns, rows = table.get("columns"), table.get("rows")
    names = (
        [column.get("name") if isinstance(column, dict) else None for column in columns]
        if isinstance(columns, list)
        else []
    )
    for index, cells in enumerate(rows if isinstance(rows, list) else []):
        place = f"{pointer}/rows/{index}"
        if not isinstance(cells, list) or len(cells) != len(names) or not all(isinstance(name, str) for name in names):
            yield _QueryRow(cells, place, {})
            continue
        fields = {f"/{escaped(name)}": f"{place}/{column}" for column, name in enumerate(names)}
        yield _QueryRow({str(name): cell for name, cell in zip(names, cells, strict=True)}, place, fields)


def _read_row(row: _QueryRow) -> Placed | Problem:
    if not isinstance(row.value, dict):
        message = f"not a row of a query: {kind_of(row.value)} where an object, or as many cells as columns, should be"
        return refuse(row.pointer, message, "give the output of `az graph query -o json`")
    columns = with_top_level_names(row.value)
    if not isinstance(columns.get("id"), str) or not columns["id"]:
        seen = keys_seen(row.value) or "no column"
        return refuse(row.pointer, f"a row without `id`, so its resource is not known: {seen}", _PROJECT)
    # The service writes a missing value as an empty string.
    resource = {
        key: unfolded
        for key, value in columns.items()
        if top_level_name(key) in ENVELOPE and (unfolded := _parse_cell(key, value)) not in (None, "")
    }
    read = read_entry(resource, row.pointer)
    if isinstance(read, Problem):
        return read
    missing = {
        f"/{key}": f"the query left out the column `{key}`; {_PROJECT}" for key in _COLUMNS if key not in columns
    }
    fields = {
        f"/{escaped(name)}": row.fields.get(f"/{escaped(key)}", f"{row.pointer}/{escaped(key)}")
        for key, name in zip(row.value, columns, strict=True)
        if name in resource and (row.fields or name != key)
    }
    return read._replace(unreadable={**read.unreadable, **missing}, fields=fields)


def _parse_cell(key: str, value: object) -> object:
    """Return the value of a column; objects are JSON text in a table that was exported as CSV."""
    if key not in _COLUMNS or not isinstance(value, str) or not value.lstrip().startswith("{"):
        return value
    try:
        return parse_json(value.encode(errors="surrogatepass"), key, max_bytes=DEFAULT_MAX_BYTES)
    except InputError:
        return value


def _why_truncated(body: object, rows: int) -> str:
    """Return why the rows are not all results of the query, or an empty string."""
    if not isinstance(body, dict):
        return ""
    total = body.get("totalRecords", body.get("total_records"))
    more = isinstance(total, int) and not isinstance(total, bool) and total > rows
    cut = lowered(str(body.get("resultTruncated"))) == "true"
    return _TRUNCATED if more or cut or body.get("skip_token") or body.get("$skipToken") else ""
