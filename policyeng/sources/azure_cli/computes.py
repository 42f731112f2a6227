"""Compute targets: `az ml compute create --file`, and what `az ml compute show` prints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from policyeng.errors import suggest_nearest
from policyeng.facts.ids import types_of
from policyeng.models import JsonObject, Problem, lowered
from policyeng.parsing.json_pointer import value_at
from policyeng.sources.arm_resource import stands_for_value, with_attachment
from policyeng.sources.azure_cli.converter import (
    IDENTITY,
    IDENTITY_PRINTED,
    PROVIDER,
    CliDocumentKind,
    DocumentTables,
    Lossy,
    Sent,
    build_id,
    convert_document,
    convert_duration,
    convert_list,
    explain_placeholder,
    find_stated_id,
    name,
    region,
    renamed,
    switch,
    tags,
    unplaced,
    word,
)
from policyeng.sources.field_mapping import FieldMapping, UnfitError, boolean, convert_integer, mapped, put_value, text
from policyeng.sources.parsed import Placed, Surroundings, format_value, refuse

_EXPECTED = "a list of `{action, state, trigger}`"
_STARTS = (
    FieldMapping("/trigger/start_time", "/{}/startTime", text),
    FieldMapping("/trigger/time_zone", "/{}/timeZone", text),
)
_CRON = (
    *(row._replace(target=row.target.format("cron")) for row in _STARTS),
    FieldMapping("/trigger/expression", "/cron/expression", text),
)
_RECURRENCE = (
    *(row._replace(target=row.target.format("recurrence")) for row in _STARTS),
    FieldMapping("/trigger/frequency", "/recurrence/frequency", word("Minute", "Hour", "Day", "Week", "Month")),
    FieldMapping("/trigger/interval", "/recurrence/interval", convert_integer),
    FieldMapping("/trigger/schedule/hours", "/recurrence/schedule/hours"),
    FieldMapping("/trigger/schedule/minutes", "/recurrence/schedule/minutes"),
    FieldMapping("/trigger/schedule/week_days", "/recurrence/schedule/weekDays"),
)
_BOTH = (
    FieldMapping("/action", "/action", word("Start", "Stop")),
    FieldMapping("/state", "/status", word("Enabled", "Disabled")),
    FieldMapping("/trigger/type", "/triggerType", word("Cron", "Recurrence")),
    FieldMapping("/schedule_id", "/id", text),
    FieldMapping("/provisioning_state", "/provisioningStatus", text),
)


def schedules(value: object) -> object:
    """Return the schedules in ARM shape.

    Raises:
        UnfitError: the value is not a list of schedules.
    """
    return [_schedule(entry) for entry in convert_list(value)]


def _schedule(entry: object) -> JsonObject:
    trigger = entry.get("trigger") if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or not isinstance(trigger, dict):
        raise UnfitError(_EXPECTED)
    found = mapped((*_BOTH, *(_CRON if "expression" in trigger else _RECURRENCE)), entry, "")
    if found.unreadable:
        raise UnfitError(f"{_EXPECTED}: {next(iter(found.unreadable.values()))}")
    # `ComputeStartStopSchedule.__init__` and `TriggerBase.__init__` fill these in.
    schedule = {"status": "Enabled", **found.resource}
    for kind in ("cron", "recurrence"):
        if kind in schedule:
            schedule[kind] = {"timeZone": "UTC", **schedule[kind]}
    return schedule


_APPLICATION = (
    FieldMapping("/name", "/name", name),
    FieldMapping("/type", "/type", word("docker")),
    FieldMapping("/image/reference", "/image/reference", text),
    FieldMapping(
        "/endpoints",
        "/endpoints",
        lambda value: _extend_each(value, {"name": "connect", "protocol": "http"}, "a list of `{target, published}`"),
    ),
    FieldMapping(
        "/bind_mounts",
        "/volumes",
        lambda value: _extend_each(value, {"type": "bind", "readOnly": False}, "a list of `{source, target}`"),
    ),
    FieldMapping(
        "/environment_variables",
        "/environmentVariables",
        lambda value: {key: {"type": "local", "value": inner} for key, inner in tags(value).items()},
    ),
)


def convert_applications(value: object) -> list[JsonObject]:
    """Return the custom applications of a file as ARM's custom services; the CLI always requests privileged ones.

    Raises:
        UnfitError: the value is not a list of applications.
    """
    return [{**service, "docker": {"privileged": True}} for service in _convert_printed_applications(value)]


def _convert_printed_applications(value: object) -> list[JsonObject]:
    """Return the applications of a command's output; it does not state whether they are privileged."""
    services = []
    for entry in convert_list(value):
        if not isinstance(entry, dict):
            raise UnfitError("a list of `{name, image, endpoints}`")
        found = mapped(_APPLICATION, entry, "")
        if found.unreadable:
            raise UnfitError(f"a list of applications: {next(iter(found.unreadable.values()))}")
        if "image" in found.resource:
            found.resource["image"]["type"] = "docker"
        services.append({"type": "docker", **found.resource})
    return services


