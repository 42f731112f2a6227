"""Terraform documents: which are taken, and what each attribute of the azurerm provider becomes."""

from __future__ import annotations

from pathlib import Path

import pytest

from policyeng import evaluate, load_bundle
from policyeng.models import JsonObject
from policyeng.sources import FORMATS, read_inputs, terraform
from policyeng.sources.parsed import ALONE
from policyeng.sources.terraform.resolution import KINDS
from policyeng.testing.observed_reads import observe
from tests.terraform_parts import (
    CLUSTER,
    INSTANCE,
    ML,
    SCOPE,
    SUBNET_ID,
    SUBSCRIPTION,
    WORKSPACE,
    WORKSPACE_ID,
    at,
    change,
    one,
    plan,
    read,
    resource,
    state,
    state_file,
)
from tests.test_evaluation_plan import overlap

C = "/properties/properties"
GUID = "22222222-2222-2222-2222-222222222222"
AKS_ID = f"{SCOPE}/providers/Microsoft.ContainerService/managedClusters/aks"
INFERENCE: JsonObject = {
    "name": "inference",
    "machine_learning_workspace_id": WORKSPACE_ID,
    "kubernetes_cluster_id": AKS_ID,
    "location": "westeurope",
    "cluster_purpose": "FastProd",
    "identity": [],
    "ssl": [],
}
SPARK: JsonObject = {
    "name": "spark",
    "machine_learning_workspace_id": WORKSPACE_ID,
    "location": "westeurope",
    "synapse_spark_pool_id": f"{SCOPE}/providers/Microsoft.Synapse/workspaces/syn/bigDataPools/pool",
    "local_auth_enabled": True,
}
AKS: JsonObject = {
    "name": "aks",
    "resource_group_name": "rg-ml",
    "location": "westeurope",
    "default_node_pool": [{"name": "system", "vm_size": "Standard_D4s_v3", "node_count": 3, "os_sku": None}],
}
GROUP: JsonObject = {
    "name": "aci",
    "resource_group_name": "rg-ml",
    "location": "westeurope",
    "ip_address_type": "Public",
    "container": [{"name": "score", "image": "x", "cpu": 1, "memory": 48}],
}
VM: JsonObject = {"name": "vm", "resource_group_name": "rg-ml", "location": "westeurope", "size": "Standard_NC6s_v3"}
BUDGET: JsonObject = {"name": "b", "amount": 10, "time_grain": "Monthly"}
SPECIMENS: dict[str, JsonObject] = {
    f"{ML}_workspace": WORKSPACE,
    f"{ML}_compute_cluster": CLUSTER,
    f"{ML}_compute_instance": INSTANCE,
    f"{ML}_inference_cluster": INFERENCE,
    f"{ML}_synapse_spark": SPARK,
    "azurerm_kubernetes_cluster": AKS,
    "azurerm_container_group": GROUP,
    "azurerm_linux_virtual_machine": VM,
    "azurerm_windows_virtual_machine": VM,
    "azurerm_ai_foundry": {"name": "hub", "resource_group_name": "rg-ml", "location": "westeurope"},
    "azurerm_ai_foundry_project": {"name": "p", "location": "westeurope", "ai_services_hub_id": WORKSPACE_ID},
    f"{ML}_registry": {"name": "reg", "resource_group_name": "rg-ml", "location": "westeurope"},
    f"{ML}_datastore_blobstorage": {"name": "blob", "workspace_id": WORKSPACE_ID},
    f"{ML}_datastore_datalake_gen2": {"name": "lake", "workspace_id": WORKSPACE_ID},
    f"{ML}_datastore_fileshare": {"name": "files", "workspace_id": WORKSPACE_ID},
    "azurerm_virtual_network": {"name": "net", "resource_group_name": "rg-ml", "location": "westeurope"},
    "azurerm_subnet": {"name": "train", "resource_group_name": "rg-ml", "virtual_network_name": "net"},
    "azurerm_role_assignment": {"name": GUID, "scope": WORKSPACE_ID, "principal_id": GUID},
    "azurerm_role_definition": {"name": "Operator", "role_definition_id": GUID, "scope": SCOPE},
    "azurerm_consumption_budget_resource_group": {**BUDGET, "resource_group_id": SCOPE},
    "azurerm_consumption_budget_subscription": {**BUDGET, "subscription_id": SUBSCRIPTION},
    "azurerm_private_endpoint": {"name": "pe", "resource_group_name": "rg-ml", "location": "westeurope"},
}
IDENTITY = f"{SCOPE}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/id"
ROWS: list[tuple[str, JsonObject, str, object]] = [
    (f"{ML}_workspace", {"tags": {"owner": "me"}}, "/tags/owner", "me"),
    (f"{ML}_workspace", {}, "/name", "ws"),
    (f"{ML}_workspace", {}, "/location", "westeurope"),
    (f"{ML}_workspace", {}, "/kind", "Default"),
    (f"{ML}_workspace", {"kind": "FeatureStore"}, "/kind", "FeatureStore"),
    (f"{ML}_workspace", {}, "/sku/name", "Basic"),
    (f"{ML}_workspace", {"public_network_access_enabled": True}, "/properties/publicNetworkAccess", "Enabled"),
    (f"{ML}_workspace", {"public_network_access_enabled": False}, "/properties/publicNetworkAccess", "Disabled"),
    (f"{ML}_workspace", {"public_network_access_enabled": None}, "/properties/publicNetworkAccess", ...),
    (
        f"{ML}_workspace",
        {"public_access_behind_virtual_network_enabled": True},
        "/properties/allowPublicAccessWhenBehindVnet",
        True,
    ),
    (f"{ML}_workspace", {"high_business_impact": True}, "/properties/hbiWorkspace", True),
    (f"{ML}_workspace", {"high_business_impact": False}, "/properties/hbiWorkspace", False),
    (f"{ML}_workspace", {"v1_legacy_mode_enabled": True}, "/properties/v1LegacyMode", True),
    (
        f"{ML}_workspace",
        {"storage_account_access_type": "Identity"},
        "/properties/systemDatastoresAuthMode",
        "Identity",
    ),
    (f"{ML}_workspace", {"image_build_compute_name": "cpu"}, "/properties/imageBuildCompute", "cpu"),
    (
        f"{ML}_workspace",
        {"primary_user_assigned_identity": IDENTITY},
        "/properties/primaryUserAssignedIdentity",
        IDENTITY,
    ),
    (f"{ML}_workspace", {}, "/properties/keyVault", WORKSPACE["key_vault_id"]),
    (f"{ML}_workspace", {}, "/properties/storageAccount", WORKSPACE["storage_account_id"]),
    (f"{ML}_workspace", {}, "/properties/applicationInsights", WORKSPACE["application_insights_id"]),
    (f"{ML}_workspace", {"container_registry_id": "/acr"}, "/properties/containerRegistry", "/acr"),
    (f"{ML}_workspace", {"description": "d"}, "/properties/description", "d"),
    (f"{ML}_workspace", {"friendly_name": "f"}, "/properties/friendlyName", "f"),
    (f"{ML}_workspace", {"service_side_encryption_enabled": True}, "/properties/enableServiceSideCMKEncryption", True),
    (
        f"{ML}_workspace",
        {"managed_network": [{"isolation_mode": "AllowOnlyApprovedOutbound"}]},
        "/properties/managedNetwork/isolationMode",
        "AllowOnlyApprovedOutbound",
    ),
    (
        f"{ML}_workspace",
        {"managed_network": [{"provision_on_creation_enabled": True}]},
        "/properties/provisionNetworkNow",
        True,
    ),
    (
        f"{ML}_workspace",
        {"serverless_compute": [{"public_ip_enabled": True, "subnet_id": None}]},
        "/properties/serverlessComputeSettings/serverlessComputeNoPublicIP",
        False,
    ),
    (
        f"{ML}_workspace",
        {"serverless_compute": [{"public_ip_enabled": False}]},
        "/properties/serverlessComputeSettings/serverlessComputeNoPublicIP",
        True,
    ),
    (
        f"{ML}_workspace",
        {"serverless_compute": [{"subnet_id": SUBNET_ID}]},
        "/properties/serverlessComputeSettings/serverlessComputeCustomSubnet",
        SUBNET_ID,
    ),
    (
        f"{ML}_workspace",
        {"encryption": [{"key_vault_id": "/kv", "key_id": "https://k", "user_assigned_identity_id": IDENTITY}]},
        "/properties/encryption",
        {
            "status": "Enabled",
            "keyVaultProperties": {"keyVaultArmId": "/kv", "keyIdentifier": "https://k"},
            "identity": {"userAssignedIdentity": IDENTITY},
        },
    ),
    (
        f"{ML}_workspace",
        {
            "feature_store": [
                {
                    "computer_spark_runtime_version": "3.3",
                    "offline_connection_name": "off",
                    "online_connection_name": "on",
                }
            ]
        },
        "/properties/featureStoreSettings",
        {
            "computeRuntime": {"sparkRuntimeVersion": "3.3"},
            "offlineStoreConnectionName": "off",
            "onlineStoreConnectionName": "on",
        },
    ),
    (
        f"{ML}_workspace",
        {"identity": [{"type": "SystemAssigned, UserAssigned", "identity_ids": [IDENTITY]}]},
        "/identity",
        {"type": "SystemAssigned,UserAssigned", "userAssignedIdentities": {IDENTITY: {}}},
    ),
    ("azurerm_ai_foundry", {}, "/kind", "Hub"),
    ("azurerm_ai_foundry", {"public_network_access": "Disabled"}, "/properties/publicNetworkAccess", "Disabled"),
    ("azurerm_ai_foundry", {"high_business_impact_enabled": True}, "/properties/hbiWorkspace", True),
    (
        "azurerm_ai_foundry",
        {"managed_network": [{"isolation_mode": "AllowInternetOutbound"}]},
        "/properties/managedNetwork/isolationMode",
        "AllowInternetOutbound",
    ),
    ("azurerm_ai_foundry_project", {}, "/kind", "Project"),
    ("azurerm_ai_foundry_project", {}, "/properties/hubResourceId", WORKSPACE_ID),
    ("azurerm_ai_foundry_project", {}, "/id", f"{SCOPE}/providers/Microsoft.MachineLearningServices/workspaces/p"),
    ("azurerm_ai_foundry_project", {"high_business_impact_enabled": True}, "/properties/hbiWorkspace", True),
    (f"{ML}_compute_cluster", {}, "/id", f"{WORKSPACE_ID}/computes/cpu"),
    (f"{ML}_compute_cluster", {}, "/properties/computeType", "AmlCompute"),
    (f"{ML}_compute_cluster", {}, "/properties/isAttachedCompute", False),
    (f"{ML}_compute_cluster", {"location": "eastus"}, "/properties/computeLocation", "eastus"),
    (f"{ML}_compute_cluster", {}, f"{C}/vmSize", "Standard_D4s_v3"),
    (f"{ML}_compute_cluster", {"vm_priority": "LowPriority"}, f"{C}/vmPriority", "LowPriority"),
    (f"{ML}_compute_cluster", {}, f"{C}/scaleSettings/minNodeCount", 0),
    (f"{ML}_compute_cluster", {}, f"{C}/scaleSettings/maxNodeCount", 4),
    (f"{ML}_compute_cluster", {}, f"{C}/scaleSettings/nodeIdleTimeBeforeScaleDown", "PT120S"),
    (
        f"{ML}_compute_cluster",
        {"scale_settings": [{"node_idle_time_before_scale_down": "PT30S"}]},
        f"{C}/scaleSettings/nodeIdleTimeBeforeScaleDown",
        "PT30S",
    ),
    (f"{ML}_compute_cluster", {"subnet_resource_id": SUBNET_ID}, f"{C}/subnet", {"id": SUBNET_ID}),
    (f"{ML}_compute_cluster", {}, f"{C}/subnet", ...),
    (f"{ML}_compute_cluster", {}, f"{C}/enableNodePublicIp", True),
    (f"{ML}_compute_cluster", {"node_public_ip_enabled": False}, f"{C}/enableNodePublicIp", False),
    (f"{ML}_compute_cluster", {"local_auth_enabled": True}, "/properties/disableLocalAuth", False),
    (f"{ML}_compute_cluster", {"local_auth_enabled": False}, "/properties/disableLocalAuth", True),
    (f"{ML}_compute_cluster", {"ssh_public_access_enabled": True}, f"{C}/remoteLoginPortPublicAccess", "Enabled"),
    (f"{ML}_compute_cluster", {"ssh_public_access_enabled": False}, f"{C}/remoteLoginPortPublicAccess", "Disabled"),
    (
        f"{ML}_compute_cluster",
        {"ssh": [{"admin_username": "me", "admin_password": "hidden", "key_value": "ssh-rsa A"}]},
        f"{C}/userAccountCredentials",
        {"adminUserName": "me", "adminUserSshPublicKey": "ssh-rsa A"},
    ),
    (f"{ML}_compute_cluster", {"description": "d"}, "/properties/description", "d"),
    (f"{ML}_compute_instance", {}, "/properties/computeType", "ComputeInstance"),
    (f"{ML}_compute_instance", {}, f"{C}/vmSize", "Standard_DS3_v2"),
    (f"{ML}_compute_instance", {}, f"{C}/enableNodePublicIp", True),
    (f"{ML}_compute_instance", {"node_public_ip_enabled": False}, f"{C}/enableNodePublicIp", False),
    (f"{ML}_compute_instance", {"subnet_resource_id": SUBNET_ID}, f"{C}/subnet/id", SUBNET_ID),
    (f"{ML}_compute_instance", {"local_auth_enabled": False}, "/properties/disableLocalAuth", True),
    (f"{ML}_compute_instance", {"authorization_type": "personal"}, f"{C}/computeInstanceAuthorizationType", "personal"),
    (f"{ML}_compute_instance", {"ssh": []}, f"{C}/sshSettings", {"sshPublicAccess": "Disabled"}),
    (
        f"{ML}_compute_instance",
        {"ssh": [{"public_key": "ssh-rsa A", "port": 50000, "username": "azureuser"}]},
        f"{C}/sshSettings",
        {"sshPublicAccess": "Enabled", "adminPublicKey": "ssh-rsa A", "sshPort": 50000, "adminUserName": "azureuser"},
    ),
    (
        f"{ML}_compute_instance",
        {"assign_to_user": [{"object_id": GUID, "tenant_id": GUID}]},
        f"{C}/personalComputeInstanceSettings/assignedUser",
        {"objectId": GUID, "tenantId": GUID},
    ),
    (f"{ML}_inference_cluster", {}, "/properties/computeType", "AKS"),
    (f"{ML}_inference_cluster", {}, "/properties/resourceId", AKS_ID),
    (f"{ML}_inference_cluster", {}, "/properties/isAttachedCompute", True),
    (f"{ML}_inference_cluster", {"cluster_purpose": "DevTest"}, f"{C}/clusterPurpose", "DevTest"),
    (f"{ML}_synapse_spark", {}, "/properties/computeType", "SynapseSpark"),
    (f"{ML}_synapse_spark", {}, "/properties/computeLocation", "westeurope"),
    (f"{ML}_synapse_spark", {}, "/properties/resourceId", SPARK["synapse_spark_pool_id"]),
    (f"{ML}_synapse_spark", {"local_auth_enabled": False}, "/properties/disableLocalAuth", True),
    (f"{ML}_registry", {"public_network_access_enabled": False}, "/properties/publicNetworkAccess", "Disabled"),
    (f"{ML}_registry", {"public_network_access_enabled": True}, "/properties/publicNetworkAccess", "Enabled"),
    (f"{ML}_datastore_blobstorage", {}, "/properties/datastoreType", "AzureBlob"),
    (f"{ML}_datastore_blobstorage", {"is_default": True}, "/properties/isDefault", True),
    (f"{ML}_datastore_datalake_gen2", {}, "/properties/datastoreType", "AzureDataLakeGen2"),
    (f"{ML}_datastore_fileshare", {}, "/id", f"{WORKSPACE_ID}/datastores/files"),
    ("azurerm_kubernetes_cluster", {}, "/id", AKS_ID),
    (
        "azurerm_kubernetes_cluster",
        {},
        "/properties/agentPoolProfiles",
        [{"name": "system", "vmSize": "Standard_D4s_v3", "count": 3}],
    ),
    (
        "azurerm_kubernetes_cluster",
        {
            "default_node_pool": [
                {"enable_auto_scaling": True, "min_count": 1, "max_count": 5, "vnet_subnet_id": SUBNET_ID}
            ]
        },
        "/properties/agentPoolProfiles/0",
        {"enableAutoScaling": True, "minCount": 1, "maxCount": 5, "vnetSubnetID": SUBNET_ID},
    ),
    (
        "azurerm_kubernetes_cluster",
        {"default_node_pool": [{"auto_scaling_enabled": False, "node_public_ip_enabled": True}]},
        "/properties/agentPoolProfiles/0",
        {"enableAutoScaling": False, "enableNodePublicIP": True},
    ),
    ("azurerm_container_group", {}, "/properties/ipAddress/type", "Public"),
    ("azurerm_container_group", {"subnet_ids": [SUBNET_ID]}, "/properties/subnetIds", [{"id": SUBNET_ID}]),
    (
        "azurerm_container_group",
        {},
        "/properties/containers/0",
        {"name": "score", "properties": {"image": "x", "resources": {"requests": {"cpu": 1, "memoryInGB": 48}}}},
    ),
    ("azurerm_linux_virtual_machine", {}, "/properties/storageProfile/osDisk/osType", "Linux"),
    ("azurerm_windows_virtual_machine", {}, "/properties/storageProfile/osDisk/osType", "Windows"),
    (
        "azurerm_windows_virtual_machine",
        {"license_type": "Windows_Server"},
        "/properties/licenseType",
        "Windows_Server",
    ),
    ("azurerm_linux_virtual_machine", {}, "/properties/hardwareProfile/vmSize", "Standard_NC6s_v3"),
    ("azurerm_subnet", {"address_prefixes": ["10.0.0.0/24"]}, "/properties/addressPrefixes", ["10.0.0.0/24"]),
    ("azurerm_subnet", {}, "/id", SUBNET_ID),
    (
        "azurerm_virtual_network",
        {"address_space": ["10.0.0.0/16"]},
        "/properties/addressSpace",
        {"addressPrefixes": ["10.0.0.0/16"]},
    ),
    (
        "azurerm_virtual_network",
        {"subnet": [{"name": "train", "address_prefixes": ["10.0.0.0/24"], "id": None}]},
        "/properties/subnets",
        [{"name": "train", "properties": {"addressPrefixes": ["10.0.0.0/24"]}}],
    ),
    ("azurerm_role_assignment", {"principal_type": "User"}, "/properties/principalType", "User"),
    ("azurerm_role_assignment", {}, "/properties/scope", WORKSPACE_ID),
    ("azurerm_role_assignment", {"role_definition_id": "/r"}, "/properties/roleDefinitionId", "/r"),
    ("azurerm_role_assignment", {"condition": "c"}, "/properties/condition", "c"),
    (
        "azurerm_role_assignment",
        {},
        "/id",
        f"{WORKSPACE_ID}/providers/Microsoft.Authorization/roleAssignments/{GUID}",
    ),
    ("azurerm_role_definition", {}, "/properties/type", "CustomRole"),
    ("azurerm_role_definition", {}, "/id", f"{SCOPE}/providers/Microsoft.Authorization/roleDefinitions/{GUID}"),
    (
        "azurerm_role_definition",
        {"permissions": [{"actions": ["*"], "not_actions": None}]},
        "/properties/permissions",
        [{"actions": ["*"], "notActions": [], "dataActions": [], "notDataActions": []}],
    ),
    (
        "azurerm_consumption_budget_resource_group",
        {"notification": [{"enabled": False, "threshold": 90, "operator": "EqualTo"}]},
        "/properties/notifications/1",
        {"enabled": False, "threshold": 90, "operator": "EqualTo"},
    ),
    (
        "azurerm_consumption_budget_resource_group",
        {"time_period": [{"start_date": "2026-01-01T00:00:00Z", "end_date": None}]},
        "/properties/timePeriod",
        {"startDate": "2026-01-01T00:00:00Z"},
    ),
    (
        "azurerm_consumption_budget_subscription",
        {},
        "/id",
        f"{SUBSCRIPTION}/providers/Microsoft.Consumption/budgets/b",
    ),
    (
        "azurerm_private_endpoint",
        {"subnet_id": SUBNET_ID, "private_service_connection": [{"private_connection_resource_id": WORKSPACE_ID}]},
        "/properties",
        {
            "subnet": {"id": SUBNET_ID},
            "privateLinkServiceConnections": [{"properties": {"privateLinkServiceId": WORKSPACE_ID}}],
        },
    ),
]


