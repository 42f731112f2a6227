"""Compare an evaluation with an earlier one, so that only new failures fail the run."""

from __future__ import annotations

from collections.abc import Iterator

from policyeng.evaluation.summary import exit_code, fails
from policyeng.models import Evaluation, Finding, Outcome, Problem, Severity, lowered

_Key = tuple[Outcome, str, str, str, str]


def apply_baseline(
    evaluation: Evaluation, baseline: Evaluation, fail_on: Severity = Severity.LOW, *, strict_unknown: bool = False
) -> Evaluation:
    """Return an evaluation with the exit code of its new failures, and warnings that count and list them.

    A failure is known if the baseline contains all of its denials (policy, resource, path and message) without an
    exemption. A failure whose exemption has expired since is therefore new. With `strict_unknown` the same rule applies
    to unknown findings and their reasons.
    """
    known = {key for finding in baseline.findings if finding.exemption is None for key in _keys(finding)}
    failures = [finding for finding in evaluation.others if fails(finding, fail_on, strict_unknown=strict_unknown)]
    new = [finding for finding in failures if not set(_keys(finding)) <= known]
    old = {(one.policy, one.resource) for one in failures} - {(one.policy, one.resource) for one in new}
    counted = [finding for finding in evaluation.findings if (finding.policy, finding.resource) not in old]
    warnings = [Problem(level="warning", message=_describe_counts(len(old), len(new)), place="baseline")]
    warnings += [Problem(level="warning", message=f"{one.policy} {_describe(one)}", place=one.resource) for one in new]
    return evaluation.model_copy(
        update={
            "exit_code": exit_code(counted, evaluation.problems, fail_on, strict_unknown=strict_unknown),
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
