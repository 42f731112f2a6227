"""Markers in the input: a decision is true whatever the unknown values are."""

from __future__ import annotations

import copy
import pickle
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any, NamedTuple

import pytest

from policyeng import rego
from policyeng.rego.builtins import REFUSED, load_function, signatures
from policyeng.rego.compiled import Compiled
from policyeng.rego.decided_results import LENIENT, guard
from policyeng.rego.markers import MarkedSet, deep_causes, show
from policyeng.rego.values import equal, make_set
from tests.effort import effort
from tests.marked_estates import MarkedEstate, check_reads, check_soundness, trace
from tests.markings import ABSENT, ODD, Marking, check_program, find
from tests.rego_programs import draw_programs

UNDECIDED = object()
#: The input of the cases, of which `/x` is not known and is "v" unless a case replaces it.
DOCUMENT: dict[str, Any] = {
    "x": "v",
    "o": {"known": 1, "x": "v"},
    "tags": {"Env": "prod", "Stage": "x"},
    "xs": [1, "v", 3],
    "one": 1,
    "yes": True,
    "names": ["owner", "env"],
    "rows": [{"id": "a", "v": "v"}, {"id": "b", "v": 2}],
}


class Case(NamedTuple):
    """A program with the rule `r`.

    Attributes:
        expected: its value; of a set or a partial object, the members that are certain in a tuple.
        marker: the pointer of the unknown value.
        missing: what may have further members.
    """

    name: str
    rules: str
    expected: Any
    marker: str = "/x"
    missing: str = ""