@pytest.mark.parametrize(("kind", "values", "pointer", "expected"), ROWS)
def test_attributes_become_arm_fields(kind: str, values: JsonObject, pointer: str, expected: object) -> None:
    """Each attribute alone, over what the provider states by itself; `...` means that nothing is there."""
    placed = one(kind, {**SPECIMENS[kind], **values})

    assert at(placed, pointer) == expected
    assert placed.resource["type"] == KINDS[kind].place.arm_type


@pytest.mark.parametrize("kind", SPECIMENS)
def test_an_id_is_made_up_below_the_scope(kind: str) -> None:
    """It is the same as that of the deployed resource, so nothing of it is unreadable."""
    placed = one(kind, SPECIMENS[kind])

    assert placed.resource["id"].startswith(f"{SUBSCRIPTION}/")
    assert "/id" not in placed.unreadable
    assert "{" not in placed.resource["id"]


@pytest.mark.parametrize("kind", SPECIMENS)
def test_without_a_scope_the_id_is_unreadable(kind: str) -> None:
    """The subscription is nowhere in a plan that creates everything; ids that the file states stay."""
    placed = one(kind, SPECIMENS[kind], ALONE)

    assert placed.resource["id"].startswith(("/subscriptions/{subscription}/resourceGroups/rg-ml", SUBSCRIPTION))
    assert ("/id" in placed.unreadable) == placed.resource["id"].startswith("/subscriptions/{")


