"""Kubernetes objects that name each other: in one document, in those of one file, and across the inputs."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

import policyeng
from policyeng.models import JsonObject, Snapshot
from policyeng.sources import DocumentContext, Inputs, read_inputs

GROUP = "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/rg-ml"
CONTEXT = DocumentContext(scope=GROUP)
WORKSPACES = f"{GROUP}/providers/Microsoft.MachineLearningServices/workspaces"
SUBNETS = f"{GROUP}/providers/Microsoft.Network/virtualNetworks/real/subnets"
ML, NETWORK = "machinelearningservices.azure.com/v1api20240401", "network.azure.com/v1api20201101"


def named(api_version: str, kind: str, name: str, spec: JsonObject, namespace: str = "ml") -> JsonObject:
    """An object of a kind and name."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def workspace(azure_name: str, namespace: str = "ml") -> JsonObject:
    """A workspace that has another name in Azure than in the cluster."""
    spec = {"azureName": azure_name, "owner": {"name": "rg"}, "hbiWorkspace": True}
    return named(ML, "Workspace", "ws-obj", spec, namespace)


def cluster(name: str = "c") -> JsonObject:
    """A cluster in that workspace, with its nodes in a subnet that another object is."""
    reference = {"group": "network.azure.com", "kind": "VirtualNetworksSubnet", "name": "nodes"}
    inner = {"vmSize": "Standard_DS3_v2", "vmPriority": "Dedicated", "subnet": {"reference": reference}}
    body = {"computeType": "AmlCompute", "properties": inner}
    return named(ML, "WorkspacesCompute", name, {"owner": {"name": "ws-obj"}, "properties": {"amlCompute": body}})


def network(azure_name: str = "real") -> JsonObject:
    """A virtual network."""
    return named(NETWORK, "VirtualNetwork", "vnet-obj", {"azureName": azure_name, "owner": {"name": "rg"}})


def subnet() -> JsonObject:
    """A subnet in it."""
    return named(NETWORK, "VirtualNetworksSubnet", "nodes", {"owner": {"name": "vnet-obj"}})


def estate(folder: Path, files: dict[str, list[JsonObject]]) -> Inputs:
    """The content of several files with some documents each."""
    for name, documents in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump_all(documents))
    return read_inputs([folder], context=CONTEXT)


def ids(inputs: Inputs, arm_type: str) -> list[str]:
    """The ids of the resources of a type below its provider."""
    return [each["id"] for each in inputs.snapshot.resources if each["type"].endswith(arm_type)]


def subnet_of(snapshot: Snapshot) -> object:
    """The subnet of the only compute."""
    [compute] = [each for each in snapshot.resources if each["type"].endswith("/computes")]
    return compute["properties"]["properties"]["subnet"]


ALL = [workspace("real-ws"), cluster(), network(), subnet()]
LAYOUTS: list[dict[str, list[JsonObject]]] = [
    {"a.yaml": [{"apiVersion": "v1", "kind": "List", "items": ALL}]},
    {"a.yaml": ALL},
    {"a.yaml": ALL[::-1]},
    {f"{index}.yaml": [document] for index, document in enumerate(ALL)},
    {f"{index}.yaml": [document] for index, document in enumerate(ALL[::-1])},
    {"a/x.yaml": [ALL[1]], "a/y.yaml": [ALL[0]], "z.yaml": ALL[2:]},
    {f"{index}/x.yaml": [document] for index, document in enumerate(ALL)},
]


@pytest.mark.parametrize("files", LAYOUTS)
def test_objects_name_each_other_wherever_they_are(files: dict[str, list[JsonObject]], tmp_path: Path) -> None:
    """In one list, in documents of one file in any order, and in files of one directory or of several."""
    inputs = estate(tmp_path, files)

    assert inputs.problems == ()
    assert ids(inputs, "/workspaces/computes") == [f"{WORKSPACES}/real-ws/computes/c"]
    assert ids(inputs, "/virtualNetworks/subnets") == [f"{SUBNETS}/nodes"]
    assert subnet_of(inputs.snapshot) == {"id": f"{SUBNETS}/nodes"}


def test_a_file_of_documents_is_evaluated_as_the_list_of_them(tmp_path: Path) -> None:
    """Failures of resources in a workspace with another name in Azure are found either way."""
    bundle = policyeng.load_bundle()
    outcomes = []
    for name, files in (("list", LAYOUTS[0]), ("stream", LAYOUTS[1]), ("files", LAYOUTS[3])):
        evaluation = policyeng.evaluate(bundle, estate(tmp_path / name, files).snapshot)
        outcomes.append({(each.policy, each.resource): each.outcome for each in evaluation.findings})

    assert outcomes[0] == outcomes[1] == outcomes[2]
    assert "fail" in outcomes[0].values()


