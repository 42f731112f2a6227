"""The private endpoints of a document connect what they name."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from policyeng.bundle import load_bundle
from policyeng.evaluation import EvaluationOptions, evaluate
from policyeng.models import JsonObject
from policyeng.sources import load_snapshot
from tests.terraform_parts import SCOPE as PLAN_SCOPE
from tests.terraform_parts import WORKSPACE as WORKSPACE_VALUES
from tests.terraform_parts import WORKSPACE_ID, change, plan, resource

BUNDLE = load_bundle()
AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
SCOPE = "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/rg"
WORKSPACE = "Microsoft.MachineLearningServices/workspaces"
STATUS = {"privateLinkServiceConnectionState": {"status": "[parameters('status')]"}}
PENDING = {"privateLinkServiceConnectionState": {"status": "Pending"}}


def template(
    list_name: str = "privateLinkServiceConnections", more: JsonObject | None = None, condition: object = True
) -> JsonObject:
    """A template with a workspace and a private endpoint that names it; its parameters have no values."""
    target = {
        "privateLinkServiceId": f"[resourceId('{WORKSPACE}', 'ws')]",
        "groupIds": ["amlworkspace"],
        **(more or {}),
    }
    endpoint = {
        "type": "Microsoft.Network/privateEndpoints",
        "apiVersion": "2024-05-01",
        "name": "pe",
        "location": "westeurope",
    }
    workspace = {
        "type": WORKSPACE,
        "apiVersion": "2025-06-01",
        "name": "ws",
        "location": "westeurope",
        "properties": {},
    }
    return {
        "$schema": "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#",
        "contentVersion": "1.0.0.0",
        "parameters": {"status": {"type": "string"}, "deployed": {"type": "bool"}},
        "resources": [
            workspace,
            {**endpoint, "condition": condition, "properties": {list_name: [{"name": "c", "properties": target}]}},
        ],
    }


@pytest.mark.parametrize(
    ("document", "outcome"),
    [
        (template(), "pass"),
        (template(more={"privateLinkServiceConnectionState": {"status": "Approved"}}), "pass"),
        (template("manualPrivateLinkServiceConnections"), "unknown"),
        (template(more=PENDING), "unknown"),
        (template(more={"privateLinkServiceId": f"[resourceId('{WORKSPACE}', 'other')]"}), "unknown"),
        (template(more=STATUS), "unknown"),
        (template(condition="[parameters('deployed')]"), "unknown"),
    ],
)
def test_an_endpoint_of_the_template_is_a_connection(tmp_path: Path, document: JsonObject, outcome: str) -> None:
    """Not if somebody has to approve it; and others may exist, so nothing else about the list is known."""
    file = tmp_path / "template.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    evaluation = evaluate(BUNDLE, load_snapshot(file), EvaluationOptions(AS_OF))
    findings = {
        finding.policy: finding for finding in evaluation.findings if finding.resource.endswith("/workspaces/ws")
    }

    assert findings["AML-NET-003"].outcome == outcome
    assert findings["AML-NET-004"].outcome == "unknown"


def test_a_list_that_was_read_stays(tmp_path: Path) -> None:
    """A live answer says which connections are approved."""
    endpoint = {
        "id": f"{SCOPE}/providers/Microsoft.Network/privateEndpoints/pe",
        "type": "Microsoft.Network/privateEndpoints",
        "properties": {
            "privateLinkServiceConnections": [
                {"properties": {"privateLinkServiceId": f"{SCOPE}/providers/{WORKSPACE}/ws"}}
            ]
        },
    }
    workspace = {
        "id": f"{SCOPE}/providers/{WORKSPACE}/ws",
        "type": WORKSPACE,
        "properties": {"privateEndpointConnections": []},
    }
    file = tmp_path / "snapshot.json"
    file.write_text(json.dumps({"snapshotVersion": 1, "resources": [workspace, endpoint]}), encoding="utf-8")

    assert workspace in load_snapshot(file).resources


@pytest.mark.parametrize(
    ("manual", "unknown", "outcome"),
    [(False, {}, "pass"), (True, {}, "unknown"), (None, {"is_manual_connection": True}, "unknown")],
)
def test_an_endpoint_of_a_plan_is_a_connection(
    tmp_path: Path, manual: object, unknown: JsonObject, outcome: str
) -> None:
    """Not if a person approves it, or if that is known only after apply."""
    target = {"private_connection_resource_id": WORKSPACE_ID, "name": "c", "is_manual_connection": manual}
    values = {"name": "pe", "resource_group_name": "rg-ml", "private_service_connection": [target]}
    endpoint = resource("azurerm_private_endpoint", values)
    workspace = resource("azurerm_machine_learning_workspace", WORKSPACE_VALUES)
    marks = {"id": True, "private_service_connection": [unknown]}
    file = tmp_path / "plan.json"
    file.write_text(
        json.dumps(plan([workspace, endpoint], [change(workspace, {}), change(endpoint, marks)])), encoding="utf-8"
    )
    snapshot = load_snapshot(file, scope=PLAN_SCOPE)
    findings = evaluate(BUNDLE, snapshot, EvaluationOptions(AS_OF)).findings

    assert [finding.outcome for finding in findings if finding.policy == "AML-NET-003"] == [outcome]
