"""What authors of policies read when something is wrong: the place, what was expected and found, and the next step."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from policyeng.cli.test import fingerprint
from tests.command import ROOT, policyeng

RULE = "acme/owner_tag/owner_tag.rego"
CASES = "acme/owner_tag/cases.yaml"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the policy of the tutorial."""
    page = (ROOT / "docs" / "tutorial-first-policy.md").read_text(encoding="utf-8")
    shown = {fence[1]: fence[2] for fence in FENCE.finditer(page)}
    (tmp_path / "policies" / RULE).parent.mkdir(parents=True)
    (tmp_path / "policies" / RULE).write_text(shown["rego"], encoding="utf-8")
    (tmp_path / "policies" / CASES).write_text(shown["yaml"], encoding="utf-8")
    return tmp_path


def _test(folder: Path, *options: str, **replaced: str) -> tuple[int, str]:
    """Run the tests after replacing texts of the rule or the cases, each of which must be there."""
    for name, change in replaced.items():
        path = folder / "policies" / {"rule": RULE, "cases": CASES}[name]
        before, _, after = change.partition(" -> ")
        text = path.read_text(encoding="utf-8")
        assert before in text
        path.write_text(text.replace(before, after), encoding="utf-8")
    ran = policyeng("test", "--policy", "policies", *options, folder=folder)
    return ran.returncode, ran.stdout + ran.stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"rule": "severity: -> serverity:"},
            "owner_tag.rego:7:5: unknown field `serverity` in the header; did you mean `severity`",
        ),
        ({"rule": "severity: medium -> severity: urgent"}, "owner_tag.rego:7:5: header: `severity`: input should be"),
        ({"rule": "\n}\n -> \n"}, "rego_parse_error"),
        ({"rule": "contains(owner -> strings.any_prefix_mach(owner"}, "did you mean strings.any_prefix_match?"),
        (
            {"rule": "object.get(input.resource -> object.get(input.resourse"},
            "`input` has no `resourse`; did you mean `resource`",
        ),
        (
            {"rule": '["tags", "owner"] -> ["tagz", "owner"]'},
            "reads `/tagz`, which no evaluated baseline has; did you mean `/tags`",
        ),
        (
            {"rule": "MachineLearningServices/ -> MachineLearningService/"},
            "no baseline has the type `Microsoft.MachineLearningService/workspaces/computes`; "
            "did you mean `Microsoft.MachineLearningServices/workspaces/computes`",
        ),
        ({"cases": "pass: -> passes:"}, "passes: unknown key; did you mean `pass`"),
        ({"cases": "baseline: compute_cluster -> baseline: compute_clusters"}, "did you mean `compute_cluster`"),
    ],
)
def test_a_mistake_names_its_place_and_what_was_meant(folder: Path, change: dict[str, str], message: str) -> None:
    """And nothing of an attempt to read it as Rego v0."""
    code, printed = _test(folder, **change)

    assert code in (1, 2)
    assert message in printed
    assert "future.keywords" not in printed


def test_a_failing_case_states_the_next_step(folder: Path) -> None:
    """Its line, what was expected and found, the difference from the baseline, and the command for it alone."""
    code, printed = _test(folder, rule='"@") -> "a")')
    command = "policyeng test --policy policies --select ORG-ACME-001 --case 'an owner without an address'"

    assert code == 1
    assert (
        "FAIL ORG-ACME-001 an owner without an address: expected fail, found pass\n"
        "  policies/acme/owner_tag/cases.yaml:9\n"
        "  input: compute_cluster, patch: {tags: {owner: team}}\n"
        f"  alone: {command}\n"
    ) in printed
    alone = policyeng("test", "--policy", "policies", "--case", "an owner without an address", folder=folder)
    assert alone.stdout.endswith("0 passed, 1 failed\n")
    assert _test(folder, "--case", "an owner")[1] == "1 passed, 0 failed\n"
    code, printed = _test(folder, "--case", "nobody")
    assert (code, "no case is called `nobody`" in printed) == (3, True)


def test_an_unknown_policy_names_the_option_that_finds_it(folder: Path) -> None:
    """Without `--policy` only the built-in ones are searched."""
    ran = policyeng("policies", "show", "ORG-ACME-001", folder=folder)

    assert ran.returncode == 3
    assert "only the built-in policies were searched; add `--policy PATH` for others" in ran.stderr


@pytest.mark.slow
def test_watching_runs_the_tests_again_after_a_change(folder: Path) -> None:
    """Until it is interrupted; a mistake does not end it."""
    line = [sys.executable, "-m", "policyeng", "test", "--policy", "policies", "--watch"]
    with subprocess.Popen(line, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as watching:
        try:
            assert watching.stdout is not None
            assert "4 passed" in watching.stdout.readline()
            assert "waiting for changes" in watching.stdout.readline()
            time.sleep(0.1)
            (folder / "policies" / CASES).write_text("passes: {}\n", encoding="utf-8")
            assert "unknown key" in watching.stdout.readline()
        finally:
            watching.kill()


def test_every_kind_of_change_is_seen(tmp_path: Path) -> None:
    """New, changed and deleted files, below a directory or named alone."""
    path = tmp_path / "a" / "b.rego"
    seen = [fingerprint([tmp_path])]
    path.parent.mkdir()
    for content in ("x", "xy", None):
        path.unlink() if content is None else path.write_text(content)
        seen.append(fingerprint([tmp_path]))

    assert seen[0] == seen[3] == {}
    assert len({str(one) for one in seen}) == 3
    assert fingerprint([path]) == {}
