"""Laws about outcomes: total, repeatable, independent of order, both sides, satisfiable, equal in all engines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from random import Random
from typing import TypeVar

import orjson

from policyeng.bundle import Bundle, Policy
from policyeng.bundle.cases import DEFAULT_AS_OF, STATED
from policyeng.bundle.moments import describe_spans
from policyeng.engines import opa
from policyeng.errors import EngineError
from policyeng.evaluation import exit_code
from policyeng.facts.catalogue import built_in_root
from policyeng.models import Evaluation, Outcome, Snapshot, lowered
from policyeng.testing.runner import run_cases
from policyeng.verify.differential import Contestant, EngineDifference, comparisons, contestants, differs, encode_result
from policyeng.verify.generators.json_mutations import Json
from policyeng.verify.laws.law import Law, LawContext, Trial, Violation, WholeRun, find_first_difference
from policyeng.verify.satisfiability.classes import classes_of, described
from policyeng.verify.satisfiability.result import SatisfiabilityResult, answer


def _find_missing_findings(trial: Trial) -> Violation | None:
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
    if evaluation.exit_code != exit_code(findings, evaluation.problems, evaluation):
        return Violation("the exit code does not match the findings")
    return None


TOTALITY = Law(
    4,
    "total",
    "no input makes an evaluation or a policy fail: each policy has one finding about each resource that it selects",
    "totality, as of fuzzing: B. P. Miller et al., An Empirical Study of the Reliability of UNIX Utilities (1990)",
    _find_missing_findings,
)


def _find_differences_between_runs(trial: Trial) -> Violation | None:
    first, again = trial.evaluation, trial.evaluate()
    if first.findings != again.findings:
        found = find_first_difference(first, again, lambda finding: finding)
        message = "a second evaluation with the same arguments gives another finding"
        return replace(found, message=message) if found else Violation("the findings are in another order")
    if first != again:
        return Violation("the same findings are counted or summarized differently")
    return None


DETERMINISM = Law(
    1,
    "repeatable",
    "the same arguments give the same evaluation",
    "determinism: K. Claessen, J. Hughes, QuickCheck (2000), 3.2; OPA, policy language: no clock, network or chance",
    _find_differences_between_runs,
)


_Entry = TypeVar("_Entry")

_STATED = (*STATED, "incomplete", "documents")


def _find_effects_of_order(trial: Trial) -> Violation | None:
    random = trial.random("order")
    bundle = random.choice(_other_orders(trial.grounds))
    first, again = trial.evaluation, trial.evaluate(_shuffle_snapshot(trial.snapshot, random), bundle)
    if first.findings != again.findings:
        found = find_first_difference(first, again, lambda finding: finding)
        message = "the finding depends on the order of resources, of their members, of statements or of policies"
        return replace(found, message=message) if found else Violation("the findings are in another order")
    if first.snapshot.digest != again.snapshot.digest and not trial.snapshot.documents:  # documents are ordered
        return Violation("the digest of the snapshot depends on the order of its entries")
    if first.exit_code != again.exit_code or first.summary != again.summary:
        return Violation("the exit code or the counts depend on the order of the resources")
    return None


def _other_orders(grounds: LawContext) -> Sequence[Bundle]:
    """Return the bundle with its policies in other orders, but few, because each is compiled."""

    def reorder() -> list[Bundle]:
        bundle = grounds.bundle
        titled = sorted(bundle.policies, key=lambda policy: (policy.header.title, policy.id))
        return [bundle.only(bundle.policies[::-1]), bundle.only(titled)]

    orders: Sequence[Bundle] = grounds.once("orders of the policies", reorder)
    return orders


def _shuffle_snapshot(snapshot: Snapshot, random: Random) -> Snapshot:
    shuffled = {name: _shuffle(getattr(snapshot, name), random) for name in _STATED}
    resources = tuple(_reverse_members(resource) for resource in _shuffle(snapshot.resources, random))
    return snapshot.model_copy(update={**shuffled, "resources": resources})


def _shuffle(entries: Sequence[_Entry], random: Random) -> tuple[_Entry, ...]:
    return tuple(random.sample(entries, len(entries)))


def _reverse_members(value: Json) -> Json:
    """Return a value with the members of its objects in reverse order."""
    if isinstance(value, dict):
        return {key: _reverse_members(member) for key, member in reversed(value.items())}
    return [_reverse_members(entry) for entry in value] if isinstance(value, list) else value


ORDER_INDEPENDENCE = Law(
    2,
    "order",
    "the order of resources, of their members, of statements and of policies changes no finding and no digest",
    "permutative metamorphic relations: C. Murphy et al., Properties of Machine Learning Applications for Use in "
    "Metamorphic Testing (2008)",
    _find_effects_of_order,
)


_SIDES = (Outcome.PASS, Outcome.FAIL)


def _find_one_sided(whole: WholeRun) -> Iterator[Violation]:
    """Yield a violation for each policy that examples and cases together do not make both pass and fail."""
    bundle = whole.grounds.bundle
    unmet = [policy for policy in bundle.policies if not _has_both_sides(whole.outcomes.get(policy.id, Counter()))]
    by_cases = _count_outcomes_of_cases(bundle, unmet)
    for policy in unmet:
        met = whole.outcomes.get(policy.id, Counter()) + by_cases[policy.id]
        if policy.undecided:
            whole.grounds.remark(BOTH_SIDES.name, f"{policy.id} is excluded: {policy.undecided}")
        elif policy.input_form != "policy" and not _has_both_sides(met):
            message = _message(met) if met else "no example has such documents"
            whole.grounds.remark(BOTH_SIDES.name, f"{policy.id} evaluates documents and is excluded: {message}")
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


BOTH_SIDES = Law(
    9,
    "both-sides",
    "each policy both passes and fails, on the examples of the run or on its cases",
    "vacuity: I. Beer et al., Efficient Detection of Vacuity in ACTL Formulas (1997)",
    whole=_find_one_sided,
)


def unsatisfiable(bundle: Bundle, as_of: datetime) -> list[Violation]:
    """Return a violation for each class of workloads that is impossible at a moment, or unexpectedly possible.

    A class that no policy of the bundle evaluates violates no law. The expected answer of a class is about all the
    built-in policies: with other policies, or a part of them, either answer is accepted.

    Args:
        bundle: the policies to test.
        as_of: the clock for classes without their own.

    Raises:
        BundleError: a class is not well formed.
    """
    answers = (
        answer(subject, bundle, subject.as_of or as_of, timeline=subject.expected is not None)
        for subject in classes_of(bundle)
    )
    may_be_either = not is_of_documents(bundle)
    return [
        _violation(found)
        for found in answers
        if not found.is_as_expected and not (may_be_either and found.subject.expected)
    ]


def is_of_documents(bundle: Bundle) -> bool:
    """Check whether all built-in policies are active."""
    return not bundle.idle and built_in_root().resolve() in {root.resolve() for root in bundle.roots}


def _violation(found: SatisfiabilityResult) -> Violation:
    lines, expected = [found.subject.title], found.subject.expected
    if expected:
        lines += [f"expected: impossible, {expected.impossible}", f"found:    {describe_spans(found.spans)}"]
    for conflict in found.conflicts:
        lines.append(f"conflict: {', '.join(conflict.policies)}")
        lines += [
            f"  without {rest.policy}: {described(rest.assignment)}; {rest.reason}" for rest in conflict.remainders
        ]
    alone = {policy for conflict in found.conflicts for policy in conflict.policies}
    message = "is not impossible as expected" if expected else "cannot pass every policy"
    policy = alone.pop() if len(alone) == 1 else ""
    return Violation(f"the class `{found.subject.id}` {message}", policy, found.subject.id, tuple(lines))


def _of_the_run(whole: WholeRun) -> Iterable[Violation]:
    if not is_of_documents(whole.grounds.bundle):
        remark = "the expected answers of classes are not checked, because they are about all built-in policies"
        whole.grounds.remark("satisfiable", remark)
    return unsatisfiable(whole.grounds.bundle, DEFAULT_AS_OF)


SATISFIABILITY = Law(
    10,
    "satisfiable",
    "every class of workloads has an estate that passes every policy, or states the date from which it has none",
    "minimum hitting sets of failures: R. Reiter, A Theory of Diagnosis from First Principles (1987)",
    whole=_of_the_run,
)


_NAME = "engines"
#: OPA is queried for one in this many examples, because a query costs as much as ten other evaluations.
_OPA_ON_ONE_OF = 5


def _find_differences_between_engines(trial: Trial) -> Violation | None:
    entered: Sequence[Contestant] = trial.grounds.once(_NAME, lambda: _find_engines(trial.grounds))
    with_opa = trial.random(_NAME).randrange(_OPA_ON_ONE_OF) == 0
    used = [entry for entry in entered if with_opa or entry.name != "opa"]
    compared, by_opa = 0, 0
    for comparison in comparisons(trial.bundle, trial.example, used, trial.snapshot):
        if differs(comparison):
            return _difference(comparison)
        compared += len(comparison.judgements) > 1
        by_opa += "opa" in dict(comparison.judgements)
    trial.grounds.remark(_NAME, "pairs that two or more engines agree on", compared)
    trial.grounds.remark(_NAME, "of these, also evaluated by opa", by_opa)
    return None


def _difference(comparison: EngineDifference) -> Violation:
    lines = [
        f"{name:12} {orjson.dumps(encode_result(judgement)).decode()}" for name, judgement in comparison.judgements
    ]
    return Violation("the engines disagree", comparison.policy, comparison.subject, tuple(lines))


def _find_engines(grounds: LawContext) -> list[Contestant]:
    """Return the available engines, and remark which engine is missing and which policies only one engine evaluates."""
    without = []
    try:
        opa.version()
    except EngineError as error:
        without = ["opa"]
        grounds.remark(_NAME, f"`opa` is missing and took no part: {error}")
    entered = contestants(grounds.bundle, without=without)
    names = ", ".join(f"{entry.name} {entry.version}" for entry in entered if entry.covers)
    grounds.remark(_NAME, f"evaluated by {names or 'no engine'}")
    if alone := _find_uncompared(grounds.bundle, entered):
        grounds.remark(_NAME, f"not compared, because only one engine evaluates them: {', '.join(alone)}")
    return entered


def _find_uncompared(bundle: Bundle, entered: Sequence[Contestant]) -> list[str]:
    return [policy.id for policy in bundle.policies if sum(policy.id in entry.covers for entry in entered) < 2]


ENGINES = Law(
    8,
    _NAME,
    "the Rego and Python forms of a policy agree, and all engines agree",
    "W. McKeeman, Differential Testing for Software, Digital Technical Journal 10 (1998)",
    _find_differences_between_engines,
    every=2,
)
