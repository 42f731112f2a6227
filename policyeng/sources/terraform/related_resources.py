"""The azurerm resources next to Machine Learning that policies inspect, and the construction of ids of others.

Source: https://registry.terraform.io/providers/hashicorp/azurerm/latest/docs; the ids are those that it documents for
`terraform import`.
"""

from __future__ import annotations

from collections.abc import Mapping

from policyeng.errors import InputError
from policyeng.parsing.json_text import DEFAULT_MAX_BYTES, parse_json
from policyeng.sources.field_mapping import FieldMapping, UnfitError, boolean, convert_integer, text
from policyeng.sources.terraform.resource_types import (
    CLUSTER,
    COMMON,
    GROUPED,
    IDENTITY,
    LOCATED,
    SUBNET,
    Addressed,
    Blocks,
    TerraformResourceType,
    Unstated,
    access,
    passed,
)

_MACHINE = "Microsoft.Compute/virtualMachines"
_NETWORK = "Microsoft.Network/virtualNetworks"
_AUTHORIZATION = "Microsoft.Authorization"
_DISK = "/properties/storageProfile/osDisk"


def _await_approval(value: object) -> object:
    """Convert whether a person approves a connection to its state after the deployment; None where none has to."""
    return "Pending" if boolean(value) else None


def _machine(system: str) -> TerraformResourceType:
    return TerraformResourceType(
        Addressed(_MACHINE),
        (
            *GROUPED,
            *IDENTITY,
            FieldMapping("/size", "/properties/hardwareProfile/vmSize", text),
            FieldMapping("/license_type", "/properties/licenseType", text),
            FieldMapping("/priority", "/properties/priority", text),
            FieldMapping("/eviction_policy", "/properties/evictionPolicy", text),
            FieldMapping("/dedicated_host_id", "/properties/host/id", text),
            FieldMapping("/dedicated_host_group_id", "/properties/hostGroup/id", text),
            FieldMapping("/source_image_reference/0/publisher", "/properties/storageProfile/imageReference/publisher"),
            FieldMapping("/source_image_reference/0/offer", "/properties/storageProfile/imageReference/offer"),
            FieldMapping("/source_image_reference/0/sku", "/properties/storageProfile/imageReference/sku"),
            FieldMapping("/source_image_reference/0/version", "/properties/storageProfile/imageReference/version"),
            FieldMapping("/os_disk/0/disk_size_gb", f"{_DISK}/diskSizeGB"),
        ),
        fixed={f"{_DISK}/osType": system},
        named={
            "/dedicated_host_id": "Microsoft.Compute/hostGroups/hosts",
            "/dedicated_host_group_id": "Microsoft.Compute/hostGroups",
        },
    )


#: A node pool, in its own resource and (except for spot pools) in the `default_node_pool` of a cluster.
_POOL = (
    FieldMapping("/name", "/name", text),
    FieldMapping("/vm_size", "/vmSize", text),
    FieldMapping("/node_count", "/count", convert_integer),
    FieldMapping("/min_count", "/minCount", convert_integer),
    FieldMapping("/max_count", "/maxCount", convert_integer),
    FieldMapping("/enable_auto_scaling", "/enableAutoScaling", boolean),
    FieldMapping("/auto_scaling_enabled", "/enableAutoScaling", boolean),
    FieldMapping("/enable_node_public_ip", "/enableNodePublicIP", boolean),
    FieldMapping("/node_public_ip_enabled", "/enableNodePublicIP", boolean),
    FieldMapping("/max_pods", "/maxPods", convert_integer),
    FieldMapping("/vnet_subnet_id", "/vnetSubnetID", text),
    FieldMapping("/pod_subnet_id", "/podSubnetID", text),
    FieldMapping("/host_group_id", "/hostGroupID", text),
    FieldMapping("/mode", "/mode", text),
    FieldMapping("/os_type", "/osType", text),
    FieldMapping("/priority", "/scaleSetPriority", text),
    FieldMapping("/eviction_policy", "/scaleSetEvictionPolicy", text),
    FieldMapping("/tags", "/tags"),
)
_POOL_NAMED = {"/vnet_subnet_id": SUBNET, "/pod_subnet_id": SUBNET, "/host_group_id": "Microsoft.Compute/hostGroups"}
#: Without a node count Azure creates one node; the pod and zone counts default to those of the network plan.
_POOL_UNSTATED = (Unstated("/node_count"), Unstated("/max_pods"), Unstated("/min_count"), Unstated("/max_count"))
_POOLS = "/properties/agentPoolProfiles"
_FIRST = "/default_node_pool/0"
_AKS_CLUSTER = TerraformResourceType(
    Addressed(CLUSTER),
    (
        *GROUPED,
        *IDENTITY,
        *(FieldMapping(_FIRST + row.source, f"{_POOLS}/0{row.target}", row.bring) for row in _POOL),
        FieldMapping("/private_cluster_enabled", "/properties/apiServerAccessProfile/enablePrivateCluster", boolean),
        FieldMapping("/sku_tier", "/sku/tier", text),
    ),
    named={_FIRST + source: kind for source, kind in _POOL_NAMED.items()},
    unstated=tuple(Unstated(_FIRST + one.source) for one in _POOL_UNSTATED),
    lists=(_POOLS,),
)
_NODE_POOL = TerraformResourceType(
    Addressed(f"{CLUSTER}/agentPools", parent="kubernetes_cluster_id"),
    tuple(
        row if row.target == "/name" else FieldMapping(row.source, f"/properties{row.target}", row.bring)
        for row in _POOL
    ),
    named={**_POOL_NAMED, "/kubernetes_cluster_id": CLUSTER},
    unstated=_POOL_UNSTATED,
)


