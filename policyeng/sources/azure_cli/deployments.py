"""Deployments: `az ml online-deployment create --file` and `az ml batch-deployment create --file`.

Source: azure-ai-ml 1.35.2, `_schema/_deployment/**` and `entities/_deployment/*.py` (`_to_rest_object`).
"""

from __future__ import annotations

from collections.abc import Iterator

from policyeng.models import JsonObject, lowered
from policyeng.sources.arm_entry import types_of
from policyeng.sources.azure_cli.bringing import Made, known_keys, name_of, placed, schema_name
from policyeng.sources.azure_cli.kinds import PROVIDER, Kind, stated_id
from policyeng.sources.azure_cli.references import an_object, asset_in, compute_in, enabled, milliseconds
from policyeng.sources.azure_cli.values import prose, tags
from policyeng.sources.mapping import Field, boolean, chosen, duration, text, whole
from policyeng.sources.reading import Placed, Refusal, Surroundings

ONLINE = f"{PROVIDER}/workspaces/onlineEndpoints/deployments"
BATCH = f"{PROVIDER}/workspaces/batchEndpoints/deployments"

_SECONDS = duration("S")
_PROBE_KEYS = {
    "initial_delay": ("initialDelay", _SECONDS),
    "period": ("period", _SECONDS),
    "timeout": ("timeout", _SECONDS),
    "success_threshold": ("successThreshold", whole),
    "failure_threshold": ("failureThreshold", whole),
}
_PROBES = tuple(
    Field(f"/{probe}_probe/{key}", f"/properties/{probe}Probe/{name}", bring)
    for probe in ("liveness", "readiness")
    for key, (name, bring) in _PROBE_KEYS.items()
)
_REQUIREMENTS = "/properties/containerResourceRequirements"
_CONTAINERS = tuple(
    Field(f"/resources/{kind}/{key}", f"{_REQUIREMENTS}/containerResource{name}/{kept}", lambda value: value)
    for kind, name in (("requests", "Requests"), ("limits", "Limits"))
    for key, kept in (("cpu", "cpu"), ("memory", "memory"), ("nvidia.com~1gpu", "gpu"), ("gpu", "gpu"))
)
_SETTINGS = "/properties/deploymentConfiguration/settings"
#: What the containers ask for may hold more in ARM's older services, and a batch deployment is of one of two kinds.
_ELSEWHERE = (
    _REQUIREMENTS,
    "/properties/compute",
    "/properties/resources",
    "/properties/trial",
    "/properties/deploymentConfiguration",
)


def _common(workspace: str) -> tuple[Field, ...]:
    return (
        Field("/$schema", ""),
        Field("/name", ""),
        Field("/id", ""),
        Field("/resourceGroup", ""),
        Field("/endpoint_name", ""),
        Field("/type", ""),
        Field("/tags", "/tags", tags),
        Field("/location", "/location", text),
        Field("/description", "/properties/description", prose),
        Field("/properties", "/properties/properties", an_object),
        Field("/environment", "/properties/environmentId", asset_in(workspace, "environments")),
        Field("/environment_variables", "/properties/environmentVariables", prose),
        Field("/code_configuration/code", "/properties/codeConfiguration/codeId", asset_in(workspace, "codes")),
        Field("/code_configuration/scoring_script", "/properties/codeConfiguration/scoringScript", prose),
        Field("/code_path", ""),
        Field("/scoring_script", ""),
        Field("/provisioning_state", "/properties/provisioningState", text),
        Field("/creation_context", ""),
    )


def online_table(workspace: str = "") -> tuple[Field, ...]:
    """The rows of an online deployment; its node count is the capacity of its SKU."""
    return (
        *_common(workspace),
        Field("/model", "/properties/model", asset_in(workspace, "models")),
        Field("/model_mount_path", "/properties/modelMountPath", prose),
        Field("/instance_type", "/properties/instanceType", text),
        Field("/instance_count", "/sku/capacity", whole),
        Field("/egress_public_network_access", "/properties/egressPublicNetworkAccess", enabled),
        Field("/private_network_connection", "/properties/privateNetworkConnection", boolean),
        Field("/app_insights_enabled", "/properties/appInsightsEnabled", boolean),
        Field(
            "/scale_settings/type",
            "/properties/scaleSettings/scaleType",
            chosen({"default": "Default", "target_utilization": "TargetUtilization"}),
        ),
        Field("/scale_settings/min_instances", "/properties/scaleSettings/minInstances", whole),
        Field("/scale_settings/max_instances", "/properties/scaleSettings/maxInstances", whole),
        Field("/scale_settings/polling_interval", "/properties/scaleSettings/pollingInterval", _SECONDS),
        Field(
            "/scale_settings/target_utilization_percentage",
            "/properties/scaleSettings/targetUtilizationPercentage",
            whole,
        ),
        Field("/request_settings/request_timeout_ms", "/properties/requestSettings/requestTimeout", milliseconds),
        Field("/request_settings/max_queue_wait_ms", "/properties/requestSettings/maxQueueWait", milliseconds),
        Field(
            "/request_settings/max_concurrent_requests_per_instance",
            "/properties/requestSettings/maxConcurrentRequestsPerInstance",
            whole,
        ),
        *_PROBES,
        *_CONTAINERS,
        Field("/data_collector", ""),  # nothing of it is judged
        Field("/package_model", ""),
    )


