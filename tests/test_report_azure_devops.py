"""Annotations in Azure Pipelines, read back by a parser written from the agent's documentation."""

from __future__ import annotations

import pytest
from hypothesis import given

from policyeng.models import Evaluation
from policyeng.report.build_agents import render_azure_devops as render
from policyeng.report.escaping import visible
from policyeng.report.locations import find_location
from policyeng.report.phrases import describe_exit_code, worst_first
from tests.report_samples import SAMPLES, WORKSPACE, evaluations, laws

PREFIX = "##vso["


def parsed(line: str) -> tuple[str, dict[str, str], str]:
    """Name, properties and message of a logging command: the first prefix anywhere, up to the first `]` after it."""
    head, _, message = line[line.index(PREFIX) + len(PREFIX) :].partition("]")
    name, _, listed = head.partition(" ")
    properties = dict(pair.split("=", 1) for pair in listed.split(";") if pair)
    return name, {key: _decoded(value) for key, value in properties.items()}, _decoded(message)


def _decoded(text: str) -> str:
    for code, character in (("%3B", ";"), ("%0D", "\r"), ("%0A", "\n"), ("%5D", "]"), ("%AZP25", "%")):
        text = text.replace(code, character)
    return text


def commands_of(evaluation: Evaluation) -> list[tuple[str, dict[str, str], str]]:
    """Every line that the agent would obey."""
    return [parsed(line) for line in render(evaluation).splitlines() if PREFIX in line]


@laws
@given(evaluations())
def test_every_finding_that_is_not_a_pass_is_one_line(evaluation: Evaluation) -> None:
    """Law 7: policy, resource and place are exact; an exempt failure is a plain line; problems follow."""
    findings = worst_first(evaluation.others)
    errors = sum(problem.level == "error" for problem in evaluation.problems)
    *lines, _ = render(evaluation).splitlines()
    assert len(lines) == len(findings) + len(evaluation.problems)
    for line, finding in zip(lines[errors:], findings, strict=False):
        assert (PREFIX in line) is (finding.exemption is None)
        if finding.exemption is None:
            name, properties, message = parsed(line)
            assert name == "task.logissue"
            assert properties["code"] == finding.policy
            at = find_location(finding)
            numbers = [str(at.line), str(at.column)] if at.file else [None, None]
            assert properties.get("sourcepath", "") == visible(at.file)
            assert [properties.get("linenumber"), properties.get("columnnumber")] == numbers
            assert visible(finding.resource) in message
        else:
            assert line.startswith(finding.policy)
    types = [parsed(line)[1]["type"] for line in (*lines[:errors], *lines[errors + len(findings) :])]
    assert types == ["error"] * errors + ["warning"] * (len(evaluation.problems) - errors)


@laws
@given(evaluations())
def test_only_our_own_two_commands_are_given(evaluation: Evaluation) -> None:
    """No name gives the agent a command, and the step completes as failed exactly when the exit is not 0."""
    commands = commands_of(evaluation)
    completions = [(properties, message) for name, properties, message in commands if name == "task.complete"]
    assert {name for name, _, _ in commands} <= {"task.logissue", "task.complete"}
    assert completions == ([({"result": "Failed"}, describe_exit_code(evaluation))] if evaluation.exit_code else [])
    assert render(evaluation).count(PREFIX) == len(commands)


@pytest.mark.parametrize(
    ("policy", "kind"),
    [
        ("AML-ISO-101", "error"),
        ("AML-NET-001", "error"),
        ("AML-SKU-104", "warning"),
        ("AML-RBAC-103", "warning"),
        ("AML-TRN-102", "warning"),
        ("AML-TRN-103", "error"),
    ],
)
def test_types(policy: str, kind: str) -> None:
    """High and critical and error findings are errors; medium, low, and unknown findings are warnings."""
    types = {
        properties.get("code"): properties.get("type") for _, properties, _ in commands_of(SAMPLES["every outcome"])
    }
    assert types[policy] == kind


def test_a_failure_reads_as_documented() -> None:
    """Type, place and policy, then severity, title, resource, message and remedy, on one line."""
    first, last = render(SAMPLES["below the limit"]).splitlines()
    assert first == (
        "##vso[task.logissue type=error;sourcepath=samples/inference.json;linenumber=12;columnnumber=1;"
        "code=AML-NET-001;](high) "
        f"Public network access to the workspace is disabled: {WORKSPACE}; public network access is not disabled: "
        "/properties/publicNetworkAccess is Enabled, expected Disabled; "
        "fix: Set publicNetworkAccess to Disabled and reach the workspace through a private endpoint."
    )
    assert last == describe_exit_code(SAMPLES["below the limit"])


def test_with_exit_zero_failures_do_not_fail_the_task() -> None:
    """A run that could not decide still does."""
    assert render(SAMPLES["failures"], exit_zero=True).count("task.complete result=SucceededWithIssues;") == 1
    assert render(SAMPLES["empty"], exit_zero=True).count("task.complete result=Failed;") == 1


def test_the_most_severe_come_first() -> None:
    """The agent shows ten of each type."""
    codes = [properties["code"] for _, properties, _ in commands_of(SAMPLES["failures"]) if "code" in properties]
    assert codes == ["AML-ISO-101", "AML-NET-001"]
