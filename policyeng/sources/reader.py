"""Reading of files, directories and standard input into one snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import orjson

from policyeng._performance import uncollected
from policyeng.errors import InputError, UsageError
from policyeng.frozen import replace
from policyeng.models import Problem, Snapshot
from policyeng.named import NamedTuple
from policyeng.parsing.json_text import DEFAULT_MAX_BYTES
from policyeng.progress import counted
from policyeng.sources.context import DocumentContext, normalize_context
from policyeng.sources.detection import FORMATS, DetectedDocument, choose_formats, loaded
from policyeng.sources.discovery import EVERYTHING, FileWalk, Found, Named, Skipped, excluded, find_inputs
from policyeng.sources.file_collection import FileCollection, warn_about_skipped
from policyeng.sources.merge import joined
from policyeng.sources.parsed import Loaded, ParsedDocument, Placed, raise_errors
from policyeng.sources.templates import Carrier, carrier_of, member, template_in
from policyeng.sources.text import JSON_SUFFIXES, SOURCE_CODE, YAML_SUFFIXES

#: Formats of existing resources: a deployment in them is complete, and its resources are listed separately.
_LIVE = ("arm-rest", "native", "resource-graph")


def with_contents(document: Loaded, format_name: str) -> Loaded:
    """Add the resources in the templates that the document's resources contain, with their places in the document.

    A carrier that only records a past deployment adds nothing; any other carrier without a template is refused.

    Args:
        document: as its format reads it.
        format_name: the name of that format.
    """
    reading = document.reading
    carriers = [
        placed
        for placed in reading.resources
        if (carrier := carrier_of(placed.resource["type"], placed.resource)) is not None
        and not _is_record(placed, carrier, reading, format_name)
    ]
    if not carriers:
        return document
    from policyeng.sources.arm_template import Contents  # most documents carry no template

    contents = Contents(document.file)
    inner = [_move_to_document(contents.read(placed.resource, placed.unreadable), placed) for placed in carriers]
    more = replace(
        reading,
        resources=(*reading.resources, *(placed for each in inner for placed in each.resources)),
        refusals=(*reading.refusals, *(refusal for each in inner for refusal in each.refusals)),
        incomplete=(*reading.incomplete, *(line for each in inner for line in each.incomplete)),
        remarks=(*reading.remarks, *(remark for each in inner for remark in each.remarks)),
    )
    return document._replace(reading=more)


def _is_record(placed: Placed, carrier: Carrier, reading: ParsedDocument, format_name: str) -> bool:
    """Check whether a carrier has no template and only records what was deployed or stored before."""
    properties = member(placed.resource, "properties")
    try:
        has_template = template_in(carrier, properties) is not None
    except InputError:
        return False
    if has_template or any(at.startswith("/properties/") for at in placed.unreadable):
        return False
    if format_name == "terraform":
        return not reading.states_changes or placed.pointer in reading.unchanged
    if format_name not in _LIVE:
        return False
    has_run = isinstance(member(properties, "provisioningState"), str)
    return not isinstance(properties, Mapping) or carrier.is_stored or has_run


def _move_to_document(reading: ParsedDocument, carrier: Placed) -> ParsedDocument:
    """Convert the pointers in the reading of a carrier's template to pointers into the document."""
    return replace(
        reading,
        resources=tuple(
            placed._replace(
                pointer=_pointer_in_document(carrier, placed.pointer),
                fields={at: _pointer_in_document(carrier, there) for at, there in placed.fields.items()},
            )
            for placed in reading.resources
        ),
        refusals=tuple(
            refusal._replace(pointer=_pointer_in_document(carrier, refusal.pointer)) for refusal in reading.refusals
        ),
        remarks=tuple((_pointer_in_document(carrier, pointer), message) for pointer, message in reading.remarks),
    )


def _pointer_in_document(carrier: Placed, pointer: str) -> str:
    """Return the pointer in the document of a part of a carrier, from `fields` or the nearest entry above it."""
    above = pointer
    while above and above not in carrier.fields:
        above = above.rpartition("/")[0]
    return carrier.fields.get(above, carrier.pointer) + pointer[len(above) :]


#: The suffixes of files in directories that may contain resources.
SUFFIXES = (*JSON_SUFFIXES, *YAML_SUFFIXES, *SOURCE_CODE)


class ReadDocument(NamedTuple):
    """A document that was read: the file as the user named it, its format and its number of resources."""

    file: str
    format: str
    resources: int


class Inputs(NamedTuple):
    """The merged content of several inputs.

    Attributes:
        problems: what could not be read, with its place; an `error` does not affect other inputs.
        files: the documents that were read, as the user named them.
        read: the same with format and number of resources; empty for documents that are checked as they were written.
        skipped: what was found in directories and contains nothing to check.
    """

    snapshot: Snapshot
    problems: tuple[Problem, ...]
    files: tuple[str, ...]
    read: tuple[ReadDocument, ...] = ()
    skipped: tuple[Skipped, ...] = ()


