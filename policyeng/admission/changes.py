"""Normalize changes as ARM reads them: ids are URLs, and names of members have no case."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, Literal, NamedTuple

import orjson
from pydantic import ValidationError

from policyeng.errors import InputError, suggest_nearest
from policyeng.evaluation.prepared_snapshot import Becomes, Notes
from policyeng.facts import managed_networks
from policyeng.facts.arm_casing import NO_SPELLINGS, REMOVE_ONE, Spellings, as_arm_reads, describe_duplicate
from policyeng.facts.ids import fold_id, is_at_or_under, types_of
from policyeng.facts.managed_networks import NetworkPart, workspace_of_part
from policyeng.models import WORKSPACE_TYPE, Change, JsonObject, Operation, Origin, Problem, Snapshot, lowered
from policyeng.parsing.json_pointer import merged, value_at
from policyeng.parsing.json_text import require_readable, shortened
from policyeng.sources.arm_template import Contents
from policyeng.sources.parsed import ParsedDocument, Placed
from policyeng.sources.templates import APPLICATION, DEPLOYMENT, STACK, carrier_of, member

_PUTS = (Operation.CREATE, Operation.REPLACE)
#: Parts that change the meaning of an id in a URL or when white space is removed: the end of the path, dot segments,
#: escapes of unreserved characters (RFC 3986, 2.3) or of a slash, and spaces around a name.
_MISLEADING = re.compile(
    r"[?#\\]|(?:^|/)\.\.?(?:/|$)|%(?:2[DEFdef]|3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa]|5[CFcf]|7[Ee])|(?:^|/)\s|\s(?:/|$)"
)
_TYPE = re.compile(r"[a-z0-9._-]+(?:/[a-z0-9._-]+)+")


def as_arm_reads_it(change: Change, place: str, spellings: Spellings) -> Change:
    """Return a change with member names as ARM spells them, and without a slash at the end of its id.

    Args:
        change: a change with a well-formed resource or patch.
        place: the place of the change, for messages.
        spellings: as for `changes_of`.

    Raises:
        InputError: an object has a duplicate member.
    """
    is_put = change.operation in _PUTS
    if change.id.endswith("/"):
        change = change.model_copy(update={"id": change.id.removesuffix("/")})
    written = change.resource if is_put else change.patch
    if is_put and written is not None and written["id"].endswith("/"):
        written = {**written, "id": written["id"].removesuffix("/")}
        change = change.model_copy(update={"resource": written})
    if not isinstance(written, dict):
        return change
    arm_type = lowered(written["type"]) if is_put else next(iter(types_of(change.id)), "")
    spelled = as_arm_reads(written, arm_type, spellings)
    if spelled.twice and not as_arm_reads(written, arm_type).twice:  # otherwise reported when the change is made
        raise InputError(describe_duplicate(spelled.twice), place=(place, spelled.twice[1]), remedy=REMOVE_ONE)
    if spelled.part is written:
        return change
    origin = change.origin
    if origin is not None:
        below = {pointer: origin.pointer + there for pointer, there in spelled.fields.items()}
        origin = origin.model_copy(update={"fields": {**below, **origin.fields}})
    return change.model_copy(update={"resource" if is_put else "patch": spelled.part, "origin": origin})


def why_not(change: Change) -> str:
    """Return why it is unclear which resource a change affects; empty if it is clear.

    If an id has another meaning as a URL, or if the type does not match the id, the wrong policies or none would be
    evaluated.
    """
    types = types_of(change.id.removesuffix("/"))
    if _MISLEADING.search(change.id):
        return "the id has another meaning as a URL; write it as ARM returns it"
    if types and not _TYPE.fullmatch(types[0]):
        return "the id does not contain a resource type; write it as ARM returns it"
    written = change.patch if change.resource is None else change.resource
    if isinstance(written, dict) and (twice := as_arm_reads(written, types[0] if types else "").twice):
        return f"{twice[1]}: {describe_duplicate(twice)}; {REMOVE_ONE}"
    if change.resource is None:
        return ""
    if not types:
        return "the id is not the full ARM id of a resource; write it as ARM returns it"
    if lowered(change.resource["type"]) not in types:
        stated = shortened(change.resource["type"])
        return f"the id is of type `{shortened(types[0])}`, but `type` is `{stated}`; correct one of them"
    return ""


def aligned(patch: object, before: object) -> object:
    """Return a patch with the existing spellings of member names, because ARM changes the existing members."""
    if not (isinstance(patch, dict) and isinstance(before, dict)):
        return patch
    there = {lowered(name): name for name in before}
    names = {name: name if name in before else there.get(lowered(name), name) for name in patch}
    return {names[name]: aligned(value, before.get(names[name])) for name, value in patch.items()}


#: Types whose deletion can also delete the resources that they deployed.
_MANAGING = (STACK, APPLICATION)

#: Prefixes of the types that complete mode does not delete.
_STAYS = ("microsoft.authorization/", "microsoft.consumption/", f"{DEPLOYMENT}/")

#: The resources of a snapshot, and their later states after changes, by id as `folded_id` returns it.
State = tuple[Mapping[str, JsonObject], Mapping[str, Becomes]]


def expand_template_changes(
    change: Change, now: Becomes, was: JsonObject | None, state: State, spellings: Spellings, contents: Contents
) -> list[Change | Problem]:
    """Return the changes that the template of a changed resource makes, and problems if some are unknown.

    Args:
        change: a change of any resource; one without a template makes no other changes.
        now: the resource after the change.
        was: the resource before it.
        state: the state before the template is deployed.
        spellings: as for `changes_of`.
        contents: the reader of templates for all changes.
    """
    resource = now.resource or was
    if resource is None or carrier_of(resource["type"], resource) is None:
        return []
    arm_type = lowered(resource["type"])
    if now.resource is None:
        message = "deleting it can delete the resources that it manages, which are evaluated as if they remain"
        return [_problem("warning", message, change)] if arm_type in _MANAGING else []
    if change.operation is Operation.PATCH and member(change.patch, "properties") is None:
        return []
    reading = contents.read(now.resource, now.notes.unreadable)
    found: list[Change | Problem] = [
        _problem("error", f"{refusal.message}; {refusal.remedy}".removesuffix("; "), change)
        for refusal in reading.refusals
    ]
    found += _find_deletions(change, now, was, reading, state)
    for placed in reading.resources:
        try:
            found.append(as_arm_reads_it(_to_change(placed, now.notes.origin), placed.resource["id"], spellings))
        except InputError as error:
            found.append(_problem("error", str(error), change))
    return found


def _to_change(placed: Placed, origin: Origin | None) -> Change:
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


def _find_deletions(
    change: Change, now: Becomes, was: JsonObject | None, reading: ParsedDocument, state: State
) -> Iterator[Change | Problem]:
    """Yield the deletions by a deployment in complete mode, or by a stack that deletes unmanaged resources."""
    resource = now.resource or {}
    arm_type, properties = lowered(resource["type"]), member(resource, "properties")
    existing, becomes = state
    there = {**existing, **{key: after.resource for key, after in becomes.items()}}
    if arm_type == DEPLOYMENT and "/properties/mode" in map(lowered, now.notes.unreadable):
        yield _problem("error", "the mode of the deployment is unknown, and so is what it deletes", change)
    elif arm_type == DEPLOYMENT and lowered(str(member(properties, "mode"))) == "complete":
        group = change.id[: lowered(change.id).rfind("/providers/")]
        if reading.refusals or any("/id" in placed.unreadable for placed in reading.resources):
            message = "mode `Complete` deletes resources that the template does not name, and some names are unknown"
            yield _problem("error", message, change)
        else:
            yield from _delete_unnamed(_below(fold_id(group), there), reading, there)
    elif arm_type == STACK and "delete" in _unmanaged(properties):
        managed = member(member(was, "properties"), "resources")
        if not isinstance(managed, list):
            message = "the stack deletes resources that its template no longer has; the snapshot does not list them"
            yield _problem("warning", message, change)
        else:
            ids = (member(one, "id") for one in managed)
            yield from _delete_unnamed((fold_id(one) for one in ids if isinstance(one, str)), reading, there)


def _unmanaged(properties: object) -> list[str]:
    """Return what a stack does with resources, groups and management groups that it no longer manages."""
    actions = member(properties, "actionOnUnmanage")
    return [lowered(str(action)) for action in actions.values()] if isinstance(actions, Mapping) else []


def _below(group: str, there: Mapping[str, JsonObject | None]) -> Iterator[str]:
    """Yield the ids that complete mode deletes: resources directly in a resource group, not their children."""
    for key, resource in there.items():
        rest = key.removeprefix(f"{group}/providers/")
        if resource is not None and key != rest and rest.count("/") == 2 and not rest.startswith(_STAYS):
            yield key


def _delete_unnamed(
    keys: Iterable[str], reading: ParsedDocument, there: Mapping[str, JsonObject | None]
) -> Iterator[Change]:
    named = {fold_id(placed.resource["id"]) for placed in reading.resources}
    for key in keys:
        resource = there.get(key)
        if resource is not None and key not in named:
            yield Change(operation=Operation.DELETE, id=resource["id"])


def _problem(level: Literal["error", "warning"], message: str, change: Change) -> Problem:
    return Problem(level=level, message=message, place=change.id)


#: Accepted forms: changes, resources to create or replace, or ids to delete; one of them or several.
Changes = Change | Mapping[str, object] | str | Sequence["Change | Mapping[str, object] | str"]

#: The members of a snapshot that correspond to the fields of `Notes`.
_NOTES = ("unreadable", "carried", "origins")

_PLACE = "change"
_DELETED = "it is deleted as a separate resource, and the setting that then applies is unknown"
_REMEDY = 'give a resource with `id` and `type`, an id to delete, or `{"operation": ..., "id": ..., ...}`'


class After(NamedTuple):
    """A snapshot after changes.

    Attributes:
        changed: lower-case ids that the changes name, deleted or not.
        problems: an error for every change that cannot be made, and a warning for one without effect.
    """

    snapshot: Snapshot
    changed: frozenset[str]
    problems: tuple[Problem, ...]


class ChangedResources(NamedTuple):
    """The effect of changes on the resources of a snapshot; ids are as `folded_id` returns them.

    Attributes:
        becomes: the later state of each resource that changes, comes or goes.
        changed: the ids that the changes name.
        fresh: the ids that are replaced or deleted, so that their earlier notes no longer apply.
        problems: as in `After`.
    """

    becomes: Mapping[str, Becomes]
    changed: frozenset[str]
    fresh: frozenset[str]
    problems: tuple[Problem, ...]


#: The effect of no changes.
NOTHING_MADE = ChangedResources({}, frozenset(), frozenset(), ())


def changes_of(given: Changes, spellings: Spellings = NO_SPELLINGS) -> tuple[Change, ...]:
    """Parse changes from a program or a document.

    Member names in their resources and patches are normalized, because ARM ignores their case.

    Args:
        given: a change, or several.
        spellings: the names that policies read, as in `Bundle.spellings`.

    Raises:
        InputError: a change is not well formed; the error has its position and a remedy.
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
        raise InputError("this is not a change", place=(place,), remedy=_REMEDY)
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
        meant = suggest_nearest(str(operation), known)
        remedy = "the operations are " + ", ".join(f"`{name}`" for name in known)
        raise InputError(f"there is no operation `{operation}`{meant}", place=(place, "/operation"), remedy=remedy)
    written = {"create": "resource", "replace": "resource", "patch": "patch"}
    described = {"operation", "id", written.get(lowered(operation), "id")}
    if surplus := sorted(set(given) - described - {"unreadable", "carried"}):
        message = f"a {lowered(operation)} has no `{surplus[0]}`{suggest_nearest(surplus[0], described)}"
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
        return Change(**plain | {"operation": Operation(lowered(operation))})  # the same as validation returns
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
    if fold_id(identity) != fold_id(resource["id"]):
        message = f"the id of the change is `{identity}`, but the id of its resource is `{resource['id']}`"
        raise InputError(message, place=(place, "/id"), remedy="use the same id in both, or omit `id`")


