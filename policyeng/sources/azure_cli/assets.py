"""Assets: environments, models, data and the like, which hold no setting, and components, which run only in a job."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from policyeng.models import JsonObject, lowered
from policyeng.sources.azure_cli.base import PROVIDER, CliDocumentKind
from policyeng.sources.parsed import Placed, Refusal

_DATA_TYPES = ("uri_file", "uri_folder", "mltable")
_MODEL_TYPES = ("custom_model", "mlflow_model", "triton_model")
#: What only components have; a job has neither.
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


def _brings_nothing(*_: object) -> Iterator[Placed | Refusal]:
    return iter(())


def _never(_: JsonObject) -> bool:
    return False


def is_component(document: JsonObject) -> bool:
    """A component without `$schema`: the type of a job, and what only components have."""
    kind = document.get("type")
    return (
        isinstance(kind, str)
        and lowered(kind).removesuffix("_component") in _RUN
        and any(mark in document for mark in _MARKS)
        and not {"compute", "experiment_name", "id", "apiVersion"} & document.keys()
        and not {"command", "jobs", "task", "entry", "source"}.isdisjoint(document)
    )


def _is_environment(document: JsonObject) -> bool:
    """Not every file with an image is one: only with the conda file or the build that the CLI has."""
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
    return CliDocumentKind(arm_type, schemas, takes, _brings_nothing, nothing=nothing)


KINDS: tuple[CliDocumentKind, ...] = (
    _asset("an environment", "environments/versions", _is_environment, "environment"),
    _asset("a model", "models/versions", _typed(_MODEL_TYPES), "model"),
    _asset("an asset", "data/versions", _never, "asset"),
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
    _asset("a feature set", "featuresets/versions", _never, "featureset"),
    _asset("a feature store entity", "featurestoreentities/versions", _never, "featurestoreentity"),
    _asset("code", "codes/versions", _never, "code", "codeasset"),
    _asset("a prompt flow or its run, which runs only in a deployment or a job", "flows", _never, "flow", "run"),
    _asset("a connection of prompt flow", "flows", _never, *_PROMPT_FLOW_CONNECTIONS),
    _asset("an index", "indexes/versions", _never, "index", "dataindex"),
    _asset("a package of a model", "models/versions/packages", _never, "modelversionpackage"),
)
