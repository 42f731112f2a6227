"""The text report."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyeng.models import Denial, Evaluation, Location, Outcome, Place, Severity, Unknown
from policyeng.report.escaping import visible
from policyeng.report.phrases import denials, shorten_id
from policyeng.report.text import FORMS, render
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
    passing,
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
      found     Enabled
      expected  Disabled
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

PASSED: 1 failure below --fail-on critical
"""


def test_a_failure_reads_as_documented() -> None:
    """The failure, its place, actual against expected, why, the remedy, and what decided the exit."""
    assert render(SAMPLES["below the limit"], form="verbose") == FAILURE


def test_failures_are_grouped_by_resource() -> None:
    """A resource has one block, those with the most severe failure first, with all its failing policies."""
    text = render(SAMPLES["every outcome"], form="verbose")
    failures = text[: text.index("Errors (")]
    assert failures.count(f"\n{CLUSTER}\n") == 1
    assert failures.index(CLUSTER) < failures.index("AML-SKU-104") < failures.index(f"\n{WORKSPACE}\n")


def test_sections_come_in_order_and_the_exit_last() -> None:
    """Failures, errors, unknown, problems, summary; the last line is the result in words."""
    text = render(SAMPLES["every outcome"], form="verbose")
    places = [text.index(title) for title in ("Failures (5", "Errors (1", "Unknown (1", "Problems (3", "Summary")]
    assert places == sorted(places)
    assert text.endswith("UNDECIDED: 1 policy error, 2 problems; also 4 failures\n")


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
    assert line in render(SAMPLES["every outcome"], form="verbose").splitlines()


@pytest.mark.parametrize("form", ["compact", "verbose"])
def test_an_exemption_is_marked_with_its_end_owner_and_reason(form: str) -> None:
    """An exempt failure stays in its block and states until when, by whom and why it is accepted."""
    words = " ".join(render(SAMPLES["only exempt"], form=form).split())
    assert "exempt until 2026-12-31 by ml-platform@example.com" in words


def test_worst_policies_come_first() -> None:
    """The most severe first, then the most failures; exempt failures do not count, and three are named."""
    text = render(SAMPLES["every outcome"], width=160, form="summary")
    assert re.findall(r"(\d+) x (\S+)", text) == [("1", "AML-ISO-101"), ("1", "AML-NET-001"), ("1", "AML-SKU-104")]
    twice = evaluation_of([PUBLIC_ACCESS, PUBLIC_ACCESS.model_copy(update={"resource": CLUSTER}), ISOLATION])
    assert re.findall(r"(\d+) x (\S+)", render(twice, form="summary")) == [("1", "AML-ISO-101"), ("2", "AML-NET-001")]
    other = ISOLATION.model_copy(update={"policy": "AML-ISO-100"})
    alike = evaluation_of([other, ISOLATION, ISOLATION.model_copy(update={"resource": WORKSPACE})])
    assert re.findall(r"(\d+) x (\S+)", render(alike, form="summary")) == [("2", "AML-ISO-101"), ("1", "AML-ISO-100")]


@laws
@given(evaluations(), st.sampled_from([40, 60, 100, 160]), st.sampled_from(FORMS))
def test_colour_changes_no_character(evaluation: Evaluation, width: int, form: str) -> None:
    """Without its ANSI sequences the coloured report is the plain one."""
    plain = render(evaluation, width=width, form=form)
    assert _ANSI.sub("", render(evaluation, width=width, form=form, color=True)) == plain


def test_colour_is_used() -> None:
    """A critical failure is bold red, a passing run ends in bold green."""
    assert "\x1b[1;31mcritical" in render(SAMPLES["failures"], color=True)
    assert "\x1b[1;32mPASSED" in render(SAMPLES["all pass"], color=True)


@laws
@given(evaluations(), st.integers(1, 200), st.integers(1, 200))
def test_wrapping_moves_words_and_changes_none(evaluation: Evaluation, one: int, other: int) -> None:
    """Any two widths give the same words in the same order: nothing is cut, broken or dropped."""
    assert (
        render(evaluation, width=one, form="verbose").split() == render(evaluation, width=other, form="verbose").split()
    )


@pytest.mark.parametrize("form", ["compact", "verbose", "summary"])
@pytest.mark.parametrize("width", [60, 100, 160])
def test_lines_fit(width: int, form: str) -> None:
    """Only an ARM id, which must stay in one piece, is longer than the width; no line ends in a blank."""
    for line in render(SAMPLES["every outcome"], width=width, form=form).splitlines():
        assert len(line) <= width or "/subscriptions/" in line
        assert line == line.rstrip()


