"""Evaluation: one finding for each applicable pair, three-valued, counted, with an exit code."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

import orjson
import pytest

from policyeng.bundle import Bundle, load_bundle
from policyeng.errors import BundleError, UsageError
from policyeng.evaluation import EvaluationOptions, evaluate
from policyeng.evaluation.summary import apply_baseline
from policyeng.models import Document, Evaluation, Outcome, Problem, Severity, Snapshot
from policyeng.sources import load_snapshot
from tests.bundles import WORKSPACE, deny_when, native, rego, snapshot, workspace, write

AS_OF = datetime(2026, 6, 1, tzinfo=UTC)


def evaluated(bundle: Bundle, given: Snapshot, **options: object) -> Evaluation:
    """An evaluation at a fixed time."""
    return evaluate(bundle, given, EvaluationOptions(AS_OF, **options))  # type: ignore[arg-type]  # options vary by test


def one(tmp_path: Path, body: str, **header: str) -> Bundle:
    """A bundle of one Rego policy."""
    return load_bundle(write(tmp_path, {"area/a/a.rego": rego("a", body, **header)}))


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        (deny_when("false"), Outcome.PASS),
        (deny_when("true"), Outcome.FAIL),
        (deny_when("false") + '\nunknown contains {"msg": "u", "path": "/x"} if true', Outcome.UNKNOWN),
        (deny_when("true") + '\nunknown contains {"msg": "u", "path": "/x"} if true', Outcome.FAIL),
        (deny_when('to_number("x") == 1'), Outcome.ERROR),
        ("deny := 3", Outcome.ERROR),
        ('deny contains {"path": "/x"} if true', Outcome.ERROR),
        ('deny contains {"msg": "m", "colour": "red"} if true', Outcome.ERROR),
        ('deny contains "just text" if true', Outcome.FAIL),
        (deny_when('contains(input.resource.id, "(")'), Outcome.PASS),
        (deny_when('"a)b{[" != input.resource.id'), Outcome.FAIL),
        (deny_when("true") + "\napplies := 3", Outcome.ERROR),
    ],
)
def test_a_policy_has_one_of_four_outcomes(tmp_path: Path, body: str, outcome: Outcome) -> None:
    """Denials outrank unknowns, and whatever is wrong with a policy is an error, never a pass."""
    (finding,) = evaluated(one(tmp_path, body), snapshot(workspace())).findings

    assert finding.outcome is outcome
    assert bool(finding.denials) is (outcome is Outcome.FAIL)


class _Access(StrEnum):
    DISABLED = "Disabled"


@pytest.mark.parametrize(
    ("value", "read"),
    [(("a", 1), ["a", 1]), (_Access.DISABLED, "Disabled"), (AS_OF, "2026-06-01T00:00:00+00:00"), ([("a",)], [["a"]])],
)
def test_a_program_may_change_a_snapshot_of_a_file(tmp_path: Path, value: object, read: object) -> None:
    """Values of other types than JSON's are read as JSON, whatever file the resource is from."""
    file = tmp_path / "snapshot.json"
    file.write_text(native(workspace()), encoding="utf-8")
    loaded = load_snapshot(file)
    changed = loaded.model_copy(update={"resources": ({**workspace(), "properties": {"x": value}},)})
    bundle = one(tmp_path, deny_when(f"input.resource.properties.x == {orjson.dumps(read).decode()}"))

    (finding,) = evaluated(bundle, changed).findings

    assert loaded.origins
    assert finding.outcome is Outcome.FAIL, finding


@pytest.mark.parametrize(
    ("rule", "findings"), [("applies if false", 0), ("applies := true", 1), ("applies if input.x", 0)]
)
def test_a_policy_that_does_not_apply_gives_no_finding(tmp_path: Path, rule: str, findings: int) -> None:
    """`applies` decides whether a resource is evaluated at all."""
    bundle = one(tmp_path, deny_when("true") + "\n" + rule)

    assert len(evaluated(bundle, snapshot(workspace())).findings) == findings


def test_an_error_is_that_of_its_pair_alone(tmp_path: Path) -> None:
    """The resource after the one that breaks a policy is evaluated as if nothing had happened."""
    bundle = one(tmp_path, deny_when("to_number(input.resource.properties.n) > 1"))

    found = evaluated(bundle, snapshot(workspace("a", n="x"), workspace("b", n="2"), workspace("c", n="1"))).findings

    assert [finding.outcome for finding in found] == [Outcome.ERROR, Outcome.FAIL, Outcome.PASS]


