"""Minimum hitting sets: the smallest sets that meet every set of a family, found exactly by size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def minimal(family: Iterable[frozenset[str]]) -> list[frozenset[str]]:
    """The sets that no other set of the family lies in, the smallest first; what hits these hits them all."""
    kept: list[frozenset[str]] = []
    for entry in sorted(set(family), key=lambda one: (len(one), sorted(one))):
        if not any(smaller <= entry for smaller in kept):
            kept.append(entry)
    return kept


def smallest_hitting_sets(family: Iterable[frozenset[str]]) -> list[frozenset[str]]:
    """All hitting sets of the least size, in the order of their members; none where a set is empty.

    A hitting set contains a member of a set that is not hit yet, so branching on the members of one such set leaves
    none out; a branch ends where as many sets without a common member are left as members may still be taken.
    """
    sets = minimal(family)
    if frozenset() in sets:
        return []
    members = {member for entry in sets for member in entry}
    for size in range(len(members) + 1):
        found = set(_of_size(sets, frozenset(), frozenset(), size))
        if found:
            return sorted(found, key=sorted)
    raise AssertionError("all members together hit every set")


def _of_size(
    sets: list[frozenset[str]], taken: frozenset[str], barred: frozenset[str], left: int
) -> Iterator[frozenset[str]]:
    """The hitting sets that are `taken` and at most `left` members more, none of them `barred`."""
    if not sets:
        yield taken
        return
    if _apart(sets) > left:
        return
    for member in sorted(min(sets, key=len) - barred):
        yield from _of_size([entry for entry in sets if member not in entry], taken | {member}, barred, left - 1)
        barred |= {member}  # the hitting sets with it are all found


def _apart(sets: Iterable[frozenset[str]]) -> int:
    """How many sets at least have no member in common: each of them needs a member of its own."""
    seen: set[str] = set()
    count = 0
    for entry in sets:
        if seen.isdisjoint(entry):
            seen |= entry
            count += 1
    return count