def _extend_each(value: object, more: JsonObject, expected: str) -> list[JsonObject]:
    entries = [entry for entry in convert_list(value) if isinstance(entry, dict)]
    if entries != value:
        raise UnfitError(expected)
    return [{**more, **entry} for entry in entries]


_P, _C = "/properties", "/properties/properties"
#: The ARM pointer of the subnet id of a cluster or an instance.
SUBNET_ID = f"{_C}/subnet/id"
_ANY = (
    FieldMapping("/name", "/name", name),
    FieldMapping("/type", ""),
    FieldMapping("/location", "/location", region),
    FieldMapping("/description", f"{_P}/description", text),
    FieldMapping("/tags", "/tags", tags),
    *IDENTITY,
)
_ANY_PRINTED = (
    *IDENTITY_PRINTED,
    FieldMapping("/created_on", f"{_P}/createdOn", text),
    FieldMapping(
        "/provisioning_state",
        f"{_P}/provisioningState",
        word("Succeeded", "Failed", "Creating", "Updating", "Deleting", "Canceled", "Unknown"),
    ),
    FieldMapping("/provisioning_errors", ""),
)
_ATTACHED = FieldMapping("/resource_id", f"{_P}/resourceId", text)
_NETWORK = (
    FieldMapping("/network_settings/subnet", SUBNET_ID, text),
    # The name of a subnet identifies it only together with the virtual network.
    FieldMapping("/network_settings/vnet_name", ""),
)
_SCRIPTS = {kind: f"{_C}/setupScripts/scripts/{kind}Script" for kind in ("creation", "startup")}
_SERVICES = f"{_C}/customServices"
#: The CLI sends the region as `location`, and prints the region of the nodes in the same key.
_NOT_SENT = (f"{_P}/computeLocation",)


def _of_type(name: str) -> Sent:
    """Return the row for the compute type, which files and command outputs both imply."""
    return Sent(f"{_P}/computeType", name, printed=True)


_CLUSTER = DocumentTables(
    table=(
        *_ANY,
        *_NETWORK,
        FieldMapping("/size", f"{_C}/vmSize", text),
        FieldMapping("/tier", f"{_C}/vmPriority", word("Dedicated", "LowPriority")),
        FieldMapping("/min_instances", f"{_C}/scaleSettings/minNodeCount", convert_integer),
        FieldMapping("/max_instances", f"{_C}/scaleSettings/maxNodeCount", convert_integer),
        FieldMapping(
            "/idle_time_before_scale_down", f"{_C}/scaleSettings/nodeIdleTimeBeforeScaleDown", convert_duration("S")
        ),
        FieldMapping("/enable_node_public_ip", f"{_C}/enableNodePublicIp", boolean),
        FieldMapping("/ssh_public_access_enabled", f"{_C}/remoteLoginPortPublicAccess", switch("Enabled", "Disabled")),
        FieldMapping("/ssh_settings/admin_username", f"{_C}/userAccountCredentials/adminUserName", text),
        FieldMapping("/ssh_settings/ssh_key_value", f"{_C}/userAccountCredentials/adminUserSshPublicKey", text),
        FieldMapping("/ssh_settings/admin_password", ""),
        FieldMapping("/resource_id", ""),
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
            "`az ml` prints `ssh_public_access_enabled: false` for both `Disabled` and `NotSpecified`",
        ),
    ),
)

