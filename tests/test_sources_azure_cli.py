"""Files of the Azure CLI: every field into ARM shape, defaults, unknown values, and the places of fields."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from policyeng import evaluate
from policyeng.bundle import Bundle
from policyeng.evaluation.pointers import has_value, value_at
from policyeng.models import JsonObject, Outcome, lowered
from policyeng.sources import FORMATS, azure_cli, read_inputs
from policyeng.sources.arm_resource import service_made
from policyeng.sources.azure_cli.converter import NOT_CARRIED, UNKNOWN_ID
from policyeng.sources.parsed import Placed, Surroundings, remark
from policyeng.testing.observed_reads import observe
from tests.effort import effort
from tests.writers import azure_cli as writer

GROUP = "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/rg-ml"
ML = f"{GROUP}/providers/Microsoft.MachineLearningServices"
WORKSPACE = f"{ML}/workspaces/ws"
AROUND = Surroundings(scope=GROUP, workspace=WORKSPACE)
ID = "/subscriptions/s/resourceGroups/g/providers/Microsoft.X/y/z"
P, C = "/properties", "/properties/properties"

CLUSTER: JsonObject = {"name": "c", "type": "amlcompute"}
INSTANCE: JsonObject = {"name": "i", "type": "computeinstance"}
KUBERNETES: JsonObject = {"name": "k", "type": "kubernetes", "resource_id": ID}
MACHINE: JsonObject = {"name": "v", "type": "virtualmachine", "resource_id": ID}
SPARK: JsonObject = {"name": "s", "type": "synapsespark", "resource_id": ID}
HOME: JsonObject = {"$schema": "https://azuremlschemas.azureedge.net/latest/workspace.schema.json ", "name": "ws"}
STORE: JsonObject = {"name": "d", "type": "azure_blob", "account_name": "a"}
LINK: JsonObject = {"name": "l", "type": "git", "target": "https://x"}
REGISTRY: JsonObject = {"name": "r", "replication_locations": [{"location": "East US"}, {"location": "westus"}]}


def one(document: JsonObject, around: Surroundings = AROUND) -> Placed:
    """The only resource of a file."""
    reading = azure_cli.read(document, around)
    assert reading.refusals == ()
    [placed] = reading.resources
    assert placed.resource["id"]
    return placed


def schedule(**trigger: object) -> JsonObject:
    """A file's schedules with one that stops an instance."""
    return {"compute_start_stop": [{"action": "stop", "trigger": trigger}]}


def rule(**stated: object) -> JsonObject:
    """A file's managed network with one rule."""
    return {"isolation_mode": "disabled", "outbound_rules": [{"name": "r", **stated}]}


UAI = "/subscriptions/s/resourceGroups/g/providers/Microsoft.ManagedIdentity/userAssignedIdentities/u"
SERVICE_TAG = {
    "service_tag": "DataFactory",
    "protocol": "TCP",
    "port_ranges": "80, 8080",
    "address_prefixes": ["1.0.0.0"],
}
ENDPOINT = {"service_resource_id": ID, "spark_enabled": True, "subresource_target": "blob"}
SERVERLESS = f"{P}/serverlessComputeSettings"