@pytest.mark.parametrize(
    ("kind", "values", "pointer", "why"),
    [
        (f"{ML}_compute_cluster", {"vm_size": 4}, f"{C}/vmSize", "`vm_size` is `4`; it should be text"),
        (f"{ML}_compute_cluster", {"local_auth_enabled": "maybe"}, "/properties/disableLocalAuth", "true or false"),
        (
            f"{ML}_workspace",
            {"public_network_access_enabled": "no"},
            "/properties/publicNetworkAccess",
            "true or false",
        ),
        (f"{ML}_compute_instance", {"ssh": True}, f"{C}/sshSettings/sshPublicAccess", "a block"),
        (f"{ML}_workspace", {"identity": [{"identity_ids": 1}]}, "/identity/userAssignedIdentities", "a list of ids"),
        ("azurerm_container_group", {"container": [1]}, "/properties/containers", "a list of blocks"),
        (
            "azurerm_container_group",
            {"container": [{"image": 1}]},
            "/properties/containers",
            "in which `image` is `1`; it should be text",
        ),
        ("azurerm_container_group", {"subnet_ids": [1]}, "/properties/subnetIds", "a list of ids"),
        ("azurerm_role_definition", {"permissions": "*"}, "/properties/permissions", "a list of blocks"),
    ],
)
def test_unfit_values_are_unreadable(kind: str, values: JsonObject, pointer: str, why: str) -> None:
    """A value that the attribute cannot have is left out, with the reason."""
    placed = one(kind, {**SPECIMENS[kind], **values})

    assert at(placed, pointer) is ...
    assert why in placed.unreadable[pointer]


