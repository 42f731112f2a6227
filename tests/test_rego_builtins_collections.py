"""The builtins of sets, arrays, objects, types and graphs give what OPA gives."""

from __future__ import annotations

import time
from pathlib import Path
from random import Random

import pytest

from policyeng.rego.budget import BudgetExceededError
from policyeng.rego.builtins import BuiltinError, OperandError, UnsupportedError, load_function, signatures
from policyeng.rego.builtins.registry import FUNCTIONS
from policyeng.rego.numbers import NumberTooLargeError
from policyeng.rego.values import Value, from_key, make_set, to_key
from tests.effort import effort
from tests.rego_oracle import Call, call_ours, draw_calls, draw_value, find_differences, limited, literal

COUNT = effort(40, 1500)
KEYS = ("a", "b", "c", 0, 1, "0", "1", "2")
VERTICES = ("a", "b", "c", "d", 1)
POINTERS = ("a", "b", "0", "1", "2", "-", "01", "-1", "1.0", "~1", "~0", "")


def draw_few(chance: Random, depth: int = 2) -> Value:
    """Draw a value of few members, so that some are equal."""
    kind = chance.choice(("key", "key", "list", "dict", "dict", "set")[: 6 if depth > 0 else 2])
    if kind == "key":
        return chance.choice((*KEYS, True, None, 1.0))
    size = chance.randrange(4)
    if kind == "dict":
        return {to_key(chance.choice(KEYS)): draw_few(chance, depth - 1) for _ in range(size)}
    found = [draw_few(chance, depth - 1) for _ in range(size)]
    return found if kind == "list" else make_set(found)


def draw_list(chance: Random) -> Value:
    """Draw an array."""
    return [draw_few(chance) for _ in range(chance.randrange(5))]


def draw_set(chance: Random) -> Value:
    """Draw a set."""
    return make_set(draw_few(chance, 1) for _ in range(chance.randrange(5)))


def draw_sets(chance: Random) -> Value:
    """Draw a set of sets."""
    return make_set(draw_set(chance) for _ in range(chance.randrange(4)))


def draw_object(chance: Random) -> Value:
    """Draw an object with objects in it."""
    return {to_key(chance.choice(KEYS)): draw_few(chance, 3) for _ in range(chance.randrange(5))}


def draw_objects(chance: Random) -> Value:
    """Draw an array of objects."""
    return [draw_object(chance) for _ in range(chance.randrange(4))]


def draw_keys(chance: Random) -> Value:
    """Draw an array, a set or an object of keys."""
    return chance.choice((draw_list, draw_set, draw_object))(chance)


def draw_key(chance: Random) -> Value:
    """Draw a key, or a path of keys."""
    return chance.choice(KEYS) if chance.random() < 0.5 else [chance.choice(KEYS) for _ in range(chance.randrange(4))]


def draw_index(chance: Random) -> Value:
    """Draw an index, or a value that is none."""
    return chance.choice((0, 1, 2, 3, -1, 1.0, 2.5, 1 << 63))


def draw_graph(chance: Random) -> Value:
    """Draw a graph with cycles and edges to vertices that are not in it."""
    return {vertex: draw_vertices(chance) for vertex in VERTICES if chance.random() < 0.8}


def draw_vertices(chance: Random) -> Value:
    """Draw an array or a set of vertices, or a value that is neither."""
    found = [chance.choice((*VERTICES, "e")) for _ in range(chance.randrange(4))]
    return chance.choice((found, make_set(found), make_set(found), found, "a" if chance.random() < 0.1 else found))


def draw_pointer(chance: Random) -> Value:
    """Draw a path as a pointer or as an array."""
    if chance.random() < 0.3:
        return [
            draw_few(chance, 1) if chance.random() < 0.2 else chance.choice(KEYS) for _ in range(chance.randrange(4))
        ]
    return "".join(f"/{chance.choice(POINTERS)}" for _ in range(chance.randrange(4)))


def draw_pointers(chance: Random) -> Value:
    """Draw an array or a set of paths."""
    found = [draw_pointer(chance) for _ in range(chance.randrange(4))]
    return found if chance.random() < 0.7 else make_set(found)


