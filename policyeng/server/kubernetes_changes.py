"""What a request to the Kubernetes API server changes in Azure: changes of ARM resources, or nothing.

The state before is the snapshot with the old object put in: what the cluster holds has been asked for already, so that
only what a request adds to it is new.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from policyeng.errors import InputError
from policyeng.facts.ids import fold_id, is_open
from policyeng.models import Change, JsonObject, Operation, lowered
from policyeng.server.review_request import ReviewRequest, Verb
from policyeng.sources.kubernetes.kinds import EXTENSION_GROUP, group_of
from policyeng.sources.kubernetes.objects import get_inner, words
from policyeng.sources.kubernetes.owners import BesideSnapshot
from policyeng.sources.kubernetes.status import is_kept, is_unmanaged
from policyeng.sources.parsed import Placed, Refusal

_COMPUTES = "Microsoft.MachineLearningServices/workspaces/computes"
_TYPES = "/properties/properties/instanceTypes"
_DETACH = "annotate it with `serviceoperator.azure.com/reconcile-policy: detach-on-delete` to delete the object alone"
_UNPLACED = "its ARM id is not known, and it is judged as a new resource; give `spec.owner.armId`"
_UNREADABLE = "what it asks for cannot be judged, and the update does not touch it"


class ReviewedObject(NamedTuple):
    """What a request asks for.

    Attributes:
        held: what the cluster holds: changes that make the state before of the snapshot.
        changes: from there; none where nothing changes in Azure.
        fields: by lower-case ARM id, and by JSON Pointer into that resource, the pointer in the object.
        remarks: what who asks should know.
    """

    held: tuple[Change, ...] = ()
    changes: tuple[Change, ...] = ()
    fields: Mapping[str, Mapping[str, str]] = {}
    remarks: tuple[str, ...] = ()


def convert_request(request: ReviewRequest, beside: BesideSnapshot) -> ReviewedObject:
    """Return the changes that a request about a supported object asks for.

    Raises:
        InputError: the object, or where it lies in Azure, cannot be told; with the place and the remedy.
    """
    if request.verb is Verb.DELETE:
        return _deleted(request, beside)
    old = request.old if request.verb is Verb.UPDATE else None
    new = request.object or {}
    known = _find_assigned_id(old)
    if is_unmanaged(new):
        return ReviewedObject()
    try:
        drawn = _build_changes(new, known, beside, _type_names(old))
    except InputError as error:
        if old is not None and _says_the_same(old, new):
            return ReviewedObject(remarks=(f"{_UNREADABLE}: {error}",))
        raise
    held: tuple[Change, ...] = ()
    if old is not None and not is_unmanaged(old):
        held = _read_old_object(old, known, beside)
    remarks = [*drawn.remarks]
    if any(is_open(change.id) for change in drawn.changes) and not _is_extensions(new):
        remarks.append(_UNPLACED)
    return drawn._replace(held=held, remarks=tuple(remarks))


def _deleted(request: ReviewRequest, beside: BesideSnapshot) -> ReviewedObject:
    """Return the deletion, for which the resource id of the object is enough."""
    old = request.old or {}
    if is_kept(old):
        return ReviewedObject()
    known = _find_assigned_id(old)
    held = _read_old_object(old, known, beside)
    if _is_extensions(old):
        taken = tuple(_typed(None, _type_names(old), beside))
        return ReviewedObject(held, taken or tuple(Change(operation=Operation.DELETE, id=change.id) for change in held))
    try:
        identity = held[0].id if held else beside.identity(old, known)
    except InputError as error:
        raise InputError(error.message, remedy=_DETACH) from None
    return ReviewedObject(held, (Change(operation=Operation.DELETE, id=identity),))


def _build_changes(
    document: JsonObject, known: str, beside: BesideSnapshot, gone: Sequence[str] = ()
) -> ReviewedObject:
    """Return the changes that apply an object to Azure, and delete the instance types that it no longer has.

    Raises:
        InputError: it cannot be read.
    """
    read = beside.read(document, known)
    entry = read.entry
    if isinstance(entry, Refusal):
        raise InputError(entry.message, place=(entry.pointer,), remedy=entry.remedy)
    if entry is None:
        return ReviewedObject()
    changes = tuple(_typed(entry, gone, beside)) if _is_extensions(document) else (_replaced(entry),)
    fields = {fold_id(change.id): entry.fields for change in changes}
    return ReviewedObject((), changes, fields, tuple(f"{pointer}: {message}" for pointer, message in read.remarks))


def _read_old_object(document: JsonObject, known: str, beside: BesideSnapshot) -> tuple[Change, ...]:
    """Return the content of the old object; empty if unreadable, so that everything in the new one counts as new."""
    try:
        return _build_changes(document, known, beside).changes
    except InputError:
        return ()


def _replaced(entry: Placed) -> Change:
    return Change(
        operation=Operation.REPLACE,
        id=entry.resource["id"],
        resource=entry.resource,
        unreadable=entry.unreadable,
        carried=entry.carried,
    )


def _typed(entry: Placed | None, gone: Sequence[str], beside: BesideSnapshot) -> Iterator[Change]:
    """Instance types go into every attachment of the cluster that the snapshot has.

    Where it has none, or several clusters among which nothing tells, they stand as a compute of their own.

    Args:
        entry: the compute that holds those that there are to be; None where there are to be none.
        gone: the names of others, which go.
        beside: has the attachments.
    """
    attachments = [
        held
        for held in beside.of_type(_COMPUTES)
        if lowered(words(get_inner(held, "properties", "computeType"))) == "kubernetes"
    ]
    clusters = {lowered(words(get_inner(held, "properties", "resourceId"))) for held in attachments}
    if len(clusters) != 1 or ("" in clusters and len(attachments) > 1):
        if entry is not None:
            yield _replaced(entry)
        return
    types = get_inner(entry.resource, "properties", "properties", "instanceTypes") if entry is not None else None
    joined = {**dict.fromkeys(gone), **(types if isinstance(types, dict) else {})}
    unresolved = entry.unreadable.items() if entry is not None else ()
    for held in attachments:
        change = _with_types(held, joined, beside)
        more = {pointer: why for pointer, why in unresolved if pointer.startswith(f"{_TYPES}/")}
        yield change.model_copy(update={"unreadable": {**change.unreadable, **more}})


def _with_types(compute: JsonObject, types: JsonObject, beside: BesideSnapshot) -> Change:
    """Return a compute with instance types added, and those that are null removed."""
    properties = compute["properties"]
    inside = properties.get("properties")
    inside = inside if isinstance(inside, dict) else {}
    there = inside.get("instanceTypes")
    joined = {**(there if isinstance(there, dict) else {}), **types}
    kept = {name: spec for name, spec in joined.items() if spec is not None}
    resource = {**compute, "properties": {**properties, "properties": {**inside, "instanceTypes": kept}}}
    return Change(
        operation=Operation.REPLACE,
        id=compute["id"],
        resource=resource,
        unreadable=beside.snapshot.unreadable.get(lowered(compute["id"]), {}),
        carried=beside.snapshot.carried.get(lowered(compute["id"])),
    )


def _type_names(document: JsonObject | None) -> list[str]:
    """Return the names of an instance type or of a list of them; for any other object, its own name."""
    listed = get_inner(document, "items")
    return [
        words(get_inner(entry, "metadata", "name")) for entry in (listed if isinstance(listed, list) else [document])
    ]


def _is_extensions(document: JsonObject) -> bool:
    return group_of(document.get("apiVersion")) == EXTENSION_GROUP


def _find_assigned_id(old: JsonObject | None) -> str:
    """Return the id that the service assigned to the resource of an existing object."""
    return words(get_inner(old, "status", "id"))


def _says_the_same(old: JsonObject, new: JsonObject) -> bool:
    """Whether two objects ask for the same; what the API server and the operator say of them aside."""
    parts = [{key: value for key, value in each.items() if key not in ("metadata", "status")} for each in (old, new)]
    return parts[0] == parts[1] and is_unmanaged(old) == is_unmanaged(new)
