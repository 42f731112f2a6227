"""The Machine Learning resources of the azurerm provider, as tables; both names of attributes that were renamed.

Source: https://registry.terraform.io/providers/hashicorp/azurerm/latest/docs, and the provider's code for what it needs
Azure for. Computes are in `computes`.
"""

from __future__ import annotations

from collections.abc import Mapping

from policyeng.sources.field_mapping import (
    FieldMapping,
    boolean,
    convert_integer,
    convert_word,
    invert,
    text,
)
from policyeng.sources.terraform.resource_types import (
    CLUSTER,
    COMMON,
    GROUPED,
    IDENTITY,
    LOCATED,
    SUBNET,
    WORKSPACE,
    Addressed,
    BlockPresence,
    Lent,
    TerraformResourceType,
    Unstated,
    access,
    passed,
)

_COMPUTE = f"{WORKSPACE}/computes"


_IN_WORKSPACE = "machine_learning_workspace_id"
_COMPUTE_ROWS = (
    *LOCATED,
    *IDENTITY,
    *passed(_IN_WORKSPACE),
    FieldMapping("/description", "/properties/description"),
    FieldMapping("/local_auth_enabled", "/properties/disableLocalAuth", invert),
)
_INNER = "/properties/properties"
_NODES = (
    FieldMapping("/subnet_resource_id", f"{_INNER}/subnet/id", text),
    FieldMapping("/node_public_ip_enabled", f"{_INNER}/enableNodePublicIp", boolean),
)
_IDLE = f"{_INNER}/scaleSettings/nodeIdleTimeBeforeScaleDown"
_AML_COMPUTE = TerraformResourceType(
    Addressed(_COMPUTE, parent=_IN_WORKSPACE),
    (
        *_COMPUTE_ROWS,
        *_NODES,
        FieldMapping("/location", "/properties/computeLocation", text),
        FieldMapping("/vm_size", f"{_INNER}/vmSize", text),
        FieldMapping("/vm_priority", f"{_INNER}/vmPriority", text),
        FieldMapping("/scale_settings/0/min_node_count", f"{_INNER}/scaleSettings/minNodeCount", convert_integer),
        FieldMapping("/scale_settings/0/max_node_count", f"{_INNER}/scaleSettings/maxNodeCount", convert_integer),
        FieldMapping("/scale_settings/0/node_idle_time_before_scale_down", _IDLE, text),
        FieldMapping("/scale_settings/0/scale_down_nodes_after_idle_duration", _IDLE, text),
        FieldMapping("/ssh_public_access_enabled", f"{_INNER}/remoteLoginPortPublicAccess", access),
        FieldMapping("/ssh/0/admin_username", f"{_INNER}/userAccountCredentials/adminUserName", text),
        FieldMapping("/ssh/0/key_value", f"{_INNER}/userAccountCredentials/adminUserSshPublicKey", text),
        FieldMapping("/ssh/0/admin_password", ""),
    ),
    fixed={"/properties/computeType": "AmlCompute"},
    named={"/subnet_resource_id": SUBNET, f"/{_IN_WORKSPACE}": WORKSPACE},
    unstated=(Unstated("/ssh_public_access_enabled", value=False),),
)
_INSTANCE = TerraformResourceType(
    Addressed(_COMPUTE, parent=_IN_WORKSPACE),
    (
        *_COMPUTE_ROWS,
        *_NODES,
        FieldMapping("/virtual_machine_size", f"{_INNER}/vmSize", text),
        FieldMapping("/authorization_type", f"{_INNER}/computeInstanceAuthorizationType"),
        FieldMapping(
            "/assign_to_user/0/object_id", f"{_INNER}/personalComputeInstanceSettings/assignedUser/objectId", text
        ),
        FieldMapping(
            "/assign_to_user/0/tenant_id", f"{_INNER}/personalComputeInstanceSettings/assignedUser/tenantId", text
        ),
        # The block opens the instance to the public network.
        FieldMapping("/ssh", f"{_INNER}/sshSettings/sshPublicAccess", BlockPresence("Enabled", "Disabled")),
        FieldMapping("/ssh/0/public_key", f"{_INNER}/sshSettings/adminPublicKey", text),
        FieldMapping("/ssh/0/username", f"{_INNER}/sshSettings/adminUserName"),
        FieldMapping("/ssh/0/port", f"{_INNER}/sshSettings/sshPort"),
    ),
    fixed={"/properties/computeType": "ComputeInstance"},
    # An instance is where its workspace is.
    foreign=("/properties/computeLocation",),
    named={"/subnet_resource_id": SUBNET, f"/{_IN_WORKSPACE}": WORKSPACE},
    unstated=(Unstated("/location"),),
)
_AKS = TerraformResourceType(
    Addressed(_COMPUTE, parent=_IN_WORKSPACE),
    (
        *_COMPUTE_ROWS,
        FieldMapping("/kubernetes_cluster_id", "/properties/resourceId", text),
        FieldMapping("/cluster_purpose", f"{_INNER}/clusterPurpose", text),
        FieldMapping("/ssl/0/cname", f"{_INNER}/sslConfiguration/cname"),
        FieldMapping("/ssl/0/leaf_domain_label", f"{_INNER}/sslConfiguration/leafDomainLabel"),
        FieldMapping("/ssl/0/overwrite_existing_domain", f"{_INNER}/sslConfiguration/overwriteExistingDomain"),
    ),
    fixed={"/properties/computeType": "AKS"},
    # It attaches an existing cluster, and sends nothing of its nodes and its network.
    foreign=tuple(
        f"{_INNER}/{name}"
        for name in ("agentCount", "agentVmSize", "aksNetworkingConfiguration", "loadBalancerSubnet", "systemServices")
    ),
    lent={"/properties/computeLocation": Lent("/kubernetes_cluster_id", "/location")},
    named={"/kubernetes_cluster_id": CLUSTER, f"/{_IN_WORKSPACE}": WORKSPACE},
)
_SYNAPSE = TerraformResourceType(
    Addressed(_COMPUTE, parent=_IN_WORKSPACE),
    (
        *_COMPUTE_ROWS,
        FieldMapping("/location", "/properties/computeLocation", text),
        FieldMapping("/synapse_spark_pool_id", "/properties/resourceId", text),
    ),
    fixed={"/properties/computeType": "SynapseSpark"},
    foreign=(_INNER,),  # it sends none
    named={"/synapse_spark_pool_id": "Microsoft.Synapse/workspaces/bigDataPools", f"/{_IN_WORKSPACE}": WORKSPACE},
)

