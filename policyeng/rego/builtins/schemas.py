"""The builtins of JSON schemas, with the rules, the words and the order of the schema validator of OPA.

Where that validator goes through an object in the random order of Go, this one goes in the order of the names.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import NoReturn

from policyeng.rego.budget import charge
from policyeng.rego.builtins.go_text import Url, UrlError, parse_json, parse_url, resolve_url, to_value
from policyeng.rego.builtins.registry import BuiltinError, UnsupportedError, builtin
from policyeng.rego.builtins.schema_formats import FORMATS, compile_pattern
from policyeng.rego.numbers import from_fraction, to_fraction
from policyeng.rego.values import Value, is_number, number_text, to_json, write_json

_TYPES = ("array", "boolean", "integer", "number", "null", "object", "string")
_NAMES = {type(None): "null", bool: "boolean", str: "string", list: "array", dict: "object"}
_ROOT = "(Root)"
#: Schemas of which draft 6 and later have keywords that draft 4 has not.
_DRAFT_4, _DRAFT_6, _DRAFT_7, _HYBRID = 4, 6, 7, 99
_DRAFTS = {f"http://json-schema.org/draft-0{draft}/schema": draft for draft in (_DRAFT_4, _DRAFT_6, _DRAFT_7)}
_LITERAL = frozenset(("const", "enum"))
_NAMED_SCHEMAS = frozenset(("properties", "dependencies", "patternProperties"))
_MOST_COMPILED = 64
_LARGEST_INTEGER = (1 << 63) - 1
#: Beyond these, Go writes floats with an exponent.
_SMALLEST_PLAIN, _LARGEST_PLAIN = 1e-6, 1e21
_MANTISSA = 1 << 64


class SchemaError(Exception):
    """A schema that is not valid."""


@dataclass
class Schema:
    """A schema whose keywords are read.

    Attributes:
        passes: whether everything meets it, None if that depends.
        target: the schema that it refers to.
        numbers: limits of numbers by their keywords, of which exclusive ones are apart.
        sizes: limits of strings, arrays and objects by their keywords.
        schemas: those of keywords with one schema.
        choices: those of keywords with several.
    """

    draft: int
    passes: bool | None = None
    target: Schema | None = None
    types: list[str] = field(default_factory=list)
    properties: dict[str, Schema] = field(default_factory=dict)
    patterns: list[tuple[Callable[[str], object], Schema]] = field(default_factory=list)
    dependencies: dict[str, list[str] | Schema] = field(default_factory=dict)
    items: list[Schema] = field(default_factory=list)
    same_items: bool = False
    additional: dict[str, bool | Schema] = field(default_factory=dict)
    numbers: dict[str, Fraction] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    pattern: Callable[[str], object] | None = None
    pattern_text: str = ""
    format: str = ""
    required: list[str] = field(default_factory=list)
    unique: bool = False
    constant: str | None = None
    values: list[str] | None = None
    schemas: dict[str, Schema] = field(default_factory=dict)
    choices: dict[str, list[Schema]] = field(default_factory=dict)


@builtin("json.verify_schema")
def verify_schema(schema: Value) -> Value:
    """Return whether a value is a schema, and why it is not."""
    try:
        compile_schema(schema)
    except SchemaError as error:
        return [False, f"jsonschema: {error}"]
    return [True, None]


@builtin("json.match_schema")
def match_schema(document: Value, schema: Value) -> Value:
    """Return whether a document meets a schema, and where it does not."""
    try:
        if type(document) is str:
            content = parse_json(_read_text(document))
        else:
            _check_kind(document)
            content = to_json(document)
        compiled = compile_schema(schema)
        result = _Result()
        _validate(compiled, content, result, _ROOT)
    except SchemaError as error:
        raise BuiltinError(str(error)) from None
    return [not result.errors, result.errors]


def compile_schema(schema: Value) -> Schema:
    """Return a schema with its keywords.

    Raises:
        SchemaError: it is none.
        UnsupportedError: it refers to a schema elsewhere.
    """
    return _compile(_read_text(schema))


def _check_kind(value: Value) -> None:
    if type(value) not in {dict, list}:
        raise SchemaError("wrong type, expected string or object")


def _read_text(value: Value) -> str:
    """Return the JSON of a schema or a document."""
    if type(value) is str:
        try:
            parse_json(value)
        except BuiltinError:
            raise SchemaError("invalid JSON string") from None
        return value
    _check_kind(value)
    return write_json(value)


@lru_cache(_MOST_COMPILED)
def _compile(text: str) -> Schema:
    return _Compiler(parse_json(text)).root


def _parse_reference(text: str) -> Url:
    try:
        return parse_url(text)
    except UrlError as error:
        raise UnsupportedError(f"a schema with the reference {to_value(text)!r} is not supported: {error}") from None


def _refuse_type(expected: str, given: str) -> NoReturn:
    raise SchemaError(f"Invalid type. Expected: {expected}, given: {given}")


class _Compiler:
    """What reads a schema, whose references it makes absolute."""

    def __init__(self, document: Value) -> None:
        self._documents: dict[str, tuple[Value, int | None]] = {}
        self._targets: dict[str, Schema] = {}
        self._draft = self._find_draft(document)
        self._collect(document, Url())
        self._documents[""] = document, self._draft
        self.root = self._read(document, self._draft or _HYBRID)

    def _find_draft(self, document: Value) -> int | None:
        if type(document) is bool:
            return None
        if type(document) is not dict:
            raise SchemaError("schema is invalid")
        if "$schema" not in document:
            return None
        if type(document["$schema"]) is not str:
            raise SchemaError("$schema must be of type string")
        return _DRAFTS.get(str(_parse_reference(document["$schema"])))

    def _collect(self, document: Value, base: Url) -> None:
        """Find the identified parts of a schema, and make its references absolute."""
        if type(document) is list:
            for item in document:
                self._collect(item, base)
        if type(document) is not dict:
            return
        identifier = document.get("id" if "id" in document else "$id")
        if type(identifier) is str:
            base = resolve_url(_without_fragment(base), _parse_reference(identifier))
            if str(base) in self._documents:
                raise SchemaError(f'Reference already exists: "{base}"')
            self._documents[str(base)] = document, self._draft
        if type(document.get("$ref")) is str:
            document["$ref"] = str(resolve_url(_without_fragment(base), _parse_reference(document["$ref"])))
        for name in sorted(document):
            if name in _NAMED_SCHEMAS:
                if type(document[name]) is dict:
                    for _, item in sorted(document[name].items()):
                        self._collect(item, base)
            elif name not in _LITERAL:
                self._collect(document[name], base)

    def _find(self, reference: str) -> tuple[Value, int | None]:
        if reference in self._documents:
            return self._documents[reference]
        url = _parse_reference(reference)
        whole = str(_without_fragment(url))
        if whole in self._documents:
            document, draft = self._documents[whole]
            found = _follow_pointer(document, url.fragment), draft
            self._documents[reference] = found
            return found
        if url.scheme == "file" or (url.scheme and url.host):
            raise UnsupportedError(f"a schema with the remote reference {to_value(reference)!r} is not supported")
        raise SchemaError(f"Reference {reference} must be canonical")

    def _read(self, document: Value, draft: int) -> Schema:
        schema = Schema(draft)
        self._fill(document, schema)
        return schema

    def _fill(self, document: Value, schema: Schema) -> None:
        if schema.draft >= _DRAFT_6 and type(document) is bool:
            schema.passes = document
            return
        if type(document) is not dict:
            raise SchemaError("Expected: Valid Schema, given: Invalid JSON")
        old = schema.draft == _DRAFT_4 or (schema.draft == _HYBRID and "id" in document)
        identifier = _get_text(document, "id" if old else "$id")
        if identifier is not None:
            _parse_reference(identifier)
        self._read_definitions(document, schema)
        _get_text(document, "title")
        _get_text(document, "description")
        reference = _get_text(document, "$ref")
        if reference is not None:
            reference = str(_parse_reference(reference))
            if reference not in self._targets:
                schema.target = self._read_target(reference, schema.draft)
                return
            schema.target = self._targets[reference]
        _read_types(document, schema)
        self._read_object_keywords(document, schema)
        self._read_array_keywords(document, schema)
        _read_numbers(document, schema)
        _read_sizes(document, schema, "Length", ordered=True)
        _read_text_keywords(document, schema)
        _read_sizes(document, schema, "Properties", ordered=True)
        _read_required(document, schema)
        _read_sizes(document, schema, "Items", ordered=False)
        self._read_common_keywords(document, schema)

    def _read_target(self, reference: str, draft: int) -> Schema:
        target = Schema(draft)
        self._targets[reference] = target
        document, own = self._find(reference)
        if type(document) not in {bool, dict}:
            raise SchemaError("Valid Schema must be of type object")
        target.draft = own or draft
        self._fill(document, target)
        return target

    def _read_definitions(self, document: dict[str, Value], schema: Schema) -> None:
        if "definitions" not in document:
            return
        definitions = document["definitions"]
        if type(definitions) is not dict:
            _refuse_type("Array Of Schemas", "definitions")
        for _, definition in sorted(definitions.items()):
            if type(definition) not in {bool, dict}:
                _refuse_type("Array Of Schemas", "definitions")
            self._read(definition, schema.draft)

    def _read_additional(self, document: dict[str, Value], schema: Schema, name: str) -> None:
        if name in document:
            value = document[name]
            if type(value) not in {bool, dict}:
                _refuse_type("boolean/Valid Schema", name)
            schema.additional[name] = value if type(value) is bool else self._read(value, schema.draft)

    def _read_object_keywords(self, document: dict[str, Value], schema: Schema) -> None:
        draft = schema.draft
        if "properties" in document:
            if type(document["properties"]) is not dict:
                raise SchemaError("Properties must be of type object")
            for name, value in sorted(document["properties"].items()):
                schema.properties[name] = self._read(value, draft)
        self._read_additional(document, schema, "additionalProperties")
        if "patternProperties" in document:
            if type(document["patternProperties"]) is not dict:
                _refuse_type("Valid Schema", "patternProperties")
            for name, value in sorted(document["patternProperties"].items()):
                pattern = compile_pattern(name)
                if pattern is None:
                    raise SchemaError(f"Invalid regex pattern '{name}'")
                schema.patterns.append((pattern, self._read(value, draft)))
        if "propertyNames" in document and draft >= _DRAFT_6:
            if type(document["propertyNames"]) not in {bool, dict}:
                _refuse_type("Valid Schema", "patternProperties")
            schema.schemas["propertyNames"] = self._read(document["propertyNames"], draft)
        if "dependencies" in document:
            if type(document["dependencies"]) is not dict:
                raise SchemaError("dependencies must be of type object")
            for name, value in sorted(document["dependencies"].items()):
                if type(value) in {bool, dict}:
                    schema.dependencies[name] = self._read(value, draft)
                elif type(value) is list and all(type(each) is str for each in value):
                    schema.dependencies[name] = value
                else:
                    raise SchemaError("Dependency must be of type Schema Or Array Of Strings")

    def _read_array_keywords(self, document: dict[str, Value], schema: Schema) -> None:
        if "items" in document:
            items = document["items"]
            schema.same_items = type(items) is not list
            for item in [items] if schema.same_items else items:
                if type(item) not in {bool, dict}:
                    _refuse_type("Valid Schema/Array Of Schemas", "items")
                schema.items.append(self._read(item, schema.draft))
        self._read_additional(document, schema, "additionalItems")

    def _read_common_keywords(self, document: dict[str, Value], schema: Schema) -> None:
        draft = schema.draft
        if "uniqueItems" in document:
            if type(document["uniqueItems"]) is not bool:
                raise SchemaError("uniqueItems must be of a boolean")
            schema.unique = document["uniqueItems"]
        if "contains" in document and draft >= _DRAFT_6:
            schema.schemas["contains"] = self._read(document["contains"], draft)
        if "const" in document and draft >= _DRAFT_6:
            schema.constant = _canonical(document["const"])
        values = _get_list(document, "enum")
        if values is not None:
            schema.values = []
            for value in map(_canonical, values):
                if value in schema.values:
                    raise SchemaError("enum items must be unique")
                schema.values.append(value)
        for name in ("oneOf", "anyOf", "allOf"):
            schema.choices[name] = [self._read(each, draft) for each in _get_list(document, name) or ()]
        for name in ("not", *(("if", "then", "else") if draft >= _DRAFT_7 else ())):
            if name in document:
                if type(document[name]) not in {bool, dict}:
                    raise SchemaError(f"{name} must be of an object")
                schema.schemas[name] = self._read(document[name], draft)


def _without_fragment(url: Url) -> Url:
    return Url(**{**vars(url), "fragment": ""})


def _follow_pointer(document: Value, pointer: str) -> Value:
    if not pointer.startswith("/"):
        return document
    for token in pointer[1:].split("/"):
        if type(document) is dict:
            name = token.replace("~1", "/").replace("~0", "~")
            if name not in document:
                raise SchemaError(f"Object has no key '{name}'")
            document = document[name]
        elif type(document) is list:
            digits = token.removeprefix("-").removeprefix("+")
            if not (digits.isascii() and digits.isdecimal()):
                raise SchemaError(f"Invalid array index '{token}'")
            index = -int(digits) if token.startswith("-") else int(digits)
            if not 0 <= index < len(document):
                raise SchemaError(f"Out of bound array[0,{len(document)}] index '{index}'")
            document = document[index]
        else:
            raise SchemaError(f"Invalid token reference '{token}'")
    return document


def _get_text(document: dict[str, Value], name: str) -> str | None:
    value = document.get(name)
    if name in document and type(value) is not str:
        _refuse_type("string", name)
    return value


def _get_list(document: dict[str, Value], name: str) -> list[Value] | None:
    value = document.get(name)
    if name in document and type(value) is not list:
        raise SchemaError(f"{name} must be of an array")
    return value


def _read_types(document: dict[str, Value], schema: Schema) -> None:
    if "type" not in document:
        return
    wanted = document["type"]
    for each in wanted if type(wanted) is list else [wanted]:
        if type(each) is not str:
            _refuse_type("type", "string/Array Of Strings")
        if each not in _TYPES:
            expected = f"Expected valid values are:[{' '.join(_TYPES)}]"
            raise SchemaError(f"has a primitive type that is NOT VALID -- given: /{each}/ {expected}")
        if each in schema.types:
            raise SchemaError(f"{each} type is duplicated")
        schema.types.append(each)


def _read_numbers(document: dict[str, Value], schema: Schema) -> None:
    if "multipleOf" in document:
        if not is_number(document["multipleOf"]):
            _refuse_type("Number", "multipleOf")
        schema.numbers["multipleOf"] = to_fraction(document["multipleOf"])
        if schema.numbers["multipleOf"] <= 0:
            raise SchemaError("multipleOf must be strictly greater than 0")
    for limit, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if limit in document:
            if not is_number(document[limit]):
                raise SchemaError(f"{limit} must be of a Number")
            schema.numbers[limit] = to_fraction(document[limit])
        if exclusive in document:
            _read_exclusive(schema, limit, exclusive, document[exclusive])


def _read_exclusive(schema: Schema, limit: str, exclusive: str, value: Value) -> None:
    if type(value) is bool and schema.draft in {_DRAFT_4, _HYBRID}:
        if limit not in schema.numbers:
            raise SchemaError(f"{exclusive} cannot be used without {limit}")
        if value:
            schema.numbers[exclusive] = schema.numbers.pop(limit)
    elif is_number(value) and schema.draft != _DRAFT_4:
        schema.numbers[exclusive] = to_fraction(value)
    else:
        _refuse_type({_DRAFT_4: "boolean", _HYBRID: "boolean/number"}.get(schema.draft, "number"), exclusive)


def _read_sizes(document: dict[str, Value], schema: Schema, what: str, *, ordered: bool) -> None:
    least, most = f"min{what}", f"max{what}"
    for name in (least, most):
        if name in document:
            value = document[name]
            if type(value) is not int or not -_LARGEST_INTEGER - 1 <= value <= _LARGEST_INTEGER:
                raise SchemaError(f"{name} must be of an integer")
            if value < 0:
                raise SchemaError(f"{name} must be greater than or equal to 0")
            schema.sizes[name] = value
    if ordered and least in schema.sizes and most in schema.sizes and schema.sizes[least] > schema.sizes[most]:
        raise SchemaError(f"{least} cannot be greater than {most}")


def _read_text_keywords(document: dict[str, Value], schema: Schema) -> None:
    pattern = _get_text(document, "pattern")
    if pattern is not None:
        schema.pattern, schema.pattern_text = compile_pattern(pattern), pattern
        if schema.pattern is None:
            raise SchemaError("pattern must be a valid regex")
    schema.format = _get_text(document, "format") or ""


def _read_required(document: dict[str, Value], schema: Schema) -> None:
    for name in _get_list(document, "required") or ():
        if type(name) is not str:
            _refuse_type("string", "required")
        if name in schema.required:
            raise SchemaError("required items must be unique")
        schema.required.append(name)


def _canonical(value: Value) -> str:
    """Return the JSON of a value whose numbers are floats."""
    if is_number(value):
        return _format_float(value)
    if type(value) is list:
        return f"[{','.join(map(_canonical, value))}]"
    if type(value) is dict:
        return f"{{{','.join(f'{write_json(name)}:{_canonical(value[name])}' for name in sorted(value))}}}"
    return write_json(value)


def _format_float(value: Value) -> str:
    try:
        number = float(value)
    except OverflowError:
        number = float("inf")
    if number in {float("inf"), float("-inf")}:
        raise UnsupportedError(f"a schema for the number {number_text(value)} is not supported")
    digits = json.dumps(number)
    if number == 0 or _SMALLEST_PLAIN <= abs(number) < _LARGEST_PLAIN:
        return f"{Decimal(digits):f}".removesuffix(".0")
    mantissa, _, exponent = f"{Decimal(digits):e}".partition("e")
    return f"{mantissa}e{exponent}"


@dataclass
class _Result:
    """What validation has found.

    Attributes:
        score: how well a document meets a schema, by which the best of several is chosen.
    """

    errors: list[Value] = field(default_factory=list)
    score: int = 0

    def refuse(self, kind: str, context: str, text: str) -> None:
        """Add an error."""
        place = context.removeprefix(f"{_ROOT}.")
        self.errors.append({"error": f"{place}: {text}", "type": kind, "field": place, "desc": text})
        self.score -= 2

    def merge(self, other: _Result) -> None:
        """Add the errors and the score of another."""
        self.errors.extend(other.errors)
        self.score += other.score


def _check(schema: Schema, value: Value, context: str) -> _Result:
    result = _Result()
    _validate(schema, value, result, context)
    return result


def _validate(schema: Schema, value: Value, result: _Result, context: str) -> None:
    charge(1)
    if schema.passes is None and schema.target is not None:
        _validate(schema.target, value, result, context)
        return
    if schema.passes is not None:
        if not schema.passes:
            result.refuse("false", context, "False always fails validation")
        return
    kind = _NAMES.get(type(value), "")
    if not kind:
        kind = "integer" if to_fraction(value).denominator == 1 else "number"
    if schema.types and kind not in schema.types and not (kind == "integer" and "number" in schema.types):
        expected = schema.types[0] if len(schema.types) == 1 else f"[{','.join(schema.types)}]"
        result.refuse("invalid_type", context, f"Invalid type. Expected: {expected}, given: {kind}")
        return
    _validate_choices(schema, value, result, context)
    if kind in {"integer", "number"}:
        _validate_number(schema, to_fraction(value), result, context)
    elif kind == "array":
        _validate_array(schema, value, result, context)
    elif kind == "object":
        _validate_object(schema, value, result, context)
    _validate_common(schema, value, result, context)
    if kind == "object":
        for name, child in schema.properties.items():
            if name in value:
                _validate(child, value[name], result, f"{context}.{name}")
    elif kind == "string":
        _validate_text(schema, value, result, context)
    result.score += 1


def _best(results: list[_Result]) -> _Result | None:
    best = None
    for result in results:
        if result.errors and (best is None or result.score > best.score):
            best = result
    return best


def _validate_choices(schema: Schema, value: Value, result: _Result, context: str) -> None:
    choices = schema.choices
    if choices["anyOf"]:
        found = []
        for each in choices["anyOf"]:
            found.append(_check(each, value, context))
            if not found[-1].errors:
                break
        best = _best(found)
        if found[-1].errors and best:
            result.refuse("number_any_of", context, "Must validate at least one schema (anyOf)")
            result.merge(best)
    if choices["oneOf"]:
        found = [_check(each, value, context) for each in choices["oneOf"]]
        valid = sum(not each.errors for each in found)
        best = _best(found)
        if valid != 1:
            result.refuse("number_one_of", context, "Must validate one and only one schema (oneOf)")
            if not valid and best:
                result.merge(best)
    if choices["allOf"]:
        found = [_check(each, value, context) for each in choices["allOf"]]
        for part in found:
            result.merge(part)
        if any(part.errors for part in found):
            result.refuse("number_all_of", context, "Must validate all the schemas (allOf)")
    schemas = schema.schemas
    if "not" in schemas and not _check(schemas["not"], value, context).errors:
        result.refuse("number_not", context, "Must not validate the schema (not)")
    _validate_dependencies(schema, value, result, context)
    if "if" in schemas:
        met = not _check(schemas["if"], value, context).errors
        name, text = ("then", "was valid") if met else ("else", "was not valid")
        other = _check(schemas[name], value, context) if name in schemas else _Result()
        if other.errors:
            result.refuse(f"condition_{name}", context, f'Must validate "{name}" as "if" {text}')
            result.merge(other)
    result.score += 1


def _validate_dependencies(schema: Schema, value: Value, result: _Result, context: str) -> None:
    if type(value) is not dict:
        return
    for name in sorted(schema.dependencies):
        if name in value:
            dependency = schema.dependencies[name]
            if isinstance(dependency, Schema):
                _validate(dependency, value, result, context)
                continue
            for other in dependency:
                if other not in value:
                    result.refuse("missing_dependency", context, f"Has a dependency on {other}")


def _validate_common(schema: Schema, value: Value, result: _Result, context: str) -> None:
    place = context.removeprefix(f"{_ROOT}.")
    text = _canonical(value) if schema.constant is not None or schema.values is not None else ""
    if schema.constant is not None and text != schema.constant:
        result.refuse("const", context, f"{place} does not match: {schema.constant}")
    if schema.values is not None and text not in schema.values:
        result.refuse("enum", context, f"{place} must be one of the following: {', '.join(schema.values)}")
    if type(value) is str and schema.format in FORMATS and not FORMATS[schema.format](value):
        result.refuse("format", context, f"Does not match format '{schema.format}'")
    result.score += 1


def _validate_array(schema: Schema, value: list[Value], result: _Result, context: str) -> None:
    if schema.same_items:
        for index, item in enumerate(value):
            result.merge(_check(schema.items[0], item, f"{context}.{index}"))
    elif schema.items:
        for index, (child, item) in enumerate(zip(schema.items, value, strict=False)):
            result.merge(_check(child, item, f"{context}.{index}"))
        additional = schema.additional.get("additionalItems", True)
        if len(schema.items) < len(value) and additional is not True:
            if additional is False:
                result.refuse("array_no_additional_items", context, "No additional items allowed on array")
            else:
                for index in range(len(schema.items), len(value)):
                    result.merge(_check(additional, value[index], f"{context}.{index}"))
    sizes = schema.sizes
    if "minItems" in sizes and len(value) < sizes["minItems"]:
        result.refuse("array_min_items", context, f"Array must have at least {sizes['minItems']} items")
    if "maxItems" in sizes and len(value) > sizes["maxItems"]:
        result.refuse("array_max_items", context, f"Array must have at most {sizes['maxItems']} items")
    if schema.unique:
        places: dict[str, int] = {}
        for index, text in enumerate(map(_canonical, value)):
            if text in places:
                result.refuse("unique", context, f"array items[{places[text]},{index}] must be unique")
            places[text] = index
    if "contains" in schema.schemas:
        found = []
        for index, item in enumerate(value):
            found.append(_check(schema.schemas["contains"], item, f"{context}.{index}"))
            if not found[-1].errors:
                break
        else:
            result.refuse("contains", context, "At least one of the items must match")
            best = _best(found)
            if best:
                result.merge(best)
    result.score += 1


def _validate_object(schema: Schema, value: dict[str, Value], result: _Result, context: str) -> None:
    sizes = schema.sizes
    if "minProperties" in sizes and len(value) < sizes["minProperties"]:
        result.refuse("array_min_properties", context, f"Must have at least {sizes['minProperties']} properties")
    if "maxProperties" in sizes and len(value) > sizes["maxProperties"]:
        result.refuse("array_max_properties", context, f"Must have at most {sizes['maxProperties']} properties")
    for name in schema.required:
        if name in value:
            result.score += 1
        else:
            result.refuse("required", context, f"{name} is required")
    additional = schema.additional.get("additionalProperties", True)
    for name in sorted(value) if schema.patterns or additional is not True else ():
        matching = [child for matches, child in schema.patterns if matches(name)]
        for child in matching:
            result.merge(_check(child, value[name], f"{context}.{name}"))
        if matching:
            result.score += 1
        elif name not in schema.properties:
            if isinstance(additional, Schema):
                result.merge(_check(additional, value[name], f"{context}.{name}"))
            elif not additional:
                text = f"Additional property {name} is not allowed"
                result.refuse("additional_property_not_allowed", context, text)
    if "propertyNames" in schema.schemas:
        for name in sorted(value):
            found = _check(schema.schemas["propertyNames"], name, context)
            if found.errors:
                result.refuse("invalid_property_name", context, f'Property name of "{name}" does not match')
                result.merge(found)
    result.score += 1


def _validate_text(schema: Schema, value: str, result: _Result, context: str) -> None:
    sizes = schema.sizes
    if "minLength" in sizes and len(value) < sizes["minLength"]:
        text = f"String length must be greater than or equal to {sizes['minLength']}"
        result.refuse("string_gte", context, text)
    if "maxLength" in sizes and len(value) > sizes["maxLength"]:
        result.refuse("string_lte", context, f"String length must be less than or equal to {sizes['maxLength']}")
    if schema.pattern and not schema.pattern(value):
        result.refuse("pattern", context, f"Does not match pattern '{schema.pattern_text}'")
    result.score += 1


def _validate_number(schema: Schema, value: Fraction, result: _Result, context: str) -> None:
    numbers = schema.numbers
    if "multipleOf" in numbers and (value / numbers["multipleOf"]).denominator != 1:
        result.refuse("multiple_of", context, f"Must be a multiple of {_format_limit(numbers['multipleOf'])}")
    if "maximum" in numbers and value > numbers["maximum"]:
        result.refuse("number_lte", context, f"Must be less than or equal to {_format_limit(numbers['maximum'])}")
    if "exclusiveMaximum" in numbers and value >= numbers["exclusiveMaximum"]:
        result.refuse("number_lt", context, f"Must be less than {_format_limit(numbers['exclusiveMaximum'])}")
    if "minimum" in numbers and value < numbers["minimum"]:
        result.refuse("number_gte", context, f"Must be greater than or equal to {_format_limit(numbers['minimum'])}")
    if "exclusiveMinimum" in numbers and value <= numbers["exclusiveMinimum"]:
        result.refuse("number_gt", context, f"Must be greater than {_format_limit(numbers['exclusiveMinimum'])}")
    result.score += 1


def _format_limit(limit: Fraction) -> str:
    """Return a limit as Go writes a big float."""
    if limit.denominator == 1:
        text = str(limit.numerator)
    elif abs(limit.numerator) >= _MANTISSA or limit.denominator >= _MANTISSA:
        raise UnsupportedError("an error for a limit of more than 64 bits is not supported")
    else:
        text = number_text(from_fraction(limit))
    digits = Decimal(text).normalize(Context(prec=len(text)))
    if digits and not -4 <= digits.adjusted() < 6:
        mantissa, _, exponent = f"{digits:e}".partition("e")
        return f"{mantissa}e{exponent[0]}{exponent[1:].rjust(2, '0')}"
    return f"{digits:f}"
