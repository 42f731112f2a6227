"""The text report, for a terminal or a log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from policyeng.models import Evaluation, Finding, Findings, Outcome, Problem, Severity
from policyeng.report.compact import CompactFindings, plain_lines
from policyeng.report.detailed import group_by_policy, group_by_resource
from policyeng.report.escaping import visible
from policyeng.report.frameworks import framework_lines
from policyeng.report.grouping import group_findings
from policyeng.report.layout import BLANK, LABEL, STYLES, Line, heading, labelled, render_lines, wrap, wrap_paragraph
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

_EXITS = {0: "bold green", 1: "bold red"}
#: The forms of the report: one line for each policy and resource, every detail, the summary, and failures only.
FORMS = ("compact", "verbose", "summary", "quiet")
#: The lines of a screen. While the compact form fits, its fixes are complete.
_SCREEN = 40


def render(
    evaluation: Evaluation,
    *,
    color: bool = False,
    width: int = 100,
    group_by: str | None = None,
    profile: str | None = None,
    form: str = "compact",
    every: bool = False,
) -> str:
    """Return the failures, the errors, what is undecided, the problems, a summary, and last the result.

    Args:
        evaluation: the evaluation to report.
        color: adds ANSI colors and does not change the text.
        width: the number of columns, at least 40; ids, paths and commands are never broken, because people copy them.
        group_by: one of `GROUPS`; by default the compact form groups by policy and the verbose one by resource.
        profile: the name of the parameter profile of the evaluation.
        form: one of `FORMS`.
        every: the compact form lists every resource of a group.
    """
    width = max(width, 40)
    if form == "compact":
        return render_lines(_compact(evaluation, width, group_by or "policy", profile, every=every), color=color)
    if form == "quiet":
        return render_lines(_quiet(evaluation), color=color)
    if form == "summary":
        return render_lines(_summary(evaluation, width, profile), color=color)
    return render_lines(_verbose(evaluation, width, group_by or "resource", profile), color=color)


def _compact(evaluation: Evaluation, width: int, group_by: str, profile: str | None, *, every: bool) -> Sequence[Line]:
    others = evaluation.others
    if len(others) <= _SCREEN:
        lines = list(
            _compact_lines(
                evaluation,
                others,
                CompactFindings(others, width, every=every, whole_fixes=True),
                group_by,
                profile,
                width,
            )
        )
        if len(lines) <= _SCREEN:
            return lines
    short = CompactFindings(others, width, every=every, whole_fixes=False)
    return list(_compact_lines(evaluation, others, short, group_by, profile, width))


def _compact_lines(
    evaluation: Evaluation,
    others: Sequence[Finding],
    shown: CompactFindings,
    group_by: str,
    profile: str | None,
    width: int,
) -> Iterator[Line]:
    failures, exempted = failed(evaluation), exempt(evaluation)
    if others and shown.file:
        yield ((f"{visible(shown.file)}", "dim"),)
    if failures:
        yield from shown.policies(failures) if group_by == "policy" else shown.groups(failures, group_by)
        yield BLANK
    sections = (
        ("Exempt", exempted, shown.exempt),
        ("Errors", select_outcome(evaluation, Outcome.ERROR), shown.errors),
        ("Unknown", select_outcome(evaluation, Outcome.UNKNOWN), shown.missing_inputs),
    )
    for title, findings, lines in sections:
        if findings:
            yield ((f"{title} ({count(len(findings), 'finding')})", "bold"),)
            yield from lines(findings)
            yield BLANK
    for section in _SECTIONS:
        yield from section(evaluation, width)
    yield from _brief_summary(evaluation, width, profile)


def _quiet(evaluation: Evaluation) -> Iterator[Line]:
    """Yield the failures without an exemption, the errors of policies and the problems that are errors."""
    yield from plain_lines([*failed(evaluation), *select_outcome(evaluation, Outcome.ERROR)])
    for problem in evaluation.problems:
        if problem.level == "error":
            yield ((visible(f"{problem.place}: {problem.message}" if problem.place else problem.message), "bold red"),)


def _verbose(evaluation: Evaluation, width: int, group_by: str, profile: str | None) -> Iterator[Line]:
    sections = (
        ("Failures", [f for f in evaluation.others if f.outcome is Outcome.FAIL]),
        ("Errors", select_outcome(evaluation, Outcome.ERROR)),
        ("Unknown", select_outcome(evaluation, Outcome.UNKNOWN)),
    )
    for title, findings in sections:
        if findings:
            yield from heading(_counted(title, findings))
            yield from _grouped(findings, width, group_by)
    for section in _SECTIONS:
        yield from section(evaluation, width)
    yield from heading("Summary")
    yield from _summary(evaluation, width, profile)


def _grouped(findings: Sequence[Finding], width: int, group_by: str) -> Iterator[Line]:
    if group_by == "resource":
        yield from group_by_resource(findings, width)
    elif group_by == "policy":
        yield from group_by_policy(findings, width)
    else:
        for group in group_findings(findings, group_by):
            yield from heading(_counted(group.title, group.findings))
            yield from group_by_policy(group.findings, width)


def _counted(title: str, findings: Sequence[Finding]) -> str:
    exempted = sum(finding.exemption is not None for finding in findings)
    accepted = f", {exempted} exempt" if exempted else ""
    subjects = count(len({finding.resource for finding in findings}), "resource")
    return f"{title} ({len(findings)} on {subjects}{accepted})"


def _problems(evaluation: Evaluation, width: int) -> Iterator[Line]:
    if evaluation.problems:
        yield ((f"Problems ({len(evaluation.problems)})", "bold"),)
        for problem in sorted(evaluation.problems, key=lambda problem: problem.level != "error"):
            yield from _problem(problem, width)
        yield BLANK


#: What the report has between the findings and the summary: functions of an evaluation and a width.
_SECTIONS: tuple[Callable[[Evaluation, int], Iterator[Line]], ...] = (_problems, framework_lines)


def _problem(problem: Problem, width: int) -> Iterator[Line]:
    message = f"{problem.place}: {problem.message}" if problem.place else problem.message
    style = "bold red" if problem.level == "error" else "yellow"
    yield from labelled(problem.level, visible(message), width, indent=2, label_style=style)


def _brief_summary(evaluation: Evaluation, width: int, profile: str | None) -> Iterator[Line]:
    if evaluation.findings:
        yield from _table(evaluation, every=False)
    findings = Findings.of(evaluation.findings)
    with_profile = f" (profile {profile})" if profile else ""
    subject = f"{_describe_subject(findings)} {format_name(evaluation.bundle)}{with_profile}"
    words = f"{subject}, as of {to_the_second(evaluation.as_of)}"
    yield from wrap_paragraph(visible(words), width, indent=0, style="dim")
    if configured := settings_text(evaluation.settings):
        lines = wrap(configured, width - LABEL)
        text = lines[0] if len(lines) == 1 else f"{wrap(configured, width - LABEL - 2)[0]} …"
        yield from labelled("settings", text, max(width, LABEL + len(text)), indent=0)
    yield from _result(evaluation, width)


def _summary(evaluation: Evaluation, width: int, profile: str | None) -> Iterator[Line]:
    if evaluation.findings:
        yield from _table(evaluation, every=True)
        yield BLANK
        yield from _render_worst(evaluation, width)
        yield from labelled("compliant", _compliance(evaluation), width, indent=2)
    yield from labelled("evaluated", visible(_provenance(evaluation, profile)), width, indent=2)
    if configured := settings_text(evaluation.settings):
        yield from labelled("settings", configured, width, indent=2)
    yield BLANK
    yield from _result(evaluation, width)


def _result(evaluation: Evaluation, width: int) -> Iterator[Line]:
    style = _EXITS.get(evaluation.exit_code, "bold yellow")
    yield from wrap_paragraph(describe_exit_code(evaluation), width, indent=0, style=style)


def _table(evaluation: Evaluation, *, every: bool) -> Iterator[Line]:
    """Yield the counts by outcome and severity; rows of zeros only if `every`."""
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
        if not every and not findings:
            continue
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
    subject = _describe_subject(Findings.of(evaluation.findings))
    parameters = f", profile {profile}" if profile else ""
    scope = f" of {snapshot.scope}" if snapshot.scope else ""
    taken = f" taken {to_the_second(snapshot.taken_at)}" if snapshot.taken_at else ""
    source_snapshot = f", snapshot{scope}{taken}" if scope or taken else ""
    return (
        f"{subject} {format_name(bundle)}{parameters}{source_snapshot}, "
        f"as of {to_the_second(evaluation.as_of)}, engine {format_name(engine)}"
    )


def _describe_subject(findings: Findings) -> str:
    resources, policies = count(len(findings.resources), "resource"), count(len(findings.policies), "policy")
    return f"{resources} with {policies} of" if findings else "no resources with"
