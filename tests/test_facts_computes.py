"""`policyeng.facts.computes`: what kind a compute is, which sizes its nodes have, and whether it is regulated."""

from __future__ import annotations

from typing import Any

import pytest

from policyeng.facts import Facts
from policyeng.facts.computes import (
    COMPUTE_TYPE,
    DEPLOYMENT_TYPE,
    NodeSize,
    backed_by,
    cluster_of,
    compute_regulated,
    find_size,
    kind_of,
    managed,
    max_instances,
    node_sizes,
    own_size,
    region_of,
)

ML = "Microsoft.MachineLearningServices/workspaces"
BASE = "/subscriptions/s/resourceGroups/rg/providers"
WORKSPACE = f"{BASE}/{ML}/ws"
COMPUTES = f"{ML}/computes".lower()


def _compute(name: str, kind: object, inner: object = None) -> dict[str, Any]:
    properties = {"computeType": kind, "resourceId": f"{BASE}/x/y/{name}", "properties": inner}
    return {"id": f"{WORKSPACE}/computes/{name}", "type": f"{ML}/computes", "properties": properties}


def _cluster(pools: object = None, **more: object) -> dict[str, Any]:
    properties = {"agentPoolProfiles": pools}
    return {
        "id": f"{BASE}/x/y/K8S",
        "type": "Microsoft.ContainerService/ManagedClusters",
        "properties": properties,
        **more,
    }


def _located(kind: str, place: str) -> dict[str, Any]:
    return {"type": kind, "location": "East US", "properties": {"computeLocation": place}}


def _deployment(**properties: object) -> dict[str, Any]:
    return {"type": f"{ML}/onlineEndpoints/deployments", "properties": properties}


MACHINE = {"type": "Microsoft.Compute/virtualMachines", "properties": {"hardwareProfile": {"vmSize": "B"}}}


@pytest.mark.parametrize(
    ("resource", "kind"),
    [
        (_compute("c", " AmlCompute"), "amlcompute"),
        (_compute("c", 7), None),
        (_cluster(), "managedcluster"),
        (_deployment(), "deployment"),
        (_deployment(endpointComputeType="Managed"), "deployment"),
        (_deployment(endpointComputeType="KUBERNETES"), None),
        (MACHINE, None),
        ({}, None),
    ],
)
def test_kinds_compare_without_case(resource: dict[str, Any], kind: str | None) -> None:
    """A deployment on Kubernetes has no nodes of its own."""
    assert kind_of(resource) == kind


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        (_compute("c", "AmlCompute", {"vmSize": "A"}), [("/properties/properties/vmSize", "A")]),
        (_compute("c", "ComputeInstance", {"vmSize": 7}), [("/properties/properties/vmSize", 7)]),
        (_compute("c", "AmlCompute", "text"), [("/properties/properties/vmSize", None)]),
        (_compute("c", "AKS", {"agentVmSize": "A"}), [("/properties/properties/agentVmSize", "A")]),
        (_compute("c", "AKS"), []),
        (_compute("c", "Kubernetes"), []),
        (_compute("c", "Databricks"), None),
        (_compute("c", "VirtualMachine"), []),
        (_compute("VM", "VirtualMachine"), [("/properties/resourceId", "B")]),
        (_deployment(instanceType="A"), [("/properties/instanceType", "A")]),
        (_cluster(), [("/properties/agentPoolProfiles", None)]),
        (_cluster("text"), [("/properties/agentPoolProfiles", None)]),
        (
            _cluster([{"vmSize": "A"}, "text"]),
            [("/properties/agentPoolProfiles/0/vmSize", "A"), ("/properties/agentPoolProfiles/1/vmSize", None)],
        ),
    ],
)
def test_sizes_of_all_nodes(resource: dict[str, Any], expected: list[tuple[str, object]] | None) -> None:
    """None where a size ought to be stated, no entry where another resource states it, None for what has no nodes."""
    sizes = node_sizes(resource, {f"{BASE}/x/y/vm".lower(): MACHINE})
    assert sizes == (None if expected is None else [NodeSize(*entry) for entry in expected])