def _require_json(value: object, place: str) -> None:
    try:
        text = orjson.dumps(value)
    except TypeError as error:
        raise InputError(f"the change is not JSON ({error})", place=(place,), remedy="use JSON values") from None
    require_readable(value, text, place)


def apply_changes(snapshot: Snapshot, changes: Iterable[Change], spellings: Spellings = NO_SPELLINGS) -> After:
    """Return a snapshot after changes; a change that cannot be made is a problem, and the others are made."""
    rows = [(_key(resource), resource) for resource in snapshot.resources]
    done = apply_in_order(changes, index_resources(snapshot), snapshot, spellings=spellings)
    resources = [resource for key, resource in rows if key not in done.becomes]
    resources += [after.resource for after in done.becomes.values() if after.resource is not None]
    notes: dict[str, dict[str, object]] = {}
    for name, place in zip(Notes._fields, _NOTES, strict=True):
        kept = {key: note for key, note in getattr(snapshot, place).items() if fold_id(key) not in done.fresh}
        for after in done.becomes.values():
            if after.resource is not None and (note := getattr(after.notes, name)):
                kept[lowered(after.resource["id"])] = note
        notes[place] = kept
    updates = {"resources": tuple(resources), **notes}
    return After(snapshot.model_copy(update=updates), done.changed, done.problems)


