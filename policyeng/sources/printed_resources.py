"""Resources as commands of the Azure CLI print them: with the members of `properties` next to `id`.

The core of the Azure CLI flattens resources, and resources in them, such as the connections of a private endpoint.
Source: the outputs of `az lock list`, `az monitor diagnostic-settings list`, `az network private-endpoint show`,
`az storage account show`, `az keyvault show`, `az acr show` and others in the recordings of github.com/Azure/azure-cli.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from policyeng.facts.arm_casing import ENVELOPE
from policyeng.models import JsonObject, lowered
from policyeng.parsing.json_pointer import escaped
from policyeng.sources.parsed import Placed

_CONNECTIONS = ("privateEndpointConnections",)
#: By lower-case type, the members with lists of resources that are flattened, too.
_PRINTED: Mapping[str, tuple[str, ...]] = {
    "microsoft.authorization/locks": (),
    "microsoft.authorization/policyassignments": (),
    "microsoft.authorization/policyexemptions": (),
    "microsoft.cognitiveservices/accounts": _CONNECTIONS,
    "microsoft.containerregistry/registries": _CONNECTIONS,
    "microsoft.insights/autoscalesettings": (),
    "microsoft.insights/components": (),
    "microsoft.insights/diagnosticsettings": (),
    "microsoft.insights/metricalerts": (),
    "microsoft.keyvault/vaults": _CONNECTIONS,
    "microsoft.network/privateendpoints": (
        "privateLinkServiceConnections",
        "manualPrivateLinkServiceConnections",
    ),
    "microsoft.network/privateendpoints/privatednszonegroups": ("privateDnsZoneConfigs",),
    "microsoft.network/virtualnetworks": ("subnets",),
    "microsoft.network/virtualnetworks/subnets": (),
    "microsoft.security/pricings": (),
    "microsoft.storage/storageaccounts": _CONNECTIONS,
}
#: By lower-case type, the members that commands print under another name.
_RENAMED: Mapping[str, Mapping[str, str]] = {
    "microsoft.storage/storageaccounts": {
        "enableHttpsTrafficOnly": "supportsHttpsTrafficOnly",
        "networkRuleSet": "networkAcls",
    }
}
_STATE = "provisioningState"
#: The members of a resource in another one that are not below its `properties`.
_OF_PARTS = frozenset({"etag", "id", "location", "name", "resourceGroup", "type"})


def is_printed_flat(arm_type: str) -> bool:
    """Check whether commands flatten the resources of a type."""
    return lowered(arm_type) in _PRINTED


def list_flattened(arm_type: str) -> tuple[str, ...]:
    """Return the JSON Pointers of lists of resources that are flattened within resources of a type."""
    return tuple(f"/properties/{key}" for key in _PRINTED.get(lowered(arm_type), ()))


def nest_printed(entry: JsonObject, pointer: str) -> Placed:
    """Return a resource in ARM's form; what has that form already is unchanged.

    Args:
        entry: of a type that commands flatten, with or without `properties`.
        pointer: its JSON Pointer in the document.
    """
    fields: dict[str, str] = {}
    kind = lowered(entry["type"])
    if isinstance(entry.get("properties"), dict):
        properties, base = entry["properties"], f"{pointer}/properties"
    else:
        renamed, properties, base = _RENAMED.get(kind, {}), {}, pointer
        for key, value in entry.items():
            if key not in ENVELOPE or key == _STATE:
                name = renamed.get(key, key)
                properties[name] = value
                fields[f"/properties/{escaped(name)}"] = f"{pointer}/{escaped(key)}"
    lists = {
        key: [_nest_part(part, f"/properties/{key}/{at}", f"{base}/{key}/{at}", fields) for at, part in enumerate(held)]
        for key in _PRINTED[kind]
        if isinstance(held := properties.get(key), list) and any(map(_is_flat, held))
    }
    if not fields:
        return Placed(entry, pointer)
    own = {key: value for key, value in entry.items() if key in ENVELOPE and key not in (_STATE, "properties")}
    return Placed({**own, "properties": {**properties, **lists}}, pointer, fields=fields)


def _is_flat(part: object) -> bool:
    return isinstance(part, dict) and "properties" not in part and not part.keys() <= _OF_PARTS


def _nest_part(part: object, here: str, there: str, fields: dict[str, str]) -> object:
    if not isinstance(part, dict) or not _is_flat(part):
        return part
    fields.update(_find_places(part, here, there))
    own = {key: value for key, value in part.items() if key in _OF_PARTS}
    return {**own, "properties": {key: value for key, value in part.items() if key not in _OF_PARTS}}


def _find_places(part: JsonObject, here: str, there: str) -> Iterator[tuple[str, str]]:
    yield here, there
    for key in part:
        if key not in _OF_PARTS:
            yield f"{here}/properties/{escaped(key)}", f"{there}/{escaped(key)}"
