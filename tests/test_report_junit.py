"""JUnit XML, read back by junitparser."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from policyeng.models import Evaluation, Outcome
from policyeng.report.escaping import visible
from policyeng.report.junit import render
from tests.report_samples import CLUSTER, SAMPLES, WORKSPACE, evaluations, laws


def suites_of(evaluation: Evaluation) -> dict[str, TestSuite]:
    """The suites by name."""
    return {suite.name: suite for suite in JUnitXml.fromstring(render(evaluation).encode())}


def cases_of(evaluation: Evaluation) -> dict[str, TestCase]:
    """The test cases of the samples by policy: each policy has one there."""
    return {case.classname: case for suite in suites_of(evaluation).values() for case in suite}


@laws
@given(evaluations())
def test_every_report_reads_back_with_the_same_ids_and_counts(evaluation: Evaluation) -> None:
    """Law 7: one case per finding and problem, named by policy and resource, and the counts of each level agree."""
    whole = JUnitXml.fromstring(render(evaluation).encode())
    suites = [suite for suite in whole if suite.name != "policyeng.problems"]
    read = Counter((case.classname, case.name) for suite in suites for case in suite)
    assert read == Counter((finding.policy, visible(finding.resource)) for finding in evaluation.findings)
    outcomes = Counter(finding.outcome for finding in evaluation.findings)
    exempt = sum(finding.exemption is not None for finding in evaluation.findings)
    errors = sum(problem.level == "error" for problem in evaluation.problems)
    assert whole.tests == len(evaluation.findings) + len(evaluation.problems)
    assert whole.failures == outcomes[Outcome.FAIL] - exempt
    assert whole.errors == outcomes[Outcome.ERROR] + errors
    assert whole.skipped == outcomes[Outcome.UNKNOWN] + exempt + len(evaluation.problems) - errors
    for suite in whole:
        kinds = Counter(type(result) for case in suite for result in case.result)
        counted = (len(list(suite)), kinds[Failure], kinds[Error], kinds[Skipped])
        assert (suite.tests, suite.failures, suite.errors, suite.skipped) == counted


def test_a_suite_is_an_area() -> None:
    """The letters of the id name the suite; problems of the run have their own."""
    assert list(suites_of(SAMPLES["every outcome"])) == [
        "AML-ISO", "AML-NET", "AML-OPS", "AML-RBAC", "AML-SKU", "AML-TRN", "policyeng.problems",
    ]  # fmt: skip


def test_a_failure_lists_its_denials() -> None:
    """Type is the severity, the message the constant texts, the body every denial with its values."""
    case = cases_of(SAMPLES["every outcome"])["AML-ISO-101"]
    (failure,) = case.result
    assert isinstance(failure, Failure)
    assert failure.type == "critical"
    assert failure.message == (
        "the VM size shares its host with other customers; the cluster is not tagged with its owner"
    )
    assert case.name == CLUSTER
    assert failure.text.splitlines() == [
        "Regulated work runs on an isolated VM size (critical)",
        "the VM size shares its host with other customers: /properties/properties/vmSize is Standard_DS3_v2, "
        "expected Standard_E64is_v3, Standard_E64i_v3, Standard_M128ms, Standard_GS5, Standard_F72s_v2",
        "the cluster is not tagged with its owner: /tags is none, expected owner *",
        "unknown: the quota of the family was not collected: /properties/properties/vmSize",
        'source: 001 "Compute isolation"',
        "fix: Choose one of the isolated sizes, or move the regulated data out of the workspace.",
        "location: samples/inference.json:48:1",
    ]


@pytest.mark.parametrize(
    ("policy", "kind", "message"),
    [
        (
            "AML-NET-104",
            Skipped,
            "exempt: the vendor's endpoint has no private link before the autumn release until 2026-12-31",
        ),
        ("AML-TRN-102", Skipped, "unknown: the compute of the job is not in the snapshot: /computeId"),
        ("AML-TRN-103", Error, "the deadline of 1000 ms passed while judging"),
    ],
)
def test_what_is_neither_pass_nor_failure(policy: str, kind: type, message: str) -> None:
    """Exempt and unknown are skipped with the reason, an error finding is an error."""
    (result,) = cases_of(SAMPLES["every outcome"])[policy].result
    assert isinstance(result, kind)
    assert result.message == message


def test_a_pass_has_no_message() -> None:
    """A passing case has neither failure nor reason."""
    case = cases_of(SAMPLES["every outcome"])["AML-OPS-103"]
    assert case.result == []
    assert case.name == WORKSPACE


def test_problems_are_cases_with_stable_names() -> None:
    """An error is an error and a warning is skipped; the name is the place, numbered when it repeats."""
    cases = list(suites_of(SAMPLES["only problems"])["policyeng.problems"])
    assert [(case.name, type(case.result[0])) for case in cases] == [
        ("samples/broken.json:17", Error),
        ("exemptions.yaml:4", Skipped),
        ("samples/broken.json:17 (2)", Error),
    ]


def test_names_contain_no_message() -> None:
    """Another message leaves the cases' names as they are, so that a build server can follow them."""
    other = [
        finding.model_copy(
            update={"denials": tuple(denial.model_copy(update={"msg": "other"}) for denial in finding.denials)}
        )
        for finding in SAMPLES["failures"].findings
    ]
    renamed = SAMPLES["failures"].model_copy(update={"findings": tuple(other)})
    for one, two in zip(cases_of(SAMPLES["failures"]).values(), cases_of(renamed).values(), strict=True):
        assert (one.classname, one.name) == (two.classname, two.name)


def test_suites_state_what_was_evaluated() -> None:
    """Digests, clock, engine and exit are properties of each suite."""
    suites = render(SAMPLES["every outcome"]).split("<testsuite ")[1:]
    listed = [dict(re.findall(r'<property name="(.*?)" value="(.*?)" />', suite)) for suite in suites]
    assert len(listed) == 7
    assert all(one == other for one, other in pairwise(listed))
    assert listed[0] == {
        "bundle": "policyeng 0.1.0",
        "bundleDigest": "sha256:" + "ab12" * 16,
        "snapshotScope": "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/rg-ml",
        "snapshotTakenAt": "2026-05-31T22:15:00Z",
        "snapshotDigest": "sha256:" + "cd34" * 16,
        "asOf": "2026-06-01T00:00:00Z",
        "engine": "embedded 0.14.1",
        "exitCode": "2",
    }
