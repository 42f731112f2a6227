"""Kubernetes objects: every field of Azure Service Operator, live objects, instance types, reviews, and the rest."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import policyeng
from policyeng.models import JsonObject
from policyeng.sources import FORMATS, DocumentContext, kubernetes, read_inputs
from policyeng.sources.kubernetes.objects import KINDS
from policyeng.sources.parsed import ALONE, UNKNOWN_SCOPE, Placed, Surroundings, remark
from policyeng.testing.observed_reads import observe
from tests.writers import kubernetes as writer

GROUP = "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/rg-ml"
WORKSPACE = f"{GROUP}/providers/Microsoft.MachineLearningServices/workspaces/ws"
SUBNET = f"{GROUP}/providers/Microsoft.Network/virtualNetworks/vnet/subnets/nodes"
HERE = Surroundings(scope=GROUP, workspace=WORKSPACE)
NEW, OLD = "v1api20240401", "v1api20210701"
REAL = Path(__file__).resolve().parents[2] / "shared" / "real"


def manifest(kind: str, spec: JsonObject, version: str = NEW, **more: object) -> JsonObject:
    """An object of the Machine Learning group."""
    return {
        "apiVersion": f"machinelearningservices.azure.com/{version}",
        "kind": kind,
        "metadata": {"name": "it", "namespace": "default"},
        "spec": {"owner": {"name": "ws"}, **spec},
        **more,
    }


def compute(key: str, inner: object = None, version: str = NEW, **outer: object) -> JsonObject:
    """A compute of one kind with its own properties."""
    body = outer if inner is None else {**outer, "properties": inner}
    return manifest("WorkspacesCompute", {"properties": {key: body}}, version)


def other(api_version: str, kind: str, spec: JsonObject, **more: object) -> JsonObject:
    """An object of another group."""
    metadata = {"name": "it", "namespace": "default"}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec, **more}


def only(document: object, around: Surroundings = HERE) -> Placed:
    """The one resource of a document, read without a word."""
    reading = kubernetes.read(document, around)
    assert (reading.refusals, reading.remarks, reading.nothing) == ((), (), "")
    [placed] = reading.resources
    return placed


def at(resource: JsonObject, pointer: str) -> object:
    """The value at a JSON Pointer, or the text `absent`."""
    here: object = resource
    for part in pointer.split("/")[1:]:
        if not isinstance(here, dict) or part.replace("~1", "/") not in here:
            return "absent"
        here = here[part.replace("~1", "/")]
    return here


# ---------------------------------------------------------------- the fields of Machine Learning

TOP: list[tuple[JsonObject, str, object]] = [
    ({"location": "westeurope"}, "/location", "westeurope"),
    ({"tags": {"owner": "a", "reference": "b"}}, "/tags", {"owner": "a", "reference": "b"}),
    ({"sku": {"name": "Basic", "tier": "Basic"}}, "/sku", {"name": "Basic", "tier": "Basic"}),
    ({"identity": {"type": "SystemAssigned"}}, "/identity", {"type": "SystemAssigned"}),
    (
        {"identity": {"type": "UserAssigned", "userAssignedIdentities": [{"reference": {"armId": "/x/y"}}]}},
        "/identity",
        {"type": "UserAssigned", "userAssignedIdentities": {"/x/y": {}}},
    ),
]
TEXTS = ["description", "discoveryUrl", "friendlyName", "imageBuildCompute", "publicNetworkAccess"]
BOOLEANS = ["allowPublicAccessWhenBehindVnet", "enableDataIsolation", "hbiWorkspace", "v1LegacyMode"]
PLACE = {"armId": "/a/b"}
PROPERTIES: list[tuple[JsonObject, str, object]] = [
    *[({name: "x"}, f"/properties/{name}", "x") for name in TEXTS],
    *[({name: value}, f"/properties/{name}", value) for name in BOOLEANS for value in (True, False)],
    ({"kind": "FeatureStore"}, "/kind", "FeatureStore"),
    *[
        ({f"{name}Reference": PLACE}, f"/properties/{name}", "/a/b")
        for name in (
            "applicationInsights",
            "containerRegistry",
            "keyVault",
            "primaryUserAssignedIdentity",
            "storageAccount",
        )
    ],
    ({"hubResourceReference": PLACE}, "/properties/hubResourceId", "/a/b"),
    # The operator hands an id on as it is written, so a space in it is as wrong as in ARM.
    ({"keyVaultReference": {"armId": "\u00a0/a/b "}}, "/properties/keyVault", "\u00a0/a/b "),
    ({"associatedWorkspaces": ["a"]}, "/properties/associatedWorkspaces", ["a"]),
    (
        {"encryption": {"keyVaultProperties": {"keyIdentifier": "k", "keyVaultArmReference": PLACE}}},
        "/properties/encryption",
        {"keyVaultProperties": {"keyIdentifier": "k", "keyVaultArmId": "/a/b"}},
    ),
    (
        {"encryption": {"identity": {"userAssignedIdentityReference": PLACE}}},
        "/properties/encryption/identity/userAssignedIdentity",
        "/a/b",
    ),
    (
        {"managedNetwork": {"isolationMode": "AllowOnlyApprovedOutbound"}},
        "/properties/managedNetwork/isolationMode",
        "AllowOnlyApprovedOutbound",
    ),
    (
        {"managedNetwork": {"outboundRules": {"r": {"fqdn": {"type": "FQDN", "destination": "pypi.org"}}}}},
        "/properties/managedNetwork/outboundRules/r",
        {"type": "FQDN", "destination": "pypi.org"},
    ),
    (
        {
            "managedNetwork": {
                "outboundRules": {
                    "r": {
                        "privateEndpoint": {
                            "destination": {
                                "serviceResourceReference": PLACE,
                                "subresourceTargetReference": {"armId": "blob"},
                            }
                        }
                    }
                }
            }
        },
        "/properties/managedNetwork/outboundRules/r/destination",
        {"serviceResourceId": "/a/b", "subresourceTarget": "blob"},
    ),
    (
        {
            "serverlessComputeSettings": {
                "serverlessComputeCustomSubnetReference": PLACE,
                "serverlessComputeNoPublicIP": True,
            }
        },
        "/properties/serverlessComputeSettings",
        {"serverlessComputeCustomSubnet": "/a/b", "serverlessComputeNoPublicIP": True},
    ),
    (
        {"sharedPrivateLinkResources": [{"name": "l", "groupId": "g", "privateLinkResourceReference": PLACE}]},
        "/properties/sharedPrivateLinkResources",
        [{"name": "l", "properties": {"groupId": "g", "privateLinkResourceId": "/a/b"}}],
    ),
    *[
        ({name: body}, f"/properties/{name}", body)
        for name, body in (
            ("featureStoreSettings", {"computeRuntime": {"sparkRuntimeVersion": "3.3"}}),
            ("serviceManagedResourcesSettings", {"cosmosDb": {"collectionsThroughput": 400}}),
            ("workspaceHubConfig", {"defaultWorkspaceResourceGroup": "x"}),
        )
    ],
]


@pytest.mark.parametrize(("spec", "pointer", "value"), TOP + PROPERTIES)
def test_a_field_of_a_workspace_comes_over(spec: JsonObject, pointer: str, value: object) -> None:
    """Each with its place; omitted ones stay absent and readable."""
    placed = only(manifest("Workspace", spec))
    absent = only(manifest("Workspace", {}))

    assert at(placed.resource, pointer) == value
    assert at(absent.resource, pointer) == "absent"
    assert pointer not in placed.unreadable
    assert placed.resource["type"] == "Microsoft.MachineLearningServices/workspaces"


C = "/properties/properties"
COMPUTES: list[tuple[str, JsonObject, str, object]] = [
    *[
        ("amlCompute", {name: value}, name, value)
        for name in ("enableNodePublicIp", "isolatedNetwork")
        for value in (True, False)
    ],
    ("amlCompute", {"osType": "Windows"}, "osType", "Windows"),
    *[
        ("amlCompute", {"remoteLoginPortPublicAccess": word}, "remoteLoginPortPublicAccess", word)
        for word in ("Enabled", "Disabled", "NotSpecified")
    ],
    *[("amlCompute", {"vmPriority": word}, "vmPriority", word) for word in ("Dedicated", "LowPriority")],
    ("amlCompute", {"vmSize": "Standard_DS3_v2"}, "vmSize", "Standard_DS3_v2"),
    ("amlCompute", {"scaleSettings": {"maxNodeCount": 4}}, "scaleSettings/maxNodeCount", 4),
    ("amlCompute", {"scaleSettings": {"minNodeCount": 0}}, "scaleSettings/minNodeCount", 0),
    (
        "amlCompute",
        {"scaleSettings": {"nodeIdleTimeBeforeScaleDown": "PT2M"}},
        "scaleSettings/nodeIdleTimeBeforeScaleDown",
        "PT2M",
    ),
    ("amlCompute", {"subnet": {"reference": {"armId": SUBNET}}}, "subnet", {"id": SUBNET}),
    ("amlCompute", {"virtualMachineImage": {"reference": PLACE}}, "virtualMachineImage/id", "/a/b"),
    (
        "amlCompute",
        {"userAccountCredentials": {"adminUserName": "u", "adminUserPassword": {"name": "s", "key": "k"}}},
        "userAccountCredentials",
        {"adminUserName": "u"},
    ),
    ("amlCompute", {"propertyBag": {"a": 1}}, "propertyBag", {"a": 1}),
    *[
        ("computeInstance", {"applicationSharingPolicy": word}, "applicationSharingPolicy", word)
        for word in ("Personal", "Shared")
    ],
    ("computeInstance", {"vmSize": "Standard_DS3_v2"}, "vmSize", "Standard_DS3_v2"),
    ("computeInstance", {"enableNodePublicIp": False}, "enableNodePublicIp", False),
    ("computeInstance", {"subnet": {"reference": {"armId": SUBNET}}}, "subnet/id", SUBNET),
    ("computeInstance", {"sshSettings": {"sshPublicAccess": "Enabled"}}, "sshSettings/sshPublicAccess", "Enabled"),
    (
        "computeInstance",
        {"personalComputeInstanceSettings": {"assignedUser": {"objectId": "o", "tenantId": "t"}}},
        "personalComputeInstanceSettings/assignedUser/objectId",
        "o",
    ),
    (
        "computeInstance",
        {"schedules": {"computeStartStop": [{"action": "Stop", "schedule": {"reference": PLACE}}]}},
        "schedules/computeStartStop",
        [{"action": "Stop", "schedule": {"id": "/a/b"}}],
    ),
    ("computeInstance", {"setupScripts": {"scripts": {}}}, "setupScripts", {"scripts": {}}),
    (
        "computeInstance",
        {"customServices": [{"image": {"type": "docker", "reference": "busybox"}}]},
        "customServices",
        [{"image": {"type": "docker", "reference": "busybox"}}],
    ),
    (
        "computeInstance",
        {"computeInstanceAuthorizationType": "personal"},
        "computeInstanceAuthorizationType",
        "personal",
    ),
    ("aks", {"agentCount": 3}, "agentCount", 3),
    ("aks", {"agentVmSize": "Standard_DS3_v2"}, "agentVmSize", "Standard_DS3_v2"),
    ("aks", {"clusterPurpose": "DevTest"}, "clusterPurpose", "DevTest"),
    ("aks", {"loadBalancerType": "PublicIp"}, "loadBalancerType", "PublicIp"),
    ("aks", {"loadBalancerSubnetReference": PLACE}, "loadBalancerSubnet", "/a/b"),
    (
        "aks",
        {"aksNetworkingConfiguration": {"subnetReference": {"armId": SUBNET}}},
        "aksNetworkingConfiguration",
        {"subnetId": SUBNET},
    ),
    (
        "aks",
        {"sslConfiguration": {"status": "Enabled", "cert": {"name": "s", "key": "c"}}},
        "sslConfiguration",
        {"status": "Enabled"},
    ),
    ("kubernetes", {"defaultInstanceType": "d"}, "defaultInstanceType", "d"),
    ("kubernetes", {"namespace": "n"}, "namespace", "n"),
    (
        "kubernetes",
        {"instanceTypes": {"g": {"resources": {"limits": {"nvidia.com/gpu": "1"}}}}},
        "instanceTypes",
        {"g": {"resources": {"limits": {"nvidia.com/gpu": "1"}}}},
    ),
    ("virtualMachine", {"virtualMachineSize": "Standard_A1_v2"}, "virtualMachineSize", "Standard_A1_v2"),
    ("virtualMachine", {"sshPort": 22}, "sshPort", 22),
    ("virtualMachine", {"notebookServerPort": 8888}, "notebookServerPort", 8888),
    ("virtualMachine", {"isNotebookInstanceCompute": True}, "isNotebookInstanceCompute", True),
    (
        "virtualMachine",
        {"administratorAccount": {"username": "u", "password": {"name": "s", "key": "k"}}},
        "administratorAccount",
        {"username": "u"},
    ),
    ("hdInsight", {"address": "a", "sshPort": 22}, "address", "a"),
    ("databricks", {"workspaceUrl": "u", "databricksAccessToken": {"name": "s", "key": "k"}}, "workspaceUrl", "u"),
    ("dataLakeAnalytics", {"dataLakeStoreAccountName": "d"}, "dataLakeStoreAccountName", "d"),
    ("synapseSpark", {"nodeCount": 3, "nodeSize": "Small"}, "nodeCount", 3),
    ("synapseSpark", {"autoPauseProperties": {"enabled": True}}, "autoPauseProperties", {"enabled": True}),
]


@pytest.mark.parametrize(("key", "inner", "pointer", "value"), COMPUTES)
def test_a_field_of_a_compute_comes_over(key: str, inner: JsonObject, pointer: str, value: object) -> None:
    """Secrets are left out; absent stays absent."""
    placed = only(compute(key, inner))

    assert at(placed.resource, f"{C}/{pointer}") == value
    assert at(only(compute(key, {})).resource, f"{C}/{pointer}") == "absent"


@pytest.mark.parametrize(
    ("key", "compute_type", "attached"),
    [
        ("aks", "AKS", False),
        ("amlCompute", "AmlCompute", False),
        ("computeInstance", "ComputeInstance", False),
        ("dataFactory", "DataFactory", "absent"),
        ("dataLakeAnalytics", "DataLakeAnalytics", True),
        ("databricks", "Databricks", True),
        ("hdInsight", "HDInsight", True),
        ("kubernetes", "Kubernetes", True),
        ("synapseSpark", "SynapseSpark", True),
        ("virtualMachine", "VirtualMachine", True),
    ],
)
def test_the_kind_of_a_compute_is_its_key(key: str, compute_type: str, attached: object) -> None:
    """With the members next to its own properties."""
    machine = {"group": "compute.azure.com", "kind": "VirtualMachine", "name": "vm"}
    outer: JsonObject = {
        "computeLocation": "we",
        "description": "d",
        "disableLocalAuth": True,
        "resourceReference": machine,
    }
    resource = only(compute(key, **outer)).resource

    assert resource["id"] == f"{WORKSPACE}/computes/it"
    assert resource["properties"]["computeType"] == compute_type
    assert resource["properties"]["disableLocalAuth"] is True
    assert resource["properties"]["computeLocation"] == "we"
    assert resource["properties"]["resourceId"] == f"{GROUP}/providers/Microsoft.Compute/virtualMachines/vm"
    assert at(only(compute(key)).resource, "/properties/isAttachedCompute") == attached


def test_a_registry_and_a_connection() -> None:
    """A connection is one of several kinds, or flat as of old; its secret is left out."""
    registry = only(
        manifest(
            "Registry",
            {
                "owner": {"name": "rg"},
                "publicNetworkAccess": "Disabled",
                "managedResourceGroup": {"resourceReference": PLACE},
                "regionDetails": [
                    {"acrDetails": [{"userCreatedAcrAccount": {"armResourceId": {"resourceReference": PLACE}}}]}
                ],
                "registryPrivateEndpointConnections": [{"location": "we", "groupIds": ["g"]}],
            },
        )
    ).resource
    body = {"authType": "PAT", "category": "Git", "target": "t", "credentials": {"pat": {"name": "s", "key": "k"}}}
    new = only(manifest("WorkspacesConnection", {"properties": {"pat": body}}))
    old = only(manifest("WorkspacesConnection", {"authType": "PAT", "category": "Git", "value": "v"}, OLD))

    assert registry["id"] == f"{GROUP}/providers/Microsoft.MachineLearningServices/registries/it"
    assert registry["properties"] == {
        "publicNetworkAccess": "Disabled",
        "managedResourceGroup": {"resourceId": "/a/b"},
        "regionDetails": [{"acrDetails": [{"userCreatedAcrAccount": {"armResourceId": {"resourceId": "/a/b"}}}]}],
        "registryPrivateEndpointConnections": [{"location": "we", "properties": {"groupIds": ["g"]}}],
    }
    assert new.resource["id"] == f"{WORKSPACE}/connections/it"
    assert new.resource["properties"] == {"authType": "PAT", "category": "Git", "target": "t"}
    assert new.fields["/properties/category"] == "/spec/properties/pat/category"
    assert old.resource["properties"] == {"authType": "PAT", "category": "Git"}


WRONG: list[tuple[JsonObject, str, str]] = [
    ({"hbiWorkspace": "perhaps"}, "/properties/hbiWorkspace", "it should be true or false"),
    ({"publicNetworkAccess": 3}, "/properties/publicNetworkAccess", "it should be text"),
    ({"managedNetwork": "Disabled"}, "/properties/managedNetwork", "it should be an object"),
    ({"associatedWorkspaces": "a"}, "/properties/associatedWorkspaces", "it should be a list"),
    ({"identity": {"type": "UserAssigned", "userAssignedIdentities": "x"}}, "/identity", "it should be a list"),
    ({"publicNetworkAccess": "${ACCESS}"}, "/properties/publicNetworkAccess", "`${ACCESS}` is a placeholder"),
    ({"tags": {"owner": "{{ .Values.owner }}"}}, "/tags/owner", "is a placeholder"),
    ({"keyVaultReference": {"armId": "/subscriptions/<id>/x"}}, "/properties/keyVault", "`<id>` is a placeholder"),
    ({"keyVaultReference": {}}, "/properties/keyVault", "`keyVaultReference` does not name a resource"),
    ({"keyVaultReference": {"group": "x.io", "kind": "Y", "name": "z"}}, "/properties/keyVault", "is unknown; set"),
    (
        {"encryption": {"keyVaultProperties": {"identityClientIdFromConfig": {"name": "cm", "key": "id"}}}},
        "/properties/encryption/keyVaultProperties/identityClientId",
        "config map `cm`",
    ),
    (
        {"identity": {"type": "UserAssigned", "userAssignedIdentities": [{"reference": {"armId": "${ID}"}}]}},
        "/identity",
        "`${ID}` is a placeholder",
    ),
    ({"associatedWorkspaces": ["a", "${B}"]}, "/properties/associatedWorkspaces", "`${B}` is a placeholder"),
    *[
        ({"publicNetworkAccess": text}, "/properties/publicNetworkAccess", f"`{found}` is a placeholder")
        for text, found in (
            ("$(ACCESS)", "$(ACCESS)"),
            ("a $(variables.access) b", "$(variables.access)"),
            ("__ACCESS__", "__ACCESS__"),
            ("$ACCESS", "$ACCESS"),
        )
    ],
    ({"keyVaultReference": {"armId": "$(VAULT)"}}, "/properties/keyVault", "`$(VAULT)` is a placeholder"),
    ({"keyVaultReference": {"armId": "/subscriptions/__ID__/x"}}, "/properties/keyVault", "`__ID__` is a placeholder"),
    ({"tags": {"owner": "$(OWNER)", "a": "b"}}, "/tags/owner", "`$(OWNER)` is a placeholder"),
]


@pytest.mark.parametrize(("spec", "pointer", "reason"), WRONG)
def test_unfit_and_unknown_values_are_left_out_with_the_reason(spec: JsonObject, pointer: str, reason: str) -> None:
    """Nothing unresolved is evaluated."""
    placed = only(manifest("Workspace", spec))

    assert reason in placed.unreadable[pointer]
    assert at(placed.resource, pointer) == "absent"


def test_an_object_that_is_none_hides_nothing() -> None:
    """Its content is not known."""
    placed = only(compute("amlCompute", {"scaleSettings": 3, "subnet": "/a/b", "vmSize": "x"}))
    encrypted = only(manifest("Workspace", {"encryption": ["x"]}))

    assert placed.unreadable[f"{C}/scaleSettings/minNodeCount"] == "`scaleSettings` is `3`; it should be an object"
    assert placed.unreadable[f"{C}/subnet/id"] == "`subnet` is `/a/b`; it should be an object"
    assert placed.resource["properties"]["properties"] == {"vmSize": "x"}
    assert "it should be an object" in encrypted.unreadable["/properties/encryption/keyVaultProperties"]


@pytest.mark.parametrize("text", ["a__b__c", "snake__case__", "$5 a day", "US$ (2026)", "a$b", "__init__.py"])
def test_a_text_that_only_looks_like_a_placeholder_is_a_value(text: str) -> None:
    """Signs of tools inside of longer words are the user's."""
    placed = only(manifest("Workspace", {"tags": {"a": text}}))

    assert placed.resource["tags"] == {"a": text}
    assert "/tags/a" not in placed.unreadable


