"""Responses of the ARM REST API: one resource, a list of resources, or a body without a resource."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from policyeng.facts.arm_casing import ENVELOPE
from policyeng.facts.coverage import covered_by
from policyeng.models import JsonObject, Problem, lowered
from policyeng.parsing.json_pointer import escaped
from policyeng.parsing.json_text import kind_of, shortened
from policyeng.sources.arm_resource import looks_like_arm, read_entry
from policyeng.sources.parsed import (
    ALONE,
    ParsedDocument,
    Placed,
    Surroundings,
    next_page,
    reading_of,
    refuse,
)

SUMMARY = "ARM resources, alone, in a `value` list or in a bare list"

_LIST_KEYS = frozenset({"value", "nextLink", "count", "totalCount", "@odata.context", "@nextLink"})
_KEY_BODIES = frozenset(
    {
        "accessToken",
        "adminKubeConfig",
        "notebookAccessKeys",
        "primaryAccessKey",
        "primaryKey",
        "secondaryAccessKey",
        "secondaryKey",
        "tokenType",
        "userKubeConfig",
        "userStorageKey",
    }
)
_STATUS_BODIES = frozenset(
    {"endTime", "error", "id", "name", "percentComplete", "properties", "sparkReady", "startTime", "status"}
)
_EXAMPLE = frozenset({"$schema", "description", "operationId", "parameters", "responses", "title"})
SHAPES: tuple[frozenset[str], ...] = tuple(
    frozenset(map(lowered, keys)) for keys in (ENVELOPE, _LIST_KEYS, _KEY_BODIES, _STATUS_BODIES, _EXAMPLE)
)


def detect(document: object) -> bool:
    """Check whether the document is a response of the ARM REST API, even one without a resource."""
    if isinstance(document, list):
        return not document or any(looks_like_arm(entry) for entry in document)
    if not isinstance(document, dict):
        return False
    example = example_body(document)
    if example is not None:
        return detect(example[1]) or looks_like_arm(document)
    return looks_like_arm(document) or _is_list(document) or _refuse_non_resource(document) is not None


def read(document: object, around: Surroundings = ALONE) -> ParsedDocument:  # noqa: ARG001  # the document is complete
    """Read a response; one without a resource is refused with a description of what it is."""
    return _read_at(document, "")


def _read_at(document: object, base: str) -> ParsedDocument:
    if isinstance(document, list):
        return _add_coverage(reading_of(_read_entries(document, base)))
    if not isinstance(document, dict):
        message = f"not an ARM response: {kind_of(document)} where an object or a list should be"
        return ParsedDocument(problems=(refuse(base, message, "save the response of the REST API to GET"),))
    example = None if looks_like_arm(document) else example_body(document)
    if example is not None:
        status, body = example
        return _read_at(body, f"{base}/responses/{escaped(status)}/body")
    if _is_list(document):
        return _add_coverage(reading_of(_read_entries(document["value"], f"{base}/value"), next_page(document)))
    nothing = None if looks_like_arm(document) else _refuse_non_resource(document)
    return reading_of([replace(nothing, place=base) if nothing else read_entry(document, base)])


def _add_coverage(reading: ParsedDocument) -> ParsedDocument:
    """Add what a list covers, unless further pages follow."""
    if reading.truncated or reading.refusals:
        return reading
    shown = covered_by((placed.resource for placed in reading.resources), is_list=True)
    return replace(reading, covers=tuple(dict.fromkeys(shown)))


def _read_entries(entries: list[object], base: str) -> Iterator[Placed | Problem]:
    return (read_entry(entry, f"{base}/{index}") for index, entry in enumerate(entries))


def _is_list(document: JsonObject) -> bool:
    entries = document.get("value")
    return isinstance(entries, list) and (document.keys() <= _LIST_KEYS or any(map(looks_like_arm, entries)))


def example_body(document: JsonObject) -> tuple[str, object] | None:
    """Return the status and body of the first success in a REST API example (`parameters` and `responses`), if any."""
    responses = document.get("responses")
    if not isinstance(responses, dict) or not isinstance(document.get("parameters"), dict):
        return None
    for status, response in sorted(responses.items()):
        if status.startswith("2") and isinstance(response, dict) and "body" in response:
            return status, response["body"]
    return None


def _refuse_non_resource(document: JsonObject) -> Problem | None:
    """Describe a response without a resource; return None if the document is not a response of ARM."""
    error = document.get("error")
    if isinstance(error, dict) and "code" in error:
        message = f"an error response (`{shortened(str(error['code']))}`), not a resource"
        return refuse("", message, "fix the request and save its response again")
    if not document.keys().isdisjoint(_KEY_BODIES):
        return refuse("", "a response with keys or tokens, not a resource", "leave it out", "empty")
    if isinstance(document.get("status"), str) and document.keys() <= _STATUS_BODIES:
        remedy = "save the resource when the operation is complete"
        return refuse("", "the status of an operation, not a resource", remedy, "empty")
    if isinstance(document.get("responses"), dict) and isinstance(document.get("parameters"), dict):
        return refuse(
            "", "an example of the REST API whose responses have no body", "give an example with a body", "empty"
        )
    if isinstance(document.get("properties"), dict) and document.keys() <= ENVELOPE:
        refused = read_entry(document, "")
        return refused if isinstance(refused, Problem) else None
    return None
