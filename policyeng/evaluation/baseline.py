"""Compare with an earlier evaluation: only failures that it did not have make a run fail."""

from __future__ import annotations

from collections.abc import Iterator

from policyeng.evaluation import exit_code, fails
from policyeng.models import Evaluation, Finding, Outcome, Problem, Severity, lowered

_Key = tuple[Outcome, str, str, str, str]


def against_baseline(
    evaluation: Evaluation, baseline: Evaluation, fail_on: Severity = Severity.LOW, *, strict_unknown: bool = False
) -> Evaluation:
    """The same findings with the exit code that only new failures decide, and a note on how many are known.

    A failure is known when the baseline has every one of its denials (policy, resource, path and message) without an
    exemption: an exemption that has lapsed since makes its failure new. With `strict_unknown` the same holds of what
    cannot be decided, and of its reasons.
    """
    known = {key for finding in baseline.findings if finding.exemption is None for key in _keys(finding)}
    failing = [finding for finding in evaluation.others if fails(finding, fail_on, strict_unknown=strict_unknown)]
    fresh = [finding for finding in failing if not set(_keys(finding)) <= known]
    old = {(finding.policy, finding.resource) for finding in failing} - {(new.policy, new.resource) for new in fresh}
    judged = [finding for finding in evaluation.findings if (finding.policy, finding.resource) not in old]
    notes = [Problem(level="warning", message=_counted(len(old), len(fresh)), place="baseline")]
    notes += [Problem(level="warning", message=f"{new.policy} {_new(new)}", place=new.resource) for new in fresh]
    return evaluation.model_copy(
        update={
            "exit_code": exit_code(judged, evaluation.problems, fail_on, strict_unknown=strict_unknown),
            "problems": (*evaluation.problems, *notes),
        }
    )


def _keys(finding: Finding) -> Iterator[_Key]:
    reasons = {Outcome.FAIL: finding.denials, Outcome.UNKNOWN: finding.unknowns}.get(finding.outcome, ())
    for reason in reasons:
        yield finding.outcome, finding.policy, lowered(finding.resource), reason.path, reason.msg


def _new(finding: Finding) -> str:
    return "is a new failure" if finding.outcome is Outcome.FAIL else "cannot be decided for a new reason"


def _counted(known: int, fresh: int) -> str:
    return f"{known} failing findings stand in the baseline and do not fail this run; {fresh} are new"