OPERATIONS: list[Callable[[Any], object]] = [
    lambda it: isinstance(it, dict),
    lambda it: it.__class__ is str,
    lambda it: it == it,
    lambda it: it != 1,
    lambda it: it < 1,
    lambda it: 1 in it,
    lambda it: it in {1},
    lambda it: it in [1],
    lambda it: bool(it),
    lambda it: not it,
    lambda it: list(it),
    lambda it: len(it),
    lambda it: it.lower(),
    lambda it: it["a"],
    lambda it: it(),
    lambda it: hash(it),
    lambda it: str(it),
    lambda it: repr(it),
    lambda it: f"{it}",
    lambda it: it + 1,
    lambda it: 1 + it,
    lambda it: -it,
    lambda it: int(it),
    lambda it: [1, 2][it],
    lambda it: ",".join(it),
    lambda it: sum([it]),
    lambda it: sorted([it, it]),
    lambda it: {**it},
]
CASES = [
    # References.
    Case("a reference", "r := input.x", UNDECIDED),
    Case("a reference below", "r := input.x.y.z", UNDECIDED),
    Case("a reference next to a marker", "r := input.one", 1),
    Case("a statement", "r if input.x", UNDECIDED),
    Case("a reference to what has a marker in it", "r := input.o.known", 1, "/o/x"),
    Case("a computed key", 'r := input.o[k] if { k := "x" }', UNDECIDED, "/o/x"),
    Case("a computed key next to a marker", 'r := input.o[k] if { k := "known" }', 1, "/o/x"),
    Case("a marker as a key", 'r := input.o[object.get(input, "x", 1)]', UNDECIDED),
    Case("an index", "r := input.xs[1]", UNDECIDED, "/xs/1"),
    Case("an index next to a marker", "r := input.xs[2]", 3, "/xs/1"),
    Case("an index after the end", "r if not input.xs[3]", True, "/xs/1"),
    Case("an index of an open list", "r := input.xs[0]", UNDECIDED, "", "/xs"),
    Case("a key that an open object has", "r := input.o.known", 1, "", "/o"),
    Case("a key that an open object may have", "r if not input.o.other", UNDECIDED, "", "/o"),
    # Branches.
    Case("a branch that one item decides", 'r := "a" if { some x in input.xs; x == 3 } else := "b"', "a", "/xs/1"),
    Case(
        "a branch of a function", 'f(o) := "a" if { some x in o.xs; x == 3 } else := "b"\nr := f(input)', "a", "", "/xs"
    ),
    Case("a branch that no item decides", 'r := "a" if { some x in input.xs; x == 9 } else := "b"', UNDECIDED, "/xs/1"),
    Case(
        "a later branch", 'r := "a" if { input.one == 2 } else := "b" if { some x in input.xs; x == 3 }', "b", "/xs/1"
    ),
    # Parts of documents.
    Case("a rule next to one that is not known", 'obj.a := 1\nobj.b := input.x\nr := obj[k] if { k := "a" }', 1),
    Case("a rule that is not known", 'obj.a := 1\nobj.b := input.x\nr := obj[k] if { k := "b" }', UNDECIDED),
    Case("a rule by an unknown name", "obj.a := 1\nobj.b := 2\nr := obj[input.x]", UNDECIDED),
    Case("a rule by a name that is passed on", 'obj.a := 1\nr := obj[object.get(input, "x", 1)]', UNDECIDED),
    Case("each rule of an object", "obj.a.v := input.x\nobj.b.v := 2\nr contains v if { v := obj[_].v }", (2,)),
    Case("one of the rules of an object", "obj.a.v := input.x\nobj.b.v := 2\nr if { obj[_].v == 2 }", True),
    Case("none of the rules of an object", "obj.a.v := input.x\nobj.b.v := 2\nr if { obj[_].v == 3 }", UNDECIDED),
    Case("an object by a known key", "obj[k] := v if { some k, v in input.o }\nr := obj.known", 1, "/o/x"),
    Case("an object by an unknown key", "obj[k] := v if { some k, v in input.o }\nr := obj.x", UNDECIDED, "/o/x"),
    Case("a known rule of an object", 'obj[k] := 1 if { k := "a" }\nobj[k] := input.x if { k := "b" }\nr := obj.a', 1),
    Case("a member of a set", "s contains x if { some x in input.xs }\nr if s[3]", True, "/xs/1"),
    Case("no member of a set", 's contains x if { some x in input.xs }\nr if s["w"]', UNDECIDED, "/xs/1"),
    # object.get.
    Case("a carried marker", 'r if { object.get(input, "x", null); input.one == 1 }', UNDECIDED),
    Case("a carried marker that nothing reads", 'r if { y := object.get(input, "x", null); input.one == 1 }', True),
    Case("a carried marker on the way", 'r if { y := object.get(input, ["x", "y"], null); input.one == 1 }', True),
    Case(
        "a carried marker of an open object",
        'r if { y := object.get(input.o, "z", null); input.one == 1 }',
        True,
        "",
        "/o",
    ),
    Case("a default next to a marker", 'r := object.get(input.o, "z", 7)', 7, "/o/x"),
    Case("a carried marker that is compared", 'r if object.get(input, "x", 1) == 1', UNDECIDED),
    Case("defaults that differ", 'r if { [object.get(input, "x", 1)] == [object.get(input, "x", 2)] }', UNDECIDED),
    Case(
        "a denial that carries",
        'r contains {"actual": 1} if { y := object.get(input, "x", 1) }',
        make_set([{"actual": 1}]),
    ),
    # Literals.
    Case("an array with a marker", 'r := count([object.get(input, "x", 1), 2])', 2),
    Case("an item next to a marker", 'r := [object.get(input, "x", 1), 2][1]', 2),
    Case("an object with a marker", 'r := {"a": object.get(input, "x", 1), "b": 2}.b', 2),
    Case("a set with a marker", 'r if null in {object.get(input, "x", 1), null}', True),
    Case("a set with a marker that may be equal", 'r if 5 in {object.get(input, "x", 1), null}', UNDECIDED),
    Case("a literal of a reference", "r := count([input.x, 2])", UNDECIDED),
    # Negation.
    Case("not of a marker", "r if not input.x", UNDECIDED),
    Case("not of a comparison", 'r if not input.x == "v"', UNDECIDED),
    Case(
        "not of a certain value next to a marker",
        "r if { not some_one }\nsome_one if { some x in input.xs; x == 3 }",
        rego.UNDEFINED,
        "/xs/1",
    ),
    Case("not of what may be", "r if { not some_one }\nsome_one if { some x in input.xs; x == 9 }", UNDECIDED, "/xs/1"),
    # Bodies of one value.
    Case("a certain body after an undecided one", "r if input.x == 1\nr if input.one == 1", True),
    Case("a certain body before an undecided one", "r if input.one == 1\nr if input.x == 1", True),
    Case("no certain body", "r if input.x == 1\nr if input.one == 2", UNDECIDED),
    Case("a body that fails before", "r if { input.one == 2; input.x == 1 }", rego.UNDEFINED),
    Case("bodies of other values", "r := 1 if input.x == 1\nr := 2 if input.one == 1", UNDECIDED),
    Case("a certain else", "r := 1 if { input.one == 1 } else := 2 if { input.x }", 1),
    Case("an undecided branch", "r := 1 if { input.x == 1 } else := 2", UNDECIDED),
    Case("an undecided branch of the same value", "r := 1 if { input.x == 1 } else := 1", 1),
    Case("a default", "default r := false\nr if input.x == 1", UNDECIDED),
    Case("a default after what fails", "default r := false\nr if { input.one == 2; input.x == 1 }", False),
    Case("a rule that is undecided for each reader", "r if a\nr if { input.one == 1 }\na if input.x == 1", True),
    # Partial sets and objects.
    Case("a member next to a marker", "r contains 1 if input.one == 1\nr contains 2 if input.x == 1", (1,)),
    Case("a member of an iteration next to a marker", "r contains y if { some y in input.xs; y < 9 }", (1, 3), "/xs/1"),
    Case("a member of an open list", "r contains y if { some y in input.xs; is_number(y) }", (1, 3), "", "/xs"),
    Case("membership of a certain member", "r if 1 in s\ns contains y if { some y in input.xs; y < 9 }", True, "/xs/1"),
    Case("membership of what may be", "r if 8 in s\ns contains y if { some y in input.xs; y < 9 }", UNDECIDED, "/xs/1"),
    Case(
        "a partial object",
        "r := o.a\no[k] := v if { some row in input.rows; k := row.id; v := row.v }",
        UNDECIDED,
        "/rows/0/v",
    ),
    # Comprehensions.
    Case(
        "a member that may be", 'r if not "owner" in {lower(k) | some k, v in input.tags; v != ""}', True, "/tags/Env"
    ),
    Case(
        "a member that may be the one",
        'r if not "env" in {lower(k) | some k, v in input.tags; v != ""}',
        UNDECIDED,
        "/tags/Env",
    ),
    Case("a certain member", 'r if "stage" in {lower(k) | some k, v in input.tags; v != ""}', True, "/tags/Env"),
    Case(
        "a member of an open object", 'r if not "owner" in {lower(k) | some k, _ in input.tags}', UNDECIDED, "", "/tags"
    ),
    Case("an index of a partial array", "r := [y | some y in input.xs; y != 0][0]", UNDECIDED, "/xs/1"),
    Case("a key of a partial object", "r := {k: v | some k, v in input.tags}.Stage", "x", "/tags/Env"),
    Case("an uncertain key of a partial object", "r := {k: v | some k, v in input.tags}.Env", UNDECIDED, "/tags/Env"),
    Case("a key that it cannot have", "r if not {k: v | some k, v in input.tags; v != 1}.owner", True, "/tags/Env"),
    Case(
        "missing names",
        "r contains n if { some n in input.names; not n in {lower(k) | some k, v in input.tags; v} }",
        ("owner",),
        "/tags/Env",
    ),
    Case("a difference", 'r := {"owner"} - {lower(k) | some k, v in input.tags; v}', {"owner"}, "/tags/Env"),
    Case("a union", 'r if "a" in ({"a"} | {y | some y in input.xs; y != 0})', True, "/xs/1"),
    Case("an intersection", "r := {7} & {y | some y in input.xs; y != 0}", UNDECIDED, "/xs/1"),
    # Loops.
    Case("an iteration that is true", "r if { some y in input.xs; y == 3 }", True, "/xs/1"),
    Case("an iteration that may be true", "r if { some y in input.xs; y == 4 }", UNDECIDED, "/xs/1"),
    Case("an item that nothing reads", "r if { some _ in input.xs }", True, "/xs/1"),
    Case("a value that may be absent", 'r if { some k, _ in input.tags; k == "Env" }', UNDECIDED, "/tags/Env"),
    Case("a key next to a marker", 'r if { some k, _ in input.tags; k == "Stage" }', True, "/tags/Env"),
    Case("nested loops", 'r if { some row in input.rows; some k, v in row; k == "v"; v == 2 }', True, "/rows/0/v"),
    Case(
        "nested loops that may be true",
        'r if { some row in input.rows; some k, v in row; k == "v"; v == 5 }',
        UNDECIDED,
        "/rows/0/v",
    ),
    Case("unification", 'r if { input.rows[_] == {"id": "b", "v": 2} }', True, "/rows/0/v"),
    Case("a pattern", "r := a if { [a, _, _] := input.xs }", 1, "/xs/2"),
    # Membership.
    Case("an equal item", "r if 3 in input.xs", True, "/xs/1"),
    Case("no equal item", "r if 4 in input.xs", UNDECIDED, "/xs/1"),
    Case("a marker among strings", 'r if input.x in {"a", "b"}', UNDECIDED),
    Case("an equal value of an object", "r if 1 in input.o", True, "/o/x"),
    Case("a key and a value", 'r if "known", 1 in input.o', True, "/o/x"),
    Case("an item of an open list", "r if 3 in input.xs", True, "", "/xs"),
    # every.
    Case("every, one fails", "r if every y in input.xs { y != 3 }", rego.UNDEFINED, "/xs/1"),
    Case("every, one may fail", "r if every y in input.xs { y != 9 }", UNDECIDED, "/xs/1"),
    Case(
        "every, an entry that may be absent", 'r if every k, _ in input.tags { k == "Stage" }', UNDECIDED, "/tags/Env"
    ),
    Case("every, keys that are certain", "r if every k, _ in input.tags { count(k) > 2 }", True, "/tags/Env"),
    Case("every of an open list", "r if every y in input.xs { y }", UNDECIDED, "", "/xs"),
    # count.
    Case("a list", "r := count(input.xs)", 3, "/xs/1"),
    Case("an object", "r := count(input.o)", UNDECIDED, "/o/x"),
    Case("an object with enough", "r if count(input.o) > 0", True, "/o/x"),
    Case("a comprehension with enough", "r if count([y | some y in input.xs; y != 0]) >= 2", True, "/xs/1"),
    Case("a comprehension that may be enough", "r if count([y | some y in input.xs; y != 0]) >= 3", UNDECIDED, "/xs/1"),
    Case(
        "a comprehension that cannot be enough",
        "r if count([y | some y in input.xs; y != 0]) > 3",
        rego.UNDEFINED,
        "/xs/1",
    ),
    Case("none", "r if count([y | some y in input.xs; y != 0]) == 0", rego.UNDEFINED, "/xs/1"),
    Case("items that nothing reads", "r := count([1 | some _ in input.xs])", 3, "/xs/1"),
    Case(
        "items of an unknown object",
        "r if count([1 | some row in input.rows; some _ in row.v]) < 2",
        UNDECIDED,
        "/rows/0/v",
    ),
    Case("an open list", "r if count(input.xs) < 2", rego.UNDEFINED, "", "/xs"),
    Case("a count and a boolean", "r if count(input.o) > true", UNDECIDED, "/o/x"),
    Case("a count and a text", 'r if count(input.o) < "a"', UNDECIDED, "/o/x"),
    Case("a sum of counts", "r := count(input.o) + 1", UNDECIDED, "/o/x"),
    Case("a set", "r := count({y | some y in input.xs; y != 0})", UNDECIDED, "/xs/1"),
    # Functions.
    Case("an argument that is not read", 'r := f(object.get(input, "x", 1))\nf(_) := 7 if input.one == 1', 7),
    Case("an argument that is read", 'r := f(object.get(input, "x", 1))\nf(y) := 7 if y == 1', UNDECIDED),
    Case(
        "an array of total calls",
        'r if { some y in [f(object.get(input, "x", 1)), f(3)]; y == "many" }\n'
        'f(y) := "one" if { y == 1 } else := "many"',
        True,
    ),
    Case(
        "the count of total calls",
        'r := count([f(object.get(input, "x", 1)), f(3)])\nf(y) := "one" if { y == 1 } else := "many"',
        2,
    ),
    Case(
        "a function with a default",
        'r := count([f(object.get(input, "x", 1))])\ndefault f(_) := 1\nf(y) := 2 if y == 2',
        1,
    ),
    Case(
        "an array of a call that may be undefined",
        'r := count([f(object.get(input, "x", 1)), 3])\nf(y) := 1 if y == 1',
        UNDECIDED,
    ),
    # Types and truth.
    Case("is_null", "r if is_null(input.x)", UNDECIDED),
    Case("equal to null", 'r if object.get(input, "x", 1) == null', UNDECIDED),
    Case("not equal to null", 'r if object.get(input, "x", 1) != null', UNDECIDED),
    Case("equal to true", 'r if object.get(input, "x", 1) == true', UNDECIDED),
    Case("truth", 'r if { y := object.get(input, "x", 1); y }', UNDECIDED),
    Case("a null argument", 'r := f(object.get(input, "x", 1))\nf(null) := 1', UNDECIDED),
    Case("a boolean argument", 'r := f(object.get(input, "x", 1))\nf(false) := 1', UNDECIDED),
    Case("is_string", 'r if is_string(object.get(input, "x", 1))', UNDECIDED),
    Case("is_object of what has a marker", "r if is_object(input.o)", True, "/o/x"),
    Case("is_array of what has a marker", "r if is_array(input.xs)", True, "/xs/1"),
    Case("is_number of what has a marker", "r if not is_number(input.xs)", True, "/xs/1"),
    Case("type_name", "r := type_name(input.o)", "object", "/o/x"),
    # Equality.
    Case("an array of another length", "r if input.xs == [1, 2]", rego.UNDEFINED, "/xs/1"),
    Case("an array with another item", 'r if input.xs == [2, "v", 3]', rego.UNDEFINED, "/xs/1"),
    Case("an array that may be equal", 'r if input.xs == [1, "v", 3]', UNDECIDED, "/xs/1"),
    Case("an object with another value", 'r if input.o == {"known": 2, "x": 1}', rego.UNDEFINED, "/o/x"),
    Case("an object with a key that is missing", 'r if input.o == {"known": 1, "y": 1}', rego.UNDEFINED, "/o/x"),
    Case("an object that may be equal", 'r if input.o == {"known": 1}', UNDECIDED, "/o/x"),
    Case("a set that may be equal", "r if {y | some y in input.xs; y != 0} == {1, 3}", UNDECIDED, "/xs/1"),
    Case("a set that nothing can change", "r if {1 | some y in input.xs; y != 0} == {1}", True, "/xs/1"),
    Case("a set that cannot be equal", "r if {y | some y in input.xs; y != 0} == {5}", rego.UNDEFINED, "/xs/1"),
    Case("another type", 'r if input.o == "x"', rego.UNDEFINED, "/o/x"),
    # Builtins.
    Case("a builtin of strings", "r := lower(input.x)", UNDECIDED),
    Case("join", 'r := concat(",", input.xs)', UNDECIDED, "/xs/1"),
    Case("a sum", "r := sum(input.xs)", UNDECIDED, "/xs/1"),
    Case("a union of objects", 'r := count(object.union(input.o, {"z": 1}))', UNDECIDED, "/o/x"),
    Case("object.remove", 'r := count(object.remove(input.o, ["known"]))', UNDECIDED, "/o/x"),
    Case("object.keys", 'r if "x" in object.keys(input.o)', UNDECIDED, "/o/x"),
    Case("object.keys next to a marker", 'r if not "z" in object.keys(input.o)', True, "/o/x"),
    Case("array.concat", "r := count(array.concat(input.xs, [1]))", 4, "/xs/1"),
    Case("sprintf", 'r := sprintf("%v", [input.o])', UNDECIDED, "/o/x"),
    Case("json.marshal", "r := json.marshal(input.o)", UNDECIDED, "/o/x"),
    Case("walk", "r contains p if walk(input.o, [p, 1])", UNDECIDED, "/o/x"),
    Case("regex", 'r if regex.match("v", object.get(input, "x", 1))', UNDECIDED),
    Case("a comparison", 'r if object.get(input, "x", 1) < 3', UNDECIDED),
    Case("a replaced input", 'r if a with input as {"x": 1}\na if input.x == 1', True),
    Case("a replaced part", "r if a with input.one as 2\na if input.x == 1", UNDECIDED),
]


