"""Keys of caches by what an object is, where comparing two of them takes longer than what is kept."""

from __future__ import annotations

from typing import Generic, TypeVar

_T = TypeVar("_T")


class This(Generic[_T]):
    """An object as a key that is equal to itself alone; it is held, so that nothing else can come to its address."""

    __slots__ = ("held",)

    def __init__(self, held: _T) -> None:
        self.held = held

    def __hash__(self) -> int:
        return id(self.held)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, This) and self.held is other.held