#: What policies inspect of each kind and the provider cannot state, so that they are unknown.
#: Of each workspace.
ADDRESSES = {
    "/properties/ipAllowlist",
    "/properties/networkAcls/ipRules",
    "/properties/privateEndpointConnections",
}
#: Of each workspace that is no `azurerm_machine_learning_workspace`.
FOUNDRY = {
    *ADDRESSES,
    "/properties/allowPublicAccessWhenBehindVnet",
    "/properties/serverlessComputeSettings/serverlessComputeCustomSubnet",
    "/properties/serverlessComputeSettings/serverlessComputeNoPublicIP",
    "/properties/systemDatastoresAuthMode",
    "/properties/v1LegacyMode",
}
#: Of each compute; policies of computes look at fields of all types of them.
COMPUTE = {
    f"{C}/applicationSharingPolicy",
    f"{C}/connectivityEndpoints/publicIpAddress",
    f"{C}/customServices",
    f"{C}/osImageMetadata/isLatestOsImageVersion",
    f"{C}/setupScripts/scripts/creationScript/scriptData",
    f"{C}/setupScripts/scripts/creationScript/scriptSource",
}
GAPS: dict[str, set[str]] = {
    f"{ML}_workspace": {*ADDRESSES, "/properties/hubResourceId", "/properties/managedNetwork/status/status"},
    "azurerm_ai_foundry": {*FOUNDRY, "/properties/hubResourceId", "/properties/managedNetwork/status/status"},
    "azurerm_ai_foundry_project": {
        *FOUNDRY,
        "/properties/applicationInsights",
        "/properties/containerRegistry",
        "/properties/encryption/keyVaultProperties/keyIdentifier",
        "/properties/encryption/status",
        "/properties/keyVault",
        "/properties/storageAccount",
    },
    f"{ML}_compute_cluster": {*COMPUTE, f"{C}/sshSettings/sshPublicAccess"},
    f"{ML}_compute_instance": {
        *COMPUTE,
        f"{C}/remoteLoginPortPublicAccess",
        f"{C}/idleTimeBeforeShutdown",
        f"{C}/lastOperation/operationTime",
        f"{C}/lastOperation/operationTrigger",
        f"{C}/schedules/computeStartStop",
        f"{C}/state",
    },
    f"{ML}_inference_cluster": {
        *COMPUTE,
        f"{C}/enableNodePublicIp",
        f"{C}/remoteLoginPortPublicAccess",
        f"{C}/sshSettings/sshPublicAccess",
    },
    f"{ML}_synapse_spark": set(),
    "azurerm_kubernetes_cluster": {"/properties/powerState/code"},
    "azurerm_container_group": {"/sourceId"},
    "azurerm_role_assignment": set(),
    "azurerm_role_definition": {"/properties/roleType"},
}


