"""The changes that lead from one state to another."""

from __future__ import annotations

from collections.abc import Iterator

from policyeng.models import Change, JsonObject, Operation, Problem, Snapshot, lowered

#: Collections that changes of resources cannot express.
_COLLECTIONS = ("approvals", "workloads", "quotas", "metrics", "principals", "evidence")


def build_put(resource: JsonObject, snapshot: Snapshot) -> Change:
    """Return the change that puts a resource of a snapshot, with its unknown values."""
    key = lowered(resource["id"])
    return Change(
        operation=Operation.REPLACE,
        id=resource["id"],
        resource=resource,
        unreadable=snapshot.unreadable.get(key, {}),
        carried=snapshot.carried.get(key),
        origin=snapshot.origins.get(key),
    )


def diff_states(before: Snapshot, after: Snapshot) -> tuple[Change, ...]:
    """Return the changes that lead from one state to another, deletes first.

    Child resources are deleted before their parents, because deleting a parent deletes its children.
    """
    earlier = {lowered(resource["id"]): resource for resource in before.resources}
    later = {lowered(resource["id"]) for resource in after.resources}
    gone = sorted((key for key in earlier if key not in later), key=lambda key: -key.count("/"))
    deletes = [Change(operation=Operation.DELETE, id=earlier[key]["id"]) for key in gone]
    puts = [
        build_put(resource, after)
        for resource in after.resources
        if not _is_same(lowered(resource["id"]), resource, earlier, before, after)
    ]
    return (*deletes, *puts)


def list_other_differences(before: Snapshot, after: Snapshot) -> Iterator[Problem]:
    """Yield warnings for differences between two states that are not changes of a resource."""
    for collection in _COLLECTIONS:
        if getattr(before, collection) != getattr(after, collection):
            message = f"the `{collection}` differ from those of the earlier state, which apply"
            yield Problem(level="warning", message=message)


def _is_same(key: str, resource: JsonObject, earlier: dict[str, JsonObject], before: Snapshot, after: Snapshot) -> bool:
    if earlier.get(key) != resource:
        return False
    return before.unreadable.get(key) == after.unreadable.get(key) and before.carried.get(key) == after.carried.get(key)
