"""Property names as ARM spells them: it reads them without case, so templates write `VMSize` for `vmSize`.

Source: the OpenAPI of Microsoft.MachineLearningServices 2025-12-01, as far as policies look at it. Other providers
spell some of these in another way, such as AKS `enableNodePublicIP`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from types import NoneType
from typing import Any

from policyeng._performance import IdentityKey
from policyeng.facts.words import SPACE, trim
from policyeng.models import WORKSPACE_TYPE, JsonObject, lowered
from policyeng.named import NamedTuple
from policyeng.parsing.json_pointer import escaped, keys_of

#: By lower-case type of resources, names by themselves in lower case.
Spellings = Mapping[str, Mapping[str, str]]

#: Top-level keys of resources and of resource listings; a resource without `properties` has no others.
ENVELOPE = frozenset(
    {
        "apiVersion",
        "changedTime",
        "createdTime",
        "etag",
        "extendedLocation",
        "id",
        "identity",
        "kind",
        "location",
        "managedBy",
        "name",
        "placement",
        "plan",
        "properties",
        "provisioningState",
        "resourceGroup",
        "sku",
        "subscriptionId",
        "systemData",
        "tags",
        "tenantId",
        "type",
        "zones",
    }
)
#: By themselves in lower case; providers spell `etag` in two ways (budgets have `eTag`), and nothing reads it.
_TOP = {name.lower(): name for name in ENVELOPE if name != "etag"}

_NAMES = """
    action actionType addressPrefixes adminPublicKey adminUserName agentCount agentPoolProfiles agentVmSize
    aksNetworkingConfiguration allocationState allowPublicAccessWhenBehindVnet allowRoleAssignmentOnRG
    appInsightsEnabled applicationInsights applicationSharingPolicy assetId assignedUser authMode authType
    autoscaleEnabled autoScaler build capacity category clusterPurpose cmkKeyVault code codeConfiguration command
    componentId compute computeId computeInstanceAuthorizationType computeLocation computeName computeStartStop
    computeType condaFile condition connectivityEndpoints containerRegistry containerResourceLimits
    containerResourceRequirements containers contentSafety contentSafetyStatus count creationScript credentials
    credentialsType cron currentNodeCount customServices defaultCompute defaultInstanceType deploymentConfiguration
    deploymentConfigurationType deploymentId destination disableLocalAuth distribution docker earlyTermination
    egressPublicNetworkAccess enableAutoScaling enabled enableDataIsolation enableNodePublicIp enableOSPatching
    enableRootAccess enableSSO encryption endpointComputeType environmentId environmentType environmentVariables
    experimentName expiryTime expression fpga gpu groupIds hbiWorkspace hubResourceId id identity idleTimeBeforeShutdown
    image imageBuildCompute instanceCount instanceType instanceTypes intellectualPropertyPublisher ipAddress ipAllowlist
    ipRules isArchived isAttachedCompute isEnabled isLatestOsImageVersion isolatedNetwork isolationMode isSharedToAll
    jobDefinition jobs jobType keyIdentifier keyVault keyVaultArmId keyVaultProperties kvTags lastOperation limits
    limitSettings loadBalancerType location managedNetwork managedResourceGroup maxConcurrentTrials maxInstances
    maxNodeCount maxReplicas maxTotalTrials memory memoryInGB metadata minCount minInstances minNodeCount mirrorTraffic
    mode model modelId modelSettings monitorDefinition monitoringTarget networkAcls networkProfile
    nodeIdleTimeBeforeScaleDown numReplicas operationTime operationTrigger osImageMetadata osType outboundRules
    permissions personalComputeInstanceSettings powerState primaryUserAssignedIdentity principalId principalType
    privateEndpoint privateEndpointConnections privateLinkServiceConnectionState privileged properties provisioningState
    publicIp publicIpAddress publicNetworkAccess recurrence reference regionDetails remoteLoginPortPublicAccess requests
    requestSettings resourceId resources roleDefinitionId scaleSetPriority scaleSettings scaleType schedule schedules
    scope scriptData scripts scriptSource serverlessComputeCustomSubnet serverlessComputeNoPublicIP
    serverlessComputeSettings serviceProvisionedResourceGroup services serviceTag settings setupScripts sshPublicAccess
    sshSettings state status storageAccount subnet subnetId subnetIds subnetName systemDatastoresAuthMode target
    targetNodeCount task taskDetails tier timeout traffic trial triggerType type userAccountCredentials v1LegacyMode
    value virtualMachineImage virtualMachineSize vmPriority vmSize vnetConfiguration vnetName
