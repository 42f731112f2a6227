"""Jobs of every type, the steps of pipelines, and schedules: `az ml job create` and `az ml schedule create`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import NamedTuple

from msgspec.structs import replace

from policyeng.errors import InputError
from policyeng.models import JsonObject, Problem, lowered
from policyeng.parsing.json_pointer import escaped, value_at
from policyeng.parsing.json_text import kind_of
from policyeng.sources.azure_cli.assets import environments_in, is_component
from policyeng.sources.azure_cli.converter import (
    PROVIDER,
    CliDefaults,
    CliDocumentKind,
    an_object,
    asset_in,
    compute_in,
    convert_number,
    convert_object,
    file_of,
    is_label,
    is_open,
    list_known_keys,
    name_of,
    place_resource,
    prose,
    schema_name,
    tags,
)
from policyeng.sources.field_mapping import (
    Bring,
    FieldMapping,
    boolean,
    convert_integer,
    convert_word,
    duration,
    put_value,
    text,
    without_nulls,
)
from policyeng.sources.parsed import Placed, Surroundings, format_value, refuse

#: Limits for nested pipelines: depth, steps and component files in total.
MAX_DEPTH = 8
MAX_STEPS = 2_000
MAX_FILES = 200

_BINDING = re.compile(r"\$\{\{\s*parent\.inputs\.(\w+)\s*\}\}")
#: Keys that a step takes from its component if it does not have them itself.
_INHERITED = ("resources", "distribution")
#: Keys in which a binding to a pipeline input is resolved, because policies check them.
_BOUND = ("compute", "resources", "distribution", "limits")


class PipelineSteps(NamedTuple):
    """The steps of a pipeline.

    Attributes:
        properties: `jobs` and `componentId` of the pipeline's ARM `properties`, if any.
        fields, unreadable: by ARM pointer, as in `Placed`; the places are in the pipeline's document.
    """

    properties: Mapping[str, object] = {}
    fields: Mapping[str, str] = {}
    unreadable: Mapping[str, str] = {}


class _Component(NamedTuple):
    """The document of a component, or why there is none."""

    body: JsonObject
    folder: str = ""
    why: str = ""


class _Within(NamedTuple):
    """The context of steps: the key and place of the enclosing step, and what they inherit from it."""

    prefix: str
    place: str
    folder: str
    inputs: Mapping[str, object]
    compute: object
    depth: int


def steps_of(document: JsonObject, around: Surroundings) -> PipelineSteps:
    """Return the steps of a pipeline job, or of the pipeline component that it names."""
    gathering = _Gathering(around)
    reference = document.get("component")
    inputs = _values(document.get("inputs"))
    if reference is None:
        gathering.gather(document.get("jobs"), _Within("", "/jobs", "", inputs, None, 0))
    else:
        gathering.gather_component(reference, inputs)
    properties: JsonObject = {}
    for target, value in gathering.found.items():
        put_value(properties, target.removeprefix("/properties"), value)
    if gathering.full:
        return PipelineSteps(unreadable={"/properties/jobs": gathering.full})
    return PipelineSteps(properties, gathering.fields, gathering.unreadable)


def _table(workspace: str) -> tuple[FieldMapping, ...]:
    return (
        FieldMapping("/type", "/type", text),
        FieldMapping("/display_name", "/display_name", prose),
        FieldMapping("/compute", "/computeId", compute_in(workspace)),
        FieldMapping("/compute/target", "/computeId", compute_in(workspace)),
        FieldMapping("/component", "/componentId", asset_in(workspace, "components")),
        FieldMapping("/resources", "/resources", an_object),
        FieldMapping("/distribution", "/distribution", an_object),
        FieldMapping("/limits", "/limits", an_object),
        FieldMapping("/trial/component", "/trial/componentId", asset_in(workspace, "components")),
        FieldMapping("/trial/resources", "/trial/resources", an_object),
        FieldMapping("/trial/distribution", "/trial/distribution", an_object),
        FieldMapping("/tags", "/tags", prose),
        FieldMapping("/identity", "/identity", prose),
        FieldMapping("/environment_variables", "/environment_variables", prose),
    )


@dataclass(slots=True)
class _Gathering:
    """The steps collected so far; everything is by ARM pointer."""

    around: Surroundings
    found: dict[str, object] = field(default_factory=dict)
    fields: dict[str, str] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)
    files: dict[str, object] = field(default_factory=dict)
    steps: int = 0
    full: str = ""

    def gather_component(self, reference: object, inputs: Mapping[str, object]) -> None:
        """Add the steps of the component that a pipeline job names instead of its own steps."""
        component = self.component(reference, "")
        self.fields["/properties/jobs"] = "/component"
        if component.why and is_pinned(reference):
            self.found["/properties/componentId"] = asset_in(self.around.workspace, "components")(reference)
        elif component.why:
            self.unreadable["/properties/jobs"] = component.why
        else:
            inner = {**_values(component.body.get("inputs")), **inputs}
            self.gather(component.body.get("jobs"), _Within("", "/component", component.folder, inner, None, 1))

    def gather(self, jobs: object, within: _Within) -> None:
        """Add the steps of a pipeline and of its nested pipelines."""
        if not isinstance(jobs, dict):
            self.unreadable["/properties/jobs"] = f"`jobs` is {kind_of(jobs)}; it should be an object of steps"
            return
        for key, step in jobs.items():
            self.steps += 1
            if self.steps > MAX_STEPS:
                self.full = f"the pipeline has more than {MAX_STEPS:,} steps, the most that are read"
                return
            place = f"{within.place}/{escaped(key)}" if not within.depth else within.place
            target = f"/properties/jobs/{escaped(within.prefix + key)}"
            self.fields[target] = place
            if isinstance(step, dict):
                self._step(step, target, within._replace(prefix=within.prefix + key, place=place))
            else:
                self.unreadable[target] = f"`{key}` is {kind_of(step)}; a step should be an object"

    def _step(self, written: JsonObject, target: str, within: _Within) -> None:
        step = _bind_inputs(written, within.inputs)
        component = self.component(step["component"], within.folder) if step.get("component") else _Component({})
        kind = _kind(step, component)
        inner = component.body.get("jobs")
        if kind == "pipeline" and isinstance(inner, dict):
            self._pipeline(step, component, target, within)
            return
        if step.get("compute") is None and within.compute is not None:
            step["compute"] = within.compute
        self._inherit(step, component, target, kind)
        trial = step.get("trial")
        if trial is not None and not (isinstance(trial, dict) and not trial.get("component")):
            self._trial(step, trial, target, within.folder)
        done = convert_object(_table(self.around.workspace), step, within.place)
        self.found[target] = {**({"type": kind} if kind else {}), **done.resource}
        nested = within.depth > 0
        self.fields |= {target + at: within.place if nested else place for at, place in done.fields.items()}
        self.unreadable |= {target + at: reason for at, reason in done.unreadable.items() if "componentId" not in at}

    def _pipeline(self, step: JsonObject, component: _Component, target: str, within: _Within) -> None:
        if within.depth >= MAX_DEPTH:
            self.unreadable[target] = f"pipelines are nested more than {MAX_DEPTH} levels deep, the most that are read"
            return
        inputs = {**_values(component.body.get("inputs")), **_bind_values(step.get("inputs"), within.inputs)}
        compute = within.compute if step.get("compute") is None else step["compute"]
        del self.fields[target]
        self.gather(
            component.body["jobs"],
            _Within(f"{within.prefix}.", within.place, component.folder, inputs, compute, within.depth + 1),
        )

    def _inherit(self, step: JsonObject, component: _Component, target: str, kind: str) -> None:
        """Copy values from the component that the step does not have; if the component is unknown, so are they."""
        for key in _INHERITED:
            if step.get(key) is None and component.body.get(key) is not None:
                step[key] = component.body[key]
        if not component.why or is_pinned(step.get("component")):
            return
        missing = [key for key in _INHERITED if step.get(key) is None]
        if not kind:
            missing.append("type")
        if kind in ("", "pipeline") and step.get("compute") is None:
            missing.append("computeId")
        self.unreadable |= {f"{target}/{key}": component.why for key in missing}

    def _trial(self, step: JsonObject, trial: object, target: str, folder: str) -> None:
        """Read the nodes of a sweep's trial from its component."""
        own = trial if isinstance(trial, dict) else {}
        reference = own.get("component", trial)
        component = self.component(reference, folder)
        inherited = {key: own.get(key) or component.body.get(key) for key in _INHERITED}
        stated = {key: value for key, value in inherited.items() if value is not None}
        step["trial"] = {**stated, "component": reference}
        if component.why and not is_pinned(reference):
            self.unreadable |= {f"{target}/trial/{key}": component.why for key in _INHERITED if key not in stated}

    def component(self, reference: object, folder: str) -> _Component:
        """Return a component that is inline, in a file, or registered; the definition of the last is unknown."""
        if isinstance(reference, dict):
            return _Component(reference, folder)
        path = file_of(reference)
        if is_open(reference):
            return _Component(
                {}, why=f"`component` is the placeholder {format_value(reference)}; replace it with a value"
            )
        if not path:
            why = f"the component {format_value(reference)} is registered, and its definition is not in the file"
            return _Component({}, why=why)
        found = PurePosixPath(folder) / path
        if str(found) not in self.files:
            self.files[str(found)] = self._read(str(found))
        body = self.files[str(found)]
        if isinstance(body, str):
            return _Component({}, why=body)
        if not isinstance(body, dict):
            return _Component({}, why=f"`{path}` is {kind_of(body)}, not a component")
        return _Component(body, str(found.parent))

    def _read(self, path: str) -> object:
        """Return the document at a path, or as text why it cannot be read."""
        if len(self.files) >= MAX_FILES:
            return f"the pipeline names more than {MAX_FILES} component files, the most that are read"
        try:
            document = self.around.neighbor(path)
        except InputError as error:
            return f"the component `{path}` cannot be read: {error.message}"
        if isinstance(document, str):
            return f"`{path}` is text, not a component"
        return without_nulls(document) if isinstance(document, dict) else document


