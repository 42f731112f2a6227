"""Property names as ARM spells them: it reads them without case, so templates write `VMSize` for `vmSize`.

Source: the OpenAPI of Microsoft.MachineLearningServices 2025-12-01, as far as policies look at it. Other providers
spell some of these in another way, such as AKS `enableNodePublicIP`.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from policyeng.bundle.spellings import Spellings
from policyeng.facts.words import trimmed
from policyeng.identity import This
from policyeng.models import JsonObject, lowered
from policyeng.sources.arm_entry import ENVELOPE
from policyeng.strict.json_pointer import escaped, keys_of

_NAMES = """
    adminPublicKey adminUserName agentCount agentPoolProfiles agentVmSize aksNetworkingConfiguration
    allowPublicAccessWhenBehindVnet allowRoleAssignmentOnRG applicationInsights applicationSharingPolicy assignedUser
    authMode autoscaleEnabled autoScaler capacity clusterPurpose cmkKeyVault code codeConfiguration command compute
    computeId computeLocation computeName computeStartStop computeType condition connectivityEndpoints
    containerRegistry containerResourceLimits containerResourceRequirements containers cron defaultCompute
    defaultInstanceType deploymentConfiguration deploymentConfigurationType disableLocalAuth distribution
    egressPublicNetworkAccess enabled enableDataIsolation enableNodePublicIp enableOSPatching enableRootAccess
    enableSSO encryption endpointComputeType experimentName expression fpga gpu hbiWorkspace hubResourceId identity
    idleTimeBeforeShutdown imageBuildCompute instanceCount instanceType instanceTypes ipAddress ipAllowlist ipRules
    isArchived isAttachedCompute isolatedNetwork isolationMode jobs jobType keyIdentifier keyVault keyVaultArmId
    keyVaultProperties kvTags lastOperation limits managedNetwork maxConcurrentTrials maxInstances maxNodeCount
    maxReplicas maxTotalTrials memory memoryInGB minInstances minNodeCount mirrorTraffic mode model networkAcls
    networkProfile nodeIdleTimeBeforeScaleDown numReplicas operationTime operationTrigger osImageMetadata osType
    outboundRules permissions personalComputeInstanceSettings powerState primaryUserAssignedIdentity principalId
    principalType properties provisioningState publicIp publicNetworkAccess recurrence remoteLoginPortPublicAccess
    requests requestSettings resourceId resources roleDefinitionId scaleSettings scaleType schedule schedules scope
    serverlessComputeCustomSubnet serverlessComputeNoPublicIP serverlessComputeSettings services settings
    sshPublicAccess sshSettings state status storageAccount subnet subnetId subnetIds subnetName
    systemDatastoresAuthMode task tier traffic trial triggerType userAccountCredentials v1LegacyMode
    virtualMachineImage virtualMachineSize vmPriority vmSize vnetConfiguration vnetName
"""
#: Those of other providers, as far as policies and workloads look at them.
_ELSEWHERE = """
    actions addressPrefix addressPrefixes agentPoolProfiles amount appliedScopeProperties appliedScopes
    appliedScopeType assignableScopes benefitStartTime capacity category code computeLocation condition containers
    count dataActions enableAutoScaling enabled endDate environmentVariables expiryDate expiryDateTime filter gpu
    hardwareProfile impact impactedField instanceFlexibility ip ipAddress lastUpdated licenseType limits
    managementGroupId maxCount maxPods memoryInGB minCount minNodeCount mode networkPlugin networkPluginMode
    networkProfile notActions notDataActions notifications osDisk osType permissions podSubnetID powerState
    principalId principalType properties provisioningState publicIp publicNetworkAccess requests reservedResourceType
    resourceGroup resourceId resources roleDefinitionId roleName scaleSetPriority scaleSettings scope shortDescription
    startDate storageProfile subnetId subnetIds subnetName subnets suppressionIds threshold timePeriod vmSize
    vnetConfiguration vnetName vnetSubnetID
