"""`policyeng verify`: what it prints, what it writes and how it exits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from junitparser import JUnitXml

from tests.bundles import deny_when, rego, write
from tests.command import policyeng

pytestmark = pytest.mark.slow

BROKEN = Path(__file__).parent / "broken"
QUICK = ("verify", "--seed", "1", "--examples", "40", "--no-database")


@pytest.fixture
def honest(tmp_path: Path) -> str:
    """A bundle with one policy that breaks no law."""
    text = rego("a", deny_when("input.resource.properties.publicNetworkAccess == `Enabled`"))
    return str(write(tmp_path / "honest", {"area/a/a.rego": text}))


def test_laws_that_hold_exit_0_and_print_the_counts(honest: str) -> None:
    """A row for each law, the seed and the counts."""
    ran = policyeng(*QUICK, "--policy", honest, "--law", "2,total", "--law", "both-sides")
    lines = ran.stdout.splitlines()

    assert (ran.returncode, ran.stderr) == (0, "")
    assert [line.split()[:3] for line in lines[1:4]] == [
        ["2", "order", "40"],
        ["4", "total", "40"],
        ["9", "both-sides", "40"],
    ]
    assert lines[-2].startswith("seed 1: 40 examples with ")
    assert lines[-1] == "exit 0: 3 laws hold"


def test_a_violated_law_exits_1_with_files_that_check_accepts(tmp_path: Path) -> None:
    """The printed command evaluates the written snapshot."""
    file = tmp_path / "smallest.json"

    ran = policyeng(*QUICK, "--law", "monotone", "--policy", str(BROKEN / "monotone"), "--counterexample", str(file))
    command = next(line for line in ran.stdout.splitlines() if "see it" in line).split("policyeng ")[1]
    again = policyeng(*command.split())

    assert ran.returncode == 1
    assert "violated: law 14, monotone: a value that a policy calls stricter adds no denial" in ran.stdout
    assert "BROKEN-MONOTONE-001" in ran.stdout
    assert "a stricter value adds a denial" in ran.stdout
    assert (again.returncode, again.stderr) == (0, "")  # it passes, and fails once a value is stricter
    assert str(file) in command


def test_a_counterexample_that_fails_to_be_written_costs_no_report(tmp_path: Path) -> None:
    """A disk may fill up on the way: the snapshot is printed instead."""
    file = str(tmp_path / ("x" * 256))

    ran = policyeng(*QUICK, "--law", "monotone", "--policy", str(BROKEN / "monotone"), "--counterexample", file)

    assert ran.returncode == 3
    assert "exit 1: 1 of 1 laws violated" in ran.stdout
    assert '"snapshotVersion": 1' in ran.stdout
    assert "cannot write the counterexample: file name too long" in ran.stderr


@pytest.mark.parametrize("examples", ["3", "12"])
def test_documents_of_a_violation_are_a_file_that_check_evaluates_alike(tmp_path: Path, examples: str) -> None:
    """A policy in Conftest's form breaks on the written document as it did on the drawn one."""
    file, policies = tmp_path / "smallest.json", str(BROKEN / "documents")
    options = ("verify", "--seed", "7", "--examples", examples, "--no-database", "--law", "total", "--policy", policies)

    ran = policyeng(*options, "--counterexample", str(file))
    command = next(line for line in ran.stdout.splitlines() if "see it" in line).split("policyeng ")[1]
    again = policyeng(*command.split())

    assert ran.returncode == 1
    assert "note" not in ran.stdout
    assert json.loads(file.read_text()) == {"size": "small", "public": True, "replicas": None}
    assert again.returncode == 2
    assert "eval_conflict_error: " in ran.stdout
    assert "eval_conflict_error: " in again.stdout.replace("\n    ", " ")


def test_the_database_is_below_the_current_directory(tmp_path: Path) -> None:
    """It is written when something fails, and the next run begins with it."""
    given = ("--law", "monotone", "--policy", str(BROKEN / "monotone"), "--format", "json")

    first = policyeng("verify", "--seed", "1", "--examples", "40", *given, folder=tmp_path)
    second = policyeng("verify", "--seed", "7", "--examples", "5", *given, folder=tmp_path)

    assert (first.returncode, second.returncode) == (1, 1)
    (kept,) = (tmp_path / ".policyeng/verify").iterdir()
    (violation,) = json.loads(second.stdout)["violations"]
    assert violation["again"] is True
    assert violation["kept"] == str(kept.relative_to(tmp_path))
    assert violation["snapshot"]["snapshotVersion"] == 1


def test_junit_has_a_case_for_each_law() -> None:
    """A failure names policy and message."""
    ran = policyeng(*QUICK, "--law", "monotone,total", "--policy", str(BROKEN / "monotone"), "--format", "junit")
    (suite,) = JUnitXml.fromstring(ran.stdout.encode())

    assert (suite.tests, suite.failures, suite.errors) == (2, 1, 0)
    passed, violated = suite
    assert (passed.name, passed.result) == ("4 total", [])
    assert "BROKEN-MONOTONE-001" in violated.result[0].message


def test_a_bundle_that_evaluates_nothing_exits_2(tmp_path: Path) -> None:
    """No law holds without a finding."""
    text = rego("a", deny_when("true")).replace(
        "judges: [Microsoft.MachineLearningServices/workspaces]", "judges: [{type: Unknown/type, where: {/a: [b]}}]"
    )
    policies = write(tmp_path / "p", {"area/a/a.rego": f"{text}\napplies := false\n"})

    ran = policyeng(
        "verify", "--seed", "7", "--examples", "5", "--no-database", "--law", "total", "--policy", str(policies)
    )

    assert ran.returncode == 2
    assert "exit 2: no example has anything that the policies evaluate" in ran.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--law", "orders"), "no law is called `orders`; did you mean `order`"),
        (("--law", "12"), "the laws are 1 repeatable, 2 order, 3 observed, 4 total, 8 engines, 9 both-sides"),
        (("--engines", "--law", "monotone"), "`--law` does not apply to `--engines`"),
        (("--pairs", "5"), "`--pairs` does not apply to the laws"),
        (("--engines", "--format", "junit"), "unknown format `junit`; choose from text, json"),
        (("--database", "x", "--no-database"), "cannot be combined"),
        (("--examples", "0"), "examples"),
    ],
)
def test_wrong_usage_exits_3_and_prints_what_to_do(arguments: tuple[str, ...], message: str) -> None:
    """Nothing is tried by mistake."""
    ran = policyeng("verify", *arguments)

    assert ran.returncode == 3
    assert message in ran.stderr
    assert ran.stdout == ""
