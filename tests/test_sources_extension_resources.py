"""What extends or surrounds Machine Learning: settings, locks, alerts, endpoints and services, in every format."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from policyeng.models import JsonObject
from policyeng.sources import arm_rest, arm_template, kubernetes, resource_graph
from policyeng.sources.parsed import ParsedDocument, Placed, Surroundings
from tests.terraform_parts import (
    HERE,
    SCOPE,
    SUBSCRIPTION,
    WORKSPACE_ID,
    at,
    change,
    configured,
    plan,
    read,
    refers,
    resource,
    state,
)

SETTING = f"{WORKSPACE_ID}/providers/microsoft.insights/diagnosticSettings/logs"
ENDPOINT = f"{SCOPE}/providers/Microsoft.Network/privateEndpoints/pe"
STORAGE = f"{SCOPE}/providers/Microsoft.Storage/storageAccounts/sa"
CONNECTION: JsonObject = {
    "id": f"{STORAGE}/privateEndpointConnections/c",
    "name": "c",
    "privateEndpoint": {"id": ENDPOINT, "resourceGroup": "rg-ml"},
    "privateLinkServiceConnectionState": {"status": "Approved"},
    "provisioningState": "Succeeded",
    "resourceGroup": "rg-ml",
    "type": "Microsoft.Storage/storageAccounts/privateEndpointConnections",
}
_STATUS = "/properties/privateEndpointConnections/0/properties/privateLinkServiceConnectionState/status"
#: What a command prints, a pointer into the resource, its value, and where it is in the output.
PRINTED: Mapping[str, tuple[JsonObject, str, object, str]] = {
    "az lock list": (
        {
            "id": f"{SCOPE}/providers/Microsoft.Authorization/locks/keep",
            "level": "CanNotDelete",
            "name": "keep",
            "notes": None,
            "owners": None,
            "resourceGroup": "rg-ml",
            "type": "Microsoft.Authorization/locks",
        },
        "/properties/level",
        "CanNotDelete",
        "/level",
    ),
    "az monitor diagnostic-settings list": (
        {
            "eventHubName": None,
            "id": SETTING,
            "logs": [{"categoryGroup": "allLogs", "enabled": True, "retentionPolicy": {"days": 0, "enabled": False}}],
            "metrics": [],
            "name": "logs",
            "resourceGroup": "rg-ml",
            "type": "Microsoft.Insights/diagnosticSettings",
            "workspaceId": "/law",
        },
        "/properties/logs/0/categoryGroup",
        "allLogs",
        "/logs/0/categoryGroup",
    ),
    "az network private-endpoint show": (
        {
            "id": ENDPOINT,
            "location": "eastus",
            "manualPrivateLinkServiceConnections": [],
            "name": "pe",
            "privateLinkServiceConnections": [
                {"groupIds": ["amlworkspace"], "name": "c", "privateLinkServiceId": WORKSPACE_ID}
            ],
            "provisioningState": "Succeeded",
            "resourceGroup": "rg-ml",
            "type": "Microsoft.Network/privateEndpoints",
        },
        "/properties/privateLinkServiceConnections/0/properties/groupIds/0",
        "amlworkspace",
        "/privateLinkServiceConnections/0/groupIds/0",
    ),
    "az network private-endpoint dns-zone-group list": (
        {
            "id": f"{ENDPOINT}/privateDnsZoneGroups/default",
            "name": "default",
            "privateDnsZoneConfigs": [{"name": "a", "privateDnsZoneId": "/z", "recordSets": []}],
            "resourceGroup": "rg-ml",
        },
        "/properties/privateDnsZoneConfigs/0/properties/privateDnsZoneId",
        "/z",
        "/privateDnsZoneConfigs/0/privateDnsZoneId",
    ),
    "az storage account show": (
        {
            "id": STORAGE,
            "kind": "StorageV2",
            "location": "eastus",
            "name": "sa",
            "networkRuleSet": {"defaultAction": "Deny"},
            "privateEndpointConnections": [CONNECTION],
            "provisioningState": "Succeeded",
            "publicNetworkAccess": "Disabled",
            "type": "Microsoft.Storage/storageAccounts",
        },
        _STATUS,
        "Approved",
        "/privateEndpointConnections/0/privateLinkServiceConnectionState/status",
    ),
    "az acr show": (
        {
            "id": f"{SCOPE}/providers/Microsoft.ContainerRegistry/registries/cr",
            "loginServer": "cr.azurecr.io",
            "name": "cr",
            "publicNetworkAccess": "Enabled",
            "sku": {"name": "Premium"},
            "type": "Microsoft.ContainerRegistry/registries",
        },
        "/properties/publicNetworkAccess",
        "Enabled",
        "/publicNetworkAccess",
    ),
    "az keyvault show": (
        {
            "id": f"{SCOPE}/providers/Microsoft.KeyVault/vaults/kv",
            "name": "kv",
            "properties": {"privateEndpointConnections": [CONNECTION], "publicNetworkAccess": "Disabled"},
            "resourceGroup": "rg-ml",
            "type": "Microsoft.KeyVault/vaults",
        },
        _STATUS,
        "Approved",
        "/properties/privateEndpointConnections/0/privateLinkServiceConnectionState/status",
    ),
    "az monitor metrics alert list": (
        {
            "criteria": {"allOf": [{"metricName": "Failed Runs", "threshold": 0.0}]},
            "enabled": True,
            "id": f"{SCOPE}/providers/Microsoft.Insights/metricAlerts/a",
            "name": "a",
            "scopes": [WORKSPACE_ID],
            "type": "Microsoft.Insights/metricAlerts",
        },
        "/properties/criteria/allOf/0/metricName",
        "Failed Runs",
        "/criteria/allOf/0/metricName",
    ),
    "az policy exemption list": (
        {
            "exemptionCategory": "Waiver",
            "expiresOn": None,
            "id": f"{SCOPE}/providers/Microsoft.Authorization/policyExemptions/e",
            "name": "e",
            "type": "Microsoft.Authorization/policyExemptions",
        },
        "/properties/exemptionCategory",
        "Waiver",
        "/exemptionCategory",
    ),
    "az security pricing show": (
        {
            "id": f"{SUBSCRIPTION}/providers/Microsoft.Security/pricings/AI",
            "name": "AI",
            "pricingTier": "Free",
            "type": "Microsoft.Security/pricings",
        },
        "/properties/pricingTier",
        "Free",
        "/pricingTier",
    ),
    "az network vnet show": (
        {
            "addressSpace": {"addressPrefixes": ["10.0.0.0/16"]},
            "id": f"{SCOPE}/providers/Microsoft.Network/virtualNetworks/net",
            "name": "net",
            "subnets": [{"addressPrefix": "10.0.1.0/24", "id": "/s", "name": "s", "resourceGroup": "rg-ml"}],
            "type": "Microsoft.Network/virtualNetworks",
        },
        "/properties/subnets/0/properties/addressPrefix",
        "10.0.1.0/24",
        "/subnets/0/addressPrefix",
    ),
}


def _origin(placed: Placed, pointer: str) -> str:
    """The place of a pointer in the document, as `Origin.pointer_to` finds it."""
    above = max((one for one in placed.fields if f"{pointer}/".startswith(f"{one}/")), key=len)
    return placed.fields[above] + pointer[len(above) :]


@pytest.mark.parametrize("command", PRINTED)
@pytest.mark.parametrize("form", ["alone", "in a list", "in a value"])
def test_commands_print_resources_without_properties(command: str, form: str) -> None:
    """The members next to `id` become those of `properties`, and findings point at where they are."""
    output, pointer, expected, place = PRINTED[command]
    document = {"alone": output, "in a list": [output], "in a value": {"value": [output]}}[form]
    base = {"alone": "", "in a list": "/0", "in a value": "/value/0"}[form]

    assert arm_rest.detect(document)
    reading = arm_rest.read(document)
    assert reading.refusals == ()
    [placed] = reading.resources
    assert at(placed, pointer) == expected
    assert _origin(placed, pointer) == base + place
    assert placed.resource["properties"].keys().isdisjoint({"id", "name", "type", "resourceGroup", "location"})
    assert "provisioningState" not in placed.resource


def test_resources_in_the_form_of_the_rest_api_are_unchanged() -> None:
    """A private endpoint whose connections have `properties`."""
    connection = {"name": "c", "properties": {"groupIds": ["amlworkspace"]}}
    whole: JsonObject = {
        "id": ENDPOINT,
        "type": "Microsoft.Network/privateEndpoints",
        "properties": {"privateLinkServiceConnections": [connection]},
    }
    [placed] = arm_rest.read(whole).resources

    assert placed.resource is whole


@pytest.mark.parametrize(
    "kind", ["Microsoft.MachineLearningServices/workspaces", "Microsoft.Compute/virtualMachines", "Microsoft.X/ys"]
)
def test_other_flattened_listings_are_refused(kind: str) -> None:
    """Members that commands do not print, and those with other names there."""
    reading = arm_rest.read([{"id": f"{SCOPE}/providers/{kind}/a", "name": "a", "type": kind, "vmId": "7"}])

    assert [refusal.message.partition(":")[0] for refusal in reading.refusals] == ["a flattened listing"]


ROWS: Mapping[str, JsonObject] = {
    "microsoft.storage/storageaccounts": {"id": STORAGE, "properties": {"publicNetworkAccess": "Disabled"}},
    "microsoft.network/privateendpoints": {"id": ENDPOINT, "properties": {"privateLinkServiceConnections": []}},
    "microsoft.authorization/policyassignments": {
        "id": f"{SCOPE}/providers/microsoft.authorization/policyassignments/a",
        "properties": {"enforcementMode": "Default"},
    },
    "microsoft.security/pricings": {
        "id": f"{SUBSCRIPTION}/providers/Microsoft.Security/pricings/AI",
        "properties": {"pricingTier": "Standard"},
    },
    "microsoft.authorization/locks": {
        "id": f"{WORKSPACE_ID}/providers/Microsoft.Authorization/locks/keep",
        "properties": {"level": "ReadOnly"},
    },
}


@pytest.mark.parametrize("kind", ROWS)
def test_rows_of_resource_graph_are_read(kind: str) -> None:
    """The service writes types in small letters, and adds columns."""
    row = {**ROWS[kind], "type": kind, "name": "x", "location": "", "resourceGroup": "rg-ml", "subscriptionId": "1"}
    [placed] = resource_graph.read({"count": 1, "data": [row], "total_records": 1}).resources

    assert placed.resource["properties"] == row["properties"]
    assert "/properties" not in placed.unreadable


_TEMPLATE = "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#"
_ML = "Microsoft.MachineLearningServices/workspaces"
_LOGS: JsonObject = {"logs": [{"categoryGroup": "allLogs", "enabled": True}]}
#: By the form in a template, a resource and the part of its id below the resource group.
EXTENSIONS: Mapping[str, tuple[JsonObject, str]] = {
    "scope": (
        {"type": "Microsoft.Insights/diagnosticSettings", "name": "a", "scope": f"[format('{_ML}/{{0}}', 'ws')]"},
        f"/providers/{_ML}/ws/providers/Microsoft.Insights/diagnosticSettings/a",
    ),
    "scope of a child": (
        {
            "type": "Microsoft.Insights/diagnosticSettings",
            "name": "a",
            "scope": f"[resourceId('{_ML}/onlineEndpoints', 'ws', 'ep')]",
        },
        f"/providers/{_ML}/ws/onlineEndpoints/ep/providers/Microsoft.Insights/diagnosticSettings/a",
    ),
    "older nested type": (
        {"type": f"{_ML}/providers/diagnosticSettings", "name": "ws/Microsoft.Insights/a"},
        f"/providers/{_ML}/ws/providers/Microsoft.Insights/diagnosticSettings/a",
    ),
    "older nested type of a child": (
        {"type": f"{_ML}/onlineEndpoints/providers/diagnosticSettings", "name": "ws/ep/microsoft.insights/a"},
        f"/providers/{_ML}/ws/onlineEndpoints/ep/providers/microsoft.insights/diagnosticSettings/a",
    ),
    "lock": (
        {"type": "Microsoft.Authorization/locks", "name": "keep"},
        "/providers/Microsoft.Authorization/locks/keep",
    ),
    "older nested lock": (
        {"type": f"{_ML}/providers/locks", "name": "ws/Microsoft.Authorization/keep"},
        f"/providers/{_ML}/ws/providers/Microsoft.Authorization/locks/keep",
    ),
    "policy exemption": (
        {"type": "Microsoft.Authorization/policyExemptions", "name": "e", "scope": f"{_ML}/ws"},
        f"/providers/{_ML}/ws/providers/Microsoft.Authorization/policyExemptions/e",
    ),
    "group of DNS zones": (
        {"type": "Microsoft.Network/privateEndpoints/privateDnsZoneGroups", "name": "pe/default"},
        "/providers/Microsoft.Network/privateEndpoints/pe/privateDnsZoneGroups/default",
    ),
}


def _deployed(entry: JsonObject, around: Surroundings) -> ParsedDocument:
    whole = {"apiVersion": "2021-05-01-preview", "properties": _LOGS, **entry}
    return arm_template.read({"$schema": _TEMPLATE, "contentVersion": "1.0.0.0", "resources": [whole]}, around)


@pytest.mark.parametrize("form", EXTENSIONS)
def test_templates_extend_resources_in_every_form(form: str) -> None:
    """The id is that of the deployed resource; without a scope it is not known."""
    entry, identity = EXTENSIONS[form]
    [placed] = _deployed(entry, HERE).resources
    [loose] = _deployed(entry, Surroundings()).resources

    assert placed.resource["id"] == SCOPE + identity
    assert placed.resource["type"].rpartition("/")[2] == identity.split("/")[-2]
    assert "/id" not in placed.unreadable
    assert "/id" in loose.unreadable


@pytest.mark.parametrize(
    ("kind", "pointer"),
    [
        (_ML, "/properties/managedNetwork/status"),
        (_ML, "/properties/privateEndpointConnections"),
        (f"{_ML}/computes", "/properties/properties/osImageMetadata"),
        (f"{_ML}/computes", "/properties/properties/connectivityEndpoints"),
        (f"{_ML}/onlineEndpoints", "/properties/provisioningState"),
        ("Microsoft.Storage/storageAccounts", "/properties/privateEndpointConnections"),
        ("Microsoft.KeyVault/vaults", "/properties/privateEndpointConnections"),
        ("Microsoft.ContainerRegistry/registries", "/properties/privateEndpointConnections"),
    ],
)
def test_values_of_the_service_are_unknown_before_deployment(kind: str, pointer: str) -> None:
    """In templates, and in bodies of azapi that are created."""
    name = "/".join("abc"[: kind.count("/")])
    [placed] = _deployed({"type": kind, "name": name, "properties": {}}, HERE).resources
    body = resource("azapi_resource", {"type": f"{kind}@2024-10-01", "name": "a", "parent_id": SCOPE, "body": {}})
    [planned] = read(plan([body], [change(body, {"id": True})])).resources

    assert "the service sets it" in placed.unreadable[pointer]
    assert "the service sets it" in planned.unreadable[pointer]


LAW = f"{SCOPE}/providers/Microsoft.OperationalInsights/workspaces/law"
GROUPED: JsonObject = {"resource_group_name": "rg-ml", "location": "eastus"}
#: A Terraform type, attributes, a pointer into the resource, and its value.
ATTRIBUTES: list[tuple[str, JsonObject, str, object]] = [
    (
        "azurerm_monitor_diagnostic_setting",
        {"name": "logs", "target_resource_id": WORKSPACE_ID},
        "/id",
        f"{WORKSPACE_ID}/providers/Microsoft.Insights/diagnosticSettings/logs",
    ),
    (
        "azurerm_monitor_diagnostic_setting",
        {
            "name": "logs",
            "target_resource_id": WORKSPACE_ID,
            "log_analytics_workspace_id": LAW,
            "log": [],
            "enabled_log": [{"category": None, "category_group": "allLogs", "retention_policy": []}],
            "metric": [{"category": "AllMetrics", "enabled": False}],
            "enabled_metric": [],
        },
        "/properties",
        {
            "workspaceId": LAW,
            "logs": [{"enabled": True, "categoryGroup": "allLogs"}],
            "metrics": [{"enabled": False, "category": "AllMetrics"}],
        },
    ),
    (
        "azurerm_monitor_diagnostic_setting",
        {
            "name": "logs",
            "target_resource_id": WORKSPACE_ID,
            "storage_account_id": STORAGE,
            "log": [{"category": "A", "enabled": False, "retention_policy": [{"enabled": True, "days": 30}]}],
            "enabled_log": [],
        },
        "/properties/logs",
        [{"enabled": False, "category": "A", "retentionPolicy": {"enabled": True, "days": 30}}],
    ),
    (
        "azurerm_management_lock",
        {"name": "keep", "scope": SCOPE, "lock_level": "CanNotDelete"},
        "/properties/level",
        "CanNotDelete",
    ),
    (
        "azurerm_management_lock",
        {"name": "keep", "scope": WORKSPACE_ID, "lock_level": "ReadOnly"},
        "/id",
        f"{WORKSPACE_ID}/providers/Microsoft.Authorization/locks/keep",
    ),
    (
        "azurerm_monitor_metric_alert",
        {
            **GROUPED,
            "name": "a",
            "enabled": True,
            "scopes": [WORKSPACE_ID],
            "criteria": [{"metric_name": "Failed Runs", "operator": "GreaterThan", "threshold": 0}],
            "dynamic_criteria": [],
        },
        "/properties",
        {
            "enabled": True,
            "scopes": [WORKSPACE_ID],
            "criteria": {
                "allOf": [
                    {
                        "criterionType": "StaticThresholdCriterion",
                        "metricName": "Failed Runs",
                        "operator": "GreaterThan",
                        "threshold": 0,
                    }
                ]
            },
        },
    ),
    (
        "azurerm_monitor_metric_alert",
        {**GROUPED, "name": "a", "criteria": [], "dynamic_criteria": [{"metric_name": "Unusable Nodes"}]},
        "/properties/criteria/allOf",
        [{"criterionType": "DynamicThresholdCriterion", "metricName": "Unusable Nodes"}],
    ),
    (
        "azurerm_monitor_autoscale_setting",
        {**GROUPED, "name": "s", "enabled": False, "target_resource_id": f"{WORKSPACE_ID}/onlineEndpoints/e"},
        "/properties",
        {"enabled": False, "targetResourceUri": f"{WORKSPACE_ID}/onlineEndpoints/e"},
    ),
    (
        "azurerm_security_center_subscription_pricing",
        {"resource_type": "AI", "tier": "Standard"},
        "/id",
        f"{SUBSCRIPTION}/providers/Microsoft.Security/pricings/AI",
    ),
    (
        "azurerm_security_center_subscription_pricing",
        {"resource_type": "AI", "tier": "Standard"},
        "/properties/pricingTier",
        "Standard",
    ),
    (
        "azurerm_resource_group_policy_assignment",
        {
            "name": "a",
            "resource_group_id": SCOPE,
            "policy_definition_id": "/d",
            "enforce": False,
            "parameters": '{"signingKey": {"value": "k"}}',
        },
        "/properties",
        {
            "scope": SCOPE,
            "policyDefinitionId": "/d",
            "enforcementMode": "DoNotEnforce",
            "parameters": {"signingKey": {"value": "k"}},
        },
    ),
    (
        "azurerm_resource_policy_exemption",
        {"name": "e", "resource_id": WORKSPACE_ID, "exemption_category": "Waiver", "expires_on": None},
        "/properties",
        {"exemptionCategory": "Waiver"},
    ),
    *(
        (kind, {**GROUPED, "name": "x", "public_network_access_enabled": enabled}, place, word)
        for kind in ("azurerm_storage_account", "azurerm_key_vault", "azurerm_container_registry")
        for enabled, word in ((True, "Enabled"), (False, "Disabled"))
        for place in ["/properties/publicNetworkAccess"]
    ),
    ("azurerm_application_insights", {**GROUPED, "name": "x"}, "/location", "eastus"),
    (
        "azurerm_cognitive_account_rai_policy",
        {
            "name": "strict",
            "cognitive_account_id": f"{SCOPE}/providers/Microsoft.CognitiveServices/accounts/ai",
            "content_filter": [{"name": "Hate", "filter_enabled": True, "block_enabled": False, "source": "Prompt"}],
        },
        "/properties/contentFilters",
        [{"name": "Hate", "enabled": True, "blocking": False, "source": "Prompt"}],
    ),
    (
        "azurerm_cognitive_deployment",
        {
            "name": "gpt",
            "cognitive_account_id": f"{SCOPE}/providers/Microsoft.CognitiveServices/accounts/ai",
            "rai_policy_name": "strict",
        },
        "/properties/raiPolicyName",
        "strict",
    ),
    (
        "azurerm_subnet",
        {
            "name": "s",
            "resource_group_name": "rg-ml",
            "virtual_network_name": "net",
            "service_endpoints": ["Microsoft.Storage"],
            "service_endpoint_policy_ids": ["/p"],
        },
        "/properties",
        {"serviceEndpoints": [{"service": "Microsoft.Storage"}], "serviceEndpointPolicies": [{"id": "/p"}]},
    ),
    (
        "azurerm_machine_learning_registry",
        {
            **GROUPED,
            "name": "r",
            "main_region": [{"location": "eastus"}],
            "replication_region": [{"location": "westus"}, {"location": "northeurope"}],
        },
        "/properties/regionDetails",
        [{"location": "eastus"}, {"location": "westus"}, {"location": "northeurope"}],
    ),
]


def _planned(kind: str, values: JsonObject, unknown: JsonObject | None = None, **more: object) -> list[Placed]:
    entry = resource(kind, values)
    reading = read(plan([entry], [change(entry, {"id": True, **(unknown or {})}, **more)]))  # type: ignore[arg-type]
    assert (reading.refusals, reading.remarks) == ((), ())
    return list(reading.resources)


@pytest.mark.parametrize(("kind", "values", "pointer", "expected"), ATTRIBUTES)
def test_attributes_of_azurerm_become_arm_fields(kind: str, values: JsonObject, pointer: str, expected: object) -> None:
    """As the provider sends them."""
    [placed] = _planned(kind, values)

    assert at(placed, pointer) == expected
    assert pointer not in placed.unreadable


STORE: JsonObject = {"name": "d", "workspace_id": WORKSPACE_ID}
_KIND = "/properties/credentials/credentialsType"


@pytest.mark.parametrize(
    ("kind", "values", "sensitive", "expected"),
    [
        ("blobstorage", {"account_key": None, "shared_access_signature": None}, {}, "None"),
        ("blobstorage", {"account_key": ""}, {"account_key": True}, "None"),
        ("blobstorage", {"account_key": "k"}, {"account_key": True}, "AccountKey"),
        ("fileshare", {"shared_access_signature": "s"}, {"shared_access_signature": True}, "Sas"),
        ("datalake_gen2", {"client_secret": "s"}, {"client_secret": True}, "ServicePrincipal"),
        ("datalake_gen2", {}, {}, "None"),
    ],
)
def test_the_kind_of_a_secret_is_known_where_its_value_is_not(
    kind: str, values: JsonObject, sensitive: JsonObject, expected: str
) -> None:
    """Secrets are sensitive, so their values are not read."""
    [placed] = _planned(f"azurerm_machine_learning_datastore_{kind}", {**STORE, **values}, sensitive=sensitive)

    assert at(placed, _KIND) == expected
    assert "k" not in str(at(placed, "/properties/credentials")).replace("Key", "").replace("key", "")


def test_a_secret_that_is_known_after_apply_is_unknown() -> None:
    """Whether it will be empty is not known."""
    [placed] = _planned("azurerm_machine_learning_datastore_blobstorage", dict(STORE), {"account_key": True})

    assert at(placed, _KIND) is ...
    assert "known only after apply" in placed.unreadable[_KIND]


ZONES = [
    f"{SCOPE}/providers/Microsoft.Network/privateDnsZones/{zone}"
    for zone in ("privatelink.api.azureml.ms", "privatelink.notebooks.azure.net")
]
PRIVATE: JsonObject = {
    **GROUPED,
    "name": "pe",
    "private_service_connection": [{"name": "c", "subresource_names": ["amlworkspace"]}],
}


def test_a_private_endpoint_brings_its_group_of_zones() -> None:
    """It is a resource of its own in ARM."""
    group = {"name": "default", "private_dns_zone_ids": ZONES}
    endpoint, zones = _planned("azurerm_private_endpoint", {**PRIVATE, "private_dns_zone_group": [group]})

    assert at(endpoint, "/properties/privateLinkServiceConnections/0/properties/groupIds") == ["amlworkspace"]
    assert zones.resource["id"] == f"{ENDPOINT}/privateDnsZoneGroups/default"
    found = at(zones, "/properties/privateDnsZoneConfigs")
    assert isinstance(found, list)
    assert [one["properties"]["privateDnsZoneId"] for one in found] == ZONES
    assert len(_planned("azurerm_private_endpoint", {**PRIVATE, "private_dns_zone_group": []})) == 1


@pytest.mark.parametrize("whole", [True, False])
def test_zones_that_the_plan_creates_are_known_by_name(whole: bool) -> None:
    """Their ids are known after apply, and each reference leads to one of them."""
    names = {"api": "privatelink.api.azureml.ms", "notebooks": "privatelink.notebooks.azure.net"}
    made = [
        resource("azurerm_private_dns_zone", {"name": zone, "resource_group_name": "rg-ml"}, name)
        for name, zone in names.items()
    ]
    entry = resource("azurerm_private_endpoint", {**PRIVATE, "private_dns_zone_group": [{"name": "default"}]})
    references = [f"azurerm_private_dns_zone.{name}.id" for name in names] + ([] if whole else ["local.more"])
    configuration = configured(
        "azurerm_private_endpoint", {"private_dns_zone_group": [{"private_dns_zone_ids": refers(*references)}]}
    )
    unknown = {"private_dns_zone_group": [{"private_dns_zone_ids": True}]}
    _, zones = read(plan([entry, *made], [change(entry, unknown)], [configuration])).resources

    found = at(zones, "/properties/privateDnsZoneConfigs")
    if whole:
        assert isinstance(found, list)
        assert [one["properties"]["privateDnsZoneId"] for one in found] == ZONES
    else:
        assert found is ...
        assert "known only after apply" in zones.unreadable["/properties/privateDnsZoneConfigs"]


def test_a_setting_extends_what_the_plan_creates() -> None:
    """The workspace has no id yet, and neither has its lock."""
    workspace = resource("azurerm_machine_learning_workspace", {**GROUPED, "name": "ws"})
    setting = resource("azurerm_monitor_diagnostic_setting", {"name": "logs"})
    lock = resource("azurerm_management_lock", {"name": "keep"})
    made = refers("azurerm_machine_learning_workspace.this.id", "azurerm_machine_learning_workspace.this")
    configuration = [
        configured("azurerm_monitor_diagnostic_setting", {"target_resource_id": made}),
        configured("azurerm_management_lock", {"scope": made}),
    ]
    changes = [
        change(workspace, {"id": True}),
        change(setting, {"target_resource_id": True}),
        change(lock, {"scope": True}),
    ]
    every = read(plan([workspace, setting, lock], changes, configuration)).resources

    assert [one.resource["id"] for one in every] == [
        WORKSPACE_ID,
        f"{WORKSPACE_ID}/providers/Microsoft.Insights/diagnosticSettings/logs",
        f"{WORKSPACE_ID}/providers/Microsoft.Authorization/locks/keep",
    ]


def test_a_setting_of_a_state_has_the_id_of_arm() -> None:
    """Terraform joins the id of the resource and the name of the setting."""
    setting = {"id": f"{WORKSPACE_ID}|logs", "name": "logs", "target_resource_id": WORKSPACE_ID}
    [placed] = read(state([resource("azurerm_monitor_diagnostic_setting", setting)])).resources

    assert placed.resource["id"] == f"{WORKSPACE_ID}/providers/Microsoft.Insights/diagnosticSettings/logs"


def _manifest(group: str, kind: str, spec: JsonObject, name: str = "it") -> JsonObject:
    return {
        "apiVersion": f"{group}.azure.com/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "n"},
        "spec": spec,
    }


_OWNER: JsonObject = {"owner": {"armId": SCOPE}}
#: A manifest of Azure Service Operator, a pointer into the resource that it becomes, and its value.
MANIFESTS: list[tuple[JsonObject, str, object]] = [
    (
        _manifest("storage", "StorageAccount", {**_OWNER, "publicNetworkAccess": "Disabled"}),
        "/properties/publicNetworkAccess",
        "Disabled",
    ),
    (
        _manifest("keyvault", "Vault", {**_OWNER, "properties": {"publicNetworkAccess": "Enabled"}}),
        "/properties/publicNetworkAccess",
        "Enabled",
    ),
    (
        _manifest("containerregistry", "Registry", {**_OWNER, "publicNetworkAccess": "Disabled"}),
        "/properties/publicNetworkAccess",
        "Disabled",
    ),
    (_manifest("insights", "Component", {**_OWNER, "location": "westus"}), "/location", "westus"),
    (
        _manifest(
            "network",
            "PrivateEndpoint",
            {**_OWNER, "privateLinkServiceConnections": [{"name": "c", "groupIds": ["amlworkspace"]}]},
        ),
        "/properties/privateLinkServiceConnections",
        [{"name": "c", "properties": {"groupIds": ["amlworkspace"]}}],
    ),
    (
        _manifest(
            "network",
            "PrivateEndpointsPrivateDnsZoneGroup",
            {
                "owner": {"armId": ENDPOINT},
                "privateDnsZoneConfigs": [{"name": "a", "privateDnsZoneReference": {"armId": ZONES[0]}}],
            },
        ),
        "/properties/privateDnsZoneConfigs",
        [{"name": "a", "properties": {"privateDnsZoneId": ZONES[0]}}],
    ),
    (
        _manifest(
            "insights",
            "DiagnosticSetting",
            {
                "owner": {"armId": WORKSPACE_ID},
                "logs": [{"categoryGroup": "allLogs", "enabled": True}],
                "storageAccountReference": {"armId": STORAGE},
                "workspaceReference": {"armId": LAW},
            },
        ),
        "/properties",
        {"logs": [{"categoryGroup": "allLogs", "enabled": True}], "storageAccountId": STORAGE, "workspaceId": LAW},
    ),
]


@pytest.mark.parametrize(("manifest", "pointer", "expected"), MANIFESTS)
def test_objects_of_the_operator_become_arm_resources(manifest: JsonObject, pointer: str, expected: object) -> None:
    """The operator flattens parts of resources, and names others by references."""
    reading = kubernetes.read(manifest, HERE)

    assert (reading.refusals, reading.remarks) == ((), ())
    [placed] = reading.resources
    assert at(placed, pointer) == expected
    assert "/id" not in placed.unreadable


def test_a_setting_of_the_operator_extends_its_owner() -> None:
    """Its id is below that of the workspace, and it has no `scope`, which role assignments have."""
    [placed] = kubernetes.read(MANIFESTS[-1][0], HERE).resources

    assert placed.resource["id"] == f"{WORKSPACE_ID}/providers/Microsoft.Insights/diagnosticSettings/it"


def test_an_unknown_zone_of_the_operator_makes_the_zones_unknown() -> None:
    """A placeholder in one of them, which a tool replaces."""
    config = {
        "name": "a",
        "privateDnsZoneReference": {"group": "network.azure.com", "kind": "PrivateDnsZone", "name": "${Z}"},
    }
    spec = {"owner": {"armId": ENDPOINT}, "privateDnsZoneConfigs": [config]}
    [placed] = kubernetes.read(_manifest("network", "PrivateEndpointsPrivateDnsZoneGroup", spec), HERE).resources

    assert at(placed, "/properties/privateDnsZoneConfigs") is ...
    assert "placeholder" in placed.unreadable["/properties/privateDnsZoneConfigs"]
