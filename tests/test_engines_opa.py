"""The engine `opa` against a real OPA: the findings of the embedded engine, in one query for each snapshot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from policyeng import evaluate
from policyeng.bundle import Bundle, load_bundle
from policyeng.bundle.cases import DEFAULT_AS_OF, Baselines, estate, read_cases
from policyeng.bundle.policy_types import InputForm
from policyeng.engines import OpaOptions, embedded
from policyeng.engines import opa as engine
from policyeng.engines.opa_server import OpaConnection
from policyeng.models import Evaluation, JsonObject, Outcome, Snapshot
from policyeng.sources import load_snapshot
from policyeng.verify.differential import build_request, outcome_of
from policyeng.verify.differential import normalize_result as normalized
from policyeng.verify.generators.examples import Example
from policyeng.verify.strategies import snapshots
from tests.bundles import deny_when, rego, snapshot, workspace, write
from tests.effort import effort

AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def options(opa: Path) -> Iterator[OpaOptions]:
    """A private server of the pinned OPA."""
    yield OpaOptions(binary=opa)
    engine.close()


@pytest.fixture
def queries(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses of the queries for results; other queries are whether a server that was just started is ready."""
    addresses: list[str] = []
    query = OpaConnection.query

    def recorded(connection: OpaConnection, path: str, document: JsonObject, *, is_strict: bool = True) -> JsonObject:
        if path.endswith("/answer"):
            addresses.append(f"{connection.url}/{path}")
        return query(connection, path, document, is_strict=is_strict)

    monkeypatch.setattr(OpaConnection, "query", recorded)
    return addresses


def comparable(evaluation: Evaluation, *, errors: bool = True) -> JsonObject:
    """Everything but the engine's name and version; without `errors`, not the wording of errors either."""
    document = evaluation.model_dump(mode="json")
    del document["engine"]
    for finding in document["findings"]:
        if finding["outcome"] == "error" and not errors:
            finding["unknowns"] = [unknown["msg"].partition(":")[0] for unknown in finding["unknowns"]]
    return document


def compared(
    bundle: Bundle, shot: Snapshot, options: OpaOptions, *, errors: bool = True, **more: JsonObject
) -> Evaluation:
    """The evaluation by OPA, after it was compared with the embedded one."""
    embedded = evaluate(bundle, shot, as_of=AS_OF, parameters=more)
    evaluated = evaluate(bundle, shot, as_of=AS_OF, parameters=more, engine="opa", opa=options)
    assert comparable(evaluated, errors=errors) == comparable(embedded, errors=errors)
    assert (evaluated.engine.name, embedded.engine.name) == ("opa", "embedded")
    return evaluated


def small(folder: Path, *bodies: str) -> Bundle:
    """A bundle of one policy for each body."""
    files = {f"area/p{n}/p{n}.rego": rego(f"p{n}", body, identity=f"T-A-{n}") for n, body in enumerate(bodies)}
    return load_bundle(write(folder, files))


def outcomes(evaluation: Evaluation) -> list[tuple[str, str, str]]:
    """Policy, last part of the resource and outcome."""
    return [(found.policy, found.resource.split("/")[-1], found.outcome.value) for found in evaluation.findings]


@pytest.mark.parametrize("path", sorted((ROOT / "samples" / "workspaces").glob("*.json")), ids=lambda path: path.stem)
def test_samples_have_the_same_findings(bundle: Bundle, options: OpaOptions, path: Path, queries: list[str]) -> None:
    """Same findings, order and digests in one query, and the version is that of the server."""
    evaluated = compared(bundle, load_snapshot(path), options)

    assert evaluated.findings
    assert len(queries) == 1  # other parts of the snapshot are unknown for some policies
    assert evaluated.engine.version == engine.version(options) == "1.22.0"