#: A file, an addition to it, an ARM pointer, and the value there then; both sides of inverted or renamed fields.
ROWS: list[tuple[JsonObject, JsonObject, str, object]] = [
    (CLUSTER, {}, "/name", "c"),
    (CLUSTER, {"name": 7}, "/name", "7"),
    (CLUSTER, {}, f"{P}/computeType", "AmlCompute"),
    (CLUSTER, {}, f"{P}/isAttachedCompute", False),
    (CLUSTER, {"location": "East US"}, "/location", "eastus"),
    (CLUSTER, {"description": "x"}, f"{P}/description", "x"),
    (CLUSTER, {"tags": {"owner": "me", "cost": 7}}, "/tags", {"owner": "me", "cost": "7"}),
    (CLUSTER, {"identity": {"type": "system_assigned"}}, "/identity/type", "SystemAssigned"),
    (CLUSTER, {"identity": {"type": "SystemAssigned, UserAssigned"}}, "/identity/type", "SystemAssigned,UserAssigned"),
    (CLUSTER, {"identity": {"type": "none"}}, "/identity/type", "None"),
    (
        CLUSTER,
        {"identity": {"type": "user_assigned", "user_assigned_identities": [{"resource_id": UAI}]}},
        "/identity",
        {"type": "UserAssigned", "userAssignedIdentities": {UAI: {}}},
    ),
    (CLUSTER, {"size": "Standard_D2"}, f"{C}/vmSize", "Standard_D2"),
    (CLUSTER, {"tier": "low_priority"}, f"{C}/vmPriority", "LowPriority"),
    (CLUSTER, {"tier": "Dedicated"}, f"{C}/vmPriority", "Dedicated"),
    (CLUSTER, {"min_instances": 2}, f"{C}/scaleSettings/minNodeCount", 2),
    (CLUSTER, {"max_instances": "3"}, f"{C}/scaleSettings/maxNodeCount", 3),
    (CLUSTER, {"idle_time_before_scale_down": 300}, f"{C}/scaleSettings/nodeIdleTimeBeforeScaleDown", "PT300S"),
    (CLUSTER, {"enable_node_public_ip": False}, f"{C}/enableNodePublicIp", False),
    (CLUSTER, {"enable_node_public_ip": True}, f"{C}/enableNodePublicIp", True),
    (CLUSTER, {"ssh_public_access_enabled": True}, f"{C}/remoteLoginPortPublicAccess", "Enabled"),
    (CLUSTER, {"ssh_public_access_enabled": False}, f"{C}/remoteLoginPortPublicAccess", "Disabled"),
    (CLUSTER, {"ssh_settings": {"admin_username": "a"}}, f"{C}/userAccountCredentials/adminUserName", "a"),
    (CLUSTER, {"ssh_settings": {"ssh_key_value": "k"}}, f"{C}/userAccountCredentials/adminUserSshPublicKey", "k"),
    (CLUSTER, {"network_settings": {"subnet": f"{ID}/subnets/s"}}, f"{C}/subnet/id", f"{ID}/subnets/s"),
    (
        CLUSTER,
        {"network_settings": {"vnet_name": "v", "subnet": "s"}},
        f"{C}/subnet/id",
        f"{GROUP}/providers/Microsoft.Network/virtualNetworks/v/subnets/s",
    ),
    (INSTANCE, {}, f"{P}/computeType", "ComputeInstance"),
    (INSTANCE, {"size": "s"}, f"{C}/vmSize", "s"),
    (INSTANCE, {"enable_node_public_ip": False}, f"{C}/enableNodePublicIp", False),
    (INSTANCE, {"ssh_public_access_enabled": True}, f"{C}/sshSettings/sshPublicAccess", "Enabled"),
    (INSTANCE, {"ssh_public_access_enabled": False}, f"{C}/sshSettings/sshPublicAccess", "Disabled"),
    (INSTANCE, {"ssh_settings": {"ssh_key_value": "k"}}, f"{C}/sshSettings/adminPublicKey", "k"),
    (INSTANCE, {"ssh_settings": {"ssh_key_value": "k"}}, f"{C}/sshSettings/sshPublicAccess", "Disabled"),
    (INSTANCE, {"idle_time_before_shutdown_minutes": 30}, f"{C}/idleTimeBeforeShutdown", "PT30M"),
    (INSTANCE, {"idle_time_before_shutdown": "PT45M"}, f"{C}/idleTimeBeforeShutdown", "PT45M"),
    (
        INSTANCE,
        {"idle_time_before_shutdown_minutes": 30, "idle_time_before_shutdown": "PT45M"},
        f"{C}/idleTimeBeforeShutdown",
        "PT30M",
    ),
    (
        INSTANCE,
        {"create_on_behalf_of": {"user_object_id": "o", "user_tenant_id": "t"}},
        f"{C}/personalComputeInstanceSettings/assignedUser",
        {"objectId": "o", "tenantId": "t"},
    ),
    (INSTANCE, {"create_on_behalf_of": {}}, f"{C}/computeInstanceAuthorizationType", "personal"),
    (
        INSTANCE,
        {"setup_scripts": {"creation_script": {"path": "Users/a/setup.sh", "command": "-v 3", "timeout_minutes": 20}}},
        f"{C}/setupScripts/scripts",
        {
            "creationScript": {
                "scriptSource": "workspaceStorage",
                "scriptData": "Users/a/setup.sh",
                "scriptArguments": "-v 3",
                "timeout": "20m",
            }
        },
    ),
    (
        INSTANCE,
        {"setup_scripts": {"startup_script": {"path": "start.sh"}}},
        f"{C}/setupScripts/scripts",
        {"startupScript": {"scriptSource": "workspaceStorage", "scriptData": "start.sh"}},
    ),
    (
        INSTANCE,
        {
            "custom_applications": [
                {
                    "name": "rstudio",
                    "type": "Docker",
                    "image": {"reference": "rocker/rstudio:4.4"},
                    "endpoints": [{"target": 8787, "published": 8787}],
                    "environment_variables": {"LANG": "C"},
                    "bind_mounts": [{"source": "/home", "target": "/data"}],
                }
            ]
        },
        f"{C}/customServices",
        [
            {
                "name": "rstudio",
                "type": "docker",
                "image": {"type": "docker", "reference": "rocker/rstudio:4.4"},
                "endpoints": [{"name": "connect", "protocol": "http", "target": 8787, "published": 8787}],
                "environmentVariables": {"LANG": {"type": "local", "value": "C"}},
                "volumes": [{"type": "bind", "readOnly": False, "source": "/home", "target": "/data"}],
                "docker": {"privileged": True},
            }
        ],
    ),
    (INSTANCE, {"enable_sso": False}, f"{C}/enableSSO", False),
    (INSTANCE, {"enable_root_access": False}, f"{C}/enableRootAccess", False),
    (INSTANCE, {"enable_os_patching": True}, f"{C}/enableOSPatching", True),
    (INSTANCE, {"release_quota_on_stop": True}, f"{C}/releaseQuotaOnStop", True),
    (
        INSTANCE,
        {"schedules": schedule(type="cron", expression="0 18 * * *", start_time="t", time_zone="W. Europe")},
        f"{C}/schedules/computeStartStop",
        [
            {
                "action": "Stop",
                "status": "Enabled",
                "triggerType": "Cron",
                "cron": {"expression": "0 18 * * *", "startTime": "t", "timeZone": "W. Europe"},
            }
        ],
    ),
    (
        INSTANCE,
        {
            "schedules": schedule(
                type="recurrence", frequency="day", interval=1, schedule={"hours": [1], "minutes": [0]}
            )
        },
        f"{C}/schedules/computeStartStop/0/recurrence",
        {"frequency": "Day", "interval": 1, "schedule": {"hours": [1], "minutes": [0]}, "timeZone": "UTC"},
    ),
    (KUBERNETES, {}, f"{P}/computeType", "Kubernetes"),
    (KUBERNETES, {}, f"{P}/isAttachedCompute", True),
    (KUBERNETES, {}, f"{P}/resourceId", ID),
    (KUBERNETES, {}, f"{C}/namespace", "default"),
    (KUBERNETES, {"namespace": "ml"}, f"{C}/namespace", "ml"),
    (KUBERNETES, {"properties": {"instance_types": {"a_b": {}}}}, f"{C}/instanceTypes", {"a_b": {}}),
    (KUBERNETES, {"properties": {"defaultInstanceType": "d"}}, f"{C}/defaultInstanceType", "d"),
    (MACHINE, {}, f"{P}/computeType", "VirtualMachine"),
    (MACHINE, {"ssh_settings": {"admin_username": "a"}}, f"{C}/administratorAccount/username", "a"),
    (MACHINE, {"ssh_settings": {"admin_username": "a"}}, f"{C}/sshPort", 22),
    (MACHINE, {"ssh_settings": {"ssh_port": 2222}}, f"{C}/sshPort", 2222),
    (SPARK, {}, f"{P}/computeType", "SynapseSpark"),
    (SPARK, {}, f"{P}/resourceId", ID),
    (HOME, {}, "/name", "ws"),
    (HOME, {}, "/kind", "Default"),
    (HOME, {"kind": "hub"}, "/kind", "Hub"),
    (HOME, {"hub_id": ID}, "/kind", "Project"),
    (HOME, {"hub_id": ID}, f"{P}/hubResourceId", ID),
    (HOME, {"workspace_hub": ID}, f"{P}/hubResourceId", ID),
    (HOME, {"$schema": "http://azureml/sdk-2-0/FeatureStore.json"}, "/kind", "FeatureStore"),
    (HOME, {"$schema": "http://azureml/sdk-2-0/FeatureStore.json"}, f"{P}/systemDatastoresAuthMode", "identity"),
    (HOME, {"offline_store": {}}, "/kind", "FeatureStore"),
    (HOME, {"location": "eastus"}, "/location", "eastus"),
    (HOME, {"tags": {"a": "b"}}, "/tags", {"a": "b"}),
    (
        HOME,
        {"identity": {"type": "user_assigned", "user_assigned_identities": {UAI: None}}},
        "/identity/type",
        "UserAssigned",
    ),
    (
        HOME,
        {"identity": {"type": "user_assigned", "user_assigned_identities": {UAI: {"client_id": "x"}}}},
        "/identity/userAssignedIdentities",
        {UAI: {"clientId": "x"}},
    ),
    (HOME, {"display_name": "x"}, f"{P}/friendlyName", "x"),
    (HOME, {"description": "x"}, f"{P}/description", "x"),
    (HOME, {"discovery_url": "x"}, f"{P}/discoveryUrl", "x"),
    (HOME, {"hbi_workspace": True}, f"{P}/hbiWorkspace", True),
    (HOME, {"hbi_workspace": "False"}, f"{P}/hbiWorkspace", False),
    (HOME, {"storage_account": ID}, f"{P}/storageAccount", ID),
    (HOME, {"container_registry": ID}, f"{P}/containerRegistry", ID),
    (HOME, {"key_vault": ID}, f"{P}/keyVault", ID),
    (HOME, {"application_insights": ID}, f"{P}/applicationInsights", ID),
    (HOME, {"customer_managed_key": {"key_vault": ID}}, f"{P}/encryption/keyVaultProperties/keyVaultArmId", ID),
    (HOME, {"customer_managed_key": {"key_uri": "u"}}, f"{P}/encryption/keyVaultProperties/keyIdentifier", "u"),
    (HOME, {"customer_managed_key": {"key_uri": "u"}}, f"{P}/encryption/status", "Enabled"),
    (HOME, {"customer_managed_key": {"cosmosdb_id": ID}}, f"{P}/encryption/cosmosDbResourceId", ID),
    (HOME, {"customer_managed_key": {"storage_id": ID}}, f"{P}/encryption/storageAccountResourceId", ID),
    (HOME, {"customer_managed_key": {"search_id": ID}}, f"{P}/encryption/searchAccountResourceId", ID),
    (HOME, {"image_build_compute": "x"}, f"{P}/imageBuildCompute", "x"),
    (HOME, {"public_network_access": "disabled"}, f"{P}/publicNetworkAccess", "Disabled"),
    (HOME, {"public_network_access": "Enabled"}, f"{P}/publicNetworkAccess", "Enabled"),
    (HOME, {"network_acls": {"default_action": "deny"}}, f"{P}/networkAcls/defaultAction", "Deny"),
    (HOME, {"network_acls": {"ip_rules": [{"value": "1.1.1.1"}]}}, f"{P}/networkAcls/ipRules", [{"value": "1.1.1.1"}]),
    (HOME, {"system_datastores_auth_mode": "identity"}, f"{P}/systemDatastoresAuthMode", "identity"),
    (HOME, {"primary_user_assigned_identity": ID}, f"{P}/primaryUserAssignedIdentity", ID),
    (HOME, {"managed_network": {"isolation_mode": "disabled"}}, f"{P}/managedNetwork/isolationMode", "Disabled"),
    (
        HOME,
        {"managed_network": {"isolation_mode": "allow_internet_outbound"}},
        f"{P}/managedNetwork/isolationMode",
        "AllowInternetOutbound",
    ),
    (
        HOME,
        {"managed_network": {"isolation_mode": "allow_only_approved_outbound"}},
        f"{P}/managedNetwork",
        {"isolationMode": "AllowOnlyApprovedOutbound", "firewallSku": "Standard"},
    ),
    (HOME, {"managed_network": {"firewall_sku": "basic"}}, f"{P}/managedNetwork/firewallSku", "Basic"),
    (HOME, {"managed_network": {"outbound_rules": []}}, f"{P}/managedNetwork/outboundRules", {}),
    (
        HOME,
        {"managed_network": rule(type="fqdn", destination="x.com")},
        f"{P}/managedNetwork/outboundRules/r",
        {"type": "FQDN", "category": "UserDefined", "destination": "x.com"},
    ),
    (
        HOME,
        {"managed_network": rule(type="private_endpoint", destination=ENDPOINT, fqdns=["x"])},
        f"{P}/managedNetwork/outboundRules/r",
        {
            "type": "PrivateEndpoint",
            "category": "UserDefined",
            "fqdns": ["x"],
            "destination": {"serviceResourceId": ID, "sparkEnabled": True, "subresourceTarget": "blob"},
        },
    ),
    (
        HOME,
        {"managed_network": rule(type="service_tag", destination=SERVICE_TAG)},
        f"{P}/managedNetwork/outboundRules/r/destination",
        {"serviceTag": "DataFactory", "protocol": "TCP", "portRanges": "80, 8080", "addressPrefixes": ["1.0.0.0"]},
    ),
    (HOME, {"provision_network_now": True}, f"{P}/provisionNetworkNow", True),
    (HOME, {"enable_data_isolation": True}, f"{P}/enableDataIsolation", True),
    (HOME, {"allow_roleassignment_on_rg": False}, f"{P}/allowRoleAssignmentOnRG", False),
    (HOME, {"serverless_compute": {"custom_subnet": ID}}, f"{SERVERLESS}/serverlessComputeCustomSubnet", ID),
    (HOME, {"serverless_compute": {"custom_subnet": ID}}, f"{SERVERLESS}/serverlessComputeNoPublicIP", False),
    (HOME, {"serverless_compute": {"no_public_ip": True}}, f"{SERVERLESS}/serverlessComputeNoPublicIP", True),
    (
        HOME,
        {"$schema": "http://azureml/sdk-2-0/hub.json", "default_resource_group": ID},
        f"{P}/workspaceHubConfig/defaultWorkspaceResourceGroup",
        ID,
    ),
    (
        HOME,
        {"offline_store": {}, "compute_runtime": {"spark_runtime_version": "3.4"}},
        f"{P}/featureStoreSettings/computeRuntime/sparkRuntimeVersion",
        "3.4",
    ),
    (STORE, {}, "/name", "d"),
    (STORE, {}, f"{P}/datastoreType", "AzureBlob"),
    (STORE, {}, f"{P}/accountName", "a"),
    (STORE, {"type": "azure_data_lake_gen2"}, f"{P}/datastoreType", "AzureDataLakeGen2"),
    (STORE, {"description": "x"}, f"{P}/description", "x"),
    (STORE, {"tags": {"a": "b"}}, f"{P}/tags", {"a": "b"}),
    (STORE, {"container_name": "x"}, f"{P}/containerName", "x"),
    (STORE, {"file_share_name": "x"}, f"{P}/fileShareName", "x"),
    (STORE, {"filesystem": "x"}, f"{P}/filesystem", "x"),
    (STORE, {"store_name": "x"}, f"{P}/storeName", "x"),
    (STORE, {"name_node_address": "x"}, f"{P}/nameNodeAddress", "x"),
    (STORE, {"one_lake_workspace_name": "x"}, f"{P}/oneLakeWorkspaceName", "x"),
    (STORE, {"artifact": {"name": "x"}}, f"{P}/artifact/artifactName", "x"),
    (STORE, {"artifact": {"type": "lake_house"}}, f"{P}/artifact/artifactType", "LakeHouse"),
    (STORE, {"endpoint": "x"}, f"{P}/endpoint", "x"),
    (STORE, {"protocol": "https"}, f"{P}/protocol", "https"),
    (STORE, {}, f"{P}/credentials", {"credentialsType": "None"}),
    (STORE, {"credentials": {}}, f"{P}/credentials", {"credentialsType": "None"}),
    (STORE, {"credentials": {"account_key": "secret"}}, f"{P}/credentials", {"credentialsType": "AccountKey"}),
    (STORE, {"credentials": {"sas_token": "secret"}}, f"{P}/credentials/credentialsType", "Sas"),
    (STORE, {"credentials": {"client_secret": "s"}}, f"{P}/credentials/credentialsType", "ServicePrincipal"),
    (STORE, {"credentials": {"thumbprint": "s"}}, f"{P}/credentials/credentialsType", "Certificate"),
    (LINK, {}, "/name", "l"),
    (LINK, {}, f"{P}/category", "Git"),
    (LINK, {"type": "azure_ai_search"}, f"{P}/category", "CognitiveSearch"),
    (LINK, {}, f"{P}/target", "https://x"),
    (LINK, {"credentials": {"type": "pat", "pat": "secret"}}, f"{P}/authType", "PAT"),
    (LINK, {"credentials": {"type": "username_password"}}, f"{P}/authType", "UsernamePassword"),
    (LINK, {"credentials": {"type": "managed_identity", "resource_id": ID}}, f"{P}/credentials/resourceId", ID),
    (LINK, {"credentials": {"type": "managed_identity", "client_id": "x"}}, f"{P}/credentials/clientId", "x"),
    (LINK, {}, f"{P}/authType", "None"),
    (LINK, {"type": "azure_blob"}, f"{P}/authType", "AAD"),
    *(
        (LINK, {"credentials": {"type": "pat", key: "x"}}, f"{P}/credentials/{member}", "x")
        for key, member in (
            ("access_key_id", "accessKeyId"),
            ("account_key", "key"),
            ("client_secret", "clientSecret"),
            ("key", "key"),
            ("password", "password"),
            ("pat", "pat"),
            ("sas_token", "sas"),
            ("secret_access_key", "secretAccessKey"),
            ("tenant_id", "tenantId"),
            ("username", "username"),
        )
    ),
    *(
        (LINK, {"type": kind, **keys}, pointer, value)
        for kind in (
            *("api_key", "azure_ai_search", "azure_ai_services", "azure_content_safety", "azure_open_ai"),
            *("azure_speech_services", "open_ai", "serp", "serverless"),
        )
        for keys, pointer, value in (
            ({"api_key": "x"}, f"{P}/authType", "ApiKey"),
            ({"api_key": "x"}, f"{P}/credentials/key", "x"),
            ({"credentials": {"type": "api_key", "key": "x"}}, f"{P}/authType", "ApiKey"),
        )
    ),
    (LINK, {"type": "azure_open_ai"}, f"{P}/authType", "AAD"),
    # `ApiOrAadConnection` replaces credentials of other types.
    (LINK, {"type": "azure_open_ai", "credentials": {"type": "pat", "pat": "x"}}, f"{P}/authType", "AAD"),
    (LINK, {"type": "azure_open_ai", "api_key": "x", "credentials": {"type": "aad"}}, f"{P}/authType", "ApiKey"),
    (LINK, {}, f"{P}/isSharedToAll", True),
    (LINK, {"is_shared": False}, f"{P}/isSharedToAll", False),
    (LINK, {"metadata": {"a": "b"}}, f"{P}/metadata", {"a": "b"}),
    (REGISTRY, {}, "/name", "r"),
    (REGISTRY, {"location": "eastus"}, "/location", "eastus"),
    (REGISTRY, {"tags": {"a": "b"}}, "/tags", {"a": "b"}),
    (REGISTRY, {"public_network_access": "disabled"}, f"{P}/publicNetworkAccess", "Disabled"),
    (REGISTRY, {}, f"{P}/regionDetails", [{"location": "eastus"}, {"location": "westus"}]),
    (REGISTRY, {"intellectual_property": {"publisher": "x"}}, f"{P}/intellectualPropertyPublisher", "x"),
    (REGISTRY, {}, "/identity/type", "SystemAssigned"),
]