def batch_table(workspace: str = "") -> tuple[Field, ...]:
    """The rows of a batch deployment of a model; those below `settings` go before the older ones at the top."""
    return (
        *_common(workspace),
        Field("/model", "/properties/model", lambda value: _by_id(asset_in(workspace, "models")(value))),
        Field("/compute", "/properties/compute", compute_in(workspace)),
        Field("/compute/target", "/properties/compute", compute_in(workspace)),
        Field("/resources/instance_count", "/properties/resources/instanceCount", whole),
        Field("/resources/instance_type", "/properties/resources/instanceType", text),
        Field("/resources/properties", "/properties/resources/properties", an_object),
        Field("/settings/instance_count", "/properties/resources/instanceCount", whole),
        Field("/settings/environment_variables", "/properties/environmentVariables", prose),
        *(
            Field(f"{place}/{key}", f"/properties/{target}", bring)
            for place in ("", "/settings")
            for key, target, bring in (
                ("mini_batch_size", "miniBatchSize", whole),
                ("max_concurrency_per_instance", "maxConcurrencyPerInstance", whole),
                ("error_threshold", "errorThreshold", whole),
                ("output_action", "outputAction", chosen({"append_row": "AppendRow", "summary_only": "SummaryOnly"})),
                ("output_file_name", "outputFileName", prose),
                ("logging_level", "loggingLevel", chosen({"info": "Info", "warning": "Warning", "debug": "Debug"})),
                ("retry_settings/max_retries", "retrySettings/maxRetries", whole),
                ("retry_settings/timeout", "retrySettings/timeout", _SECONDS),
            )
        ),
    )


def pipeline_table(workspace: str = "") -> tuple[Field, ...]:
    """The rows of a batch deployment of a pipeline component; its settings are those of the pipelines that it runs."""
    component = "/properties/deploymentConfiguration/componentId"
    return (
        *_common(workspace),
        *(
            row
            for place in ("/job_definition", "")
            for row in (
                Field(f"{place}/component", component, lambda value: _by_id(asset_in(workspace, "components")(value))),
                Field(f"{place}/settings/default_compute", f"{_SETTINGS}/default_compute", compute_in(workspace)),
                Field(f"{place}/settings/default_datastore", f"{_SETTINGS}/default_datastore", text),
                Field(f"{place}/settings/continue_on_step_failure", f"{_SETTINGS}/continue_on_step_failure", boolean),
                Field(f"{place}/settings/force_rerun", f"{_SETTINGS}/force_rerun", boolean),
            )
        ),
        Field("/resources", ""),  # the CLI does not send it
    )


def _online(document: JsonObject, pointer: str, around: Surroundings) -> Iterator[Placed | Refusal]:
    """The CLI sends the SKU `Default`, and no insights where the file asks for none (`online_deployment.py`)."""
    defaults: JsonObject = {"/properties/endpointComputeType": _compute_type(document)}
    if not document.get("id"):
        defaults |= {"/sku/name": "Default", "/properties/appInsightsEnabled": False}
    yield placed(document, pointer, around, ONLINE, online_table(around.workspace), _made(document, defaults))


def _batch(document: JsonObject, pointer: str, around: Surroundings) -> Iterator[Placed | Refusal]:
    if _is_pipeline(document):
        defaults = {"/properties/deploymentConfiguration/deploymentConfigurationType": "PipelineComponent"}
        table = pipeline_table(around.workspace)
    else:
        defaults, table = {}, batch_table(around.workspace)
    yield placed(document, pointer, around, BATCH, table, _made(document, defaults))


def _made(document: JsonObject, defaults: JsonObject) -> Made:
    parents = (name_of(document.get("endpoint_name")).replace("/", "~"),)
    kind = document.get("type")
    if kind is not None and not name_of(kind):
        unreadable = dict.fromkeys(defaults, "`type` stands for a value; fill it in")
        return Made({}, unreadable=unreadable, parents=parents, elsewhere=_ELSEWHERE)
    return Made(defaults, parents=parents, elsewhere=_ELSEWHERE)


def _compute_type(document: JsonObject) -> str:
    """`Kubernetes` as `type` or the schema says; the CLI takes what says nothing for managed."""
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


def _is_online(document: JsonObject) -> bool:
    return _is_deployment(document) and not _is_batch(document)


def _is_batch(document: JsonObject) -> bool:
    """Batch deployments run on a compute, which online ones do not name."""
    if types := types_of(stated_id(document)):
        return _is_deployment(document) and lowered(BATCH) in types
    marks = {"compute", "component", "job_definition", "mini_batch_size", "settings", "retry_settings", "output_action"}
    return _is_deployment(document) and ("instance_type" not in document) and not marks.isdisjoint(document)


def _is_deployment(document: JsonObject) -> bool:
    """`endpoint_name` beside anything that says how it runs; no other kind of document has it."""
    said = {"model", "environment", "instance_type", "instance_count", "compute", "component", "code_configuration"}
    more = {"type", "resources", "job_definition", "scale_settings"}
    return isinstance(document.get("endpoint_name"), str) and not (said | more).isdisjoint(document)


KINDS: tuple[Kind, ...] = (
    Kind(
        ONLINE,
        ("managedonlinedeployment", "kubernetesonlinedeployment", "onlinedeployment"),
        _is_online,
        _online,
        known=known_keys(
            online_table(),
            within=(
                "/code_configuration",
                "/scale_settings",
                "/request_settings",
                "/liveness_probe",
                "/readiness_probe",
            ),
        ),
    ),
    Kind(
        BATCH,
        ("batchdeployment", "modelbatchdeployment", "pipelinecomponentbatchdeployment"),
        _is_batch,
        _batch,
        known=known_keys(batch_table(), pipeline_table(), within=("/code_configuration", "/retry_settings")),
    ),
)