_INSTANCE = DocumentTables(
    table=(
        *_ANY,
        *_NETWORK,
        FieldMapping("/size", f"{_C}/vmSize", text),
        FieldMapping("/enable_node_public_ip", f"{_C}/enableNodePublicIp", boolean),
        FieldMapping("/ssh_public_access_enabled", f"{_C}/sshSettings/sshPublicAccess", switch("Enabled", "Disabled")),
        FieldMapping("/ssh_settings/ssh_key_value", f"{_C}/sshSettings/adminPublicKey", text),
        # The later of the two rows takes precedence; the first key is deprecated.
        FieldMapping("/idle_time_before_shutdown", f"{_C}/idleTimeBeforeShutdown", text),
        FieldMapping("/idle_time_before_shutdown_minutes", f"{_C}/idleTimeBeforeShutdown", convert_duration("M")),
        FieldMapping("/schedules/compute_start_stop", f"{_C}/schedules/computeStartStop", schedules),
        FieldMapping(
            "/create_on_behalf_of/user_object_id",
            f"{_C}/personalComputeInstanceSettings/assignedUser/objectId",
            text,
        ),
        FieldMapping(
            "/create_on_behalf_of/user_tenant_id",
            f"{_C}/personalComputeInstanceSettings/assignedUser/tenantId",
            text,
        ),
        FieldMapping("/enable_sso", f"{_C}/enableSSO", boolean),
        FieldMapping("/enable_root_access", f"{_C}/enableRootAccess", boolean),
        FieldMapping("/enable_os_patching", f"{_C}/enableOSPatching", boolean),
        FieldMapping("/release_quota_on_stop", f"{_C}/releaseQuotaOnStop", boolean),
        FieldMapping("/custom_applications", _SERVICES, convert_applications),
        *(
            FieldMapping(f"/setup_scripts/{kind}_script/{key}", f"{target}/{field}", bring)
            for kind, target in _SCRIPTS.items()
            for key, field, bring in (
                ("path", "scriptData", text),
                ("command", "scriptArguments", text),
                ("timeout_minutes", "timeout", lambda value: f"{convert_integer(value)}m"),
            )
        ),
        FieldMapping("/resource_id", ""),
    ),
    printed=(
        *_ANY_PRINTED,
        FieldMapping("/state", f"{_C}/state", text),
        FieldMapping(
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
        FieldMapping("/services", ""),
        FieldMapping("/custom_applications", _SERVICES, _convert_printed_applications),
        FieldMapping("/network_settings/public_ip_address", f"{_C}/connectivityEndpoints/publicIpAddress", text),
        FieldMapping("/network_settings/private_ip_address", f"{_C}/connectivityEndpoints/privateIpAddress", text),
        FieldMapping("/ssh_settings/admin_username", f"{_C}/sshSettings/adminUserName", text),
        FieldMapping("/ssh_settings/ssh_port", f"{_C}/sshSettings/sshPort", convert_integer),
        FieldMapping(
            "/os_image_metadata/is_latest_os_image_version",
            f"{_C}/osImageMetadata/isLatestOsImageVersion",
            boolean,
        ),
        FieldMapping("/os_image_metadata/current_image_version", f"{_C}/osImageMetadata/currentImageVersion", text),
        FieldMapping("/os_image_metadata/latest_image_version", f"{_C}/osImageMetadata/latestImageVersion", text),
    ),
    # The defaults of `ComputeInstance.__init__` and of its `_to_rest_object`.
    sent=(
        _of_type("ComputeInstance"),
        Sent(f"{_C}/vmSize", "STANDARD_DS3_V2"),
        Sent(f"{_C}/enableNodePublicIp", True),
        Sent(f"{_C}/sshSettings/sshPublicAccess", "Disabled", within=f"{_C}/sshSettings"),
        Sent(f"{_C}/computeInstanceAuthorizationType", "personal"),
        *(Sent(f"{target}/scriptSource", "workspaceStorage", within=target) for target in _SCRIPTS.values()),
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
            "the service omits it for a compute instance, and `az ml` then prints `enable_node_public_ip: true`",
        ),
    ),
)