@pytest.mark.parametrize("kind", GAPS)
def test_declared_gaps_are_those_that_policies_meet(kind: str) -> None:
    """For each kind: the pointers that our policies inspect and that are neither carried nor foreign to the kind."""
    placed = one(kind, SPECIMENS[kind])
    carried = placed.carried
    assert carried is not None
    bundle = load_bundle()
    inspected = {
        pointer
        for policy in bundle.policies
        for target in policy.header.judges
        if target.type.lower() == placed.resource["type"].lower()
        for pointer in observe(bundle, policy).own
        if "/*" not in pointer
    }

    gaps = {
        pointer
        for pointer in inspected
        if not any(overlap(pointer, known) for known in carried.pointers) and at(placed, pointer) is ...
    }
    assert gaps == GAPS[kind]


@pytest.mark.parametrize("looked_up", [True, False])
def test_an_attached_cluster_is_where_the_cluster_is(looked_up: bool) -> None:
    """The provider sends its location; nothing of its nodes and its network."""
    inference = resource(f"{ML}_inference_cluster", INFERENCE)
    mode = "data" if looked_up else "managed"
    cluster = resource("azurerm_kubernetes_cluster", {**AKS, "id": AKS_ID, "location": "eastus"}, mode=mode)
    prior = {"prior_state": {"values": {"root_module": {"resources": [cluster]}}}} if looked_up else {}
    placed = read(plan([inference] if looked_up else [inference, cluster]) | prior).resources[0]

    assert at(placed, "/properties/computeLocation") == "eastus"
    assert (at(placed, "/location"), at(placed, f"{C}/agentCount")) == ("westeurope", ...)
    assert not placed.unreadable
    alone = one(f"{ML}_inference_cluster", INFERENCE).unreadable["/properties/computeLocation"]
    assert alone.startswith("it is the `location` of the resource that `kubernetes_cluster_id` names, which is not")


