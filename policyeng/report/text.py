"""The text report: for a person at a terminal or in a log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from policyeng.models import Evaluation, Finding, Location, Outcome, Problem, Severity
from policyeng.report.escapes import compact, visible
from policyeng.report.lines import BLANK, LABEL, STYLES, Line, heading, item, labelled, paragraph, printed
from policyeng.report.wording import (
    count,
    denials,
    exempt,
    exemption_sentence,
    failed,
    has_values,
    having,
    place,
    short_name,
    to_the_second,
    unknowns,
    verdict,
)

_EXITS = {0: "bold green", 1: "bold red"}


def render(evaluation: Evaluation, *, color: bool = False, width: int = 100) -> str:
    """Give the failures by resource, what could not be decided, the problems and a summary; the exit comes last.

    With `color`, ANSI colours are added and the text stays the same. `width` is the columns to wrap at, at least 40;
    words are never broken, so that ids and paths can be copied.
    """
    return printed(_lines(evaluation, max(width, 40)), color=color)


def _lines(evaluation: Evaluation, width: int) -> Iterator[Line]:
    sections = (
        ("Failures", [f for f in evaluation.findings if f.outcome is Outcome.FAIL]),
        ("Unknown", having(evaluation, Outcome.UNKNOWN)),
        ("Errors", having(evaluation, Outcome.ERROR)),
    )
    for title, findings in sections:
        if findings:
            yield from _section(title, findings, width)
    if evaluation.problems:
        yield from heading(f"Problems ({len(evaluation.problems)})")
        for problem in evaluation.problems:
            yield from _problem(problem, width)
        yield BLANK
    yield from _summary(evaluation, width)


def _section(title: str, findings: Sequence[Finding], width: int) -> Iterator[Line]:
    blocks: dict[tuple[str, str, Location], list[Finding]] = {}
    for finding in findings:
        blocks.setdefault((finding.resource, finding.resource_type, finding.location), []).append(finding)
    exempted = sum(finding.exemption is not None for finding in findings)
    accepted = f", {exempted} exempt" if exempted else ""
    subjects = count(len({finding.resource for finding in findings}), "resource")
    yield from heading(f"{title} ({len(findings)} on {subjects}{accepted})")
    for (resource, resource_type, location), members in blocks.items():
        yield from _resource(resource, resource_type, location, width)
        for finding in members:
            yield BLANK
            yield from _finding(finding, width)
        yield BLANK


def _resource(resource: str, resource_type: str, location: Location, width: int) -> Iterator[Line]:
    name, kind, whole = short_name(resource), visible(resource_type), visible(resource)
    if len(name) + 2 + len(kind) <= width:
        yield ((name, "bold"), ("  ", ""), (kind, "dim"))
    else:
        yield ((name, "bold"),)
        yield ((kind, "dim"),)
    if whole != name:
        yield ((whole, "dim"),)
    if location.file:
        yield ((place(location), "dim"),)


def _finding(finding: Finding, width: int) -> Iterator[Line]:
    style = "dim" if finding.exemption is not None else STYLES[finding.severity]
    policy, title = visible(finding.policy), visible(finding.title)
    head: Line = (("  ", ""), (f"{finding.severity:<{LABEL}}", style), (policy, "bold"))
    if title and sum(len(text) for text, _ in head) + 2 + len(title) <= width:
        yield (*head, ("  ", ""), (title, ""))
    else:
        yield head
        yield from paragraph(title, width, indent=4)
    if finding.exemption is not None:
        yield from paragraph(exemption_sentence(finding.exemption), width, indent=4, style="magenta")
    yield from _reasons(finding, width)
    if finding.outcome is Outcome.FAIL:
        yield from labelled("why", visible(finding.source), width, indent=4)
        yield from labelled("mend", visible(finding.remediation), width, indent=4, style="green")


def _reasons(finding: Finding, width: int) -> Iterator[Line]:
    for denial in denials(finding) if finding.outcome is Outcome.FAIL else ():
        yield from item(visible(denial.msg), width)
        yield from labelled("path", visible(denial.path), width, indent=6)
        if has_values(denial):
            yield from labelled("actual", compact(denial.actual), width, indent=6, style="red")
            yield from labelled("expected", compact(denial.expected), width, indent=6, style="green")
    lead = "not decided: " if finding.outcome is Outcome.FAIL else ""
    for unknown in unknowns(finding):
        yield from item(lead + visible(unknown.msg), width)
        yield from labelled("path", visible(unknown.path), width, indent=6)


def _problem(problem: Problem, width: int) -> Iterator[Line]:
    message = f"{problem.place}: {problem.message}" if problem.place else problem.message
    style = "bold red" if problem.level == "error" else "yellow"
    yield from labelled(problem.level, visible(message), width, indent=2, label_style=style)


def _summary(evaluation: Evaluation, width: int) -> Iterator[Line]:
    yield from heading("Summary")
    if evaluation.findings:
        yield from _table(evaluation)
        yield BLANK
        yield from _worst(evaluation, width)
        yield from labelled("compliant", _compliance(evaluation), width, indent=2)
    yield from labelled("judged", visible(_judged(evaluation)), width, indent=2)
    yield BLANK
    yield from paragraph(verdict(evaluation), width, indent=0, style=_EXITS.get(evaluation.exit_code, "bold yellow"))


def _table(evaluation: Evaluation) -> Iterator[Line]:
    rows = {
        "fail": having(evaluation, Outcome.FAIL),
        "  exempt": exempt(evaluation),
        "unknown": having(evaluation, Outcome.UNKNOWN),
        "error": having(evaluation, Outcome.ERROR),
        "pass": having(evaluation, Outcome.PASS),
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


def _worst(evaluation: Evaluation, width: int) -> Iterator[Line]:
    """The three policies that fail most, worst first; exempt failures do not count."""
    by_policy: dict[str, list[Finding]] = {}
    for finding in failed(evaluation):
        by_policy.setdefault(finding.policy, []).append(finding)
    ranked = sorted(by_policy.values(), key=lambda fs: (-len(fs), -fs[0].severity.rank, fs[0].policy))
    for number, (finding, *others) in enumerate(ranked[:3]):
        words = f"{len(others) + 1} x {finding.policy} ({finding.severity}) {finding.title}"
        yield from labelled("" if number else "worst", visible(words), width, indent=2)


def _compliance(evaluation: Evaluation) -> str:
    summary = evaluation.summary
    strict = f"{summary.strict_compliance:.2f} % strictly (only passes count)"
    return f"{strict}, {summary.azure_compliance:.2f} % as Azure Policy counts (exempt and unknown count too)"


def _judged(evaluation: Evaluation) -> str:
    bundle, snapshot, engine = evaluation.bundle, evaluation.snapshot, evaluation.engine
    resources = count(len({finding.resource for finding in evaluation.findings}), "resource")
    number = len({finding.policy for finding in evaluation.findings})
    subject = f"{resources}, with {count(number, 'policy')}" if number else "nothing, with no policy"
    scope = f" of {snapshot.scope}" if snapshot.scope else ""
    taken = f", taken {to_the_second(snapshot.taken_at)}" if snapshot.taken_at else ""
    return (
        f"{subject} of {bundle.name} {bundle.revision}, in the snapshot{scope}{taken}, "
        f"as of {to_the_second(evaluation.as_of)}, engine {engine.name} {engine.version}"
    )
