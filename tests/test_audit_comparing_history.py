"""The course of an estate, the lives of its findings, and other policies tried on its runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest

from policyeng.audit.diff.comparison import compare_states
from policyeng.audit.diff.impact import Proposed, evaluate_impact, exceeds
from policyeng.audit.diff.inputs import CauseKind, Readings, Stored
from policyeng.audit.diff.trends import FindingHistory, compute_trend, group_spans, list_histories
from policyeng.audit.records import AuditRun
from policyeng.models import Exemption
from tests.audits import POLICIES, START, Audited, exemption, policies
from tests.bundles import deny_when, rego, workspace

Estate = Mapping[str, Mapping[str, Mapping[str, object]]]


@pytest.fixture
def audited(tmp_path: Path, store_url: str) -> Iterator[Audited]:
    """An estate that was not audited yet, on each database."""
    made = Audited(tmp_path, store_url)
    yield made
    made.close()


def put(audited: Audited, x: int, **more: object) -> None:
    """Workspace `one` of part `a` as it is from now on."""
    audited.put("a", {"one": {"x": x, "owner": "o", **more}, "two": {"x": 0, "owner": "o"}})


def lives_on(audited: Audited, name: str) -> list[FindingHistory]:
    """The lives of what was found on a workspace."""
    identity = workspace(name)["id"]
    spans = [span for span in audited.store.spans("production") if span.resource == identity]
    return list(list_histories(audited.store, "production", spans))


def test_a_finding_begins_is_fixed_and_reopened_each_with_its_cause(audited: Audited) -> None:
    """Of the first run no more is known."""
    audited.audit()
    put(audited, 0)
    audited.audit()
    audited.audit()
    put(audited, 1, note="more")
    audited.audit()

    (life,) = lives_on(audited, "one")

    assert [(turn.run, turn.turn) for turn in life.turns] == [(1, "began"), (2, "fixed"), (4, "reopened")]
    causes = [[(cause.kind, [at.path for at in cause.paths]) for (cause,) in turn.causes] for turn in life.turns]
    assert causes == [[], [(CauseKind.RESOURCE, ["/properties/x"])], [(CauseKind.RESOURCE, ["/properties/x"])]]
    points = compute_trend("production", audited.store.runs("production"), audited.store.spans("production")).points
    assert [(p.new, p.changed, p.fixed, p.reopened, p.fail) for p in points] == [
        (1, 0, 0, 0, 1),
        (0, 0, 1, 0, 0),
        (0, 0, 0, 0, 0),
        (1, 0, 0, 1, 1),
    ]
    assert [(p.pass_count, p.strict_compliance) for p in points] == [(7, 87.5), (8, 100.0), (8, 100.0), (7, 87.5)]


def test_exemptions_policies_and_parts_make_turns(audited: Audited, tmp_path: Path) -> None:
    """An exemption changes a finding, another policy fixes it, a part that goes takes it along."""
    audited.audit()
    audited.audit(exemptions=[exemption("one", days=2)])
    audited.audit(exemptions=[exemption("one", days=2)])
    files = {**POLICIES, "area/x/x.rego": rego("x", deny_when("input.resource.properties.x == 2"))}
    audited.audit(bundle=policies(tmp_path / "other", files))
    audited.audit()
    audited.drop("a")
    audited.audit()

    (life,) = lives_on(audited, "one")
    turns = [(turn.run, turn.turn, turn.exempt, [c.kind for (c,) in turn.causes][:1]) for turn in life.turns]

    assert turns == [
        (1, "began", False, []),
        (2, "changed", True, [CauseKind.EXEMPTION]),
        (3, "changed", False, [CauseKind.EXEMPTION]),
        (4, "fixed", False, [CauseKind.POLICY]),
        (5, "reopened", False, [CauseKind.POLICY]),
        (6, "fixed", False, [CauseKind.RESOURCE]),
    ]
    assert life.turns[2].causes[0][0].change == "lapsed"


def test_what_is_in_a_part_that_cannot_be_read_is_lost_and_not_fixed(audited: Audited) -> None:
    """And there again when it can be read."""
    audited.audit()
    audited.write("a", b"{")
    audited.audit()
    put(audited, 1)
    audited.audit()

    (life,) = lives_on(audited, "one")
    runs = audited.store.runs("production")
    unread = Readings(audited.store, runs).is_unread
    points = compute_trend("production", runs, audited.store.spans("production"), is_unread=unread).points

    assert [(turn.turn, bool(turn.note), turn.causes) for turn in life.turns] == [
        ("began", False, ()),
        ("lost", True, ()),
        ("again", False, ()),
    ]
    assert [(p.new, p.fixed, p.lost, p.reopened) for p in points] == [(1, 0, 0, 0), (0, 0, 1, 0), (1, 0, 0, 0)]


def test_only_the_selected_turns_are_listed(audited: Audited) -> None:
    """Of one run, of several findings of a part."""
    audited.audit()
    audited.put("a", {"one": {"x": 0}, "two": {"x": 1, "owner": "o"}})
    second = audited.audit()

    spans = audited.store.spans("production")
    listed = list(list_histories(audited.store, "production", spans, lambda run: run.number == second.number))

    assert [(life.policy, life.resource.rpartition("/")[2], life.turns[0].turn) for life in listed] == [
        ("T-A-1", "one", "fixed"),
        ("T-A-1", "two", "new"),
        ("T-B-1", "one", "new"),
    ]
    assert [[at.path for (cause,) in life.turns[0].causes for at in cause.paths] for life in listed] == [
        ["/properties/x"],
        ["/properties/x"],
        ["/properties/owner"],
    ]


@pytest.mark.parametrize("seed", range(3))
def test_the_course_is_the_comparison_of_run_with_run(audited: Audited, seed: int) -> None:
    """Of estates, exemptions and clocks by chance: counts of spans against counts of comparisons."""
    random = Random(seed)  # noqa: S311  # nothing here is secret
    runs = []
    for number in range(5):
        for part in ("a", "b"):
            names = random.sample(["one", "two", "three"], random.randrange(1, 4))
            chosen = {f"{part}-{name}": {"x": random.randrange(2)} | _owner(random) for name in names}
            audited.put(part, chosen)
        waivers = [exemption(f"a-{name}", days=random.randrange(5)) for name in ("one", "two") if random.random() < 0.5]
        runs.append(audited.audit(exemptions=waivers, as_of=START + timedelta(days=number)))

    points = compute_trend("production", runs, audited.store.spans("production")).points

    for earlier, later, point in zip(runs, runs[1:], points[1:], strict=False):
        counts = [_counted(audited, earlier, later, part) for part in ("a.json", "b.json", "c.json")]
        assert [sum(numbers) for numbers in zip(*counts, strict=True)] == [point.new, point.changed, point.fixed]
    only = compute_trend("production", runs, audited.store.spans("production"), lambda span: span.policy == "T-A-1")
    rest = compute_trend("production", runs, audited.store.spans("production"), lambda span: span.policy != "T-A-1")
    for whole, one, other in zip(points, only.points, rest.points, strict=True):
        assert (whole.fail, whole.exempt) == (one.fail + other.fail, one.exempt + other.exempt)
        assert (whole.new, whole.reopened) == (one.new + other.new, one.reopened + other.reopened)


def _owner(random: Random) -> dict[str, object]:
    return {"owner": "o"} if random.random() < 0.5 else {}


def _counted(audited: Audited, earlier: AuditRun, later: AuditRun, part: str) -> tuple[int, int, int]:
    (before, old), (after, new) = (Stored(audited.store, run).state(part) for run in (earlier, later))
    comparison = compare_states(before, after, found=(old, new), with_causes=False)
    return len(comparison.new), len(comparison.changed), len(comparison.fixed)


def test_spans_of_one_id_with_two_types_are_two_lives(audited: Audited) -> None:
    """Though a store sorts them between each other."""
    audited.audit()
    (span,) = audited.store.spans("production")
    other = span.model_copy(update={"resource_type": "other", "first": 2})

    assert [len(life) for life in group_spans([span, other, span.model_copy(update={"first": 3})])] == [2, 1]


def test_the_impact_of_other_policies_is_counted_by_policy_and_owner(audited: Audited, tmp_path: Path) -> None:
    """With the clock and the exemptions of the run, or others."""
    audited.put("b", {"three": {"x": 2, "owner": "o"}})
    run = audited.audit(exemptions=[exemption("one")])
    files = {**POLICIES, "area/x/x.rego": rego("x", deny_when("input.resource.properties.x in {1, 2}"))}
    bundle = policies(tmp_path / "other", files)

    same = evaluate_impact(audited.store, run, Proposed(bundle, {}))
    without: tuple[Exemption, ...] = ()
    bare = evaluate_impact(audited.store, run, Proposed(bundle, {}, without))
    none = evaluate_impact(audited.store, run, Proposed(audited.held.bundle, {}))

    assert (same.parts, same.total.failing, [tally.name for tally in same.by_policy]) == (3, 1, ["T-A-1"])
    assert [(one.shift, one.part, one.flip.finding.resource) for one in same.listed] == [
        ("newly failing", "b.json", workspace("three")["id"])
    ]
    assert (bare.total.failing, [tally.failing for tally in bare.by_owner]) == (2, [2])
    assert (none.total.failing, none.listed, none.by_policy) == (0, (), ())
    assert [exceeds([same, bare], most) for most in (None, 2, 1)] == [False, False, True]


def test_an_impact_distinguishes_what_is_not_evaluated_any_more_from_what_passes(
    audited: Audited, tmp_path: Path
) -> None:
    """And what could not be evaluated is a problem, with its part."""
    run = audited.audit()
    other = policies(tmp_path / "other", {"area/x/x.rego": rego("x", deny_when("false"))})
    gone = policies(tmp_path / "gone", {"area/y/y.rego": rego("y", deny_when("false"), identity="T-C-1")})
    types = (tmp_path / "gone/area/y/y.rego").read_text(encoding="utf-8").replace("/workspaces", "/registries")
    elsewhere = policies(tmp_path / "elsewhere", {"area/y/y.rego": types})

    passing, unjudged, nothing = (
        evaluate_impact(audited.store, run, Proposed(bundle, {})) for bundle in (other, gone, elsewhere)
    )

    assert (passing.total.passing, passing.total.unjudged) == (1, 0)
    assert (unjudged.total.passing, unjudged.total.unjudged) == (0, 1)
    assert [(problem.level, problem.place) for problem in nothing.problems] == [
        ("error", f"{part}.json") for part in "abc"
    ]
