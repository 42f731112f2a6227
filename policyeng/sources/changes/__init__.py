"""Reader for documents with changes: policyeng's own, what-if output, plans, and any format with resources to put.

Resources in a document are created or replaced; approvals and other facts of the organization are not changes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import overload

import orjson
from msgspec.structs import replace

from policyeng._performance import uncollected
from policyeng.errors import InputError
from policyeng.facts.coverage import ledger_of, list_unread
from policyeng.models import (
    NO_NAMES,
    Change,
    FilePlaces,
    JsonObject,
    LedgerEntry,
    Operation,
    Problem,
    Snapshot,
    lowered,
)
from policyeng.parsing.json_text import DEFAULT_MAX_BYTES, kind_of, require_readable, shortened
from policyeng.sources.arm_resource import NO_PROPERTIES, drop_additions, is_resource_id
from policyeng.sources.changes import native, what_if
from policyeng.sources.context import DocumentContext, normalize_context
from policyeng.sources.detection import FORMATS, ReadOptions, choose_formats, find_second
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
from policyeng.sources.parsed import Format, Loaded, ParsedDocument, Placed, raise_errors
from policyeng.sources.reader import SUFFIXES, ReadDocument, read_documents, read_inputs

#: Collections that changes of resources cannot express.
_COLLECTIONS = ("approvals", "workloads", "quotas", "metrics", "principals", "evidence")


def build_put(resource: JsonObject, snapshot: Snapshot) -> Change:
    """Return the change that puts a resource of a snapshot, with its unknown values."""
    key = lowered(resource["id"])
    return Change(
        operation=Operation.REPLACE,
        id=resource["id"],
        resource=resource,
        unreadable=snapshot.unreadable.get(key, {}),
        carried=snapshot.carried.get(key),
        origin=snapshot.origins.get(key),
    )


def diff_states(before: Snapshot, after: Snapshot) -> tuple[Change, ...]:
    """Return the changes that lead from one state to another, deletes first.

    Child resources are deleted before their parents, because deleting a parent deletes its children.
    """
    earlier = {lowered(resource["id"]): resource for resource in before.resources}
    later = {lowered(resource["id"]) for resource in after.resources}
    gone = sorted((key for key in earlier if key not in later), key=lambda key: -key.count("/"))
    deletes = [Change(operation=Operation.DELETE, id=earlier[key]["id"]) for key in gone]
    puts = [
        build_put(resource, after)
        for resource in after.resources
        if not _is_same(lowered(resource["id"]), resource, earlier, before, after)
    ]
    return (*deletes, *puts)


def list_other_differences(before: Snapshot, after: Snapshot) -> Iterator[Problem]:
    """Yield warnings for differences between two states that are not changes of a resource."""
    for collection in _COLLECTIONS:
        if getattr(before, collection) != getattr(after, collection):
            message = f"the `{collection}` differ from those of the earlier state, which apply"
            yield Problem(level="warning", message=message)


def _is_same(key: str, resource: JsonObject, earlier: dict[str, JsonObject], before: Snapshot, after: Snapshot) -> bool:
    if earlier.get(key) != resource:
        return False
    return before.unreadable.get(key) == after.unreadable.get(key) and before.carried.get(key) == after.carried.get(key)


#: How messages name a document that is not a file.
_IN_MEMORY = "<document>"

#: By name, in the order in which content is looked at.
CHANGE_FORMATS: Mapping[str, Format] = {"what-if": what_if, "changes": native, **FORMATS}

#: The formats whose documents need no context.
_ALONE = frozenset({"changes", "arm-rest"})

_REMEDY = 'provide a resource, `{"changes": [...]}`, a plan or what-if output'


@dataclass(frozen=True)
class ChangesRead(Sequence[Change]):
    """The changes in documents, as a sequence.

    Attributes:
        changes: in the order in which they are made; empty if the documents state that nothing changes.
        problems: what could not be read, with its place; with an `error` the changes are not all that is meant.
        texts: the files by name, for the places of fields.
        read: each document with its format and its number of entries.
        ledger: what was not read of the documents and their directories.
    """

    changes: tuple[Change, ...]
    problems: tuple[Problem, ...] = ()
    texts: Mapping[str, FilePlaces] = field(default_factory=dict, repr=False)
    read: tuple[ReadDocument, ...] = ()
    ledger: tuple[LedgerEntry, ...] = ()

    @overload
    def __getitem__(self, index: int) -> Change: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Change]: ...
    def __getitem__(self, index: int | slice) -> Change | Sequence[Change]:
        """Return a change by its position."""
        return self.changes[index]

    def __len__(self) -> int:
        """Return the number of changes."""
        return len(self.changes)


#: What `load_changes` reads: a path, the content of a document, or a parsed document.
ChangesSource = str | Path | bytes | Mapping[str, object] | Sequence[object]


def load_changes(
    source: ChangesSource,
    from_: str | None = None,
    *,
    scope: str = "",
    workspace: str = "",
    parameters: Mapping[str, object] | None = None,
    exclude: Sequence[str] = (),
    gitignore: bool = True,
    all_files: bool = False,
) -> ChangesRead:
    """Read changes completely or fail, as `policyeng admit` does.

    Args:
        source: a file, a directory, the bytes of a document, or a parsed document: a mapping or a list. A text is a
            path, or the ARM id of a resource to delete.
        from_: a name among `CHANGE_FORMATS`; by content when None.
        scope: the ARM id of the resource group that templates and plans are deployed to.
        workspace: the ARM id or the name of the workspace that Azure CLI files belong to.
        parameters: values of template parameters, by name.
        exclude: patterns of what to exclude, as in a `.gitignore` of the current directory.
        gitignore: exclude what `.gitignore` files list.
        all_files: as for `load_snapshot`.

    Raises:
        InputError: something cannot be read, or there are no changes; with the place and remedy of the first fault.
        UsageError: there is no such format, or `scope`, `workspace` or a pattern is not valid.
    """
    context = normalize_context(scope, workspace, {name.lower(): value for name, value in (parameters or {}).items()})
    if isinstance(source, bytes):
        read = parse_changes(source, _IN_MEMORY, from_format=from_, context=context)
    elif isinstance(source, Path) or (isinstance(source, str) and not is_resource_id(source)):
        refuse_text(source, native.PARSE_IT)
        walk = FileWalk(excluded(exclude, Path.cwd()), gitignore, all_files=all_files)
        read = read_changes([source], from_format=from_, context=context, walk=walk)
    else:
        read = read_document(source, _IN_MEMORY, from_format=from_, context=context)
    raise_errors(read.problems)
    return read


def read_document(
    document: object, name: str, *, from_format: str | None = None, context: DocumentContext | None = None
) -> ChangesRead:
    """Read a parsed document as changes; no file is looked at, whatever it names.

    Args:
        document: a mapping, a list, or the ARM id of a resource to delete.
        name: how messages name it.
        from_format: as for `read_changes`.
        context: as for `read_changes`.

    Raises:
        InputError: it is something else, or nothing in it can be read as a change.
        UsageError: there is no such format.
    """
    if isinstance(document, str) and not is_resource_id(document):
        raise InputError(f"{native.NO_ID}: `{shortened(document)}`", place=(name,), remedy=native.PARSE_IT)
    if not isinstance(document, str | Mapping | list | tuple):
        is_json = document is None or isinstance(document, bool | int | float)
        kind = kind_of(document) if is_json else f"`{type(document).__name__}`"
        raise InputError(f"this is not a change: {kind}", place=(name,), remedy=native.PARSE_IT)
    named = name_document(document, name)
    if from_format is None and (alone := read_alone(named)) is not None:
        return alone
    read = _read([named], from_format, DEFAULT_MAX_BYTES, None, context)
    if not read.changes:
        raise_errors(read.problems)
    return dataclasses.replace(read, changes=tuple(map(_drop_place, read.changes)), texts={})


def _drop_place(change: Change) -> Change:
    """Return the change of a document without lines; names that its format has for resources and fields stay."""
    origin = change.origin
    is_place_only = origin is not None and origin.names == NO_NAMES and not origin.fields
    return change.model_copy(update={"origin": None}) if is_place_only else change


def read_alone(named: Named) -> ChangesRead | None:
    """Read a document with one resource, or with our own changes, as `read_document` does, in a third of the time.

    Nothing is merged, and neither places nor other documents matter.

    Returns:
        the changes; None for any other document, and for one with a fault.

    Raises:
        InputError: it is nested too deeply.
    """
    content = named.content or b""
    document = orjson.loads(content)
    require_readable(document, content, named.file)
    name = next((name for name, each in CHANGE_FORMATS.items() if each.detect(document)), "")
    if name not in _ALONE or find_second(name, document, CHANGE_FORMATS):
        return None
    reading = CHANGE_FORMATS[name].read(document)
    if reading.problems or reading.truncated or len(reading.resources) > 1:
        return None
    changes = [entry.change for entry in reading.changes]
    for placed in map(_put_whole, reading.resources):
        if placed.fields or placed.names is not NO_NAMES:
            return None
        resource, unreadable = placed.resource, drop_additions(placed.resource, placed.unreadable)
        put = Change(operation=Operation.REPLACE, id=resource["id"], resource=resource, unreadable=unreadable)
        changes.append(put)
    if not changes:
        return None
    return ChangesRead(tuple(changes), read=(ReadDocument(named.file, name, len(changes)),))


def read_changes(
    paths: Sequence[str | Path],
    *,
    from_format: str | None = None,
    max_bytes: int = DEFAULT_MAX_BYTES,
    stdin: bytes | None = None,
    context: DocumentContext | None = None,
    walk: FileWalk = EVERYTHING,
) -> ChangesRead:
    """Read files, directories (every JSON and YAML file below them) and standard input (`-`) as changes.

    Args:
        paths: as the user named them.
        from_format: a name among `CHANGE_FORMATS`; by content when None.
        max_bytes: the largest document that is read.
        stdin: the bytes of standard input.
        context: the context from the user, which the documents lack.
        walk: what is left out of directories.

    Raises:
        UsageError: there is no such format.
    """
    return _read(find_inputs(paths, SUFFIXES, walk), from_format, max_bytes, stdin, context)


def read_whole(
    paths: Sequence[str | Path],
    before: Snapshot,
    *,
    from_format: str | None = None,
    max_bytes: int = DEFAULT_MAX_BYTES,
    stdin: bytes | None = None,
    context: DocumentContext | None = None,
    walk: FileWalk = EVERYTHING,
) -> ChangesRead:
    """Read a complete state, as `read_inputs` does, as the changes from the state before.

    Args:
        paths: as the user named them.
        before: what is not in the new state is deleted, and what is the same in both is no change.
        from_format: a name among `FORMATS`; by content when None.
        max_bytes: the largest document that is read.
        stdin: the bytes of standard input.
        context: the context from the user, which the documents lack.
        walk: what is left out of directories.

    Raises:
        UsageError: there is no such format.
    """
    read = read_inputs(
        paths, from_format=from_format, max_bytes=max_bytes, stdin=stdin, context=_as_applied(context), walk=walk
    )
    after = read.snapshot
    problems = (*read.problems, *list_other_differences(before, after))
    return ChangesRead(diff_states(before, after), problems, after.texts, read.read, ledger_of(after))


def parse_changes(
    content: bytes,
    file: str,
    *,
    from_format: str | None = None,
    max_bytes: int = DEFAULT_MAX_BYTES,
    context: DocumentContext | None = None,
) -> ChangesRead:
    """Read bytes as changes, such as the body of a request; no file is looked at, whatever they name.

    Args:
        content: the document.
        file: how messages name it; its suffix counts as that of a file does.
        from_format: as for `read_changes`.
        max_bytes: the largest document that is read.
        context: as for `read_changes`.

    Raises:
        UsageError: there is no such format.
    """
    return _read([Named(file, None)], from_format, max_bytes, content, context)


@uncollected()
def _read(
    inputs: Iterable[Found],
    from_format: str | None,
    max_bytes: int,
    stdin: bytes | None,
    context: DocumentContext | None,
) -> ChangesRead:
    formats = choose_formats(from_format, CHANGE_FORMATS)
    options = ReadOptions(
        formats, _as_applied(context), stdin, max_bytes, embedded=False
    )  # read with their state later
    read = read_documents(inputs, options)
    documents = [document for _, document in read.documents]
    changes, conflicts = _changes(documents)
    problems = [*read.problems, *conflicts, *(problem for each in documents for problem in _find_left_out(each))]
    ledger = (*read.ledger, *(entry for each in documents for entry in _list_unread(each)))
    states_no_change = any(document.reading.states_changes for document in documents)
    if not changes and not any(problem.level == "error" for problem in problems) and not states_no_change:
        problems.append(Problem(level="error", message=f"the documents contain no changes; {_REMEDY}"))
    texts = {file: text for document in documents for file, text in document.texts().items()}
    return ChangesRead(changes, tuple(problems), texts, read.summaries(), ledger)


def _as_applied(context: DocumentContext | None) -> DocumentContext:
    """Return the context for documents that are applied as they are: otherwise a placeholder could hide a value."""
    return (context or DocumentContext())._replace(as_applied=True)


def _changes(documents: Sequence[Loaded]) -> tuple[tuple[Change, ...], tuple[Problem, ...]]:
    """Return the changes in the documents, and then the resources in them as changes."""
    stated_ones = tuple(change for document in documents for change in _read_stated(document))
    put = [document._replace(reading=_select_put(document.reading)) for document in documents]
    if not any(document.reading.resources for document in put):
        return stated_ones, ()
    snapshot, conflicts = joined(put)
    return (*stated_ones, *(build_put(resource, snapshot) for resource in snapshot.resources)), conflicts


def _read_stated(document: Loaded) -> Iterator[Change]:
    changes = document.reading.changes
    for changing, origin in zip(changes, document.origins(changes), strict=True):
        yield changing.change.model_copy(update={"origin": origin})


def _select_put(reading: ParsedDocument) -> ParsedDocument:
    """Return the parsed document with only the resources that are put."""
    others = reading.unchanged | {changing.pointer for changing in reading.changes}
    kept = tuple(_put_whole(placed) for placed in reading.resources if placed.pointer not in others)
    return replace(reading, resources=kept, stated=())


def _put_whole(placed: Placed) -> Placed:
    """Return a resource that is put: what it does not state is absent."""
    if placed.unreadable.get("/properties") != NO_PROPERTIES:
        return placed
    return placed._replace(unreadable={key: why for key, why in placed.unreadable.items() if key != "/properties"})


def _list_unread(document: Loaded) -> Iterator[LedgerEntry]:
    for entry in list_unread(document.reading.incomplete, document.texts()):
        yield replace(entry, place=entry.place or document.file)


def _find_left_out(document: Loaded) -> Iterator[Problem]:
    """Yield the problems of a document's other content, and of changes that a page does not have."""
    reading = document.reading
    for collection in dict.fromkeys(entry.collection for entry in reading.stated):
        message = f"the `{collection}` are not changes and are ignored; add them to the snapshot"
        yield Problem(level="warning", message=message, place=document.file)
    if reading.truncated:
        yield Problem(level="error", message=reading.truncated, place=document.file)
