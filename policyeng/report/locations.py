"""The locations of findings: those of the resource and of each field that a reason refers to.

A location is shown as `file:line:column`, which terminals and editors can open.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from policyeng.later import lazy_pattern
from policyeng.models import Finding, Outcome, Place, Problem
from policyeng.report.escaping import visible
from policyeng.report.phrases import denial_sentence, denials, unknown_sentence, unknowns

_IN_FILE = lazy_pattern(r"(.+?):([0-9]{1,9})(?::([0-9]{1,9}))?", re.DOTALL)


def place(at: Place) -> str:
    """Return `file:line:column`; empty without a file."""
    return visible(f"{at.file}:{at.line}:{at.column}") if at.file else ""


def problem_place(problem: Problem) -> Place:
    """Return the location of a problem; one without a file unless the problem names a file and a line."""
    match = _IN_FILE.fullmatch(problem.place)
    return Place(file=match[1], line=int(match[2]), column=int(match[3] or 1)) if match else Place()


def place_of(finding: Finding, path: str) -> Place:
    """Return the location of the field at a path; that of the resource if it is unknown."""
    return finding.location.fields.get(path, finding.location)


def field_address(finding: Finding, path: str) -> str:
    """Return the name that the field at a path has in the format of the input; empty if it has none of its own."""
    at = finding.location.fields.get(path)
    return visible(at.address) if at else ""


def find_location(finding: Finding) -> Place:
    """Return the first known location of a field in the finding, else that of the resource."""
    paths = (reason.path for reason in (*finding.denials, *finding.unknowns))
    return next((known for path in paths if (known := finding.location.fields.get(path))), finding.location)


def field_places(finding: Finding) -> list[str]:
    """Return the distinct locations of the fields in the finding, in order, else that of the resource."""
    paths = (reason.path for reason in (*finding.denials, *finding.unknowns))
    known = dict.fromkeys(filter(None, (place(finding.location.fields.get(path, Place())) for path in paths)))
    return list(known) or [place(finding.location)]


def find_other_location(finding: Finding, path: str, than: Place | None = None) -> str:
    """Return the location of the field at a path; empty if it is that of the resource, or `than`."""
    shown = place(place_of(finding, path))
    return "" if shown == place(than or finding.location) else shown


def reasons(finding: Finding, at: Place, unknown_label: str = "unknown") -> Iterator[str]:
    """Yield each reason of a finding as a sentence, with the location of its field if it differs from `at`.

    `unknown_label` starts the sentences about what could not be decided.
    """
    if finding.outcome is Outcome.FAIL:
        yield from (
            denial_sentence(denial, field_address(finding, denial.path)) + _at(finding, denial.path, at)
            for denial in denials(finding)
        )
    for unknown in unknowns(finding):
        yield f"{unknown_label}: {unknown_sentence(unknown)}{_at(finding, unknown.path, at)}"


def _at(finding: Finding, path: str, than: Place) -> str:
    shown = find_other_location(finding, path, than)
    return f", at {shown}" if shown else ""
