"""An ARM estate as files of the Azure CLI, one for each resource, as a user would write them.

Written from the key names of the CLI's published YAML reference, not from the tables of the reader.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import yaml

from policyeng.models import JsonObject
from tests.writers.azure_cli_values import at, filled, minutes, opened, plain, seconds, snake

SCHEMA = "https://azuremlschemas.azureedge.net/latest/{}.schema.json"
CARRIES = {
    "microsoft.machinelearningservices/workspaces",
    "microsoft.machinelearningservices/workspaces/computes",
    "microsoft.machinelearningservices/workspaces/connections",
    "microsoft.machinelearningservices/workspaces/datastores",
    "microsoft.machinelearningservices/registries",
}
#: The workspace that `--workspace` names: a file does not name its own.
WORKSPACE = (
    "/subscriptions/11111111-1111-1111-1111-111111111111/resourcegroups/rg-ml"
    "/providers/microsoft.machinelearningservices/workspaces/ws-ml"
)
#: What no file of the CLI states: what the service makes, and what the CLI leaves to Azure.
_LOST = (
    "/id",
    "/identity/principalId",
    "/identity/tenantId",
    "/identity/userAssignedIdentities",
    "/location",
    "/properties/allowPublicAccessWhenBehindVnet",
    "/properties/disableLocalAuth",
    "/properties/encryption/status",
    "/properties/isAttachedCompute",
    "/properties/managedNetwork/status",
    "/properties/properties/address",
    "/properties/properties/allocationState",
    "/properties/properties/applicationSharingPolicy",
    "/properties/properties/computeInstanceAuthorizationType",
    "/properties/properties/currentNodeCount",
    "/properties/properties/isolatedNetwork",
    "/properties/properties/lastOperation",
    "/properties/properties/osImageMetadata",
    "/properties/properties/osType",
    "/properties/properties/state",
    "/properties/properties/targetNodeCount",
    "/properties/v1LegacyMode",
    "/sku",
)
#: Attached computes, of which it states no more than their id.
_LOST_OF_ATTACHED = {
    "VirtualMachine": ("/properties/properties/virtualMachineSize",),
    "SynapseSpark": tuple(
        f"/properties/properties/{name}"
        for name in (
            "autoPauseProperties",
            "autoScaleProperties",
            "nodeCount",
            "nodeSize",
            "nodeSizeFamily",
            "poolName",
            "sparkVersion",
            "workspaceName",
        )
    ),
}
COMPUTES = ("AmlCompute", "ComputeInstance", "Kubernetes", "VirtualMachine", "SynapseSpark")


def expressible(resource: JsonObject) -> bool:
    """Whether the CLI has a file for it, and it lies in the one workspace and states what the CLI else fills in."""
    kind, properties = resource["type"].lower(), resource["properties"]
    if kind.endswith("/registries"):
        return True
    if not has_file(resource) or not f"{resource['id']}/".lower().startswith(f"{WORKSPACE}/"):
        return False
    if kind.endswith("/workspaces"):
        stated = at(properties, "managedNetwork", "isolationMode") is not None
        return stated and properties.get("publicNetworkAccess") in ("Enabled", "Disabled")
    inner = properties.get("properties") or {}
    if "subnet" in inner and "id" not in inner["subnet"]:
        return False
    return _sized(properties)


def has_file(resource: JsonObject) -> bool:
    """Whether the CLI has a file for such a resource."""
    kind = resource["type"].lower()
    return kind in CARRIES and (not kind.endswith("/computes") or resource["properties"]["computeType"] in COMPUTES)


def _sized(properties: JsonObject) -> bool:
    """Whether a compute states what the CLI else fills in."""
    kind, inner = properties.get("computeType"), properties.get("properties")
    if kind not in ("AmlCompute", "ComputeInstance"):
        return True
    scale = ("minNodeCount", "maxNodeCount", "nodeIdleTimeBeforeScaleDown") if kind == "AmlCompute" else ()
    filled_in = (
        at(inner, "vmSize"),
        at(inner, "enableNodePublicIp"),
        *(at(inner, "scaleSettings", key) for key in scale),
    )
    tiers = (None, "Dedicated", "LowPriority")
    return None not in filled_in and (kind != "AmlCompute" or at(inner, "vmPriority") in tiers)


def loses(resource: JsonObject) -> Sequence[str]:
    """What no file states of a resource."""
    return (*_LOST, *_LOST_OF_ATTACHED.get(resource["properties"].get("computeType"), ()))


def write(resources: list[JsonObject]) -> dict[str, bytes]:
    """The files by name, those of a workspace under the name that the CLI's users give it."""
    files: dict[str, bytes] = {}
    for index, resource in enumerate(filter(has_file, resources)):
        kind = resource["type"].rpartition("/")[2].lower()
        stem = "workspace" if kind == "workspaces" else f"{kind}-{index}"
        files[f"{stem}.yml"] = yaml.safe_dump(plain(document(resource)), sort_keys=False).encode()
    return files


