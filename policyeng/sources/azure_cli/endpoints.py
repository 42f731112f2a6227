"""Endpoints and their deployments: the files and the output of `az ml online-endpoint` and `az ml batch-endpoint`."""

from __future__ import annotations

from collections.abc import Iterator

from policyeng.facts.ids import types_of
from policyeng.models import JsonObject, Problem, lowered
from policyeng.sources.azure_cli.assets import environments_in
from policyeng.sources.azure_cli.converter import (
    PROVIDER,
    CliDefaults,
    CliDocumentKind,
    an_object,
    asset_in,
    by_id,
    compute_in,
    convert_identity_type,
    enabled,
    find_stated_id,
    list_known_keys,
    milliseconds,
    name_of,
    place_resource,
    prose,
    schema_name,
    tags,
)
from policyeng.sources.field_mapping import FieldMapping, boolean, convert_integer, convert_word, duration, text
from policyeng.sources.parsed import Placed, Surroundings

ONLINE = f"{PROVIDER}/workspaces/onlineEndpoints"
BATCH = f"{PROVIDER}/workspaces/batchEndpoints"
SERVERLESS = f"{PROVIDER}/workspaces/serverlessEndpoints"

_ENVELOPE = (
    FieldMapping("/$schema", ""),
    FieldMapping("/name", ""),
    FieldMapping("/id", ""),
    FieldMapping("/resourceGroup", ""),
    FieldMapping("/tags", "/tags", tags),
    FieldMapping("/location", "/location", text),
)
_COMMON = (
    *_ENVELOPE,
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


SERVERLESS_TABLE = (
    *_ENVELOPE,
    FieldMapping("/description", ""),  # the CLI sends neither
    FieldMapping("/properties", ""),
    FieldMapping(
        "/auth_mode", "/properties/authMode", convert_word({"key": "Key", "aad": "AAD", "key_and_aad": "KeyAndAAD"})
    ),
    FieldMapping("/model_id", "/properties/modelSettings/modelId", text),
    FieldMapping("/provisioning_state", "/properties/provisioningState", text),
    FieldMapping("/scoring_uri", "/properties/inferenceEndpoint/uri", text),
    FieldMapping("/headers", ""),
    FieldMapping("/system_data", ""),
)


BATCH_TABLE = (
    *_COMMON,
    FieldMapping("/type", ""),
    FieldMapping("/identity", ""),  # the schema has it, but the CLI neither sends nor prints it
    FieldMapping("/defaults/deployment_name", "/properties/defaults/deploymentName", text),
)


def _online(document: JsonObject, pointer: str, around: Surroundings) -> Iterator[Placed | Problem]:
    """Yield an online endpoint with the CLI's defaults for `auth_mode` and `identity` (`online_endpoint.py`)."""
    defaults = {"/properties/authMode": "Key", "/identity": {"type": "SystemAssigned"}}
    yield place_resource(
        document, pointer, around, ONLINE, online_table(around.workspace), _unless_deployed(document, defaults)
    )


def _batch(document: JsonObject, pointer: str, around: Surroundings) -> Iterator[Placed | Problem]:
    """Yield a batch endpoint with the CLI's default for `auth_mode` (`batch_endpoint.py`)."""
    made = _unless_deployed(document, {"/properties/authMode": "AADToken"})
    yield place_resource(document, pointer, around, BATCH, BATCH_TABLE, made)


_AUTH_MODE_NOT_SENT = (
    "the Azure CLI (azure-ai-ml 1.35.2) does not send `auth_mode` of a serverless endpoint; check the deployed endpoint"
)


def _serverless(document: JsonObject, pointer: str, around: Surroundings) -> Iterator[Placed | Problem]:
    """Yield a serverless endpoint, whose mode is `key` unless a file states another one, which the CLI does not send.

    Source: `ServerlessEndpoint` of `_autogen_entities/models` in azure-ai-ml 1.35.2. A marketplace subscription has the
    same keys, and is for such an endpoint.
    """
    made = CliDefaults()
    if not document.get("id"):
        stated = document.get("auth_mode")
        is_key = stated is None or (isinstance(stated, str) and lowered(stated) == "key")
        made = CliDefaults(
            {"/sku/name": "Consumption", **({"/properties/authMode": "Key"} if is_key else {})},
            unresolved={} if is_key else {"/auth_mode": _AUTH_MODE_NOT_SENT},
        )
    yield place_resource(document, pointer, around, SERVERLESS, SERVERLESS_TABLE, made)


def _is_serverless(document: JsonObject) -> bool:
    """Check for a model, as the documentation of the CLI has it; deployments and jobs have no `model_id`."""
    others = {"apiVersion", "command", "endpoint_name", "environment", "type"}
    return isinstance(document.get("model_id"), str) and "name" in document and others.isdisjoint(document)


def _unless_deployed(document: JsonObject, defaults: JsonObject) -> CliDefaults:
    """Return the defaults of a file; a command's output has none, because it shows the deployed resource."""
    return CliDefaults() if document.get("id") else CliDefaults(defaults)


def _is_online(document: JsonObject) -> bool:
    return _is_endpoint(document) and not _is_batch(document) and not _is_serverless(document)


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
    CliDocumentKind(
        SERVERLESS,
        ("serverlessendpoint", "marketplacesubscription"),
        _is_serverless,
        _serverless,
        known=list_known_keys(SERVERLESS_TABLE),
    ),
)