"""
#: Those of other providers, as far as policies and workloads look at them.
_ELSEWHERE = """
    actions addressPrefix addressPrefixes agentPoolProfiles allOf amount appliedScopeProperties appliedScopes
    appliedScopeType approvalEndpoint assignableScopes assignmentType benefitStartTime blocking capacity category
    categoryGroup code computeLocation condition containers contentFilters count criteria criterionType dataActions days
    disableLocalAuth enableAutoScaling enabled endDate endDateTime endpoint enforcementMode environmentVariables
    eventHubAuthorizationRuleId eventHubName exemptionCategory expiresOn expiryDate expiryDateTime filter gpu groupIds
    hardwareProfile id impact impactedField instanceFlexibility ip ipAddress ipRules isEnabled lastUpdated level
    licenseType limits logFilters logs managementGroupId manualPrivateLinkServiceConnections maxCount maxPods memoryInGB
    metricName metrics minCount minNodeCount mode name networkAcls networkPlugin networkPluginMode networkProfile
    notActions notDataActions notifications notScopes operator originRoleAssignmentId osDisk osType overrides parameters
    permissions podSubnetID policyDefinitionId policyDefinitions powerState pricingTier principalId principalType
    privateDnsZoneConfigs privateDnsZoneId privateEndpoint privateEndpointConnections privateLinkServiceConnections
    privateLinkServiceConnectionState privateLinkServiceId properties provisioningState publicIp publicNetworkAccess
    raiPolicyName requests reservedResourceType resourceGroup resourceGroupId resourceId resources retentionPolicy
    roleDefinitionId roleName roleType scaleSetPriority scaleSettings scope scopes service serviceEndpointPolicies
    serviceEndpoints shortDescription signingKey startDate status storageAccountId storageProfile subnetId subnetIds
    subnetName subnets subscriptionId suppressionIds targetResourceType targetResourceUri threshold timePeriod type
    vmSize vnetConfiguration vnetName vnetSubnetID workspaceId
