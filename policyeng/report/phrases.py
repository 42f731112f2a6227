"""Phrases shared by several reports: reasons, exemptions, counts and the verdict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Literal

from policyeng.models import (
    BundleRef,
    Denial,
    EngineRef,
    Evaluation,
    ExemptionMark,
    Finding,
    Outcome,
    Severity,
    Unknown,
)
from policyeng.report.escaping import compact, visible

Level = Literal["error", "warning", "note"]

_NO_REASON = "no reason given"


def level(severity: Severity) -> Level:
    """Map a severity to the three levels of code hosts: high and above, medium and low, info."""
    if severity.rank >= Severity.HIGH.rank:
        return "error"
    return "warning" if severity.rank >= Severity.LOW.rank else "note"


def in_utc(moment: datetime) -> datetime:
    """Convert a time to UTC; one at the limit of the calendar that UTC cannot express stays unchanged."""
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return moment


def rfc3339(moment: datetime) -> str:
    """Return a time as RFC 3339 text in UTC with `Z`."""
    return in_utc(moment).isoformat().replace("+00:00", "Z")


def to_the_second(moment: datetime) -> str:
    """Return a time as RFC 3339 text in UTC without fractions of a second."""
    return rfc3339(moment.replace(microsecond=0))


def count(number: int, noun: str) -> str:
    """Return a number with its noun: `1 failure`, `2 failures`, `2 policies`."""
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun[:-1]}ies" if noun.endswith(("cy", "ty")) else f"{number} {noun}s"


def format_name(reference: BundleRef | EngineRef) -> str:
    """Return the name of a bundle with its revision, or of an engine with its version."""
    number = reference.revision if isinstance(reference, BundleRef) else reference.version
    return f"{reference.name} {number}".rstrip()


def shorten_id(resource: str) -> str:
    """Return the names in an ARM id after its last provider (`ws/cluster`), or any other id unchanged."""
    _, provider, rest = resource.rpartition("/providers/")
    names = rest.split("/")[2::2]
    return visible("/".join(names) if provider and all(names) and names else resource)


def denials(finding: Finding) -> Sequence[Denial]:
    """Return the reasons of a failed finding; at least one."""
    return finding.denials or (Denial(msg=_NO_REASON),)


def unknowns(finding: Finding) -> Sequence[Unknown]:
    """Return the reasons of an unknown or error finding, or the undecided parts of a failed one."""
    if finding.unknowns or finding.outcome in (Outcome.PASS, Outcome.FAIL):
        return finding.unknowns
    return (Unknown(msg=_NO_REASON),)


def has_values(denial: Denial) -> bool:
    """Check whether a denial has an actual or an expected value."""
    return denial.actual is not None or denial.expected is not None


def split_reason(denial: Denial) -> tuple[object, str]:
    """Return the actual value of a denial without `because`, and `because`: why the policy applies to the resource.

    Policies for regulated work or for a stage set `because` in `actual`; otherwise it is empty.
    """
    actual = denial.actual
    because = actual.get("because") if isinstance(actual, dict) else None
    if not isinstance(because, str) or not isinstance(actual, dict):
        return actual, ""
    return {key: value for key, value in actual.items() if key != "because"}, because


def denial_sentence(denial: Denial) -> str:
    """Return a denial on one line: ``message: /path is actual, expected value, because reason``."""
    if not has_values(denial):
        return unknown_sentence(Unknown(msg=denial.msg, path=denial.path))
    subject = visible(f"{denial.path} is" if denial.path else "is")
    actual, because = split_reason(denial)
    reason = f", because {visible(because)}" if because else ""
    return f"{visible(denial.msg)}: {subject} {compact(actual)}, expected {compact(denial.expected)}{reason}"


def format_path(path: str) -> str:
    """Return a path for display; for a complete scope, its id."""
    return visible(path.removesuffix(":"))


def unknown_sentence(unknown: Unknown) -> str:
    """Return the reason of an unknown on one line: ``message: /path``."""
    return visible(unknown.msg) + (f": {format_path(unknown.path)}" if unknown.path else "")


def expiry(mark: ExemptionMark) -> str:
    """Return the expiry date of an exemption in UTC (`until DATE`), or `without expiry`."""
    return f"until {in_utc(mark.expires_at).date().isoformat()}" if mark.expires_at else "without expiry"


def exemption_sentence(mark: ExemptionMark) -> str:
    """Return ``exempt until DATE by OWNER: reason``, or for an `exception` rule ``exempt by rule RULE: reason``."""
    if mark.category == "exception":
        return visible(f"exempt by rule {mark.id}: {mark.reason}")
    return visible(f"exempt {expiry(mark)} by {mark.owner}: {mark.reason}")


def by_resource(findings: Iterable[Finding]) -> list[list[Finding]]:
    """Group findings by resource, in the order of the evaluation."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        at = finding.location
        groups.setdefault((finding.resource, finding.resource_type, at.file, at.line, at.column), []).append(finding)
    return list(groups.values())