def _find_ids(value: object) -> object:
    if isinstance(value, list) and all(isinstance(entry, str) for entry in value):
        return [{"id": entry} for entry in value]
    raise UnfitError("a list of ids")


def _find_services(value: object) -> object:
    if isinstance(value, list) and all(isinstance(entry, str) for entry in value):
        return [{"service": entry} for entry in value]
    raise UnfitError("a list of services")


_SUBNETS = Blocks(
    (
        FieldMapping("/name", "/name", text),
        FieldMapping("/id", "/id", text),
        FieldMapping("/address_prefix", "/properties/addressPrefix", text),
        FieldMapping("/address_prefixes", "/properties/addressPrefixes"),
        FieldMapping("/service_endpoints", "/properties/serviceEndpoints", _find_services),
        FieldMapping("/service_endpoint_policy_ids", "/properties/serviceEndpointPolicies", _find_ids),
    )
)
_CONTAINERS = Blocks(
    (
        FieldMapping("/name", "/name", text),
        FieldMapping("/image", "/properties/image", text),
        FieldMapping("/cpu", "/properties/resources/requests/cpu"),
        FieldMapping("/memory", "/properties/resources/requests/memoryInGB"),
    )
)
_ACTIONS = (
    FieldMapping("/actions", "/actions"),
    FieldMapping("/not_actions", "/notActions"),
    FieldMapping("/data_actions", "/dataActions"),
    FieldMapping("/not_data_actions", "/notDataActions"),
)
_PERMISSIONS = Blocks(_ACTIONS, fixed={row.target[1:]: [] for row in _ACTIONS})
_NOTIFICATIONS = Blocks(
    (
        FieldMapping("/enabled", "/enabled"),
        FieldMapping("/operator", "/operator"),
        FieldMapping("/threshold", "/threshold"),
        FieldMapping("/threshold_type", "/thresholdType"),
        FieldMapping("/contact_emails", "/contactEmails"),
        FieldMapping("/contact_groups", "/contactGroups"),
        FieldMapping("/contact_roles", "/contactRoles"),
    ),
    fixed={"enabled": True},
    numbered=True,
)


def _budget(parent: str, parent_type: str) -> TerraformResourceType:
    return TerraformResourceType(
        Addressed("Microsoft.Consumption/budgets", parent=parent),
        (
            *COMMON,
            *passed(parent, "etag"),
            FieldMapping("/amount", "/properties/amount"),
            FieldMapping("/time_grain", "/properties/timeGrain", text),
            FieldMapping("/time_period/0/start_date", "/properties/timePeriod/startDate", text),
            FieldMapping("/time_period/0/end_date", "/properties/timePeriod/endDate", text),
            FieldMapping("/filter/0", "/properties/filter"),
            FieldMapping("/notification", "/properties/notifications", _NOTIFICATIONS),
        ),
        fixed={"/properties/category": "Cost"},
        named={f"/{parent}": parent_type},
        unstated=(Unstated("/time_period/0/end_date"),),
    )


