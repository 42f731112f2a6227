"""What a document does not say itself: where it is deployed to, which workspace it belongs to, what lies beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePath

from policyeng.errors import InputError, UsageError
from policyeng.facts.ids import types_of
from policyeng.models import WORKSPACE_TYPE, lowered
from policyeng.named import NamedTuple
from policyeng.sources.discovery import STDIN, Named, content_of
from policyeng.sources.file_dependencies import note_file, note_names
from policyeng.sources.parsed import UNKNOWN_SCOPE, Surroundings
from policyeng.sources.text import Text, read_text

_WORKSPACES = "/providers/Microsoft.MachineLearningServices/workspaces/"


class DocumentContext(NamedTuple):
    """What the user says of all documents.

    Attributes:
        scope: the ARM id of a subscription or resource group; empty when the documents or nobody says.
        workspace: the ARM id of a workspace, or its name in that scope; empty when nobody says.
        parameters: values of template parameters, by name in lower case.
        as_applied: the Kubernetes objects are those that the API server gets, in which nothing is a placeholder.
    """

    scope: str = ""
    workspace: str = ""
    parameters: Mapping[str, object] = {}
    as_applied: bool = False


class Home(NamedTuple):
    """A workspace that some file names, and the directory of that file."""

    directory: PurePath
    workspace: str


def given(scope: str, workspace: str, parameters: Mapping[str, object]) -> DocumentContext:
    """What the user says, brought into form.

    Raises:
        UsageError: `scope` is no id of a subscription or resource group, or `workspace` none of a workspace.
    """
    scope, workspace = scope.strip().rstrip("/"), workspace.strip().rstrip("/")
    kinds = types_of(scope)
    if scope and not any(kind.startswith("microsoft.resources/") for kind in kinds):
        remedy = "write /subscriptions/<id>/resourceGroups/<name>"
        raise UsageError(f"`{scope}` is no subscription and no resource group", remedy=remedy)
    if kinds[:1] == ("microsoft.resources/subscriptions",):
        scope += UNKNOWN_SCOPE[UNKNOWN_SCOPE.index("/resourceGroups") :]
    if "/" in workspace and WORKSPACE_TYPE not in types_of(workspace):
        raise UsageError(f"`{workspace}` is no workspace", remedy="write its name, or its whole ARM id")
    if "/" in workspace and not scope:
        scope = workspace[: lowered(workspace).index("/providers/")]
    if workspace and "/" not in workspace:
        workspace = f"{scope or UNKNOWN_SCOPE}{_WORKSPACES}{workspace}"
    return DocumentContext(scope, workspace, parameters)


def surroundings(named: Named, said: DocumentContext, homes: Iterable[Home], max_bytes: int) -> Surroundings:
    """Those of one file, among the workspaces that the other inputs name."""
    scope = said.scope or UNKNOWN_SCOPE
    text_beside = _beside(named, max_bytes)
    workspace = said.workspace or _nearest(directory_of(named), homes) or f"{scope}{_WORKSPACES}{{workspace}}"
    return Surroundings(
        file=named.file,
        scope=scope,
        workspace=workspace,
        parameters=said.parameters,
        beside=lambda path: text_beside(path).documents[0][1],
        text_beside=text_beside,
        names_beside=lambda: _names_beside(named),
        as_applied=said.as_applied,
    )


def directory_of(named: Named) -> PurePath:
    """The directory of a file, whole; that of standard input is the current one."""
    try:
        return whole(named.path).parent if named.path else Path.cwd()
    except OSError:
        return PurePath(named.file).parent


def whole(path: Path) -> PurePath:
    """A path by which a file is told from others, whole and without links where it can be resolved."""
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        return path


def _nearest(directory: PurePath, homes: Iterable[Home]) -> str:
    """The workspace of the directory or of the nearest one above it, else the only one of all; empty if none, or two.

    One that lies above a file counts for it as one beside it does.
    """
    known = list(homes)
    for folder in (directory, *directory.parents):
        here = [home.workspace for home in known if home.directory == folder]
        if here:
            return _only(here)
    return _only([home.workspace for home in known])


def _only(workspaces: Sequence[str]) -> str:
    """The one workspace that all of these are, compared without case; empty if there are two, or none."""
    return workspaces[0] if len({lowered(workspace) for workspace in workspaces}) == 1 else ""


def _beside(named: Named, max_bytes: int) -> Callable[[str], Text]:
    def beside(path: str) -> Text:
        if named.path is None:
            what = "standard input" if named.file == STDIN else "what is no file"
            raise InputError(f"{what} has no file beside it", place=(named.file,), remedy="name a file")
        found = named.path.parent / path
        file = str(PurePath(named.file).parent / path)
        content = content_of(Named(file, found), None, max_bytes)
        text = read_text(content, file, max_bytes=max_bytes)
        if len(text.documents) != 1:
            message = f"{len(text.documents)} documents where one should be"
            raise InputError(message, place=(file,), remedy="keep one")
        return text

    return beside


def _names_beside(named: Named) -> list[str]:
    if named.path is None:
        return []
    try:
        names = sorted(path.name for path in named.path.parent.iterdir())
    except OSError:
        names = []
    note_names(named.path.parent, names)
    return names


def lies_beside(path: Path) -> list[Path]:
    """The files beside one that may name its workspace."""
    names = ("workspace.yml", "workspace.yaml", "config.json", ".azureml/config.json")
    return [beside for name in names if _is_file(beside := path.parent / name) and beside != path]


def _is_file(path: Path) -> bool:
    is_file = path.is_file()
    note_file(path, is_file=is_file)
    return is_file
