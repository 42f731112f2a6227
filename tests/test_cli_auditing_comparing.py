"""`policyeng audit history`, `ahead` and `impact`: exit codes, what they print, and what they refuse."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest

from tests.audits import START, Audited, exemption
from tests.bundles import deny_when, rego, workspace, write
from tests.command import Ran, policyeng


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with three runs: workspace `one` fails, is fixed, and is reopened under an exemption of ten days."""
    folder = tmp_path_factory.mktemp("made")
    audited = Audited(folder)
    audited.audit()
    audited.put("a", {"one": {"x": 0, "owner": "o"}})
    audited.audit()
    audited.put("a", {"one": {"x": 1, "owner": "o"}})
    audited.audit(exemptions=[exemption("one", days=10)])
    audited.close()
    write(folder, {"other/area/x/x.rego": rego("x", deny_when("input.resource.properties.x == 0"))})
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return shutil.copytree(made, tmp_path / "copy")


def audit(folder: Path, *words: str) -> Ran:
    """The command in the folder of the store."""
    return policyeng("audit", *words, folder=folder)


def test_a_history_has_a_line_for_each_run(folder: Path) -> None:
    """In every format, from a run or a time on, of some policies only."""
    whole = audit(folder, "history", "production")
    listed = json.loads(audit(folder, "history", "--format", "json").stdout)["estates"]
    late = [audit(folder, "history", "--since", since, "--format", "csv").stdout for since in ("3", "2026-06-03")]
    chosen = json.loads(audit(folder, "history", "--select", "T-A-1", "--format", "json").stdout)["estates"][0]

    assert (whole.returncode, whole.stderr, whole.stdout.count("\n")) == (0, "", 5)
    assert [point["new"] for point in listed[0]["points"]] == [1, 0, 1]
    assert [point["reopened"] for point in listed[0]["points"]] == [0, 0, 1]
    assert [[row["run"] for row in csv.DictReader(text.splitlines())] for text in late] == [["3"], ["3"]]
    assert [(point["fail"], point["exempt"], point["passCount"]) for point in chosen["points"]] == [
        (1, 0, None),
        (0, 0, None),
        (1, 1, None),
    ]
    assert audit(folder, "history", "--format", "markdown").stdout.startswith("## production\n\n| run |")


def test_a_finding_has_a_life_with_causes(folder: Path) -> None:
    """By the id of its resource or the end of it; of what always passed nothing is known."""
    ran = audit(folder, "history", "--resource", "workspaces/one", "--select", "T-A-1")
    lives = json.loads(audit(folder, "history", "--resource", workspace("one")["id"], "--format", "json").stdout)[
        "lives"
    ]
    nothing = audit(folder, "history", "--resource", "two", "--format", "json")

    assert "run 3     2026-06-03T00:00:00Z  reopened: fail (exempt)" in ran.stdout
    assert "because   the resource one changed at /properties/x, which was 0 and is 1" in ran.stdout
    assert [turn["turn"] for turn in lives[0]["turns"]] == ["began", "fixed", "reopened"]
    assert (json.loads(nothing.stdout), "no failures of" in nothing.stderr) == ({"lives": []}, True)


def test_a_run_lists_all_that_flipped_in_it(folder: Path) -> None:
    """Whatever estate it is of; a run that is not there is a mistake."""
    lives = json.loads(audit(folder, "history", "--run", "2", "--format", "json").stdout)["lives"]
    nothing = audit(folder, "history", "--run", "2", "--select", "T-B-1")

    assert [(life["policy"], [turn["turn"] for turn in life["turns"]]) for life in lives] == [("T-A-1", ["fixed"])]
    assert nothing.stderr == "policyeng: no findings changed in run 2\n"
    assert audit(folder, "history", "--run", "9").returncode == 3


def test_the_policies_of_earlier_runs_can_be_selected_too(folder: Path) -> None:
    """By their ids; what was never an id is a mistake."""
    audit(folder, "run", "--input", "estate", "--estate", "production", "--policy", "other", "--select", "T-A-1")

    assert audit(folder, "history", "--select", "T-A-1").returncode == 0
    unknown = audit(folder, "history", "--select", "T-A-9")
    assert (unknown.returncode, "did you mean" in unknown.stderr) == (3, True)