def test_whole_numbers_of_a_compute() -> None:
    """A count that is none is unreadable; one in quotes is a count."""
    placed = only(compute("amlCompute", {"scaleSettings": {"minNodeCount": "2", "maxNodeCount": "many"}}))

    assert placed.resource["properties"]["properties"]["scaleSettings"] == {"minNodeCount": 2}
    assert "it should be a whole number" in placed.unreadable[f"{C}/scaleSettings/maxNodeCount"]


def test_a_subnet_named_by_its_object_is_known_where_the_object_is_in_the_same_document() -> None:
    """A document alone does not state its virtual network; a list does."""
    reference = {"group": "network.azure.com", "kind": "VirtualNetworksSubnet", "name": "it"}
    cluster = compute("amlCompute", {"subnet": {"reference": reference}})
    subnet = other("network.azure.com/v1api20201101", "VirtualNetworksSubnet", {"owner": {"name": "vnet"}})

    assert "set `armId`" in only(cluster).unreadable[f"{C}/subnet/id"]
    together = kubernetes.read({"apiVersion": "v1", "kind": "List", "items": [cluster, subnet]}, HERE)
    [first, second] = together.resources
    assert at(first.resource, f"{C}/subnet/id") == second.resource["id"]
    assert second.resource["id"] == f"{GROUP}/providers/Microsoft.Network/virtualNetworks/vnet/subnets/it"
    assert (first.pointer, second.pointer) == ("/items/0", "/items/1")


