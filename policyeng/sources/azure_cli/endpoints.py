"""Endpoints: `az ml online-endpoint create --file` and `az ml batch-endpoint create --file`.

Source: azure-ai-ml 1.35.2, `_schema/_endpoint/**` and `entities/_endpoint/{online,batch}_endpoint.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

from policyeng.models import JsonObject, lowered
from policyeng.sources.arm_entry import types_of
from policyeng.sources.azure_cli.bringing import Made, known_keys, placed
from policyeng.sources.azure_cli.kinds import PROVIDER, Kind, stated_id
from policyeng.sources.azure_cli.references import an_object, by_id, compute_in, enabled, identity_type
from policyeng.sources.azure_cli.values import prose, tags
from policyeng.sources.mapping import Field, chosen, text
from policyeng.sources.reading import Placed, Refusal, Surroundings

ONLINE = f"{PROVIDER}/workspaces/onlineEndpoints"
BATCH = f"{PROVIDER}/workspaces/batchEndpoints"

_COMMON = (
    Field("/$schema", ""),
    Field("/name", ""),
    Field("/id", ""),
    Field("/resourceGroup", ""),
    Field("/tags", "/tags", tags),
    Field("/location", "/location", text),
    Field("/description", "/properties/description", prose),
    Field("/properties", "/properties/properties", an_object),
    Field(
        "/auth_mode", "/properties/authMode", chosen({"key": "Key", "aml_token": "AMLToken", "aad_token": "AADToken"})
    ),
    Field("/identity/type", "/identity/type", identity_type),
    Field("/identity/user_assigned_identities", "/identity/userAssignedIdentities", by_id),
    Field("/identity/principal_id", "/identity/principalId", text),
    Field("/identity/tenant_id", "/identity/tenantId", text),
    Field("/provisioning_state", "/properties/provisioningState", text),
    Field("/scoring_uri", "/properties/scoringUri", text),
    Field("/openapi_uri", "/properties/swaggerUri", text),
    Field("/creation_context", ""),
)


def online_table(workspace: str = "") -> tuple[Field, ...]:
    """The rows of an online endpoint in a workspace."""
    return (
        *_COMMON,
        Field("/kind", "/kind", text),
        Field("/type", ""),
        Field("/public_network_access", "/properties/publicNetworkAccess", enabled),
        Field("/traffic", "/properties/traffic", an_object),
        Field("/mirror_traffic", "/properties/mirrorTraffic", an_object),
        Field("/compute", "/properties/compute", compute_in(workspace)),
    )


BATCH_TABLE = (
    *_COMMON,
    Field("/type", ""),
    Field("/defaults/deployment_name", "/properties/defaults/deploymentName", text),
)


def _online(document: JsonObject, pointer: str, around: Surroundings) -> Iterator[Placed | Refusal]:
    """Without `auth_mode` the CLI sends `Key`, without `identity` a system-assigned one (`online_endpoint.py`)."""
    defaults = {"/properties/authMode": "Key", "/identity": {"type": "SystemAssigned"}}
    yield placed(
        document, pointer, around, ONLINE, online_table(around.workspace), _unless_deployed(document, defaults)
    )


def _batch(document: JsonObject, pointer: str, around: Surroundings) -> Iterator[Placed | Refusal]:
    """Without `auth_mode` the CLI sends `AADToken` (`batch_endpoint.py`)."""
    made = _unless_deployed(document, {"/properties/authMode": "AADToken"})
    yield placed(document, pointer, around, BATCH, BATCH_TABLE, made)


def _unless_deployed(document: JsonObject, defaults: JsonObject) -> Made:
    """The defaults of a file; what a command prints is what is there."""
    return Made() if document.get("id") else Made(defaults)


def _is_online(document: JsonObject) -> bool:
    return _is_endpoint(document) and not _is_batch(document)


def _is_batch(document: JsonObject) -> bool:
    return _is_endpoint(document) and ("defaults" in document or lowered(BATCH) in types_of(stated_id(document)))


def _is_endpoint(document: JsonObject) -> bool:
    """`auth_mode` is a key of endpoints and of no other kind of document."""
    return isinstance(document.get("auth_mode"), str) and "name" in document and "apiVersion" not in document


KINDS: tuple[Kind, ...] = (
    Kind(
        ONLINE,
        ("managedonlineendpoint", "kubernetesonlineendpoint", "onlineendpoint"),
        _is_online,
        _online,
        known=known_keys(online_table(), within=("/identity",)),
    ),
    Kind(
        BATCH, ("batchendpoint",), _is_batch, _batch, known=known_keys(BATCH_TABLE, within=("/identity", "/defaults"))
    ),
)
