"""Annotations on GitHub, read back by a parser written from the runner's documentation."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given

from policyeng.models import Evaluation, Severity
from policyeng.report.build_agents import render_github as render
from policyeng.report.escaping import visible
from policyeng.report.locations import find_location
from policyeng.report.phrases import describe_exit_code, worst_first
from tests.report_samples import SAMPLES, WORKSPACE, evaluations, laws

_COMMAND = re.compile(r"::(?P<name>[a-z]+) (?P<properties>[^:]*)::(?P<message>.*)")


def parsed(line: str) -> tuple[str, dict[str, str], str]:
    """Name, properties and message of a workflow command (`::name key=value,key=value::message`)."""
    found = _COMMAND.fullmatch(line)
    assert found, line
    properties = dict(pair.split("=", 1) for pair in found["properties"].split(","))
    return found["name"], {key: _decoded(value) for key, value in properties.items()}, _decoded(found["message"])


def _decoded(text: str) -> str:
    for code, character in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(code, character)
    return text


@laws
@given(evaluations())
def test_every_finding_that_is_not_a_pass_is_one_command(evaluation: Evaluation) -> None:
    """Law 7: the commands name the policy, the resource and the place exactly; problems follow; then the exit."""
    *lines, last = render(evaluation).splitlines()
    commands = [parsed(line) for line in lines]
    findings = worst_first(evaluation.others)
    errors = [problem for problem in evaluation.problems if problem.level == "error"]
    warnings = [problem for problem in evaluation.problems if problem.level == "warning"]
    assert len(commands) == len(findings) + len(evaluation.problems)
    for (_, properties, message), finding in zip(commands[len(errors) :], findings, strict=False):
        assert properties["title"] == visible(f"{finding.policy} ({finding.severity}): {finding.title}")
        assert message.splitlines()[-1] == visible(f"resource: {finding.resource}")
        at = find_location(finding)
        given = (properties.get("file", ""), properties.get("line"), properties.get("col"))
        assert given == (visible(at.file), str(at.line), str(at.column)) if at.file else ("", None, None)
    assert [name for name, _, _ in commands[: len(errors)]] == ["error"] * len(errors)
    assert [name for name, _, _ in commands[len(errors) + len(findings) :]] == ["warning"] * len(warnings)
    assert last == describe_exit_code(evaluation)


@pytest.mark.parametrize(
    ("policy", "name"),
    [
        ("AML-ISO-101", "error"),
        ("AML-NET-001", "error"),
        ("AML-NET-104", "notice"),
        ("AML-SKU-104", "warning"),
        ("AML-RBAC-103", "warning"),
        ("AML-TRN-102", "warning"),
        ("AML-TRN-103", "error"),
    ],
)
def test_levels(policy: str, name: str) -> None:
    """High and critical are errors, medium and low warnings, exempt a notice, unknown a warning, error an error."""
    named = {title.split()[0]: name for name, title in _titles(SAMPLES["every outcome"])}
    assert named[policy] == name


def test_a_failure_of_severity_info_is_a_notice() -> None:
    """The lowest severity does not colour a run yellow."""
    evaluation = SAMPLES["failures"]
    lowered = [finding.model_copy(update={"severity": Severity.INFO}) for finding in evaluation.findings]
    names = Counter(name for name, _ in _titles(evaluation.model_copy(update={"findings": tuple(lowered)})))
    assert names == {"notice": 2}


def _titles(evaluation: Evaluation) -> list[tuple[str, str]]:
    commands = [parsed(line) for line in render(evaluation).splitlines()[:-1]]
    return [(name, properties["title"]) for name, properties, _ in commands]


def test_a_failure_reads_as_documented() -> None:
    """File, line and title, then message, remedy and the whole id, line by line."""
    first, _ = render(SAMPLES["below the limit"]).splitlines()
    assert first == (
        "::error file=samples/inference.json,line=12,col=1,"
        "title=AML-NET-001 (high)%3A Public network access to the workspace is disabled::ws"
        "%0Apublic network access is not disabled: /properties/publicNetworkAccess is Enabled, expected Disabled"
        "%0Afix: Set publicNetworkAccess to Disabled and reach the workspace through a private endpoint."
        f"%0Aresource: {WORKSPACE}"
    )