def is_pinned(reference: object) -> bool:
    """Check whether a reference is one version of a registered component; ARM has only the reference, too."""
    return isinstance(reference, str) and not file_of(reference) and not is_label(reference) and not is_open(reference)


def _kind(step: JsonObject, component: _Component) -> str:
    """Return the type of a step, from itself or its component, by default `command`; empty if it is unknown."""
    for stated in (step.get("type"), component.body.get("type")):
        if isinstance(stated, str) and not is_open(stated):
            return lowered(stated).removesuffix("_component")
    if step.get("type") is not None:
        return ""
    return "" if component.why and not is_pinned(step.get("component")) else "command"


def _bind_inputs(step: JsonObject, inputs: Mapping[str, object]) -> JsonObject:
    """Return a copy of a step with the pipeline's input values in the keys that policies check."""
    return {key: _filled(value, inputs) if key in _BOUND else value for key, value in step.items()}


def _filled(value: object, inputs: Mapping[str, object]) -> object:
    if isinstance(value, dict):
        return {key: _resolve_binding(entry, inputs) for key, entry in value.items()}
    return _resolve_binding(value, inputs)


def _resolve_binding(value: object, inputs: Mapping[str, object]) -> object:
    named = _BINDING.fullmatch(value.strip()) if isinstance(value, str) else None
    return inputs.get(named[1], value) if named else value