class UnchangedResources(dict[str, JsonObject]):
    """Resources that do not change, by id as `folded_id` returns it."""

    @cached_property
    def _ordered(self) -> Sequence[str]:
        return sorted(self)

    def below(self, key: str) -> Iterator[str]:
        """Yield the ids that begin with an id and a slash."""
        prefix = f"{key}/"
        for other in islice(self._ordered, bisect_left(self._ordered, prefix), None):
            if not other.startswith(prefix):
                return
            yield other


def index_resources(snapshot: Snapshot) -> UnchangedResources:
    """Return the resources of a snapshot by id as `folded_id` returns it; the first of two with the same id."""
    return UnchangedResources(
        (key, resource)
        for key, resource in reversed([(_key(resource), resource) for resource in snapshot.resources])
        if key
    )


def apply_in_order(
    changes: Iterable[Change],
    existing: UnchangedResources,
    snapshot: Snapshot,
    onto: ChangedResources = NOTHING_MADE,
    spellings: Spellings = NO_SPELLINGS,
) -> ChangedResources:
    """Apply changes one after the other; like ARM, a delete also deletes the children of a resource.

    After a resource with a template, such as a deployment, the changes of the template's resources are applied.

    Args:
        changes: the changes.
        existing: the result of `index_resources`.
        snapshot: the snapshot, for notes about its resources.
        onto: the effect of earlier changes, which is included in `becomes` and `fresh` of the result.
        spellings: as for `changes_of`.
    """
    becomes, fresh = dict(onto.becomes), set(onto.fresh)
    touched, problems = set[str](), list[Problem]()
    waiting, contents = deque(changes), Contents()
    while waiting:
        change = waiting.popleft()
        key = fold_id(change.id)
        touched.add(key)
        now = becomes[key] if key in becomes else becomes_of(existing.get(key), snapshot)
        resource = _resource(change, now.resource)
        if isinstance(resource, Problem):
            problems.append(resource)
            continue
        if resource is None:
            gone = _deleted_ids(key, change.id, existing, becomes)
            if not gone:
                problems.append(_problem("warning", "the snapshot does not contain the deleted resource", change))
            becomes |= dict.fromkeys(gone, Becomes(None))
            fresh |= gone
        else:
            is_patched = change.operation is Operation.PATCH
            becomes[key] = Becomes(resource, _notes_after(now.notes if is_patched else Notes(), change))
            fresh |= set() if is_patched else {key}
        entries = expand_template_changes(
            change, becomes.get(key, Becomes(None)), now.resource, (existing, becomes), spellings, contents
        )
        waiting.extendleft(reversed([entry for entry in entries if isinstance(entry, Change)]))
        problems += (entry for entry in entries if isinstance(entry, Problem))
    becomes |= dict(_with_managed_networks(touched, becomes, existing, snapshot))
    return ChangedResources(becomes, frozenset(touched), frozenset(fresh), tuple(problems))