def test_what_is_ahead_of_the_newest_run_fails_the_gate(folder: Path) -> None:
    """The exemption lapses on the eleventh day."""
    begin = ("--since", START.isoformat())
    ran = audit(folder, "ahead", "production", *begin, "--days", "30")
    soon = audit(folder, "ahead", *begin, "--as-of", "2026-06-05T00:00:00Z")
    rows = list(csv.DictReader(audit(folder, "ahead", *begin, "--format", "csv").stdout.splitlines()))

    assert (ran.returncode, ran.stderr) == (1, "")
    assert "because   the exemption E-one lapsed (it ended 2026-06-11T00:00:00Z)" in ran.stdout
    assert "exit 1: production, run 3: 1 finding will flip" in ran.stdout
    assert (soon.returncode, "nothing will flip" in soon.stdout) == (0, True)
    assert [(row["at"], row["flip"]) for row in rows] == [("2026-06-11T00:00:00Z", "fail (exempt) to fail")]
    assert audit(folder, "ahead", *begin, "--fail-on", "critical").returncode == 0


def test_what_is_ahead_of_files_takes_no_store(folder: Path) -> None:
    """With the options of `check`; a part that cannot be read is undecided."""
    write(folder, {"e/area/p.rego": rego("p", deny_when('input.as_of > "2026-06-10T00"'))})
    words = ("ahead", "--input", "estate", "--policy", "e", "--since", "2026-06-01", "--as-of", "2026-07-01T00:00:00Z")
    ran = audit(folder, *words, "--format", "json")
    (folder / "estate" / "broken.json").write_text('{"resources": [{"id": "/subscriptions/x",', encoding="utf-8")

    assert ran.returncode == 1
    assert {one["part"] for one in json.loads(ran.stdout)["outlooks"][0]["coming"]} == {"a.json", "b.json", "c.json"}
    assert audit(folder, *words).returncode == 2


def test_an_impact_is_reported_and_gated(folder: Path) -> None:
    """Of the newest run, or of several."""
    words = ("impact", "production", "--policy", "other")
    ran = audit(folder, *words)
    some = json.loads(audit(folder, *words, "--runs", "2", "--format", "json").stdout)["impacts"]

    assert (ran.returncode, "in all    2 newly failing" in ran.stdout) == (0, True)
    assert [(one["run"], one["total"]["failing"]) for one in some] == [(2, 3), (3, 2)]
    assert [audit(folder, *words, "--max-new-failures", most).returncode for most in ("2", "1", "0")] == [0, 1, 1]
    assert audit(folder, *words, "--format", "markdown").stdout.startswith("## production, run 3: 2 newly failing")


@pytest.mark.parametrize(
    ("words", "message", "code"),
    [
        (["history", "prod"], "no run of an estate `prod`", 3),
        (["history", "--since", "soon"], "`soon` is not a valid time for --since", 3),
        (["history", "--store", "sqlite:///none.db"], "there is no store", 2),
        (["history", "--format", "html"], "unknown format `html`", 3),
        (["ahead", "--days", "3", "--as-of", "2027-01-01T00:00:00Z"], "`--days` and `--as-of` cannot be combined", 3),
        (["ahead", "--as-of", "2001-01-01T00:00:00Z"], "the end of the forecast is not after", 3),
        (["ahead", "--days", "36500", "--since", "9990-01-01"], "`--days` is out of range", 3),
        (["ahead", "--policy", "other"], "is evaluated with its own policies", 3),
        (["ahead", "production", "--input", "estate"], "`--input` and an estate cannot be combined", 3),
        (["impact", "--policy", "none"], "none", 3),
        (["impact", "--profile", "none"], "no profile is called `none`", 3),
    ],
)
def test_a_wrong_command_line_is_explained(folder: Path, words: list[str], message: str, code: int) -> None:
    """And a store that is not there names what makes it."""
    ran = audit(folder, *words)

    assert (ran.returncode, message in ran.stderr) == (code, True), ran.stderr
