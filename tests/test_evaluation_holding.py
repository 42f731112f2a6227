"""Until when an evaluation holds: for each use of the clock, and what is judged again at a later one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from policyeng.bundle import Bundle, load_bundle
from policyeng.bundle.clocks import Clock
from policyeng.evaluation import evaluate, prepare
from policyeng.evaluation.holding import Holding, held, taken_over
from policyeng.evaluation.terms import Terms
from policyeng.models import Exemption, Snapshot
from policyeng.report import json
from tests.bundles import WORKSPACE, deny_when, rego, snapshot, workspace, write

NOW = datetime(2026, 6, 1, tzinfo=UTC)
DAY, BLUR = timedelta(days=1), timedelta(milliseconds=1)
SEEN = workspace(seen="2026-05-25T00:00:00Z", ends="2026-07-01", x=1)

PYTHON = """\
{imports}
from datetime import timedelta

from policyeng import Denial, policy
from policyeng.facts.times import moment


@policy(
    id="T-P-1",
    title="It holds",
    severity="low",
    judges=["Microsoft.MachineLearningServices/workspaces"],
    {more}
)
def p(given):
    seen = moment(given.resource["properties"]["seen"])
    if {condition}:
        yield Denial(msg="m", path="/properties/seen", actual=1, expected=2)
