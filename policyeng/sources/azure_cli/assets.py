"""Assets without settings, such as environments, models and data, and components, which run only in a job."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from policyeng.models import JsonObject, Problem, lowered
from policyeng.sources.azure_cli.converter import PROVIDER, CliDocumentKind
from policyeng.sources.parsed import Placed

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
    """Check whether a document is an environment: an image alone is not enough without a conda file or a build."""
    built = isinstance(document.get("build"), dict) and document.keys() <= _OF_ENVIRONMENTS
    return "name" in document and (built or ("conda_file" in document and "image" in document))


def _typed(types: tuple[str, ...]) -> Callable[[JsonObject], bool]:
    def takes(document: JsonObject) -> bool:
        stated = document.get("type")
        return isinstance(stated, str) and lowered(stated) in types and "name" in document and "path" in document

    return takes


_OF_ENVIRONMENTS = frozenset({"name", "version", "build", "description", "tags", "inference_config", "os_type"})


def _asset(what: str, segments: str, takes: Callable[[JsonObject], bool], *schemas: str) -> CliDocumentKind:
    nothing = f"{what}: nothing to check"
    arm_type = f"{PROVIDER}/workspaces/{segments}"
    return CliDocumentKind(arm_type, schemas, takes, _yield_nothing, nothing=nothing)


KINDS: tuple[CliDocumentKind, ...] = (
    _asset("an environment", "environments/versions", _is_environment, "environment"),
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
