"""A resource that suffices for a pass still does when others of its type were not read."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from policyeng.bundle import Bundle, Policy, load_bundle
from policyeng.bundle.cases import baselines_of, required_cases
from policyeng.evaluation import EvaluationOptions, evaluate
from policyeng.models import Outcome, Snapshot, lowered
from policyeng.testing.runner import PreparedCase, prepared_cases

BUNDLE = load_bundle()
BASELINES = baselines_of(BUNDLE)
#: Policies for which another resource of the type may make the outcome worse, so that the question is open.
OTHERS_MATTER = {
    ("AML-GOV-010", "microsoft.authorization/roleassignmentscheduleinstances"): "another schedule may have no end",
    ("AML-NET-103", "microsoft.containerservice/managedclusters"): "its subnets are in a list of their own",
    ("AML-NET-105", "microsoft.machinelearningservices/workspaces/computes"): "another compute may be outside",
}


def outcome(alone: Bundle, case: PreparedCase, snapshot: Snapshot) -> Outcome | None:
    """The outcome for the resource of a case in a snapshot."""
    options = EvaluationOptions(case.as_of, parameters={alone.policies[0].id: case.case.parameters})
    findings = evaluate(alone, snapshot, options).findings
    return next((each.outcome for each in findings if lowered(each.resource) == lowered(case.identity)), None)


def needed_types(alone: Bundle, case: PreparedCase) -> Iterator[str]:
    """The types of which some resource makes the case pass: it fails without all of them."""
    resources = case.snapshot.resources
    own = [resource for resource in resources if case.identity.lower().startswith(resource["id"].lower())]
    if outcome(alone, case, case.snapshot.model_copy(update={"resources": tuple(own)})) is Outcome.PASS:
        return
    for kind in sorted({lowered(resource["type"]) for resource in resources} - {lowered(each["type"]) for each in own}):
        others = tuple(resource for resource in resources if lowered(resource["type"]) != kind)
        if outcome(alone, case, case.snapshot.model_copy(update={"resources": others})) is Outcome.FAIL:
            yield kind


@pytest.mark.slow
@pytest.mark.parametrize("policy", BUNDLE.policies, ids=lambda policy: policy.id)
def test_a_witness_decides(policy: Policy) -> None:
    """Whatever else was not read: nothing at all, or what a line of `incomplete` names."""
    alone = BUNDLE.only([policy])
    cases = [case for case in prepared_cases(policy, required_cases(policy), BASELINES) if case.expected == "pass"]
    seen = set[str]()
    for case in cases[:6]:
        if outcome(alone, case, case.snapshot) is not Outcome.PASS:
            continue
        for kind in needed_types(alone, case):
            if kind in seen or (policy.id, kind) in OTHERS_MATTER:
                continue
            seen.add(kind)
            for update in ({"covers": ()}, {"incomplete": (*case.snapshot.incomplete, f"{kind} at /")}):
                partly = case.snapshot.model_copy(update=update)
                assert outcome(alone, case, partly) is Outcome.PASS, (case.name, kind, update)
