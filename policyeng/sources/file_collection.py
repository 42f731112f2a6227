"""From inputs to documents: every file looked at once, what is none of ours left out with the reason, nothing lost."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal

from policyeng.errors import InputError
from policyeng.frozen import changing, field
from policyeng.later import lazy_pattern
from policyeng.models import Document, JsonObject, Problem, lowered
from policyeng.parsing.json_pointer import keys_of, member, value_at
from policyeng.sources.context import directory_of, lies_beside
from policyeng.sources.detection import DetectedDocument, belongs_to_workspace, parts_of
from policyeng.sources.discovery import Found, Named, Skipped, content_of, display
from policyeng.sources.documents import read_documents
from policyeng.sources.parsed import Format, Loaded, Refusal
from policyeng.sources.problems import problem_of
from policyeng.sources.text import JSON_SUFFIXES, SOURCE_CODE, read_text

#: `module name 'path'` of a Bicep file, and `using 'path'` of its parameters; what is in a registry has a colon.
_CALLED = lazy_pattern(rb"^[ \t]*+(?:module[ \t]+\w+|using)[ \t]+'([^':\r\n]+)'", re.MULTILINE)
_COMMENT = lazy_pattern(rb"/\*(?:.*?\*/|.*+)", re.DOTALL)
#: The program that wrote a template.
_GENERATOR = "/metadata/_generator/name"
_CALLS = "/configuration/root_module/module_calls"
_BICEP = (".bicep", ".bicepparam")


def made_of(sources: Mapping[Path, bytes], read: Iterable[DetectedDocument]) -> dict[Path, str]:
    """The input that was made of each file of source code; those of which none was are left out.

    A Bicep file is compiled to the template of its name beside it, with the modules that it calls; Terraform plans the
    files of one directory, with the local modules that the plan's configuration calls. A template that Bicep did not
    write is left out. Whether one was made from the present text cannot be checked: its `templateHash` is a hash of
    the template, not of the Bicep file.

    Args:
        sources: the content of each file of source code, by its path.
        read: the documents in which something was found to judge.
    """
    made: dict[Path, str] = {}
    bicep = {path.resolve(): path for path in sources if path.suffix.lower() in _BICEP}
    configuration = {path: path.parent.resolve() for path in sources if path not in bicep.values()}
    for part in read if sources else ():
        found: Iterable[Path] = ()
        if part.name == "arm-template" and part.named.path is not None and _is_bicep_output(part.document):
            compiled = part.named.path.resolve()
            found = _compiled([compiled.with_suffix(suffix) for suffix in _BICEP], bicep, sources)
        elif _is_plan(part) and part.named.path is not None:
            folders = _planned(part.named.path.parent.resolve(), part.document)
            found = [path for path, folder in configuration.items() if folder in folders]
        made = {**dict.fromkeys(found, part.named.file), **made}
    return made


def _is_bicep_output(template: object) -> bool:
    """Whether Bicep wrote a template, which it states in each."""
    return value_at(template, _GENERATOR) == "bicep"


def _compiled(roots: Iterable[Path], bicep: Mapping[Path, Path], sources: Mapping[Path, bytes]) -> set[Path]:
    """Those of the Bicep files, by their whole paths, that were compiled together with some of them."""
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


def _planned(home: Path, plan: object) -> set[Path]:
    """The directories that a plan is of: its own, and those of the local modules that it calls."""
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
    """The plan beside a Terraform state, which goes before the state that it was made from; empty without one."""
    if part.name != "terraform" or not part.named.found or _is_plan(part):
        return ""
    home = directory_of(part.named)
    plans = (each for each in parts if _is_plan(each) and directory_of(each.named) == home)
    return next((each.named.file for each in plans if value_at(each.document, "/prior_state/values") is not None), "")


def _is_plan(part: DetectedDocument) -> bool:
    return part.name == "terraform" and value_at(part.document, "/planned_values") is not None


#: What every file that is about Machine Learning has in it, in lower case.
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

#: What JSON that may hold resources of Azure has in it, in lower case.
_OF_AZURE = (b"microsoft.", b"snapshotversion", b"/subscriptions/", b"deploymenttemplate")

#: The same of YAML in which Machine Learning is more than a word in a text: by the keys that say what a document is.
_YAML_KEYS = lazy_pattern(
    rb"(?:^|[{,])[ \t-]*[\"']?(?:\$schema|apiversion|type|id|kind|snapshotversion)[\"']?[ \t]*:([^\r\n]*)", re.MULTILINE
)

#: The keys that say what a document or a resource is, in lower case.
_NAMING = ("$schema", "apiversion", "type", "id", "resourceid")
#: Where documents have their resources.
_LISTS = ("resources", "value", "data", "items")

#: Types whose resources policies look for everywhere, so that one that is broken is an error.
_STRICT_TYPES = ("microsoft.machinelearningservices/", "microsoft.authorization/role")
#: The properties that only resources of Machine Learning have.
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

#: Documents of policyeng and other reports, by what one has among its keys.
_DOCUMENTS: Mapping[str, tuple[frozenset[str], ...]] = {
    "a report of policyeng": (frozenset({"reportVersion"}), frozenset({"asOf", "engine", "findings", "summary"})),
    "a decision of policyeng": (frozenset({"decisionVersion"}), frozenset({"allowed", "asOf", "bundle"})),
    "a comparison by policyeng": (frozenset({"diffVersion"}), frozenset({"exitCode", "before", "after"})),
    "suggestions of policyeng": (frozenset({"suggestionsVersion"}),),
    "exemptions": (frozenset({"exemptions"}),),
    "cases of a policy": (frozenset({"baseline", "pass"}), frozenset({"baseline", "fail"})),
    "findings as SARIF": (frozenset({"runs", "version"}),),
    "a bill of materials": (frozenset({"bomFormat"}), frozenset({"spdxVersion"})),
}


def concerns_machine_learning(content: bytes) -> bool:
    """Whether a file names Azure Machine Learning, be it read or not."""
    return _names_any(_MARKS, content)


def may_be_ours(content: bytes, *, is_json: bool) -> bool:
    """Whether text that cannot be parsed may hold something to evaluate.

    Broken JSON may hold resources of a snapshot that do not say what they are.
    """
    if is_json:
        return _names_any((*_MARKS, *_OF_AZURE), content)
    text = content.lower().replace(b"\0", b"")
    return any(_names_any((*_MARKS, b"snapshotversion"), line[0]) for line in _YAML_KEYS.finditer(text))


def other_document(document: object) -> str:
    """What a document of policyeng, or a report, is that holds nothing to evaluate; empty for every other one."""
    keys = document.keys() if isinstance(document, dict) else ()
    return next((name for name, known in _DOCUMENTS.items() if any(one <= set(keys) for one in known)), "")


def is_shaped_as_ours(document: object) -> bool:
    """Whether a document of no readable format says by its keys that it, or an entry of it, is of Machine Learning."""
    return any(_says_it_is_ours(one) for one in _entries(document))


def is_something_else(document: object, pointer: str) -> bool:
    """Whether the part of a document at a JSON Pointer, which is refused, surely has nothing of Machine Learning.

    It says by its type that it is something else, or has neither a type nor a property of Machine Learning.
    """
    part = _resource_at(document, pointer)
    if isinstance(part.get("error"), dict):  # an answer that may have held resources
        return False
    stated = [lowered(part[key]) for key in ("type", "id") if isinstance(part.get(key), str)]
    if any(strict in text for strict in _STRICT_TYPES for text in stated):
        return False
    properties = part.get("properties")
    return not (isinstance(properties, dict) and _ML_PROPERTIES & properties.keys())


def _resource_at(document: object, pointer: str) -> JsonObject:
    """The nearest object above a place that has a type, an id or properties, else the document."""
    found = document if isinstance(document, dict) else {}
    here = document
    for key in keys_of(pointer):
        here = member(here, key)
        if isinstance(here, dict) and not here.keys().isdisjoint({"type", "id", "properties"}):
            found = here
    return found


def _entries(document: object) -> Iterator[object]:
    yield document
    lists = [document] if isinstance(document, list) else []
    if isinstance(document, dict):
        lists = [document[key] for key in _LISTS if isinstance(document.get(key), list)]
    for entries in lists:
        yield from entries


def _says_it_is_ours(document: object) -> bool:
    if not isinstance(document, dict):
        return False
    stated = [lowered(value) for key, value in document.items() if lowered(key) in _NAMING and isinstance(value, str)]
    return any(mark in text for mark in _TEXT_MARKS for text in stated)


def _names_any(marks: Iterable[bytes], content: bytes) -> bool:
    """Whether any of the marks is in a content; the zeros of UTF-16 and UTF-32 that cannot be read are no obstacle."""
    folded = content.lower().replace(b"\0", b"")
    return any(mark in folded for mark in marks)


#: Formats that documents of all of Azure have, so that a broken one may have nothing of Machine Learning.
_GENERAL_FORMATS = ("arm-template", "arm-rest", "resource-graph")

#: What is found in a directory for its resources alone.
_NEVER_WRITTEN = (*SOURCE_CODE, *(suffix for suffix in JSON_SUFFIXES if suffix != ".json"))


@changing
class FileCollection:
    """What the inputs hold, gathered file by file.

    Attributes:
        formats: by name; one alone takes every document, and with none only documents are kept.
        max_bytes: the largest file that is read.
        documents: keep every input as it was written, too.
        parts: the documents that a format reads.
        skipped: what was found in directories and holds nothing to judge.
        files, written: the inputs as they were written, and their names.
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
        """Look at a file; what cannot be read becomes a problem, or is skipped where nothing is lost."""
        self._count += 1
        position = self._count
        if isinstance(named, Skipped):
            self.skipped.append(named)
            return
        if isinstance(named, InputError):
            self._problems.append((position, problem_of(named)))
            return
        if self._positions.setdefault(_key(named), position) < position:
            again = Problem(level="warning", message="named twice; it is read once", place=named.file)
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
        """Leave out what another document of the same directory goes before."""
        newer = [(part, is_superseded(part, self.parts)) for part in self.parts]
        self.parts = [part for part, plan in newer if not plan]
        reason = "a state, and the plan `{}` beside it is read in its place"
        self.skipped += [Skipped(part.named.file, reason.format(plan)) for part, plan in newer if plan]

    def settle_source_code(self, done: Iterable[tuple[DetectedDocument, Loaded]]) -> None:
        """Source code of Machine Learning is an error, unless what was made of it is among what was read."""
        made = made_of(
            {named.path: content for _, named, content, _ in self._sources if named.path},
            (part for part, document in done if document.reading.resources),
        )
        for position, named, content, error in self._sources:
            if named.path in made:
                reason = f"`{made[named.path]}` is read in its place; that it was made from the present text is assumed"
                self.skipped.append(Skipped(named.file, reason))
            elif concerns_machine_learning(content):
                self._problems.append((position, problem_of(error)))
            else:
                self.skipped.append(Skipped(named.file, error.message))

    def add_what_lies_beside(self) -> None:
        """Look at the workspace that lies beside files which belong to one, where nothing else was named."""
        if not all(part.named.path and not part.named.found and belongs_to_workspace(part) for part in self.parts):
            return
        paths = [path for part in self.parts if part.named.path for path in lies_beside(part.named.path)]
        for path in dict.fromkeys(paths):
            named = Named(display(path), path, found=True)
            if _key(named) not in self._positions:
                self.add(named)
                message = "read too, because it lies beside and may name the workspace"
                problem = Problem(level="warning", message=message, place=named.file)
                self._problems.append((self._positions[_key(named)], problem))

    def hear(self, part: DetectedDocument, document: Loaded) -> None:
        """Take note of what a document could not say, and of why it holds nothing to judge, if it does."""
        reading, position = document.reading, self._positions[_key(part.named)]
        empty = not (reading.resources or reading.stated or reading.changes)
        if reading.nothing:
            self.skipped.append(Skipped(document.file, reading.nothing))
        for refusal in reading.refusals:
            harmless = part.named.found and (refusal.holds_nothing or _is_something_else(part, refusal))
            if harmless and empty:
                self.skipped.append(Skipped(document.file, refusal.message))
            else:
                self._problems.append((position, _problem(document, refusal, "warning" if harmless else "error")))
        for pointer, message in reading.remarks:
            self._problems.append((position, _problem(document, Refusal(pointer, message), "warning")))

    def said(self) -> list[Problem]:
        """The problems, in the order of the inputs."""
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
            # A key of a report in a document of a format must not hide what the document holds.
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


def _is_something_else(part: DetectedDocument, refusal: Refusal) -> bool:
    """Whether a part that is refused has nothing of Machine Learning, in a format that is not of it alone."""
    pointer = refusal.pointer.removeprefix(part.pointer)
    return part.name in _GENERAL_FORMATS and is_something_else(part.document, pointer)


def _may_be_left_out(named: Named, content: bytes | None) -> bool:
    """Whether a file that cannot be read was found in a directory and holds nothing to evaluate."""
    if content is None or not named.found:
        return False
    return not may_be_ours(content, is_json=named.file.lower().endswith(JSON_SUFFIXES))


def _key(named: Named) -> Path | str:
    """What tells files apart."""
    try:
        return named.path.resolve() if named.path else named.file
    except (OSError, RuntimeError, ValueError):
        return named.file


def _problem(document: Loaded, refusal: Refusal, level: Literal["error", "warning"]) -> Problem:
    place = f"{document.file}:{document.text.places([refusal.pointer])[0][0]}"
    return problem_of(InputError(refusal.message, place=(place, refusal.pointer), remedy=refusal.remedy), level)
