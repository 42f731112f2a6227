"""The Markdown report for a pull-request comment or `$GITHUB_STEP_SUMMARY`, complete, with details folded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from urllib.parse import quote

from policyeng.models import Denial, Evaluation, Finding, Outcome, Problem, Unknown
from policyeng.report.escaping import fold, markdown_code, markdown_text, prose, row, table
from policyeng.report.frameworks import framework_markdown
from policyeng.report.grouping import group_findings
from policyeng.report.locations import field_address, find_other_location, place
from policyeng.report.phrases import (
    by_policy,
    count,
    denials,
    describe_counts,
    describe_exit_code,
    describe_found,
    describe_value,
    exempt,
    exemption_sentence,
    failed,
    format_name,
    format_path,
    has_values,
    ledger_sentence,
    select_outcome,
    settings_text,
    shorten_id,
    split_reason,
    to_the_second,
    unknowns,
    worst_first,
)

#: The largest size of the report in bytes; GitHub refuses a job summary of more than 1,024 kB.
LIMIT = 900_000
#: The part of it that problems may take.
_PROBLEMS_LIMIT = 100_000
#: The most characters of the controls of frameworks.
_FRAMEWORKS_LIMIT = 300_000
#: The room for the last line of problems.
_REST = 100
#: Characters of a URL that need no escape.
_URL = ":/?#[]@!$&'()*+,;=%~"


class _MarkdownWriter:
    """A report that leaves out rows beyond its largest size, and counts them."""

    def __init__(self, limit: int) -> None:
        self.parts: list[str] = []
        self.left_out = 0
        self._room = limit

    def add(self, part: str) -> None:
        """Add a part that is always written."""
        self.parts.append(part)
        self._room -= _size(part)

    def add_rows(self, before: str, rows: Iterable[str], after: str = "") -> None:
        """Add rows between two texts as far as there is room."""
        lines, room = [before], self._room - _size(before) - _size(after)
        for line in rows:
            room -= _size(line)
            if room < 0 or self.left_out:
                self.left_out += 1
            else:
                lines.append(line)
        if len(lines) > 1:
            self.parts.append("\n".join(lines) + after)
            self._room = room


def _size(text: str) -> int:
    return len(text.encode()) + 2  # and the line ends


def render(evaluation: Evaluation, *, group_by: str | None = None, profile: str | None = None) -> str:
    """Return a headline, the failures in tables, the worst first, the other findings folded, and the compliance.

    Failures are grouped by policy, or by `group_by`, one of `GROUPS`. `profile` is the name of the parameter profile of
    the evaluation. Text from the snapshot is in `<code>`, without formatting, links and mentions. The report has at
    most `LIMIT` bytes; it states how many findings it leaves out.
    """
    last = [_compliance(evaluation), _provenance(evaluation, profile)]
    if configured := settings_text(evaluation.settings):
        last.append(f"<sub>Settings: {markdown_text(configured)}</sub>")
    reserved = _PROBLEMS_LIMIT + _size(framework_markdown(evaluation, _FRAMEWORKS_LIMIT))
    writer = _MarkdownWriter(LIMIT - sum(map(_size, last)) - reserved)
    writer.add(f"## policyeng: {describe_counts(evaluation)}")
    writer.add(f"**{markdown_text(describe_exit_code(evaluation))}**")
    if failures := failed(evaluation):
        if group_by in (None, "policy"):
            _add_policies(writer, failures)
        else:
            _add_groups(writer, failures, group_by)
    _add_folded(writer, evaluation)
    if writer.left_out:
        left = count(writer.left_out, "finding")
        writer.parts.append(f"**{left} left out, the least severe; the JSON, CSV and SARIF reports have all.**")
    for section in _SECTIONS:
        section(writer, evaluation)
    return "\n\n".join([*writer.parts, *last]) + "\n"


def _add_policies(writer: _MarkdownWriter, failures: Sequence[Finding]) -> None:
    for members in by_policy(failures):
        first = members[0]
        title = f"### {first.severity} {markdown_code(first.policy)} {markdown_text(first.title)}".rstrip()
        heading = [f"{title} ({len(members)})", *filter(None, [_why(first), _remedy(first)])]
        rows = (row((_resource(finding), _describe(finding))) for finding in members)
        writer.add_rows("\n\n".join([*heading, table(("Resource", "Reason"), ())]), rows)


def _add_groups(writer: _MarkdownWriter, failures: Sequence[Finding], by: str) -> None:
    titles = ("Severity", "Policy", "Resource", "Reason", "Fix")
    for group in group_findings(failures, by):
        title = f"### {markdown_code(group.title)} ({len(group.findings)})"
        writer.add_rows(f"{title}\n\n{table(titles, ())}", map(row, map(_failure, group.findings)))


def _add_folded(writer: _MarkdownWriter, evaluation: Evaluation) -> None:
    titles = ("Severity", "Policy", "Resource", "Reason")
    for title, outcome in (("Error", Outcome.ERROR), ("Unknown", Outcome.UNKNOWN)):
        if findings := worst_first(select_outcome(evaluation, outcome)):
            _add_fold(writer, f"{title} ({len(findings)})", titles, map(_undecided, findings))
    if findings := worst_first(exempt(evaluation)):
        _add_fold(writer, f"Exempt ({len(findings)})", (*titles, "Exemption"), map(_exempt, findings))


def _add_fold(writer: _MarkdownWriter, summary: str, titles: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    before, after = fold(summary, f"{table(titles, ())}\0").split("\0")
    writer.add_rows(before, map(row, rows), after)


def _add_problems(writer: _MarkdownWriter, evaluation: Evaluation) -> None:
    room, lines = _PROBLEMS_LIMIT, ["### Problems", ""]
    for number, problem in enumerate(sorted(evaluation.problems, key=lambda problem: problem.level != "error")):
        line = _problem(problem)
        room -= _size(line)
        if room < _REST:
            lines.append(f"- and {len(evaluation.problems) - number} more")
            break
        lines.append(line)
    if evaluation.problems:
        writer.parts.append("\n".join(lines))


def _add_ledger(writer: _MarkdownWriter, evaluation: Evaluation) -> None:
    if sentence := ledger_sentence(evaluation.ledger):
        writer.parts.append(markdown_text(sentence))


def _add_frameworks(writer: _MarkdownWriter, evaluation: Evaluation) -> None:
    if evaluation.frameworks or evaluation.evidence:
        writer.parts.append(framework_markdown(evaluation, _FRAMEWORKS_LIMIT))


#: What the report has between the findings and the compliance: functions of a writer and an evaluation.
_SECTIONS: tuple[Callable[[_MarkdownWriter, Evaluation], None], ...] = (_add_problems, _add_ledger, _add_frameworks)


def _why(finding: Finding) -> str:
    url = f" <{quote(finding.url, safe=_URL)}>" if finding.url.startswith("https://") else ""
    return f"{prose(finding.why, markdown_code)}{url}".strip()


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
    return finding.severity, policy_cell(finding), _resource(finding)


def policy_cell(finding: Finding) -> str:
    """Return the id and the title of the policy of a finding as Markdown."""
    return f"{markdown_code(finding.policy)}<br>{markdown_text(finding.title)}"


def _resource(finding: Finding) -> str:
    full_id = markdown_code(finding.resource)
    where = f"<br>{markdown_code(place(finding.location))}" if finding.location.file else ""
    address = f"<br>{markdown_code(finding.location.address)}" if finding.location.address else ""
    return (
        f"<details><summary>{markdown_code(shorten_id(finding.resource))}</summary>{full_id}{where}{address}</details>"
    )


def _describe(finding: Finding) -> str:
    reasons = [_denial(finding, denial) for denial in denials(finding)]
    reasons.extend(f"unknown: {_unknown(finding, unknown)}" for unknown in unknowns(finding))
    return "<br>".join(reasons)


def _denial(finding: Finding, denial: Denial) -> str:
    message = _unknown(finding, Unknown(msg=denial.msg, path=denial.path))
    if not has_values(denial):
        return message
    value, because = split_reason(denial)
    found = markdown_code(describe_found(value))
    expected = f", expected {markdown_code(describe_value(denial.expected))}" if denial.expected is not None else ""
    reason = f"<br>because {prose(because, markdown_code)}" if because else ""
    return f"{message}<br>found {found}{expected}{reason}"


def _unknown(finding: Finding, unknown: Unknown) -> str:
    path = (
        f" {markdown_code(field_address(finding, unknown.path) or format_path(unknown.path))}" if unknown.path else ""
    )
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
