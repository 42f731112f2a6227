"""The options of reports on the command line, and `policyeng report`."""

from __future__ import annotations

import json
import sys
from io import StringIO
from pathlib import Path

import pytest

from policyeng.cli import run
from policyeng.cli.console import detect_terminal
from policyeng.errors import UsageError
from policyeng.report.json import render
from tests.report_samples import SAMPLES


class Terminal(StringIO):
    """A standard output that is a terminal without a size of its own."""

    def isatty(self) -> bool:
        """It is one."""
        return True

    def fileno(self) -> int:
        """A terminal without a user."""
        return 1


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A JSON report of an evaluation with failures."""
    path = tmp_path / "report.json"
    path.write_text(render(SAMPLES["failures"]), encoding="utf-8")
    return path


def test_a_saved_report_becomes_every_other_format(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Printed and written, without evaluating anything, and with exit 0."""
    page = saved.with_suffix(".html")

    assert run(["report", str(saved), "--format", "sarif", "--output", f"html={page}"]) == 0
    (sarif,) = json.loads(capsys.readouterr().out)["runs"]
    assert [result["ruleId"] for result in sarif["results"]][-1] == "AML-NET-001"
    assert "AML-ISO-101" in page.read_text(encoding="utf-8")


def test_what_is_no_report_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the place and the reason."""
    path = tmp_path / "other.json"
    path.write_text("{}", encoding="utf-8")

    assert run(["report", str(path)]) == 2
    assert "not a JSON report: an empty object" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("variable", "options", "start"),
    [
        ("GITHUB_ACTIONS", [], "::error "),
        ("TF_BUILD", [], "##vso[task.logissue "),
        ("TF_BUILD", ["--quiet"], "samples/inference.json:48:1: critical"),
        ("GITHUB_ACTIONS", ["--format", "csv"], "policy,title"),
    ],
)
def test_build_agents_get_their_format(
    saved: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    options: list[str],
    start: str,
) -> None:
    """Unless a format, or an option of text, is given."""
    monkeypatch.setenv(variable, "true")

    assert run(["report", str(saved), *options]) == 0
    assert capsys.readouterr().out.startswith(start)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--quiet", "--summary"], "--summary and --quiet exclude each other"),
        (["--all", "--verbose"], "--all does not apply to --verbose"),
        (["--quiet", "--format", "json"], "--quiet does not apply to json"),
        (["--group-by", "owner", "--format", "csv"], "--group-by does not apply to csv"),
        (["--color", "sometimes"], "unknown value `sometimes` of --color"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    saved: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    """Before anything is printed."""
    assert run(["report", str(saved), *options]) == 3
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err


@pytest.mark.parametrize(
    ("environment", "option", "colored"),
    [
        ({}, None, True),
        ({"TERM": "dumb"}, None, False),
        ({"NO_COLOR": "1"}, None, False),
        ({"NO_COLOR": ""}, None, True),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, None, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, None, True),
        ({"NO_COLOR": "1"}, "always", True),
        ({}, "never", False),
    ],
)
def test_color(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], option: str | None, colored: bool) -> None:
    """The option precedes the environment, and that the abilities of the terminal."""
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setattr("os.get_terminal_size", lambda _: type("Size", (), {"columns": 90}))

    assert detect_terminal(option) == (colored, 90)


def test_colors_can_be_forced_into_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """As logs of build agents show them."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys, "stdout", StringIO())
    assert detect_terminal() == (True, 100)
    with pytest.raises(UsageError):
        detect_terminal("green")


def test_exit_zero_passes_failures_and_nothing_worse(root: Path, tmp_path: Path) -> None:
    """A run that could not decide stays one."""
    sample = str(root / "samples" / "workspaces" / "exempted.json")
    given = ["check", sample, "--select", "AML-NET-001", "--quiet"]
    broken = tmp_path / "broken.json"
    broken.write_text("{", encoding="utf-8")

    assert run(given) == 1
    assert run([*given, "--exit-zero"]) == 0
    assert run(["check", str(broken), "--exit-zero"]) == 2


def test_findings_of_terraform_have_its_names(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of the resource and of the field, also of one that the plan does not set."""
    plan = str(root / "samples" / "formats" / "plan.json")
    run(["check", plan, "--select", "AML-CMP-002,AML-CMP-008", "--format", "json"])
    findings = {entry["policy"]: entry for entry in json.loads(capsys.readouterr().out)["findings"]}
    named = {
        policy: (entry["location"]["address"], [at["address"] for at in entry["location"]["fields"].values()])
        for policy, entry in findings.items()
        if entry["outcome"] == "fail"
    }

    assert named == {
        "AML-CMP-002": ("azurerm_machine_learning_compute_cluster.scoring", ["subnet_resource_id"]),
        "AML-CMP-008": ("azurerm_machine_learning_compute_cluster.scoring", ["scale_settings[0].min_node_count"]),
    }


def test_findings_know_their_policy_and_owner(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The area, the controls, why, a page and the owner, from the tag that an option can name."""
    sample = str(root / "samples" / "workspaces" / "regulated.json")
    run(["check", sample, "--select", "AML-NET-001", "--format", "json"])
    (finding,) = json.loads(capsys.readouterr().out)["findings"]

    assert finding["area"] == "network"
    assert "mcsb-v1:NS-2" in finding["controls"]
    assert finding["why"].endswith(".")
    assert finding["url"].startswith("https://learn.microsoft.com/")
    assert finding["owner"] == "ml-platform@contoso.example"
    run(["check", sample, "--select", "AML-NET-001", "--format", "json", "--owner-tag", "nothing"])
    assert json.loads(capsys.readouterr().out)["findings"][0]["owner"] == ""
