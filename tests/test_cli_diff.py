"""`policyeng diff`: exit codes, what it prints and writes, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from policyeng.audit.diff.inputs import Comparison
from tests.bundles import WORKSPACE, deny_when, native, rego, workspace, write
from tests.command import Ran, policyeng

BROKEN = '{"resources": [{"id": "/subscriptions/x",'
EXEMPTION = """exemptions:
  - {{id: E-1, policy: T-A-1, scope: {scope}, category: waiver, reason: r, owner: a, approvedBy: b,
     createdAt: 2026-05-01T00:00:00Z, expiresAt: 2026-06-10T00:00:00Z}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two policies of one id, and snapshots of workspaces `w` and `v`."""
    files = {
        "b/area/p.rego": rego("p", deny_when("input.resource.properties.x == 1"), severity="medium"),
        "old/area/p.rego": rego("p", deny_when("input.resource.properties.x == 2")),
        "good.json": native(workspace("w", x=0), workspace("v", x=1)),
        "bad.json": native(workspace("w", x=1), workspace("v", x=1)),
        "exemptions.yaml": EXEMPTION.format(scope=WORKSPACE),
    }
    return write(tmp_path, files)


def diff(folder: Path, *words: str, stdin: str = "") -> Ran:
    """The command with the policies, at the usual clock."""
    return policyeng("diff", *words, "--policy", "b", "--as-of", "2026-06-01T00:00:00Z", folder=folder, stdin=stdin)


def test_what_is_new_fixed_and_persisting_is_printed_with_its_cause(folder: Path) -> None:
    """Exit 1 for a new failure; 0 the other way round and for the same."""
    ran = diff(folder, "good.json", "bad.json")
    back = diff(folder, "bad.json", "good.json")

    assert (ran.returncode, ran.stderr) == (1, "")
    assert ran.stdout.startswith("New (1 on 1 resource)\n")
    assert "because   the resource w changed at /properties/x, which was 0 and is 1\n" in ran.stdout
    assert "Persisting (1 on 1 resource)" in ran.stdout
    assert ran.stdout.endswith("exit 1: something new fails: 1 new, 1 persisting\n")
    assert (back.returncode, back.stdout.splitlines()[-1]) == (0, "exit 0: nothing new fails: 1 fixed, 1 persisting")
    assert diff(folder, "bad.json", "bad.json").stdout.splitlines()[-1] == "exit 0: nothing new fails: 2 persisting"
    assert diff(folder, "good.json", "bad.json", "--fail-on", "high").returncode == 0


def test_json_is_the_comparison_and_files_keep_every_form(folder: Path) -> None:
    """And causes may be left out."""
    outputs = [word for name in ("json", "markdown", "text") for word in ("--output", f"{name}=out.{name}")]
    ran = diff(folder, "good.json", "bad.json", "--format", "json", *outputs)
    comparison = Comparison.model_validate_json(ran.stdout)
    plain = Comparison.model_validate_json(diff(folder, "good.json", "bad.json", "--format=json", "--no-causes").stdout)

    assert (folder / "out.json").read_text(encoding="utf-8") == ran.stdout
    assert "| medium | <code>T-A-1</code>" in (folder / "out.markdown").read_text(encoding="utf-8")
    assert (len(comparison.new[0].causes), plain.new[0].causes, plain.problems) == (1, (), ())


def test_the_earlier_side_may_have_its_own_policies_exemptions_configuration_and_clock(folder: Path) -> None:
    """Each is the cause then."""
    write(folder, {"old.toml": '[parameters."T-A-1"]\n', "policyeng.toml": 'exemptions = ["exemptions.yaml"]\n'})

    policy = diff(folder, "bad.json", "bad.json", "--policy-before", "old")
    exemption = diff(folder, "bad.json", "bad.json", "--config", "old.toml", "--exemptions-before", "exemptions.yaml")
    config = diff(folder, "bad.json", "bad.json", "--config-before", "old.toml")
    clock = diff(folder, "bad.json", "bad.json", "--as-of-before", "2026-06-20")

    assert "because   the policy changed from" in policy.stdout
    assert (exemption.returncode, "the exemption E-1 was taken back" in exemption.stdout) == (1, True)
    assert (config.returncode, "the exemption E-1 began" in config.stdout) == (0, True)
    assert "fail to fail (exempt)" in clock.stdout


def test_directories_and_standard_input_are_sides_too(folder: Path) -> None:
    """A directory is one snapshot, as for `check`."""
    write(folder, {"one/w.json": native(workspace("w", x=0)), "two/w.json": native(workspace("w", x=1))})

    assert diff(folder, "one", "two").returncode == 1
    assert diff(folder, "one", "-", stdin=native(workspace("w", x=1))).returncode == 1
    assert diff(folder, "-", "one", stdin=native(workspace("w", x=1))).returncode == 0


def test_directories_are_compared_file_by_file(folder: Path) -> None:
    """Each file is a snapshot of its own; one that is on one side only has come or gone."""
    shared = workspace("shared", x=1)
    files = {
        "one/a.json": native(workspace("a", x=0), shared),
        "one/b.json": native(workspace("b", x=1), shared),
        "one/gone.json": native(workspace("g", x=1)),
        "two/a.json": native(workspace("a", x=1), shared),
        "two/b.json": native(workspace("b", x=1), shared),
        "two/came.json": native(workspace("c", x=1)),
    }
    write(folder, files)

    ran = diff(folder, "one", "two", "--parts", "--format", "json")
    comparison = Comparison.model_validate_json(ran.stdout)
    sides = comparison.new, comparison.fixed
    names = [[flip.finding.resource.rpartition("/")[2] for flip in flips] for flips in sides]

    assert (ran.returncode, names, comparison.problems) == (1, [["a", "c"], ["g"]], ())
    assert [flip.causes[0][0].change for flip in comparison.flips] == ["changed", "came", "went"]
    assert (len(comparison.persisting), comparison.before.summary.fail, comparison.after.summary.fail) == (3, 4, 5)
    assert diff(folder, "one", "one", "--parts").returncode == 0

    write(folder, {"two/b.json": BROKEN})
    broken = diff(folder, "one", "two", "--parts")
    assert (broken.returncode, "b.json" in broken.stdout, "2 new" in broken.stdout) == (2, True, True)


def test_what_cannot_be_read_is_undecided(folder: Path) -> None:
    """On either side; what could be compared is printed all the same."""
    write(folder, {"broken/w.json": native(workspace("w", x=1)), "broken/x.json": BROKEN})

    for words in (("good.json", "broken"), ("broken", "good.json"), ("none.json", "good.json")):
        ran = diff(folder, *words)
        assert ran.returncode == 2, words
        assert "exit 2: could not decide: " in ran.stdout
    assert "before: " in diff(folder, "broken", "good.json").stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-", "-"], "`-` is given twice"),
        (["good.json"], "missing argument"),
        (["good.json", "bad.json", "--format", "sarif"], "unknown format `sarif`"),
        (["good.json", "bad.json", "--as-of-before", "soon"], "`soon` is not a valid time for --as-of-before"),
        (["good.json", "bad.json", "--output", "json"], "`json` is not FORMAT=PATH"),
        (["good.json", "bad.json", "--from", "x"], "unknown input format `x`"),
        (["good.json", "bad.json", "--parts"], "--parts compares directories"),
        (["b", "old", "--parts", "--from", "native"], "--parts reads each file separately"),
        (["good.json", " "], "an input or option value is empty"),
    ],
)
def test_a_command_line_that_is_wrong_is_a_usage_error(folder: Path, words: list[str], message: str) -> None:
    """With what is wrong."""
    ran = policyeng("diff", *words, folder=folder)

    assert (ran.returncode, message in ran.stderr) == (3, True), ran.stderr