"""
_SPELLED: Mapping[str, str] = {lowered(name): name for name in _NAMES.split()}
_SPELLED_ELSEWHERE: Mapping[str, str] = {lowered(name): name for name in _ELSEWHERE.split()}
_TOP: Mapping[str, str] = {lowered(name): name for name in ENVELOPE}
_NONE: Mapping[str, str] = {}
NO_SPELLINGS: Spellings = {}
#: What names the resource, and what is the user's.
_AS_THEY_STAND = ("/id", "/type", "/tags")
#: What holds names that the user gives.
_NAMED_BY_USERS = frozenset(
    {
        "environmentVariables",
        "inputs",
        "instanceTypes",
        "jobs",
        "kvTags",
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


def as_arm_reads(part: JsonObject, arm_type: str, spellings: Spellings = NO_SPELLINGS) -> Spelled:
    """A resource, or a patch of one, as ARM reads it: names of members without case, and no white space around words.

    Words are texts below names that are known; the service reads enumerations so (`System.Enum.Parse` of .NET).

    Args:
        part: the resource or the patch.
        arm_type: of the resource.
        spellings: names beside those that are known, as `Bundle.spellings` has them.
    """
    kind = lowered(arm_type)
    names, right = _names(is_respelled(kind), kind if kind in spellings else "", This(spellings))
    if all(
        (key in ENVELOPE or (lowered(key) not in _TOP and _is_right(key, names, right)))
        and _is_plain(inner, names, right)
        for key, inner in part.items()
    ):
        return Spelled(part)
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
        made[name] = (
            inner
            if pointer in _AS_THEY_STAND
            else _trimmed(respelled(inner, fields, place, pointer, names), names, name)
        )
    return Spelled(made, fields)


@lru_cache(maxsize=256)
def _names(is_ours: bool, kind: str, spellings: This[Spellings]) -> tuple[Mapping[str, str], frozenset[str]]:
    """The names of a lower-case type by themselves in lower case, and those that are spelled as they should be."""
    known = _SPELLED if is_ours else _SPELLED_ELSEWHERE
    more = spellings.held
    names = {**more.get("", {}), **more.get(kind, {}), **known}
    return names, frozenset(names.values())


def _is_right(key: str, names: Mapping[str, str], right: Container[str]) -> bool:
    return key in right or lowered(key) not in names


def _is_plain(value: object, names: Mapping[str, str], right: Container[str]) -> bool:
    """Whether nothing in a value can be read otherwise than it stands: most of what comes, and told in no time."""
    if isinstance(value, dict):
        return all(_is_right(key, names, right) and _is_plain(inner, names, right) for key, inner in value.items())
    if isinstance(value, list):
        return all(_is_plain(entry, names, right) for entry in value)
    return not isinstance(value, str) or value == trimmed(value)


def _trimmed(value: object, names: Mapping[str, str], key: str) -> object:
    """A value at a key without the white space around words."""
    if isinstance(value, str):
        return trimmed(value) if lowered(key) in names else value
    if isinstance(value, list):
        return [_trimmed(entry, names, key) for entry in value]
    if not isinstance(value, dict) or key == "tags":
        return value
    by_users = key in _NAMED_BY_USERS
    return {name: _trimmed(inner, names, "" if by_users else name) for name, inner in value.items()}


def _at_top(key: str, names: Mapping[str, str]) -> str:
    return _TOP.get(lowered(key)) or names.get(lowered(key), key)


def _odd(value: object, names: Mapping[str, str], here: str) -> Iterator[tuple[str, bool]]:
    """The pointers of members that ARM reads otherwise than they stand, and whether there is another of that name."""
    if isinstance(value, list):
        for index, entry in enumerate(value):
            yield from _odd(entry, names, f"{here}/{index}")
    if not isinstance(value, dict) or here in _AS_THEY_STAND:
        return
    by_users = here.rsplit("/", maxsplit=1)[-1] in _NAMED_BY_USERS
    seen: set[str] = set()
    for key, inner in value.items():
        name = key if by_users else names.get(lowered(key), key) if here else _at_top(key, names)
        pointer = f"{here}/{escaped(key)}"
        is_word = not by_users and lowered(name) in names and pointer not in _AS_THEY_STAND
        texts = inner if isinstance(inner, list) else [inner]
        has_space = is_word and any(isinstance(one, str) and one != trimmed(one) for one in texts)
        if name != key or has_space:
            yield pointer, name in seen or (name != key and name in value)
        seen.add(name)
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
