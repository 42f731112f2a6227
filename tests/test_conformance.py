"""The conformance run: the verdict on a case that passes, fails, is refused or differs, and the exit code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

from conformance.cases import Case  # noqa: E402
from conformance.page import make_page  # noqa: E402
from conformance.verdicts import Outcome, Verdict, evaluate_case  # noqa: E402

# A module, what the case expects (None for an error) and the verdict.
VERDICTS: dict[str, tuple[str, object, Verdict]] = {
    "the same value": ("x := input.on", {"size": 1.0}, "passed"),
    "another type": ("x := input.on", {"size": True}, "silent"),
    "another value": ("x := input.on", {"size": 2}, "silent"),
    "nothing": ("x := 1 if false", 1, "silent"),
    "a value for an error": ("x := 1", None, "silent"),
    "an error for an error": ("x := 1\nx := 2", None, "passed"),
    "a refusal for an error": ("x := y", None, "passed"),
    "an error for a value": ('x := sprintf("%v", [2e308])', "2e+308", "failed"),
    "an error of strict OPA for a value": ('x := {"a": to_number("b")}', 1, "passed"),
    "a refused builtin": ("x := rand.intn(`a`, 3)", 1, "refused"),
    "the time": ("x := time.now_ns()", 1767225600000000000, "passed"),
    "a refused module": ("x := y", 1, "failed"),
}


@pytest.mark.parametrize("name", VERDICTS)
def test_each_difference_has_its_verdict(name: str, opa: Path) -> None:
    """Values are compared with their types, and errors with those of strict OPA."""
    module, expected, verdict = VERDICTS[name]
    rows = None if expected is None else [{"x": expected}]
    modules = {"p.rego": f"package p\n\n{module}\n"}
    case = Case(1, "folder", "note", "data.p.x = x", modules, "{}", '{"on": {"size": 1}}', None, rows, unordered=False)
    assert evaluate_case(case, opa)[0] == verdict


@pytest.mark.parametrize(("order", "verdict"), [(True, "passed"), (False, "silent")])
def test_order_matters_unless_a_case_states_otherwise(order: bool, verdict: str, opa: Path) -> None:
    """For the arrays of variables."""
    expected = [{"x": [2, 1]}]
    case = Case(1, "folder", "note", "x = [1, 2]", {}, "{}", None, None, expected, unordered=order)
    assert evaluate_case(case, opa)[0] == verdict


def test_an_input_may_be_a_term(opa: Path) -> None:
    """For a set, which JSON does not have."""
    case = Case(1, "folder", "note", "x = input", {}, "{}", None, "{1, 2}", [{"x": [1, 2]}], unordered=False)
    assert evaluate_case(case, opa) == ("passed", "")


CASES = """
cases:
  - note: folder/a case
    query: data.p.x = x
    modules: ["package p\\n\\nx := input.on"]
    input: {on: {size: 1}}
    want_result: [{x: {size: 1}}]
"""


@pytest.mark.parametrize(("cases", "message"), [(CASES, ""), (CASES.replace("x: {size: 1}", "x: 2"), "differs: v1/f")])
def test_a_difference_and_a_stale_page_end_the_run(cases: str, message: str, tmp_path: Path) -> None:
    """With the exit code 1."""
    (tmp_path / "v1" / "folder").mkdir(parents=True)
    (tmp_path / "v1" / "folder" / "test.yaml").write_text(cases, encoding="utf-8")
    command = [
        sys.executable,
        "tools/run_conformance.py",
        "--verify",
        "--cases",
        str(tmp_path),
        "--opa",
        ".tools/bin/opa",
    ]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert message in ran.stderr
    assert "docs/conformance.md is stale" in ran.stderr


def test_the_page_lists_what_does_not_pass() -> None:
    """With the share of those that pass."""
    outcomes = [Outcome(1, "folder", f"folder/{n}", "passed", "") for n in range(3)]
    outcomes.append(Outcome(1, "folder", "folder/refused", "refused", "time.now_ns"))
    page = make_page([*outcomes, Outcome(0, "folder", "folder/a|b", "failed", "p.rego:1: eval_x_error: no")], "v9.9.9")
    assert "compared with OPA v9.9.9" in page
    assert "3 of the 4 cases that need no refused builtin pass (75.00 %)" in page
    assert "| `time.now_ns` | 1 |" in page
    assert "| folder/a\\|b | v0 | no |" in page


def test_the_page_is_of_the_version_that_the_build_uses() -> None:
    """And of a run without silent differences."""
    page = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    version = makefile.partition("OPA_VERSION := ")[2].split()[0]
    assert f"compared with OPA {version}." in page
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith(("| v1 |", "| v0 |"))]
    assert [row[-1] for row in rows] == ["0 |", "0 |"]
