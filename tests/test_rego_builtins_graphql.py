"""The builtins of GraphQL give what OPA gives, or state what they do not support."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from policyeng.rego.builtins import BuiltinError, load_function
from tests.rego_oracle import Call, call_ours, find_differences, seeded

_SCHEMA = """
# first
"the query"
type Query implements Node & Named @tag(name: "q") { # second
  id: ID! name(first: Int = 1, after: [String!] = ["a"]): String @deprecated(reason: "old") # third
  "of a field" pet(kind: Kind = DOG, where: Where): Pet
  pets: [Pet!]!
}
interface Node { id: ID! }
interface Named implements Node { id: ID! name(first: Int = 1, after: [String!]): String }
enum Kind { DOG "meow" CAT @deprecated }
union Pet = | Dog | Cat
type Dog { name: String! bark: Boolean }
type Cat { name: String! lives: Int }
input Where { a: Int = 1, b: [Where!], c: Float }
scalar Date @specifiedBy(url: "x")
directive @tag(name: String!) repeatable on OBJECT | FIELD | QUERY
extend type Dog @tag(name: "x") { age: Int }
extend enum Kind { BIRD }
schema @once { query: Query }
directive @once on SCHEMA
# last
"""
_SCHEMAS = (
    _SCHEMA,
    *("type Query { a: Int }", "type A", "type A {}", '"d" extend type A {a: Int}', "extend type A {a: Int}"),
    *("extend schema @a", "union U = A", "scalar Int", "type Query {a: B}", "type Query {__a: Int}", "", "# only"),
    *("interface I {a: Int} type Query implements I {b: Int}", "type Query {a: Int} type Query {b: Int}"),
    *("input A {b: B!} input B {a: A!}", "input A {b: A}", "enum E {true}", "enum E {A A}", "type Query @x {a: Int}"),
    *('input I {a: String = "x\\u00e9\\ud800\\n"}', '"""\n  a\n   b\n\n"""type Query {a: Int}', '"""a""""""b"""'),
    *("directive @a(x: Int @a) on FIELD", "type Query {a: I} input I {a: Int}", "type Query {a(b: Query): Int}"),
    *("schema {query: Q}", "schema {query: A} schema {query: A} type A {a: Int}", "union U = A | A type A {a: Int}"),
)
_QUERIES = (
    'query Q($a: Int = 1, $b: [String!]) @tag(name: "x") { id n: name(first: $a, after: $b) ...F pets { ...on Dog '
    "{ bark } ...on Cat { lives } } } # end\nfragment F on Query { pet(kind: CAT, where: {a: 1, b: [{c: 2.5e3}]}) "
    "{ __typename } }",
    *(
        "{ id }",
        "{ a }",
        "{a(",
        "",
        "query {",
        "{a(x: 00)}",
        "{a(x: 1.)}",
        '{a(x: """\n  x\n y\n""")}',
        '{a(x: "\\x")}',
    ),
    *(
        "{ pet { name } }",
        "{ pet { ... on Dog { name } } }",
        "{ name { x } }",
        "{ id @skip(if: true) }",
        "{ id @skip }",
    ),
    *('{ name(first: "x") }', "{ name(first: 1, first: 2) }", "query ($a: Int) { id }", "{ name(first: $x) }"),
    *("mutation M { a }", "subscription S { a b }", "fragment on on X {a}", "{ ...F } fragment F on Query { ...F }"),
    *("{ id: name id }", "query A { id } query A { id }", "{ id } { name }", "\ufeff{ id }", "{ id,,name }", "# only"),
    *("{\n#c\na(#d\nx:#e\n[#f\n1])}", "query # c\nQ # d\n{ id }", "{ __schema { types { name } } }", "{ __type }"),
    *('{a(x: "\\u12")}', "{a(x: -1, y: null, z: E, o: {}, l: [])}", "{ pet(where: {d: 1}) { __typename } }"),
)
_JUNK: tuple[Any, ...] = (5, None, ["x"], {"a"}, True)
_PUNCTUATION = '{}()[]:!$@#"\\|&=.,0a\n é'


def _mutate(random: Random, text: str) -> str:
    chars = list(text)
    for _ in range(random.choice((1, 1, 2))):
        place = random.randrange(len(chars) + 1)
        chars[place : place + random.randrange(2)] = random.choice((_PUNCTUATION[random.randrange(20)], ""))
    return "".join(chars)


def test_syntax_trees_are_those_of_opa(opa: Path) -> None:
    """Good text, and text with characters that are changed."""
    random = seeded(3)
    parsers = {"graphql.parse_schema": _SCHEMAS, "graphql.parse_query": _QUERIES}
    calls: list[Call] = [(name, (text,)) for name in parsers for text in (*_SCHEMAS, *_QUERIES, *_JUNK, {})]
    for _ in range(1200):
        name = random.choice(list(parsers))
        calls.append((name, (_mutate(random, random.choice(parsers[name])),)))
    assert find_differences(opa, calls) == []


def test_schemas_are_valid_as_for_opa(opa: Path) -> None:
    """A value that is not text is not a schema."""
    random = seeded(4)
    texts = [*_SCHEMAS, *_JUNK, *(_mutate(random, random.choice(_SCHEMAS)) for _ in range(600))]
    assert find_differences(opa, [("graphql.schema_is_valid", (text,)) for text in texts]) == []


def test_queries_are_valid_as_for_opa(opa: Path) -> None:
    """A query that this engine cannot evaluate raises an error."""
    random = seeded(5)
    names = ("graphql.is_valid", "graphql.parse", "graphql.parse_and_verify")
    calls: list[Call] = [(name, (query, _SCHEMA)) for name in names for query in _QUERIES]
    calls += [(name, pair) for name in names for junk in _JUNK for pair in ((junk, _SCHEMA), ("{ id }", junk))]
    calls += [("graphql.is_valid", (_mutate(random, random.choice(_QUERIES)), _SCHEMA)) for _ in range(600)]
    calls += [("graphql.is_valid", (query, random.choice(_SCHEMAS))) for query in _QUERIES]
    found = find_differences(opa, calls)
    assert [each for each in found if each[2].code != "eval_builtin_error"] == []
    assert len(found) < len(calls) / 100
    assert call_ours(*calls[0]).value is True


@pytest.mark.parametrize("name", ["graphql.is_valid", "graphql.parse", "graphql.parse_and_verify"])
def test_a_syntax_tree_is_refused(name: str) -> None:
    """It is not taken for text."""
    with pytest.raises(BuiltinError, match="syntax tree is not supported"):
        load_function(name)({"Operations": []}, _SCHEMA)


def test_deep_text_is_refused() -> None:
    """It does not end the process."""
    with pytest.raises(BuiltinError, match="too deeply"):
        load_function("graphql.parse_query")("{a" * 20000)
