"""Differences of JSON documents, and documents with single differences reverted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from policyeng.audit.diff.inputs import CauseKind, PathChange
from policyeng.facts.ids import fold_id
from policyeng.models import Carried, Document, JsonObject, Model, Snapshot, lowered
from policyeng.parsing.json_pointer import escaped, filled, keys_of, member
from policyeng.redaction import masked

#: The value of an absent member; different from null.
NOTHING = object()


class JsonDifference(NamedTuple):
    """A differing place, as a JSON Pointer, with the values of both sides (or `NOTHING`)."""

    path: str
    before: object
    after: object


def edits(before: object, after: object, at: str = "") -> Iterator[JsonDifference]:
    """Yield the deepest places where two JSON values differ. Lists of different lengths are one place."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({**before, **after}):
            yield from edits(before.get(key, NOTHING), after.get(key, NOTHING), f"{at}/{escaped(key)}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from edits(one, other, f"{at}/{index}")
    elif type(before) is not type(after) or before != after:  # 1 and true are equal to Python, and so are 1 and 1.0
        yield JsonDifference(at, before, after)


def reverted(after: JsonObject, edit: JsonDifference) -> JsonObject:
    """Return the later document with one difference reverted. Unaffected parts are shared."""
    keys = keys_of(edit.path)
    made = _without(after, keys) if edit.before is NOTHING else filled(after, keys, edit.before)
    return made if isinstance(made, dict) else after  # what differs between two objects lies below them


def _without(document: object, keys: list[str]) -> object:
    """Return a copy without the member at the path of keys."""
    key, *rest = keys
    if rest:
        return filled(document, [key], _without(member(document, key), rest))
    return {name: value for name, value in document.items() if name != key} if isinstance(document, dict) else document


def mask_difference(edit: JsonDifference) -> PathChange:
    """Return a difference for reports, with masked secrets."""
    change = "came" if edit.before is NOTHING else "went" if edit.after is NOTHING else "changed"
    before, after = (None if side is NOTHING else masked(side, edit.path) for side in (edit.before, edit.after))
    return PathChange(path=edit.path, change=change, before=before, after=after)


class Item(NamedTuple):
    """The key of an item: an ARM id, the id of a statement, or for `CauseKind.SNAPSHOT` the name of a member."""

    kind: CauseKind
    key: str


class ItemEntry(NamedTuple):
    """The entry of an item.

    Attributes:
        name: in its original spelling.
        value: the resource, the statement or the member itself.
        document: the same as JSON, for differences.
        unreadable, carried: the notes on a resource.
    """

    name: str
    value: object
    document: JsonObject
    unreadable: Mapping[str, str] = {}
    carried: Carried | None = None


#: The entries of each item: usually one, several if an id is repeated.
Items = Mapping[Item, tuple[ItemEntry, ...]]

#: By kind, the attribute of a snapshot that holds the statements of that kind, and the members that identify them.
_STATED: Mapping[CauseKind, tuple[str, tuple[str, ...]]] = {
    CauseKind.APPROVAL: ("approvals", ("id",)),
    CauseKind.WORKLOAD: ("workloads", ("id",)),
    CauseKind.PRINCIPAL: ("principals", ("id",)),
    CauseKind.QUOTA: ("quotas", ("scope", "region", "family")),
    CauseKind.EVIDENCE: ("evidence", ("id",)),
    CauseKind.METRIC: ("metrics", ("resourceId", "name")),
}
_MEMBERS = {name: getattr(Snapshot(), name) for name in ("scope", "taken_at", "incomplete", "covers")}


def items_of(snapshot: Snapshot) -> Items:
    """Return the items of a snapshot, without source locations."""
    found: dict[Item, tuple[ItemEntry, ...]] = {}

    def add(kind: CauseKind, name: str, entry: ItemEntry) -> None:
        item = Item(kind, fold_id(name))
        found[item] = (*found.get(item, ()), entry)

    for resource in snapshot.resources:
        name = str(resource.get("id", ""))
        key = lowered(name)
        notes = snapshot.unreadable.get(key, {}), snapshot.carried.get(key)
        add(CauseKind.RESOURCE, name, ItemEntry(name, resource, resource, *notes))
    for kind, (attribute, keys) in _STATED.items():
        for stated in getattr(snapshot, attribute):
            document = stated.model_dump(mode="json", by_alias=True)
            name = " ".join(str(document[key]) for key in keys)
            add(kind, name, ItemEntry(name, stated, document))
    for written in snapshot.documents:
        content = {"content": written.content}
        add(CauseKind.DOCUMENT, written.name, ItemEntry(written.name, written, content))
    for name, default in _MEMBERS.items():
        if (value := getattr(snapshot, name)) != default:
            add(CauseKind.SNAPSHOT, name, ItemEntry(name, value, {name: _plain(value)}))
    return found


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else str(value)


def find_differences(before: Items, after: Items) -> list[Item]:
    """Return the items that differ, sorted."""
    return sorted(item for item in {**before, **after} if not _is_same(before.get(item, ()), after.get(item, ())))


def _is_same(before: tuple[ItemEntry, ...], after: tuple[ItemEntry, ...]) -> bool:
    return len(before) == len(after) and all(
        (one.unreadable, one.carried) == (other.unreadable, other.carried)
        and (one.document is other.document or not any(True for _ in edits(one.document, other.document)))
        for one, other in zip(before, after, strict=True)
    )


def edits_of(before: tuple[ItemEntry, ...], after: tuple[ItemEntry, ...]) -> list[JsonDifference]:
    """Return the differences of an item, if both sides have one entry with the same notes; otherwise none."""
    if len(before) != 1 or len(after) != 1:
        return []
    one, other = before[0], after[0]
    if (one.unreadable, one.carried) != (other.unreadable, other.carried):
        return []
    return list(edits(one.document, other.document))


def revert_partly(after: tuple[ItemEntry, ...], undone: Iterable[JsonDifference]) -> tuple[ItemEntry, ...]:
    """Return the later entry of an item with some differences reverted."""
    (entry,) = after
    document = entry.document
    for edit in undone:
        document = reverted(document, edit)
    value: object = document
    if isinstance(entry.value, Document):
        value = entry.value.model_copy(update={"content": document["content"]})
    elif isinstance(entry.value, Model):
        value = type(entry.value).model_validate(document)
    return (entry._replace(value=value, document=document, name=str(document.get("id", entry.name))),)


def snapshot_of(base: Snapshot, items: Items) -> Snapshot:
    """Return a snapshot with these items, and the source locations of `base`."""
    resources = [entry for item, entries in items.items() if item.kind is CauseKind.RESOURCE for entry in entries]
    update: dict[str, object] = {
        "resources": tuple(entry.value for entry in resources),
        "unreadable": {lowered(entry.name): entry.unreadable for entry in resources if entry.unreadable},
        "carried": {lowered(entry.name): entry.carried for entry in resources if entry.carried},
    }
    for kind, attribute in [*((kind, name) for kind, (name, _) in _STATED.items()), (CauseKind.DOCUMENT, "documents")]:
        update[attribute] = tuple(
            entry.value for item, entries in items.items() if item.kind is kind for entry in entries
        )
    for name, default in _MEMBERS.items():
        entries = items.get(Item(CauseKind.SNAPSHOT, name), ())
        update[name] = entries[0].value if entries else default
    return base.model_copy(update=update)
