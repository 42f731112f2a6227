"""Documents of the Azure CLI's kinds of work, brought one by one, and what policies make of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from policyeng.errors import InputError
from policyeng.models import JsonObject, Problem, Snapshot, lowered
from policyeng.sources.azure_cli import kind_of_file
from policyeng.sources.azure_cli.converter import CliDocumentKind
from policyeng.sources.parsed import Placed, Surroundings
from policyeng.workloads import Workload, derive
from tests.workload_parts import FACTS

SCOPE = "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/rg-ml"
WORKSPACE = f"{SCOPE}/providers/Microsoft.MachineLearningServices/workspaces/ws-ml"


def around(files: Mapping[str, object] | None = None, file: str = "work.yml") -> Surroundings:
    """A file in the workspace, with others next to it."""

    def sibling(path: str) -> object:
        named = str(PurePosixPath(path))
        if named not in (files or {}):
            raise InputError("there is no such file", place=(path,))
        return (files or {})[named]

    return Surroundings(file=file, scope=SCOPE, workspace=WORKSPACE, neighbor=sibling)


def kind_of(document: object) -> CliDocumentKind | None:
    """The kind that takes a document, if any."""
    return kind_of_file(document) if isinstance(document, dict) else None


def entries(document: JsonObject, files: Mapping[str, object] | None = None) -> list[Placed | Problem]:
    """All that a document brings."""
    kind = kind_of(document)
    assert kind is not None, document
    return list(kind.bring(document, "", around(files)))


def only(document: JsonObject, files: Mapping[str, object] | None = None) -> Placed:
    """The one resource of a document."""
    [placed] = entries(document, files)
    assert isinstance(placed, Placed)
    return placed


def workload(document: JsonObject, *resources: JsonObject, files: Mapping[str, object] | None = None) -> Workload:
    """The one workload of a document, among other resources of the workspace."""
    placed = only(document, files)
    [found] = derive(snapshot_of([placed], resources), FACTS)
    return found


def snapshot_of(found: Iterable[Placed], resources: Iterable[JsonObject] = ()) -> Snapshot:
    """A snapshot of what was read, in addition to resources of another format."""
    every = list(found)
    return Snapshot(
        resources=(*resources, *(placed.resource for placed in every)),
        unreadable={lowered(placed.resource["id"]): placed.unreadable for placed in every},
        carried={lowered(placed.resource["id"]): placed.carried for placed in every if placed.carried},
        workloads=(),
    )
