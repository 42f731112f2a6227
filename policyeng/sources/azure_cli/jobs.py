"""Jobs of every type: `az ml job create --file`. The module `pipelines` reads the steps of pipelines.

Source: azure-ai-ml 1.35.2, `_schema/job/**`, `_schema/automl/**` and `entities/_job/**` (`_to_rest_object`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from policyeng.frozen import replace
from policyeng.models import JsonObject, lowered
from policyeng.parsing.json_pointer import value_at
from policyeng.sources.azure_cli.assets import is_component
from policyeng.sources.azure_cli.base import PROVIDER, CliDocumentKind
from policyeng.sources.azure_cli.converter import CliDefaults, is_open, list_known_keys, place_resource, schema_name
from policyeng.sources.azure_cli.pipelines import PipelineSteps, steps_of
from policyeng.sources.azure_cli.references import an_object, asset_in, compute_in
from policyeng.sources.azure_cli.value_converters import convert_number, prose, tags
from policyeng.sources.field_mapping import Bring, FieldMapping, convert_integer, convert_word, duration, text
from policyeng.sources.parsed import Placed, Refusal, Surroundings

TYPE = f"{PROVIDER}/workspaces/jobs"

#: ARM's type of a job by the CLI's; import jobs are sent as commands, distillation as fine-tuning.
JOB_TYPES: dict[object, str] = {
    "automl": "AutoML",
    "command": "Command",
    "data_transfer": "DataTransfer",
    "distillation": "FineTuning",
    "finetuning": "FineTuning",
    "import": "Command",
    "parallel": "Parallel",
    "pipeline": "Pipeline",
    "spark": "Spark",
    "sweep": "Sweep",
}
_SECONDS, _MINUTES = duration("S"), duration("M")
_IGNORED = ("$schema", "name", "id", "resourceGroup", "inputs", "outputs", "services", "creation_context", "log_files")
_LIMITS: Mapping[str, tuple[str, Bring]] = {
    "max_concurrent_trials": ("maxConcurrentTrials", convert_integer),
    "max_total_trials": ("maxTotalTrials", convert_integer),
    "timeout": ("timeout", _SECONDS),
    "trial_timeout": ("trialTimeout", _SECONDS),
}
_AUTOML_LIMITS: Mapping[str, tuple[str, Bring]] = {
    "max_concurrent_trials": ("maxConcurrentTrials", convert_integer),
    "max_trials": ("maxTrials", convert_integer),
    "max_nodes": ("maxNodes", convert_integer),
    "max_cores_per_trial": ("maxCoresPerTrial", convert_integer),
    "timeout_minutes": ("timeout", _MINUTES),
    "trial_timeout_minutes": ("trialTimeout", _MINUTES),
}
_EARLY_TERMINATION: Mapping[str, tuple[str, Bring]] = {
    "type": (
        "policyType",
        convert_word(
            {
                "bandit": "Bandit",
                "median_stopping": "MedianStopping",
                "truncation_selection": "TruncationSelection",
            }
        ),
    ),
    "evaluation_interval": ("evaluationInterval", convert_integer),
    "delay_evaluation": ("delayEvaluation", convert_integer),
    "slack_factor": ("slackFactor", convert_number),
    "slack_amount": ("slackAmount", convert_number),
    "truncation_percentage": ("truncationPercentage", convert_integer),
}


#: Fields of some job types only; in the other types they are known to be absent.
_ELSEWHERE = (
    "/tags",
    "/properties/jobs",
    "/properties/settings",
    "/properties/distribution",
    "/properties/trial",
    "/properties/limits",
    "/properties/earlyTermination",
    "/properties/taskDetails",
)


def _common(workspace: str) -> tuple[FieldMapping, ...]:
    return (
        *(FieldMapping(f"/{key}", "") for key in _IGNORED),
        FieldMapping("/type", "/properties/jobType", convert_word(JOB_TYPES)),
        FieldMapping("/display_name", "/properties/displayName", prose),
        FieldMapping("/description", "/properties/description", prose),
        FieldMapping("/experiment_name", "/properties/experimentName", prose),
        FieldMapping("/status", "/properties/status", text),
        FieldMapping("/tags", "/properties/tags", tags),
        FieldMapping("/properties", "/properties/properties", prose),
        *_compute("", "/properties", workspace),
        FieldMapping(
            "/identity/type",
            "/properties/identity/identityType",
            convert_word(
                {
                    "aml_token": "AMLToken",
                    "managed": "Managed",
                    "managed_identity": "Managed",
                    "user_identity": "UserIdentity",
                }
            ),
        ),
        FieldMapping("/identity/client_id", "/properties/identity/clientId", text),
        FieldMapping("/identity/object_id", "/properties/identity/objectId", text),
        FieldMapping("/identity/msi_resource_id", "/properties/identity/resourceId", text),
        FieldMapping("/queue_settings/job_tier", "/properties/queueSettings/jobTier", text),
        FieldMapping("/parent_job_name", "/properties/parentJobName", text),
        *_resources("", "/properties"),
    )


def _compute(source: str, target: str, workspace: str) -> tuple[FieldMapping, ...]:
    """Return the rows of the compute; early previews of the CLI took an object of `target` and `instance_count`."""
    return (
        FieldMapping(f"{source}/compute", f"{target}/computeId", compute_in(workspace)),
        FieldMapping(f"{source}/compute/target", f"{target}/computeId", compute_in(workspace)),
        FieldMapping(f"{source}/compute/instance_count", f"{target}/resources/instanceCount", convert_integer),
    )


def _resources(source: str, target: str) -> tuple[FieldMapping, ...]:
    return (
        FieldMapping(f"{source}/resources/instance_count", f"{target}/resources/instanceCount", convert_integer),
        FieldMapping(f"{source}/resources/max_instance_count", f"{target}/resources/maxInstanceCount", convert_integer),
        FieldMapping(f"{source}/resources/instance_type", f"{target}/resources/instanceType", text),
        FieldMapping(f"{source}/resources/runtime_version", f"{target}/resources/runtimeVersion", prose),
        FieldMapping(f"{source}/resources/locations", f"{target}/resources/locations"),
        FieldMapping(f"{source}/resources/shm_size", f"{target}/resources/shmSize", text),
        FieldMapping(f"{source}/resources/docker_args", f"{target}/resources/dockerArgs", prose),
        FieldMapping(f"{source}/resources/properties", f"{target}/resources/properties", prose),
    )


def _run(workspace: str, source: str, target: str) -> tuple[FieldMapping, ...]:
    """Return the rows of the command of a job or of a sweep's trial."""
    distribution = f"{target}/distribution"
    kinds: dict[object, object] = {"mpi": "Mpi", "pytorch": "PyTorch", "tensorflow": "TensorFlow", "ray": "Ray"}
    return (
        FieldMapping(f"{source}/command", f"{target}/command", prose),
        FieldMapping(f"{source}/code", f"{target}/codeId", asset_in(workspace, "codes")),
        FieldMapping(f"{source}/environment", f"{target}/environmentId", asset_in(workspace, "environments")),
        FieldMapping(f"{source}/environment_variables", f"{target}/environmentVariables", prose),
        FieldMapping(f"{source}/distribution/type", f"{distribution}/distributionType", convert_word(kinds)),
        FieldMapping(
            f"{source}/distribution/process_count_per_instance",
            f"{distribution}/processCountPerInstance",
            convert_integer,
        ),
        FieldMapping(
            f"{source}/distribution/parameter_server_count", f"{distribution}/parameterServerCount", convert_integer
        ),
        FieldMapping(f"{source}/distribution/worker_count", f"{distribution}/workerCount", convert_integer),
    )