def _values(inputs: object) -> dict[str, object]:
    """Return the inputs that have a plain value or default."""
    return dict(_plain(inputs))


def _bind_values(inputs: object, outer: Mapping[str, object]) -> dict[str, object]:
    return {key: _resolve_binding(value, outer) for key, value in _plain(inputs)}


def _plain(inputs: object) -> Iterator[tuple[str, object]]:
    for key, value in inputs.items() if isinstance(inputs, dict) else ():
        plain = value.get("default", value.get("value")) if isinstance(value, dict) else value
        if isinstance(plain, (str, int, float)):
            yield key, plain


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


def convert_job(document: JsonObject, pointer: str, around: Surroundings) -> Iterator[Placed | Problem]:
    """Yield the job of a document, with its steps and those in component files, and the environments inside it."""
    yield job_at(document, pointer, around)
    yield from environments_in(document, pointer, around)


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
    return replace(around, file=name, neighbor=lambda path: around.neighbor(str(folder / path)))


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


SCHEDULE_TYPE = f"{PROVIDER}/workspaces/schedules"

_TRIGGER = "/properties/trigger"
_MONITOR = "/properties/action/monitorDefinition"


def _wrap_in_list(value: object) -> object:
    """Return a list; a single value becomes a list (`RecurrencePattern._to_rest_object`)."""
    return value if isinstance(value, list) else [value]


