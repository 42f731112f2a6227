"""Merging of documents into one snapshot without duplicate resources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TypeVar, get_args

from msgspec.structs import replace

from policyeng.facts import managed_networks
from policyeng.facts.ids import fold_id, may_hold, name_of
from policyeng.facts.managed_networks import NetworkPart, workspace_of_part
from policyeng.models import WORKSPACE_TYPE, Problem, Snapshot, lowered
from policyeng.parsing.json_pointer import value_at
from policyeng.sources.arm_resource import drop_additions
from policyeng.sources.parsed import Collection, Loaded, Noun, ParsedDocument, Placed, Stated
from policyeng.sources.private_endpoints import add_connections


def separate_ids(documents: Sequence[Loaded]) -> list[Loaded]:
    """Return the documents, with new ids for resources whose `movable` ids other resources already have.

    The same resource in two files remains one. Documents of one file with the same beginning of ids move together.
    """
    if not any(document.reading.movable for document in documents):
        return list(documents)
    taken: dict[str, object] = {}
    apart: list[Loaded] = []
    for file, of_file in groupby(documents, lambda document: document.file):
        together = list(of_file)
        every = [_widen_movable(document.reading, taken) for document in together]
        moving = {reading.movable for reading in every if _contradicts(reading, taken)}
        for document in together:
            reading = _widen_movable(document.reading, taken)
            if reading.movable in moving:
                reading = _move_ids(reading, file)
            if _contradicts(reading, taken):  # another document of the same file
                reading = _move_ids(reading, file)
            for placed in reading.resources:
                taken.setdefault(lowered(placed.resource["id"]), placed.resource)
            apart.append(document._replace(reading=reading))
    return apart


def _widen_movable(reading: ParsedDocument, taken: Mapping[str, object]) -> ParsedDocument:
    """Make the complete unknown subscription movable if only that resolves a contradiction."""
    subscription = reading.movable.partition("/resourceGroups/")[0]
    wider = replace(reading, movable=subscription)
    contradicts = "{" in subscription and not _contradicts(reading, taken) and _contradicts(wider, taken)
    return wider if contradicts else reading


def _contradicts(reading: ParsedDocument, taken: Mapping[str, object]) -> bool:
    """Check whether other resources already have ids that a document does not state itself."""
    return bool(reading.movable) and any(
        taken.get(lowered(placed.resource["id"]), placed.resource) != placed.resource
        for placed in reading.resources
        if _is_below(placed.resource["id"], reading.movable)
    )


def _move_ids(reading: ParsedDocument, file: str) -> ParsedDocument:
    """Replace the beginning of the movable ids by one that names the file."""
    target = f"{reading.movable.rstrip('}')}@{file.replace('/', '~')}" + "}" * reading.movable.endswith("}")
    resources = tuple(
        placed._replace(
            resource={key: _replace_prefix(value, reading.movable, target) for key, value in placed.resource.items()}
        )
        for placed in reading.resources
    )
    return replace(reading, resources=resources, movable=target)


def _replace_prefix(value: object, old: str, new: str) -> object:
    """Replace `old` by `new` in every id below `old` anywhere in a value."""
    if isinstance(value, dict):
        return {key: _replace_prefix(inner, old, new) for key, inner in value.items()}
    if isinstance(value, list):
        return [_replace_prefix(inner, old, new) for inner in value]
    return new + value[len(old) :] if isinstance(value, str) and _is_below(value, old) else value


def _is_below(identity: str, scope: str) -> bool:
    return f"{lowered(identity)}/".startswith(f"{lowered(scope)}/")


_Entry = TypeVar("_Entry", Placed, Stated)

_COLLECTIONS: tuple[Collection, ...] = get_args(Collection)


def joined(documents: Sequence[Loaded]) -> tuple[Snapshot, tuple[Problem, ...]]:
    """Merge all documents into one snapshot, in their order.

    Two different entries with the same id are an error with both places, and the first one is used. The same entry in
    two files is used once, with a warning. Ids that documents do not state themselves are changed if they collide.
    Different scopes are listed; `taken_at` is the earliest.
    """
    documents = separate_ids(documents)
    resources, problems = _remove_duplicates(
        entry for document in documents for entry in document.locate(document.reading.resources)
    )
    resources = add_connections(_merge_managed_networks(resources))
    origins = {key: entry.origin for key, entry in resources.items()}
    nouns: dict[str, tuple[Noun, ...]] = {}
    stated_ones = {stated.collection for document in documents for stated in document.reading.stated}
    for collection in (name for name in _COLLECTIONS if name in stated_ones):
        entries, more = _remove_duplicates(
            entry
            for document in documents
            for entry in document.locate([part for part in document.reading.stated if part.collection == collection])
        )
        nouns[collection] = tuple(entry.noun for entry in entries.values())
        problems += more
        if collection in ("approvals", "workloads"):
            origins = {key: entry.origin for key, entry in entries.items()} | origins
    readings = [document.reading for document in documents]
    # Every part was validated on reading.
    snapshot = Snapshot(
        scope=", ".join(dict.fromkeys(reading.scope for reading in readings if reading.scope)),
        taken_at=min((reading.taken_at for reading in readings if reading.taken_at), default=None),
        resources=tuple(entry.resource for entry in resources.values()),
        incomplete=tuple(dict.fromkeys(line for document in documents for line in _incomplete(document))),
        covers=tuple(sorted({entry for reading in readings for entry in reading.covers})),
        unreadable={
            key: lost for key, entry in resources.items() if (lost := drop_additions(entry.resource, entry.unreadable))
        },
        carried={key: entry.carried for key, entry in resources.items() if entry.carried},
        origins=origins,
        texts={file: text for document in documents for file, text in document.texts().items()},
    ).model_copy(update=nouns)
    return snapshot, tuple(problems)


def _incomplete(document: Loaded) -> Iterator[str]:
    yield from document.reading.incomplete
    if document.reading.truncated:
        yield f"{document.file}: {document.reading.truncated}"


def _merge_managed_networks(entries: dict[str, Placed]) -> dict[str, Placed]:
    """Add managed networks that are separate resources to their workspaces.

    If both state different isolation modes, the isolation mode is unreadable. If the workspace of a managed network is
    not known, the network settings of all workspaces in the file that it may belong to are unreadable, unless exactly
    one of them has its name.
    """
    parts = {key: entry for key, entry in entries.items() if workspace_of_part(key)}
    if not parts:
        return entries
    workspaces = {
        fold_id(key): entry for key, entry in entries.items() if lowered(entry.resource["type"]) == WORKSPACE_TYPE
    }
    by_workspace: dict[str, list[Placed]] = {}
    lost: dict[str, str] = {}
    for part_key, part in parts.items():
        home = workspace_of_part(part_key)
        near = [key for key, entry in workspaces.items() if entry.origin.file == part.origin.file]
        possible = [home] if home in workspaces else [key for key in near if may_hold(key, home)]
        if len(possible) == 1 and name_of(possible[0]) == name_of(home):
            by_workspace.setdefault(possible[0], []).append(part)
        else:
            reason = f"it is not known whether `{part.resource['id']}` belongs to it"
            lost |= dict.fromkeys(possible, reason)
    joined_ones = {key: _merge_parts(workspaces[key], several) for key, several in by_workspace.items()}
    return {
        key: _mark_unreadable(joined_ones.get(fold_id(key), entry), lost.get(fold_id(key)))
        for key, entry in entries.items()
    }


def _mark_unreadable(workspace: Placed, reason: str | None) -> Placed:
    if reason is None:
        return workspace
    return workspace._replace(unreadable={**workspace.unreadable, managed_networks.SETTINGS: reason})


def _merge_parts(workspace: Placed, parts: Sequence[Placed]) -> Placed:
    # An outbound rule comes after the network that it belongs to.
    parts = sorted(parts, key=lambda part: part.resource["id"].count("/"))
    found = managed_networks.with_parts(
        workspace.resource,
        workspace.unreadable,
        [NetworkPart(part.resource, _list_unreadable(part)) for part in parts],
    )
    unreadable = dict(found.unreadable)
    for part in parts:
        if managed_networks.differs(workspace.resource, part.resource):
            reason = f"the workspace and `{part.resource['id']}` have different isolation modes"
            unreadable[managed_networks.ISOLATION_MODE] = reason
    origins = {part.resource["id"]: part.origin for part in parts}
    fields = {
        pointer: origins[arm_id].pointer_to(inner)
        for pointer, (arm_id, inner) in found.fields.items()
        if origins[arm_id].file == workspace.origin.file
    }
    return workspace._replace(
        resource=found.resource,
        unreadable=unreadable,
        origin=workspace.origin.model_copy(update={"fields": {**workspace.origin.fields, **fields}}),
    )


def _list_unreadable(part: Placed) -> Mapping[str, str]:
    """Return what is unreadable of a managed network, including what its format cannot express."""
    if part.carried is None or value_at(part.resource, managed_networks.ISOLATION_MODE) is not None:
        return part.unreadable
    return {managed_networks.ISOLATION_MODE: part.carried.reason, **part.unreadable}


def _remove_duplicates(entries: Iterable[_Entry]) -> tuple[dict[str, _Entry], list[Problem]]:
    """Return the first entry with each key, and the problems about the others."""
    first_entries: dict[str, _Entry] = {}
    problems: list[Problem] = []
    repeated: Counter[tuple[str, str]] = Counter()
    for entry in entries:
        first = first_entries.setdefault(entry.key(), entry)
        if first is entry:
            continue
        if first.content() == entry.content() and first.file != entry.file:
            repeated[(first.file, entry.file)] += 1
        else:
            problems.append(_report_conflict(first, entry))
    return first_entries, problems + [_report_repetition(*files, count) for files, count in repeated.items()]


def _report_conflict(first: Placed | Stated, second: Placed | Stated) -> Problem:
    places = [f"{entry.origin.file}:{entry.origin.line}" for entry in (first, second)]
    if first.file != second.file and places[0] == places[1]:
        places = [f"{place} as part of {entry.file}" for place, entry in zip(places, (first, second), strict=True)]
    message = (
        f"duplicate {second.describe()}: {places[0]} and {places[1]}; only the first is checked, so remove one of them"
    )
    return Problem(level="error", message=message, place=f"{second.origin.file}:{second.origin.line}")


def _report_repetition(first: str, second: str, count: int) -> Problem:
    entries = "one entry is" if count == 1 else f"{count} entries are"
    message = f"{entries} also in `{first}`, with the same content; each is checked once"
    return Problem(level="warning", message=message, place=second)