def test_narrowing_by_an_unreadable_field_is_unknown(tmp_path: Path) -> None:
    """A field that decides whether a policy evaluates the resource, and cannot be read, does not rule it out."""
    narrowed = "judges:\n  - type: Microsoft.MachineLearningServices/workspaces\n    where: {/kind: [Default]}"
    text = rego("a", deny_when("true"), more=narrowed).replace(
        "#   judges: [Microsoft.MachineLearningServices/workspaces]\n", ""
    )
    bundle = load_bundle(write(tmp_path, {"area/a/a.rego": text}))
    plain = workspace()

    assert evaluated(bundle, snapshot({**plain, "kind": "DEFAULT"})).findings[0].outcome is Outcome.FAIL
    assert evaluated(bundle, snapshot({**plain, "kind": "Hub"})).findings == ()
    unread = snapshot(plain, unreadable={WORKSPACE.lower(): {"/kind": "an expression"}})
    assert evaluated(bundle, unread).findings[0].outcome is Outcome.UNKNOWN


def test_python_policies_are_evaluated_the_same_way(tmp_path: Path) -> None:
    """Denials, unknowns, errors and applicability from Python are those of Rego."""
    source = """
from policyeng import Denial, Unknown, policy

@policy(id="T-P-1", title="t", severity="low", judges=["microsoft.machinelearningservices/WORKSPACES"],
        parameters={"most": {"type": "integer", "default": 1}},
        applies=lambda input: input.resource["properties"]["n"] != 9)
def by_number(input):
    n = input.resource["properties"]["n"]
    if n == 0:
        yield Unknown(msg="u")
    elif n > input.parameters["most"]:
        yield Denial(msg="m", path="/properties/n", actual=n)
    elif n < 0:
        yield "text"
"""
    bundle = load_bundle(write(tmp_path, {"area/p/p.py": source}))
    given = snapshot(
        *(workspace(name, n=n) for name, n in [("a", 0), ("b", 2), ("c", 1), ("d", -1), ("e", "x"), ("f", 9)])
    )

    found = {finding.resource[-1]: finding.outcome.value for finding in evaluated(bundle, given).findings}

    assert found == {"a": "unknown", "b": "fail", "c": "pass", "d": "error", "e": "error"}
    limits = {"T-P-1": {"most": 2}}
    assert {finding.outcome.value for finding in evaluated(bundle, given, parameters=limits).findings} >= {
        "pass",
        "error",
    }


def test_counts_add_up_and_compliance_is_counted_both_ways(tmp_path: Path) -> None:
    """Strictly only passes are good; Azure counts unknown and exempt as good too."""
    unknown = '\nunknown contains {"msg": "u", "path": "/x"} if input.resource.properties.n == 0'
    bundle = one(tmp_path, deny_when("input.resource.properties.n > 1") + unknown)

    summary = evaluated(bundle, snapshot(*(workspace(str(n), n=n) for n in (0, 1, 2)))).summary

    assert (summary.pass_, summary.fail, summary.unknown, summary.error) == (1, 1, 1, 0)
    assert (summary.strict_compliance, summary.azure_compliance) == (33.33, 66.67)


@pytest.mark.parametrize(
    ("severity", "gate", "code"),
    [("high", "high", 1), ("medium", "high", 0), ("info", "low", 0), ("info", "info", 1), ("critical", "info", 1)],
)
def test_the_gate_decides_between_0_and_1(tmp_path: Path, severity: str, gate: str, code: int) -> None:
    """Failures below `--fail-on` are reported and do not fail the run."""
    bundle = one(tmp_path, deny_when("true"), severity=severity)

    assert evaluated(bundle, snapshot(workspace()), fail_on=Severity(gate)).exit_code == code


def test_nothing_evaluated_is_undecided(bundle: Bundle) -> None:
    """No resource, or none that a policy evaluates, is exit 2 with a reason."""
    for given in (snapshot(), snapshot({"id": "/x/y", "type": "Microsoft.Foo/bars"})):
        evaluation = evaluated(bundle, given)

        assert evaluation.exit_code == 2
        assert "nothing was evaluated" in evaluation.problems[-1].message