KINDS: Mapping[str, TerraformResourceType] = {
    "azurerm_linux_virtual_machine": _machine("Linux"),
    "azurerm_windows_virtual_machine": _machine("Windows"),
    "azurerm_kubernetes_cluster": _AKS_CLUSTER,
    "azurerm_kubernetes_cluster_node_pool": _NODE_POOL,
    "azurerm_virtual_network": TerraformResourceType(
        Addressed(_NETWORK),
        (
            *GROUPED,
            FieldMapping("/address_space", "/properties/addressSpace/addressPrefixes"),
            FieldMapping("/subnet", "/properties/subnets", _SUBNETS),
        ),
        unstated=(Unstated("/subnet"),),
    ),
    "azurerm_subnet": TerraformResourceType(
        Addressed(SUBNET, within="virtual_network_name"),
        (
            *COMMON,
            *passed("resource_group_name", "virtual_network_name"),
            FieldMapping("/address_prefix", "/properties/addressPrefix", text),
            FieldMapping("/address_prefixes", "/properties/addressPrefixes"),
            FieldMapping("/service_endpoints", "/properties/serviceEndpoints", _find_services),
            FieldMapping("/service_endpoint_policy_ids", "/properties/serviceEndpointPolicies", _find_ids),
            FieldMapping("/default_outbound_access_enabled", "/properties/defaultOutboundAccess", boolean),
        ),
        foreign=("/location",),
        unstated=(Unstated("/address_prefix"),),
    ),
    "azurerm_container_group": TerraformResourceType(
        Addressed("Microsoft.ContainerInstance/containerGroups"),
        (
            *GROUPED,
            *IDENTITY,
            FieldMapping("/ip_address_type", "/properties/ipAddress/type", text),
            FieldMapping("/subnet_ids", "/properties/subnetIds", _find_ids),
            FieldMapping("/network_profile_id", "/properties/networkProfile/id", text),
            FieldMapping("/container", "/properties/containers", _CONTAINERS),
            FieldMapping("/os_type", "/properties/osType", text),
            FieldMapping("/sku", "/properties/sku", text),
        ),
        # Those of other things that policies take for a service on container instances.
        foreign=("/memoryGiB", "/model", "/target", "/properties/publicIp", "/properties/vnetConfiguration"),
        named={"/subnet_ids": SUBNET},
        unstated=(Unstated("/network_profile_id"), Unstated("/subnet_ids")),
    ),
    "azurerm_role_assignment": TerraformResourceType(
        Addressed(f"{_AUTHORIZATION}/roleAssignments", parent="scope"),
        (
            FieldMapping("/name", "/name", text),
            FieldMapping("/scope", "/properties/scope", text),
            FieldMapping("/role_definition_id", "/properties/roleDefinitionId", text),
            FieldMapping("/role_definition_name", "/properties/roleDefinitionId", text),
            FieldMapping("/principal_id", "/properties/principalId", text),
            FieldMapping("/principal_type", "/properties/principalType", text),
            FieldMapping("/condition", "/properties/condition"),
            FieldMapping("/condition_version", "/properties/conditionVersion"),
            FieldMapping("/description", "/properties/description"),
        ),
        named={"/scope": "", "/role_definition_id": f"{_AUTHORIZATION}/roleDefinitions"},
    ),
    "azurerm_role_definition": TerraformResourceType(
        Addressed(f"{_AUTHORIZATION}/roleDefinitions", parent="scope"),
        (
            *passed("scope", "role_definition_id", "role_definition_resource_id"),
            FieldMapping("/name", "/properties/roleName", text),
            FieldMapping("/description", "/properties/description"),
            FieldMapping("/permissions", "/properties/permissions", _PERMISSIONS),
            FieldMapping("/assignable_scopes", "/properties/assignableScopes"),
        ),
        fixed={"/properties/type": "CustomRole"},
        named={"/scope": ""},
        unstated=(Unstated("/assignable_scopes"),),
    ),
    "azurerm_consumption_budget_resource_group": _budget("resource_group_id", "Microsoft.Resources/resourceGroups"),
    "azurerm_consumption_budget_subscription": _budget("subscription_id", "Microsoft.Resources/subscriptions"),
    "azurerm_private_endpoint": TerraformResourceType(
        Addressed("Microsoft.Network/privateEndpoints"),
        (
            *GROUPED,
            FieldMapping("/subnet_id", "/properties/subnet/id", text),
            FieldMapping(
                "/private_service_connection/0/name",
                "/properties/privateLinkServiceConnections/0/name",
                text,
            ),
            FieldMapping(
                "/private_service_connection/0/private_connection_resource_id",
                "/properties/privateLinkServiceConnections/0/properties/privateLinkServiceId",
                text,
            ),
            FieldMapping(
                "/private_service_connection/0/subresource_names",
                "/properties/privateLinkServiceConnections/0/properties/groupIds",
            ),
            FieldMapping(
                "/private_service_connection/0/is_manual_connection",
                "/properties/privateLinkServiceConnections/0/properties/privateLinkServiceConnectionState/status",
                _await_approval,
            ),
        ),
        named={"/subnet_id": SUBNET, "/private_service_connection/0/private_connection_resource_id": ""},
        lists=("/properties/privateLinkServiceConnections",),
    ),
}


