"""Dataclasses without generated code.

`dataclasses.dataclass` compiles six functions for a class, which takes a millisecond, and loading it takes ten: a short
run loads a hundred classes. Here the functions are the same for all. The classes are dataclasses for `fields` and
`replace` of the standard library, pydantic and mypy: what describes them to these is made when one of them needs it.
"""

from __future__ import annotations

from _thread import RLock
from collections.abc import Callable, Collection, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform, overload

__all__ = ["Field", "changing", "field", "fields", "frozen", "replace"]

_T = TypeVar("_T", bound=type)
#: What a class keeps for the functions that all classes share.
_COMPARED, _SHOWN, _FIELDS = "_compared", "_shown", "_described_fields"
_STANDARD = "__dataclass_fields__"
_MISSING: Any = object()

if TYPE_CHECKING:
    from dataclasses import Field, field, fields, replace
else:

    class Field:
        """A field as that of the standard library describes it, as far as it is used here."""

        __slots__ = ("compare", "default", "default_factory", "given", "init", "kw_only", "name", "repr")

        def __init__(self, given: Mapping[str, object]) -> None:
            """Take the options."""
            self.given, self.kw_only = given, given.get("kw_only")
            self.default, self.default_factory = given.get("default", _MISSING), given.get("default_factory", _MISSING)
            self.init, self.repr, self.compare = (given.get(name, True) for name in ("init", "repr", "compare"))

    def field(**given: object) -> Field:
        """Describe a field; the options are those of `dataclasses.field`."""
        return Field(given)

    def fields(given: object) -> tuple[Field, ...]:
        """Return the fields of a dataclass or of an instance of one."""
        found = _fields_of(given if isinstance(given, type) else type(given))
        if found is None:
            from dataclasses import fields as standard

            return standard(given)
        return tuple(found.values())

    def replace(given: object, /, **changed: object) -> object:
        """Return the same dataclass with other values for some fields."""
        found = _fields_of(type(given))
        if found is None:
            from dataclasses import replace as standard

            return standard(given, **changed)
        kept = {name: getattr(given, name) for name, entry in found.items() if entry.init and name not in changed}
        return type(given)(**kept, **changed)


def _fields_of(cls: type) -> Mapping[str, Field[object]] | None:
    """Return the fields of a class of this module; None for another dataclass."""
    for base in cls.__mro__:
        if _STANDARD in vars(base):
            return vars(base).get(_FIELDS)
    return None


class _Described:
    """`__dataclass_fields__` of a class until it is first read: then the standard library makes them."""

    def __init__(self, cls: type, given: Mapping[str, Any], kw_only: bool) -> None:
        self._cls, self._given, self._kw_only = cls, given, kw_only

    def __get__(self, _instance: object, _owner: type) -> object:
        with _LOCK:
            if vars(self._cls)[_STANDARD] is self:
                import dataclasses  # most runs never need it

                for name, options in self._given.items():
                    setattr(self._cls, name, dataclasses.field(**options))
                dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=self._kw_only)(self._cls)
        return vars(self._cls)[_STANDARD]


_LOCK = RLock()


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
    described: dict[str, Field[Any]] = {}
    for base in cls.__mro__[-1:0:-1]:
        described |= vars(base).get(_FIELDS, {})
    given: dict[str, Mapping[str, Any]] = {}
    written = dict(vars(cls))
    for name in cls.__annotations__:
        value = written.get(name, _MISSING)
        if type(value).__module__ == "dataclasses":
            raise TypeError(f"`{name}` of {cls.__name__} needs `field` of this module")
        entry = described[name] = value if isinstance(value, Field) else field(default=value)
        entry.name = name
        if entry.kw_only is None:
            entry.kw_only = kw_only
        if type(entry.default).__hash__ is None:
            raise TypeError(f"`{name}` of {cls.__name__} needs a `default_factory`: all would share its default")
        if value is entry:
            given[name] = getattr(entry, "given", {})
            if entry.default is _MISSING:
                delattr(cls, name)
            else:
                setattr(cls, name, entry.default)
    fields_ = described.values()
    compared = [entry.name for entry in fields_ if entry.compare]
    own = {
        "__init__": _init_of(cls, fields_),
        "__repr__": _repr,
        "__eq__": _eq,
        "__hash__": _hash if is_frozen else None,
        "__match_args__": tuple(entry.name for entry in fields_ if entry.init and not entry.kw_only),
        _STANDARD: _Described(cls, given, kw_only),
        _COMPARED: attrgetter(*compared) if compared else _nothing,
        _SHOWN: [entry.name for entry in fields_ if entry.repr],
        _FIELDS: described,
    }
    if is_frozen:
        own |= {"__setattr__": _refuse_set, "__delattr__": _refuse_delete}
    for name, value in own.items():
        if name not in written or (name == "__hash__" and "__eq__" not in written):
            setattr(cls, name, value)
    return cls


def _init_of(cls: type, described: Collection[Field[object]]) -> Callable[..., None]:
    names = frozenset(entry.name for entry in described)
    given_names = frozenset(entry.name for entry in described if entry.init)
    positional = [entry.name for entry in described if entry.init and not entry.kw_only]
    defaults = {entry.name: entry.default for entry in described if entry.default is not _MISSING}
    factories: list[tuple[str, Any]] = [
        (entry.name, entry.default_factory) for entry in described if entry.default_factory is not _MISSING
    ]
    finish = getattr(cls, "__post_init__", None)

    def __init__(self: object, *values: object, **given: object) -> None:  # noqa: N807  # the method of a class
        found: dict[str, object] = given
        if len(values) == len(names) == len(positional) and not given:
            found = dict(zip(positional, values, strict=False))
        elif values:
            found = dict(zip(positional, values, strict=False))
            if len(found) < len(values) or (given and not given.keys().isdisjoint(found)):
                raise TypeError(_find_misfit(cls, values, given, positional))
            found.update(given)
        if len(found) != len(names):
            if not found.keys() <= given_names:
                raise TypeError(_find_misfit(cls, values, given, positional))
            found = defaults | found
            for name, make in factories:
                if name not in found:
                    found[name] = make()
        if found.keys() != names:
            raise TypeError(_find_misfit(cls, values, given, positional))
        _set(self, "__dict__", found)
        if finish is not None:
            finish(self)

    return __init__


_set = object.__setattr__


def _find_misfit(cls: type, values: tuple[object, ...], given: Mapping[str, object], positional: Sequence[str]) -> str:
    """Return why arguments are not those of a class."""
    described = fields(cls)
    if len(values) > len(positional):
        return f"{cls.__name__} takes {len(positional)} arguments without names, and was given {len(values)}"
    twice = [name for name in positional[: len(values)] if name in given and name in given]
    unknown = given.keys() - {entry.name for entry in described if entry.init}
    if unknown:
        return f"{cls.__name__} takes no argument `{min(unknown)}`"
    needed = [entry.name for entry in described if entry.default is entry.default_factory is _MISSING]
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
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(_self: object, name: str) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot delete field {name!r}")
