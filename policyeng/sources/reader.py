"""Reading of files, directories and standard input into one snapshot."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from policyeng._performance import uncollected
from policyeng.errors import InputError, UsageError
from policyeng.models import LedgerEntry, Problem, Snapshot
from policyeng.parsing.json_text import DEFAULT_MAX_BYTES
from policyeng.progress import counted
from policyeng.sources.context import DocumentContext, Home, find_surroundings, normalize_context
from policyeng.sources.detection import (
    FORMATS,
    DetectedDocument,
    OpenedFile,
    ReadOptions,
    belongs_to_workspace,
    choose_formats,
    open_files,
    open_neighbors,
)
from policyeng.sources.discovery import (
    EVERYTHING,
    FileWalk,
    Found,
    Named,
    excluded,
    find_inputs,
    name_document,
    refuse_text,
)
from policyeng.sources.merge import joined
from policyeng.sources.parsed import Loaded, Surroundings, move_pointers, raise_errors
from policyeng.sources.references import (
    drop_superseded,
    find_homes,
    find_linked,
    list_uncompiled,
    make_finders,
    with_overlays,
)
from policyeng.sources.relevance import is_something_else, mentions_machine_learning
from policyeng.sources.templates import with_embedded
from policyeng.sources.text import JSON_SUFFIXES, SOURCE_CODE, YAML_SUFFIXES
from policyeng.sources.written_documents import warn_about_skipped

#: The suffixes of files in directories that may contain resources.
SUFFIXES = (*JSON_SUFFIXES, *YAML_SUFFIXES, *SOURCE_CODE)


class ReadDocument(NamedTuple):
    """A document that was read: the file as the user named it, its format and its number of resources."""

    file: str
    format: str
    resources: int


class ReadDocuments(NamedTuple):
    """All documents in the inputs.

    Attributes:
        files: the inputs after they were opened.
        documents: with the results of reading them, in the order of the inputs.
        problems: what could not be read, in the order of the inputs.
        ledger: what was found and not read, or contains nothing to check.
    """

    files: Sequence[OpenedFile]
    documents: Sequence[tuple[DetectedDocument, Loaded]]
    problems: tuple[Problem, ...]
    ledger: tuple[LedgerEntry, ...]

    def summaries(self) -> tuple[ReadDocument, ...]:
        """Return a summary of each document that contains something."""
        return tuple(
            ReadDocument(part.named.file, part.name, len(document.reading.resources) + len(document.reading.changes))
            for part, document in self.documents
            if not document.reading.nothing
        )


class Inputs(NamedTuple):
    """The merged content of several inputs.

    Attributes:
        problems: what could not be read, with its place; an `error` does not affect other inputs.
        files: the documents that were read, as the user named them.
        read: the same with format and number of resources; empty for documents that are checked as they were written.
    """

    snapshot: Snapshot
    problems: tuple[Problem, ...]
    files: tuple[str, ...]
    read: tuple[ReadDocument, ...] = ()

    @property
    def ledger(self) -> tuple[LedgerEntry, ...]:
        """What was found in directories and not read, or contains nothing to check."""
        return self.snapshot.ledger


@uncollected()
def read_inputs(
    paths: Sequence[str | Path | Found],
    *,
    from_format: str | None = None,
    max_bytes: int = DEFAULT_MAX_BYTES,
    stdin: bytes | None = None,
    documents: bool = False,
    resources: bool = True,
    context: DocumentContext | None = None,
    walk: FileWalk = EVERYTHING,
) -> Inputs:
    """Read files, directories (every JSON and YAML file below them) and standard input (`-`) into one snapshot.

    Args:
        paths: as the user named them; or documents, in memory or under another name, and what was found with them.
        from_format: a name among `FORMATS`; by content when None.
        max_bytes: the largest document that is read.
        stdin: the bytes of standard input, and of a document without path and content.
        documents: also store every input as it was written.
        resources: find Azure resources; without them only documents are read, and formats do not matter.
        context: the context from the user.
        walk: what is excluded from directories.

    Raises:
        UsageError: there is no such format, or the policies do not check resources.
    """
    formats = choose_formats(from_format, FORMATS)
    if from_format is not None and not resources:
        raise UsageError(f"`{from_format}` is a format of Azure resources, but the policies check only documents")
    suffixes = SUFFIXES if resources else (".json", *YAML_SUFFIXES)
    options = ReadOptions(formats if resources else {}, context or DocumentContext(), stdin, max_bytes, documents)
    read = read_documents(find_inputs(paths, suffixes, walk), options)
    snapshot, problems = joined([document for _, document in read.documents])
    snapshot = snapshot.model_copy(update={"ledger": read.ledger}) if read.ledger else snapshot
    files = list(dict.fromkeys(part.named.file for part, _ in read.documents))
    if documents:
        written = [(file.named.file, file.written) for file in read.files if file.named and file.written is not None]
        snapshot = snapshot.model_copy(update={"documents": tuple(each for _, every in written for each in every)})
        files = [file for file, _ in written]
        problems = (*problems, *warn_about_skipped(path for path in paths if isinstance(path, str | Path)))
    return Inputs(snapshot, (*read.problems, *problems), tuple(files), read.summaries())


def read_documents(inputs: Iterable[Found], options: ReadOptions) -> ReadDocuments:
    """Read the documents in the inputs stage by stage; each stage also notes problems and what is not evaluated."""
    files = open_files(
        counted(inputs), options
    )  # find the files, decode their text, detect the format of each document
    files += open_neighbors(files, options)
    parts, superseded = drop_superseded([part for file in files for part in file.parts])
    documents = _read_parts(parts, options)  # with what others name, and without those that others link to
    documents = with_overlays(parts, documents)
    if options.embedded:
        documents = [with_embedded(document, part.name) for part, document in zip(parts, documents, strict=True)]
    read = list(zip(parts, documents, strict=True))
    notes = [
        *((position, note) for position, file in enumerate(files) for note in file.notes),
        *((0, note) for note in superseded),
        *list_uncompiled(files, (part for part, document in read if document.reading.resources)),
        *((part.position, note) for part, document in read for note in _list_faults(part, document)),
    ]
    problems = tuple(note for _, note in sorted(notes, key=itemgetter(0)) if isinstance(note, Problem))
    ledger = tuple(note for _, note in notes if isinstance(note, LedgerEntry))
    return ReadDocuments(files, read, problems, ledger)


def _read_parts(parts: Sequence[DetectedDocument], options: ReadOptions) -> list[Loaded]:
    """Read the documents; those that belong to a workspace come last, because the others name the workspaces."""
    finders = make_finders(parts)
    done: dict[int, Loaded] = {}
    homes: list[Home] = []
    for last in (False, True):
        for index, part in enumerate(parts):
            if belongs_to_workspace(part) is last:
                around = find_surroundings(part.named, options.context, homes, options.max_bytes)
                done[index] = _read_part(part, replace(around, find=finders[index]))
                homes += find_homes(part, done[index].reading)
        if not last and (linked := find_linked(parts, done)):
            done |= linked
            homes = [home for index, document in done.items() for home in find_homes(parts[index], document.reading)]
    return [done[index] for index in range(len(parts))]


def _read_part(part: DetectedDocument, around: Surroundings) -> Loaded:
    reading = part.format.read(part.document, around)
    return Loaded(part.named.file, move_pointers(reading, part.pointer) if part.pointer else reading, part.text)


#: Formats for all of Azure. A broken document in one of them need not be about Azure Machine Learning.
_GENERAL_FORMATS = ("arm-template", "arm-rest", "resource-graph")


def _list_faults(part: DetectedDocument, document: Loaded) -> Iterator[Problem | LedgerEntry]:
    """Yield why a document contains nothing to check, and its problems, errors first."""
    reading = document.reading
    empty = not (reading.resources or reading.stated or reading.changes)
    if reading.nothing:
        yield LedgerEntry(place=document.file, reason=reading.nothing, relevant=False)
    for problem in (*reading.refusals, *reading.remarks):
        is_empty = problem.kind == "empty"
        harmless = (
            problem.level == "error"
            and part.named.found
            and (is_empty or _is_unrelated(part, problem))
            and problem.kind != "ambiguous"
        )
        if harmless and empty:
            is_relevant = not is_empty and mentions_machine_learning(json.dumps(part.document).encode())
            yield LedgerEntry(place=document.file, reason=problem.message, relevant=is_relevant)
        else:
            place = f"{document.file}:{document.text.places([problem.place])[0][0]}"
            yield (replace(problem, level="warning") if harmless else problem).located(place, problem.place)


def _is_unrelated(part: DetectedDocument, problem: Problem) -> bool:
    """Check whether a refused part is not about Azure Machine Learning, in a format for all of Azure."""
    pointer = problem.place.removeprefix(part.pointer)
    return part.name in _GENERAL_FORMATS and is_something_else(part.document, pointer)


#: What `load_snapshot` reads: a path, or the parsed content of a document in any of the formats.
SnapshotSource = str | Path | Mapping[str, object] | Sequence["SnapshotSource"]


def load_snapshot(
    source: SnapshotSource,
    *,
    from_format: str | None = None,
    documents: bool = False,
    resources: bool = True,
    scope: str = "",
    workspace: str = "",
    parameters: Mapping[str, object] | None = None,
    exclude: Sequence[str] = (),
    gitignore: bool = True,
    all_files: bool = False,
) -> Snapshot:
    """Read a snapshot completely or fail; its `ledger` lists what was found and not read.

    Args:
        source: a file, a directory, a parsed document such as a resource or a native snapshot, or a list of these.
        from_format: a name among `FORMATS`; by content when None.
        documents: also store every input as it was written.
        resources: find Azure resources, not only documents.
        scope: the ARM id of the resource group that templates and plans are deployed to.
        workspace: the ARM id or the name of the workspace that Azure CLI files belong to.
        parameters: values of template parameters, by name.
        exclude: patterns of what to exclude, as in a `.gitignore` of the current directory.
        gitignore: exclude what `.gitignore` files list.
        all_files: also read hidden directories, directories that tools create, ignored files, and documents with any
            suffix.

    Raises:
        InputError: something cannot be read; with the place and remedy of the first fault.
        UsageError: there is no such format, or `source`, `scope`, `workspace` or a pattern is not valid.
    """
    context = normalize_context(scope, workspace, {name.lower(): value for name, value in (parameters or {}).items()})
    walk = FileWalk(excluded(exclude, Path.cwd()), gitignore, all_files=all_files)
    inputs = read_inputs(
        _list_sources(source),
        from_format=from_format,
        documents=documents,
        resources=resources,
        context=context,
        walk=walk,
    )
    raise_errors(inputs.problems)
    return inputs.snapshot


def _list_sources(source: object) -> list[str | Path | Named]:
    """Return the paths and the documents in memory of a source."""
    parts = source if isinstance(source, list | tuple) else [source]
    found: list[str | Path | Named] = []
    for number, part in enumerate(parts, 1):
        if isinstance(part, str | Path):
            refuse_text(part, "pass what `json.loads` returns, or the path of a file or directory")
            found.append(part)
        elif isinstance(part, Mapping):
            try:
                found.append(name_document(part, f"<document {number}>"))
            except InputError as error:
                raise UsageError(error.message, place=error.place, remedy=error.remedy) from None
        else:
            remedy = "give a path, a parsed document (a dict), or a list of these"
            raise UsageError(f"cannot read a snapshot from `{type(part).__name__}`", remedy=remedy)
    return found
