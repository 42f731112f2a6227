"""Generators of values that fit a JSON Schema, for the parameters of policies."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from policyeng.bundle.parameter_schemas import fits
from policyeng.models import JsonObject
from policyeng.verify.generators.json_mutations import Json, copied, draw_boolean, draw_odd_value


def fitting(random: Random, schema: JsonObject, words: Sequence[Json]) -> Json:
    """Return a value that fits a parameter's schema, from the policy's words; the default if the draw does not fit."""
    value = _draw(random, schema, words)
    return value if fits(schema, value) else copied(schema.get("default"))


def _draw(random: Random, schema: JsonObject, words: Sequence[Json]) -> Json:
    if "const" in schema:
        return copied(schema["const"])
    if schema.get("enum"):
        return copied(random.choice(schema["enum"]))
    for either in ("anyOf", "oneOf"):
        if schema.get(either):
            return _draw(random, random.choice(schema[either]), words)
    kinds = schema.get("type")
    kind = random.choice(kinds) if isinstance(kinds, list) and kinds else kinds
    if kind == "object":
        return _object(random, schema, words)
    if kind == "array":
        least = schema.get("minItems", 0)
        count = random.randint(least, max(least, schema.get("maxItems", least + 3)))
        return [_draw(random, schema.get("items", {}), words) for _ in range(count)]
    if kind == "string":
        return random.choice([word for word in words if isinstance(word, str)] or ["x"])
    return _scalar(random, kind, schema, words)


def _scalar(random: Random, kind: object, schema: JsonObject, words: Sequence[Json]) -> Json:
    if kind == "boolean":
        return draw_boolean(random, 0.5)
    if kind in ("integer", "number"):
        least = schema.get("minimum", 0)
        most = max(least, schema.get("maximum", least + 10 ** random.randrange(1, 5)))  # bounds may conflict
        return random.randint(int(least), int(most)) if kind == "integer" else random.uniform(least, most)
    if kind == "null":
        return None
    return copied(random.choice(words)) if words and draw_boolean(random, 0.5) else draw_odd_value(random)


def _object(random: Random, schema: JsonObject, words: Sequence[Json]) -> Json:
    properties = schema.get("properties", {})
    required = schema.get("required", [])
    drawn: dict[str, Json] = {
        name: _draw(random, properties.get(name, {}), words)
        for name in dict.fromkeys([*required, *properties])
        if name in required or draw_boolean(random, 0.5)
    }
    more = schema.get("additionalProperties", {})
    texts = [word for word in words if isinstance(word, str) and word]
    if more is not False and texts:
        inner = more if isinstance(more, dict) else {}
        for _ in range(random.randrange(3)):
            drawn.setdefault(random.choice(texts), _draw(random, inner, words))
    return drawn