def document(resource: JsonObject) -> JsonObject:
    """One resource as the CLI takes it; a key only where the resource has the field."""
    properties = resource["properties"]
    written = {
        "name": resource["name"],
        "location": at(properties, "computeLocation") or resource.get("location"),
        "tags": resource.get("tags"),
        "description": properties.get("description"),
        **WRITERS[resource["type"].rpartition("/")[2].lower()](resource, properties),
    }
    return {key: value for key, value in written.items() if value is not None}


def identity(resource: JsonObject, *, as_map: bool) -> JsonObject | None:
    """The identity: of workspaces with a map of user-assigned ones, of anything else with a list."""
    kind = at(resource, "identity", "type")
    ids = at(resource, "identity", "userAssignedIdentities")
    each: Any = None
    if ids is not None:
        each = {name: {} for name in ids} if as_map else [{"resource_id": name} for name in ids]
    words = None if kind is None else ",".join(str(snake(part.strip())) for part in kind.split(","))
    return filled(type=words, user_assigned_identities=each)


def _compute(resource: JsonObject, properties: JsonObject) -> JsonObject:
    kind = properties["computeType"]
    inner = properties.get("properties") or {}
    return {
        "$schema": SCHEMA.format({"VirtualMachine": "vmCompute"}.get(kind, kind[0].lower() + kind[1:])),
        "type": kind.lower(),
        "identity": identity(resource, as_map=False),
        "resource_id": properties.get("resourceId"),
        **{"AmlCompute": _cluster, "ComputeInstance": _instance, "Kubernetes": _kubernetes}.get(kind, _machine)(inner),
    }


def _cluster(inner: JsonObject) -> JsonObject:
    account = inner.get("userAccountCredentials")
    return {
        "size": inner.get("vmSize"),
        "tier": snake(inner.get("vmPriority")),
        "min_instances": at(inner, "scaleSettings", "minNodeCount"),
        "max_instances": at(inner, "scaleSettings", "maxNodeCount"),
        "idle_time_before_scale_down": seconds(at(inner, "scaleSettings", "nodeIdleTimeBeforeScaleDown")),
        "network_settings": filled(subnet=at(inner, "subnet", "id")),
        "enable_node_public_ip": inner.get("enableNodePublicIp"),
        "ssh_public_access_enabled": opened(inner.get("remoteLoginPortPublicAccess")),
        "ssh_settings": filled(
            admin_username=at(account, "adminUserName"), ssh_key_value=at(account, "adminUserSshPublicKey")
        ),
    }


def _instance(inner: JsonObject) -> JsonObject:
    user = at(inner, "personalComputeInstanceSettings", "assignedUser")
    every = at(inner, "schedules", "computeStartStop")
    return {
        "size": inner.get("vmSize"),
        "network_settings": filled(subnet=at(inner, "subnet", "id")),
        "enable_node_public_ip": inner.get("enableNodePublicIp"),
        "ssh_public_access_enabled": opened(at(inner, "sshSettings", "sshPublicAccess")),
        "idle_time_before_shutdown_minutes": minutes(inner.get("idleTimeBeforeShutdown")),
        "create_on_behalf_of": filled(user_object_id=at(user, "objectId"), user_tenant_id=at(user, "tenantId")),
        "schedules": None if every is None else {"compute_start_stop": [_schedule(entry) for entry in every]},
        "enable_sso": inner.get("enableSSO"),
        "enable_root_access": inner.get("enableRootAccess"),
        "enable_os_patching": inner.get("enableOSPatching"),
        "release_quota_on_stop": inner.get("releaseQuotaOnStop"),
    }


def _schedule(entry: JsonObject) -> JsonObject:
    kind = entry["triggerType"].lower()
    stated = entry[kind]
    week = at(stated, "schedule", "weekDays")
    trigger = filled(
        type=kind,
        expression=stated.get("expression"),
        time_zone=stated.get("timeZone"),
        frequency=snake(stated.get("frequency")),
        interval=stated.get("interval"),
        schedule=filled(
            hours=at(stated, "schedule", "hours"), minutes=at(stated, "schedule", "minutes"), week_days=week
        ),
    )
    return {"action": entry["action"].lower(), "state": entry["status"].lower(), "trigger": trigger}