STATED: JsonObject = {**CLUSTER, "id": f"{WORKSPACE_ID}/computes/cpu", "ssh_public_access_enabled": True}


@pytest.mark.parametrize(
    ("document", "pointer", "attributes"),
    [
        (
            state([resource(f"{ML}_compute_cluster", STATED)]),
            "/values/root_module/resources/0",
            "/values/root_module/resources/0/values",
        ),
        (
            state_file(f"{ML}_compute_cluster", STATED),
            "/resources/0/instances/0",
            "/resources/0/instances/0/attributes",
        ),
        (
            plan([resource(f"{ML}_compute_cluster", STATED)]),
            "/planned_values/root_module/resources/0",
            "/planned_values/root_module/resources/0/values",
        ),
    ],
)
def test_plans_and_states_give_the_same(document: JsonObject, pointer: str, attributes: str) -> None:
    """The three forms give the same resource, each with its own places."""
    [placed] = read(document, ALONE).resources

    assert placed.resource["id"] == STATED["id"]
    assert "/id" not in placed.unreadable
    assert at(placed, f"{C}/remoteLoginPortPublicAccess") == "Enabled"
    assert placed.pointer == pointer
    assert placed.fields[f"{C}/vmSize"] == f"{attributes}/vm_size"
    assert placed.fields[f"{C}/scaleSettings/minNodeCount"] == f"{attributes}/scale_settings/0/min_node_count"


