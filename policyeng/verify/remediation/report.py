"""Reports of suggestions as text and as JSON; `docs/suggestions.md` describes the JSON form."""

from __future__ import annotations

import json
from collections.abc import Sequence

from policyeng.models import JsonObject, Place, Snapshot, lowered
from policyeng.parsing.json_pointer import value_at
from policyeng.redaction import masked
from policyeng.report.escaping import compact, visible
from policyeng.verify.remediation.json_patch import GONE, DocumentPatch, document_of, makes_room
from policyeng.verify.remediation.suggestion import Suggestion

#: The version of the JSON form.
VERSION = 1
_SHAPE = "paths and values are in the form of Azure Resource Manager, for any input format"


def as_text(suggestions: Sequence[Suggestion], snapshot: Snapshot) -> str:
    """Return a paragraph for each failure, and the number that can be fixed; ends with a newline."""
    if not suggestions:
        return "there are no failures without an exemption\n"
    blocks = ["\n".join(_lines(suggestion, snapshot)) for suggestion in suggestions]
    fixed = sum(bool(suggestion.edits) for suggestion in suggestions)
    count = f"{fixed} of {len(suggestions)} failures have a verified edit"
    return visible("\n\n".join([*blocks, f"{count}; {_SHAPE}"]), keep="\n") + "\n"


def as_json(suggestions: Sequence[Suggestion], snapshot: Snapshot) -> str:
    """Return the document of `docs/suggestions.md`; ends with a newline."""
    document = {
        "suggestionsVersion": VERSION,
        "suggestions": [_document(suggestion, snapshot) for suggestion in suggestions],
    }
    return visible(json.dumps(document, ensure_ascii=False, indent=2), keep="\n") + "\n"


def _lines(suggestion: Suggestion, snapshot: Snapshot) -> list[str]:
    finding = suggestion.finding
    at = finding.location
    place = [f"  at {at.file}:{at.line}:{at.column}"] if at.file else []
    lines = [f"{finding.policy} {finding.title}", f"  {finding.resource}", *place]
    if not suggestion.edits:
        fix = [f"  fix: {finding.remediation}"] if finding.remediation else []
        return [*lines, f"  no safe automatic edit: {suggestion.reason}", *fix]
    for edit in suggestion.edits:
        lines += [f"  {words}" for words in _describe_edit(edit, suggestion, snapshot)]
    others = list(dict.fromkeys(policy for policy, _ in suggestion.clears[1:] if policy != finding.policy))
    cleared = " and ".join([finding.policy, *([", ".join(others)] if others else [])])
    return [*lines, f"  verified: clears {cleared}, adds nothing"]


def _describe_edit(edit: DocumentPatch, suggestion: Suggestion, snapshot: Snapshot) -> list[str]:
    """Describe an edit, one operation per line, without those that only create objects for the next ones."""
    own = lowered(edit.identity) == lowered(suggestion.finding.resource)
    of = "" if own else f" of {edit.identity}"
    if edit.patch == GONE:
        return [f"remove {edit.identity}"]
    before = document_of(snapshot, edit.kind, edit.identity) or {}
    words = []
    for number, step in enumerate(edit.patch):
        if step["op"] == "test" or makes_room(edit.patch, number):
            continue
        place = _place(edit, step["path"], snapshot)
        at = f" at {place.file}:{place.line}:{place.column}" if place else ""
        now = value_at(before, step["path"])
        current = "absent" if now is None else compact(masked(now, step["path"]))
        if step["op"] == "remove":
            words.append(f"remove {step['path']}{of} (now {current}){at}")
        else:
            words.append(f"set {step['path']}{of} to {compact(step['value'])} (now {current}){at}")
    return words


def _place(edit: DocumentPatch, path: str, snapshot: Snapshot) -> Place | None:
    """Return the place of a field in the user's file, or the nearest place above it."""
    origin = snapshot.origins.get(lowered(edit.identity))
    if origin is None or origin.file not in snapshot.texts:
        return None
    [(line, column)] = snapshot.texts[origin.file].places([origin.pointer_to(path)])
    return Place(file=origin.file, line=line, column=column)


def _document(suggestion: Suggestion, snapshot: Snapshot) -> JsonObject:
    finding = suggestion.finding
    at = finding.location
    return {
        "policy": finding.policy,
        "title": finding.title,
        "resource": finding.resource,
        "resourceType": finding.resource_type,
        "location": {"file": at.file, "line": at.line, "column": at.column},
        "verified": bool(suggestion.edits),
        "fromHeader": suggestion.from_header,
        "edits": [_edit(edit, snapshot) for edit in suggestion.edits],
        "clears": [{"policy": policy, "resource": resource} for policy, resource in suggestion.clears],
        "reason": suggestion.reason,
        "remedy": finding.remediation,
    }


def _edit(edit: DocumentPatch, snapshot: Snapshot) -> JsonObject:
    paths = dict.fromkeys(step["path"] for step in edit.patch if step["op"] != "test")
    places = {path: place for path in paths if path and (place := _place(edit, path, snapshot))}
    return {
        "kind": edit.kind,
        "id": edit.identity,
        "patch": list(edit.patch),
        "places": {path: place.model_dump(mode="json", by_alias=True) for path, place in places.items()},
    }
