"""The HTML report as text: what it lets run, its content, and its context."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given

from policyeng import __version__
from policyeng.models import Evaluation, Severity
from policyeng.report.context import HistoryPoint, PolicyCategory, ReportContext, Trend
from policyeng.report.html import render
from policyeng.report.html.sections import HtmlFindings, break_down, compliance_chart, describe_result, severity_chart
from tests.report_pages import ABOUT, HOSTILE_ABOUT, POINTS
from tests.report_samples import (
    AS_OF,
    GROUP,
    HOSTILE,
    PUBLIC_ACCESS,
    SAMPLES,
    evaluation_of,
    evaluations,
    laws,
    passing,
)


class Elements(HTMLParser):
    """The tags of a page, with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep a tag."""
        self.tags.append((tag, {name: value or "" for name, value in attrs}))


def between(text: str, begin: str, end: str) -> str:
    """The text between the last `begin` and the `end` after it."""
    return text.rpartition(begin)[2].partition(end)[0]


def test_a_page_lets_run_its_own_style_and_script_and_nothing_else() -> None:
    """By their hashes; it may load nothing, be based nowhere, and send no form."""
    text = render(SAMPLES["every outcome"], about=ABOUT)
    hashes = {
        name: base64.b64encode(hashlib.sha256(between(text, f"<{name}>", f"</{name}>").encode()).digest()).decode()
        for name in ("style", "script")
    }
    [policy] = [entry["content"] for tag, entry in Elements(text).tags if "http-equiv" in entry]

    assert policy == (
        f"default-src 'none'; style-src 'sha256-{hashes['style']}'; script-src 'sha256-{hashes['script']}'; "
        "base-uri 'none'; form-action 'none'"
    )


@pytest.mark.slow
@laws
@given(evaluation=evaluations())
def test_no_text_becomes_markup(evaluation: Evaluation) -> None:
    """Whatever an evaluation contains, only elements and attributes of ours exist, and every link is into the page."""
    elements = Elements(render(evaluation, about=HOSTILE_ABOUT)).tags

    assert not {tag for tag, _ in elements} & {"img", "iframe", "object", "embed", "link", "base", "video", "audio"}
    assert sum(tag == "script" for tag, _ in elements) == 2
    for _, attributes in elements:
        assert not [
            name for name in attributes if name.startswith("on") or name in ("style", "src", "srcdoc", "action")
        ]
        assert re.fullmatch(r"#[a-z]+(-\d+)?|https://[\w.-]+(/[!-~]*)?", attributes.get("href", "#x"))
        if attributes.get("href", "#").startswith("https:"):
            assert attributes["rel"] == "noopener noreferrer"


@pytest.mark.parametrize(
    "address",
    ["javascript:alert(1)", "http://example.com/", "https://user@example.com/", "https://exa mple.com", "https:evil"],
)
def test_only_addresses_on_the_web_become_links(address: str) -> None:
    """Policies name a page; any other text is shown as it is."""
    named = PUBLIC_ACCESS.model_copy(
        update={"why": "Anyone can reach it.", "url": "https://learn.microsoft.com/azure/x"}
    )
    linked = render(evaluation_of([named]))
    other = render(evaluation_of([named.model_copy(update={"url": address})]))

    assert '<p><b>Why:</b> Anyone can reach it. <a class="page" href="https://learn.microsoft.com/azure/x"' in linked
    assert 'class="page"' not in other.partition("</style>")[2].partition("<script>")[0]
    assert f"Anyone can reach it. {address}</p>" in other


def test_the_index_is_json_that_no_name_ends() -> None:
    """The text of a name comes back from it, with invisible characters as escapes."""
    text = render(SAMPLES["hostile"], about=HOSTILE_ABOUT)
    island = text.partition('id="index">')[2].partition("</script>")[0]

    index = json.loads(island)

    assert not set("<>&") & set(island)
    assert len(index["rows"]) == 4
    assert "<script>alert(1)</script>" in index["policies"][0][1]
    assert HOSTILE in json.loads(island.replace("\\\\u", "\\u"))["policies"][0][3]


def test_passes_beyond_a_number_are_counted_with_a_note() -> None:
    """A report on many parts contains those that need a reader, and a count of the others."""
    evaluation = evaluation_of([passing("AML-OPS-103"), passing("AML-OPS-104")])
    more = evaluation.model_copy(
        update={"summary": evaluation.summary.model_copy(update={"pass_": 123_456, "fail": 7})}
    )

    assert "are counted and not listed" not in render(evaluation)
    assert "123,454 of 123,456 passes are counted but not listed." in render(more)
    assert re.search("<h1>[^<]*7 failures</h1>", render(more))
    assert " (listed findings only)</caption>" in render(more)
    assert " (listed findings only)</caption>" not in render(evaluation)


def test_a_page_states_the_policies_the_inputs_and_the_time() -> None:
    """Digests, engine, clock, exit and profile."""
    text = unescape(render(SAMPLES["every outcome"], profile="azureml-v2"))

    for words in ("sha256:" + "ab12" * 16, "sha256:" + "cd34" * 16, "2026-06-01 00:00:00 UTC", "embedded 0.14.1"):
        assert words in text
    assert "profile azureml-v2" in text
    assert "<strong>Undecided.</strong>" in text
    assert "30.00 %" in text
    assert "50.00 %" in text


def test_a_page_is_grouped_as_requested() -> None:
    """The reader may change it."""
    assert '<option value="policy" selected>' in render(SAMPLES["failures"], group_by="policy")
    assert '<option value="" selected>' in render(SAMPLES["failures"])


def test_a_server_s_page_has_ways_elsewhere() -> None:
    """To all estates, and to sign out; its forms go to the server alone."""
    text = render(SAMPLES["failures"], about=ABOUT, served=True)

    assert '<form method="post" action="/sign-out">' in text
    assert '<a href="/">' in text
    assert "form-action &#39;self&#39;" in text
    assert "sign-out" not in render(SAMPLES["failures"], about=ABOUT)


def test_trends_have_a_table_of_the_same() -> None:
    """Two runs at least; one alone is no trend."""
    text = render(SAMPLES["failures"], about=ABOUT)
    row = '<tr><th scope="row">12</th><td data-label="as of">2026-06-01 00:00:00 UTC</td>'
    alone = ReportContext(trend=Trend(estate="production", run=1, points=POINTS[:1]))

    assert row in text
    assert 'id="trends"' not in render(SAMPLES["failures"], about=alone)
    assert "Run 1 of estate production" in render(SAMPLES["failures"], about=alone)


def test_the_top_needs_no_knowledge_of_options() -> None:
    """The result in a sentence; scope, inputs, times and versions each on a line."""
    failures = SAMPLES["failures"]
    snapshot = failures.snapshot.model_copy(update={"scope": GROUP})
    text = unescape(render(failures.model_copy(update={"snapshot": snapshot}), profile="azureml-v2"))
    facts = text.partition('<dl class="at facts">')[2].partition("</dl>")[0]

    for words in (
        "<dd>resource group rg-ml in subscription 11111111-1111-1111-1111-111111111111</dd>",
        "as of 2026-06-01 00:00:00 UTC",
        f"<dd>policyeng {__version__}</dd>",
        ", profile azureml-v2</dd>",
        "<dt>Input",
    ):
        assert words in facts
    head = text.partition("<header>")[2].partition("</header>")[0]
    assert not any(words in head for words in ("exit code", "--", ">="))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"exit_code": 0, "findings": ()}, ("Passed", "no failures.")),
        ({"exit_code": 1}, ("Failed", "1 failure has severity high or higher; 1 failure is less severe.")),
        ({"exit_code": 0}, ("Passed", "1 failure is in the baseline; 1 failure is less severe.")),
        ({"exit_code": 0, "fail_on": Severity.CRITICAL}, ("Passed", "2 failures below severity critical.")),
        ({"exit_code": 2}, ("Undecided", "the evaluation did not complete; 2 failures were found.")),
    ],
)
def test_the_result_is_a_sentence(changes: dict[str, object], words: tuple[str, str]) -> None:
    """With what counts and what does not."""
    findings = [PUBLIC_ACCESS, PUBLIC_ACCESS.model_copy(update={"policy": "AML-X-1", "severity": Severity.LOW})]
    found = evaluation_of(findings if "findings" not in changes else [])
    settled = found.model_copy(update={"fail_on": Severity.HIGH, "problems": (), **changes})

    assert describe_result(settled) == words


def test_bars_have_the_numbers_of_their_rows() -> None:
    """By severity, area, owner and control, without a store; parts of a bar are as wide as their share."""
    charts = {chart.by: chart for chart in break_down(HtmlFindings(SAMPLES["every outcome"], ABOUT, 100))}

    assert list(charts) == ["severity", "area", "owner", "control"]
    assert [bar.label for bar in charts["severity"].bars] == ["critical", "high", "medium", "low", "info"]
    assert sum(bar.counts["fail"] for bar in charts["severity"].bars) == 4
    for chart in charts.values():
        assert max(part.x + part.width for bar in chart.bars for part in bar.parts) == pytest.approx(chart.width)
        for bar in chart.bars:
            assert {part.outcome: part.number for part in bar.parts} == {
                outcome: bar.counts[outcome] for outcome in chart.outcomes if outcome != "pass" and bar.counts[outcome]
            }
    assert {"research", "ml-platform"} <= {bar.label for bar in charts["owner"].bars}


def test_charts_have_the_worst_rows_and_count_the_others() -> None:
    """Ten of each; none if everything passes, and none of owners if no owner is known."""
    kinds = {f"P-{number:02}": PolicyCategory(f"area-{number:02}") for number in range(12)}
    findings = [PUBLIC_ACCESS.model_copy(update={"policy": policy, "owner": "", "controls": ()}) for policy in kinds]
    charts = break_down(HtmlFindings(evaluation_of(findings), ReportContext(kinds=kinds), 100))

    assert [(chart.by, len(chart.bars), chart.left) for chart in charts] == [("severity", 5, 0), ("area", 10, 2)]
    assert break_down(HtmlFindings(evaluation_of([passing("AML-OPS-103")]), ABOUT, 100)) == []


def test_compliance_runs_from_the_bottom_to_the_top() -> None:
    """0 percent is on the lower axis, 100 on the upper line; later runs are further right."""
    points = [
        HistoryPoint(run=run, as_of=AS_OF, strict=strict, azure=100) for run, strict in enumerate([0, 50, 100], 1)
    ]
    strict, azure = compliance_chart(points).series

    assert [mark.y for mark in strict.marks] == [210, 111, 12]
    assert {mark.y for mark in azure.marks} == {12}
    assert [mark.x for mark in strict.marks] == sorted({mark.x for mark in strict.marks})
    assert strict.marks[1].label == "run 2, 2026-06-01: 50.00 % strict"


@pytest.mark.parametrize(
    ("most", "highest"), [(0, 4), (4, 4), (5, 5), (7, 8), (11, 15), (99, 100), (301, 400), (2050, 2500)]
)
def test_bars_of_severities_are_stacked(most: int, highest: int) -> None:
    """Together as high as all failures; the axis ends at a round number above the highest."""
    points = [
        HistoryPoint(
            run=1, as_of=AS_OF, strict=0, azure=0, failures={Severity.HIGH: most - most // 2, Severity.LOW: most // 2}
        )
    ]
    chart = severity_chart(points)
    bars = [mark for series in chart.series for mark in series.marks]

    assert chart.values[-1].label == str(highest)
    assert [tick.label for tick in chart.values] == [
        f"{highest * n // (len(chart.values) - 1)}" for n in range(len(chart.values))
    ]
    assert sum(mark.height for mark in bars) == pytest.approx(198 * most / highest, abs=0.1)


def test_a_plain_check_imports_no_templates(root: Path) -> None:
    """Cold start counts."""
    program = (
        "import sys; from policyeng.cli import run; run(['check', 'samples/workspaces/compliant.json'])\n"
        "print([name for name in sys.modules if name.startswith(('jinja2', 'markupsafe'))], file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=root)
    assert ran.stderr.strip() == "[]"
