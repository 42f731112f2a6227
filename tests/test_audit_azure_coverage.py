"""Which lists of live Azure a collected snapshot covers, and that it decides what was read and nothing else."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from policyeng import evaluate
from policyeng.audit.collection.azure.resource_types import INSIDE
from policyeng.audit.collection.azure.snapshot_builder import find_covered
from policyeng.bundle import Bundle, load_bundle
from policyeng.facts.coverage import FURTHER, LISTED, parse_entry
from policyeng.facts.ids import is_at_or_under
from policyeng.models import JsonObject
from policyeng.sources import read_inputs
from tests.azure_fake import GROUP, ML, ROOT, WORKSPACE, Azure, error
from tests.bundles import deny_when, rego, write
from tests.command import policyeng
from tests.test_audit_azure_collect import collected, is_requested, sample

AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
COMPUTES, JOBS = f"{ML}/workspaces/computes", f"{ML}/workspaces/jobs"
ENDPOINTS = f"{ML}/workspaces/onlineEndpoints"
SECOND = f"{WORKSPACE}2"
MACHINES = "Microsoft.Compute/virtualMachines"
#: The types that are read only where something names them.
NAMED = {MACHINES, "Microsoft.ContainerService/managedClusters", "Microsoft.ContainerInstance/containerGroups"}


def two_workspaces() -> Azure:
    """A subscription with two of them, each with a compute, an endpoint and a deployment of that."""
    azure = Azure()
    for home in (WORKSPACE, SECOND):
        azure.add(
            {"id": home, "location": "eastus", "properties": {}},
            {"id": f"{home}/computes/c", "properties": {"computeType": "AmlCompute", "properties": {}}},
            {"id": f"{home}/onlineEndpoints/e", "properties": {}},
            {"id": f"{home}/onlineEndpoints/e/deployments/d", "properties": {}},
        )
    return azure


def places(document: JsonObject, kind: str) -> list[str]:
    """The ids at which a snapshot covers a type."""
    return [entry.partition(" at ")[2] for entry in document["covers"] if entry.startswith(f"{kind} at ")]


def outcomes(bundle: Bundle, document: JsonObject) -> dict[tuple[str, str, str], str]:
    """What is found in a snapshot, which is read without a complaint."""
    inputs = read_inputs(["-"], stdin=json.dumps(document).encode())
    assert inputs.problems == ()
    evaluation = evaluate(bundle, inputs.snapshot, as_of=AS_OF)
    return {(one.policy, one.resource.lower(), one.resource_type): one.outcome.value for one in evaluation.findings}


def test_what_lies_in_workspaces_is_covered_for_the_subscription() -> None:
    """One entry for each type, however many workspaces there are; also for what there is none of."""
    document = collected(two_workspaces())
    kinds = Counter(entry.partition(" at ")[0] for entry in document["covers"])
    assert kinds.pop("Microsoft.Insights/diagnosticSettings") == 2
    assert set(kinds.values()) == {1}
    assert set(INSIDE) <= kinds.keys()
    assert {*LISTED} - NAMED - {"Microsoft.Advisor/recommendations"} <= kinds.keys()
    assert places(document, COMPUTES) == places(document, f"{ENDPOINTS}/deployments") == [ROOT]
    assert places(document, "Microsoft.Capacity/reservationOrders/reservations") == ["/"]
    assert all(parse_entry(entry) for entry in document["covers"])
    assert document["covers"] == sorted(document["covers"])


def test_the_requested_scope_is_covered_and_no_more() -> None:
    """A resource group or a workspace; budgets and reservations are those of the subscription."""
    grouped = collected(two_workspaces(), "--resource-group", "rg-ml")
    alone = collected(two_workspaces(), "--resource-group", "rg-ml", "--workspace", "ws")
    assert (places(grouped, COMPUTES), places(alone, COMPUTES)) == ([GROUP], [WORKSPACE])
    assert places(alone, "Microsoft.Consumption/budgets") == [ROOT]
    assert places(alone, "Microsoft.Network/virtualNetworks") == []


@pytest.mark.parametrize(
    ("denied", "kind", "covered"),
    [
        (f"{SECOND}/computes", COMPUTES, [WORKSPACE]),
        (f"{SECOND}/onlineEndpoints/e/deployments", f"{ENDPOINTS}/deployments", [WORKSPACE]),
        (f"{SECOND}/onlineEndpoints", f"{ENDPOINTS}/deployments", [WORKSPACE]),
        (f"{ROOT}/providers/{ML}/registries", f"{ML}/registries", []),
        ("/providers/Microsoft.Capacity/reservations", "Microsoft.Capacity/reservationOrders/reservations", []),
        (f"{ROOT}/providers/Microsoft.Network/virtualNetworks", "Microsoft.Network/virtualNetworks/subnets", []),
        (f"{ROOT}/providers/Microsoft.Consumption/budgets", "Microsoft.Consumption/budgets", []),
    ],
)
def test_a_list_that_was_not_read_is_not_covered(denied: str, kind: str, covered: list[str]) -> None:
    """It stays in `incomplete`; what was read besides is covered all the same."""
    document = collected(two_workspaces().deny(denied))
    assert places(document, kind) == covered
    assert any(kind.startswith(line.partition(" at ")[0]) for line in document["incomplete"])


def test_a_list_that_was_requested_in_part_is_not_covered(bundle: Bundle) -> None:
    """Jobs that are too old: it is bounded, which changes no finding."""
    azure = two_workspaces()
    created = (datetime.now(UTC) - timedelta(days=99)).isoformat()
    azure.add({"id": f"{SECOND}/jobs/old", "properties": {"jobType": "Command"}, "systemData": {"createdAt": created}})
    document = collected(azure)
    assert places(document, JOBS) == [WORKSPACE]
    whole = {**document, "covers": [*document["covers"], f"{JOBS} at {ROOT}"]}
    assert outcomes(bundle, document) == outcomes(bundle, whole)


def test_a_target_that_is_gone_is_known_to_be_gone(bundle: Bundle) -> None:
    """It was requested by its id; others of its type were not."""
    machine = f"{GROUP}/providers/{MACHINES}/gone"
    compute = {"computeType": "VirtualMachine", "properties": {}, "resourceId": machine}
    azure = two_workspaces().add({"id": f"{WORKSPACE}/computes/vm", "properties": compute})
    document = collected(azure)
    assert places(document, MACHINES) == [machine.lower()]
    assert outcomes(bundle, document)["AML-OPS-103", f"{WORKSPACE}/computes/vm".lower(), COMPUTES] == "fail"
    azure.faults[machine.lower()] = lambda _query, _times: error(403, "AuthorizationFailed")
    assert outcomes(bundle, collected(azure))["AML-OPS-103", f"{WORKSPACE}/computes/vm".lower(), COMPUTES] == "unknown"


@pytest.mark.parametrize("name", ["compliant.json", "training.json", "inference.json"])
def test_a_subscription_decides_as_if_it_were_all(bundle: Bundle, name: str) -> None:
    """Every list that our policies look into was read, or is bounded: to cover everything changes nothing."""
    resources = [one for one in sample(name)["resources"] if is_requested(one, sample(name)["resources"])]
    document = collected(Azure().add(*resources), subscription=resources[0]["id"].split("/")[2])
    whole = {**document, "covers": [f"{kind} at /" for kind in (*LISTED, *FURTHER)]}
    assert outcomes(bundle, document) == outcomes(bundle, whole)


@pytest.mark.parametrize(
    "kind", ["computes", "jobs", "onlineEndpoints", "roleAssignments", "virtualNetworks", "budgets"]
)
def test_a_list_that_is_lost_passes_nothing_that_fails(bundle: Bundle, kind: str) -> None:
    """More information makes no finding worse: what passes without a list passes with it."""
    resources = [
        one for one in sample("compliant.json")["resources"] if is_requested(one, sample("compliant.json")["resources"])
    ]
    subscription = resources[0]["id"].split("/")[2]
    azure = Azure().add(*resources)
    whole = outcomes(bundle, collected(azure, subscription=subscription))
    broken = outcomes(bundle, collected(azure.deny(f"/{kind}"), subscription=subscription))
    passed = [key for key, outcome in broken.items() if outcome == "pass"]
    assert passed
    assert [key for key in passed if whole.get(key) == "fail"] == []


def test_a_policy_that_looks_for_what_is_not_collected_is_unknown(tmp_path: Path) -> None:
    """The reason names what is missing; a second file that states it decides."""
    kind = "Microsoft.Storage/storageAccounts"
    condition = f'count(object.get(input.snapshot.by_type, "{kind.lower()}", [])) == 0'
    bundle = write(tmp_path / "policies", {"a/a/a.rego": rego("a", deny_when(condition))})
    shot, more = tmp_path / "shot.json", tmp_path / "more.json"
    shot.write_text(json.dumps(collected(two_workspaces())), encoding="utf-8")
    more.write_text(json.dumps({"snapshotVersion": 1, "covers": [f"{kind} at {ROOT}"]}), encoding="utf-8")
    for files, code, found in (([shot], 0, "unknown"), ([shot, more], 1, "fail")):
        snapshot = read_inputs(files).snapshot
        findings = evaluate(load_bundle(bundle), snapshot, as_of=AS_OF).findings
        assert {one.outcome.value for one in findings} == {found}
        ran = policyeng("check", *map(str, files), "--policy", str(bundle), "--no-exemptions")
        assert ran.returncode == code, ran.stdout
        assert ("not all storage accounts were collected" in " ".join(ran.stdout.split())) is (found == "unknown")


def test_a_thousand_workspaces_are_few_entries() -> None:
    """Those in which a list is missing cost an entry for each other one."""
    homes = [f"{GROUP}/providers/{ML}/workspaces/w{number}" for number in range(1000)]
    resources = [{"id": home, "type": f"{ML}/workspaces"} for home in homes]
    requested = [(f"{ML}/workspaces", ROOT), *((COMPUTES, home) for home in homes)]
    whole = find_covered(requested, [], resources)
    assert f"{COMPUTES} at {ROOT}" in whole
    assert sum(entry.startswith(f"{COMPUTES} at") for entry in whole) == 1
    broken = find_covered(requested, [(COMPUTES, f"{homes[7]}/computes/c")], resources)
    covered = [entry.partition(" at ")[2] for entry in broken if entry.startswith(f"{COMPUTES} at")]
    assert sorted(covered) == sorted(home for home in homes if home != homes[7])
    assert not any(is_at_or_under(homes[7], scope) for scope in covered)
