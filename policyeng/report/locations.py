"""Where findings stand: the place of the resource, and that of each field that a reason speaks of.

A place is shown as `file:line:column`, which terminals and editors jump to.
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
    """Give `file:line:column`, or nothing for what came from no file."""
    return visible(f"{at.file}:{at.line}:{at.column}") if at.file else ""


def problem_place(problem: Problem) -> Place:
    """Give the place of a problem that names a file with a line; one without a file for any other."""
    found = _IN_FILE.fullmatch(problem.place)
    return Place(file=found[1], line=int(found[2]), column=int(found[3] or 1)) if found else Place()


def place_of(finding: Finding, path: str) -> Place:
    """Give the place of the field at a path; that of the resource where nobody knows the field's."""
    return finding.location.fields.get(path, finding.location)


def first_place(finding: Finding) -> Place:
    """Give the place of the first field that the finding speaks of and that has one, else that of the resource."""
    paths = (reason.path for reason in (*finding.denials, *finding.unknowns))
    return next((known for path in paths if (known := finding.location.fields.get(path))), finding.location)


def field_places(finding: Finding) -> list[str]:
    """Give the place of each field that the finding speaks of, once, in its order; else that of the resource."""
    paths = (reason.path for reason in (*finding.denials, *finding.unknowns))
    known = dict.fromkeys(filter(None, (place(finding.location.fields.get(path, Place())) for path in paths)))
    return list(known) or [place(finding.location)]


def elsewhere(finding: Finding, path: str, than: Place | None = None) -> str:
    """Give the place of the field at a path where it is another one than `than`, by default the resource's."""
    shown = place(place_of(finding, path))
    return "" if shown == place(than or finding.location) else shown


def reasons(finding: Finding, at: Place, undecided: str = "not decided") -> Iterator[str]:
    """Give each reason of a finding in a sentence, with the place of its field where that is not `at`.

    What could not be decided is led in by `undecided`.
    """
    if finding.outcome is Outcome.FAIL:
        yield from (denial_sentence(denial) + _at(finding, denial.path, at) for denial in denials(finding))
    for unknown in unknowns(finding):
        yield f"{undecided}: {unknown_sentence(unknown)}{_at(finding, unknown.path, at)}"


def _at(finding: Finding, path: str, than: Place) -> str:
    shown = elsewhere(finding, path, than)
    return f", at {shown}" if shown else ""
