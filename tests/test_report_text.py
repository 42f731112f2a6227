"""The text report."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyeng.models import Denial, Evaluation, Location, Outcome, Severity
from policyeng.report.escaping import visible
from policyeng.report.phrases import denials, shorten_id
from policyeng.report.text import render
from tests.report_samples import (
    CLUSTER,
    ISOLATION,
    MARK,
    PUBLIC_ACCESS,
    SAMPLES,
    WORKSPACE,
    evaluation_of,
    evaluations,
    laws,
)

_ANSI = re.compile(r"\x1b\[[0-9;]*m")

FAILURE = f"""\
Failures (1 on 1 resource)
==========================
ws  Microsoft.MachineLearningServices/workspaces
{WORKSPACE}
samples/inference.json:12:1

  high      AML-NET-001  Public network access to the workspace is disabled
    - public network access is not disabled
      path      /properties/publicNetworkAccess
      actual    "Enabled"
      expected  "Disabled"
    source    004 "Network isolation"; Azure Policy 438c38d2-3772-465a-a9cc-7a6666a275ce
    fix       Set publicNetworkAccess to Disabled and reach the workspace through a private
              endpoint.

Summary
=======
              critical  high  medium  low  info  total
  fail               -     1       -    -     -      1
    exempt           -     -       -    -     -      -
  unknown            -     -       -    -     -      -
  error              -     -       -    -     -      -
  pass               -     -       -    -     -      -

  worst     1 x AML-NET-001 (high) Public network access to the workspace is disabled
  compliant 0.00 % strict (only passes count), 0.00 % as in Azure Policy (exempt and unknown count
            too)
  evaluated 1 resource with 1 policy of policyeng 0.1.0, snapshot of
            /subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/rg-ml taken
            2026-05-31T22:15:00Z, as of 2026-06-01T00:00:00Z, engine embedded 0.14.1

exit 0: 1 failure, below --fail-on or in the baseline
"""


def test_a_failure_reads_as_documented() -> None:
    """What failed, where, actual against expected, why, how to mend it, and what decided the exit."""
    assert render(SAMPLES["below the limit"]) == FAILURE


def test_failures_are_grouped_by_resource() -> None:
    """A resource has one block, in the order of the evaluation, with all its failing policies."""
    text = render(SAMPLES["every outcome"])
    failures = text[: text.index("Unknown (")]
    assert failures.count(f"\n{CLUSTER}\n") == 1
    assert failures.index(CLUSTER) < failures.index("AML-SKU-104") < failures.index(f"\n{WORKSPACE}\n")


def test_sections_come_in_order_and_the_exit_last() -> None:
    """Failures, unknown, errors, problems, summary; the last line is the exit in words."""
    text = render(SAMPLES["every outcome"])
    places = [text.index(title) for title in ("Failures (5", "Unknown (1", "Errors (1", "Problems (3", "Summary")]
    assert places == sorted(places)
    assert text.endswith("exit 2: could not decide: 1 policy error, 2 problems; also 4 failures\n")


@pytest.mark.parametrize(
    "line",
    [
        "Failures (5 on 3 resources, 1 exempt)",
        "    - unknown: the quota of the family was not collected",
        "    - the compute of the job is not in the snapshot",
        "    - the deadline of 1000 ms passed while judging",
        "  warning   exemptions.yaml:4: exemption `EX-3` expired on 2026-05-01 and no longer applies",
        "  fail               1     2       1    1     -      5",
        "    exempt           -     1       -    -     -      1",
        "  pass               1     -       -    1     1      3",
    ],
)
def test_lines_of_every_outcome(line: str) -> None:
    """Each outcome, mark, problem and count has its line."""
    assert line in render(SAMPLES["every outcome"]).splitlines()


def test_an_exemption_is_marked_with_its_end_owner_and_reason() -> None:
    """An exempt failure stays in its block and says until when, by whom and why it is accepted."""
    words = " ".join(render(SAMPLES["only exempt"]).split())
    assert "exempt until 2026-12-31 by ml-platform@example.com: the vendor's endpoint has no private link" in words


def test_worst_policies_come_first() -> None:
    """The most severe first, then the most failures; exempt failures do not count, and three are named."""
    text = render(SAMPLES["every outcome"], width=160)
    assert re.findall(r"(\d+) x (\S+)", text) == [("1", "AML-ISO-101"), ("1", "AML-NET-001"), ("1", "AML-SKU-104")]
    twice = evaluation_of([PUBLIC_ACCESS, PUBLIC_ACCESS.model_copy(update={"resource": CLUSTER}), ISOLATION])
    assert re.findall(r"(\d+) x (\S+)", render(twice)) == [("1", "AML-ISO-101"), ("2", "AML-NET-001")]
    other = ISOLATION.model_copy(update={"policy": "AML-ISO-100"})
    alike = evaluation_of([other, ISOLATION, ISOLATION.model_copy(update={"resource": WORKSPACE})])
    assert re.findall(r"(\d+) x (\S+)", render(alike)) == [("2", "AML-ISO-101"), ("1", "AML-ISO-100")]


@laws
@given(evaluations(), st.sampled_from([40, 60, 100, 160]))
def test_colour_changes_no_character(evaluation: Evaluation, width: int) -> None:
    """Without its ANSI sequences the coloured report is the plain one."""
    plain = render(evaluation, width=width)
    assert _ANSI.sub("", render(evaluation, width=width, color=True)) == plain


def test_colour_is_there() -> None:
    """A critical failure is bold red, a passing run ends in bold green."""
    assert "\x1b[1;31mcritical" in render(SAMPLES["failures"], color=True)
    assert "\x1b[1;32mexit 0" in render(SAMPLES["all pass"], color=True)


@laws
@given(evaluations(), st.integers(1, 200), st.integers(1, 200))
def test_wrapping_moves_words_and_changes_none(evaluation: Evaluation, one: int, other: int) -> None:
    """Any two widths give the same words in the same order: nothing is cut, broken or dropped."""
    assert render(evaluation, width=one).split() == render(evaluation, width=other).split()


@pytest.mark.parametrize("width", [60, 100, 160])
def test_lines_fit(width: int) -> None:
    """Only an ARM id, which must stay in one piece, is longer than the width; no line ends in a blank."""
    for line in render(SAMPLES["every outcome"], width=width).splitlines():
        assert len(line) <= width or "/subscriptions/" in line
        assert line == line.rstrip()


#: A denial that says why the policy concerns the resource, as those for regulated work and for stages do.
EXPLAINED = Denial(
    msg="regulated work runs on a size that is not isolated",
    path="/properties/properties/vmSize",
    actual={"because": "the tag `data-classification` of the workspace is `restricted`", "size": "Standard_DS3_v2"},
    expected="an isolated size",
)


def test_why_a_policy_concerns_a_resource_is_a_sentence_of_its_own() -> None:
    """`because` is no value that somebody compares."""
    text = render(evaluation_of([ISOLATION.model_copy(update={"denials": (EXPLAINED,), "unknowns": ()})]))

    assert (
        """
      actual    {"size": "Standard_DS3_v2"}
      expected  "an isolated size"
      because   the tag `data-classification` of the workspace is `restricted`
    source """
        in text
    )


BY_POLICY = """\
Failures (4 on 4 resources, 1 exempt)
=====================================
critical  AML-ISO-101  Regulated work runs on an isolated VM size
on        3 resources
source    001 "Compute isolation"
fix       Choose one of the isolated sizes, or move the regulated data out of the workspace.

  ws/a  samples/inference.json:48:1
  ws/b
    /subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/rg-ml/providers/Microsoft.MachineLearningServices/workspaces/ws/computes/b
    - regulated work runs on a size that is not isolated
      path      /properties/properties/vmSize
      actual    {"size": "Standard_DS3_v2"}
      expected  "an isolated size"
      because   the tag `data-classification` of the workspace is `restricted`

  ws/c  samples/inference.json:48:1
    exempt until 2026-12-31 by ml-platform@example.com: the vendor's endpoint has no private link
    before the autumn release
    - regulated work runs on a size that is not isolated
      path      /properties/properties/vmSize
      actual    {"size": "Standard_DS3_v2"}
      expected  "an isolated size"
      because   the tag `data-classification` of the workspace is `restricted`

