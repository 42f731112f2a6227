"""Documents that come in: detect the format, read it into ARM shape, say what could not be read, join into a snapshot.

A format is one module with `SUMMARY`, `detect` and `read`, named in `FORMATS`; nothing else knows about it. One whose
documents lie within a workspace that they do not name has `belongs_to_workspace`, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from policyeng.errors import InputError, UsageError, nearest
from policyeng.garbage import uncollected
from policyeng.models import Document, Problem, Snapshot
from policyeng.sources import arm_rest, az_output, azure_cli, native, role_access, workspace_config
from policyeng.sources.baseline_report import read_baseline
from policyeng.sources.documents import left_out, read_documents
from policyeng.sources.exemptions_file import ExemptionsRead, load_exemptions, read_exemptions
from policyeng.sources.joining import Loaded, joined
from policyeng.sources.loading import (
    Part,
    Skipped,
    belongs_to_workspace,
    concerns_machine_learning,
    loaded,
    parts_of,
)
from policyeng.sources.opening import Named, content_of, display, named_inputs
from policyeng.sources.problems import problem_of, raise_errors
from policyeng.sources.reading import Format
from policyeng.sources.surroundings import Given, given, lies_beside
from policyeng.sources.template_parameters import given_parameters
from policyeng.sources.texts import JSON_SUFFIXES, SOURCE_CODE, YAML_SUFFIXES, read_text
from policyeng.strict.json_text import DEFAULT_MAX_BYTES

#: By the name that `--from` takes, in the order in which content is looked at.
FORMATS: Mapping[str, Format] = {
    "native": native,
    "azure-cli": azure_cli,
    "workspace-config": workspace_config,
    "role-access": role_access,
    "az-output": az_output,
    "arm-rest": arm_rest,
}

__all__ = [
    "DEFAULT_MAX_BYTES",
    "FORMATS",
    "ExemptionsRead",
    "Given",
    "Inputs",
    "Read",
    "Skipped",
    "given",
    "given_parameters",
    "load_exemptions",
    "load_snapshot",
    "read_baseline",
    "read_exemptions",
    "read_inputs",
]


class Read(NamedTuple):
    """A document that was read: the file as the user named it, its format, and how many resources it holds."""

    file: str
    format: str
    resources: int


class Inputs(NamedTuple):
    """What several inputs hold together.

    Attributes:
        problems: what could not be read, with its place; an `error` never hides another input.
        files: the documents that were read, as the user named them.
        read: the same with what each holds; empty for documents that are judged as they were written.
        skipped: what was found in directories and holds nothing to judge.
    """

    snapshot: Snapshot
    problems: tuple[Problem, ...]
    files: tuple[str, ...]
    read: tuple[Read, ...] = ()
    skipped: tuple[Skipped, ...] = ()


class _Gathered(NamedTuple):
    """What the files hold, before it is read where it belongs."""

    parts: list[Part]
    problems: list[Problem]
    skipped: list[Skipped]


@uncollected()
def read_inputs(
    paths: Sequence[str | Path],
    *,
    from_format: str | None = None,
    max_bytes: int = DEFAULT_MAX_BYTES,
    stdin: bytes | None = None,
    documents: bool = False,
    resources: bool = True,
    said: Given | None = None,
) -> Inputs:
    """Read files, directories (every JSON and YAML file below them) and standard input (`-`) into one snapshot.

    Args:
        paths: as the user named them.
        from_format: a name among `FORMATS`; by content when None.
        max_bytes: the largest document that is read.
        stdin: the bytes of standard input.
        documents: keep every input as it was written, too.
        resources: find Azure resources; without them only documents are read, and no format is none.
        said: what the user says that the documents do not.

    Raises:
        UsageError: there is no such format, or nothing judges what it holds.
    """
    formats = _chosen(from_format)
    if from_format is not None and not resources:
        raise UsageError(f"`{from_format}` is a format of Azure resources, and the policies judge documents only")
    written: list[Document] = []
    files: list[str] = []
    found = _Gathered([], [], [])
    suffixes = (".json", *YAML_SUFFIXES) if not resources else (*JSON_SUFFIXES, *YAML_SUFFIXES, *SOURCE_CODE)
    for named in _each_once(named_inputs(paths, suffixes), found.problems):
        content = b""
        try:
            content = content_of(named, stdin, max_bytes)
            if documents and not (named.found and named.file.lower().endswith((*SOURCE_CODE, ".jsonc", ".tfstate"))):
                written += read_documents(named.file, content, max_bytes)
                files.append(named.file)
            if resources:
                _gather(named, content, formats, max_bytes, found, documents=documents)
        except InputError as error:
            if named.found and content and not documents and not concerns_machine_learning(content):
                found.skipped.append(Skipped(named.file, error.message))
            else:
                found.problems.append(problem_of(error))
    if not documents:
        _read_beside(found, formats, max_bytes)
    done = loaded(found.parts, said or Given(), max_bytes)
    return _inputs(paths, done, found, written, files, documents=documents)


def load_snapshot(
    path: str | Path,
    *,
    from_format: str | None = None,
    documents: bool = False,
    resources: bool = True,
    scope: str = "",
    workspace: str = "",
    parameters: Mapping[str, object] | None = None,
) -> Snapshot:
    """Read one file or directory, all of it or nothing.

    Args:
        path: a file or a directory.
        from_format: a name among `FORMATS`; by content when None.
        documents: keep every input as it was written, too.
        resources: find Azure resources, not documents alone.
        scope: the ARM id of the resource group that templates and plans are deployed to.
        workspace: the ARM id or the name of the workspace that Azure CLI files belong to.
        parameters: values of template parameters, by name.

    Raises:
        InputError: something in it cannot be read; names the place and the remedy of the first fault.
        UsageError: there is no such format, or `scope` or `workspace` is none.
    """
    said = given(scope, workspace, {name.lower(): value for name, value in (parameters or {}).items()})
    inputs = read_inputs([path], from_format=from_format, documents=documents, resources=resources, said=said)
    raise_errors(inputs.problems)
    return inputs.snapshot


def _chosen(name: str | None) -> Mapping[str, Format]:
    if name is None:
        return FORMATS
    if name not in FORMATS:
        known = ", ".join(f"`{known}`" for known in FORMATS)
        raise UsageError(f"there is no format `{name}`{nearest(name, FORMATS)}", remedy=f"there are {known}")
    return {name: FORMATS[name]}


def _each_once(every: Iterator[Named | InputError], problems: list[Problem]) -> Iterator[Named]:
    """The files that are there, each once however often it is named."""
    met: set[Path | str] = set()
    for named in every:
        if isinstance(named, InputError):
            problems.append(problem_of(named))
            continue
        try:
            key: Path | str = named.path.resolve() if named.path else named.file
        except (OSError, RuntimeError, ValueError):
            key = named.file
        if key in met:
            problems.append(Problem(level="warning", message="named twice; it is read once", place=named.file))
            continue
        met.add(key)
        yield named


def _gather(
    named: Named, content: bytes, formats: Mapping[str, Format], max_bytes: int, found: _Gathered, *, documents: bool
) -> None:
    """Add the documents of one file to what was found.

    Raises:
        InputError: the file cannot be read.
    """
    for part in parts_of(named, read_text(content, named.file, max_bytes=max_bytes), formats):
        if isinstance(part, Part):
            found.parts.append(part)
        elif named.found and not concerns_machine_learning(content):
            found.skipped.append(Skipped(":".join(part.place), part.message))
        else:
            found.problems.append(problem_of(part, "warning" if documents else "error"))


def _read_beside(found: _Gathered, formats: Mapping[str, Format], max_bytes: int) -> None:
    """Add the workspace that lies beside files which belong to one and were named alone."""
    homeless = [part for part in found.parts if part.named.path and not part.named.found and belongs_to_workspace(part)]
    if not homeless or len(homeless) < len(found.parts):
        return
    known = {part.named.path.resolve() for part in found.parts if part.named.path}
    beside = {place.resolve(): place for part in homeless if part.named.path for place in lies_beside(part.named.path)}
    for resolved, path in beside.items():
        if resolved not in known:
            named = Named(display(path), path, found=True)
            try:
                _gather(named, content_of(named, None, max_bytes), formats, max_bytes, found, documents=False)
            except InputError as error:
                found.problems.append(problem_of(error))
            else:
                message = "read too, because it lies beside and may name the workspace"
                found.problems.append(Problem(level="warning", message=message, place=named.file))


def _inputs(
    paths: Sequence[str | Path],
    done: Sequence[tuple[Part, Loaded]],
    found: _Gathered,
    written: Sequence[Document],
    files: Sequence[str],
    *,
    documents: bool,
) -> Inputs:
    problems, skipped = found.problems, found.skipped
    for part, document in done:
        more, left = _said(part, document)
        problems += more
        skipped += left
    snapshot, conflicts = joined([document for _, document in done])
    if documents:
        snapshot = snapshot.model_copy(update={"documents": tuple(written)})
        problems += left_out(paths)
    read = [
        Read(part.named.file, part.name, len(document.reading.resources))
        for part, document in done
        if not document.reading.nothing
    ]
    names = files if documents else dict.fromkeys(part.named.file for part, _ in done)
    return Inputs(snapshot, (*problems, *conflicts), tuple(names), tuple(read), tuple(skipped))


def _said(part: Part, document: Loaded) -> tuple[list[Problem], list[Skipped]]:
    """What a document could not say, and why it holds nothing to judge, if it does."""
    reading = document.reading
    empty = not reading.resources and not reading.stated
    problems: list[Problem] = []
    skipped: list[Skipped] = []
    if reading.nothing:
        skipped.append(Skipped(document.file, reading.nothing))
    for refusal in reading.refusals:
        if part.named.found and refusal.holds_nothing and empty:
            skipped.append(Skipped(document.file, refusal.message))
            continue
        harmless = part.named.found and refusal.holds_nothing
        place = (_placed(document, refusal.pointer), refusal.pointer)
        error = InputError(refusal.message, place=place, remedy=refusal.remedy)
        problems.append(problem_of(error, "warning" if harmless else "error"))
    problems += [
        Problem(level="warning", message=message, place=_placed(document, pointer))
        for pointer, message in reading.remarks
    ]
    return problems, skipped


def _placed(document: Loaded, pointer: str) -> str:
    return f"{document.file}:{document.text.places([pointer])[0][0]}"
