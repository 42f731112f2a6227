"""Types of which a snapshot does not have all: what evaluates or consults them is unknown, and nothing else is."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from policyeng import admit, evaluate
from policyeng.bundle import Bundle, load_bundle
from policyeng.engines import OpaOptions
from policyeng.evaluation.coverage import Gap, Gaps
from policyeng.models import Evaluation, JsonObject, Outcome, Snapshot
from policyeng.sources import read_inputs
from tests.bundles import deny_when, rego, write

AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
ROOT = "/subscriptions/11111111-1111-1111-1111-111111111111"
GROUP = f"{ROOT}/resourceGroups/g"
TYPE = "Microsoft.MachineLearningServices/workspaces"
HOME = f"{GROUP}/providers/{TYPE}/w"
OTHER = f"{GROUP}/providers/{TYPE}/other"
COMPUTES = f"{TYPE}/computes"
SAMPLES = Path(__file__).parents[1] / "samples" / "workspaces"
SAMPLE_ROOT = "/subscriptions/11111111-1111-1111-1111-111111111111"
SAMPLE = f"{SAMPLE_ROOT}/resourceGroups/rg-ml/providers/{TYPE}/ml-prod"
REASON = "not allowed (403 AuthorizationFailed)"


def load(document: JsonObject) -> Snapshot:
    """A snapshot of its native form."""
    return read_inputs(["-"], stdin=json.dumps(document).encode()).snapshot


def workspace(identity: str = HOME, **properties: object) -> JsonObject:
    """A workspace."""
    return {"id": identity, "type": TYPE, "location": "eastus", "properties": properties}


def evaluated(
    bundle: Bundle, *lines: str, resources: tuple[JsonObject, ...] = (workspace(),), **how: object
) -> Evaluation:
    """What is found of resources with lines of what is missing."""
    snapshot = Snapshot(resources=resources, incomplete=lines)
    return evaluate(bundle, snapshot, as_of=AS_OF, **how)  # type: ignore[arg-type]  # the arguments of `evaluate`


def outcomes(evaluation: Evaluation, policy: str) -> dict[tuple[str, str], str]:
    """By resource and type, the outcome of a policy."""
    found = [one for one in evaluation.findings if one.policy == policy]
    return {(one.resource, one.resource_type): one.outcome.value for one in found}


def looking(folder: Path, condition: str) -> Bundle:
    """A policy that evaluates workspaces on a condition."""
    return load_bundle(write(folder, {"a/a/a.rego": rego("a", deny_when(condition))}))


@pytest.mark.parametrize("engine", ["embedded", "opa"])
def test_a_policy_that_evaluates_the_type_is_unknown_for_the_scope(bundle: Bundle, opa: Path, engine: str) -> None:
    """Policies in Rego and in Python alike, on both engines; workspaces are evaluated as ever."""
    result = evaluated(bundle, f"{COMPUTES} at {HOME}: {REASON}", engine=engine, opa=OpaOptions(binary=opa))
    for policy in ("AML-CMP-002", "AML-COST-104"):
        assert outcomes(result, policy) == {(HOME, COMPUTES): "unknown"}
    [finding] = [one for one in result.findings if one.policy == "AML-CMP-002"]
    assert [one.msg for one in finding.unknowns] == [f"not all of the type could be read: {REASON}"]
    assert outcomes(result, "AML-NET-001") == {(HOME, TYPE): "fail"}
    assert any(REASON in entry.reason for entry in result.ledger)


def test_workloads_are_not_all_known_where_jobs_are_not(bundle: Bundle) -> None:
    """What is derived of jobs is as unknown as they are, once for each policy."""
    lines = [f"{TYPE}/{kind} at {HOME}: {REASON}" for kind in ("jobs", "onlineEndpoints/deployments")]
    assert outcomes(evaluated(bundle, *lines), "AML-INF-101") == {(HOME, "workload"): "unknown"}


@pytest.mark.parametrize(
    ("scope", "outcome"), [(HOME, "unknown"), (ROOT, "unknown"), ("/", "unknown"), (OTHER, "pass")]
)
def test_who_consults_the_type_is_unknown_where_it_may_lie(tmp_path: Path, scope: str, outcome: str) -> None:
    """A gap above the subject and below it counts, and one next to it does not."""
    bundle = looking(tmp_path, f'input.snapshot.by_scope[lower(input.resource.id)]["{COMPUTES.lower()}"][_] == 1')
    result = evaluated(bundle, f"{COMPUTES} at {scope}: {REASON}")
    assert outcomes(result, "T-A-1")[HOME, TYPE] == outcome


@pytest.mark.parametrize(
    ("names", "scope", "outcome"),
    [
        (OTHER, ROOT, "pass"),
        (f"{GROUP}/providers/{TYPE}/lost", ROOT, "unknown"),
        (f"{GROUP}/providers/{TYPE}/lost", f"{GROUP}/providers/{TYPE}/lost", "unknown"),
        (f"{GROUP}/providers/{TYPE}/lost", f"{GROUP}/providers/{TYPE}/nobody", "pass"),
        (f"{GROUP}/providers/A.B/lost/one", ROOT, "pass"),
    ],
)
def test_what_is_named_and_there_is_no_doubt(tmp_path: Path, names: str, scope: str, outcome: str) -> None:
    """Only what is named, not there, of the type, and in the scope may be what could not be read."""
    bundle = looking(tmp_path, 'input.snapshot.by_id[lower(input.resource.properties.hub)].kind == "x"')
    result = evaluated(bundle, f"{TYPE} at {scope}: {REASON}", resources=(workspace(hub=names), workspace(OTHER)))
    assert outcomes(result, "T-A-1")[HOME, TYPE] == outcome


def test_a_policy_in_python_does_not_deny_what_may_be_there(bundle: Bundle) -> None:
    """Its own look-up is not needed for it."""
    kind = "Microsoft.Consumption/budgets"
    assert outcomes(evaluated(bundle), "AML-COST-103") == {(HOME, TYPE): "fail"}
    assert outcomes(evaluated(bundle, f"{kind} at {ROOT}: {REASON}"), "AML-COST-103") == {(HOME, TYPE): "unknown"}


def test_what_was_not_requested_is_reported_and_is_no_doubt(bundle: Bundle) -> None:
    """It is no part that could not be read, either; the digest shows it."""
    line = f"{TYPE}/jobs at {HOME}, as asked: those created before 2026-05-01 were left out"
    whole, bounded = evaluated(bundle, strict_unknown=True), evaluated(bundle, line, strict_unknown=True)
    assert (bounded.findings, bounded.exit_code) == (whole.findings, whole.exit_code)
    assert [(entry.reason, entry.relevant) for entry in bounded.ledger] == [(line, False)]
    assert bounded.snapshot.digest != whole.snapshot.digest


@pytest.mark.parametrize(
    "line",
    [
        "computes: forbidden",
        f"{COMPUTES} at nowhere: {REASON}",
        f"computes at {HOME}: {REASON}",
        f"{COMPUTES} at {HOME}",
    ],
)
def test_other_lines_are_only_reported(bundle: Bundle, line: str) -> None:
    """As they were, policies may read them."""
    result = evaluated(bundle, line)
    assert {one.resource_type for one in result.findings} == {TYPE}
    assert [(entry.reason, entry.relevant) for entry in result.ledger] == [(line, True)]


def test_a_change_is_decided_with_the_same_doubts(bundle: Bundle) -> None:
    """Admission hears of the gap, and does not take what may be there for what is not."""
    snapshot = Snapshot(resources=(workspace(),), incomplete=(f"Microsoft.Consumption/budgets at {ROOT}: {REASON}",))
    change = workspace(OTHER, publicNetworkAccess="Disabled")
    decision = admit(bundle, snapshot, change, as_of=AS_OF)
    after = evaluate(bundle, snapshot.model_copy(update={"resources": (workspace(), change)}), as_of=AS_OF)
    affected = {(one.policy, one.outcome) for one in (*decision.undecided, *decision.denied) if one.resource == OTHER}
    bad = {
        (one.policy, one.outcome) for one in after.findings if one.resource == OTHER and one.outcome is not Outcome.PASS
    }
    assert affected == bad
    assert ("AML-COST-103", Outcome.UNKNOWN) in affected


def test_only_who_needs_the_type_hears_of_it(bundle: Bundle) -> None:
    """Everything else has the outcome of the whole."""
    kind = "Microsoft.Capacity/reservationOrders/reservations"
    document = json.loads((SAMPLES / "compliant.json").read_text(encoding="utf-8"))
    whole, cut = (load({**document, "incomplete": lines}) for lines in ([], [f"{kind} at /: {REASON}"]))
    before, after = (evaluate(bundle, snapshot, as_of=AS_OF).findings for snapshot in (whole, cut))
    assert {one.policy for one in after if one not in before} == {"AML-COST-106"}


@pytest.mark.parametrize(
    ("line", "policies"),
    [
        (f"metrics at {SAMPLE}: {REASON}", {"AML-COST-104", "AML-END-010", "AML-OPS-101", "AML-OPS-104"}),
        (f"quotas at {SAMPLE_ROOT}: {REASON}", {"AML-SKU-105"}),
    ],
)
def test_who_reads_what_is_stated_is_unknown_without_it(bundle: Bundle, line: str, policies: set[str]) -> None:
    """Also those that evaluate nothing where nothing is measured."""
    document = json.loads((SAMPLES / "compliant.json").read_text(encoding="utf-8"))
    found = evaluate(bundle, load({**document, "incomplete": [line]}), as_of=AS_OF).findings
    affected = {one.policy for one in found if any(REASON in unknown.msg for unknown in one.unknowns)}
    assert affected == policies


def test_a_policy_that_may_read_anything_is_unknown(tmp_path: Path) -> None:
    """It does not declare in its header what it consults, so a gap may be about it; one that reads its own is not."""
    blind = rego("a", deny_when("count(input.snapshot.by_type) > 1000"))
    own = rego("b", deny_when("input.resource.properties.bad"), identity="T-B-1")
    bundle = load_bundle(write(tmp_path, {"a/a/a.rego": blind, "a/b/b.rego": own}))
    result = evaluated(bundle, f"{COMPUTES} at {OTHER}: {REASON}")
    assert [(one.policy, one.outcome.value) for one in result.findings] == [("T-A-1", "unknown"), ("T-B-1", "pass")]


def test_a_snapshot_that_has_only_gaps_was_not_evaluated(bundle: Bundle) -> None:
    """What could not be read is unknown, and a run that found nothing else is no good one."""
    result = evaluated(bundle, f"{TYPE} at {ROOT}: {REASON}", resources=())
    assert (result.exit_code, result.summary.unknown > 0) == (2, True)
    assert result.problems[-1].message.startswith("nothing was evaluated: none of")


def test_gaps_are_found_by_where_they_are() -> None:
    """As they are when each is tested for whether it meets a scope."""
    scopes = [
        "/",
        ROOT,
        GROUP,
        HOME,
        OTHER,
        f"{HOME}/computes/c",
        f"{ROOT}x",
        "/providers/A.B/c/d",
        "/subscriptions/{s}",
    ]
    scopes += ["/providers/Microsoft.Management/managementGroups/m", f"{ROOT}/resourceGroups/{{g}}/providers/A.B/c/d"]
    gaps = [Gap(COMPUTES, scope, REASON) for scope in scopes]
    for scope in (*scopes, "", "nowhere"):
        assert sorted(Gaps(gaps).near(scope)) == sorted(gap for gap in gaps if gap.meets(scope)), scope


LOOKS = {
    "by type": 'input.snapshot.by_type["a.b/things"]',
    "by id": 'input.snapshot.by_id["/subscriptions/s/providers/a.b/things/one"]',
    "by scope": 'input.snapshot.by_scope["/subscriptions/s"]["a.b/things"]',
    "by scope, where something is": f'input.snapshot.by_scope["{ROOT}"]["a.b/things"]',
    "all types": 'some kind, _ in input.snapshot.by_type; startswith(kind, "a.b/")',
    "all ids": 'some id, _ in input.snapshot.by_id; endswith(id, "/one")',
    "all resources": 'input.snapshot.resources[_].type == "A.B/things"',
}


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize(
    ("covers", "incomplete", "outcome"),
    [
        (None, (), "pass"),
        ((), (), "unknown"),
        (None, (f"A.B/things at /: {REASON}",), "unknown"),
    ],
)
def test_a_resource_in_a_list_that_was_not_read_may_be_there(
    tmp_path: Path, look: str, covers: tuple[str, ...] | None, incomplete: tuple[str, ...], outcome: str
) -> None:
    """However a policy looks for it."""
    bundle = looking(tmp_path, LOOKS[look])
    snapshot = Snapshot(resources=(workspace(),), covers=covers, incomplete=incomplete)
    [finding] = [one for one in evaluate(bundle, snapshot, as_of=AS_OF).findings if one.resource == HOME]
    assert finding.outcome == outcome


@pytest.mark.parametrize(
    ("covers", "outcome"),
    [
        ("Microsoft.Consumption/budgets at /", "unknown"),
        ("A.B/things at /", "pass"),
        (f"a.b/THINGS at {ROOT}", "pass"),
        (f"A.B/things at {GROUP}", "unknown"),
        ("A.B/things at /subscriptions/other", "unknown"),
    ],
)
def test_what_is_covered_is_known_to_be_absent(tmp_path: Path, covers: str, outcome: str) -> None:
    """The subscriptions of the resources count for a list without a place."""
    bundle = looking(tmp_path, LOOKS["by type"])
    snapshot = Snapshot(resources=(workspace(),), covers=(covers,))
    [finding] = evaluate(bundle, snapshot, as_of=AS_OF).findings
    assert finding.outcome == outcome


def test_more_information_makes_no_finding_worse(bundle: Bundle) -> None:
    """Of files of every format: with a snapshot that covers everything, what was decided stays as it was."""
    samples = Path(__file__).parents[1] / "samples" / "formats"
    for path in sorted(samples.iterdir()):
        alone = read_inputs([path]).snapshot
        whole = alone.model_copy(update={"covers": None})
        before, after = (
            {
                (one.policy, one.resource, one.resource_type): one.outcome
                for one in evaluate(bundle, each, as_of=AS_OF).findings
            }
            for each in (alone, whole)
        )
        decided = {key: outcome for key, outcome in before.items() if outcome is not Outcome.UNKNOWN}
        assert decided.items() <= after.items(), path
        assert after.keys() <= before.keys(), path
