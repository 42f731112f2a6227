"""Named tuples without code that is compiled for each class: `typing.NamedTuple` does that twice, and checks types."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import NamedTuple
else:
    from _collections import _tuplegetter
    from types import FunctionType

    @cache
    def _new(count: int) -> FunctionType:
        """Return what makes an instance of so many fields, whatever they are called."""
        names = ", ".join(f"_{number}" for number in range(count))
        return eval(f"lambda _cls, {names}: _new(_cls, ({names},))", {"_new": tuple.__new__})  # noqa: S307  # numbers alone

    class _Named(type):
        """The class of all named tuples."""

        def __new__(cls, name: str, bases: tuple[type, ...], space: dict[str, object]) -> type:
            """Make one from the annotations of its body."""
            fields = tuple(space.get("__annotations__", ()))
            if not fields:  # the base of all
                return super().__new__(cls, name, bases, space)
            defaults = {field: space[field] for field in fields if field in space}
            if tuple(defaults) != fields[len(fields) - len(defaults) :]:
                raise TypeError(f"{name} has a field without a default after one with a default")
            template = _new(len(fields))
            code = template.__code__.replace(co_varnames=("_cls", *fields), co_qualname=f"{name}.__new__")
            made = FunctionType(code, template.__globals__, "__new__", tuple(defaults.values()))
            getters = {field: _tuplegetter(place, None) for place, field in enumerate(fields)}
            own = {
                "_fields": fields,
                "_field_defaults": defaults,
                "__match_args__": fields,
                "__slots__": (),
                "__new__": made,
            }
            return super().__new__(cls, name, bases, space | own | getters)

    class NamedTuple(tuple, metaclass=_Named):
        """A tuple whose items have names; see `typing.NamedTuple`."""

        __slots__ = ()

        @classmethod
        def _make(cls, items: Iterable[object]) -> object:
            return cls(*items)

        def _replace(self, **changed: object) -> object:
            return type(self)(**dict(zip(self._fields, self, strict=True)) | changed)

        def _asdict(self) -> dict[str, object]:
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self) -> str:
            return f"{type(self).__name__}({', '.join(f'{name}={item!r}' for name, item in self._asdict().items())})"

        def __getnewargs__(self) -> tuple[object, ...]:
            return tuple(self)


__all__ = ["NamedTuple"]