def _with_managed_networks(
    touched: Collection[str], becomes: Mapping[str, Becomes], existing: Mapping[str, JsonObject], snapshot: Snapshot
) -> Iterator[tuple[str, Becomes]]:
    """Yield the later states of workspaces whose managed networks are separate resources, by id.

    A managed network that changes overrides the settings of its workspace. One that does not change applies if the
    workspace is written again without an isolation mode.
    """
    parts: dict[str, list[str]] = {}
    for key in sorted(becomes):
        if workspace := workspace_of_part(key):
            parts.setdefault(workspace, []).append(key)
    for workspace in dict.fromkeys(workspace_of_part(key) or key for key in sorted(touched)):
        now = becomes[workspace] if workspace in becomes else becomes_of(existing.get(workspace), snapshot)
        if now.resource is None or lowered(now.resource["type"]) != WORKSPACE_TYPE:
            continue
        changing = parts.get(workspace, [])
        default = managed_networks.default_network_of(workspace)
        if not changing and default in existing and value_at(now.resource, managed_networks.ISOLATION_MODE) is None:
            changing = [default]
        if changing:
            after = {key: becomes[key] if key in becomes else becomes_of(existing[key], snapshot) for key in changing}
            yield workspace, _with_managed_network(now, after)


def _with_managed_network(workspace: Becomes, parts: Mapping[str, Becomes]) -> Becomes:
    there = [NetworkPart(part.resource, part.notes.unreadable) for part in parts.values() if part.resource is not None]
    found = managed_networks.with_parts(workspace.resource or {}, workspace.notes.unreadable, there)
    deleted = {managed_networks.place_of(key): _DELETED for key, part in parts.items() if part.resource is None}
    return Becomes(found.resource, workspace.notes._replace(unreadable={**found.unreadable, **deleted}))