TABLE = (
    FieldMapping("/$schema", ""),
    FieldMapping("/name", ""),
    FieldMapping("/id", ""),
    FieldMapping("/resourceGroup", ""),
    FieldMapping("/creation_context", ""),
    FieldMapping("/create_job", ""),  # read on its own
    FieldMapping("/import_data", ""),
    FieldMapping("/display_name", "/properties/displayName", prose),
    FieldMapping("/description", "/properties/description", prose),
    FieldMapping("/tags", "/properties/tags", tags),
    FieldMapping("/properties", "/properties/properties", an_object),
    FieldMapping("/is_enabled", "/properties/isEnabled", boolean),
    FieldMapping("/provisioning_state", "/properties/provisioningState", text),
    FieldMapping(
        "/trigger/type", f"{_TRIGGER}/triggerType", convert_word({"cron": "Cron", "recurrence": "Recurrence"})
    ),
    FieldMapping("/trigger/expression", f"{_TRIGGER}/expression", text),
    FieldMapping("/trigger/start_time", f"{_TRIGGER}/startTime", text),
    FieldMapping("/trigger/end_time", f"{_TRIGGER}/endTime", text),
    FieldMapping("/trigger/time_zone", f"{_TRIGGER}/timeZone", text),
    FieldMapping(
        "/trigger/frequency",
        f"{_TRIGGER}/frequency",
        convert_word({word: word.capitalize() for word in ("minute", "hour", "day", "week", "month")}),
    ),
    FieldMapping("/trigger/interval", f"{_TRIGGER}/interval", convert_integer),
    FieldMapping("/trigger/schedule/hours", f"{_TRIGGER}/schedule/hours", _wrap_in_list),
    FieldMapping("/trigger/schedule/minutes", f"{_TRIGGER}/schedule/minutes", _wrap_in_list),
    FieldMapping("/trigger/schedule/week_days", f"{_TRIGGER}/schedule/weekDays", _wrap_in_list),
    FieldMapping("/trigger/schedule/month_days", f"{_TRIGGER}/schedule/monthDays", _wrap_in_list),
    FieldMapping("/create_monitor/compute/instance_type", f"{_MONITOR}/computeConfiguration/instanceType", text),
    FieldMapping("/create_monitor/compute/runtime_version", f"{_MONITOR}/computeConfiguration/runtimeVersion", prose),
)
#: The action types of a schedule by key.
_ACTIONS = {"create_job": "CreateJob", "create_monitor": "CreateMonitor", "import_data": "ImportData"}


class _Job(NamedTuple):
    """The job of a schedule: its document and folder, or the id of the job that it repeats, or why neither is known."""

    document: JsonObject | None = None
    source_id: str = ""
    why: str = ""
    folder: PurePosixPath = PurePosixPath()


