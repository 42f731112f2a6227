"""The analysis of a bundle for redundant policies and parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from random import Random

from policyeng.bundle import Bundle, Policy
from policyeng.models import Outcome
from policyeng.verify.generators.documents import judges_documents
from policyeng.verify.generators.estates import EstateGenerator
from policyeng.verify.generators.examples import Example, Examples, examples_of
from policyeng.verify.redundancy.distinguishing import DistinguishingSearch, shrink_distinguishing
from policyeng.verify.redundancy.observing import ObservedOutcomes, cases_of
from policyeng.verify.redundancy.outcomes import outcome_remarks
from policyeng.verify.redundancy.parameters import parameter_remarks
from policyeng.verify.redundancy.report import Kind, RedundancyAnalysis, Remark

#: The number of examples in the search for one that distinguishes a policy from those that seem to imply it; as many
#: again with parameters.
TRIES = 300
#: The number of attempts to shrink an example for the report.
_SHRINKING = 600
#: The share of its failures from which on a policy is reported to fail often together with another one.
_OFTEN = 0.95
_ENOUGH = 20
_REMEDY = "remove it, or let it cover what `{0}` does not; if it adds detail to `{0}`, add `{0}` to its `refines`"


@dataclass(frozen=True)
class _DistinguishingExample:
    """An example that distinguishes a policy from another one, if there is one, and its origin."""

    example: Example | None
    tries: int
    with_parameters: bool = False
    was_searched: bool = True


def implication_remarks(
    observed: ObservedOutcomes, estates: EstateGenerator, seed: int, tries: int = TRIES
) -> Iterator[Remark]:
    """Yield a remark for each policy that fails only, or nearly only, where another one does.

    `tries` is the number of examples in the search for a distinguishing one, twice if it needs parameters.
    """
    random = Random(f"{seed}/apart")  # noqa: S311  # nothing here is secret
    search = DistinguishingSearch(observed.bundle, observed.seen, estates.vocabulary, random)
    judging = [policy for policy in observed.bundle.policies if not judges_documents(policy)]
    found = {policy.id: _find_implying(policy, observed, search, tries) for policy in judging}
    implied = {(policy, other) for policy, others in found.items() for other in others if not others[other].example}
    for policy in judging:
        for other, apart in sorted(found[policy.id].items()):
            yield _remark(policy, other, apart, observed, is_equal=(other, policy.id) in implied)


def _find_implying(
    policy: Policy, observed: ObservedOutcomes, search: DistinguishingSearch, tries: int
) -> dict[str, _DistinguishingExample]:
    """Return the policies that seem to imply a policy, or that often fail together with it."""
    seen = observed.seen[policy.id]
    stated = {entry.id for entry in observed.bundle.policies}.intersection(policy.header.refines)
    together = {other for other in seen.together if other != policy.id} | stated
    unparted = {other for other in together if other not in seen.apart}
    seeming = {other for other in seen.plainly_together if other != policy.id and other not in seen.plainly_apart}
    plain = search.found(policy, sorted(seeming | unparted), tries, parameters=False)
    given = search.found(policy, sorted(unparted - plain.keys()), tries, parameters=True)
    others = {other: _DistinguishingExample(None, 2 * tries) for other in unparted}
    others |= {
        other: _DistinguishingExample(seen.apart[other].example, tries, with_parameters=True)
        for other in seeming - unparted
    }
    others |= {other: _DistinguishingExample(example, tries, with_parameters=True) for other, example in given.items()}
    others |= {other: _DistinguishingExample(example, tries) for other, example in plain.items()}
    for other in together - others.keys():
        is_often = seen.failures >= _ENOUGH and seen.together[other] >= _OFTEN * seen.failures
        if is_often or other in stated:
            others[other] = _DistinguishingExample(
                (seen.plainly_apart.get(other) or seen.apart[other]).example, tries, was_searched=False
            )
    return others


def _remark(
    policy: Policy, other: str, apart: _DistinguishingExample, observed: ObservedOutcomes, *, is_equal: bool
) -> Remark:
    seen = observed.seen[policy.id]
    evidence = f"{seen.together[other]:,} of {seen.failures:,} failures"
    if apart.example is None:
        evidence += f", then {apart.tries:,} attempts to distinguish them"
        return _remark_implied(policy, other, observed, evidence, is_equal=is_equal)
    breaks = other in policy.header.refines
    small = shrink_distinguishing(observed.bundle, policy.id, other, apart.example, most=_SHRINKING)
    example, resource = small or (apart.example, "")
    message, remedy = _describe_distinction(other, apart, breaks=breaks)
    return Remark(
        policy.id,
        "told apart",
        message,
        evidence,
        remedy,
        is_fault=breaks,
        is_proved=True,
        other=other,
        example=example,
        resource=resource,
    )


def _describe_distinction(other: str, apart: _DistinguishingExample, *, breaks: bool) -> tuple[str, str]:
    if breaks:
        return f"it refines `{other}`, but fails without it", f"remove `{other}` from its `refines`"
    remedy = "nothing, if the policy is meant for this example; add it as a case"
    if not apart.was_searched:
        return f"it fails together with `{other}` except for rare examples", remedy
    where = " only with other parameters" if apart.with_parameters else ""
    return f"it seems implied by `{other}`, but an example distinguishes them{where}", remedy


def _remark_implied(policy: Policy, other: str, observed: ObservedOutcomes, evidence: str, *, is_equal: bool) -> Remark:
    implying = next(entry.header for entry in observed.bundle.policies if entry.id == other)
    message = (
        f"it fails where `{other}` fails, and nowhere else" if is_equal else f"it fails only where `{other}` fails"
    )
    if implying.severity.rank < policy.header.severity.rank:
        message += f", which is less severe (`{implying.severity}`, and it is `{policy.header.severity}`)"
    stated = other in policy.header.refines
    is_fault = not stated and implying.severity.rank >= policy.header.severity.rank
    remedy = "nothing: its `refines` says so" if stated else _REMEDY.format(other)
    kind: Kind = "equal" if is_equal else "implied"
    return Remark(policy.id, kind, message, evidence, remedy, is_fault=is_fault, other=other)


#: The number of additional examples for a policy that does not both pass and fail on the others.
_MORE = 100


def analysed(
    bundle: Bundle,
    examples: int,
    seed: int,
    *,
    tries: int = TRIES,
    progress: Callable[[int], None] = lambda _: None,
) -> RedundancyAnalysis:
    """Evaluate every case of a bundle and random examples, and report redundant policies and parameters.

    The same bundle, number and seed give the same analysis.

    Args:
        bundle: the active policies.
        examples: the number of random examples.
        seed: the seed of the examples.
        tries: the number of examples in the search for one that distinguishes a policy from another.
        progress: called with the number of evaluated cases and examples.

    Raises:
        BundleError: a `cases.yaml` is not well formed.
        EngineError: the bundle does not compile.
    """
    estates = EstateGenerator(bundle)
    observed = ObservedOutcomes(bundle)
    for policy in bundle.policies:
        alone = bundle.only([policy])
        for case, example in cases_of(policy.id, estates):
            # The other policies matter on a case where its policy fails, and a failing case has a path.
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
            _draw_more_examples(observed, policy, source, seed)
    remarks = [
        *outcome_remarks(observed, estates),
        *parameter_remarks(observed, estates, seed),
        *implication_remarks(observed, estates, seed, tries),
    ]
    outcomes = {policy: seen.outcomes for policy, seen in observed.seen.items()}
    return RedundancyAnalysis(seed, observed.examples, observed.cases, outcomes, tuple(sorted(remarks, key=_order)))


def _draw_more_examples(observed: ObservedOutcomes, policy: Policy, source: Examples, seed: int) -> None:
    """Draw more examples for a policy that does not both pass and fail yet, until it does."""
    seen = observed.seen[policy.id]
    while observed.more[policy.id] < _MORE and not {Outcome.FAIL, Outcome.PASS} <= seen.decided:
        random = Random(f"{seed}/{policy.id}/{observed.more[policy.id]}")  # noqa: S311  # nothing here is secret
        observed.judge(source.drawn(random, policy))
        observed.more[policy.id] += 1


def _order(remark: Remark) -> tuple[bool, str, str, str]:
    return (not remark.is_fault, remark.policy, remark.kind, remark.other)
