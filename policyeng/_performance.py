"""Disabling of garbage collection where many objects and no cycles are created."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

_T = TypeVar("_T")


class IdentityKey(Generic[_T]):
    """An object as a key that is equal to itself alone; it is held, so that nothing else can come to its address."""

    __slots__ = ("held",)

    def __init__(self, held: _T) -> None:
        self.held = held

    def __hash__(self) -> int:
        return id(self.held)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdentityKey) and self.held is other.held


@contextmanager
def uncollected() -> Iterator[None]:
    """No collection while this is open; each would walk through the whole snapshot and find nothing.

    What several threads hold back is given free by the first that ends, which costs time and nothing else.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
