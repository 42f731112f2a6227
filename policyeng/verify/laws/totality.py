"""Law 4: for any input, every pair has one finding, and none is an error."""

from __future__ import annotations

from collections import Counter

from policyeng.evaluation import exit_code
from policyeng.models import Evaluation, Outcome, lowered
from policyeng.verify.laws.law import Law, Trial, Violation


def _find_violations(trial: Trial) -> Violation | None:
    try:
        evaluation = trial.evaluation
    except Exception as error:  # the law forbids every exception
        return Violation("the evaluation raises an exception", lines=(f"{type(error).__name__}: {error}",))
    for finding in evaluation.findings:
        if finding.outcome is Outcome.ERROR:
            lines = tuple(unknown.msg for unknown in finding.unknowns)
            return Violation("the policy ends in an error", finding.policy, finding.resource, lines)
    return _check_count(evaluation)


def _check_count(evaluation: Evaluation) -> Violation | None:
    findings, summary = evaluation.findings, evaluation.summary
    pairs = Counter((finding.policy, lowered(finding.resource_type), lowered(finding.resource)) for finding in findings)
    for (policy, _, resource), number in pairs.items():
        if number > 1:
            return Violation("a policy has several findings about one resource", policy, resource)
    counted = Counter(finding.outcome for finding in findings)
    reported = (summary.pass_, summary.fail, summary.unknown, summary.error)
    if reported != tuple(counted[outcome] for outcome in (Outcome.PASS, Outcome.FAIL, Outcome.UNKNOWN, Outcome.ERROR)):
        return Violation("the counts do not add up", lines=(f"reported {reported}, counted {dict(counted)}",))
    if evaluation.exit_code != exit_code(findings, evaluation.problems):
        return Violation("the exit code does not match the findings")
    return None


LAW = Law(
    4,
    "total",
    "no input makes an evaluation or a policy fail: each policy has one finding about each resource that it selects",
    "totality, as of fuzzing: B. P. Miller et al., An Empirical Study of the Reliability of UNIX Utilities (1990)",
    _find_violations,
)
