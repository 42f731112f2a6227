"""Deciding on a change from what it can affect, compared with a full evaluation."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

import policyeng
from policyeng.admission import AdmissionOptions, AdmissionSession, changes_of, decided_wholly, session
from policyeng.bundle import Bundle, load_bundle
from policyeng.engines import Column, EvaluationRequest, Pair, run_engine
from policyeng.engines.tracing import Traced
from policyeng.evaluation import EvaluationContext, prepare, reuse
from policyeng.evaluation.changing_snapshot import Edits
from policyeng.evaluation.tracing import Reads, trace_pairs
from policyeng.facts.ids import scopes_of
from policyeng.models import Change, JsonObject, Operation, Snapshot
from policyeng.sources import load_snapshot
from policyeng.verify.generators.examples import Examples
from policyeng.verify.generators.json_mutations import draw_boolean
from policyeng.verify.laws.law import LawContext, Trial
from tests.bundles import WORKSPACE, deny_when, rego, snapshot, workspace, write
from tests.laws import admitting

AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
KIND = "Microsoft.MachineLearningServices/workspaces"
OPTIONS = AdmissionOptions(AS_OF, standing=True)
NEIGHBOUR = "input.snapshot.by_id[lower(input.resource.properties.hub)].properties.x > 1"


def bundle_of(folder: Path, *policies: str) -> Bundle:
    """A bundle of policies in Rego."""
    return load_bundle(write(folder, {f"area/p{number}.rego": text for number, text in enumerate(policies)}))


def both(
    bundle: Bundle, state: Snapshot, change: Any, options: AdmissionOptions = OPTIONS, before: Any = ()
) -> tuple[str, str]:
    """The decision from what a change can affect, and from everything, as JSON."""
    quick = AdmissionSession(bundle, state).decide(change, options, before)
    whole = decided_wholly(bundle, state, changes_of(change), options, changes_of(before))
    return quick.model_dump_json(), whole.model_dump_json()


def pairs_evaluated(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many pairs are evaluated from now on, with or without a trace, one number per evaluation."""
    counted: list[int] = []

    def counting(work: EvaluationRequest) -> list[Column]:
        counted.extend(filter(None, [len(work.pairs)]))
        return run_engine(work)

    def counting_traced(prepared: EvaluationContext, work: EvaluationRequest) -> Iterator[tuple[Pair, Traced]]:
        counted.extend(filter(None, [len(work.pairs)]))
        return trace_pairs(prepared, work)

    monkeypatch.setattr(reuse, "run_engine", counting)
    monkeypatch.setattr(reuse, "trace_pairs", counting_traced)
    return counted


@pytest.fixture
def estate() -> Snapshot:
    """A workspace, its hub, and others."""
    hub = workspace("hub", x=1)
    return snapshot(hub, workspace("w", hub=hub["id"]), *(workspace(f"o{number}") for number in range(20)))


def test_lists_that_policies_look_up_in_are_those_of_each_change(tmp_path: Path) -> None:
    """Several changes in one list, of which members are found by a key."""
    alike = """wanted := input.resource.properties.label
	some other in input.snapshot.resources
	lower(other.properties.label) == wanted
	other.id != input.resource.id"""
    state = snapshot(*(workspace(f"w{number:02}", label=f"n{number}") for number in range(20)))
    bundle = bundle_of(tmp_path, rego("p0", deny_when(alike)))
    changes = [workspace("a", label="n3"), workspace("w07", label="n9"), state.resources[5]["id"]]
    whole = [decided_wholly(bundle, state, changes_of(change), OPTIONS).model_dump_json() for change in changes]
    quick = AdmissionSession(bundle, state)
    assert [quick.decide(change, OPTIONS).model_dump_json() for change in changes] == whole