def _name_zones(value: object) -> object:
    if isinstance(value, list) and all(isinstance(entry, str) for entry in value):
        return [{"name": entry.rpartition("/")[2], "properties": {"privateDnsZoneId": entry}} for entry in value]
    raise UnfitError("a list of ids")


#: The group of DNS zones in a private endpoint, which is a resource of its own in ARM.
ZONE_GROUP = TerraformResourceType(
    Addressed("Microsoft.Network/privateEndpoints/privateDnsZoneGroups"),
    (
        FieldMapping("/private_dns_zone_group/0/name", "/name", text),
        FieldMapping(
            "/private_dns_zone_group/0/private_dns_zone_ids", "/properties/privateDnsZoneConfigs", _name_zones
        ),
    ),
    named={"/private_dns_zone_group/0/private_dns_zone_ids": "Microsoft.Network/privateDnsZones"},
)

DEPLOYMENT = "Microsoft.Resources/deployments"
_SCRIPT = "Microsoft.Resources/deploymentScripts"
#: By Terraform type, the ARM type of what deploys other resources.
DEPLOYS: Mapping[str, str] = {
    "azurerm_blueprint_assignment": "Microsoft.Blueprint/blueprintAssignments",
    "azurerm_managed_application": "Microsoft.Solutions/applications",
    "azurerm_managed_application_definition": "Microsoft.Solutions/applicationDefinitions",
    "azurerm_management_group_template_deployment": DEPLOYMENT,
    "azurerm_resource_deployment_script_azure_cli": _SCRIPT,
    "azurerm_resource_deployment_script_azure_power_shell": _SCRIPT,
    "azurerm_resource_group_template_deployment": DEPLOYMENT,
    "azurerm_subscription_template_deployment": DEPLOYMENT,
    "azurerm_template_deployment": DEPLOYMENT,
    "azurerm_tenant_template_deployment": DEPLOYMENT,
}

#: The addresses of resources that are not checked, and that others refer to by id.
ADDRESSED: Mapping[str, Addressed] = {
    **{name: Addressed(arm_type) for name, arm_type in DEPLOYS.items()},
    "azurerm_dedicated_host": Addressed("Microsoft.Compute/hostGroups/hosts", parent="dedicated_host_group_id"),
    "azurerm_dedicated_host_group": Addressed("Microsoft.Compute/hostGroups"),
    "azurerm_log_analytics_workspace": Addressed("Microsoft.OperationalInsights/workspaces"),
    "azurerm_management_group": Addressed("Microsoft.Management/managementGroups"),
    "azurerm_private_dns_zone": Addressed("Microsoft.Network/privateDnsZones"),
    "azurerm_redis_cache": Addressed("Microsoft.Cache/redis"),
    "azurerm_search_service": Addressed("Microsoft.Search/searchServices"),
    "azurerm_synapse_spark_pool": Addressed("Microsoft.Synapse/workspaces/bigDataPools", parent="synapse_workspace_id"),
    "azurerm_synapse_workspace": Addressed("Microsoft.Synapse/workspaces"),
    "azurerm_user_assigned_identity": Addressed("Microsoft.ManagedIdentity/userAssignedIdentities"),
}