def test_undecided_outranks_failures(tmp_path: Path) -> None:
    """A problem on the way to the snapshot makes exit 2, and the failures are still there."""
    bundle = one(tmp_path, deny_when("true"))

    evaluation = evaluated(bundle, snapshot(workspace()), problems=[Problem(level="error", message="unreadable")])

    assert (evaluation.exit_code, evaluation.summary.fail) == (2, 1)


def test_two_resources_with_one_id_are_a_problem(bundle: Bundle) -> None:
    """Both of them with one finding each would be two verdicts on one resource."""
    evaluation = evaluated(bundle, snapshot(workspace(), {**workspace(a=1), "id": WORKSPACE.upper()}))

    assert evaluation.exit_code == 2
    assert "two resources have this id" in evaluation.problems[0].message


@pytest.mark.parametrize(
    ("evaluates", "collection", "called", "one_id"),
    [
        ("approval", "approvals", "approvals", {"scope": "/s", "series": "NCsv3", "status": "granted"}),
        ("workload", "workloads", "declared workloads", {"workspaceId": WORKSPACE}),
    ],
)
def test_two_statements_with_one_id_are_a_problem(
    tmp_path: Path, evaluates: str, collection: str, called: str, one_id: dict[str, str]
) -> None:
    """A program may hand them in; ids compare without case, one of them is evaluated, and the order is irrelevant."""
    text = rego("a", deny_when("true")).replace("Microsoft.MachineLearningServices/workspaces", evaluates)
    bundle = load_bundle(write(tmp_path, {"area/a/a.rego": text}))
    stated = [{"id": name, **one_id} for name in ("a", "ALIKE", "alike", "alikE")]

    first, turned = (evaluated(bundle, snapshot(**{collection: entries})) for entries in (stated, stated[::-1]))

    assert first == turned
    assert first.exit_code == 2
    assert [finding.resource for finding in first.findings] == ["a", "ALIKE"]
    problems = [(problem.level, problem.place, problem.message) for problem in first.problems]
    assert problems == [("error", "ALIKE", f"two {called} have this id; remove one of them")] * 2


def test_two_documents_with_one_name_are_a_problem(tmp_path: Path) -> None:
    """The first is evaluated; a file's second document has a name of its own."""
    bundle = load_bundle(write(tmp_path, {"p.rego": 'package p\n\ndeny contains "no" if input.bad\n'}))
    documents = [Document(file="a", content={"bad": bad}, index=index) for bad, index in ((1, 0), (0, 0), (1, 1))]

    evaluation = evaluated(bundle, Snapshot(documents=tuple(documents)))

    assert [(finding.resource, finding.outcome) for finding in evaluation.findings] == [("a", "fail"), ("a#1", "fail")]
    assert evaluation.exit_code == 2
    assert [problem.message for problem in evaluation.problems] == ["two documents have this name; remove one of them"]


def test_secrets_are_masked_in_findings(tmp_path: Path) -> None:
    """What a policy shows as `actual` is masked before any report sees it."""
    body = 'deny contains {"msg": "m", "path": "/properties/adminPassword", "actual": "hunter2"} if true'

    (finding,) = evaluated(one(tmp_path, body), snapshot(workspace())).findings

    assert finding.denials[0].actual == "***"


@pytest.mark.parametrize(
    ("given", "message"),
    [({"limt": 3}, "did you mean `limit`"), ({"limit": "3"}, "is not of type 'integer'")],
)
def test_parameters_are_validated_against_their_schema(tmp_path: Path, given: dict[str, object], message: str) -> None:
    """A name that does not exist and a value that does not fit are usage errors."""
    more = "parameters: {limit: {type: integer, default: 1}}"
    bundle = one(tmp_path, deny_when("input.parameters.limit > 1"), more=more)

    with pytest.raises(UsageError, match=message):
        evaluated(bundle, snapshot(workspace()), parameters={"T-A-1": given})
    assert evaluated(bundle, snapshot(workspace()), parameters={"T-A-1": {"limit": 2}}).exit_code == 1


