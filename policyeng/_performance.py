"""Disabling of garbage collection where many objects and no cycles are created."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

_T = TypeVar("_T")


class IdentityKey(Generic[_T]):
    """An object as a key that is equal to itself alone; the key keeps it alive, so its address stays its own."""

    __slots__ = ("value",)

    def __init__(self, value: _T) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdentityKey) and self.value is other.value


@contextmanager
def uncollected() -> Iterator[None]:
    """No collection while this is open; each would walk through the whole snapshot and find nothing.

    If several threads use this, the first that ends enables collection again, which costs only time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
