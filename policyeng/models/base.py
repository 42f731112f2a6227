"""What every noun is made of: frozen, camelCase in JSON, snake_case in Python, unknown keys refused by name.

Nouns are structs of msgspec, which are defined in a fifteenth of the time that dataclasses take (ADR 27). Pydantic
validates them, writes them and describes them as JSON Schemas from the same declarations, and is loaded when something
needs that: loading it takes longer than evaluating a small snapshot.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn, Self, TypeVar, cast, get_type_hints

import orjson
from msgspec import NODEFAULT, Meta, Struct
from msgspec.structs import fields, replace

if TYPE_CHECKING:
    from pydantic import (
        GetCoreSchemaHandler,
        SerializerFunctionWrapHandler,
        TypeAdapter,
    )
    from pydantic_core import CoreSchema

#: A JSON object as parsed: an Azure resource in the shape ARM returns, or a part of one.
JsonObject = dict[str, Any]

WORKSPACE_TYPE = "microsoft.machinelearningservices/workspaces"

#: Names in JSON that are not those of their fields in camelCase.
_NAMES = {"size_gib": "sizeGiB", "memory_gib": "memoryGiB", "limit_vcpus": "limitVCpus"}


def name_in_json(field: str) -> str:
    """Return the name that a field has in JSON: in camelCase, without the underscore that avoids a keyword."""
    if field in _NAMES:
        return _NAMES[field]
    first, *others = field.rstrip("_").split("_")
    return first + "".join(part.capitalize() for part in others)


class Limited:
    """Restrict the values of a field, as `Annotated[str, Limited(min_length=1)]`.

    The limits are those of the core schemas of pydantic.
    """

    def __init__(self, **limits: object) -> None:
        self.limits = limits

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema: Any = handler(source)
        limited: CoreSchema = schema | self.limits
        return limited


class Checked:
    """Check or convert the values of a field with a function that raises ValueError for what does not fit.

    Args:
        function: takes the value and returns it.
        before: it takes the value as given, not as validated.
    """

    def __init__(self, function: Callable[[Any], object], *, before: bool = False) -> None:
        self._function, self._before = function, before

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import core_schema

        if self._before:
            return core_schema.no_info_before_validator_function(self._function, handler(source))
        return core_schema.no_info_after_validator_function(self._function, handler(source))


class _Unchecked:
    """Take the values of a field as they are."""

    def __get_pydantic_core_schema__(self, _source: object, _handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import core_schema

        return core_schema.any_schema()


class _Unstored:
    """Take the values of a mapping as they are, and write an empty one."""

    def __get_pydantic_core_schema__(self, _source: object, _handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import core_schema

        serialized = core_schema.plain_serializer_function_ser_schema(lambda _: {})
        return core_schema.any_schema(serialization=serialized)


UNCHECKED = _Unchecked()
UNSTORED = _Unstored()
AwareDatetime = Annotated[datetime, Meta(tz=True), Limited(tz_constraint="aware")]


class Model(Struct, frozen=True, rename=name_in_json, forbid_unknown_fields=True):
    """The base of every noun, which is a frozen struct; its constructor takes the values as they are."""

    __pydantic_config__ = {
        "extra": "forbid",
        "alias_generator": name_in_json,
        "populate_by_name": True,
    }
    #: Fields that are neither written nor read.
    unwritten = frozenset[str]()

    def model_copy(self, *, update: JsonObject) -> Self:
        """Return the same with other values of some fields."""
        return replace(self, **update)

    def model_dump(self, **options: Any) -> JsonObject:
        """Return it as a mapping; the options are those of `pydantic.TypeAdapter.dump_python`."""
        found: JsonObject = adapter_of(type(self)).dump_python(self._whole(), **options)
        return found

    def model_dump_json(self, **options: Any) -> str:
        """Return it as JSON; the options are those of `pydantic.TypeAdapter.dump_json`."""
        return adapter_of(type(self)).dump_json(self._whole(), **options).decode()

    def _whole(self) -> Self:
        """Return it with all values made that are otherwise made when they are first used."""
        return self

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import core_schema

        described = _describe(cls)

        def build(value: object) -> Model:
            return value if isinstance(value, cls) else cls(**vars(value))

        def write(noun: Model, serialize: SerializerFunctionWrapHandler) -> object:
            return serialize(described(**{name: getattr(noun, name) for name, _ in _names_of(cls)}))

        schema = handler.generate_schema(described)
        written = core_schema.wrap_serializer_function_ser_schema(write, schema=schema)
        return core_schema.no_info_after_validator_function(build, schema, serialization=written)

    @classmethod
    def model_validate(cls, value: object) -> Self:
        """Return a value as the noun.

        Raises:
            pydantic.ValidationError: it does not fit.
        """
        found: Self = adapter_of(cls).validate_python(value)
        return found

    @classmethod
    def model_validate_json(
        cls,
        text: str | bytes,
        *,
        strict: bool | None = None,
        by_alias: bool | None = None,
        by_name: bool | None = None,
    ) -> Self:
        """Return JSON as the noun; the options are those of `pydantic.TypeAdapter.validate_json`.

        Raises:
            pydantic.ValidationError: it does not fit.
        """
        found: Self = adapter_of(cls).validate_json(text, strict=strict, by_alias=by_alias, by_name=by_name)
        return found

    @classmethod
    def model_json_schema(
        cls, *, by_alias: bool = True, mode: Literal["validation", "serialization"] = "validation"
    ) -> JsonObject:
        """Return the JSON Schema; the options are those of `pydantic.TypeAdapter.json_schema`."""
        return adapter_of(cls).json_schema(by_alias=by_alias, mode=mode)


def to_bytes(value: object, option: int = 0) -> bytes:
    """Write nouns, and JSON values with nouns in them, as JSON.

    Raises:
        TypeError: a value is none that JSON has, or a number of more than 64 bits; pydantic writes some of these.
    """
    passed_on = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
    return orjson.dumps(value, _encode_default, option | passed_on)


def _encode_default(value: object) -> object:
    """Return what orjson cannot write as what it can: fields under their names in JSON, times as pydantic has them."""
    if isinstance(value, Model):
        return {name: getattr(value, field) for field, name in _names_of(type(value))}
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    raise TypeError(f"{type(value).__name__} is not a JSON value")


@cache
def _names_of(noun: type[Model]) -> tuple[tuple[str, str], ...]:
    """Return the fields of a noun that are written, each with its name in JSON."""
    return tuple((entry.name, entry.encode_name) for entry in fields(noun) if entry.name not in noun.unwritten)


class _TakesNouns(type):
    """The class of the dataclasses below; pydantic accepts the noun itself as an instance of one."""

    noun: type[Model]

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, cls.noun)


class _Described(metaclass=_TakesNouns):
    """The base of nouns as dataclasses."""


@cache
def _describe(noun: type[Model]) -> type[Any]:
    """Return a noun as a dataclass, which pydantic can read, with the same name, documentation and fields."""
    import dataclasses

    hints = get_type_hints(noun, include_extras=True)
    entries: list[tuple[str, Any, Any]] = []
    for entry in (entry for entry in fields(noun) if entry.name not in noun.unwritten):
        options: dict[str, Any] = {}
        if entry.default is not NODEFAULT:
            options["default"] = entry.default
        elif entry.default_factory is not NODEFAULT:
            options["default_factory"] = entry.default_factory
        entries.append((entry.name, hints[entry.name], dataclasses.field(**options)))
    names = ("__doc__", "__qualname__", "__module__", "__pydantic_config__")
    space = {name: getattr(noun, name) for name in names} | {"noun": noun}
    return dataclasses.make_dataclass(noun.__name__, entries, bases=(_Described,), kw_only=True, namespace=space)


_Noun = TypeVar("_Noun", bound=Model)


@cache
def adapter_of(noun: type[_Noun]) -> TypeAdapter[_Noun]:
    """Return what validates and writes a noun."""
    from pydantic import TypeAdapter

    return TypeAdapter(noun)


def lowered(text: str) -> str:
    """Return a text in lower case, letter by letter as Rego's `lower` has it; `str.lower` makes two letters of `İ`."""
    if text.isascii():
        return text.lower()
    return "".join(letter.lower()[0] for letter in text)


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
    """Return a copy of a JSON value whose objects and lists, at every depth, cannot be changed."""
    return cast(_Value, read_only_copy(value, {}))


def read_only_copy(value: object, copies: dict[int, object]) -> object:
    """Return a copy of a JSON value as `read_only` does; what occurs twice is copied once.

    Args:
        value: the value; it must exist as long as `copies`.
        copies: the copies by the `id()` of the originals.
    """
    kind = type(value)
    if kind is not dict and kind is not list:
        return value
    known = copies.get(id(value))
    if known is None:
        if kind is dict:
            known = ReadOnlyDict((key, read_only_copy(member, copies)) for key, member in value.items())  # type: ignore[attr-defined]  # as its type says
        else:
            known = ReadOnlyList(read_only_copy(member, copies) for member in value)  # type: ignore[attr-defined]  # as its type says
        copies[id(value)] = known
    return known


def plain_copy(value: object) -> object:
    """Return a JSON value that can be changed, at every depth."""
    if isinstance(value, dict):
        return {key: plain_copy(member) for key, member in value.items()}
    if isinstance(value, list):
        return [plain_copy(member) for member in value]
    return value
