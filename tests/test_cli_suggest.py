"""`policyeng check --suggest`: text, JSON, exit codes, and what it does not go together with."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from policyeng.cli import run


def called(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Exit code, output and errors of a run."""
    code = run(["check", *words])
    output = capsys.readouterr()
    return code, output.out, output.err


def test_suggestions_as_text_show_what_to_set_where(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is that of the check."""
    sample = str(root / "samples" / "workspaces" / "exempted.json")
    code, out, _ = called(capsys, sample, "--suggest", "--as-of", "2026-06-01T00:00:00Z")

    assert code == 1
    assert 'set /properties/publicNetworkAccess to "Disabled" (now "Enabled") at ' in out
    assert f"{sample}:" in out
    assert "verified: clears AML-NET-001" in out
    assert "paths and values are in the form of Azure Resource Manager" in out


def test_suggestions_as_json_replace_the_report(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In the form of `docs/suggestions.md`."""
    sample = str(root / "samples" / "workspaces" / "exempted.json")
    _, out, _ = called(capsys, sample, "--suggest", "--format", "json", "--as-of", "2026-06-01T00:00:00Z")
    document = json.loads(out)
    example = next(one for one in document["suggestions"] if one["policy"] == "AML-NET-001")
    page = (root / "docs" / "suggestions.md").read_text(encoding="utf-8")

    assert document["suggestionsVersion"] == 1
    assert example["verified"]
    assert example["edits"][0]["patch"] == [
        {"op": "add", "path": "/properties/publicNetworkAccess", "value": "Disabled"}
    ]
    assert example["edits"][0]["places"]["/properties/publicNetworkAccess"]["file"] == sample
    assert [name for name in (*example, *example["edits"][0]) if f"`{name}`" not in page] == []


def test_exempt_failures_are_left_alone(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Unless no exemptions are applied."""
    words = [str(root / "samples" / "workspaces" / "exempted.json"), "--suggest", "--as-of", "2026-06-01T00:00:00Z"]
    exempt = ["--exemptions", str(root / "samples" / "exemptions.yaml")]
    _, some, _ = called(capsys, *words, *exempt)
    _, every, _ = called(capsys, *words, *exempt, "--no-exemptions")

    assert some.count("verified:") < every.count("verified:")


@pytest.mark.parametrize("more", [["--format", "sarif"], ["--group-by", "policy"]])
def test_other_formats_are_a_usage_error(root: Path, capsys: pytest.CaptureFixture[str], more: list[str]) -> None:
    """Both options are named."""
    code, _, err = called(capsys, str(root / "samples" / "workspaces" / "compliant.json"), "--suggest", *more)

    assert code == 3
    assert "--suggest" in err
    assert more[0] in err


def test_nothing_to_fix_is_reported(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A compliant workspace."""
    sample = str(root / "samples" / "workspaces" / "compliant.json")
    code, out, _ = called(capsys, sample, "--suggest", "--as-of", "2026-06-01T00:00:00Z")

    assert code == 0
    assert out == "there are no failures without an exemption\n"


def test_a_plain_check_loads_none_of_it(root: Path) -> None:
    """It must stay quick."""
    script = (
        "import sys\nfrom policyeng.cli import run\nrun(['check', sys.argv[1], '--jobs', '1'])\n"
        "heavy = [name for name in sys.modules if name.startswith(('policyeng.verify', 'jsonpatch'))]\n"
        "print(heavy, file=sys.stderr)"
    )
    result = subprocess.run(
        [sys.executable, "-c", script, str(root / "samples" / "workspaces" / "compliant.json")],
        capture_output=True,
        text=True,
        check=True,
    )

    assert result.stderr.strip().endswith("[]")
