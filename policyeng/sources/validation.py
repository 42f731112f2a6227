"""One JSON value against one noun: the noun, or every fault with its JSON Pointer and a remedy."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, TypeVar, get_type_hints

import orjson

from policyeng.errors import nearest
from policyeng.models import AwareDatetime, Model, name_in_json
from policyeng.models.fitting import fitted
from policyeng.sources.reading import Refusal
from policyeng.strict.json_pointer import escaped
from policyeng.strict.json_text import shortened

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

M = TypeVar("M", bound=Model)

ZONED = "write it with a zone, such as `2026-11-01T00:00:00Z`"
#: Digits alone would be read as seconds since 1970; nobody means that in these documents.
_DIGITS = re.compile(r"[-+]?[0-9.]+")


def validated(model: type[M], value: object, pointer: str) -> tuple[M | None, tuple[Refusal, ...]]:
    """The value as the model, strictly (no number out of a string), or None and the faults.

    Args:
        model: the noun.
        value: any JSON value.
        pointer: JSON Pointer of the value in its document; the faults' pointers begin with it.
    """
    if (found := fitted(model, value)) is not None:
        return found, ()
    from pydantic import ValidationError

    digits = _times_as_digits(model, value, pointer)
    if digits:
        return None, digits
    try:
        return model.model_validate_json(orjson.dumps(value), strict=True, by_alias=True, by_name=False), ()
    except ValidationError as error:
        return None, tuple(_fault(model, details, pointer) for details in error.errors(include_url=False))


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


def _fault(model: type[Model], details: ErrorDetails, pointer: str) -> Refusal:
    place = "".join(f"/{escaped(part)}" for part in details["loc"])
    name = str(details["loc"][-1]) if details["loc"] else ""
    kind, given = details["type"], details["input"]
    if kind == "unexpected_keyword_argument":
        known = _names_at(model, details["loc"][:-1])
        return Refusal(
            pointer + place, f"unknown key `{shortened(name)}`{nearest(name, known)}", f"known are {_listed(known)}"
        )
    if kind == "missing":
        return Refusal(pointer + place.removesuffix(f"/{escaped(name)}"), f"`{name}` is missing", f"add `{name}`")
    if kind in ("timezone_aware", "datetime_parsing", "datetime_from_date_parsing", "datetime_type"):
        why = "has no zone" if kind == "timezone_aware" else "is not a time"
        return Refusal(pointer + place, f"`{name}` {why}: {_shown(given)}", ZONED)
    what = f"`{name}`" if name else "the document"
    expected = details["msg"].removeprefix("Input should be ").replace("'", "`")
    return Refusal(pointer + place, f"{what} does not fit: {_shown(given)}", f"it should be {expected}")


def _names_at(model: type[Model], location: tuple[int | str, ...]) -> list[str]:
    """The keys that are known at a location inside a model."""
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


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _shown(value: object) -> str:
    return f"`{shortened(orjson.dumps(value, default=str).decode())}`"
