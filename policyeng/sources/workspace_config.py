"""The `config.json` that the Azure portal and the SDK write: it names the workspace of the files next to it.

Source: https://learn.microsoft.com/azure/machine-learning/how-to-configure-environment, "workspace configuration".
"""

from __future__ import annotations

from policyeng.sources.parsed import ALONE, ParsedDocument, Surroundings, refuse

SUMMARY = "the `config.json` of a workspace, which names the workspace of the files next to it"

_KEYS = ("subscription_id", "resource_group", "workspace_name")
SHAPES: tuple[frozenset[str], ...] = (frozenset(_KEYS),)


def detect(document: object) -> bool:
    """Check whether the document has the keys that name a workspace."""
    return isinstance(document, dict) and all(key in document for key in _KEYS)


def read(document: object, around: Surroundings = ALONE) -> ParsedDocument:  # noqa: ARG001  # the document is complete
    """Check that the document names a workspace; it contains no resources."""
    if not workspace_of(document):
        message = "the workspace is not named by strings"
        return ParsedDocument(problems=(refuse("", message, f"give {', '.join(f'`{key}`' for key in _KEYS)}"),))
    return ParsedDocument(nothing="names the workspace of the files next to it")


def workspace_of(document: object) -> str:
    """Return the ARM id of the workspace that it names, or an empty string."""
    parts = [document.get(key) for key in _KEYS] if isinstance(document, dict) else []
    if not parts or not all(isinstance(part, str) and part.strip() and "/" not in part for part in parts):
        return ""
    subscription, group, name = (str(part).strip() for part in parts)
    scope = f"/subscriptions/{subscription}/resourceGroups/{group}"
    return f"{scope}/providers/Microsoft.MachineLearningServices/workspaces/{name}"