def test_modules_and_keys_are_looked_into() -> None:
    """Child modules at any depth, `count` and `for_each`."""
    inner = resource(f"{ML}_compute_cluster", {**CLUSTER, "name": "a"}, index="a", module='module.x["k"].module.y')
    outer = resource(f"{ML}_compute_cluster", {**CLUSTER, "name": "b"}, index=0, module='module.x["k"]')
    document = plan([])
    document["planned_values"]["root_module"] = {
        "child_modules": [
            {
                "address": 'module.x["k"]',
                "resources": [outer],
                "child_modules": [{"address": 'module.x["k"].module.y', "resources": [inner]}],
            }
        ]
    }

    assert [placed.resource["name"] for placed in read(document).resources] == ["b", "a"]
    assert read(document).resources[1].pointer.endswith("/child_modules/0/child_modules/0/resources/0")


def test_data_sources_are_not_evaluated() -> None:
    """Resources that are only looked up are context."""
    looked_up = resource(f"{ML}_workspace", {**WORKSPACE, "id": WORKSPACE_ID}, mode="data")

    assert read(plan([looked_up])).resources == ()
    assert read(state([looked_up])).nothing == "a Terraform document without resources"


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"format_version": "2.0", "planned_values": {}}, "unsupported Terraform format version `2.0`"),
        ({"format_version": "x", "planned_values": {}}, "unsupported Terraform format version `x`"),
        ({"format_version": "1.0", "resource_changes": []}, "a plan without `planned_values`"),
        ({"version": 3, "serial": 1, "lineage": "l", "modules": []}, "a state file whose `version` is not 4"),
        ({"version": 4, "serial": 1, "lineage": "l", "resources": {}}, "a state file without a list of `resources`"),
        ({"@level": "info", "@message": "m", "@timestamp": "t"}, "the log of `terraform plan -json`, not the plan"),
        ({"serial": 1, "encrypted_data": "x", "encryption_version": "v0"}, "an encrypted state"),
        ({"resource": {f"{ML}_workspace": {"a": {}}}, "terraform": {}}, "Terraform configuration, not a plan"),
    ],
)
def test_unreadable_documents_are_refused_with_the_command(document: JsonObject, message: str) -> None:
    """Other versions, logs, encrypted states and configuration."""
    [refusal] = read(document).refusals

    assert refusal.message.startswith(message)
    assert refusal.remedy


@pytest.mark.parametrize(
    "document",
    [
        {},
        [],
        None,
        {"format_version": "1.0", "provider_schemas": {}},
        {"format_version": 1, "planned_values": {}},
        {"version": 4, "resources": []},
        {"version": True, "serial": 1, "lineage": "l", "resources": []},
        {"resource": {"x": 1}},
        {"resource": {}},
        {"values": {"root_module": {}}},
    ],
)
def test_other_documents_are_not_taken(document: object) -> None:
    """Detection is exact; reading such a document refuses it."""
    assert not terraform.detect(document)
    assert len(terraform.read(document).refusals) == 1


@pytest.mark.parametrize("suffix", ["", "\n"])
def test_a_log_of_several_lines_is_refused_with_the_command(tmp_path: Path, suffix: str) -> None:
    """`terraform plan -json` logs a line for each step, which is no JSON document."""
    line = '{"@level":"info","@message":"Plan","@timestamp":"t"}'
    file = tmp_path / "plan.json"
    file.write_text(f"{line}\n{line}{suffix}", encoding="utf-8")

    [problem] = read_inputs([file]).problems
    assert "the log of `terraform plan -json`, not the plan; give the output of `terraform plan -out" in problem.message


@pytest.mark.parametrize(
    ("document", "nothing"),
    [
        ({"format_version": "1.0"}, "an empty Terraform state"),
        ({"format_version": "1.0", "terraform_version": "1.9.5"}, "an empty Terraform state"),
        (plan([]), "a Terraform document without resources"),
        (plan([resource("azurerm_firewall", {})]), "Terraform resources that no policy checks: `azurerm_firewall`"),
    ],
)
def test_documents_without_anything_to_evaluate_state_it(document: JsonObject, nothing: str) -> None:
    """They are understood, and have nothing to evaluate."""
    assert read(document).nothing == nothing


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({"errored": True}, "the plan ended with an error"),
        ({"complete": False}, "the plan is not complete"),
        ({"deferred_changes": [{}]}, "the plan defers changes"),
    ],
)
def test_a_plan_that_is_not_whole_is_incomplete(more: JsonObject, line: str) -> None:
    """Policies that need all of a workspace must know."""
    [reason] = read(plan([resource(f"{ML}_workspace", WORKSPACE)], **more)).incomplete

    assert line in reason