_KUBERNETES = DocumentTables(
    table=(
        *_ANY,
        _ATTACHED,
        # The SDK passes the object through, and prints ARM's keys in its own spelling.
        FieldMapping(
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
        FieldMapping("/namespace", f"{_C}/namespace", text),
    ),
    printed=_ANY_PRINTED,
    sent=(
        _of_type("Kubernetes"),
        Sent(f"{_C}/namespace", "default"),
    ),
    never=_NOT_SENT,
    always=("location", "resource_id", "namespace", "provisioning_state"),
)

_MACHINE = DocumentTables(
    table=(
        *_ANY,
        _ATTACHED,
        FieldMapping("/ssh_settings/ssh_port", f"{_C}/sshPort", convert_integer),
        FieldMapping("/ssh_settings/admin_username", f"{_C}/administratorAccount/username", text),
        FieldMapping("/ssh_settings/admin_password", ""),
        FieldMapping("/ssh_settings/ssh_private_key_file", ""),
    ),
    printed=(*_ANY_PRINTED, FieldMapping("/compute_location", f"{_P}/computeLocation", region)),
    # The default of `VirtualMachineSshSettings.__init__`.
    sent=(
        _of_type("VirtualMachine"),
        Sent(f"{_C}/sshPort", 22, within=f"{_C}/administratorAccount"),
    ),
    never=_NOT_SENT,
    always=("location", "resource_id", "provisioning_state"),
)

_SPARK = DocumentTables(
    table=(*_ANY, _ATTACHED, FieldMapping("/scale_settings", ""), FieldMapping("/auto_pause_settings", "")),
    printed=(
        *_ANY_PRINTED,
        FieldMapping("/node_family", f"{_C}/nodeSizeFamily", text),
        FieldMapping("/node_size", f"{_C}/nodeSize", text),
        FieldMapping("/node_count", f"{_C}/nodeCount", convert_integer),
        FieldMapping("/spark_version", f"{_C}/sparkVersion", text),
        FieldMapping("/scale_settings/min_node_count", f"{_C}/autoScaleProperties/minNodeCount", convert_integer),
        FieldMapping("/scale_settings/max_node_count", f"{_C}/autoScaleProperties/maxNodeCount", convert_integer),
        FieldMapping("/scale_settings/auto_scale_enabled", f"{_C}/autoScaleProperties/enabled", boolean),
        FieldMapping(
            "/auto_pause_settings/delay_in_minutes", f"{_C}/autoPauseProperties/delayInMinutes", convert_integer
        ),
        FieldMapping("/auto_pause_settings/auto_pause_enabled", f"{_C}/autoPauseProperties/enabled", boolean),
    ),
    sent=(_of_type("SynapseSpark"),),
    never=_NOT_SENT,
    always=("location", "resource_id", "provisioning_state"),
)

#: AKS, Databricks, HDInsight, Data Lake Analytics and Data Factory, which the SDK cannot distinguish.
UNSUPPORTED = DocumentTables(table=(*_ANY, _ATTACHED), printed=_ANY_PRINTED)

#: The tables by compute type, as the CLI spells it.
SHAPES: Mapping[str, DocumentTables] = {
    "amlcompute": _CLUSTER,
    "computeinstance": _INSTANCE,
    "kubernetes": _KUBERNETES,
    "virtualmachine": _MACHINE,
    "synapsespark": _SPARK,
}

ARM_TYPE = f"{PROVIDER}/workspaces/computes"

#: Schema names that differ from the compute type.
_SCHEMAS: Mapping[str, tuple[str, ...]] = {
    "kubernetes": ("kubernetescompute",),
    "virtualmachine": ("vmcompute", "virtualmachinecompute"),
    "synapsespark": ("synapsesparkcompute", "attachedspark"),
}
#: Types that also occur in files of other tools.
_COMMON_WORDS = ("kubernetes", "virtualmachine")
_SUBNET = "/network_settings/subnet"
_NO_COMPUTE_TYPE = "`az ml` prints no compute type for AKS, Databricks, HDInsight, Data Lake Analytics and Data Factory"


def _convert(word: str) -> Callable[[JsonObject, str, Surroundings], Iterator[Placed | Problem]]:
    def bring(document: JsonObject, pointer: str, around: Surroundings) -> Iterator[Placed | Problem]:
        stated = document.get("type")
        if not isinstance(stated, str) or lowered(stated) != word:
            message = f"`type` is {format_value(stated)}, which is not a compute type of the Azure CLI"
            known = ", ".join(f"`{known}`" for known in SHAPES)
            remedy = f"the CLI supports {known}{suggest_nearest(str(stated), SHAPES)}"
            yield refuse(f"{pointer}/type" if "type" in document else pointer, message, remedy)
            return
        arm_id = build_id(document, ARM_TYPE, around)
        resource: JsonObject = {"id": arm_id, "name": arm_id.rpartition("/")[2], "type": ARM_TYPE}
        given = convert_document(SHAPES[word], resource, document, pointer, _of_subnet(document))
        _set_subnet_id(given.resource, document, around)
        yield given._replace(
            resource=with_attachment(given.resource),
            unreadable={**given.unreadable, **unplaced(arm_id), **_list_unprinted(given)},
            fields={**given.fields, "/properties/computeType": f"{pointer}/type"},
        )

    return bring


def _list_unprinted(given: Placed) -> dict[str, str]:
    """Return by ARM pointer why parts of scripts and services are unknown; a file states all of them."""
    unprinted = {
        f"{target}/scriptSource": "`az ml` does not print whether the script is a file or inline"
        for target in _SCRIPTS.values()
        if isinstance(script := value_at(given.resource, target), dict) and "scriptSource" not in script
    }
    services = value_at(given.resource, _SERVICES)
    return unprinted | {
        f"{_SERVICES}/{index}/docker": "`az ml` does not print whether a custom application is privileged"
        for index, service in enumerate(services if isinstance(services, list) else ())
        if "docker" not in service
    }


def _convert_unsupported(document: JsonObject, pointer: str, around: Surroundings) -> Iterator[Placed | Problem]:
    arm_id = build_id(document, ARM_TYPE, around)
    resource: JsonObject = {"id": arm_id, "name": arm_id.rpartition("/")[2], "type": ARM_TYPE}
    given = convert_document(UNSUPPORTED, resource, document, pointer, {})
    yield given._replace(unreadable={**given.unreadable, "/properties/computeType": _NO_COMPUTE_TYPE})


def _of_subnet(document: JsonObject) -> dict[str, str]:
    """Return why the subnet of a file is unknown, by JSON Pointer; empty if it is known or the file names none."""
    network = document.get("network_settings")
    subnet, vnet = (network.get("subnet"), network.get("vnet_name")) if isinstance(network, dict) else (None, None)
    if vnet and not subnet:
        return {_SUBNET: "`network_settings` has a `vnet_name` and no `subnet`"}
    if not isinstance(subnet, str) or "/" in subnet or stands_for_value(subnet):
        return {}
    if not isinstance(vnet, str) or not vnet:
        return {_SUBNET: f"the subnet `{subnet}` has no `vnet_name`; write both, or the full id of the subnet"}
    return {_SUBNET: explain_placeholder("network_settings/vnet_name", vnet)} if stands_for_value(vnet) else {}


def _set_subnet_id(resource: JsonObject, document: JsonObject, around: Surroundings) -> None:
    """Replace the name of a subnet with an id in the resource group of the workspace.

    If the group is unknown, the id has placeholders, which policies understand; the subnet itself is known to exist.
    Source: `get_subnet_str` in `_schema/_utils/utils.py` of azure-ai-ml 1.35.2.
    """
    subnet = value_at(resource, SUBNET_ID)
    if not isinstance(subnet, str) or "/" in subnet:
        return
    vnet = value_at(document, "/network_settings/vnet_name")
    group = around.workspace[: lowered(around.workspace).index("/providers/")]
    put_value(resource, SUBNET_ID, f"{group}/providers/Microsoft.Network/virtualNetworks/{vnet}/subnets/{subnet}")


def _matches(word: str) -> Callable[[JsonObject], bool]:
    def takes(document: JsonObject) -> bool:
        stated = document.get("type")
        if not isinstance(stated, str) or lowered(stated) != word:
            return False
        return word not in _COMMON_WORDS or "resource_id" in document or "id" in document

    return takes


def _is_unsupported(document: JsonObject) -> bool:
    """Check whether an output has no type that the CLI knows; the type can be missing from a truncated output."""
    known = document.get("type")
    if lowered(ARM_TYPE) not in types_of(find_stated_id(document)):
        return False
    return not isinstance(known, str) or lowered(known) not in SHAPES


KINDS: tuple[CliDocumentKind, ...] = (
    *(
        CliDocumentKind(ARM_TYPE, (word, *_SCHEMAS.get(word, ())), _matches(word), _convert(word), shape=shape)
        for word, shape in SHAPES.items()
    ),
    CliDocumentKind(ARM_TYPE, (), _is_unsupported, _convert_unsupported, shape=UNSUPPORTED),
)