#: By the part of the Terraform types that names it, the attribute with the scope and its ARM type.
_SCOPES: Mapping[str, tuple[str, str]] = {
    "management_group": ("management_group_id", "Microsoft.Management/managementGroups"),
    "resource": ("resource_id", ""),
    "resource_group": ("resource_group_id", "Microsoft.Resources/resourceGroups"),
    "subscription": ("subscription_id", "Microsoft.Resources/subscriptions"),
}


def _parse_object(value: object) -> object:
    """Convert an object that is written as JSON text."""
    try:
        parsed = parse_json(value.encode(), "parameters", max_bytes=DEFAULT_MAX_BYTES) if isinstance(value, str) else {}
    except InputError:
        parsed = None
    if isinstance(value, str) and isinstance(parsed, dict):
        return parsed
    raise UnfitError("an object as JSON text")


def _enforce(value: object) -> object:
    return "Default" if boolean(value) else "DoNotEnforce"


def _assignment(attribute: str, scope_type: str) -> TerraformResourceType:
    return TerraformResourceType(
        Addressed(f"{_AUTHORIZATION}/policyAssignments", parent=attribute),
        (
            *LOCATED,
            *IDENTITY,
            *passed("metadata", "non_compliance_message"),
            FieldMapping(f"/{attribute}", "/properties/scope", text),
            FieldMapping("/policy_definition_id", "/properties/policyDefinitionId", text),
            FieldMapping("/display_name", "/properties/displayName"),
            FieldMapping("/description", "/properties/description"),
            FieldMapping("/enforce", "/properties/enforcementMode", _enforce),
            FieldMapping("/not_scopes", "/properties/notScopes"),
            FieldMapping("/parameters", "/properties/parameters", _parse_object),
            FieldMapping("/resource_selectors", "/properties/resourceSelectors"),
            FieldMapping("/overrides", "/properties/overrides"),
        ),
        named={f"/{attribute}": scope_type},
        unstated=(Unstated("/metadata"),),
    )


def _exemption(attribute: str, scope_type: str) -> TerraformResourceType:
    return TerraformResourceType(
        Addressed(f"{_AUTHORIZATION}/policyExemptions", parent=attribute),
        (
            *COMMON,
            *passed(attribute, "metadata"),
            FieldMapping("/policy_assignment_id", "/properties/policyAssignmentId", text),
            FieldMapping("/exemption_category", "/properties/exemptionCategory", text),
            FieldMapping("/expires_on", "/properties/expiresOn", text),
            FieldMapping("/display_name", "/properties/displayName"),
            FieldMapping("/description", "/properties/description"),
            FieldMapping("/policy_definition_reference_ids", "/properties/policyDefinitionReferenceIds"),
        ),
        named={f"/{attribute}": scope_type, "/policy_assignment_id": f"{_AUTHORIZATION}/policyAssignments"},
    )


GOVERNANCE_KINDS: Mapping[str, TerraformResourceType] = {
    "azurerm_management_lock": TerraformResourceType(
        Addressed(f"{_AUTHORIZATION}/locks", parent="scope"),
        (
            *COMMON,
            *passed("scope"),
            FieldMapping("/lock_level", "/properties/level", text),
            FieldMapping("/notes", "/properties/notes"),
        ),
        named={"/scope": ""},
    ),
    **{f"azurerm_{name}_policy_assignment": _assignment(*scope) for name, scope in _SCOPES.items()},
    **{f"azurerm_{name}_policy_exemption": _exemption(*scope) for name, scope in _SCOPES.items()},
    "azurerm_security_center_subscription_pricing": TerraformResourceType(
        Addressed("Microsoft.Security/pricings", name="resource_type", in_subscription=True),
        (
            *passed("id", "timeouts", "extension"),
            FieldMapping("/resource_type", "/name", text),
            FieldMapping("/tier", "/properties/pricingTier", text),
            FieldMapping("/subplan", "/properties/subPlan"),
        ),
        unstated=(Unstated("/subplan"),),
    ),
}


