"""Azure's definitions about Machine Learning beside our policies that ask the same; `docs/azure-policy.md` lists why.

The conditions are written after those of Azure/azure-policy, built-in-policies/policyDefinitions/Machine Learning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from pathlib import Path

import orjson
import pytest

import policyeng
from policyeng.bundle import Bundle, load_bundle
from policyeng.models import JsonObject, Snapshot
from tests.azure_policies import COMPUTE, GROUP, WORKSPACE, definition, of_type, snapshot
from tests.conftest_binary import AS_OF

_STATUS = f"{WORKSPACE}/privateEndpointConnections[*].privateLinkServiceConnectionState.status"
_APPROVED = {"field": f"{WORKSPACE}/privateEndpointConnections[*]", "where": {"field": _STATUS, "equals": "Approved"}}
_NO_PROJECT = {"not": {"field": "kind", "equals": "project"}}


def _compute(kinds: list[str], condition: JsonObject) -> JsonObject:
    return of_type(COMPUTE, {"field": f"{COMPUTE}/computeType", "in": kinds}, condition)


def _blank(field: str) -> JsonObject:
    return {"anyOf": [{"field": field, "exists": False}, {"value": f"[empty(field('{field}'))]", "equals": True}]}


#: By our policy: the condition of Azure's definition of the same matter.
CONDITIONS: dict[str, JsonObject] = {
    "AML-NET-001": of_type(WORKSPACE, {"field": f"{WORKSPACE}/publicNetworkAccess", "notEquals": "Disabled"}),
    "AML-NET-003": of_type(WORKSPACE, {"count": _APPROVED, "less": 1}),
    "AML-ENC-001": of_type(
        WORKSPACE, _NO_PROJECT, {"not": {"field": f"{WORKSPACE}/encryption.status", "equals": "enabled"}}
    ),
    "AML-CMP-001": _compute(
        ["ComputeInstance", "AmlCompute"], {"field": f"{COMPUTE}/disableLocalAuth", "notEquals": True}
    ),
    "AML-CMP-005": _compute(["ComputeInstance"], _blank(f"{COMPUTE}/idleTimeBeforeShutdown")),
    "AML-CMP-006": _compute(
        ["ComputeInstance"], {"field": f"{COMPUTE}/osImageMetadata.isLatestOsImageVersion", "equals": "false"}
    ),
}


def _workspaces() -> Iterator[JsonObject]:
    connections = [None, [], ["Pending"], ["Rejected", "Approved"]]
    encryptions: list[JsonObject | None] = [None, {"status": "Enabled"}, {"status": "Disabled"}]
    encryptions.append({"keyVaultProperties": {"keyVaultArmId": f"{GROUP}/v", "keyIdentifier": "https://v/keys/k"}})
    cases = product(["Default", "Hub", "Project"], [None, "Enabled", "Disabled"], encryptions, connections)
    for number, (kind, access, encryption, states) in enumerate(cases):
        properties: JsonObject = {}
        if access is not None:
            properties["publicNetworkAccess"] = access
        if encryption is not None:
            properties["encryption"] = encryption
        if states is not None:
            properties["privateEndpointConnections"] = [
                {"name": state, "properties": {"privateLinkServiceConnectionState": {"status": state}}}
                for state in states
            ]
        name = f"w{number}"
        identity = f"{GROUP}/providers/{WORKSPACE}/{name}"
        yield {"id": identity, "name": name, "type": WORKSPACE, "kind": kind, "location": "x", "properties": properties}


def _computes() -> Iterator[JsonObject]:
    kinds, switches = ["ComputeInstance", "AmlCompute", "Kubernetes"], [None, True, False]
    cases = product(kinds, switches, [None, "", "PT1H", "P9D"], switches)
    for number, (kind, local, idle, latest) in enumerate(cases):
        inner: JsonObject = {} if idle is None else {"idleTimeBeforeShutdown": idle}
        if latest is not None:
            inner["osImageMetadata"] = {"isLatestOsImageVersion": latest}
        properties: JsonObject = {"computeType": kind, "properties": inner}
        if local is not None:
            properties["disableLocalAuth"] = local
        name = f"c{number}"
        identity = f"{GROUP}/providers/{WORKSPACE}/w0/computes/{name}"
        yield {"id": identity, "name": name, "type": COMPUTE, "location": "x", "properties": properties}


@cache
def _estate() -> JsonObject:
    return snapshot(*_workspaces(), *_computes())


def _is_project(resource: JsonObject) -> bool:
    return bool(resource.get("kind") == "Project")


def _inner(resource: JsonObject) -> JsonObject:
    found: JsonObject = resource["properties"].get("properties", {})
    return found


def _has_key_alone(resource: JsonObject) -> bool:
    encryption = resource["properties"].get("encryption") or {}
    return "keyVaultProperties" in encryption


#: By our policy: the outcomes that differ, Azure's and ours, and for which resources; each is meant.
DIFFERENCES: dict[str, list[tuple[str, str, Callable[[JsonObject], bool]]]] = {
    "AML-NET-001": [("*", "*", _is_project)],
    "AML-NET-003": [("*", "*", _is_project)],
    "AML-ENC-001": [("pass", "", _is_project), ("fail", "pass", _has_key_alone)],
    "AML-CMP-001": [("pass", "", lambda resource: resource["properties"]["computeType"] == "Kubernetes")],
    "AML-CMP-005": [
        ("pass", "", lambda resource: resource["properties"]["computeType"] != "ComputeInstance"),
        ("pass", "fail", lambda resource: _inner(resource).get("idleTimeBeforeShutdown") == "P9D"),
    ],
    "AML-CMP-006": [
        ("pass", "", lambda resource: resource["properties"]["computeType"] != "ComputeInstance"),
        ("pass", "unknown", lambda resource: "osImageMetadata" not in _inner(resource)),
    ],
}


def _outcomes(bundle: Bundle, state: Snapshot) -> dict[str, str]:
    evaluation = policyeng.evaluate(bundle, state, as_of=AS_OF)
    return {finding.resource: str(finding.outcome) for finding in evaluation.findings}


@pytest.mark.parametrize("identity", CONDITIONS)
def test_azure_and_ours_differ_only_where_it_is_meant(identity: str, tmp_path: Path) -> None:
    """Every difference is one of the table, and every row of the table occurs."""
    (tmp_path / "d.json").write_bytes(orjson.dumps(definition("azure", CONDITIONS[identity])))
    (tmp_path / "s.json").write_bytes(orjson.dumps(_estate()))
    state = policyeng.load_snapshot(tmp_path / "s.json")
    built_in = load_bundle()
    [ours] = [policy for policy in built_in.policies if policy.id == identity]
    azure = _outcomes(load_bundle(azure_policy=[tmp_path / "d.json"]), state)
    own = _outcomes(built_in.only([ours]), state)
    seen: set[int] = set()
    for resource in _estate()["resources"]:
        pair = azure.get(resource["id"], ""), own.get(resource["id"], "")
        if pair[0] == pair[1]:
            continue
        rows = [
            number
            for number, (of_azure, of_ours, concerns) in enumerate(DIFFERENCES[identity])
            if of_azure in ("*", pair[0]) and of_ours in ("*", pair[1]) and concerns(resource)
        ]
        assert rows, (pair, resource)
        seen.update(rows)
    assert seen == set(range(len(DIFFERENCES[identity])))
    assert {"pass", "fail"} <= set(azure.values())
