"""The tables of compute targets.

Source of the rows: `_schema/compute/*.py` and `_to_rest_object` of `entities/_compute/*.py` in azure-ai-ml 1.35.2.
`disableLocalAuth`, `isolatedNetwork`, `osType` and `applicationSharingPolicy` have no key; what the SDK sends for them
has changed from version to version, so they are not carried.
"""

from __future__ import annotations

from collections.abc import Mapping

from policyeng.sources.azure_cli.compute_schedules import schedules
from policyeng.sources.azure_cli.shapes import Lossy, Sent, Shape
from policyeng.sources.azure_cli.values import (
    IDENTITY,
    IDENTITY_PRINTED,
    lasting,
    name,
    region,
    renamed,
    switch,
    tags,
    word,
)
from policyeng.sources.mapping import Field, boolean, text, whole

_P, _C = "/properties", "/properties/properties"
#: Where a cluster or an instance has the id of its subnet.
SUBNET_ID = f"{_C}/subnet/id"
_ANY = (
    Field("/name", "/name", name),
    Field("/type", ""),
    Field("/location", "/location", region),
    Field("/description", f"{_P}/description", text),
    Field("/tags", "/tags", tags),
    *IDENTITY,
)
_ANY_PRINTED = (
    *IDENTITY_PRINTED,
    Field("/created_on", f"{_P}/createdOn", text),
    Field(
        "/provisioning_state",
        f"{_P}/provisioningState",
        word("Succeeded", "Failed", "Creating", "Updating", "Deleting", "Canceled", "Unknown"),
    ),
    Field("/provisioning_errors", ""),
)
_ATTACHED = Field("/resource_id", f"{_P}/resourceId", text)
_NETWORK = (
    Field("/network_settings/subnet", SUBNET_ID, text),
    # Only with its virtual network a subnet's name is an id.
    Field("/network_settings/vnet_name", ""),
)
#: The CLI sends the region as `location`, and prints the nodes' there.
_NOT_SENT = (f"{_P}/computeLocation",)


def _of_type(name: str) -> Sent:
    """What tells a compute from others, in a file and in an output alike."""
    return Sent(f"{_P}/computeType", name, printed=True)


_CLUSTER = Shape(
    table=(
        *_ANY,
        *_NETWORK,
        Field("/size", f"{_C}/vmSize", text),
        Field("/tier", f"{_C}/vmPriority", word("Dedicated", "LowPriority")),
        Field("/min_instances", f"{_C}/scaleSettings/minNodeCount", whole),
        Field("/max_instances", f"{_C}/scaleSettings/maxNodeCount", whole),
        Field("/idle_time_before_scale_down", f"{_C}/scaleSettings/nodeIdleTimeBeforeScaleDown", lasting("S")),
        Field("/enable_node_public_ip", f"{_C}/enableNodePublicIp", boolean),
        Field("/ssh_public_access_enabled", f"{_C}/remoteLoginPortPublicAccess", switch("Enabled", "Disabled")),
        Field("/ssh_settings/admin_username", f"{_C}/userAccountCredentials/adminUserName", text),
        Field("/ssh_settings/ssh_key_value", f"{_C}/userAccountCredentials/adminUserSshPublicKey", text),
        Field("/ssh_settings/admin_password", ""),
        Field("/resource_id", ""),
    ),
    printed=_ANY_PRINTED,
    # The defaults of `AmlCompute.__init__`, and of `ComputeDefaults` for the size.
    sent=(
        _of_type("AmlCompute"),
        Sent(f"{_C}/vmSize", "STANDARD_DS3_V2"),
        Sent(f"{_C}/scaleSettings/minNodeCount", 0),
        Sent(f"{_C}/scaleSettings/maxNodeCount", 4),
        Sent(f"{_C}/scaleSettings/nodeIdleTimeBeforeScaleDown", "PT120S"),
        Sent(f"{_C}/enableNodePublicIp", True),
        Sent(f"{_C}/remoteLoginPortPublicAccess", "NotSpecified"),
    ),
    never=_NOT_SENT,
    always=(
        "location",
        "size",
        "tier",
        "min_instances",
        "max_instances",
        "idle_time_before_scale_down",
        "ssh_public_access_enabled",
        "enable_node_public_ip",
        "provisioning_state",
    ),
    lossy=(
        Lossy(
            "ssh_public_access_enabled",
            False,
            f"{_C}/remoteLoginPortPublicAccess",
            "`az ml` prints `ssh_public_access_enabled: false` for `Disabled` and for `NotSpecified` alike",
        ),
    ),
)

