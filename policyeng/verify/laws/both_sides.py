"""Law 9: each policy can pass and can fail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from policyeng.bundle import Bundle, Policy
from policyeng.models import Outcome
from policyeng.testing.runner import run_cases
from policyeng.verify.laws.law import Law, Violation, WholeRun

_SIDES = (Outcome.PASS, Outcome.FAIL)


def _one_sided(whole: WholeRun) -> Iterator[Violation]:
    """A violation for each policy that neither the examples nor its cases meet on both sides."""
    bundle = whole.grounds.bundle
    starved = [policy for policy in bundle.policies if not _met(whole.outcomes.get(policy.id, Counter()))]
    by_cases = _by_cases(bundle, starved)
    for policy in starved:
        met = whole.outcomes.get(policy.id, Counter()) + by_cases[policy.id]
        if policy.undecided:
            whole.grounds.remark(LAW.name, f"{policy.id} is not held to it: {policy.undecided}")
        elif policy.input_form != "policy" and not _met(met):
            said = _message(met) if met else "no example has what it judges"
            whole.grounds.remark(LAW.name, f"{policy.id} judges documents, and is not held to it: {said}")
        elif not _met(met):
            yield Violation(_message(met), policy.id, lines=tuple(_lines(whole, policy, met)))


def _met(outcomes: Counter[Outcome]) -> bool:
    return all(outcomes[side] for side in _SIDES)


def _by_cases(bundle: Bundle, starved: Sequence[Policy]) -> dict[str, Counter[Outcome]]:
    """By policy id, how often a case that holds ends in which outcome."""
    found = {policy.id: Counter[Outcome]() for policy in starved}
    if starved:
        for ran in run_cases(bundle.only(starved)):
            if not ran.reason and ran.expected in list(Outcome):
                found[ran.policy][Outcome(ran.expected)] += 1
    return found


def _message(met: Counter[Outcome]) -> str:
    if not met:
        return "nothing is judged by it"
    return "it never fails" if met[Outcome.PASS] else "it never passes" if met[Outcome.FAIL] else "it never decides"


def _lines(whole: WholeRun, policy: Policy, met: Counter[Outcome]) -> Iterator[str]:
    seen = ", ".join(f"{number:,} {outcome}" for outcome, number in sorted(met.items())) or "no finding"
    cases = "its cases" if policy.cases else "no cases, for it has none"
    yield f"{seen} in {whole.examples:,} examples and {cases}"
    missing = " and ".join(f"a {side} case" for side in _SIDES if not met[side])
    yield f"mend the policy, or give it {missing} in a cases.yaml beside it"


LAW = Law(
    9,
    "both-sides",
    "each policy is met passing and failing, by the examples of the run or by its cases",
    "vacuity: I. Beer et al., Efficient Detection of Vacuity in ACTL Formulas (1997)",
    whole=_one_sided,
)
