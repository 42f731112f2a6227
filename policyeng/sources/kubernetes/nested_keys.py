"""The keys that the objects inside of a `spec` have, so that nothing misspelled or misshapen in it is passed over.

Paths are those of the tables; `*` stands for any entry of a list. Objects that are not named here, such as tags, have
keys of the user's own, or nothing of them is judged. Source: as of `tables`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from policyeng.models import JsonObject
from policyeng.sources.mapping import Field
from policyeng.sources.reading import spelled
from policyeng.strict.json_pointer import escaped, value_at

_SCRIPT = ("scriptArguments", "scriptData", "scriptSource", "timeout")
_ACCOUNT = ("password", "privateKeyData", "publicKeyData", "username")
#: By path below the place of a table, the keys of an object that its row takes whole, also as the operator calls them.
_TAKEN_WHOLE: Mapping[str, tuple[str, ...]] = {
    "/administratorAccount": _ACCOUNT,
    "/aksNetworkingConfiguration": ("dnsServiceIP", "dockerBridgeCidr", "serviceCidr", "subnetId", "subnetReference"),
    "/autoPauseProperties": ("delayInMinutes", "enabled"),
    "/autoScaleProperties": ("enabled", "maxNodeCount", "minNodeCount"),
    "/encryption/identity": ("userAssignedIdentity", "userAssignedIdentityReference"),
    "/encryption/keyVaultProperties": ("identityClientId", "keyIdentifier", "keyVaultArmId", "keyVaultArmReference"),
    "/featureStoreSettings": ("computeRuntime", "offlineStoreConnectionName", "onlineStoreConnectionName"),
    "/featureStoreSettings/computeRuntime": ("sparkRuntimeVersion",),
    "/identity": ("type", "userAssignedIdentities"),
    "/managedNetwork": ("isolationMode", "outboundRules", "status"),
    "/managedNetwork/status": ("sparkReady", "status"),
    "/managedResourceGroup": ("resourceId", "resourceReference"),
    "/personalComputeInstanceSettings": ("assignedUser",),
    "/personalComputeInstanceSettings/assignedUser": ("objectId", "tenantId"),
    "/schedules": ("computeStartStop",),
    "/schedules/computeStartStop/*": ("action", "cron", "recurrence", "schedule", "status", "triggerType"),
    "/schedules/computeStartStop/*/cron": ("expression", "startTime", "timeZone"),
    "/schedules/computeStartStop/*/recurrence": ("frequency", "interval", "schedule", "startTime", "timeZone"),
    "/schedules/computeStartStop/*/recurrence/schedule": ("hours", "minutes", "monthDays", "weekDays"),
    "/serverlessComputeSettings": (
        "serverlessComputeCustomSubnet",
        "serverlessComputeCustomSubnetReference",
        "serverlessComputeNoPublicIP",
    ),
    "/serviceManagedResourcesSettings": ("cosmosDb",),
    "/serviceManagedResourcesSettings/cosmosDb": ("collectionsThroughput",),
    "/setupScripts": ("scripts",),
    "/setupScripts/scripts": ("creationScript", "startupScript"),
    "/setupScripts/scripts/creationScript": _SCRIPT,
    "/setupScripts/scripts/startupScript": _SCRIPT,
    "/sku": ("capacity", "family", "name", "size", "tier"),
    "/sshSettings": ("adminPublicKey", "sshPublicAccess"),
    "/sslConfiguration": ("cert", "cname", "key", "leafDomainLabel", "overwriteExistingDomain", "status"),
    "/workspaceHubConfig": ("additionalWorkspaceStorageAccounts", "defaultWorkspaceResourceGroup"),
}
#: Keys beside those that rows lead through: secrets, of which nothing is read, and references as the operator has them.
_BESIDE_ROWS: Mapping[str, tuple[str, ...]] = {
    "/subnet": ("reference",),
    "/userAccountCredentials": ("adminUserPassword", "adminUserSshPublicKey"),
    "/virtualMachineImage": ("reference",),
}


def stray_keys(rows: Iterable[Field], part: JsonObject) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The unknown keys below the first level of the part of a `spec` that some rows bring over.

    Returns:
        the JSON Pointer of each in that part, and the keys that there are around it.
    """
    sources = [row.source for row in rows]
    led: dict[str, tuple[str, ...]] = {}
    for source in sources:
        above, _, last = source.rpartition("/")
        if above:
            led[above] = (*led.get(above, _BESIDE_ROWS.get(above, ())), last)
    known = {**_TAKEN_WHOLE, **led}
    for first in dict.fromkeys(source.split("/")[1] for source in sources):
        yield from _strays(part.get(first), f"/{first}", f"/{first}", known)


def misshapen(rows: Iterable[Field], part: JsonObject) -> dict[str, str]:
    """By path, why what stands where rows look for further keys is no object."""
    above = dict.fromkeys(row.source.rpartition("/")[0] for row in rows)
    stated = {path: value_at(part, path) for path in above if path}
    return {
        path: f"`{path[1:]}` is {spelled(value)}; it should be an object"
        for path, value in stated.items()
        if value is not None and not isinstance(value, dict)
    }


def _strays(
    value: object, path: str, pointer: str, known: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Those at and below a value; the tables end the descent."""
    if isinstance(value, list) and f"{path}/*" in known:
        for index, entry in enumerate(value):
            yield from _strays(entry, f"{path}/*", f"{pointer}/{index}", known)
    elif isinstance(value, dict) and path in known:
        for key, inner in value.items():
            below = f"{pointer}/{escaped(key)}"
            if key in known[path]:
                yield from _strays(inner, f"{path}/{key}", below, known)
            elif not key.startswith("$"):  # of the operator's own storage
                yield below, known[path]
