"""Normalize letters that look like others and the case of member names, as ARM reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import NamedTuple

from policyeng.facts.arm_casing import (
    REMOVE_ONE,
    Spellings,
    as_arm_reads,
    describe_duplicate,
    respell_pointer,
)
from policyeng.facts.letters import as_seen, find_disguised_word, plain, same_person
from policyeng.facts.words import CLASSIFICATION_TAG, CLASSIFICATION_TAGS
from policyeng.models import JsonObject, Origin, Problem, Snapshot, lowered
from policyeng.parsing.json_pointer import escaped
from policyeng.parsing.json_text import shortened
from policyeng.schema import ValueType, find_type, fold_name, list_word_names

#: The places in a resource that can contain tags.
_TAGS = (("tags",), ("properties", "tags"), ("properties", "kvTags"))
#: Members whose values are free text or chosen by users.
_PROSE = frozenset(
    {"adminPublicKey", "adminUserName", "command", "description", "displayName", "experimentName", "filter"}
    | {"friendlyName", "id", "name", "shortDescription"}
)
#: The length of the longest ARM word.
_LONGEST_WORD = 64
_PEOPLE = ("requestedBy", "approvedBy")


class FoldedDocument(NamedTuple):
    """A document as policies see it, with problems about its letters."""

    document: JsonObject
    problems: tuple[Problem, ...] = ()


def resource_read(resource: JsonObject, text: bytes) -> FoldedDocument:
    """Return a resource with tags that policies can compare; `text` is its JSON.

    A tag whose name looks like one of `CLASSIFICATION_TAGS` gets an unused spelling of that name. Its value is
    converted to ASCII if it looks like ASCII. A value that has only invisible characters becomes blank. A warning gives
    both spellings. An ARM word, such as `Disabled`, with letters that are not ASCII is an error, because the service
    rejects it and policies could treat it as the word.
    """
    if text.isascii():
        return FoldedDocument(resource)
    place, problems = str(resource.get("id")), list[Problem]()
    for pointer, value in _words(resource):
        message = f"`{_escaped(value)}` at `{pointer}` looks like `{as_seen(value)}` but has letters that are not ASCII"
        problems.append(Problem(level="error", message=f"{message}; write it in ASCII", place=place))
    folded = resource
    for path in _TAGS:
        holder: object = resource
        for key in path:
            holder = holder.get(key) if isinstance(holder, dict) else None
        if isinstance(holder, dict) and (tags := tags_read(holder)) != holder:
            folded = _replace_at(folded, path, tags)
            pointer = "/".join(("", *path))
            problems += (_warn_about_tag(pointer, written, tags, place) for written in _find_changes(holder, tags))
    return FoldedDocument(folded, tuple(problems))


def tags_read(tags: Mapping[str, object]) -> dict[str, object]:
    """Return tags as policies see them; see `resource_read`."""
    folded: dict[str, object] = {}
    for name, value in tags.items():
        key = name
        if not name.isascii() and lowered(as_seen(name)) in CLASSIFICATION_TAGS:
            key = next(free for free in _spellings() if free not in tags and free not in folded)
        if isinstance(value, str) and (lowered(key) in CLASSIFICATION_TAGS or not plain(value).strip()):
            value = as_seen(value)
        folded[key] = value
    return folded


def approval_read(approval: JsonObject) -> FoldedDocument:
    """Return an approval in which names of people that look the same are equal.

    If the approver's name looks like the requester's, both get the same spelling. A name with look-alike letters of
    another script is an error.
    """
    names = {key: value for key in _PEOPLE if isinstance(value := approval.get(key), str)}
    if all(name.isascii() for name in names.values()):
        return FoldedDocument(approval)
    problems = tuple(
        Problem(level="error", message=describe_disguise(key, word), place=f"approval {approval['id']}")
        for key, name in names.items()
        if (word := find_disguised_word(name))
    )
    people = {key: plain(name) for key, name in names.items()}
    if len(people) == len(_PEOPLE) and same_person(*people.values()):
        people["approvedBy"] = people["requestedBy"]
    return FoldedDocument({**approval, **people}, problems)


def describe_disguise(key: str, word: str) -> str:
    """Describe a name that mixes scripts."""
    return f"`{key}` has letters of another script that look like ASCII: `{_escaped(word)}`; write it in one script"


def unreadable_read(unreadable: Mapping[str, str]) -> Mapping[str, str]:
    """Return the reasons for unreadable fields by JSON Pointer, with `data-classification` for its other spellings."""
    found: dict[str, str] = {}
    for pointer, reason in unreadable.items():
        holder, _, name = pointer.rpartition("/")
        if holder.endswith("ags") and name != CLASSIFICATION_TAG and lowered(as_seen(name)) in CLASSIFICATION_TAGS:
            found[f"{holder}/{CLASSIFICATION_TAG}"] = reason
    return {**found, **unreadable} if found else unreadable


def _spellings() -> Iterator[str]:
    """Yield spellings of the tag with an underscore, in changing cases, without end."""
    for bits in count():
        yield "".join(
            letter.upper() if bits >> at & 1 else letter
            for at, letter in enumerate(CLASSIFICATION_TAG.replace("-", "_"))
        )


def _escaped(text: str) -> str:
    """Return a text for a message, in which letters that are not ASCII are escaped and so unmistakable."""
    return shortened(ascii(text)[1:-1])


def _words(resource: JsonObject) -> Iterator[tuple[str, str]]:
    """Yield the pointer and the value of each ARM word with letters that look like ASCII."""
    known = find_type(str(resource.get("type")))
    named = {key: value for key, value in resource.items() if key != "type"}
    waiting: list[tuple[str, str, object, ValueType | None]] = [("", "", named, known and known.body)]
    while waiting:
        pointer, name, value, kind = waiting.pop()
        if isinstance(value, dict):
            kind = kind and kind.of_value(value)
            is_users = name == "tags" or (kind is not None and kind.values is not None)
            waiting += (
                (f"{pointer}/{escaped(key)}", "" if is_users else key, inner, kind and kind.step(key))
                for key, inner in value.items()
            )
        elif isinstance(value, list):
            waiting += ((f"{pointer}/{at}", name, inner, kind and kind.entries) for at, inner in enumerate(value))
        elif isinstance(value, str) and not value.isascii() and _is_word(name, value, kind):
            yield pointer, value


def _is_word(name: str, value: str, kind: ValueType | None) -> bool:
    """Check whether a value looks like an ASCII word that ARM reads; a text must have letters of both kinds.

    The name is that of a member, or empty for a value that the user names.
    """
    if len(value) > _LONGEST_WORD or len(value.split()) != 1 or not as_seen(value).isascii():
        return False
    if kind is None or kind.is_any:
        return name not in _PROSE and fold_name(name) in list_word_names()
    if kind.words:
        return True
    return bool(name) and name not in _PROSE and "string" in kind.scalars and any(map(str.isascii, value))


def _replace_at(document: JsonObject, path: tuple[str, ...], value: object) -> JsonObject:
    key, *rest = path
    return {**document, key: _replace_at(document[key], tuple(rest), value) if rest else value}


def _find_changes(tags: Mapping[str, object], read: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield the written name and the folded name of each tag that folding changes."""
    for name, key in zip(tags, read, strict=True):
        if name != key or tags[name] != read[key]:
            yield name, key