COMPUTES: Mapping[str, TerraformResourceType] = {
    "azurerm_machine_learning_compute_cluster": _AML_COMPUTE,
    "azurerm_machine_learning_compute_instance": _INSTANCE,
    "azurerm_machine_learning_inference_cluster": _AKS,
    "azurerm_machine_learning_synapse_spark": _SYNAPSE,
}

_PROVIDER = "Microsoft.MachineLearningServices"
_DATASTORE = f"{WORKSPACE}/datastores"
_MODES = convert_word({mode: mode for mode in ("Disabled", "AllowInternetOutbound", "AllowOnlyApprovedOutbound")})


_LINKED = (
    FieldMapping("/application_insights_id", "/properties/applicationInsights", text),
    FieldMapping("/key_vault_id", "/properties/keyVault", text),
    FieldMapping("/storage_account_id", "/properties/storageAccount", text),
    FieldMapping("/container_registry_id", "/properties/containerRegistry", text),
    FieldMapping("/description", "/properties/description"),
    FieldMapping("/friendly_name", "/properties/friendlyName"),
    FieldMapping("/primary_user_assigned_identity", "/properties/primaryUserAssignedIdentity", text),
    FieldMapping(
        "/encryption/0", "/properties/encryption/status", BlockPresence("Enabled")
    ),  # as the provider sends it
    FieldMapping("/encryption/0/key_vault_id", "/properties/encryption/keyVaultProperties/keyVaultArmId", text),
    FieldMapping("/encryption/0/key_id", "/properties/encryption/keyVaultProperties/keyIdentifier", text),
    FieldMapping(
        "/encryption/0/user_assigned_identity_id", "/properties/encryption/identity/userAssignedIdentity", text
    ),
    FieldMapping("/managed_network/0/isolation_mode", "/properties/managedNetwork/isolationMode", _MODES),
    FieldMapping("/discovery_url", "/properties/discoveryUrl"),
    FieldMapping("/workspace_id", "/properties/workspaceId"),
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
    FieldMapping("/kind", "/kind", text),
    FieldMapping("/sku_name", "/sku/name", text),
    FieldMapping(
        "/public_access_behind_virtual_network_enabled", "/properties/allowPublicAccessWhenBehindVnet", boolean
    ),
    FieldMapping("/public_network_access_enabled", "/properties/publicNetworkAccess", access),
    FieldMapping("/image_build_compute_name", "/properties/imageBuildCompute", text),
    FieldMapping("/managed_network/0/provision_on_creation_enabled", "/properties/provisionNetworkNow", boolean),
    FieldMapping("/high_business_impact", "/properties/hbiWorkspace", boolean),
    FieldMapping("/v1_legacy_mode_enabled", "/properties/v1LegacyMode", boolean),
    FieldMapping("/storage_account_access_type", "/properties/systemDatastoresAuthMode", text),
    FieldMapping(
        "/serverless_compute/0/subnet_id",
        "/properties/serverlessComputeSettings/serverlessComputeCustomSubnet",
        text,
    ),
    FieldMapping(
        "/serverless_compute/0/public_ip_enabled",
        "/properties/serverlessComputeSettings/serverlessComputeNoPublicIP",
        invert,
    ),
    FieldMapping(
        "/feature_store/0/computer_spark_runtime_version",
        "/properties/featureStoreSettings/computeRuntime/sparkRuntimeVersion",
    ),
    FieldMapping(
        "/feature_store/0/offline_connection_name", "/properties/featureStoreSettings/offlineStoreConnectionName"
    ),
    FieldMapping(
        "/feature_store/0/online_connection_name", "/properties/featureStoreSettings/onlineStoreConnectionName"
    ),
    FieldMapping("/service_side_encryption_enabled", "/properties/enableServiceSideCMKEncryption", boolean),
)
_WORKSPACE = TerraformResourceType(
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
_HUB = TerraformResourceType(
    Addressed(WORKSPACE),
    (
        *GROUPED,
        *_LINKED,
        FieldMapping("/public_network_access", "/properties/publicNetworkAccess", text),
        FieldMapping("/high_business_impact_enabled", "/properties/hbiWorkspace", boolean),
    ),
    fixed={"/kind": "Hub"},
    foreign=(_RULES,),
    named=_LINKS,
    unstated=(Unstated("/high_business_impact_enabled", unless="/encryption/0"), *_NETWORK_UNSTATED),
)
_PROJECT = TerraformResourceType(
    Addressed(WORKSPACE, parent="ai_services_hub_id"),
    (
        *LOCATED,
        *IDENTITY,
        FieldMapping("/ai_services_hub_id", "/properties/hubResourceId", text),
        FieldMapping("/high_business_impact_enabled", "/properties/hbiWorkspace", boolean),
        FieldMapping("/description", "/properties/description"),
        FieldMapping("/friendly_name", "/properties/friendlyName"),
        FieldMapping("/primary_user_assigned_identity", "/properties/primaryUserAssignedIdentity", text),
        FieldMapping("/project_id", "/properties/workspaceId"),
    ),
    fixed={"/kind": "Project"},
    foreign=("/properties/publicNetworkAccess", "/properties/managedNetwork"),
    named={
        "/ai_services_hub_id": WORKSPACE,
        "/primary_user_assigned_identity": _LINKS["/primary_user_assigned_identity"],
    },
)

_REGIONS = "/properties/regionDetails"
#: The maximum number of regions in addition to the main one; list indexes are single digits.
_MOST_REGIONS = 9
_REGISTRY = TerraformResourceType(
    Addressed(f"{_PROVIDER}/registries"),
    (
        *GROUPED,
        *IDENTITY,
        FieldMapping("/public_network_access_enabled", "/properties/publicNetworkAccess", access),
        FieldMapping("/intellectual_property_publisher", "/properties/intellectualPropertyPublisher", text),
        FieldMapping("/managed_resource_group", "/properties/managedResourceGroup/resourceId", text),
        FieldMapping("/main_region/0/location", f"{_REGIONS}/0/location", text),
        *(
            FieldMapping(f"/replication_region/{at}/location", f"{_REGIONS}/{at + 1}/location", text)
            for at in range(_MOST_REGIONS)
        ),
    ),
    lists=(_REGIONS,),
    unstated=(Unstated("/intellectual_property_publisher"),),
)

_AUTHORITY = "/properties/serviceDataAccessAuthIdentity"
_KEYS = (("account_key", "AccountKey"), ("shared_access_signature", "Sas"))


def _datastore(kind: str, *more: FieldMapping, secrets: tuple[tuple[str, str], ...]) -> TerraformResourceType:
    rows = (
        *COMMON,
        *more,
        *passed("workspace_id", "storage_container_id", "storage_fileshare_id"),
        FieldMapping("/description", "/properties/description"),
        FieldMapping("/is_default", "/properties/isDefault", boolean),
    )
    named = {"/workspace_id": WORKSPACE}
    fixed = {"/properties/datastoreType": kind}
    return TerraformResourceType(
        Addressed(_DATASTORE, parent="workspace_id"),
        rows,
        fixed=fixed,
        named=named,
        secrets={"/properties/credentials/credentialsType": (*secrets, ("", "None"))},
    )


def _rule(kind: str, *rows: FieldMapping) -> TerraformResourceType:
    """Return the type of an outbound rule of the managed network, which is nested in its workspace."""
    return TerraformResourceType(
        Addressed(f"{WORKSPACE}/outboundRules", parent="workspace_id"),
        (FieldMapping("/name", "/name", text), *rows, *passed("id", "workspace_id", "timeouts")),
        fixed={"/properties/type": kind, "/properties/category": "UserDefined"},
        named={"/workspace_id": WORKSPACE, "/service_resource_id": ""},
    )


_DESTINATION = "/properties/destination"
_RULE = "azurerm_machine_learning_workspace_network_outbound_rule"

KINDS: Mapping[str, TerraformResourceType] = {
    "azurerm_machine_learning_workspace": _WORKSPACE,
    "azurerm_ai_foundry": _HUB,
    "azurerm_ai_foundry_project": _PROJECT,
    **COMPUTES,
    f"{_RULE}_fqdn": _rule("FQDN", FieldMapping("/destination_fqdn", _DESTINATION, text)),
    f"{_RULE}_service_tag": _rule(
        "ServiceTag",
        FieldMapping("/service_tag", f"{_DESTINATION}/serviceTag", text),
        FieldMapping("/protocol", f"{_DESTINATION}/protocol", text),
        FieldMapping("/port_ranges", f"{_DESTINATION}/portRanges", text),
    ),
    f"{_RULE}_private_endpoint": _rule(
        "PrivateEndpoint",
        FieldMapping("/service_resource_id", f"{_DESTINATION}/serviceResourceId", text),
        FieldMapping("/sub_resource_target", f"{_DESTINATION}/subresourceTarget", text),
        FieldMapping("/spark_enabled", f"{_DESTINATION}/sparkEnabled", boolean),
    ),
    "azurerm_machine_learning_registry": _REGISTRY,
    "azurerm_machine_learning_datastore_blobstorage": _datastore(
        "AzureBlob",
        FieldMapping("/service_data_auth_identity", _AUTHORITY, text),
        *passed("account_key", "shared_access_signature"),
        secrets=_KEYS,
    ),
    "azurerm_machine_learning_datastore_datalake_gen2": _datastore(
        "AzureDataLakeGen2",
        FieldMapping("/service_data_identity", _AUTHORITY, text),
        *passed("tenant_id", "client_id", "client_secret", "authority_url"),
        secrets=(("client_secret", "ServicePrincipal"),),
    ),
    "azurerm_machine_learning_datastore_fileshare": _datastore(
        "AzureFile",
        FieldMapping("/service_data_identity", _AUTHORITY, text),
        *passed("account_key", "shared_access_signature"),
        secrets=_KEYS,
    ),
}