def _deleted_ids(key: str, arm_id: str, existing: UnchangedResources, becomes: Mapping[str, Becomes]) -> set[str]:
    """Return the existing ids that a delete removes: the resource and its children."""
    changed = (other for other in becomes if other.startswith(f"{key}/"))
    near = {other for other in (*existing.below(key), *changed) if is_at_or_under(other, arm_id)}
    near |= {key} if key in existing or key in becomes else set()
    return {other for other in near if other not in becomes or becomes[other].resource is not None}


def becomes_of(resource: JsonObject | None, snapshot: Snapshot) -> Becomes:
    """Return the state of a resource in a snapshot, with its notes."""
    return Becomes(resource, Notes() if resource is None else Notes.of(snapshot, lowered(resource["id"])))


def _key(resource: JsonObject) -> str:
    """Return the id for comparisons; empty if there is none, which is reported by the evaluation."""
    identity = resource.get("id")
    return fold_id(identity) if isinstance(identity, str) else ""


def _notes_after(notes: Notes, change: Change) -> Notes:
    """Return the notes of a resource after a change."""
    origin = notes.origin if change.operation is Operation.PATCH else change.origin or notes.origin
    return Notes(change.unreadable or notes.unreadable, change.carried or notes.carried, origin)


def _resource(change: Change, before: JsonObject | None) -> JsonObject | Problem | None:
    """Return the resource after a change, None if it is deleted, or the reason why the change cannot be made."""
    if fault := why_not(change):
        return _problem("error", fault, change)
    if change.operation is not Operation.PATCH:
        return change.resource
    if before is None:
        return _problem(
            "error", "the snapshot does not contain the patched resource; give the complete resource", change
        )
    after: JsonObject = merged(before, aligned(change.patch, before))
    for key in ("id", "type"):
        if lowered(str(after.get(key))) != lowered(str(before[key])):
            return _problem("error", f"a patch cannot change the `{key}` of a resource; leave it out", change)
    return after