def test_unknown_keys_are_remarked_on() -> None:
    """With the nearest one that is known, as the operator calls it."""
    reading = kubernetes.read(
        compute("amlCompute", {"vmSise": "x"}, disableLocalAuht=True) | {"metadata": {"name": "c"}}, HERE
    )
    more = kubernetes.read(manifest("Workspace", {"keyVaultReferense": "x"}), HERE)

    assert reading.remarks == (
        remark(
            "/spec/properties/amlCompute/disableLocalAuht",
            "unknown key `disableLocalAuht`; did you mean `disableLocalAuth`",
        ),
        remark("/spec/properties/amlCompute/properties/vmSise", "unknown key `vmSise`; did you mean `vmSize`"),
    )
    assert more.remarks == (
        remark("/spec/keyVaultReferense", "unknown key `keyVaultReferense`; did you mean `keyVaultReference`"),
    )


NESTED: list[tuple[JsonObject, str, str]] = [
    (
        manifest("Workspace", {"managedNetwork": {"isolationMod": "Disabled"}}),
        "/spec/managedNetwork/isolationMod",
        "`isolationMod`; did you mean `isolationMode`",
    ),
    (
        manifest("Workspace", {"encryption": {"keyVaultPropertys": {}}}),
        "/spec/encryption/keyVaultPropertys",
        "`keyVaultPropertys`; did you mean `keyVaultProperties`",
    ),
    (
        manifest("Workspace", {"encryption": {"keyVaultProperties": {"keyVaultArmReferense": PLACE}}}),
        "/spec/encryption/keyVaultProperties/keyVaultArmReferense",
        "`keyVaultArmReferense`; did you mean `keyVaultArmReference`",
    ),
    (
        compute("amlCompute", {"scaleSettings": {"minNodeCont": 2, "maxNodeCount": 4}}),
        "/spec/properties/amlCompute/properties/scaleSettings/minNodeCont",
        "`minNodeCont`; did you mean `minNodeCount`",
    ),
    (
        compute("amlCompute", {"subnet": {"referense": PLACE}}),
        "/spec/properties/amlCompute/properties/subnet/referense",
        "`referense`; did you mean `reference`",
    ),
    (
        compute("computeInstance", {"schedules": {"computeStartStop": [{"cron": {}}, {"cron": {"timezone": "UTC"}}]}}),
        "/spec/properties/computeInstance/properties/schedules/computeStartStop/1/cron/timezone",
        "`timezone`; did you mean `timeZone`",
    ),
    (
        compute("aks", {"aksNetworkingConfiguration": {"subnetReferenceX": PLACE}}),
        "/spec/properties/aks/properties/aksNetworkingConfiguration/subnetReferenceX",
        "`subnetReferenceX`; did you mean `subnetReference`",
    ),
]


