"""The input formats by name; each format is a module."""

from __future__ import annotations

from collections.abc import Mapping

from policyeng.errors import UsageError, suggest_nearest
from policyeng.later import Modules
from policyeng.sources.parsed import Format

#: By the name for `--from`, in the order in which they are tried on a document.
FORMATS: Mapping[str, Format] = Modules(
    "policyeng.sources",
    {
        "native": "native",
        "azure-cli": "azure_cli",
        "workspace-config": "workspace_config",
        "arm-template": "arm_template",
        "kubernetes": "kubernetes",
        "terraform": "terraform",
        "resource-graph": "resource_graph",
        "role-access": "role_assignments",
        "az-output": "az_output",
        "arm-rest": "arm_rest",
    },
)


def choose_formats(name: str | None, formats: Mapping[str, Format]) -> Mapping[str, Format]:
    """Return the format with a name, or all formats if the name is None.

    Raises:
        UsageError: there is no such format; the message has the nearest name and all names.
    """
    if name is None:
        return formats
    if name not in formats:
        known = ", ".join(f"`{known}`" for known in formats)
        raise UsageError(f"unknown format `{name}`{suggest_nearest(name, formats)}", remedy=f"the formats are {known}")
    return {name: formats[name]}
