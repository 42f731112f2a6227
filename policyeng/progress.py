"""Reports of how far a long run is, to a listener: the command line on a terminal, otherwise none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

_T = TypeVar("_T")
#: Receives the number of items done, and the number of all items, or 0 if it is not known.
Listener = Callable[[int, int], None]
_listeners: list[Listener] = []


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Call a function with the progress of the work inside the block; of nested counts, only the outermost reports."""
    before, _listeners[:] = list(_listeners), [listener]
    try:
        yield
    finally:
        _listeners[:] = before


def counted(items: Iterable[_T], total: int = 0) -> Iterable[_T]:
    """Return the items, and report the number of those that are done; without a listener, at no cost.

    Args:
        items: what a loop works on.
        total: their number, if it is known.
    """
    return _report(items, total, _listeners.pop()) if _listeners else items


def _report(items: Iterable[_T], total: int, listener: Listener) -> Iterator[_T]:
    try:
        for done, item in enumerate(items):
            listener(done, total)
            yield item
    finally:
        _listeners.append(listener)
