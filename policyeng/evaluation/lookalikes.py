"""Resources and approvals as policies see them where letters look like others: tags, words and names of people.

Policies compare texts without case and cannot normalise Unicode, so it is done before they run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count

from policyeng.facts.arm_casing import is_known_name
from policyeng.facts.letters import as_seen, disguised, plain, same_person
from policyeng.facts.words import CLASSIFICATION_TAG, CLASSIFICATION_TAGS
from policyeng.models import JsonObject, Problem, lowered
from policyeng.named import NamedTuple
from policyeng.parsing.json_pointer import escaped
from policyeng.parsing.json_text import shortened

#: Where the tags of a resource may be.
_TAGS = (("tags",), ("properties", "tags"), ("properties", "kvTags"))
#: Known names whose values are written by users and for them.
_PROSE = frozenset(
    {"adminPublicKey", "adminUserName", "command", "experimentName", "filter", "id", "name", "shortDescription"}
)
#: No word of ARM is longer.
_LONGEST_WORD = 64
_PEOPLE = ("requestedBy", "approvedBy")


class FoldedDocument(NamedTuple):
    """A document as policies see it, and what a reader must know of the letters in it."""

    document: JsonObject
    problems: tuple[Problem, ...] = ()


def resource_read(resource: JsonObject, text: bytes) -> FoldedDocument:
    """Return a resource with tags that policies can compare; `text` is its JSON.

    A tag whose name looks like one of `CLASSIFICATION_TAGS` gets the name of one that is still free, its value is
    written in ASCII where it looks so, and a value of invisible characters alone becomes blank; a warning names both
    spellings. A word of ARM, such as `Disabled`, in other letters than those of ASCII is an error: the service refuses
    it, and policies could take it for the word.
    """
    if text.isascii():
        return FoldedDocument(resource)
    place, problems = str(resource.get("id")), list[Problem]()
    for pointer, value in _words(resource):
        message = f"`{_escaped(value)}` at `{pointer}` looks like `{as_seen(value)}` and has other letters"
        problems.append(Problem(level="error", message=f"{message}; write it in ASCII", place=place))
    read = resource
    for path in _TAGS:
        holder: object = resource
        for key in path:
            holder = holder.get(key) if isinstance(holder, dict) else None
        if isinstance(holder, dict) and (tags := tags_read(holder)) != holder:
            read = _with(read, path, tags)
            pointer = "/".join(("", *path))
            problems += (_of_tag(pointer, written, tags, place) for written in _changed(holder, tags))
    return FoldedDocument(read, tuple(problems))


def tags_read(tags: Mapping[str, object]) -> dict[str, object]:
    """Return tags as policies see them; see `resource_read`."""
    read: dict[str, object] = {}
    for name, value in tags.items():
        key = name
        if not name.isascii() and lowered(as_seen(name)) in CLASSIFICATION_TAGS:
            key = next(free for free in _spellings() if free not in tags and free not in read)
        if isinstance(value, str) and (lowered(key) in CLASSIFICATION_TAGS or not plain(value).strip()):
            value = as_seen(value)
        read[key] = value
    return read


def approval_read(approval: JsonObject) -> FoldedDocument:
    """Return an approval in which the names of people compare as a reader sees them.

    An approver who looks like the one who asked gets the same name. A name with look-alikes of another script is an
    error.
    """
    names = {key: value for key in _PEOPLE if isinstance(value := approval.get(key), str)}
    if all(name.isascii() for name in names.values()):
        return FoldedDocument(approval)
    problems = tuple(
        Problem(level="error", message=disguise(key, word), place=f"approval {approval['id']}")
        for key, name in names.items()
        if (word := disguised(name))
    )
    read = {key: plain(name) for key, name in names.items()}
    if len(read) == len(_PEOPLE) and same_person(*read.values()):
        read["approvedBy"] = read["requestedBy"]
    return FoldedDocument({**approval, **read}, problems)


def disguise(key: str, word: str) -> str:
    """The message about a name that mixes scripts."""
    return f"`{key}` has letters of another script that look like ASCII: `{_escaped(word)}`; write it in one script"


def unreadable_read(unreadable: Mapping[str, str]) -> Mapping[str, str]:
    """Return what cannot be read, by JSON Pointer, with `data-classification` for its other spellings, too."""
    found: dict[str, str] = {}
    for pointer, reason in unreadable.items():
        holder, _, name = pointer.rpartition("/")
        if holder.endswith("ags") and name != CLASSIFICATION_TAG and lowered(as_seen(name)) in CLASSIFICATION_TAGS:
            found[f"{holder}/{CLASSIFICATION_TAG}"] = reason
    return {**found, **unreadable} if found else unreadable


def _spellings() -> Iterator[str]:
    """Spellings of the tag that are not its own name, in small and capital letters without end."""
    for bits in count():
        yield "".join(
            letter.upper() if bits >> at & 1 else letter
            for at, letter in enumerate(CLASSIFICATION_TAG.replace("-", "_"))
        )


def _escaped(text: str) -> str:
    """A text for a message, with letters beyond ASCII as escapes, which a reader cannot mistake."""
    return shortened(ascii(text)[1:-1])


def _words(resource: JsonObject) -> Iterator[tuple[str, str]]:
    """The pointer and the value of each word in letters that look like those of ASCII."""
    waiting: list[tuple[str, str, object]] = [
        (f"/{escaped(key)}", key, value) for key, value in resource.items() if key not in ("tags", "type")
    ]
    while waiting:
        pointer, name, value = waiting.pop()
        if isinstance(value, dict):
            waiting += ((f"{pointer}/{escaped(key)}", key, inner) for key, inner in value.items() if key != "tags")
        elif isinstance(value, list):
            waiting += ((f"{pointer}/{at}", name, inner) for at, inner in enumerate(value))
        elif isinstance(value, str) and not value.isascii() and _is_word(name, value):
            yield pointer, value


def _is_word(name: str, value: str) -> bool:
    """Whether a value looks like a word of ASCII below a name whose values are words of ARM."""
    if name in _PROSE or not is_known_name(name) or len(value) > _LONGEST_WORD or len(value.split()) != 1:
        return False
    return as_seen(value).isascii()


def _with(document: JsonObject, path: tuple[str, ...], value: object) -> JsonObject:
    key, *rest = path
    return {**document, key: _with(document[key], tuple(rest), value) if rest else value}


def _changed(tags: Mapping[str, object], read: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """The names of the tags that are read otherwise, as they are written and as they are read."""
    for name, key in zip(tags, read, strict=True):
        if name != key or tags[name] != read[key]:
            yield name, key


def _of_tag(pointer: str, names: tuple[str, str], read: Mapping[str, object], place: str) -> Problem:
    written, key = names
    value = read[key]
    seen = f"`{key}` with the value `{shortened(str(value))}`" if str(value).strip() else "a blank value"
    message = f"the tag `{_escaped(written)}` in `{pointer}` has letters that look like others or are invisible"
    return Problem(level="warning", message=f"{message}, and is read as {seen}; write it in ASCII", place=place)
