"""A resource that notes what of it is read, so that no writer passes something over in silence."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import TYPE_CHECKING

from policyeng.models import JsonObject

if TYPE_CHECKING:  # what `dict.items` gives has no public name
    from _collections_abc import dict_items


class Noting(dict[str, object]):
    """An object that adds the place of every member which is read to a set; a list counts as one value."""

    def __init__(self, value: JsonObject, place: str, read: set[str]) -> None:
        super().__init__({key: _noting(inner, f"{place}/{key}", read) for key, inner in value.items()})
        self._place, self._read = place, read

    def __getitem__(self, key: str) -> object:
        self._read.add(f"{self._place}/{key}")
        return super().__getitem__(key)

    def get(self, key: str, default: object = None) -> object:
        """The member, which is read thereby."""
        self._read.add(f"{self._place}/{key}")
        return super().get(key, default)

    def items(self) -> dict_items[str, object]:
        """All members, which are read thereby."""
        self._read.update(f"{self._place}/{key}" for key in self)
        return super().items()

    def __deepcopy__(self, memo: dict[int, object]) -> JsonObject:
        return {key: deepcopy(inner, memo) for key, inner in self.items()}


def passed_over(resource: JsonObject, read: set[str]) -> list[str]:
    """The places of values that were not read."""
    return [place for place in _places(resource, "") if place not in read]


def _noting(value: object, place: str, read: set[str]) -> object:
    if isinstance(value, list):
        return [_noting(inner, place, read) if isinstance(inner, dict) else inner for inner in value]
    return Noting(value, place, read) if isinstance(value, dict) else value


def _places(value: object, place: str) -> Iterator[str]:
    """The places of values that are no objects, and empty ones; members of the objects of a list count as one's."""
    objects = [value] if isinstance(value, dict) else value if isinstance(value, list) else []
    members = [(key, inner) for each in objects if isinstance(each, dict) for key, inner in each.items()]
    if not members:
        yield place
    for key, inner in members:
        yield from _places(inner, f"{place}/{key}")
