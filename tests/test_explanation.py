"""Explanations have the results of the evaluation, and say which expression decided, with its values."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from policyeng import rego
from policyeng.bundle import Bundle
from policyeng.bundle.cases import baselines_of, read_cases
from policyeng.engines.embedded import RegoEvaluator
from policyeng.engines.explanation import Explainer
from policyeng.engines.request import Judgement
from policyeng.evaluation.context import prepare
from policyeng.rego.explanation import ExplainedProgram, ExpressionEvaluation, RuleEvaluation
from policyeng.rego.markers import show
from policyeng.testing.runner import prepared_cases
from tests.command import policyeng

MODULE = """package a

f(x) := upper(x) if x != ""

kinds := {"a", "workspace"}

deny contains {"msg": "m", "name": v.name} if {
	lower(input.kind) in kinds
	not input.tags.ok
	some v in input.list
	v.n > 3
	count([1 | some q in v.items; q == 2]) > 0
	f(v.name) == "X"
	every k in v.z { k < 3 }
}

deny contains {"msg": "n"} if input.deep.er == 1
"""
DOCUMENT = {
    "kind": "Workspace",
    "tags": {},
    "list": [{"n": 1}, {"n": 4, "items": [1, 2], "name": "x", "z": [1, 2]}, {"n": 5, "items": [2], "name": "y"}],
}
REGULATED = "samples/workspaces/regulated.json"


COMPUTES = 'input.snapshot.by_type["microsoft.machinelearningservices/workspaces/computes"]'


@pytest.fixture(scope="module")
def program() -> ExplainedProgram:
    """The module in the form that explains."""
    return ExplainedProgram(rego.compile({"a.rego": MODULE}))


def lines(evaluation: RuleEvaluation | ExpressionEvaluation) -> Iterator[tuple[str, str, dict[str, object]]]:
    """The outcome, text and values of everything that was evaluated, in order."""
    for part in evaluation.parts:
        if isinstance(part, ExpressionEvaluation):
            yield str(part.outcome), part.step.text, part.values
        else:
            yield str(part.outcome), "data." + ".".join(part.path), {}
        yield from lines(part)


#: An expression of the module, its outcome and some of its values, for the document or for one with markers.
EXPRESSIONS = [
    ({}, "lower(input.kind) in kinds", "true", {"input.kind": "Workspace", "lower(input.kind)": "workspace"}),
    ({}, "not input.tags.ok", "true", {}),
    ({}, "some v in input.list", "true", {}),
    ({}, "v.n > 3", "false", {"v.n": 1}),
    ({}, "v.n > 3", "true", {"v.n": 4}),
    ({}, "q == 2", "false", {"q": 1}),
    ({}, "count([1 | some q in v.items; q == 2]) > 0", "true", {"count([1 | some q in v.items; q == 2])": 1}),
    ({}, 'f(v.name) == "X"', "true", {"v.name": "x", "f(v.name)": "X"}),
    ({}, 'f(v.name) == "X"', "false", {"v.name": "y", "f(v.name)": "Y"}),
    ({}, "data.a.f", "value", {}),
    ({}, "k < 3", "true", {"k": 2}),
    ({}, "input.deep.er == 1", "undefined", {}),
    ({"/kind": "not read"}, "lower(input.kind) in kinds", "unknown", {}),
    ({"/list/1/n": "not read"}, "v.n > 3", "unknown", {}),
    ({"/list/1/n": "not read"}, "v.n > 3", "true", {"v.n": 5}),
    ({"/tags": "not read"}, "not input.tags.ok", "unknown", {}),
]


@pytest.mark.parametrize(("markers", "text", "outcome", "values"), EXPRESSIONS)
def test_an_expression_has_its_outcome_and_values(
    program: ExplainedProgram, markers: dict[str, str], text: str, outcome: str, values: dict[str, object]
) -> None:
    """Also if parts of the input are not known."""
    _, thread = program.evaluate("data.a.deny", rego.mark(DOCUMENT, markers))
    evaluations = [
        read
        for found_outcome, found_text, read in lines(thread.evaluation)
        if (found_outcome, found_text) == (outcome, text)
    ]
    assert evaluations
    assert any(all(show(read.get(name)) == value for name, value in values.items()) for read in evaluations)


QUERIES = [
    ("1 + 1", 2),
    ('data.a.f("q")', "Q"),
    ("input.kind", "Workspace"),
    ("input.missing", rego.UNDEFINED),
    ('lower(input.kind) == "other"', False),
    ("some v in input.list; v.n > 4", [{"v": {"n": 5, "items": [2], "name": "y"}}]),
    ('x := data.a.f("z")', [{"x": "Z"}]),
    ("not input.missing", [{}]),
    ('data.a.f("") ', rego.UNDEFINED),
    ('input.kind with input as {"kind": 1}', 1),
    ('data.a.f("x") with data.a.kinds as {}', "X"),
]


@pytest.mark.parametrize(("query", "value"), QUERIES)
def test_a_query_has_the_value_of_its_term_or_its_solutions(
    program: ExplainedProgram, query: str, value: object
) -> None:
    """A condition has no variables, and holds with one empty solution."""
    result, _ = program.evaluate(query, DOCUMENT)
    assert result.value is value if value is rego.UNDEFINED else result.value == value


def explained_pairs(bundle: Bundle, step: int) -> Iterator[tuple[str, Judgement, Judgement]]:
    """The results of pairs as evaluated and as explained: of every `step`-th case of each Rego policy."""
    explainer, baselines = Explainer(bundle), baselines_of(bundle)
    for policy in bundle.policies:
        cases = read_cases(policy) if policy.rules else None
        if cases is None:
            continue
        alone = bundle.only([policy])
        for case in islice(prepared_cases(policy, cases, baselines), 0, None, step):
            request = prepare(alone, case.snapshot, {policy.id: case.case.parameters}).work(case.as_of)
            for part in request.parts():
                evaluator = RegoEvaluator(part)
                for pair in part.pairs:
                    explained, _, is_whole = explainer.explain_pair(part, pair)
                    assert is_whole
                    yield f"{policy.id}: {case.name}", evaluator.evaluate(pair), explained


def sort_out(judgement: Judgement) -> tuple[bool, list[str], list[str], str | None]:
    """What of a result decides the finding, in an order that does not depend on sets."""
    denials, unknowns = (sorted(map(repr, entries)) for entries in (judgement.denials, judgement.unknowns))
    return judgement.applies, denials, unknowns, judgement.error


@pytest.mark.parametrize("step", [240, pytest.param(7, marks=pytest.mark.slow)])
def test_an_explanation_has_the_result_of_the_evaluation(bundle: Bundle, step: int) -> None:
    """For cases of each Rego policy, with everything that makes them unknown."""
    count = 0
    for name, evaluated, explained in explained_pairs(bundle, step):
        count += 1
        assert sort_out(explained) == sort_out(evaluated), name
    assert count > 100


def test_a_failure_is_explained_by_the_condition_that_holds() -> None:
    """Text has each condition with its values."""
    arguments = ("explain", "AML-NET-001", REGULATED, "--resource", "clinical", "--as-of", "2026-06-01T00:00:00Z")
    short, verbose = policyeng(*arguments).stdout, policyeng(*arguments, "--verbose").stdout
    library = 'workspace.properties.publicNetworkAccess = "Enabled"'
    assert 'networks.public_access(input.resource) = "enabled"' in short
    assert (library in short, library in verbose) == (False, True)


def test_an_explanation_in_json_is_a_tree() -> None:
    """Rules contain expressions, which contain rules."""
    result = policyeng("explain", "AML-NET-001", REGULATED, "--format", "json")
    first = json.loads(result.stdout)[0]
    assert (first["policy"], first["outcome"], first["complete"]) == ("AML-NET-001", "fail", True)
    rules = {node["text"]: node for node in first["evaluation"]}
    deny = rules["data.network.public_network_access.deny"]
    assert deny["parts"][0]["kind"] == "expression"
    assert deny["file"].endswith("public_network_access.rego")


def test_an_explanation_in_html_escapes_what_it_shows(tmp_path: Path) -> None:
    """Names in the input cannot add markup."""
    snapshot = json.loads(Path(REGULATED).read_text(encoding="utf-8"))
    for resource in snapshot["resources"]:
        if resource["name"] == "clinical":
            resource["kind"] = "<script>alert(1)</script>"
    file = tmp_path / "s.json"
    file.write_text(json.dumps(snapshot), encoding="utf-8")
    result = policyeng("explain", "AML-NET-001", str(file), "--resource", "clinical", "--format", "html")
    assert "&lt;script&gt;alert" in result.stdout
    assert "<script" not in result.stdout


def test_an_unknown_finding_names_what_decides_it() -> None:
    """Python policies show what they read."""
    result = policyeng("explain", "AML-END-009", "samples/workspaces/inference.json")
    assert result.returncode == 0
    assert 'result = "Managed"' in result.stdout
    assert "These values decide the finding:\n  - not all autoscale settings were collected" in result.stdout


def test_a_finding_of_a_report_is_explained_from_its_files(tmp_path: Path) -> None:
    """The report names the files that are read again."""
    report = tmp_path / "report.json"
    policyeng("check", REGULATED, "--output", f"json={report}")
    from_report, from_input = (policyeng("explain", "AML-NET-001", name).stdout for name in (str(report), REGULATED))
    assert from_report == from_input


def test_secrets_are_masked() -> None:
    """Values can come from any input."""
    result = policyeng("eval", 'x := {"password": "hunter2-Zq8", "name": "n"}', "--explain")
    assert "hunter2" not in result.stdout.replace('"hunter2-Zq8", "name"', "")


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["eval", "1 + 1"], 0, "2\n"),
        (["eval", "input.nothing"], 0, "undefined\n"),
        (["eval", f"count({COMPUTES})", "--input", REGULATED], 0, "6\n"),
        (["eval", "input.resource.name", "--input", REGULATED, "--resource", "clinical"], 0, '"clinical"\n'),
        (["eval", "input.resource.name", "--input", REGULATED], 0, "name a resource of the input with --resource"),
        (["eval", "1 + 1", "--format", "json"], 0, '{\n  "value": 2\n}\n'),
        (["eval", "x :="], 3, "unexpected end of file"),
        (["eval", 'to_number("x")'], 3, "to_number"),
        (["eval"], 3, "give either a query or --interactive"),
        (["eval", "1", "--input", REGULATED, "--resource", "missing"], 3, "no resource is called `missing`"),
        (["explain", "AML-NET-01", REGULATED], 3, "there is no policy `AML-NET-01`; did you mean"),
        (["explain", "AML-NET-001", "samples/workspaces/compliant.json"], 2, "passes for each resource"),
        (["explain", "AML-NET-001", "missing.json"], 2, "cannot be read"),
    ],
)
def test_commands_print_values_and_refuse_what_they_cannot_use(arguments: list[str], code: int, expected: str) -> None:
    """Faults have a remedy and no traceback."""
    result = policyeng(*arguments)
    assert (result.returncode, expected in result.stdout + result.stderr) == (code, True)


def test_a_value_that_is_not_known_exits_with_2() -> None:
    """The reason and the remedy are printed."""
    query = 'input.snapshot.by_type["microsoft.insights/autoscalesettings"]'
    result = policyeng("eval", f"count({query}) > 0", "--input", "samples/workspaces/inference.json")
    assert result.returncode == 2
    assert "not known: not all autoscale settings were collected" in result.stdout
