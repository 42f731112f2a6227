"""From inputs to documents: every file looked at once, what is none of ours left out with the reason, nothing lost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Literal

from policyeng.errors import InputError
from policyeng.frozen import changing
from policyeng.models import Document, Problem
from policyeng.sources.concerning import (
    concerns_machine_learning,
    is_shaped_as_ours,
    is_something_else,
    may_be_ours,
    other_document,
)
from policyeng.sources.documents import read_documents
from policyeng.sources.loading import Part, belongs_to_workspace, parts_of
from policyeng.sources.opening import Found, Named, Skipped, content_of, display
from policyeng.sources.problems import problem_of
from policyeng.sources.reading import Format, Loaded, Refusal
from policyeng.sources.source_code import is_superseded, made_of
from policyeng.sources.surroundings import lies_beside
from policyeng.sources.texts import JSON_SUFFIXES, SOURCE_CODE, read_text

#: Formats that documents of all of Azure have, so that a broken one may have nothing of Machine Learning.
_GENERAL_FORMATS = ("arm-template", "arm-rest", "resource-graph")

#: What is found in a directory for its resources alone.
_NEVER_WRITTEN = (*SOURCE_CODE, *(suffix for suffix in JSON_SUFFIXES if suffix != ".json"))


@changing
class Gathering:
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
    parts: list[Part] = field(default_factory=list)
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

    def settle_source_code(self, done: Iterable[tuple[Part, Loaded]]) -> None:
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

    def hear(self, part: Part, document: Loaded) -> None:
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
            may_be_other = named.found and (not isinstance(part, Part) or part.name == "changes")
            other = "" if not may_be_other or is_shaped_as_ours(document) else other_document(document)
            if other:
                self.skipped.append(Skipped(named.file, other))
            elif isinstance(part, Part):
                self.parts.append(part)
            elif named.found and not is_shaped_as_ours(document):
                self.skipped.append(Skipped(":".join(part.place), part.message))
            else:
                level: Literal["error", "warning"] = "warning" if self.documents else "error"
                self._problems.append((self._positions[_key(named)], problem_of(part, level)))


def _is_something_else(part: Part, refusal: Refusal) -> bool:
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
