"""Law 10: each class of workloads can pass all policies at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path

from policyeng.bundle import Bundle
from policyeng.bundle.cases import DEFAULT_AS_OF
from policyeng.bundle.timeline import describe_spans
from policyeng.facts.catalogue import built_in_root
from policyeng.models import JsonObject
from policyeng.verify.laws.law import Law, Violation, WholeRun
from policyeng.verify.satisfiability.classes import classes_of
from policyeng.verify.satisfiability.estates import described
from policyeng.verify.satisfiability.result import SatisfiabilityResult, answer


def unsatisfiable(
    bundle: Bundle, as_of: datetime, parameters: Mapping[str, JsonObject] | None = None, paths: Iterable[Path] = ()
) -> list[Violation]:
    """Return a violation for each class of workloads that is impossible at a moment, or unexpectedly possible.

    A class that no policy of the bundle evaluates violates no law. The expected answer of a class is about all the
    built-in policies: with other policies, or a part of them, either answer is accepted.

    Args:
        bundle: the policies to test.
        as_of: the clock for classes without their own.
        parameters: values that replace the defaults, by policy id.
        paths: files and directories of more classes.

    Raises:
        BundleError: a class is not well formed.
    """
    answers = (
        answer(subject, bundle, subject.as_of or as_of, parameters, timeline=subject.expected is not None)
        for subject in classes_of(bundle, paths)
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


LAW = Law(
    10,
    "satisfiable",
    "every class of workloads has an estate that passes every policy, or states the date from which it has none",
    "minimum hitting sets of failures: R. Reiter, A Theory of Diagnosis from First Principles (1987)",
    whole=_of_the_run,
)
