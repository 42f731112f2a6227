"""Documents that say what could run, and run nothing: components and prompt flows."""

from __future__ import annotations

from collections.abc import Iterator

from policyeng.models import JsonObject, lowered
from policyeng.sources.azure_cli.kinds import PROVIDER, Kind
from policyeng.sources.reading import Placed, Refusal, Surroundings

#: What only components have; a job has neither.
_MARKS = ("version", "is_deterministic")
_TYPES = ("command", "pipeline", "parallel", "spark", "import", "automl", "data_transfer", "flow_parallel", "sweep")


def _component(document: JsonObject, pointer: str, around: Surroundings) -> Iterator[Placed | Refusal]:  # noqa: ARG001  # the contract of a kind
    yield Refusal(pointer, "a component, which runs only in a job", "give the job that runs it", holds_nothing=True)


def _flow(document: JsonObject, pointer: str, around: Surroundings) -> Iterator[Placed | Refusal]:  # noqa: ARG001  # the contract of a kind
    message = "a prompt flow, which runs only in a deployment or a job"
    yield Refusal(pointer, message, "give the deployment that serves it", holds_nothing=True)


def is_component(document: JsonObject) -> bool:
    """A component without `$schema`: the type of a job, and what only components have."""
    kind = document.get("type")
    return (
        isinstance(kind, str)
        and lowered(kind).removesuffix("_component") in _TYPES
        and any(mark in document for mark in _MARKS)
        and not {"compute", "experiment_name", "id", "apiVersion"} & document.keys()
        and not {"command", "jobs", "task", "entry", "source"}.isdisjoint(document)
    )


def _never(document: JsonObject) -> bool:  # noqa: ARG001  # the contract of a kind
    return False


KINDS: tuple[Kind, ...] = (
    Kind(
        f"{PROVIDER}/workspaces/components",
        (
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
        is_component,
        _component,
    ),
    Kind(f"{PROVIDER}/workspaces/flows", ("flow", "run"), _never, _flow),
)