@pytest.mark.slow
def test_the_cases_of_every_policy_have_the_same_outcomes(
    bundle: Bundle, baselines: Baselines, options: OpaOptions
) -> None:
    """Snapshots of every `cases.yaml`, all in a thorough run, by their policy, with their parameters and clock."""
    outcomes = Counter[str]()
    for policy in bundle.policies:
        file = read_cases(policy)
        assert file is not None
        cases = list(file.named()) if policy.rules else []
        for _, name, case in cases[:: effort(4, 1)]:
            example = Example({}, {policy.id: case.parameters}, case.as_of or DEFAULT_AS_OF)
            work = build_request(bundle, example, estate(baselines, case, name))
            pairs = [pair for pair in work.pairs if bundle.policies[pair.policy] is policy]
            every = embedded.evaluate_pairs(work, pairs)
            # OPA knows no markers.
            pairs = [pair for pair, judgement in zip(pairs, every, strict=True) if not judgement.is_partial]
            ours = [judgement for judgement in every if not judgement.is_partial]
            theirs = engine.evaluate_with_opa(work, pairs, options) if pairs else []
            assert list(map(normalized, theirs)) == list(map(normalized, ours)), f"{policy.id}: {name}"
            outcomes.update(map(outcome_of, theirs))

    assert outcomes["fail"] > effort(100, 300)
    assert outcomes["pass"] > effort(100, 300)
    assert not outcomes["error"]


