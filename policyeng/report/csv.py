"""CSV for spreadsheets (RFC 4180): a row for each finding, and no cell that a spreadsheet would calculate."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from io import StringIO

from policyeng.models import Evaluation, Finding, Outcome
from policyeng.report.context import ReportContext
from policyeng.report.escaping import visible
from policyeng.report.phrases import denial_sentence, denials, rfc3339, unknown_sentence, unknowns

COLUMNS = (
    "policy",
    "title",
    "severity",
    "outcome",
    "resource",
    "resource_type",
    "owner",
    "area",
    "controls",
    "since",
    "reasons",
    "undecided",
    "exemption",
    "exempt_until",
    "exempt_because",
    "remediation",
    "source",
    "file",
    "line",
    "column",
)
#: Characters up to which it is remembered how a cell is written: most cells are those of another row.
_SHORT = 200
#: By which programs know UTF-8, Excel among them.
BYTE_ORDER_MARK = "\ufeff"

# Where a cell may begin: at its start, and after a semicolon, at which Excel parts lines in half of the world. What
# begins a formula there, full-width signs included, gets an apostrophe, and so does an apostrophe: so that the guard
# can be taken away again. Source: OWASP, "CSV Injection".
_BEGINNING = r"(^|;)(\s*)"
_FORMULA = re.compile(_BEGINNING + r"(?=['=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20])")
_GUARD = re.compile(_BEGINNING + "'")


def render(evaluation: Evaluation, *, about: ReportContext | None = None) -> str:
    """Give a heading and the rows, in UTF-8 with CRLF at the end of each; unprintable characters are JSON escapes."""
    return "".join(lines(evaluation.findings, about or ReportContext(), headed=True))


def render_marked(evaluation: Evaluation, *, about: ReportContext | None = None) -> str:
    """Give the same after a byte order mark, without which Excel takes UTF-8 for something else."""
    return BYTE_ORDER_MARK + render(evaluation, about=about)


def lines(findings: Iterable[Finding], about: ReportContext, *, headed: bool) -> Iterator[str]:
    """Give the lines one after the other, for a report that is written in parts; `headed` has the heading first."""
    if headed:
        yield _line(COLUMNS)
    for finding in findings:
        yield _line(tuple(map(_cell, _cells(finding, about))))


def _cell(text: str) -> str:
    return _short_cell(text) if len(text) < _SHORT else guarded(visible(text))


@lru_cache(maxsize=1 << 14)
def _short_cell(text: str) -> str:
    return guarded(visible(text))


def guarded(text: str) -> str:
    """Give text that no spreadsheet calculates, as it is or with an apostrophe before what begins a formula."""
    return _FORMULA.sub(r"\1\2'", text)


def unguarded(text: str) -> str:
    """Give the text that was guarded."""
    return _GUARD.sub(r"\1\2", text)


def _cells(finding: Finding, about: ReportContext) -> tuple[str, ...]:
    kind, since, mark, at = about.kind(finding), about.since(finding), finding.exemption, finding.location
    reasons = map(denial_sentence, denials(finding)) if finding.outcome is Outcome.FAIL else ()
    return (
        finding.policy,
        finding.title,
        finding.severity,
        finding.outcome,
        finding.resource,
        finding.resource_type,
        about.owner(finding),
        kind.area,
        ", ".join(kind.controls),
        rfc3339(since.as_of) if since else "",
        " | ".join(reasons),
        " | ".join(map(unknown_sentence, unknowns(finding))),
        mark.id if mark else "",
        rfc3339(mark.expires_at) if mark and mark.expires_at else "",
        mark.reason if mark else "",
        finding.remediation,
        finding.source,
        at.file,
        *((str(at.line), str(at.column)) if at.file else ("", "")),
    )


def _line(cells: tuple[str, ...]) -> str:
    line = StringIO()
    csv.writer(line, lineterminator="\r\n").writerow(cells)
    return line.getvalue()