def _limits(kinds: Mapping[str, tuple[str, Bring]], target: str) -> tuple[FieldMapping, ...]:
    return tuple(FieldMapping(f"/limits/{key}", f"{target}/{name}", bring) for key, (name, bring) in kinds.items())


def table_of(job_type: str, workspace: str = "") -> tuple[FieldMapping, ...]:
    """Return the rows of a job type of the CLI, or of any other job that runs a command."""
    common = _common(workspace)
    if job_type == "pipeline":
        settings = "/properties/settings"
        return (
            *common,
            FieldMapping("/settings", settings, an_object),
            FieldMapping("/settings/default_compute", f"{settings}/default_compute", compute_in(workspace)),
            FieldMapping("/component", ""),  # read with the steps
            FieldMapping("/jobs", ""),
        )
    if job_type == "sweep":
        trial = "/properties/trial"
        unchecked = ("search_space", "sampling_algorithm")
        return (
            *_compute("/trial", "/properties", workspace),
            *common,
            *(FieldMapping(f"/{key}", "") for key in unchecked),
            FieldMapping("/objective/goal", "/properties/objective/goal", text),
            FieldMapping("/objective/primary_metric", "/properties/objective/primaryMetric", prose),
            *_run(workspace, "/trial", trial),
            *_resources("/trial", trial),
            *_limits(_LIMITS, "/properties/limits"),
            *(
                FieldMapping(f"/early_termination/{key}", f"/properties/earlyTermination/{name}", bring)
                for key, (name, bring) in _EARLY_TERMINATION.items()
            ),
        )
    if job_type == "automl":
        details = "/properties/taskDetails"
        return (
            *common,
            *(FieldMapping(f"/{key}", "") for key in _AUTOML_KEYS),
            FieldMapping("/environment_variables", "/properties/environmentVariables", prose),
            FieldMapping("/task", f"{details}/taskType", _pascal),
            FieldMapping("/primary_metric", f"{details}/primaryMetric", text),
            *_limits(_AUTOML_LIMITS, f"{details}/limitSettings"),
        )
    more = tuple(FieldMapping(f"/{key}", "") for key in _OTHER_KEYS) if job_type != "command" else ()
    return (*common, *more, *_run(workspace, "", "/properties"), *_limits(_LIMITS, "/properties/limits"))