def by_policy(findings: Iterable[Finding]) -> list[list[Finding]]:
    """Group findings by policy, the most severe first, then in the order of the evaluation."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        key = (finding.policy, finding.title, finding.severity, finding.remediation, finding.source)
        groups.setdefault(key, []).append(finding)
    return sorted(groups.values(), key=lambda members: -members[0].severity.rank)


def failed(evaluation: Evaluation) -> list[Finding]:
    """Return the failures without an exemption."""
    return [f for f in evaluation.others if f.outcome is Outcome.FAIL and f.exemption is None]


def exempt(evaluation: Evaluation) -> list[Finding]:
    """Return the failures with an exemption."""
    return [f for f in evaluation.others if f.outcome is Outcome.FAIL and f.exemption is not None]


def select_outcome(evaluation: Evaluation, outcome: Outcome) -> list[Finding]:
    """Return the findings with an outcome."""
    findings = evaluation.findings if outcome is Outcome.PASS else evaluation.others
    return [finding for finding in findings if finding.outcome is outcome]


def describe_counts(evaluation: Evaluation) -> str:
    """Return the counts of findings that do not pass (`2 failures, 1 exempt, 1 unknown, 1 error, 1 problem`)."""
    # The summary counts all findings; a report on many parts may list only some of them.
    summary, problems = evaluation.summary, len(evaluation.problems)
    failures, exempted, unknown, error = summary.fail - summary.exempt, summary.exempt, summary.unknown, summary.error
    parts = (
        count(failures, "failure") if failures else "",
        f"{exempted} exempt" if exempted else "",
        f"{unknown} unknown" if unknown else "",
        count(error, "error") if error else "",
        count(problems, "problem") if problems else "",
    )
    words = ", ".join(filter(None, parts))
    if words or evaluation.findings:
        return words or f"all {count(summary.pass_, 'finding')} pass"
    return "no resources evaluated"


def describe_exit_code(evaluation: Evaluation) -> str:
    """Return the exit code with its reason in words."""
    summary = evaluation.summary
    failures = summary.fail - summary.exempt
    if evaluation.exit_code == 0:
        words = _compliant(failures, summary.exempt)
        words += f"; {count(summary.unknown, 'unknown finding')}" if summary.unknown else ""
    elif evaluation.exit_code == 1:
        unread = sum(problem.kind == "unread" for problem in evaluation.problems)
        words = _failing(failures, evaluation, unread)
    else:
        words = f"could not decide: {', '.join(_undecided(evaluation))}"
        words += f"; also {count(failures, 'failure')}" if failures else ""
    return f"exit {evaluation.exit_code}: {words}"


def _failing(failures: int, evaluation: Evaluation, unread: int) -> str:
    """Return the reason for exit 1; an evaluation does not record whether unknown findings counted."""
    unknown = evaluation.summary.unknown
    undecided = count(unknown, "unknown finding")
    if not failures:
        parts = f"{count(unread, 'unread part')} of the inputs"
        both = [words for words, number in ((undecided, unknown), (parts, unread)) if number]
        return f"{' and '.join(both)}, not allowed with --strict-unknown"
    if _find_worst(select_outcome(evaluation, Outcome.UNKNOWN)) > _find_worst(failed(evaluation)):
        return f"{count(failures, 'failure')} and {undecided}, at least one at or above --fail-on"
    return f"{count(failures, 'failure')}, at least one at or above --fail-on"


def _find_worst(findings: Iterable[Finding]) -> int:
    return max((finding.severity.rank for finding in findings), default=-1)


def _compliant(failures: int, exempted: int) -> str:
    if failures:
        return f"{count(failures, 'failure')}, below --fail-on or in the baseline"
    return f"no failures except {count(exempted, 'exempt failure')}" if exempted else "no failures"


def _undecided(evaluation: Evaluation) -> list[str]:
    errors = len(select_outcome(evaluation, Outcome.ERROR))
    problems = sum(problem.level == "error" for problem in evaluation.problems)
    words = [count(number, noun) for number, noun in ((errors, "policy error"), (problems, "problem")) if number]
    if not evaluation.findings:
        words.append("no resources evaluated")
    return words or ["the run did not complete"]
