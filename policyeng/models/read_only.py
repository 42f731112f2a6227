"""JSON values that cannot be changed, for code that shares them: dictionaries and lists whose mutators raise.

They are subclasses of `dict` and `list`, so that reading them costs what it always does, and whatever takes a
dictionary or a list takes them. Copies (`dict(x)`, `list(x)`, `x.copy()`, `copy.deepcopy(x)`, slices) can be changed.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, ValuesView
from math import isfinite
from types import NoneType
from typing import Any, NoReturn, TypeVar, cast

from policyeng.models.base import JsonObject

_Value = TypeVar("_Value")
#: The scalar types of JSON, except for floats.
_SCALARS = frozenset((str, int, bool, NoneType))


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

    Its owner may change it with the methods of `dict`: readers still see the keys in order.
    """

    __slots__ = ()

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(dict.keys(self)))

    def __reversed__(self) -> Iterator[str]:
        return iter(sorted(dict.keys(self), reverse=True))

    #: The keys in any order.
    known_keys = dict.keys

    def keys(self) -> KeysView[str]:  # type: ignore[override]  # a separate class would add nothing
        """Return the keys, sorted."""
        return KeysView(self)

    def values(self) -> ValuesView[object]:  # type: ignore[override]  # as `keys`
        """Return the values in the order of their keys."""
        return ValuesView(self)

    def items(self) -> ItemsView[str, object]:  # type: ignore[override]  # as `keys`
        """Return the members in the order of their keys."""
        return ItemsView(self)

    def copy(self) -> JsonObject:
        """Return a copy that can be changed."""
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


def read_only(value: _Value, *, strictly: bool = False) -> _Value:
    """Return a JSON value whose objects and lists, at every depth, cannot be changed; what is so already stays.

    Args:
        value: the value, of which keys are strings.
        strictly: refuse what no JSON parser gives.

    Raises:
        TypeError: the value has a part that is not of the types that a JSON parser gives.
    """
    plain: Any = value
    made: Any
    if type(value) is dict:
        made, members = ReadOnlyDict(plain), plain.items()
    elif type(value) is list:
        made, members = ReadOnlyList(plain), enumerate(plain)
    else:
        if strictly:
            _require_scalar(value)
        return value
    put = dict.__setitem__ if type(value) is dict else list.__setitem__
    for key, member in members:
        kind = type(member)
        if kind is dict or kind is list:
            put(made, key, read_only(member, strictly=strictly))
        elif strictly and kind not in _SCALARS:
            _require_scalar(member)
    return cast(_Value, made)


def _require_scalar(value: object) -> None:
    if type(value) not in _SCALARS and not (type(value) is float and isfinite(value)):
        raise TypeError(f"{type(value).__name__} is not what a JSON parser gives")


def plain_copy(value: object) -> object:
    """Return a JSON value that can be changed, at every depth."""
    if isinstance(value, dict):
        return {key: plain_copy(member) for key, member in value.items()}
    if isinstance(value, list):
        return [plain_copy(member) for member in value]
    return value
