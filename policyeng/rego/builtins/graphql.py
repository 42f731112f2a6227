"""The builtins of GraphQL."""

from __future__ import annotations

from functools import lru_cache

from graphql import GraphQLError, GraphQLSchema, build_ast_schema, parse, validate, validate_schema

from policyeng.rego.builtins import graphql_syntax
from policyeng.rego.builtins.registry import BuiltinError, builtin, check_string, wrong_type
from policyeng.rego.values import Value

_MOST_SCHEMAS = 10


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
        _refuse_tree(text)
    trees = [graphql_syntax.parse_query(query), graphql_syntax.parse_schema(schema)]
    problem = _find_problem(query, schema)
    if problem:
        raise BuiltinError(f"{problem} in GraphQL string")
    return trees


@builtin("graphql.parse_and_verify")
def parse_and_verify(query: Value, schema: Value) -> Value:
    """Return whether a query meets a schema, and the syntax trees of both if it does."""
    trees = _parse_valid(query, schema)
    return [False, {}, {}] if trees is None else [True, *trees]


@builtin("graphql.is_valid")
def check_query(query: Value, schema: Value) -> Value:
    """Return whether a query meets a schema."""
    return _parse_valid(query, schema) is not None


@builtin("graphql.schema_is_valid")
def check_schema(schema: Value) -> Value:
    """Return whether a schema is valid."""
    _refuse_tree(schema)
    if type(schema) is not str:
        return False
    try:
        graphql_syntax.parse_schema(schema)
    except BuiltinError:
        return False
    return not isinstance(_build(schema), str)


def _parse_valid(query: Value, schema: Value) -> list[Value] | None:
    _refuse_tree(query)
    _refuse_tree(schema)
    if type(query) is not str or type(schema) is not str:
        return None
    try:
        trees = [graphql_syntax.parse_query(query), graphql_syntax.parse_schema(schema)]
    except BuiltinError:
        return None
    return None if _find_problem(query, schema) else trees


def _refuse_tree(value: Value) -> None:
    if type(value) is dict:
        raise BuiltinError("GraphQL as a syntax tree is not supported: pass its text")


def _find_problem(query: str, schema: str) -> str:
    """Return why a query does not meet a schema, "" if it does."""
    built = _build(schema)
    if isinstance(built, str):
        return built
    try:
        problems = validate(built, parse(query))
    except GraphQLError as error:
        raise BuiltinError(f"this GraphQL query is not supported: {error.message}") from None
    except RecursionError:
        raise BuiltinError("the GraphQL is nested too deeply") from None
    return problems[0].message if problems else ""


@lru_cache(_MOST_SCHEMAS)
def _build(schema: str) -> GraphQLSchema | str:
    """Return a schema, or why it is invalid."""
    try:
        document = parse(schema)
    except GraphQLError as error:
        raise BuiltinError(f"this GraphQL schema is not supported: {error.message}") from None
    except RecursionError:
        raise BuiltinError("the GraphQL is nested too deeply") from None
    try:
        built = build_ast_schema(document)
    except (TypeError, GraphQLError) as error:
        return str(error)
    problems = validate_schema(built)
    return problems[0].message if problems else built
