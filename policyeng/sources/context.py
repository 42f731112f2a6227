"""The context of a document: its deployment scope, its workspace and the files in its directory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import NamedTuple

from policyeng.errors import InputError, UsageError
from policyeng.facts.ids import types_of
from policyeng.models import WORKSPACE_TYPE, lowered
from policyeng.sources.discovery import STDIN, Named, content_of, note_file, note_names
from policyeng.sources.parsed import UNKNOWN_SCOPE, Surroundings
from policyeng.sources.text import Text, read_text

_WORKSPACES = "/providers/Microsoft.MachineLearningServices/workspaces/"


class DocumentContext(NamedTuple):
    """What the user states for all documents.

    Attributes:
        scope: the ARM id of a subscription or resource group; empty if the user does not state it.
        workspace: the ARM id of a workspace, or its name in that scope; empty if the user does not state it.
        parameters: values of template parameters, by name in lower case.
        as_applied: the Kubernetes objects are those that the API server receives, so nothing in them is a placeholder.
    """

    scope: str = ""
    workspace: str = ""
    parameters: Mapping[str, object] = {}
    as_applied: bool = False


class Home(NamedTuple):
    """A workspace that a file names, and the directory of that file."""

    directory: PurePath
    workspace: str


def normalize_context(scope: str, workspace: str, parameters: Mapping[str, object]) -> DocumentContext:
    """Return the normalized context that the user states.

    Raises:
        UsageError: `scope` is not the id of a subscription or resource group, or `workspace` not that of a workspace.
    """
    scope, workspace = scope.strip().rstrip("/"), workspace.strip().rstrip("/")
    kinds = types_of(scope)
    if scope and not any(kind.startswith("microsoft.resources/") for kind in kinds):
        remedy = "give /subscriptions/<id>/resourceGroups/<name>"
        raise UsageError(f"`{scope}` is not a subscription or a resource group", remedy=remedy)
    if kinds[:1] == ("microsoft.resources/subscriptions",):
        scope += UNKNOWN_SCOPE[UNKNOWN_SCOPE.index("/resourceGroups") :]
    if "/" in workspace and WORKSPACE_TYPE not in types_of(workspace):
        raise UsageError(f"`{workspace}` is not a workspace", remedy="give its name or its full ARM id")
    if "/" in workspace and not scope:
        scope = workspace[: lowered(workspace).index("/providers/")]
    if workspace and "/" not in workspace:
        workspace = f"{scope or UNKNOWN_SCOPE}{_WORKSPACES}{workspace}"
    return DocumentContext(scope, workspace, parameters)


def find_surroundings(named: Named, context: DocumentContext, homes: Iterable[Home], max_bytes: int) -> Surroundings:
    """Return the surroundings of one file, given the workspaces that the other inputs name."""
    scope = context.scope or UNKNOWN_SCOPE
    read_neighbor = _make_reader(named, max_bytes)
    workspace = context.workspace or _find_nearest_workspace(named, homes) or f"{scope}{_WORKSPACES}{{workspace}}"
    return Surroundings(
        file=named.file,
        scope=scope,
        workspace=workspace,
        parameters=context.parameters,
        neighbor=lambda path: read_neighbor(path).documents[0][1],
        neighbor_text=read_neighbor,
        neighbor_names=lambda: _list_directory(named),
        as_applied=context.as_applied,
    )


def directory_of(named: Named) -> PurePath:
    """Return the absolute directory of a file; for standard input, the current directory."""
    try:
        return resolve_path(named.path).parent if named.path else Path.cwd()
    except OSError:
        return PurePath(named.file).parent


def resolve_path(path: Path) -> PurePath:
    """Return the path that identifies a file: absolute and without links if it can be resolved."""
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        return path


def _find_nearest_workspace(named: Named, homes: Iterable[Home]) -> str:
    """Return the workspace of the nearest directory that names one, else the only one; empty if none or several."""
    known = list(homes)
    if not known:
        return ""
    directory = directory_of(named)
    for folder in (directory, *directory.parents):
        here = [home.workspace for home in known if home.directory == folder]
        if here:
            return _common_workspace(here)
    return _common_workspace([home.workspace for home in known])


def _common_workspace(workspaces: Sequence[str]) -> str:
    """Return the workspace if all of these are the same one, compared without case; else an empty string."""
    return workspaces[0] if len({lowered(workspace) for workspace in workspaces}) == 1 else ""


def _make_reader(named: Named, max_bytes: int) -> Callable[[str], Text]:
    def read(path: str) -> Text:
        if named.path is None:
            what = "standard input" if named.file == STDIN else "input that is not a file"
            raise InputError(f"{what} has no files next to it", place=(named.file,), remedy="give a file")
        found = named.path.parent / path
        file = str(PurePath(named.file).parent / path)
        content = content_of(Named(file, found), None, max_bytes)
        text = read_text(content, file, max_bytes=max_bytes)
        if len(text.documents) != 1:
            message = f"{len(text.documents)} documents where one should be"
            raise InputError(message, place=(file,), remedy="keep one")
        return text

    return read


def _list_directory(named: Named) -> list[str]:
    if named.path is None:
        return []
    try:
        names = sorted(path.name for path in named.path.parent.iterdir())
    except OSError:
        names = []
    note_names(named.path.parent, names)
    return names


def list_neighbors(path: Path) -> list[Path]:
    """Return the files next to one that may name its workspace."""
    names = ("workspace.yml", "workspace.yaml", "config.json", ".azureml/config.json")
    return [neighbor for name in names if _is_file(neighbor := path.parent / name) and neighbor != path]


def _is_file(path: Path) -> bool:
    is_file = path.is_file()
    note_file(path, is_file=is_file)
    return is_file