@pytest.mark.parametrize("mine", ["dev/ws.yaml", "dev/compute.yaml", "ws.yaml"])
def test_the_nearest_object_is_meant(mine: str, tmp_path: Path) -> None:
    """That of the file precedes that of the directory, and the nearest directory above before any other."""
    farther = {"dev/compute.yaml": "dev/ws.yaml", "dev/ws.yaml": "ws.yaml", "ws.yaml": "prod/ws.yaml"}[mine]
    files = {"dev/compute.yaml": [cluster()], farther: [workspace("other")], "z/net.yaml": [network(), subnet()]}
    files[mine] = [*files.get(mine, []), workspace("mine")]

    assert ids(estate(tmp_path, files), "/computes") == [f"{WORKSPACES}/mine/computes/c"]


def test_of_equally_near_objects_none_is_meant(tmp_path: Path) -> None:
    """An owner is then refused and a reference unreadable, unless the objects agree in their id."""
    apart = estate(
        tmp_path / "apart",
        {
            "a/x.yaml": [workspace("one"), cluster("in-one"), network("one"), subnet()],
            "b/x.yaml": [workspace("two"), network("two"), subnet()],
            "c/x.yaml": [cluster("in-none")],
        },
    )
    agreed = estate(
        tmp_path / "agreed",
        {"a/x.yaml": [workspace("one"), network(), subnet()], "b/x.yaml": [workspace("ONE")], "c/x.yaml": [cluster()]},
    )

    [problem] = apart.problems
    message = "the owner of the object is unknown; set `spec.owner.armId`"
    assert (problem.level, problem.message) == ("error", message)
    assert problem.place.endswith("c/x.yaml:1")
    assert ids(apart, "/computes") == [f"{WORKSPACES}/one/computes/in-one"]
    assert ids(agreed, "/computes") == [f"{WORKSPACES}/one/computes/c"]


def test_a_reference_to_one_of_several_subnets_is_unreadable(tmp_path: Path) -> None:
    """The ids differ by the network of each, which its own file states."""
    files = {name: [network(name), subnet()] for name in ("a/x.yaml", "b/x.yaml")}
    files["c/x.yaml"] = [workspace("real-ws"), cluster()]
    inputs = estate(tmp_path, files)
    [compute] = ids(inputs, "/computes")

    why = inputs.snapshot.unreadable[compute.lower()]["/properties/properties/subnet/id"]
    assert "is unknown; set `armId`" in why


def test_copies_without_end_are_bounded(tmp_path: Path) -> None:
    """More objects of one name than are compared cannot be distinguished."""
    few = {f"{index}/x.yaml": [workspace("same", f"ns-{index}")] for index in range(30)}
    many = {f"{index}/x.yaml": [workspace("same")] for index in range(21)}

    assert ids(estate(tmp_path / "few", {**few, "c.yaml": [cluster()]}), "/computes") == [
        f"{WORKSPACES}/ws-obj/computes/c"
    ]
    assert ids(estate(tmp_path / "many", {**many, "x/c.yaml": [cluster()]}), "/computes") == []


def test_parts_lie_in_their_parents_across_documents(tmp_path: Path) -> None:
    """Agent pools in clusters, and role assignments in whatever owns them."""
    aks, group = "containerservice.azure.com/v1api20231001", "containerservice.azure.com"
    owner = {"group": group, "kind": "ManagedCluster", "name": "aks-obj"}
    inputs = estate(
        tmp_path,
        {
            "a.yaml": [
                named(aks, "ManagedClustersAgentPool", "pool", {"owner": {"name": "aks-obj"}}),
                named("authorization.azure.com/v1api20220401", "RoleAssignment", "role", {"owner": owner}),
            ],
            "b.yaml": [named(aks, "ManagedCluster", "aks-obj", {"azureName": "real-aks", "owner": {"name": "rg"}})],
        },
    )
    clusters = f"{GROUP}/providers/Microsoft.ContainerService/managedClusters/real-aks"
    [role] = [each for each in inputs.snapshot.resources if each["type"].endswith("/roleAssignments")]

    assert inputs.problems == ()
    assert ids(inputs, "/agentPools") == [f"{clusters}/agentPools/pool"]
    assert role["id"].startswith(f"{clusters}/providers/")
    assert role["properties"]["scope"] == clusters


def test_a_reference_is_the_id_that_the_object_itself_has(tmp_path: Path) -> None:
    """Also where the object that names it states its own scope and the other does not."""
    placed = workspace("real-ws")
    placed["spec"]["owner"] = {"armId": "/subscriptions/2/resourceGroups/elsewhere"}
    inputs = estate(tmp_path, {"a.yaml": [placed, cluster(), network(), subnet()]})

    assert ids(inputs, "/computes")[0].startswith("/subscriptions/2/resourceGroups/elsewhere/providers/")
    assert subnet_of(inputs.snapshot) == {"id": ids(inputs, "/subnets")[0]}
