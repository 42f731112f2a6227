"""Writes an ARM estate as the JSON of a Terraform plan that creates all of it.

What the azurerm provider can state whole is one of its resources, with the defaults that it states; anything else is an
`azapi_resource` with the ARM body. Ids of what the plan creates are known only after apply, and the configuration
refers to them. Written from the documentation of the providers, not from the tables of the reader.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from policyeng.models import JsonObject
from tests.writers.terraform_fields import CannotSayError, Fields

_ML = "azurerm_machine_learning"


def expressible(resource: JsonObject) -> bool:
    """Whether a plan can state a resource: azapi can state every one that lies in something."""
    return "/providers/" in str(resource.get("id")) and isinstance(resource.get("type"), str)


def loses(_: JsonObject) -> Sequence[str]:
    """What no plan states: what the service makes, and what the id states already."""
    return ("/eTag", "/etag", "/identity/principalId", "/identity/tenantId", "/name")


def write(resources: list[JsonObject]) -> dict[str, bytes]:
    """The estate as `plan.json`.

    Args:
        resources: in ARM shape, each with `id` and `type`.
    """
    clusters = [
        one for one in resources if str(one.get("type")).lower() == "microsoft.containerservice/managedclusters"
    ]
    regions = {str(one["id"]).lower(): one.get("location") for one in clusters}
    written = [_written(resource, regions) for resource in resources]
    addresses = {
        str(resource["id"]).lower(): f"{one.kind}.r{number}"
        for number, (resource, one) in enumerate(zip(resources, written, strict=True))
    }
    planned, changes, configuration = [], [], []
    for number, one in enumerate(written):
        values, unknown, expressions = dict(one.values), {"id": True, **one.unknown}, dict[str, JsonObject]()
        for name in one.references:
            target = addresses.get(str(values.get(name)).lower())
            if target is not None:
                del values[name]
                unknown[name] = True
                expressions[name] = {"references": [f"{target}.id", target]}
        block = {"address": f"{one.kind}.r{number}", "mode": "managed", "type": one.kind, "name": f"r{number}"}
        change = {"actions": ["create"], "before": None, "after": values, "after_unknown": unknown}
        expressions |= {name: {"constant_value": value} for name, value in values.items() if value is not None}
        planned.append({**block, "values": values, "sensitive_values": {}})
        changes.append({**block, "change": {**change, "before_sensitive": False, "after_sensitive": {}}})
        configuration.append({**block, "provider_config_key": "azurerm", "expressions": expressions})
    document = {
        "format_version": "1.2",
        "terraform_version": "1.9.5",
        "planned_values": {"root_module": {"resources": planned}},
        "resource_changes": changes,
        "configuration": {"root_module": {"resources": configuration}},
        "complete": True,
        "errored": False,
    }
    return {"plan.json": json.dumps(document, indent=2).encode()}


class _Written(NamedTuple):
    """A Terraform resource: its type, its attributes, which of them name others, and what is computed."""

    kind: str
    values: JsonObject
    references: tuple[str, ...] = ()
    unknown: Mapping[str, object] = {}


def _written(resource: JsonObject, regions: Mapping[str, object]) -> _Written:
    kind = str(resource["type"]).lower()
    kind += f":{(resource.get('properties') or {}).get('computeType', '')}" if kind.endswith("/computes") else ""
    write_one = _AZURERM.get(kind)
    if write_one is not None:
        fields = Fields(resource)
        try:
            if kind.endswith(":AKS"):  # the provider sends the location of the cluster
                attached = regions.get(str(resource["properties"].get("resourceId")).lower())
                fields.given("/properties/computeLocation", attached)
            written = write_one(fields, str(resource["id"]))
            fields.end()
        except CannotSayError:
            pass
        else:
            return written
    return _azapi(resource)


def _azapi(resource: JsonObject) -> _Written:
    parent, _, name = str(resource["id"]).rpartition("/")
    parent = parent.rpartition("/")[0]
    if parent.rpartition("/")[0].endswith("/providers"):
        parent = parent.rpartition("/providers/")[0]
    properties = {key: value for key, value in (resource.get("properties") or {}).items() if key != "isAttachedCompute"}
    body = {key: resource[key] for key in ("kind", "sku") if key in resource}
    values: JsonObject = {
        "type": f"{resource['type']}@2024-10-01",
        "name": name,
        "parent_id": parent or "/",
        "body": {**body, **({"properties": properties} if "properties" in resource else {})},
        "location": resource.get("location"),
        "tags": resource.get("tags"),
        "identity": [],
        "output": None,
    }
    if (identity := resource.get("identity")) is not None:
        ids = [arm_id for arm_id, _ in (identity.get("userAssignedIdentities") or {}).items()] or None
        values["identity"] = [{"type": str(identity["type"]).replace(",", ", "), "identity_ids": ids}]
    return _Written("azapi_resource", values, ("parent_id",))


def _common(fields: Fields, arm_id: str) -> JsonObject:
    fields.take("/name")
    kind = fields.take("/identity/type")
    ids = list(fields.below("/identity/userAssignedIdentities"))
    identity = [{"type": str(kind).replace(",", ", "), "identity_ids": [_plain(one) for one in ids] or None}]
    tags = {_plain(key): value for key, value in fields.below("/tags").items()}
    return {"name": arm_id.rpartition("/")[2], "identity": identity if kind else [], "tags": tags or None}


def _workspace(fields: Fields, arm_id: str) -> _Written:
    p = "/properties"
    values = {
        **_common(fields, arm_id),
        "resource_group_name": arm_id.split("/")[4],
        "location": fields.need("/location"),
        "kind": fields.need("/kind", "Default", "FeatureStore"),
        "sku_name": fields.need("/sku/name"),
        "public_network_access_enabled": fields.need(f"{p}/publicNetworkAccess", "Enabled", "Disabled") == "Enabled",
        "high_business_impact": fields.take(f"{p}/hbiWorkspace"),
        "v1_legacy_mode_enabled": fields.need(f"{p}/v1LegacyMode"),
        "image_build_compute_name": fields.take(f"{p}/imageBuildCompute"),
        "storage_account_id": fields.take(f"{p}/storageAccount"),
        "key_vault_id": fields.take(f"{p}/keyVault"),
        "primary_user_assigned_identity": fields.take(f"{p}/primaryUserAssignedIdentity"),
        "managed_network": [{"isolation_mode": fields.take(f"{p}/managedNetwork/isolationMode")}],
        "encryption": [],
        "serverless_compute": [],
    }
    no_ip = fields.take(f"{p}/serverlessComputeSettings/serverlessComputeNoPublicIP")
    subnet = fields.take(f"{p}/serverlessComputeSettings/serverlessComputeCustomSubnet")
    if no_ip is not None:
        values["serverless_compute"] = [{"public_ip_enabled": not no_ip, "subnet_id": subnet}]
    elif subnet is not None:
        raise CannotSayError("serverless")
    unknown: dict[str, object] = {"workspace_id": True, "discovery_url": True}
    if values["high_business_impact"] is None:
        del values["high_business_impact"]
        unknown["high_business_impact"] = True
    if values["managed_network"] == [{"isolation_mode": None}]:
        del values["managed_network"]
        unknown["managed_network"] = True
    return _Written(f"{_ML}_workspace", values, unknown=unknown)


def _compute(fields: Fields, arm_id: str) -> JsonObject:
    fields.take("/properties/computeType")
    return {
        **_common(fields, arm_id),
        "machine_learning_workspace_id": arm_id.rpartition("/computes/")[0],
        "description": fields.take("/properties/description"),
    }


def _nodes(fields: Fields) -> JsonObject:
    return {
        "local_auth_enabled": not fields.need("/properties/disableLocalAuth", True, False),
        "node_public_ip_enabled": fields.need("/properties/properties/enableNodePublicIp", True, False),
        "subnet_resource_id": fields.take("/properties/properties/subnet/id"),
    }


_PLACES = ("machine_learning_workspace_id", "subnet_resource_id")


def _cluster(fields: Fields, arm_id: str) -> _Written:
    c = "/properties/properties"
    location = fields.need("/location")
    fields.need("/properties/computeLocation", location)
    ssh = fields.need(f"{c}/remoteLoginPortPublicAccess", "Enabled", "Disabled")
    scale = {
        "min_node_count": fields.need(f"{c}/scaleSettings/minNodeCount"),
        "max_node_count": fields.need(f"{c}/scaleSettings/maxNodeCount"),
        "scale_down_nodes_after_idle_duration": fields.need(f"{c}/scaleSettings/nodeIdleTimeBeforeScaleDown"),
    }
    values = {
        **_compute(fields, arm_id),
        **_nodes(fields),
        "location": location,
        "vm_size": fields.need(f"{c}/vmSize"),
        "vm_priority": fields.need(f"{c}/vmPriority"),
        "scale_settings": [scale],
        "ssh": [],
    }
    if ssh == "Disabled":  # as the provider has it where it is not stated
        return _Written(f"{_ML}_compute_cluster", values, _PLACES, {"ssh_public_access_enabled": True})
    return _Written(f"{_ML}_compute_cluster", {**values, "ssh_public_access_enabled": True}, _PLACES)


def _instance(fields: Fields, arm_id: str) -> _Written:
    c = "/properties/properties"
    values = {
        **_compute(fields, arm_id),
        **_nodes(fields),
        "virtual_machine_size": fields.need(f"{c}/vmSize"),
        "ssh": [],
    }
    if fields.need(f"{c}/sshSettings/sshPublicAccess", "Enabled", "Disabled") == "Enabled":
        values["ssh"] = [{"public_key": fields.need(f"{c}/sshSettings/adminPublicKey")}]
    user = f"{c}/personalComputeInstanceSettings/assignedUser"
    assigned = {"object_id": fields.take(f"{user}/objectId"), "tenant_id": fields.take(f"{user}/tenantId")}
    values["assign_to_user"] = [assigned] if any(assigned.values()) else []
    return _Written(f"{_ML}_compute_instance", values, _PLACES)


def _inference(fields: Fields, arm_id: str) -> _Written:
    values = {
        **_compute(fields, arm_id),
        "location": fields.need("/location"),
        "kubernetes_cluster_id": fields.need("/properties/resourceId"),
        "cluster_purpose": fields.need("/properties/properties/clusterPurpose"),
        "ssl": [],
    }
    return _Written(f"{_ML}_inference_cluster", values, ("machine_learning_workspace_id", "kubernetes_cluster_id"))


def _spark(fields: Fields, arm_id: str) -> _Written:
    location = fields.need("/location")
    fields.need("/properties/computeLocation", location)
    values = {
        **_compute(fields, arm_id),
        "location": location,
        "local_auth_enabled": not fields.need("/properties/disableLocalAuth", True, False),
        "synapse_spark_pool_id": fields.need("/properties/resourceId"),
    }
    return _Written(f"{_ML}_synapse_spark", values, ("machine_learning_workspace_id",))


def _subnet(fields: Fields, arm_id: str) -> _Written:
    fields.take("/name")
    parts = arm_id.split("/")
    prefixes = fields.need("/properties/addressPrefixes")
    values = {"name": parts[10], "resource_group_name": parts[4], "virtual_network_name": parts[8]}
    return _Written("azurerm_subnet", {**values, "address_prefixes": prefixes, "service_endpoints": None})


def _machine(fields: Fields, arm_id: str) -> _Written:
    system = fields.need("/properties/storageProfile/osDisk/osType", "Linux", "Windows")
    values = {
        **_common(fields, arm_id),
        "resource_group_name": arm_id.split("/")[4],
        "location": fields.need("/location"),
        "size": fields.need("/properties/hardwareProfile/vmSize"),
        "license_type": fields.take("/properties/licenseType"),
        "priority": fields.need("/properties/priority"),
        "admin_password": "not for your eyes",
    }
    return _Written(f"azurerm_{str(system).lower()}_virtual_machine", values)


_AZURERM: Mapping[str, Callable[[Fields, str], _Written]] = {
    "microsoft.machinelearningservices/workspaces": _workspace,
    "microsoft.machinelearningservices/workspaces/computes:AmlCompute": _cluster,
    "microsoft.machinelearningservices/workspaces/computes:ComputeInstance": _instance,
    "microsoft.machinelearningservices/workspaces/computes:AKS": _inference,
    "microsoft.machinelearningservices/workspaces/computes:SynapseSpark": _spark,
    "microsoft.network/virtualnetworks/subnets": _subnet,
    "microsoft.compute/virtualmachines": _machine,
}


def _plain(key: str) -> str:
    return key.replace("~1", "/").replace("~0", "~")
