"""The composite action: its steps are run as GitHub runs them, with what the inputs are as variables."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from policyeng.bundle.manifest import bundle_yaml
from tests.bundles import write
from tests.conftest import ROOT
from tests.test_recipes import OPEN, Repository
from tests.warm import write_program

PATH = ROOT / "deploy" / "action" / "action.yml"
ACTION: Any = bundle_yaml(PATH.read_text(encoding="utf-8"), PATH.name)
STEPS = {step["id"]: step for step in ACTION["runs"]["steps"]}
#: Makes what `python3 -m venv` would; its python records its arguments.
_VENV = """mkdir -p "$3/bin"
printf '#!/bin/sh\\necho "$@" > "%s/arguments"\\n' "$3" > "$3/bin/python"
chmod +x "$3/bin/python"
"""


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A repository with a workspace that anybody reaches, and python3 that installs nothing."""
    made = Repository(tmp_path)
    write(made.folder, {"infra/a workspace.json": OPEN, "infra/workspace.json": OPEN})
    made.program("python3", _VENV)
    made.environ |= {"RUNNER_TEMP": str(tmp_path), "GITHUB_OUTPUT": str(tmp_path / "output")}
    return made


def run(repository: Repository, step: str, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Run a step; inputs that are not given have their defaults."""
    given = {name: each.get("default", "") for name, each in ACTION["inputs"].items()}
    given |= {name.replace("_", "-"): value for name, value in inputs.items()}
    environ = {
        name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda match: given[match[1]], value)
        for name, value in STEPS[step]["env"].items()
    }
    return repository.run(STEPS[step]["run"], **environ)


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ({"package": "policyeng==0.1.0"}, "-m pip install --quiet policyeng==0.1.0"),
        ({"package": "dist/x.whl", "index_url": "https://i/simple"}, "--quiet --index-url https://i/simple dist/x.whl"),
    ],
)
def test_it_installs_what_is_named(
    repository: Repository, tmp_path: Path, inputs: dict[str, str], expected: str
) -> None:
    """Into an environment of its own, from the index that is named."""
    installed = run(repository, "install", **inputs)

    assert installed.returncode == 0, installed.stderr
    assert (tmp_path / "policyeng" / "arguments").read_text().strip().endswith(expected)


def check(repository: Repository, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Check with policyeng of this repository in the environment."""
    assert run(repository, "install", package="x").returncode == 0
    write_program(Path(repository.environ["RUNNER_TEMP"], "policyeng", "bin", "policyeng"))
    return run(repository, "check", **inputs)


def test_it_annotates_sums_up_and_fails(repository: Repository, tmp_path: Path) -> None:
    """With the exit code as an output, and SARIF that can be uploaded."""
    checked = check(repository, options="--select AML-NET-001\n--as-of 2026-06-01T00:00:00Z")

    assert checked.returncode == 1, checked.stderr
    assert "::error " in checked.stdout
    assert (tmp_path / "output").read_text() == "exit-code=1\n"
    assert "AML-NET-001" in (tmp_path / "summary.md").read_text(encoding="utf-8")
    (sarif,) = json.loads((repository.folder / "policyeng.sarif").read_text(encoding="utf-8"))["runs"]
    assert {result["ruleId"] for result in sarif["results"]} == {"AML-NET-001"}


def test_what_is_undecided_or_wrong_fails_too(repository: Repository, tmp_path: Path) -> None:
    """Without a summary where there is no report; an earlier one is not used again."""
    (tmp_path / "policyeng.md").write_text("of before")
    checked = check(repository, options="--select NOTHING-1")

    assert checked.returncode == 3
    assert (tmp_path / "output").read_text() == "exit-code=3\n"
    assert not (tmp_path / "summary.md").exists()


def test_an_input_is_no_script(repository: Repository) -> None:
    """Whatever a file or a branch is called."""
    checked = check(repository, inputs="$(touch${IFS}x) `touch` ;touch; infra/workspace.json")

    assert checked.returncode in (2, 3)
    assert not (repository.folder / "x").exists()
    assert all("${{" not in step["run"] for step in STEPS.values())


def test_every_input_is_used_and_described() -> None:
    """And an action names its shell in every step."""
    text = PATH.read_text(encoding="utf-8")

    assert all(f"${{{{ inputs.{name} }}}}" in text and each["description"] for name, each in ACTION["inputs"].items())
    assert {step["shell"] for step in STEPS.values()} == {"bash"}
    assert ACTION["runs"]["using"] == "composite"
