"""The Machine Learning resources of the azurerm provider, as tables; both names of attributes that were renamed.

Source: https://registry.terraform.io/providers/hashicorp/azurerm/latest/docs, and the provider's code for what it asks
Azure for. Computes are in `computes`.
"""

from __future__ import annotations

from collections.abc import Mapping

from policyeng.sources.mapping import Field, boolean, chosen, inverted, text
from policyeng.sources.terraform.computes import COMPUTES
from policyeng.sources.terraform.kinds import (
    COMMON,
    GROUPED,
    IDENTITY,
    LOCATED,
    SUBNET,
    WORKSPACE,
    Addressed,
    Kind,
    Unstated,
    access,
    passed,
)

_PROVIDER = "Microsoft.MachineLearningServices"
_DATASTORE = f"{WORKSPACE}/datastores"
_MODES = chosen({mode: mode for mode in ("Disabled", "AllowInternetOutbound", "AllowOnlyApprovedOutbound")})


_LINKED = (
    Field("/application_insights_id", "/properties/applicationInsights", text),
    Field("/key_vault_id", "/properties/keyVault", text),
    Field("/storage_account_id", "/properties/storageAccount", text),
    Field("/container_registry_id", "/properties/containerRegistry", text),
    Field("/description", "/properties/description"),
    Field("/friendly_name", "/properties/friendlyName"),
    Field("/primary_user_assigned_identity", "/properties/primaryUserAssignedIdentity", text),
    Field("/encryption/0", "/properties/encryption/status", lambda _: "Enabled"),  # as the provider sends it
    Field("/encryption/0/key_vault_id", "/properties/encryption/keyVaultProperties/keyVaultArmId", text),
    Field("/encryption/0/key_id", "/properties/encryption/keyVaultProperties/keyIdentifier", text),
    Field("/encryption/0/user_assigned_identity_id", "/properties/encryption/identity/userAssignedIdentity", text),
    Field("/managed_network/0/isolation_mode", "/properties/managedNetwork/isolationMode", _MODES),
    Field("/discovery_url", "/properties/discoveryUrl"),
    Field("/workspace_id", "/properties/workspaceId"),
    *IDENTITY,
)
_LINKS = {
    "/application_insights_id": "Microsoft.Insights/components",
    "/key_vault_id": "Microsoft.KeyVault/vaults",
    "/storage_account_id": "Microsoft.Storage/storageAccounts",
    "/container_registry_id": "Microsoft.ContainerRegistry/registries",
    "/primary_user_assigned_identity": "Microsoft.ManagedIdentity/userAssignedIdentities",
    "/encryption/0/key_vault_id": "Microsoft.KeyVault/vaults",
    "/encryption/0/user_assigned_identity_id": "Microsoft.ManagedIdentity/userAssignedIdentities",
}
_NETWORK_UNSTATED = (Unstated("/managed_network"), Unstated("/managed_network/0/isolation_mode"))
_RULES = "/properties/managedNetwork/outboundRules"
_WORKSPACE_TABLE = (
    *GROUPED,
    *_LINKED,
    Field("/kind", "/kind", text),
    Field("/sku_name", "/sku/name", text),
    Field("/public_access_behind_virtual_network_enabled", "/properties/allowPublicAccessWhenBehindVnet", boolean),
    Field("/public_network_access_enabled", "/properties/publicNetworkAccess", access),
    Field("/image_build_compute_name", "/properties/imageBuildCompute", text),
    Field("/managed_network/0/provision_on_creation_enabled", "/properties/provisionNetworkNow", boolean),
    Field("/high_business_impact", "/properties/hbiWorkspace", boolean),
    Field("/v1_legacy_mode_enabled", "/properties/v1LegacyMode", boolean),
    Field("/storage_account_access_type", "/properties/systemDatastoresAuthMode", text),
    Field(
        "/serverless_compute/0/subnet_id",
        "/properties/serverlessComputeSettings/serverlessComputeCustomSubnet",
        text,
    ),
    Field(
        "/serverless_compute/0/public_ip_enabled",
        "/properties/serverlessComputeSettings/serverlessComputeNoPublicIP",
        inverted,
    ),
    Field(
        "/feature_store/0/computer_spark_runtime_version",
        "/properties/featureStoreSettings/computeRuntime/sparkRuntimeVersion",
    ),
    Field("/feature_store/0/offline_connection_name", "/properties/featureStoreSettings/offlineStoreConnectionName"),
    Field("/feature_store/0/online_connection_name", "/properties/featureStoreSettings/onlineStoreConnectionName"),
    Field("/service_side_encryption_enabled", "/properties/enableServiceSideCMKEncryption", boolean),
)
_WORKSPACE = Kind(
    Addressed(WORKSPACE),
    _WORKSPACE_TABLE,
    foreign=(_RULES,),
    named={**_LINKS, "/serverless_compute/0/subnet_id": SUBNET},
    unstated=(
        Unstated("/high_business_impact", unless="/encryption/0"),
        *_NETWORK_UNSTATED,
        Unstated("/public_network_access_enabled", unless="/public_access_behind_virtual_network_enabled"),
        Unstated("/public_access_behind_virtual_network_enabled"),
    ),
)
_HUB = Kind(
    Addressed(WORKSPACE),
    (
        *GROUPED,
        *_LINKED,
        Field("/public_network_access", "/properties/publicNetworkAccess", text),
        Field("/high_business_impact_enabled", "/properties/hbiWorkspace", boolean),
    ),
    fixed={"/kind": "Hub"},
    foreign=(_RULES,),
    named=_LINKS,
    unstated=(Unstated("/high_business_impact_enabled", unless="/encryption/0"), *_NETWORK_UNSTATED),
)
_PROJECT = Kind(
    Addressed(WORKSPACE, parent="ai_services_hub_id"),
    (
        *LOCATED,
        *IDENTITY,
        Field("/ai_services_hub_id", "/properties/hubResourceId", text),
        Field("/high_business_impact_enabled", "/properties/hbiWorkspace", boolean),
        Field("/description", "/properties/description"),
        Field("/friendly_name", "/properties/friendlyName"),
        Field("/primary_user_assigned_identity", "/properties/primaryUserAssignedIdentity", text),
        Field("/project_id", "/properties/workspaceId"),
    ),
    fixed={"/kind": "Project"},
    foreign=("/properties/publicNetworkAccess", "/properties/managedNetwork"),
    named={
        "/ai_services_hub_id": WORKSPACE,
        "/primary_user_assigned_identity": _LINKS["/primary_user_assigned_identity"],
    },
)

