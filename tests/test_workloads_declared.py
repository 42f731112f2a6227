"""How declared workloads join derived ones, and how they are used alone."""

from __future__ import annotations

import pytest

from policyeng.models import JsonObject
from tests.workload_parts import CLUSTER, ML, WS, job, one, service

SOURCE = service({"computeType": "ACI"})["id"]


@pytest.mark.parametrize(
    ("declared", "pointer", "value", "reason"),
    [
        ({"cadence": "scheduled"}, "cadence", "scheduled", ""),
        ({"model": {"sizeGiB": 0.5}}, "model", {"sizeGiB": 0.5, "memoryGiB": None}, ""),
        ({"features": ["designer", "automl"]}, "features", ["automl", "designer"], ""),
        ({"accelerator": "none"}, "accelerator", "none", ""),
        ({"accelerator": "gpu"}, "accelerator", "gpu", ""),
        ({"target": "aks"}, "target", None, "ARM states `aci` but the declared workload states `aks`"),
        ({"tags": {"Stage": "dev", "A": "2"}}, "tags", {"a": "1"}, ""),
    ],
)
def test_a_declared_workload_adds_to_the_derived_one(
    declared: JsonObject, pointer: str, value: object, reason: str
) -> None:
    """It states what ARM does not; where both state it and differ, the field is undecided and names both."""
    source = service({"computeType": "ACI"}, tags={"a": "1"})
    found = one(source, workloads=[{"id": "w", "sourceId": SOURCE.upper(), **declared}])
    assert found.reported_id == SOURCE
    assert found.document[pointer] == value
    assert reason in found.unreadable.get(f"/{pointer}", "")


def test_a_declared_accelerator_decides_what_arm_leaves_open() -> None:
    """A declared fact wins over an undecided one, and over the presumed purpose of a job."""
    declared = {"id": "w", "sourceId": f"{WS}/jobs/J", "accelerator": "gpu", "purpose": "batch-inference"}
    found = one(job({}), workloads=[declared])
    assert (found.document["accelerator"], found.document["purpose"]) == ("gpu", "batch-inference")
    assert not found.unreadable


def test_declarations_that_contradict_each_other_decide_nothing() -> None:
    """Two declarations of one source agree or leave the field undecided, in whatever order they are."""
    both = [
        {"id": "a", "sourceId": SOURCE, "cadence": "scheduled", "tags": {"x": "1"}},
        {"id": "b", "sourceId": SOURCE, "cadence": "sporadic", "tags": {"X": "2"}},
    ]
    found = one(service({"computeType": "ACI"}), workloads=both)
    assert found == one(service({"computeType": "ACI"}), workloads=both[::-1])
    assert found.unreadable["/cadence"].endswith("`scheduled` and `sporadic`")
    assert found.document["tags"] == {}


def test_a_declared_accelerator_that_contradicts_the_request_decides_nothing() -> None:
    """Containers that explicitly request no GPU are not silent about it."""
    silent = {"computeType": "ACI", "containerResourceRequirements": {"gpu": 0}}
    found = one(service(silent), workloads=[{"id": "w", "sourceId": SOURCE, "accelerator": "gpu"}])
    assert found.document["accelerator"] is None
    assert "ARM states `none` but the declared workload states `gpu`" in found.unreadable["/accelerator"]


def test_a_declared_accelerator_adds_to_what_a_size_has() -> None:
    """A size without one is silent about the declaration; a size with one is not."""
    for size, declared, accelerator in (
        ("Standard_CPU", "fpga", "fpga"),
        ("Standard_CPU", "gpu", "gpu"),
        ("Standard_CPU", "none", "none"),
        ("Standard_GPU", "none", None),
        ("Standard_GPU", "gpu", "gpu"),
    ):
        deployment = {
            "id": f"{WS}/onlineEndpoints/e/deployments/d",
            "type": "Microsoft.MachineLearningServices/workspaces/onlineEndpoints/deployments",
            "properties": {"endpointComputeType": "Managed", "instanceType": size},
        }
        found = one(deployment, workloads=[{"id": "w", "sourceId": deployment["id"], "accelerator": declared}])
        assert found.document["accelerator"] == accelerator


def test_enum_values_are_declared_in_any_case() -> None:
    """As those of ARM resources are, with and without a source."""
    stated = {"purpose": "Training", "target": "Compute-Cluster", "accelerator": "GPU", "cadence": "Sporadic"}
    found = one(workloads=[{"id": "w", "features": ["AutoML"]} | stated])
    assert {key: found.document[key] for key in stated} == {key: value.lower() for key, value in stated.items()}
    assert found.document["features"] == ["automl"]


def test_a_lone_declaration_is_used_as_written() -> None:
    """Without a source it is used alone; what it does not state is undecided, never assumed."""
    found = one(workloads=[{"id": "w", "workspaceId": WS, "purpose": "realtime-inference", "tags": {"a": "b"}}])
    assert (found.reported_id, found.document["workspaceId"], found.document["tags"]) == ("w", WS, {"a": "b"})
    assert set(found.unreadable) == {"/target", "/accelerator"}


def test_a_declaration_whose_source_is_missing_is_used_alone_and_states_it() -> None:
    """A dangling sourceId is named in the reasons, and its workspace is still known."""
    found = one(workloads=[{"id": "w", "sourceId": SOURCE, "target": "local"}])
    assert (found.reported_id, found.document["target"], found.document["workspaceId"]) == ("w", "local", WS)
    assert found.document["sourceId"] is None
    assert all("is not in the snapshot" in found.unreadable[key] for key in ("/sourceId", "/purpose", "/computeId"))


def test_a_declaration_of_a_source_that_is_no_workload_is_used_alone() -> None:
    """A source that derives no workload is kept as the source."""
    found = one(CLUSTER, workloads=[{"id": "w", "sourceId": CLUSTER["id"], "target": "local"}])
    assert (found.document["sourceId"], found.document["sourceType"]) == (CLUSTER["id"], f"{ML}/computes")
    assert "/sourceId" not in found.unreadable
