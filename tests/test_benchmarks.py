"""The benchmarks: equal verdicts of real contestants, or no figures, and a page of them. No times are asserted."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import orjson
import pytest

from benchmarks import batch, estates
from benchmarks.chart import write_charts
from benchmarks.field import CHECK, CONFTEST, END_TO_END, OPA_EXEC, Tools, divided, whole
from benchmarks.opa_server import Batched, Server
from benchmarks.page import render, time_of
from benchmarks.preparing import Prepared, prepared, selections
from benchmarks.processes import Launcher
from benchmarks.runs import COLD, GROWTH, WARM, WHOLE, Outcome, Program, measured
from benchmarks.targets import targets
from benchmarks.timing import DifferentVerdictsError, Measure, Pace, repeated, require_equal
from benchmarks.verdicts import Verdicts, of_judgements
from policyeng.engines import Judgement
from policyeng.sources import load_snapshot
from tests.conftest import ROOT

ONCE = Pace(1, 1, 0.0)
DENIED = ("P-1", "/r", "deny", "m", "/p")


@pytest.fixture
def tools(tmp_path: Path) -> Tools:
    """The real binaries."""
    return Tools(ROOT / ".tools/bin/opa", ROOT / ".tools/bin/conftest", tmp_path, "v0")


@pytest.fixture
def made(tmp_path: Path) -> Prepared:
    """A small estate for all policies."""
    file = tmp_path / "estate.json"
    file.write_bytes(estates.document(90))
    *_, everything = selections().values()
    return prepared(everything, file)


@pytest.mark.parametrize("size", [1, 10, 31, 100])
def test_an_estate_has_its_size_and_is_the_same_every_time(size: int, tmp_path: Path) -> None:
    """Distinct ids, nothing that the plan would decide without an engine."""
    document = estates.document(size)
    file = tmp_path / "estate.json"
    file.write_bytes(document)

    assert document == estates.document(size)
    assert len({resource["id"].lower() for resource in orjson.loads(document)["resources"]}) == size
    for bundle in selections().values():
        assert prepared(bundle, file).work.pairs


def test_an_estate_is_met_from_every_side(made: Prepared) -> None:
    """Clean pairs, denials and unknowns."""
    expected = made.expected()

    assert {role for _, _, role, _, _ in expected.statements} == {"deny", "unknown"}
    assert expected.decided is not None
    assert expected.decided > len({verdict[:2] for verdict in expected.statements})


@pytest.mark.slow
def test_a_tiny_run_is_a_page(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every contestant is in the tables, the charts are drawn, and the figures survive as JSON."""
    few = {"all 5": selections()["5"]}  # with all policies, Conftest alone would take most of a minute
    monkeypatch.setattr("benchmarks.runs.selections", lambda: few)
    outcome = measured(Program("tiny", (12,), ONCE, ONCE, 12, ONCE, (6, 12)), tools, None, "A trial.")

    page = render(outcome)
    contestants = {measure.contestant for measure in outcome.measures}
    assert {divided(END_TO_END, 1), divided(END_TO_END, 2), divided(CHECK, 1), OPA_EXEC, CONFTEST} <= contestants
    assert all(f"| {contestant} |" in page for contestant in contestants)
    assert "A trial." in page
    assert "tests the harness" in page
    assert len([line for line in page.splitlines() if "| not measured |" in line]) == 13
    again = Outcome.read(json.loads(json.dumps(asdict(outcome))))
    assert render(again) == page
    write_charts(again, tools.folder)
    for name in ("benchmarks-warm.svg", "benchmarks-process.svg"):
        assert (tools.folder / name).read_text(encoding="utf-8").count("<circle") >= 4
        assert "<script" not in (tools.folder / name).read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_contestant_that_evaluates_less_stops_the_run(tools: Tools, made: Prepared) -> None:
    """`opa exec` and Conftest with the pairs of one policy left out."""
    with whole(tools, made) as contestants:
        document = tools.folder / "whole" / "snapshot.json"
        given = orjson.loads(document.read_bytes())
        given["pairs"]["AML-SKU-103"] = []
        document.write_bytes(orjson.dumps(given))
        opa_exec, conftest = (one for one in contestants if one.name in {OPA_EXEC, CONFTEST})

        with pytest.raises(DifferentVerdictsError, match=r"opa exec: .* pairs were decided instead"):
            require_equal([opa_exec])
        with pytest.raises(DifferentVerdictsError, match=r"conftest test: .* statements are missing"):
            require_equal([conftest])


