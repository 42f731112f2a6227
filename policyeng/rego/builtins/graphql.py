"""The builtins of GraphQL."""

from __future__ import annotations

import re
from functools import lru_cache

from graphql import GraphQLError, GraphQLSchema, build_ast_schema, parse, validate

from policyeng.rego.builtins import graphql_syntax
from policyeng.rego.builtins.graphql_schemas import GraphqlSchemaError, check_schema
from policyeng.rego.builtins.graphql_syntax import GraphqlSyntaxError
from policyeng.rego.builtins.registry import BuiltinError, builtin, check_string, wrong_type
from policyeng.rego.values import Value

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