def draw_place(chance: Random, document: Value) -> Value:
    """Draw a path of which most parts are in a document; the whole document is never meant, which crashes OPA."""
    parts: list[Value] = []
    while True:
        choices: list[Value] = []
        if type(document) is dict:
            choices = list(document)
        elif type(document) is list:
            choices = [*range(len(document)), *(() if chance.random() < 0.8 else (len(document), "-"))]
        elif type(document) is set:
            choices = list(document)
        if parts and not choices and chance.random() < 0.9:
            break
        if chance.random() < 0.03 or not choices:
            parts.append(chance.choice((*POINTERS, *KEYS)))
            break
        parts.append(from_key(chance.choice(choices)))
        if chance.random() < 0.4 or parts[-1] == "-":
            break
        document = lookup(document, parts[-1])
    if all(type(part) in (int, str) for part in parts) and chance.random() < 0.7:
        return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in parts)
    return parts


def lookup(document: Value, part: Value) -> Value:
    """Return the child of a collection."""
    if type(document) is set:
        return part
    if type(document) is dict:
        return document[to_key(part)]
    return document[part] if part != len(document) else None


def draw_patch(chance: Random) -> Call:
    """Draw a document and a patch of it."""
    document = draw_document(chance)
    found = []
    for _ in range(chance.randrange(1, 4)):
        names = ("add", "add", "remove", "replace", "move", "copy", "copy")
        name = chance.choice(names) if chance.random() < 0.95 else chance.choice(("test", "x"))
        operation: dict[str, Value] = {"op": name, "path": draw_place(chance, document), "value": draw_few(chance)}
        if name in ("move", "copy"):
            operation["from"] = draw_place(chance, document)
        if chance.random() < 0.02:
            del operation[chance.choice(list(operation))]
        found.append(operation)
    return ("json.patch", [document, found])


def draw_document(chance: Random) -> Value:
    """Draw what to patch: arrays and objects in each other, and a few sets."""
    return (
        {**draw_object(chance), "a": draw_list(chance), "b": [draw_object(chance)]}
        if chance.random() < 0.9
        else draw_few(chance)
    )