def test_a_baseline_fails_only_on_new_failures(tmp_path: Path) -> None:
    """Known failures pass the gate; another resource, or another path of the same policy, is new."""
    bundle = one(tmp_path, deny_when("input.resource.properties.n > 1"))
    before = evaluated(bundle, snapshot(workspace("a", n=2)))

    same = apply_baseline(evaluated(bundle, snapshot(workspace("a", n=3))), before)
    more = apply_baseline(evaluated(bundle, snapshot(workspace("a", n=2), workspace("b", n=2))), before)

    assert (same.exit_code, more.exit_code) == (0, 1)
    assert "1 failing findings are in the baseline" in same.problems[-1].message
    assert more.problems[-1].place.endswith("/b")
    moved = before.findings[0].denials[0].model_copy(update={"path": "/elsewhere"})
    elsewhere = before.model_copy(update={"findings": (before.findings[0].model_copy(update={"denials": (moved,)}),)})
    assert apply_baseline(before, elsewhere).exit_code == 1


@pytest.mark.parametrize(
    "statement",
    [
        'yield Denial(msg="m", actual={1, 2})',
        'yield Denial(msg="\\ud800")',
        "raise SystemExit(0)",
        'raise ValueError("\\ud800")',
        "raise Wordless",
    ],
)
def test_a_python_policy_that_breaks_is_an_error_of_its_pair(tmp_path: Path, statement: str) -> None:
    """What no report could print, and what would end the process, is an error of the policy and not of the run."""
    source = f"""
from policyeng import Denial, policy

class Wordless(Exception):
    def __str__(self):
        raise ValueError

@policy(id="T-P-1", title="t", severity="low", judges=["Microsoft.MachineLearningServices/workspaces"])
def odd(input):
    {statement}
    yield Denial(msg="never")
"""
    bundle = load_bundle(write(tmp_path, {"area/p/p.py": source}))

    (finding,) = evaluated(bundle, snapshot(workspace())).findings

    assert finding.outcome is Outcome.ERROR
    assert finding.unknowns[0].msg.encode()


def test_a_resource_as_deep_as_a_document_may_be_is_evaluated(tmp_path: Path) -> None:
    """128 levels are read; one more is a problem of that resource alone, and the other is evaluated."""
    bundle = one(tmp_path, deny_when("input.resource.properties.n > 1"))
    deep: object = 1
    for _ in range(126):
        deep = [deep]

    within = evaluated(bundle, snapshot(workspace("a", n=2, deep=deep)))
    beyond = evaluated(bundle, snapshot(workspace("a", n=2), workspace("b", n=2, deep=[deep])))

    assert within.exit_code == 1
    assert (beyond.exit_code, len(beyond.findings)) == (2, 1)
    assert "nested deeper than 128 levels" in beyond.problems[0].message


@pytest.mark.parametrize("schema", ['{$ref: "http://127.0.0.1:9/x", default: 1}', "{type: integr, default: 1}"])
def test_a_schema_that_is_wrong_or_lies_elsewhere_is_refused(tmp_path: Path, schema: str) -> None:
    """Nothing is fetched, and the policy's file is named."""
    with pytest.raises(BundleError, match=r"a\.rego.* schema of parameter `limit`"):
        one(tmp_path, deny_when("true"), more=f"parameters: {{limit: {schema}}}")


def test_a_part_of_a_schema_that_lies_elsewhere_is_refused_when_it_is_needed(tmp_path: Path) -> None:
    """The default fits without it."""
    more = 'parameters: {limit: {anyOf: [{type: integer}, {$ref: "http://127.0.0.1:9/x"}], default: 1}}'
    bundle = one(tmp_path, deny_when("true"), more=more)

    with pytest.raises(BundleError, match=r"`limit` is wrong: `http://127\.0\.0\.1:9/x` is not in it"):
        evaluated(bundle, snapshot(workspace()), parameters={"T-A-1": {"limit": "2"}})


def test_an_undecided_target_concerns_only_the_policies_that_it_may_be_for(bundle: Bundle) -> None:
    """A job on a compute that the snapshot lacks runs neither on Container Instances nor on Functions."""
    home = "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w"
    job = {
        "id": f"{home}/jobs/j",
        "type": "Microsoft.MachineLearningServices/workspaces/jobs",
        "properties": {"jobType": "Command", "computeId": f"{home}/computes/gone"},
    }

    findings = evaluated(bundle, Snapshot(resources=(job,))).findings
    outcomes = {one.policy: one.outcome for one in findings}

    assert outcomes["AML-TRN-109"] is Outcome.FAIL
    assert outcomes["AML-ISO-102"] is Outcome.UNKNOWN
    assert outcomes["AML-TRN-105"] is Outcome.UNKNOWN
    assert not outcomes.keys() & {"AML-INF-104", "AML-INF-105", "AML-INF-107", "AML-INF-116"}
