"""JSON values that cannot be changed, for code that shares them: dictionaries and lists whose mutators raise.

They are subclasses of `dict` and `list`, so that reading them costs what it always does, and whatever takes a
dictionary or a list takes them. Copies (`dict(x)`, `list(x)`, `x.copy()`, `copy.deepcopy(x)`, slices) can be changed.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, ValuesView
from typing import Any, NoReturn, TypeVar, cast

from policyeng.models.base import JsonObject

_Value = TypeVar("_Value")


def _refuse(self: object, *_: object, **__: object) -> NoReturn:
    """Raise for every method that would change the value."""
    kind = "object" if isinstance(self, dict) else "list"
    raise TypeError(f"the input of policies is read-only: change a copy of the {kind}, such as copy.deepcopy() gives")


class ReadOnlyDict(dict[str, Any]):
    """A JSON object that cannot be changed."""

    __slots__ = ()

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __copy__(self) -> JsonObject:
        return dict(self)

    def __deepcopy__(self, memo: dict[int, object]) -> JsonObject:
        return {key: plain_copy(value) for key, value in self.items()}

    def __reduce__(self) -> tuple[type[ReadOnlyDict], tuple[JsonObject]]:
        return ReadOnlyDict, (dict(self),)  # by default, unpickling would set the items one by one


class SortedDict(ReadOnlyDict):
    """A JSON object that cannot be changed, with its members in the order of their keys.

    Who holds it may change it with the methods of `dict`: readers see the order of the keys all the same.
    """

    __slots__ = ()

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(dict.keys(self)))

    def __reversed__(self) -> Iterator[str]:
        return iter(sorted(dict.keys(self), reverse=True))

    #: The keys in any order.
    known_keys = dict.keys

    def keys(self) -> KeysView[str]:  # type: ignore[override]  # a class of its own would say no more
        """The keys, sorted."""
        return KeysView(self)

    def values(self) -> ValuesView[object]:  # type: ignore[override]  # as `keys`
        """The values in the order of their keys."""
        return ValuesView(self)

    def items(self) -> ItemsView[str, object]:  # type: ignore[override]  # as `keys`
        """The members in the order of their keys."""
        return ItemsView(self)

    def copy(self) -> JsonObject:
        """A copy that can be changed."""
        return dict(self)

    def __copy__(self) -> JsonObject:
        return dict(self)

    def __or__(self, other: JsonObject) -> JsonObject:  # type: ignore[override]  # as of plain objects
        return dict(self) | dict(other)

    def __ror__(self, other: JsonObject) -> JsonObject:  # type: ignore[override]  # as `__or__`
        return dict(other) | dict(self)

    def __repr__(self) -> str:
        return repr(dict(self))


class ReadOnlyList(list[Any]):
    """A JSON list that cannot be changed."""

    __slots__ = ()

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __copy__(self) -> list[object]:
        return list(self)

    def __deepcopy__(self, memo: dict[int, object]) -> list[object]:
        return [plain_copy(value) for value in self]

    def __reduce__(self) -> tuple[type[ReadOnlyList], tuple[list[object]]]:
        return ReadOnlyList, (list(self),)


def read_only(value: _Value) -> _Value:
    """Return a JSON value whose objects and lists, at every depth, cannot be changed; what is so already stays."""
    plain: Any = value
    made: Any = value
    if type(value) is dict:
        made = ReadOnlyDict(plain)
        for key, member in plain.items():
            if type(member) is dict or type(member) is list:
                dict.__setitem__(made, key, read_only(member))
    elif type(value) is list:
        made = ReadOnlyList(plain)
        for index, member in enumerate(plain):
            if type(member) is dict or type(member) is list:
                list.__setitem__(made, index, read_only(member))
    return cast(_Value, made)


def plain_copy(value: object) -> object:
    """Return a JSON value that can be changed, at every depth."""
    if isinstance(value, dict):
        return {key: plain_copy(member) for key, member in value.items()}
    if isinstance(value, list):
        return [plain_copy(member) for member in value]
    return value
