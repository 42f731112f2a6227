"""The azurerm resources beside Machine Learning ones that policies look at, and how the ids of others are made.

Source: https://registry.terraform.io/providers/hashicorp/azurerm/latest/docs; the ids are those that it documents for
`terraform import`.
"""

from __future__ import annotations

from collections.abc import Mapping

from policyeng.sources.mapping import Field, UnfitError, boolean, text, whole
from policyeng.sources.terraform.kinds import (
    CLUSTER,
    COMMON,
    GROUPED,
    IDENTITY,
    SUBNET,
    Addressed,
    Blocks,
    Kind,
    Unstated,
    passed,
)

_MACHINE = "Microsoft.Compute/virtualMachines"
_NETWORK = "Microsoft.Network/virtualNetworks"
_AUTHORIZATION = "Microsoft.Authorization"
_DISK = "/properties/storageProfile/osDisk"


def _machine(system: str) -> Kind:
    return Kind(
        Addressed(_MACHINE),
        (
            *GROUPED,
            *IDENTITY,
            Field("/size", "/properties/hardwareProfile/vmSize", text),
            Field("/license_type", "/properties/licenseType", text),
            Field("/priority", "/properties/priority", text),
            Field("/eviction_policy", "/properties/evictionPolicy", text),
            Field("/dedicated_host_id", "/properties/host/id", text),
            Field("/dedicated_host_group_id", "/properties/hostGroup/id", text),
            Field("/source_image_reference/0/publisher", "/properties/storageProfile/imageReference/publisher"),
            Field("/source_image_reference/0/offer", "/properties/storageProfile/imageReference/offer"),
            Field("/source_image_reference/0/sku", "/properties/storageProfile/imageReference/sku"),
            Field("/source_image_reference/0/version", "/properties/storageProfile/imageReference/version"),
            Field("/os_disk/0/disk_size_gb", f"{_DISK}/diskSizeGB"),
        ),
        fixed={f"{_DISK}/osType": system},
        named={
            "/dedicated_host_id": "Microsoft.Compute/hostGroups/hosts",
            "/dedicated_host_group_id": "Microsoft.Compute/hostGroups",
        },
    )


#: A node pool, as it stands in its own resource and (but for the spot pools) in the `default_node_pool` of a cluster.
_POOL = (
    Field("/name", "/name", text),
    Field("/vm_size", "/vmSize", text),
    Field("/node_count", "/count", whole),
    Field("/min_count", "/minCount", whole),
    Field("/max_count", "/maxCount", whole),
    Field("/enable_auto_scaling", "/enableAutoScaling", boolean),
    Field("/auto_scaling_enabled", "/enableAutoScaling", boolean),
    Field("/enable_node_public_ip", "/enableNodePublicIP", boolean),
    Field("/node_public_ip_enabled", "/enableNodePublicIP", boolean),
    Field("/max_pods", "/maxPods", whole),
    Field("/vnet_subnet_id", "/vnetSubnetID", text),
    Field("/pod_subnet_id", "/podSubnetID", text),
    Field("/host_group_id", "/hostGroupID", text),
    Field("/mode", "/mode", text),
    Field("/os_type", "/osType", text),
    Field("/priority", "/scaleSetPriority", text),
    Field("/eviction_policy", "/scaleSetEvictionPolicy", text),
    Field("/tags", "/tags"),
)
_POOL_NAMED = {"/vnet_subnet_id": SUBNET, "/pod_subnet_id": SUBNET, "/host_group_id": "Microsoft.Compute/hostGroups"}
#: Without a number of nodes Azure makes one; without one of pods, and of zones, as many as the network plan has.
_POOL_UNSTATED = (Unstated("/node_count"), Unstated("/max_pods"), Unstated("/min_count"), Unstated("/max_count"))
_POOLS = "/properties/agentPoolProfiles"
_FIRST = "/default_node_pool/0"
_AKS_CLUSTER = Kind(
    Addressed(CLUSTER),
    (
        *GROUPED,
        *IDENTITY,
        *(Field(_FIRST + row.source, f"{_POOLS}/0{row.target}", row.bring) for row in _POOL),
        Field("/private_cluster_enabled", "/properties/apiServerAccessProfile/enablePrivateCluster", boolean),
        Field("/sku_tier", "/sku/tier", text),
    ),
    named={_FIRST + source: kind for source, kind in _POOL_NAMED.items()},
    unstated=tuple(Unstated(_FIRST + one.source) for one in _POOL_UNSTATED),
    lists=(_POOLS,),
)
_NODE_POOL = Kind(
    Addressed(f"{CLUSTER}/agentPools", parent="kubernetes_cluster_id"),
    tuple(row if row.target == "/name" else Field(row.source, f"/properties{row.target}", row.bring) for row in _POOL),
    named={**_POOL_NAMED, "/kubernetes_cluster_id": CLUSTER},
    unstated=_POOL_UNSTATED,
)