def _warn_about_tag(pointer: str, names: tuple[str, str], read: Mapping[str, object], place: str) -> Problem:
    written, key = names
    value = read[key]
    seen = f"`{key}` with the value `{shortened(str(value))}`" if str(value).strip() else "a blank value"
    message = f"the tag `{_escaped(written)}` in `{pointer}` has look-alike or invisible letters"
    return Problem(level="warning", message=f"{message} and is read as {seen}; write it in ASCII", place=place)


def with_known_names(snapshot: Snapshot, spellings: Spellings) -> tuple[Snapshot, list[Problem]]:
    """Return a snapshot with member names as ARM spells them, and an error for each duplicate member.

    A resource with a duplicate member is not changed, and the member is unreadable, because it is unknown which of the
    two ARM uses.

    Args:
        snapshot: a snapshot from any source.
        spellings: the names that policies read, as in `Bundle.spellings`.
    """
    resources: list[JsonObject] = []
    origins: dict[str, Origin] = {}
    unreadable: dict[str, dict[str, str]] = {}
    problems: list[Problem] = []
    for resource in snapshot.resources:
        identity, kind = resource.get("id"), resource.get("type")
        if not (isinstance(identity, str) and isinstance(kind, str)):
            resources.append(resource)
            continue
        spelled = as_arm_reads(resource, kind, spellings)
        resources.append(spelled.part)
        if spelled.part is resource and not spelled.twice:
            continue
        key = lowered(identity)
        origin = snapshot.origins.get(key)
        if spelled.twice:
            problems.append(_describe_duplicate(identity, spelled.twice, origin, snapshot))
            # Policies read it by the ARM name, which can be different from both.
            pointers = (*spelled.twice, respell_pointer(spelled.twice[0], kind))
            reasons = dict.fromkeys(pointers, describe_duplicate(spelled.twice))
            unreadable[key] = {**snapshot.unreadable.get(key, {}), **reasons}
        elif origin is not None and spelled.fields:
            fields = {pointer: origin.pointer_to(there) for pointer, there in spelled.fields.items()}
            origins[key] = origin.model_copy(update={"fields": {**origin.fields, **fields}})
    if all(new is old for new, old in zip(resources, snapshot.resources, strict=True)) and not problems:
        return snapshot, []
    changes = {
        "resources": tuple(resources),
        "origins": {**snapshot.origins, **origins},
        "unreadable": {**snapshot.unreadable, **unreadable},
    }
    return snapshot.model_copy(update=changes), problems


def _describe_duplicate(identity: str, pointers: Sequence[str], origin: Origin | None, snapshot: Snapshot) -> Problem:
    """Return the error for a duplicate member, with both locations if the file is known."""
    message = describe_duplicate(pointers)
    if origin is not None and origin.file in snapshot.texts:
        lines = snapshot.texts[origin.file].places([origin.pointer_to(pointer) for pointer in pointers])
        places = [f"{origin.file}:{line}:{column}" for line, column in lines]
        message = f"{message} ({places[0]} and {places[1]})"
    return Problem(level="error", message=f"{message}; {REMOVE_ONE}", place=identity)
