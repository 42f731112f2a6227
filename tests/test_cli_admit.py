"""`policyeng admit`: exit codes, what it prints and writes, and what it refuses."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from policyeng.cli import run
from policyeng.models import Decision
from tests.bundles import WORKSPACE, native, rego, workspace, write

X = 'object.get(input.resource, ["properties", "x"], 0)'
OPEN = f'deny contains {{"msg": "open", "path": "/properties/x", "actual": {X}, "expected": 1}} if {X} > 1'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory: a policy, and a state with one good and one failing workspace."""
    monkeypatch.chdir(tmp_path)
    policy = rego("p", OPEN, severity="medium", more='remediation: "set x to 1"')
    files = {"b/area/p.rego": policy, "before.json": native(workspace("w"), workspace("old", x=5))}
    return write(tmp_path, files)


def called(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Exit code, output and errors of a run with the policy and the state."""
    code = run(["admit", *words, "--policy", "b", "--snapshot", "before.json", "--as-of", "2026-06-01T00:00:00Z"])
    output = capsys.readouterr()
    return code, output.out, output.err


def changing(folder: Path, change: object) -> str:
    """A file with a change."""
    write(folder, {"change.json": json.dumps(change)})
    return "change.json"


def test_a_bad_change_is_denied_and_a_good_one_allowed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Text with the place and the remedy; what failed elsewhere is named on request."""
    code, out, err = called(capsys, changing(folder, workspace("w", x=2)), "--standing")
    short = called(capsys, "change.json")[1]
    good, allowed, _ = called(capsys, changing(folder, workspace("w", x=1)))

    assert (code, err) == (1, "")
    assert "change.json:1:1" in out
    assert "set x to 1" in out
    assert "Existing failures (1 on 1 resource)" in out
    assert out.endswith("exit 1: denied: 1 change; 1 denied, 1 standing\n")
    assert short.endswith("exit 1: denied: 1 change; 1 denied\n")
    assert (good, allowed.splitlines()[-1]) == (0, "exit 0: allowed: 1 change")


def test_json_is_the_decision_and_files_keep_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both forms at once."""
    code, out, _ = called(
        capsys,
        changing(folder, workspace("w", x=2)),
        "--format",
        "json",
        "--output",
        "json=d.json",
        "--output",
        "text=d",
    )
    decision = Decision.model_validate_json(out)

    assert (code, decision.allowed, decision.denied[0].policy) == (1, False, "T-A-1")
    assert decision.denied[0].location.file == "change.json"
    assert (folder / "d.json").read_text(encoding="utf-8") == out
    assert (folder / "d").read_text(encoding="utf-8").startswith("Denied (1")


def test_deletes_come_from_the_command_line_too(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Alone, and next to a document."""
    old = workspace("old")["id"]

    assert called(capsys, "--delete", old)[1].splitlines()[-1] == "exit 0: allowed: 1 change; 1 cleared"
    both = called(capsys, changing(folder, workspace("w", x=2)), "--delete", old)[1]
    assert both.splitlines()[-1] == "exit 1: denied: 2 changes; 1 denied, 1 cleared"


def test_a_whole_state_deletes_what_it_does_not_contain(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What it has unchanged is not touched."""
    write(folder, {"after.json": native(workspace("old", x=5)), "other.json": native(workspace("w"))})

    same = called(capsys, "after.json", "--whole")[1]
    assert same.splitlines()[-1] == "exit 0: allowed: 1 change"
    assert called(capsys, "other.json", "--whole")[1].splitlines()[-1] == "exit 0: allowed: 1 change; 1 cleared"
    write(folder, {"before.json": native()})
    assert called(capsys, "before.json", "--whole")[:2][0] == 0


def test_settings_decide_what_denies(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Modes and blame of the configuration, the gate of the command line."""
    change = changing(folder, workspace("old", x=5, y=1))
    assert called(capsys, change)[0] == 1
    assert called(capsys, change, "--blame", "Introduced")[0] == 0
    assert called(capsys, change, "--fail-on", "high")[0] == 0
    write(folder, {"policyeng.toml": 'blame = "introduced"\n'})
    assert called(capsys, change)[0] == 0
    assert called(capsys, change, "--blame", "touched")[0] == 1
    write(folder, {"policyeng.toml": f'[[modes]]\nmode = "shadow"\nscope = "{WORKSPACE[:-2]}/old"\n'})
    code, out, _ = called(capsys, change)
    assert (code, out.splitlines()[-1]) == (0, "exit 0: allowed: 1 change; 1 shadowed")


def test_what_cannot_be_read_is_denied(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of the change, of the state and of the exemptions; findings are printed all the same."""
    broken = changing(folder, [workspace("w", x=2), "ws"])
    code, out, _ = called(capsys, broken)
    assert code == 2
    assert "exit 2: denied, could not decide: 1 change; 1 denied; 1 error" in out
    good = changing(folder, workspace("w"))
    write(folder, {"exemptions.yaml": "exemptions: 1\n"})
    assert called(capsys, good, "--exemptions", "exemptions.yaml")[0] == 2
    assert called(capsys, good, "--exemptions", "exemptions.yaml", "--no-exemptions")[0] == 0
    write(folder, {"before.json": "{"})
    assert called(capsys, good)[0] == 2
    assert called(capsys, "none.json")[0] == 2


def test_where_no_policy_evaluates_resources_nothing_is_allowed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Otherwise a selector that leaves none would open the gate."""
    code, _, err = called(capsys, changing(folder, workspace("w")), "--ignore", "area")

    assert (code, "no selected policy evaluates resources" in err) == (2, True)


def test_standard_input_is_a_change_or_the_state(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of the two."""

    def piped(document: object) -> None:
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(json.dumps(document).encode())))

    piped(workspace("w", x=2))
    code, out, _ = called(capsys, "-")
    assert (code, "<stdin>:1:1" in out) == (1, True)
    piped([workspace("w", x=2)])
    assert run(["admit", changing(folder, workspace("w", x=2)), "--snapshot", "-", "--policy", "b"]) == 1
    capsys.readouterr()
    assert run(["admit", "-", "--snapshot", "-"]) == 3
    assert "`-` is given twice" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--snapshot", "before.json"], "no changes are given"),
        (["before.json"], "missing the state before the change"),
        (["--delete", "ws", "--snapshot", "before.json"], "`ws` is not the ARM id of a resource"),
        (["--delete", WORKSPACE, "--whole", "--snapshot", "before.json"], "--whole already deletes every resource"),
        (["--delete", " ", "--snapshot", "before.json"], "an input or option value is empty"),
        (["before.json", "--snapshot", "before.json", "--from", "what"], "did you mean"),
        (["before.json", "--snapshot", "before.json", "--format", "sarif"], "unknown format `sarif`"),
        (["before.json", "--snapshot", "before.json", "--output", "json"], "`json` is not FORMAT=PATH"),
        (["before.json", "--snapshot", "before.json", "--blame", "all"], "invalid value `all` for `blame`"),
        (["before.json", "--snapshot", "before.json", "--policy", "b", "--engine", "x"], "engine"),
    ],
)
def test_a_command_line_that_is_wrong_is_a_usage_error(
    folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    """With what is wrong."""
    assert folder.is_dir()
    assert run(["admit", *words]) == 3
    assert message in capsys.readouterr().err


def test_the_state_may_come_from_the_environment(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the other options that a pipeline sets once."""
    settings: dict[str, Any] = {
        "POLICYENG_SNAPSHOT": "before.json",
        "POLICYENG_POLICY": "b",
        "POLICYENG_BLAME": "touched",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)

    assert run(["admit", changing(folder, workspace("old", x=5))]) == 1
    assert "T-A-1" in capsys.readouterr().out
