"""The text report, for a terminal or a log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from policyeng.models import Evaluation, Finding, Findings, Outcome, Problem, Severity
from policyeng.report.escaping import visible
from policyeng.report.frameworks import framework_lines
from policyeng.report.grouping import group_by_policy, group_by_resource
from policyeng.report.layout import BLANK, LABEL, STYLES, Line, heading, labelled, render_lines, wrap_paragraph
from policyeng.report.phrases import (
    by_policy,
    count,
    describe_exit_code,
    exempt,
    failed,
    format_name,
    select_outcome,
    to_the_second,
)
from policyeng.report.settings import settings_text

_GROUPINGS = {"resource": group_by_resource, "policy": group_by_policy}
_EXITS = {0: "bold green", 1: "bold red"}


def render(
    evaluation: Evaluation,
    *,
    color: bool = False,
    width: int = 100,
    group_by: str | None = None,
    profile: str | None = None,
) -> str:
    """Return the failures, the unknown and error findings, the problems, a summary, and last the verdict.

    Args:
        evaluation: the evaluation to report.
        color: adds ANSI colors and does not change the text.
        width: the number of columns to wrap at, at least 40; words are never broken, because people copy ids and paths.
        group_by: `resource` (the default) or `policy`.
        profile: the name of the parameter profile of the evaluation.
    """
    return render_lines(_lines(evaluation, max(width, 40), group_by or "resource", profile), color=color)


def _lines(evaluation: Evaluation, width: int, group_by: str, profile: str | None) -> Iterator[Line]:
    sections = (
        ("Failures", [f for f in evaluation.others if f.outcome is Outcome.FAIL]),
        ("Unknown", select_outcome(evaluation, Outcome.UNKNOWN)),
        ("Errors", select_outcome(evaluation, Outcome.ERROR)),
    )
    for title, findings in sections:
        if findings:
            yield from _section(title, findings, width, group_by)
    if evaluation.problems:
        yield from heading(f"Problems ({len(evaluation.problems)})")
        for problem in evaluation.problems:
            yield from _problem(problem, width)
        yield BLANK
    yield from framework_lines(evaluation, width)
    yield from _summary(evaluation, width, profile)


def _section(title: str, findings: Sequence[Finding], width: int, group_by: str) -> Iterator[Line]:
    exempted = sum(finding.exemption is not None for finding in findings)
    accepted = f", {exempted} exempt" if exempted else ""
    subjects = count(len({finding.resource for finding in findings}), "resource")
    yield from heading(f"{title} ({len(findings)} on {subjects}{accepted})")
    yield from _GROUPINGS[group_by](findings, width)


def _problem(problem: Problem, width: int) -> Iterator[Line]:
    message = f"{problem.place}: {problem.message}" if problem.place else problem.message
    style = "bold red" if problem.level == "error" else "yellow"
    yield from labelled(problem.level, visible(message), width, indent=2, label_style=style)


def _summary(evaluation: Evaluation, width: int, profile: str | None) -> Iterator[Line]:
    yield from heading("Summary")
    if evaluation.findings:
        yield from _table(evaluation)
        yield BLANK
        yield from _render_worst(evaluation, width)
        yield from labelled("compliant", _compliance(evaluation), width, indent=2)
    yield from labelled("evaluated", visible(_provenance(evaluation, profile)), width, indent=2)
    if configured := settings_text(evaluation.settings):
        yield from labelled("settings", configured, width, indent=2)
    yield BLANK
    yield from wrap_paragraph(
        describe_exit_code(evaluation), width, indent=0, style=_EXITS.get(evaluation.exit_code, "bold yellow")
    )


def _table(evaluation: Evaluation) -> Iterator[Line]:
    rows = {
        "fail": select_outcome(evaluation, Outcome.FAIL),
        "  exempt": exempt(evaluation),
        "unknown": select_outcome(evaluation, Outcome.UNKNOWN),
        "error": select_outcome(evaluation, Outcome.ERROR),
        "pass": select_outcome(evaluation, Outcome.PASS),
    }
    severities = list(reversed(Severity))
    titles = "".join(f"{severity:>{len(severity) + 2}}" for severity in severities)
    yield ((f"{'':{LABEL + 2}}{titles}  total", "dim"),)
    for title, findings in rows.items():
        counts = Counter(finding.severity for finding in findings)
        spans = [
            (f"{_cell(counts[s], len(s) + 2)}", STYLES[s] if title == "fail" and counts[s] else "") for s in severities
        ]
        yield (f"  {title:<{LABEL}}", ""), *spans, (_cell(len(findings), 7), "bold")


def _cell(number: int, width: int) -> str:
    return f"{number or '-':>{width}}"


def _render_worst(evaluation: Evaluation, width: int) -> Iterator[Line]:
    """Yield the three worst policies, by severity and number of failures without an exemption."""
    ranked = sorted(by_policy(failed(evaluation)), key=lambda members: (-members[0].severity.rank, -len(members)))
    for number, (finding, *others) in enumerate(ranked[:3]):
        words = f"{len(others) + 1} x {finding.policy} ({finding.severity}) {finding.title}"
        yield from labelled("" if number else "worst", visible(words), width, indent=2)


def _compliance(evaluation: Evaluation) -> str:
    summary = evaluation.summary
    strict = f"{summary.strict_compliance:.2f} % strict (only passes count)"
    return f"{strict}, {summary.azure_compliance:.2f} % as in Azure Policy (exempt and unknown count too)"


def _provenance(evaluation: Evaluation, profile: str | None) -> str:
    bundle, snapshot, engine = evaluation.bundle, evaluation.snapshot, evaluation.engine
    findings = Findings.of(evaluation.findings)
    resources, policies = count(len(findings.resources), "resource"), count(len(findings.policies), "policy")
    subject = f"{resources} with {policies} of" if findings else "no resources with"
    parameters = f", profile {profile}" if profile else ""
    scope = f" of {snapshot.scope}" if snapshot.scope else ""
    taken = f" taken {to_the_second(snapshot.taken_at)}" if snapshot.taken_at else ""
    source_snapshot = f", snapshot{scope}{taken}" if scope or taken else ""
    return (
        f"{subject} {format_name(bundle)}{parameters}{source_snapshot}, "
        f"as of {to_the_second(evaluation.as_of)}, engine {format_name(engine)}"
    )
