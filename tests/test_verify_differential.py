"""Law 8: engines agree, and twins; a bounded share of `policyeng verify --engines`, and what the run would notice."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from policyeng import evaluate, load_snapshot
from policyeng.bundle import Bundle, load_bundle
from policyeng.engines import EvaluationRequest, Judgement, OpaOptions, Pair, embedded
from policyeng.engines import opa as server
from policyeng.errors import EngineError, UsageError
from policyeng.models import Denial, Snapshot, Unknown
from policyeng.verify.differential import (
    Contestant,
    DifferentialRun,
    EngineDifference,
    PairCounts,
    as_text,
    compare,
    comparisons,
    contestants,
    counterexample,
    differs,
    normalize_result,
)
from policyeng.verify.example_documents import read, snapshot_text
from policyeng.verify.generators.examples import Example
from policyeng.verify.strategies import examples
from tests.bundles import deny_when, rego, workspace, write
from tests.effort import effort, sweep

pytestmark = pytest.mark.slow

BUNDLE = load_bundle()
IN_PROCESS = contestants(BUNDLE, without=["opa"])
SEED = 20261121
DENIED = Denial(msg="m", path="/p", actual=1, expected="x")
Lie = Callable[[EvaluationRequest, Pair, Judgement], Judgement]


def explained(tally: PairCounts, engines: Sequence[Contestant]) -> str:
    """The details that a developer needs when engines differ."""
    found = [counterexample(difference, BUNDLE, engines, most=500) for difference in tally.differences[:3]]
    return as_text(DifferentialRun(BUNDLE, engines, tally, found, 0.0))


def alone(policy: str) -> tuple[Bundle, list[Contestant]]:
    """The bundle with one active policy, and the first engine for it."""
    bundle = BUNDLE.only(entry for entry in BUNDLE.policies if entry.id == policy)
    return bundle, [entry for entry in IN_PROCESS if entry.name == "embedded"]


def liar(lie: Lie, covers: frozenset[str] = IN_PROCESS[0].covers) -> Contestant:
    """An engine that gives what the embedded one gives, but for its lies."""

    def evaluate_with_lies(work: EvaluationRequest, pairs: Sequence[Pair]) -> list[Judgement]:
        honest = embedded.evaluate_pairs(work, pairs)
        return [lie(work, pair, judgement) for pair, judgement in zip(pairs, honest, strict=True)]

    return Contestant("liar", "1", evaluate_with_lies, covers)


def honest(identity: str) -> Contestant:
    """Another engine that gives what the embedded one gives, so that two are compared."""
    return liar(lambda _work, _pair, judgement: judgement, frozenset({identity}))


def size_of(work: EvaluationRequest, pair: Pair) -> object:
    """The `vmSize` of a subject, None where there is none."""
    settings_ = work.documents[pair.subject].get("properties", {})
    inner = settings_.get("properties") if isinstance(settings_, dict) else None
    return inner.get("vmSize") if isinstance(inner, dict) else None


@pytest.mark.slow
def test_engines_in_this_process_agree() -> None:
    """Thousands of pairs of all policies: no difference, and no error."""
    tally = compare(BUNDLE, IN_PROCESS, pairs=effort(2_000, 20_000), seed=SEED)

    assert not tally.differing, explained(tally, IN_PROCESS)
    assert tally.compared["embedded"] == tally.pairs
    assert tally.compared["python"]
    assert {policy: outcomes for policy, outcomes in tally.outcomes.items() if outcomes["error"]} == {}


@pytest.mark.parametrize("policy", sweep([policy.id for policy in BUNDLE.policies if policy.rules], 8))
def test_every_policy_is_met_from_both_sides(policy: str) -> None:
    """Many pairs of each policy: it passes and fails among them, and nothing is an error."""
    bundle, (embedded_engine, *_) = alone(policy)
    engines = [embedded_engine, honest(policy)]
    tally = compare(bundle, engines, pairs=effort(120, 1_200), seed=SEED)

    assert not tally.differing, explained(tally, engines)
    assert set(tally.compared.values()) == {tally.pairs}
    assert tally.outcomes[policy]["pass"]
    assert tally.outcomes[policy]["fail"]


@pytest.mark.slow
@settings(deadline=None, max_examples=effort(10, 100), suppress_health_check=[HealthCheck.too_slow])
@given(examples(BUNDLE))
def test_engines_agree_on_what_hypothesis_draws(example: Example) -> None:
    """The same with hypothesis, which looks for other corners every time and shrinks what it finds."""
    for comparison in comparisons(BUNDLE, example, IN_PROCESS):
        assert not differs(comparison), comparison


@pytest.mark.slow
def test_opa_agrees(opa: Path) -> None:
    """A real server gives the same as the engines in this process, on other examples than theirs."""
    engines = contestants(BUNDLE, opa=OpaOptions(binary=opa))

    try:
        tally = compare(BUNDLE, engines, pairs=effort(800, 8_000), seed=SEED + 1)

        assert not tally.differing, explained(tally, engines)
        assert tally.compared["opa"] == tally.compared["embedded"] == tally.pairs
    finally:
        server.close()


@pytest.mark.parametrize(
    ("without", "message"),
    [
        (["opaa"], "no engine is called `opaa`; did you mean `opa`"),
        (["opa", "python"], "the remaining engines are embedded"),
    ],
)
def test_engines_to_do_without_are_named_and_leave_two(without: list[str], message: str) -> None:
    """A misspelt engine, or one engine alone, proves nothing."""
    with pytest.raises(UsageError, match=re.escape(message)):
        contestants(BUNDLE, without=without)


def test_whole_numbers_have_one_form_on_every_engine(tmp_path: Path, opa: Path) -> None:
    """Numbers written as 1.0 or 1e15 are reported alike by the embedded engine, OPA and Python."""
    body = 'deny contains {"msg": "m", "path": "", "actual": input.resource.properties.n, "expected": 1.0}'
    twin = (
        "from policyeng import Denial, policy\n\n\n@policy()\ndef a(given):\n"
        '    yield Denial(msg="m", actual=given.resource["properties"]["n"], expected=1.0)\n'
    )
    bundle = load_bundle(write(tmp_path, {"area/a/a.rego": rego("a", body), "area/a/a.py": twin}))
    engines = contestants(bundle, opa=OpaOptions(binary=opa))
    numbers = [1.0, -0.0, 0.5, 1e15, 1e16, 1e18, 1e19, 2e19, -1e18, -1e19, 1e300, 2**53 + 1, [1.0, {"n": 2.0}]]
    document = {"resources": [workspace(f"w{number}", n=value) for number, value in enumerate(numbers)]}

    try:
        every = list(comparisons(bundle, Example(document, {}, datetime(2026, 6, 1, tzinfo=UTC)), engines))
    finally:
        server.close()

    assert [len(comparison.judgements) for comparison in every] == [3] * len(numbers)
    for comparison in every:
        assert not differs(comparison), comparison.judgements


def test_one_seed_gives_one_run_and_another_seed_another(tmp_path: Path) -> None:
    """The examples depend on seed and bundle alone: a longer run begins as the shorter one does."""
    bundle = load_bundle(write(tmp_path, {"area/a/a.rego": rego("a", deny_when("input.resource.properties.n > 1"))}))
    heard: dict[str, list[Sequence[object]]] = {"short": [], "long": [], "other": []}

    for name, pairs, seed in (("short", 60, 1), ("long", 200, 1), ("other", 60, 2)):

        def listen(work: EvaluationRequest, pair: Pair, judgement: Judgement, name: str = name) -> Judgement:
            heard[name].append((work.document, pair, work.as_of, judgement))
            return judgement

        compare(
            bundle, [*contestants(bundle, without=["opa"]), liar(listen, frozenset({"T-A-1"}))], pairs=pairs, seed=seed
        )

    assert heard["short"] == heard["long"][: len(heard["short"])]
    assert heard["short"] != heard["other"][: len(heard["short"])]


LIES: dict[str, Lie] = {
    "a lost denial": lambda _, __, judgement: judgement._replace(denials=judgement.denials[1:]),
    "a denial twice": lambda _, __, judgement: judgement._replace(denials=judgement.denials * 2),
    "another message": lambda _, __, judgement: judgement._replace(
        denials=tuple(denial.model_copy(update={"msg": denial.msg + "."}) for denial in judgement.denials)
    ),
    "an invented unknown": lambda _, __, judgement: judgement._replace(unknowns=(Unknown(msg="m"),)),
    "an error": lambda _, __, ___: Judgement(error="deadline"),
    "a pair that does not apply": lambda _, __, ___: Judgement(applies=False),
}


@pytest.mark.parametrize("name", LIES)
def test_a_lying_engine_is_found_and_its_smallest_lie_is_shown(name: str) -> None:
    """An engine that lies of one policy about sizes of one series is caught with one resource, nothing more."""

    def lie(work: EvaluationRequest, pair: Pair, judgement: Judgement) -> Judgement:
        size = size_of(work, pair)
        lies = judgement.denials and isinstance(size, str) and "D" in size
        return LIES[name](work, pair, judgement) if lies else judgement

    bundle, honest = alone("AML-SKU-103")
    engines = [*honest, liar(lie)]
    tally = compare(bundle, engines, pairs=300, seed=SEED)
    kinds = {difference.kind for difference in tally.differences}
    found = counterexample(tally.differences[0], bundle, engines)
    (resource,) = found.comparison.example.document["resources"]

    assert kinds == {("AML-SKU-103", ("liar",))}
    assert tally.differing >= 1
    assert set(resource) == {"id", "type", "properties"}
    assert resource["properties"]["properties"] == {"vmSize": "D"}
    assert set(found.comparison.example.document) == {"resources"}
    assert found.comparison.example.parameters == {}
    assert found.note == ""
    assert "difference: AML-SKU-103" in as_text(DifferentialRun(bundle, engines, tally, [found], 1.0))


def test_the_counterexample_is_a_snapshot_that_is_read_and_shows_the_same(tmp_path: Path) -> None:
    """The written file is one that the reader reads, and the pair is in its evaluation."""
    bundle, honest = alone("AML-NET-001")
    engines = [*honest, liar(lambda _, __, ___: Judgement())]
    tally = compare(bundle, engines, pairs=200, seed=SEED)
    found = counterexample(tally.differences[0], bundle, engines)
    file = tmp_path / "smallest.json"
    file.write_text(snapshot_text(found.comparison.example), encoding="utf-8")

    evaluation = evaluate(BUNDLE, load_snapshot(file), as_of=found.comparison.example.as_of)

    assert ("AML-NET-001", found.comparison.subject) in {
        (finding.policy, finding.resource) for finding in evaluation.findings
    }


@pytest.mark.slow
def test_what_depends_on_a_parameter_and_the_clock_keeps_both() -> None:
    """A lie under one parameter and after one date shrinks to that parameter and a date after it."""
    after = datetime(2026, 6, 2, tzinfo=UTC)

    def lie(work: EvaluationRequest, pair: Pair, judgement: Judgement) -> Judgement:
        lies = work.parameters[pair.policy]["compute_manager_roles"] == [] and work.as_of > after
        return Judgement(error="x") if lies else judgement

    bundle, honest = alone("AML-RBAC-101")
    engines = [*honest, liar(lie)]
    tally = compare(bundle, engines, pairs=1500, seed=SEED)
    found = counterexample(tally.differences[0], bundle, engines)

    assert found.comparison.example.parameters == {"AML-RBAC-101": {"compute_manager_roles": []}}
    assert found.comparison.example.as_of > after


def test_a_difference_that_the_reader_would_hide_is_still_shown() -> None:
    """Where only a resource that `check` refuses makes engines differ, the counterexample states it."""

    def lie(work: EvaluationRequest, pair: Pair, judgement: Judgement) -> Judgement:
        broken = not isinstance(work.documents[pair.subject].get("properties"), dict)
        return Judgement(error="x") if broken and judgement.applies else judgement

    example = Example(
        {"resources": [{"id": "/w", "type": "Microsoft.MachineLearningServices/workspaces", "properties": [1, 2]}]},
        {},
        datetime(2026, 6, 1, tzinfo=UTC),
    )
    bundle, honest = alone("AML-NET-001")
    engines = [*honest, liar(lie)]
    difference = next(one for one in comparisons(bundle, example, engines) if differs(one))
    found = counterexample(difference, bundle, engines)

    assert "refuses" in found.note
    assert read(found.comparison.example.document) is None


def test_an_engine_that_dies_while_a_difference_is_shrunk_leaves_what_was_found() -> None:
    """The search ends with the note why, and the difference is not lost."""
    evaluated = Counter[str]()

    def lie(_: EvaluationRequest, __: Pair, judgement: Judgement) -> Judgement:
        evaluated["pairs"] += 1
        if evaluated["pairs"] > evaluated["most"] > 0:
            raise EngineError("the server went away")
        return Judgement(error="x") if judgement.denials else judgement

    bundle, honest = alone("AML-NET-001")
    engines = [*honest, liar(lie)]
    tally = compare(bundle, engines, pairs=100, seed=SEED)
    evaluated["most"] = evaluated["pairs"] + 12
    found = counterexample(tally.differences[0], bundle, engines)

    assert "the server went away" in found.note
    assert differs(found.comparison)


def test_an_engine_that_leaves_pairs_out_is_an_error() -> None:
    """Fewer judgements than pairs are no agreement."""
    short = Contestant("short", "1", lambda work, pairs: embedded.evaluate_pairs(work, pairs)[1:], IN_PROCESS[0].covers)

    with pytest.raises(EngineError, match="`short` returned"):
        compare(BUNDLE, [*IN_PROCESS, short], pairs=100, seed=1)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (Judgement(denials=(DENIED,)), Judgement(denials=(DENIED.model_copy(update={"actual": 1.0}),))),
        (Judgement(denials=(DENIED,)), Judgement(denials=(DENIED.model_copy(update={"actual": True}),))),
        (Judgement(denials=(DENIED,)), Judgement(denials=(DENIED.model_copy(update={"actual": None}),))),
        (Judgement(denials=(DENIED,)), Judgement(denials=(DENIED, DENIED))),
        (Judgement(), Judgement(applies=False)),
        (Judgement(), Judgement(error="")),
        (Judgement(unknowns=(Unknown(msg="a"),)), Judgement(denials=(Denial(msg="a"),))),
    ],
)
def test_judgements_that_a_report_would_distinguish_are_different(left: Judgement, right: Judgement) -> None:
    """Numbers by value and type, multisets, and an error whatever its message."""
    assert normalize_result(left) != normalize_result(right)


def test_the_order_of_denials_and_the_words_of_an_error_are_no_difference() -> None:
    """Engines have their own order and their own errors."""
    other = Denial(msg="n", actual={"b": 1, "a": [2]})

    assert normalize_result(Judgement(denials=(DENIED, other))) == normalize_result(Judgement(denials=(other, DENIED)))
    assert normalize_result(Judgement(error="deadline")) == normalize_result(
        Judgement(error="timeout", denials=(DENIED,))
    )


FOREIGN = """
deny contains {"msg": "m", "path": "/properties/mode", "actual": input.resource.properties.mode, "expected": "x"} if {
	lower(input.resource.properties.mode) == "feldspar"
	input.resource.properties.level > 41
}
"""


@pytest.mark.slow
def test_a_bundle_that_is_not_ours_is_met_from_both_sides_by_its_own_words(tmp_path: Path) -> None:
    """Nothing knows its type, pointers and constants but its own header and Rego."""
    text = rego("a", FOREIGN, more="inspects: [/properties/mode, /properties/level]\nwhen_absent: pass")
    text = text.replace("Microsoft.MachineLearningServices/workspaces", "Acme.Minerals/mines/shafts")
    bundle = load_bundle(write(tmp_path, {"area/a/a.rego": text}))

    tally = compare(bundle, [*contestants(bundle, without=["opa"]), honest("T-A-1")], pairs=3_000, seed=SEED)

    assert not tally.differing
    assert tally.outcomes["T-A-1"]["fail"] >= 5
    assert tally.outcomes["T-A-1"]["pass"] >= 100


def test_a_bundle_whose_policies_nothing_meets_is_an_error(tmp_path: Path) -> None:
    """A run that compares nothing does not end in agreement."""
    text = rego("a", deny_when("true")).replace("Microsoft.MachineLearningServices/workspaces", "approvals")
    bundle = load_bundle(write(tmp_path, {"area/a/a.rego": text}))
    deaf = [Contestant(entry.name, "1", entry.evaluate, frozenset()) for entry in contestants(bundle, without=["opa"])]

    with pytest.raises(EngineError, match="have no pair"):
        compare(bundle, deaf, pairs=10, seed=1)


def test_a_comparison_names_the_engines_that_differ_from_the_first() -> None:
    """Differences of one policy and the same engines are one kind."""
    example = Example({"resources": []}, {}, datetime(2026, 6, 1, tzinfo=UTC))
    judgements = (("a", Judgement()), ("b", Judgement(error="x")), ("c", Judgement()))

    assert EngineDifference("P-1", "r", judgements, example).kind == ("P-1", ("b",))


@settings(deadline=None, max_examples=effort(15, 150), suppress_health_check=[HealthCheck.too_slow])
@given(examples(BUNDLE))
def test_every_example_is_a_snapshot_with_valid_parameters(example: Example) -> None:
    """Nothing that is drawn is refused by the models or by the schemas of the parameters."""
    assert isinstance(example.snapshot, Snapshot)
    assert evaluate(
        BUNDLE.only([]), example.snapshot, as_of=example.as_of, parameters=dict(example.parameters)
    ).problems
