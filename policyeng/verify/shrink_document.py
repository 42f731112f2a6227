"""Shrink a JSON document while a property of it remains true, by delta debugging; every run takes the same steps.

After A. Zeller, R. Hildebrandt, "Simplifying and Isolating Failure-Inducing Input" (2002): remove half of the
members of a list or object, then quarters, down to single ones; then continue with the remaining members.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from policyeng.verify.generators.json_mutations import Json, Place, copied, put_value, value_in

#: The plainest values, tried in this order at each place.
_PLAIN: tuple[Json, ...] = (None, {}, [], "", "a", 0, 1, True, False)


class _Spent(Exception):  # noqa: N818  # not an error: the trials are used up
    pass


class _Trials:
    """The predicate for smaller documents, with a limit on its calls."""

    def __init__(self, holds: Callable[[Json], bool], most: int) -> None:
        self._holds = holds
        self._left = most

    def holds(self, document: Json) -> bool:
        """Call the predicate.

        Raises:
            _Spent: the limit is reached.
        """
        if self._left == 0:
            raise _Spent
        self._left -= 1
        return self._holds(document)


def shrink(document: Json, holds: Callable[[Json], bool], *, most: int = 3000, plainer: bool = True) -> Json:
    """Return the smallest document found for which `holds` is true; it must be true for the given document.

    Args:
        document: any JSON; it does not change.
        holds: the predicate for smaller documents; the result must depend on nothing else.
        most: the maximum number of calls.
        plainer: also write plainer values; otherwise every remaining value is an original one.
    """
    trials = _Trials(holds, most)
    smallest = [copied(document)]
    try:
        before: Json = object  # type: ignore[assignment]  # equal to no document
        while before != smallest[0]:
            before = copied(smallest[0])
            _pass(smallest, trials, plainer=plainer)
    except _Spent:
        pass
    return smallest[0]


def _pass(smallest: list[Json], trials: _Trials, *, plainer: bool) -> None:
    """Go through the document from the top, removing members and optionally writing plainer values."""
    waiting: list[Place] = [()]
    while waiting:
        place = waiting.pop(0)
        _remove_members(smallest, place, trials)
        value_here = value_in(smallest[0], place)
        for key in _keys(value_here):
            below = (*place, key)
            if not (plainer and _write_plainer(smallest, below, trials)):
                waiting.append(below)


def _keys(value: Json) -> list[str] | list[int]:
    if isinstance(value, dict):
        return sorted(value)
    return list(range(len(value))) if isinstance(value, list) else []


def _remove_members(smallest: list[Json], place: Place, trials: _Trials) -> None:
    value_here = value_in(smallest[0], place)
    size = len(_keys(value_here))
    while size >= 1:
        size = (size + 1) // 2
        removed = False
        for part in _parts(value_in(smallest[0], place), size):
            removed |= _try_without(smallest, place, part, trials)
        if size == 1 and not removed:
            return


def _parts(value_here: Json, size: int) -> Iterator[list[str | int]]:
    """Yield the keys in runs of a size, the last run first, because positions before it stay valid."""
    keys: list[str | int] = list(_keys(value_here))
    for start in reversed(range(0, len(keys), size)):
        yield keys[start : start + size]


def _try_without(smallest: list[Json], place: Place, part: Sequence[str | int], trials: _Trials) -> bool:
    value_here = value_in(smallest[0], place)
    if isinstance(value_here, dict):
        fewer: Json = {key: value for key, value in value_here.items() if key not in part}
    elif isinstance(value_here, list):
        fewer = [value for position, value in enumerate(value_here) if position not in part]
    else:
        return False
    return _try_value(smallest, place, fewer, trials)


def _write_plainer(smallest: list[Json], place: Place, trials: _Trials) -> bool:
    """Write a plainer value at a place if possible; return whether nothing remains to do below it."""
    value_here = value_in(smallest[0], place)
    for plain in _PLAIN:
        if _same(plain, value_here):
            return True
        if _try_value(smallest, place, plain, trials):
            return True
    if isinstance(value_here, str):
        _shorten(smallest, place, trials)
    return not isinstance(value_here, dict | list)


def _same(left: Json, right: Json) -> bool:
    return type(left) is type(right) and left == right


def _shorten(smallest: list[Json], place: Place, trials: _Trials) -> None:
    """Cut runs of characters from a text."""
    value_here = value_in(smallest[0], place)
    size = len(value_here) if isinstance(value_here, str) else 0
    while size > 1:
        size //= 2
        start = 0
        while isinstance(value_here, str) and start < len(value_here):
            if not _try_value(smallest, place, value_here[:start] + value_here[start + size :], trials):
                start += size
            value_here = value_in(smallest[0], place)


def _try_value(smallest: list[Json], place: Place, value: Json, trials: _Trials) -> bool:
    candidate = value if not place else copied(smallest[0])
    if place:
        put_value(candidate, place, copied(value))
    if not trials.holds(candidate):
        return False
    smallest[0] = candidate
    return True
