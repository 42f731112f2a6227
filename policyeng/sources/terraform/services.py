"""The services that workspaces use: storage accounts, vaults, registries, insights and AI services of azurerm.

Source: https://registry.terraform.io/providers/hashicorp/azurerm/latest/docs.
"""

from __future__ import annotations

from collections.abc import Mapping

from policyeng.sources.field_mapping import FieldMapping, boolean, text
from policyeng.sources.terraform.resource_types import (
    COMMON,
    GROUPED,
    IDENTITY,
    Addressed,
    Blocks,
    TerraformResourceType,
    access,
    passed,
)

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

KINDS: Mapping[str, TerraformResourceType] = {
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
