"""Application of each `azapi_update_resource` to the resource that it updates.

If that resource is unknown, the updated fields are unreadable in every resource that it can be.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from policyeng.models import Carried, JsonObject, lowered
from policyeng.sources.arm_resource import is_placeholder
from policyeng.sources.parsed import Placed
from policyeng.sources.terraform.azapi import list_leaves, without_places
from policyeng.sources.terraform.instances import Instance
from policyeng.sources.terraform.resolution import ResolvedInstances

_OWN = ("/id", "/type", "/name")


class Update(NamedTuple):
    """An `azapi_update_resource` and the part of a resource that it sets."""

    instance: Instance
    part: Placed


class Updated(NamedTuple):
    """The updated resources, and the updates of resources that are not in the document."""

    whole: list[Placed]
    parts: list[Placed]


def updated(estate: ResolvedInstances, every: Iterable[Placed], updates: Iterable[Update]) -> Updated:
    """Apply updates to their resources; ambiguous updates come last."""
    all_placed = list(every)
    count = len(all_placed)
    places: dict[str, dict[str, list[int]]] = {}
    for at, one in enumerate(all_placed):
        _record_place(places, one, at)
    aims = [(update, estate.is_aimed(update.instance)) for update in updates]
    for update, aimed in sorted(aims, key=lambda pair: not pair[1]):
        same_type, key = places.get(lowered(update.part.resource["type"]), {}), lowered(update.part.resource["id"])
        exact = same_type.get(key, ()) if aimed else ()
        for at in exact:
            all_placed[at] = _over(all_placed[at], update.part)
        possible = [at for one, indexes in same_type.items() if not aimed or _may_be(one, key) for at in indexes]
        for at in () if exact else possible:
            all_placed[at] = _remove_ambiguous(all_placed[at], update, _why(update, aimed=aimed))
        if not exact and not (possible and _is_within(estate, update.instance)):
            _record_place(places, update.part, len(all_placed))
            all_placed.append(update.part)
    return Updated(all_placed[:count], all_placed[count:])


def _is_within(estate: ResolvedInstances, update: Instance) -> bool:
    """Check whether the `resource_id` of an update comes only from managed resources of its type."""
    found = estate.configuration.sources(update, "/resource_id")
    wanted = lowered(estate.arm_type(update))
    ours = (not one.is_data and lowered(estate.arm_type(one)) == wanted for one in found.instances)
    return found.whole and bool(found.instances) and all(ours)


def _record_place(places: dict[str, dict[str, list[int]]], placed: Placed, at: int) -> None:
    """Record the place of a resource by its type, then by its id."""
    ids = places.setdefault(lowered(placed.resource["type"]), {})
    ids.setdefault(lowered(placed.resource["id"]), []).append(at)


def _why(update: Update, *, aimed: bool) -> str:
    setting = f"`{update.instance.address}` may set it"
    if aimed:
        return f"{setting}: it updates `{update.part.resource['id']}`, which may be this resource; pass `--scope`"
    return f"{setting}: the resource that it updates is known only after apply; check the state after apply, too"


def _may_be(one: str, other: str) -> bool:
    """Check whether two ids in lower case can be equal once all of their names are known."""
    pairs = list(zip(ours := one.split("/"), theirs := other.split("/"), strict=False))
    open_still = (left == right or is_placeholder(left) or is_placeholder(right) for left, right in pairs)
    return len(ours) == len(theirs) and all(open_still)


def _remove_ambiguous(placed: Placed, update: Update, why: str) -> Placed:
    """Return the resource without the fields that an ambiguous update sets."""
    touched = dict.fromkeys((*_set(update.part), *_unread(update.part)), why)
    return placed._replace(
        resource=without_places(placed.resource, touched),
        unreadable={**placed.unreadable, **touched},
    )


def _over(placed: Placed, update: Placed) -> Placed:
    settings = {key: value for key, value in update.resource.items() if f"/{key}" not in _OWN}
    places = tuple(_set(update))
    unreadable = {
        at: why for at, why in placed.unreadable.items() if not any(f"{at}/".startswith(f"{one}/") for one in places)
    }
    carried = placed.carried
    if carried is not None and update.carried is not None:
        carried = Carried(pointers=(*carried.pointers, *places), reason=carried.reason)
    unknown = _unread(update)
    return placed._replace(
        resource=without_places(_merged(placed.resource, settings), unknown),
        unreadable={**unreadable, **unknown},
        carried=carried,
        fields={**placed.fields, **{one: _find_place(update.fields, one) for one in places}},
    )


def _set(update: Placed) -> Iterator[str]:
    """Yield the pointers that an update sets; an empty object changes nothing."""
    settings = {key: value for key, value in update.resource.items() if f"/{key}" not in _OWN}
    return list_leaves(settings, empty=False)


def _unread(update: Placed) -> dict[str, str]:
    """Return by pointer why values of an update cannot be read."""
    return {at: why for at, why in update.unreadable.items() if at not in _OWN}


def _find_place(fields: Mapping[str, str], pointer: str) -> str:
    """Return the place of a pointer in the document, by its nearest parent in `fields`."""
    above = pointer
    while above not in fields and above:
        above = above.rpartition("/")[0]
    return fields.get(above, "") + pointer[len(above) :]


def _merged(base: JsonObject, over: JsonObject) -> JsonObject:
    merged = dict(base)
    for key, value in over.items():
        held = merged.get(key)
        merged[key] = _merged(held, value) if isinstance(held, dict) and isinstance(value, dict) else value
    return merged