@pytest.mark.slow
@settings(
    max_examples=effort(5, 50),
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_generated_snapshots_have_the_same_findings(bundle: Bundle, options: OpaOptions, data: st.DataObject) -> None:
    """From wild to nearly compliant; a share of what `policyeng verify --engines` runs."""
    compared(bundle, data.draw(snapshots(bundle)), options, errors=False)


def test_a_builtin_error_is_an_error_of_its_pair_alone(tmp_path: Path, options: OpaOptions) -> None:
    """OPA ends the whole query; the pairs that fail are found, and the others keep their verdicts."""
    bundle = small(
        tmp_path,
        deny_when("input.resource.properties.n > 3"),
        deny_when("1 / input.resource.properties.n > 0"),
        f"f(x) := 1 if x >= 0\n\nf(x) := 2 if x > 3\n\n{deny_when('f(input.resource.properties.n) == 1')}",
    )
    shot = snapshot(*(workspace(f"w{n}", n=n) for n in (0, 1, 2, 4, 0.5)), workspace("none"))

    evaluated = compared(bundle, shot, options, errors=False)

    broken = [row[:2] for row in outcomes(evaluated) if row[2] == "error"]
    assert broken == [("T-A-1", "w0"), ("T-A-2", "w4")]
    texts = {found.policy: found.unknowns[0].msg for found in evaluated.findings if found.outcome is Outcome.ERROR}
    assert texts["T-A-1"].startswith("area/p1/p1.rego:10: eval_builtin_error: div: divide by zero: ")
    assert texts["T-A-2"].startswith("area/p2/p2.rego:1")
    assert evaluated.exit_code == 2


@pytest.mark.parametrize(
    "body",
    [
        pytest.param('deny contains "text"', id="a string"),
        pytest.param('deny := [{"msg": "b"}, {"msg": "a"}, {"msg": "b"}]', id="a list"),
        pytest.param('deny := {"msg": "b"}', id="an object"),
        pytest.param("deny := true", id="a boolean"),
        pytest.param("deny contains 1", id="a number in it"),
        pytest.param('deny contains {"msg": "m", "extra": 1}', id="an unknown member"),
        pytest.param('deny contains {"path": "m"}', id="no message"),
        pytest.param('deny contains {"msg": null}', id="a null message"),
        pytest.param('deny := [{"msg": "m"}] if input.resource.properties.n > 1', id="undefined"),
        pytest.param(f'applies := "yes"\n\n{deny_when("true")}', id="applies is a string"),
        pytest.param(f"applies := false\n\n{deny_when('1 / 0 == 1')}", id="applies is false"),
        pytest.param(
            f"applies if input.resource.properties.n > 0\n\n{deny_when('1 / input.resource.properties.n > 0')}",
            id="applies is undefined",
        ),
        pytest.param(f"default applies := true\n\n{deny_when('input.resource.properties.n > 0')}", id="applies"),
        pytest.param(
            'deny contains {"msg": "m"} if false\n\nunknown contains {"msg": "b"}\n\n'
            'unknown contains {"msg": "a", "path": "/z"}\n\nunknown contains "c"',
            id="unknowns",
        ),
        pytest.param(
            'deny contains {"msg": "m", "actual": x, "expected": y} if {\n'
            '\tsome x in [2, 1]\n\tsome y in [[1], {"a": 1}, {3}, null, true, "s", 2, 10]\n}',
            id="order",
        ),
        pytest.param(
            'deny contains {"msg": "ä<>&\u2028 😀", "actual": {3, 1, "a"}, "expected": {1: 2, "b": {4}}}', id="signs"
        ),
        pytest.param(
            'deny contains {"msg": "m", "actual": [count(input.snapshot.by_id), object.keys(input.snapshot.by_type), '
            "input.workspace.id, input.as_of, input.parameters, object.keys(input.snapshot), object.keys(input), "
            "input.snapshot.by_id[lower(input.resource.id)].name, input.snapshot.takenAt, input.snapshot.by_scope]}",
            id="the whole input",
        ),
        pytest.param('deny contains {"msg": "m"} if regex.match("(", input.resource.id)', id="a broken pattern"),
    ],
)
def test_the_output_of_a_policy_is_read_alike(tmp_path: Path, options: OpaOptions, body: str) -> None:
    """Every form that `deny`, `unknown` and `applies` can take, well formed or not."""
    shot = snapshot(*(workspace(f"w{n}", n=n) for n in (0, 1, 2)), workspace("none"))

    compared(small(tmp_path, body), shot, options, errors="pattern" not in body and "regex" not in body)


@pytest.mark.parametrize(
    "number",
    [1.0, 1, 1.5, -0.0, 2**53 + 1, 2**63 - 1, -(2**63), 2**64 - 1, 1e22, 1e-7, 5e-324, 1.7976931348623157e308],
)
def test_numbers_survive_both_ways(tmp_path: Path, options: OpaOptions, number: float) -> None:
    """What is in a resource comes back as it went; so do literals, and what is computed from them."""
    body = (
        'deny contains {"msg": "m", "actual": input.resource.properties.n}\n\n'
        'deny contains {"msg": "literals", "actual": [1.0, 1.50, 1e2, 9007199254740993, 12345678901234567890123]}'
        '\n\ndeny contains {"msg": "computed", "actual": [input.parameters.p, 7 / 2, 10 / 2, 2 * 1.5]}'
    )
    more = "parameters:\n  type: object\n  properties:\n    p: {default: 1.0}"
    bundle = load_bundle(write(tmp_path, {"area/p.rego": rego("p", body, more=more)}))

    compared(bundle, snapshot(workspace("w", n=number)), options)


def test_a_number_that_no_json_reader_takes_is_an_error_of_its_pair(tmp_path: Path, options: OpaOptions) -> None:
    """1e600 is a number to OPA, and to no reader of the report."""
    bundle = small(tmp_path, 'deny contains {"msg": "m", "actual": 1e300 * 1e300} if input.resource.properties.n > 0')

    evaluated = compared(bundle, snapshot(workspace("a", n=1), workspace("b", n=0)), options, errors=False)

    assert outcomes(evaluated) == [("T-A-0", "a", "error"), ("T-A-0", "b", "pass")]


@pytest.mark.parametrize(
    ("form", "seen"),
    [
        ("document", ["id", "properties", "type"]),
        ("review", ["parameters", "review"]),
    ],
)
def test_the_input_of_others_policies_is_theirs(
    tmp_path: Path, options: OpaOptions, form: InputForm, seen: list[str]
) -> None:
    """The bare document, or a review of it."""
    members = 'deny contains {"msg": "m", "actual": object.keys(input), "expected": object.get(input, "review", 1)}'
    whole = small(tmp_path, members)
    bundle = whole.only([replace(whole.policies[0], input_form=form)])
    document = {**workspace("w"), "apiVersion": "apps/v1", "kind": "K", "metadata": {"name": "n"}}

    evaluated = evaluate(bundle, snapshot(document), as_of=AS_OF, engine="opa", opa=options)

    [denial] = evaluated.findings[0].denials
    review = {
        "kind": {"group": "apps", "version": "v1", "kind": "K"},
        "name": "n",
        "namespace": "",
        "object": document,
        "operation": "CREATE",
    }
    assert set(seen) <= set(denial.actual)
    assert denial.expected == (review if form == "review" else 1)


def test_one_query_evaluates_a_snapshot(options: OpaOptions, tmp_path: Path, queries: list[str]) -> None:
    """However many pairs there are, and no second server for the second snapshot."""
    bundle = small(tmp_path, *[f'deny contains "{n}" if input.resource.properties.n == {n}' for n in range(3)])
    for names in ("abc", "de"):
        compared(bundle, snapshot(*(workspace(name, n=at) for at, name in enumerate(names))), options)

    assert len(queries) == 2
    assert len(set(queries)) == 1


def test_numbers_within_texts_are_written_alike(tmp_path: Path, options: OpaOptions) -> None:
    """A whole number that came with a fraction is whole in a message too."""
    rule = 'deny contains {"msg": sprintf("%v", [[input.resource.properties.n, {"k": input.resource.properties.n}]])}'

    compared(small(tmp_path, rule), snapshot(workspace("a", n=2.0), workspace("b", n=0.5)), options, errors=False)


def test_letters_that_become_two_in_lower_case_are_found(tmp_path: Path, options: OpaOptions) -> None:
    """`İ` is one letter in lower case in Rego, and two in most languages; ids must be found all the same."""
    bundle = small(tmp_path, deny_when("not input.snapshot.by_id[lower(input.resource.id)]"))

    evaluated = compared(bundle, snapshot(workspace("WİX"), workspace("ΑΣ")), options, errors=False)

    assert {row[2] for row in outcomes(evaluated)} == {"pass"}


def test_two_modules_of_one_path_are_both_evaluated(tmp_path: Path, options: OpaOptions) -> None:
    """Two directories may have a file of the same name each."""
    first = write(tmp_path / "one", {"p.rego": rego("one", deny_when("true"), identity="T-A-1")})
    second = write(tmp_path / "two", {"p.rego": rego("two", deny_when("true"), identity="T-A-2")})

    evaluated = compared(load_bundle(first, second), snapshot(workspace("a")), options)

    assert outcomes(evaluated) == [("T-A-1", "a", "fail"), ("T-A-2", "a", "fail")]


def test_python_policies_are_evaluated_too(tmp_path: Path, options: OpaOptions) -> None:
    """They never go to the server."""
    source = (
        "from policyeng import Denial, policy\n\n"
        '@policy(title="t", id="T-P-1", severity="low", judges=["Microsoft.MachineLearningServices/workspaces"])\n'
        'def judge(given):\n    yield Denial(msg="from Python")\n'
    )
    files = {"area/p.rego": rego("p", deny_when("true")), "area/q.py": source}

    evaluated = compared(load_bundle(write(tmp_path, files)), snapshot(workspace("a")), options)

    assert outcomes(evaluated) == [("T-A-1", "a", "fail"), ("T-P-1", "a", "fail")]


def test_nothing_of_it_is_imported_for_the_embedded_engine(root: Path) -> None:
    """The client costs more to import than the embedded engine takes to evaluate."""
    import subprocess
    import sys

    program = (
        "import sys, policyeng; from datetime import datetime, UTC;"
        f"shot = policyeng.load_snapshot({str(root / 'samples/workspaces/compliant.json')!r});"
        "policyeng.evaluate(policyeng.load_bundle(), shot, as_of=datetime.now(UTC));"
        "print([name for name in ('opa_client', 'requests', 'policyeng.engines.opa') if name in sys.modules])"
    )

    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert ran.stdout == "[]\n"