@pytest.mark.parametrize(("document", "more", "pointer", "value"), ROWS)
def test_a_field_is_brought_into_arm_shape(document: JsonObject, more: JsonObject, pointer: str, value: object) -> None:
    """Each key of a file has its ARM field; the file itself is not changed."""
    written = {**document, **more}
    before = yaml.safe_dump(written)
    placed = one(written)

    assert value_at(placed.resource, pointer) == value
    assert not [place for place in placed.unreadable if f"{pointer}/".startswith(f"{place}/")]
    assert yaml.safe_dump(written) == before


def test_how_a_connection_authenticates_can_be_unknown() -> None:
    """The CLI refuses these types without a key, and a placeholder can stand for any type; a key stays a key."""
    for more in (
        {"type": "serp"},
        {"credentials": {"type": "$(TYPE)"}},
        {"type": "azure_open_ai", "credentials": {"type": "$(TYPE)"}},
    ):
        assert "authType" not in one({**LINK, **more}).resource["properties"], more
    keyed = one({**LINK, "type": "serp", "api_key": "$(KEY)"})
    assert keyed.resource["properties"]["authType"] == "ApiKey"
    assert keyed.unreadable[f"{P}/credentials/key"].startswith("`api_key` is the placeholder `$(KEY)`")


def test_every_row_of_the_tables_has_a_fixture() -> None:
    """A row without a test may lead anywhere."""
    tried = {(one({**document, **more}).resource["type"], pointer) for document, more, pointer, _ in ROWS}
    wanted = {
        (kind.arm_type, row.target)
        for kind in azure_cli.KINDS
        if kind.shape and kind.schemas
        for row in kind.shape.table
        if row.target
    }
    missing = {(kind, target) for kind, target in wanted if not _tried(tried, kind, target)}

    assert missing == set()


def _tried(tried: set[tuple[str, str]], kind: str, target: str) -> bool:
    return any(
        known == kind and (f"{pointer}/".startswith(f"{target}/") or f"{target}/".startswith(f"{pointer}/"))
        for known, pointer in tried
    )


