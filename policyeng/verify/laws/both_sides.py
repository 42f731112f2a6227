"""Law 9: each policy can pass and can fail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from policyeng.bundle import Bundle, Policy
from policyeng.models import Outcome
from policyeng.testing.runner import run_cases
from policyeng.verify.laws.law import Law, Violation, WholeRun

_SIDES = (Outcome.PASS, Outcome.FAIL)


def _find_one_sided(whole: WholeRun) -> Iterator[Violation]:
    """Yield a violation for each policy that examples and cases together do not make both pass and fail."""
    bundle = whole.grounds.bundle
    unmet = [policy for policy in bundle.policies if not _has_both_sides(whole.outcomes.get(policy.id, Counter()))]
    by_cases = _count_outcomes_of_cases(bundle, unmet)
    for policy in unmet:
        met = whole.outcomes.get(policy.id, Counter()) + by_cases[policy.id]
        if policy.undecided:
            whole.grounds.remark(LAW.name, f"{policy.id} is excluded: {policy.undecided}")
        elif policy.input_form != "policy" and not _has_both_sides(met):
            message = _message(met) if met else "no example has such documents"
            whole.grounds.remark(LAW.name, f"{policy.id} evaluates documents and is excluded: {message}")
        elif not _has_both_sides(met):
            yield Violation(_message(met), policy.id, lines=tuple(_lines(whole, policy, met)))


def _has_both_sides(outcomes: Counter[Outcome]) -> bool:
    return all(outcomes[side] for side in _SIDES)


def _count_outcomes_of_cases(bundle: Bundle, unmet: Sequence[Policy]) -> dict[str, Counter[Outcome]]:
    """Count the outcomes of the cases that pass, by policy id."""
    found = {policy.id: Counter[Outcome]() for policy in unmet}
    if unmet:
        for case_run in run_cases(bundle.only(unmet)):
            if not case_run.reason and case_run.expected in list(Outcome):
                found[case_run.policy][Outcome(case_run.expected)] += 1
    return found


def _message(met: Counter[Outcome]) -> str:
    if not met:
        return "the policy is never evaluated"
    return (
        "the policy never fails"
        if met[Outcome.PASS]
        else "the policy never passes"
        if met[Outcome.FAIL]
        else "the policy never decides"
    )


def _lines(whole: WholeRun, policy: Policy, met: Counter[Outcome]) -> Iterator[str]:
    counts = ", ".join(f"{number:,} {outcome}" for outcome, number in sorted(met.items())) or "no finding"
    cases = "its cases" if policy.cases else "no cases"
    yield f"{counts} in {whole.examples:,} examples and {cases}"
    missing = " and ".join(f"a {side} case" for side in _SIDES if not met[side])
    yield f"fix the policy, or add {missing} to the `cases.yaml` next to it"


LAW = Law(
    9,
    "both-sides",
    "each policy both passes and fails, on the examples of the run or on its cases",
    "vacuity: I. Beer et al., Efficient Detection of Vacuity in ACTL Formulas (1997)",
    whole=_find_one_sided,
)
