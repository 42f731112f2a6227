"""Values that cannot be changed, and what their copies are."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from policyeng.models import JsonObject, ReadOnlyDict, ReadOnlyList, read_only

PLAIN: JsonObject = {"a": {"b": [1, {"c": [True, None, "x"]}, []]}, "d": 1.5, "e": {}}

CHANGES: list[Callable[[Any], object]] = [
    lambda value: value.update(x=1),
    lambda value: value.pop("d"),
    lambda value: value.popitem(),
    lambda value: value.clear(),
    lambda value: value.setdefault("x", 1),
    lambda value: value.__setitem__("x", 1),
    lambda value: value.__delitem__("d"),
    lambda value: value.__ior__({"x": 1}),
    lambda value: value["a"].update(b=1),
    lambda value: value["a"]["b"].append(1),
    lambda value: value["a"]["b"].extend([1]),
    lambda value: value["a"]["b"].insert(0, 1),
    lambda value: value["a"]["b"].remove(1),
    lambda value: value["a"]["b"].pop(),
    lambda value: value["a"]["b"].clear(),
    lambda value: value["a"]["b"].reverse(),
    lambda value: value["a"]["b"][1]["c"].sort(key=str),
    lambda value: value["a"]["b"].__setitem__(0, 1),
    lambda value: value["a"]["b"].__setitem__(slice(0, 1), []),
    lambda value: value["a"]["b"].__delitem__(0),
    lambda value: value["a"]["b"].__iadd__([1]),
    lambda value: value["a"]["b"].__imul__(2),
    lambda value: setattr(value["a"], "x", 1),
]


@pytest.mark.parametrize("change", CHANGES)
def test_nothing_changes_it_at_any_depth(change: Callable[[Any], object]) -> None:
    """Every mutator of `dict` and `list` raises, and the value stays what it was."""
    value = read_only(PLAIN)

    with pytest.raises((TypeError, AttributeError), match=r"read-only|no attribute"):
        change(value)

    assert value == PLAIN


@pytest.mark.parametrize("kind", [dict, list])
def test_every_mutator_is_covered(kind: type) -> None:
    """A method that returns a new value, or none of the value, is not among these."""
    harmless = {"copy", "fromkeys", "get", "items", "keys", "values", "count", "index"}
    ours = ReadOnlyDict if kind is dict else ReadOnlyList
    methods = {name for name in vars(kind) if not name.startswith("_")} - harmless
    methods |= {
        name for name in ("__setitem__", "__delitem__", "__ior__", "__iadd__", "__imul__") if name in vars(kind)
    }

    assert methods <= set(vars(ours))


def test_it_is_a_dictionary_and_reads_as_one() -> None:
    """For whoever looks, compares or writes JSON."""
    value = read_only(PLAIN)

    assert value == PLAIN
    assert isinstance(value, dict)
    assert isinstance(value["a"]["b"], list)
    assert orjson.dumps(value) == orjson.dumps(PLAIN)
    assert json.dumps(value) == json.dumps(PLAIN)
    assert read_only(value) is value


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda value: orjson.loads(orjson.dumps(value))])
def test_a_deep_copy_can_be_changed(copied: Callable[[Any], Any]) -> None:
    """It is made of plain dictionaries and lists."""
    value = copied(read_only(PLAIN))
    value["a"]["b"][1]["c"].append(1)
    value["a"]["x"] = 1

    assert value != PLAIN


@pytest.mark.parametrize("copied", [dict, copy.copy, lambda value: value.copy(), lambda value: value | {}])
def test_a_shallow_copy_can_be_changed_at_its_top(copied: Callable[[Any], Any]) -> None:
    """Its content is still shared, so it stays read-only."""
    value = read_only(PLAIN)
    mine = copied(value)
    mine["x"] = 1
    mine_too = (copy.copy(value["a"]["b"]), value["a"]["b"][:], value["a"]["b"] + [])
    for each in mine_too:
        each.append(1)

    assert value == PLAIN
    with pytest.raises(TypeError, match="read-only"):
        mine["a"]["x"] = 1


def test_it_travels_to_another_process() -> None:
    """Unpickling sets no items one by one, and gives a read-only value."""
    value = pickle.loads(pickle.dumps(read_only(PLAIN)))  # noqa: S301  # made in this test

    assert value == PLAIN
    with pytest.raises(TypeError, match="read-only"):
        value["a"]["b"].append(1)
