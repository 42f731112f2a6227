"""The result of reading a document: ARM resources with their places, and the parts that could not be read."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import Literal, NamedTuple, NoReturn, Protocol, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from policyeng.errors import InputError
from policyeng.models import (
    NO_NAMES,
    Approval,
    Carried,
    Change,
    DeclaredWorkload,
    Evidence,
    JsonObject,
    Metric,
    Origin,
    PartKind,
    Principal,
    Problem,
    Quota,
    SourceNames,
    lowered,
)
from policyeng.parsing.json_text import kind_of, shortened
from policyeng.sources.text import Text

Collection = Literal["approvals", "workloads", "quotas", "metrics", "principals", "evidence"]
Noun = Approval | DeclaredWorkload | Quota | Metric | Principal | Evidence

#: The scope of resources whose subscription and resource group are not known.
UNKNOWN_SCOPE = "/subscriptions/{subscription}/resourceGroups/{resource-group}"
UNKNOWN_WORKSPACE = f"{UNKNOWN_SCOPE}/providers/Microsoft.MachineLearningServices/workspaces/{{workspace}}"

#: How many refusals of a document are reported; a document of a few MB may have millions.
MAX_REFUSALS = 1000

_Entry = TypeVar("_Entry")
_Part = TypeVar("_Part", "Placed", "Stated")

_NONE: Mapping[str, str] = {}
#: That of what is not located.
NO_ORIGIN = Origin(file="")


def refuse_neighbors(path: str) -> NoReturn:
    """Raise InputError, because a document that is not a file has no files next to it."""
    raise InputError("there is no file next to it", place=(path,))


class NamedThing(NamedTuple):
    """A thing that a document names.

    Attributes:
        thing: in the form of its format.
        siblings: everything in its document, by key.
        find: the function that finds things for its document.
    """

    thing: JsonObject
    siblings: Mapping[Hashable, JsonObject]
    find: Find


Find = Callable[[Hashable], Sequence[NamedThing]]


def find_nothing(_: Hashable) -> Sequence[NamedThing]:
    """Return no things, for a document without other inputs."""
    return ()


class Placed(NamedTuple):
    """An ARM resource and its place.

    Attributes:
        pointer: its JSON Pointer in the document, or in `text`.
        unreadable: by JSON Pointer into it, why a part cannot be read.
        carried: the fields that the format can express for such a resource; None if it can express all.
        fields: by JSON Pointer into it, the pointer in the document of a value that is elsewhere there.
        text: the file that contains it; None if that is the file of the document.
        names: what the format calls it and its fields.
        file, origin: the file of its document, and where it is, once it is located.
    """

    resource: JsonObject
    pointer: str
    unreadable: Mapping[str, str] = _NONE
    carried: Carried | None = None
    fields: Mapping[str, str] = _NONE
    text: Text | None = None
    names: SourceNames = NO_NAMES
    file: str = ""
    origin: Origin = NO_ORIGIN

    def key(self) -> str:
        """Return what identifies it: its id in lower case."""
        return lowered(str(self.resource["id"]))

    def content(self) -> object:
        """Return what is equal where two are the same."""
        return self.resource

    def describe(self) -> str:
        """Return how messages name it."""
        return f"resource `{self.resource['id']}`"


class Stated(NamedTuple):
    """An entry of a native collection, with its JSON Pointer in the file.

    Attributes:
        file, origin: the file of its document, and where it is, once it is located.
    """

    collection: Collection
    noun: Noun
    pointer: str
    file: str = ""
    origin: Origin = NO_ORIGIN

    def key(self) -> str:
        """Return what identifies it in its collection: its id in lower case, or its place if its kind has no id."""
        identity = getattr(self.noun, "id", None)
        return f"{self.file}\n{self.pointer}" if identity is None else lowered(identity)

    def content(self) -> object:
        """Return what is equal where two are the same."""
        return self.noun

    def describe(self) -> str:
        """Return how messages name it."""
        return f"{self.collection.removesuffix('s')} `{getattr(self.noun, 'id', None)}`"


class Changing(NamedTuple):
    """A change that a document states, with its JSON Pointer in the file."""

    change: Change
    pointer: str


def refuse(pointer: str, message: str, remedy: str = "", kind: PartKind = "part") -> Problem:
    """Return the refusal of a part of a document that cannot be read; the whole document has an empty pointer."""
    return Problem(level="error", message=message, place=pointer, kind=kind, remedy=remedy)


def remark(pointer: str, message: str) -> Problem:
    """Return a warning about a part of a document, such as an unknown key."""
    return Problem(level="warning", message=message, place=pointer, kind="part")


class ParsedDocument(Struct, frozen=True):
    """The content of one document.

    Attributes:
        scope, taken_at: as the document states them, if it does.
        incomplete: what is missing according to the document, one line each.
        covers: `TYPE at ID` for each list of resources that the document contains completely.
        truncated: why the document is not its complete list; empty if it is complete.
        problems: refusals of the parts that could not be read, which do not affect other parts, and remarks.
        nothing: why the document, though understood, contains nothing to check; empty if it does.
        movable: the beginning of ids that the document does not state itself. If another resource already has such an
            id, the ids of the resources below it change.
        linked: the files that were read as part of the document, by their paths relative to it.
        states_changes: the document states what will change, and what it does not name does not change.
        changes: the changes that are not complete resources; they take precedence over a resource at the same pointer.
        unchanged: the pointers of resources that do not change.
    """

    resources: tuple[Placed, ...] = ()
    stated: tuple[Stated, ...] = ()
    scope: str = ""
    taken_at: datetime | None = None
    incomplete: tuple[str, ...] = ()
    covers: tuple[str, ...] = ()
    truncated: str = ""
    problems: tuple[Problem, ...] = ()
    nothing: str = ""
    movable: str = ""
    linked: tuple[str, ...] = ()
    states_changes: bool = False
    changes: tuple[Changing, ...] = ()
    unchanged: frozenset[str] = frozenset()

    @property
    def refusals(self) -> tuple[Problem, ...]:
        """The parts that could not be read."""
        return tuple(problem for problem in self.problems if problem.level == "error")

    @property
    def remarks(self) -> tuple[Problem, ...]:
        """The other problems."""
        return tuple(problem for problem in self.problems if problem.level == "warning")


class Surroundings(Struct, frozen=True):
    """What the user, the location of the file or other inputs state about a document.

    Attributes:
        file: as the user named it.
        scope: the ARM id of the resource group that it is deployed to; `UNKNOWN_SCOPE` if not known.
        workspace: the ARM id of the workspace that it belongs to; below `UNKNOWN_SCOPE` or `/workspaces/{workspace}`
            if not known.
        parameters: values of template parameters, by name in lower case.
        neighbor: the JSON value of another file, by its path relative to this one.
            Raises InputError if the file does not exist or cannot be read.
        neighbor_text: the same file with its places; it contains one document.
        neighbor_names: the names of the files in the same directory, in order.
        find: return the nearest things with a key that documents of the same format name.
        as_applied: no placeholders are left to replace, so text that looks like one is a value.
    """

    file: str = ""
    scope: str = UNKNOWN_SCOPE
    workspace: str = UNKNOWN_WORKSPACE
    parameters: Mapping[str, object] = field(default_factory=dict)
    neighbor: Callable[[str], object] = refuse_neighbors
    neighbor_text: Callable[[str], Text] = refuse_neighbors
    neighbor_names: Callable[[], Sequence[str]] = tuple
    find: Find = find_nothing
    as_applied: bool = False


#: The surroundings of a document about which nothing else is known.
ALONE = Surroundings()


class Format(Protocol):
    """One input format: a module with these members."""

    #: What the format looks like, for the message that lists the supported formats.
    SUMMARY: str
    #: The members of its documents at the top level, in lower case: one set for each kind of document.
    SHAPES: tuple[frozenset[str], ...]

    def detect(self, document: object) -> bool:
        """Check whether the content is in this format."""

    def read(self, document: object, around: Surroundings = ALONE) -> ParsedDocument:
        """Read any JSON value; parts that do not fit the format become refusals."""


def move_pointers(reading: ParsedDocument, base: str) -> ParsedDocument:
    """Prefix all pointers of a reading with the pointer of its document."""
    return replace(
        reading,
        resources=tuple(
            placed._replace(
                pointer=base + placed.pointer,
                fields={key: base + place for key, place in placed.fields.items()},
                names=replace(placed.names, base=base + placed.names.base)
                if placed.names is not NO_NAMES
                else NO_NAMES,
            )
            if placed.text is None
            else placed
            for placed in reading.resources
        ),
        stated=tuple(stated._replace(pointer=base + stated.pointer) for stated in reading.stated),
        changes=tuple(changing._replace(pointer=base + changing.pointer) for changing in reading.changes),
        unchanged=frozenset(base + pointer for pointer in reading.unchanged),
        problems=tuple(replace(problem, place=base + problem.place) for problem in reading.problems),
    )


def reading_of(entries: Iterable[Placed | Problem], truncated: str = "") -> ParsedDocument:
    """Separate entries into resources and problems; adjacent refusals for the same reason become one."""
    placed: list[Placed] = []
    remarks: list[Problem] = []
    refused = _group_refusals(_refusals_of(entries, placed, remarks))
    return ParsedDocument(resources=tuple(placed), truncated=truncated, problems=(*refused, *remarks))


def _refusals_of(
    entries: Iterable[Placed | Problem], placed: list[Placed], remarks: list[Problem]
) -> Iterator[Problem]:
    """Yield refusals one by one, because there may be millions, and append the other entries to the lists."""
    for entry in entries:
        if not isinstance(entry, Problem):
            placed.append(entry)
        elif entry.level == "warning":
            remarks.append(entry)
        else:
            yield entry


def limit_refusals(entries: Iterable[_Entry | Problem]) -> Iterator[_Entry | Problem]:
    """Yield entries with at most `MAX_REFUSALS` refusals; a last refusal states how many were omitted."""
    refused = 0
    for entry in entries:
        if isinstance(entry, Problem):
            refused += 1
            if refused > MAX_REFUSALS:
                continue
        yield entry
    yield from _refuse_omitted(max(0, refused - MAX_REFUSALS))


def next_page(document: JsonObject) -> str:
    """Return why a list is not complete if ARM names the next page in `nextLink`, else an empty string."""
    return (
        "the list continues at its `nextLink`, and the next page is not in the file" if document.get("nextLink") else ""
    )


def keys_seen(document: Mapping[str, object], limit: int = 8) -> str:
    """Return the first top-level keys of an object for a message."""
    keys = [f"`{shortened(key)}`" for key in list(document)[:limit]]
    return ", ".join(keys) + (", …" if len(document) > limit else "")


def format_value(value: object) -> str:
    """Return a JSON value for a message: text and numbers as they are written, other values by their kind."""
    return f"`{shortened(str(value))}`" if type(value) in (str, int, float) else kind_of(value)


def seen(document: object) -> str:
    """Describe a document for the message that its format is not supported."""
    if isinstance(document, dict) and "type" in document and "id" not in document:
        return "an object with `type` but no `id`"
    if isinstance(document, dict):
        return f"an object with the keys {keys_seen(document)}" if document else "an empty object"
    if isinstance(document, list) and document:
        return f"a list that begins with {seen(document[0])}"
    return kind_of(document) if document != [] else "an empty list"


def _group_refusals(refusals: Iterable[Problem]) -> tuple[Problem, ...]:
    joined: list[Problem] = []
    left_out = 0
    for _, neighbours in groupby(refusals, key=attrgetter("message", "remedy", "kind")):
        first = next(neighbours)
        others = sum(1 for _ in neighbours)  # noqa: B031  # each group is read once, in parts
        if len(joined) == MAX_REFUSALS:
            left_out += 1 + others
            continue
        if others:
            next_ones = "one" if others == 1 else str(others)
            first = replace(first, message=f"{first.message} (same for the next {next_ones})")
        joined.append(first)
    return (*joined, *_refuse_omitted(left_out))


def _refuse_omitted(count: int) -> Iterator[Problem]:
    if count:
        yield refuse("", f"{count} more parts of the document cannot be read", "correct the earlier ones first")


class Loaded(NamedTuple):
    """A document that was read, and the text to which its pointers refer."""

    file: str
    reading: ParsedDocument
    text: Text

    def texts(self) -> dict[str, Text]:
        """Return the files that contain its resources: its own, and those that were read as part of it."""
        others = {placed.text.file: placed.text for placed in self.reading.resources if placed.text is not None}
        return {self.file: self.text} | others

    def locate(self, parts: Sequence[_Part]) -> list[_Part]:
        """Return resources or other entries of the document with their places."""
        return [part._replace(file=self.file, origin=at) for part, at in zip(parts, self.origins(parts), strict=True)]

    def origins(self, parts: Sequence[Placed | Stated | Changing]) -> list[Origin]:
        """Return the places of resources or other entries of the document."""
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
                names=part.names if isinstance(part, Placed) else NO_NAMES,
            )
            for part, text in zip(parts, texts, strict=True)
        ]


def problem_of(error: InputError, level: Literal["error", "warning"] = "error") -> Problem:
    """Convert an error to a problem: the first place becomes its place, the rest goes into the message."""
    return Problem(level=level, message=error.message, kind="part", remedy=error.remedy).located(*error.place or ("",))


def raise_errors(problems: Iterable[Problem]) -> None:
    """Raise the first problem that is an error, with the number of further errors.

    Raises:
        InputError: there is an error.
    """
    errors = [problem for problem in problems if problem.level == "error"]
    if errors:
        others = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        raise InputError(errors[0].message + others, place=(errors[0].place,) if errors[0].place else ())
