"""The real Conftest next to ours: the same policies, the same inputs, and the output of each."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from policyeng import evaluate
from policyeng.bundle import load_bundle
from policyeng.models import Evaluation
from policyeng.sources import read_inputs

ROOT = Path(__file__).resolve().parents[1]
CONFTEST = ROOT / ".tools" / "bin" / "conftest"
AS_OF = datetime(2026, 6, 1, tzinfo=UTC)


class Output(NamedTuple):
    """The output of a program: by file, rule and message how often, and the (file, rule) that an exception covers."""

    failures: Counter[tuple[str, str, str]]
    warnings: Counter[tuple[str, str, str]]
    exceptions: frozenset[tuple[str, str]]


def require_conftest() -> Path:
    """The binary that `make test` builds; without it a run in CI fails, and another one skips."""
    if not CONFTEST.is_file():
        if os.environ.get("CI"):
            pytest.fail(f"{CONFTEST} is missing; `make test` builds it")
        pytest.skip("conftest is not built; `make test` builds it")
    return CONFTEST


def run_conftest(policy: Path, inputs: Sequence[Path], data: Sequence[Path] = (), version: str = "v1") -> Output:
    """The output of Conftest for the inputs in all namespaces; `version` is its `--rego-version`."""
    given = [argument for path in data for argument in ("--data", str(path))]
    options = ["--all-namespaces", "--no-fail", "--output=json", f"--rego-version={version}", f"--policy={policy}"]
    ran = subprocess.run(
        [str(require_conftest()), "test", *options, *given, *map(str, inputs)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    listed = [{"exceptions": [], "failures": [], "warnings": [], **entry} for entry in json.loads(ran.stdout)]
    counted = {
        level: Counter(
            (entry["filename"], reason["metadata"]["query"], reason["msg"])
            for entry in listed
            for reason in entry[level] or ()
        )
        for level in ("failures", "warnings")
    }
    excepted = {(entry["filename"], reason["msg"]) for entry in listed for reason in entry["exceptions"] or ()}
    return Output(counted["failures"], counted["warnings"], frozenset(excepted))


def run_ours(policy: Path, inputs: Sequence[Path], data: Sequence[Path] = ()) -> tuple[Output, Evaluation]:
    """The output of policyeng for the same, in the same form; errors are in the evaluation."""
    bundle = load_bundle(policy, data=data)
    snapshot, problems, *_ = read_inputs(inputs, documents=True, resources=False)
    errors = [f"{problem.place}: {problem.message}" for problem in problems if problem.level == "error"]
    assert not errors, errors
    evaluation = evaluate(bundle, snapshot, as_of=AS_OF)
    rules = {policy.id: dict(policy.rules)["deny"] for policy in bundle.policies}
    output = Output(Counter(), Counter(), frozenset())
    excepted = set()
    for finding in evaluation.findings:
        rule, file = rules[finding.policy], finding.location.file
        if finding.exemption is not None:
            package, _, name = rule.rpartition(".")
            suffix = name.partition("_")[2]
            excepted.add((file, f'{package}.exception[_][_] == "{suffix}"'))
            continue
        counter = output.warnings if name_of(rule).startswith("warn") else output.failures
        counter.update((file, rule, denial.msg) for denial in finding.denials)
    return output._replace(exceptions=frozenset(excepted)), evaluation


def name_of(rule: str) -> str:
    """The name of a rule without its package."""
    return rule.rpartition(".")[2]


def difference(conftest: Output, ours: Output) -> list[str]:
    """What only one of them reports; an exception counts only where there is a failure to except."""
    lines = []
    for level, theirs, mine in (
        ("failure", conftest.failures, ours.failures),
        ("warning", conftest.warnings, ours.warnings),
    ):
        lines += [f"only conftest: {level} {entry}" for entry in (theirs - mine).elements()]
        lines += [f"only policyeng: {level} {entry}" for entry in (mine - theirs).elements()]
    lines += [f"only policyeng: exception {entry}" for entry in ours.exceptions - conftest.exceptions]
    return lines


def parsed_as_json(file: Path, folder: Path) -> Path:
    """A file of any format that Conftest reads, as the JSON that Conftest makes of it."""
    ran = subprocess.run([require_conftest(), "parse", str(file)], capture_output=True, text=True, check=True)
    written = folder / f"parsed-{file.name.lower().replace('.', '-')}.json"  # Conftest knows formats by name
    written.write_text(ran.stdout, encoding="utf-8")
    return written
