"""What every format gives: resources in ARM shape with their places, and what could not be read."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Literal, NoReturn, Protocol, TypeVar

from policyeng.errors import InputError
from policyeng.frozen import field, frozen, replace
from policyeng.models import (
    Approval,
    Carried,
    Change,
    DeclaredWorkload,
    JsonObject,
    Metric,
    Origin,
    Principal,
    Quota,
)
from policyeng.named import NamedTuple
from policyeng.parsing.json_text import shortened
from policyeng.sources.text import Text

Collection = Literal["approvals", "workloads", "quotas", "metrics", "principals"]
Noun = Approval | DeclaredWorkload | Quota | Metric | Principal

#: Where resources stand whose subscription and resource group nobody states.
UNKNOWN_SCOPE = "/subscriptions/{subscription}/resourceGroups/{resource-group}"
UNKNOWN_WORKSPACE = f"{UNKNOWN_SCOPE}/providers/Microsoft.MachineLearningServices/workspaces/{{workspace}}"

#: How many refusals of a document are reported; a document of a few MB may have millions.
MAX_REFUSALS = 1000

_Entry = TypeVar("_Entry")

_NONE: Mapping[str, str] = {}


def nothing_beside(path: str) -> NoReturn:
    """What stands beside a document that is no file.

    Raises:
        InputError: always.
    """
    raise InputError("there is no file beside it", place=(path,))


class NamedThing(NamedTuple):
    """A thing that a document of some input names.

    Attributes:
        thing: as its format has it.
        beside: what its document names, by key.
        find: what finds things from there.
    """

    thing: JsonObject
    beside: Mapping[Hashable, JsonObject]
    find: Find


Find = Callable[[Hashable], Sequence[NamedThing]]


def nothing_found(_: Hashable) -> Sequence[NamedThing]:
    """What a document finds that stands alone."""
    return ()


class Placed(NamedTuple):
    """A resource in ARM shape.

    Attributes:
        pointer: its JSON Pointer in the document, or in `text`.
        unreadable: by JSON Pointer into it, why a part cannot be read.
        carried: what the format can say at all about such a resource; None where that is everything.
        fields: by JSON Pointer into it, the pointer in the document of what stands elsewhere there.
        text: the file that it stands in, where that is another than the document's; None where it is the document's.
    """

    resource: JsonObject
    pointer: str
    unreadable: Mapping[str, str] = _NONE
    carried: Carried | None = None
    fields: Mapping[str, str] = _NONE
    text: Text | None = None


class Stated(NamedTuple):
    """One entry of a native collection, with its JSON Pointer in the file."""

    collection: Collection
    noun: Noun
    pointer: str


class Changing(NamedTuple):
    """A change that a document states, with its JSON Pointer in the file."""

    change: Change
    pointer: str


class Refusal(NamedTuple):
    """A part of a document that cannot be read.

    Attributes:
        pointer: JSON Pointer in the file; empty for the whole document.
        holds_nothing: the part is understood and holds nothing to judge; only a warning where nobody named the file.
    """

    pointer: str
    message: str
    remedy: str = ""
    holds_nothing: bool = False


@frozen
class ParsedDocument:
    """What one document holds.

    Attributes:
        scope, taken_at: as the document states them, if it does.
        incomplete: what the document says is missing, one line each.
        covers: `TYPE at ID` for each list of resources that the document has all of.
        truncated: why the document is not the whole of its list; empty when it is.
        refusals: the parts that could not be read; the others are not touched by them.
        remarks: what a reader should know of the document, by JSON Pointer, such as a key that nothing understands.
        nothing: why the document, though understood, holds nothing to judge; empty when it holds something.
        movable: the beginning of ids that the document does not state itself. Where such an id is already another
            resource's, the resources below it are kept apart from those of the other document.
        linked: the files that were read as part of the document, by their paths relative to it.
        states_changes: the document says what is about to change, so that what it does not name does not.
        changes: what it says of that which is no whole resource; it goes before a resource of the same pointer.
        unchanged: the pointers of resources that stay as they are.
    """

    resources: tuple[Placed, ...] = ()
    stated: tuple[Stated, ...] = ()
    scope: str = ""
    taken_at: datetime | None = None
    incomplete: tuple[str, ...] = ()
    covers: tuple[str, ...] = ()
    truncated: str = ""
    refusals: tuple[Refusal, ...] = ()
    remarks: tuple[tuple[str, str], ...] = ()
    nothing: str = ""
    movable: str = ""
    linked: tuple[str, ...] = ()
    states_changes: bool = False
    changes: tuple[Changing, ...] = ()
    unchanged: frozenset[str] = frozenset()


@frozen
class Surroundings:
    """What a document does not say itself, and the user, its file's place or the other inputs do.

    Attributes:
        file: as the user named it.
        scope: the ARM id of the resource group that it is deployed to; `UNKNOWN_SCOPE` when nobody says.
        workspace: the ARM id of the workspace that it belongs to; below `UNKNOWN_SCOPE` or `/workspaces/{workspace}`
            when nobody says.
        parameters: values of template parameters, by name in lower case.
        beside: the JSON value of another file, by its path relative to this one.
            Raises InputError when it is not there or cannot be read.
        text_beside: the same file with the places in it; it holds one document.
        names_beside: the names of the files in the same directory, in order.
        find: the things of one key that documents of the same format name, all those that are equally near.
        as_applied: nothing is filled in any more, so that text which looks like a placeholder is a value.
    """

    file: str = ""
    scope: str = UNKNOWN_SCOPE
    workspace: str = UNKNOWN_WORKSPACE
    parameters: Mapping[str, object] = field(default_factory=dict)
    beside: Callable[[str], object] = nothing_beside
    text_beside: Callable[[str], Text] = nothing_beside
    names_beside: Callable[[], Sequence[str]] = tuple
    find: Find = nothing_found
    as_applied: bool = False


#: Those of a document of which nobody says anything.
ALONE = Surroundings()


class Format(Protocol):
    """One input format: a module with these members."""

    #: What the format looks like, for the message that lists what is readable.
    SUMMARY: str

    def detect(self, document: object) -> bool:
        """Whether the content is of this format."""

    def read(self, document: object, around: Surroundings = ALONE) -> ParsedDocument:
        """Read any JSON value; what does not fit the format is among the refusals."""


def moved(reading: ParsedDocument, base: str) -> ParsedDocument:
    """The same reading with its pointers below that of its document."""
    return replace(
        reading,
        resources=tuple(
            placed._replace(
                pointer=base + placed.pointer, fields={key: base + place for key, place in placed.fields.items()}
            )
            if placed.text is None
            else placed
            for placed in reading.resources
        ),
        stated=tuple(stated._replace(pointer=base + stated.pointer) for stated in reading.stated),
        changes=tuple(changing._replace(pointer=base + changing.pointer) for changing in reading.changes),
        unchanged=frozenset(base + pointer for pointer in reading.unchanged),
        refusals=tuple(refusal._replace(pointer=base + refusal.pointer) for refusal in reading.refusals),
        remarks=tuple((base + pointer, message) for pointer, message in reading.remarks),
    )


def reading_of(entries: Iterable[Placed | Refusal], truncated: str = "") -> ParsedDocument:
    """Sort entries into resources and refusals; neighbours refused for one reason become one refusal."""
    placed: list[Placed] = []
    refused = _grouped(_refusals_of(entries, placed))
    return ParsedDocument(resources=tuple(placed), truncated=truncated, refusals=refused)


def _refusals_of(entries: Iterable[Placed | Refusal], placed: list[Placed]) -> Iterator[Refusal]:
    """Pass refusals on one by one, since there may be millions, and put all else into a list."""
    for entry in entries:
        if isinstance(entry, Refusal):
            yield entry
        else:
            placed.append(entry)


def first_refusals(entries: Iterable[_Entry | Refusal]) -> Iterator[_Entry | Refusal]:
    """Pass entries on, without the refusals from the 1,001st on; how many were left out is the last one."""
    refused = 0
    for entry in entries:
        if isinstance(entry, Refusal):
            refused += 1
            if refused > MAX_REFUSALS:
                continue
        yield entry
    yield from _left_out(max(0, refused - MAX_REFUSALS))


def next_page(document: JsonObject) -> str:
    """Why a list is not whole: ARM names the next page in `nextLink`; empty when it does not."""
    return (
        "the list goes on at its `nextLink`, and the next page is not in the file" if document.get("nextLink") else ""
    )


def keys_seen(document: Mapping[str, object], limit: int = 8) -> str:
    """The first top-level keys of an object, for a message."""
    keys = [f"`{shortened(key)}`" for key in list(document)[:limit]]
    return ", ".join(keys) + (", …" if len(document) > limit else "")


def kind_of(value: object) -> str:
    """What a JSON value is, in a word."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    names: dict[type, str] = {str: "a string", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return names[type(value)]