@pytest.mark.parametrize(
    ("document", "pointer", "value"),
    [
        (CLUSTER, f"{C}/vmSize", "STANDARD_DS3_V2"),
        (
            CLUSTER,
            f"{C}/scaleSettings",
            {"minNodeCount": 0, "maxNodeCount": 4, "nodeIdleTimeBeforeScaleDown": "PT120S"},
        ),
        (CLUSTER, f"{C}/enableNodePublicIp", True),
        (CLUSTER, f"{C}/remoteLoginPortPublicAccess", "NotSpecified"),
        (INSTANCE, f"{C}/vmSize", "STANDARD_DS3_V2"),
        (INSTANCE, f"{C}/enableNodePublicIp", True),
        (INSTANCE, f"{C}/enableRootAccess", True),
        (INSTANCE, f"{C}/enableOSPatching", False),
        (HOME, f"{P}/publicNetworkAccess", "Enabled"),
        (HOME, f"{P}/hbiWorkspace", False),
        (HOME, f"{P}/managedNetwork", {"isolationMode": "Disabled"}),
        (HOME, f"{P}/encryption", {"status": "Disabled"}),
        (HOME, "/identity", {"type": "SystemAssigned"}),
    ],
)
def test_defaults_of_the_cli_are_what_arm_gets(document: JsonObject, pointer: str, value: object) -> None:
    """The SDK sends these where a file leaves the key out."""
    assert value_at(one(document).resource, pointer) == value


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        (CLUSTER, f"{C}/vmPriority"),
        (CLUSTER, f"{C}/subnet"),
        (CLUSTER, "/identity"),
        (CLUSTER, "/tags"),
        (CLUSTER, "/location"),
        (INSTANCE, f"{C}/sshSettings"),
        (INSTANCE, f"{C}/idleTimeBeforeShutdown"),
        (INSTANCE, f"{C}/schedules"),
        (MACHINE, f"{C}/sshPort"),
        ({**HOME, "hub_id": ID}, f"{P}/hbiWorkspace"),
        ({**HOME, "hub_id": ID}, f"{P}/managedNetwork/isolationMode"),
    ],
)
def test_what_is_not_stated_is_absent(document: JsonObject, pointer: str) -> None:
    """The format can state it, the file does not, and the CLI sends nothing: the policy decides."""
    placed = one(document)

    assert not has_value(placed.resource, pointer)
    assert not [place for place in placed.unreadable if place.startswith(pointer)]


UNFIT: list[tuple[JsonObject, JsonObject, str, str]] = [
    (
        CLUSTER,
        {"min_instances": "many"},
        f"{C}/scaleSettings/minNodeCount",
        "`min_instances` is `many`; it should be a whole",
    ),
    (CLUSTER, {"idle_time_before_scale_down": 0}, f"{C}/scaleSettings/nodeIdleTimeBeforeScaleDown", "above 0"),
    (CLUSTER, {"enable_node_public_ip": "no way"}, f"{C}/enableNodePublicIp", "it should be true or false"),
    (CLUSTER, {"ssh_public_access_enabled": 1}, f"{C}/remoteLoginPortPublicAccess", "it should be true or false"),
    (CLUSTER, {"tags": ["a"]}, "/tags", "`tags` is a list; it should be an object of text"),
    (CLUSTER, {"tags": {"a": [], "b": "c"}}, "/tags/a", "`tags/a` is a list; it should be text"),
    (CLUSTER, {"tags": {"a/b": {"c": "<d>"}, "b": "c"}}, "/tags/a~1b", "`tags/a~1b` is an object; it should be text"),
    (CLUSTER, {"tags": {"a": ["<b>"], "b": "c"}}, "/tags/a", "`tags/a` is a list; it should be text"),
    (CLUSTER, {"tags": "{{ tags }}"}, "/tags", "placeholder"),
    (CLUSTER, {"tags": {"a": "b", "owner": "<OWNER>"}}, "/tags/owner", "`tags/owner` is the placeholder `<OWNER>`"),
    (CLUSTER, {"identity": "system_assigned"}, "/identity/type", "`identity` is a string; it should be an object"),
    (CLUSTER, {"identity": {"user_assigned_identities": [3]}}, "/identity/userAssignedIdentities", "an object"),
    (CLUSTER, {"size": "<SIZE>"}, f"{C}/vmSize", "`size` is the placeholder `<SIZE>`"),
    (CLUSTER, {"size": "${{parent.inputs.size}}"}, f"{C}/vmSize", "placeholder"),
    (CLUSTER, {"size": "$(vmSize)"}, f"{C}/vmSize", "placeholder"),
    (CLUSTER, {"size": "$VM_SIZE"}, f"{C}/vmSize", "placeholder"),
    (CLUSTER, {"size": "__VM_SIZE__"}, f"{C}/vmSize", "placeholder"),
    (CLUSTER, {"size": ["a"]}, f"{C}/vmSize", "`size` is a list; it should be text"),
    (INSTANCE, {"custom_applications": "rstudio"}, f"{C}/customServices", "it should be a list"),
    (INSTANCE, {"custom_applications": ["rstudio"]}, f"{C}/customServices", "a list of `{name, image, endpoints}`"),
    (
        INSTANCE,
        {"custom_applications": [{"image": {"reference": 4}}]},
        f"{C}/customServices",
        "`image/reference` is `4`; it should be text",
    ),
    (
        INSTANCE,
        {"custom_applications": [{"name": "r", "endpoints": [80]}]},
        f"{C}/customServices",
        "a list of `{target, published}`",
    ),
    (
        INSTANCE,
        {"setup_scripts": {"creation_script": {"path": "<PATH>"}}},
        f"{C}/setupScripts/scripts/creationScript/scriptData",
        "placeholder",
    ),
    (
        INSTANCE,
        {"setup_scripts": {"creation_script": "setup.sh"}},
        f"{C}/setupScripts/scripts/creationScript/scriptData",
        "it should be an object",
    ),
    (CLUSTER, {"network_settings": {"subnet": "s"}}, f"{C}/subnet/id", "has no `vnet_name`"),
    (CLUSTER, {"network_settings": {"vnet_name": "v"}}, f"{C}/subnet/id", "no `subnet`"),
    (
        CLUSTER,
        {"network_settings": {"vnet_name": "__V__", "subnet": "s"}},
        f"{C}/subnet/id",
        "`network_settings/vnet_name` is the placeholder `__V__`; replace it with a value",
    ),
    (
        CLUSTER,
        {"network_settings": {"vnet_name": "__V__", "subnet": "__S__"}},
        f"{C}/subnet/id",
        "`network_settings/subnet` is the placeholder `__S__`",
    ),
    (
        CLUSTER,
        {"network_settings": {"subnet": "$(SUBNET_ID)"}},
        f"{C}/subnet/id",
        "`network_settings/subnet` is the placeholder `$(SUBNET_ID)`; replace it with a value",
    ),
    (CLUSTER, {"network_settings": "{{ network }}"}, f"{C}/subnet/id", "placeholder"),
    (CLUSTER, {"network_settings": []}, f"{C}/subnet/id", "`network_settings` is a list; it should be an object"),
    (CLUSTER, {"name": "<NAME>"}, "/id", "`name` is the placeholder `<NAME>`"),
    (CLUSTER, {"name": None}, "/id", "the file has no `name`"),
    (INSTANCE, {"schedules": {"compute_start_stop": 3}}, f"{C}/schedules/computeStartStop", "a list"),
    (INSTANCE, {"schedules": schedule(type="cron", expression="<C>")}, f"{C}/schedules/computeStartStop", "`<C>`"),
    (
        INSTANCE,
        {"schedules": {"compute_start_stop": [{}]}},
        f"{C}/schedules/computeStartStop",
        "`{action, state, trigger}`",
    ),
    (INSTANCE, {"schedules": schedule(expression=3)}, f"{C}/schedules/computeStartStop", "it should be text"),
    (KUBERNETES, {"properties": "x"}, C, "`properties` is `x`; it should be an object"),
    (KUBERNETES, {"properties": {"a": ["<B>"]}}, C, "`properties/a/0` is the placeholder `<B>`"),
    (HOME, {"managed_network": "disabled"}, f"{P}/managedNetwork/isolationMode", "it should be an object"),
    (HOME, {"managed_network": "${{x}}"}, f"{P}/managedNetwork/isolationMode", "placeholder"),
    (
        HOME,
        {"managed_network": {"isolation_mode": 3}},
        f"{P}/managedNetwork/isolationMode",
        "is `3`; it should be text",
    ),
    (HOME, {"managed_network": rule(destination="<X>")}, f"{P}/managedNetwork/outboundRules", "`<X>`"),
    (HOME, {"managed_network": {"outbound_rules": [{}]}}, f"{P}/managedNetwork/outboundRules", "a list of rules"),
    (
        HOME,
        {"managed_network": rule(type="service_tag", destination={"address_prefixes": 3})},
        f"{P}/managedNetwork/outboundRules",
        "it should be a list",
    ),
    (HOME, {"customer_managed_key": {"key_uri": "<U>"}}, f"{P}/encryption/keyVaultProperties/keyIdentifier", "`<U>`"),
    (STORE, {"credentials": {"x": 1}}, f"{P}/credentials/credentialsType", "an object with one of"),
    (REGISTRY, {"replication_locations": [1]}, f"{P}/regionDetails", "a list of `{location}`"),
    (REGISTRY, {"replication_locations": [{"location": "<L>"}]}, f"{P}/regionDetails", "`<L>`"),
    (LINK, {"metadata": {"a": "{{b}}", "c": "d"}}, f"{P}/metadata/a", "`metadata/a` is the placeholder `{{b}}`"),
    (LINK, {"metadata": {"a": ["{{b}}"]}}, f"{P}/metadata", "`metadata/a/0` is the placeholder `{{b}}`"),
]


