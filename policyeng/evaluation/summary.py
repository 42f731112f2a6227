"""What the findings of an evaluation come to: exit code, counts, and what a reader must know besides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from policyeng.evaluation.context import EvaluationContext
from policyeng.evaluation.coverage import is_as_asked
from policyeng.evaluation.input_warnings import of_classifications
from policyeng.evaluation.prepared_snapshot import Resource
from policyeng.models import Finding, Findings, Outcome, Problem, Severity, Summary


def homes_of(subjects: Iterable[Resource]) -> dict[tuple[str, str], str]:
    """By type and id as findings report them, the ARM ids that scopes of exemptions are held against."""
    return {(subject.reported_type, subject.reported_id): subject.home for subject in subjects}


def exit_code(
    findings: Iterable[Finding],
    problems: Iterable[Problem],
    fail_on: Severity = Severity.LOW,
    *,
    strict_unknown: bool = False,
) -> int:
    """2 when something went wrong, else 1 when a failure at or above `fail_on` has no exemption, else 0.

    With `strict_unknown` an unknown finding at or above `fail_on` counts as a failure does, and so does a part of the
    inputs that was not read.
    """
    listed, said = list(findings), list(problems)
    if any(finding.outcome is Outcome.ERROR for finding in listed):
        return 2
    if any(problem.level == "error" for problem in said):
        return 2
    if strict_unknown and any(problem.kind == "unread" for problem in said):
        return 1
    return int(any(fails(finding, fail_on, strict_unknown=strict_unknown) for finding in listed))


def fails(finding: Finding, fail_on: Severity, *, strict_unknown: bool = False) -> bool:
    """Whether a finding on its own makes a run fail."""
    failed = finding.outcome is Outcome.FAIL and finding.exemption is None
    undecided = strict_unknown and finding.outcome is Outcome.UNKNOWN
    return (failed or undecided) and finding.severity.rank >= fail_on.rank


def summary_of(findings: Findings) -> Summary:
    """Return counts by outcome and both ways of counting compliance."""
    others = findings.others
    outcomes = Counter(finding.outcome.value for finding in others)
    outcomes[Outcome.PASS] = len(findings) - len(others)
    return _summary(outcomes, exempt=sum(finding.exemption is not None for finding in others))


def added(summaries: Iterable[Summary]) -> Summary:
    """The summary over the findings of several evaluations."""
    counted = list(summaries)
    outcomes = Counter[str]()
    for each in counted:
        outcomes.update({"pass": each.pass_, "fail": each.fail, "unknown": each.unknown, "error": each.error})
    return _summary(outcomes, exempt=sum(each.exempt for each in counted))


def _summary(outcomes: Counter[str], exempt: int) -> Summary:
    passed, unknown = outcomes[Outcome.PASS], outcomes[Outcome.UNKNOWN]
    total = outcomes.total() or 1
    return Summary(
        pass_=passed,
        fail=outcomes[Outcome.FAIL],
        unknown=unknown,
        error=outcomes[Outcome.ERROR],
        exempt=exempt,
        strict_compliance=round(100 * passed / total, 2),
        azure_compliance=round(100 * (passed + exempt + unknown) / total, 2),
    )


def problems_of(prepared: EvaluationContext) -> list[Problem]:
    """What a reader must know of a snapshot, whatever is found in it."""
    snapshot = prepared.snapshot
    words = of_classifications(prepared.unknown_classifications, prepared.known_classifications)
    return [*prepared.estate.problems, *words, *map(_incomplete, snapshot.incomplete)]


def _incomplete(line: str) -> Problem:
    if is_as_asked(line):
        return Problem(level="warning", message=f"the snapshot is bounded: {line}")
    return Problem(level="warning", message=f"the snapshot is incomplete: {line}", kind="unread")
