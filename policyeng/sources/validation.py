"""Validation of a JSON value as a model: the result is the model, or every fault with its JSON Pointer and a remedy."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, TypeVar, get_type_hints

import msgspec
import orjson
from msgspec.structs import fields

from policyeng.errors import suggest_nearest
from policyeng.later import lazy_pattern
from policyeng.models import Problem
from policyeng.models.base import AwareDatetime, Model, name_in_json
from policyeng.parsing.json_pointer import escaped
from policyeng.parsing.json_text import shortened
from policyeng.sources.parsed import refuse

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

M = TypeVar("M", bound=Model)

ZONED = "write it with a time zone, such as `2026-11-01T00:00:00Z`"
#: Pydantic would read digits as seconds since 1970, which no one means in these documents.
_DIGITS = lazy_pattern(r"[-+]?[0-9.]+")


def read_fact(model: type[M], value: object, pointer: str) -> tuple[M | None, tuple[Problem, ...]]:
    """Return what `validated` does, for models whose limits msgspec has, too.

    Most values are valid, and loading pydantic takes longer than a small check. Only pydantic accepts words in other
    letters, and explains what is wrong. A seventh digit of a second is rounded here, and cut off there.
    """
    try:
        return msgspec.convert(value, model), ()
    except msgspec.ValidationError:
        return validated(model, value, pointer)


def validated(model: type[M], value: object, pointer: str) -> tuple[M | None, tuple[Problem, ...]]:
    """Return the value as the model, or None and the faults; the validation is strict (no number from a string).

    Args:
        model: the class.
        value: any JSON value.
        pointer: JSON Pointer of the value in its document; the faults' pointers begin with it.
    """
    from pydantic import ValidationError

    digits = _times_as_digits(model, value, pointer)
    if digits:
        return None, digits
    try:
        return model.model_validate_json(orjson.dumps(value), strict=True, by_alias=True, by_name=False), ()
    except ValidationError as error:
        return None, tuple(_convert_fault(model, details, pointer) for details in error.errors(include_url=False))


def _times_as_digits(model: type[Model], value: object, pointer: str) -> tuple[Problem, ...]:
    if not isinstance(value, Mapping):
        return ()
    return tuple(
        refuse(f"{pointer}/{name}", f"`{name}` is not a time: `{shortened(value[name])}`", ZONED)
        for name in _time_names(model)
        if isinstance(value.get(name), str) and _DIGITS.fullmatch(value[name])
    )


@cache
def _time_names(model: type[Model]) -> tuple[str, ...]:
    hints = get_type_hints(model, include_extras=True).items()
    return tuple(name_in_json(name) for name, hint in hints if AwareDatetime in (hint, *getattr(hint, "__args__", ())))


def _convert_fault(model: type[Model], details: ErrorDetails, pointer: str) -> Problem:
    place = "".join(f"/{escaped(part)}" for part in details["loc"])
    name = str(details["loc"][-1]) if details["loc"] else ""
    kind, given = details["type"], details["input"]
    if kind == "unexpected_keyword_argument":
        known = _names_at(model, details["loc"][:-1])
        return refuse(
            pointer + place,
            f"unknown key `{shortened(name)}`{suggest_nearest(name, known)}",
            f"the known keys are {_join_names(known)}",
        )
    if kind == "missing":
        return refuse(pointer + place.removesuffix(f"/{escaped(name)}"), f"`{name}` is missing", f"add `{name}`")
    if kind in ("timezone_aware", "datetime_parsing", "datetime_from_date_parsing", "datetime_type"):
        why = "has no time zone" if kind == "timezone_aware" else "is not a time"
        return refuse(pointer + place, f"`{name}` {why}: {_show_value(given)}", ZONED)
    what = f"`{name}`" if name else "the document"
    expected = details["msg"].removeprefix("Input should be ").replace("'", "`")
    return refuse(pointer + place, f"{what} does not fit: {_show_value(given)}", f"it should be {expected}")


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