@pytest.mark.parametrize(("document", "more", "pointer", "reason"), UNFIT)
def test_unresolved_values_are_unreadable(document: JsonObject, more: JsonObject, pointer: str, reason: str) -> None:
    """A placeholder, or a value that the field cannot have, is not a fact, and nothing takes its place."""
    placed = one({**document, **more})

    assert reason in placed.unreadable[pointer]
    assert pointer == "/id" or not has_value(placed.resource, pointer)


TAGGED: list[tuple[JsonObject, str]] = [
    (CLUSTER, "/tags"),
    (HOME, "/tags"),
    ({"name": "d", "endpoint_name": "e", "model": "azureml:m:1"}, "/tags"),
    ({"name": "e", "auth_mode": "key"}, "/tags"),
    ({"name": "j", "type": "command", "command": "x", "environment": "azureml:e:1"}, f"{P}/tags"),
    ({"name": "s", "trigger": {"type": "cron"}, "create_job": "azureml:j"}, f"{P}/tags"),
]


@pytest.mark.parametrize(("document", "pointer"), TAGGED)
def test_a_tag_is_text_or_the_only_one_that_is_unreadable(document: JsonObject, pointer: str) -> None:
    """A blank one is sent as null, which is none; numbers and booleans become text."""
    written = {"owner": "me", "cost": 12, "on": True, "environment": None, "list": ["<x>"], "deep": {"a": {"b": 1}}}
    placed = one({**document, "tags": written})

    assert value_at(placed.resource, pointer) == {"owner": "me", "cost": "12", "on": "True"}
    assert {at: reason for at, reason in placed.unreadable.items() if at.startswith(pointer)} == {
        f"{pointer}/list": "`tags/list` is a list; it should be text",
        f"{pointer}/deep": "`tags/deep` is an object; it should be text",
    }


@pytest.mark.parametrize(
    ("around", "group"),
    [
        (AROUND, GROUP),
        (Surroundings(), "/subscriptions/{subscription}/resourceGroups/{resource-group}"),
        (Surroundings(workspace=f"{ML}/workspaces/{{workspace}}"), GROUP),
    ],
)
@pytest.mark.parametrize("document", [CLUSTER, INSTANCE])
def test_a_named_subnet_is_in_the_group_of_its_workspace(
    document: JsonObject, around: Surroundings, group: str
) -> None:
    """Also where its name is not stated: that there is a subnet is a fact all the same."""
    placed = one({**document, "network_settings": {"vnet_name": "v", "subnet": "s"}}, around)
    whole = f"{group}/providers/Microsoft.Network/virtualNetworks/v/subnets/s"

    assert value_at(placed.resource, f"{C}/subnet") == {"id": whole}
    assert placed.fields[f"{C}/subnet/id"] == "/network_settings/subnet"
    assert not [at for at in placed.unreadable if at.startswith(f"{C}/subnet")]


@pytest.mark.parametrize(("network", "inside"), [("v", Outcome.PASS), ("__V__", Outcome.UNKNOWN)])
def test_a_subnet_in_an_unstated_group_is_perhaps_approved(
    network: str, inside: Outcome, tmp_path: Path, bundle: Bundle
) -> None:
    """It is in a subnet, unless its network is yet to be named; whether in one of the approved networks is open."""
    settings = {"vnet_name": network, "subnet": "s"}
    (tmp_path / "c.yml").write_text(yaml.safe_dump({**CLUSTER, "network_settings": settings}), encoding="utf-8")
    approved = {"AML-NET-104": {"allowed_vnets": [f"{GROUP}/providers/Microsoft.Network/virtualNetworks/v"]}}
    findings = evaluate(bundle, read_inputs([tmp_path]).snapshot, parameters=approved).findings
    outcomes = {finding.policy: finding.outcome for finding in findings}

    assert outcomes["AML-CMP-002"] is inside
    assert outcomes["AML-NET-104"] is Outcome.UNKNOWN


def test_what_only_the_service_states_is_unreadable() -> None:
    """A file describes what does not exist yet; what its keys cannot express is not a fact either."""
    placed = one(CLUSTER)
    carried = placed.carried

    assert service_made(placed.resource["type"]).items() <= placed.unreadable.items()
    assert carried is not None
    assert carried.reason == NOT_CARRIED
    for pointer in (f"{P}/disableLocalAuth", f"{C}/isolatedNetwork", f"{C}/osType", f"{C}/applicationSharingPolicy"):
        assert pointer not in carried.pointers
    assert {"/tags", "/location", "/identity/type", f"{P}/description"} <= set(carried.pointers)


#: Private endpoint connections, which only the service reports.
CONNECTIONS: set[str] = {
    f"{P}/privateEndpointConnections",
    f"{P}/privateEndpointConnections/*/properties/privateEndpoint/id",
    f"{P}/privateEndpointConnections/*/properties/privateLinkServiceConnectionState/status",
}
#: Setup scripts, which only compute instances have.
SCRIPTS: set[str] = {
    f"{C}/setupScripts/scripts/creationScript/scriptData",
    f"{C}/setupScripts/scripts/creationScript/scriptSource",
}
#: By kind, the fields that policies inspect and a file cannot state; one policy searches all properties.
GAPS: dict[str, set[str]] = {
    "AmlCompute": {P, *SCRIPTS, f"{P}/disableLocalAuth", f"{C}/connectivityEndpoints/publicIpAddress"},
    "ComputeInstance": {
        P,
        f"{P}/disableLocalAuth",
        f"{C}/applicationSharingPolicy",
        f"{C}/connectivityEndpoints/publicIpAddress",
        f"{C}/osImageMetadata/isLatestOsImageVersion",
        f"{C}/state",
        f"{C}/lastOperation/operationTime",
        f"{C}/lastOperation/operationTrigger",
    },
    "Kubernetes": {P},
    "VirtualMachine": {P, *SCRIPTS, f"{C}/virtualMachineSize"},
    "SynapseSpark": {P, *SCRIPTS},
    "Default": {
        *CONNECTIONS,
        f"{P}/allowPublicAccessWhenBehindVnet",
        f"{P}/ipAllowlist",
        f"{P}/ipAllowlist/*",
        f"{P}/managedNetwork/status/status",
        f"{P}/v1LegacyMode",
    },
}


@pytest.mark.parametrize("document", [CLUSTER, INSTANCE, KUBERNETES, MACHINE, SPARK, HOME])
def test_what_policies_inspect_and_a_file_cannot_state(document: JsonObject, bundle: Bundle) -> None:
    """The gaps are declared; a policy that looks into one is unknown."""
    placed = one(document)
    what = placed.resource["properties"].get("computeType") or placed.resource["kind"]

    assert gaps(placed, bundle) == GAPS[what]


def gaps(placed: Placed, bundle: Bundle) -> set[str]:
    """The pointers that policies inspect in a resource, and that it cannot state."""
    assert placed.carried is not None
    carried = placed.carried.pointers
    return {
        pointer
        for pointer in inspected(placed.resource, bundle)
        if any(overlap(pointer, place) for place in placed.unreadable)
        or (not has_value(placed.resource, pointer) and not any(overlap(pointer, place) for place in carried))
    }


def inspected(resource: JsonObject, bundle: Bundle) -> set[str]:
    """The pointers that the policies for a resource inspect in it."""
    kind, compute = lowered(resource["type"]), resource["properties"].get("computeType")
    return {
        pointer
        for policy in bundle.policies
        for target in policy.header.judges
        if lowered(target.type) == kind and compute in target.where.get(f"{P}/computeType", (compute,))
        for pointer in observe(bundle, policy).pointers
        if not pointer.startswith("workspace:")
    }


def overlap(pointer: str, other: str) -> bool:
    """Whether one pointer is the other or above it."""
    return f"{pointer}/".startswith(f"{other}/") or f"{other}/".startswith(f"{pointer}/")


AML = "https://azuremlschemas.azureedge.net/latest/{}.schema.json"


