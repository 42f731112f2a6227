"""Dataclasses without code that is made for each of them.

`dataclasses.dataclass` compiles six functions for a class, which takes a millisecond: a short run loads a hundred
classes. Here the functions are the same for all. `fields` and `replace` of the standard library, pydantic and mypy take
these classes for dataclasses, and they are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform, overload

_T = TypeVar("_T", bound=type)
#: What a class keeps for the functions that all classes share.
_COMPARED, _SHOWN = "_compared", "_shown"


@overload
def frozen(cls: _T, /) -> _T: ...


@overload
def frozen(*, kw_only: bool = False) -> Callable[[_T], _T]: ...


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type | None = None, /, *, kw_only: bool = False) -> Any:
    """Make a dataclass whose instances do not change."""
    return (lambda given: _made(given, kw_only, is_frozen=True)) if cls is None else _made(cls, kw_only, is_frozen=True)


@dataclass_transform(field_specifiers=(field,))
def changing(cls: _T) -> _T:
    """Make a dataclass whose instances may change."""
    return _made(cls, kw_only=False, is_frozen=False)


def _made(cls: _T, kw_only: bool, *, is_frozen: bool) -> _T:
    made: Any = dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(cls)
    fields = made.__dataclass_fields__.values()
    compared = [entry.name for entry in fields if entry.compare]
    own = {
        "__init__": _init_of(made, fields),
        "__repr__": _repr,
        "__eq__": _eq,
        "__hash__": _hash if is_frozen else None,
        _COMPARED: attrgetter(*compared) if compared else _nothing,
        _SHOWN: [entry.name for entry in fields if entry.repr],
    }
    if is_frozen:
        own |= {"__setattr__": _refuse_set, "__delattr__": _refuse_delete}
    written = vars(cls)
    for name, value in own.items():
        if name not in written or (name == "__hash__" and "__eq__" not in written):
            setattr(made, name, value)
    found: _T = made
    return found


def _init_of(cls: type, fields: Collection[Field[Any]]) -> Callable[..., None]:
    names = frozenset(entry.name for entry in fields)
    given_names = frozenset(entry.name for entry in fields if entry.init)
    positional = [entry.name for entry in fields if entry.init and not entry.kw_only]
    defaults = {entry.name: entry.default for entry in fields if entry.default is not MISSING}
    factories = [(entry.name, entry.default_factory) for entry in fields if entry.default_factory is not MISSING]
    finish = getattr(cls, "__post_init__", None)

    def __init__(self: object, *values: object, **given: object) -> None:  # noqa: N807  # the method of a class
        found: dict[str, object] = given
        if len(values) == len(names) == len(positional) and not given:
            found = dict(zip(positional, values, strict=False))
        elif values:
            found = dict(zip(positional, values, strict=False))
            if len(found) < len(values) or (given and not given.keys().isdisjoint(found)):
                raise TypeError(_misfit(cls, values, given, positional))
            found.update(given)
        if len(found) != len(names):
            if not found.keys() <= given_names:
                raise TypeError(_misfit(cls, values, given, positional))
            found = defaults | found
            for name, make in factories:
                if name not in found:
                    found[name] = make()
        if found.keys() != names:
            raise TypeError(_misfit(cls, values, given, positional))
        _set(self, "__dict__", found)
        if finish is not None:
            finish(self)

    return __init__


_set = object.__setattr__


def _misfit(cls: type, values: tuple[object, ...], given: Mapping[str, object], positional: Sequence[str]) -> str:
    """Return why arguments are not those of a class."""
    fields = dataclasses.fields(cls)
    if len(values) > len(positional):
        return f"{cls.__name__} takes {len(positional)} arguments without names, and was given {len(values)}"
    twice = [name for name in positional[: len(values)] if name in given and name in given]
    unknown = given.keys() - {entry.name for entry in fields if entry.init}
    if unknown:
        return f"{cls.__name__} takes no argument `{min(unknown)}`"
    needed = [entry.name for entry in fields if entry.default is MISSING and entry.default_factory is MISSING]
    missing = [name for name in needed if name not in given and name not in positional[: len(values)]]
    if missing:
        return f"{cls.__name__} lacks the argument `{missing[0]}`"
    return f"{cls.__name__} was given the argument `{twice[0] if twice else ''}` twice"


def _repr(self: object) -> str:
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in getattr(type(self), _SHOWN))
    return f"{type(self).__qualname__}({shown})"


def _eq(self: object, other: object) -> object:
    if type(other) is not type(self):
        return NotImplemented
    compared: Callable[[object], object] = getattr(type(self), _COMPARED)
    return compared(self) == compared(other)


def _hash(self: object) -> int:
    return hash(getattr(type(self), _COMPARED)(self))


def _nothing(_self: object) -> None:
    """Return what all instances of a class without fields have in common."""


def _refuse_set(_self: object, name: str, _value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(_self: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")
