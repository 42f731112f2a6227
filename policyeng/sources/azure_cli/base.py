"""Common parts of the document kinds of the Azure CLI: detection, ids and conversion to ARM shape."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from policyeng.facts.ids import types_of
from policyeng.frozen import replace
from policyeng.models import JsonObject, lowered
from policyeng.sources.azure_cli.tables import DocumentTables
from policyeng.sources.parsed import UNKNOWN_SCOPE, Placed, Refusal, Surroundings

PROVIDER = "Microsoft.MachineLearningServices"
UNKNOWN_ID = "the file does not name the subscription and resource group to deploy to; pass `--workspace`"
UNKNOWN_HOME = "the file does not name its workspace; pass `--workspace`"

#: Keys that only a command's output has; they identify an output without an `id`.
PRINTED = frozenset({"creation_context", "mlflow_tracking_uri", "provisioning_state"})
_PREFIX = "azureml:"
_SCHEMA_PLACES = re.compile(r"azuremlschemas|azuremlsdk2|azureml/sdk-2-0", re.IGNORECASE)


class CliDocumentKind(NamedTuple):
    """One kind of document, such as a compute cluster.

    Attributes:
        arm_type: the ARM type that it becomes, such as `Microsoft.MachineLearningServices/workspaces/computes`.
        schemas: the last parts of its `$schema`, in lower case and without `.schema.json`.
        takes: whether a document without `$schema` is one.
        bring: yields the resources of a document at a JSON Pointer; a command's output has an `id`, a file does not.
        in_workspace: the document belongs to a workspace that it does not name.
        shape: the tables of its fields. They are needed to report keys that the CLI does not know, and values that a
            command's output omits or prints ambiguously.
        nothing: why such a document has nothing to check; empty if it has resources.
        known: the keys that are allowed, by the JSON Pointer of their parent, to report others; empty if any key is.
    """

    arm_type: str
    schemas: tuple[str, ...]
    takes: Callable[[JsonObject], bool]
    bring: Callable[[JsonObject, str, Surroundings], Iterator[Placed | Refusal]]
    in_workspace: bool = True
    shape: DocumentTables | None = None
    nothing: str = ""
    known: Mapping[str, tuple[str, ...]] = {}


def schema_of(document: JsonObject) -> str | None:
    """Return the last part of `$schema`, in lower case; None if it is not a schema of the CLI."""
    schema = document.get("$schema")
    if not isinstance(schema, str) or not _SCHEMA_PLACES.search(schema):
        return None
    last = lowered(schema.strip().rstrip("/").rpartition("/")[2])
    return last.removesuffix(".json").removesuffix(".schema")


def find_stated_id(document: JsonObject) -> str:
    """Return the ARM id in a command's output; empty if there is none.

    The ids of jobs, schedules and batch deployments have the prefix `azureml:`: `ArmStr._serialize` of
    `_schema/core/fields.py` in azure-ai-ml 1.35.2.
    """
    stated = document.get("id")
    if not isinstance(stated, str):
        return ""
    return stated[len(_PREFIX) :] if lowered(stated).startswith(f"{_PREFIX}/") else stated


def at_home(document: JsonObject, around: Surroundings) -> Surroundings:
    """Return the surroundings with the workspace of the document's id, which its names then refer to."""
    parts = find_stated_id(document).split("/")
    kind = lowered("/".join(parts[5:8]))
    if parts[0] or len(parts) < 9 or kind != lowered(f"providers/{PROVIDER}/workspaces"):
        return around
    return replace(around, workspace="/".join(parts[:9]))


def build_id(document: JsonObject, arm_type: str, around: Surroundings, *parents: str) -> str:
    """Return the ARM id in a command's output, or an id made of the workspace, `parents` and the name.

    Args:
        document: has a `name` or an `id`.
        arm_type: of the resource.
        around: the scope and the workspace.
        parents: the names of the parents below the workspace, such as an endpoint.
    """
    stated = find_stated_id(document)
    if lowered(arm_type) in types_of(stated):
        return stated
    segments = arm_type.split("/")[2:]
    names = [*parents, str(document.get("name") or "{name}").replace("/", "~")]
    if segments:
        below = "".join(f"/{kind}/{name}" for kind, name in zip(segments, names, strict=True))
        return around.workspace + below
    return f"{around.scope}/providers/{arm_type}/{names[-1]}"


def unplaced(arm_id: str) -> dict[str, str]:
    """Return why an id is unreadable if its subscription, resource group or workspace is unknown."""
    if arm_id.startswith(UNKNOWN_SCOPE):
        return {"/id": UNKNOWN_ID}
    return {"/id": UNKNOWN_HOME} if "/workspaces/{workspace}" in arm_id else {}