_AUTOML_KEYS = (
    "target_column_name", "training_data", "validation_data", "test_data", "validation_data_size", "test_data_size",
    "featurization", "training", "training_parameters", "sweep", "search_space", "forecasting", "log_verbosity",
    "n_cross_validations", "cv_split_column_names", "weight_column_name", "positive_label", "environment_id",
)  # fmt: skip
_OTHER_KEYS = (
    "args", "archives", "conf", "entry", "files", "jars", "py_files", "driver_cores", "driver_memory",
    "executor_cores", "executor_memory", "executor_instances", "dynamic_allocation_enabled",
    "dynamic_allocation_min_executors", "dynamic_allocation_max_executors",
    "source", "output", "task", "input_data", "mini_batch_size", "mini_batch_error_threshold", "error_threshold",
    "max_concurrency_per_instance", "retry_settings", "logging_level", "partition_keys", "data_copy_mode",
    "model", "model_provider", "training_data", "validation_data", "hyperparameters", "data_generation_type",
    "data_generation_task_type", "student_model", "teacher_model_endpoint_connection", "teacher_model_settings",
    "prompt_settings",
)  # fmt: skip


def _pascal(value: object) -> object:
    """Convert the name of an AutoML task to ARM's: `image_classification` to `ImageClassification`; NER stays."""
    words = lowered(str(text(value))).split("_")
    return "".join("NER" if word == "ner" else word.capitalize() for word in words)


def job_type_of(document: JsonObject) -> str:
    """Return the job type from `type` or the schema, by default `command`; empty if it is a placeholder."""
    stated = document.get("type")
    if is_open(stated):
        return ""
    word = stated if isinstance(stated, str) else schema_name(document).removesuffix("job")
    folded = lowered(word).strip().replace("-", "_").removesuffix("_job").replace("fine_tuning", "finetuning")
    return "automl" if folded.startswith("automl") else folded if folded in JOB_TYPES else "command"


def convert_job(document: JsonObject, pointer: str, around: Surroundings) -> Iterator[Placed | Refusal]:
    """Yield the job of a document; a pipeline includes its steps and those in component files."""
    yield job_at(document, pointer, around)


