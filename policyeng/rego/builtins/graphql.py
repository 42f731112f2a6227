"""The builtins of GraphQL."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

from graphql import GraphQLError, GraphQLSchema, build_ast_schema, parse, validate

from policyeng.rego.builtins import graphql_syntax
from policyeng.rego.builtins.graphql_syntax import GraphqlSyntaxError
from policyeng.rego.builtins.graphql_syntax import parse_schema as parse_schema_text
from policyeng.rego.builtins.registry import BuiltinError, builtin, check_string, wrong_type
from policyeng.rego.values import Value

_Tree = dict[str, Any]
_BUILTIN = """
scalar Int scalar Float scalar String scalar Boolean scalar ID
directive @defer(if: Boolean = true, label: String) on FRAGMENT_SPREAD | INLINE_FRAGMENT
directive @include(if: Boolean!) on FIELD | FRAGMENT_SPREAD | INLINE_FRAGMENT
directive @skip(if: Boolean!) on FIELD | FRAGMENT_SPREAD | INLINE_FRAGMENT
directive @deprecated(reason: String) on FIELD_DEFINITION | ARGUMENT_DEFINITION | INPUT_FIELD_DEFINITION | ENUM_VALUE
directive @specifiedBy(url: String!) on SCALAR
directive @oneOf on INPUT_OBJECT
"""
_INTROSPECTION = {
    **dict.fromkeys(("__Schema", "__Type", "__Field", "__InputValue", "__EnumValue", "__Directive"), "OBJECT"),
    **dict.fromkeys(("__TypeKind", "__DirectiveLocation"), "ENUM"),
}
_INPUTS = frozenset(("SCALAR", "ENUM", "INPUT_OBJECT"))
_OUTPUTS = frozenset(("SCALAR", "OBJECT", "INTERFACE", "UNION", "ENUM"))
_NAMED_MEMBERS = ("Fields", "EnumValues")
_EXTENDED = ("Directives", "Interfaces", "Fields", "Types", "EnumValues")
_NULL = 6


class GraphqlSchemaError(Exception):
    """What makes a schema invalid."""


@cache
def _builtin() -> _Tree:
    return parse_schema_text(_BUILTIN)


def check_schema(tree: _Tree) -> None:
    """Check a schema.

    Args:
        tree: as `parse_schema` gives it.

    Raises:
        GraphqlSchemaError: it is invalid.
    """
    _Checker(tree).check()


class _Checker:
    """A schema with its types and directives by name."""

    def __init__(self, tree: _Tree) -> None:
        self._tree = tree
        self._types: dict[str, _Tree] = {
            name: {"Name": name, "Kind": kind, "Given": True} for name, kind in _INTROSPECTION.items()
        }
        self._types |= {each["Name"]: {**each, "Given": True} for each in _builtin()["Definitions"]}
        self._directives: dict[str, _Tree] = {}
        for each in tree.get("Definitions", ()):
            if each["Name"] in self._types:
                raise GraphqlSchemaError(f"Cannot redeclare type {each['Name']}")
            self._types[each["Name"]] = each
        for each in tree.get("Extensions", ()):
            base = self._types.get(each["Name"], {"Name": each["Name"], "Kind": each["Kind"]})
            if base["Kind"] != each["Kind"]:
                raise GraphqlSchemaError(f"Cannot extend type {each['Name']} of another kind")
            members = {name: [*base.get(name, ()), *each.get(name, ())] for name in _EXTENDED}
            self._types[each["Name"]] = {**base, **members}
        self._possible: dict[str, set[str]] = {}
        for each in self._types.values():
            if each["Kind"] == "UNION":
                self._possible.setdefault(each["Name"], set()).update(each.get("Types", ()))
            elif each["Kind"] in {"OBJECT", "INPUT_OBJECT", "INTERFACE"}:
                own = () if each["Kind"] == "INTERFACE" else (each["Name"],)
                for name in (*each.get("Interfaces", ()), *own):
                    self._possible.setdefault(name, set()).add(each["Name"])

    def check(self) -> None:
        """Check the whole schema."""
        given = {each["Name"] for each in _builtin()["Directives"]}
        for each in (*_builtin()["Directives"], *self._tree.get("Directives", ())):
            if each["Name"] in self._directives and each["Name"] not in given:
                raise GraphqlSchemaError(f"Cannot redeclare directive {each['Name']}")
            self._directives[each["Name"]] = each
        if len(self._tree.get("Schema", ())) > 1:
            raise GraphqlSchemaError("Cannot have multiple schema entry points, consider schema extensions instead")
        for each in (*self._tree.get("Schema", ()), *self._tree.get("SchemaExtension", ())):
            for entry in each.get("OperationTypes", ()):
                self._find(entry["Type"])
            self._check_directives(each, "SCHEMA")
        for each in self._types.values():
            self._check_definition(each)
        self._check_cycles()
        for each in self._directives.values():
            _check_name(each["Name"])
            self._check_arguments(each, current=each["Name"])

    def _find(self, name: str) -> _Tree:
        if name not in self._types:
            raise GraphqlSchemaError(f"Undefined type {name}")
        return self._types[name]

    def _check_definition(self, definition: _Tree) -> None:
        kind, fields = definition["Kind"], definition.get("Fields", ())
        for each in fields:
            _check_name(each["Name"])
            self._find(_named_type(each["Type"]))
            self._check_arguments(each)
            self._check_directives(each, "INPUT_FIELD_DEFINITION" if kind == "INPUT_OBJECT" else "FIELD_DEFINITION")
        for name in definition.get("Types", ()):
            if self._find(name)["Kind"] != "OBJECT":
                raise GraphqlSchemaError(f"UNION type {name} must be OBJECT")
        for name in definition.get("Interfaces", ()):
            self._check_interface(definition, name)
        members = {"OBJECT": fields, "INTERFACE": fields, "INPUT_OBJECT": fields, "ENUM": definition.get("EnumValues")}
        if not members.get(kind, True) and definition["Name"] not in _INTROSPECTION:
            raise GraphqlSchemaError(f"{kind} {definition['Name']}: must define one or more members")
        allowed = _INPUTS if kind == "INPUT_OBJECT" else _OUTPUTS
        if any(self._types[_named_type(each["Type"])]["Kind"] not in allowed for each in fields):
            raise GraphqlSchemaError(f"{kind} {definition['Name']}: a field has a type of another kind")
        for each in definition.get("EnumValues", ()):
            if each["Name"] in {"true", "false", "null"}:
                raise GraphqlSchemaError(f"ENUM {definition['Name']}: non-enum value {each['Name']}")
            self._check_directives(each, "ENUM_VALUE")
        names = [each["Name"] for member in _NAMED_MEMBERS for each in definition.get(member, ())]
        if any(count > 1 for count in Counter([*names, *definition.get("Types", ())]).values()):
            raise GraphqlSchemaError(f"{kind} {definition['Name']}: a member is defined twice")
        if "Given" not in definition:
            _check_name(definition["Name"])
        self._check_directives(definition, kind, once=False)

    def _check_arguments(self, owner: _Tree, current: str = "") -> None:
        for each in owner.get("Arguments", ()):
            _check_name(each["Name"])
            if self._find(_named_type(each["Type"]))["Kind"] not in _INPUTS:
                raise GraphqlSchemaError(f"the type of argument {each['Name']} is not a valid input type")
            self._check_directives(each, "ARGUMENT_DEFINITION", current)

    def _check_directives(self, owner: _Tree, location: str, current: str = "", *, once: bool = True) -> None:
        seen = set()
        for each in owner.get("Directives", ()):
            name = each["Name"]
            _check_name(name)
            if name == current or name not in self._directives:
                raise GraphqlSchemaError(f"Undefined directive {name}, or one that refers to itself")
            definition = self._directives[name]
            if once and name in seen and not definition["IsRepeatable"]:
                raise GraphqlSchemaError(f"The directive {name} can only be used once at this location")
            seen.add(name)
            if location not in definition["Locations"]:
                raise GraphqlSchemaError(f"Directive {name} is not applicable on {location}")
            known = {argument["Name"]: argument for argument in definition.get("Arguments", ())}
            given = {argument["Name"]: argument["Value"] for argument in reversed(each.get("Arguments", ()))}
            if not given.keys() <= known.keys():
                raise GraphqlSchemaError(f"Undefined argument for directive {name}")
            for argument in known.values():
                needed = argument["Type"]["NonNull"] and "DefaultValue" not in argument
                if needed and given.get(argument["Name"], {"Kind": _NULL})["Kind"] == _NULL:
                    raise GraphqlSchemaError(f"Argument {argument['Name']} for directive {name} cannot be null")

    def _check_interface(self, definition: _Tree, name: str) -> None:
        interface = self._find(name)
        if interface["Kind"] != "INTERFACE":
            raise GraphqlSchemaError(f"{name} is a non interface type")
        fields = _by_name(definition.get("Fields", ()))
        for required in interface.get("Fields", ()):
            found = fields.get(required["Name"])
            if found is None or not self._is_covariant(required["Type"], found["Type"]):
                raise GraphqlSchemaError(f"For {definition['Name']} to implement {name} it needs {required['Name']}")
            wanted, given = _by_name(required.get("Arguments", ())), _by_name(found.get("Arguments", ()))
            for argument in wanted:
                if argument not in given or not _is_compatible(wanted[argument]["Type"], given[argument]["Type"]):
                    raise GraphqlSchemaError(f"For {definition['Name']} to implement {name} it needs {argument}")
            for each in found.get("Arguments", ()):
                if each["Name"] not in wanted and each["Type"]["NonNull"] and "DefaultValue" not in each:
                    raise GraphqlSchemaError(f"For {definition['Name']} to implement {name} arguments must be optional")
        for other in interface.get("Interfaces", ()):
            if other not in definition["Interfaces"]:
                raise GraphqlSchemaError(f"Type {definition['Name']} must implement {other}")

    def _is_covariant(self, required: _Tree, actual: _Tree) -> bool:
        if required["NonNull"] and not actual["NonNull"]:
            return False
        if required["NamedType"]:
            name = actual["NamedType"]
            return bool(required["NamedType"] == name or name in self._possible.get(required["NamedType"], ()))
        return "Elem" in actual and self._is_covariant(required["Elem"], actual["Elem"])

    def _check_cycles(self) -> None:
        """Refuse inputs that need themselves."""
        needs = {
            name: {
                each["Type"]["NamedType"]
                for each in definition.get("Fields", ())
                if each["Type"]["NonNull"]
                and self._types.get(each["Type"]["NamedType"], {}).get("Kind") == "INPUT_OBJECT"
            }
            for name, definition in self._types.items()
            if definition["Kind"] == "INPUT_OBJECT"
        }
        while free := [name for name, needed in needs.items() if not needed & needs.keys()]:
            for name in free:
                del needs[name]
        if needs:
            raise GraphqlSchemaError(f"Cannot reference Input Object {min(needs)} within itself by non-null fields")


def _by_name(members: Sequence[_Tree]) -> dict[str, _Tree]:
    """Return members by name, of which the first counts."""
    return {each["Name"]: each for each in reversed(members)}


def _check_name(name: str) -> None:
    if name.startswith("__"):
        raise GraphqlSchemaError(f'Name "{name}" must not begin with "__", which is reserved by GraphQL introspection')


def _named_type(tree: _Tree) -> str:
    while "Elem" in tree:
        tree = tree["Elem"]
    return str(tree["NamedType"])


def _is_compatible(left: _Tree, right: _Tree) -> bool:
    if left["NamedType"] != right["NamedType"]:
        return False
    if "Elem" in left and not ("Elem" in right and _is_compatible(left["Elem"], right["Elem"])):
        return False
    return bool(left["NonNull"] or not right["NonNull"])


_MOST_SCHEMAS = 10
_DEFERRING = re.compile(r"@[\s,]*defer\b")


class _QueryError(Exception):
    """What makes a query invalid."""


_INVALID = (GraphqlSyntaxError, GraphqlSchemaError, _QueryError)


@builtin("graphql.parse_query")
def parse_query(query: Value) -> Value:
    """Return the syntax tree of a query."""
    return graphql_syntax.parse_query(check_string(1, query))


@builtin("graphql.parse_schema")
def parse_schema(schema: Value) -> Value:
    """Return the syntax tree of a schema."""
    return graphql_syntax.parse_schema(check_string(1, schema))


@builtin("graphql.parse")
def parse_both(query: Value, schema: Value) -> Value:
    """Return the syntax trees of a query and of the schema that it meets."""
    for position, text in enumerate((query, schema)):
        if type(text) not in {str, dict}:
            raise wrong_type(position, text, "string", "object")
    try:
        return _parse_valid(query, schema)
    except (GraphqlSchemaError, _QueryError) as error:
        raise BuiltinError(f"{error} in GraphQL string") from None


@builtin("graphql.parse_and_verify")
def parse_and_verify(query: Value, schema: Value) -> Value:
    """Return whether a query meets a schema, and the syntax trees of both if it does."""
    try:
        return [True, *_parse_valid(query, schema)]
    except _INVALID:
        return [False, {}, {}]


@builtin("graphql.is_valid")
def is_valid_query(query: Value, schema: Value) -> Value:
    """Return whether a query meets a schema."""
    try:
        _parse_valid(query, schema)
    except _INVALID:
        return False
    return True


@builtin("graphql.schema_is_valid")
def is_valid_schema(schema: Value) -> Value:
    """Return whether a schema is valid."""
    try:
        check_schema(graphql_syntax.parse_schema(_check_text(schema)))
    except _INVALID:
        return False
    return True


def _check_text(value: Value) -> str:
    if type(value) is dict:
        raise BuiltinError("GraphQL as a syntax tree is not supported: pass its text")
    if type(value) is not str:
        raise _QueryError("neither string nor object")
    return value


def _parse_valid(query: Value, schema: Value) -> list[Value]:
    """Return the syntax trees of a query and of the schema that it meets.

    Raises:
        GraphqlSyntaxError: one is no GraphQL.
        GraphqlSchemaError: the schema is invalid.
        _QueryError: the query does not meet it.
        BuiltinError: that cannot be found out here.
    """
    trees = [graphql_syntax.parse_query(_check_text(query)), graphql_syntax.parse_schema(_check_text(schema))]
    check_schema(trees[1])
    if not trees[0]:
        return trees
    if not trees[1]:
        raise _QueryError("the schema has no types")
    if _DEFERRING.search(query):
        raise BuiltinError("GraphQL queries with @defer are not supported")
    missing = {each["Name"] for each in trees[1].get("Extensions", ())}
    missing -= {each["Name"] for each in trees[1].get("Definitions", ())}
    if missing:
        raise BuiltinError(f"GraphQL queries are not supported with a schema that only extends {min(missing)}")
    try:
        problems = validate(_build(schema), parse(query))
    except (GraphQLError, TypeError) as error:
        raise BuiltinError(f"this GraphQL is not supported: {error}") from None
    except RecursionError:
        raise BuiltinError("the GraphQL is nested too deeply") from None
    if problems:
        raise _QueryError(problems[0].message)
    return trees


@lru_cache(_MOST_SCHEMAS)
def _build(schema: str) -> GraphQLSchema:
    return build_ast_schema(parse(schema), assume_valid=True, assume_valid_sdl=True)
