"""Estates written as Terraform plans come back as they were."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyeng.models import JsonObject
from policyeng.sources import read_inputs
from policyeng.sources.parsed import ALONE
from tests.effort import effort
from tests.terraform_parts import HERE, SCOPE, SUBNET_ID, WORKSPACE_ID, read
from tests.writers import terraform

REAL = Path(__file__).resolve().parents[1].parent / "shared" / "real"
ML = "Microsoft.MachineLearningServices/workspaces"
AKS_ID = f"{SCOPE}/providers/Microsoft.ContainerService/managedClusters/aks"
IDENTITY = f"{SCOPE}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/id"

TAGS = st.none() | st.dictionaries(
    st.sampled_from(["owner", "cost/center", "a~b"]), st.text("abc", min_size=1), min_size=1
)
IDENTITIES = st.sampled_from(
    [
        None,
        {"type": "SystemAssigned"},
        {"type": "SystemAssigned,UserAssigned", "userAssignedIdentities": {IDENTITY: {}}},
    ]
)
SIZES = st.sampled_from(["Standard_D4s_v3", "STANDARD_NC6", "Standard_ND96isr_H100_v5"])


def present(value: object) -> object:
    """The value without null and empty members, at any depth."""
    if not isinstance(value, dict):
        return value
    kept = {key: present(inner) for key, inner in value.items()}
    return {key: inner for key, inner in kept.items() if inner is not None}


@st.composite
def resources(draw: st.DrawFn, /, arm_type: str, arm_id: str, properties: JsonObject, **more: object) -> JsonObject:
    """A resource with tags and an identity."""
    found = present(
        {
            "id": arm_id,
            "type": arm_type,
            "name": arm_id.rpartition("/")[2],
            "tags": draw(TAGS),
            "identity": draw(IDENTITIES),
            **more,
            "properties": properties,
        }
    )
    assert isinstance(found, dict)
    return found


@st.composite
def workspaces(draw: st.DrawFn) -> JsonObject:
    """A workspace; some have what only azapi can set."""
    mode = draw(st.sampled_from([None, "Disabled", "AllowInternetOutbound", "AllowOnlyApprovedOutbound"]))
    serverless = {
        "serverlessComputeNoPublicIP": draw(st.booleans()),
        "serverlessComputeCustomSubnet": draw(st.sampled_from([None, SUBNET_ID])),
    }
    properties = {
        "publicNetworkAccess": draw(st.sampled_from(["Enabled", "Disabled", "Enabled", "Disabled", None])),
        "hbiWorkspace": draw(st.sampled_from([None, True, False])),
        "v1LegacyMode": draw(st.booleans()),
        "imageBuildCompute": draw(st.sampled_from([None, "cpu"])),
        "managedNetwork": {"isolationMode": mode} if mode else None,
        "serverlessComputeSettings": draw(st.sampled_from([None, serverless])),
        "ipAllowlist": draw(st.sampled_from([None, None, None, ["1.2.3.4"]])),
    }
    envelope = {"location": "westeurope", "kind": draw(st.sampled_from(["Default", "Hub"])), "sku": {"name": "Basic"}}
    return draw(resources(ML, WORKSPACE_ID, properties, **envelope))


@st.composite
def computes(draw: st.DrawFn, name: str) -> JsonObject:
    """A compute of any kind that the provider has, or a virtual machine, which it has not."""
    kind = draw(st.sampled_from(["AmlCompute", "ComputeInstance", "AKS", "SynapseSpark", "VirtualMachine"]))
    location = draw(st.sampled_from(["westeurope", "eastus"]))
    attached_in = draw(st.sampled_from([None, "westeurope"])) if kind == "AKS" else None
    nodes = {
        "vmSize": draw(SIZES),
        "enableNodePublicIp": draw(st.booleans()),
        "subnet": draw(st.sampled_from([None, {"id": SUBNET_ID}, {"id": f"{SUBNET_ID}-elsewhere"}])),
    }
    own: dict[str, JsonObject | None] = {
        "AmlCompute": {
            **nodes,
            "vmPriority": draw(st.sampled_from(["Dedicated", "LowPriority"])),
            "remoteLoginPortPublicAccess": draw(st.sampled_from(["Enabled", "Disabled", "NotSpecified"])),
            "scaleSettings": {
                "minNodeCount": draw(st.integers(0, 2)),
                "maxNodeCount": draw(st.integers(2, 9)),
                "nodeIdleTimeBeforeScaleDown": "PT2M",
            },
        },
        "ComputeInstance": {
            **nodes,
            "sshSettings": draw(
                st.sampled_from(
                    [{"sshPublicAccess": "Disabled"}, {"sshPublicAccess": "Enabled", "adminPublicKey": "ssh-rsa A"}]
                )
            ),
            "idleTimeBeforeShutdown": draw(st.sampled_from([None, None, "PT30M"])),
        },
        "AKS": {"clusterPurpose": draw(st.sampled_from(["FastProd", "DevTest", "DenseProd"]))},
        "SynapseSpark": None,
        "VirtualMachine": {"virtualMachineSize": draw(SIZES)},
    }
    attached = {"AKS": AKS_ID, "SynapseSpark": "/pool", "VirtualMachine": f"{SCOPE}/x"}
    properties = {
        "computeType": kind,
        "isAttachedCompute": kind in attached,
        "disableLocalAuth": draw(st.booleans()) if kind != "AKS" else None,
        "computeLocation": location if kind in ("AmlCompute", "SynapseSpark") else attached_in,
        "resourceId": attached.get(kind),
        "properties": own[kind],
    }
    placed = {} if kind == "ComputeInstance" else {"location": location}
    return draw(resources(f"{ML}/computes", f"{WORKSPACE_ID}/computes/{name}", properties, **placed))


@st.composite
def estates(draw: st.DrawFn) -> list[JsonObject]:
    """A workspace, its children and its neighbours, in any order."""
    subnet: JsonObject = {
        "id": SUBNET_ID,
        "type": "Microsoft.Network/virtualNetworks/subnets",
        "name": "train",
        "properties": {"addressPrefixes": ["10.0.0.0/24"]},
    }
    endpoint = draw(
        resources(f"{ML}/onlineEndpoints", f"{WORKSPACE_ID}/onlineEndpoints/e", {"authMode": "Key"}, location="eastus")
    )
    cluster: JsonObject = {
        "id": AKS_ID,
        "type": "Microsoft.ContainerService/managedClusters",
        "name": "aks",
        "location": "westeurope",
        "properties": {"agentPoolProfiles": [{"name": "a", "count": 3, "vmSize": draw(SIZES)}]},
    }
    machine: JsonObject = {
        "id": f"{SCOPE}/providers/Microsoft.Compute/virtualMachines/vm",
        "type": "Microsoft.Compute/virtualMachines",
        "name": "vm",
        "location": "westeurope",
        "properties": {
            "hardwareProfile": {"vmSize": draw(SIZES)},
            "storageProfile": {"osDisk": {"osType": draw(st.sampled_from(["Linux", "Windows"]))}},
            "priority": "Regular",
        },
    }
    names = [f"c{number}" for number in range(draw(st.integers(0, 4)))]
    every = [draw(workspaces()), *(draw(computes(name)) for name in names)]
    every += draw(st.lists(st.sampled_from([subnet, endpoint, cluster, machine]), unique_by=lambda one: one["id"]))
    return list(draw(st.permutations(every)))


@settings(max_examples=effort(40, 200), deadline=None)
@given(estates())
def test_an_estate_comes_back_as_it_was(estate: list[JsonObject]) -> None:
    """Every resource with every field that was written, at the id that it will have."""
    assert all(map(terraform.expressible, estate))
    [content] = terraform.write(estate).values()
    reading = read(json.loads(content), HERE)

    assert (reading.refusals, reading.remarks, reading.incomplete) == ((), (), ())
    assert {placed.resource["id"]: placed.resource for placed in reading.resources} == {
        resource["id"]: resource for resource in estate
    }
    assert all("/id" not in placed.unreadable for placed in reading.resources)
    assert b"not for your eyes" not in repr(reading).encode()


@settings(max_examples=50, deadline=None)
@given(estates())
def test_without_a_scope_an_estate_hangs_together(estate: list[JsonObject]) -> None:
    """The ids are made up, and computes still lie in the workspace of the plan."""
    [content] = terraform.write(estate).values()
    reading = read(json.loads(content), ALONE)

    homes = {one.resource["id"] for one in reading.resources if one.resource["type"] == ML}
    inner = [one.resource["id"] for one in reading.resources if one.resource["type"] == f"{ML}/computes"]
    assert all(arm_id.rpartition("/computes/")[0] in homes for arm_id in inner)


def test_the_writer_uses_both_providers() -> None:
    """A law about azurerm would be empty if azapi set everything."""
    cluster = {"computeType": "SynapseSpark", "disableLocalAuth": True, "resourceId": "/pool", "computeLocation": "x"}
    spark = {"id": f"{WORKSPACE_ID}/computes/s", "type": f"{ML}/computes", "location": "x", "properties": cluster}
    odd = {**spark, "id": f"{WORKSPACE_ID}/computes/t", "properties": {**cluster, "more": 1}}
    content = json.loads(terraform.write([spark, odd])["plan.json"])

    kinds = [entry["type"] for entry in content["planned_values"]["root_module"]["resources"]]
    assert kinds == ["azurerm_machine_learning_synapse_spark", "azapi_resource"]


@pytest.mark.parametrize("folder", ["terraform_plan_json", "terraform"])
def test_every_real_file_is_read_or_refused(folder: str) -> None:
    """Plans are read, and configuration is refused with the command; the Markdown is no input."""
    if not REAL.is_dir():
        pytest.skip(f"no real documents at {REAL}")
    files = sorted(path for path in (REAL / folder).rglob("*") if path.suffix in (".json", ".tf"))
    inputs = {file: read_inputs([file]) for file in files}

    assert len(files) == {"terraform_plan_json": 3, "terraform": 60}[folder]
    for file, found in inputs.items():
        if file.suffix == ".tf":
            assert ["terraform show -json" in problem.message for problem in found.problems] == [True]
        else:
            assert not [problem for problem in found.problems if problem.level == "error"]
            assert bool(found.read) is not bool(found.ledger)
    read_whole = sum(len(found.snapshot.resources) for found in inputs.values())
    assert read_whole == {"terraform_plan_json": 2, "terraform": 0}[folder]
