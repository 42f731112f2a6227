"""The types that JSON schemas in annotations give to documents, as OPA's type checker reads them."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from policyeng.rego.budget import spend
from policyeng.rego.builtins import UnsupportedError
from policyeng.rego.builtins.schemas import Schema, SchemaError, compile_schema
from policyeng.rego.types import (
    ANY,
    BOOLEAN,
    NUMBER,
    STRING,
    UNKNOWN,
    Key,
    ObjectType,
    Tree,
    Type,
    array,
    either,
    object_,
)
from policyeng.rego.values import Value


def put_schema(tree: Tree, path: list[Key], definition: Value) -> None:
    """Give a document, or a part of one, the type that a schema describes.

    Args:
        tree: of documents with their types.
        path: of the part.
        definition: the schema.

    Raises:
        SchemaError: it is not a schema, or combines schemas that do not fit together.
        UnsupportedError: it refers to a schema elsewhere.
    """
    try:
        described = _type_of(compile_schema(definition), ())
    except RecursionError:
        raise UnsupportedError("the schema is nested too deeply") from None
    node = tree
    for place, key in enumerate(path):
        if node.type != UNKNOWN:
            node.type = _override(node.type, path[place:], described)
            return
        node = node.children.setdefault(key, Tree())
    node.type = described


def _override(outer: Type, path: list[Key], described: Type) -> Type:
    """Return the type of an object with another one for a part of it."""
    static, dynamic = (outer.static, outer.dynamic) if isinstance(outer, ObjectType) else ((), (ANY, ANY))
    if len(path) > 1:
        described = _override(dict(static).get(path[0], object_((), dynamic)), path[1:], described)
    return object_([*static, (path[0], described)], dynamic)


def _type_of(schema: Schema, around: tuple[Schema, ...]) -> Type:
    spend()
    if (target := schema.target) is not None:
        # OPA has types of themselves; here the inner one is any.
        return ANY if any(target is each for each in around) else _type_of(target, (*around, target))
    any_of, all_of = schema.choices.get("anyOf"), schema.choices.get("allOf")
    if any_of:
        members = [_type_of(each, around) for each in any_of]
        if schema.types:
            core = _type_of(replace(schema, choices={**schema.choices, "anyOf": []}), around)
            members += [core] if isinstance(core, ObjectType) and core.static and not core.dynamic else []
        return reduce(either, members)
    if all_of:
        return _type_of_all(schema, all_of, around)
    kinds = schema.types
    for names, scalar in ((("boolean",), BOOLEAN), (("string",), STRING), (("integer", "number"), NUMBER)):
        if not set(kinds).isdisjoint(names):
            return scalar
    has_structure = "object" in kinds or "array" in kinds
    if "object" in kinds or (schema.properties and not has_structure):
        static = [((STRING.rank, name), _type_of(each, around)) for name, each in schema.properties.items()]
        return object_(static) if static else object_((), (ANY, ANY))
    if "array" in kinds or schema.items:
        items = [_type_of(each, around) for each in schema.items]
        return array((), items[0] if items else ANY) if schema.same_items or not items else array(items)
    return ANY


def _type_of_all(schema: Schema, all_of: list[Schema], around: tuple[Schema, ...]) -> Type:
    """Return the type of what meets all of several schemas."""
    parts = []
    for each in all_of:
        steps = 0
        while each.target is not None and steps <= len(all_of) + len(around):
            each, steps = each.target, steps + 1  # what it refers to
        if each.types or each.properties or each.items or not each.choices.get("anyOf"):
            parts.append(each)
    if not parts:
        return ANY
    merged = _merge(parts)
    if schema.types:
        if any(kind in schema.types and kind in merged.types for kind in ("object", "array")):
            merged = _merge([merged, schema])
        elif schema.types != merged.types:
            raise SchemaError("unable to merge these schemas")
    return _type_of(merged, around)


def _merge(schemas: list[Schema]) -> Schema:
    first, *others = (_with_kind(each) for each in schemas)
    properties, items = dict(first.properties), list(first.items)
    for other in others:
        if first.types != other.types:
            raise SchemaError(f"unable to merge these schemas: type mismatch: {first.types} and {other.types}")
        if "object" in first.types and properties:
            properties |= other.properties
        elif "array" in first.types and items:
            items += other.items[len(items) :]
            if any(one.types != more.types for one, more in zip(items, other.items, strict=False)):
                raise SchemaError("unable to merge these schemas")
    return replace(first, properties=properties, items=items)


def _with_kind(schema: Schema) -> Schema:
    kind = "object" if schema.properties else "array" if schema.items else ""
    return replace(schema, types=[*schema.types, kind]) if kind and kind not in schema.types else schema
