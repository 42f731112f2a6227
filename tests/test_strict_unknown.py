"""With `--strict-unknown` what cannot be decided fails a run as a failure does; without it, it never does."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

import policyeng
from policyeng.bundle import Bundle, load_bundle
from policyeng.cli import run
from policyeng.evaluation import EvaluationOptions, evaluate
from policyeng.evaluation.summary import apply_baseline
from policyeng.models import Evaluation, Exemption, Outcome, Problem, Severity
from policyeng.report.phrases import describe_exit_code
from tests.bundles import WORKSPACE, deny_when, rego, snapshot, workspace, write

AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
UNKNOWN = 'unknown contains {"msg": "n cannot be read", "path": "/properties/n"} if not input.resource.properties.n\n'
BODY = UNKNOWN + deny_when("input.resource.properties.n > 1")
PASSES, FAILS, UNSURE = workspace("passes", n=1), workspace("fails", n=2), workspace("unsure")


def files(severity: str = "high") -> dict[str, str]:
    """A policy on `n` that is unknown where there is none."""
    return {"area/a/a.rego": rego("a", BODY, severity=severity)}


def evaluated(bundle: Bundle, *resources: policyeng.models.JsonObject, **options: object) -> Evaluation:
    """An evaluation at a fixed time."""
    return evaluate(bundle, snapshot(*resources), EvaluationOptions(AS_OF, **options))  # type: ignore[arg-type]  # options vary by test


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    """That policy, with severity high."""
    return load_bundle(write(tmp_path, files()))


@pytest.mark.parametrize(
    ("resources", "plain", "strict"),
    [
        ([PASSES], 0, 0),
        ([PASSES, UNSURE], 0, 1),
        ([UNSURE], 0, 1),
        ([FAILS], 1, 1),
        ([FAILS, UNSURE], 1, 1),
        ([], 2, 2),
    ],
)
def test_the_exit_with_and_without(
    bundle: Bundle, resources: list[policyeng.models.JsonObject], plain: int, strict: int
) -> None:
    """Findings, outcomes and counts are the same: only the exit differs."""
    loose, tight = evaluated(bundle, *resources), evaluated(bundle, *resources, strict_unknown=True)

    assert (loose.exit_code, tight.exit_code) == (plain, strict)
    assert loose.model_copy(update={"exit_code": strict, "strict_unknown": True}) == tight


@pytest.mark.parametrize(
    ("severity", "gate", "code"),
    [("high", "high", 1), ("medium", "high", 0), ("info", "low", 0), ("info", "info", 1), ("critical", "critical", 1)],
)
def test_the_gate_applies_to_both(tmp_path: Path, severity: str, gate: str, code: int) -> None:
    """A finding below `--fail-on` fails no run, be it a failure or unknown."""
    bundle = load_bundle(write(tmp_path, files(severity)))

    for resource in (FAILS, UNSURE):
        assert evaluated(bundle, resource, fail_on=Severity(gate), strict_unknown=True).exit_code == code


def test_a_part_that_was_not_read_counts(bundle: Bundle) -> None:
    """It is reported, and policies know of it."""
    partial = snapshot(PASSES, incomplete=["computes: forbidden"])
    loose, tight = (evaluate(bundle, partial, EvaluationOptions(AS_OF, strict_unknown=each)) for each in (False, True))

    assert (loose.exit_code, tight.exit_code) == (0, 1)
    assert [(entry.reason, entry.relevant) for entry in tight.ledger] == [("computes: forbidden", True)]
    assert describe_exit_code(tight) == "FAILED: 1 unread part of the inputs (--strict-unknown)"


def test_an_error_outranks_it(bundle: Bundle) -> None:
    """An error on the way is exit 2."""
    broken = evaluated(bundle, UNSURE, strict_unknown=True, problems=[Problem(level="error", message="unreadable")])

    assert broken.exit_code == 2


def test_an_exemption_covers_failures_only(bundle: Bundle) -> None:
    """Unknown values were not accepted: the exemption marks the failure, and the unknown finding stays."""
    exemption = Exemption.model_validate(
        {
            "id": "E-1",
            "policy": "T-A-1",
            "scope": WORKSPACE.rpartition("/providers/")[0],
            "category": "waiver",
            "reason": "r",
            "owner": "o",
            "approvedBy": "p",
            "createdAt": "2026-01-01T00:00:00Z",
            "expiresAt": "2026-12-01T00:00:00Z",
        }
    )

    failing = evaluated(bundle, FAILS, strict_unknown=True, exemptions=[exemption])
    unsure = evaluated(bundle, UNSURE, strict_unknown=True, exemptions=[exemption])

    assert (failing.exit_code, failing.summary.exempt) == (0, 1)
    assert (unsure.exit_code, unsure.summary.exempt) == (1, 0)


def test_a_baseline_knows_what_could_not_be_decided_before(bundle: Bundle) -> None:
    """The same reason is known; another reason, another resource, or a failure in its stead is new."""
    before = evaluated(bundle, UNSURE)
    (reason,) = before.findings[0].unknowns
    other = before.findings[0].model_copy(update={"unknowns": (reason.model_copy(update={"msg": "another"}),)})
    elsewhere = before.model_copy(update={"findings": (other,)})
    failed = workspace("unsure", n=2)

    def against(evaluation: Evaluation, baseline: Evaluation, *, strict: bool = True) -> Evaluation:
        return apply_baseline(evaluation.model_copy(update={"strict_unknown": strict}), baseline)

    same = against(before, before)
    assert same.exit_code == 0
    assert same.problems[-1].message.startswith("1 failing findings are in the baseline")
    fresh = against(before, elsewhere)
    assert fresh.exit_code == 1
    assert fresh.problems[-1].message == "T-A-1 cannot be decided for a new reason"
    assert against(evaluated(bundle, UNSURE, workspace("new")), before).exit_code == 1
    assert against(evaluated(bundle, failed), before).exit_code == 1
    assert against(before, evaluated(bundle, failed)).exit_code == 1
    assert against(before, elsewhere, strict=False).exit_code == 0


def test_a_failure_is_not_known_by_the_words_of_what_was_undecided(tmp_path: Path) -> None:
    """Although a policy may give the same reason for both."""
    same = deny_when("input.resource.properties.n > 1") + '\nunknown contains {"msg": "m", "path": "/properties/x"} if '
    bundle = load_bundle(write(tmp_path, {"area/a/a.rego": rego("a", same + "not input.resource.properties.n")}))
    before, after = evaluated(bundle, workspace("a")), evaluated(bundle, workspace("a", n=2))

    assert [before.findings[0].outcome, after.findings[0].outcome] == [Outcome.UNKNOWN, Outcome.FAIL]
    assert apply_baseline(after.model_copy(update={"strict_unknown": True}), before).exit_code == 1


def test_the_verdict_states_what_decided(bundle: Bundle, tmp_path: Path) -> None:
    """A failure below the gate is not blamed for what an unknown finding above it did."""
    low = rego("b", deny_when("true"), identity="T-B-1", severity="low")
    both = load_bundle(write(tmp_path / "both", {**files(), "area/b/b.rego": low}))

    assert describe_exit_code(evaluated(bundle, UNSURE, strict_unknown=True)) == (
        "FAILED: 1 unknown (--strict-unknown)"
    )
    assert describe_exit_code(evaluated(both, UNSURE, strict_unknown=True, fail_on=Severity.HIGH)) == (
        "FAILED: 1 failure below high, 1 unknown (--strict-unknown)"
    )
    assert describe_exit_code(evaluated(bundle, FAILS, UNSURE, strict_unknown=True)) == (
        "FAILED: 1 failure (>= low), 1 unknown (--strict-unknown)"
    )
    assert describe_exit_code(evaluated(bundle, UNSURE)) == "PASSED: no failures, 1 unknown"


def test_the_library_takes_it(bundle: Bundle) -> None:
    """As the command does."""
    given = snapshot(UNSURE)

    assert policyeng.evaluate(bundle, given, as_of=AS_OF).exit_code == 0
    assert policyeng.evaluate(bundle, given, as_of=AS_OF, strict_unknown=True).exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "environ", "configured", "code"),
    [
        ([], {}, "", 0),
        (["--strict-unknown"], {}, "", 1),
        (["--strict-unknown", "--jobs", "1"], {}, "", 1),  # read by typer
        (["--strict-unknown", "--fail-on", "critical"], {}, "", 0),
        ([], {"POLICYENG_STRICT_UNKNOWN": "1"}, "", 1),
        ([], {"POLICYENG_STRICT_UNKNOWN": "true"}, "", 1),
        ([], {"POLICYENG_STRICT_UNKNOWN": ""}, "", 0),
        ([], {"POLICYENG_STRICT_UNKNOWN": "perhaps"}, "", 3),
        ([], {}, "strict_unknown = true", 1),
        ([], {"POLICYENG_STRICT_UNKNOWN": "false"}, "strict_unknown = true", 0),
        (["--strict-unknown"], {"POLICYENG_STRICT_UNKNOWN": "false"}, "strict_unknown = false", 1),
        ([], {}, 'strict_unknown = "yes"', 3),
    ],
)
def test_flag_variable_and_configuration(
    arguments: list[str],
    environ: dict[str, str],
    configured: str,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A flag over the environment, that over the file."""
    write(tmp_path, {**{f"policies/{name}": text for name, text in files().items()}, "policyeng.toml": configured})
    (tmp_path / "a.json").write_text(json.dumps(UNSURE), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)

    assert run(["check", "a.json", "--policy", "policies", *arguments]) == code


def test_the_command_compares_a_report_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Findings that the baseline could not decide either do not fail the run."""
    write(tmp_path, {f"policies/{name}": text for name, text in files().items()})
    (tmp_path / "a.json").write_text(json.dumps(UNSURE), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    given = ["check", "a.json", "--policy", "policies", "--strict-unknown"]

    assert run([*given, "--output", "json=before.json"]) == 1
    assert run([*given, "--baseline", "before.json"]) == 0
    assert json.loads((tmp_path / "before.json").read_text(encoding="utf-8"))["summary"]["unknown"] == 1
