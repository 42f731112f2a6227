"""Writers of the input formats: an estate in ARM shape as files of another format, to be read back.

Each is written after what its format's own documents say, beside the tables of the reader and not from them, so that
a mistake in a table shows. A writer has `expressible(resource)`, whether it can say a resource, and `write(resources)`,
the files by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from policyeng.models import JsonObject, lowered
from policyeng.sources.arm_entry import types_of
from policyeng.verify.writers import (
    arm_template,
    az_output,
    azure_cli,
    azure_cli_work,
    kubernetes,
    resource_graph,
    terraform,
)


class Writer(Protocol):
    """A module that writes resources in a format, or some types of them."""

    def expressible(self, resource: JsonObject) -> bool:
        """Whether the format can say a resource; what it raises on a strange one means that it cannot."""

    def write(self, resources: list[JsonObject]) -> dict[str, bytes]:
        """The files by name, of resources that can be said."""


#: By the name of a format, its writers.
WRITERS: Mapping[str, tuple[Writer, ...]] = {
    "arm-template": (arm_template,),
    "azure-cli": (azure_cli, azure_cli_work),
    "az-output": (az_output,),
    "terraform": (terraform,),
    "kubernetes": (kubernetes,),
    "resource-graph": (resource_graph,),
}


def sayable(writer: Writer, resource: JsonObject) -> bool:
    """Whether a writer can say a resource as it stands: its id is of its type, and all values are of their kinds."""
    try:
        texts = all(isinstance(value, str) for value in resource.get("tags", {}).values())
        own = lowered(resource["type"]) in types_of(resource["id"])
        return bool(texts and own and writer.expressible(resource) and writer.write([resource]))
    except (AttributeError, KeyError, TypeError):
        return False