def test_a_virtual_machine_has_both_sizes_when_both_are_stated() -> None:
    """A machine that was resized since it was attached shows it."""
    compute = _compute("vm", "VirtualMachine", {"virtualMachineSize": "A"})
    sizes = node_sizes(compute, {f"{BASE}/x/y/vm".lower(): MACHINE})
    assert sizes is not None
    assert [node.size for node in sizes] == ["A", "B"]


def test_only_a_virtual_machine_states_the_size_of_one() -> None:
    """What a compute names may be something else, whatever it states."""
    other = {**MACHINE, "type": "x"}
    assert node_sizes(_compute("vm", "VirtualMachine"), {f"{BASE}/x/y/vm".lower(): other}) == []


def test_own_size_only_where_there_is_a_place_for_it() -> None:
    """A managed cluster states sizes per pool, a Kubernetes compute none."""
    assert own_size(_cluster()) is None
    assert own_size(_compute("c", "Kubernetes")) is None


def test_cluster_behind_a_compute_is_found_without_case() -> None:
    """Only a managed cluster counts, and only by its whole id."""
    by_id = {_cluster()["id"].lower(): _cluster()}
    assert cluster_of(_compute("k8s", "Kubernetes"), by_id) == _cluster()
    assert cluster_of(_compute("k8s-2", "Kubernetes"), by_id) is None
    assert cluster_of(_compute("k8s", "Kubernetes"), {_cluster()["id"].lower(): MACHINE}) is None


def test_only_aks_and_kubernetes_computes_run_on_a_cluster() -> None:
    """Another type that names the cluster does not back it."""
    computes = {kind: _compute("k8s", kind) for kind in ("Kubernetes", "AKS", "Databricks")}
    by_host = {_cluster()["id"].lower(): list(computes)}
    assert list(backed_by(_cluster(), computes, by_host)) == [computes["Kubernetes"], computes["AKS"]]
    assert list(backed_by(_cluster(), computes, {})) == []


@pytest.mark.parametrize(
    ("workspace", "cluster", "on_it", "decided"),
    [
        ({"properties": {"hbiWorkspace": True}}, _cluster(), "k8s", True),
        ({"properties": {"hbiWorkspace": False}}, _cluster(), "k8s", False),
        (None, _cluster(), "k8s", None),
        ({"properties": {"hbiWorkspace": True}}, _cluster(), "k8s-2", False),
        (None, _cluster(tags={"data-classification": "X"}), "k8s-2", True),
    ],
)
def test_a_cluster_is_regulated_by_what_runs_on_it(
    workspace: dict[str, Any] | None, cluster: dict[str, Any], on_it: str, decided: bool | None
) -> None:
    """Its own tag counts too; a workspace that is not in the snapshot leaves it undecided."""
    compute = _compute(on_it, "Kubernetes")
    by_id = {"compute": compute} | ({} if workspace is None else {WORKSPACE.lower(): workspace})
    by_host = {compute["properties"]["resourceId"].lower(): ["compute"]}
    assert compute_regulated(cluster, None, by_id, by_host, ["x"]).decided is decided


def test_a_cluster_names_the_compute_that_makes_it_regulated() -> None:
    """The flag of a workspace that the cluster does not belong to would mean little."""
    compute = _compute("k8s", "Kubernetes")
    by_id = {"compute": compute, WORKSPACE.lower(): {"properties": {"hbiWorkspace": True}}}
    by_host = {_cluster()["id"].lower(): ["compute"]}
    reason = compute_regulated(_cluster(), None, by_id, by_host, ["x"]).reason
    assert reason == "for the compute `k8s` on it: `hbiWorkspace` of the workspace is true"


