"""Comparing two states: each kind of cause by itself, several together, and each of several alone."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from policyeng.audit.diff.comparison import compare_states
from policyeng.audit.diff.inputs import Cause, CauseKind, Comparison, Flip, State, evaluate_state
from policyeng.audit.diff.root_causes import find_smallest_sets
from policyeng.bundle import Bundle, load_bundle
from policyeng.errors import EngineError
from policyeng.evaluation import EvaluationOptions
from policyeng.models import EngineRef, Exemption, JsonObject, Outcome, Severity
from tests.bundles import deny_when, rego, snapshot, workspace, write

AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
X = deny_when("input.resource.properties.x == 1")
DAY = timedelta(days=1)


def bundle_of(folder: Path, body: str = X, *, more: str = "", files: Mapping[str, str] = {}) -> Bundle:
    """A bundle of one policy."""
    return load_bundle(write(folder, {"area/p/p.rego": rego("p", body, more=more), **files}))


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    """It denies an `x` of 1."""
    return bundle_of(tmp_path / "b")


def state(bundle: Bundle, *resources: JsonObject, **more: Any) -> State:
    """Resources, evaluated at the usual clock unless `more` has another."""
    return State(bundle, snapshot(*resources), EvaluationOptions(AS_OF, **more))


def only_flip(comparison: Comparison) -> Flip:
    """The one thing that flips."""
    (flip,) = comparison.flips
    return flip


def only_cause(comparison: Comparison) -> Cause:
    """The one cause of it."""
    ((cause,),) = only_flip(comparison).causes
    return cause


def waiver(*, begins: datetime = AS_OF - DAY, ends: datetime = AS_OF + DAY, name: str = "E-1") -> Exemption:
    """An exemption of every workspace of the tests."""
    who = {"owner": "a", "approved_by": "b", "reason": "r", "category": "waiver"}
    times = {"created_at": begins, "expires_at": ends}
    return Exemption.model_validate({"id": name, "policy": "T-A-1", "scope": "/subscriptions/s", **who, **times})


def test_of_all_that_changed_only_what_counts_is_named(bundle: Bundle) -> None:
    """One field of one resource, with what was there."""
    before = state(bundle, workspace("w", x=0, y=1), workspace("v", x=0))
    after = state(bundle, workspace("w", x=1, y=2, z=3), workspace("v", x=0, y=5))

    comparison = compare_states(before, after)
    cause = only_cause(comparison)

    assert (cause.kind, cause.change, cause.subject) == (CauseKind.RESOURCE, "changed", workspace("w")["id"])
    assert [change.model_dump() for change in cause.paths] == [
        {"path": "/properties/x", "change": "changed", "before": 0, "after": 1}
    ]
    assert (comparison.exit_code, len(comparison.new), only_flip(comparison).before) == (1, 1, Outcome.PASS)


@pytest.mark.parametrize(("there", "change", "listed"), [(True, "came", "new"), (False, "went", "fixed")])
def test_a_resource_that_comes_or_goes_is_the_cause(bundle: Bundle, there: bool, change: str, listed: str) -> None:
    """With what was found of it before or after."""
    few, many = state(bundle, workspace("v")), state(bundle, workspace("v"), workspace("w", x=1))

    comparison = compare_states(few, many) if there else compare_states(many, few)

    assert only_cause(comparison).change == change
    assert len(getattr(comparison, listed)) == 1


def test_another_resource_that_the_policy_looks_at_is_named(tmp_path: Path) -> None:
    """The evaluated one stays as it is."""
    hub = "input.snapshot.by_id[lower(input.resource.properties.hub)].properties.x > 1"
    bundle = bundle_of(tmp_path, deny_when(hub))
    spoke = workspace("w", hub=workspace("hub")["id"])
    others = [workspace(f"o{number}", x=number) for number in range(20)]
    before = state(bundle, workspace("hub", x=1, y=1), spoke, *others)
    after = state(bundle, workspace("hub", x=2, y=2), spoke, *(workspace(f"o{number}", x=0) for number in range(20)))

    cause = only_cause(compare_states(before, after))

    assert cause.subject == workspace("hub")["id"]
    assert [change.path for change in cause.paths] == ["/properties/x"]


def test_causes_that_need_each_other_are_listed_together_and_others_apart(tmp_path: Path) -> None:
    """Undoing one of two that were both needed undoes the flip; of two that each suffice both have to be undone."""
    both = bundle_of(tmp_path / "and", deny_when("input.resource.properties.x + input.resource.properties.y == 2"))
    each = bundle_of(tmp_path / "or", X + "\n" + deny_when("input.resource.properties.y == 1"))
    sides = [workspace("w", x=0, y=0)], [workspace("w", x=1, y=1)]

    apart = only_flip(compare_states(state(both, *sides[0]), state(both, *sides[1]))).causes
    ((together,),) = only_flip(compare_states(state(each, *sides[0]), state(each, *sides[1]))).causes

    assert [[change.path for cause in causes for change in cause.paths] for causes in apart] == [
        ["/properties/x"],
        ["/properties/y"],
    ]
    assert [change.path for change in together.paths] == ["/properties/x", "/properties/y"]


def test_a_policy_and_what_it_shares_with_others_are_distinguished(tmp_path: Path) -> None:
    """By digests; of data with the places."""
    shared = deny_when("input.resource.properties.x == data.limits.most")
    one, other, shifted, library = (
        bundle_of(tmp_path / "1"),
        bundle_of(tmp_path / "2", deny_when("input.resource.properties.x == 2")),
        bundle_of(tmp_path / "3", shared, files={"limits/data.json": '{"most": 1}'}),
        bundle_of(tmp_path / "4", shared, files={"limits/data.json": '{"most": 2}'}),
    )
    ws = workspace("w", x=2)

    policy = only_cause(compare_states(state(one, ws), state(other, ws)))
    data = only_cause(compare_states(state(shifted, ws), state(library, ws)))

    assert (policy.kind, policy.change, policy.subject) == (CauseKind.POLICY, "changed", "T-A-1")
    assert len({policy.before, policy.after, ""}) == 3
    assert (data.kind, data.before, data.after) == (CauseKind.LIBRARY, shifted.digest, library.digest)
    assert [(change.path, change.before, change.after) for change in data.paths] == [("/limits/most", 1, 2)]


def test_a_new_policy_finds_what_no_other_looked_for(tmp_path: Path, bundle: Bundle) -> None:
    """And takes it with it when it goes."""
    second = rego("q", deny_when("input.resource.properties.y == 1"), identity="T-B-1")
    more = bundle_of(tmp_path / "more", files={"area/q/q.rego": second})
    ws = workspace("w", y=1)

    came, went = (compare_states(state(a, ws), state(b, ws)) for a, b in ((bundle, more), (more, bundle)))

    assert (only_cause(came).change, only_flip(came).before) == ("came", None)
    assert (only_cause(went).change, only_flip(went).after) == ("went", None)


def test_parameters_are_named_with_their_values(tmp_path: Path) -> None:
    """Those of the policy, whatever others have."""
    more = "parameters: {most: {type: integer, default: 5}}"
    bundle = bundle_of(tmp_path, deny_when("input.resource.properties.x > input.parameters.most"), more=more)
    before = state(bundle, workspace("w", x=3))

    cause = only_cause(compare_states(before, before.with_options(parameters={"T-A-1": {"most": 2}})))

    assert (cause.kind, cause.subject) == (CauseKind.PARAMETERS, "T-A-1")
    assert [(change.path, change.change, change.after) for change in cause.paths] == [("/most", "came", 2)]


LATER = waiver(begins=AS_OF + DAY, ends=AS_OF + 3 * DAY)


@pytest.mark.parametrize(
    ("was", "now", "days", "change", "exit_code"),
    [
        ([], [waiver()], 0, "began", 0),
        ([waiver()], [], 0, "ended", 1),
        ([waiver()], [waiver()], 1, "lapsed", 1),
        ([LATER], [LATER], 1, "began", 0),
    ],
)
def test_an_exemption_begins_ends_or_lapses(
    bundle: Bundle, was: list[Exemption], now: list[Exemption], days: int, change: str, exit_code: int
) -> None:
    """Which is another thing than the clock, though it may be the clock that does it."""
    before = state(bundle, workspace("w", x=1), exemptions=was)
    after = before.with_options(exemptions=now, as_of=AS_OF + days * DAY)

    comparison = compare_states(before, after)
    cause = only_cause(comparison)

    assert (cause.kind, cause.change, cause.subject, comparison.exit_code) == (
        CauseKind.EXEMPTION,
        change,
        "E-1",
        exit_code,
    )
    assert len(comparison.changed) == 1


def test_the_clock_is_the_cause_where_nothing_else_is(tmp_path: Path) -> None:
    """And is not, where the policy does not look at it."""
    bundle = bundle_of(tmp_path, deny_when('input.as_of > "2026-06-02"'))
    before = state(bundle, workspace("w", x=1))

    cause = only_cause(compare_states(before, before.with_options(as_of=AS_OF + 7 * DAY)))

    assert (cause.kind, cause.before, cause.after) == (CauseKind.CLOCK, "2026-06-01T00:00:00Z", "2026-06-08T00:00:00Z")


def test_a_statement_of_the_snapshot_is_a_cause(tmp_path: Path) -> None:
    """Such as an approval, by its place."""
    bundle = bundle_of(tmp_path, deny_when('input.snapshot.approvals[_].status == "revoked"'))
    approval = {"id": "A-1", "scope": "/subscriptions/s", "status": "granted"}
    before, after = (
        State(bundle, snapshot(workspace("w"), approvals=[{**approval, "status": status}]), EvaluationOptions(AS_OF))
        for status in ("granted", "revoked")
    )

    cause = only_cause(compare_states(before, after))

    assert (cause.kind, cause.subject, [change.path for change in cause.paths]) == (
        CauseKind.APPROVAL,
        "A-1",
        ["/status"],
    )


def test_secrets_are_masked_in_causes(tmp_path: Path) -> None:
    """As they are in reports."""
    bundle = bundle_of(tmp_path, deny_when("count(input.resource.properties.password) > 3"))
    before, after = (state(bundle, workspace("w", password=text)) for text in ("abc", "hunter2"))

    comparison = compare_states(before, after)

    assert only_cause(comparison).paths[0].after == "***"
    assert "hunter2" not in comparison.model_dump_json()


def test_a_failure_for_a_new_reason_has_changed_and_fails_the_gate(tmp_path: Path) -> None:
    """One that has lost a reason has changed too, and does not."""
    second = deny_when("input.resource.properties.y == 1").replace('"m"', '"other"')
    bundle = bundle_of(tmp_path, f"{X}\n{second}")
    one, two = state(bundle, workspace("w", x=1)), state(bundle, workspace("w", x=1, y=1))

    worse, better = compare_states(one, two), compare_states(two, one)

    assert (len(worse.changed), worse.exit_code) == (1, 1)
    assert (len(better.changed), better.exit_code) == (1, 0)
    assert [change.path for change in only_cause(worse).paths] == ["/properties/y"]


def test_the_gate_is_that_of_check(tmp_path: Path) -> None:
    """Below `fail_on` nothing counts; an unknown counts where it is strict; what cannot be decided outranks all."""
    unknown = f'{deny_when("false")}\nunknown contains {{"msg": "u"}} if input.resource.properties.x == 1'
    failing, undecided, broken = (
        bundle_of(tmp_path / name, body) for name, body in (("f", X), ("u", unknown), ("e", deny_when(_ERROR)))
    )
    sides = workspace("w", x=0), workspace("w", x=1)

    def code(bundle: Bundle, **criteria: Any) -> int:
        return compare_states(state(bundle, sides[0]), state(bundle, sides[1], **criteria)).exit_code

    assert [code(failing, fail_on=severity) for severity in (Severity.HIGH, Severity.CRITICAL)] == [1, 0]
    assert [code(undecided, strict_unknown=strict) for strict in (False, True)] == [0, 1]
    assert code(broken, fail_on=Severity.CRITICAL) == 2


#: An error of a builtin, where `x` is 1.
_ERROR = 'input.resource.properties.x == 1; to_number(concat("", ["a"])) == 1'


def test_another_engine_is_a_cause_where_it_decides_otherwise(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of findings that are stored, where the same inputs no longer give them; without one nothing is reported."""
    before = state(bundle, workspace("w", x=1))
    now = evaluate_state(before)
    passed = [one.model_copy(update={"outcome": Outcome.PASS, "denials": ()}) for one in now.findings]
    was = now.model_copy(update={"findings": tuple(passed), "engine": EngineRef(name="embedded", version="0.1")})

    cause = only_cause(compare_states(before, before, found=(was, now)))
    assert (cause.kind, cause.before) == (CauseKind.ENGINE, "embedded 0.1")

    alike = was.model_copy(update={"engine": now.engine})
    unexplained = compare_states(before, before, found=(alike, now))
    assert only_flip(unexplained).causes == ()
    assert ["does not reproduce the stored findings" in problem.message for problem in unexplained.problems] == [True]

    def fails(*_: object, **__: object) -> None:
        raise EngineError("no")

    monkeypatch.setattr("policyeng.audit.diff.root_causes.evaluate_pairs", fails)
    assert only_flip(compare_states(before, state(bundle, workspace("w", x=0)))).causes == ()


def test_problems_name_their_side(bundle: Bundle) -> None:
    """Those of both sides are listed once."""
    before = State(bundle, snapshot(workspace("w"), incomplete=["roles: 403", "old: 1"]), EvaluationOptions(AS_OF))
    after = State(bundle, snapshot(workspace("w"), incomplete=["roles: 403"]), EvaluationOptions(AS_OF))

    messages = [problem.message for problem in compare_states(before, after).problems]

    assert messages == ["not read: roles: 403", "before: not read: old: 1"]


def test_the_smallest_sets_are_found_and_beyond_the_bound_one_without_a_needless_member() -> None:
    """Against the definition, for every family of sets over few units."""
    units = list(range(6))
    for wanted in ({3}, {1, 4}, {0, 2, 5}):
        found = find_smallest_sets(units, lambda chosen, wanted=wanted: wanted <= chosen)  # type: ignore[misc]  # bound at once
        assert found == [frozenset(wanted)]
    either = find_smallest_sets(units, lambda chosen: 1 in chosen or 4 in chosen)
    assert either == [frozenset({1}), frozenset({4})]
    many = list(range(200))
    (one,) = find_smallest_sets(many, lambda chosen: {7, 90, 180} <= chosen)
    assert one == {7, 90, 180}