@pytest.mark.parametrize(("document", "pointer", "rest"), NESTED)
def test_unknown_keys_below_the_first_level_are_remarked_on(document: JsonObject, pointer: str, rest: str) -> None:
    """Wherever the keys of an object are known."""
    assert kubernetes.read(document, HERE).remarks == (remark(pointer, f"unknown key {rest}"),)


FREE: list[JsonObject] = [
    manifest("Workspace", {"tags": {"isolationMod": "x"}, "identity": {"$propertyBag": {}}, "operatorSpec": {"x": {}}}),
    manifest("Workspace", {"managedNetwork": {"outboundRules": {"any-name": {"fqdn": {"destination": "a.b"}}}}}),
    manifest("Workspace", {"encryption": {"identity": {"userAssignedIdentity": "/a/b"}}}, OLD),
    compute("kubernetes", {"instanceTypes": {"any-name": {"resources": {"limits": {"cpu": "1"}}}}}),
    compute("amlCompute", {"userAccountCredentials": {"adminUserName": "a", "adminUserPassword": "b"}}),
    other("network.azure.com/v1api20201101", "VirtualNetwork", {"sku": {"any": 1}, "subnet": {"any": 1}}),
]


@pytest.mark.parametrize("document", FREE)
def test_keys_of_the_users_own_are_not_remarked_on(document: JsonObject) -> None:
    """Objects whose keys are in no table have no remarks, either."""
    assert kubernetes.read(document, HERE).remarks == ()


def test_the_status_of_an_encryption_is_what_a_live_object_reports() -> None:
    """The `spec` of no version has it, so that the operator does not send it; the `status` of the object does."""
    wanted = manifest("Workspace", {"encryption": {"status": "Enabled"}})
    reported = {"id": WORKSPACE, "encryption": {"status": "Enabled"}}
    placed = only({**manifest("Workspace", {"encryption": {"identity": {}}}), "status": reported})

    assert kubernetes.read(wanted, HERE).remarks == (remark("/spec/encryption/status", "unknown key `status`"),)
    assert at(placed.resource, "/properties/encryption/status") == "Enabled"
    assert placed.fields["/properties/encryption/status"] == "/status/encryption/status"


# ---------------------------------------------------------------- where an object belongs


def test_ids_are_made_of_scope_owner_and_name() -> None:
    """`azureName` precedes the object's name; an `armId` precedes the scope."""
    named = only(manifest("Workspace", {"azureName": "Real-Name"})).resource
    owned = manifest("Workspace", {"owner": {"armId": "/subscriptions/2/resourceGroups/other"}})
    below = compute("amlCompute", {})
    below["spec"]["owner"] = {"armId": f"{WORKSPACE}2"}
    elsewhere = compute("amlCompute", {})
    elsewhere["spec"]["owner"] = {"name": "another"}

    assert (named["id"].rpartition("/")[2], named["name"]) == ("Real-Name", "Real-Name")
    assert only(owned).resource["id"].startswith("/subscriptions/2/resourceGroups/other/providers/")
    assert only(below).resource["id"] == f"{WORKSPACE}2/computes/it"
    assert only(elsewhere).resource["id"].endswith("/workspaces/another/computes/it")


def test_a_name_that_a_tool_fills_in_is_not_known() -> None:
    """The id is unknown, too."""
    placed = only({**manifest("Workspace", {}), "metadata": {"name": "ws-${ENV}"}})

    assert "${ENV}" in placed.unreadable["/id"]
    assert "${ENV}" in placed.unreadable["/name"]


def test_without_a_scope_the_id_is_unreadable_and_movable() -> None:
    """Two files without a place are kept apart where they contradict each other."""
    reading = kubernetes.read(manifest("Workspace", {}))

    assert "`--scope`" in reading.resources[0].unreadable["/id"]
    assert reading.movable == UNKNOWN_SCOPE
    assert kubernetes.read(manifest("Workspace", {}), HERE).movable == ""
    assert "/id" not in only(manifest("Workspace", {})).unreadable


def test_a_compute_joins_its_workspace_across_files(tmp_path: Path) -> None:
    """The owner's name is enough, with and without a scope; a workspace of another name is not taken."""
    (tmp_path / "a-compute.yaml").write_text(yaml.safe_dump(compute("amlCompute", {})))
    (tmp_path / "b-workspace.yaml").write_text(
        yaml.safe_dump({**manifest("Workspace", {"owner": {"armId": GROUP}}), "metadata": {"name": "ws"}})
    )
    inputs = read_inputs([tmp_path])

    assert inputs.problems == ()
    assert {resource["id"] for resource in inputs.snapshot.resources} == {WORKSPACE, f"{WORKSPACE}/computes/it"}


# ---------------------------------------------------------------- live objects


def live(document: JsonObject, status: JsonObject) -> JsonObject:
    """An object as `kubectl get` prints it."""
    return {**document, "status": status}


def test_a_live_workspace_has_its_real_id_and_what_the_service_states() -> None:
    """The spec is what will be; the status fills in the rest."""
    real = WORKSPACE.replace("11111111", "99999999")
    document = live(
        manifest("Workspace", {"publicNetworkAccess": "Disabled", "tags": {"a": "1"}}),
        {
            "id": real,
            "conditions": [],
            "name": "ws",
            "type": "microsoft.machinelearningservices/workspaces",
            "kind": "Default",
            "tags": {"a": "0", "b": "2"},
            "publicNetworkAccess": "Enabled",
            "provisioningState": "Succeeded",
            "privateEndpointConnections": [{"id": "x"}],
            "hbiWorkspace": False,
        },
    )
    placed = only(document, ALONE)

    assert placed.resource == {
        "id": real,
        "name": "ws",
        "type": "Microsoft.MachineLearningServices/workspaces",
        "kind": "Default",
        "tags": {"a": "1"},
        "properties": {
            "publicNetworkAccess": "Disabled",
            "provisioningState": "Succeeded",
            "hbiWorkspace": False,
        },
    }
    assert "/properties/provisioningState" not in placed.unreadable
    assert "/properties/privateEndpointConnections" in placed.unreadable
    assert "/id" not in placed.unreadable
    assert placed.fields["/properties/hbiWorkspace"] == "/status/hbiWorkspace"
    assert placed.fields["/properties/publicNetworkAccess"] == "/spec/publicNetworkAccess"