def query(rules: str, document: Any) -> Any:
    """The value of `r`, or that it ends in an error."""
    try:
        return rego.compile({"t.rego": f"package t\n\n{rules}\n"}).query("data.t.r", document)
    except rego.EvaluationError:
        return "error"


def concrete(case: Case) -> list[Any]:
    """Documents with values in place of the unknown ones."""
    documents = [DOCUMENT]
    for value in (ABSENT, *ODD, "v", 3, 9, 1, [1, 2, 3]):
        made = copy.deepcopy(DOCUMENT)
        if case.missing:
            found = find(made, case.missing)
            if value is not ABSENT and isinstance(found, list):
                found.insert(0, value)
            elif value is not ABSENT:
                found.update(other=value, owner=value)
        else:
            holder, key = find(made, case.marker.rpartition("/")[0]), case.marker.rpartition("/")[2]
            if isinstance(holder, list):
                holder[int(key)] = 0 if value is ABSENT else value
            elif value is ABSENT:
                del holder[key]
            else:
                holder[key] = value
        documents.append(made)
    return documents


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_decisions_hold_for_every_value(case: Case) -> None:
    """Each construct gives what it should, and a decided outcome is the same with every value in the place."""
    cause = ((case.missing, "not listed"),) if case.missing else ((case.marker, "hidden"),)
    marked = rego.mark(DOCUMENT, *(({}, dict(cause)) if case.missing else (dict(cause), {})))
    outcome = rego.compile({"t.rego": f"package t\n\n{case.rules}\n"}).decide("data.t.r", marked)
    value = show(outcome.value)

    if isinstance(case.expected, tuple):
        assert value == make_set(case.expected)
        assert outcome.undecided == cause
    elif case.expected is UNDECIDED:
        assert outcome.undecided == cause
    else:
        assert (value, outcome.undecided) == (case.expected, ())
    for document in concrete(case):
        found = query(case.rules, document)
        if isinstance(case.expected, tuple):
            assert value <= found
        elif not outcome.undecided:
            assert equal(found, value), document


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> MarkedEstate:
    """An estate and all Rego policies."""
    return MarkedEstate(tmp_path_factory.mktemp("estate"), effort(70, 120))


