"""The base of what only commands use that load pydantic in any case."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class ValidatedModel(BaseModel):
    """A model of pydantic with the form of nouns: frozen, camelCase in JSON, unknown keys refused."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True, defer_build=True
    )