SETTING = "azurerm_monitor_diagnostic_setting"
_INSIGHTS = "Microsoft.Insights"
_ENABLED = FieldMapping("/enabled", "/enabled", boolean)
_CATEGORIES = (
    FieldMapping("/category", "/category"),
    FieldMapping("/category_group", "/categoryGroup"),
    FieldMapping("/retention_policy/0/enabled", "/retentionPolicy/enabled", boolean),
    FieldMapping("/retention_policy/0/days", "/retentionPolicy/days", convert_integer),
)
_EITHER = Blocks((*_CATEGORIES, _ENABLED), fixed={"enabled": True})
_ONLY_ENABLED = Blocks(_CATEGORIES, fixed={"enabled": True})
_CRITERIA = (
    FieldMapping("/metric_namespace", "/metricNamespace"),
    FieldMapping("/metric_name", "/metricName", text),
    FieldMapping("/operator", "/operator", text),
    FieldMapping("/aggregation", "/timeAggregation"),
)
_STATIC = Blocks(
    (*_CRITERIA, FieldMapping("/threshold", "/threshold")), fixed={"criterionType": "StaticThresholdCriterion"}
)
_DYNAMIC = Blocks(
    (*_CRITERIA, FieldMapping("/alert_sensitivity", "/alertSensitivity")),
    fixed={"criterionType": "DynamicThresholdCriterion"},
)

MONITORING_KINDS: Mapping[str, TerraformResourceType] = {
    SETTING: TerraformResourceType(
        Addressed(f"{_INSIGHTS}/diagnosticSettings", parent="target_resource_id"),
        (
            *COMMON,
            *passed("target_resource_id", "partner_solution_id"),
            FieldMapping("/log_analytics_workspace_id", "/properties/workspaceId", text),
            FieldMapping("/log_analytics_destination_type", "/properties/logAnalyticsDestinationType"),
            FieldMapping("/storage_account_id", "/properties/storageAccountId", text),
            FieldMapping("/eventhub_authorization_rule_id", "/properties/eventHubAuthorizationRuleId", text),
            FieldMapping("/eventhub_name", "/properties/eventHubName", text),
            FieldMapping("/log", "/properties/logs", _EITHER),
            FieldMapping("/enabled_log", "/properties/logs", _ONLY_ENABLED),
            FieldMapping("/metric", "/properties/metrics", _EITHER),
            FieldMapping("/enabled_metric", "/properties/metrics", _ONLY_ENABLED),
        ),
        named={
            "/target_resource_id": "",
            "/log_analytics_workspace_id": "Microsoft.OperationalInsights/workspaces",
            "/storage_account_id": "Microsoft.Storage/storageAccounts",
            "/eventhub_authorization_rule_id": "",
        },
        unstated=tuple(
            Unstated(f"/{name}")
            for name in ("log", "enabled_log", "metric", "enabled_metric", "log_analytics_destination_type")
        ),
        either=("log", "enabled_log", "metric", "enabled_metric"),
    ),
    "azurerm_monitor_metric_alert": TerraformResourceType(
        Addressed(f"{_INSIGHTS}/metricAlerts"),
        (
            *GROUPED,
            *passed("frequency", "window_size", "severity", "auto_mitigate", "action"),
            FieldMapping("/description", "/properties/description"),
            FieldMapping("/enabled", "/properties/enabled", boolean),
            FieldMapping("/scopes", "/properties/scopes"),
            FieldMapping("/target_resource_type", "/properties/targetResourceType", text),
            FieldMapping("/target_resource_location", "/properties/targetResourceRegion", text),
            FieldMapping("/criteria", "/properties/criteria/allOf", _STATIC),
            FieldMapping("/dynamic_criteria", "/properties/criteria/allOf", _DYNAMIC),
        ),
        # The service has no region for them.
        fixed={"/location": "global"},
        named={"/scopes": ""},
        unstated=(Unstated("/target_resource_type"), Unstated("/target_resource_location")),
        either=("criteria", "dynamic_criteria"),
    ),
    "azurerm_monitor_autoscale_setting": TerraformResourceType(
        Addressed(f"{_INSIGHTS}/autoscaleSettings"),
        (
            *GROUPED,
            *passed("profile", "notification", "predictive"),
            FieldMapping("/enabled", "/properties/enabled", boolean),
            FieldMapping("/target_resource_id", "/properties/targetResourceUri", text),
        ),
        named={"/target_resource_id": ""},
    ),
}