@pytest.mark.parametrize(
    "document",
    [
        CLUSTER,
        INSTANCE,
        KUBERNETES,
        MACHINE,
        SPARK,
        HOME,
        STORE,
        LINK,
        REGISTRY,
        {"name": "x", "managed_network": {"isolation_mode": "disabled"}},
        {"name": "x", "hub_id": ID},
        {"name": "x", "offline_store": {}},
        {"name": "x", "type": "uri_folder", "path": "x"},
        {"name": "x", "type": "mlflow_model", "path": "x"},
        {"name": "x", "image": "x", "conda_file": "x"},
        {"name": "x", "build": {"path": "x"}},
        {"$schema": "HTTPS://AZUREMLSDK2.blob.core.windows.net/latest/AMLCOMPUTE.schema.json  ", **CLUSTER},
        {"$schema": "http://azureml/sdk-2-0/AmlCompute.json", **CLUSTER},
        {"$schema": AML.format("whatever"), **CLUSTER},
        {"$schema": "https://learn.microsoft.com/azure/machine-learning/reference-yaml-compute-aml", **CLUSTER},
        {"$schema": "", **CLUSTER},
        {"$schema": 3, **CLUSTER},
        {"$schema": "https://json-schema.org/draft/2020-12/schema", **CLUSTER},
        {"apiVersion": "v1", "kind": "Hub", "name": "x", "managed_network": {}},
        {"managed_network": {"isolation_mode": "allow_only_approved_outbound"}},
    ],
)
def test_a_file_is_detected(document: JsonObject) -> None:
    """By its `$schema`, whatever its case and the spaces after it, else by its keys; and by no other format."""
    assert [name for name, reader in FORMATS.items() if reader.detect(document)] == ["azure-cli"]


@pytest.mark.parametrize(
    "document",
    [
        None,
        3,
        [],
        [CLUSTER],
        {},
        {"name": "env", "channels": ["conda-forge"], "dependencies": ["python"]},
        {"name": "ci", "on": {"push": {}}, "jobs": {"build": {"runs-on": "x", "steps": []}}},
        {"name": "app", "services": {"web": {"image": "nginx", "build": {"context": "."}}}},
        {"name": "x", "build": {"context": "."}, "image": "nginx"},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}},
        {"trigger": ["main"], "pool": {"vmImage": "ubuntu"}, "steps": [], "name": "x"},
        {"name": "x", "type": "git"},
        {"name": "x", "type": "git", "target": "y", "branch": "main"},
        {"name": "x", "type": "kubernetes"},
        {"name": "x", "type": "virtualmachine", "size": "s"},
        {"name": "x", "type": "azure_blob"},
        {"name": "x", "path": "p"},
        {"$schema": "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#", "resources": []},
        {"id": f"{WORKSPACE}/computes/c", **CLUSTER},
        {"id": f"{WORKSPACE}/computes/c", "type": "Microsoft.MachineLearningServices/workspaces/computes"},
    ],
)
def test_other_files_are_left_alone(document: object) -> None:
    """Conda files, workflows, compose files, manifests, pipelines, templates, and what commands print."""
    assert not azure_cli.detect(document)
    assert not azure_cli.belongs_to_workspace(document)


@pytest.mark.parametrize(
    ("document", "pointer", "message", "remedy"),
    [
        ({"$schema": AML.format("amlCompute"), "name": "c", "type": "aks"}, "/type", "`type` is `aks`", "`amlcompute`"),
        ({"$schema": AML.format("amlCompute"), "name": "c"}, "", "`type` is null", "the CLI supports"),
        (
            {"$schema": AML.format("amlCompute"), "type": "amlcompte"},
            "/type",
            "`amlcompte`",
            "did you mean `amlcompute`",
        ),
        ({"$schema": AML.format("amlCompute"), "type": "<TYPE>"}, "/type", "`type` is `<TYPE>`", "the CLI supports"),
        ({"$schema": AML.format("amlComput")}, "/$schema", "names `amlcomput`", "correct it"),
        ({}, "", "not an Azure CLI file", "provide a file"),
        ([], "", "not an Azure CLI file: expected an object, found a list", "provide a file"),
        (None, "", "not an Azure CLI file: expected an object, found null", "provide a file"),
    ],
)
def test_unreadable_files_are_refused(document: object, pointer: str, message: str, remedy: str) -> None:
    """With its place and what to do."""
    [refusal] = azure_cli.read(document, AROUND).refusals

    assert refusal.place == pointer
    assert message in refusal.message
    assert remedy in refusal.remedy


def test_the_type_of_a_compute_precedes_its_schema() -> None:
    """As the CLI does it, for which `$schema` is a matter of the editor."""
    assert (
        one({"$schema": AML.format("amlCompute"), **INSTANCE}).resource["properties"]["computeType"]
        == "ComputeInstance"
    )


@pytest.mark.parametrize("schema", ["model", "data", "commandComponent", "pipelineComponent", "Flow"])
def test_an_asset_contains_nothing_to_evaluate(schema: str) -> None:
    """It is understood, and reported."""
    reading = azure_cli.read({"$schema": AML.format(schema), "name": "x", "anything": 1}, AROUND)

    assert reading.nothing.endswith(": nothing to check")
    assert (reading.resources, reading.refusals) == ((), ())
    assert not azure_cli.belongs_to_workspace({"$schema": AML.format(schema)})


def test_keys_that_the_cli_refuses_are_remarked_on() -> None:
    """At any depth, with the nearest that it knows; keys that it ignores are none."""
    document = {
        **CLUSTER,
        "siez": "x",
        "network_settings": {"sub_net": "x"},
        "zzzzzzz": 1,
        "provisioning_state": "Succeeded",
        "tags": {"any": "thing"},
    }

    assert azure_cli.read(document, AROUND).remarks == (
        remark("/siez", "unknown key `siez`, which the Azure CLI rejects; did you mean `size`"),
        remark("/zzzzzzz", "unknown key `zzzzzzz`, which the Azure CLI rejects"),
        remark(
            "/network_settings/sub_net", "unknown key `sub_net`, which the Azure CLI rejects; did you mean `subnet`"
        ),
    )
    assert not has_value(one(document).resource, f"{P}/provisioningState")


#: Documents with a key that is wrong, below the first level too, the place of that key, and the key that is meant.
TYPOS: list[tuple[JsonObject, str, str]] = [
    (
        {"name": "d", "endpoint_name": "e", "model": "m", "scale_settings": {"typ": "default"}},
        "/scale_settings",
        "type",
    ),
    (
        {"name": "d", "endpoint_name": "e", "model": "m", "code_configuration": {"cod": "x"}},
        "/code_configuration",
        "code",
    ),
    ({"name": "d", "endpoint_name": "e", "model": "m", "liveness_probe": {"perid": 1}}, "/liveness_probe", "period"),
    ({"name": "d", "endpoint_name": "e", "model": "m", "instance_typ": "x"}, "", "instance_type"),
    (
        {"name": "d", "endpoint_name": "e", "compute": "c", "retry_settings": {"max_retrys": 1}},
        "/retry_settings",
        "max_retries",
    ),
    (
        {"name": "d", "endpoint_name": "e", "compute": "c", "code_configuration": {"cod": "x"}},
        "/code_configuration",
        "code",
    ),
    ({"name": "e", "auth_mode": "key", "identity": {"typ": "system_assigned"}}, "/identity", "type"),
    ({"name": "e", "auth_mode": "aad_token", "defaults": {"deployment_nam": "d"}}, "/defaults", "deployment_name"),
    ({"type": "command", "command": "x", "environment": "e", "identity": {"typ": "managed"}}, "/identity", "type"),
    ({"trigger": {"type": "cron", "expresion": "x"}, "create_job": "azureml:j"}, "/trigger", "expression"),
    (
        {"trigger": {"type": "recurrence", "schedule": {"hour": 1}}, "create_job": "azureml:j"},
        "/trigger/schedule",
        "hours",
    ),
]


@pytest.mark.parametrize(("document", "above", "meant"), TYPOS)
def test_unknown_keys_of_work_are_remarked_on(document: JsonObject, above: str, meant: str) -> None:
    """Below the first level too, where the tables have all that the CLI has."""
    [remark] = azure_cli.read(document, AROUND).remarks

    assert remark.place.rpartition("/")[0] == above
    assert remark.message.endswith(f"which the Azure CLI rejects; did you mean `{meant}`")


@pytest.mark.parametrize("document", [document for document, above, _ in TYPOS if above])
def test_free_form_objects_of_work_may_have_any_key(document: JsonObject) -> None:
    """So may values that are no objects, which is another matter."""
    known = {key: value for key, value in document.items() if key in ("name", "type", "endpoint_name", "auth_mode")}
    known |= {
        key: document[key] for key in ("model", "compute", "command", "environment", "create_job") & document.keys()
    }
    free = {"tags": {"typ": "x"}, "properties": {"typ": "x"}, "identity": "x", "scale_settings": ["x"], "defaults": "x"}
    allowed = {key: value for key, value in free.items() if key in ("tags", "properties") or key in document}
    trigger = {"trigger": {"type": "cron"}} if "trigger" in document else {}

    assert azure_cli.read({**known, **trigger, **allowed}, AROUND).remarks == ()