@pytest.mark.slow
def test_policies_hold_for_every_value(estate: MarkedEstate) -> None:
    """All policies decide an estate with random markers as they do with random values instead."""
    counts: Counter[str] = Counter()
    for seed in range(effort(5, 250)):
        tally = check_soundness(estate, seed, effort(15, 60), effort(3, 8))
        assert not tally.violations, tally.violations[0]
        counts.update(tally.counts)

    assert counts["decided"] > effort(4_000, 200_000)
    assert counts["undecided"] > 0
    assert counts["hidden errors"] < counts["decided"] / 500


@pytest.mark.slow
def test_random_programs_hold_for_every_value() -> None:
    """Random programs give with random markers what they give with random values instead."""
    counts: Counter[str] = Counter()
    for seed in range(effort(2, 40)):
        for program in draw_programs(seed, effort(20, 200)):
            tally = check_program(program, seed)
            assert not tally.violations, tally.violations[0]
            counts.update(tally.counts)

    assert counts["decided"] > counts["undecided"] > 0


def test_documents_without_markers_give_the_same(estate: MarkedEstate) -> None:
    """In all forms, with and without recording."""
    snapshot = estate.indexed(estate.snapshot["resources"], estate.snapshot)
    results = estate.evaluate(snapshot)

    assert estate.evaluate_marked(snapshot) == results
    assert estate.evaluate_handled(snapshot) == results
    assert [traced.said for traced in trace(estate, snapshot)] == results
    assert len({one.outcome for one in results}) > 2