ONLINE_DEPLOYMENT = f"{PROVIDER}/workspaces/onlineEndpoints/deployments"
BATCH_DEPLOYMENT = f"{PROVIDER}/workspaces/batchEndpoints/deployments"

_SECONDS = duration("S")
_PROBE_KEYS = {
    "initial_delay": ("initialDelay", _SECONDS),
    "period": ("period", _SECONDS),
    "timeout": ("timeout", _SECONDS),
    "success_threshold": ("successThreshold", convert_integer),
    "failure_threshold": ("failureThreshold", convert_integer),
}
_PROBES = tuple(
    FieldMapping(f"/{probe}_probe/{key}", f"/properties/{probe}Probe/{name}", bring)
    for probe in ("liveness", "readiness")
    for key, (name, bring) in _PROBE_KEYS.items()
)
_REQUIREMENTS = "/properties/containerResourceRequirements"
_CONTAINERS = tuple(
    FieldMapping(f"/resources/{kind}/{key}", f"{_REQUIREMENTS}/containerResource{name}/{kept}", lambda value: value)
    for kind, name in (("requests", "Requests"), ("limits", "Limits"))
    for key, kept in (("cpu", "cpu"), ("memory", "memory"), ("nvidia.com~1gpu", "gpu"), ("gpu", "gpu"))
)
_SETTINGS = "/properties/deploymentConfiguration/settings"
#: Older ARM services allow more in the container requests, and a batch deployment is one of two kinds.
_ELSEWHERE = (
    _REQUIREMENTS,
    "/properties/compute",
    "/properties/resources",
    "/properties/trial",
    "/properties/deploymentConfiguration",
)


def _common(workspace: str) -> tuple[FieldMapping, ...]:
    return (
        FieldMapping("/$schema", ""),
        FieldMapping("/name", ""),
        FieldMapping("/id", ""),
        FieldMapping("/resourceGroup", ""),
        FieldMapping("/endpoint_name", ""),
        FieldMapping("/type", ""),
        FieldMapping("/tags", "/tags", tags),
        FieldMapping("/location", "/location", text),
        FieldMapping("/description", "/properties/description", prose),
        FieldMapping("/properties", "/properties/properties", an_object),
        FieldMapping("/environment", "/properties/environmentId", asset_in(workspace, "environments")),
        FieldMapping("/environment_variables", "/properties/environmentVariables", prose),
        FieldMapping("/code_configuration/code", "/properties/codeConfiguration/codeId", asset_in(workspace, "codes")),
        FieldMapping("/code_configuration/scoring_script", "/properties/codeConfiguration/scoringScript", prose),
        FieldMapping("/code_path", ""),
        FieldMapping("/scoring_script", ""),
        FieldMapping("/provisioning_state", "/properties/provisioningState", text),
        FieldMapping("/creation_context", ""),
    )


