"""Changes as policyeng itself writes them: `{"changes": [...]}`, one change, or a list of changes.

A change has an `operation` (`create`, `replace`, `patch`, `delete`), an `id`, and the whole `resource` or a merge
`patch`; a resource alone is put, and an id alone is deleted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from policyeng.errors import suggest_nearest
from policyeng.facts.ids import fold_id, types_of
from policyeng.models import Change, JsonObject, Operation, Problem, lowered
from policyeng.parsing.json_pointer import escaped
from policyeng.parsing.json_text import kind_of, shortened
from policyeng.sources.arm_resource import is_resource_id, read_entry
from policyeng.sources.parsed import (
    ALONE,
    Changing,
    ParsedDocument,
    Placed,
    Surroundings,
    format_value,
    refuse,
)
from policyeng.sources.validation import validated

SUMMARY = 'changes: `{"changes": [...]}`, one with an `operation`, or a list of them'

_REMEDY = 'provide a resource, an id to delete, or `{"operation": ..., "id": ..., ...}`'
_ID = "write it as `/subscriptions/.../providers/<namespace>/<type>/<name>`"
NO_ID = "a text is a change only if it is the full ARM id of a resource to delete"
PARSE_IT = "pass what `json.loads` returns, or what `policyeng.load_changes` reads from a file"
#: What an operation is written with.
_WRITTEN: Mapping[str, str] = {
    Operation.CREATE: "resource",
    Operation.REPLACE: "resource",
    Operation.PATCH: "patch",
    Operation.DELETE: "",
}
_NOTES = ("unreadable", "carried")


SHAPES: tuple[frozenset[str], ...] = (
    frozenset({"changes"}),
    frozenset({"carried", "id", "operation", "patch", "resource", "unreadable"}),
)


def detect(document: object) -> bool:
    """Check whether the document declares changes."""
    if isinstance(document, str):
        return is_resource_id(document)
    if isinstance(document, dict):
        return "operation" in document or "changes" in document
    return isinstance(document, list) and any(
        isinstance(entry, str) or (isinstance(entry, dict) and "operation" in entry) for entry in document
    )


def read(document: object, around: Surroundings = ALONE) -> ParsedDocument:  # noqa: ARG001  # it needs no context
    """Read changes; an invalid change is refused with its pointer, without affecting the others."""
    entries = list(_entries(document))
    if not entries:
        entries = [refuse("", "no changes", _REMEDY)]
    return ParsedDocument(
        changes=tuple(entry for entry in entries if isinstance(entry, Changing)),
        problems=tuple(entry for entry in entries if isinstance(entry, Problem)),
    )


def _entries(document: object) -> Iterator[Changing | Problem]:
    base, listed = "", document
    if isinstance(document, dict) and "operation" not in document and "changes" in document:
        base, listed = "/changes", document["changes"]
        for key in document:
            if key != "changes":
                known = suggest_nearest(key, ("changes",))
                yield refuse(
                    f"/{escaped(key)}", f"unknown key `{shortened(key)}`{known}", "the only known key is `changes`"
                )
        if not isinstance(listed, list):
            yield refuse(base, f"`changes` is {kind_of(listed)}, not a list", "make `changes` a list")
            return
    if not isinstance(listed, list):
        yield _change(listed, base)
        return
    yield from (_change(entry, f"{base}/{index}") for index, entry in enumerate(listed))


def _change(entry: object, pointer: str) -> Changing | Problem:
    if isinstance(entry, str):
        if not is_resource_id(entry):
            return refuse(pointer, f"{NO_ID}: `{shortened(entry)}`", PARSE_IT)
        entry = {"operation": Operation.DELETE.value, "id": entry}
    if not isinstance(entry, dict):
        return refuse(pointer, f"not a change: expected an object, found {kind_of(entry)}", _REMEDY)
    if "operation" not in entry:
        return _build_put(entry, pointer, {"operation": Operation.REPLACE.value})
    given = entry["operation"]
    if not isinstance(given, str) or lowered(given) not in _WRITTEN:
        known = ", ".join(f"`{name}`" for name in Operation)
        message = f"unknown operation {format_value(given)}{suggest_nearest(str(given), Operation)}"
        return refuse(f"{pointer}/operation", message, f"the operations are {known}")
    described = {**entry, "operation": lowered(given)}
    written = _WRITTEN[lowered(given)]
    keys = [key for key in ("operation", "id", written, *(_NOTES if written else ())) if key]
    for key in entry:
        if key not in keys:
            message = f"a {lowered(given)} has no `{shortened(key)}`{suggest_nearest(key, keys)}"
            return refuse(f"{pointer}/{escaped(key)}", message, _REMEDY)
    if written and written not in entry:
        return refuse(pointer, f"a {lowered(given)} without `{written}`", f"add `{written}`")
    if written == "resource":
        return _build_put(entry["resource"], f"{pointer}/resource", described)
    return _build_named_change(described, pointer)


def _build_named_change(described: JsonObject, pointer: str) -> Changing | Problem:
    """Return the patch or delete of the resource with an id."""
    if "patch" in described and not isinstance(described["patch"], dict):
        message = f"`patch` is {kind_of(described['patch'])}, not an object"
        return refuse(f"{pointer}/patch", message, "write a JSON Merge Patch (RFC 7396)")
    change, faults = validated(Change, described, pointer)
    if change is None:
        return faults[0]
    if not types_of(change.id):
        return refuse(pointer, f"`id` is not the full ARM id of a resource: `{shortened(change.id)}`", _ID)
    return Changing(change, f"{pointer}/patch" if "patch" in described else pointer)


def _build_put(resource: object, pointer: str, described: JsonObject) -> Changing | Problem:
    """Return the change that puts a resource."""
    entry = read_entry(resource, pointer)
    if not isinstance(entry, Placed):
        return entry
    identity = entry.resource["id"]
    stated = described.get("id", identity)
    if isinstance(stated, str) and fold_id(stated) != fold_id(identity):
        message = f"the change names `{shortened(stated)}`, but its resource is `{shortened(identity)}`"
        return refuse(pointer, message, "name one resource, or remove `id` from the change")
    notes = {key: described[key] for key in _NOTES if key in described}
    change, faults = validated(
        Change, {"operation": described["operation"], "id": stated, **notes}, pointer.removesuffix("/resource")
    )
    if change is None:
        return faults[0]
    unreadable = {**entry.unreadable, **change.unreadable}
    if "properties" not in entry.resource and "/properties" not in change.unreadable:
        unreadable.pop("/properties", None)  # of a list that would be unsaid; what is put is put whole
    return Changing(change.model_copy(update={"resource": entry.resource, "unreadable": unreadable}), pointer)
