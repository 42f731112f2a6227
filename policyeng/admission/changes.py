"""Changes: what a caller says is about to happen, and the snapshot after it."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, Literal, NamedTuple

import orjson
from pydantic import ValidationError

from policyeng.admission.normalization import aligned, as_arm_reads_it, why_not
from policyeng.errors import InputError, nearest
from policyeng.evaluation.prepared_snapshot import Becomes, Notes
from policyeng.facts import managed_networks
from policyeng.facts.arm_casing import NO_SPELLINGS, Spellings
from policyeng.facts.ids import folded_id, is_at_or_under
from policyeng.facts.managed_networks import NetworkPart, workspace_of_part
from policyeng.models import WORKSPACE_TYPE, Change, JsonObject, Operation, Origin, Problem, Snapshot, lowered
from policyeng.parsing.json_pointer import value_at
from policyeng.parsing.json_text import require_readable
from policyeng.parsing.merge_patch import merged
from policyeng.sources.arm_template import Contents
from policyeng.sources.parsed import ParsedDocument, Placed
from policyeng.sources.template_carriers import APPLICATION, DEPLOYMENT, STACK, carrier_of, member

#: What takes the resources that it deployed away with it, if it was created so or is deleted so.
_MANAGING = (STACK, APPLICATION)

#: How the types begin that complete mode does not delete.
_STAYS = ("microsoft.authorization/", "microsoft.consumption/", f"{DEPLOYMENT}/")

#: The resources of a snapshot, and what changes have made of them, by id as `folded_id` gives it.
State = tuple[Mapping[str, JsonObject], Mapping[str, Becomes]]


def carried(
    change: Change, now: Becomes, was: JsonObject | None, state: State, spellings: Spellings, contents: Contents
) -> list[Change | Problem]:
    """The changes of the resources in the template of what a change puts, and why they are not all known.

    Args:
        change: of any resource; one that carries no template makes no other changes.
        now: the resource after the change.
        was: the resource before it.
        state: what is there before the template is deployed.
        spellings: as for `changes_of`.
        contents: reads the templates of all of the changes.
    """
    resource = now.resource or was
    if resource is None or carrier_of(resource["type"], resource) is None:
        return []
    arm_type = lowered(resource["type"])
    if now.resource is None:
        message = "deleting it may delete the resources that it manages, which are not evaluated as deleted"
        return [_problem("warning", message, change)] if arm_type in _MANAGING else []
    if change.operation is Operation.PATCH and member(change.patch, "properties") is None:
        return []
    reading = contents.read(now.resource, now.notes.unreadable)
    found: list[Change | Problem] = [
        _problem("error", f"{refusal.message}; {refusal.remedy}".removesuffix("; "), change)
        for refusal in reading.refusals
    ]
    found += _deleted(change, now, was, reading, state)
    for placed in reading.resources:
        try:
            found.append(as_arm_reads_it(_put(placed, now.notes.origin), placed.resource["id"], spellings))
        except InputError as error:
            found.append(_problem("error", str(error), change))
    return found


def _put(placed: Placed, origin: Origin | None) -> Change:
    if origin is not None:
        fields = {at: origin.pointer_to(there) for at, there in placed.fields.items()}
        origin = origin.model_copy(update={"pointer": origin.pointer_to(placed.pointer), "fields": fields})
    return Change(
        operation=Operation.REPLACE,
        id=placed.resource["id"],
        resource=placed.resource,
        unreadable=placed.unreadable,
        carried=placed.carried,
        origin=origin,
    )


def _deleted(
    change: Change, now: Becomes, was: JsonObject | None, reading: ParsedDocument, state: State
) -> Iterator[Change | Problem]:
    """The deletions of a deployment in complete mode, and of a stack that deletes what it no longer has."""
    resource = now.resource or {}
    arm_type, properties = lowered(resource["type"]), member(resource, "properties")
    held, becomes = state
    there = {**held, **{key: after.resource for key, after in becomes.items()}}
    if arm_type == DEPLOYMENT and "/properties/mode" in map(lowered, now.notes.unreadable):
        yield _problem("error", "the mode of the deployment is not known, so neither is what it deletes", change)
    elif arm_type == DEPLOYMENT and lowered(str(member(properties, "mode"))) == "complete":
        group = change.id[: lowered(change.id).rfind("/providers/")]
        if reading.refusals or any("/id" in placed.unreadable for placed in reading.resources):
            message = "mode Complete deletes what the template does not name, and not all that it names is known"
            yield _problem("error", message, change)
        else:
            yield from _deletes(_below(folded_id(group), there), reading, there)
    elif arm_type == STACK and "delete" in _unmanaged(properties):
        managed = member(member(was, "properties"), "resources")
        if not isinstance(managed, list):
            message = "the stack deletes what its template no longer has; the snapshot does not have that list"
            yield _problem("warning", message, change)
        else:
            ids = (member(one, "id") for one in managed)
            yield from _deletes((folded_id(one) for one in ids if isinstance(one, str)), reading, there)


def _unmanaged(properties: object) -> list[str]:
    """What a stack does with resources, groups and management groups that it no longer has."""
    actions = member(properties, "actionOnUnmanage")
    return [lowered(str(action)) for action in actions.values()] if isinstance(actions, Mapping) else []


def _below(group: str, there: Mapping[str, JsonObject | None]) -> Iterator[str]:
    """The resources that complete mode deletes: those of a resource group itself, not those in them."""
    for key, held in there.items():
        rest = key.removeprefix(f"{group}/providers/")
        if held is not None and key != rest and rest.count("/") == 2 and not rest.startswith(_STAYS):
            yield key


def _deletes(keys: Iterable[str], reading: ParsedDocument, there: Mapping[str, JsonObject | None]) -> Iterator[Change]:
    named = {folded_id(placed.resource["id"]) for placed in reading.resources}
    for key in keys:
        held = there.get(key)
        if held is not None and key not in named:
            yield Change(operation=Operation.DELETE, id=held["id"])


def _problem(level: Literal["error", "warning"], message: str, change: Change) -> Problem:
    return Problem(level=level, message=message, place=change.id)


#: What a caller may give: changes, resources to create or replace, or ids to delete; one of them or several.
Changes = Change | Mapping[str, object] | str | Sequence["Change | Mapping[str, object] | str"]

#: Where a snapshot has what `Notes` has of one resource.
_NOTES = ("unreadable", "carried", "origins")

_PLACE = "change"
_DELETED = "it is deleted as a resource of its own, and what then counts is not known"
_REMEDY = 'give a resource with `id` and `type`, an id to delete, or `{"operation": ..., "id": ..., ...}`'


class After(NamedTuple):
    """A snapshot after changes.

    Attributes:
        changed: lower-case ids of what the changes name, deleted or not.
        problems: an error for every change that cannot be made, and a warning where one finds nothing to change.
    """

    snapshot: Snapshot
    changed: frozenset[str]
    problems: tuple[Problem, ...]


class ChangedResources(NamedTuple):
    """What changes make of the resources of a snapshot; ids are as `folded_id` gives them.

    Attributes:
        becomes: what each resource that changes, comes or goes becomes.
        changed: what the changes name.
        fresh: what is not only patched, so that nothing said of it before holds any more.
        problems: as of `After`.
    """

    becomes: Mapping[str, Becomes]
    changed: frozenset[str]
    fresh: frozenset[str]
    problems: tuple[Problem, ...]


#: What no change makes of any snapshot.
NOTHING_MADE = ChangedResources({}, frozenset(), frozenset(), ())


def changes_of(given: Changes, spellings: Spellings = NO_SPELLINGS) -> tuple[Change, ...]:
    """Changes as given by a program or a document; none of nothing.

    Their resources and patches are as ARM reads them, with the names of members without case.

    Args:
        given: a change, or several.
        spellings: names that policies look for, as `Bundle.spellings` has them.

    Raises:
        InputError: one of them is none; names its position and the remedy.
    """
    listed = [*given] if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    places = [_PLACE] if len(listed) == 1 else [f"{_PLACE} {number}" for number in range(1, len(listed) + 1)]
    return tuple(
        as_arm_reads_it(_change(one, place), place, spellings) for one, place in zip(listed, places, strict=True)
    )


def _change(given: Change | Mapping[str, object] | str, place: str) -> Change:
    if isinstance(given, str):
        given = {"operation": Operation.DELETE, "id": given}
    elif isinstance(given, Mapping) and "operation" not in given:
        _require_resource(given, place)
        given = {"operation": Operation.REPLACE, "id": given["id"], "resource": dict(given)}
    if not isinstance(given, Change | Mapping):
        raise InputError("this is no change", place=(place,), remedy=_REMEDY)
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
    identity, resource = values.get("id"), values.get("resource")
    if (
        isinstance(identity, str)
        and identity
        and isinstance(resource, dict | None)
        and values.keys().isdisjoint(Notes._fields)
    ):
        plain = {"resource": None, "patch": None, "unreadable": {}, "carried": None, "origin": None, **values}
        return Change(**plain | {"operation": Operation(lowered(operation))})  # what validation would give
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
    require_readable(value, text, place)


def changed(snapshot: Snapshot, changes: Iterable[Change], spellings: Spellings = NO_SPELLINGS) -> After:
    """A snapshot after changes; one that cannot be made is a problem, and the rest is done."""
    rows = [(_key(resource), resource) for resource in snapshot.resources]
    done = made_of(changes, held_of(snapshot), snapshot, spellings=spellings)
    resources = [held for key, held in rows if key not in done.becomes]
    resources += [after.resource for after in done.becomes.values() if after.resource is not None]
    notes: dict[str, dict[str, object]] = {}
    for name, place in zip(Notes._fields, _NOTES, strict=True):
        kept = {key: note for key, note in getattr(snapshot, place).items() if folded_id(key) not in done.fresh}
        for after in done.becomes.values():
            if after.resource is not None and (note := getattr(after.notes, name)):
                kept[lowered(after.resource["id"])] = note
        notes[place] = kept
    held = {"resources": tuple(resources), **notes}
    return After(snapshot.model_copy(update=held), done.changed, done.problems)


class UnchangedResources(dict[str, JsonObject]):
    """Resources by their ids as `folded_id` gives them, of which none changes."""

    @cached_property
    def _ordered(self) -> Sequence[str]:
        return sorted(self)

    def below(self, key: str) -> Iterator[str]:
        """The ids that begin with an id and a slash."""
        prefix = f"{key}/"
        for other in islice(self._ordered, bisect_left(self._ordered, prefix), None):
            if not other.startswith(prefix):
                return
            yield other


def held_of(snapshot: Snapshot) -> UnchangedResources:
    """The resources of a snapshot by their ids as `folded_id` gives them; of two with one id the first."""
    return UnchangedResources(
        (key, held) for key, held in reversed([(_key(held), held) for held in snapshot.resources]) if key
    )


def made_of(
    changes: Iterable[Change],
    held: UnchangedResources,
    snapshot: Snapshot,
    onto: ChangedResources = NOTHING_MADE,
    spellings: Spellings = NO_SPELLINGS,
) -> ChangedResources:
    """Make changes, one after the other; a delete takes what lies under the resource with it, as ARM does.

    A resource that carries a template, such as a deployment, is followed by the changes of the template's resources.

    Args:
        changes: what is to be made.
        held: as `held_of` gives it.
        snapshot: what says more of what is held.
        onto: what earlier changes made of it; `becomes` and `fresh` are of those and these together.
        spellings: as for `changes_of`.
    """
    becomes, fresh = dict(onto.becomes), set(onto.fresh)
    touched, problems = set[str](), list[Problem]()
    waiting, contents = deque(changes), Contents()
    while waiting:
        change = waiting.popleft()
        key = folded_id(change.id)
        touched.add(key)
        now = becomes[key] if key in becomes else becomes_of(held.get(key), snapshot)
        resource = _resource(change, now.resource)
        if isinstance(resource, Problem):
            problems.append(resource)
            continue
        if resource is None:
            gone = _gone(key, change.id, held, becomes)
            if not gone:
                problems.append(_said("warning", "the snapshot does not hold what is deleted", change))
            becomes |= dict.fromkeys(gone, Becomes(None))
            fresh |= gone
        else:
            is_patched = change.operation is Operation.PATCH
            becomes[key] = Becomes(resource, _noted(now.notes if is_patched else Notes(), change))
            fresh |= set() if is_patched else {key}
        entries = carried(change, becomes.get(key, Becomes(None)), now.resource, (held, becomes), spellings, contents)
        waiting.extendleft(reversed([entry for entry in entries if isinstance(entry, Change)]))
        problems += (entry for entry in entries if isinstance(entry, Problem))
    becomes |= dict(_with_managed_networks(touched, becomes, held, snapshot))
    return ChangedResources(becomes, frozenset(touched), frozenset(fresh), tuple(problems))


def _with_managed_networks(
    touched: Collection[str], becomes: Mapping[str, Becomes], held: Mapping[str, JsonObject], snapshot: Snapshot
) -> Iterator[tuple[str, Becomes]]:
    """What workspaces become because of the managed networks that are resources of their own, by id.

    A managed network that changes replaces what its workspace states. One that stays counts for a workspace that is
    written anew and does not state its isolation mode.
    """
    parts: dict[str, list[str]] = {}
    for key in sorted(becomes):
        if workspace := workspace_of_part(key):
            parts.setdefault(workspace, []).append(key)
    for workspace in dict.fromkeys(workspace_of_part(key) or key for key in sorted(touched)):
        now = becomes[workspace] if workspace in becomes else becomes_of(held.get(workspace), snapshot)
        if now.resource is None or lowered(now.resource["type"]) != WORKSPACE_TYPE:
            continue
        changing = parts.get(workspace, [])
        default = managed_networks.default_network_of(workspace)
        if not changing and default in held and value_at(now.resource, managed_networks.ISOLATION_MODE) is None:
            changing = [default]
        if changing:
            after = {key: becomes[key] if key in becomes else becomes_of(held[key], snapshot) for key in changing}
            yield workspace, _with_managed_network(now, after)


def _with_managed_network(workspace: Becomes, parts: Mapping[str, Becomes]) -> Becomes:
    there = [NetworkPart(part.resource, part.notes.unreadable) for part in parts.values() if part.resource is not None]
    found = managed_networks.with_parts(workspace.resource or {}, workspace.notes.unreadable, there)
    deleted = {managed_networks.place_of(key): _DELETED for key, part in parts.items() if part.resource is None}
    return Becomes(found.resource, workspace.notes._replace(unreadable={**found.unreadable, **deleted}))


def _gone(key: str, arm_id: str, held: UnchangedResources, becomes: Mapping[str, Becomes]) -> set[str]:
    """What a delete takes away of what is there: the resource, and what lies under it."""
    changed = (other for other in becomes if other.startswith(f"{key}/"))
    near = {other for other in (*held.below(key), *changed) if is_at_or_under(other, arm_id)}
    near |= {key} if key in held or key in becomes else set()
    return {other for other in near if other not in becomes or becomes[other].resource is not None}


def becomes_of(resource: JsonObject | None, snapshot: Snapshot) -> Becomes:
    """A resource as a snapshot has it, with what is said of it beside."""
    return Becomes(resource, Notes() if resource is None else Notes.of(snapshot, lowered(resource["id"])))


def _key(resource: JsonObject) -> str:
    """The id to compare with; empty for what has none, and is told of when it is judged."""
    identity = resource.get("id")
    return folded_id(identity) if isinstance(identity, str) else ""


def _noted(notes: Notes, change: Change) -> Notes:
    """With what the new resource does not say, and where it was read."""
    origin = notes.origin if change.operation is Operation.PATCH else change.origin or notes.origin
    return Notes(change.unreadable or notes.unreadable, change.carried or notes.carried, origin)


def _resource(change: Change, before: JsonObject | None) -> JsonObject | Problem | None:
    """The resource after a change; None when there is none then."""
    if fault := why_not(change):
        return _said("error", fault, change)
    if change.operation is not Operation.PATCH:
        return change.resource
    if before is None:
        return _said("error", "the snapshot does not hold what is patched; give the whole resource", change)
    after: JsonObject = merged(before, aligned(change.patch, before))
    for key in ("id", "type"):
        if lowered(str(after.get(key))) != lowered(str(before[key])):
            return _said("error", f"a patch cannot change the `{key}` of a resource; leave it out", change)
    return after


def _said(level: Literal["error", "warning"], message: str, change: Change) -> Problem:
    return Problem(level=level, message=message, place=change.id)
