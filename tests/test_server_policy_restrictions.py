"""The form of Azure Policy: its requests and responses."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from policyeng.models import JsonObject, Severity
from policyeng.server.routes.admission_review import resource_of
from policyeng.server.schemas import ResourceDetails
from policyeng.server.service import Service
from tests.bundles import WORKSPACE
from tests.servers import send_to, service_of, setup_of, state_of

GROUP = "/subscriptions/s/resourceGroups/g"
KIND = "Microsoft.MachineLearningServices/workspaces"


def service(folder: Path, **settings: Any) -> Service:
    """A server with one policy and a state."""
    return service_of(setup_of(folder, **settings), state_of(since=datetime.now(UTC)))


def evaluations(service: Service, *, audit: bool = False, **properties: object) -> list[JsonObject]:
    """The policy evaluations of a workspace."""
    details = {"resourceContent": {"type": KIND, "name": "w", "properties": properties}, "scope": GROUP}
    response = send_to(
        service, "/v1/check-policy-restrictions", {"resourceDetails": details, "includeAuditEffect": audit}
    )
    assert response.status_code == 200
    assert response.json()["fieldRestrictions"] == []
    found: list[JsonObject] = response.json()["contentEvaluationResult"]["policyEvaluations"]
    return found


def test_a_failure_is_reported_as_azure_reports_it(tmp_path: Path) -> None:
    """With the field, what it is and what it should be; a pass is not reported."""
    assert evaluations(service(tmp_path), x=1) == []
    assert evaluations(service(tmp_path), x=2) == [
        {
            "policyInfo": {
                "policyDefinitionId": "T-A-1",
                "policySetDefinitionId": "bundle",
                "policyDefinitionReferenceId": "T-A-1",
            },
            "evaluationResult": "NonCompliant",
            "evaluationDetails": {
                "reason": "limit holds",
                "evaluatedExpressions": [
                    {
                        "result": "True",
                        "expressionKind": "field",
                        "expression": "m",
                        "path": "properties.x",
                        "expressionValue": 1,
                        "targetValue": 2,
                        "operator": "notEquals",
                    }
                ],
            },
            "effectDetails": {"policyEffect": "Deny"},
        }
    ]


def test_a_warning_is_an_audit_and_reported_on_request(tmp_path: Path) -> None:
    """Below the gate."""
    lenient = service(tmp_path, fail_on=Severity.CRITICAL)

    assert evaluations(lenient, x=2) == []
    assert [evaluation["effectDetails"] for evaluation in evaluations(lenient, audit=True, x=2)] == [
        {"policyEffect": "Audit"}
    ]


@pytest.mark.parametrize(
    ("content", "scope", "identity"),
    [
        ({"type": KIND, "name": "w"}, GROUP, WORKSPACE),
        ({"type": KIND}, GROUP, WORKSPACE.removesuffix("w") + "unnamed"),
        ({"type": f"{KIND}/computes", "name": "c"}, WORKSPACE, f"{WORKSPACE}/computes/c"),
        ({"type": f"{KIND}/computes", "name": "c"}, WORKSPACE.upper(), f"{WORKSPACE.upper()}/computes/c"),
        (
            {"type": f"{KIND}/computes", "name": "c"},
            GROUP,
            f"{GROUP}/providers/Microsoft.MachineLearningServices/workspaces/unnamed/computes/c",
        ),
        ({"type": KIND, "id": "/own"}, GROUP, "/own"),
    ],
)
def test_the_id_is_made_of_scope_type_and_name(content: JsonObject, scope: str, identity: str) -> None:
    """As ARM makes it; a resource that has one keeps it."""
    made = resource_of(ResourceDetails(resource_content=content, scope=scope))

    assert made["id"] == identity
    assert made["type"] == content["type"]


@pytest.mark.parametrize(
    ("content", "key"),
    [
        ({}, "type"),
        ({"type": "workspaces"}, "type"),
        ({"type": KIND, "name": "a/b"}, "name"),
        ({"type": KIND, "id": ""}, "id"),
    ],
)
def test_a_resource_that_is_none_is_refused(tmp_path: Path, content: JsonObject, key: str) -> None:
    """With the place of the fault."""
    body = {"resourceDetails": {"resourceContent": content, "scope": GROUP}}
    response = send_to(service(tmp_path), "/v1/check-policy-restrictions", body)

    assert response.status_code == 422
    assert response.json()["place"] == f"body: /resourceDetails/resourceContent/{key}"


@pytest.mark.parametrize("content", [None, [], "workspace"])
def test_content_that_is_not_an_object_is_refused(tmp_path: Path, content: object) -> None:
    """With its place."""
    body = {"resourceDetails": {"resourceContent": content, "scope": GROUP}}
    response = send_to(service(tmp_path), "/v1/check-policy-restrictions", body)

    assert response.status_code == 422
    assert response.json()["place"] == "body: /resourceDetails/resourceContent"


def test_pending_fields_are_refused(tmp_path: Path) -> None:
    """An empty list of restrictions would mean that there are none."""
    body = {
        "resourceDetails": {"resourceContent": {"type": KIND}, "scope": GROUP},
        "pendingFields": [{"field": "tags"}],
    }
    response = send_to(service(tmp_path), "/v1/check-policy-restrictions", body)

    assert response.status_code == 422
    assert "pendingFields" in response.json()["detail"]
