"""The input formats by name, and detection of the format of each document."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath

from policyeng.errors import InputError, UsageError, suggest_nearest
from policyeng.frozen import frozen, replace
from policyeng.later import Modules
from policyeng.models import WORKSPACE_TYPE, JsonObject, lowered
from policyeng.sources import workspace_config
from policyeng.sources.context import DocumentContext, Home, directory_of, find_surroundings, resolve_path
from policyeng.sources.discovery import Named
from policyeng.sources.parsed import (
    Find,
    Format,
    Loaded,
    NamedThing,
    ParsedDocument,
    Surroundings,
    find_nothing,
    move_pointers,
    seen,
)
from policyeng.sources.text import Text

_EVERYWHERE = ""


class Naming:
    """An index of the things that the documents of one format name."""

    def __init__(self) -> None:
        """Create an empty index."""
        self._found: dict[tuple[Hashable, str | PurePath], list[NamedThing]] = defaultdict(list)

    def add(self, names: Mapping[Hashable, JsonObject], file: str, directory: PurePath) -> Find:
        """Add what a document names.

        Args:
            names: the things by key.
            file: the file of the document, as the user named it.
            directory: its absolute directory.

        Returns:
            a function that finds things for the document: first those of its file, then those of its directory or the
            nearest one above it that has any, then those of all inputs.
        """

        def find(key: Hashable) -> Sequence[NamedThing]:
            places: tuple[str | PurePath, ...] = (f"file {file}", directory, *directory.parents, _EVERYWHERE)
            return next((found for place in places if (found := self._found.get((key, place)))), [])

        for key, thing in names.items():
            found = NamedThing(thing, names, find)
            for place in (f"file {file}", directory, _EVERYWHERE):
                self._found[(key, place)].append(found)
        return find


class UnrecognisedError(InputError):
    """A document in an unsupported format."""

    def __init__(self, message: str, document: object, *, place: tuple[str, ...], remedy: str) -> None:
        """Store the document in addition to the arguments of `InputError`."""
        super().__init__(message, place=place, remedy=remedy)
        self.document = document


@frozen
class DetectedDocument:
    """One document of a file, with the format that reads it."""

    named: Named
    text: Text
    pointer: str
    document: object
    name: str
    format: Format


def parts_of(named: Named, text: Text, formats: Mapping[str, Format]) -> Iterator[DetectedDocument | UnrecognisedError]:
    """Yield the documents of a file, each with the first format that detects it; a single format takes all."""
    for pointer, document in text.documents:
        name = next((name for name, each in formats.items() if len(formats) == 1 or each.detect(document)), "")
        if name:
            yield DetectedDocument(named, text, pointer, document, name, formats[name])
        else:
            place = (named.file, pointer) if pointer else (named.file,)
            message = f"unsupported format: {seen(document)}"
            yield UnrecognisedError(message, document, place=place, remedy="`policyeng check --from` lists the formats")


def belongs_to_workspace(part: DetectedDocument) -> bool:
    """Check whether a document belongs to a workspace that it does not name."""
    belongs = getattr(part.format, "belongs_to_workspace", None)
    return bool(belongs and belongs(part.document))


def loaded(
    parts: Iterable[DetectedDocument], context: DocumentContext, max_bytes: int
) -> list[tuple[DetectedDocument, Loaded]]:
    """Read the documents; those that belong to a workspace come last, because the others name the workspaces."""
    waiting = list(parts)
    finding = _make_finders(waiting)
    done: dict[int, Loaded] = {}
    homes: list[Home] = []
    for later in (False, True):
        for index, part in enumerate(waiting):
            if belongs_to_workspace(part) is later:
                around = find_surroundings(part.named, context, homes, max_bytes)
                done[index] = _load(part, replace(around, find=finding[index]))
                homes += _find_homes(part, done[index].reading)
        if not later and (left := _remove_linked(waiting, done)):
            done |= left
            homes = [home for index, document in done.items() for home in _find_homes(waiting[index], document.reading)]
    return [(part, done[index]) for index, part in enumerate(waiting)]


def _remove_linked(parts: Sequence[DetectedDocument], done: Mapping[int, Loaded]) -> dict[int, Loaded]:
    """Return the documents that are read as part of another one, without content and with that as the reason.

    A document that is read as part of another does not remove others. Of files that link to each other, the first by
    name remains.
    """
    left: dict[int, Loaded] = {}
    links = _find_links(parts, done)
    waiting = set(done)
    while waiting:
        linked = {other for index in waiting for other in links.get(index, ())}
        free = waiting - linked or {
            min(waiting, key=lambda index: (not _links_back(index, links), parts[index].named.file))
        }
        for index in sorted(free, key=lambda index: parts[index].named.file):
            for other in links.get(index, frozenset()) & waiting - free:
                reason = f"read as part of `{parts[index].named.file}`"
                left.setdefault(other, done[other]._replace(reading=ParsedDocument(nothing=reason)))
        waiting -= free | left.keys()
    return left


def _find_links(parts: Sequence[DetectedDocument], done: Mapping[int, Loaded]) -> dict[int, frozenset[int]]:
    """Return, by position, which documents are read as part of which."""
    if not any(document.reading.linked for document in done.values()):
        return {}
    files = {index: path for index in done if (path := parts[index].named.path)}
    by_file: dict[PurePath, set[int]] = {}
    for index, path in files.items():
        by_file.setdefault(resolve_path(path), set()).add(index)
    found: dict[int, frozenset[int]] = {}
    for index, path in files.items():
        wholes = [resolve_path(path.parent / linked) for linked in done[index].reading.linked]
        others = frozenset(other for linked in wholes for other in by_file.get(linked, ()))
        if wholes:
            found[index] = frozenset(other for other in others - {index} if parts[other].format is parts[index].format)
    return found


def _links_back(index: int, links: Mapping[int, frozenset[int]]) -> bool:
    """Check whether a document links to one that links back to it."""
    return any(index in links.get(other, ()) for other in links.get(index, ()))


def _make_finders(parts: list[DetectedDocument]) -> list[Find]:
    """Return, for each document, the function that finds the things that all documents of its format name."""
    naming = {part.name: Naming() for part in parts}
    finding: list[Find] = []
    for part in parts:
        names_in = getattr(part.format, "names_in", None)
        if names_in:
            names = names_in(part.document)
            finding.append(naming[part.name].add(names, part.named.file, directory_of(part.named)))
        else:
            finding.append(find_nothing)
    return finding


def _find_homes(part: DetectedDocument, reading: ParsedDocument) -> Iterator[Home]:
    directory = directory_of(part.named)
    if part.format is workspace_config and (named := workspace_config.workspace_of(part.document)):
        yield Home(directory.parent if directory.name == ".azureml" else directory, named)
    for placed in reading.resources:
        if lowered(placed.resource["type"]) == WORKSPACE_TYPE:
            yield Home(directory, placed.resource["id"])


def _load(part: DetectedDocument, around: Surroundings) -> Loaded:
    reading = part.format.read(part.document, around)
    return Loaded(part.named.file, move_pointers(reading, part.pointer) if part.pointer else reading, part.text)


#: By the name for `--from`, in the order in which they are tried on a document.
FORMATS: Mapping[str, Format] = Modules(
    "policyeng.sources",
    {
        "native": "native",
        "azure-cli": "azure_cli",
        "workspace-config": "workspace_config",
        "arm-template": "arm_template",
        "kubernetes": "kubernetes",
        "terraform": "terraform",
        "resource-graph": "resource_graph",
        "role-access": "role_assignments",
        "az-output": "az_output",
        "arm-rest": "arm_rest",
    },
)


def choose_formats(name: str | None, formats: Mapping[str, Format]) -> Mapping[str, Format]:
    """Return the format with a name, or all formats if the name is None.

    Raises:
        UsageError: there is no such format; the message has the nearest name and all names.
    """
    if name is None:
        return formats
    if name not in formats:
        known = ", ".join(f"`{known}`" for known in formats)
        raise UsageError(f"unknown format `{name}`{suggest_nearest(name, formats)}", remedy=f"the formats are {known}")
    return {name: formats[name]}