def test_markers_give_the_same_while_reads_are_recorded(estate: MarkedEstate) -> None:
    """The same outcomes and denials."""
    resources = estate.snapshot["resources"]
    random = Random(7)  # noqa: S311  # nothing here is secret
    marked = [Marking.draw(random, one, 3).marked if random.random() < 0.3 else one for one in resources]
    snapshot = estate.indexed(marked, estate.snapshot)

    results = estate.evaluate_marked(snapshot)

    assert [traced.said for traced in trace(estate, snapshot)] == results
    assert any(one.outcome == "undecided" for one in results)


def test_unread_fields_do_not_matter(estate: MarkedEstate) -> None:
    """Random changes of fields that a policy did not read do not change its results."""
    counts: Counter[str] = Counter()
    for seed in range(effort(2, 40)):
        tally = check_reads(estate, seed, effort(10, 40))
        assert not tally.violations, tally.violations[0]
        counts.update(tally.counts)

    assert counts["not affected"] > counts["affected"] > counts["changed"] > 0


def test_reads() -> None:
    """Values, missing keys, failed look-ups and sets of keys are read; a document has a name of its own."""
    rules = """r contains [input.server.name, count(input.ports), object.get(input.server, "zone", "")] if {
    not input.server.off
    not input.missing.x
    some port, true in input.ports
    port == data.known.port
}"""
    program = rego.compile({"t.rego": f"package t\n\n{rules}\n"}, {"known": {"port": "80", "other": 1}})
    document = {"server": {"name": "a", "size": 1}, "ports": {"80": True}, "unused": 1}
    thread = program.marked_thread()
    thread.begin(document)

    value, reads = thread.trace(thread.uncached("data.t.r"), {id(document["server"]): "server"})

    assert value == [["a", 1, ""]]
    assert {tuple(read) for read in reads} == {
        ("server", "/off", "value"),
        ("server", "/name", "value"),
        ("server", "/zone", "value"),
        ("input", "/server", "value"),
        ("input", "/missing", "value"),
        ("input", "/ports", "value"),
        ("input", "/ports", "keys"),
        ("input", "/ports/80", "value"),
    }


