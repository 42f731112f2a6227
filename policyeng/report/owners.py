"""Whose a resource is: the value of its owner tag, or of that of the nearest resource above it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from policyeng.masking import masked_message
from policyeng.models import Snapshot
from policyeng.models.base import lowered

OWNER_TAG = "owner"


class Owners(Mapping[str, str]):
    """By resource id as findings have it, in any letter case, who owns it; what nobody owns is not in it."""

    def __init__(self, tagged: Mapping[str, str]) -> None:
        """Take the owners of the resources that carry the tag, by their ids in lower case."""
        self._tagged = tagged

    def __getitem__(self, resource: str) -> str:
        above = lowered(resource)
        while above:
            if owner := self._tagged.get(above):
                return owner
            above = above.rpartition("/")[0]
        raise KeyError(resource)

    def __iter__(self) -> Iterator[str]:
        return iter(self._tagged)

    def __len__(self) -> int:
        return len(self._tagged)


def owners_of(snapshot: Snapshot, tag: str = OWNER_TAG) -> Owners:
    """Find who owns what: a tag of the resource, else of what contains it, such as its workspace.

    Args:
        snapshot: what was judged.
        tag: the name of the tag, in any letter case, as Azure compares it.
    """
    known = {}
    for resource in snapshot.resources:
        if owner := _tag(resource.get("tags"), tag):
            known[lowered(str(resource.get("id", "")))] = owner
    for workload in snapshot.workloads:
        above = Owners(known).get(workload.workspace_id or "", "")
        if owner := _tag(workload.tags, tag) or above:
            known[lowered(workload.id)] = owner
    return Owners(known)


def _tag(tags: object, name: str) -> str:
    if not isinstance(tags, Mapping):
        return ""
    values = (value for key, value in tags.items() if str(key).lower() == name.lower())
    return next((masked_message(value.strip()) for value in values if isinstance(value, str)), "")
