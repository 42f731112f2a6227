"""Endpoints, deployments and jobs as files of the Azure CLI, one each, from the public reference of its YAML."""

from __future__ import annotations

import re
from collections.abc import Sequence

import yaml

from policyeng.models import JsonObject
from tests.writers.azure_cli import WORKSPACE, identity
from tests.writers.azure_cli_values import minutes, plain

_TYPE = "Microsoft.MachineLearningServices/workspaces/"
_HOST = "https://azuremlschemas.azureedge.net/latest/"
#: The types that the writer can write.
CARRIES = {
    _TYPE + "onlineEndpoints",
    _TYPE + "batchEndpoints",
    _TYPE + "onlineEndpoints/deployments",
    _TYPE + "batchEndpoints/deployments",
    _TYPE + "jobs",
}
#: What no file states, or states of assets that no policy reads.
_LOST = (
    "/id",
    "/identity/principalId",
    "/identity/tenantId",
    "/kind",
    "/properties/codeConfiguration",
    "/properties/codeId",
    "/properties/limits/jobLimitsType",
    "/properties/model/referenceType",
    "/properties/objective",
    "/properties/requestSettings/maxConcurrentRequestsPerInstance",
    "/properties/samplingAlgorithm",
    "/properties/searchSpace",
    "/properties/settings/continue_on_step_failure",
    "/properties/status",
    "/properties/taskDetails/limitSettings/enableEarlyTermination",
    "/properties/taskDetails/logVerbosity",
    "/properties/taskDetails/primaryMetric",
    "/properties/taskDetails/targetColumnName",
    "/properties/taskDetails/trainingData",
    "/properties/taskDetails/trainingSettings",
    "/properties/trial/codeId",
    "/sku/name",
)
#: The kinds of online endpoints, in lower case, and whether one of that kind names a compute.
_ON_KUBERNETES = {"managed": False, "k8s": True, "kubernetes": True}
_SERVED_BY = ("Managed", "Kubernetes")
_UNITS = {"D": 86400, "H": 3600, "M": 60, "S": 1}


def expressible(resource: JsonObject) -> bool:
    """Whether it lies in the one workspace, and the writer knows its type and all that it states of its work."""
    if resource["type"] not in CARRIES or not resource["id"].lower().startswith(f"{WORKSPACE}/"):
        return False
    properties = resource["properties"]
    homes = (properties.get("computeId"), properties.get("compute"))
    if any(home and home.startswith("/") and not home.lower().startswith(f"{WORKSPACE}/") for home in homes):
        return False  # a name cannot express it
    if "deploymentConfiguration" in properties or properties.get("endpointComputeType") not in (None, *_SERVED_BY):
        return False
    if "fpga" in properties.get("containerResourceRequirements", {}):
        return False
    if resource["type"].endswith("/onlineEndpoints"):
        if not resource.get("identity", {}).get("type"):
            return False  # the CLI sends a system-assigned identity
        if "kind" in resource and _ON_KUBERNETES[resource["kind"].lower()] != ("compute" in properties):
            return False  # the kind of a file follows from its compute
    if resource["type"].endswith(("/onlineEndpoints", "/batchEndpoints")) and "authMode" not in properties:
        return False  # the CLI sends `Key` or `AADToken`
    if resource["type"].endswith("/onlineEndpoints/deployments") and "appInsightsEnabled" not in properties:
        return False  # the CLI sends `False`
    kind = properties.get("jobType")
    # The CLI always sends the steps of a pipeline.
    return "jobs" in properties if kind == "Pipeline" else kind in (None, "Command", "Sweep", "AutoML")


def loses(resource: JsonObject) -> Sequence[str]:
    """What no file states; the CLI sends the identity of nothing but online endpoints."""
    return _LOST if resource["type"].endswith("/onlineEndpoints") else (*_LOST, "/identity")


def write(resources: list[JsonObject]) -> dict[str, bytes]:
    """One file for each resource; those that cannot be expressed are left out."""
    files = {}
    for number, resource in enumerate(filter(expressible, resources)):
        name = resource["type"].removeprefix(_TYPE)
        document = _WRITERS[name](resource, resource["properties"])
        content = yaml.safe_dump(plain(_there(document)), sort_keys=False)
        files[f"{number}-{name.replace('/', '-')}.yml"] = content.encode()
    return files


def seconds(duration: str | None) -> float | None:
    """The length of an ISO 8601 duration such as `PT1H30M`.

    Raises:
        ValueError: it is another text.
    """
    if duration is None:
        return None
    if not re.fullmatch(r"P(?=.)(\d+D)?(T(?=\d)(\d+H)?(\d+M)?([\d.]+S)?)?", duration, re.ASCII):
        raise ValueError(f"no duration: {duration}")
    return sum(float(amount) * _UNITS[unit] for amount, unit in re.findall(r"(?<![\d.])([\d.]++)([DHMS])", duration))


