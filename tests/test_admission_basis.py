"""Deciding on a change from what it can affect, held against judging everything."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import policyeng
from policyeng.admission import Basis, Judging, basis, changes_of, decided_wholly
from policyeng.bundle import Bundle, load_bundle
from policyeng.engines import Judgement, Work, judge
from policyeng.evaluation import Prepared, prepare
from policyeng.evaluation.affected import Affecting
from policyeng.evaluation.readings import Reading
from policyeng.models import JsonObject, Snapshot
from policyeng.verify.drawing.examples import Examples
from policyeng.verify.laws import admitting
from policyeng.verify.laws.law import Grounds, Trial
from tests.bundles import WORKSPACE, deny_when, rego, snapshot, workspace, write

AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
JUDGING = Judging(AS_OF)
NEIGHBOUR = "input.snapshot.by_id[lower(input.resource.properties.hub)].properties.x > 1"
CONSULTS = """consults: [{type: Microsoft.MachineLearningServices/workspaces, through: /properties/hub,
  reads: [/properties/x]}]"""


def bundle_of(folder: Path, *policies: str) -> Bundle:
    """A bundle of policies in Rego."""
    return load_bundle(write(folder, {f"area/p{number}.rego": text for number, text in enumerate(policies)}))


def both(bundle: Bundle, state: Snapshot, change: Any, judging: Judging = JUDGING) -> tuple[str, str]:
    """The decision from what a change can affect, and from everything, as JSON."""
    quick = Basis(bundle, state).decide(change, judging)
    return quick.model_dump_json(), decided_wholly(bundle, state, changes_of(change), judging).model_dump_json()


def pairs_judged(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many pairs are judged from now on, one number per judging."""
    counted: list[int] = []

    def counting(work: Work) -> list[Judgement]:
        counted.append(len(work.pairs))
        return judge(work)

    monkeypatch.setattr(basis, "judge", counting)
    return counted


@pytest.fixture
def estate() -> Snapshot:
    """A workspace, its hub, and others."""
    hub = workspace("hub", x=1)
    return snapshot(hub, workspace("w", hub=hub["id"]), *(workspace(f"o{number}") for number in range(20)))