_SUBNETS = Blocks(
    (
        Field("/name", "/name", text),
        Field("/id", "/id", text),
        Field("/address_prefix", "/properties/addressPrefix", text),
        Field("/address_prefixes", "/properties/addressPrefixes"),
    )
)
_CONTAINERS = Blocks(
    (
        Field("/name", "/name", text),
        Field("/image", "/properties/image", text),
        Field("/cpu", "/properties/resources/requests/cpu"),
        Field("/memory", "/properties/resources/requests/memoryInGB"),
    )
)
_ACTIONS = (
    Field("/actions", "/actions"),
    Field("/not_actions", "/notActions"),
    Field("/data_actions", "/dataActions"),
    Field("/not_data_actions", "/notDataActions"),
)
_PERMISSIONS = Blocks(_ACTIONS, fixed={row.target[1:]: [] for row in _ACTIONS})
_NOTIFICATIONS = Blocks(
    (
        Field("/enabled", "/enabled"),
        Field("/operator", "/operator"),
        Field("/threshold", "/threshold"),
        Field("/threshold_type", "/thresholdType"),
        Field("/contact_emails", "/contactEmails"),
        Field("/contact_groups", "/contactGroups"),
        Field("/contact_roles", "/contactRoles"),
    ),
    fixed={"enabled": True},
    numbered=True,
)


def _named_ids(value: object) -> object:
    if isinstance(value, list) and all(isinstance(entry, str) for entry in value):
        return [{"id": entry} for entry in value]
    raise UnfitError("a list of ids")


def _budget(parent: str, parent_type: str) -> Kind:
    return Kind(
        Addressed("Microsoft.Consumption/budgets", parent=parent),
        (
            *COMMON,
            *passed(parent, "etag"),
            Field("/amount", "/properties/amount"),
            Field("/time_grain", "/properties/timeGrain", text),
            Field("/time_period/0/start_date", "/properties/timePeriod/startDate", text),
            Field("/time_period/0/end_date", "/properties/timePeriod/endDate", text),
            Field("/filter/0", "/properties/filter"),
            Field("/notification", "/properties/notifications", _NOTIFICATIONS),
        ),
        fixed={"/properties/category": "Cost"},
        named={f"/{parent}": parent_type},
        unstated=(Unstated("/time_period/0/end_date"),),
    )