def _schedule(document: JsonObject, pointer: str, around: Surroundings) -> Iterator[Placed | Problem]:
    action = next((kind for key, kind in _ACTIONS.items() if key in document), "")
    job = _job_of(document.get("create_job"), around) if action == "CreateJob" else _Job()
    defaults: JsonObject = {"/properties/isEnabled": True}  # `Schedule._is_enabled`
    if action:
        defaults["/properties/action/actionType"] = action
    if job.source_id:
        defaults["/properties/action/jobDefinition"] = {"jobType": "Pipeline", "sourceJobId": job.source_id}
    if action == "CreateMonitor":
        defaults[f"{_MONITOR}/computeConfiguration/computeType"] = "ServerlessSpark"
    unreadable = {"/properties/action/jobDefinition": job.why} if job.why else {}
    run = _run_of(document, job, pointer, around)
    if run is not None:
        defaults["/properties/action/jobDefinition"] = run.resource["properties"]
        unreadable |= {
            f"/properties/action/jobDefinition{at.removeprefix('/properties')}": reason
            for at, reason in run.unreadable.items()
            if at.startswith("/properties/")
        }
    yield place_resource(document, pointer, around, SCHEDULE_TYPE, TABLE, CliDefaults(defaults, unreadable=unreadable))
    if run is not None:
        yield run
        if _is_inline(document.get("create_job")):
            yield from environments_in(job.document or {}, f"{pointer}/create_job", around)
    elif job.why:
        yield refuse(f"{pointer}/create_job", job.why, "provide the file of the job")


def _run_of(document: JsonObject, job: _Job, pointer: str, around: Surroundings) -> Placed | None:
    """Return the job as its own resource with the schedule's name; the service names each run."""
    if job.document is None:
        return None
    named = name_of(document.get("name")) or around.file
    inner = {key: value for key, value in job.document.items() if key not in ("name", "id")}
    place = f"{pointer}/create_job"
    run = job_at(inner, place, derive_context(around, f"schedule {named}", job.folder))
    if not _is_inline(document.get("create_job")):
        run = run._replace(fields=dict.fromkeys(run.fields, place))
    return run


def _job_of(stated: object, around: Surroundings) -> _Job:
    """Return the job of `create_job`: a document, inline or in a file, with the schedule's changes; or an id."""
    reference = stated["job"] if isinstance(stated, dict) and "job" in stated else stated
    changes = {key: value for key, value in stated.items() if key != "job"} if isinstance(stated, dict) else {}
    if isinstance(reference, dict):
        return _Job(_merged(reference, changes))
    if not isinstance(reference, str) or is_open(reference):
        return _Job(why=f"`create_job` is {format_value(reference)}; it should be a job")
    path = file_of(reference)
    if not path:
        name = reference.removeprefix("azureml:").strip()
        return _Job(source_id=name if "/" in name else f"{around.workspace}/jobs/{name}")
    try:
        document = around.neighbor(path)
    except InputError as error:
        return _Job(why=f"the job `{path}` cannot be read: {error.message}")
    if not isinstance(document, dict):
        return _Job(why=f"`{path}` is {format_value(document)}, not a job")
    return _Job(_merged(without_nulls(document), changes), folder=PurePosixPath(path).parent)


def _merged(job: JsonObject, changes: JsonObject) -> JsonObject:
    """Return a job with a schedule's changes; objects are merged (`merge_dict`)."""
    joined = {
        key: {**job[key], **value} if isinstance(value, dict) and isinstance(job.get(key), dict) else value
        for key, value in changes.items()
    }
    return {**job, **joined}


def _is_inline(stated: object) -> bool:
    return isinstance(stated, dict) and "job" not in stated


def _is_schedule(document: JsonObject) -> bool:
    """Check for a trigger and an action."""
    trigger = document.get("trigger")
    kinds = ("cron", "recurrence")
    return (
        isinstance(trigger, dict)
        and lowered(str(trigger.get("type"))) in kinds
        and any(key in document for key in _ACTIONS)
    )


SCHEDULE_KINDS: tuple[CliDocumentKind, ...] = (
    CliDocumentKind(
        SCHEDULE_TYPE,
        ("schedule", "jobschedule", "monitorschedule", "monitoringschedule", "importdataschedule"),
        _is_schedule,
        _schedule,
        known=list_known_keys(TABLE, within=("/trigger", "/trigger/schedule")),
    ),
)
