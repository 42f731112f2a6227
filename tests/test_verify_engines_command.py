"""`policyeng verify --engines`: what it prints, what it writes and how it exits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from policyeng.cli import run
from policyeng.engines import Judgement
from policyeng.verify import differential as engines
from policyeng.verify.differential import Contestant
from tests.bundles import deny_when, rego, write
from tests.command import policyeng

WITHOUT_OPA = ("verify", "--engines", "--without", "opa", "--pairs", "300", "--seed", "7")


@pytest.fixture
def small(tmp_path: Path) -> str:
    """A bundle with one policy and its twin."""
    text = rego("a", deny_when("input.resource.properties.publicNetworkAccess == `Enabled`"))
    twin = (
        "from policyeng import Denial, policy\n\n\n@policy()\ndef a(given):\n"
        '    properties = given.resource.get("properties")\n'
        '    if isinstance(properties, dict) and properties.get("publicNetworkAccess") == "Enabled":\n'
        '        yield Denial(msg="m", path="/properties/x", actual=1, expected=2)\n'
    )
    return str(write(tmp_path / "small", {"area/a/a.rego": text, "area/a/a.py": twin}))


def lie(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have one engine more, which denies nothing."""
    honest = engines.contestants

    def with_liar(*given: object, **options: object) -> list[Contestant]:
        every = honest(*given, **options)  # type: ignore[arg-type]  # handed on as they came
        return [*every, Contestant("liar", "0", lambda _, pairs: [Judgement()] * len(pairs), every[0].covers)]

    monkeypatch.setattr(engines, "contestants", with_liar)


def test_equal_engines_exit_0_and_print_the_counts(small: str) -> None:
    """Seed, pairs, snapshots, each engine and how often each outcome was met."""
    ran = policyeng(*WITHOUT_OPA, "--policy", small, "--format", "json")
    report = json.loads(ran.stdout)

    assert (ran.returncode, ran.stderr) == (0, "")
    assert (report["seed"], report["differing"], report["differences"]) == (7, 0, [])
    assert report["pairs"] >= 300
    assert [(entry["name"], entry["pairs"]) for entry in report["engines"]] == [
        ("embedded", report["pairs"]),
        ("python", report["pairs"]),
    ]
    (policy,) = report["policies"]
    assert sum(policy["outcomes"].values()) == report["pairs"]
    assert policy["outcomes"]["pass"] >= 1
    assert policy["outcomes"]["fail"] >= 1


def test_the_same_seed_prints_the_same_but_for_the_time(small: str) -> None:
    """A run can be had again."""
    first, second = (
        json.loads(policyeng(*WITHOUT_OPA, "--policy", small, "--format", "json").stdout) for _ in range(2)
    )

    assert {**first, "seconds": 0} == {**second, "seconds": 0}


def test_an_engine_that_differs_exits_1_with_a_file_that_check_accepts(
    small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The printed command evaluates the written snapshot, and fails like the honest engines."""
    lie(monkeypatch)
    file = tmp_path / "smallest.json"

    code = run([*WITHOUT_OPA, "--policy", small, "--counterexample", str(file)])
    printed = capsys.readouterr().out
    command = next(line for line in printed.splitlines() if "again with" in line).split("policyeng ")[1]
    again = policyeng(*command.split())

    assert code == 1
    assert 'liar         {"outcome":"pass"}' in printed
    assert "exit 1: the engines differ" in printed
    assert again.returncode == 1
    assert len(json.loads(file.read_text())["resources"]) == 1


@pytest.mark.slow
def test_a_difference_without_a_file_is_printed_whole(
    small: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is written that was not requested; the snapshot is in the output, as text and as JSON."""
    lie(monkeypatch)

    assert run([*WITHOUT_OPA, "--policy", small]) == 1
    assert '"snapshotVersion": 1' in capsys.readouterr().out
    assert run([*WITHOUT_OPA, "--policy", small, "--format", "json"]) == 1
    (difference,) = json.loads(capsys.readouterr().out)["differences"]
    assert difference["policy"] == "T-A-1"
    assert difference["engines"]["liar"] == {"outcome": "pass"}
    assert difference["snapshot"]["snapshotVersion"] == 1


def test_no_opa_is_no_agreement_with_opa(small: str, tmp_path: Path) -> None:
    """An OPA that does not exist is a usage error, not a run without it."""
    ran = policyeng("verify", "--engines", "--policy", small, "--opa-binary", str(tmp_path / "none"))

    assert ran.returncode == 3
    assert f"path `{tmp_path / 'none'}` does not exist" in ran.stderr
    assert ran.stdout == ""


def test_an_opa_that_is_no_program_is_no_agreement_with_opa(small: str, tmp_path: Path) -> None:
    """Without an OPA the run could not decide, and prints how to get one, and how to do without."""
    (tmp_path / "opa").write_text("no program", encoding="utf-8")
    ran = policyeng("verify", "--engines", "--policy", small, "--opa-binary", str(tmp_path / "opa"))

    assert ran.returncode == 2, ran.stderr
    assert "no such program" in ran.stderr
    assert "--without opa" in ran.stderr
    assert ran.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("verify", "--engines", "--without", "opa,python"), "nothing to compare"),
        (("verify", "--engines", "--without", "other"), "no engine is called `other`"),
        (("verify", "--engines", "--format", "xml"), "unknown format `xml`"),
        (("verify", "--engines", "--pairs", "0"), "pairs"),
        (("verify", "--engines", "--select", "NOPE-1"), "`NOPE-1`"),
        (
            ("verify", "--engines", "--without", "opa", "--opa-url", "http://127.0.0.1:1"),
            "OPA server options and `--without opa` cannot be combined",
        ),
    ],
)
def test_wrong_usage_exits_3_and_prints_what_to_do(arguments: tuple[str, ...], message: str) -> None:
    """Nothing is compared by mistake."""
    ran = policyeng(*arguments)

    assert ran.returncode == 3
    assert message in ran.stderr
    assert ran.stdout == ""


def test_a_counterexample_that_cannot_be_written_is_reported(
    small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder that is not there."""
    lie(monkeypatch)

    assert run([*WITHOUT_OPA, "--policy", small, "--counterexample", str(tmp_path / "no" / "file.json")]) == 3
    assert "cannot write the counterexample" in capsys.readouterr().err


def test_a_counterexample_that_fails_to_be_written_costs_no_report(
    small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A disk may fill up on the way: the snapshot is printed instead."""
    lie(monkeypatch)
    (tmp_path / "taken").mkdir()

    assert run([*WITHOUT_OPA, "--policy", small, "--counterexample", str(tmp_path / "taken" / ("x" * 256))]) == 3
    output = capsys.readouterr()
    assert "difference: " in output.out
    assert '"snapshotVersion": 1' in output.out
    assert "cannot write the counterexample: file name too long" in output.err
