"""Minimum hitting sets, compared with trying every set."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from policyeng.verify.satisfiability.search import find_smallest_hitting_sets, minimal

FAMILIES = st.lists(st.frozensets(st.sampled_from("abcdefg"), max_size=4), max_size=9)


def by_trying(family: list[frozenset[str]]) -> list[frozenset[str]]:
    """Every set of the least size that meets all sets of a family."""
    members = sorted({member for entry in family for member in entry})
    for size in range(len(members) + 1):
        found = [frozenset(taken) for taken in combinations(members, size) if all(map(set(taken).intersection, family))]
        if found:
            return found
    return []


@given(FAMILIES)
def test_the_smallest_hitting_sets_are_those_that_trying_finds(family: list[frozenset[str]]) -> None:
    """All of them, in order, and none where a set is empty."""
    assert find_smallest_hitting_sets(family) == by_trying(family)


@given(FAMILIES)
def test_what_hits_the_minimal_sets_hits_them_all(family: list[frozenset[str]]) -> None:
    """Minimal sets lie in no other, and every set of the family contains one."""
    kept = minimal(family)

    assert all(any(one <= entry for one in kept) for entry in family)
    assert not any(one < other for one in kept for other in kept)
    assert set(kept) <= set(family)


def test_every_set_needs_another_member() -> None:
    """Three sets without a common member need three."""
    assert find_smallest_hitting_sets([frozenset("a"), frozenset("bc"), frozenset("d")]) == [
        frozenset("abd"),
        frozenset("acd"),
    ]
