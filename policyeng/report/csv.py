"""The CSV report for spreadsheets (RFC 4180): one row per finding, with formulas escaped."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from io import StringIO

from policyeng.models import Evaluation, Finding, Outcome
from policyeng.report.context import ReportContext
from policyeng.report.escaping import visible
from policyeng.report.frameworks import framework_rows
from policyeng.report.locations import field_address, find_location
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
    "address",
    "why",
    "url",
)
#: Cells shorter than this are cached: most cells repeat those of other rows.
_SHORT = 200
#: Programs such as Excel need it to detect UTF-8.
BYTE_ORDER_MARK = "\ufeff"

# A cell begins at its start, and after a semicolon, which Excel uses as the separator in many locales. An apostrophe is
# inserted before the start of a formula, full-width signs included. Existing apostrophes are escaped too, which makes
# the escaping reversible. Source: OWASP, "CSV Injection".
_BEGINNING = r"(^|;)(\s*)"
_FORMULA = re.compile(_BEGINNING + r"(?=['=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20])")
_GUARD = re.compile(_BEGINNING + "'")


def render(evaluation: Evaluation, *, about: ReportContext | None = None) -> str:
    """Return the CSV report."""
    return "".join(write_parts(evaluation, about=about))


def render_marked(evaluation: Evaluation, *, about: ReportContext | None = None) -> str:
    """Return the CSV report with a byte order mark."""
    return "".join(write_marked_parts(evaluation, about=about))


def write_parts(evaluation: Evaluation, *, about: ReportContext | None = None) -> Iterator[str]:
    """Yield a header and the rows, in UTF-8 with CRLF line ends; unprintable characters are JSON escapes.

    The controls of frameworks are a second table below an empty line.
    """
    yield from lines(evaluation.findings, about or ReportContext(), headed=True)
    if evaluation.frameworks:
        yield "\r\n" + table_text(framework_rows(evaluation))


def write_marked_parts(evaluation: Evaluation, *, about: ReportContext | None = None) -> Iterator[str]:
    """Yield the CSV report with a byte order mark, which Excel needs to detect UTF-8."""
    yield BYTE_ORDER_MARK
    yield from write_parts(evaluation, about=about)


def lines(findings: Iterable[Finding], about: ReportContext, *, headed: bool) -> Iterator[str]:
    """Yield the lines, for a report that is written in parts; `headed` adds the header."""
    if headed:
        yield _line(COLUMNS)
    for finding in findings:
        yield _line(_cells(finding, about))


def table_text(rows: Iterable[Sequence[str]]) -> str:
    """Return rows as CSV (RFC 4180), without formulas for spreadsheets."""
    return "".join(map(_line, rows))


def _cell(text: str) -> str:
    return _shorten_cell(text) if len(text) < _SHORT else guarded(visible(text))


@lru_cache(maxsize=1 << 14)
def _shorten_cell(text: str) -> str:
    return guarded(visible(text))


def guarded(text: str) -> str:
    """Escape text for a spreadsheet: insert an apostrophe before the start of a formula."""
    return _FORMULA.sub(r"\1\2'", text)


def unguarded(text: str) -> str:
    """Reverse `guarded`."""
    return _GUARD.sub(r"\1\2", text)


def _cells(finding: Finding, about: ReportContext) -> tuple[str, ...]:
    category, since, mark, at = about.kind(finding), about.since(finding), finding.exemption, find_location(finding)
    denied = denials(finding) if finding.outcome is Outcome.FAIL else ()
    reasons = (denial_sentence(denial, field_address(finding, denial.path)) for denial in denied)
    return (
        finding.policy,
        finding.title,
        finding.severity,
        finding.outcome,
        finding.resource,
        finding.resource_type,
        about.owner(finding),
        category.area,
        ", ".join(category.controls),
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
        at.address or finding.location.address,
        finding.why,
        finding.url,
    )


def _line(cells: Iterable[str]) -> str:
    line = StringIO()
    csv.writer(line, lineterminator="\r\n").writerow(map(_cell, cells))
    return line.getvalue()