_INSTANCE = Shape(
    table=(
        *_ANY,
        *_NETWORK,
        Field("/size", f"{_C}/vmSize", text),
        Field("/enable_node_public_ip", f"{_C}/enableNodePublicIp", boolean),
        Field("/ssh_public_access_enabled", f"{_C}/sshSettings/sshPublicAccess", switch("Enabled", "Disabled")),
        Field("/ssh_settings/ssh_key_value", f"{_C}/sshSettings/adminPublicKey", text),
        # Of the two, the later goes before: the first is the deprecated one.
        Field("/idle_time_before_shutdown", f"{_C}/idleTimeBeforeShutdown", text),
        Field("/idle_time_before_shutdown_minutes", f"{_C}/idleTimeBeforeShutdown", lasting("M")),
        Field("/schedules/compute_start_stop", f"{_C}/schedules/computeStartStop", schedules),
        Field(
            "/create_on_behalf_of/user_object_id",
            f"{_C}/personalComputeInstanceSettings/assignedUser/objectId",
            text,
        ),
        Field(
            "/create_on_behalf_of/user_tenant_id",
            f"{_C}/personalComputeInstanceSettings/assignedUser/tenantId",
            text,
        ),
        Field("/enable_sso", f"{_C}/enableSSO", boolean),
        Field("/enable_root_access", f"{_C}/enableRootAccess", boolean),
        Field("/enable_os_patching", f"{_C}/enableOSPatching", boolean),
        Field("/release_quota_on_stop", f"{_C}/releaseQuotaOnStop", boolean),
        Field("/custom_applications", ""),
        Field("/setup_scripts", ""),
        Field("/resource_id", ""),
    ),
    printed=(
        *_ANY_PRINTED,
        Field("/state", f"{_C}/state", text),
        Field(
            "/last_operation",
            f"{_C}/lastOperation",
            renamed(
                {
                    "operation_name": "operationName",
                    "operation_status": "operationStatus",
                    "operation_time": "operationTime",
                    "operation_trigger": "operationTrigger",
                }
            ),
        ),
        Field("/services", ""),
        Field("/network_settings/public_ip_address", f"{_C}/connectivityEndpoints/publicIpAddress", text),
        Field("/network_settings/private_ip_address", f"{_C}/connectivityEndpoints/privateIpAddress", text),
        Field("/ssh_settings/admin_username", f"{_C}/sshSettings/adminUserName", text),
        Field("/ssh_settings/ssh_port", f"{_C}/sshSettings/sshPort", whole),
        Field(
            "/os_image_metadata/is_latest_os_image_version",
            f"{_C}/osImageMetadata/isLatestOsImageVersion",
            boolean,
        ),
        Field("/os_image_metadata/current_image_version", f"{_C}/osImageMetadata/currentImageVersion", text),
        Field("/os_image_metadata/latest_image_version", f"{_C}/osImageMetadata/latestImageVersion", text),
    ),
    # The defaults of `ComputeInstance.__init__` and of its `_to_rest_object`.
    sent=(
        _of_type("ComputeInstance"),
        Sent(f"{_C}/vmSize", "STANDARD_DS3_V2"),
        Sent(f"{_C}/enableNodePublicIp", True),
        Sent(f"{_C}/sshSettings/sshPublicAccess", "Disabled", within=f"{_C}/sshSettings"),
        Sent(f"{_C}/computeInstanceAuthorizationType", "personal"),
        Sent(f"{_C}/enableSSO", True),
        Sent(f"{_C}/enableRootAccess", True),
        Sent(f"{_C}/enableOSPatching", False),
        Sent(f"{_C}/releaseQuotaOnStop", False),
    ),
    never=_NOT_SENT,
    always=("location", "size", "state", "enable_node_public_ip", "provisioning_state"),
    lossy=(
        Lossy(
            "enable_node_public_ip",
            True,
            f"{_C}/enableNodePublicIp",
            "the service never says it of a compute instance, and `az ml` prints `enable_node_public_ip: true` then",
        ),
    ),
)

