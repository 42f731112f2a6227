"""The conformance run: what it says of an engine that differs, fails, refuses or breaks down."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CASES = """
cases:
  - note: folder/a case
    query: data.p.x = x
    modules:
      - "package p\\n\\nx := input.on"
    input:
      on: {size: 1}
    want_result:
      - x: {size: 1}
"""
STRICT = """
cases:
  - note: folder/undefined unless strict
    query: data.p.x = x
    modules:
      - "package p\\n\\nx := to_number(\\"a\\")"
    want_result: []
"""


def run(folder: Path, cases: str, answer: str) -> tuple[int, list[dict[str, str]], str]:
    """Runs cases on an engine that says one thing to everything: exit code, outcomes, and what was complained of."""
    engine = folder / "engine"
    engine.write_text(f"#!{sys.executable}\nimport sys\nfor _ in sys.stdin:\n    {answer}\n", encoding="utf-8")
    engine.chmod(0o755)
    (folder / "cases" / "folder").mkdir(parents=True)
    (folder / "cases" / "folder" / "test.yaml").write_text(cases, encoding="utf-8")
    lines = folder / "lines"
    command = [sys.executable, "tools/run_conformance.py", "--verify", "--cases", str(folder / "cases")]
    command += ["--opa", ".tools/bin/opa", "--engine", str(engine), "--lines", str(lines)]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    outcomes = [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]
    return said.returncode, outcomes, said.stderr


def says(answer: object) -> str:
    """The code of an engine that answers so."""
    return f"print({json.dumps(answer)!r}, flush=True)"


RVM = {"engine": "rvm", "why": ""}
VERDICTS = {
    "the same value": (CASES, says({**RVM, "value": '[{"x": {"size": 1.0}}]'}), "passed"),
    "another value": (CASES, says({**RVM, "value": '[{"x": {"size": true}}]'}), "silent"),
    "nothing": (CASES, says({**RVM, "value": "[]"}), "silent"),
    "undefined": (CASES, says(RVM), "silent"),
    "an error": (CASES, says({**RVM, "fault": ["builtin", "no"]}), "failed"),
    "a missing builtin": (CASES, says({"refused": "p.rego:1:1: `a.b` is no function of this engine"}), "unsupported"),
    "a refusal": (CASES, says({"refused": "p.rego:1:1: not like this"}), "refused"),
    "a crash": (CASES, "sys.exit(1)", "failed"),
    "undefined where strict OPA is in error": (STRICT, says({**RVM, "value": "[]"}), "silent"),
    "an error where strict OPA is in error": (STRICT, says({**RVM, "fault": ["builtin", "no"]}), "passed"),
}


@pytest.mark.parametrize("name", VERDICTS)
def test_every_difference_has_its_verdict(name: str, tmp_path: Path) -> None:
    """A page that would change fails the run, and so does a difference in silence."""
    cases, answer, verdict = VERDICTS[name]
    code, outcomes, complaint = run(tmp_path, cases, answer)
    assert [outcome["verdict"] for outcome in outcomes] == [verdict, verdict]
    assert code == 1
    assert "docs/conformance.md is stale" in complaint
    assert ("differs in silence (product): folder: folder/" in complaint) == (verdict == "silent")


def test_the_page_is_of_a_run_without_silent_differences() -> None:
    """The page that stands in the repository says so, and names the versions that the build uses."""
    page = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    version = makefile.partition("OPA_VERSION := ")[2].split()[0]
    assert f"OPA {version} carries" in page
    assert "None, on either way of judging." in page
