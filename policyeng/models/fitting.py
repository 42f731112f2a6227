"""Take a JSON value as a noun without pydantic where it surely fits; loading pydantic takes longer than a short run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import datetime
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from policyeng.models.base import AwareDatetime, JsonObject, Limited, Model, lowered, name_in_json
from policyeng.models.documents import ANY_CASE

_M = TypeVar("_M", bound=Model)
_T = TypeVar("_T")
_Reader = Callable[[object], object]
_PLAIN_TIME = "YYYY-MM-DDTHH:MM:SSZ"


class _UnsureError(Exception):
    """Pydantic has to look at the value."""


def fitted(noun: type[_M], value: object) -> _M | None:
    """Return a JSON value as a noun, or None where only pydantic can tell whether it fits."""
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
    except (KeyError, TypeError):  # an unknown key, or none where one has to be
        raise _UnsureError from None


@cache
def _readers(noun: type[Model]) -> Mapping[str, tuple[str, _Reader]]:
    """Return, by the name in JSON, the name of each field and what reads its value."""
    hints = get_type_hints(noun, include_extras=True)
    return {name_in_json(entry.name): (entry.name, _reader(hints[entry.name])) for entry in fields(noun)}


def _reader(hint: Any) -> _Reader:
    """Return what reads a value of a type, and raises `_UnsureError` for what may not be one."""
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
    return _unsure


def _unsure(_value: object) -> object:
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
        return _unsure

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