def online_deployment_table(workspace: str = "") -> tuple[FieldMapping, ...]:
    """Return the rows of an online deployment; its node count is the capacity of its SKU."""
    return (
        *_common(workspace),
        FieldMapping("/model", "/properties/model", asset_in(workspace, "models")),
        FieldMapping("/model_mount_path", "/properties/modelMountPath", prose),
        FieldMapping("/instance_type", "/properties/instanceType", text),
        FieldMapping("/instance_count", "/sku/capacity", convert_integer),
        FieldMapping("/egress_public_network_access", "/properties/egressPublicNetworkAccess", enabled),
        FieldMapping("/private_network_connection", "/properties/privateNetworkConnection", boolean),
        FieldMapping("/app_insights_enabled", "/properties/appInsightsEnabled", boolean),
        FieldMapping(
            "/scale_settings/type",
            "/properties/scaleSettings/scaleType",
            convert_word({"default": "Default", "target_utilization": "TargetUtilization"}),
        ),
        FieldMapping("/scale_settings/min_instances", "/properties/scaleSettings/minInstances", convert_integer),
        FieldMapping("/scale_settings/max_instances", "/properties/scaleSettings/maxInstances", convert_integer),
        FieldMapping("/scale_settings/polling_interval", "/properties/scaleSettings/pollingInterval", _SECONDS),
        FieldMapping(
            "/scale_settings/target_utilization_percentage",
            "/properties/scaleSettings/targetUtilizationPercentage",
            convert_integer,
        ),
        FieldMapping(
            "/request_settings/request_timeout_ms", "/properties/requestSettings/requestTimeout", milliseconds
        ),
        FieldMapping("/request_settings/max_queue_wait_ms", "/properties/requestSettings/maxQueueWait", milliseconds),
        FieldMapping(
            "/request_settings/max_concurrent_requests_per_instance",
            "/properties/requestSettings/maxConcurrentRequestsPerInstance",
            convert_integer,
        ),
        *_PROBES,
        *_CONTAINERS,
        FieldMapping("/data_collector", ""),  # no policy checks it
        FieldMapping("/package_model", ""),
    )


def batch_deployment_table(workspace: str = "") -> tuple[FieldMapping, ...]:
    """Return the rows of a batch deployment of a model; those below `settings` override the older ones at the top."""
    return (
        *_common(workspace),
        FieldMapping("/model", "/properties/model", lambda value: _by_id(asset_in(workspace, "models")(value))),
        FieldMapping("/compute", "/properties/compute", compute_in(workspace)),
        FieldMapping("/compute/target", "/properties/compute", compute_in(workspace)),
        FieldMapping("/resources/instance_count", "/properties/resources/instanceCount", convert_integer),
        FieldMapping("/resources/instance_type", "/properties/resources/instanceType", text),
        FieldMapping("/resources/properties", "/properties/resources/properties", an_object),
        FieldMapping("/settings/instance_count", "/properties/resources/instanceCount", convert_integer),
        FieldMapping("/settings/environment_variables", "/properties/environmentVariables", prose),
        *(
            FieldMapping(f"{place}/{key}", f"/properties/{target}", bring)
            for place in ("", "/settings")
            for key, target, bring in (
                ("mini_batch_size", "miniBatchSize", convert_integer),
                ("max_concurrency_per_instance", "maxConcurrencyPerInstance", convert_integer),
                ("error_threshold", "errorThreshold", convert_integer),
                (
                    "output_action",
                    "outputAction",
                    convert_word({"append_row": "AppendRow", "summary_only": "SummaryOnly"}),
                ),
                ("output_file_name", "outputFileName", prose),
                (
                    "logging_level",
                    "loggingLevel",
                    convert_word({"info": "Info", "warning": "Warning", "debug": "Debug"}),
                ),
                ("retry_settings/max_retries", "retrySettings/maxRetries", convert_integer),
                ("retry_settings/timeout", "retrySettings/timeout", _SECONDS),
            )
        ),
    )


def pipeline_table(workspace: str = "") -> tuple[FieldMapping, ...]:
    """Return the rows of a batch deployment of a pipeline component; its settings apply to the pipelines it runs."""
    component = "/properties/deploymentConfiguration/componentId"
    return (
        *_common(workspace),
        *(
            row
            for place in ("/job_definition", "")
            for row in (
                FieldMapping(
                    f"{place}/component", component, lambda value: _by_id(asset_in(workspace, "components")(value))
                ),
                FieldMapping(
                    f"{place}/settings/default_compute", f"{_SETTINGS}/default_compute", compute_in(workspace)
                ),
                FieldMapping(f"{place}/settings/default_datastore", f"{_SETTINGS}/default_datastore", text),
                FieldMapping(
                    f"{place}/settings/continue_on_step_failure", f"{_SETTINGS}/continue_on_step_failure", boolean
                ),
                FieldMapping(f"{place}/settings/force_rerun", f"{_SETTINGS}/force_rerun", boolean),
            )
        ),
        FieldMapping("/resources", ""),  # the CLI does not send it
    )


