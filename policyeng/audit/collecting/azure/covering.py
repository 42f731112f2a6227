"""Which lists of resources were read whole, in as few entries as state it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from policyeng.audit.collecting.azure.kinds import INSIDE, NETWORKS, SUBNETS
from policyeng.facts.coverage import LISTED
from policyeng.facts.ids import segments
from policyeng.models import JsonObject, lowered

#: The segments of an id in lower case.
_Place = tuple[str, ...]
#: Types and ids, as they were asked for.
Lists = Iterable[tuple[str, str]]


def find_covered(asked: Lists, lacking: Lists, resources: Iterable[JsonObject]) -> list[str]:
    """Return entries `TYPE at ID` for the lists that were read whole, sorted.

    What was listed for each resource of a list that was read whole is stated once, for the scope of that list.

    Args:
        asked: the lists that were asked for.
        lacking: those of which not all is there.
        resources: all that was read.
    """
    asked = sorted(asked, reverse=True)
    scopes = {(lowered(kind), place): scope for kind, scope in asked if (place := segments(scope)) is not None}
    holes = {(lowered(kind), place) for kind, scope in lacking if (place := segments(scope)) is not None}
    around = {(kind, above) for kind, place in holes for above in _above(place)}
    covered: dict[str, set[_Place]] = {}
    for folded, place in scopes:
        if (folded, place) not in around and not any((folded, above) in holes for above in _above(place)):
            covered.setdefault(folded, set()).add(place)
    parents = _by_type(resources)
    for folded in map(lowered, INSIDE):
        outer = folded.rpartition("/")[0]
        read = covered.setdefault(folded, set())
        unread = {above for one in parents.get(outer, ()) if one not in read for above in _above(one)}
        read |= covered.get(outer, set()) - unread
    covered[lowered(SUBNETS)] = covered.get(lowered(NETWORKS), set())
    ids = {place: scope for (_, place), scope in scopes.items()}
    kinds = {lowered(kind): kind for kind in (*(kind for kind, _ in asked), *INSIDE, *LISTED)}
    return sorted(
        f"{kinds[folded]} at {ids[place]}"
        for folded, places in covered.items()
        for place in places
        if not any(above in places for above in _above(place) if above != place)
    )


def _by_type(resources: Iterable[JsonObject]) -> Mapping[str, list[_Place]]:
    found: dict[str, list[_Place]] = {}
    for one in resources:
        if (place := segments(one["id"])) is not None:
            found.setdefault(lowered(one["type"]), []).append(place)
    return found


def _above(place: _Place) -> Iterator[_Place]:
    """Yield a place and all that it lies in."""
    return (place[:depth] for depth in range(len(place) + 1))