_KUBERNETES = Shape(
    table=(
        *_ANY,
        _ATTACHED,
        # The SDK passes an object on, and prints the keys of ARM in its own spelling.
        Field(
            "/properties",
            _C,
            renamed(
                {
                    "default_instance_type": "defaultInstanceType",
                    "extension_instance_release_train": "extensionInstanceReleaseTrain",
                    "extension_principal_id": "extensionPrincipalId",
                    "instance_types": "instanceTypes",
                    "relay_connection_string": "relayConnectionString",
                    "service_bus_connection_string": "serviceBusConnectionString",
                    "vc_name": "vcName",
                }
            ),
        ),
        Field("/namespace", f"{_C}/namespace", text),
    ),
    printed=_ANY_PRINTED,
    sent=(
        _of_type("Kubernetes"),
        Sent(f"{_C}/namespace", "default"),
    ),
    never=_NOT_SENT,
    always=("location", "resource_id", "namespace", "provisioning_state"),
)

_MACHINE = Shape(
    table=(
        *_ANY,
        _ATTACHED,
        Field("/ssh_settings/ssh_port", f"{_C}/sshPort", whole),
        Field("/ssh_settings/admin_username", f"{_C}/administratorAccount/username", text),
        Field("/ssh_settings/admin_password", ""),
        Field("/ssh_settings/ssh_private_key_file", ""),
    ),
    printed=(*_ANY_PRINTED, Field("/compute_location", f"{_P}/computeLocation", region)),
    # The default of `VirtualMachineSshSettings.__init__`.
    sent=(
        _of_type("VirtualMachine"),
        Sent(f"{_C}/sshPort", 22, within=f"{_C}/administratorAccount"),
    ),
    never=_NOT_SENT,
    always=("location", "resource_id", "provisioning_state"),
)

_SPARK = Shape(
    table=(*_ANY, _ATTACHED, Field("/scale_settings", ""), Field("/auto_pause_settings", "")),
    printed=(
        *_ANY_PRINTED,
        Field("/node_family", f"{_C}/nodeSizeFamily", text),
        Field("/node_size", f"{_C}/nodeSize", text),
        Field("/node_count", f"{_C}/nodeCount", whole),
        Field("/spark_version", f"{_C}/sparkVersion", text),
        Field("/scale_settings/min_node_count", f"{_C}/autoScaleProperties/minNodeCount", whole),
        Field("/scale_settings/max_node_count", f"{_C}/autoScaleProperties/maxNodeCount", whole),
        Field("/scale_settings/auto_scale_enabled", f"{_C}/autoScaleProperties/enabled", boolean),
        Field("/auto_pause_settings/delay_in_minutes", f"{_C}/autoPauseProperties/delayInMinutes", whole),
        Field("/auto_pause_settings/auto_pause_enabled", f"{_C}/autoPauseProperties/enabled", boolean),
    ),
    sent=(_of_type("SynapseSpark"),),
    never=_NOT_SENT,
    always=("location", "resource_id", "provisioning_state"),
)

#: AKS, Databricks, HDInsight, Data Lake Analytics and Data Factory, which the SDK cannot tell apart.
UNSUPPORTED = Shape(table=(*_ANY, _ATTACHED), printed=_ANY_PRINTED)

#: By the compute type as the CLI spells it.
SHAPES: Mapping[str, Shape] = {
    "amlcompute": _CLUSTER,
    "computeinstance": _INSTANCE,
    "kubernetes": _KUBERNETES,
    "virtualmachine": _MACHINE,
    "synapsespark": _SPARK,
}
