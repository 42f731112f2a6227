"""The input formats by name; a format is a module, and nothing else knows about it."""

from __future__ import annotations

from collections.abc import Mapping

from policyeng.errors import UsageError, nearest
from policyeng.later import Modules
from policyeng.sources.parsed import Format

#: By the name that `--from` takes, in the order in which content is looked at.
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


def chosen(name: str | None, formats: Mapping[str, Format]) -> Mapping[str, Format]:
    """The one format of a name, and all of them without one.

    Raises:
        UsageError: there is none of that name; it has the nearest and all of them.
    """
    if name is None:
        return formats
    if name not in formats:
        known = ", ".join(f"`{known}`" for known in formats)
        raise UsageError(f"there is no format `{name}`{nearest(name, formats)}", remedy=f"there are {known}")
    return {name: formats[name]}
