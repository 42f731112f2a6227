"""Load modules when they are first used: a short run needs few of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import TypeVar, cast

_M = TypeVar("_M")


def attributes(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """Return a `__getattr__` for a package that imports what it exports when it is first asked for (PEP 562).

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
    """Modules of a package by name, each imported when it is first asked for."""

    def __init__(self, package: str, names: Mapping[str, str]) -> None:
        """Take the module below the package of each name."""
        self._package, self._names = package, names

    def __getitem__(self, name: str) -> _M:
        return cast("_M", import_module(f"{self._package}.{self._names[name]}"))

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
