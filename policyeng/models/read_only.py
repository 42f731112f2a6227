"""JSON values that cannot be changed, for code that shares them: dictionaries and lists whose mutators raise.

They are subclasses of `dict` and `list`, so that reading them costs what it always does, and whatever takes a
dictionary or a list takes them. Copies (`dict(x)`, `list(x)`, `x.copy()`, `copy.deepcopy(x)`, slices) can be changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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


def with_members(
    value: Mapping[str, object], changed: Mapping[str, object], removed: Iterable[str] = ()
) -> ReadOnlyDict:
    """Return a read-only copy of an object with other members."""
    made = ReadOnlyDict(value)
    dict.update(made, changed)
    for key in removed:
        dict.pop(made, key, None)
    return made


def plain_copy(value: object) -> object:
    """Return a JSON value that can be changed, at every depth."""
    if isinstance(value, dict):
        return {key: plain_copy(member) for key, member in value.items()}
    if isinstance(value, list):
        return [plain_copy(member) for member in value]
    return value