high      AML-CMP-001  Regulated work runs on an isolated VM size
on        1 resource
"""


def test_failures_by_policy_read_as_documented() -> None:
    """The worst policy first, how to mend it once, resources with the same reasons together, ids where needed."""
    alike = ISOLATION.model_copy(update={"denials": (EXPLAINED,), "unknowns": ()})
    findings = [
        alike.model_copy(update={"resource": f"{WORKSPACE}/computes/a"}),
        alike.model_copy(update={"resource": f"{WORKSPACE}/computes/b", "location": Location()}),
        alike.model_copy(update={"resource": f"{WORKSPACE}/computes/c", "exemption": MARK}),
        alike.model_copy(update={"policy": "AML-CMP-001", "severity": Severity.HIGH}),
    ]

    assert render(evaluation_of(findings), group_by="policy").startswith(BY_POLICY)


def test_two_resources_of_one_name_are_told_apart() -> None:
    """The whole id follows the name, although there is a place."""
    other = f"{WORKSPACE.replace('rg-ml', 'rg-other')}"
    text = render(
        evaluation_of([PUBLIC_ACCESS, PUBLIC_ACCESS.model_copy(update={"resource": other})]), group_by="policy"
    )

    assert f"\n    {WORKSPACE}\n" in text
    assert f"\n    {other}\n" in text


def test_grouping_by_resource_is_the_default() -> None:
    """And the profile is named with the policies."""
    evaluation = SAMPLES["every outcome"]

    assert render(evaluation, group_by="resource") == render(evaluation)
    assert "of policyeng 0.1.0, profile azureml-v2, snapshot" in " ".join(
        render(evaluation, profile="azureml-v2").split()
    )


@laws
@given(evaluations(), st.integers(1, 200))
def test_by_policy_nothing_is_lost(evaluation: Evaluation, width: int) -> None:
    """Every policy, message and name of a failure is there, wrapped and coloured as ever."""
    text = render(evaluation, width=width, group_by="policy")
    words = " ".join(text.split())
    assert _ANSI.sub("", render(evaluation, width=width, color=True, group_by="policy")) == text
    for finding in evaluation.findings:
        if finding.outcome is Outcome.FAIL:
            assert " ".join(visible(finding.title).split()) in words
            assert " ".join(shorten_id(finding.resource).split()) in words
            for denial in denials(finding):
                assert " ".join(visible(denial.msg).split()) in words