def test_a_live_compute_has_the_subnet_that_its_reference_came_to() -> None:
    """Nested as the spec is, by the kind of compute."""
    reference = {"group": "network.azure.com", "kind": "VirtualNetworksSubnet", "name": "nodes"}
    status = {
        "provisioningState": "Succeeded",
        "isAttachedCompute": False,
        "properties": {"subnet": {"id": SUBNET}, "state": "Running"},
    }
    document = live(
        compute("computeInstance", {"vmSize": "a", "subnet": {"reference": reference}}),
        {"id": f"{WORKSPACE}/computes/it", "properties": {"computeInstance": status}},
    )
    placed = only(document, ALONE)

    assert placed.resource["properties"]["properties"] == {"vmSize": "a", "subnet": {"id": SUBNET}, "state": "Running"}
    assert not {f"{C}/subnet/id", f"{C}/state", "/properties/provisioningState"} & placed.unreadable.keys()
    assert f"{C}/lastOperation" in placed.unreadable


def test_what_the_operator_leaves_alone_is_as_in_the_status() -> None:
    """`reconcile-policy: skip`; without a status it is evaluated as written, with a remark."""
    skipped = manifest("Workspace", {"publicNetworkAccess": "Disabled"})
    skipped["metadata"]["annotations"] = {"serviceoperator.azure.com/reconcile-policy": "skip"}
    reading = kubernetes.read(skipped, HERE)
    placed = only(live(skipped, {"id": WORKSPACE, "publicNetworkAccess": "Enabled"}))

    assert at(placed.resource, "/properties/publicNetworkAccess") == "Enabled"
    assert at(reading.resources[0].resource, "/properties/publicNetworkAccess") == "Disabled"
    assert "reconcile-policy: skip" in reading.remarks[0].message


# ---------------------------------------------------------------- neighbours


def test_neighbours_are_read_as_arm_has_them() -> None:
    """The members of their `spec` are ARM's `properties`, with ids for references and without secrets."""
    machine = only(
        other(
            "compute.azure.com/v1api20201201",
            "VirtualMachine",
            {
                "location": "we",
                "owner": {"name": "rg"},
                "hardwareProfile": {"vmSize": "Standard_A1_v2"},
                "osProfile": {"adminUsername": "u", "adminPassword": {"name": "s", "key": "k"}},
                "storageProfile": {"imageReference": {"publisher": "Canonical"}},
                "networkProfile": {
                    "networkInterfaces": [
                        {"reference": {"group": "network.azure.com", "kind": "NetworkInterface", "name": "nic"}}
                    ]
                },
            },
        )
    ).resource
    subnet = only(
        other(
            "network.azure.com/v1api20201101",
            "VirtualNetworksSubnet",
            {"owner": {"name": "v"}, "addressPrefix": "10.0.0.0/24"},
        )
    ).resource
    cluster = only(
        other(
            "containerservice.azure.com/v1api20231001",
            "ManagedCluster",
            {"agentPoolProfiles": [{"name": "p", "vnetSubnetReference": {"armId": SUBNET}}]},
        )
    ).resource

    assert machine["id"] == f"{GROUP}/providers/Microsoft.Compute/virtualMachines/it"
    assert machine["properties"]["hardwareProfile"] == {"vmSize": "Standard_A1_v2"}
    assert machine["properties"]["osProfile"] == {"adminUsername": "u"}
    assert machine["properties"]["storageProfile"] == {"imageReference": {"publisher": "Canonical"}}
    assert machine["properties"]["networkProfile"]["networkInterfaces"] == [
        {"id": f"{GROUP}/providers/Microsoft.Network/networkInterfaces/nic"}
    ]
    assert (subnet["type"], subnet["properties"]) == (
        "Microsoft.Network/virtualNetworks/subnets",
        {"addressPrefix": "10.0.0.0/24"},
    )
    assert cluster["properties"]["agentPoolProfiles"] == [{"name": "p", "vnetSubnetID": SUBNET}]


def test_a_role_assignment_has_the_scope_of_its_owner() -> None:
    """Its owner may be of any kind."""
    group, kind = "machinelearningservices.azure.com", "Workspace"
    role = {"armId": "/subscriptions/1/providers/Microsoft.Authorization/roleDefinitions/r"}
    spec = {"owner": {"group": group, "kind": kind, "name": "ws"}, "principalId": "p", "roleDefinitionReference": role}
    document = other("authorization.azure.com/v1api20220401", "RoleAssignment", spec)
    placed = only(document)
    unplaced = only(document, ALONE)

    assert placed.resource["id"] == f"{WORKSPACE}/providers/Microsoft.Authorization/roleAssignments/it"
    assert placed.resource["properties"] == {"principalId": "p", "roleDefinitionId": role["armId"], "scope": WORKSPACE}
    assert "`--scope`" in unplaced.unreadable["/properties/scope"]


def test_a_neighbour_that_is_not_known_in_whole_is_reported() -> None:
    """It is read, and the field is unreadable."""
    reading = kubernetes.read(
        other(
            "network.azure.com/v1api20201101",
            "VirtualNetworksSubnet",
            {"owner": {"name": "v"}, "addressPrefix": "${CIDR}"},
        ),
        HERE,
    )

    assert reading.resources[0].resource["properties"] == {}
    assert "`${CIDR}` is a placeholder" in reading.resources[0].unreadable["/properties/addressPrefix"]


# ---------------------------------------------------------------- instance types


def instance_type(name: str, gpus: object) -> JsonObject:
    """An instance type as users write one."""
    return {
        "apiVersion": "amlarc.azureml.com/v1alpha1",
        "kind": "InstanceType",
        "metadata": {"name": name},
        "spec": {"nodeSelector": {"key": "a", "name": "b"}, "resources": {"limits": {"nvidia.com/gpu": gpus}}},
    }


def test_instance_types_are_those_of_a_compute_that_they_do_not_name() -> None:
    """Nothing else of it is known; each object has a compute of its own."""
    placed = only(instance_type("gpu", 1))
    items = [{"metadata": {"name": name}, "spec": {"resources": {}}} for name in ("a", "b")]
    listed = only({"apiVersion": "amlarc.azureml.com/v1alpha1", "kind": "InstanceTypeList", "items": items})

    assert placed.resource["id"] == f"{WORKSPACE}/computes/{{kubernetes-gpu}}"
    assert placed.resource["properties"] == {
        "computeType": "Kubernetes",
        "isAttachedCompute": True,
        "properties": {
            "instanceTypes": {
                "gpu": {"nodeSelector": {"key": "a", "name": "b"}, "resources": {"limits": {"nvidia.com/gpu": 1}}}
            }
        },
    }
    assert placed.carried is not None
    assert "/tags" not in placed.carried.pointers
    assert {f"{C}/vmSize", f"{C}/subnet", f"{C}/agentCount", f"{C}/state"} <= set(placed.carried.pointers)
    assert not {"/properties/resourceId", "/properties/computeLocation"} & set(placed.carried.pointers)
    assert "/id" in placed.unreadable
    assert placed.fields[f"{C}/instanceTypes/gpu"] == "/spec"
    assert list(listed.resource["properties"]["properties"]["instanceTypes"]) == ["a", "b"]
    assert listed.fields[f"{C}/instanceTypes/b"] == "/items/1/spec"


def test_instance_types_of_several_files_do_not_contradict_each_other(tmp_path: Path) -> None:
    """Not even those of one name."""
    (tmp_path / "a.yaml").write_text(yaml.safe_dump_all([instance_type("a", 1), instance_type("b", 1)]))
    (tmp_path / "b.yaml").write_text(yaml.safe_dump(instance_type("a", 2)))

    for context in (DocumentContext(), DocumentContext(workspace=WORKSPACE, scope=GROUP)):
        inputs = read_inputs([tmp_path], context=context)
        assert inputs.problems == ()
        assert len(inputs.snapshot.resources) == 3