def test_a_server_with_another_policy_stops_the_run(tools: Tools, made: Prepared) -> None:
    """The same pairs, other words."""
    folder = batch.write_bundle(made.bundle, tools.folder / "bundle")
    policy = next(path for path in folder.rglob("known_size.rego"))
    policy.write_text(policy.read_text(encoding="utf-8").replace('"msg": "', '"msg": "not '), encoding="utf-8")
    server = Server(tools.opa, folder)
    try:
        with pytest.raises(DifferentVerdictsError, match=r"are missing, \d+ are new"):
            require_equal([Batched(made, server)])
    finally:
        server.close()


def test_verdicts_differ_in_count_in_words_and_in_number() -> None:
    """The comparison that everything rests on."""
    one = Verdicts(Counter([DENIED]), 2)

    assert one.difference(one) == ""
    assert one.difference(Verdicts(one.statements, None)) == ""
    assert Verdicts(one.statements + one.statements, 2).difference(Verdicts(one.statements, None)) == ""
    assert one.difference(Verdicts(one.statements, 1)) == "1 pairs were decided instead of 2"
    assert "1 statements are missing, 0 are new" in one.difference(Verdicts(Counter(), 2))
    assert "0 statements are missing, 1 are new" in one.difference(Verdicts(Counter([DENIED, DENIED]), 2))


def test_a_policy_that_breaks_is_not_measured() -> None:
    """An error is no verdict."""
    with pytest.raises(ValueError, match="P-1 broke on /r: deadline"):
        of_judgements([("P-1", "/r")], [Judgement(error="deadline")])


@dataclass
class Counted:
    """A contestant that writes down when it runs."""

    name: str
    ran: list[str]
    sample: int | None = None
    given: Verdicts | None = field(default=None)

    def verdicts(self) -> Verdicts | None:
        """Nothing."""
        return self.given

    def expected(self) -> Verdicts | None:
        """One denial."""
        return Verdicts(Counter([DENIED]), 1)

    def run(self) -> float:
        """The number of the run."""
        self.ran.append(self.name)
        return float(len(self.ran))

    def processor(self) -> float:
        """One second a run."""
        return float(self.ran.count(self.name))

    def peak_mb(self) -> float:
        """Nothing."""
        return 0.0

    def close(self) -> None:
        """Nothing."""


def test_rounds_are_interleaved_and_start_in_turn() -> None:
    """None is always first, and none runs twice in a row."""
    ran: list[str] = []

    seconds = repeated([Counted(name, ran) for name in "abc"], Pace(3, 9, 0.0))

    assert "".join(ran) == "abcbcacab"
    assert seconds == [[1.0, 6.0, 8.0], [2.0, 4.0, 9.0], [3.0, 5.0, 7.0]]


def test_only_what_evaluates_is_compared() -> None:
    """A measure of parsing has no verdicts; a wrong one has."""
    require_equal([Counted("parse", [])])

    with pytest.raises(DifferentVerdictsError, match="wrong: "):
        require_equal([Counted("wrong", [], given=Verdicts(Counter(), 1))])


def outcome_of(*measures: tuple[str, str, int, float]) -> Outcome:
    """An outcome with a median for each (group, contestant, size)."""
    made = [Measure(group, name, size, "all", 10, [seconds], 1.0, seconds) for group, name, size, seconds in measures]
    return Outcome("full", "", "2026-06-01", {}, {}, made, grown=[9.0, 1.0, 1.0, 1.0, 1.0, 1.02], grown_size=5)


