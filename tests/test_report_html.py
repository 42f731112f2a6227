"""The HTML report as text: what it lets run, what it says, and what stands beside the evaluation."""

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

from policyeng.models import Evaluation, Severity
from policyeng.report.context import ReportContext
from policyeng.report.history import HistoryPoint, Trend
from policyeng.report.html import render
from policyeng.report.html.charts import compliance_chart, severity_chart
from tests.report_pages import ABOUT, HOSTILE_ABOUT, POINTS
from tests.report_samples import AS_OF, HOSTILE, SAMPLES, evaluation_of, evaluations, laws, passing


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
    """What stands between the last `begin` and the `end` after it."""
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


@laws
@given(evaluation=evaluations())
def test_no_text_becomes_markup(evaluation: Evaluation) -> None:
    """Whatever an evaluation says, there are the elements and attributes of ours, and every link is into the page."""
    elements = Elements(render(evaluation, about=HOSTILE_ABOUT)).tags

    assert not {tag for tag, _ in elements} & {"img", "iframe", "object", "embed", "link", "base", "video", "audio"}
    assert sum(tag == "script" for tag, _ in elements) == 2
    for _, attributes in elements:
        assert not [
            name for name in attributes if name.startswith("on") or name in ("style", "src", "srcdoc", "action")
        ]
        assert re.fullmatch(r"#[a-z]+(-\d+)?", attributes.get("href", "#x"))


def test_the_index_is_json_that_no_name_ends() -> None:
    """What a name says comes back from it, with what cannot be seen as an escape."""
    text = render(SAMPLES["hostile"], about=HOSTILE_ABOUT)
    island = text.partition('id="index">')[2].partition("</script>")[0]

    index = json.loads(island)

    assert not set("<>&") & set(island)
    assert len(index["rows"]) == 4
    assert "<script>alert(1)</script>" in index["policies"][0][1]
    assert HOSTILE in json.loads(island.replace("\\\\u", "\\u"))["policies"][0][3]


def test_passes_beyond_a_number_are_counted_and_that_is_said() -> None:
    """A report on many parts holds those that need a reader, and a count of the others."""
    evaluation = evaluation_of([passing("AML-OPS-103"), passing("AML-OPS-104")])
    more = evaluation.model_copy(
        update={"summary": evaluation.summary.model_copy(update={"pass_": 123_456, "fail": 7})}
    )

    assert "are counted and not listed" not in render(evaluation)
    assert "123,454 of 123,456 passes are counted but not listed." in render(more)
    assert "<h1>7 failures</h1>" in render(more)
    assert " (listed findings only)</caption>" in render(more)
    assert " (listed findings only)</caption>" not in render(evaluation)


def test_a_page_says_what_judged_what_and_when() -> None:
    """Digests, engine, clock, exit and profile."""
    text = unescape(render(SAMPLES["every outcome"], profile="azureml-v2"))

    for words in ("sha256:" + "ab12" * 16, "sha256:" + "cd34" * 16, "2026-06-01T00:00:00Z", "embedded 0.14.1"):
        assert words in text
    assert "profile azureml-v2" in text
    assert "UNDECIDED: " in text
    assert "30.00 %" in text
    assert "50.00 %" in text


def test_a_page_is_grouped_as_asked() -> None:
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
    row = '<tr><th scope="row">12</th><td>2026-06-01T00:00:00Z</td><td>72.00 %</td><td>76.00 %</td><td>3</td><td>0</td>'
    alone = ReportContext(trend=Trend(estate="production", run=1, points=POINTS[:1]))

    assert row in text
    assert "<svg" not in render(SAMPLES["failures"], about=alone)
    assert "Run 1 of estate production" in render(SAMPLES["failures"], about=alone)


def test_compliance_runs_from_the_bottom_to_the_top() -> None:
    """0 percent stands on the lower axis, 100 on the upper line; later runs stand further right."""
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
def test_bars_of_severities_stand_on_each_other(most: int, highest: int) -> None:
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
