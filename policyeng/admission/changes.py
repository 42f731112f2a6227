"""Changes: what a caller says is about to happen, and the snapshot after it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import orjson
from pydantic import ValidationError

from policyeng.errors import InputError, nearest
from policyeng.facts.ids import folded_id, is_at_or_under
from policyeng.models import Change, JsonObject, Operation, Problem, Snapshot, lowered
from policyeng.strict.json_text import require_json
from policyeng.strict.merge_patch import merged

#: What a caller may give: changes, resources to create or replace, or ids to delete; one of them or several.
Changes = Change | Mapping[str, object] | str | Sequence["Change | Mapping[str, object] | str"]

_PLACE = "change"
_REMEDY = 'give a resource with `id` and `type`, an id to delete, or `{"operation": ..., "id": ..., ...}`'


class After(NamedTuple):
    """A snapshot after changes.

    Attributes:
        changed: lower-case ids of what the changes name, deleted or not.
        removed: lower-case ids of what is there no more: what was deleted and what lay under it.
        problems: an error for every change that cannot be made, and a warning where one finds nothing to change.
    """

    snapshot: Snapshot
    changed: frozenset[str]
    removed: frozenset[str]
    problems: tuple[Problem, ...]


def changes_of(given: Changes) -> tuple[Change, ...]:
    """Changes as given by a program or a document.

    Raises:
        InputError: one of them is none; names its position and the remedy.
    """
    listed = [given] if isinstance(given, Change | Mapping | str) else list(given)
    if not listed:
        raise InputError("there is no change", place=(_PLACE,), remedy=_REMEDY)
    places = [_PLACE] if len(listed) == 1 else [f"{_PLACE} {number}" for number in range(1, len(listed) + 1)]
    return tuple(map(_change, listed, places))


def _change(given: Change | Mapping[str, object] | str, place: str) -> Change:
    if isinstance(given, str):
        given = {"operation": Operation.DELETE, "id": given}
    elif isinstance(given, Mapping) and "operation" not in given:
        _require_resource(given, place)
        given = {"operation": Operation.REPLACE, "id": given["id"], "resource": dict(given)}
    change = given if isinstance(given, Change) else _validated(given, place)
    if change.operation in (Operation.CREATE, Operation.REPLACE):
        _require_resource(change.resource, place)
        _require_same(change.id, change.resource or {}, place)
        _require_json(change.resource, place)
    elif change.operation is Operation.PATCH:
        if not isinstance(change.patch, dict):
            raise InputError("a patch of a resource is a JSON object", place=(place, "/patch"), remedy=_REMEDY)
        _require_json(change.patch, place)
    return change


def _validated(given: Mapping[str, object], place: str) -> Change:
    operation = given.get("operation")
    known = [str(operation) for operation in Operation]
    if not isinstance(operation, str) or lowered(operation) not in known:
        meant = nearest(str(operation), known)
        remedy = "the operations are " + ", ".join(f"`{name}`" for name in known)
        raise InputError(f"there is no operation `{operation}`{meant}", place=(place, "/operation"), remedy=remedy)
    written = {"create": "resource", "replace": "resource", "patch": "patch"}
    described = {"operation", "id", written.get(lowered(operation), "id")}
    if surplus := sorted(set(given) - described - {"unreadable", "carried"}):
        message = f"a {lowered(operation)} has no `{surplus[0]}`{nearest(surplus[0], described)}"
        raise InputError(message, place=(place,), remedy=_REMEDY)
    values: dict[str, Any] = {**given, "operation": lowered(operation)}
    if "id" not in values and isinstance(values.get("resource"), Mapping):
        values["id"] = values["resource"].get("id")
    try:
        return Change.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        where = "/" + "/".join(map(str, first["loc"]))
        raise InputError(first["msg"].lower(), place=(place, where), remedy=_REMEDY) from None


def _require_resource(resource: object, place: str) -> None:
    if not isinstance(resource, Mapping):
        raise InputError("the resource is not an object", place=(place, "/resource"), remedy=_REMEDY)
    for key in ("id", "type"):
        value = resource.get(key)
        if not (isinstance(value, str) and value):
            raise InputError(f"the resource has no string `{key}`", place=(place,), remedy=_REMEDY)


def _require_same(identity: str, resource: JsonObject, place: str) -> None:
    if folded_id(identity) != folded_id(resource["id"]):
        message = f"the change is of `{identity}`, and its resource is `{resource['id']}`"
        raise InputError(message, place=(place, "/id"), remedy="name one resource, or leave `id` out")


def _require_json(value: object, place: str) -> None:
    try:
        text = orjson.dumps(value)
    except TypeError as error:
        raise InputError(f"JSON cannot carry it ({error})", place=(place,), remedy="give JSON values") from None
    require_json(text, place)


def changed(snapshot: Snapshot, changes: Iterable[Change]) -> After:
    """A snapshot after changes, one after the other; a delete takes what lies under the resource with it, as ARM does.

    A change that cannot be made is a problem, and the rest is made.
    """
    rows = [(_key(resource), resource) for resource in snapshot.resources]
    notes: list[dict[str, object]] = [dict(snapshot.unreadable), dict(snapshot.carried), dict(snapshot.origins)]
    touched, removed, problems = set[str](), set[str](), list[Problem]()
    for change in changes:
        key = folded_id(change.id)
        touched.add(key)
        resource = _resource(change, next((held for other, held in rows if other == key), None))
        if isinstance(resource, Problem):
            problems.append(resource)
            continue
        gone = {key}
        if resource is None:
            gone = {other for other, _ in rows if other == key or is_at_or_under(other, change.id)}
            removed |= gone
            if not gone:
                problems.append(_said("warning", "the snapshot does not hold what is deleted", change))
        rows = [(other, held) for other, held in rows if other not in gone]
        if change.operation is not Operation.PATCH:
            notes = [{other: note for other, note in kept.items() if folded_id(other) not in gone} for kept in notes]
        if resource is not None:
            removed.discard(key)
            rows.append((key, resource))
            _note(notes, lowered(resource["id"]), change)
    unreadable, carried, origins = notes
    resources = tuple(resource for _, resource in rows)
    held = {"resources": resources, "unreadable": unreadable, "carried": carried, "origins": origins}
    return After(snapshot.model_copy(update=held), frozenset(touched), frozenset(removed), tuple(problems))


def _key(resource: JsonObject) -> str:
    """The id to compare with; empty for what has none, and is told of when it is judged."""
    identity = resource.get("id")
    return folded_id(identity) if isinstance(identity, str) else ""


def _note(notes: Sequence[dict[str, object]], identity: str, change: Change) -> None:
    """Keep what the new resource does not say."""
    unreadable, carried, _ = notes
    if change.unreadable:
        unreadable[identity] = change.unreadable
    if change.carried is not None:
        carried[identity] = change.carried


def _resource(change: Change, before: JsonObject | None) -> JsonObject | Problem | None:
    """The resource after a change; None when there is none then."""
    if change.operation is not Operation.PATCH:
        return change.resource
    if before is None:
        return _said("error", "the snapshot does not hold what is patched; give the whole resource", change)
    after: JsonObject = merged(before, change.patch)
    for key in ("id", "type"):
        if lowered(str(after.get(key))) != lowered(str(before[key])):
            return _said("error", f"a patch cannot change the `{key}` of a resource; leave it out", change)
    return after


def _said(level: Literal["error", "warning"], message: str, change: Change) -> Problem:
    return Problem(level=level, message=message, place=change.id)