def test_unknown_machine_learning_resources_are_named() -> None:
    """They may be what a policy evaluates, so the reading is incomplete."""
    entry = resource(f"{ML}_online_endpoint", {"name": "e"})
    reading = read(plan([entry, resource(f"{ML}_workspace", WORKSPACE)]))

    [remark] = reading.remarks
    assert remark.place == "/planned_values/root_module/resources/0"
    assert f"`{ML}_online_endpoint` is not supported" in remark.message
    assert [remark.message in line for line in reading.incomplete] == [True]


def test_rules_of_the_managed_network_are_joined_into_the_workspace() -> None:
    """Three resources of their own are entries of `outboundRules`, with their places."""
    rule = f"{ML}_workspace_network_outbound_rule"
    reading = read(
        plan(
            [
                resource(f"{rule}_fqdn", {"name": "py", "workspace_id": WORKSPACE_ID, "destination_fqdn": "pypi.org"}),
                resource(f"{ML}_workspace", {**WORKSPACE, "managed_network": [{"isolation_mode": "Disabled"}]}),
                resource(
                    f"{rule}_service_tag",
                    {
                        "name": "tag",
                        "workspace_id": WORKSPACE_ID.upper(),
                        "service_tag": "AppService",
                        "protocol": "TCP",
                        "port_ranges": "443",
                    },
                ),
                resource(
                    f"{rule}_private_endpoint",
                    {
                        "name": "pe",
                        "workspace_id": WORKSPACE_ID,
                        "service_resource_id": "/sa",
                        "sub_resource_target": "blob",
                        "spark_enabled": False,
                    },
                ),
            ]
        )
    )

    [placed] = reading.resources
    user = {"category": "UserDefined"}
    assert at(placed, "/properties/managedNetwork") == {
        "isolationMode": "Disabled",
        "outboundRules": {
            "py": {"type": "FQDN", "destination": "pypi.org", **user},
            "tag": {
                "type": "ServiceTag",
                "destination": {"serviceTag": "AppService", "protocol": "TCP", "portRanges": "443"},
                **user,
            },
            "pe": {
                "type": "PrivateEndpoint",
                "destination": {"serviceResourceId": "/sa", "subresourceTarget": "blob", "sparkEnabled": False},
                **user,
            },
        },
    }
    place = placed.fields["/properties/managedNetwork/outboundRules/py/destination"]
    assert place == "/planned_values/root_module/resources/0/values/destination_fqdn"


def test_node_pools_are_joined_into_their_cluster() -> None:
    """A pool of its own comes after the default one; that of a cluster elsewhere stays alone."""
    pool = {"name": "gpu", "vm_size": "Standard_NC6s_v3", "node_count": 1, "priority": "Spot"}
    reading = read(
        plan(
            [
                resource("azurerm_kubernetes_cluster", AKS),
                resource("azurerm_kubernetes_cluster_node_pool", {**pool, "kubernetes_cluster_id": AKS_ID}),
                resource("azurerm_kubernetes_cluster_node_pool", {**pool, "kubernetes_cluster_id": f"{AKS_ID}2"}, "b"),
            ]
        )
    )

    cluster, alone = reading.resources
    gpu = {"name": "gpu", "vmSize": "Standard_NC6s_v3", "count": 1, "scaleSetPriority": "Spot"}
    assert at(cluster, "/properties/agentPoolProfiles/1") == gpu
    assert cluster.fields["/properties/agentPoolProfiles/1/vmSize"].endswith("/resources/1/values/vm_size")
    assert alone.resource["id"] == f"{AKS_ID}2/agentPools/gpu"


def test_a_finding_points_at_the_attribute(tmp_path: Path) -> None:
    """Line and column are those of `values.scale_settings[0].min_node_count` in the plan."""
    file = tmp_path / "plan.json"
    text = """{
  "format_version": "1.2",
  "planned_values": {"root_module": {"resources": [
    {
      "address": "azurerm_machine_learning_compute_cluster.cpu",
      "mode": "managed", "type": "azurerm_machine_learning_compute_cluster", "name": "cpu",
      "values": {
        "name": "cpu", "machine_learning_workspace_id": "WORKSPACE",
        "scale_settings": [{"max_node_count": 4,
          "min_node_count": 1}],
        "vm_size": "Standard_D4s_v3"
      }
    }
  ]}}
}"""
    file.write_text(text.replace("WORKSPACE", WORKSPACE_ID), encoding="utf-8")
    inputs = read_inputs([file])
    evaluation = evaluate(load_bundle(), inputs.snapshot)
    [finding] = [one for one in evaluation.findings if one.policy == "AML-CMP-008"]

    place = finding.location.fields[f"{C}/scaleSettings/minNodeCount"]
    lines = text.splitlines()
    assert finding.outcome == "fail"
    assert finding.location.line == 4
    assert lines[place.line - 1][place.column - 1 :].startswith(("1}", '"min_node_count"'))


def test_the_format_is_registered_before_arm() -> None:
    """A plan has keys that no other format takes, and the reverse."""
    document = plan([resource(f"{ML}_workspace", WORKSPACE)], [change(resource(f"{ML}_workspace", WORKSPACE))])

    assert [name for name, each in FORMATS.items() if each.detect(document)] == ["terraform"]
