"""Property names as ARM spells them: it reads them without case, so templates write `VMSize` for `vmSize`.

Source: the OpenAPI of Microsoft.MachineLearningServices 2025-12-01, as far as policies look at it. Other providers
spell some of these in another way, such as AKS `enableNodePublicIP`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from policyeng.models import JsonObject, lowered
from policyeng.sources.arm_entry import ENVELOPE
from policyeng.strict.json_pointer import escaped, keys_of

_NAMES = """
    adminPublicKey adminUserName agentCount agentPoolProfiles agentVmSize aksNetworkingConfiguration
    allowPublicAccessWhenBehindVnet allowRoleAssignmentOnRG applicationInsights applicationSharingPolicy assignedUser
    authMode autoScaler autoscaleEnabled clusterPurpose cmkKeyVault code codeConfiguration compute computeId
    computeLocation computeStartStop computeType condition connectivityEndpoints containerRegistry containers cron
    defaultCompute disableLocalAuth distribution egressPublicNetworkAccess enableDataIsolation enableNodePublicIp
    enableOSPatching enableRootAccess enableSSO encryption endpointComputeType experimentName expression
    hbiWorkspace hubResourceId identity idleTimeBeforeShutdown imageBuildCompute instanceCount instanceType ipAddress
    ipAllowlist ipRules isArchived isolatedNetwork isolationMode jobType jobs keyIdentifier keyVault keyVaultArmId
    keyVaultProperties limits managedNetwork maxInstances maxNodeCount memoryInGB minInstances minNodeCount
    mirrorTraffic model networkAcls networkProfile nodeIdleTimeBeforeScaleDown osImageMetadata osType outboundRules
    permissions personalComputeInstanceSettings powerState primaryUserAssignedIdentity principalId principalType
    properties publicIp publicNetworkAccess recurrence remoteLoginPortPublicAccess requestSettings requests resourceId
    resources roleDefinitionId scaleSettings scaleType schedule schedules scope serverlessComputeCustomSubnet
    serverlessComputeNoPublicIP serverlessComputeSettings services settings sshPublicAccess sshSettings status
    storageAccount subnet subnetId subnetIds systemDatastoresAuthMode traffic triggerType userAccountCredentials
    v1LegacyMode virtualMachineImage virtualMachineSize vmPriority vmSize vnetConfiguration
"""
#: Those of other providers, as far as policies and workloads look at them.
_ELSEWHERE = """
    actions addressPrefix addressPrefixes agentPoolProfiles appliedScopeProperties appliedScopeType appliedScopes
    benefitStartTime capacity category code computeLocation condition containers count dataActions enableAutoScaling
    enabled endDate environmentVariables expiryDate expiryDateTime filter gpu hardwareProfile impact
    instanceFlexibility ipAddress lastUpdated licenseType limits managementGroupId maxCount maxPods memoryInGB minCount
    mode networkPlugin networkPluginMode networkProfile notActions notDataActions notifications osDisk osType
    permissions podSubnetID powerState principalId principalType properties provisioningState requests
    reservedResourceType resourceGroup resources roleDefinitionId roleName scaleSetPriority scope startDate
    storageProfile subnetIds subnets suppressionIds timePeriod vmSize vnetSubnetID
