"""Property names as ARM spells them: it reads them without case, so templates write `VMSize` for `vmSize`.

Source: the OpenAPI of Microsoft.MachineLearningServices 2025-12-01, as far as policies look at it. Other providers
spell some of these in another way, such as AKS `enableNodePublicIP`.
"""

from __future__ import annotations

from collections.abc import Mapping

from policyeng.models import lowered
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
_SPELLED: Mapping[str, str] = {lowered(name): name for name in _NAMES.split()}
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


def respelled(value: object, fields: dict[str, str], there: str, here: str = "") -> object:
    """The value with known property names as ARM spells them.

    Args:
        value: the properties of a resource of Machine Learning.
        fields: by pointer into the resource, the pointer in the document; those of other names are added.
        there: the JSON Pointer of the value in the document.
        here: its JSON Pointer in the resource.
    """
    if isinstance(value, list):
        return [respelled(entry, fields, f"{there}/{index}", f"{here}/{index}") for index, entry in enumerate(value)]
    if not isinstance(value, dict):
        return value
    by_users = here.rsplit("/", maxsplit=1)[-1] in _NAMED_BY_USERS
    made: dict[str, object] = {}
    for key, inner in value.items():
        name = key if by_users else _SPELLED.get(lowered(key), key)
        name = key if name != key and name in value else name
        pointer, place = f"{here}/{escaped(name)}", f"{there}/{escaped(key)}"
        if name != key:
            fields.setdefault(pointer, place)
        made[name] = respelled(inner, fields, fields.get(pointer, place), pointer)
    return made
