"""What every noun is made of: frozen, camelCase in JSON, snake_case in Python, unknown keys refused by name."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

#: A JSON object as parsed: an Azure resource in the shape ARM returns, or a part of one.
JsonObject = dict[str, Any]

WORKSPACE_TYPE = "microsoft.machinelearningservices/workspaces"


class Model(BaseModel):
    """The base of every noun: frozen, camelCase in JSON, unknown keys refused.

    Validators are built when the first value is validated: a run validates few of the nouns, and building them all
    takes longer than judging a small snapshot.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True, defer_build=True
    )


_Noun = TypeVar("_Noun", bound=Model)


def made(noun: type[_Noun], **fields: object) -> _Noun:
    """A noun of all its fields by their names, taken as they are: a report has thousands.

    `model_construct` does the same, and takes five times as long to find which fields were left out.
    """
    instance = noun.__new__(noun)
    object.__setattr__(instance, "__dict__", fields)
    object.__setattr__(instance, "__pydantic_fields_set__", set(fields))
    object.__setattr__(instance, "__pydantic_extra__", None)
    object.__setattr__(instance, "__pydantic_private__", None)
    return instance


def lowered(text: str) -> str:
    """A text in lower case, letter by letter as Rego's `lower` has it; `str.lower` makes two letters of `İ`."""
    if text.isascii():
        return text.lower()
    return "".join(letter.lower()[0] for letter in text)
