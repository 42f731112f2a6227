"""Environments, assets without settings, such as models and data, and components, which run only in a job."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from policyeng.models import JsonObject, Problem, lowered
from policyeng.parsing.json_pointer import escaped
from policyeng.sources.azure_cli.converter import (
    PROVIDER,
    CliDefaults,
    CliDocumentKind,
    list_known_keys,
    name_of,
    place_resource,
    prose,
    tags,
    word,
)
from policyeng.sources.field_mapping import FieldMapping, text
from policyeng.sources.parsed import Placed, Surroundings

_DATA_TYPES = ("uri_file", "uri_folder", "mltable")
_MODEL_TYPES = ("custom_model", "mlflow_model", "triton_model")
#: Keys that only components have, and jobs do not.
_MARKS = ("version", "is_deterministic")
_RUN = ("command", "pipeline", "parallel", "spark", "import", "automl", "data_transfer", "flow_parallel", "sweep")


#: Source: https://microsoft.github.io/promptflow/reference/connections-reference.html.
_PROMPT_FLOW_CONNECTIONS = (
    "azurecontentsafetyconnection",
    "azureopenaiconnection",
    "cognitivesearchconnection",
    "customconnection",
    "formrecognizerconnection",
    "openaiconnection",
    "qdrantconnection",
    "serpconnection",
    "serverlessconnection",
    "weaviateconnection",
)


def _yield_nothing(*_: object) -> Iterator[Placed | Problem]:
    return iter(())


def _matches_never(_: JsonObject) -> bool:
    return False


def is_component(document: JsonObject) -> bool:
    """Check whether a document without `$schema` is a component: a job type, and keys that only components have."""
    kind = document.get("type")
    return (
        isinstance(kind, str)
        and lowered(kind).removesuffix("_component") in _RUN
        and any(mark in document for mark in _MARKS)
        and not {"compute", "experiment_name", "id", "apiVersion"} & document.keys()
        and not {"command", "jobs", "task", "entry", "source"}.isdisjoint(document)
    )


def _is_environment(document: JsonObject) -> bool:
    """Check whether a document is an environment: an image alone is not enough without a conda file or a version."""
    build = document.get("build")
    built = isinstance(build, dict) and build.keys() <= _OF_BUILDS
    has_image = "image" in document and not document.keys().isdisjoint({"conda_file", "version"})
    fits = document.keys() <= _OF_ENVIRONMENTS
    return "name" in document and ((fits and (built or has_image)) or {"conda_file", "image"} <= document.keys())


def _typed(types: tuple[str, ...]) -> Callable[[JsonObject], bool]:
    def takes(document: JsonObject) -> bool:
        stated = document.get("type")
        return isinstance(stated, str) and lowered(stated) in types and "name" in document and "path" in document

    return takes


_ENVIRONMENT = f"{PROVIDER}/workspaces/environments/versions"
_ROUTES = tuple(
    FieldMapping(f"/inference_config/{key}_route/{part}", f"/properties/inferenceConfig/{key}Route/{part}", prose)
    for key in ("liveness", "readiness", "scoring")
    for part in ("path", "port")
)
_TABLE = (
    *(
        FieldMapping(f"/{key}", "")
        for key in ("$schema", "id", "name", "version", "resourceGroup", "creation_context", "datastore")
    ),
    *(FieldMapping(f"/{key}", "") for key in ("latest_version", "path", "intellectual_property", "base_path")),
    FieldMapping("/description", "/properties/description", prose),
    FieldMapping("/tags", "/properties/tags", tags),
    FieldMapping("/properties", "/properties/properties", prose),
    FieldMapping("/image", "/properties/image", text),
    FieldMapping("/build/path", "/properties/build/contextUri", text),
    FieldMapping("/build/dockerfile_path", "/properties/build/dockerfilePath", text),
    FieldMapping("/conda_file", "/properties/condaFile", prose),
    FieldMapping("/os_type", "/properties/osType", word("Linux", "Windows")),
    *_ROUTES,
)
_OF_BUILDS = frozenset({"path", "dockerfile_path"})
_OF_ENVIRONMENTS = frozenset(row.source.split("/")[1] for row in _TABLE)
#: The name that the CLI gives to environments inside other files (`ANONYMOUS_ENV_NAME`).
_ANONYMOUS = "CliV2AnonymousEnvironment"
#: The objects of jobs that can have an environment or another object with one.
_WITH_ENVIRONMENTS = frozenset({"component", "environment", "job_definition", "task", "trial"})


def _convert_environment(document: JsonObject, pointer: str, around: Surroundings) -> Iterator[Placed | Problem]:
    """Yield a version of an environment; without `version` the service numbers it."""
    yield environment_at(document, pointer, around, name_of(document.get("name")))


def environment_at(document: JsonObject, pointer: str, around: Surroundings, name: str) -> Placed:
    """Return the version of an environment that an object at a JSON Pointer describes."""
    deployed = bool(document.get("id"))
    defaults: JsonObject = {} if deployed else {"/properties/environmentType": "UserCreated"}
    made = CliDefaults(
        defaults, parents=(name.replace("/", "~"),), elsewhere=("/properties/isArchived", "/properties/image")
    )
    # The name of the resource is its version.
    versioned = {**document, "name": document.get("version")}
    placed = place_resource(versioned, pointer, around, _ENVIRONMENT, _TABLE, made)
    return placed._replace(fields={**placed.fields, "/id": f"{pointer}/name"})


def environments_in(document: JsonObject, pointer: str, around: Surroundings) -> Iterator[Placed]:
    """Yield the environments that a job or a deployment describes, in its steps and trials, too."""
    waiting: list[tuple[str, object]] = [(pointer, document)]
    while waiting:
        above, holder = waiting.pop()
        for key, inner in holder.items() if isinstance(holder, dict) else ():
            place = f"{above}/{escaped(key)}"
            if key == "environment" and isinstance(inner, dict) and not _OF_ENVIRONMENTS.isdisjoint(inner):
                stated = {name: value for name, value in inner.items() if name not in ("id", "name")}
                file = replace(around, file=f"{around.file or 'file'}#{place}")
                yield environment_at({**stated, "version": None}, place, file, _ANONYMOUS)
            elif key == "jobs" and isinstance(inner, dict):
                waiting += ((f"{place}/{escaped(step)}", each) for step, each in reversed(inner.items()))
            elif key in _WITH_ENVIRONMENTS:
                waiting.append((place, inner))


def _asset(what: str, segments: str, takes: Callable[[JsonObject], bool], *schemas: str) -> CliDocumentKind:
    nothing = f"{what}: nothing to check"
    arm_type = f"{PROVIDER}/workspaces/{segments}"
    return CliDocumentKind(arm_type, schemas, takes, _yield_nothing, nothing=nothing)


KINDS: tuple[CliDocumentKind, ...] = (
    CliDocumentKind(
        _ENVIRONMENT,
        ("environment",),
        _is_environment,
        _convert_environment,
        known=list_known_keys(
            _TABLE, within=("/build", "/inference_config", *(row.source.rpartition("/")[0] for row in _ROUTES))
        ),
    ),
    _asset("a model", "models/versions", _typed(_MODEL_TYPES), "model"),
    _asset("an asset", "data/versions", _matches_never, "asset"),
    _asset("a data asset", "data/versions", _typed(_DATA_TYPES), "data", "dataset", "dataimport"),
    _asset(
        "a component, which runs only in a job",
        "components/versions",
        is_component,
        "automlcomponent",
        "commandcomponent",
        "component",
        "datatransfercomponent",
        "flowcomponent",
        "importcomponent",
        "parallelcomponent",
        "pipelinecomponent",
        "sparkcomponent",
        "sweepcomponent",
    ),
    _asset("a feature set", "featuresets/versions", _matches_never, "featureset"),
    _asset("a feature store entity", "featurestoreentities/versions", _matches_never, "featurestoreentity"),
    _asset("code", "codes/versions", _matches_never, "code", "codeasset"),
    _asset(
        "a prompt flow or its run, which runs only in a deployment or a job", "flows", _matches_never, "flow", "run"
    ),
    _asset("a connection of prompt flow", "flows", _matches_never, *_PROMPT_FLOW_CONNECTIONS),
    _asset("an index", "indexes/versions", _matches_never, "index", "dataindex"),
    _asset("a package of a model", "models/versions/packages", _matches_never, "modelversionpackage"),
)