def _whole_seconds(duration: str | None, per_second: int = 1) -> int | None:
    """The length in whole seconds, or parts of them.

    Raises:
        ValueError: it is no duration, or none of whole ones.
    """
    length = seconds(duration)
    if length is not None and not (length * per_second).is_integer():
        raise ValueError(f"no whole number: {duration}")
    return None if length is None else int(length * per_second)


def _snake(word: str | None) -> str | None:
    return None if word is None else re.sub(r"(?<=[a-z])(?=[A-Z])", "_", word).lower()


def _there(value: object) -> object:
    """Without nulls and the objects that are empty then."""
    if isinstance(value, dict):
        kept = {key: _there(inner) for key, inner in value.items()}
        return {key: inner for key, inner in kept.items() if inner is not None and inner != {}}
    return value


def _compute(named: str | None) -> str | None:
    """A compute by its name.

    Raises:
        ValueError: it is none of the one workspace.
    """
    if named is None:
        return None
    above, slash, name = named.rpartition("/")
    if slash and above.lower() != f"{WORKSPACE}/computes":
        raise ValueError(f"no compute of the workspace: {named}")
    return f"azureml:{name.removeprefix('azureml:')}"


def _asset(arm_id: str | None) -> str | None:
    """An asset of the workspace by name and version, or one of a registry.

    Raises:
        ValueError: it is another text.
    """
    if arm_id is None or (arm_id.startswith("azureml://registries/") and "/versions/" in arm_id):
        return arm_id
    above, name, kind, version = arm_id.rsplit("/", 3)
    if kind != "versions" or not above.lower().startswith(f"{WORKSPACE}/"):
        raise ValueError(f"no asset of the workspace: {arm_id}")
    return f"azureml:{name}:{version}"


def _endpoint(resource: JsonObject, properties: JsonObject) -> JsonObject:
    mode = {"Key": "key", "AMLToken": "aml_token", "AADToken": "aad_token"}
    online = "onlineEndpoints" in resource["type"]
    kind = (
        "kubernetesOnlineEndpoint"
        if "compute" in properties
        else "managedOnlineEndpoint"
        if online
        else "batchEndpoint"
    )
    return {
        "$schema": f"{_HOST}{kind}.schema.json",
        "name": resource["name"],
        "location": resource.get("location"),
        "tags": resource.get("tags"),
        "auth_mode": mode[properties["authMode"]] if "authMode" in properties else None,
        "public_network_access": _snake(properties.get("publicNetworkAccess")),
        "traffic": properties.get("traffic"),
        "mirror_traffic": properties.get("mirrorTraffic"),
        "compute": _compute(properties.get("compute")),
        "identity": identity(resource, as_map=False) if online else None,
        "defaults": {"deployment_name": properties.get("defaults", {}).get("deploymentName")},
    }


def _online(resource: JsonObject, properties: JsonObject) -> JsonObject:
    kind = properties["endpointComputeType"].lower()
    scale, requested = properties.get("scaleSettings", {}), properties.get("containerResourceRequirements", {})
    probe = properties.get("livenessProbe", {})
    return {
        "$schema": f"{_HOST}{kind}OnlineDeployment.schema.json",
        "type": kind,
        "name": resource["name"],
        "endpoint_name": resource["id"].split("/")[-3],
        "location": resource.get("location"),
        "tags": resource.get("tags"),
        "instance_type": properties.get("instanceType"),
        "instance_count": resource.get("sku", {}).get("capacity"),
        "model": _asset(properties.get("model")),
        "environment": _asset(properties.get("environmentId")),
        "egress_public_network_access": _snake(properties.get("egressPublicNetworkAccess")),
        "app_insights_enabled": properties.get("appInsightsEnabled"),
        "scale_settings": {"type": _snake(scale.get("scaleType")), "max_instances": scale.get("maxInstances")},
        "request_settings": {
            "request_timeout_ms": _whole_seconds(properties.get("requestSettings", {}).get("requestTimeout"), 1000)
        },
        "liveness_probe": {
            "initial_delay": _whole_seconds(probe.get("initialDelay")),
            "period": _whole_seconds(probe.get("period")),
            "timeout": _whole_seconds(probe.get("timeout")),
            "failure_threshold": probe.get("failureThreshold"),
            "success_threshold": probe.get("successThreshold"),
        },
        "resources": {
            "requests": requested.get("containerResourceRequests"),
            "limits": {
                {"gpu": "nvidia.com/gpu"}.get(key, key): amount
                for key, amount in requested.get("containerResourceLimits", {}).items()
            },
        },
    }


