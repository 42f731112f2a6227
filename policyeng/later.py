"""Load modules and compile patterns when they are first used: a short run needs few of them."""

from __future__ import annotations

import sys
from _thread import RLock
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import TYPE_CHECKING, AnyStr, TypeVar, cast

if TYPE_CHECKING:
    import re

_M = TypeVar("_M")


def attributes(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """Return a `__getattr__` for a package that imports what it exports when it is first used (PEP 562).

    Args:
        package: its `__name__`.
        homes: by name of an export, the module below the package that has it; `module:name` where it is called
            otherwise there.
    """

    def get(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module `{package}` has no attribute `{name}`")
        module, _, attribute = homes[name].partition(":")
        return getattr(import_module(f"{package}.{module}"), attribute or name)

    return get


class Modules(Mapping[str, _M]):
    """Modules of a package by name, each imported when it is first used."""

    def __init__(self, package: str, names: Mapping[str, str]) -> None:
        """Take the module below the package of each name."""
        self._package, self._names = package, names

    def __getitem__(self, name: str) -> _M:
        return cast("_M", import_module(f"{self._package}.{self._names[name]}"))

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def when_used(*names: str) -> None:
    """Have modules of the standard library, which others import whether they need them or not, load when first used.

    `importlib.util.LazyLoader` loads a module as soon as another one imports it.
    """
    for name in names:
        spec = None if name in sys.modules else find_spec(name)
        if spec is not None:
            sys.modules[name] = module = module_from_spec(spec)
            module.__class__ = _Unloaded


class _Unloaded(ModuleType):
    """A module that is loaded when an attribute of it is first read."""

    def __getattr__(self, name: str) -> object:
        with _LOADING:
            if type(self) is _Unloaded and "__builtins__" not in vars(self):  # running its code begins with these
                spec = self.__spec__
                if spec is not None and spec.loader is not None:
                    spec.loader.exec_module(self)
                self.__class__ = ModuleType  # type: ignore[assignment]  # it is one from here on
        try:
            return vars(self)[name]
        except KeyError:
            raise AttributeError(f"module `{self.__name__}` has no attribute `{name}`") from None


_LOADING = RLock()


def lazy_pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return what `re.compile` gives; it is compiled when it is first used."""
    return cast("re.Pattern[AnyStr]", _Pattern(text, flags))


class _Pattern:
    """A pattern whose attributes are those of the compiled one, once one of them was read."""

    def __init__(self, *given: object) -> None:
        self.given = given


class _LazyAttribute:
    """An attribute of a compiled pattern; those of the instance take its place, as they cost nothing more to read."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, owner: _Pattern, _type: type) -> object:
        import re

        compiled = re.compile(*owner.given)  # type: ignore[call-overload]  # what `lazy_pattern` was given
        vars(owner).update({name: getattr(compiled, name) for name in _ATTRIBUTES})
        return vars(owner)[self._name]


_ATTRIBUTES = ("finditer", "findall", "flags", "fullmatch", "match", "pattern", "search", "split", "sub")
for _name in _ATTRIBUTES:
    setattr(_Pattern, _name, _LazyAttribute(_name))