KINDS: Mapping[str, Kind] = {
    "azurerm_linux_virtual_machine": _machine("Linux"),
    "azurerm_windows_virtual_machine": _machine("Windows"),
    "azurerm_kubernetes_cluster": _AKS_CLUSTER,
    "azurerm_kubernetes_cluster_node_pool": _NODE_POOL,
    "azurerm_virtual_network": Kind(
        Addressed(_NETWORK),
        (
            *GROUPED,
            Field("/address_space", "/properties/addressSpace/addressPrefixes"),
            Field("/subnet", "/properties/subnets", _SUBNETS),
        ),
        unstated=(Unstated("/subnet"),),
    ),
    "azurerm_subnet": Kind(
        Addressed(SUBNET, within="virtual_network_name"),
        (
            *COMMON,
            *passed("resource_group_name", "virtual_network_name"),
            Field("/address_prefix", "/properties/addressPrefix", text),
            Field("/address_prefixes", "/properties/addressPrefixes"),
            Field("/default_outbound_access_enabled", "/properties/defaultOutboundAccess", boolean),
        ),
        foreign=("/location",),
        unstated=(Unstated("/address_prefix"),),
    ),
    "azurerm_container_group": Kind(
        Addressed("Microsoft.ContainerInstance/containerGroups"),
        (
            *GROUPED,
            *IDENTITY,
            Field("/ip_address_type", "/properties/ipAddress/type", text),
            Field("/subnet_ids", "/properties/subnetIds", _named_ids),
            Field("/network_profile_id", "/properties/networkProfile/id", text),
            Field("/container", "/properties/containers", _CONTAINERS),
            Field("/os_type", "/properties/osType", text),
            Field("/sku", "/properties/sku", text),
        ),
        # Those of other things that policies take for a service on container instances.
        foreign=("/memoryGiB", "/model", "/target", "/properties/publicIp", "/properties/vnetConfiguration"),
        named={"/subnet_ids": SUBNET},
        unstated=(Unstated("/network_profile_id"), Unstated("/subnet_ids")),
    ),
    "azurerm_role_assignment": Kind(
        Addressed(f"{_AUTHORIZATION}/roleAssignments", parent="scope"),
        (
            Field("/name", "/name", text),
            Field("/scope", "/properties/scope", text),
            Field("/role_definition_id", "/properties/roleDefinitionId", text),
            Field("/role_definition_name", "/properties/roleDefinitionId", text),
            Field("/principal_id", "/properties/principalId", text),
            Field("/principal_type", "/properties/principalType", text),
            Field("/condition", "/properties/condition"),
            Field("/condition_version", "/properties/conditionVersion"),
            Field("/description", "/properties/description"),
        ),
        named={"/scope": "", "/role_definition_id": f"{_AUTHORIZATION}/roleDefinitions"},
    ),
    "azurerm_role_definition": Kind(
        Addressed(f"{_AUTHORIZATION}/roleDefinitions", parent="scope"),
        (
            *passed("scope", "role_definition_id", "role_definition_resource_id"),
            Field("/name", "/properties/roleName", text),
            Field("/description", "/properties/description"),
            Field("/permissions", "/properties/permissions", _PERMISSIONS),
            Field("/assignable_scopes", "/properties/assignableScopes"),
        ),
        fixed={"/properties/type": "CustomRole"},
        named={"/scope": ""},
        unstated=(Unstated("/assignable_scopes"),),
    ),
    "azurerm_consumption_budget_resource_group": _budget("resource_group_id", "Microsoft.Resources/resourceGroups"),
    "azurerm_consumption_budget_subscription": _budget("subscription_id", "Microsoft.Resources/subscriptions"),
    "azurerm_private_endpoint": Kind(
        Addressed("Microsoft.Network/privateEndpoints"),
        (
            *GROUPED,
            Field("/subnet_id", "/properties/subnet/id", text),
            Field(
                "/private_service_connection/0/name",
                "/properties/privateLinkServiceConnections/0/name",
                text,
            ),
            Field(
                "/private_service_connection/0/private_connection_resource_id",
                "/properties/privateLinkServiceConnections/0/properties/privateLinkServiceId",
                text,
            ),
            Field(
                "/private_service_connection/0/subresource_names",
                "/properties/privateLinkServiceConnections/0/properties/groupIds",
            ),
        ),
        named={"/subnet_id": SUBNET, "/private_service_connection/0/private_connection_resource_id": ""},
        lists=("/properties/privateLinkServiceConnections",),
    ),
}

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

#: Where resources are that are not judged, and that others name by their id.
ADDRESSED: Mapping[str, Addressed] = {
    **{name: Addressed(arm_type) for name, arm_type in DEPLOYS.items()},
    "azurerm_application_insights": Addressed("Microsoft.Insights/components"),
    "azurerm_cognitive_account": Addressed("Microsoft.CognitiveServices/accounts"),
    "azurerm_container_registry": Addressed("Microsoft.ContainerRegistry/registries"),
    "azurerm_dedicated_host": Addressed("Microsoft.Compute/hostGroups/hosts", parent="dedicated_host_group_id"),
    "azurerm_dedicated_host_group": Addressed("Microsoft.Compute/hostGroups"),
    "azurerm_key_vault": Addressed("Microsoft.KeyVault/vaults"),
    "azurerm_log_analytics_workspace": Addressed("Microsoft.OperationalInsights/workspaces"),
    "azurerm_redis_cache": Addressed("Microsoft.Cache/redis"),
    "azurerm_search_service": Addressed("Microsoft.Search/searchServices"),
    "azurerm_storage_account": Addressed("Microsoft.Storage/storageAccounts"),
    "azurerm_synapse_spark_pool": Addressed("Microsoft.Synapse/workspaces/bigDataPools", parent="synapse_workspace_id"),
    "azurerm_synapse_workspace": Addressed("Microsoft.Synapse/workspaces"),
    "azurerm_user_assigned_identity": Addressed("Microsoft.ManagedIdentity/userAssignedIdentities"),
}