def draw_all(chance: Random) -> list[Call]:
    """Draw calls of all the builtins."""
    calls: list[Call] = []
    for name in ("and", "or", "set_diff", "minus"):
        calls += draw_calls(chance, name, COUNT, draw_set, draw_set)
    for name in ("intersection", "union"):
        calls += draw_calls(chance, name, COUNT, draw_sets)
    calls += draw_calls(chance, "array.concat", COUNT, draw_list, draw_list)
    calls += draw_calls(chance, "array.slice", COUNT, draw_list, draw_index, draw_index)
    for name in ("array.reverse", "array.flatten"):
        calls += draw_calls(chance, name, COUNT, draw_list)
    calls += draw_calls(chance, "object.get", 2 * COUNT, draw_object, draw_key, draw_few)
    calls += draw_calls(chance, "object.keys", COUNT, draw_object)
    calls += draw_calls(chance, "object.union_n", COUNT, draw_objects)
    calls += draw_calls(chance, "object.union", COUNT, draw_object, draw_object)
    calls += draw_calls(chance, "object.subset", 2 * COUNT, draw_few, draw_few)
    calls += draw_calls(chance, "object.subset", COUNT, draw_object, draw_object)
    for name in ("object.remove", "object.filter"):
        calls += draw_calls(chance, name, COUNT, draw_object, draw_keys)
    for name in ("json.filter", "json.remove"):
        calls += draw_calls(chance, name, 3 * COUNT, draw_object, draw_pointers)
    for name in ("graph.reachable", "graph.reachable_paths"):
        calls += draw_calls(chance, name, COUNT, draw_graph, draw_vertices)
    calls += [("walk", [draw_value(chance, 3)]) for _ in range(COUNT)]
    for name in signatures():
        if name.startswith(("is_", "cast_")) or name in ("type_name", "to_number"):
            drawn = [draw_value(chance) for _ in range(COUNT // 2)]
            # OPA cannot print the number that it makes of this.
            calls += [(name, [one]) for one in drawn if one != "01" or name != "to_number"]
    return calls


def test_the_results_are_those_of_opa(opa: Path) -> None:
    """Arguments that are taken, and others."""
    assert find_differences(opa, draw_all(Random(1))) == []  # noqa: S311 # chance that is to be the same every time


def test_patches_are_those_of_opa(opa: Path) -> None:
    """With all that its tree of changes does."""
    chance = Random(2)  # noqa: S311 # the same
    calls = [draw_patch(chance) for _ in range(15 * COUNT)]
    assert find_differences(opa, calls) == []
    assert sum(call_ours(*call).kind != "error" for call in calls) > len(calls) / 5


@pytest.mark.parametrize(
    ("document", "operations", "patched"),
    [
        ({"a": 1}, [{"op": "add", "path": "", "value": {}}, {"op": "add", "path": "/b", "value": 2}], {"b": 2}),
        (1, [{"op": "add", "path": "", "value": [1]}, {"op": "add", "path": "/-", "value": 2}], [1, 2]),
        ({"a": 1}, [{"op": "replace", "path": "", "value": {}}, {"op": "add", "path": "/b", "value": 2}], {"b": 2}),
    ],
)
def test_a_whole_document_is_replaced(document: Value, operations: list[Value], patched: Value) -> None:
    """In some of these OPA crashes."""
    assert load_function("json.patch")(document, operations) == patched


@pytest.mark.parametrize("after", [[], [{"op": "test", "path": "", "value": 1}], [{"op": "remove", "path": "/a"}]])
def test_a_document_that_is_removed_is_no_value(after: list[Value]) -> None:
    """OPA crashes."""
    with pytest.raises(BuiltinError):
        load_function("json.patch")({"a": 1}, [{"op": "remove", "path": ""}, *after])


def nest(depth: int) -> list[Value]:
    """Return values with others in them down to a depth."""
    array: Value = 1
    document: Value = 1
    for _ in range(depth):
        array, document = [array], {"a": document}
    return [array, document]


GROUPS = ("numbers", "aggregates", "objects", "types", "strings", "graphs")
#: Operators: where values are too deep to compare, the program reports it, not the function.
OPERATORS = {"gt", "gte", "lte", "neq"}


def own_names() -> list[str]:
    """List the builtins of the groups that are tested here and next to here."""
    for name in ("plus", "sum", "union", "array.slice", "object.get", "is_null", "lower", "walk", "units.parse"):
        load_function(name)
    places = {name: getattr(function, "func", function).__module__ for name, function in FUNCTIONS.items()}
    return sorted(
        name for name, place in places.items() if place.rpartition(".")[2] in GROUPS and name not in OPERATORS
    )


def test_arguments_of_any_type_give_a_value_or_an_error() -> None:
    """Also values that are nested too deeply to be walked."""
    chance = Random(3)  # noqa: S311 # the same
    deep = nest(5000)
    hostile = [*deep, [{"op": "add", "path": ["a"] * 5000, "value": 1}], {"x": deep[0]}, [deep[1], 1], set(), ""]
    names = own_names()
    assert len(names) > 90
    for name in names:
        count = len(signatures()[name]["arguments"])
        drawn = [[chance.choice((*hostile, draw_value(chance))) for _ in range(count)] for _ in range(effort(60, 2000))]
        for arguments in drawn:
            try:
                with limited(10, 1_000_000):
                    load_function(name)(*arguments)
            except (BuiltinError, UnsupportedError, BudgetExceededError, NumberTooLargeError, RecursionError):
                pass


def test_arguments_are_not_changed() -> None:
    """They are values that others have, too."""
    chance = Random(4)  # noqa: S311 # the same
    for name, arguments in [*draw_all(chance), *(draw_patch(chance) for _ in range(COUNT))]:
        before = literal(arguments)
        call_ours(name, arguments)
        assert literal(arguments) == before, name


def test_work_that_grows_is_charged_for() -> None:
    """Paths through a dense graph, walks through shared values, copies of copies."""
    dense = {str(one): [str(other) for other in range(30)] for one in range(30)}
    shared: Value = [1]
    for _ in range(60):
        shared = [shared, shared]
    copies = [{"op": "copy", "from": "/a", "path": f"/a/{index}"} for index in range(60)]
    for name, arguments in (
        ("graph.reachable_paths", [dense, ["0"]]),
        ("walk", [shared]),
        ("json.patch", [{"a": {}}, copies]),
        ("object.subset", [[1] * 10000, [*[1] * 5000, 2]]),
        ("array.flatten", [[[1] * 1000] * 1000]),
    ):
        start = time.monotonic()
        with limited(10, 100_000), pytest.raises(BudgetExceededError):
            load_function(name)(*arguments)
        assert time.monotonic() - start < 5, name


def test_a_merge_of_many_objects_takes_linear_time() -> None:
    """They all have the same object in them, which is copied once."""
    many = [{"a": {str(index): index}} for index in range(20_000)]
    with limited(5, 1000):
        assert len(load_function("object.union_n")(many)["a"]) == len(many)
    assert many[0] == {"a": {"0": 0}}


def test_an_operand_error_has_the_words_of_opa() -> None:
    """They name the position and the types."""
    with pytest.raises(OperandError, match=r"^operand 2 must be one of \{object, set, array\} but got number$"):
        load_function("object.remove")({}, 1)
