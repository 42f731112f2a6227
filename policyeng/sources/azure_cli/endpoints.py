"""Endpoints: `az ml online-endpoint create --file` and `az ml batch-endpoint create --file`.

Source: azure-ai-ml 1.35.2, `_schema/_endpoint/**` and `entities/_endpoint/{online,batch}_endpoint.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

from policyeng.facts.ids import types_of
from policyeng.models import JsonObject, lowered
from policyeng.sources.azure_cli.base import PROVIDER, CliDocumentKind, find_stated_id
from policyeng.sources.azure_cli.converter import CliDefaults, list_known_keys, place_resource
from policyeng.sources.azure_cli.references import an_object, by_id, compute_in, convert_identity_type, enabled
from policyeng.sources.azure_cli.value_converters import prose, tags
from policyeng.sources.field_mapping import FieldMapping, convert_word, text
from policyeng.sources.parsed import Placed, Refusal, Surroundings

ONLINE = f"{PROVIDER}/workspaces/onlineEndpoints"
BATCH = f"{PROVIDER}/workspaces/batchEndpoints"

_COMMON = (
    FieldMapping("/$schema", ""),
    FieldMapping("/name", ""),
    FieldMapping("/id", ""),
    FieldMapping("/resourceGroup", ""),
    FieldMapping("/tags", "/tags", tags),
    FieldMapping("/location", "/location", text),
    FieldMapping("/description", "/properties/description", prose),
    FieldMapping("/properties", "/properties/properties", an_object),
    FieldMapping(
        "/auth_mode",
        "/properties/authMode",
        convert_word({"key": "Key", "aml_token": "AMLToken", "aad_token": "AADToken"}),
    ),
    FieldMapping("/provisioning_state", "/properties/provisioningState", text),
    FieldMapping("/scoring_uri", "/properties/scoringUri", text),
    FieldMapping("/openapi_uri", "/properties/swaggerUri", text),
    FieldMapping("/creation_context", ""),
)


def online_table(workspace: str = "") -> tuple[FieldMapping, ...]:
    """Return the rows of an online endpoint in a workspace."""
    return (
        *_COMMON,
        FieldMapping("/kind", "/kind", text),
        FieldMapping("/identity/type", "/identity/type", convert_identity_type),
        FieldMapping("/identity/user_assigned_identities", "/identity/userAssignedIdentities", by_id),
        FieldMapping("/identity/principal_id", "/identity/principalId", text),
        FieldMapping("/identity/tenant_id", "/identity/tenantId", text),
        FieldMapping("/type", ""),
        FieldMapping("/public_network_access", "/properties/publicNetworkAccess", enabled),
        FieldMapping("/traffic", "/properties/traffic", an_object),
        FieldMapping("/mirror_traffic", "/properties/mirrorTraffic", an_object),
        FieldMapping("/compute", "/properties/compute", compute_in(workspace)),
    )


BATCH_TABLE = (
    *_COMMON,
    FieldMapping("/type", ""),
    FieldMapping("/identity", ""),  # the schema has it, but the CLI neither sends nor prints it
    FieldMapping("/defaults/deployment_name", "/properties/defaults/deploymentName", text),
)


def _online(document: JsonObject, pointer: str, around: Surroundings) -> Iterator[Placed | Refusal]:
    """Yield an online endpoint with the CLI's defaults for `auth_mode` and `identity` (`online_endpoint.py`)."""
    defaults = {"/properties/authMode": "Key", "/identity": {"type": "SystemAssigned"}}
    yield place_resource(
        document, pointer, around, ONLINE, online_table(around.workspace), _unless_deployed(document, defaults)
    )


def _batch(document: JsonObject, pointer: str, around: Surroundings) -> Iterator[Placed | Refusal]:
    """Yield a batch endpoint with the CLI's default for `auth_mode` (`batch_endpoint.py`)."""
    made = _unless_deployed(document, {"/properties/authMode": "AADToken"})
    yield place_resource(document, pointer, around, BATCH, BATCH_TABLE, made)


def _unless_deployed(document: JsonObject, defaults: JsonObject) -> CliDefaults:
    """Return the defaults of a file; a command's output has none, because it shows the deployed resource."""
    return CliDefaults() if document.get("id") else CliDefaults(defaults)


def _is_online(document: JsonObject) -> bool:
    return _is_endpoint(document) and not _is_batch(document)


def _is_batch(document: JsonObject) -> bool:
    return _is_endpoint(document) and ("defaults" in document or lowered(BATCH) in types_of(find_stated_id(document)))


def _is_endpoint(document: JsonObject) -> bool:
    """Check for `auth_mode`, which no other kind of document has."""
    return isinstance(document.get("auth_mode"), str) and "name" in document and "apiVersion" not in document


KINDS: tuple[CliDocumentKind, ...] = (
    CliDocumentKind(
        ONLINE,
        ("managedonlineendpoint", "kubernetesonlineendpoint", "onlineendpoint"),
        _is_online,
        _online,
        known=list_known_keys(online_table(), within=("/identity",)),
    ),
    CliDocumentKind(
        BATCH,
        ("batchendpoint",),
        _is_batch,
        _batch,
        known=list_known_keys(BATCH_TABLE, within=("/defaults",)),
    ),
)