@pytest.mark.parametrize(
    ("document", "around", "identity", "why", "movable"),
    [
        (CLUSTER, AROUND, f"{WORKSPACE}/computes/c", "", False),
        (STORE, AROUND, f"{WORKSPACE}/datastores/d", "", False),
        (LINK, AROUND, f"{WORKSPACE}/connections/l", "", False),
        (REGISTRY, AROUND, f"{ML}/registries/r", "", False),
        (HOME, AROUND, WORKSPACE, "", False),
        ({**CLUSTER, "name": "a/b"}, AROUND, f"{WORKSPACE}/computes/a~b", "", False),
        (CLUSTER, Surroundings(), "", UNKNOWN_ID, True),
        (HOME, Surroundings(), "", UNKNOWN_ID, True),
        ({**HOME, "resource_group": "rg-x"}, AROUND, WORKSPACE, "", False),
        (
            {**HOME, "resource_group": "rg-x"},
            Surroundings(),
            "/subscriptions/{subscription}/resourceGroups/rg-x/providers/Microsoft.MachineLearningServices/workspaces/ws",
            "pass `--scope`",
            True,
        ),
        (
            CLUSTER,
            Surroundings(scope=GROUP, workspace=f"{ML}/workspaces/{{workspace}}"),
            f"{ML}/workspaces/{{workspace}}/computes/c",
            "does not name its workspace",
            True,
        ),
    ],
)
def test_ids_are_made_of_what_surrounds_a_file(
    document: JsonObject, around: Surroundings, identity: str, why: str, movable: bool
) -> None:
    """Where the target of the deployment is not stated, the id is not a fact, and contradicting files stay apart."""
    placed = one(document, around)
    reading = azure_cli.read(document, around)

    assert not identity or placed.resource["id"] == identity
    assert bool(why) == ("/id" in placed.unreadable)
    assert why in placed.unreadable.get("/id", "") or why == UNKNOWN_ID
    assert reading.movable == (placed.resource["id"] if movable else "")


def test_which_files_belong_to_a_workspace() -> None:
    """Computes and stores do; workspaces and registries do not."""
    belong = [azure_cli.belongs_to_workspace(document) for document in (CLUSTER, STORE, LINK, HOME, REGISTRY)]

    assert belong == [True, True, True, False, False]


def test_findings_point_at_the_key_of_the_file(tmp_path: Path, bundle: Bundle) -> None:
    """Line and column of the field that fails, and of the nearest parent of a missing one."""
    (tmp_path / "workspace.yml").write_text(
        "name: ws\nmanaged_network:\n  isolation_mode: disabled\npublic_network_access: enabled\n", encoding="utf-8"
    )
    (tmp_path / "cluster.yml").write_text(
        "name: c\ntype: amlcompute\nmin_instances: 2\ntags:\n  owner: me\n", encoding="utf-8"
    )
    inputs = read_inputs([tmp_path])
    places = {
        path: (Path(place.file).name, place.line, place.column)
        for finding in evaluate(bundle, inputs.snapshot).findings
        for path, place in finding.location.fields.items()
        if (finding.denials and finding.location.file.endswith("cluster.yml")) or finding.policy == "AML-NET-001"
    }

    assert places[f"{P}/publicNetworkAccess"] == ("workspace.yml", 4, 1)
    assert places[f"{C}/scaleSettings/minNodeCount"] == ("cluster.yml", 3, 1)
    assert places["/tags/environment"] == ("cluster.yml", 4, 1)


# ---------------------------------------------------------------- estates that the writer renders


WORDS = st.text("abcdefghijklmnop", min_size=1, max_size=6)


def _some(**members: st.SearchStrategy[Any]) -> st.SearchStrategy[JsonObject]:
    return st.fixed_dictionaries({}, optional=members)


SCALES = _some(
    minNodeCount=st.integers(0, 9),
    maxNodeCount=st.integers(0, 9),
    nodeIdleTimeBeforeScaleDown=st.integers(1, 9999).map("PT{}S".format),
)
SUBNETS = WORDS.map(lambda word: {"id": f"{ID}/subnets/{word}"})
SCHEDULES = st.lists(
    st.fixed_dictionaries(
        {
            "action": st.sampled_from(["Start", "Stop"]),
            "status": st.sampled_from(["Enabled", "Disabled"]),
            "triggerType": st.just("Cron"),
            "cron": st.fixed_dictionaries({"expression": st.just("0 18 * * *"), "timeZone": st.just("UTC")}),
        }
    ),
    max_size=2,
).map(lambda entries: {"computeStartStop": entries})
CLUSTERS = _some(
    vmSize=WORDS,
    vmPriority=st.sampled_from(["Dedicated", "LowPriority"]),
    scaleSettings=SCALES,
    subnet=SUBNETS,
    enableNodePublicIp=st.booleans(),
    remoteLoginPortPublicAccess=st.sampled_from(["Enabled", "Disabled"]),
)
INSTANCES = _some(
    vmSize=WORDS,
    subnet=SUBNETS,
    enableNodePublicIp=st.booleans(),
    sshSettings=st.sampled_from(["Enabled", "Disabled"]).map(lambda word: {"sshPublicAccess": word}),
    idleTimeBeforeShutdown=st.integers(1, 999).map("PT{}M".format),
    schedules=SCHEDULES,
    personalComputeInstanceSettings=WORDS.map(lambda word: {"assignedUser": {"objectId": word, "tenantId": word}}),
    enableRootAccess=st.booleans(),
    enableOSPatching=st.booleans(),
    enableSSO=st.booleans(),
)
COMPUTES: st.SearchStrategy[tuple[str, JsonObject, str | None]] = st.one_of(
    st.tuples(st.just("AmlCompute"), CLUSTERS, st.none()),
    st.tuples(st.just("ComputeInstance"), INSTANCES, st.none()),
    st.tuples(st.just("Kubernetes"), _some(namespace=WORDS, defaultInstanceType=WORDS), st.just(ID)),
    st.tuples(st.just("VirtualMachine"), _some(sshPort=st.integers(1, 9)), st.just(ID)),
    st.tuples(st.just("SynapseSpark"), st.just({}), st.just(ID)),
)
RULES = st.dictionaries(
    WORDS,
    st.sampled_from(
        [
            {"type": "FQDN", "category": "UserDefined", "destination": "x.com"},
            {"type": "ServiceTag", "category": "UserDefined", "destination": {"serviceTag": "x", "portRanges": "1"}},
        ]
    ),
    max_size=2,
)
MODES = st.sampled_from(["Disabled", "AllowInternetOutbound", "AllowOnlyApprovedOutbound"])
WORKSPACES = _some(
    friendlyName=WORDS,
    hbiWorkspace=st.booleans(),
    publicNetworkAccess=st.sampled_from(["Enabled", "Disabled"]),
    systemDatastoresAuthMode=WORDS,
    managedNetwork=st.fixed_dictionaries({"isolationMode": MODES}, optional={"outboundRules": RULES}),
    serverlessComputeSettings=_some(
        serverlessComputeCustomSubnet=st.just(ID), serverlessComputeNoPublicIP=st.booleans()
    ),
    encryption=st.just({"status": "Enabled", "keyVaultProperties": {"keyVaultArmId": ID, "keyIdentifier": "k"}}),
)
ENVELOPES = _some(
    tags=st.dictionaries(WORDS, WORDS, max_size=2),
    location=WORDS,
    identity=st.sampled_from(
        [{"type": "SystemAssigned"}, {"type": "UserAssigned", "userAssignedIdentities": {UAI: {}}}]
    ),
)


@st.composite
def estates(draw: st.DrawFn) -> list[JsonObject]:
    """A workspace of some kind with computes of every kind, in ARM shape."""
    kinds = ["Default", "Hub", "Project", "FeatureStore"]
    resources: list[JsonObject] = [
        {
            "id": WORKSPACE,
            "name": "ws",
            "type": "Microsoft.MachineLearningServices/workspaces",
            "kind": draw(st.sampled_from(kinds)),
            "properties": draw(WORKSPACES),
            **draw(ENVELOPES),
        }
    ]
    for index, (kind, inner, attached) in enumerate(draw(st.lists(COMPUTES, max_size=4))):
        properties = {"computeType": kind, "properties": inner}
        resources.append(
            {
                "id": f"{WORKSPACE}/computes/c{index}",
                "name": f"c{index}",
                "type": "Microsoft.MachineLearningServices/workspaces/computes",
                "properties": {**properties, "resourceId": attached} if attached else properties,
                **draw(ENVELOPES),
            }
        )
    return resources


@settings(max_examples=effort(30, 150), deadline=None)
@given(estates())
def test_an_estate_that_is_written_comes_back(resources: list[JsonObject]) -> None:
    """Every field that a file states is equal, and none of them is unreadable."""
    for resource, content in zip(resources, writer.write(resources).values(), strict=True):
        document = yaml.safe_load(content)
        assert azure_cli.detect(document)
        assert azure_cli.read(document, AROUND).remarks == ()
        placed = one(document)
        for pointer, value in leaves(resource):
            assert value_at(placed.resource, pointer) == value, pointer
            assert not [place for place in placed.unreadable if overlap(pointer, place)]


