"""The analysis of a bundle for policies and parameters that say nothing."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from random import Random

from policyeng.bundle import Bundle, Policy
from policyeng.models import Outcome
from policyeng.verify.drawing.estates import Estates
from policyeng.verify.drawing.examples import Examples, examples_of
from policyeng.verify.drawing.written import judges_documents
from policyeng.verify.redundancy.implications import TRIES, implication_remarks
from policyeng.verify.redundancy.observing import Observed, cases_of
from policyeng.verify.redundancy.outcomes import outcome_remarks
from policyeng.verify.redundancy.parameters import parameter_remarks
from policyeng.verify.redundancy.remarks import Analysis, Remark

#: So many examples more are drawn for a policy that the others do not meet from both sides.
_MORE = 100


def analysed(
    bundle: Bundle,
    examples: int,
    seed: int,
    *,
    tries: int = TRIES,
    progress: Callable[[int], None] = lambda _: None,
) -> Analysis:
    """Judge every case of a bundle and so many random examples, and say which policies and parameters say nothing.

    The same bundle, number and seed give the same analysis.

    Args:
        bundle: the policies in force.
        examples: how many are drawn.
        seed: what they are drawn from.
        tries: how many examples are judged in search of one that tells a policy from those that seem to imply it.
        progress: hears how many cases and examples were judged.

    Raises:
        BundleError: a `cases.yaml` is not well formed.
        EngineError: the bundle does not compile.
    """
    estates = Estates(bundle)
    observed = Observed(bundle)
    for policy in bundle.policies:
        alone = bundle.only([policy])
        for case, example in cases_of(policy.id, estates):
            # What others say of a case matters where its policy fails, and a case that fails names a path.
            observed.judge(example, bundle if case.path is not None else alone)
            observed.cases += 1
            progress(observed.cases)
    for example in islice(examples_of(bundle, seed), examples):
        observed.judge(example)
        observed.examples += 1
        progress(observed.cases + observed.examples)
    source = Examples(bundle)
    for policy in bundle.policies:
        if not judges_documents(policy):
            _look_closer(observed, policy, source, seed)
    remarks = [
        *outcome_remarks(observed, estates),
        *parameter_remarks(observed, estates, seed),
        *implication_remarks(observed, estates, seed, tries),
    ]
    outcomes = {policy: seen.outcomes for policy, seen in observed.seen.items()}
    return Analysis(seed, observed.examples, observed.cases, outcomes, tuple(sorted(remarks, key=_order)))


def _look_closer(observed: Observed, policy: Policy, source: Examples, seed: int) -> None:
    """Draw more examples for a policy that was not met both failing and passing, until it is."""
    seen = observed.seen[policy.id]
    while observed.more[policy.id] < _MORE and not {Outcome.FAIL, Outcome.PASS} <= seen.decided:
        random = Random(f"{seed}/{policy.id}/{observed.more[policy.id]}")  # noqa: S311  # nothing here is secret
        observed.judge(source.drawn(random, policy))
        observed.more[policy.id] += 1


def _order(remark: Remark) -> tuple[bool, str, str, str]:
    return (not remark.is_fault, remark.policy, remark.kind, remark.other)
