"""Resources of the azurerm provider that carry an ARM template, or deploy what the plan does not have, in ARM shape.

Source: https://registry.terraform.io/providers/hashicorp/azurerm/latest/docs (`*_template_deployment`,
`managed_application*`, `resource_deployment_script_*`, `blueprint_assignment`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from policyeng.models import JsonObject, SourceNames
from policyeng.sources.arm_resource import is_placeholder
from policyeng.sources.arm_template.unresolved import in_braces
from policyeng.sources.parsed import Placed
from policyeng.sources.terraform.instances import Instance
from policyeng.sources.terraform.related_resources import DEPLOYMENT, DEPLOYS
from policyeng.sources.terraform.resolution import ResolvedInstances
from policyeng.sources.terraform.resource_types import Unstated

#: By attribute, the member of `properties`; `parameters` holds values alone, and all others are as ARM has them.
_MEMBERS: Mapping[str, str] = {
    "deployment_mode": "mode",
    "main_template": "mainTemplate",
    "parameters": "parameters",
    "parameters_body": "parameters",
    "parameters_content": "parameters",
    "template_body": "template",
    "template_content": "template",
}
#: What the provider calls computed unless the configuration states it.
_UNSTATED = tuple(Unstated(f"/{name}") for name in ("parameters_content", "template_body", "template_content"))
_SPEC = "template_spec_version_id"
_GROUP = "/providers/Microsoft.Management/managementGroups/{managementGroup}"


class _Attribute(NamedTuple):
    """An attribute's value and its pointer in the document."""

    value: object
    pointer: str


def convert_deployment(estate: ResolvedInstances, instance: Instance) -> Placed:
    """Return the ARM resource of an instance whose type is in `DEPLOYS`."""
    settled = estate.settled(instance, {}, _UNSTATED)
    properties: JsonObject = {}
    unreadable: dict[str, str] = {}
    fields: dict[str, str] = {}
    for attribute, name in _MEMBERS.items():
        stated = _Attribute(settled.values.get(attribute), f"{instance.attributes}/{attribute}")
        why = next((why for at, why in settled.unread.items() if not at or f"{at}/".startswith(f"/{attribute}/")), "")
        if name == "template" and (spec := _stored(estate, settled.values.get(_SPEC))):
            stated, why = spec, ""
        if why:
            unreadable[f"/properties/{name}"] = why
        elif stated.value in (None, "", {}):
            continue
        elif attribute == "parameters" and isinstance(stated.value, dict):
            properties[name] = {key: {"value": value} for key, value in stated.value.items()}
        else:
            properties[name] = stated.value
        fields[f"/properties/{name}"] = stated.pointer
    identity = _build_id(estate, instance)
    if is_placeholder(identity):
        unreadable["/id"] = estate.why_unplaced(instance) or "its deployment scope is known only after apply"
    resource = {"id": identity, "type": DEPLOYS[instance.type], "properties": properties}
    names = SourceNames(address=instance.address, base=instance.attributes)
    return Placed(resource, instance.pointer, unreadable, None, fields, names=names)


def _stored(estate: ResolvedInstances, version: object) -> _Attribute | None:
    """Return the template of a template spec that the document looks up."""
    found = estate.by_id(version) if isinstance(version, str) else None
    if found is None or not found.values.get("template_body"):
        return None
    return _Attribute(found.values["template_body"], f"{found.attributes}/template_body")


def _build_id(estate: ResolvedInstances, instance: Instance) -> str:
    if stated := estate.stated_id(instance):
        return stated
    if "_subscription_" in instance.type:
        scope = estate.subscription
    elif "_management_group_" in instance.type:
        scope = estate.parent(instance, "management_group_id", "") or _GROUP
    elif "_tenant_" in instance.type:
        scope = ""
    else:
        return estate.identity(instance)
    name = instance.values.get("name")
    name = name.replace("/", "~") if isinstance(name, str) and name.strip() else in_braces(instance.address)
    return f"{scope}/providers/{DEPLOYMENT}/{name}"