"""
_SPELLED: Mapping[str, str] = {lowered(name): name for name in _NAMES.split()}
_SPELLED_ELSEWHERE: Mapping[str, str] = {lowered(name): name for name in _ELSEWHERE.split()}
_NONE: Mapping[str, str] = {}
NO_SPELLINGS: Spellings = {}
REMOVE_ONE = "remove one of the two"
#: What names the resource, and what is the user's.
_UNCHANGED = ("/id", "/type", "/tags")
#: Members that contain names from the user.
_NAMED_BY_USERS = frozenset(
    {
        "environmentVariables",
        "inputs",
        "instanceTypes",
        "jobs",
        "kvTags",
        "metadata",
        "mirrorTraffic",
        "nodeSelector",
        "outboundRules",
        "outputs",
        "searchSpace",
        "services",
        "tags",
        "traffic",
        "userAssignedIdentities",
    }
)
#: The types of Machine Learning whose nested `properties` have names of ARM. Those of jobs and assets are a map of the
#: user (`ResourceBase.properties` of the OpenAPI).
_NESTED = frozenset({WORKSPACE_TYPE, f"{WORKSPACE_TYPE}/computes", f"{WORKSPACE_TYPE}/services"})
#: So many other names of members are remembered for each type, so that they are not folded again and again.
_MOST_NAMES = 1 << 12
_SPACES = frozenset(SPACE)
#: Members whose texts are not enumerations: a VM size with a space in it is unknown, and files, ids and names keep
#: their spaces.
_AS_WRITTEN = frozenset(
    {
        "agentVmSize",
        "condaFile",
        "defaultInstanceType",
        "id",
        "instanceType",
        "name",
        "scriptData",
        "value",
        "virtualMachineSize",
        "vmSize",
    }
)


def describe_duplicate(pointers: Sequence[str]) -> str:
    """Return the message about two members with one name, by their pointers."""
    one, other = pointers
    return f"the member is there twice, as `{one}` and `{other}`, and ARM reads names without case"


def is_known_name(name: str) -> bool:
    """Return whether a member has a name of ARM that policies or workloads look at, in any letters."""
    folded = fold_name(name)
    return folded in _SPELLED or folded in _SPELLED_ELSEWHERE or top_level_name(name) in ENVELOPE


def is_respelled(arm_type: str) -> bool:
    """Return whether the names are those of a type: one of Machine Learning."""
    return lowered(arm_type).startswith("microsoft.machinelearningservices/")


def has_own_map(arm_type: str) -> bool:
    """Return whether nested `properties` of a type have names that the user gives."""
    return is_respelled(arm_type) and lowered(arm_type) not in _NESTED


def respell_pointer(pointer: str, here: str = "") -> str:
    """Return a JSON Pointer into a value as `respelled` spells its parts.

    `here` is that of the value in the resource.
    """
    nested: object = None
    for key in reversed(keys_of(pointer)):
        nested = {key: nested}
    spelled, value = "", respell(nested, {}, "", here)
    while isinstance(value, dict):
        key, value = next(iter(value.items()))
        spelled += f"/{escaped(key)}"
    return spelled


class ArmObject(NamedTuple):
    """A resource, or a part of one, with the names that ARM has.

    Attributes:
        fields: by pointer into it, the pointer in what was given of what is spelled otherwise there.
        twice: the pointers of two members with one name, which ARM does not take; empty where there are none.
    """

    part: JsonObject
    fields: Mapping[str, str] = _NONE
    twice: tuple[str, ...] = ()


def as_arm_reads(part: JsonObject, arm_type: str, spellings: Spellings = NO_SPELLINGS) -> ArmObject:
    """Return a resource, or a patch of one, as ARM reads it: member names without case, words trimmed.

    Words are texts below names that are known; the service reads enumerations so (`System.Enum.Parse` of .NET).

    Args:
        part: the resource or the patch.
        arm_type: the type of the resource.
        spellings: names in addition to the known ones, as in `Bundle.spellings`.
    """
    kind = lowered(arm_type)
    names, fine = _names(is_respelled(kind), kind if kind in spellings else "", IdentityKey(spellings))
    if (part.keys() <= ENVELOPE or not any(_at_top(key, names) != key for key in part)) and _is_plain(
        part.values(), names, fine
    ):
        return ArmObject(part)
    own_map = has_own_map(kind)
    odd = dict(_find_odd_members(part, names, "", own_map=own_map))
    twice = min(((other, pointer) for pointer, other in odd.items() if other), default=())
    if twice or not odd:
        return ArmObject(part, twice=twice)
    fields: dict[str, str] = {}
    made: JsonObject = {}
    for key, inner in part.items():
        name = _at_top(key, names)
        pointer, place = f"/{escaped(name)}", f"/{escaped(key)}"
        if name != key:
            fields[pointer] = place
        if pointer not in _UNCHANGED:
            inner = _word(inner, name, names)
            inner = respell(inner, fields, place, pointer, names, own_map=own_map)
        made[name] = inner
    return ArmObject(made, fields)


@lru_cache(maxsize=256)
def _names(is_ours: bool, kind: str, spellings: IdentityKey[Spellings]) -> tuple[Mapping[str, str], set[str]]:
    """Return the known names of a lower-case type by lower-case name, and those to add to them."""
    known = _SPELLED if is_ours else _SPELLED_ELSEWHERE
    more = spellings.value
    names = {**more.get("", {}), **more.get(kind, {}), **known}
    return names, set(names.values())


def _spell(key: str, names: Mapping[str, str]) -> str:
    return names.get(fold_name(key), key)


def _at_top(key: str, names: Mapping[str, str]) -> str:
    name = top_level_name(key)
    return name if name in ENVELOPE else _spell(key, names)


def _is_plain(values: Iterable[object], names: Mapping[str, str], fine: set[str]) -> bool:
    """Return whether nothing in some values needs another spelling, which is so of most resources.

    The names of an object are compared in one step with those that are `fine`; new ones are added there.
    """
    waiting: list[Any] = [values]
    for holder in waiting:
        if type(holder) is dict:
            if not holder.keys() <= fine:
                for key in holder.keys() - fine:
                    if _spell(key, names) != key:
                        return False
                    if len(fine) < len(names) + _MOST_NAMES:
                        fine.add(key)
            holder = holder.values()  # what is below has no names
        for value in holder:
            kind = type(value)
            if kind is str:
                if value and (value[0] in _SPACES or value[-1] in _SPACES):
                    return False
            elif kind is dict or kind is list:
                waiting.append(value)
            elif kind not in _SCALARS:
                return False
    return True


_SCALARS = frozenset((int, bool, float, NoneType))


def _word(value: object, name: str, names: Mapping[str, str]) -> object:
    """Return the value of a member without white space around words, where the name is a known one."""
    if name in _AS_WRITTEN:
        return value
    if isinstance(value, str) and fold_name(name) in names:
        return trim(value)
    if isinstance(value, list) and fold_name(name) in names:
        return [trim(entry) if isinstance(entry, str) else entry for entry in value]
    return value


def _is_named_by_users(pointer: str, *, own_map: bool) -> bool:
    """Return whether what a pointer leads to has names that the user gives.

    `own_map`: nested `properties` have such names.
    """
    above, _, last = pointer.rpartition("/")
    return last in _NAMED_BY_USERS or (own_map and last == "properties" and above != "")


def _find_odd_members(
    value: object, names: Mapping[str, str], here: str, *, own_map: bool
) -> Iterator[tuple[str, str]]:
    """Yield the pointers of members that ARM reads under another name, with the member of that name if any."""
    if isinstance(value, list):
        for index, entry in enumerate(value):
            yield from _find_odd_members(entry, names, f"{here}/{index}", own_map=own_map)
    if not isinstance(value, dict) or here in _UNCHANGED:
        return
    by_users = _is_named_by_users(here, own_map=own_map)
    alike: dict[str, list[str]] = {}
    for key in value:
        alike.setdefault(key if by_users else _spell(key, names) if here else _at_top(key, names), []).append(key)
    for name, keys in alike.items():
        for key in keys:
            inner, pointer = value[key], f"{here}/{escaped(key)}"
            is_word = not by_users and pointer not in _UNCHANGED
            if name != key or (is_word and _word(inner, name, names) != inner):
                others = {*keys} - {key}  # which of them is chosen does not depend on the order of members
                other = name if name in others else min(others, default=None)
                yield pointer, "" if other is None else f"{here}/{escaped(other)}"
            yield from _find_odd_members(inner, names, pointer, own_map=own_map)


def respell(
    value: object,
    fields: dict[str, str],
    there: str,
    here: str = "",
    names: Mapping[str, str] = _SPELLED,
    *,
    own_map: bool = False,
) -> object:
    """Return the value with known property names as ARM spells them, and no white space around words.

    Args:
        value: the properties of a resource.
        fields: by pointer into the resource, the pointer in the document; those of other names are added.
        there: the JSON Pointer of the value in the document.
        here: its JSON Pointer in the resource.
        names: by themselves in lower case; those of Machine Learning unless given.
        own_map: as `has_own_map` gives it.
    """
    if isinstance(value, list):
        return [
            respell(entry, fields, f"{there}/{index}", f"{here}/{index}", names, own_map=own_map)
            for index, entry in enumerate(value)
        ]
    if not isinstance(value, dict):
        return value
    by_users = _is_named_by_users(here, own_map=own_map)
    made: dict[str, object] = {}
    for key, inner in value.items():
        name = key if by_users else _spell(key, names)
        name = key if name != key and name in value else name
        pointer, place = f"{here}/{escaped(name)}", f"{there}/{escaped(key)}"
        if name != key:
            fields.setdefault(pointer, place)
        if not by_users:
            inner = _word(inner, name, names)
        made[name] = respell(inner, fields, fields.get(pointer, place), pointer, names, own_map=own_map)
    return made


def fold_name(name: str) -> str:
    """Return the name of a member without case; ARM takes no letter beyond ASCII, such as U+0130, for one in it."""
    return name.lower() if name.isascii() else name


def top_level_name(key: str) -> str:
    """Return a key of a resource as ARM spells it; one that ARM does not have stays as it is written."""
    return key if key in ENVELOPE else _TOP.get(fold_name(key), key)
