"""Summarize an evaluation: exit code, counts, problems, and findings by what identifies them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from policyeng.evaluation.context import EvaluationContext
from policyeng.evaluation.input_warnings import of_classifications
from policyeng.models import (
    Evaluation,
    FailureCriteria,
    Finding,
    Findings,
    LedgerEntry,
    Outcome,
    Problem,
    Resource,
    Summary,
    leaves_undecided,
    lowered,
)


def find_scopes(subjects: Iterable[Resource]) -> dict[tuple[str, str], str]:
    """Return the ARM ids to compare with the scopes of exemptions, by the type and id that findings report."""
    return {(subject.reported_type, subject.reported_id): subject.home for subject in subjects}


def exit_code(
    findings: Iterable[Finding],
    problems: Iterable[Problem],
    criteria: FailureCriteria,
    ledger: Iterable[LedgerEntry] = (),
) -> int:
    """Return 2 if there is an error, 1 if a failure at or above `fail_on` has no exemption, and 0 otherwise.

    With `strict_unknown`, an unknown finding at or above `fail_on` counts as a failure. So does a relevant entry of the
    ledger.
    """
    findings, problems = list(findings), list(problems)
    if any(finding.outcome is Outcome.ERROR for finding in findings):
        return 2
    if any(problem.level == "error" for problem in problems):
        return 2
    if leaves_undecided(ledger, criteria):
        return 1
    return int(any(fails(finding, criteria) for finding in findings))


def fails(finding: Finding, criteria: FailureCriteria) -> bool:
    """Check whether a finding alone makes a run fail."""
    undecided = criteria.strict_unknown and finding.outcome is Outcome.UNKNOWN
    return (finding.is_failure or undecided) and finding.severity.rank >= criteria.fail_on.rank


def summary_of(findings: Findings) -> Summary:
    """Return the counts by outcome and the two compliance percentages."""
    others = findings.others
    outcomes = Counter(finding.outcome.value for finding in others)
    outcomes[Outcome.PASS] = len(findings) - len(others)
    return _summary(outcomes, exempt=sum(finding.exemption is not None for finding in others))


def added(summaries: Iterable[Summary]) -> Summary:
    """Return one summary for the findings of several evaluations."""
    summaries = list(summaries)
    outcomes = Counter[str]()
    for each in summaries:
        outcomes.update({"pass": each.pass_, "fail": each.fail, "unknown": each.unknown, "error": each.error})
    return _summary(outcomes, exempt=sum(each.exempt for each in summaries))


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
    """Return the problems of a snapshot, which do not depend on the findings."""
    words = of_classifications(prepared.unknown_classifications, prepared.known_classifications)
    return [*prepared.estate.problems, *words]


_Key = tuple[Outcome, str, str, str, str]


def apply_baseline(evaluation: Evaluation, baseline: Evaluation) -> Evaluation:
    """Return an evaluation with the exit code of its new failures, and warnings that count and list them.

    A failure is known if the baseline contains all of its denials (policy, resource, path and message) without an
    exemption. A failure whose exemption has expired since is therefore new. With `strict_unknown` the same rule applies
    to unknown findings and their reasons.
    """
    known = {key for finding in baseline.findings if finding.exemption is None for key in _keys(finding)}
    failures = [finding for finding in evaluation.others if fails(finding, evaluation)]
    new = [finding for finding in failures if not set(_keys(finding)) <= known]
    old = {(one.policy, one.resource) for one in failures} - {(one.policy, one.resource) for one in new}
    counted = [finding for finding in evaluation.findings if (finding.policy, finding.resource) not in old]
    warnings = [Problem(level="warning", message=_describe_counts(len(old), len(new)), place="baseline")]
    warnings += [Problem(level="warning", message=f"{one.policy} {_describe(one)}", place=one.resource) for one in new]
    return evaluation.model_copy(
        update={
            "exit_code": exit_code(counted, evaluation.problems, evaluation, evaluation.ledger),
            "problems": (*evaluation.problems, *warnings),
        }
    )


def _keys(finding: Finding) -> Iterator[_Key]:
    reasons = {Outcome.FAIL: finding.denials, Outcome.UNKNOWN: finding.unknowns}.get(finding.outcome, ())
    for reason in reasons:
        yield finding.outcome, finding.policy, lowered(finding.resource), reason.path, reason.msg


def _describe(finding: Finding) -> str:
    return "is a new failure" if finding.outcome is Outcome.FAIL else "cannot be decided for a new reason"


def _describe_counts(known: int, new: int) -> str:
    return f"{known} failing findings are in the baseline and do not fail this run; {new} are new"


def by_pair(evaluation: Evaluation) -> Mapping[tuple[str, str, str], Finding]:
    """Return the findings by policy, type and id, which together identify a finding."""
    return {
        (finding.policy, lowered(finding.resource_type), lowered(finding.resource)): finding
        for finding in evaluation.findings
    }