def _kubernetes(inner: JsonObject) -> JsonObject:
    rest = {key: value for key, value in inner.items() if key != "namespace"}
    return {"namespace": inner.get("namespace"), "properties": rest or None}


def _machine(inner: JsonObject) -> JsonObject:
    account = inner.get("administratorAccount")
    return {"ssh_settings": filled(admin_username=at(account, "username"), ssh_port=inner.get("sshPort"))}


def _workspace(resource: JsonObject, properties: JsonObject) -> JsonObject:
    kind = (resource.get("kind") or "Default").lower()
    keys = at(properties, "encryption", "keyVaultProperties")
    network = properties.get("managedNetwork") or {}
    rules = network.get("outboundRules")
    schema = SCHEMA.format({"default": "workspace", "featurestore": "", "hub": "hub", "project": "project"}[kind])
    return {
        "$schema": "http://azureml/sdk-2-0/FeatureStore.json" if kind == "featurestore" else schema,
        "identity": identity(resource, as_map=True),
        "display_name": properties.get("friendlyName"),
        "hbi_workspace": properties.get("hbiWorkspace"),
        "storage_account": properties.get("storageAccount"),
        "container_registry": properties.get("containerRegistry"),
        "key_vault": properties.get("keyVault"),
        "application_insights": properties.get("applicationInsights"),
        "image_build_compute": properties.get("imageBuildCompute"),
        "public_network_access": snake(properties.get("publicNetworkAccess")),
        "network_acls": filled(
            default_action=at(properties, "networkAcls", "defaultAction"),
            ip_rules=at(properties, "networkAcls", "ipRules"),
        ),
        "system_datastores_auth_mode": properties.get("systemDatastoresAuthMode"),
        "primary_user_assigned_identity": properties.get("primaryUserAssignedIdentity"),
        "hub_id": properties.get("hubResourceId"),
        "customer_managed_key": filled(key_vault=at(keys, "keyVaultArmId"), key_uri=at(keys, "keyIdentifier")),
        "enable_data_isolation": properties.get("enableDataIsolation"),
        "managed_network": filled(
            isolation_mode=snake(network.get("isolationMode")),
            firewall_sku=snake(network.get("firewallSku")),
            outbound_rules=None if rules is None else [_rule(name, rule) for name, rule in rules.items()],
        ),
        "serverless_compute": filled(
            custom_subnet=at(properties, "serverlessComputeSettings", "serverlessComputeCustomSubnet"),
            no_public_ip=at(properties, "serverlessComputeSettings", "serverlessComputeNoPublicIP"),
        ),
    }


def _rule(name: str, rule: JsonObject) -> JsonObject:
    kind = {"FQDN": "fqdn"}.get(rule["type"], snake(rule["type"]))
    to = rule["destination"]
    to = to if isinstance(to, str) else {str(snake(key)): value for key, value in to.items()}
    return {"name": name, "type": kind, "destination": to}


def _connection(_: JsonObject, properties: JsonObject) -> JsonObject:
    sign_in = {"PAT": "pat", "SAS": "sas", "AAD": "aad"}.get(properties["authType"], snake(properties["authType"]))
    return {
        "$schema": "http://azureml/sdk-2-0/Connection.json",
        "type": {"S3": "s3"}.get(properties["category"], snake(properties["category"])),
        "target": properties.get("target"),
        "credentials": {"type": sign_in},
        "is_shared": properties.get("isSharedToAll"),
        "metadata": properties.get("metadata"),
    }


def _datastore(_: JsonObject, properties: JsonObject) -> JsonObject:
    secret = {"AccountKey": {"account_key": "k"}, "Sas": {"sas_token": "s"}, "None": None}
    return {
        "$schema": SCHEMA.format(properties["datastoreType"][0].lower() + properties["datastoreType"][1:]),
        "type": snake(properties["datastoreType"]),
        "tags": properties.get("tags"),
        "account_name": properties.get("accountName"),
        "container_name": properties.get("containerName"),
        "file_share_name": properties.get("fileShareName"),
        "endpoint": properties.get("endpoint"),
        "protocol": properties.get("protocol"),
        "credentials": secret[at(properties, "credentials", "credentialsType")],
    }


def _registry(_: JsonObject, properties: JsonObject) -> JsonObject:
    return {
        "public_network_access": snake(properties.get("publicNetworkAccess")),
        "replication_locations": [{"location": region["location"]} for region in properties["regionDetails"]],
    }


WRITERS: dict[str, Callable[[JsonObject, JsonObject], JsonObject]] = {
    "computes": _compute,
    "workspaces": _workspace,
    "connections": _connection,
    "datastores": _datastore,
    "registries": _registry,
}
