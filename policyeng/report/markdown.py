"""Markdown for a pull-request comment or `$GITHUB_STEP_SUMMARY`: nothing is left out, details fold away."""

from __future__ import annotations

from collections.abc import Iterator

from policyeng.models import Denial, Evaluation, Finding, Outcome, Problem, Unknown
from policyeng.report.escapes import compact, markdown_code, markdown_text
from policyeng.report.markup import fold, table
from policyeng.report.wording import (
    denials,
    exempt,
    exemption_sentence,
    failed,
    has_values,
    having,
    headline,
    place,
    short_name,
    to_the_second,
    unknowns,
    verdict,
)


def render(evaluation: Evaluation) -> str:
    """Give a headline, the failures as a table, the rest in folded sections, and how compliance counts.

    Text from the snapshot stands in `<code>` and can neither format, link, nor mention anybody.
    """
    parts = [f"## policyeng: {headline(evaluation)}", f"**{markdown_text(verdict(evaluation))}**"]
    if failures := failed(evaluation):
        parts.append(table(("Severity", "Policy", "Resource", "What", "How to mend"), map(_failure, failures)))
    parts.extend(_folded(evaluation))
    if evaluation.problems:
        parts.append("\n".join(["### Problems", "", *map(_problem, evaluation.problems)]))
    parts.append(_compliance(evaluation))
    parts.append(_judged(evaluation))
    return "\n\n".join(parts) + "\n"


def _folded(evaluation: Evaluation) -> Iterator[str]:
    undecided = ("Severity", "Policy", "Resource", "Why it could not be decided")
    for title, outcome in (("Error", Outcome.ERROR), ("Unknown", Outcome.UNKNOWN)):
        if findings := having(evaluation, outcome):
            yield fold(f"{title} ({len(findings)})", table(undecided, map(_undecided, findings)))
    if findings := exempt(evaluation):
        titles = ("Severity", "Policy", "Resource", "What", "Exemption")
        yield fold(f"Exempt ({len(findings)})", table(titles, map(_exempt, findings)))


def _failure(finding: Finding) -> tuple[str, ...]:
    source = f"<br><sub>{markdown_text(finding.source)}</sub>" if finding.source else ""
    return (*_subject(finding), _what(finding), markdown_text(finding.remediation) + source)


def _exempt(finding: Finding) -> tuple[str, ...]:
    mark = exemption_sentence(finding.exemption) if finding.exemption else ""
    return (*_subject(finding), _what(finding), markdown_text(mark))


def _undecided(finding: Finding) -> tuple[str, ...]:
    return (*_subject(finding), "<br>".join(map(_unknown, unknowns(finding))))


def _subject(finding: Finding) -> tuple[str, str, str]:
    policy = f"{markdown_code(finding.policy)}<br>{markdown_text(finding.title)}"
    whole = markdown_code(finding.resource)
    where = f"<br>{markdown_code(place(finding.location))}" if finding.location.file else ""
    resource = f"<details><summary>{markdown_code(short_name(finding.resource))}</summary>{whole}{where}</details>"
    return finding.severity, policy, resource


def _what(finding: Finding) -> str:
    reasons = [_denial(denial) for denial in denials(finding)]
    reasons.extend(f"not decided: {_unknown(unknown)}" for unknown in unknowns(finding))
    return "<br>".join(reasons)


def _denial(denial: Denial) -> str:
    said = _unknown(Unknown(msg=denial.msg, path=denial.path))
    if not has_values(denial):
        return said
    actual, expected = markdown_code(compact(denial.actual)), markdown_code(compact(denial.expected))
    return f"{said}<br>actual {actual}, expected {expected}"


def _unknown(unknown: Unknown) -> str:
    path = f" {markdown_code(unknown.path)}" if unknown.path else ""
    return markdown_text(unknown.msg) + path


def _problem(problem: Problem) -> str:
    where = f"{markdown_code(problem.place)}: " if problem.place else ""
    return f"- **{problem.level}** {where}{markdown_code(problem.message)}"


def _compliance(evaluation: Evaluation) -> str:
    summary = evaluation.summary
    counts = (summary.pass_, summary.fail, summary.exempt, summary.unknown, summary.error)
    percentages = (f"{summary.strict_compliance:.2f} %", f"{summary.azure_compliance:.2f} %")
    titles = ("Pass", "Fail", "of these exempt", "Unknown", "Error", "Strict compliance", "As Azure Policy counts")
    return table(titles, [(*map(str, counts), *percentages)])


def _judged(evaluation: Evaluation) -> str:
    bundle, snapshot, engine = evaluation.bundle, evaluation.snapshot, evaluation.engine
    taken = f" taken {to_the_second(snapshot.taken_at)}" if snapshot.taken_at else ""
    scope = f" of {markdown_code(snapshot.scope)}" if snapshot.scope else ""
    digests = f"{markdown_code(bundle.digest)} over {markdown_code(snapshot.digest)}"
    return (
        f"<sub>Snapshot{scope}{taken}, judged by {markdown_text(f'{bundle.name} {bundle.revision}')} "
        f"as of {to_the_second(evaluation.as_of)} with engine {markdown_text(f'{engine.name} {engine.version}')} "
        f"({digests})</sub>"
    )
