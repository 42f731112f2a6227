"""Writers of the input formats: an estate in ARM shape as files of another format, to be read back.

Each is written after its format's own documents, not from the tables of the reader, so that
a mistake in a table shows. A writer has `expressible(resource)`, whether it can state a resource, `loses(resource)`,
what it never states of it, and `write(resources)`, the files by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from policyeng.facts.ids import types_of
from policyeng.models import JsonObject, lowered
from tests.writers import (
    arm_template,
    az_output,
    azure_cli,
    azure_cli_work,
    kubernetes,
    resource_graph,
    terraform,
)
from tests.writers.noting import Noting, passed_over


class Writer(Protocol):
    """A module that writes resources in a format, or some types of them."""

    def expressible(self, resource: JsonObject, /) -> bool:
        """Whether the format can state a resource; what it raises on a strange one means that it cannot."""

    def loses(self, resource: JsonObject, /) -> Sequence[str]:
        """Pointers at and below which the format states nothing of a resource that it can state."""

    def write(self, resources: list[JsonObject], /) -> dict[str, bytes]:
        """The files by name, of resources that can be stated."""


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
    """Whether a writer can state a resource as it is: the whole of it but for what its format never states."""
    try:
        if not (_is_well_formed(resource) and writer.expressible(resource)):
            return False
        read: set[str] = set()
        written = writer.write([Noting(resource, "", read)])
        never = writer.loses(resource)
        return bool(written) and all(_lies_below(place, never) for place in passed_over(resource, read))
    except (AttributeError, LookupError, TypeError, ValueError):
        return False


def _is_well_formed(resource: JsonObject) -> bool:
    """Whether the envelope is: the id is of the type and the name, tags are texts, and properties are an object."""
    own = lowered(resource["type"]) in types_of(resource["id"])
    name = resource["id"].rpartition("/")[2]
    texts = all(isinstance(value, str) for value in resource.get("tags", {}).values())
    return own and resource.get("name", name) == name and texts and isinstance(resource.get("properties", {}), dict)


def _lies_below(place: str, pointers: Sequence[str]) -> bool:
    return any(place == pointer or place.startswith(f"{pointer}/") for pointer in pointers)
