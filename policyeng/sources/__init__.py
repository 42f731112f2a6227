"""Documents that come in: detect the format, read it into ARM shape, say what could not be read, join into a snapshot.

A format is one module with `SUMMARY`, `detect` and `read`, named in `FORMATS`; nothing else knows about it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from policyeng.errors import InputError, UsageError, nearest
from policyeng.garbage import uncollected
from policyeng.models import Document, Problem, Snapshot
from policyeng.sources import arm_rest, native, role_access
from policyeng.sources.baseline_report import read_baseline
from policyeng.sources.documents import YAML_SUFFIXES, left_out, read_documents
from policyeng.sources.exemptions_file import ExemptionsRead, load_exemptions, read_exemptions
from policyeng.sources.joining import Loaded, joined
from policyeng.sources.opening import Named, content_of, named_inputs
from policyeng.sources.problems import problem_of, raise_errors
from policyeng.sources.reading import Format, Reading, seen
from policyeng.strict.json_text import DEFAULT_MAX_BYTES, lines_of, parse_json

#: By the name that `--from` takes, in the order in which content is looked at.
FORMATS: Mapping[str, Format] = {
    "native": native,
    "role-access": role_access,
    "arm-rest": arm_rest,
}


__all__ = [
    "DEFAULT_MAX_BYTES",
    "FORMATS",
    "ExemptionsRead",
    "Inputs",
    "load_exemptions",
    "load_snapshot",
    "read_baseline",
    "read_exemptions",
    "read_inputs",
]


class Inputs(NamedTuple):
    """What several inputs hold together.

    Attributes:
        problems: what could not be read, with its place; an `error` never hides another input.
        files: the documents that were read, as the user named them.
    """

    snapshot: Snapshot
    problems: tuple[Problem, ...]
    files: tuple[str, ...]


class _UnrecognisedError(InputError):
    """Content of no readable format."""


@uncollected()
def read_inputs(
    paths: Sequence[str | Path],
    *,
    from_format: str | None = None,
    max_bytes: int = DEFAULT_MAX_BYTES,
    stdin: bytes | None = None,
    documents: bool = False,
    resources: bool = True,
) -> Inputs:
    """Read files, directories (every `*.json` below them) and standard input (`-`) into one snapshot.

    Args:
        paths: as the user named them.
        from_format: a name among `FORMATS`; by content when None.
        max_bytes: the largest document that is read.
        stdin: the bytes of standard input.
        documents: keep every input as it was written, too, and read `*.yaml` and `*.yml`.
        resources: find Azure resources; without them only documents are read, and no format is none.

    Raises:
        UsageError: there is no such format, or nothing judges what it holds.
    """
    chosen = _chosen(from_format)
    if chosen is not None and not resources:
        raise UsageError(f"`{from_format}` is a format of Azure resources, and the policies judge documents only")
    written: list[Document] = []
    loaded: list[Loaded] = []
    problems: list[Problem] = []
    met: set[Path | str] = set()
    files: list[str] = []
    for named in named_inputs(paths, (".json", *YAML_SUFFIXES) if documents else (".json",)):
        if isinstance(named, InputError):
            problems.append(problem_of(named))
            continue
        if _again(named, met):
            message = "named twice; it is read once"
            problems.append(Problem(level="warning", message=message, place=named.file))
            continue
        try:
            content = content_of(named, stdin, max_bytes)
            if documents:
                written += read_documents(named.file, content, max_bytes)
                files.append(named.file)
            if not resources:
                continue
            document = _load(named.file, content, chosen, max_bytes, documents=documents)
        except InputError as error:
            harmless = (named.found or documents) and isinstance(error, _UnrecognisedError)
            problems.append(problem_of(error, "warning" if harmless else "error"))
            continue
        if not documents:
            files.append(named.file)
        loaded.append(document)
        problems += _refused(document, named)
    snapshot, more = joined(loaded)
    if documents:
        snapshot = snapshot.model_copy(update={"documents": tuple(written)})
        problems += left_out(paths)
    return Inputs(snapshot, (*problems, *more), tuple(files))


def load_snapshot(
    path: str | Path, *, from_format: str | None = None, documents: bool = False, resources: bool = True
) -> Snapshot:
    """Read one file or directory, all of it or nothing; the arguments are those of `read_inputs`.

    Raises:
        InputError: something in it cannot be read; names the place and the remedy of the first fault.
        UsageError: there is no such format.
    """
    inputs = read_inputs([path], from_format=from_format, documents=documents, resources=resources)
    raise_errors(inputs.problems)
    return inputs.snapshot


def _chosen(name: str | None) -> Format | None:
    if name is None:
        return None
    if name not in FORMATS:
        known = ", ".join(f"`{known}`" for known in FORMATS)
        raise UsageError(f"there is no format `{name}`{nearest(name, FORMATS)}", remedy=f"there are {known}")
    return FORMATS[name]


def _again(named: Named, met: set[Path | str]) -> bool:
    key: Path | str = named.file if named.path is None else named.path
    try:
        key = named.path.resolve() if named.path else key
    except (OSError, RuntimeError, ValueError):
        return False
    again = key in met
    met.add(key)
    return again


def _load(file: str, content: bytes, chosen: Format | None, max_bytes: int, *, documents: bool) -> Loaded:
    if documents and file.lower().endswith(YAML_SUFFIXES):
        raise _UnrecognisedError("no Azure resources are read from YAML; it is judged as a document", place=(file,))
    document = parse_json(content, file, max_bytes=max_bytes)
    reading = (chosen or _detected(document, file)).read(document)
    pointers = list(_pointers(reading))
    return Loaded(file, reading, dict(zip(pointers, lines_of(content, pointers), strict=True)))


def _detected(document: object, file: str) -> Format:
    for reader in FORMATS.values():
        if reader.detect(document):
            return reader
    readable = ", ".join(f"`{name}`: {reader.SUMMARY}" for name, reader in FORMATS.items())
    raise _UnrecognisedError(
        f"of no readable format: {seen(document)}", place=(file,), remedy=f"readable are {readable}"
    )


def _pointers(reading: Reading) -> Iterator[str]:
    yield from (placed.pointer for placed in reading.resources)
    yield from (stated.pointer for stated in reading.stated)
    yield from (refusal.pointer for refusal in reading.refusals)


def _refused(document: Loaded, named: Named) -> Iterator[Problem]:
    for refusal in document.reading.refusals:
        level: Literal["error", "warning"] = "warning" if named.found and refusal.holds_nothing else "error"
        place = f"{document.file}:{document.lines[refusal.pointer]}"
        error = InputError(refusal.message, place=(place, refusal.pointer), remedy=refusal.remedy)
        yield problem_of(error, level)
