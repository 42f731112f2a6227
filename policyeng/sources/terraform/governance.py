"""Locks, policy assignments and exemptions, and Defender plans of the azurerm provider.

Source: https://registry.terraform.io/providers/hashicorp/azurerm/latest/docs.
"""

from __future__ import annotations

from collections.abc import Mapping

from policyeng.errors import InputError
from policyeng.parsing.json_text import DEFAULT_MAX_BYTES, parse_json
from policyeng.sources.field_mapping import FieldMapping, UnfitError, boolean, text
from policyeng.sources.terraform.resource_types import (
    COMMON,
    IDENTITY,
    LOCATED,
    Addressed,
    TerraformResourceType,
    Unstated,
    passed,
)

_AUTHORIZATION = "Microsoft.Authorization"
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


KINDS: Mapping[str, TerraformResourceType] = {
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