"""


def python(folder: Path, condition: str, imports: str = "", more: str = "") -> Bundle:
    """A bundle of one Python policy."""
    return load_bundle(write(folder, {"area/p/p.py": PYTHON.format(condition=condition, imports=imports, more=more)}))


def later_than(text: str, more: str = "") -> str:
    """A Rego policy that denies once the clock is past a time."""
    return rego("r", deny_when(f"time.parse_rfc3339_ns(input.as_of) > {text}"), identity="T-R-1", more=more)


def holding(bundle: Bundle, *resources: object, at: datetime = NOW, **terms: object) -> Holding:
    """What judging a snapshot comes to."""
    given = Snapshot.model_validate({"resources": resources or (SEEN,)})
    return held(prepare(bundle, given), Terms(at, **terms))  # type: ignore[arg-type]  # fields by name


def test_what_reads_no_clock_holds_for_ever(tmp_path: Path) -> None:
    """In both languages."""
    bundle = load_bundle(write(tmp_path / "rego", {"area/r/r.rego": rego("r", deny_when("input.resource.x"))}))

    assert holding(bundle)[1:] == (None, ())
    assert holding(python(tmp_path, "seen is None"))[1:] == (None, ())


def test_python_holds_until_a_comparison_comes_out_otherwise(tmp_path: Path) -> None:
    """Ten days after it was last seen, but for a millisecond."""
    found = holding(python(tmp_path, "given.as_of - seen > timedelta(days=10)"))

    assert found[1:] == (datetime(2026, 6, 4, tzinfo=UTC) - BLUR, ())
    assert found.holds_at(NOW + DAY)
    assert not found.holds_at(NOW + 3 * DAY)
    assert not found.holds_at(NOW - DAY)


@pytest.mark.parametrize(
    ("condition", "imports"),
    [
        ("given.as_of.day > 3", ""),
        ("(given.as_of - seen).days > 3", ""),
        ("str(given.as_of) > '2026-06-04'", ""),
        ("given.as_of > seen", "import os"),
        ("moment('2026-06-04') < __import__('datetime').datetime.now(given.as_of.tzinfo)", ""),
        ("seen.now(seen.tzinfo) > seen", ""),
        ("1 / (given.as_of > seen) > 2 or 1 / 0", ""),
    ],
)
def test_python_that_asks_more_is_judged_again_each_time(tmp_path: Path, condition: str, imports: str) -> None:
    """It asks for a part of the clock, may ask another one, or breaks."""
    found = holding(python(tmp_path, condition, imports))

    assert found.again == ("T-P-1",)


def test_rego_is_taken_at_its_word(tmp_path: Path) -> None:
    """Without one it is judged again each time; the next of the times in sight counts, also in `data`."""
    text = "time.parse_rfc3339_ns(input.resource.properties.seen)"
    files = {"area/r/r.rego": later_than(text), "facts/data.json": '{"retired_sizes": {}, "day": "2026-06-20"}'}
    free = load_bundle(write(tmp_path / "free", files))
    stated = load_bundle(write(tmp_path / "stated", {**files, "area/r/r.rego": later_than(text, "clock: compared")}))
    moved = load_bundle(write(tmp_path / "moved", {**files, "area/r/r.rego": later_than(text, "clock: [P10D]")}))

    assert (free.clocks, stated.clocks) == ((Clock.FREE,), (Clock.STATED,))
    assert holding(free)[1:] == (None, ("T-R-1",))
    assert holding(stated)[1:] == (datetime(2026, 6, 20, tzinfo=UTC) - BLUR, ())
    assert holding(moved)[1:] == (datetime(2026, 6, 4, tzinfo=UTC) - BLUR, ())


def test_days_of_a_parameter_move_times(tmp_path: Path) -> None:
    """As many as the policy is judged with."""
    more = 'clock: ["parameter:days"]\nparameters: {days: {type: integer, default: 8}}'
    text = "time.add_date(time.parse_rfc3339_ns(input.resource.properties.seen), 0, 0, input.parameters.days)"
    bundle = load_bundle(write(tmp_path, {"area/r/r.rego": later_than(text, more)}))
    given = snapshot(SEEN)

    assert holding(bundle).until == datetime(2026, 6, 2, tzinfo=UTC) - BLUR
    found = held(prepare(bundle, given, {"T-R-1": {"days": 11}}), Terms(NOW))
    assert found.until == datetime(2026, 6, 5, tzinfo=UTC) - BLUR


def test_exemptions_begin_and_end(tmp_path: Path) -> None:
    """A mark that goes is another evaluation."""
    bundle = load_bundle(write(tmp_path, {"area/r/r.rego": rego("r", deny_when("input.resource.properties.x == 1"))}))
    exemption = Exemption(
        id="E",
        policy="T-A-1",
        scope=WORKSPACE,
        category="waiver",
        reason="r",
        owner="a",
        approved_by="b",
        created_at=NOW - DAY,
        expires_at=NOW + 5 * DAY,
    )

    assert holding(bundle, exemptions=[exemption]).until == NOW + 5 * DAY - BLUR
    assert holding(bundle, exemptions=[exemption], at=NOW + 5 * DAY).until == NOW + 5 * DAY
    assert holding(bundle, exemptions=[exemption], at=NOW + 6 * DAY).until is None


def test_what_is_taken_over_is_what_judging_anew_gives(tmp_path: Path) -> None:
    """Only the policy that must be is judged again; its finding is put where it belongs."""
    day = 'time.weekday(time.parse_rfc3339_ns(input.as_of)) == "Tuesday"'
    files = {
        "area/day/day.rego": rego("day", deny_when(day), identity="T-M-1"),
        "area/a/a.rego": rego("a", deny_when("input.resource.properties.x == 1"), identity="T-A-1"),
        "area/z/z.rego": rego("z", deny_when("input.resource.properties.x == 2"), identity="T-Z-1"),
    }
    bundle, given = load_bundle(write(tmp_path, files)), snapshot(SEEN, workspace("v", x=2))
    before = held(prepare(bundle, given), Terms(NOW))

    after = taken_over(before, Terms(NOW + DAY), lambda: prepare(bundle, given))

    assert before.again == ("T-M-1",)
    assert json.render(after.evaluation) == json.render(evaluate(bundle, given, as_of=NOW + DAY))
    assert after.evaluation.summary.fail == before.evaluation.summary.fail + 2
    assert after[1:] == before[1:]


def test_where_nothing_must_be_judged_nothing_is_read(tmp_path: Path) -> None:
    """The clock of the evaluation is the only difference."""
    bundle = python(tmp_path, "given.as_of > seen")
    before = holding(bundle)

    def unneeded() -> object:
        raise AssertionError

    after = taken_over(before, Terms(NOW + DAY), unneeded)  # type: ignore[arg-type]  # it is not called

    assert json.render(after.evaluation) == json.render(evaluate(bundle, snapshot(SEEN), as_of=NOW + DAY))


def test_our_policies_say_what_they_do_with_the_clock() -> None:
    """None of them is judged again for want of a word."""
    assert Clock.FREE not in load_bundle().clocks