def job_at(document: JsonObject, pointer: str, around: Surroundings) -> Placed:
    """Return the job that an object at a JSON Pointer describes."""
    kind = job_type_of(document)
    steps = steps_of(document, around) if kind == "pipeline" or (not kind and "jobs" in document) else PipelineSteps()
    default = {"/properties/jobType": JOB_TYPES[kind]} if kind else {}
    if kind in ("command", "sweep") and document.get("limits"):
        default["/properties/limits/jobLimitsType"] = JOB_TYPES[kind]  # `JobLimits._to_rest_object`
    made = CliDefaults(defaults=default, unreadable=steps.unreadable, elsewhere=_ELSEWHERE)
    # A compute that is a placeholder is a name, and does not affect the number of nodes.
    rows = table_of(kind, around.workspace)
    table = tuple(row for row in rows if "/compute/" not in row.source or value_at(document, row.source) is not None)
    done = place_resource(document, pointer, around, TYPE, table, made)
    properties = {**done.resource.get("properties", {}), **steps.properties}
    fields = {**done.fields, **{target: pointer + source for target, source in steps.fields.items()}}
    return done._replace(resource={**done.resource, "properties": properties}, fields=fields)


def derive_context(around: Surroundings, name: str, folder: PurePosixPath) -> Surroundings:
    """Return the surroundings of a job inside another document, or in a file in `folder`, with its own name."""
    return replace(around, file=name, beside=lambda path: around.beside(str(folder / path)))


def _matches(document: JsonObject) -> bool:
    """Check for a job without `$schema`: a type with its required keys, or a command with an environment."""
    if {"apiVersion", "kind", "endpoint_name", "auth_mode", "on", "stages", "pool"} & document.keys():
        return False
    if is_component(document):
        return False
    kind = document.get("type")
    if not isinstance(kind, str):
        return kind is None and _is_command(document)
    needed = _NEEDED.get(lowered(kind).strip().replace("-", "_").removesuffix("_job"))
    return needed is not None and any(
        all(isinstance(document.get(key), kinds) for key, kinds in choice.items()) for choice in needed
    )


def _is_command(document: JsonObject) -> bool:
    """Check for a command, an Azure ML environment and one more key that only jobs have."""
    environment = document.get("environment")
    known = isinstance(environment, str) and lowered(environment).startswith("azureml:")
    known = known or (
        isinstance(environment, dict) and not {"image", "conda_file", "build", "path"}.isdisjoint(environment)
    )
    more = {"compute", "code", "experiment_name", "distribution", "resources", "display_name"}
    return isinstance(document.get("command"), str) and known and not more.isdisjoint(document)


_NEEDED: dict[str, tuple[dict[str, type | tuple[type, ...]], ...]] = {
    "automl": ({"task": str, "training_data": dict},),
    "command": ({"command": str, "environment": (str, dict)}, {"command": str, "compute": str}),
    "data_transfer": ({"task": str, "compute": str},),
    "distillation": ({"student_model": (str, dict)},),
    "fine_tuning": ({"training_data": (str, dict), "model": (str, dict)},),
    "finetuning": ({"training_data": (str, dict), "model": (str, dict)},),
    "import": ({"source": dict, "output": dict},),
    "parallel": ({"task": dict, "compute": str},),
    "pipeline": ({"jobs": dict}, {"component": str, "settings": dict}, {"component": str, "experiment_name": str}),
    "spark": ({"entry": dict}, {"conf": dict, "code": str}),
    "sweep": ({"trial": (str, dict), "search_space": dict},),
}
#: The schemas of AutoML jobs include the task.
_SCHEMAS = (
    *("automljob", "commandjob", "datatransferjob", "distillationjob", "finetuningjob", "importjob", "paralleljob"),
    *("pipelinejob", "sparkjob", "sweepjob", "job"),
    *(f"automl{task}job" for task in ("classification", "forecasting", "regression")),
    *(f"automlimage{task}job" for task in ("classification", "classificationmultilabel", "instancesegmentation")),
    *("automlimageobjectdetectionjob", "automltextclassificationjob", "automltextclassificationmultilabeljob"),
    *("automltextnerjob", "azureopenaifinetuningjob", "custommodelfinetuningjob"),
)
KINDS: tuple[CliDocumentKind, ...] = (
    CliDocumentKind(
        TYPE,
        _SCHEMAS,
        _matches,
        convert_job,
        known=list_known_keys(*(table_of(str(kind)) for kind in JOB_TYPES), within=("/identity", "/early_termination")),
    ),
)
