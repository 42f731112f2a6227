"""The controls of frameworks in the reports for people and in CSV: statuses, scores, and what is not covered.

No text here states that a control is met, or that a framework is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate

from policyeng.models import (
    ControlResult,
    ControlScore,
    ControlStatus,
    Evaluation,
    Evidence,
    Finding,
    FrameworkResult,
)
from policyeng.report.escaping import fold, markdown_code, markdown_text, prose, table, visible
from policyeng.report.layout import BLANK, Line, heading, labelled, place_text, wrap_paragraph
from policyeng.report.phrases import count, rfc3339, shorten_id

CSV_COLUMNS = ("control", "status", "basis", "passing", "failing", "unknown", "exempt")
#: The statuses that are shown with their words, each control on its own; the others are listed by status.
SHOWN = (
    ControlStatus.FAILING,
    ControlStatus.ERROR,
    ControlStatus.UNDECIDED,
    ControlStatus.ACCEPTED,
    ControlStatus.PASSING,
    ControlStatus.DECLARED,
)
_LISTED = tuple(status for status in ControlStatus if status not in SHOWN)
_STYLES = {
    ControlStatus.FAILING: "bold red",
    ControlStatus.ERROR: "bold red",
    ControlStatus.UNDECIDED: "yellow",
    ControlStatus.ACCEPTED: "yellow",
    ControlStatus.PASSING: "green",
    ControlStatus.DECLARED: "cyan",
}
#: The column of the longest shown status.
_STATUS = max(map(len, SHOWN))


def framework_lines(evaluation: Evaluation, width: int) -> Iterator[Line]:
    """Yield the active evidence and a section for each framework of the text report."""
    if evaluation.evidence:
        yield ((f"Evidence ({len(evaluation.evidence)})", "bold"),)
        for entry in evaluation.evidence:
            yield from labelled("given", visible(evidence_sentence(entry)), width, indent=2)
        yield BLANK
    for framework in evaluation.frameworks:
        yield from heading(visible(f"{framework.id}: {_title(framework)}"))
        yield from wrap_paragraph(scores(framework.summary), width, indent=2)
        for domain, controls in framework.by_domain:
            yield BLANK
            if domain:
                share = scores(framework.summary.domains[domain])
                yield from place_text(((f"  {visible(domain)}", "bold"),), share, width, indent=4, style="dim")
            for control in controls:
                if control.status in SHOWN:
                    yield from _control(evaluation, control, width)
            for label, ids in listed(controls):
                text = f"{label} ({len(ids)}): {', '.join(ids)}"
                yield from wrap_paragraph(visible(text), width, indent=4, style="dim")
        yield BLANK
        yield from wrap_paragraph(visible(framework.disclaimer), width, indent=2, style="dim")
        yield BLANK


def _control(evaluation: Evaluation, control: ControlResult, width: int) -> Iterator[Line]:
    spans = (
        ("    ", ""),
        (f"{control.status:<{_STATUS}}", _STYLES[control.status]),
        (f"  {visible(control.id)}", "bold"),
    )
    yield from place_text(spans, visible(control.title), width, indent=_STATUS + 6)
    policies = ", ".join(dict.fromkeys(finding.policy for finding in open_findings(evaluation, control)))
    words = f"{control.words}; {policies}" if policies else control.words
    yield from wrap_paragraph(visible(words), width, indent=_STATUS + 6, style="dim")


def evidence_sentence(entry: Evidence) -> str:
    """Return for what evidence is, who gave it, until when it counts, and what it states."""
    reference = f" ({entry.reference})" if entry.reference else ""
    until = rfc3339(entry.expires_at)[:10]
    return f"{entry.id} for {entry.for_}, by {entry.given_by} until {until}, not checked: {entry.statement}{reference}"


def listed(controls: Iterable[ControlResult]) -> Iterator[tuple[str, list[str]]]:
    """Yield the ids of the controls that are only listed, by status; those that are not configured on their own."""
    found: dict[str, list[str]] = {}
    for status in _LISTED:
        for control in controls:
            if control.status is status:
                label = "not configured" if control.words.startswith("not configured") else str(status)
                found.setdefault(label, []).append(control.id)
    yield from found.items()


def scores(score: ControlScore) -> str:
    """Return the scores in words; a score without anything to divide by is a hyphen."""
    parts = (("strict", score.strict), ("decided", score.decided), ("coverage", score.coverage))
    return ", ".join(f"{name} {percentage(value)}" for name, value in parts)


def percentage(value: float | None) -> str:
    """Return a percentage with two decimals, or a hyphen."""
    return "-" if value is None else f"{value:.2f} %"


def direct_policies(control: ControlResult) -> list[str]:
    """Return the ids of the policies of the bundle that test a control."""
    return [mapping.id for mapping in control.policies if mapping.is_direct]


def open_findings(evaluation: Evaluation, control: ControlResult) -> list[Finding]:
    """Return the findings of the direct policies of a control that do not pass, the most severe first."""
    direct = set(direct_policies(control))
    found = [finding for finding in evaluation.others if finding.policy in direct]
    return sorted(found, key=lambda finding: (-finding.severity.rank, finding.policy, finding.resource.lower()))


def outcome_of(finding: Finding) -> str:
    """Return the outcome of a finding, or `exempt`."""
    return "exempt" if finding.exemption is not None else str(finding.outcome)


def basis_of(control: ControlResult) -> str:
    """Return the best basis among the direct mappings of a control; empty without any."""
    found = {mapping.basis for mapping in control.policies if mapping.is_direct}
    return next((basis for basis in ("published", "analogue", "derived", "own") if basis in found), "")


def _title(framework: FrameworkResult) -> str:
    return f"{framework.title}, version {framework.version}{' (preview)' if framework.preview else ''}"


def framework_markdown(evaluation: Evaluation, limit: int) -> str:
    """Return the active evidence and the sections of the Markdown report, at most `limit` characters.

    What is left out is counted; the text is empty without evidence and frameworks.
    """
    parts: list[str] = []
    if evaluation.evidence:
        lines = [f"- {markdown_text(evidence_sentence(entry))}" for entry in evaluation.evidence]
        fitting = sum(size < limit // 3 for size in accumulate(map(len, lines)))
        kept = lines[:fitting]
        more = [f"- {len(lines) - len(kept)} more left out"] if len(kept) < len(lines) else []
        parts.append("\n".join(["### Evidence", "", *kept, *more]))
    for number, framework in enumerate(evaluation.frameworks):
        text = "\n\n".join(_markdown_parts(framework))
        if len(text) > limit:
            left = evaluation.frameworks[number:]
            parts.append(
                f"{count(len(left), 'framework')} left out: {', '.join(markdown_code(one.id) for one in left)}."
            )
            break
        limit -= len(text)
        parts.append(text)
    return "\n\n".join(parts)


def _markdown_parts(framework: FrameworkResult) -> Iterator[str]:
    yield f"### {markdown_text(framework.id)}: {markdown_text(_title(framework))}"
    rows = [("all", framework.summary), *framework.summary.domains.items()]
    cells = [
        [markdown_text(name), str(one.controls), *map(percentage, (one.strict, one.decided, one.coverage))]
        for name, one in rows
    ]
    yield table(["Domain", "Controls", "Strict", "Decided", "Coverage"], cells)
    shown = [control for control in framework.controls if control.status in SHOWN]
    if shown:
        yield table(["Control", "Status", "What was found", "Policies"], map(_markdown_control, shown))
    for status in _LISTED:
        controls = [control for control in framework.controls if control.status is status]
        if controls:
            lines = "\n".join(
                f"- {markdown_text(one.id)} {markdown_text(one.title)}: {prose(one.words, markdown_code)}"
                if status is not ControlStatus.NOT_COVERED
                else f"- {markdown_text(one.id)} {markdown_text(one.title)}"
                for one in controls
            )
            yield fold(f"{status} ({len(controls)})", lines)
    yield markdown_text(framework.disclaimer)


def _markdown_control(control: ControlResult) -> Sequence[str]:
    name = f"{markdown_text(control.id)} {markdown_text(control.title)}"
    policies = ", ".join(map(markdown_text, direct_policies(control)))
    return name, f"**{control.status}**", prose(control.words, markdown_code), policies


def framework_rows(evaluation: Evaluation) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the second table of the CSV report, with its header; `failing` leaves out exempt failures."""
    if not evaluation.frameworks:
        return
    yield CSV_COLUMNS
    for framework in evaluation.frameworks:
        for control in framework.controls:
            found = control.findings
            counts = (found.pass_, found.fail - found.exempt, found.unknown + found.error, found.exempt)
            yield f"{framework.id}:{control.id}", str(control.status), basis_of(control), *map(str, counts)


def resource_name(finding: Finding) -> str:
    """Return the short name of the resource of a finding."""
    return shorten_id(finding.resource)


#: What the template of the HTML report calls.
HTML_FUNCTIONS: dict[str, Callable[..., object]] = {
    "basis_of": basis_of,
    "direct_policies": direct_policies,
    "evidence_sentence": evidence_sentence,
    "open_findings": open_findings,
    "outcome_of_finding": outcome_of,
    "percentage": percentage,
    "resource_name": resource_name,
}
