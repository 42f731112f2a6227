"""Markdown, read back by markdown-it (CommonMark with GitHub's tables)."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from markdown_it import MarkdownIt
from markdown_it.token import Token

from policyeng.models import Denial, Evaluation, Outcome
from policyeng.report.escaping import visible
from policyeng.report.grouping import group_findings
from policyeng.report.markdown import LIMIT, render
from policyeng.report.phrases import by_policy, denials, describe_found, exempt, failed, split_reason
from policyeng.report.text import render as render_text
from tests.report_samples import ISOLATION, PUBLIC_ACCESS, SAMPLES, WORKSPACE, evaluation_of, evaluations, laws

_TAG = re.compile(r"</?(?:code|br|sub|details|summary)>")
_PARSER = MarkdownIt("commonmark").enable("table")


def tokens_of(text: str) -> Iterator[Token]:
    """Every token, those within a line too."""
    for token in _PARSER.parse(text):
        yield token
        yield from token.children or ()


def text_of(text: str) -> str:
    """The visible text."""
    shown = [token.content for token in tokens_of(text) if token.type in ("text", "text_special")]
    return "".join(shown).replace("\u200b", "")


@laws
@given(evaluations())
def test_nothing_but_our_own_markup_is_in_a_report(evaluation: Evaluation) -> None:
    """No name makes a link, a picture, a code span, emphasis or an element that we did not write."""
    for token in tokens_of(render(evaluation)):
        assert token.type not in ("link_open", "image", "code_inline", "em_open", "fence", "code_block", "s_open")
        if token.type in ("html_inline", "html_block"):
            assert "<" not in _TAG.sub("", token.content)


@laws
@given(evaluations())
def test_every_finding_has_its_row(evaluation: Evaluation) -> None:
    """Law 7: failures, exempt, unknown and error findings are a row each, and one row counts them; none is cut."""
    rows = sum(token.type == "tr_open" for token in tokens_of(render(evaluation)))
    groups = [
        failed(evaluation),
        exempt(evaluation),
        [finding for finding in evaluation.findings if finding.outcome is Outcome.UNKNOWN],
        [finding for finding in evaluation.findings if finding.outcome is Outcome.ERROR],
    ]
    headings = len(by_policy(groups[0])) + sum(bool(group) for group in groups[1:])
    assert rows == sum(map(len, groups)) + headings + 2


@laws
@given(evaluations())
def test_every_denial_is_read_as_it_was_written(evaluation: Evaluation) -> None:
    """Ids, messages, paths and values survive the table, the markup and the escapes."""
    text = text_of(render(evaluation))
    for finding in evaluation.findings:
        if finding.outcome is Outcome.FAIL:
            assert visible(finding.resource).strip() in text
            for denial in denials(finding):
                if denial.actual is not None:
                    assert f"found {describe_found(split_reason(denial)[0])}".rstrip() in text


def test_a_failure_reads_as_documented() -> None:
    """The policy and its fix once, then the resource with the whole id folded away, and the reason."""
    heading, _, fix, _, titles, _, row = render(SAMPLES["below the limit"]).splitlines()[4:11]
    assert heading == "### high <code>AML-NET-001</code> Public network access to the workspace is disabled (1)"
    assert fix == (
        "Set publicNetworkAccess to Disabled and reach the workspace through a private endpoint.<br>"
        '<sub>004 "Network isolation"; Azure Policy 438c38d2-3772-465a-a9cc-7a6666a275ce</sub>'
    )
    assert titles == "| Resource | Reason |"
    assert row == (
        "| <details><summary>"
        f"<code>ws</code></summary><code>{WORKSPACE}</code><br>"
        "<code>samples/inference.json&#58;12&#58;1</code></details> | "
        "public network access is not disabled <code>/properties/publicNetworkAccess</code><br>"
        "found <code>Enabled</code>, expected <code>Disabled</code> |"
    )


@pytest.mark.parametrize("group_by", ["resource", "owner", "control", "input"])
@laws
@given(evaluation=evaluations())
def test_grouped_failures_are_all_there(group_by: str, evaluation: Evaluation) -> None:
    """One heading and one table for each group, and a row for each failure in it."""
    groups = group_findings(failed(evaluation), group_by)
    tokens = list(tokens_of(render(evaluation, group_by=group_by)))
    headings = sum(token.type == "heading_open" and token.tag == "h3" for token in tokens)
    rest = sum(token.type == "tr_open" for token in tokens_of(render(evaluation)))
    rest -= len(failed(evaluation)) + len(by_policy(failed(evaluation)))

    assert headings == len(groups) + bool(evaluation.problems)
    assert sum(token.type == "tr_open" for token in tokens) == rest + sum(1 + len(group.findings) for group in groups)


def test_groups_read_as_documented() -> None:
    """A heading, and the rows with the fix of each."""
    by_resource = render(SAMPLES["failures"], group_by="resource", profile="azureml-v2").splitlines()

    assert by_resource[4] == "### <code>ws/train-gpu</code> (1)"
    assert by_resource[6] == "| Severity | Policy | Resource | Reason | Fix |"
    assert ", profile <code>azureml-v2</code>, as of" in by_resource[-1]


def test_why_and_its_page_come_before_the_fix() -> None:
    """Only HTTPS addresses become links, and nothing in one ends it."""
    explained = PUBLIC_ACCESS.model_copy(update={"why": "It is open.", "url": "https://x.example/a>b"})
    assert "It is open. <https://x.example/a%3Eb>\n\nSet" in render(evaluation_of([explained]))
    assert "<javascript" not in render(evaluation_of([explained.model_copy(update={"url": "javascript:x"})]))


def test_a_report_beyond_the_limit_states_what_it_leaves_out() -> None:
    """GitHub refuses larger summaries; the most severe findings are in it."""
    many = [
        PUBLIC_ACCESS.model_copy(update={"resource": f"{WORKSPACE}/computes/c{number}"}) for number in range(1, 3001)
    ]
    worst = ISOLATION.model_copy(update={"policy": "ZZZ-ISO-101"})
    text = render(evaluation_of([*many, worst]))

    assert 700_000 < len(text.encode()) < LIMIT
    assert text.index("ZZZ-ISO-101") < text.index("AML-NET-001")
    left = int(re.findall(r"\*\*(\d+) findings left out", text)[0])
    assert text.count("<summary><code>ws/c") == len(many) - left


def test_why_a_policy_concerns_a_resource_is_a_line_of_its_own() -> None:
    """`because` is not a value for comparisons."""
    denial = Denial(msg="m", actual={"because": "the tag `stage` is `x`", "size": 1}, expected=2)
    text = render(evaluation_of([PUBLIC_ACCESS.model_copy(update={"denials": (denial,)})]))

    assert (
        "m<br>found <code>1</code>, expected <code>2</code><br>because the tag <code>stage</code> is <code>x</code> |"
    ) in text


@pytest.mark.parametrize("name", ["</code><b>", "a|b", "a\\", "*x*", "@octocat", "``", "", "\x1b[31m"])
def test_code_in_a_remedy_is_code_and_nothing_else(name: str) -> None:
    """The text between backticks, whatever it is; a lone backtick stays one."""
    finding = PUBLIC_ACCESS.model_copy(update={"remediation": f"Set `{name}` to `x`, not `", "source": "`y`"})
    text = render(evaluation_of([finding]))
    fix = next(line for line in text.splitlines() if line.startswith("Set"))

    assert fix.endswith("to <code>x</code>, not &#96;<br><sub><code>y</code></sub>") or name in ("", "``")
    assert sum(token.type == "td_open" for token in tokens_of(text)) == 2 + 7
    assert f"Set {visible(name)} to" in text_of(text) or name in ("", "``")


def test_a_bundle_without_a_revision_leaves_no_blank() -> None:
    """An engine without a version leaves no blank, either."""
    evaluation = evaluation_of([PUBLIC_ACCESS])
    bundle = evaluation.bundle.model_copy(update={"name": "ours", "revision": ""})
    bare = evaluation.model_copy(update={"bundle": bundle})

    assert "evaluated with ours as of" in render(bare)
    assert "with 1 policy of ours, snapshot" in " ".join(render_text(bare, form="verbose").split())


@pytest.mark.parametrize(
    "line",
    [
        "## policyeng: 4 failures, 1 exempt, 1 unknown, 1 error, 3 problems",
        "**UNDECIDED: 1 policy error, 2 problems; also 4 failures**",
        "<details><summary>Error (1)</summary>",
        "<details><summary>Unknown (1)</summary>",
        "<details><summary>Exempt (1)</summary>",
        "### Problems",
        "- **error** <code>samples/broken.json&#58;17</code>: <code>not valid UTF-8 at byte 120</code>",
        "| 3 | 5 | 1 | 1 | 1 | 30.00 % | 50.00 % |",
    ],
)
def test_lines_of_every_outcome(line: str) -> None:
    """Every part is shown when it has content."""
    assert line in render(SAMPLES["every outcome"]).splitlines()


def test_parts_without_content_are_left_out() -> None:
    """A compliant run is a headline, the exit, the counts and the evaluated inputs."""
    text = render(SAMPLES["all pass"])
    assert text.startswith("## policyeng: all 2 findings pass\n\n**PASSED: no failures**\n\n| Pass |")
    assert "<details>" not in text
