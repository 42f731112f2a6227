"""The Markdown report for a pull-request comment or `$GITHUB_STEP_SUMMARY`, complete, with details folded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from policyeng.models import Denial, Evaluation, Finding, Outcome, Problem, Unknown
from policyeng.report.escaping import compact, markdown_code, markdown_text
from policyeng.report.frameworks import framework_markdown
from policyeng.report.locations import find_other_location, place
from policyeng.report.markdown_tables import fold, prose, table
from policyeng.report.phrases import (
    by_policy,
    by_resource,
    denials,
    describe_counts,
    describe_exit_code,
    exempt,
    exemption_sentence,
    failed,
    format_name,
    format_path,
    has_values,
    select_outcome,
    shorten_id,
    split_reason,
    to_the_second,
    unknowns,
)
from policyeng.report.settings import settings_text

#: The most characters of the controls of frameworks.
_FRAMEWORKS_LIMIT = 300_000


def render(evaluation: Evaluation, *, group_by: str | None = None, profile: str | None = None) -> str:
    """Return a headline, the failures as a table, the other findings in folded sections, and the compliance.

    With `group_by` there is one heading and one table for each `resource` or `policy` that fails. `profile` is the name
    of the parameter profile of the evaluation. Text from the snapshot is in `<code>`, without formatting, links and
    mentions.
    """
    parts = [f"## policyeng: {describe_counts(evaluation)}", f"**{markdown_text(describe_exit_code(evaluation))}**"]
    if failures := failed(evaluation):
        parts.extend(_FAILURES[group_by](failures))
    parts.extend(_render_folded(evaluation))
    if evaluation.problems:
        parts.append("\n".join(["### Problems", "", *map(_problem, evaluation.problems)]))
    if evaluation.frameworks:
        parts.append(framework_markdown(evaluation, _FRAMEWORKS_LIMIT))
    parts.append(_compliance(evaluation))
    parts.append(_provenance(evaluation, profile))
    if configured := settings_text(evaluation.settings):
        parts.append(f"<sub>Settings: {markdown_text(configured)}</sub>")
    return "\n\n".join(parts) + "\n"


def _render_ungrouped(failures: Sequence[Finding]) -> Iterator[str]:
    yield table(("Severity", "Policy", "Resource", "Reason", "Fix"), map(_failure, failures))


def _render_by_resource(failures: Sequence[Finding]) -> Iterator[str]:
    titles = ("Severity", "Policy", "Reason", "Fix")
    for members in by_resource(failures):
        first = members[0]
        yield f"### {markdown_code(shorten_id(first.resource))}"
        details = filter(None, (first.resource_type, first.resource, place(first.location)))
        yield " · ".join(map(markdown_code, details))
        yield table(titles, ((f.severity, _policy(f), _describe(f), _remedy(f)) for f in members))


def _render_by_policy(failures: Sequence[Finding]) -> Iterator[str]:
    for members in by_policy(failures):
        first = members[0]
        yield f"### {first.severity} {markdown_code(first.policy)} {markdown_text(first.title)}".rstrip()
        if remedy := _remedy(first):
            yield remedy
        yield table(("Resource", "Reason"), ((_resource(f), _describe(f)) for f in members))


_FAILURES: Mapping[str | None, Callable[[Sequence[Finding]], Iterator[str]]] = {
    None: _render_ungrouped,
    "resource": _render_by_resource,
    "policy": _render_by_policy,
}


def _render_folded(evaluation: Evaluation) -> Iterator[str]:
    titles = ("Severity", "Policy", "Resource", "Reason")
    for title, outcome in (("Error", Outcome.ERROR), ("Unknown", Outcome.UNKNOWN)):
        if findings := select_outcome(evaluation, outcome):
            yield fold(f"{title} ({len(findings)})", table(titles, map(_undecided, findings)))
    if findings := exempt(evaluation):
        yield fold(f"Exempt ({len(findings)})", table((*titles, "Exemption"), map(_exempt, findings)))


def _failure(finding: Finding) -> tuple[str, ...]:
    return (*_subject(finding), _describe(finding), _remedy(finding))


def _remedy(finding: Finding) -> str:
    source = f"<br><sub>{prose(finding.source, markdown_code)}</sub>" if finding.source else ""
    return prose(finding.remediation, markdown_code) + source


def _exempt(finding: Finding) -> tuple[str, ...]:
    mark = exemption_sentence(finding.exemption) if finding.exemption else ""
    return (*_subject(finding), _describe(finding), markdown_text(mark))


def _undecided(finding: Finding) -> tuple[str, ...]:
    return (*_subject(finding), "<br>".join(_unknown(finding, unknown) for unknown in unknowns(finding)))


def _subject(finding: Finding) -> tuple[str, str, str]:
    return finding.severity, _policy(finding), _resource(finding)


def _policy(finding: Finding) -> str:
    return f"{markdown_code(finding.policy)}<br>{markdown_text(finding.title)}"


def _resource(finding: Finding) -> str:
    full_id = markdown_code(finding.resource)
    where = f"<br>{markdown_code(place(finding.location))}" if finding.location.file else ""
    return f"<details><summary>{markdown_code(shorten_id(finding.resource))}</summary>{full_id}{where}</details>"


def _describe(finding: Finding) -> str:
    reasons = [_denial(finding, denial) for denial in denials(finding)]
    reasons.extend(f"unknown: {_unknown(finding, unknown)}" for unknown in unknowns(finding))
    return "<br>".join(reasons)


def _denial(finding: Finding, denial: Denial) -> str:
    message = _unknown(finding, Unknown(msg=denial.msg, path=denial.path))
    if not has_values(denial):
        return message
    value, because = split_reason(denial)
    actual, expected = markdown_code(compact(value)), markdown_code(compact(denial.expected))
    reason = f"<br>because {prose(because, markdown_code)}" if because else ""
    return f"{message}<br>actual {actual}, expected {expected}{reason}"


def _unknown(finding: Finding, unknown: Unknown) -> str:
    path = f" {markdown_code(format_path(unknown.path))}" if unknown.path else ""
    at = find_other_location(finding, unknown.path)
    return markdown_text(unknown.msg) + path + (f" at {markdown_code(at)}" if at else "")


def _problem(problem: Problem) -> str:
    where = f"{markdown_code(problem.place)}: " if problem.place else ""
    return f"- **{problem.level}** {where}{markdown_code(problem.message)}"


def _compliance(evaluation: Evaluation) -> str:
    summary = evaluation.summary
    counts = (summary.pass_, summary.fail, summary.exempt, summary.unknown, summary.error)
    percentages = (f"{summary.strict_compliance:.2f} %", f"{summary.azure_compliance:.2f} %")
    titles = ("Pass", "Fail", "Exempt failures", "Unknown", "Error", "Strict compliance", "Azure Policy compliance")
    return table(titles, iter([(*map(str, counts), *percentages)]))


def _provenance(evaluation: Evaluation, profile: str | None) -> str:
    bundle, snapshot, engine = evaluation.bundle, evaluation.snapshot, evaluation.engine
    taken = f" taken {to_the_second(snapshot.taken_at)}" if snapshot.taken_at else ""
    scope = f" of {markdown_code(snapshot.scope)}" if snapshot.scope else ""
    parameters = f", profile {markdown_code(profile)}," if profile else ""
    digests = f"{markdown_code(bundle.digest)} over {markdown_code(snapshot.digest)}"
    return (
        f"<sub>Snapshot{scope}{taken}, evaluated with {markdown_text(format_name(bundle))}{parameters} "
        f"as of {to_the_second(evaluation.as_of)} with engine {markdown_text(format_name(engine))} "
        f"({digests})</sub>"
    )