@pytest.mark.parametrize("spec", [None, 3, []])
def test_an_instance_type_without_a_spec_is_refused(spec: object) -> None:
    """It contains nothing that could be evaluated."""
    [refusal] = kubernetes.read({**instance_type("a", 1), "spec": spec}).refusals

    assert refusal.remedy == "set `metadata.name`, and `spec` with `resources`"


# ---------------------------------------------------------------- lists, reviews, and other documents


def review(operation: str, **more: object) -> JsonObject:
    """The request of the API server."""
    request = {"operation": operation, "kind": {"kind": "Workspace"}, **more}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def test_an_admission_review_is_its_object() -> None:
    """A deletion leaves nothing; an incomplete review contains nothing."""
    placed = only(review("CREATE", object=manifest("Workspace", {"hbiWorkspace": True})))
    partial = {"kind": "AdmissionReview", "request": {"object": manifest("Workspace", {})}}

    assert placed.pointer == "/request/object"
    assert placed.fields["/properties/hbiWorkspace"] == "/request/object/spec/hbiWorkspace"
    assert only(partial).pointer == "/request/object"
    assert "deletion" in kubernetes.read(review("DELETE", oldObject=manifest("Workspace", {}))).nothing
    assert kubernetes.read(review("CREATE")).nothing == "an admission review without an object"
    assert (
        kubernetes.read({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}).nothing
        == "an admission review without a request"
    )


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        ([manifest("Workspace", {})], "/0"),
        ({"apiVersion": "v1", "kind": "List", "items": [manifest("Workspace", {})]}, "/items/0"),
        (
            {
                "apiVersion": f"machinelearningservices.azure.com/{NEW}",
                "kind": "WorkspaceList",
                "metadata": {},
                "items": [{"metadata": {"name": "it"}, "spec": {}}],
            },
            "/items/0",
        ),
    ],
)
def test_lists_are_read_object_by_object(document: object, pointer: str) -> None:
    """As `kubectl get` prints them, of all kinds or of one."""
    assert kubernetes.detect(document)
    assert only(document).pointer == pointer


OTHERS = [
    other("apps/v1", "Deployment", {}),
    other("v1", "ConfigMap", {}),
    other("storage.azure.com/v1api20230101", "StorageAccountsBlobService", {}),
    other("resources.azure.com/v1api20200601", "ResourceGroup", {}),
    other("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", {}),
    other("apiextensions.k8s.io/v1", "CustomResourceDefinition", {}),
    {"apiVersion": "v1", "kind": "List", "items": [other("v1", "Pod", {})]},
]


@pytest.mark.parametrize("document", OTHERS)
def test_other_objects_contain_nothing_to_evaluate(document: JsonObject) -> None:
    """They are understood, which is no error."""
    reading = kubernetes.read(document)

    assert kubernetes.detect(document)
    assert reading.nothing.startswith("a Kubernetes object of a kind that is not checked (`")
    assert (reading.resources, reading.refusals) == ((), ())


REFUSED: list[tuple[object, str]] = [
    ({**manifest("Workspace", {}), "spec": None}, "an object without a `spec`"),
    ({**manifest("Workspace", {}), "metadata": {}}, "an object without a name"),
    ({key: value for key, value in manifest("Workspace", {}).items() if key != "metadata"}, "an object without a name"),
    (
        manifest("WorkspacesDatastore", {}),
        "the kind `WorkspacesDatastore` of `machinelearningservices.azure.com` is not supported",
    ),
    (compute("gpuCompute", {}), "unknown kind of compute `gpuCompute`; did you mean `AmlCompute`"),
    (
        manifest("WorkspacesCompute", {"properties": {"aks": {}, "amlCompute": {}}}),
        "more than one kind of compute: `aks`, `amlCompute`",
    ),
    ([manifest("Workspace", {}), 3], "not a Kubernetes object: expected `apiVersion` and `kind`, found a number"),
    (
        other(
            "authorization.azure.com/v1api20220401",
            "RoleAssignment",
            {"owner": {"group": "x", "kind": "y", "name": "z"}},
        ),
        "the owner of the object is unknown",
    ),
]


@pytest.mark.parametrize(("document", "message"), REFUSED)
def test_unreadable_objects_are_refused(document: object, message: str) -> None:
    """With the reason and a remedy; it hides no other object."""
    reading = kubernetes.read(document, HERE)
    [refusal] = reading.refusals

    assert kubernetes.detect(document)
    assert refusal.message.startswith(message)
    assert refusal.remedy
    assert len(reading.resources) == (1 if isinstance(document, list) else 0)


def test_a_compute_of_no_kind_and_one_of_two() -> None:
    """Its kind is unknown, so nothing of it is evaluated."""
    nothing = only(manifest("WorkspacesCompute", {}))
    two = only(compute("amlCompute", {}, computeType="AKS"))
    later = only(compute("amlCompute", {}, computeType="${KIND}"))

    assert "set `spec.properties`" in nothing.unreadable["/properties"]
    assert "`computeType` is `AKS` below `amlCompute`" in two.unreadable["/properties/computeType"]
    assert at(two.resource, "/properties/computeType") == "absent"
    assert at(later.resource, "/properties/computeType") == "absent"
    assert "`${KIND}`" in later.unreadable["/properties/computeType"]


NOT_OURS: list[object] = [
    None,
    3,
    [],
    {},
    {"apiVersion": "v1", "kind": "Pod"},
    {"apiVersion": "2024-04-01", "kind": "Hub", "type": "Microsoft.MachineLearningServices/workspaces", "metadata": {}},
    [{"apiVersion": "2021-07-01", "type": "Microsoft.Network/virtualNetworks", "name": "v", "properties": {}}],
    {"kind": "AdmissionReview"},
    {"apiVersion": 1, "kind": "Workspace", "metadata": {}},
    {"$schema": "https://azuremlschemas.azureedge.net/latest/workspace.schema.json", "name": "ws"},
]


@pytest.mark.parametrize("document", NOT_OURS)
def test_other_documents_are_not_taken(document: object) -> None:
    """Least of all ARM resources with an `apiVersion` and a `kind`, as other tools list them."""
    assert not kubernetes.detect(document)


def test_kubernetes_precedes_arm() -> None:
    """A custom object may have `properties` and a `type` of its own."""
    document = {**manifest("Workspace", {}), "type": "a/b", "properties": {}}

    assert next(name for name, reader in FORMATS.items() if reader.detect(document)) == "kubernetes"


# ---------------------------------------------------------------- what the format cannot state


def inspected(resource_type: str) -> set[str]:
    """The pointers into resources of a type that our policies read."""
    bundle = policyeng.load_bundle()
    return {
        pointer
        for policy in bundle.policies
        for target in policy.header.judges
        if target.type.lower() == resource_type.lower()
        for pointer in observe(bundle, policy).pointers
        if not pointer.startswith("workspace:")
    }


def gaps(placed: Placed) -> set[str]:
    """Those of the inspected pointers that a reading leaves open."""

    def overlaps(pointer: str, known: str) -> bool:
        pairs = zip(pointer.split("/"), known.split("/"), strict=False)
        return all(left == right or "*" in (left, right) for left, right in pairs)

    assert placed.carried is not None
    return {
        pointer
        for pointer in inspected(str(placed.resource["type"]))
        if any(overlaps(pointer, place) for place in placed.unreadable)
        or not any(overlaps(pointer, place) for place in ("/id", *placed.carried.pointers))
    }


