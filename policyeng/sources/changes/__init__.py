"""Reader for documents with changes: policyeng's own, what-if output, plans, and any format with resources to put.

Resources in a document are created or replaced; approvals and other facts of the organization are not changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from policyeng._performance import uncollected
from policyeng.facts.coverage import ledger_of, list_unread
from policyeng.frozen import replace
from policyeng.models import Change, FilePlaces, JsonObject, LedgerEntry, Operation, Problem, Snapshot, lowered
from policyeng.parsing.json_text import DEFAULT_MAX_BYTES
from policyeng.sources.changes import native, what_if
from policyeng.sources.context import DocumentContext
from policyeng.sources.detection import FORMATS, ReadOptions, choose_formats
from policyeng.sources.discovery import EVERYTHING, FileWalk, Found, Named, find_inputs
from policyeng.sources.merge import joined
from policyeng.sources.parsed import Format, Loaded, ParsedDocument
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


#: By name, in the order in which content is looked at.
CHANGE_FORMATS: Mapping[str, Format] = {"what-if": what_if, "changes": native, **FORMATS}

_REMEDY = 'provide a resource, `{"changes": [...]}`, a plan or what-if output'


class ChangesRead(NamedTuple):
    """The changes in documents.

    Attributes:
        changes: in the order in which they are made; empty if nothing changes.
        problems: what could not be read, with its place; with an `error` the changes are not all that is meant.
        texts: the files by name, for the places of fields.
        read: each document with its format and its number of entries.
        ledger: what was not read of the documents and their directories.
    """

    changes: tuple[Change, ...]
    problems: tuple[Problem, ...]
    texts: Mapping[str, FilePlaces]
    read: tuple[ReadDocument, ...] = ()
    ledger: tuple[LedgerEntry, ...] = ()


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
    stated_ones = [change for document in documents for change in _read_stated(document)]
    snapshot, conflicts = joined([document._replace(reading=_select_put(document.reading)) for document in documents])
    return (*stated_ones, *(build_put(resource, snapshot) for resource in snapshot.resources)), conflicts


def _read_stated(document: Loaded) -> Iterator[Change]:
    changes = document.reading.changes
    for changing, origin in zip(changes, document.origins(changes), strict=True):
        yield changing.change.model_copy(update={"origin": origin})


def _select_put(reading: ParsedDocument) -> ParsedDocument:
    """Return the parsed document with only the resources that are put."""
    others = reading.unchanged | {changing.pointer for changing in reading.changes}
    kept = tuple(placed for placed in reading.resources if placed.pointer not in others)
    return replace(reading, resources=kept, stated=())


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