#: A denial that states why the policy concerns the resource, as those for regulated work and for stages do.
EXPLAINED = Denial(
    msg="regulated work runs on a size that is not isolated",
    path="/properties/properties/vmSize",
    actual={"because": "the tag `data-classification` of the workspace is `restricted`", "size": "Standard_DS3_v2"},
    expected="an isolated size",
)


def test_why_a_policy_concerns_a_resource_is_a_sentence_of_its_own() -> None:
    """`because` is not a value for comparisons."""
    evaluation = evaluation_of([ISOLATION.model_copy(update={"denials": (EXPLAINED,), "unknowns": ()})])
    text = render(evaluation, form="verbose")

    assert (
        """
      found     Standard_DS3_v2
      expected  an isolated size
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
      found     Standard_DS3_v2
      expected  an isolated size
      because   the tag `data-classification` of the workspace is `restricted`

  ws/c  samples/inference.json:48:1
    exempt until 2026-12-31 by ml-platform@example.com: the vendor's endpoint has no private link
    before the autumn release
    - regulated work runs on a size that is not isolated
      path      /properties/properties/vmSize
      found     Standard_DS3_v2
      expected  an isolated size
      because   the tag `data-classification` of the workspace is `restricted`

high      AML-CMP-001  Regulated work runs on an isolated VM size
on        1 resource
"""


def test_failures_by_policy_read_as_documented() -> None:
    """The worst policy first, the remedy once, resources with the same reasons together, ids where needed."""
    alike = ISOLATION.model_copy(update={"denials": (EXPLAINED,), "unknowns": ()})
    findings = [
        alike.model_copy(update={"resource": f"{WORKSPACE}/computes/a"}),
        alike.model_copy(update={"resource": f"{WORKSPACE}/computes/b", "location": Location()}),
        alike.model_copy(update={"resource": f"{WORKSPACE}/computes/c", "exemption": MARK}),
        alike.model_copy(update={"policy": "AML-CMP-001", "severity": Severity.HIGH}),
    ]

    assert render(evaluation_of(findings), group_by="policy", form="verbose").startswith(BY_POLICY)


def test_two_resources_of_one_name_are_distinguished() -> None:
    """The whole id follows the name, although there is a place."""
    other = f"{WORKSPACE.replace('rg-ml', 'rg-other')}"
    text = render(
        evaluation_of([PUBLIC_ACCESS, PUBLIC_ACCESS.model_copy(update={"resource": other})]),
        group_by="policy",
        form="verbose",
    )

    assert f"\n    {WORKSPACE}\n" in text
    assert f"\n    {other}\n" in text


def test_the_default_grouping_of_each_form() -> None:
    """The profile is named with the policies."""
    evaluation = SAMPLES["every outcome"]

    assert render(evaluation, group_by="resource", form="verbose") == render(evaluation, form="verbose")
    assert render(evaluation, group_by="policy") == render(evaluation)
    assert "of policyeng 0.1.0, profile azureml-v2, snapshot" in " ".join(
        render(evaluation, profile="azureml-v2", form="verbose").split()
    )


@laws
@given(evaluations(), st.integers(1, 200))
def test_by_policy_nothing_is_lost(evaluation: Evaluation, width: int) -> None:
    """Every policy, message and name of a failure is shown, wrapped and coloured as ever."""
    text = render(evaluation, width=width, group_by="policy", form="verbose")
    words = " ".join(text.split())
    assert _ANSI.sub("", render(evaluation, width=width, color=True, group_by="policy", form="verbose")) == text
    for finding in evaluation.findings:
        if finding.outcome is Outcome.FAIL:
            assert " ".join(visible(finding.title).split()) in words
            assert " ".join(shorten_id(finding.resource).split()) in words
            for denial in denials(finding):
                assert " ".join(visible(denial.msg).split()) in words


COMPACT = """\
samples/inference.json
critical AML-ISO-101  Regulated work runs on an isolated VM size
  ws/train-gpu  found Standard_DS3_v2, expected an isolated size  :48:1
  fix Choose one of the isolated sizes, or move the regulated data out of the
      workspace.
high     AML-NET-001  Public network access to the workspace is disabled (2)
  ws            found Enabled, expected Disabled  :12:1
  ws/train-gpu  found Enabled, expected Disabled  :12:1
  fix Set publicNetworkAccess to Disabled and reach the workspace through a
      private endpoint.

              critical  high  medium  low  info  total
  fail               1     2       -    -     -      3
  pass               -     -       -    1     -      1
2 resources with 3 policies of policyeng 0.1.0, as of 2026-06-01T00:00:00Z
FAILED: 3 failures (>= low)
"""


def test_the_compact_report_reads_as_documented() -> None:
    """The worst policy first, a line for each resource, the fix once, and the result last."""
    evaluation = evaluation_of(
        [
            PUBLIC_ACCESS,
            PUBLIC_ACCESS.model_copy(update={"resource": CLUSTER}),
            ISOLATION.model_copy(update={"denials": (EXPLAINED,), "unknowns": ()}),
            passing("AML-OPS-103"),
        ]
    )

    assert render(evaluation, width=80) == COMPACT


def _many(number: int) -> Evaluation:
    return evaluation_of(
        [PUBLIC_ACCESS.model_copy(update={"resource": f"{WORKSPACE}/computes/c{at}"}) for at in range(number)]
    )


def test_a_policy_lists_twenty_resources_unless_all_are_requested() -> None:
    """The rest is counted, and the fix is shown once, cut to a line in a report of more than a screen."""
    text = render(_many(321), width=80)

    assert text.count("found Enabled") == 20
    assert "  and 301 more (--all)\n  fix Set publicNetworkAccess to Disabled and reach the workspace" in text
    assert len(text.splitlines()) < 30
    assert render(_many(321), every=True).count("found Enabled") == 321
    assert "--all" not in render(_many(321), every=True)
    assert re.search(r"^  fix .* …$", render(_many(321), width=60), re.MULTILINE)


def test_undecided_findings_are_grouped_by_the_missing_input() -> None:
    """One line for each, with the remedy; messages that differ in a word are one."""
    unknown = [
        PUBLIC_ACCESS.model_copy(
            update={
                "policy": f"AML-COST-10{number}",
                "outcome": Outcome.UNKNOWN,
                "denials": (),
                "unknowns": (
                    Unknown(msg="not all budgets were collected; add them"),
                    *(Unknown(msg=f"no quota is stated for {name}") for name in ("a", "b")),
                ),
            }
        )
        for number in (1, 2)
    ]
    lines = render(evaluation_of(unknown), width=120).splitlines()

    assert "Unknown (2 findings)" in lines
    assert "  not all budgets were collected: 2 policies undecided on ws; add them" in lines
    assert sum(line.startswith("  no quota is stated for …: 2 policies undecided on ws") for line in lines) == 1


def test_quiet_prints_failures_alone() -> None:
    """Each on a line that an editor can open, the worst first."""
    assert [line.split()[:4] for line in render(SAMPLES["failures"], form="quiet").splitlines()] == [
        ["samples/inference.json:48:1:", "critical", "AML-ISO-101", "ws/train-gpu:"],
        ["samples/inference.json:12:1:", "high", "AML-NET-001", "ws:"],
    ]
    assert render(SAMPLES["all pass"], form="quiet") == ""


def test_a_summary_alone_lists_no_finding() -> None:
    """Counts, the worst policies and the result."""
    text = render(SAMPLES["failures"], form="summary")

    assert "fix" not in text
    assert text.endswith("\nFAILED: 2 failures (>= low)\n")


@pytest.mark.parametrize(
    ("group_by", "titles"),
    [
        ("resource", ["ws/train-gpu (1)", "ws (1)"]),
        ("owner", ["platform (1)", "no owner (1)"]),
        ("control", ["no control (1)", "mcsb-v1:NS-2 (1)"]),
        ("input", ["samples/inference.json (2)"]),
    ],
)
def test_groups_of_the_compact_report(group_by: str, titles: list[str]) -> None:
    """The group with the worst failure first; the fixes come once, after them."""
    evaluation = evaluation_of(
        [
            PUBLIC_ACCESS.model_copy(update={"controls": ("mcsb-v1:NS-2",)}),
            ISOLATION.model_copy(update={"owner": "platform"}),
        ]
    )
    text = render(evaluation, group_by=group_by)

    assert [line for line in text.splitlines() if re.search(r"^\S.* \(\d\)$", line)] == titles
    assert text.index("\nFixes\n") > max(map(text.index, titles))
    assert text.count("Choose one of the isolated sizes") == 1


def test_names_of_the_format_come_before_those_of_azure() -> None:
    """A reader of Terraform or YAML looks for its names; other resources of one name have their scope."""
    location = Location(
        file="plan.json",
        address="azurerm_machine_learning_compute_cluster.c",
        fields={"/properties/properties/vmSize": Place(file="plan.json", line=3, column=5, address="vm_size")},
    )
    finding = ISOLATION.model_copy(update={"denials": (EXPLAINED,), "unknowns": (), "location": location})
    other = PUBLIC_ACCESS.model_copy(update={"resource": WORKSPACE.replace("rg-ml", "rg-other")})
    text = render(evaluation_of([finding, PUBLIC_ACCESS, other]), width=160)

    assert "  azurerm_machine_learning_compute_cluster.c  vm_size: found Standard_DS3_v2, expected" in text
    assert "  11111111/rg-ml/ws     found Enabled" in text
    assert "  11111111/rg-other/ws  found Enabled" in text
