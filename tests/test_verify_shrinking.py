"""Delta debugging of JSON: it ends, never loses what it looks for, and finds the smallest."""

from __future__ import annotations

import json
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from policyeng.bundle.header import fits
from policyeng.verify.generators.documents import fitting
from policyeng.verify.generators.json_mutations import (
    Json,
    altered,
    draw_odd_value,
    edit_somewhere,
    place_of,
    places,
    put_value,
    remove,
    value_in,
)
from policyeng.verify.shrinking import shrink

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(max_size=3), JSON, max_size=5)
RANDOMS = st.randoms(use_true_random=False)


@given(st.lists(JSON) | OBJECTS)
def test_a_condition_that_is_always_true_shrinks_to_nothing(document: Json) -> None:
    """Without a condition the smallest document is an empty one."""
    assert not shrink(document, lambda _: True)


@given(JSON, st.integers(0, 30))
def test_the_condition_is_true_whenever_the_search_ends(document: Json, most: int) -> None:
    """However few trials there are, the result is a document for which the condition is true."""
    letters = json.dumps(document).count("a")

    smallest = shrink(document, lambda entry: json.dumps(entry).count("a") == letters, most=most)

    assert json.dumps(smallest).count("a") == letters


def test_a_needle_is_found_in_a_haystack_and_the_haystack_is_not_changed() -> None:
    """One value deep down keeps the way to it and nothing else."""
    hay: Json = {str(number): [{"x": number, "y": ["hay"] * 5}] * 7 for number in range(20)}
    before = json.dumps(hay)
    put_value(hay, ("13", 4), {"needle": {"deep": [1, "needle-17", 3]}})
    given_text = json.dumps(hay)

    smallest = shrink(hay, lambda entry: "needle-17" in json.dumps(entry))

    assert smallest in ("needle-17", {"13": "needle-17"}, ["needle-17"]) or "needle-17" in json.dumps(smallest)
    assert len(json.dumps(smallest)) < 70
    assert json.dumps(hay) == given_text != before


@given(RANDOMS, OBJECTS)
def test_edits_keep_a_document_json_and_its_identity(random: Random, document: dict[str, Json]) -> None:
    """The document can always be written down again, and id and type stay."""
    whole = {**document, "id": "/a", "type": "t"}
    for _ in range(3):
        edit_somewhere(random, whole)

    assert (whole["id"], whole["type"]) == ("/a", "t")
    assert json.loads(json.dumps([whole, altered(random, whole), draw_odd_value(random)], allow_nan=False))


@given(OBJECTS, JSON, st.data())
def test_a_value_that_is_set_stays_until_it_is_removed(
    document: dict[str, Json], value: Json, data: st.DataObject
) -> None:
    """Every place of a document can be set, read and removed."""
    every = list(places(document)) or [("new",)]
    place = data.draw(st.sampled_from(every))

    put_value(document, place, value)
    assert value_in(document, place) == value
    before = len(list(places(document)))
    remove(document, place)
    assert len(list(places(document))) < before


@given(RANDOMS, JSON)
def test_a_pointer_can_be_set_through_any_other_value(random: Random, other: Json) -> None:
    """Objects are made in place of other values; a list keeps its members."""
    document: Json = {"a": other}
    place = place_of(random, document, "/a/b~1c/0")
    put_value(document, place, "x")

    assert place[:2] == ("a", "b/c")
    assert isinstance(other, list) or value_in(document, ("a", "b/c", "0")) == "x"


def test_a_star_is_one_of_the_members() -> None:
    """In a list a position, in an object a key, and in neither nothing breaks."""
    document: Json = {"a": [{"b": 1}, {"b": 2}], "c": {"d": 3}}

    random = Random(1)  # noqa: S311  # nothing here is secret

    assert place_of(random, document, "/a/*/b")[1] in (0, 1)
    assert place_of(random, document, "/c/*") == ("c", "d")
    assert place_of(random, document, "/x/*/y") == ("x", "*", "y")


SCHEMAS = [
    {"type": "array", "items": {"type": "string", "pattern": "^never$"}, "minItems": 1, "default": ["never"]},
    {"type": "integer", "minimum": 3, "maximum": 4, "default": 3},
    {"type": ["number", "null"], "minimum": 0, "default": None},
    {"type": "object", "additionalProperties": {"enum": [1, "x"]}, "required": ["n"], "default": {"n": 1}},
    {"anyOf": [{"type": "boolean"}, {"const": "auto"}], "default": "auto"},
    {"default": 7},
]


@settings(deadline=None)
@given(RANDOMS, st.sampled_from(SCHEMAS))
def test_values_fit_their_schema(random: Random, schema: dict[str, Json]) -> None:
    """The drawn value fits; where none does, it is the default."""
    assert fits(schema, fitting(random, schema, ["a", 1, "never"]))


def test_nothing_fits_a_wrong_schema() -> None:
    """A schema that is none is not taken for one that takes everything."""
    assert not fits({"type": "text"}, "x")
    assert not fits({"$ref": "https://example.com/schema"}, "x")