_ACCOUNT = "Microsoft.CognitiveServices/accounts"
_PUBLIC = FieldMapping("/public_network_access_enabled", "/properties/publicNetworkAccess", access)
_FILTERS = Blocks(
    (
        FieldMapping("/name", "/name", text),
        FieldMapping("/filter_enabled", "/enabled", boolean),
        FieldMapping("/block_enabled", "/blocking", boolean),
        FieldMapping("/severity_threshold", "/severityThreshold"),
        FieldMapping("/source", "/source", text),
    )
)
_AI_SERVICES = (
    *GROUPED,
    *IDENTITY,
    FieldMapping("/endpoint", "/properties/endpoint", text),
    FieldMapping("/custom_subdomain_name", "/properties/customSubDomainName"),
    FieldMapping("/sku_name", "/sku/name", text),
)

SERVICE_KINDS: Mapping[str, TerraformResourceType] = {
    "azurerm_application_insights": TerraformResourceType(
        Addressed("Microsoft.Insights/components"),
        (
            *GROUPED,
            FieldMapping("/application_type", "/properties/Application_Type"),
            FieldMapping("/workspace_id", "/properties/WorkspaceResourceId"),
        ),
        named={"/workspace_id": "Microsoft.OperationalInsights/workspaces"},
    ),
    "azurerm_container_registry": TerraformResourceType(
        Addressed("Microsoft.ContainerRegistry/registries"),
        (
            *GROUPED,
            *IDENTITY,
            _PUBLIC,
            FieldMapping("/sku", "/sku/name", text),
            FieldMapping("/admin_enabled", "/properties/adminUserEnabled", boolean),
        ),
    ),
    "azurerm_key_vault": TerraformResourceType(
        Addressed("Microsoft.KeyVault/vaults"),
        (
            *GROUPED,
            _PUBLIC,
            FieldMapping("/network_acls/0/default_action", "/properties/networkAcls/defaultAction", text),
            FieldMapping("/network_acls/0/bypass", "/properties/networkAcls/bypass", text),
            FieldMapping("/purge_protection_enabled", "/properties/enablePurgeProtection", boolean),
        ),
    ),
    "azurerm_storage_account": TerraformResourceType(
        Addressed("Microsoft.Storage/storageAccounts"),
        (
            *GROUPED,
            *IDENTITY,
            _PUBLIC,
            FieldMapping("/account_kind", "/kind", text),
            FieldMapping("/network_rules/0/default_action", "/properties/networkAcls/defaultAction", text),
            FieldMapping("/network_rules/0/bypass", "/properties/networkAcls/bypass"),
            FieldMapping("/allow_nested_items_to_be_public", "/properties/allowBlobPublicAccess", boolean),
            FieldMapping("/shared_access_key_enabled", "/properties/allowSharedKeyAccess", boolean),
        ),
    ),
    "azurerm_ai_services": TerraformResourceType(
        Addressed(_ACCOUNT),
        (*_AI_SERVICES, FieldMapping("/public_network_access", "/properties/publicNetworkAccess", text)),
        fixed={"/kind": "AIServices"},
    ),
    "azurerm_cognitive_account": TerraformResourceType(
        Addressed(_ACCOUNT), (*_AI_SERVICES, _PUBLIC, FieldMapping("/kind", "/kind", text))
    ),
    "azurerm_cognitive_deployment": TerraformResourceType(
        Addressed(f"{_ACCOUNT}/deployments", parent="cognitive_account_id"),
        (
            *COMMON,
            *passed("cognitive_account_id"),
            FieldMapping("/model/0/format", "/properties/model/format"),
            FieldMapping("/model/0/name", "/properties/model/name"),
            FieldMapping("/model/0/version", "/properties/model/version"),
            FieldMapping("/rai_policy_name", "/properties/raiPolicyName", text),
            FieldMapping("/version_upgrade_option", "/properties/versionUpgradeOption"),
            FieldMapping("/sku/0/name", "/sku/name", text),
            FieldMapping("/sku/0/capacity", "/sku/capacity"),
        ),
        named={"/cognitive_account_id": _ACCOUNT},
    ),
    "azurerm_cognitive_account_rai_policy": TerraformResourceType(
        Addressed(f"{_ACCOUNT}/raiPolicies", parent="cognitive_account_id"),
        (
            *COMMON,
            *passed("cognitive_account_id"),
            FieldMapping("/base_policy_name", "/properties/basePolicyName", text),
            FieldMapping("/mode", "/properties/mode", text),
            FieldMapping("/content_filter", "/properties/contentFilters", _FILTERS),
        ),
        named={"/cognitive_account_id": _ACCOUNT},
    ),
}