def _batch(resource: JsonObject, properties: JsonObject) -> JsonObject:
    retry, resources = properties.get("retrySettings", {}), properties.get("resources", {})
    return {
        "$schema": f"{_HOST}modelBatchDeployment.schema.json",
        "type": "model",
        "name": resource["name"],
        "endpoint_name": resource["id"].split("/")[-3],
        "location": resource.get("location"),
        "tags": resource.get("tags"),
        "compute": _compute(properties.get("compute")),
        "model": _asset(properties.get("model", {}).get("assetId")),
        "environment": _asset(properties.get("environmentId")),
        "resources": {"instance_count": resources.get("instanceCount"), "instance_type": resources.get("instanceType")},
        "settings": {
            "mini_batch_size": properties.get("miniBatchSize"),
            "max_concurrency_per_instance": properties.get("maxConcurrencyPerInstance"),
            "error_threshold": properties.get("errorThreshold"),
            "output_action": _snake(properties.get("outputAction")),
            "output_file_name": properties.get("outputFileName"),
            "logging_level": _snake(properties.get("loggingLevel")),
            "retry_settings": {"max_retries": retry.get("maxRetries"), "timeout": _whole_seconds(retry.get("timeout"))},
        },
    }


def _job(resource: JsonObject, properties: JsonObject) -> JsonObject:
    kind = properties["jobType"].lower()
    resources, limits = properties.get("resources", {}), properties.get("limits", {})
    document: JsonObject = {
        "$schema": f"{_HOST}{kind}Job.schema.json",
        "type": kind,
        "name": resource["name"],
        "tags": properties.get("tags"),
        "display_name": properties.get("displayName"),
        "experiment_name": properties.get("experimentName"),
        "compute": _compute(properties.get("computeId")),
        "identity": {"type": _snake(properties.get("identity", {}).get("identityType"))},
        "resources": {"instance_count": resources.get("instanceCount"), "instance_type": resources.get("instanceType")},
        "limits": {
            "timeout": _whole_seconds(limits.get("timeout")),
            "trial_timeout": _whole_seconds(limits.get("trialTimeout")),
            "max_concurrent_trials": limits.get("maxConcurrentTrials"),
            "max_total_trials": limits.get("maxTotalTrials"),
        },
        "command": properties.get("command"),
        "environment": _asset(properties.get("environmentId")),
        "distribution": _distribution(properties.get("distribution", {})),
    }
    if kind == "pipeline":
        of_all = properties.get("settings", {})
        default = of_all.get("default_compute" if "default_compute" in of_all else "defaultCompute")
        steps = {key: _step(step) for key, step in properties.get("jobs", {}).items()}
        return {**document, "settings": {"default_compute": _compute(default)}, "jobs": steps, "resources": None}
    if kind == "sweep":
        trial = properties.get("trial", {})
        count = trial.get("resources", {}).get("instanceCount")
        document["trial"] = {
            "command": trial.get("command"),
            "environment": _asset(trial.get("environmentId")),
            "resources": {"instance_count": count},
        }
        document["early_termination"] = _early_termination(properties.get("earlyTermination", {}))
    if kind == "automl":
        details = properties.get("taskDetails", {})
        document["task"] = _snake(details.get("taskType"))
        limits = details.get("limitSettings", {})
        document["limits"] = {
            "max_trials": limits.get("maxTrials"),
            "max_concurrent_trials": limits.get("maxConcurrentTrials"),
            "timeout_minutes": minutes(limits.get("timeout")),
            "trial_timeout_minutes": minutes(limits.get("trialTimeout")),
        }
    return document


def _early_termination(policy: JsonObject) -> JsonObject:
    return {
        "type": _snake(policy.get("policyType")),
        "evaluation_interval": policy.get("evaluationInterval"),
        "delay_evaluation": policy.get("delayEvaluation"),
        "slack_factor": policy.get("slackFactor"),
        "slack_amount": policy.get("slackAmount"),
        "truncation_percentage": policy.get("truncationPercentage"),
    }


def _distribution(distribution: JsonObject) -> JsonObject:
    kind = distribution.get("distributionType")
    return {
        "type": None if kind is None else kind.lower(),
        "process_count_per_instance": distribution.get("processCountPerInstance"),
    }


def _step(step: JsonObject) -> JsonObject:
    component = _asset(step.get("componentId"))
    return {
        "type": step["type"],
        "component": component,
        "compute": _compute(step.get("computeId")),
        "resources": step.get("resources"),
        "limits": {str(_snake(key)): limit for key, limit in step.get("limits", {}).items()},
    }


_WRITERS = {
    "onlineEndpoints": _endpoint,
    "batchEndpoints": _endpoint,
    "onlineEndpoints/deployments": _online,
    "batchEndpoints/deployments": _batch,
    "jobs": _job,
}
