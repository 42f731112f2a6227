"""The input formats by name, and the opening of inputs: their text, and the format of each document in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import PurePath
from typing import NamedTuple

from msgspec import Struct

from policyeng.errors import InputError, UsageError, suggest_nearest
from policyeng.facts.letters import as_technical_name, find_odd_letter
from policyeng.later import Modules
from policyeng.models import Document, LedgerEntry, Problem, lowered
from policyeng.parsing.json_text import DEFAULT_MAX_BYTES
from policyeng.sources.arm_resource import describe_misspelt, looks_like_arm
from policyeng.sources.context import DocumentContext, list_neighbors, resolve_path
from policyeng.sources.discovery import Found, LeftOut, Named, content_of, display
from policyeng.sources.left_out import Inspection
from policyeng.sources.parsed import Format, keys_seen, problem_of, seen
from policyeng.sources.relevance import is_shaped_as_ours, may_be_ours, other_document
from policyeng.sources.templates import find_twice
from policyeng.sources.text import JSON_SUFFIXES, SOURCE_CODE, Text, read_text
from policyeng.sources.written_documents import NEVER_WRITTEN, read_documents

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


#: The members that identify a document or a resource.
_NAMING = ("$schema", "apiVersion", "kind", "type")
#: The formats of answers, of which only the resources are searched for a member that is there twice.
_OF_ANSWERS = frozenset({"arm-rest", "az-output", "resource-graph", "what-if"})
_IN_ASCII = "write it in ASCII, without spaces"
_DIVIDE = "give each document in a file of its own, with members of one format only"


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


class ReadOptions(NamedTuple):
    """How inputs are read.

    Attributes:
        formats: by name; a single format takes every document, and without formats only written documents are stored.
        context: what the user states for all documents.
        stdin: the bytes of standard input.
        max_bytes: the largest file that is read.
        documents: also store every input as it was written.
        embedded: also read the templates that resources contain.
    """

    formats: Mapping[str, Format]
    context: DocumentContext = DocumentContext()
    stdin: bytes | None = None
    max_bytes: int = DEFAULT_MAX_BYTES
    documents: bool = False
    embedded: bool = True


class DetectedDocument(Struct, frozen=True):
    """One document of a file, with the format that reads it; `position` is that of the file among the inputs."""

    position: int
    named: Named
    text: Text
    pointer: str
    document: object
    name: str
    format: Format


class OpenedFile(NamedTuple):
    """One of the inputs after it was opened.

    Attributes:
        named: the file; None for what is not opened.
        parts: the documents that a format reads.
        written: the documents as they were written; None if they are not stored.
        notes: why the file or some of its documents are not read.
        source_code: the content, if it is source code that must be compiled first, and the error that states so.
    """

    named: Named | None = None
    parts: tuple[DetectedDocument, ...] = ()
    written: tuple[Document, ...] | None = None
    notes: tuple[Problem | LedgerEntry, ...] = ()
    source_code: tuple[bytes, InputError] | None = None


def open_files(inputs: Iterable[Found], options: ReadOptions) -> list[OpenedFile]:
    """Read each file once and detect the formats of its documents; what cannot be read or is not relevant is noted."""
    first: dict[object, int] = {}
    files: list[OpenedFile] = []
    inspection = Inspection(options.formats if len(options.formats) > 1 else FORMATS)
    for position, named in enumerate(inputs):
        if isinstance(named, Named) and first.setdefault(_identify(named), position) < position:
            again = Problem(level="warning", message="given twice; it is read once", place=named.file)
            files.append(OpenedFile(notes=(again,)))
        elif isinstance(named, Named):
            files.append(_open(position, named, options, inspection))
        elif isinstance(named, LeftOut):
            files.append(OpenedFile(notes=tuple(inspection.entries(named))))
        else:
            files.append(OpenedFile(notes=(problem_of(named) if isinstance(named, InputError) else named,)))
    return files


def open_neighbors(files: Sequence[OpenedFile], options: ReadOptions) -> list[OpenedFile]:
    """Open the files that may name the workspace, if all documents belong to a workspace that they do not name."""
    parts = [part for file in files for part in file.parts]
    if options.documents or not all(
        part.named.path and not part.named.found and belongs_to_workspace(part) for part in parts
    ):
        return []
    known = {_identify(file.named) for file in files if file.named}
    inspection = Inspection(FORMATS)
    opened: list[OpenedFile] = []
    for path in dict.fromkeys(path for part in parts if part.named.path for path in list_neighbors(part.named.path)):
        named, position = Named(display(path), path, found=True), len(files) + len(opened)
        if _identify(named) not in known:
            known.add(_identify(named))
            file = _open(position, named, options, inspection)
            message = "also read, because it is next to an input and may name the workspace"
            note = Problem(level="warning", message=message, place=named.file)
            opened.append(file._replace(notes=(*file.notes, note)))
    return opened


def belongs_to_workspace(part: DetectedDocument) -> bool:
    """Check whether a document belongs to a workspace that it does not name."""
    belongs = getattr(part.format, "belongs_to_workspace", None)
    return bool(belongs and belongs(part.document))


def _identify(named: Named) -> PurePath | str:
    return resolve_path(named.path) if named.path else named.file


def _open(position: int, named: Named, options: ReadOptions, inspection: Inspection) -> OpenedFile:
    content, written = None, None
    entries: list[DetectedDocument | Problem | LedgerEntry] = []
    try:
        content = content_of(named, options.stdin, options.max_bytes)
        if named.any_suffix and not inspection.is_document(content, named.file):
            return OpenedFile(named)  # it was looked at, and is no document
        if options.documents and not (named.found and named.file.lower().endswith(NEVER_WRITTEN)):
            written = tuple(read_documents(named.file, content, options.max_bytes))
        if options.formats:
            entries = list(
                _detect(position, named, read_text(content, named.file, max_bytes=options.max_bytes), options)
            )
    except InputError as error:
        if content is not None and named.found and not options.documents:
            if named.file.lower().endswith(tuple(SOURCE_CODE)):
                return OpenedFile(named, source_code=(content, error))
            if not named.any_suffix and not may_be_ours(content, is_json=named.file.lower().endswith(JSON_SUFFIXES)):
                return OpenedFile(named, notes=(_unrelated(named.file, error.message),))
        entries = [problem_of(error)]
    parts = tuple(entry for entry in entries if isinstance(entry, DetectedDocument))
    return OpenedFile(
        named, parts, written, tuple(entry for entry in entries if not isinstance(entry, DetectedDocument))
    )


def find_second(name: str, document: object, formats: Mapping[str, Format]) -> str:
    """Return why a document in a format may be one of another format, too; an empty string if it may not.

    A document with only members of the format costs one look at their names.

    Args:
        name: of the format that reads the document.
        document: any JSON value; only objects have members.
        formats: that format, and others in addition to `FORMATS`, by name.
    """
    if not isinstance(document, dict):
        return ""
    detect, shapes = formats[name].detect, formats[name].SHAPES
    names = set(map(lowered, document))
    if name in _OF_ANSWERS and len(names) < len(document) and not looks_like_arm(document):
        return next(find_twice(document)).message
    if any(names <= shape for shape in shapes) or not detect(document):
        return ""  # a document that does not look like the format that the user named is refused by its reader
    parts = [{key: value for key, value in document.items() if lowered(key) in shape} for shape in shapes]
    claimed = [part.keys() for part in parts if part and detect(part)]
    if any(not (one <= other or other <= one) for one, other in combinations(claimed, 2)):
        return f"two documents of the format `{name}` in one: {keys_seen(document)}"
    own = max(parts, key=len)
    rest = {key: value for key, value in document.items() if key not in own}
    for other in dict.fromkeys((*formats, *FORMATS)):
        claims = (formats[other] if other in formats else FORMATS[other]).detect
        if other != name and (claims(document) or claims(rest)):
            return f"a document of two formats: `{name}` ({keys_seen(own)}) and `{other}` ({keys_seen(rest)})"
    return ""


def find_misspelt(document: object, formats: Mapping[str, Format]) -> tuple[str, str] | None:
    """Return the member of an unknown document whose value is misspelt, and why: in ASCII, a format would read it."""
    stated = {key: document.get(key) for key in _NAMING} if isinstance(document, dict) else {}
    wrong = {key: text for key, text in stated.items() if isinstance(text, str) and find_odd_letter(text)}
    if not wrong or not isinstance(document, dict):
        return None
    plain = {**document, **{key: as_technical_name(text) for key, text in wrong.items()}}
    if not any(each.detect(plain) for each in formats.values()):
        return None
    name = next(iter(wrong))
    return name, describe_misspelt(name, wrong[name])


def _explain_unread(reader: Format, document: object) -> str:
    explain = getattr(reader, "explain_unread", None)
    return str(explain(document)) if explain else ""


def _unrelated(place: str, reason: str) -> LedgerEntry:
    return LedgerEntry(place=place, reason=reason, relevant=False)


def _detect(
    position: int, named: Named, text: Text, options: ReadOptions
) -> Iterator[DetectedDocument | Problem | LedgerEntry]:
    """Yield the documents of a file, each with the first format that detects it; a single format takes all."""
    formats = options.formats
    for pointer, document in text.documents:
        name = next((name for name, each in formats.items() if len(formats) == 1 or each.detect(document)), "")
        # A document in a supported format is read even if it also has a key of a report.
        is_other = named.found and name in ("", "changes") and not is_shaped_as_ours(document)
        if is_other and (other := other_document(document)):
            yield _unrelated(named.file, other)
        elif name and (second := find_second(name, document, formats)):
            place = (named.file, pointer) if pointer else (named.file,)
            yield problem_of(InputError(second, place=place, remedy=_DIVIDE))
        elif name:
            yield DetectedDocument(position, named, text, pointer, document, name, formats[name])
        elif misspelt := find_misspelt(document, formats):
            place = (named.file, f"{pointer}/{misspelt[0]}")
            yield problem_of(InputError(misspelt[1], place=place, remedy=_IN_ASCII))
        elif why := next(filter(None, (_explain_unread(each, document) for each in formats.values())), ""):
            place = (named.file, f"{pointer}/$schema")
            entry = LedgerEntry(place=":".join(filter(None, (named.file, pointer))), reason=why, relevant=True)
            remedy = "correct it, or exclude the file"
            yield entry if named.found else problem_of(InputError(why, place=place, remedy=remedy))
        else:
            place = (named.file, pointer) if pointer else (named.file,)
            remedy = "`policyeng check --from` lists the formats"
            error = InputError(f"unsupported format: {seen(document)}", place=place, remedy=remedy)
            problem = problem_of(error, "warning" if options.documents else "error")
            yield _unrelated(":".join(place), error.message) if is_other else problem
