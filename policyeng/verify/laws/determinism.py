"""Law 1: same arguments, same findings."""

from __future__ import annotations

from policyeng.frozen import replace
from policyeng.verify.laws.law import Law, Trial, Violation, find_first_difference


def _find_violations(trial: Trial) -> Violation | None:
    first, again = trial.evaluation, trial.judged()
    if first.findings != again.findings:
        found = find_first_difference(first, again, lambda finding: finding)
        message = "a second evaluation with the same arguments gives another finding"
        return replace(found, message=message) if found else Violation("the findings are in another order")
    if first != again:
        return Violation("the same findings are counted or summarized differently")
    return None


LAW = Law(
    1,
    "repeatable",
    "the same arguments give the same evaluation",
    "determinism: K. Claessen, J. Hughes, QuickCheck (2000), 3.2; OPA, policy language: no clock, network or chance",
    _find_violations,
)