@pytest.mark.parametrize(("seconds", "met"), [(5.0, True), (4.9, False)])
def test_a_target_is_met_or_missed(seconds: float, met: bool) -> None:
    """At the bar is met; the figure is the ratio of medians."""
    outcome = outcome_of(
        (WARM, divided(END_TO_END, 1), 1_000, 1.0), (WARM, "OPA server, one batched query", 1_000, seconds)
    )

    first, *others = targets(outcome)

    assert (first.measured, first.met) == (f"{seconds}x", met)
    assert [target.what for target in others if target.measured is not None] == [
        "memory over 6 snapshots of 5 resources in one process"
    ]


def test_starts_and_processes_have_their_own_bars() -> None:
    """A start may cost 1.7 times the import, and 1.5 times what OPA's does; two processes are worth 1.4."""
    outcome = outcome_of(
        (COLD, "python, import typer, pydantic", 40, 1.0),
        (COLD, "opa exec, 40 resources", 40, 1.1),
        (COLD, "policyeng check, 40 resources, all policies", 40, 1.8),
        (WARM, divided(END_TO_END, 1), 10_000, 1.7),
        (WARM, divided(END_TO_END, 2), 10_000, 1.0),
        (WHOLE, divided(CHECK, 1), 10_000, 1.0),
        (WHOLE, CONFTEST, 10_000, 8.0),
    )

    by_name = {target.what.split(",")[0]: (target.measured, target.met) for target in targets(outcome)}
    start, exec_ = (target for target in targets(outcome) if target.what.startswith("start of"))

    assert by_name["two processes"] == ("1.7x", True)
    assert (start.measured, start.met) == ("1.80x", False)
    assert (exec_.measured, exec_.met) == ("1.64x", False)
    assert by_name["the same: Conftest"] == ("8.0x", True)


def test_growth_has_its_own_bars() -> None:
    """Processor time by size, and memory by the size of the file."""
    largest = [(GROWTH, next(iter(estates.KINDS)), size, size / 10_000) for size in (10_000, 40_000, 100_000)]
    outcome = replace(outcome_of(*largest), input_mb={"10000": 0.1})

    measured_targets = {target.what: (target.measured, target.met) for target in targets(outcome)}

    assert measured_targets["growth of the processor time, 40,000 resources: 10,000"] == ("4.0x", True)
    assert measured_targets["processor time, 100,000 resources"] == ("10 s", True)
    assert measured_targets["peak memory, 10,000 resources: the file"] == ("10.0x", True)


@pytest.mark.parametrize("kind", estates.KINDS)
def test_every_kind_of_estate_is_read_as_a_whole(kind: str, tmp_path: Path) -> None:
    """The same resources, and the same bytes every time."""
    file = tmp_path / "estate.json"
    file.write_bytes(estates.KINDS[kind](60))

    assert file.read_bytes() == estates.KINDS[kind](60)
    assert len(load_snapshot(file).resources) == 60


def test_memory_that_grows_misses_its_target() -> None:
    """The first snapshots do not count, a rise afterwards does."""
    outcome = outcome_of()
    growing = replace(outcome, grown=[100.0 + 2 * step for step in range(20)])

    flat, risen = (next(t for t in targets(one) if t.bar == "flat") for one in (outcome, growing))

    assert flat.met
    assert not risen.met


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.0000005, "0.5 us"), (0.00012, "120 us"), (0.0015, "1.5 ms"), (2, "2 s"), (1234.6, "1235 s")],
)
def test_times_are_shown_in_a_unit_that_suits(seconds: float, shown: str) -> None:
    """Three figures are enough."""
    assert time_of(seconds) == shown


def test_a_command_that_fails_is_no_measure(tmp_path: Path) -> None:
    """The launcher reports how it ended and what it printed."""
    with Launcher(tmp_path) as launcher:
        seconds, processor, peak = launcher.run(["sh", "-c", "echo output; exit 1"], (0, 1))

        assert seconds > 0
        assert 0 <= processor < 60
        assert 0 < peak < 200
        assert launcher.printed() == b"output\n"
        with pytest.raises(RuntimeError, match="sh ended with 3: gone wrong"):
            launcher.run(["sh", "-c", "echo gone wrong; exit 3"])
