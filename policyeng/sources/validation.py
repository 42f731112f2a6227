"""Validation of a JSON value as a model: the result is the model, or every fault with its JSON Pointer and a remedy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import orjson
from msgspec.structs import fields

from policyeng.errors import suggest_nearest
from policyeng.later import lazy_pattern
from policyeng.models.base import AwareDatetime, JsonObject, Limited, Model, lowered, name_in_json
from policyeng.models.documents import ANY_CASE
from policyeng.parsing.json_pointer import escaped
from policyeng.parsing.json_text import shortened
from policyeng.sources.parsed import Refusal

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_M = TypeVar("_M", bound=Model)
_T = TypeVar("_T")
_Reader = Callable[[object], object]
_PLAIN_TIME = "YYYY-MM-DDTHH:MM:SSZ"


class _UnsureError(Exception):
    """The value needs validation by pydantic."""


def build_model(noun: type[_M], value: object) -> _M | None:
    """Return a JSON value as a model, or None if only pydantic can check whether it is valid."""
    try:
        return _read(noun, value)
    except (_UnsureError, ValueError):
        return None


def _read(noun: type[_M], value: object) -> _M:
    if type(value) is not dict:
        raise _UnsureError
    readers = _readers(noun)
    try:
        fields_: dict[str, Any] = {name: read(entry) for key, entry in value.items() for name, read in (readers[key],)}
        return noun(**fields_)
    except (KeyError, TypeError):  # an unknown or a missing key
        raise _UnsureError from None


@cache
def _readers(noun: type[Model]) -> Mapping[str, tuple[str, _Reader]]:
    """Return, by the name in JSON, the name of each field and the function that reads its value."""
    hints = get_type_hints(noun, include_extras=True)
    return {name_in_json(entry.name): (entry.name, _reader(hints[entry.name])) for entry in fields(noun)}


def _reader(hint: Any) -> _Reader:
    """Return the function that reads a value of a type, and raises `_UnsureError` for a value that may not be valid."""
    if hint == AwareDatetime:
        return _time
    if hint in (str, bool, int):
        return _exactly(hint)
    if hint == JsonObject:
        return _exactly(dict)
    if hint is float:
        return _number
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (UnionType, Union) and len(arguments) == 2 and arguments[1] is NoneType:
        inner = _reader(arguments[0])
        return lambda value: None if value is None else inner(value)
    if origin is Annotated and arguments[1:] == (ANY_CASE,):
        inner = _reader(arguments[0])
        return lambda value: inner(lowered(value) if type(value) is str else value)
    if origin is Annotated and len(arguments) == 2 and isinstance(arguments[1], Limited):
        return _limited(_reader(arguments[0]), arguments[1].limits)
    if origin is Literal:
        return lambda value: _among(value, arguments)
    if origin is tuple and arguments[1:] == (...,):
        inner = _reader(arguments[0])
        return lambda value: tuple(map(inner, _of(list, value)))
    if origin is dict and arguments == (str, str):
        return lambda value: {name: _of(str, text) for name, text in _of(dict, value).items()}
    if isinstance(hint, type) and issubclass(hint, Model):
        return lambda value: _read(hint, value)
    return _refer_to_pydantic


def _refer_to_pydantic(_value: object) -> object:
    raise _UnsureError


def _of(kind: type[_T], value: object) -> _T:
    if type(value) is not kind:
        raise _UnsureError
    return value


def _exactly(kind: type) -> _Reader:
    return lambda value: _of(kind, value)


def _number(value: object) -> float:
    if type(value) is int or type(value) is float:
        return float(value)
    raise _UnsureError


def _among(value: object, words: tuple[object, ...]) -> object:
    if not any(type(value) is type(word) and value == word for word in words):
        raise _UnsureError
    return value


def _limited(read: _Reader, limits: Mapping[str, Any]) -> _Reader:
    if not limits.keys() <= {"ge", "min_length"}:
        return _refer_to_pydantic

    def check(value: object) -> object:
        found: Any = read(value)
        if ("ge" in limits and found < limits["ge"]) or ("min_length" in limits and len(found) < limits["min_length"]):
            raise _UnsureError
        return found

    return check


def _time(value: object) -> datetime:
    if type(value) is not str or len(value) != len(_PLAIN_TIME) or value[10] != "T" or value[-1] != "Z":
        raise _UnsureError
    return datetime.fromisoformat(value)


M = TypeVar("M", bound=Model)

ZONED = "write it with a time zone, such as `2026-11-01T00:00:00Z`"
#: Pydantic would read digits as seconds since 1970, which no one means in these documents.
_DIGITS = lazy_pattern(r"[-+]?[0-9.]+")


def validated(model: type[M], value: object, pointer: str) -> tuple[M | None, tuple[Refusal, ...]]:
    """Return the value as the model, or None and the faults; the validation is strict (no number from a string).

    Args:
        model: the class.
        value: any JSON value.
        pointer: JSON Pointer of the value in its document; the faults' pointers begin with it.
    """
    if (found := build_model(model, value)) is not None:
        return found, ()
    from pydantic import ValidationError

    digits = _times_as_digits(model, value, pointer)
    if digits:
        return None, digits
    try:
        return model.model_validate_json(orjson.dumps(value), strict=True, by_alias=True, by_name=False), ()
    except ValidationError as error:
        return None, tuple(_convert_fault(model, details, pointer) for details in error.errors(include_url=False))


def _times_as_digits(model: type[Model], value: object, pointer: str) -> tuple[Refusal, ...]:
    if not isinstance(value, Mapping):
        return ()
    return tuple(
        Refusal(f"{pointer}/{name}", f"`{name}` is not a time: `{shortened(value[name])}`", ZONED)
        for name in _time_names(model)
        if isinstance(value.get(name), str) and _DIGITS.fullmatch(value[name])
    )


@cache
def _time_names(model: type[Model]) -> tuple[str, ...]:
    hints = get_type_hints(model, include_extras=True).items()
    return tuple(name_in_json(name) for name, hint in hints if AwareDatetime in (hint, *getattr(hint, "__args__", ())))


def _convert_fault(model: type[Model], details: ErrorDetails, pointer: str) -> Refusal:
    place = "".join(f"/{escaped(part)}" for part in details["loc"])
    name = str(details["loc"][-1]) if details["loc"] else ""
    kind, given = details["type"], details["input"]
    if kind == "unexpected_keyword_argument":
        known = _names_at(model, details["loc"][:-1])
        return Refusal(
            pointer + place,
            f"unknown key `{shortened(name)}`{suggest_nearest(name, known)}",
            f"the known keys are {_join_names(known)}",
        )
    if kind == "missing":
        return Refusal(pointer + place.removesuffix(f"/{escaped(name)}"), f"`{name}` is missing", f"add `{name}`")
    if kind in ("timezone_aware", "datetime_parsing", "datetime_from_date_parsing", "datetime_type"):
        why = "has no time zone" if kind == "timezone_aware" else "is not a time"
        return Refusal(pointer + place, f"`{name}` {why}: {_show_value(given)}", ZONED)
    what = f"`{name}`" if name else "the document"
    expected = details["msg"].removeprefix("Input should be ").replace("'", "`")
    return Refusal(pointer + place, f"{what} does not fit: {_show_value(given)}", f"it should be {expected}")


def _names_at(model: type[Model], location: tuple[int | str, ...]) -> list[str]:
    """Return the known keys at a location inside a model."""
    for part in location:
        hints = get_type_hints(model)
        found = next((hint for name, hint in hints.items() if part in (name, name_in_json(name))), None)
        if inner := _models_in(found):
            model = inner[0]
    return [name_in_json(entry.name) for entry in fields(model)]


def _models_in(annotation: object) -> list[type[Model]]:
    if isinstance(annotation, type) and issubclass(annotation, Model):
        return [annotation]
    return [model for part in getattr(annotation, "__args__", ()) for model in _models_in(part)]


def _join_names(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _show_value(value: object) -> str:
    return f"`{shortened(orjson.dumps(value, default=str).decode())}`"
