"""Managed networks that are children of their workspaces count as those that a workspace states itself."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

import policyeng
from policyeng.bundle import Bundle
from policyeng.models import JsonObject, Snapshot
from policyeng.sources import load_snapshot, read_inputs

AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
GROUP = "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/rg"
TYPE = "Microsoft.MachineLearningServices/workspaces"
ID = f"{GROUP}/providers/{TYPE}/ws"
POLICIES = ("AML-CMP-002", "AML-NET-105")
CLOSED = "AllowOnlyApprovedOutbound"


def workspace(**properties: object) -> JsonObject:
    """A regulated workspace that is closed to the public network."""
    stated = {"publicNetworkAccess": "Disabled", "hbiWorkspace": True, **properties}
    return {"id": ID, "type": TYPE, "location": "westeurope", "properties": stated}


def network(mode: object = CLOSED, workspace: str = ID, name: str = "default") -> JsonObject:
    """A managed network of its own."""
    properties = {"managedNetwork": {"isolationMode": mode}}
    return {"id": f"{workspace}/managedNetworks/{name}", "type": f"{TYPE}/managedNetworks", "properties": properties}


def rule(name: str = "pypi") -> JsonObject:
    """An outbound rule of its own."""
    properties = {"type": "FQDN", "destination": "example.org"}
    identity = f"{ID}/managedNetworks/default/outboundRules/{name}"
    return {"id": identity, "type": f"{TYPE}/managedNetworks/outboundRules", "properties": properties}


CLUSTER = {
    "id": f"{ID}/computes/train",
    "type": f"{TYPE}/computes",
    "properties": {"computeType": "AmlCompute", "properties": {"vmSize": "Standard_F72s_v2"}},
}


def template(*resources: JsonObject) -> JsonObject:
    """A template that deploys resources, without what it cannot state."""
    schema = "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#"
    entries = [
        {
            "type": one["type"],
            "apiVersion": "2025-12-01",
            "name": one.get("name") or "/".join(one["id"].split("/")[8::2]),
            "properties": one["properties"],
        }
        for one in resources
    ]
    return {"$schema": schema, "contentVersion": "1.0.0.0", "parameters": {"mode": {"type": "string"}}} | {
        "resources": entries
    }


def read(folder: Path, *documents: object) -> Snapshot:
    """Documents, one in a file."""
    for number, document in enumerate(documents):
        (folder / f"{number}.json").write_text(json.dumps(document, indent=1), encoding="utf-8")
    return load_snapshot(folder)


def outcomes(bundle: Bundle, snapshot: Snapshot) -> dict[str, str]:
    """The outcome of each of the two policies."""
    found = policyeng.evaluate(bundle, snapshot, as_of=AS_OF).findings
    return {finding.policy: finding.outcome.value for finding in found if finding.policy in POLICIES}


def test_a_managed_network_of_its_own_closes_its_workspace(bundle: Bundle, tmp_path: Path) -> None:
    """In a template, in a list of the REST API, and in files apart; without it, both policies fail."""
    resources = [workspace(), network(), rule(), CLUSTER]
    folders = [tmp_path / name for name in ("template", "list", "apart", "without")]
    for folder in folders:
        folder.mkdir()

    for folder, documents in zip(folders[:3], ([template(*resources)], [{"value": resources}], resources), strict=True):
        assert outcomes(bundle, read(folder, *documents)) == dict.fromkeys(POLICIES, "pass")
    assert outcomes(bundle, read(folders[3], workspace(), CLUSTER)) == dict.fromkeys(POLICIES, "fail")


def test_the_rules_are_in_the_network(tmp_path: Path) -> None:
    """Whichever is read first, and in addition to those that the network states."""
    for number, resources in enumerate(([rule(), network(), workspace()], [workspace(), network(), rule()])):
        folder = tmp_path / str(number)
        folder.mkdir()
        managed = next(one for one in read(folder, resources).resources if one["type"] == TYPE)

        assert managed["properties"]["managedNetwork"]["outboundRules"] == {"pypi": rule()["properties"]}


def test_a_failure_names_the_line_of_the_child(bundle: Bundle, tmp_path: Path) -> None:
    """The child states the isolation mode, so its line is the place of the finding."""
    (tmp_path / "w.json").write_text(json.dumps([workspace(), network("Disabled"), CLUSTER], indent=1))
    inputs = read_inputs([tmp_path / "w.json"])
    findings = policyeng.evaluate(bundle, inputs.snapshot, as_of=AS_OF).findings
    [failure] = [one for one in findings if one.policy == "AML-NET-105"]
    lines = (tmp_path / "w.json").read_text(encoding="utf-8").splitlines()

    place = failure.location.fields["/properties/managedNetwork/isolationMode"]
    assert '"isolationMode": "Disabled"' in lines[place.line - 1]


@pytest.mark.parametrize(
    ("resources", "reason"),
    [
        ([workspace(), network("[parameters('mode')]"), CLUSTER], "parameters('mode')"),
        ([workspace(managedNetwork={"isolationMode": "Disabled"}), network(), CLUSTER], "different isolation modes"),
        (
            [workspace(), {**network(), "name": "[concat(parameters('mode'), '/default')]"}, CLUSTER],
            "not known whether",
        ),
        ([workspace(), {**network(), "properties": {}}, CLUSTER], "states no object"),
    ],
)
def test_a_managed_network_that_cannot_be_read_is_unknown(
    bundle: Bundle, tmp_path: Path, resources: list[JsonObject], reason: str
) -> None:
    """An expression, two places that contradict each other, a parent that is not known, and no settings at all."""
    snapshot = read(tmp_path, template(*resources))

    assert outcomes(bundle, snapshot) == dict.fromkeys(POLICIES, "unknown")
    managed = next(key for key in snapshot.unreadable if key.endswith("/workspaces/ws"))
    assert any(reason in why for why in snapshot.unreadable[managed].values())


def test_a_change_of_the_managed_network_is_a_change_of_its_workspace(bundle: Bundle, tmp_path: Path) -> None:
    """It is denied where it opens the workspace, and not known where it is deleted."""
    state = read(tmp_path, [workspace(), network(), CLUSTER])
    patch = {"properties": {"managedNetwork": {"isolationMode": "Disabled"}}}
    opening = [network("Disabled"), {"operation": "patch", "id": network()["id"], "patch": patch}]

    for change in opening:
        decision = policyeng.admit(bundle, state, change, as_of=AS_OF)
        assert {one.policy for one in decision.denied} >= set(POLICIES)
    assert policyeng.admit(bundle, state, network("allowonlyapprovedoutbound"), as_of=AS_OF).allowed
    gone = policyeng.admit(bundle, state, network()["id"], as_of=AS_OF)
    assert {one.policy for one in gone.undecided} >= set(POLICIES)


def test_a_workspace_that_is_written_anew_keeps_its_managed_network(bundle: Bundle, tmp_path: Path) -> None:
    """Where it does not state an isolation mode; the one that it states counts."""
    state = read(tmp_path, [workspace(), network(), CLUSTER])
    opened = workspace(managedNetwork={"isolationMode": "Disabled"})

    assert not {one.policy for one in policyeng.admit(bundle, state, workspace(), as_of=AS_OF).denied} & set(POLICIES)
    assert {one.policy for one in policyeng.admit(bundle, state, opened, as_of=AS_OF).denied} >= set(POLICIES)


def test_outbound_rules_of_a_workspace_are_its_own() -> None:
    """Rules below the workspace count as those below its managed network."""
    properties = {"type": "FQDN", "destination": "example.org"}
    child = {"id": f"{ID.upper()}/outboundRules/pypi", "type": f"{TYPE}/outboundRules", "properties": properties}
    document = {"snapshotVersion": 1, "resources": [workspace(), child]}
    [found, _] = read_inputs(["-"], stdin=json.dumps(document).encode()).snapshot.resources
    assert found["properties"]["managedNetwork"] == {"outboundRules": {"pypi": properties}}


@pytest.mark.parametrize(
    ("stated", "expected"), [({}, "fail"), ({"managedNetwork": {"isolationMode": CLOSED}}, "pass")]
)
def test_a_template_without_a_managed_network_has_none(bundle: Bundle, stated: JsonObject, expected: str) -> None:
    """The status that the service adds to a managed network does not show whether there is one."""
    document = template(workspace(**stated))
    snapshot = read_inputs(["-"], stdin=json.dumps(document).encode()).snapshot
    found = {one.policy: one.outcome.value for one in policyeng.evaluate(bundle, snapshot, as_of=AS_OF).findings}
    assert (found["AML-NET-006"], found.get("AML-NET-201")) == (expected, "unknown" if stated else None)
