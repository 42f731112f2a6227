"""The controls of frameworks in stored runs."""

from __future__ import annotations

import csv
import json
from io import StringIO
from pathlib import Path

import pytest

from tests.command import policyeng

SAMPLE = Path(__file__).parents[1] / "samples" / "workspaces" / "exempted.json"


@pytest.fixture
def audited(tmp_path: Path) -> Path:
    """A folder with a store of two runs, between which a failure of public network access is fixed."""
    text = SAMPLE.read_text(encoding="utf-8")
    for day, content in (("01", text), ("02", text.replace('"Enabled"', '"Disabled"'))):
        (tmp_path / "s.json").write_text(content, encoding="utf-8")
        given = ("--input", "s.json", "--estate", "e", "--as-of", f"2026-06-{day}T00:00:00Z", "--select", "AML-NET-001")
        assert policyeng("audit", "run", *given, folder=tmp_path).returncode in (0, 1)
    return tmp_path


def test_the_trend_has_each_control_in_each_run(audited: Path) -> None:
    """The status is that of the policies and the findings of the run, in every format."""
    printed = {
        name: policyeng("audit", "history", "e", "--framework", "mcsb-v1", "--format", name, folder=audited).stdout
        for name in ("text", "json", "csv", "markdown")
    }
    [entry] = json.loads(printed["json"])
    assert [run["controls"]["NS-2"] for run in entry["runs"]] == ["failing", "passing"]
    rows = list(csv.DictReader(StringIO(printed["csv"])))
    assert [row["status"] for row in rows if row["control"] == "NS-2"] == ["failing", "passing"]
    assert any(line.split() == ["NS-2", "failing", "passing"] for line in printed["text"].splitlines())
    assert "| failing | passing |" in printed["markdown"]
    assert "compliant" not in printed["text"]


def test_a_report_of_a_run_has_the_controls(audited: Path) -> None:
    """The newest run, or an earlier one."""
    report = ("audit", "report", "e", "--framework", "mcsb-v1", "--format", "json")
    for number, status in (("1", "failing"), ("2", "passing")):
        [framework] = json.loads(policyeng(*report, "--run", number, folder=audited).stdout)["frameworks"]
        assert {one["id"]: one["status"] for one in framework["controls"]}["NS-2"] == status


def test_what_cannot_be_shown_is_refused(audited: Path) -> None:
    """With the nearest name, or the command that has it."""
    unknown = policyeng("audit", "history", "e", "--framework", "mcsb-v9", folder=audited)
    assert (unknown.returncode, "mcsb-v1" in unknown.stderr) == (3, True)
    spread = policyeng("audit", "report", "e", "--framework", "mcsb-v1", "--format", "csv", folder=audited)
    assert (spread.returncode, "audit history --framework" in spread.stderr) == (3, True)
    late = policyeng("audit", "history", "e", "--framework", "mcsb-v1", "--since", "9", folder=audited)
    assert (late.returncode, "omit `--since`" in late.stderr) == (3, True)
