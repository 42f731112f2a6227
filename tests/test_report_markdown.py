"""Markdown, read back by markdown-it (CommonMark with GitHub's tables)."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from markdown_it import MarkdownIt
from markdown_it.token import Token

from policyeng.models import Denial, Evaluation, Outcome
from policyeng.report.escaping import compact, visible
from policyeng.report.markdown import render
from policyeng.report.phrases import denials, exempt, failed
from policyeng.report.text import render as render_text
from tests.report_samples import PUBLIC_ACCESS, SAMPLES, WORKSPACE, evaluation_of, evaluations, laws

_TAG = re.compile(r"</?(?:code|br|sub|details|summary)>")
_PARSER = MarkdownIt("commonmark").enable("table")


def tokens_of(text: str) -> Iterator[Token]:
    """Every token, those within a line too."""
    for token in _PARSER.parse(text):
        yield token
        yield from token.children or ()


def text_of(text: str) -> str:
    """What a reader sees."""
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
    assert rows == sum(1 + len(group) for group in groups if group) + 2


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
                    assert f"actual {compact(denial.actual)}, expected" in text


def test_a_failure_reads_as_documented() -> None:
    """Severity, policy, resource with the whole id folded away, what, and how to mend it with why."""
    row = render(SAMPLES["below the limit"]).splitlines()[6]
    assert row == (
        "| high | <code>AML-NET-001</code><br>Public network access to the workspace is disabled | <details><summary>"
        f"<code>ws</code></summary><code>{WORKSPACE}</code><br>"
        "<code>samples/inference.json&#58;12&#58;1</code></details> | "
        "public network access is not disabled <code>/properties/publicNetworkAccess</code><br>"
        'actual <code>"Enabled"</code>, expected <code>"Disabled"</code> | '
        "Set publicNetworkAccess to Disabled and reach the workspace through a private endpoint.<br>"
        '<sub>004 "Network isolation"; Azure Policy 438c38d2-3772-465a-a9cc-7a6666a275ce</sub> |'
    )


@pytest.mark.parametrize("group_by", ["resource", "policy"])
@laws
@given(evaluation=evaluations())
def test_grouped_failures_are_all_there(group_by: str, evaluation: Evaluation) -> None:
    """One heading for each resource or policy that fails, one row for each failure, and no markup but ours."""
    plain, grouped = render(evaluation), render(evaluation, group_by=group_by)
    failures = failed(evaluation)
    tables = sum(token.type == "table_open" for token in tokens_of(grouped)) - (
        sum(token.type == "table_open" for token in tokens_of(plain)) - bool(failures)
    )
    rows = [sum(token.type == "tr_open" for token in tokens_of(text)) for text in (plain, grouped)]

    assert tables == sum(token.type == "heading_open" and token.tag == "h3" for token in tokens_of(grouped)) - bool(
        evaluation.problems
    )
    assert rows[1] - tables == rows[0] - bool(failures)
    for token in tokens_of(grouped):
        assert token.type not in ("link_open", "image", "code_inline", "em_open", "fence", "code_block", "s_open")
        if token.type in ("html_inline", "html_block"):
            assert "<" not in _TAG.sub("", token.content)


def test_groups_read_as_documented() -> None:
    """A heading, what the rows have in common once, and the rows."""
    by_policy = render(SAMPLES["failures"], group_by="policy", profile="azureml-v2").splitlines()
    by_resource = render(SAMPLES["failures"], group_by="resource").splitlines()

    assert by_policy[4:8] == [
        "### critical <code>AML-ISO-101</code> Regulated work runs on an isolated VM size",
        "",
        "Choose one of the isolated sizes, or move the regulated data out of the workspace.<br>"
        '<sub>001 "Compute isolation"</sub>',
        "",
    ]
    assert by_policy[8] == "| Resource | Reason |"
    assert ", profile <code>azureml-v2</code>, as of" in by_policy[-1]
    assert by_resource[4] == "### <code>ws/train-gpu</code>"
    assert by_resource[8] == "| Severity | Policy | Reason | Fix |"


def test_why_a_policy_concerns_a_resource_is_a_line_of_its_own() -> None:
    """`because` is no value that somebody compares."""
    denial = Denial(msg="m", actual={"because": "the tag `stage` is `x`", "size": 1}, expected=2)
    text = render(evaluation_of([PUBLIC_ACCESS.model_copy(update={"denials": (denial,)})]))

    assert (
        'm<br>actual <code>&#123;"size": 1&#125;</code>, expected <code>2</code>'
        "<br>because the tag <code>stage</code> is <code>x</code> |"
    ) in text


@pytest.mark.parametrize("name", ["</code><b>", "a|b", "a\\", "*x*", "@octocat", "``", "", "\x1b[31m"])
def test_code_in_a_remedy_is_code_and_nothing_else(name: str) -> None:
    """What stands between backticks, whatever it is; a lone backtick stays one."""
    finding = PUBLIC_ACCESS.model_copy(update={"remediation": f"Set `{name}` to `x`, not `", "source": "`y`"})
    text = render(evaluation_of([finding]))
    row = next(line for line in text.splitlines() if line.startswith("| high"))

    assert row.endswith("to <code>x</code>, not &#96;<br><sub><code>y</code></sub> |") or name in ("", "``")
    assert sum(token.type == "td_open" for token in tokens_of(text)) == 5 + 7
    assert f"Set {visible(name)} to" in text_of(text) or name in ("", "``")


def test_a_bundle_without_a_revision_leaves_no_blank() -> None:
    """Nor does an engine without a version."""
    evaluation = evaluation_of([PUBLIC_ACCESS])
    bundle = evaluation.bundle.model_copy(update={"name": "ours", "revision": ""})
    bare = evaluation.model_copy(update={"bundle": bundle})

    assert "evaluated with ours as of" in render(bare)
    assert "with 1 policy of ours, snapshot" in " ".join(render_text(bare).split())


@pytest.mark.parametrize(
    "line",
    [
        "## policyeng: 4 failures, 1 exempt, 1 unknown, 1 error, 3 problems",
        "**exit 2: could not decide: 1 policy error, 2 problems; also 4 failures**",
        "<details><summary>Error (1)</summary>",
        "<details><summary>Unknown (1)</summary>",
        "<details><summary>Exempt (1)</summary>",
        "### Problems",
        "- **error** <code>samples/broken.json&#58;17</code>: <code>not valid UTF-8 at byte 120</code>",
        "| 3 | 5 | 1 | 1 | 1 | 30.00 % | 50.00 % |",
    ],
)
def test_lines_of_every_outcome(line: str) -> None:
    """Every part is there when there is something to say."""
    assert line in render(SAMPLES["every outcome"]).splitlines()


def test_parts_with_nothing_to_say_are_left_out() -> None:
    """A compliant run is a headline, the exit, the counts and what was judged."""
    text = render(SAMPLES["all pass"])
    assert text.startswith("## policyeng: all 2 findings pass\n\n**exit 0: no failures**\n\n| Pass |")
    assert "<details>" not in text