def _online_deployment(document: JsonObject, pointer: str, around: Surroundings) -> Iterator[Placed | Problem]:
    """Yield an online deployment; the CLI sends the SKU `Default`, and insights only on request.

    Source: `online_deployment.py`.
    """
    defaults: JsonObject = {"/properties/endpointComputeType": _compute_type(document)}
    if not document.get("id"):
        defaults |= {"/sku/name": "Default", "/properties/appInsightsEnabled": False}
    yield place_resource(
        document,
        pointer,
        around,
        ONLINE_DEPLOYMENT,
        online_deployment_table(around.workspace),
        _defaults_of(document, defaults),
    )
    yield from environments_in(document, pointer, around)


def _batch_deployment(document: JsonObject, pointer: str, around: Surroundings) -> Iterator[Placed | Problem]:
    if _is_pipeline(document):
        defaults = {"/properties/deploymentConfiguration/deploymentConfigurationType": "PipelineComponent"}
        table = pipeline_table(around.workspace)
    else:
        defaults, table = {}, batch_deployment_table(around.workspace)
    yield place_resource(document, pointer, around, BATCH_DEPLOYMENT, table, _defaults_of(document, defaults))
    yield from environments_in(document, pointer, around)


def _defaults_of(document: JsonObject, defaults: JsonObject) -> CliDefaults:
    parents = (name_of(document.get("endpoint_name")).replace("/", "~"),)
    kind = document.get("type")
    if kind is not None and not name_of(kind):
        unreadable = dict.fromkeys(defaults, "`type` is a placeholder; replace it with a value")
        return CliDefaults({}, unreadable=unreadable, parents=parents, elsewhere=_ELSEWHERE)
    return CliDefaults(defaults, parents=parents, elsewhere=_ELSEWHERE)


def _compute_type(document: JsonObject) -> str:
    """Return `Kubernetes` if `type` or the schema does; the CLI defaults to `Managed`."""
    words = f"{document.get('type') or schema_name(document)}"
    return "Kubernetes" if lowered(words).startswith("kubernetes") else "Managed"


def _by_id(asset: object) -> JsonObject:
    return {"referenceType": "Id", "assetId": asset}


def _is_pipeline(document: JsonObject) -> bool:
    return (
        lowered(str(document.get("type") or "")) == "pipeline"
        or schema_name(document) == "pipelinecomponentbatchdeployment"
        or ("component" in document and "model" not in document)
    )


def _is_online_deployment(document: JsonObject) -> bool:
    return _is_deployment(document) and not _is_batch_deployment(document)


def _is_batch_deployment(document: JsonObject) -> bool:
    """Check for a batch deployment, which names a compute; online deployments do not."""
    if types := types_of(find_stated_id(document)):
        return _is_deployment(document) and lowered(BATCH_DEPLOYMENT) in types
    marks = {"compute", "component", "job_definition", "mini_batch_size", "settings", "retry_settings", "output_action"}
    return _is_deployment(document) and ("instance_type" not in document) and not marks.isdisjoint(document)


def _is_deployment(document: JsonObject) -> bool:
    """Check for `endpoint_name` together with a key of deployments; no other kind of document has both."""
    common = {"model", "environment", "instance_type", "instance_count", "compute", "component", "code_configuration"}
    more = {"type", "resources", "job_definition", "scale_settings"}
    return isinstance(document.get("endpoint_name"), str) and not (common | more).isdisjoint(document)


DEPLOYMENT_KINDS: tuple[CliDocumentKind, ...] = (
    CliDocumentKind(
        ONLINE_DEPLOYMENT,
        ("managedonlinedeployment", "kubernetesonlinedeployment", "onlinedeployment"),
        _is_online_deployment,
        _online_deployment,
        known=list_known_keys(
            online_deployment_table(),
            within=(
                "/code_configuration",
                "/scale_settings",
                "/request_settings",
                "/liveness_probe",
                "/readiness_probe",
            ),
        ),
    ),
    CliDocumentKind(
        BATCH_DEPLOYMENT,
        ("batchdeployment", "modelbatchdeployment", "pipelinecomponentbatchdeployment"),
        _is_batch_deployment,
        _batch_deployment,
        known=list_known_keys(
            batch_deployment_table(), pipeline_table(), within=("/code_configuration", "/retry_settings")
        ),
    ),
)