def test_reads_of_rules_that_need_no_input() -> None:
    """Their values are kept for all evaluations of a thread; what they read counts each time."""
    rules = "r if input.a in names\n\nnames contains name if { some name, _ in data.known }"
    thread = rego.compile({"t.rego": f"package t\n\n{rules}\n"}, {"known": {"x": 1}}).marked_thread()
    thread.begin({"a": "x"})

    first, second = (thread.trace(thread.function("data.t.r")) for _ in range(2))

    assert first[0] is second[0] is True
    assert set(first[1]) == set(second[1])
    assert ("data", "/known", "keys") in second[1]


def test_a_query_for_keys_reads_no_values() -> None:
    """Only those that it looks up then."""
    rule = 'r := [input.tags[key] | some key in object.keys(input.tags); lower(key) == "a"]'
    thread = rego.compile({"t.rego": f"package t\n\n{rule}\n"}).marked_thread()
    thread.begin({"tags": {"A": 1, "b": 2}})

    value, reads = thread.trace(thread.uncached("data.t.r"))

    assert value == [1]
    assert {(read.pointer, read.kind) for read in reads} == {
        ("/tags", "value"),
        ("/tags", "keys"),
        ("/tags/A", "value"),
    }


def test_what_is_read_as_a_whole() -> None:
    """The content of a result, compared values, and the arguments of a builtin."""
    program = rego.compile({"t.rego": "package t\n\nr := [input.a, json.marshal(input.b), input.c == {}]\n"})
    thread = program.marked_thread()
    thread.begin({"a": {"x": [1]}, "b": {"y": 2}, "c": {"z": 3}})

    value, reads = thread.trace(thread.uncached("data.t.r"))

    assert value == [{"x": [1]}, '{"y":2}', False]
    assert {read.pointer for read in reads if read.kind == "whole"} == {"/a", "/b"}
    assert ("input", "/c", "keys") in reads


