"""Add the file, line and column of fields to findings, in one lookup for all findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from policyeng.bundle.header import WORKSPACE
from policyeng.evaluation.prepared_snapshot import PreparedSnapshot, Resource
from policyeng.frozen import replace
from policyeng.models import FilePlaces, Finding, Origin, Place, Snapshot, lowered
from policyeng.redaction import masked_message

#: Ends the path of a finding about a complete scope; the scope's id comes before it.
WHOLE = ":"
#: Between the id of another resource and the JSON Pointer into it.
NEIGHBOUR = ":/"


def with_places(findings: Sequence[tuple[Finding, int]], estate: PreparedSnapshot, snapshot: Snapshot) -> list[Finding]:
    """Return findings with the source locations of their denials and unknowns.

    Args:
        findings: findings, each with the position of its subject.
        estate: the subjects.
        snapshot: the origins of resources, and the texts of files.
    """
    if not snapshot.texts:
        return [finding for finding, _ in findings]
    wanted: dict[str, dict[str, Place | None]] = {}
    fields_of: dict[int, list[tuple[str, Origin, str, str]]] = {}
    for number, (finding, position) in enumerate(findings):
        fields = fields_of[number] = list(_fields(finding, estate.subjects[position], estate.subjects, snapshot))
        for _, origin, _, pointer in fields:
            wanted.setdefault(origin.file, {})[pointer] = None
    for file, pointers in wanted.items():
        text: FilePlaces = snapshot.texts[file]
        shown = masked_message(file)
        places = text.places(list(pointers))
        for pointer, (line, column) in zip(pointers, places, strict=True):
            pointers[pointer] = Place(file=shown, line=line, column=column)
    placed = [finding for finding, _ in findings]
    for number, fields in fields_of.items():
        found = ((path, wanted[origin.file][pointer], origin.name_of(inner)) for path, origin, inner, pointer in fields)
        placed[number] = _add_fields(
            placed[number],
            {path: replace(place, address=name) if name else place for path, place, name in found if place},
        )
    return placed


def _add_fields(finding: Finding, fields: dict[str, Place]) -> Finding:
    if not fields:
        return finding
    at = finding.location
    return finding.model_copy(update={"location": replace(at, fields=fields)})


def _fields(
    finding: Finding, subject: Resource, subjects: Sequence[Resource], snapshot: Snapshot
) -> Iterator[tuple[str, Origin, str, str]]:
    """Yield each path in a finding, the origin of its resource, the pointer into that, and the pointer in the file."""
    for path in dict.fromkeys(reason.path for reason in (*finding.denials, *finding.unknowns)):
        holder, inner = find_holder(path, subject, subjects)
        origin = snapshot.origins.get(lowered(holder))
        if origin is not None and inner.startswith("/") and origin.file in snapshot.texts:
            yield path, origin, inner, origin.pointer_to(inner)


def find_holder(path: str, subject: Resource, subjects: Sequence[Resource]) -> tuple[str, str]:
    """Return the id of the resource to which a path in a finding refers, and the pointer into that resource."""
    if path.startswith(WORKSPACE) and subject.workspace >= 0:
        return subjects[subject.workspace].reported_id, path.removeprefix(WORKSPACE)
    if NEIGHBOUR in path:
        holder, _, pointer = path.partition(NEIGHBOUR)
        return holder, f"/{pointer}"
    if path.endswith(WHOLE):
        return path.removesuffix(WHOLE), ""
    return subject.reported_id, path
