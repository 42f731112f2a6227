"""JSON reports of earlier runs, for `--baseline` and for `policyeng report`."""

from __future__ import annotations

from pathlib import Path

from policyeng.errors import InputError
from policyeng.models import Evaluation, Problem
from policyeng.parsing.json_places import lines_of
from policyeng.parsing.json_text import DEFAULT_MAX_BYTES, parse_json
from policyeng.sources.discovery import STDIN, Named, content_of, display
from policyeng.sources.parsed import format_value, refuse, seen
from policyeng.sources.validation import validated

_REMEDY = "give a report that `--output json=PATH` wrote"


def read_report(path: str | Path, *, stdin: bytes | None = None, max_bytes: int = DEFAULT_MAX_BYTES) -> Evaluation:
    """Read a JSON report; `-` is standard input.

    Raises:
        InputError: it cannot be read, is not a report, has another version, or is not valid; with the file, line, JSON
            Pointer and remedy of the first fault.
    """
    named = Named(STDIN, None) if path == "-" else Named(display(Path(path)), Path(path))
    file, content = named.file, content_of(named, stdin, max_bytes)
    document = parse_json(content, file, max_bytes=max_bytes)
    evaluation, faults = _read(document)
    if evaluation is not None:
        return evaluation
    line = lines_of(content, [faults[0].place])[0]
    others = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    place = (f"{file}:{line}", faults[0].place)
    raise InputError(faults[0].message + others, place=place, remedy=faults[0].remedy)


def _read(document: object) -> tuple[Evaluation | None, tuple[Problem, ...]]:
    if not isinstance(document, dict) or "reportVersion" not in document:
        return None, (refuse("", f"not a JSON report: {seen(document)}", _REMEDY),)
    version = document["reportVersion"]
    if type(version) is not int or version != 1:
        message = f"`reportVersion` is {format_value(version)}; only version 1 is supported"
        return None, (refuse("/reportVersion", message, "create the report again"),)
    return validated(Evaluation, document, "")
