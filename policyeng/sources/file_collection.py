"""Collection of the documents in the inputs: each file is read once, and files that are skipped have a reason."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Literal

from policyeng.errors import InputError
from policyeng.frozen import changing, field
from policyeng.later import lazy_pattern
from policyeng.models import Document, JsonObject, Problem, lowered
from policyeng.parsing.json_pointer import keys_of, member, value_at
from policyeng.parsing.json_text import lines_of, parse_json
from policyeng.sources.context import directory_of, list_neighbors
from policyeng.sources.detection import DetectedDocument, belongs_to_workspace, parts_of
from policyeng.sources.discovery import STDIN, Found, Named, Skipped, content_of, display
from policyeng.sources.parsed import Format, Loaded, Refusal, problem_of
from policyeng.sources.text import JSON_SUFFIXES, SOURCE_CODE, YAML_SUFFIXES, read_text

#: Formats that Conftest reads and policyeng does not, by suffix or by the beginning of the name.
_OTHER_SUFFIXES = lazy_pattern(
    r"\.(cue|dockerfile|dockerignore|edn|env|gitignore|hcl|hocon|ini|jsonc|jsonnet|properties|spdx|textproto|tf|tfvars"
    r"|toml|vcl|xml)"
)
_OTHER_NAMES = ("codeowners", "dockerfile", "jenkinsfile", "nginx.conf", ".env")


def read_documents(file: str, content: bytes, max_bytes: int) -> list[Document]:
    """Return the documents of one file: those of a YAML stream, the elements of a list, or the file as one document.

    Raises:
        InputError: the file has another format, or the strict JSON or YAML reader refuses it.
    """
    if is_other_format(file):
        remedy = "convert it to JSON or YAML, for example with `conftest parse FILE`"
        raise InputError("only JSON and YAML documents are checked", place=(file,), remedy=remedy)
    if _is_yaml(file, content):
        from policyeng.parsing.yaml_text import parse_kubernetes_yaml  # YAML is loaded only where there is some

        read = parse_kubernetes_yaml(content, file, max_bytes=max_bytes)
        if len(read) > 1:
            placed = [(document.value, document.places[""][0]) for document in read]
        else:
            placed = _list_elements(read[0].value, lambda pointers: [read[0].places[entry][0] for entry in pointers])
    else:
        value = parse_json(content, file, max_bytes=max_bytes)
        placed = _list_elements(value, lambda pointers: lines_of(content, pointers))
    return [
        Document(file=file, index=index, content=content_, line=line) for index, (content_, line) in enumerate(placed)
    ]


def _is_yaml(file: str, content: bytes) -> bool:
    """Check whether the suffix is that of YAML; standard input is YAML unless it begins like JSON."""
    if file == STDIN:
        return not content.lstrip().startswith((b"{", b"["))
    return file.lower().endswith(YAML_SUFFIXES)


def _list_elements(value: object, lines: Callable[[Sequence[str]], list[int]]) -> list[tuple[object, int]]:
    """Return the elements of a list with their lines, because Conftest checks each one separately."""
    if not isinstance(value, list):
        return [(value, 1)]
    return list(zip(value, lines([f"/{index}" for index in range(len(value))]), strict=True))


def is_other_format(file: str) -> bool:
    """Check whether a file has a format that Conftest reads and policyeng does not."""
    path = PurePath(file.lower())
    return file != STDIN and (
        _OTHER_SUFFIXES.fullmatch(path.suffix) is not None
        or any(path.name == name or path.name.startswith(f"{name}.") for name in _OTHER_NAMES)
    )


def warn_about_skipped(paths: Iterable[str | Path]) -> list[Problem]:
    """Return a warning for every directory with files that Conftest would check and policyeng does not."""
    problems = []
    for entry in paths:
        if str(entry) == "-" or not Path(entry).is_dir():
            continue
        names = sorted(
            str(Path(folder) / name) for folder, _, names in os.walk(entry) for name in names if is_other_format(name)
        )
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            message = f"only JSON and YAML documents are checked, not `{display(Path(names[0]))}`{more}"
            problems.append(Problem(level="warning", message=message, place=display(Path(entry))))
    return problems


#: `module name 'path'` of a Bicep file, and `using 'path'` of its parameters; a path in a registry has a colon.
_CALLED = lazy_pattern(rb"^[ \t]*+(?:module[ \t]+\w+|using)[ \t]+'([^':\r\n]+)'", re.MULTILINE)
_COMMENT = lazy_pattern(rb"/\*(?:.*?\*/|.*+)", re.DOTALL)
#: The program that wrote a template.
_GENERATOR = "/metadata/_generator/name"
_CALLS = "/configuration/root_module/module_calls"
_BICEP = (".bicep", ".bicepparam")


def find_generated_inputs(sources: Mapping[Path, bytes], read: Iterable[DetectedDocument]) -> dict[Path, str]:
    """Return the input that was generated from each source code file, for the files that have one.

    A Bicep file and the modules that it calls are compiled to the template of the same name in the same directory.
    Terraform plans the files of one directory and the local modules that the configuration of the plan calls. Templates
    that Bicep did not write do not count. Whether a template is up to date cannot be checked: its `templateHash` is
    a hash of the template, not of the Bicep file.

    Args:
        sources: the content of each source code file, by its path.
        read: the documents with resources.
    """
    generated: dict[Path, str] = {}
    bicep = {path.resolve(): path for path in sources if path.suffix.lower() in _BICEP}
    configuration = {path: path.parent.resolve() for path in sources if path not in bicep.values()}
    for part in read if sources else ():
        found: Iterable[Path] = ()
        if part.name == "arm-template" and part.named.path is not None and _is_bicep_output(part.document):
            compiled = part.named.path.resolve()
            found = _find_compiled_files([compiled.with_suffix(suffix) for suffix in _BICEP], bicep, sources)
        elif _is_plan(part) and part.named.path is not None:
            folders = _find_planned_directories(part.named.path.parent.resolve(), part.document)
            found = [path for path, folder in configuration.items() if folder in folders]
        generated = {**dict.fromkeys(found, part.named.file), **generated}
    return generated


def _is_bicep_output(template: object) -> bool:
    """Check whether Bicep wrote a template; it records that in the metadata."""
    return value_at(template, _GENERATOR) == "bicep"


def _find_compiled_files(roots: Iterable[Path], bicep: Mapping[Path, Path], sources: Mapping[Path, bytes]) -> set[Path]:
    """Return the Bicep files, given by their absolute paths, that are compiled together with the roots."""
    found: set[Path] = set()
    waiting = list(roots)
    while waiting:
        place = waiting.pop()
        path = bicep.get(place)
        if path is not None and path not in found:
            found.add(path)
            called = _CALLED.findall(_COMMENT.sub(b"", sources[path]))
            waiting += [(place.parent / name.decode("utf-8", "replace")).resolve() for name in called]
    return found


def _find_planned_directories(home: Path, plan: object) -> set[Path]:
    """Return the directories that a plan covers: its own and those of the local modules that it calls."""
    found: set[Path] = set()
    waiting: list[tuple[Path, object]] = [(home, value_at(plan, _CALLS))]
    while waiting:
        folder, calls = waiting.pop()
        found.add(folder)
        for call in calls.values() if isinstance(calls, dict) else ():
            source = value_at(call, "/source")
            if isinstance(source, str) and source.startswith("."):
                waiting.append(((folder / source).resolve(), value_at(call, "/module/module_calls")))
    return found


def is_superseded(part: DetectedDocument, parts: Iterable[DetectedDocument]) -> str:
    """Return the plan that replaces a Terraform state in the same directory, or an empty string."""
    if part.name != "terraform" or not part.named.found or _is_plan(part):
        return ""
    home = directory_of(part.named)
    plans = (each for each in parts if _is_plan(each) and directory_of(each.named) == home)
    return next((each.named.file for each in plans if value_at(each.document, "/prior_state/values") is not None), "")


def _is_plan(part: DetectedDocument) -> bool:
    return part.name == "terraform" and value_at(part.document, "/planned_values") is not None


#: Text that every file about Azure Machine Learning contains one of, in lower case.
_MARKS = (
    b"microsoft.machinelearningservices",
    b"machinelearningservices.azure.com",
    b"amlarc.azureml.com",
    b"azuremlschemas",
    b"azuremlsdk2.blob",
    b"azureml/sdk-2-0",
    b"azurerm_machine_learning",
)
_TEXT_MARKS = tuple(mark.decode() for mark in _MARKS)

#: Text that JSON with Azure resources contains one of, in lower case.
_OF_AZURE = (b"microsoft.", b"snapshotversion", b"/subscriptions/", b"deploymenttemplate")

#: The keys that identify a YAML document, with their values; a mention of Machine Learning elsewhere does not count.
_YAML_KEYS = lazy_pattern(
    rb"(?:^|[{,])[ \t-]*[\"']?(?:\$schema|apiversion|type|id|kind|snapshotversion)[\"']?[ \t]*:([^\r\n]*)", re.MULTILINE
)

#: The keys that identify a document or a resource, in lower case.
_NAMING = ("$schema", "apiversion", "type", "id", "resourceid")
#: The keys under which documents list their resources.
_LISTS = ("resources", "value", "data", "items")

#: Types whose resources policies look up everywhere. A broken one is an error.
_STRICT_TYPES = ("microsoft.machinelearningservices/", "microsoft.authorization/role")
#: Properties that only resources of Azure Machine Learning have.
_ML_PROPERTIES = frozenset(
    {
        "computeType",
        "endpointComputeType",
        "hbiWorkspace",
        "hubResourceId",
        "jobType",
        "managedNetwork",
        "storageAccount",
        "vmPriority",
        "vmSize",
    }
)

#: Documents of policyeng and other reports, with the sets of keys that identify them.
_DOCUMENTS: Mapping[str, tuple[frozenset[str], ...]] = {
    "a policyeng report": (frozenset({"reportVersion"}), frozenset({"asOf", "engine", "findings", "summary"})),
    "a policyeng decision": (frozenset({"decisionVersion"}), frozenset({"allowed", "asOf", "bundle"})),
    "a policyeng comparison": (frozenset({"diffVersion"}), frozenset({"exitCode", "before", "after"})),
    "policyeng suggestions": (frozenset({"suggestionsVersion"}),),
    "exemptions": (frozenset({"exemptions"}),),
    "test cases of a policy": (frozenset({"baseline", "pass"}), frozenset({"baseline", "fail"})),
    "findings as SARIF": (frozenset({"runs", "version"}),),
    "a bill of materials": (frozenset({"bomFormat"}), frozenset({"spdxVersion"})),
}


def mentions_machine_learning(content: bytes) -> bool:
    """Check whether a file mentions Azure Machine Learning, whether or not it can be read."""
    return _contains_any(_MARKS, content)


def may_be_ours(content: bytes, *, is_json: bool) -> bool:
    """Check whether text that cannot be parsed may contain something to evaluate.

    Broken JSON can contain resources of a snapshot that do not mention Azure Machine Learning.
    """
    if is_json:
        return _contains_any((*_MARKS, *_OF_AZURE), content)
    text = content.lower().replace(b"\0", b"")
    return any(_contains_any((*_MARKS, b"snapshotversion"), line[0]) for line in _YAML_KEYS.finditer(text))


def other_document(document: object) -> str:
    """Return what a policyeng document or a report without resources is; an empty string for any other document."""
    keys = document.keys() if isinstance(document, dict) else ()
    return next((name for name, known in _DOCUMENTS.items() if any(one <= set(keys) for one in known)), "")


def is_shaped_as_ours(document: object) -> bool:
    """Check whether the keys of a document in an unsupported format show that it is about Azure Machine Learning."""
    return any(_names_machine_learning(one) for one in _list_entries(document))


def is_something_else(document: object, pointer: str) -> bool:
    """Check whether a refused part of a document is certainly not about Azure Machine Learning.

    Its type is another one, or it has neither a type nor a property of Azure Machine Learning.
    """
    part = _find_resource_at(document, pointer)
    if isinstance(part.get("error"), dict):  # the response to a request for resources
        return False
    stated = [lowered(part[key]) for key in ("type", "id") if isinstance(part.get(key), str)]
    if any(strict in text for strict in _STRICT_TYPES for text in stated):
        return False
    properties = part.get("properties")
    return not (isinstance(properties, dict) and _ML_PROPERTIES & properties.keys())


def _find_resource_at(document: object, pointer: str) -> JsonObject:
    """Return the nearest object at or above a pointer that has a type, an id or properties, else the document."""
    found = document if isinstance(document, dict) else {}
    here = document
    for key in keys_of(pointer):
        here = member(here, key)
        if isinstance(here, dict) and not here.keys().isdisjoint({"type", "id", "properties"}):
            found = here
    return found


def _list_entries(document: object) -> Iterator[object]:
    yield document
    lists = [document] if isinstance(document, list) else []
    if isinstance(document, dict):
        lists = [document[key] for key in _LISTS if isinstance(document.get(key), list)]
    for entries in lists:
        yield from entries


def _names_machine_learning(document: object) -> bool:
    if not isinstance(document, dict):
        return False
    stated = [lowered(value) for key, value in document.items() if lowered(key) in _NAMING and isinstance(value, str)]
    return any(mark in text for mark in _TEXT_MARKS for text in stated)


def _contains_any(marks: Iterable[bytes], content: bytes) -> bool:
    """Check whether a content contains any of the marks, even in UTF-16 or UTF-32 that cannot be read."""
    folded = content.lower().replace(b"\0", b"")
    return any(mark in folded for mark in marks)


#: Formats for all of Azure. A broken document in one of them need not be about Azure Machine Learning.
_GENERAL_FORMATS = ("arm-template", "arm-rest", "resource-graph")

#: Suffixes of files that are read for their resources only.
_NEVER_WRITTEN = (*SOURCE_CODE, *(suffix for suffix in JSON_SUFFIXES if suffix != ".json"))


@changing
class FileCollection:
    """The documents and problems of the inputs, collected file by file.

    Attributes:
        formats: by name; a single format takes every document, and without formats only written documents are stored.
        max_bytes: the largest file that is read.
        documents: also store every input as it was written.
        parts: the documents that a format reads.
        skipped: what was found in directories and contains nothing to check.
        files, written: the names of the inputs, and the inputs as they were written.
    """

    formats: Mapping[str, Format]
    max_bytes: int
    documents: bool = False
    parts: list[DetectedDocument] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    written: list[Document] = field(default_factory=list)
    _problems: list[tuple[int, Problem]] = field(default_factory=list)
    _sources: list[tuple[int, Named, bytes, InputError]] = field(default_factory=list)
    _positions: dict[Path | str, int] = field(default_factory=dict)
    _count: int = 0

    def add(self, named: Found, stdin: bytes | None = None) -> None:
        """Add a file; if it cannot be read, it becomes a problem, or is skipped if it contains nothing to evaluate."""
        self._count += 1
        position = self._count
        if isinstance(named, Skipped):
            self.skipped.append(named)
            return
        if isinstance(named, InputError):
            self._problems.append((position, problem_of(named)))
            return
        if self._positions.setdefault(_key(named), position) < position:
            again = Problem(level="warning", message="given twice; it is read once", place=named.file)
            self._problems.append((position, again))
            return
        content: bytes | None = None
        try:
            content = content_of(named, stdin, self.max_bytes)
            self._take(named, content)
        except InputError as error:
            is_code = named.found and named.file.lower().endswith(tuple(SOURCE_CODE))
            if is_code and content is not None and not self.documents:
                self._sources.append((position, named, content, error))
            elif self.documents or not _may_be_left_out(named, content):
                self._problems.append((position, problem_of(error)))
            else:
                self.skipped.append(Skipped(named.file, error.message))

    def leave_out_superseded(self) -> None:
        """Skip documents that another document of the same directory replaces."""
        newer = [(part, is_superseded(part, self.parts)) for part in self.parts]
        self.parts = [part for part, plan in newer if not plan]
        reason = "a state; the plan `{}` in the same directory is read instead"
        self.skipped += [Skipped(part.named.file, reason.format(plan)) for part, plan in newer if plan]

    def settle_source_code(self, done: Iterable[tuple[DetectedDocument, Loaded]]) -> None:
        """Report source code for Azure Machine Learning as an error, unless an input was generated from it."""
        generated = find_generated_inputs(
            {named.path: content for _, named, content, _ in self._sources if named.path},
            (part for part, document in done if document.reading.resources),
        )
        for position, named, content, error in self._sources:
            if named.path in generated:
                reason = f"`{generated[named.path]}` is read instead; it is assumed to be up to date"
                self.skipped.append(Skipped(named.file, reason))
            elif mentions_machine_learning(content):
                self._problems.append((position, problem_of(error)))
            else:
                self.skipped.append(Skipped(named.file, error.message))

    def add_what_lies_beside(self) -> None:
        """Add files that may name the workspace, if all documents belong to a workspace that they do not name."""
        if not all(part.named.path and not part.named.found and belongs_to_workspace(part) for part in self.parts):
            return
        paths = [path for part in self.parts if part.named.path for path in list_neighbors(part.named.path)]
        for path in dict.fromkeys(paths):
            named = Named(display(path), path, found=True)
            if _key(named) not in self._positions:
                self.add(named)
                message = "also read, because it is next to an input and may name the workspace"
                problem = Problem(level="warning", message=message, place=named.file)
                self._problems.append((self._positions[_key(named)], problem))

    def add_result(self, part: DetectedDocument, document: Loaded) -> None:
        """Record the refusals and remarks of a document, and why it contains nothing to check."""
        reading, position = document.reading, self._positions[_key(part.named)]
        empty = not (reading.resources or reading.stated or reading.changes)
        if reading.nothing:
            self.skipped.append(Skipped(document.file, reading.nothing))
        for refusal in reading.refusals:
            harmless = part.named.found and (refusal.holds_nothing or _is_unrelated_part(part, refusal))
            if harmless and empty:
                self.skipped.append(Skipped(document.file, refusal.message))
            else:
                self._problems.append((position, _make_problem(document, refusal, "warning" if harmless else "error")))
        for pointer, message in reading.remarks:
            self._problems.append((position, _make_problem(document, Refusal(pointer, message), "warning")))

    def list_problems(self) -> list[Problem]:
        """Return the problems in the order of the inputs."""
        return [problem for _, problem in sorted(self._problems, key=lambda entry: entry[0])]

    def _take(self, named: Named, content: bytes) -> None:
        """Add the documents of one file.

        Raises:
            InputError: the file cannot be read.
        """
        if self.documents and not (named.found and named.file.lower().endswith(_NEVER_WRITTEN)):
            self.written += read_documents(named.file, content, self.max_bytes)
            self.files.append(named.file)
        if not self.formats:
            return
        text = read_text(content, named.file, max_bytes=self.max_bytes)
        for part in parts_of(named, text, self.formats):
            document = part.document
            # A document in a supported format is read even if it also has a key of a report.
            may_be_other = named.found and (not isinstance(part, DetectedDocument) or part.name == "changes")
            other = "" if not may_be_other or is_shaped_as_ours(document) else other_document(document)
            if other:
                self.skipped.append(Skipped(named.file, other))
            elif isinstance(part, DetectedDocument):
                self.parts.append(part)
            elif named.found and not is_shaped_as_ours(document):
                self.skipped.append(Skipped(":".join(part.place), part.message))
            else:
                level: Literal["error", "warning"] = "warning" if self.documents else "error"
                self._problems.append((self._positions[_key(named)], problem_of(part, level)))


def _is_unrelated_part(part: DetectedDocument, refusal: Refusal) -> bool:
    """Check whether a refused part is not about Azure Machine Learning, in a format for all of Azure."""
    pointer = refusal.pointer.removeprefix(part.pointer)
    return part.name in _GENERAL_FORMATS and is_something_else(part.document, pointer)


def _may_be_left_out(named: Named, content: bytes | None) -> bool:
    """Check whether a file that cannot be read was found in a directory and contains nothing to evaluate."""
    if content is None or not named.found:
        return False
    return not may_be_ours(content, is_json=named.file.lower().endswith(JSON_SUFFIXES))


def _key(named: Named) -> Path | str:
    """Return a key that identifies a file."""
    try:
        return named.path.resolve() if named.path else named.file
    except (OSError, RuntimeError, ValueError):
        return named.file


def _make_problem(document: Loaded, refusal: Refusal, level: Literal["error", "warning"]) -> Problem:
    place = f"{document.file}:{document.text.places([refusal.pointer])[0][0]}"
    return problem_of(InputError(refusal.message, place=(place, refusal.pointer), remedy=refusal.remedy), level)
