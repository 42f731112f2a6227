"""Terraform documents for tests, as `terraform show -json` prints them, with what the provider states by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from policyeng.models import JsonObject
from policyeng.sources import terraform
from policyeng.sources.parsed import ParsedDocument, Placed, Surroundings

SUBSCRIPTION = "/subscriptions/11111111-1111-1111-1111-111111111111"
SCOPE = f"{SUBSCRIPTION}/resourceGroups/rg-ml"
HERE = Surroundings(
    file="plan.json",
    scope=SCOPE,
    workspace=f"{SCOPE}/providers/Microsoft.MachineLearningServices/workspaces/{{workspace}}",
)
ML = "azurerm_machine_learning"
WORKSPACE_ID = f"{SCOPE}/providers/Microsoft.MachineLearningServices/workspaces/ws"
SUBNET_ID = f"{SCOPE}/providers/Microsoft.Network/virtualNetworks/net/subnets/train"

WORKSPACE: JsonObject = {
    "application_insights_id": f"{SCOPE}/providers/Microsoft.Insights/components/ai",
    "container_registry_id": None,
    "description": None,
    "encryption": [],
    "feature_store": [],
    "friendly_name": None,
    "identity": [{"identity_ids": None, "type": "SystemAssigned"}],
    "image_build_compute_name": None,
    "key_vault_id": f"{SCOPE}/providers/Microsoft.KeyVault/vaults/kv",
    "kind": "Default",
    "location": "westeurope",
    "name": "ws",
    "primary_user_assigned_identity": None,
    "public_network_access_enabled": True,
    "resource_group_name": "rg-ml",
    "serverless_compute": [],
    "service_side_encryption_enabled": False,
    "sku_name": "Basic",
    "storage_account_access_type": None,
    "storage_account_id": f"{SCOPE}/providers/Microsoft.Storage/storageAccounts/sa",
    "tags": None,
    "timeouts": None,
    "v1_legacy_mode_enabled": False,
}
CLUSTER: JsonObject = {
    "description": None,
    "identity": [],
    "local_auth_enabled": True,
    "location": "westeurope",
    "machine_learning_workspace_id": WORKSPACE_ID,
    "name": "cpu",
    "node_public_ip_enabled": True,
    "scale_settings": [
        {"max_node_count": 4, "min_node_count": 0, "scale_down_nodes_after_idle_duration": "PT120S"},
    ],
    "ssh": [],
    "subnet_resource_id": None,
    "tags": None,
    "timeouts": None,
    "vm_priority": "Dedicated",
    "vm_size": "Standard_D4s_v3",
}
INSTANCE: JsonObject = {
    "assign_to_user": [],
    "authorization_type": None,
    "description": None,
    "identity": [],
    "local_auth_enabled": True,
    "machine_learning_workspace_id": WORKSPACE_ID,
    "name": "notebook",
    "node_public_ip_enabled": True,
    "ssh": [],
    "subnet_resource_id": None,
    "tags": None,
    "timeouts": None,
    "virtual_machine_size": "Standard_DS3_v2",
}


def resource(
    kind: str, values: JsonObject, name: str = "this", *, index: object = None, module: str = "", mode: str = "managed"
) -> JsonObject:
    """A resource of `planned_values` or of a state's `values`."""
    suffix = "" if index is None else f'["{index}"]' if isinstance(index, str) else f"[{index}]"
    data = "data." if mode == "data" else ""
    entry: JsonObject = {
        "address": f"{module}.{data}{kind}.{name}{suffix}".lstrip("."),
        "mode": mode,
        "type": kind,
        "name": name,
        "provider_name": "registry.terraform.io/hashicorp/azurerm",
        "schema_version": 0,
        "values": values,
        "sensitive_values": {},
    }
    return entry if index is None else {**entry, "index": index}


def change(
    entry: JsonObject,
    unknown: object = None,
    sensitive: object = None,
    before: JsonObject | None = None,
    actions: Sequence[str] = ("create",),
) -> JsonObject:
    """The change of a resource of the plan."""
    return {
        **{key: entry[key] for key in ("address", "mode", "type", "name", "provider_name")},
        "change": {
            "actions": list(actions),
            "before": before,
            "after": entry["values"],
            "after_unknown": unknown or {},
            "before_sensitive": False,
            "after_sensitive": sensitive or {},
        },
    }


def configured(kind: str, expressions: JsonObject, name: str = "this", **more: object) -> JsonObject:
    """A resource of `configuration`."""
    arguments = {
        "address": f"{kind}.{name}",
        "mode": "managed",
        "type": kind,
        "name": name,
        "provider_config_key": "azurerm",
    }
    return {**arguments, "expressions": expressions, "schema_version": 0, **more}


def refers(*references: str) -> JsonObject:
    """An expression that refers to something."""
    return {"references": list(references)}


def plan(
    resources: Sequence[JsonObject],
    changes: Sequence[JsonObject] = (),
    configuration: Sequence[JsonObject] = (),
    **more: object,
) -> JsonObject:
    """A plan of the root module."""
    return {
        "format_version": "1.2",
        "terraform_version": "1.9.5",
        "planned_values": {"root_module": {"resources": list(resources)}},
        "resource_changes": list(changes),
        "configuration": {"root_module": {"resources": list(configuration)}},
        "complete": True,
        "errored": False,
        **more,
    }


def state(resources: Sequence[JsonObject]) -> JsonObject:
    """A state as `terraform show -json` prints it."""
    return {
        "format_version": "1.0",
        "terraform_version": "1.9.5",
        "values": {"root_module": {"resources": list(resources)}},
    }


def state_file(kind: str, attributes: JsonObject, **more: object) -> JsonObject:
    """A `terraform.tfstate` with one resource."""
    instance = {"schema_version": 0, "attributes": attributes, "sensitive_attributes": [], **more}
    return {
        "version": 4,
        "terraform_version": "1.9.5",
        "serial": 3,
        "lineage": "8a4b5e1c-0000-0000-0000-000000000000",
        "outputs": {},
        "resources": [{"mode": "managed", "type": kind, "name": "this", "provider": "p", "instances": [instance]}],
    }


def read(document: object, around: Surroundings = HERE) -> ParsedDocument:
    """What the format makes of a document that it takes."""
    assert terraform.detect(document)
    return terraform.read(document, around)


def one(kind: str, values: Mapping[str, object], around: Surroundings = HERE) -> Placed:
    """The resource that one of a plan becomes in which all is known but its id."""
    entry = resource(kind, dict(values))
    reading = read(plan([entry], [change(entry, {"id": True})]), around)
    assert (reading.refusals, reading.remarks) == ((), ())
    [placed] = reading.resources
    return placed


def at(placed: Placed, pointer: str) -> object:
    """The value at a JSON Pointer of a resource; `...` where there is none."""
    value: object = placed.resource
    for part in pointer.split("/")[1:]:
        if isinstance(value, list):
            value = value[int(part)]
        elif isinstance(value, dict) and part in value:
            value = value[part]
        else:
            return ...
    return value
