"""Make a JSON document small while something about it stays so: delta debugging, the same steps on every run.

After A. Zeller, R. Hildebrandt, "Simplifying and Isolating Failure-Inducing Input" (2002): take away half of the
members of a list or object, then quarters, down to single ones; then go into what is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from policyeng.verify.generators.json_mutations import Json, Place, copied, put, value_in

#: Values that say least, tried in this order for whatever stands at a place.
_PLAIN: tuple[Json, ...] = (None, {}, [], "", "a", 0, 1, True, False)


class _Spent(Exception):  # noqa: N818  # no error: the trials are used up
    pass


class _Trials:
    """The question asked of every smaller document, a bounded number of times."""

    def __init__(self, holds: Callable[[Json], bool], most: int) -> None:
        self._holds = holds
        self._left = most

    def holds(self, document: Json) -> bool:
        """Ask.

        Raises:
            _Spent: it was asked often enough.
        """
        if self._left == 0:
            raise _Spent
        self._left -= 1
        return self._holds(document)


def shrunk(document: Json, holds: Callable[[Json], bool], *, most: int = 3000, plainer: bool = True) -> Json:
    """The smallest document found for which `holds` stays true; it must be true of the document given.

    Args:
        document: any JSON; it is not changed.
        holds: asked of ever smaller documents; the answer must depend on nothing else.
        most: how often it is asked.
        plainer: write plainer values, too; without it every value that is left is one that was there.
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
    """Go through the document from the top, removing members and, if it shall be, writing plainer values."""
    waiting: list[Place] = [()]
    while waiting:
        place = waiting.pop(0)
        _fewer_members(smallest, place, trials)
        held = value_in(smallest[0], place)
        for key in _keys(held):
            below = (*place, key)
            if not (plainer and _plainer(smallest, below, trials)):
                waiting.append(below)


def _keys(value: Json) -> list[str] | list[int]:
    if isinstance(value, dict):
        return sorted(value)
    return list(range(len(value))) if isinstance(value, list) else []


def _fewer_members(smallest: list[Json], place: Place, trials: _Trials) -> None:
    held = value_in(smallest[0], place)
    size = len(_keys(held))
    while size >= 1:
        size = (size + 1) // 2
        removed = False
        for part in _parts(value_in(smallest[0], place), size):
            removed |= _taken(smallest, place, part, trials)
        if size == 1 and not removed:
            return


def _parts(held: Json, size: int) -> Iterator[list[str | int]]:
    """The keys in runs of a size, the last run first, so that positions in front of it stay what they are."""
    keys: list[str | int] = list(_keys(held))
    for start in reversed(range(0, len(keys), size)):
        yield keys[start : start + size]


def _taken(smallest: list[Json], place: Place, part: Sequence[str | int], trials: _Trials) -> bool:
    held = value_in(smallest[0], place)
    if isinstance(held, dict):
        fewer: Json = {key: value for key, value in held.items() if key not in part}
    elif isinstance(held, list):
        fewer = [value for position, value in enumerate(held) if position not in part]
    else:
        return False
    return _tried(smallest, place, fewer, trials)


def _plainer(smallest: list[Json], place: Place, trials: _Trials) -> bool:
    """Write a plainer value at a place, if one will do; whether nothing is left to do below it."""
    held = value_in(smallest[0], place)
    for plain in _PLAIN:
        if _same(plain, held):
            return True
        if _tried(smallest, place, plain, trials):
            return True
    if isinstance(held, str):
        _shorter(smallest, place, trials)
    return not isinstance(held, dict | list)


def _same(left: Json, right: Json) -> bool:
    return type(left) is type(right) and left == right


def _shorter(smallest: list[Json], place: Place, trials: _Trials) -> None:
    """Cut runs of letters out of a text."""
    held = value_in(smallest[0], place)
    size = len(held) if isinstance(held, str) else 0
    while size > 1:
        size //= 2
        start = 0
        while isinstance(held, str) and start < len(held):
            if not _tried(smallest, place, held[:start] + held[start + size :], trials):
                start += size
            held = value_in(smallest[0], place)


def _tried(smallest: list[Json], place: Place, value: Json, trials: _Trials) -> bool:
    candidate = value if not place else copied(smallest[0])
    if place:
        put(candidate, place, copied(value))
    if not trials.holds(candidate):
        return False
    smallest[0] = candidate
    return True