"""
_SPELLED: Mapping[str, str] = {lowered(name): name for name in _NAMES.split()}
_SPELLED_ELSEWHERE: Mapping[str, str] = {lowered(name): name for name in _ELSEWHERE.split()}
_TOP: Mapping[str, str] = {lowered(name): name for name in ENVELOPE}
_NONE: Mapping[str, str] = {}
#: What holds names that the user gives.
_NAMED_BY_USERS = frozenset(
    {
        "environmentVariables",
        "inputs",
        "jobs",
        "mirrorTraffic",
        "outboundRules",
        "outputs",
        "tags",
        "traffic",
        "userAssignedIdentities",
    }
)


def is_respelled(arm_type: str) -> bool:
    """Whether the names are those of a type: one of Machine Learning."""
    return lowered(arm_type).startswith("microsoft.machinelearningservices/")


def respelled_pointer(pointer: str, here: str = "") -> str:
    """A JSON Pointer into a value as `respelled` spells its parts; `here` is that of the value in the resource."""
    nested: object = None
    for key in reversed(keys_of(pointer)):
        nested = {key: nested}
    spelled, value = "", respelled(nested, {}, "", here)
    while isinstance(value, dict):
        key, value = next(iter(value.items()))
        spelled += f"/{escaped(key)}"
    return spelled


class Spelled(NamedTuple):
    """A resource, or a part of one, with the names that ARM has.

    Attributes:
        fields: by pointer into it, the pointer in what was given of what is spelled otherwise there.
        twice: the pointer of a member that stands there twice, which ARM does not take; empty where there is none.
    """

    part: JsonObject
    fields: Mapping[str, str] = _NONE
    twice: str = ""


def as_arm_reads(part: JsonObject, arm_type: str, more: Mapping[str, str] = _NONE) -> Spelled:
    """A resource, or a patch of one, as ARM reads it: the names of its members without case.

    Args:
        part: the resource or the patch.
        arm_type: of the resource.
        more: names beside those that are known, by themselves in lower case.
    """
    known = _SPELLED if is_respelled(arm_type) else _SPELLED_ELSEWHERE
    names = {**more, **known} if more else known
    odd = dict(_odd(part, names, ""))
    twice = next((pointer for pointer, is_twice in odd.items() if is_twice), "")
    if twice or not odd:
        return Spelled(part, twice=twice)
    fields: dict[str, str] = {}
    made: JsonObject = {}
    for key, inner in part.items():
        name = _at_top(key, names)
        pointer, place = f"/{escaped(name)}", f"/{escaped(key)}"
        if name != key:
            fields[pointer] = place
        made[name] = respelled(inner, fields, place, pointer, names)
    return Spelled(made, fields)


def _at_top(key: str, names: Mapping[str, str]) -> str:
    return _TOP.get(lowered(key)) or names.get(lowered(key), key)


def _odd(value: object, names: Mapping[str, str], here: str) -> Iterator[tuple[str, bool]]:
    """The pointers of members whose names ARM spells otherwise, and whether each stands beside one of its name."""
    if isinstance(value, list):
        for index, entry in enumerate(value):
            yield from _odd(entry, names, f"{here}/{index}")
    if not isinstance(value, dict):
        return
    by_users = here.rsplit("/", maxsplit=1)[-1] in _NAMED_BY_USERS
    seen: set[str] = set()
    for key, inner in value.items():
        name = key if by_users else names.get(lowered(key), key) if here else _at_top(key, names)
        pointer = f"{here}/{escaped(key)}"
        one = lowered(key) if here == "/tags" else name  # of tags ARM keeps the letters, and takes none twice
        if name != key or one in seen:
            yield pointer, one in seen or (name != key and name in value)
        seen.add(one)
        yield from _odd(inner, names, pointer)


def respelled(
    value: object, fields: dict[str, str], there: str, here: str = "", names: Mapping[str, str] = _SPELLED
) -> object:
    """The value with known property names as ARM spells them.

    Args:
        value: the properties of a resource.
        fields: by pointer into the resource, the pointer in the document; those of other names are added.
        there: the JSON Pointer of the value in the document.
        here: its JSON Pointer in the resource.
        names: by themselves in lower case; those of Machine Learning unless given.
    """
    if isinstance(value, list):
        return [
            respelled(entry, fields, f"{there}/{index}", f"{here}/{index}", names) for index, entry in enumerate(value)
        ]
    if not isinstance(value, dict):
        return value
    by_users = here.rsplit("/", maxsplit=1)[-1] in _NAMED_BY_USERS
    made: dict[str, object] = {}
    for key, inner in value.items():
        name = key if by_users else names.get(lowered(key), key)
        name = key if name != key and name in value else name
        pointer, place = f"{here}/{escaped(name)}", f"{there}/{escaped(key)}"
        if name != key:
            fields.setdefault(pointer, place)
        made[name] = respelled(inner, fields, fields.get(pointer, place), pointer, names)
    return made
