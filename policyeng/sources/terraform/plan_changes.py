"""The changes of a plan: deletions, updates of resources that others manage, and unchanged resources.

Source: https://developer.hashicorp.com/terraform/internals/json-format (`resource_changes`, `actions`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from policyeng.facts.ids import types_of
from policyeng.models import Change, JsonObject, Operation, lowered
from policyeng.sources.arm_resource import is_placeholder
from policyeng.sources.arm_template import Contents
from policyeng.sources.parsed import Changing, Placed
from policyeng.sources.terraform import embedded_documents
from policyeng.sources.terraform.actions import ACTION, action_of
from policyeng.sources.terraform.converter import FOLDED
from policyeng.sources.terraform.embedded_documents import MANIFESTS, read_manifests
from policyeng.sources.terraform.instances import Instance, instance_of
from policyeng.sources.terraform.related_resources import DEPLOYMENT, DEPLOYS
from policyeng.sources.terraform.resolution import AZAPI, AZAPI_UPDATE, KINDS, ResolvedInstances, objects

_STAYS = (["no-op"], ["read"])
_OWN = ("id", "type", "name")


def deletions(document: JsonObject, estate: ResolvedInstances) -> Iterator[Changing]:
    """Yield the resources that a plan deletes or replaces.

    Resources that ARM nests in others, and `azapi_update_resource`, are not deletions. The provider deletes the
    resources of a template deployment together with it.
    """
    contents = Contents(estate.around.file)
    for index, entry in enumerate(_list(document.get("resource_changes"))):
        before = _before(entry)
        if (
            not isinstance(entry, dict)
            or before is None
            or entry.get("mode") == "data"
            or entry.get("type") == AZAPI_UPDATE
        ):
            continue
        pointer = f"/resource_changes/{index}"
        instance = instance_of(entry, before, pointer, "/change/before")
        identity, arm_type = estate.stated_id(instance), lowered(estate.arm_type(instance))
        if arm_type and arm_type in types_of(identity):
            yield Changing(Change(operation=Operation.DELETE, id=identity), pointer)
        if DEPLOYS.get(instance.type) == DEPLOYMENT:
            deployment = embedded_documents.convert_deployment(estate, instance)
            inner = contents.read(deployment.resource, deployment.unreadable).resources
            ids = [placed.resource["id"] for placed in inner if "/id" not in placed.unreadable]
            yield from (Changing(Change(operation=Operation.DELETE, id=one), pointer) for one in ids)
        if instance.type in MANIFESTS:
            placed, _ = read_manifests([instance], estate.around)
            ids = [each.resource["id"] for each in placed.resources if "/id" not in each.unreadable]
            yield from (Changing(Change(operation=Operation.DELETE, id=one), pointer) for one in ids)


def requested(instances: Iterable[Instance]) -> Iterator[Changing]:
    """Yield the resources that requests of a plan delete."""
    for instance in instances:
        action = action_of(instance) if instance.type == ACTION else None
        if action and action.method == "DELETE" and not action.why:
            yield Changing(Change(operation=Operation.DELETE, id=action.id), instance.pointer)


def updates(parts: Iterable[Placed]) -> Iterator[Changing]:
    """Yield patches of resources that are not in the plan, if their ids are known."""
    for placed in parts:
        if is_placeholder(placed.resource["id"]):
            continue
        patch = {key: value for key, value in placed.resource.items() if key not in _OWN}
        change = Change(
            operation=Operation.PATCH, id=placed.resource["id"], patch=patch, unreadable=dict(placed.unreadable)
        )
        yield Changing(change, placed.pointer)


def unchanged(document: JsonObject, instances: Iterable[Instance], every: Sequence[Placed]) -> frozenset[str]:
    """Return the pointers of the unchanged resources.

    A resource is unchanged if none of its sources has an action or differs before and after. If something changes that
    belongs to an unknown resource, no resource counts as unchanged.
    """
    stay = {str(entry.get("address")) for entry in objects(document.get("resource_changes")) if _is_unchanged(entry)}
    known = (
        one
        for one in instances
        if not one.is_data and (one.type in KINDS or one.type in DEPLOYS or one.type in AZAPI or _is_source(one, every))
    )
    changed = {one.pointer for one in known if one.address not in stay}
    made_of = {placed.pointer: _sources(placed, changed) for placed in every}
    if changed - {pointer for sources in made_of.values() for pointer in sources} or _loses_part(document):
        return frozenset()
    return frozenset(pointer for pointer, sources in made_of.items() if not sources)


def _is_source(instance: Instance, every: Iterable[Placed]) -> bool:
    """Check whether a manifest contains one of the resources; most have none of Azure."""
    return instance.type in MANIFESTS and any(placed.pointer.startswith(f"{instance.pointer}/") for placed in every)


def _is_unchanged(entry: JsonObject) -> bool:
    return _actions(entry) in _STAYS and entry["change"].get("before") == entry["change"].get("after")


def _sources(placed: Placed, changed: Iterable[str]) -> set[str]:
    """Return the changed pointers that a resource is made from."""
    places = [placed.pointer, *placed.fields.values()]
    return {one for one in changed if any(f"{place}/".startswith(f"{one}/") for place in places)}


def _loses_part(document: JsonObject) -> bool:
    """Check whether the plan deletes a nested resource or an update of azapi."""
    gone = (str(entry.get("type")) for entry in objects(document.get("resource_changes")) if _before(entry) is not None)
    return any(
        kind == AZAPI_UPDATE or (kind in KINDS and lowered(KINDS[kind].place.arm_type) in FOLDED) for kind in gone
    )


def _before(entry: object) -> JsonObject | None:
    """Return the attributes of a deleted resource; None if nothing is deleted."""
    if not isinstance(entry, dict) or "delete" not in (_actions(entry) or ()):
        return None
    before = entry["change"].get("before")
    return before if isinstance(before, dict) else None


def _actions(entry: Mapping[str, object]) -> list[object] | None:
    change = entry.get("change")
    actions = change.get("actions") if isinstance(change, dict) else None
    return actions if isinstance(actions, list) else None


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