def leaves(value: object, pointer: str = "") -> list[tuple[str, object]]:
    """The values inside of an object that are no objects, by JSON Pointer."""
    if not isinstance(value, dict):
        return [(pointer, value)]
    return [
        leaf
        for key, inner in value.items()
        for leaf in leaves(inner, f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}")
    ]


# ---------------------------------------------------------------- anything at all, and real files


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
KEYS = sorted({row.source.split("/")[1] for kind in azure_cli.KINDS if kind.shape for row in kind.shape.rows})
SCHEMAS = sorted({schema for kind in azure_cli.KINDS for schema in kind.schemas})


@settings(max_examples=effort(60, 300), deadline=None)
@given(
    st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=6),
    st.sampled_from([CLUSTER, INSTANCE, KUBERNETES, MACHINE, SPARK, HOME, STORE, LINK, REGISTRY]),
    st.sampled_from(SCHEMAS) | st.none(),
)
def test_no_value_makes_it_raise(more: JsonObject, document: JsonObject, schema: str | None) -> None:
    """Whatever its content, a file is read or refused, and resources have an id, a type and properties."""
    written = {**document, **more} if schema is None else {**document, **more, "$schema": AML.format(schema)}
    azure_cli.detect(written)
    azure_cli.belongs_to_workspace(written)
    for placed in azure_cli.read(written).resources:
        assert placed.resource["id"]
        assert placed.resource["type"]
        assert isinstance(placed.resource["properties"], dict)


def test_deep_and_wide_documents_are_read_in_time() -> None:
    """Many placeholders and deep nesting take no more than their length."""
    deep: object = "<X>"
    for _ in range(120):
        deep = {"a": deep}
    wide = {f"k{index}": "<X>" for index in range(5_000)}

    assert "/tags/a" in one({**CLUSTER, "tags": deep}).unreadable
    assert len([place for place in one({**CLUSTER, "tags": wide}).unreadable if place.startswith("/tags/")]) == 5_000


REAL = Path(__file__).resolve().parents[2] / "shared" / "real" / "cli_v2_yaml"
#: What their folder is called in the examples, by the kinds that are read here.
READ = {"compute": 5, "connections": 5, "datastore": 2, "registry": 2, "workspace": 3}


@pytest.mark.skipif(not REAL.is_dir(), reason="the real files are next to the repository")
@pytest.mark.parametrize("folder", READ)
def test_real_files_are_read(folder: str) -> None:
    """Every one of them becomes a resource."""
    files = sorted(REAL.glob(f"*/cli/resources/{folder}/*.yml"))

    assert len(files) == READ[folder]
    for path in files:
        inputs = read_inputs([path])
        assert [problem for problem in inputs.problems if problem.level == "error"] == []
        assert len(inputs.snapshot.resources) == 1, path


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (
            {"$schema": "https://azuremlschemas.azureedge.net/promptflow/latest/AzureOpenAIConnection.schema.json"},
            "a connection of prompt flow",
        ),
        ({"$schema": AML.format("codeAsset"), "name": "c"}, "code"),
        ({"$schema": AML.format("asset"), "name": "a"}, "an asset"),
        ({"managed_network": {"isolation_mode": "disabled"}}, "an update of a workspace"),
    ],
)
def test_files_that_contain_nothing_to_evaluate(document: JsonObject, reason: str) -> None:
    """Connections of prompt flow, assets of early previews, and updates, which do not state the rest."""
    reading = azure_cli.read(document, AROUND)

    assert (reading.resources, reading.refusals) == ((), ())
    assert reading.nothing.startswith(reason)


def test_a_schema_from_elsewhere_does_not_count() -> None:
    """The keys state the kind of the file, as the command does for the CLI."""
    page = "https://learn.microsoft.com/azure/machine-learning/reference-yaml-compute-aml"

    assert one({"$schema": page, **CLUSTER}).resource == one(CLUSTER).resource


def test_an_environment_is_brought_into_arm_shape() -> None:
    """Its version is the name of the resource; the service numbers one without a version."""
    written: JsonObject = {
        "name": "e",
        "version": 3,
        "image": "docker.io/a/b:latest",
        "conda_file": {"dependencies": ["python"]},
        "os_type": "linux",
        "tags": {"a": "b"},
    }

    placed = one(written)
    assert placed.resource == {
        "id": f"{WORKSPACE}/environments/e/versions/3",
        "name": "3",
        "type": "Microsoft.MachineLearningServices/workspaces/environments/versions",
        "properties": {
            "image": "docker.io/a/b:latest",
            "condaFile": {"dependencies": ["python"]},
            "osType": "Linux",
            "tags": {"a": "b"},
            "environmentType": "UserCreated",
        },
    }
    numbered = one({key: value for key, value in written.items() if key != "version"})
    assert {"/id", "/name"} <= numbered.unreadable.keys()


@pytest.mark.parametrize(
    ("document", "places"),
    [
        ({"command": "x", "environment": {"image": "i"}, "code": "."}, ["/environment"]),
        (
            {"type": "sweep", "trial": {"command": "x", "environment": {"image": "i"}}, "search_space": {}},
            ["/trial/environment"],
        ),
        (
            {
                "type": "pipeline",
                "jobs": {
                    "a": {"command": "x", "environment": {"build": {"path": "."}}},
                    "b": {"component": {"command": "x", "environment": {"image": "i"}}},
                    "c": {"type": "parallel", "task": {"environment": {"image": "i"}}},
                    "d": {"command": "x", "environment": "azureml:e:1", "environment_variables": {"image": "i"}},
                },
            },
            ["/jobs/a/environment", "/jobs/b/component/environment", "/jobs/c/task/environment"],
        ),
        ({"name": "d", "endpoint_name": "e", "instance_type": "x", "environment": {"image": "i"}}, ["/environment"]),
        (
            {"name": "s", "trigger": {"type": "cron"}, "create_job": {"command": "x", "environment": {"image": "i"}}},
            ["/create_job/environment"],
        ),
    ],
)
def test_environments_inside_other_files_are_read(document: JsonObject, places: list[str]) -> None:
    """Each is a version of its own, wherever work describes it."""
    resources = azure_cli.read({"name": "w", **document}, AROUND).resources
    inside = [placed for placed in resources if placed.resource["type"].endswith("/environments/versions")]

    assert [placed.pointer for placed in inside] == places
    assert len({placed.resource["id"] for placed in inside}) == len(places)


@pytest.mark.parametrize(
    "document",
    [
        {"name": "x", "image": "mcr.microsoft.com/devcontainers/base", "features": {}},
        {"name": "x", "build": {"dockerfile": "Dockerfile"}},
        {"name": "x", "image": "i"},
    ],
)
def test_other_documents_with_an_image_are_no_environments(document: JsonObject) -> None:
    """Development containers have such keys, too."""
    assert not azure_cli.detect(document)


@pytest.mark.parametrize("schema", ["compute", "whatever", "computeInstance", "registry", "environment", "commandJob"])
def test_the_name_of_a_schema_does_not_decide_the_kind(schema: str) -> None:
    """The CLI ignores `$schema`; one that names a kind of another type is remarked."""
    reading = azure_cli.read({"$schema": AML.format(schema), **CLUSTER}, AROUND)

    assert [placed.resource for placed in reading.resources] == [one(CLUSTER).resource]
    assert len(reading.problems) == (schema in ("registry", "environment", "commandJob"))
    assert all("the Azure CLI ignores `$schema`" in problem.message for problem in reading.problems)


def test_a_file_with_an_unknown_schema_and_other_keys_is_on_the_ledger(tmp_path: Path) -> None:
    """In a directory it stops nothing; a file that the user names is an error, with the nearest name."""
    prompt = tmp_path / "prompt.yml"
    prompt.write_text(f"$schema: {AML.format('amlComptue')}\nname: x\n")
    (tmp_path / "c.yml").write_text("name: c\ntype: amlcompute\nsize: Standard_DS3_v2\n")

    inputs, alone = read_inputs([tmp_path]), read_inputs([prompt])

    assert [problem for problem in inputs.problems if problem.level == "error"] == []
    assert [(entry.place, entry.relevant) for entry in inputs.ledger] == [(str(prompt), True)]
    assert "did you mean `amlcompute`" in alone.problems[0].message


def test_the_state_of_a_managed_network_is_that_of_the_service() -> None:
    """A file cannot state it: the CLI does not send it."""
    network = {"isolation_mode": "allow_only_approved_outbound", "status": {"status": "Active"}, "network_id": "n"}
    placed = one({**HOME, "managed_network": network})

    assert value_at(placed.resource, f"{P}/managedNetwork/isolationMode") == "AllowOnlyApprovedOutbound"
    assert not has_value(placed.resource, f"{P}/managedNetwork/status")
    assert not has_value(placed.resource, f"{P}/managedNetwork/networkId")
    assert "the service sets it" in placed.unreadable[f"{P}/managedNetwork/status"]