_REGISTRY = Kind(
    Addressed(f"{_PROVIDER}/registries"),
    (
        *GROUPED,
        *IDENTITY,
        Field("/public_network_access_enabled", "/properties/publicNetworkAccess", access),
        *passed("main_region", "replication_region"),
    ),
)

_AUTHORITY = "/properties/serviceDataAccessAuthIdentity"


def _datastore(kind: str, *more: Field) -> Kind:
    rows = (
        *COMMON,
        *more,
        *passed("workspace_id", "storage_container_id", "storage_fileshare_id"),
        Field("/description", "/properties/description"),
        Field("/is_default", "/properties/isDefault", boolean),
    )
    named = {"/workspace_id": WORKSPACE}
    fixed = {"/properties/datastoreType": kind}
    return Kind(Addressed(_DATASTORE, parent="workspace_id"), rows, fixed=fixed, named=named)


def _rule(kind: str, *rows: Field) -> Kind:
    """A rule of the managed network, which is joined into its workspace."""
    return Kind(
        Addressed(f"{WORKSPACE}/outboundRules", parent="workspace_id"),
        (Field("/name", "/name", text), *rows, *passed("id", "workspace_id", "timeouts")),
        fixed={"/properties/type": kind, "/properties/category": "UserDefined"},
        named={"/workspace_id": WORKSPACE, "/service_resource_id": ""},
    )


_DESTINATION = "/properties/destination"
_RULE = "azurerm_machine_learning_workspace_network_outbound_rule"

KINDS: Mapping[str, Kind] = {
    "azurerm_machine_learning_workspace": _WORKSPACE,
    "azurerm_ai_foundry": _HUB,
    "azurerm_ai_foundry_project": _PROJECT,
    **COMPUTES,
    f"{_RULE}_fqdn": _rule("FQDN", Field("/destination_fqdn", _DESTINATION, text)),
    f"{_RULE}_service_tag": _rule(
        "ServiceTag",
        Field("/service_tag", f"{_DESTINATION}/serviceTag", text),
        Field("/protocol", f"{_DESTINATION}/protocol", text),
        Field("/port_ranges", f"{_DESTINATION}/portRanges", text),
    ),
    f"{_RULE}_private_endpoint": _rule(
        "PrivateEndpoint",
        Field("/service_resource_id", f"{_DESTINATION}/serviceResourceId", text),
        Field("/sub_resource_target", f"{_DESTINATION}/subresourceTarget", text),
        Field("/spark_enabled", f"{_DESTINATION}/sparkEnabled", boolean),
    ),
    "azurerm_machine_learning_registry": _REGISTRY,
    "azurerm_machine_learning_datastore_blobstorage": _datastore(
        "AzureBlob",
        Field("/service_data_auth_identity", _AUTHORITY, text),
        *passed("account_key", "shared_access_signature"),
    ),
    "azurerm_machine_learning_datastore_datalake_gen2": _datastore(
        "AzureDataLakeGen2",
        Field("/service_data_identity", _AUTHORITY, text),
        *passed("tenant_id", "client_id", "client_secret", "authority_url"),
    ),
    "azurerm_machine_learning_datastore_fileshare": _datastore(
        "AzureFile",
        Field("/service_data_identity", _AUTHORITY, text),
        *passed("account_key", "shared_access_signature"),
    ),
}