def test_only_what_reads_the_change_is_judged_again(
    tmp_path: Path, estate: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hub and who names it; nobody, where the field that is read stays."""
    state = Basis(bundle_of(tmp_path, rego("p0", deny_when(NEIGHBOUR), more=CONSULTS)), estate)
    state.decide(workspace("o1", y=1), JUDGING)
    counted = pairs_judged(monkeypatch)

    denied = state.decide(workspace("hub", x=2), JUDGING)
    state.decide(workspace("hub", x=1, y=5), JUDGING)

    assert [finding.resource.rpartition("/")[2] for finding in denied.denied] == ["w"]
    assert counted == [2, 1]


def test_a_policy_that_does_not_say_what_it_reads_is_judged_of_everything(
    tmp_path: Path, estate: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a change elsewhere would go unseen."""
    state = Basis(bundle_of(tmp_path, rego("p0", deny_when(NEIGHBOUR))), estate)
    state.decide(workspace("o1", y=1), JUDGING)
    counted = pairs_judged(monkeypatch)

    assert not state.decide(workspace("hub", x=2), JUDGING).allowed
    assert counted == [22]


def test_a_policy_that_says_too_little_is_found(tmp_path: Path, estate: Snapshot) -> None:
    """Its header says that it reads one field, and it reads another."""
    said = CONSULTS.replace("/properties/x", "/properties/y")
    quick, whole = both(bundle_of(tmp_path, rego("p0", deny_when(NEIGHBOUR), more=said)), estate, workspace("hub", x=2))

    assert quick != whole


@pytest.mark.parametrize("broken", ["Reading.of", "Affecting._reading"])
def test_the_law_finds_what_is_left_out(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decisions from too few pairs differ from those from all, within a few examples."""
    owner, name = broken.split(".")
    monkeypatch.setattr({"Reading": Reading, "Affecting": Affecting}[owner], name, lambda *_: iter(()))

    assert any(_violations(load_bundle(), range(40)))


def test_decisions_are_those_from_everything_judged() -> None:
    """On drawn changes of drawn estates; `policyeng verify --law gate` draws thousands."""
    assert not list(_violations(load_bundle(), range(12)))


def _violations(bundle: Bundle, numbers: Iterable[int]) -> Iterable[tuple[int, object]]:
    examples, grounds = Examples(bundle), Grounds(bundle)
    for number in numbers:
        example = examples.numbered(20261121, number, "estate" if number % 4 == 0 else None)
        trial = Trial(grounds, example, str(number))
        if found := admitting.unlike_the_whole(trial, "test"):
            yield number, found


def test_what_is_asked_again_is_not_prepared_again(tmp_path: Path, estate: Snapshot, monkeypatch: Any) -> None:
    """`admit` keeps the basis of the very same bundle and snapshot, from several threads at once."""
    made: list[Prepared] = []

    def counting(*given: Any) -> Prepared:
        made.append(prepare(*given))
        return made[-1]

    monkeypatch.setattr(basis, "prepare", counting)
    bundle = bundle_of(tmp_path, rego("p0", deny_when("input.resource.properties.x > 1")))

    def decided(number: int) -> bool:
        return policyeng.admit(bundle, estate, workspace("o1", x=number % 2 * 5), as_of=AS_OF).allowed

    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(decided, range(40)))

    assert answers == [number % 2 == 0 for number in range(40)]
    assert len(made) == 1


def test_no_finding_is_of_another_clock(tmp_path: Path) -> None:
    """A failure that comes with time stands at its time only."""
    late = f'time.parse_rfc3339_ns(input.as_of) > time.parse_rfc3339_ns("{(AS_OF + timedelta(days=1)).isoformat()}")'
    state = Basis(bundle_of(tmp_path, rego("p0", deny_when(late))), snapshot(workspace("a"), workspace("b")))
    standing = [
        len(state.decide(workspace("b", n=1), Judging(AS_OF + timedelta(days=days))).standing) for days in (0, 2, 0)
    ]

    assert standing == [0, 1, 0]


def test_odd_states_are_decided_from_everything(tmp_path: Path) -> None:
    """Two resources of one id, one of none, and an approval that is called as a resource is."""
    bundle = bundle_of(tmp_path, rego("p0", deny_when("input.resource.properties.x > 1")))
    approval = {"id": WORKSPACE, "scope": "/subscriptions/s", "status": "granted"}
    for state in (
        snapshot(workspace("w"), workspace("W", x=2)),
        snapshot(workspace("w"), {"type": "t"}),
        snapshot(workspace("w"), approvals=[approval]),
    ):
        quick, whole = both(bundle, state, workspace("w", x=5))
        assert quick == whole


def test_a_resource_and_its_workload_are_told_apart(tmp_path: Path) -> None:
    """A policy that judges both says two things under one id; either may change alone."""
    kind = "Microsoft.MachineLearningServices/workspaces/jobs"
    header = rego("p0", 'deny contains {"msg": "m", "path": "/computeId"} if input.resource.computeId').replace(
        "judges: [Microsoft.MachineLearningServices/workspaces]", f"judges: [{kind}, workload]"
    )
    compute: JsonObject = {
        "id": f"{WORKSPACE}/computes/c",
        "type": "Microsoft.MachineLearningServices/workspaces/computes",
        "properties": {"computeType": "AmlCompute"},
    }
    job = {"id": f"{WORKSPACE}/jobs/j", "type": kind, "properties": {"jobType": "Command", "computeId": compute["id"]}}
    state = snapshot(workspace("w"), compute, job)
    for change in (compute["id"], {**job, "tags": {"a": "b"}}, {**compute, "properties": {"computeType": "AKS"}}):
        quick, whole = both(bundle_of(tmp_path, header), state, change)
        assert quick == whole
    assert policyeng.evaluate(bundle_of(tmp_path, header), state).exit_code == 1  # or the rest says nothing
