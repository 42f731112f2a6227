"""`policyeng audit run` and `audit runs`."""

from __future__ import annotations

import json
from pathlib import Path

import orjson
import pytest

from tests.audits import POLICIES
from tests.bundles import workspace, write
from tests.command import ROOT, policyeng
from tests.test_engines_python import python


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A configuration with two estates, the second of which fails."""
    write(tmp_path / "policies", dict(POLICIES))
    estates = "".join(f'[[estates]]\nname = "{name}"\ninputs = ["{name}"]\n' for name in ("good", "bad"))
    (tmp_path / "policyeng.toml").write_text(estates, encoding="utf-8")
    for name, x in (("good", 0), ("bad", 1)):
        put(tmp_path / name / "w.json", x)
    return tmp_path


def put(path: Path, x: int) -> None:
    """Write a snapshot of one workspace."""
    path.parent.mkdir(exist_ok=True)
    resources = [workspace("w", x=x, owner="o")]
    path.write_bytes(orjson.dumps({"snapshotVersion": 1, "resources": resources}))


def test_all_estates_are_run_and_the_worst_exit_counts(folder: Path) -> None:
    """Each has a line with its counts and what it changed, and the head of the chain."""
    ran = policyeng("audit", "run", "--policy", "policies", folder=folder)
    assert ran.returncode == 1, ran.stderr
    assert "good: run 1, 1 part: 2 pass, 0 fail (0 new, 0 fixed); exit 0\n  head " in ran.stdout
    assert "bad: run 2, 1 part: 1 pass, 1 fail (1 new, 0 fixed); exit 1\n  head " in ran.stdout
    put(folder / "bad" / "w.json", 0)
    again = policyeng("audit", "run", "bad", "--policy", "policies", folder=folder)
    assert again.returncode == 0, again.stderr
    assert "bad: run 3, 1 part: 2 pass, 0 fail (0 new, 1 fixed); exit 0" in again.stdout
    listed = policyeng("audit", "runs", "--format", "json", folder=folder)
    runs = orjson.loads(listed.stdout)["runs"]
    assert [(run["number"], run["estate"]) for run in runs] == [(1, "good"), (2, "bad"), (3, "bad")]
    assert [run["previous"] for run in runs] == ["", *(run["hash"] for run in runs[:-1])]
    text = policyeng("audit", "runs", "bad", "--last", "1", folder=folder).stdout
    assert text.count("\n") == 1
    assert runs[2]["hash"][:12] in text


def test_a_part_that_cannot_be_read_fails_the_run_and_hides_no_other(folder: Path) -> None:
    """It is named with what is wrong, and the other parts are evaluated."""
    (folder / "good" / "broken.json").write_text('{"resources": [{"id": "/subscriptions/x",', encoding="utf-8")
    ran = policyeng("audit", "run", "good", "--policy", "policies", folder=folder)
    assert ran.returncode == 2
    assert "good: run 1, 2 parts: 2 pass, 0 fail" in ran.stdout
    assert "good: broken.json:1:42: /resources/0/id: not valid JSON" in ran.stderr


def test_what_was_evaluated_and_is_empty_now_is_an_error(folder: Path) -> None:
    """An export that went wrong must not look like a fixed estate."""
    assert policyeng("audit", "run", "bad", "--policy", "policies", folder=folder).returncode == 1
    (folder / "bad" / "w.json").write_text("{}", encoding="utf-8")
    ran = policyeng("audit", "run", "bad", "--policy", "policies", folder=folder)
    assert ran.returncode == 2
    assert "(0 new, 0 fixed, 1 no longer evaluated); exit 2" in ran.stdout
    assert "w.json: it was part of run 1, but has nothing to evaluate now" in ran.stderr


@pytest.mark.slow
def test_processes_evaluate_as_one_does(folder: Path) -> None:
    """Each gets the policies as they are stored, and the content of the run is the same."""
    for number in range(5):
        put(folder / "bad" / f"w{number}.json", number % 2)
    words = ("audit", "run", "bad", "--policy", "policies", "--as-of", "2026-06-01T00:00:00Z", "--format", "json")
    one, two = (policyeng(*words, "--store", f"sqlite:///{jobs}.db", "--jobs", jobs, folder=folder) for jobs in "12")
    first, second = (orjson.loads(ran.stdout)["runs"][0] for ran in (one, two))
    assert first["content"] == second["content"]
    assert first["parts"] == 6


@pytest.mark.slow
def test_a_process_that_ends_before_its_time_ends_the_audit(folder: Path) -> None:
    """With what to do, and nothing is kept that would look like a run."""
    put(folder / "bad" / "other.json", 1)
    write(folder / "policies", {"ending/ending.py": python("import os\nos._exit(3)\nyield", "T-E-1")})
    words = ("bad", "--policy", "policies", "--jobs", "2")
    ran = policyeng("audit", "run", *words, folder=folder)
    assert ran.returncode == 2
    assert "a process ended with 3 before its time; see that there is memory for all processes" in ran.stderr
    assert orjson.loads(policyeng("audit", "runs", "--format", "json", folder=folder).stdout)["runs"] == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere"], "unknown estate `nowhere`"),
        (["godo"], "did you mean `good`"),
        (["--input", "good"], "`--input` and `--estate` require each other"),
        (["--estate", "x"], "`--input` and `--estate` require each other"),
        (["good", "--input", "good", "--estate", "x"], "`--input` and `--estate` require each other"),
        (["--input", "good", "--estate", "a b"], "invalid estate name `a b`"),
        (["--store", "mysql://h/x"], "is no URL of a store"),
        (["--store", "audits.db"], "is no URL of a store"),
    ],
)
def test_what_cannot_be_run_is_a_usage_error(folder: Path, words: list[str], message: str) -> None:
    """It names the remedy, and nothing is made."""
    ran = policyeng("audit", "run", "--policy", "policies", *words, folder=folder)
    assert ran.returncode == 3
    assert message in ran.stderr
    assert not (folder / "audits.db").exists()


def test_a_run_warns_of_a_store_that_lacks_an_expected_hash(tmp_path: Path) -> None:
    """As after it was deleted; one that is there needs no warning, and the exit code stays."""
    snapshot = ROOT / "samples" / "workspaces" / "compliant.json"
    given = (
        "audit",
        "run",
        "--input",
        str(snapshot),
        "--estate",
        "e",
        "--as-of",
        "2026-06-01T00:00:00Z",
        "--format",
        "json",
    )
    [first] = json.loads(policyeng(*given, folder=tmp_path).stdout)["runs"]
    (tmp_path / "policyeng.toml").write_text(f'expect = "{first["hash"]}"\n', encoding="utf-8")
    there = policyeng(*given, folder=tmp_path)
    (tmp_path / "audits.db").unlink()
    gone = policyeng(*given, folder=tmp_path)
    verified = policyeng("audit", "verify-history", folder=tmp_path)

    assert "expected hash" not in there.stderr
    warning = f"warning: store: the store has no run and no retention with the expected hash `{first['hash']}`"
    assert warning in gone.stderr
    assert [problem["place"] for problem in json.loads(gone.stdout)["runs"][0]["problems"]] == ["store"]
    assert (there.returncode, gone.returncode) == (first["exitCode"], first["exitCode"])
    assert (verified.returncode, "no run and no retention has the expected hash" in verified.stderr) == (2, True)


def test_a_run_warns_of_a_clock_that_goes_backwards(tmp_path: Path) -> None:
    """Of the same clock it does not, nor of that of another estate."""
    snapshot = ROOT / "samples" / "workspaces" / "compliant.json"

    def warnings(estate: str, clock: str) -> str:
        given = ("audit", "run", "--input", str(snapshot), "--estate", estate, "--as-of", clock)
        return policyeng(*given, folder=tmp_path).stderr

    assert "clock" not in warnings("e", "2026-06-02T00:00:00Z") + warnings("e", "2026-06-02T00:00:00Z") + warnings(
        "f", "2026-06-01T00:00:00Z"
    )
    messages = warnings("e", "2026-06-01T00:00:00Z")
    assert (
        "warning: clock: the clock 2026-06-01T00:00:00Z is earlier than 2026-06-02T00:00:00Z, the clock of run 2"
        in messages
    )
