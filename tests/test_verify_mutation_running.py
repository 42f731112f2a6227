"""Which mutants the cases and laws of a bundle notice, and how `policyeng verify --mutation` reports it."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import orjson
import pytest

from policyeng.bundle import load_bundle
from policyeng.errors import BundleError
from policyeng.verify.laws.law import Law, Trial, Violation
from policyeng.verify.mutation.run import as_json, run
from tests.bundles import deny_when, rego, workspace, write
from tests.command import policyeng

pytestmark = pytest.mark.slow

RULE = deny_when("input.resource.properties.x < 3")
CASES = """\
baseline: nodes
path: /properties/x
pass:
  exactly: {patch: {properties: {x: 3}}}
fail:
  just under: {patch: {properties: {x: 2}}}
"""
UNTOLD = [
    ("if { input.resource.properties.x < 3 }", "if { input.resource.properties.x <= 3 }"),
    ("if { input.resource.properties.x < 3 }", "if { input.resource.properties.x < 4 }"),
]
PYTHON = """\
from policyeng import Denial, policy


@policy(id="T-P-1", title="t", severity="low", judges=["Microsoft.MachineLearningServices/workspaces"],
        inspects=["/properties/x"], when_absent="pass")
def small(given):
    '''Deny small values.'''
    stated = given.resource["properties"].get("x", 9)
    while stated < 3:
        yield Denial(msg="too small", path="/properties/x")
        return
