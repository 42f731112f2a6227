"""Diagnostic settings, metric alerts and autoscale settings of the azurerm provider.

Source: https://registry.terraform.io/providers/hashicorp/azurerm/latest/docs; attributes of versions 3 and 4.
"""

from __future__ import annotations

from collections.abc import Mapping

from policyeng.sources.field_mapping import FieldMapping, boolean, convert_integer, text
from policyeng.sources.terraform.resource_types import (
    COMMON,
    GROUPED,
    Addressed,
    Blocks,
    TerraformResourceType,
    Unstated,
    passed,
)

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

KINDS: Mapping[str, TerraformResourceType] = {
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