OF_WORKSPACE = {
    "/properties/encryption/status",
    "/properties/ipAllowlist",
    "/properties/ipAllowlist/*",
    "/properties/managedNetwork/status/status",
    "/properties/networkAcls/ipRules",
    "/properties/networkAcls/ipRules/*/value",
    "/properties/privateEndpointConnections",
    "/properties/privateEndpointConnections/*/properties/privateEndpoint/id",
    "/properties/privateEndpointConnections/*/properties/privateLinkServiceConnectionState/status",
    "/properties/systemDatastoresAuthMode",
}
#: What the service sets in a compute; one policy searches all properties.
MADE = {
    "/properties",
    f"{C}/connectivityEndpoints/publicIpAddress",
    f"{C}/lastOperation/operationTime",
    f"{C}/lastOperation/operationTrigger",
    f"{C}/osImageMetadata/isLatestOsImageVersion",
    f"{C}/state",
}
OF_INSTANCE = {*MADE, f"{C}/idleTimeBeforeShutdown", f"{C}/remoteLoginPortPublicAccess"}
#: Policies of computes look at fields of all types of them.
OF_CLUSTER = {
    *MADE,
    f"{C}/applicationSharingPolicy",
    f"{C}/customServices",
    f"{C}/setupScripts/scripts/creationScript/scriptData",
    f"{C}/setupScripts/scripts/creationScript/scriptSource",
    f"{C}/sshSettings/sshPublicAccess",
}
GAPS: list[tuple[JsonObject, set[str]]] = [
    (manifest("Workspace", {}), OF_WORKSPACE),
    (manifest("Workspace", {}, OLD), OF_WORKSPACE),
    (manifest("Workspace", {}, "v1beta20210701"), OF_WORKSPACE),
    (manifest("Workspace", {}, f"{OLD}storage"), OF_WORKSPACE),
    (compute("computeInstance", {}), OF_INSTANCE),
    (compute("computeInstance", {}, "v20250101preview"), OF_INSTANCE),
    (compute("computeInstance", {}, OLD), OF_INSTANCE),
    (compute("amlCompute", {}), OF_CLUSTER),
]


@pytest.mark.parametrize(("document", "expected"), GAPS)
def test_gaps_of_the_format(document: JsonObject, expected: set[str]) -> None:
    """By kind and version of the custom resource, of what our policies inspect."""
    assert gaps(only(document)) == expected


@pytest.mark.parametrize("name", ["systemDatastoresAuthMode", "ipAllowlist", "encryption/status"])
def test_what_a_workspace_cannot_state(name: str) -> None:
    """It is the same in every version."""
    placed = only(manifest("Workspace", {"encryption": {}}))

    assert placed.carried is not None
    assert not any(f"/properties/{name}/".startswith(f"{known}/") for known in placed.carried.pointers)


def test_neighbours_state_all_that_arm_has() -> None:
    """Their specs have ARM's own names."""
    neighbours = [key for key, kind in KINDS.items() if kind.read and key[0] != "machinelearningservices.azure.com"]
    for group, kind in neighbours:
        placed = only(other(f"{group}/v1api20230101", kind, {"owner": {"name": "x", "armId": "/subscriptions/1/a"}}))
        assert placed.carried is None


# ---------------------------------------------------------------- places


def test_findings_are_at_the_place_of_the_field(tmp_path: Path) -> None:
    """Line and column of the failing field, in the document of the stream that has it."""
    documents = [
        manifest("Workspace", {"publicNetworkAccess": "Enabled"}),
        compute("amlCompute", {"scaleSettings": {"minNodeCount": 1}}),
    ]
    text = yaml.safe_dump_all(documents, sort_keys=False)
    file = tmp_path / "estate.yaml"
    file.write_text(text)
    inputs = read_inputs([file], context=DocumentContext(scope=GROUP))
    evaluation = policyeng.evaluate(policyeng.load_bundle(), inputs.snapshot)
    places = {
        path: (place.line, place.column)
        for finding in evaluation.findings
        if finding.location is not None
        for path, place in (finding.location.fields or {}).items()
    }
    lines = text.splitlines()

    for path, key in {
        "/properties/publicNetworkAccess": "publicNetworkAccess",
        f"{C}/scaleSettings/minNodeCount": "minNodeCount",
    }.items():
        line, column = places[path]
        assert lines[line - 1][column - 1 :].startswith(key), (path, line, column)


# ---------------------------------------------------------------- any estate, and any value

IDS = st.sampled_from([f"{GROUP}/providers/Microsoft.KeyVault/vaults/kv", SUBNET])
NAMES = st.from_regex(r"[a-z][a-z0-9-]{2,12}", fullmatch=True)
IDENTITY = st.one_of(
    st.just({"type": "SystemAssigned"}),
    st.builds(lambda arm_id: {"type": "UserAssigned", "userAssignedIdentities": {arm_id: {}}}, IDS),
)
RULE = st.one_of(
    st.just({"type": "FQDN", "destination": "pypi.org"}),
    st.just({"type": "ServiceTag", "destination": {"serviceTag": "x", "protocol": "TCP", "portRanges": "443"}}),
    st.builds(
        lambda arm_id: {"type": "PrivateEndpoint", "destination": {"serviceResourceId": arm_id, "sparkEnabled": True}},
        IDS,
    ),
)
WORKSPACES = st.fixed_dictionaries(
    {},
    optional={
        "publicNetworkAccess": st.sampled_from(["Enabled", "Disabled"]),
        "hbiWorkspace": st.booleans(),
        "v1LegacyMode": st.booleans(),
        "keyVault": IDS,
        "storageAccount": IDS,
        "primaryUserAssignedIdentity": IDS,
        "systemDatastoresAuthMode": st.just("identity"),
        "encryption": st.builds(
            lambda arm_id: {"status": "Enabled", "keyVaultProperties": {"keyVaultArmId": arm_id, "keyIdentifier": "k"}},
            IDS,
        ),
        "serverlessComputeSettings": st.builds(
            lambda arm_id, no: {"serverlessComputeCustomSubnet": arm_id, "serverlessComputeNoPublicIP": no},
            IDS,
            st.booleans(),
        ),
        "managedNetwork": st.builds(
            lambda mode, rules: {"isolationMode": mode, "outboundRules": rules},
            st.sampled_from(["Disabled", "AllowInternetOutbound"]),
            st.dictionaries(NAMES, RULE, max_size=3),
        ),
    },
)
SIZES = st.sampled_from(["Standard_DS3_v2", "STANDARD_NC6"])
NODES = st.fixed_dictionaries(
    {"vmSize": SIZES},
    optional={
        "vmPriority": st.sampled_from(["Dedicated", "LowPriority"]),
        "enableNodePublicIp": st.booleans(),
        "isolatedNetwork": st.booleans(),
        "remoteLoginPortPublicAccess": st.sampled_from(["Enabled", "Disabled", "NotSpecified"]),
        "subnet": st.just({"id": SUBNET}),
        "scaleSettings": st.fixed_dictionaries(
            {"maxNodeCount": st.integers(0, 9)},
            optional={"minNodeCount": st.integers(0, 9), "nodeIdleTimeBeforeScaleDown": st.just("PT2M")},
        ),
    },
)
INSTANCE = st.fixed_dictionaries(
    {"vmSize": SIZES},
    optional={
        "idleTimeBeforeShutdown": st.just("PT30M"),
        "applicationSharingPolicy": st.sampled_from(["Personal", "Shared"]),
        "sshSettings": st.just({"sshPublicAccess": "Disabled"}),
        "schedules": st.just({"computeStartStop": [{"action": "Stop", "triggerType": "Cron"}]}),
        "subnet": st.just({"id": SUBNET}),
    },
)
INNER = {
    "AmlCompute": NODES,
    "ComputeInstance": INSTANCE,
    "AKS": st.fixed_dictionaries(
        {}, optional={"agentCount": st.integers(0, 9), "aksNetworkingConfiguration": st.just({"subnetId": SUBNET})}
    ),
    "Kubernetes": st.just({"namespace": "n", "instanceTypes": {"a": {"resources": {"limits": {"cpu": "1"}}}}}),
    "VirtualMachine": st.just({"virtualMachineSize": "Standard_A1_v2", "sshPort": 22}),
    "HDInsight": st.just({"sshPort": 22, "address": "a"}),
    "Databricks": st.just({"workspaceUrl": "u"}),
    "DataLakeAnalytics": st.just({"dataLakeStoreAccountName": "d"}),
    "SynapseSpark": st.just({"nodeCount": 3, "nodeSize": "Small"}),
    "DataFactory": st.none(),
}


