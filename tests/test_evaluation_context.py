"""A snapshot made ready once: what is evaluated again of it is what an evaluation from the start gives."""

from __future__ import annotations

import ast
from datetime import timedelta
from pathlib import Path

import orjson
import pytest

import policyeng
from policyeng import evaluate
from policyeng.bundle import Bundle, load_bundle
from policyeng.evaluation import EvaluationOptions, evaluate_prepared, prepare
from policyeng.models import ReadOnlyDict, Snapshot
from policyeng.verify.generators.examples import Examples
from tests.bundles import snapshot, workspace, write
from tests.test_evaluation import AS_OF

#: A policy that works something out for the whole snapshot, and from the clock.
CLOCK = """
from policyeng import Denial, policy


@policy(id="T-A-1", title="t", severity="high", judges="Microsoft.MachineLearningServices/workspaces", source="s")
def clock(given):
    year = given.snapshot.once("T-A-1", lambda: given.as_of.year)
    if year > 2030:
        yield Denial(msg="m", path="/id", actual=year, expected=2030)
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", range(3))
def test_an_incremental_evaluation_is_that_from_the_start(bundle: Bundle, number: int) -> None:
    """At two clocks, on one thread and on two; what is kept between them changes nothing."""
    example = Examples(bundle).numbered(11, number)
    prepared = prepare(bundle, example.snapshot, example.parameters)
    for moment in (example.as_of, example.as_of + timedelta(days=30), example.as_of):
        anew = evaluate(bundle, example.snapshot, as_of=moment, parameters=example.parameters)
        assert evaluate_prepared(prepared, EvaluationOptions(moment)) == anew
        assert evaluate_prepared(prepared, EvaluationOptions(moment, jobs=2)) == anew


@pytest.mark.slow
def test_a_part_decides_its_pairs_as_the_whole_does(bundle: Bundle) -> None:
    """One policy, or one resource: no other finding, and none of them another one."""
    example = Examples(bundle).numbered(11, 3)
    prepared = prepare(bundle, example.snapshot, example.parameters)
    whole = evaluate_prepared(prepared, EvaluationOptions(example.as_of)).findings
    evaluating = whole[len(whole) // 2].policy
    part = prepared.only(lambda policy, _: policy.id == evaluating)
    expected = tuple(finding for finding in whole if finding.policy == evaluating)
    assert evaluate_prepared(part, EvaluationOptions(example.as_of)).findings == expected
    chosen = whole[0].resource
    part = prepared.only(lambda _, subject: subject.reported_id == chosen)
    expected = tuple(finding for finding in whole if finding.resource == chosen)
    assert evaluate_prepared(part, EvaluationOptions(example.as_of)).findings == expected


def test_what_a_policy_worked_out_at_one_clock_does_not_count_at_another(tmp_path: Path) -> None:
    """`SnapshotView.once` lasts for one evaluation, because it may depend on the clock."""
    late = AS_OF.replace(year=2031)
    bundle = load_bundle(write(tmp_path, {"a/clock/clock.py": CLOCK}))
    prepared = prepare(bundle, snapshot(workspace()))
    outcomes = [
        str(evaluate_prepared(prepared, EvaluationOptions(moment)).findings[0].outcome)
        for moment in (AS_OF, late, AS_OF)
    ]
    assert outcomes == ["pass", "fail", "pass"]


def test_an_empty_snapshot_is_ready_and_reports_that_nothing_was_evaluated(bundle: Bundle) -> None:
    """Which is no pass."""
    assert evaluate_prepared(prepare(bundle, Snapshot()), EvaluationOptions(AS_OF)).exit_code == 2


@pytest.mark.parametrize("value", [(1, "a"), float("nan"), {"b": (None,)}, [{"c": float("inf")}], ReadOnlyDict(d=[1])])
def test_both_languages_see_what_json_has(bundle: Bundle, value: object) -> None:
    """A program may build a snapshot of values that no JSON parser gives; policies see them as in their JSON."""
    given = snapshot(workspace())
    made = given.model_copy(update={"resources": ({**given.resources[0], "properties": {"x": value}},)})

    estate = prepare(bundle, made).estate

    expected = orjson.loads(orjson.dumps({"x": value}))
    in_rego, in_python = estate.document["resources"][0]["properties"], estate.view.resources[0]["properties"]
    assert in_rego == in_python == expected
    assert type(in_rego["x"]) is type(expected["x"])
    assert orjson.dumps(in_python) == orjson.dumps(expected)


def test_rego_reads_the_resources_that_were_read(bundle: Bundle) -> None:
    """What was parsed once is not parsed or copied for it again."""
    given = snapshot(workspace())

    assert prepare(bundle, given).estate.document["resources"][0] is given.resources[0]


def test_only_entries_and_reports_declare_what_fails_a_run() -> None:
    """Everything between them passes `EvaluationOptions` on; a class that repeats its fields could differ from it."""
    declaring = set()
    for file in Path(policyeng.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_bytes())):
            if not isinstance(node, ast.ClassDef):
                continue
            fields = [each.target for each in node.body if isinstance(each, ast.AnnAssign)]
            if {"fail_on", "strict_unknown"} <= {field.id for field in fields if isinstance(field, ast.Name)}:
                declaring.add(node.name)
    entries, reports = {"Settings", "CheckDocument", "CriteriaOptions"}, {"Evaluation", "AuditRun"}
    assert declaring == {"EvaluationOptions", *entries, *reports}
