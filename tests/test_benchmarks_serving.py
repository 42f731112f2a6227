"""The benchmark of the server: equal responses of real servers, or no figures, and a page. No times are asserted."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import httpx
import pytest
from pydantic import TypeAdapter

from benchmarks import admission
from benchmarks.load import Load, Phase, Request, Times, load_of
from benchmarks.preparing import Prepared
from benchmarks.serving_field import Contestant
from benchmarks.serving_page import render
from benchmarks.serving_runs import CHANGES, Measured, Outcome, Program, Search, measured, overload
from benchmarks.timing import DifferentVerdictsError
from tests.conftest import ROOT

OPA = ROOT / ".tools/bin/opa"
NEVER = Times(0, None, None, None)
#: Resources of a whole subscription, so that there is one of each type that changes are made to.
SIZE = 64


def load(rate: float, p99: float = 10.0, *, wrong: int = 0, unsent: int = 0) -> Load:
    """What came of a phase in which all but some went well."""
    return Load(rate, 1, Times(10, 5.0, p99, p99), wrong, NEVER, 0, 0, unsent)


class Once:
    """A generator that sends each request once, whatever the rate."""

    def __init__(self, wrong: int = 0) -> None:
        self.wrong = wrong

    def run(self, url: str, requests: Sequence[Request], *phases: Phase) -> list[Load]:
        """Send them, and compare the responses."""
        for each in requests:
            response = httpx.post(url, content=each.body, headers={"Content-Type": "application/json"}, timeout=60)
            assert response.text.rstrip().endswith(each.says)
            assert len(each.says) > len("{}")
        return [load(phase.rate, wrong=self.wrong) for phase in phases]


@pytest.mark.parametrize("most", [0.7, 7, 23, 137, 2500])
def test_a_search_ends_at_what_is_sustained(most: float) -> None:
    """Within an eighth, in a dozen runs, from below."""
    search = Search(CHANGES)
    while not search.ended:
        search.learn(load(search.rate, unsent=int(search.rate > most)))

    assert search.best is not None
    assert most / 1.2 <= search.best.rate <= most
    assert len(search.tried) <= 14


def test_a_server_that_sustains_nothing_ends_the_search() -> None:
    """Slow responses count as wrong ones."""
    slow, wrong = Search(CHANGES), Search(CHANGES)
    for search, each in ((slow, load(1, p99=CHANGES.limit)), (wrong, load(1, wrong=1))):
        while not search.ended:
            search.learn(Load(search.rate, 1, each.right, each.wrong, NEVER, 0, 0, 0))

        assert search.best is None
        assert len(search.tried) < 12


@pytest.mark.slow
def test_a_tiny_run_is_a_page(tmp_path: Path) -> None:
    """Real servers that agree are all in the tables, and the figures survive as JSON."""
    outcome = Outcome("tiny", "A trial.", "today", {"cores": "2"}, {"OPA": "1"}, SIZE)
    measured(Program("tiny", 1, 2, 1, 1), OPA, Once(), tmp_path, outcome)

    page = render(outcome)
    assert [len([one for one in outcome.measured if one.task == CHANGES]), len(outcome.measured)] == [3, 5]
    assert all(page.count(f"| {one.contestant} |") >= 3 for one in outcome.measured if one.task == CHANGES)
    assert "| 80/s | 5 ms / 10 ms |" in page
    assert "**40**, **80**" in page
    assert "tests the harness" in page
    assert "A trial." in page
    adapter = TypeAdapter(Outcome)
    assert render(adapter.validate_json(adapter.dump_json(outcome))) == page


@pytest.mark.slow
def test_servers_that_disagree_stop_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same policies, other words; closing the workspace is the first change that policies deny."""
    write_bundle = admission.write_bundle

    def another(made: Prepared, folder: Path) -> Path:
        for path in write_bundle(made, folder).rglob("*.rego"):
            text = path.read_text(encoding="utf-8")
            path.write_text(text.replace('"msg": "', '"msg": "not '), encoding="utf-8")
        return folder

    monkeypatch.setattr(admission, "write_bundle", another)
    outcome = Outcome("tiny", "", "today", {}, {}, SIZE)

    with pytest.raises(DifferentVerdictsError, match="a setting of a workspace"):
        measured(Program("tiny", 1, 1, 1, 1), OPA, Once(), tmp_path, outcome)


def test_a_wrong_response_in_the_overload_stops_the_run() -> None:
    """However fast it came."""
    one = Measured(CHANGES, "a", None, load(20), ())

    class Wrong(Once):
        def run(self, _: str, __: Sequence[Request], *phases: Phase) -> list[Load]:
            return [load(phase.rate, wrong=1) for phase in phases]

    with pytest.raises(DifferentVerdictsError, match="a: 3 wrong answers"):
        overload(one, Contestant("a", os.getpid(), "", ()), Wrong(), Program("tiny", 1, 1, 1, 1))


def test_what_k6_did_not_see_is_nothing() -> None:
    """It leaves out what nothing was added to."""
    values = {"count": 3, "med": 1.5, "p(99)": 2.0, "max": 2.5}
    found = load_of({"a_right": {"values": values}}, Phase("a", 5, 1, 10))

    assert found == Load(5, 1, Times(3, 1.5, 2.0, 2.5), 0, NEVER, 0, 0, 0)
    assert found.whole
    assert not load_of({}, Phase("a", 5, 1, 10)).whole