def gathered(
    found: FileCollection,
    inputs: Iterable[Found],
    stdin: bytes | None,
    said: DocumentContext,
    *,
    embedded: bool = True,
) -> list[tuple[DetectedDocument, Loaded]]:
    """Read the documents in the inputs, and add what could not be read to `found`.

    Args:
        found: an empty collection; without formats it only stores documents as they were written.
        inputs: what the user named.
        stdin: the bytes of standard input.
        said: the context from the user.
        embedded: also read the templates that resources contain.
    """
    for named in counted(inputs):
        found.add(named, stdin)
    if found.formats and not found.documents:
        found.add_what_lies_beside()
    found.leave_out_superseded()
    done = loaded(found.parts, said, found.max_bytes)
    if embedded:
        done = [(part, with_contents(document, part.name)) for part, document in done]
    found.settle_source_code(done)
    for part, document in done:
        found.add_result(part, document)
    return done


def reads(done: Iterable[tuple[DetectedDocument, Loaded]]) -> tuple[ReadDocument, ...]:
    """Return a summary of each document that contains something."""
    return tuple(
        ReadDocument(part.named.file, part.name, len(document.reading.resources) + len(document.reading.changes))
        for part, document in done
        if not document.reading.nothing
    )


@uncollected()
def read_inputs(
    paths: Sequence[str | Path | Named],
    *,
    from_format: str | None = None,
    max_bytes: int = DEFAULT_MAX_BYTES,
    stdin: bytes | None = None,
    documents: bool = False,
    resources: bool = True,
    said: DocumentContext | None = None,
    walk: FileWalk = EVERYTHING,
) -> Inputs:
    """Read files, directories (every JSON and YAML file below them) and standard input (`-`) into one snapshot.

    Args:
        paths: as the user named them; or documents in memory.
        from_format: a name among `FORMATS`; by content when None.
        max_bytes: the largest document that is read.
        stdin: the bytes of standard input.
        documents: also store every input as it was written.
        resources: find Azure resources; without them only documents are read, and formats do not matter.
        said: the context from the user.
        walk: what is excluded from directories.

    Raises:
        UsageError: there is no such format, or the policies do not check resources.
    """
    formats = choose_formats(from_format, FORMATS)
    if from_format is not None and not resources:
        raise UsageError(f"`{from_format}` is a format of Azure resources, but the policies check only documents")
    suffixes = (".json", *YAML_SUFFIXES) if not resources else SUFFIXES
    found = FileCollection(formats if resources else {}, max_bytes, documents=documents)
    done = gathered(found, find_inputs(paths, suffixes, walk), stdin, said or DocumentContext())
    files = [path for path in paths if not isinstance(path, Named)] if documents else []
    return _merge_inputs(found, done, warn_about_skipped(files))


@uncollected()
def read_named(
    named: Iterable[Found],
    content: bytes | None = None,
    *,
    documents: bool = False,
    resources: bool = True,
    max_bytes: int = DEFAULT_MAX_BYTES,
) -> Inputs:
    """Read documents into one snapshot, as `read_inputs` reads those behind paths.

    Args:
        named: the documents; their `file` is how messages and origins name them.
        content: the bytes of the one that is not in a file.
        documents: also store them as they were written.
        resources: find Azure resources.
        max_bytes: the largest document that is read.
    """
    found = FileCollection(FORMATS if resources else {}, max_bytes, documents=documents)
    return _merge_inputs(found, gathered(found, named, content, DocumentContext()), ())


def _merge_inputs(
    found: FileCollection, done: Sequence[tuple[DetectedDocument, Loaded]], more: Iterable[Problem]
) -> Inputs:
    snapshot, conflicts = joined([document for _, document in done])
    files: Iterable[str] = dict.fromkeys(part.named.file for part, _ in done)
    if found.documents:
        snapshot = snapshot.model_copy(update={"documents": tuple(found.written)})
        files = found.files
    return Inputs(
        snapshot, (*found.list_problems(), *conflicts, *more), tuple(files), reads(done), tuple(found.skipped)
    )


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
) -> Snapshot:
    """Read a snapshot completely or fail.

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

    Raises:
        InputError: something cannot be read; with the place and remedy of the first fault.
        UsageError: there is no such format, or `source`, `scope`, `workspace` or a pattern is not valid.
    """
    said = normalize_context(scope, workspace, {name.lower(): value for name, value in (parameters or {}).items()})
    walk = FileWalk(excluded(exclude, Path.cwd()), gitignore)
    inputs = read_inputs(
        _list_sources(source), from_format=from_format, documents=documents, resources=resources, said=said, walk=walk
    )
    raise_errors(inputs.problems)
    return inputs.snapshot


def _list_sources(source: object) -> list[str | Path | Named]:
    """Return the paths and the documents in memory of a source."""
    parts = source if isinstance(source, list | tuple) else [source]
    found: list[str | Path | Named] = []
    for number, part in enumerate(parts, 1):
        if isinstance(part, str | Path):
            found.append(part)
        elif isinstance(part, Mapping):
            name = f"<document {number}>"
            try:
                content = orjson.dumps(dict(part))
            except TypeError as error:
                remedy = "give what `json.load` returns"
                raise UsageError(f"not JSON: {str(error).lower()}", place=(name,), remedy=remedy) from None
            found.append(Named(name, None, content=content))
        else:
            remedy = "give a path, a parsed document (a dict), or a list of these"
            raise UsageError(f"cannot read a snapshot from `{type(part).__name__}`", remedy=remedy)
    return found