def spelled(value: object) -> str:
    """A JSON value for a message: text and numbers as they stand, anything else in a word."""
    return f"`{shortened(str(value))}`" if type(value) in (str, int, float) else kind_of(value)


def seen(document: object) -> str:
    """What a document looks like, for the message that it is of no readable format."""
    if isinstance(document, dict):
        return f"an object with the keys {keys_seen(document)}" if document else "an empty object"
    if isinstance(document, list) and document:
        return f"a list that begins with {seen(document[0])}"
    return kind_of(document) if document != [] else "an empty list"


def _grouped(refusals: Iterable[Refusal]) -> tuple[Refusal, ...]:
    joined: list[Refusal] = []
    left_out = 0
    for _, neighbours in groupby(refusals, key=lambda refusal: refusal[1:]):
        first = next(neighbours)
        others = sum(1 for _ in neighbours)  # noqa: B031  # each group is read once, in parts
        if len(joined) == MAX_REFUSALS:
            left_out += 1 + others
            continue
        if others:
            next_ones = "one" if others == 1 else str(others)
            first = first._replace(message=f"{first.message} (like the next {next_ones})")
        joined.append(first)
    return (*joined, *_left_out(left_out))


def _left_out(count: int) -> Iterator[Refusal]:
    if count:
        yield Refusal("", f"{count} more parts of the document cannot be read", "correct those before them first")


class Loaded(NamedTuple):
    """One document that was read, and the text in which its pointers stand."""

    file: str
    reading: ParsedDocument
    text: Text

    def texts(self) -> dict[str, Text]:
        """The files in which its resources stand: its own, and those that were read as part of it."""
        others = {placed.text.file: placed.text for placed in self.reading.resources if placed.text is not None}
        return {self.file: self.text} | others

    def origins(self, parts: Sequence[Placed | Stated | Changing]) -> list[Origin]:
        """Where resources or other entries of the document stand."""
        texts = [(placed.text if isinstance(placed, Placed) else None) or self.text for placed in parts]
        found: dict[Text, dict[str, tuple[int, int]]] = {}
        for text in dict.fromkeys(texts):
            pointers = [part.pointer for part, holder in zip(parts, texts, strict=True) if holder is text]
            found[text] = dict(zip(pointers, text.places(pointers), strict=True))
        return [
            Origin(
                file=self.file if text is self.text else text.file,
                pointer=part.pointer,
                line=found[text][part.pointer][0],
                column=found[text][part.pointer][1],
                fields=part.fields if isinstance(part, Placed) else {},
            )
            for part, text in zip(parts, texts, strict=True)
        ]