"""


def bundle(folder: Path, cases: str = CASES, **files: str) -> Path:
    """A policy with cases, and other files next to it."""
    header = "inspects: [/properties/x]\nwhen_absent: pass"
    baseline = orjson.dumps(workspace(x=9)).decode()
    others = {f"area/a/{name.replace('_', '.')}": text for name, text in files.items()}
    texts = {"area/a/a.rego": rego("a", RULE, more=header), "area/a/cases.yaml": cases, **others}
    return write(folder, {**texts, "baselines/nodes.json": baseline})


def survivors(folder: Path) -> list[tuple[str, str]]:
    """The last part of the line of every survivor, before and after."""
    (tally,) = run(load_bundle(folder)).tallies
    cut = RULE.index(" if {")
    return [(entry.mutant.before[cut + 1 :], entry.mutant.after[cut + 1 :]) for entry in tally.survivors]


def test_thorough_cases_notice_everything(tmp_path: Path) -> None:
    """Both sides of the boundary are enough; what does not compile does not count."""
    made = run(load_bundle(bundle(tmp_path)))
    (tally,) = made.tallies

    assert (made.score, tally.survivors, tally.stale) == (100.0, [], [])
    assert tally.killed >= 8
    assert {"exactly", "just under"} == set(tally.killers)


def test_without_the_boundary_its_mutants_survive(tmp_path: Path) -> None:
    """Those two, and no other."""
    assert survivors(bundle(tmp_path, CASES.replace("x: 3", "x: 9"))) == UNTOLD


def test_a_python_policy_is_mutated_and_bounded(tmp_path: Path) -> None:
    """Its header, too; a mutant that never ends is an error that a case sees."""
    endless = PYTHON.replace("        return\n", "        stated += 1\n")
    files = {"area/p/p.py": endless, "area/p/cases.yaml": CASES, "baselines/nodes.json": json.dumps(workspace(x=9))}
    (tally,) = run(load_bundle(write(tmp_path, files))).tallies

    assert "while True:" not in [entry.mutant.after for entry in tally.survivors]
    assert tally.killed >= 10


def test_justified_survivors_count_out_and_must_be_true(tmp_path: Path) -> None:
    """A justified one is none of the score; one that is noticed, or no mutant, is named."""
    entries = [
        {
            "line": f"{RULE[: RULE.index(' if {')]} {before}",
            "mutation": f"{RULE[: RULE.index(' if {')]} {after}",
            "reason": "no one has four",
        }
        for before, after in UNTOLD
    ]
    folder = bundle(tmp_path, CASES.replace("x: 3", "x: 9"), survivors_yaml=json.dumps(entries))
    made = run(load_bundle(folder))
    assert (made.score, [entry.reason for entry in made.tallies[0].survivors]) == (100.0, ["no one has four"] * 2)

    write(folder, {"area/a/cases.yaml": CASES})
    stale = policyeng("verify", "--mutation", "--policy", str(folder))
    assert stale.returncode == 1
    assert stale.stdout.count("has an entry that is killed, or is not a mutant") == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1", "list"),
        ("[{line: a, mutation: b}]", "required"),
        ("[{line: a, mutation: b, reason: ' '}]", "pattern"),
        ("[{line: a, mutation: b, reason: c}, {line: a, mutation: 'b ', reason: c}]", "is stated twice"),
    ],
)
def test_justifications_are_read_strictly(tmp_path: Path, text: str, message: str) -> None:
    """Each has a line, a mutation and a reason, once."""
    with pytest.raises(BundleError, match=message):
        run(load_bundle(bundle(tmp_path, survivors_yaml=text)))


def test_laws_are_tried_on_what_the_cases_leave(tmp_path: Path) -> None:
    """A law that the unchanged policy violates notices nothing."""

    def violated(trial: Trial) -> Violation | None:
        text = dict(trial.bundle.modules)["area/a/a.rego"]
        return Violation("no") if "<= 3" in text else None

    def always(_: Trial) -> Violation | None:
        return Violation("no")

    laws = [Law(91, "strict", "it is strict", "", violated), Law(92, "broken", "it is broken", "", always)]
    (tally,) = run(load_bundle(bundle(tmp_path, CASES.replace("x: 3", "x: 9"))), laws=laws).tallies
    assert (tally.by_laws, tally.killers["law 91 strict"], tally.killers["law 92 broken"], tally.survived) == (
        1,
        1,
        0,
        1,
    )


def test_the_same_run_again_is_the_same(tmp_path: Path) -> None:
    """It is the same with any number of processes, and a sample depends on its seed."""
    made = load_bundle(bundle(tmp_path, CASES.replace("x: 3", "x: 9")))
    assert as_json(run(made, jobs=1)) == as_json(run(made, jobs=2))
    assert as_json(run(made, sample=5, seed=3)) == as_json(run(made, sample=5, seed=3))
    tallies = [run(made, sample=5, seed=seed).tallies[0] for seed in range(3)]
    assert {tally.killed + tally.survived + tally.invalid for tally in tallies} == {5}
    assert len({tuple(tally.killers.items()) for tally in tallies}) > 1


def test_a_failing_case_is_no_criterion(tmp_path: Path) -> None:
    """The policy has to have its cases first."""
    with pytest.raises(BundleError, match="the unchanged policy `T-A-1` fails the case"):
        run(load_bundle(bundle(tmp_path, CASES.replace("x: 3", "x: 1"))))


@pytest.mark.slow
def test_the_command_exits_by_its_minimum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """0 without one, 1 below it, 2 where a policy has no cases; every format carries the survivors."""
    monkeypatch.setattr("policyeng.verify.mutation.run.LAW_EXAMPLES", 3)  # that laws notice has a test of its own
    folder = str(bundle(tmp_path, CASES.replace("x: 3", "x: 9")))
    plain = policyeng("verify", "--mutation", "--policy", folder)
    assert (plain.returncode, plain.stderr) == (0, "")
    assert plain.stdout.count("survived: flip a comparison") == 1
    below = policyeng("verify", "--mutation", "--policy", folder, "--min-mutation-score", "95", "--format", "json")
    report = json.loads(below.stdout)
    assert (below.returncode, len(report["policies"][0]["survivors"])) == (1, 2)
    junit = policyeng("verify", "--mutation", "--policy", folder, "--format", "junit")
    assert [suite.get("failures") for suite in ET.fromstring(junit.stdout)] == ["2"]  # noqa: S314  # our own
    (tmp_path / "area/a/cases.yaml").unlink()
    nothing = policyeng("verify", "--mutation", "--policy", folder)
    assert nothing.returncode == 2
    assert "not tested: T-A-1" in nothing.stderr
