"""The smallest sets of what differs that undo something together."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import combinations
from math import comb
from typing import TypeVar

_Unit = TypeVar("_Unit", bound=Hashable)

#: How many sets are tried before a set is taken of which nothing can be left out, though another may be smaller.
MOST = 96


def smallest(
    units: Sequence[_Unit], undoes: Callable[[frozenset[_Unit]], bool], most: int = MOST
) -> list[frozenset[_Unit]]:
    """Every set of the smallest size that undoes, in the order of the units.

    Args:
        units: what differs; all together undo.
        undoes: whether a set does; the answer is the same each time.
        most: how many sets may be tried. Where that is too few, one set is given that is not surely the smallest:
            it undoes, and without any one of its members it does not.
    """
    tried = 0
    for size in range(1, len(units)):
        tried += comb(len(units), size)
        if tried > most:
            return [_shrunk(frozenset(units), units, undoes)]
        found = [chosen for chosen in map(frozenset, combinations(units, size)) if undoes(chosen)]
        if found:
            return found
    return [frozenset(units)]


def _shrunk(
    whole: frozenset[_Unit], units: Sequence[_Unit], undoes: Callable[[frozenset[_Unit]], bool]
) -> frozenset[_Unit]:
    """A set without what can be left out: halves first, then quarters, down to each member alone.

    Source: Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002 (ddmin, complements).
    """
    kept = [unit for unit in units if unit in whole]
    size = len(kept)
    while size:
        size = max(size // 2, 1)
        before, at = len(kept), 0
        while at < len(kept):
            fewer = kept[:at] + kept[at + size :]
            if fewer and undoes(frozenset(fewer)):
                kept = fewer
            else:
                at += size
        if size == 1 and len(kept) == before:
            break
    return frozenset(kept)