#: What has no function, because the compiler writes it in the place of the call.
IN_PLACE = {"assign", "eq", "internal.test_case", "print", "rego.metadata.chain", "rego.metadata.rule"}


@pytest.mark.parametrize("operation", OPERATIONS, ids=range(len(OPERATIONS)))
def test_a_marker_raises_when_it_is_touched(operation: Callable[[Any], object]) -> None:
    """With its pointer and reason, through `except Exception`."""
    with pytest.raises(rego.Undecided) as raised:
        _ignoring_errors(operation, rego.UnknownValue("/a", "not read"))
    assert (raised.value.pointer, raised.value.reason) == ("/a", "not read")


def _ignoring_errors(operation: Callable[[Any], object], marker: rego.UnknownValue) -> None:
    with suppress(Exception):
        operation(marker)


@pytest.mark.parametrize("name", sorted(signatures().keys() - REFUSED.keys() - LENIENT.keys() - IN_PLACE))
def test_builtins_raise_where_an_operand_is_not_known(name: str) -> None:
    """At each position, at any depth, whatever the other operands are; the others have cases of their own."""
    function = guard(name, load_function(name))
    hidden, causes = rego.UnknownValue("/a", "not read"), (("/a", "not listed"),)
    for operand in (
        hidden,
        [hidden],
        {"x": [hidden]},
        rego.MarkedObject({"x": hidden}),
        rego.MarkedObject({}, causes),
        [rego.MarkedList([1], causes)],
        MarkedSet({1}, causes),
    ):
        arity = len(signatures()[name].get("arguments", ()))
        for position in range(arity):
            with pytest.raises(rego.Undecided):
                function(*["a"] * position, operand, *["a"] * (arity - position - 1))


