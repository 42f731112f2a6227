"""The builtins of JSON schemas give what OPA gives."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from policyeng import rego
from policyeng.rego.budget import BudgetExceededError
from policyeng.rego.builtins import UnsupportedError, load_function
from tests.rego_oracle import Call, find_differences, limited, seeded

_NAMES = ("a", "b", "c", "x-y", "é")
_TYPES = ("array", "boolean", "integer", "number", "null", "object", "string")
_PATTERNS = ("^a", "b$", "[0-9]+", "^$", "(a|b)+", "é")
_NUMBERS = (0, 1, 2, 5, 1.5, 10, -1, 1000000, 0.1, 1e21, 123456789, 0.00001)
_VALUES = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2.0,
    1e-7,
    1e21,
    123456789012,
    0.1,
    2**53 + 1,
    -3.25,
    "",
    "a",
    "abc",
    "<&>",
    "aa",
)
#: Strings that are of a format, and some that are not.
_FORMATS = {
    "date": ("2020-02-29", "2019-02-29", "0000-02-29", "20-1-1", "2020-13-01"),
    "time": ("1:02:03", "01:02:03Z", "01:02:03.5", "01:02:03,5+24:60", "25:00:00", "01:02:60", "01:02:03."),
    "date-time": ("2020-01-01T01:02:03Z", "2020-01-01T1:02:03.55+01:00", "2020-01-01T01:02:03", "2020-01-01 01:02:03Z"),
    "hostname": ("a.b", "-a", "a" * 64, "a." + "b" * 63, "", "a_b"),
    "email": ("a@b", "a", "a@", "@", "a..b@c", "a.@b", "a@b.", "a@b@c"),
    "ipv4": ("1.2.3.4", "01.2.3.4", "::1.2.3.4", "1.2.3"),
    "ipv6": ("::1", "::1%e", "1.2.3.4", "::g", "1:2:3:4:5:6:7:8"),
    "uri": ("a:b", "http://x/%zz", "/a", "x\\:y", "http://[::1]/"),
    "uri-reference": ("", "a b", "%", "\\", "//h:x"),
    "uri-template": ("/{a}", "/{a", "/a}", "http://x/{a}{b}", "{{}}"),
    "uuid": ("12345678-1234-1234-1234-1234567890aB", "x"),
    "regex": ("", "(", "a+", "(?=a)"),
    "json-pointer": ("", "/a~0", "/~2", "a"),
    "relative-json-pointer": ("0", "01", "1#", "1/a", "#"),
    "other": ("x",),
}
#: Schemas with one mistake each, whose words are compared.
_WRONG: tuple[Any, ...] = (
    *({"type": "x"}, {"type": 5}, {"type": ["null", "null"]}, {"type": [5]}, {"properties": 5}, {"required": "a"}),
    *({"required": [5]}, {"required": ["a", "a"]}, {"items": 5}, {"items": [5]}, {"additionalItems": 5}, {"enum": 5}),
    *({"additionalProperties": 5}, {"patternProperties": 5}, {"patternProperties": {"(": {}}}, {"propertyNames": 5}),
    *({"dependencies": 5}, {"dependencies": {"a": 5}}, {"dependencies": {"a": [5]}}, {"multipleOf": "a"}),
    *({"multipleOf": 0}, {"minimum": "a"}, {"maximum": None}, {"exclusiveMinimum": True}, {"exclusiveMaximum": "a"}),
    *({"minLength": "a"}, {"minLength": 1.0}, {"maxLength": -1}, {"minLength": 2, "maxLength": 1}, {"pattern": "("}),
    *({"pattern": 5}, {"format": 5}, {"minProperties": 2, "maxProperties": 1}, {"minItems": 2, "maxItems": 1}),
    *({"uniqueItems": 5}, {"enum": [1, 1.0]}, {"oneOf": 5}, {"anyOf": [5]}, {"not": 5}, {"if": 5}, {"then": []}),
    *({"definitions": 5}, {"definitions": {"a": 5}}, {"title": 5}, {"$ref": 5}, {"$ref": "#/a"}, {"$ref": "x.json"}),
    *({"items": [{}], "$ref": "#/items/1"}, {"items": [{}], "$ref": "#/items/x"}, {"$id": 5}, {"$schema": 5}),
    *(
        {"items": {"$id": "a"}, "not": {"$id": "a"}},
        {"$ref": "#/title/a", "title": "t"},
        {"$ref": "#/title", "title": "t"},
    ),
    *({"$schema": "http://json-schema.org/draft-04/schema#", "exclusiveMinimum": 5},),
    *({"$schema": "http://json-schema.org/draft-07/schema#", "exclusiveMinimum": True},),
    *({"$schema": "http://json-schema.org/draft-04/schema#", "not": True},),
)
_JUNK: tuple[Any, ...] = ("", "x", "{}", "[]", "true", "5", " {} ", "{} x", None, 5, {"a"}, [], {})


def _draw_value(random: Random, depth: int = 0) -> Any:
    kind = random.randrange(4) if depth < 3 else 0
    if kind == 2:
        return [_draw_value(random, depth + 1) for _ in range(random.randrange(4))]
    if kind == 3:
        return {name: _draw_value(random, depth + 1) for name in random.sample(_NAMES, random.randrange(4))}
    return random.choice((*_VALUES, "2020-01-01", "a@b", "10.0.0.1"))


def _draw_schema(random: Random, depth: int = 0) -> Any:
    if depth > 2 or random.random() < 0.05:
        return random.choice(({}, True, False, {"type": random.choice(_TYPES)}, {"enum": [1, "a"]}, {"const": 1}))
    schema = {}
    for _ in range(random.choice((1, 1, 2, 3, 4))):
        name = random.choice(_KEYWORDS)
        schema[name] = _draw_keyword(random, name, depth + 1)
    if not depth:
        schema["definitions"] = {name: _draw_schema(random, 2) for name in "abc"}
        if random.random() < 0.3:
            schema["$schema"] = f"http://json-schema.org/draft-0{random.choice('467')}/schema#"
        if random.random() < 0.1:
            schema["$id"] = random.choice(("a", "#b", "urn:x", ""))
    return schema


_KEYWORDS = (
    *("type", "type", "properties", "properties", "properties", "additionalProperties", "patternProperties"),
    *("propertyNames", "dependencies", "items", "additionalItems", "multipleOf", "minimum", "exclusiveMinimum"),
    *("maximum", "exclusiveMaximum", "minLength", "maxLength", "pattern", "format", "minProperties", "maxProperties"),
    *("required", "required", "minItems", "maxItems", "uniqueItems", "contains", "const", "enum", "enum", "oneOf"),
    *("anyOf", "allOf", "not", "if", "then", "else", "$ref"),
)


def _draw_keyword(random: Random, name: str, depth: int) -> Any:
    match name:
        case "type":
            return random.choice((random.choice(_TYPES), random.sample(_TYPES, random.randrange(1, 3))))
        case "properties":
            return {each: _draw_schema(random, depth) for each in random.sample(_NAMES, random.randrange(1, 4))}
        case "patternProperties":
            return {random.choice(_PATTERNS): _draw_schema(random, depth)}
        case "items":
            return random.choice((_draw_schema(random, depth), [_draw_schema(random, depth) for _ in range(2)]))
        case "dependencies":
            names = random.sample(_NAMES, random.randrange(3))
            return {random.choice(_NAMES): random.choice((_draw_schema(random, depth), names))}
        case "oneOf" | "anyOf" | "allOf":
            return [_draw_schema(random, depth) for _ in range(random.randrange(4))]
        case "multipleOf":
            return abs(random.choice(_NUMBERS)) or 1
        case "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum":
            return random.choice(_NUMBERS)
        case "pattern":
            return random.choice(_PATTERNS)
        case "format":
            return random.choice(list(_FORMATS))
        case "required":
            return random.sample(_NAMES, random.randrange(3))
        case "uniqueItems":
            return True
        case "const":
            return _draw_value(random, 1)
        case "enum":
            return [_draw_value(random, 1) for _ in range(random.randrange(4))]
        case "$ref":
            # One after another, because OPA ends when a schema refers to itself.
            return f"#/definitions/{'abc'[min(depth, 3) - 1]}/x" if random.random() < 0.1 else "#/definitions/c"
        case _ if name[:3] in {"min", "max"}:
            return random.randrange(4)
    return random.choice((_draw_schema(random, depth), False))


def _refers_to_itself(schema: Any) -> bool:
    return type(schema) is dict and "$ref" in json.dumps(schema.get("definitions"))


@pytest.mark.slow
def test_documents_meet_schemas_as_for_opa(opa: Path) -> None:
    """Random schemas and documents, as values and as text."""
    random = seeded(7)
    pairs = [([text], {"items": {"format": name}}) for name, texts in _FORMATS.items() for text in texts]
    calls: list[Call] = [("json.match_schema", pair) for pair in pairs]
    while len(calls) < 2200:
        schema = _draw_schema(random)
        if type(schema) is bool or _refers_to_itself(schema):
            continue
        for _ in range(3):
            document = _draw_value(random)
            document = document if type(document) in {dict, list} else json.dumps(document)
            calls.append(("json.match_schema", (document, random.choice((schema, json.dumps(schema))))))
    assert find_differences(opa, calls) == []


def test_faults_of_a_schema_are_reported_as_by_opa(opa: Path) -> None:
    """One mistake each, at the top and below it."""
    calls: list[Call] = [("json.verify_schema", (each,)) for each in (*_WRONG, *_JUNK)]
    calls += [("json.verify_schema", ({"properties": {"a": each}},)) for each in _WRONG if "$ref" not in each]
    calls += [("json.match_schema", (each, {})) for each in _JUNK]
    calls += [("json.match_schema", ({}, each)) for each in (*_WRONG, *_JUNK)]
    assert find_differences(opa, calls) == []


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"properties": {"a": {"$ref": "http://example.com/x"}}}, "remote reference"),
        ({"$ref": "file:///etc/passwd"}, "remote reference"),
        ({"format": "email"}, "format email"),
    ],
)
def test_what_is_not_supported_is_refused(schema: Any, message: str) -> None:
    """Nothing is fetched, and nothing is guessed."""
    with pytest.raises(UnsupportedError, match=message):
        load_function("json.match_schema")('"Jo <a@b>"', schema)


@pytest.mark.parametrize("schema", [{"$ref": "#"}, {"allOf": [{"$ref": "#"}]}])
def test_a_schema_of_itself_ends_in_an_error(schema: Any) -> None:
    """OPA ends without one."""
    program = rego.compile({"m.rego": "package p\nr := json.match_schema({}, input)\n"})
    with pytest.raises(rego.EvaluationError, match="nested too deeply"):
        program.query("data.p.r", schema)


def test_validation_is_bounded() -> None:
    """A schema of a few lines requires 2 ** 30 checks."""
    levels = {f"l{level}": {"allOf": [{"$ref": f"#/definitions/l{level + 1}"}] * 2} for level in range(30)}
    schema = {"definitions": {**levels, "l30": {}}, "$ref": "#/definitions/l0"}
    with limited(60, 10000), pytest.raises(BudgetExceededError):
        load_function("json.match_schema")({}, schema)
