"""Load modules and compile patterns when they are first used: a short run needs few of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
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