def test_only_what_reads_the_change_is_evaluated_again(
    tmp_path: Path, estate: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What names the hub, and reads what changes in it; nothing, where what is read stays."""
    state = AdmissionSession(bundle_of(tmp_path, rego("p0", deny_when(NEIGHBOUR))), estate)
    state.decide(workspace("o1", y=1), OPTIONS)
    counted = pairs_evaluated(monkeypatch)

    denied = state.decide(workspace("hub", x=2), OPTIONS)
    state.decide(workspace("hub", x=1, y=5), OPTIONS)

    assert [finding.resource.rpartition("/")[2] for finding in denied.denied] == ["w"]
    assert counted == [1]


def test_what_is_read_elsewhere_has_no_places_where_it_was(tmp_path: Path) -> None:
    """A finding that speaks of a resource loses the place in the file, though nothing that is read there differs."""
    named = NEIGHBOUR.replace("> 1", "> 0")
    path = 'sprintf("%s:/properties/x", [input.resource.properties.hub])'
    elsewhere = f'deny contains {{"msg": "m", "path": {path}}} if {named}'
    above = 'deny contains {"msg": "m", "path": "workspace:/properties/x"} if input.workspace.properties.x > 0'
    computes = rego("p1", above, identity="T-A-2").replace("workspaces]", "workspaces/computes]")
    bundle = bundle_of(tmp_path, rego("p0", elsewhere), computes)
    hub, file = workspace("hub", x=1), tmp_path / "snapshot.json"
    compute = {"id": f"{hub['id']}/computes/c", "type": "Microsoft.MachineLearningServices/workspaces/computes"}
    others = [workspace("w", hub=hub["id"]), compute]
    file.write_text(json.dumps({"snapshotVersion": 1, "resources": [hub, *others]}), encoding="utf-8")
    state = load_snapshot(file)
    assert state.texts
    tagged = {**hub, "tags": {"a": "b"}}
    for change, before, places in (
        (tagged, (), [False, False]),
        ({"operation": "patch", "id": hub["id"], "patch": {"tags": {"a": "b"}}}, (), [True, True]),
        (workspace("o"), tagged, [False, False]),
        (hub["id"], (), []),
    ):
        quick, whole = both(bundle, state, change, before=before)
        assert quick == whole
        standing = json.loads(quick)["standing"]
        assert [bool(one["location"]["fields"]) for one in standing] == places, standing


@pytest.mark.slow
def test_the_law_finds_what_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decisions from too few pairs differ from those from all, within a few examples."""
    monkeypatch.setattr(Reads, "affected_by", lambda *_: set())

    assert any(_violations(load_bundle(), range(40)))


def test_what_is_in_a_new_workspace_is_evaluated_again(tmp_path: Path) -> None:
    """A policy that reads the workspace finds one where there was none."""
    compute = {"id": f"{WORKSPACE}/computes/c", "type": f"{KIND}/computes"}
    text = rego("p0", deny_when("input.workspace == null")).replace("workspaces]", "workspaces/computes]")
    quick, whole = both(bundle_of(tmp_path, text), snapshot(compute), workspace("w"))

    assert quick == whole
    assert [one["resource"] for one in json.loads(quick)["cleared"]] == [compute["id"]]


@pytest.mark.slow
def test_decisions_are_those_of_a_full_evaluation() -> None:
    """On drawn changes of drawn estates."""
    assert not list(_violations(load_bundle(), range(9)))


@pytest.mark.slow
def test_decisions_on_partly_listed_states_are_those_of_a_full_evaluation() -> None:
    """States of which not all lists were read, and changes that add a subscription or delete one."""
    assert not list(_violations(load_bundle(), range(12, 21), partly_listed))


def _violations(
    bundle: Bundle, numbers: Iterable[int], given: Callable[[Snapshot, Random], Snapshot] = lambda one, _: one
) -> Iterable[tuple[int, object]]:
    examples, grounds = Examples(bundle), LawContext(bundle)
    for number in numbers:
        example = examples.numbered(20261121, number, "estate" if number % 4 == 0 else None)
        trial = Trial(grounds, example, str(number))
        if found := admitting.unlike_the_whole(trial, "test", given(trial.snapshot, trial.random("lists"))):
            yield number, found


@pytest.mark.parametrize("numbers", [[3], pytest.param(range(10, 22), marks=pytest.mark.slow)])
def test_decisions_in_turns_are_those_of_a_full_evaluation(numbers: Iterable[int]) -> None:
    """The state continues with what was made already, goes back, and takes another course."""
    bundle = load_bundle()
    examples, grounds = Examples(bundle), LawContext(bundle)
    for number in numbers:
        trial = Trial(grounds, examples.numbered(20261123, number), str(number))
        state = partly_listed(trial.snapshot, trial.random("lists")) if number % 3 == 0 else trial.snapshot
        assert admitting.unlike_the_whole_in_turns(trial, "test", state, 10) is None, number


def partly_listed(snapshot: Snapshot, random: Random) -> Snapshot:
    """The same, or one of which not all lists were read."""
    ids = [str(resource.get("id")) for resource in snapshot.resources]
    scopes = [one for identity in ids for one in scopes_of(identity.lower())[:1]] or ["/"]
    types = [*(str(one.get("type")) for one in snapshot.resources), "Microsoft.Consumption/budgets", f"{KIND}/jobs"]
    chance = random.random()
    if chance < 0.3:
        covers = (f"{kind} at {random.choice(scopes)}" for kind in types if draw_boolean(random, 0.6))
        return snapshot.model_copy(update={"covers": tuple(covers)})
    if chance < 0.5:
        lines = (f"{random.choice(types)} at {random.choice(scopes)}: not allowed" for _ in range(2))
        return snapshot.model_copy(update={"incomplete": tuple(lines)})
    return snapshot


def test_a_repeated_request_is_not_prepared_again(tmp_path: Path, estate: Snapshot, monkeypatch: Any) -> None:
    """`admit` keeps the basis of the very same bundle and snapshot, from several threads at once."""
    made: list[EvaluationContext] = []

    def counting(*given: Any) -> EvaluationContext:
        made.append(prepare(*given))
        return made[-1]

    monkeypatch.setattr(session, "prepare", counting)
    bundle = bundle_of(tmp_path, rego("p0", deny_when("input.resource.properties.x > 1")))

    def decided(number: int) -> bool:
        return policyeng.admit(bundle, estate, workspace("o1", x=number % 2 * 5), as_of=AS_OF).allowed

    with ThreadPoolExecutor(4) as threads:
        decisions = list(threads.map(decided, range(40)))

    assert decisions == [number % 2 == 0 for number in range(40)]
    assert len(made) == 1


def test_a_clock_is_evaluated_once_for_all_requests(
    tmp_path: Path, estate: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests at the same time as the first wait for its result."""
    late = "time.parse_rfc3339_ns(input.as_of) > 0"
    state = AdmissionSession(bundle_of(tmp_path, rego("p0", deny_when(late))), estate)
    counted = pairs_evaluated(monkeypatch)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: state.decide(workspace("o1", y=1), OPTIONS), range(8)))

    assert counted == [22]


def test_at_another_clock_only_what_the_change_touches_is_evaluated(
    tmp_path: Path, estate: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What can read nothing else waits until it is requested; what can, and uses the clock in any way, cannot."""
    late = 'time.weekday(time.parse_rfc3339_ns(input.as_of)) != ""'
    alone, near = (
        rego("p0", deny_when(late)),
        rego("p1", f'deny contains {{"msg": "m"}} if {{ {NEIGHBOUR}; {late} }}', identity="T-A-2"),
    )
    state = AdmissionSession(bundle_of(tmp_path, alone, near), estate)
    state.decide(workspace("o1", y=1), OPTIONS)
    counted = pairs_evaluated(monkeypatch)

    for standing, times in ((False, [1]), (True, [1, 21])):
        options = AdmissionOptions(AS_OF + timedelta(hours=len(times)), standing=standing)
        whole = decided_wholly(state.bundle, estate, changes_of(workspace("o1", y=2)), options)
        assert state.decide(workspace("o1", y=2), options) == whole
        assert sorted(counted) == times
        counted.clear()
    counted.clear()
    hub = [workspace("hub", x=2)]
    state.decide(workspace("o1", y=2), OPTIONS, hub)
    counted.clear()
    later = AdmissionOptions(AS_OF + timedelta(hours=5))
    whole = decided_wholly(state.bundle, estate, changes_of(workspace("hub", x=1)), later, changes_of(hub))
    assert state.decide(workspace("hub", x=1), later, hub) == whole
    assert sorted(counted) == [1, 1, 1]
    assert [finding.resource.rpartition("/")[2] for finding in whole.cleared] == ["w"]


def test_what_compares_the_clock_is_evaluated_when_it_reaches_another_moment(
    tmp_path: Path, estate: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the moments that policies compare the clock with, no time needs an evaluation, forward or back."""
    late = f'time.parse_rfc3339_ns(input.as_of) > time.parse_rfc3339_ns("{(AS_OF + timedelta(days=2)).isoformat()}")'
    near = rego("p0", f'deny contains {{"msg": "m"}} if {{ {NEIGHBOUR.replace("> 1", "> 0")}; {late} }}')
    state = AdmissionSession(bundle_of(tmp_path, near), estate)
    state.decide(workspace("o1", y=1), OPTIONS)
    counted = pairs_evaluated(monkeypatch)

    for days, times in ((1, []), (2, []), (3, [1]), (40, []), (1, [1])):
        options = AdmissionOptions(AS_OF + timedelta(days=days), standing=True)
        whole = decided_wholly(state.bundle, estate, changes_of(workspace("o1", y=2)), options)
        assert state.decide(workspace("o1", y=2), options) == whole
        assert len(whole.standing) == (days > 2)
        assert counted == times
        counted.clear()


def test_after_other_changes_only_what_either_affects_is_evaluated(
    tmp_path: Path, estate: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hub is changed before, and what names it is evaluated then, once for the same changes."""
    bundle = bundle_of(tmp_path, rego("p0", deny_when(NEIGHBOUR)))
    state, before = AdmissionSession(bundle, estate), changes_of(workspace("hub", x=2))
    state.decide(workspace("o1", y=1), OPTIONS)
    counted = pairs_evaluated(monkeypatch)

    decision = state.decide(workspace("o1", y=2), OPTIONS, before)

    assert (decision.allowed, [finding.resource.rpartition("/")[2] for finding in decision.standing]) == (True, ["w"])
    assert counted == [1]
    state.decide(workspace("new"), OPTIONS, before)
    assert counted == [1, 1]
    state.decide(workspace("new"), OPTIONS, [*before, *changes_of(workspace("newer"))])
    assert counted == [1, 1, 1, 1]
    state.decide(workspace("new"), OPTIONS)
    assert counted == [1, 1, 1, 1, 1]
    assert decision == decided_wholly(bundle, estate, changes_of(workspace("o1", y=2)), OPTIONS, before)


def test_what_undoes_a_state_is_dropped_with_it(tmp_path: Path, estate: Snapshot) -> None:
    """A session in which others make changes again and again remembers few states."""
    state = AdmissionSession(bundle_of(tmp_path, rego("p0", deny_when(NEIGHBOUR))), estate)
    before = [change for number in range(60) for change in changes_of(workspace(f"o{number % 20}", y=number))]
    for number in range(1, len(before)):
        state.decide(workspace("w", y=number), OPTIONS, before[:number])
    gc.collect()
    edits = [one for one in gc.get_objects() if type(one) is Edits and (one._values or one._lists)]
    assert len(edits) < 12
    last = decided_wholly(state.bundle, estate, changes_of(workspace("w")), OPTIONS, changes_of(before))
    assert state.decide(workspace("w"), OPTIONS, before) == last


def test_facts_of_computes_from_other_changes_are_not_derived_again(tmp_path: Path) -> None:
    """A compute of no known kind exists before, is fixed by what was made already, and comes back."""
    compute: JsonObject = {
        "id": f"{WORKSPACE}/computes/c",
        "type": "Microsoft.MachineLearningServices/workspaces/computes",
        "properties": {"computeType": "Odd"},
    }
    fixed = {**compute, "properties": {"computeType": "AmlCompute"}}
    bundle, state = bundle_of(tmp_path, rego("p0", deny_when("false"))), snapshot(workspace("w"), compute)
    for before, change, times in ((fixed, compute, 1), (fixed, compute["id"], 0), (compute, compute, 0)):
        quick, whole = both(bundle, state, change, before=before)
        assert quick == whole
        assert quick.count("not a known kind of compute") == times


def test_an_error_about_what_a_change_names_counts_though_it_was_there(tmp_path: Path) -> None:
    """What was made already cannot be evaluated, and the change of it cannot be made."""
    bundle, state = bundle_of(tmp_path, rego("p0", deny_when("false"))), snapshot(workspace("w"))
    odd = workspace("w", publicNetworkAccess="Di\u017fabled")
    change = Change(operation=Operation.REPLACE, id=WORKSPACE, resource={**workspace("w"), "type": f"{KIND}/jobs"})
    quick, whole = both(bundle, state, change, before=odd)

    assert quick == whole
    assert quick.count("looks like") == 1


def test_no_finding_is_of_another_clock(tmp_path: Path) -> None:
    """A failure that comes with time is found at its time only."""
    late = f'time.parse_rfc3339_ns(input.as_of) > time.parse_rfc3339_ns("{(AS_OF + timedelta(days=1)).isoformat()}")'
    state = AdmissionSession(bundle_of(tmp_path, rego("p0", deny_when(late))), snapshot(workspace("a"), workspace("b")))
    standing = [
        len(state.decide(workspace("b", n=1), AdmissionOptions(AS_OF + timedelta(days=days), standing=True)).standing)
        for days in (0, 2, 0)
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


def test_a_resource_and_its_workload_are_distinguished(tmp_path: Path) -> None:
    """A policy that evaluates both has two findings under one id; either may change alone."""
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
    assert policyeng.evaluate(bundle_of(tmp_path, header), state).exit_code == 1  # or the rest proves nothing