@st.composite
def estates(draw: st.DrawFn) -> list[JsonObject]:
    """A workspace, computes of any kind, and neighbours."""
    prefix = f"{GROUP}/providers"

    def resource(path: str, arm_type: str, properties: JsonObject, **more: object) -> JsonObject:
        return {
            "id": f"{prefix}/{path}",
            "name": path.rpartition("/")[2],
            "type": arm_type,
            **more,
            "properties": properties,
        }

    name = draw(NAMES)
    machine_learning = "Microsoft.MachineLearningServices/workspaces"
    top = draw(
        st.fixed_dictionaries(
            {"location": st.just("westeurope")},
            optional={
                "tags": st.dictionaries(NAMES, NAMES, max_size=2),
                "identity": IDENTITY,
                "kind": st.just("Default"),
            },
        )
    )
    estate = [resource(f"{machine_learning}/{name}", machine_learning, draw(WORKSPACES), **top)]
    for index, kind in enumerate(draw(st.lists(st.sampled_from(sorted(INNER)), max_size=4))):
        inner = draw(INNER[kind])
        body: JsonObject = {"computeType": kind, "disableLocalAuth": draw(st.booleans())}
        body |= {"properties": inner} if inner is not None else {}
        body |= {"resourceId": f"{prefix}/Microsoft.X/y/z"} if draw(st.booleans()) else {}
        estate.append(
            resource(
                f"{machine_learning}/{name}/computes/c{index}", f"{machine_learning}/computes", body, location="we"
            )
        )
    networks, pool = "Microsoft.Network/virtualNetworks", {"name": "p", "vmSize": "a", "vnetSubnetID": SUBNET}
    estate.append(resource(f"{networks}/vnet/subnets/nodes", f"{networks}/subnets", {"addressPrefix": "10.0.0.0/24"}))
    kind = "Microsoft.ContainerService/managedClusters"
    estate.append(resource(f"{kind}/aks", kind, {"agentPoolProfiles": [pool]}, location="we"))
    return estate


def is_part_of(value: object, whole: object) -> bool:
    """Whether everything in a value is in another one."""
    if isinstance(value, dict):
        return isinstance(whole, dict) and all(
            key in whole and is_part_of(inner, whole[key]) for key, inner in value.items()
        )
    return value == whole


@settings(deadline=None)
@given(estates())
def test_every_estate_comes_back(estate: list[JsonObject]) -> None:
    """Everything that manifests can state is read back; nothing is added but what follows from the kind."""
    [content] = writer.write(estate).values()
    documents = list(yaml.safe_load_all(content))
    found = [only(document, Surroundings(scope=GROUP, workspace=estate[0]["id"])) for document in documents]

    assert all(map(writer.expressible, estate))
    for resource, placed in zip(estate, found, strict=True):
        expressed = writer.expressed(resource)
        assert is_part_of(expressed, placed.resource), (expressed, placed.resource)
        placed.resource["properties"].pop("isAttachedCompute", None)
        assert is_part_of(placed.resource, expressed), (expressed, placed.resource)


VALUES = st.recursive(
    st.sampled_from([None, True, 0, "", "${X}", "x", f"{GROUP}"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["id", "reference", "armId", "name", "kind", "properties", "amlCompute", "spec", "items"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@settings(deadline=None)
@given(
    st.sampled_from([*KINDS, ("amlarc.azureml.com", "InstanceType"), ("amlarc.azureml.com", "InstanceTypeList")]),
    st.fixed_dictionaries({}, optional=dict.fromkeys(("metadata", "spec", "status", "items", "kind"), VALUES)),
    VALUES,
)
def test_no_value_raises(kind: tuple[str, str], parts: JsonObject, owner: object) -> None:
    """Objects, lists and reviews may have any content."""
    document: JsonObject = {"apiVersion": f"{kind[0]}/v1", "kind": kind[1], "metadata": {"name": "x"}, **parts}
    if isinstance(document.get("spec"), dict):
        document["spec"] = {**document["spec"], "owner": owner}
    for whole in (
        document,
        [document],
        review("UPDATE", object=document),
        {"kind": "List", "apiVersion": "v1", "items": [document]},
    ):
        kubernetes.detect(whole)
        kubernetes.belongs_to_workspace(whole)
        for placed in kubernetes.read(whole, HERE).resources:
            json.dumps(placed.resource)
            assert isinstance(placed.resource["id"], str)


def test_deep_nesting_is_unresolved_and_not_a_hang() -> None:
    """Neither in the spec nor in the status, nor in lists of lists."""
    deep: JsonObject = {}
    for _ in range(20_000):
        deep = {"a": deep}
    lists: list[object] = []
    for _ in range(20_000):
        lists = [lists]

    written = manifest("Workspace", {"managedNetwork": {"outboundRules": deep}})
    assert any("too deeply" in why for why in only(written).unreadable.values())
    status = {"id": WORKSPACE, "managedNetwork": {"outboundRules": deep}}
    assert (
        only(live(manifest("Workspace", {"managedNetwork": {"outboundRules": {"a": {}}}}), status)).resource["id"]
        == WORKSPACE
    )
    assert kubernetes.read(lists).resources == ()


def test_owners_that_own_each_other_are_refused() -> None:
    """Only a role assignment states the kind of its owner, and none lies in another."""
    group, kind = "authorization.azure.com", "RoleAssignment"
    owner = {"group": group, "kind": kind, "name": "it"}
    circle = other(f"{group}/v1api20220401", kind, {"owner": owner})
    machine = other("compute.azure.com/v1api20201201", "VirtualMachine", {"owner": {**owner, "kind": "VirtualMachine"}})

    [refusal] = kubernetes.read([circle, circle], HERE).refusals
    assert refusal.message == "the owner of the object is unknown (same for the next one)"
    assert only([machine]).resource["id"] == f"{GROUP}/providers/Microsoft.Compute/virtualMachines/it"


def test_keys_without_end_are_bounded() -> None:
    """A `spec` with more keys than any has, and a body with more than anybody corrects."""
    many = {f"key{index}": "${X}" for index in range(20_000)}
    [refusal] = kubernetes.read(manifest("Workspace", many), HERE).refusals
    reading = kubernetes.read(compute("amlCompute", dict.fromkeys(many, "x")), HERE)

    assert refusal.message == "a `spec` with 20001 keys; at most 200 are read"
    assert len(reading.remarks) == 20


# ---------------------------------------------------------------- real files


def real_files(folder: str) -> Iterator[Path]:
    """Every file below a folder of real documents."""
    if not REAL.is_dir():
        pytest.skip(f"no real documents at {REAL}")
    yield from sorted(path for path in (REAL / folder).rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("folder", "files", "read", "resources", "nothing", "refused"),
    [("aso", 12, 10, 10, 2, 0), ("k8s_azureml", 2, 2, 2, 0, 0), ("admission_review", 57, 0, 0, 54, 3)],
)
def test_real_files(folder: str, files: int, read: int, resources: int, nothing: int, refused: int) -> None:
    """Each is read, understood as nothing, or refused; two of the reviews are Helm templates, one is a JSON schema."""
    every = [read_inputs([path]) for path in real_files(folder)]

    assert len(every) == files
    assert sum(bool(each.snapshot.resources) for each in every) == read
    assert sum(len(each.snapshot.resources) for each in every) == resources
    assert sum(bool(each.ledger) for each in every) == nothing
    assert sum(bool(each.problems) for each in every) == refused


def test_real_folder_is_one_snapshot() -> None:
    """The computes and their machines are read together; samples of two versions contradict each other nowhere."""
    next(real_files("aso"))
    inputs = read_inputs([REAL / "aso"])

    assert not [problem for problem in inputs.problems if problem.level == "error"]