def test_marked_documents_survive_a_copy_and_a_process() -> None:
    """A marker stays one."""
    marked = rego.mark({"a": {"b": 1, "c": [1, 2]}}, {"/a/b": "x", "/a/c/0": "y"}, {"/a/c": "z", "/a": "w"})

    for copied in (copy.deepcopy(marked), pickle.loads(pickle.dumps(marked))):  # noqa: S301  # of this test
        assert show(copied) == {"a": {"b": {"unknown": "/a/b"}, "c": [{"unknown": "/a/c/0"}, 2]}}
        assert deep_causes(copied) == deep_causes(marked)
        assert copied["a"].open == (("/a", "w"),)


@pytest.mark.parametrize("pointer", ["/x/y", "/a/b/c", "/a/c/7"])
def test_a_pointer_that_leads_nowhere_is_refused(pointer: str) -> None:
    """A marker is put where something is, or may be."""
    with pytest.raises(KeyError):
        rego.mark({"a": {"b": 1, "c": [1]}}, {pointer: "x"})


def test_errors() -> None:
    """An error before which nothing was undecided is one; after that it is not certain."""
    program = rego.compile({"t.rego": "package t\n\nr := to_number(input.a)\n\ns if input.x\n\ns if r\n"})
    marked = rego.mark({"a": "b", "x": 1}, {"/x": "hidden"})

    with pytest.raises(rego.EvaluationError, match="to_number"):
        program.decide("data.t.r", marked)
    assert program.decide("data.t.s", marked).undecided == (("/x", "hidden"),)


@pytest.mark.parametrize("depth", [3, 8, 12])
def test_loops_in_loops(depth: int) -> None:
    """Deeper than Python nests blocks, an iteration does not continue by itself, but what is undecided stays so."""
    document: Any = [1, 2]
    for _ in range(depth - 1):
        document = [document]
    variables = "".join(f"[i{number}]" for number in range(depth))
    program = rego.compile({"t.rego": f"package t\n\nr if input.xs{variables} == 1\n\ns if input.xs{variables} == 3\n"})
    marked = rego.mark({"xs": document}, {f"/xs{'/0' * (depth - 1)}/1": "hidden"})

    assert program.decide("data.t.r", marked) == (True, ())
    assert [pointer for pointer, _ in program.decide("data.t.s", marked).undecided] == [f"/xs{'/0' * (depth - 1)}/1"]


def test_a_stored_program_handles_markers() -> None:
    """With the stored code of the other form; without it, it reports it."""
    program = rego.compile({"t.rego": "package t\n\nr if input.x == 1\n\nr if input.y == 1\n"})
    stored, handled = program.compiled.dump(), program.compile_handled().dump()
    marked = rego.mark({"x": 1, "y": 1}, {"/x": "hidden"})

    loaded = rego.Program(Compiled.load(stored), {}, handled=lambda: Compiled.load(handled))

    assert loaded.decide("data.t.r", marked) == program.decide("data.t.r", marked) == (True, ())
    with pytest.raises(ValueError, match="no rules to compile"):
        rego.Program(Compiled.load(stored), {}).handled_thread()
