"""Normalize changes as ARM reads them: ids are URLs, and names of members have no case."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import groupby, islice
from typing import Literal, NamedTuple

from policyeng.errors import InputError
from policyeng.evaluation.prepared_snapshot import Becomes, Notes
from policyeng.facts import managed_networks
from policyeng.facts.arm_casing import NO_SPELLINGS, REMOVE_ONE, Spellings, as_arm_reads, describe_duplicate
from policyeng.facts.ids import fold_id, is_at_or_under, types_of
from policyeng.facts.managed_networks import NetworkPart, workspace_of_part
from policyeng.models import WORKSPACE_TYPE, Change, JsonObject, Operation, Origin, Problem, Snapshot, lowered
from policyeng.parsing.json_pointer import merged, value_at
from policyeng.parsing.json_text import require_readable, shortened
from policyeng.sources import ChangesRead, read_document
from policyeng.sources.arm_template import Contents
from policyeng.sources.discovery import name_document
from policyeng.sources.parsed import ParsedDocument, Placed, raise_errors
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
    return Problem(level=level, message=message, place=shortened(change.id, _LONGEST_PLACE))


#: What `policyeng.load_changes` returns, changes, a parsed document with changes in any format, or the id of a resource
#: to delete.
Changes = ChangesRead | Change | Mapping[str, object] | str | Sequence["Change | Mapping[str, object] | str"]

#: ids in a problem are shortened to this length.
_LONGEST_PLACE = 512

#: The members of a snapshot that correspond to the fields of `Notes`.
_NOTES = ("unreadable", "carried", "origins")

_PLACE = "change"
_DOCUMENT = "<change>"
_DELETED = "it is deleted as a separate resource, and the setting that then applies is unknown"
_REMEDY = "make changes with `policyeng.load_changes`"
_NOT_THERE = (
    "the state does not contain the resource to delete, so what its deletion affects is not known; "
    "add it to the state, or leave the deletion out"
)


class After(NamedTuple):
    """A snapshot after changes.

    Attributes:
        changed: lower-case ids that the changes name, deleted or not.
        problems: as in `ChangedResources`.
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
        problems: an error for every change that cannot be made, and warnings.
    """

    becomes: Mapping[str, Becomes]
    changed: frozenset[str]
    fresh: frozenset[str]
    problems: tuple[Problem, ...]


#: The effect of no changes.
NOTHING_MADE = ChangedResources({}, frozenset(), frozenset(), ())


def changes_of(changes: Changes, spellings: Spellings = NO_SPELLINGS) -> tuple[Change, ...]:
    """Read changes that were made already completely or fail; see `prepare_changes`. An empty list is none.

    Raises:
        InputError: something is not a change; the error has its position and a remedy.
    """
    if isinstance(changes, list | tuple) and not changes:
        return ()
    read = prepare_changes(changes, spellings)
    raise_errors(read.problems)
    return read.changes


def prepare_changes(changes: Changes, spellings: Spellings) -> ChangesRead:
    """Return changes as ARM reads them, with the problems of reading them.

    Member names in their resources and patches are normalized, because ARM ignores their case.

    Args:
        changes: what was read, `Change` objects, a document with changes, or the id of a resource to delete.
        spellings: the names that policies read, as in `Bundle.spellings`.

    Raises:
        InputError: nothing is a change, or a change is not well formed; the error has its position and a remedy.
    """
    read = _read(changes)
    if len(read) == 1:
        change = as_arm_reads_it(read.changes[0], _PLACE, spellings)
        return read if change is read.changes[0] else replace(read, changes=(change,))
    spelled = tuple(
        as_arm_reads_it(change, f"{_PLACE} {number}", spellings) for number, change in enumerate(read.changes, 1)
    )
    return replace(read, changes=spelled)


def _read(changes: Changes) -> ChangesRead:
    """Read what is not a `Change` yet; the order stays."""
    if isinstance(changes, ChangesRead):
        return changes
    listed = [changes] if isinstance(changes, Change) else changes
    if not isinstance(listed, list | tuple) or not any(isinstance(entry, Change) for entry in listed):
        return read_document(listed, _DOCUMENT)
    found = ChangesRead(())
    for is_change, entries in groupby(listed, key=lambda entry: isinstance(entry, Change)):
        if is_change:
            checked = [
                _check_change(change, f"{_PLACE} {number}") for number, change in enumerate(entries, len(found) + 1)
            ]
            found = replace(found, changes=(*found.changes, *checked))
        else:
            read = read_document([*entries], _DOCUMENT)
            found = ChangesRead((*found.changes, *read.changes), (*found.problems, *read.problems))
    return found


def _check_change(change: Change, place: str) -> Change:
    """Return a change that a program made.

    Raises:
        InputError: its resource or patch is not one of its operation.
    """
    if change.operation in _PUTS:
        _require_resource(change.resource, place)
        _require_same(change.id, change.resource or {}, place)
        _require_json(change.resource, place)
    elif change.operation is Operation.PATCH:
        if not isinstance(change.patch, dict):
            raise InputError("a patch of a resource is a JSON object", place=(place, "/patch"), remedy=_REMEDY)
        _require_json(change.patch, place)
    return change


def _require_resource(resource: object, place: str) -> None:
    if not isinstance(resource, Mapping):
        raise InputError("the resource is not an object", place=(place, "/resource"), remedy=_REMEDY)
    for key in ("id", "type"):
        value = resource.get(key)
        if not (isinstance(value, str) and value):
            raise InputError(f"the resource has no string `{key}`", place=(place,), remedy=_REMEDY)


def _require_same(identity: str, resource: JsonObject, place: str) -> None:
    if fold_id(identity) != fold_id(resource["id"]):
        ids = f"`{shortened(identity)}`, but the id of its resource is `{shortened(resource['id'])}`"
        raise InputError(f"the id of the change is {ids}", place=(place, "/id"), remedy="use the same id in both")


def _require_json(value: object, place: str) -> None:
    content = name_document(value, place).content or b""
    require_readable(value, content, place)


def apply_changes(snapshot: Snapshot, changes: Iterable[Change], spellings: Spellings = NO_SPELLINGS) -> After:
    """Return a snapshot after changes; a change that cannot be made is a problem, and the others are made."""
    done = apply_in_order(changes, index_resources(snapshot), snapshot, spellings=spellings)
    return After(make_snapshot(snapshot, done), done.changed, done.problems)


def make_snapshot(snapshot: Snapshot, done: ChangedResources) -> Snapshot:
    """Return a snapshot after the effect of changes on its resources."""
    rows = [(_key(resource), resource) for resource in snapshot.resources]
    resources = [resource for key, resource in rows if key not in done.becomes]
    resources += [after.resource for after in done.becomes.values() if after.resource is not None]
    notes: dict[str, dict[str, object]] = {}
    for name, place in zip(Notes._fields, _NOTES, strict=True):
        kept = {key: note for key, note in getattr(snapshot, place).items() if fold_id(key) not in done.fresh}
        for after in done.becomes.values():
            if after.resource is not None and (note := getattr(after.notes, name)):
                kept[lowered(after.resource["id"])] = note
        notes[place] = kept
    return snapshot.model_copy(update={"resources": tuple(resources), **notes})


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


def apply_earlier(
    remembered: Iterable[Change],
    before: Iterable[Change],
    existing: UnchangedResources,
    snapshot: Snapshot,
    spellings: Spellings,
) -> ChangedResources:
    """Apply changes that were made already; the problems are those of the changes `before`.

    Args:
        remembered: changes that others made; one that cannot be made any more has no effect and is no problem.
        before: changes that were made after them.
        existing: as for `apply_in_order`.
        snapshot: as for `apply_in_order`.
        spellings: as for `changes_of`.
    """
    made = apply_in_order(remembered, existing, snapshot, spellings=spellings, is_earlier=True)
    return apply_in_order(before, existing, snapshot, made, spellings, is_earlier=True)


def apply_in_order(
    changes: Iterable[Change],
    existing: UnchangedResources,
    snapshot: Snapshot,
    onto: ChangedResources = NOTHING_MADE,
    spellings: Spellings = NO_SPELLINGS,
    *,
    is_earlier: bool = False,
) -> ChangedResources:
    """Apply changes one after the other; like ARM, a delete also deletes the children of a resource.

    After a resource with a template, such as a deployment, the changes of the template's resources are applied.

    Args:
        changes: the changes.
        existing: the result of `index_resources`.
        snapshot: the snapshot, for notes about its resources.
        onto: the effect of earlier changes, which is included in `becomes` and `fresh` of the result.
        spellings: as for `changes_of`.
        is_earlier: the changes were made already, so that one that deletes what is not there is no problem.
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
            if not (gone or is_earlier or key in becomes):  # an earlier change deleted it
                problems.append(_problem("error", _NOT_THERE, change))
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