def test_other_resources_are_regulated_by_their_workspace() -> None:
    """What is no managed cluster is decided by the words alone."""
    workspace = {"properties": {"hbiWorkspace": True}}
    assert compute_regulated(_compute("c", "AmlCompute"), workspace, {}, {}, ["x"]).decided is True


@pytest.mark.parametrize(
    ("resource", "workspace", "region"),
    [
        (_located(COMPUTES, "North Europe"), {"location": "x"}, "northeurope"),
        (_located(COMPUTES, " "), {"location": "x"}, "eastus"),
        (_located("Microsoft.ContainerService/managedClusters", "North Europe"), {"location": "x"}, "eastus"),
        ({"location": 7, "properties": "text"}, {"location": "West US"}, "westus"),
        ({}, None, None),
    ],
)
def test_region_of_the_nodes(resource: dict[str, Any], workspace: dict[str, Any] | None, region: str | None) -> None:
    """The compute's own goes first, if it is one, then the resource's, then the workspace's."""
    assert region_of(resource, workspace) == region


def test_known_size_is_the_row_of_the_catalogue() -> None:
    """Nothing for a size that the catalogue does not know, nor where none is stated."""
    row = {"name": "S", "series": "S", "family": "f", "vcpus": 1, "memory_gib": 1, "gpus": 0, "fpgas": 0, "source": "s"}
    facts = Facts.from_document({"vm_sizes": {"s": row}})
    found = find_size(_deployment(instanceType="S"), facts)

    assert found is not None
    assert found.vcpus == 1
    assert find_size(_deployment(instanceType="T"), facts) is None
    assert find_size(_deployment(instanceType=7), facts) is None
    assert find_size(_compute("c", "Databricks", {"vmSize": "S"}), facts) is None


def test_managed_computes_of_a_scope() -> None:
    """Clusters, instances and managed deployments, each with its workspace if that is in the snapshot."""
    resources = [_compute(kind, kind) for kind in ("AmlCompute", "ComputeInstance", "AKS", "VirtualMachine")]
    online = {**_deployment(), "id": f"{BASE}/{ML}/other/onlineEndpoints/e/deployments/d"}
    on_kubernetes = {
        **_deployment(endpointComputeType="Kubernetes"),
        "id": f"{WORKSPACE}/onlineEndpoints/e/deployments/k",
    }
    home = {"id": WORKSPACE, "type": ML}
    by_id = {one["id"].lower(): one for one in (*resources, online, on_kubernetes, home)}
    kinds = {
        COMPUTE_TYPE: [one["id"].lower() for one in resources],
        DEPLOYMENT_TYPE: [online["id"].lower(), on_kubernetes["id"].lower()],
    }

    assert list(managed(by_id, {"/s": kinds}, ["/s"])) == [(resources[0], home), (resources[1], home), (online, None)]
    assert list(managed(by_id, {}, ["/s"])) == []


@pytest.mark.parametrize(
    ("deployment", "expected"),
    [
        ({}, 1),
        ({"sku": {"capacity": 5}}, 5),
        ({"sku": {"capacity": "5"}}, 5),
        ({"sku": {"capacity": 5.0}}, 5),
        ({"sku": {"capacity": 5.5}}, None),
        ({"sku": {"capacity": True}}, None),
        ({"sku": "text"}, 1),
        ({"sku": {"capacity": 9}, "properties": {"scaleSettings": {"scaleType": "Default", "maxInstances": 2}}}, 9),
        ({"sku": {"capacity": 9}, "properties": {"scaleSettings": {"scaleType": "targetUtilization"}}}, 1),
        ({"properties": {"scaleSettings": {"scaleType": "TargetUtilization", "maxInstances": 7}}}, 7),
        ({"properties": {"scaleSettings": {"scaleType": "TargetUtilization", "maxInstances": []}}}, None),
    ],
)
def test_instances_are_those_it_may_have(deployment: dict[str, Any], expected: int | None) -> None:
    """The capacity, or the most that it scales itself to; what is no whole number is unknown."""
    assert max_instances(deployment) == expected
