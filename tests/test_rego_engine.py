"""The Rego engine on hostile and awkward policies: limits, errors, meanings and refusals."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from policyeng import rego
from policyeng.engines.embedded import LIMITS
from policyeng.rego.budget import EvaluationLimits
from policyeng.rego.builtins import BuiltinError
from policyeng.rego.values import to_json
from tests.growth import steps

RESOURCE = {"id": "/A", "type": "T", "name": "box", "xs": list(range(300)), "text": "x" * 5_000, "word": "no number"}
SNAPSHOT = {"resources": [RESOURCE], "workloads": [{"id": "w"}], "approvals": [{"id": "a"}], "takenAt": "now"}
DEEP = "a0 := [1]\n" + "\n".join(f"a{n + 1} := [a{n}, a{n}]" for n in range(60)) + "\n"
RUN = "; ".join(f"some {name} in input.resource.xs" for name in "ijkl")
WORD = "input.resource.word"


def evaluated(module: str, path: str = "data.p.deny") -> object:
    """The value of a rule of the package `p` for the resource, as JSON; None where it is undefined."""
    return called(compiled(module), path)


def compiled(module: str) -> rego.Program:
    """The package `p` of some rules."""
    return rego.compile({"p.rego": f"package p\n{module}\n"}, {"facts": {"two": 2}})


def called(program: rego.Program, path: str = "data.p.deny", limits: EvaluationLimits = LIMITS) -> object:
    """The value of a rule of a program for the resource, within limits of which the time is a second."""
    thread = program.thread()
    thread.begin({"resource": RESOURCE}, limits._replace(seconds=1))
    value = thread.call(thread.function(path))
    return None if value is rego.UNDEFINED else to_json(value)


HOSTILE = {
    "endless product": (f"deny contains {{}} if count([1 | {RUN}]) > 0", "eval_budget_error"),
    "endless memory": (f"deny contains {{}} if count([[i, j, k] | {RUN}]) > 0", "eval_budget_error"),
    "endless condition in not": (
        f"q if {{ {RUN}; i + j + k + l < 0 }}\ndeny contains {{}} if not q",
        "eval_budget_error",
    ),
    "endless function in not": (
        f"q(x) if {{ {RUN}; i + j + k + l < x }}\ndeny contains {{}} if not q(0)",
        "eval_budget_error",
    ),
    "shared parts walked": (DEEP + "deny contains {} if { walk(a60, [_, v]); v == 7 }", "eval_budget_error"),
    "shared parts written": (DEEP + "deny contains {} if count(json.marshal(a60)) > 0", "eval_budget_error"),
    "shared parts denied": (DEEP + 'deny contains {"a": a60}', "eval_budget_error"),
    "doubled strings": (
        "s0 := input.resource.text\n"
        + "\n".join(f's{n + 1} := concat("", [s{n}, s{n}])' for n in range(40))
        + "\ndeny contains {} if count(s40) > 0",
        "eval_budget_error",
    ),
    "replaced strings": (
        'deny contains {} if count(replace(input.resource.text, "x", input.resource.text)) > 0',
        "eval_budget_error",
    ),
    "long range": ("deny contains {} if count(numbers.range(1, 1000000000)) > 0", "eval_budget_error"),
    "squared numbers": (
        "b0 := 7\n" + "\n".join(f"b{n + 1} := b{n} * b{n}" for n in range(40)) + "\ndeny contains {} if b40 > 0",
        "eval_builtin_error",
    ),
    "large shift": ("deny contains {} if bits.lsh(1, 100000000000) > 0", "eval_builtin_error"),
    "large network": ('deny contains {} if count(net.cidr_expand("::/0")) > 0', "eval_budget_error"),
    "nested quantifiers": (
        "deny contains {} if {\n\tsome i in numbers.range(1, 1000000)\n"
        '\tregex.match(`^(a+)+$`, sprintf("%s%d", [input.resource.text, i]))\n}',
        "eval_budget_error",
    ),
    "counted repetition": (
        "deny contains {} if regex.match(`((a{1,999}){1,999}){1,999}`, input.resource.text)",
        "eval_builtin_error",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_policy_ends_in_an_error(name: str) -> None:
    """Soon, and without making what it describes."""
    module, code = HOSTILE[name]
    # The steps end before the second of `called`: how much memory an evaluation takes in a second varies.
    small = LIMITS._replace(steps=LIMITS.steps // 40, size=LIMITS.size // 10)
    program = compiled(module)
    tracemalloc.start()
    try:
        with pytest.raises(rego.EvaluationError) as raised:
            called(program, limits=small)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()
    assert raised.value.code == code
    assert raised.value.file == "p.rego"


def test_steps_are_limited() -> None:
    """The same policy ends at the same step, however fast the machine is."""
    thread = rego.compile({"p.rego": f"package p\n{HOSTILE['endless product'][0]}\n"}).thread()
    thread.begin({"resource": RESOURCE}, LIMITS._replace(seconds=600, steps=20_000))
    with pytest.raises(rego.EvaluationError, match="more than 20,000 steps"):
        thread.call(thread.function("data.p.deny"))


def test_threads_evaluate_apart() -> None:
    """Each with its own input and its own limits."""
    program = rego.compile({"p.rego": "package p\nq := count([x | some x in input.xs])\n"})
    found: dict[int, object] = {}

    def evaluate(size: int) -> None:
        found[size] = [program.query("data.p.q", {"xs": [1] * size}) for _ in range(50)]

    threads = [threading.Thread(target=evaluate, args=(size,)) for size in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {size: [size] * 50 for size in range(1, 9)}


FAULTY = {
    "in deny": (f"deny contains {{}} if to_number({WORD}) > 1", "eval_builtin_error"),
    "in not": (f"deny contains {{}} if not to_number({WORD})", "eval_builtin_error"),
    "in a function in not": (f"f(x) if to_number(x) > 1\ndeny contains {{}} if not f({WORD})", "eval_builtin_error"),
    "in a rule in not": (f"q if to_number({WORD}) > 1\ndeny contains {{}} if not q", "eval_builtin_error"),
    "in every": (f'deny contains {{}} if {{ every x in ["1", {WORD}] {{ to_number(x) }} }}', "eval_builtin_error"),
    "in a list": (
        f'deny contains {{}} if count([y | some x in ["1", {WORD}]; y := to_number(x)]) < 2',
        "eval_builtin_error",
    ),
    "in a set": (
        f'deny contains {{}} if count({{y | some x in ["1", {WORD}]; y := to_number(x)}}) < 2',
        "eval_builtin_error",
    ),
    "in a list that base data is compared with": (
        'deny contains {} if data.facts.two == [to_number(x) | x := "x"]',
        "eval_builtin_error",
    ),
    "behind a default": (
        f"default q := true\nq := false if to_number({WORD})\ndeny contains {{}} if q",
        "eval_builtin_error",
    ),
    "before an else": (
        f"q := 1 if {{ to_number({WORD}) }} else := 2\ndeny contains {{}} if q == 2",
        "eval_builtin_error",
    ),
    "in the head": (f'deny contains {{"msg": to_number({WORD})}}', "eval_builtin_error"),
    "of an operand": (f"deny contains {{}} if not {WORD} + 1 > 0", "eval_type_error"),
    "of a division": ("deny contains {} if not 1 / input.resource.xs[0] > 0", "eval_builtin_error"),
    "of a remainder": ("deny contains {} if not 1 % input.resource.xs[0] > 0", "eval_builtin_error"),
    "of a type": ("deny contains {} if count(input.resource.xs[0]) > 1", "eval_type_error"),
    "conflicting rule": ("q := 1\nq := input.resource.xs[2]\ndeny contains {} if not q", "eval_conflict_error"),
    "conflicting function": (
        "f(x) := 1\nf(x) := x\ndeny contains {} if not f(input.resource.xs[2])",
        "eval_conflict_error",
    ),
    "conflicting loop": ("q := x if some x in input.resource.xs\ndeny contains {} if not q", "eval_conflict_error"),
    "conflicting function loop": (
        "f(y) := x if some x in y\ndeny contains {} if f(input.resource.xs)",
        "eval_conflict_error",
    ),
    "conflicting key": ("deny contains {} if not {1: x | some x in input.resource.xs}[1]", "eval_conflict_error"),
    "conflicting key of a rule": (
        "q[k] := x if { some x in input.resource.xs; k := x % 2 }\ndeny contains {} if q[1]",
        "eval_conflict_error",
    ),
}


@pytest.mark.parametrize("name", FAULTY)
def test_errors_are_never_swallowed(name: str) -> None:
    """An error or a conflict anywhere ends the evaluation."""
    module, code = FAULTY[name]
    with pytest.raises(rego.EvaluationError) as raised:
        evaluated(module)
    assert raised.value.code == code


# Each rule `q` gives what OPA 1.22 gives with --strict-builtin-errors; None means undefined.
MISSING = "input.resource.missing"
MEANINGS: dict[str, tuple[str, object]] = {
    "negated call of nothing": (f'q if not startswith({MISSING}, "a")', None),
    "negated membership of nothing": (f'q if not {MISSING} in {{"a"}}', None),
    "membership in constants with null": (
        'q := [x | some x in ["a", "b", "", null, false, 0]; x in {"a", null}]',
        ["a", None],
    ),
    "no membership in constants with null": (
        'q := [x | some x in ["a", null, false, 0]; not x in ["a", null]]',
        [False, 0],
    ),
    "negated comparison of nothing": (f"q if not {MISSING} > 1", None),
    "negated equality of nothing": (f"q if not {MISSING} == 1", True),
    "negated function of nothing": (f"f(x) if x == 1\nq if not f({MISSING})", None),
    "negated nothing": (f"q if not {MISSING}.a.b", True),
    "assigned nothing": (f"q if {{ x := {MISSING}; not x == 1 }}", None),
    "assigned undefined rule": (f"r := {MISSING}\nq if {{ x := r; not x == 1 }}", None),
    "function of nothing": (f"f(_) := 1\nq := f({MISSING})", None),
    "list of some nothing": ('q := [x.a | some x in [{"a": 1}, {}, {"a": 2}]]', [1, 2]),
    "list assigned nothing": ('q := [y | some x in [{"a": 1}, {}]; y := x.a]', [1]),
    "list of calls of nothing": ('q := [upper(x.a) | some x in [{"a": "b"}, {}]]', ["B"]),
    "set loses nothing": ('r contains x.a if some x in [{"a": 1}, {"a": 2}, {}]\nq := count(r)', 2),
    "set of objects with nothing": ('r contains {"b": x.a} if some x in [{"a": 1}, {}, {"a": 2}]\nq := count(r)', 2),
    "condition in an inner list": (
        'q := [x | some x in [{"a": 1}, {"b": 2}]; c := [1 | x.a]; count(c) == 0]',
        [{"b": 2}],
    ),
    "list within a list": ("q := [[y | some y in [1, 2]; y > x] | some x in [0, 1]]", [[1, 2], [2]]),
    "some in a missing list": (f"q := [x | some x in {MISSING}]", []),
    "some in a string": ("q := count([x | some x in input.resource.name])", 0),
    "every in nothing": (f"q if {{ every x in {MISSING} {{ x }} }}", None),
    "default function": ("default f(_) := 5\nf(x) := x if x > 9\nq := f(1)", 5),
    "default computed": ("default q := [x | some x in [1, 2]]\nq := 1 if false", [1, 2]),
    "else": (f"q := 1 if {MISSING}\nelse := 2 if input.resource.name\nelse := 3", 2),
    "function of literals": ('f("a") := 1\nf("b") := 2\nq := [f(x) | some x in ["a", "b", "c"]]', [1, 2]),
    "object of some nothing": ('q := {x.a: 1 | some x in [{"a": "k"}, {}]}', {"k": 1}),
    "with": ('q if input.a with input as {"a": true}', True),
    "types in order": ('q if 1 < "a"', True),
    "occurrences": ('q := strings.count("11111", "11")', 2),
    "replaced once": ('q := strings.replace_n({"a": "b", "b": "a"}, "abba")', "baab"),
    "walked": ('q := {v | walk({"a": [1, {"b": 2}]}, [_, v]); is_number(v)}', [1, 2]),
    "captured operands in not": (
        'q if { not contains("aB", upper(lower(input.resource.name))); not contains(upper("b"), lower("B")) }',
        True,
    ),
    "else in a second rule with modifiers": (
        'q := 1 if { "x" == input.a } else := 2 if { count(input.a) == 1 with input.a as "b" }\nq := 2 if true',
        2,
    ),
    "constants that differ in type": (
        'r[x] := 1 if { some x in [1, "a"] }\nq if { y := 1; not y == input.a; r[y] }',
        True,
    ),
    "error behind another test of the input": (f'q if {{ to_number({WORD}) > 1; input.resource.type == "x" }}', None),
    "error behind a missing input": (f"q if {{ to_number({WORD}) > 1; x := {MISSING} }}", None),
    "error behind a test of an argument": (f'f(x) if {{ to_number({WORD}) > 1; x == "b" }}\nq if f("a")', None),
    "error behind a missing member": (f"q contains {MISSING} if to_number({WORD}) > 1", []),
    "error after the value": (f'q := [1, 2] if {{ some x in ["1", {WORD}]; to_number(x) == 1 }}', [1, 2]),
    "values of a function": ("f(_) := [1, 1][_]\nq if f(1)", True),
    "nothing below a variable": ("q[x].a := 1 if x := input.a\nq.b.c contains 1 if false\nq.d := set()", {"d": []}),
    "missing member of a negated object": (f'q if not input.resource.name == {{"a": {MISSING}}}', None),
    "list of errors for a text": (f"q if not input.resource.name == [to_number(x) | x := {WORD}]", True),
    "text after a list of errors": (f"q if not [to_number(x) | x := {WORD}] == input.resource.name", True),
    "first member of an object": (
        f'r if every k, v in {{"b": {WORD}, "a": "1"}} {{ k > "a"; to_number(v) }}\nq if not r',
        True,
    ),
    "error behind a member of the input": (f"q if {{ to_number({WORD}) > 1; 1000 in input.resource.xs }}", None),
    "modifier of a called function": ('q := x if { lower("A") == "a"; x := upper("b") with upper as lower }', "b"),
    "every in many loops": (
        "q if {"
        + "; ".join(f"some x{n} in [1]" for n in range(11))
        + "; every y in [1] { every z in [1] { y == z } } }",
        True,
    ),
    "search within a list in the head": ('r := {"a": 1, "b": 2}\nq contains [r[k]] if true', [[1], [2]]),
    "searches on both sides": (
        'r := {"a": 1, "b": 2}\nq contains k if { {"x": [r[k], y]} = {"x": [r[l], 1]}; k == l; y == 1 }',
        ["a", "b"],
    ),
    "facts": ("q := data.facts.two * 3", 6),
}


@pytest.mark.parametrize("name", MEANINGS)
def test_rego_means_what_it_means_in_opa(name: str) -> None:
    """Constructs that are easily read otherwise."""
    module, meaning = MEANINGS[name]
    assert evaluated(module, "data.p.q") == meaning


REFUSED = {
    "syntax": ("deny contains {", "p.rego:"),
    "unknown function": ("deny contains {} if nothing.such(1)", "undefined function nothing.such"),
    "recursion": ("deny contains {} if q\nq if r\nr if q", "data.p.q -> data.p.r -> data.p.q"),
    "function as its value": ("f(x) := f\ndeny contains {} if f(1)", "data.p.f -> data.p.f"),
    "recursive function": ("f(x) := y if y := f(x - 1)\ndeny contains {} if f(1)", "data.p.f -> data.p.f"),
    "clock": ("deny contains {} if time.now_ns() > 0", "p.rego:2:21: rego_type_error: time.now_ns is refused"),
    "network": ('deny contains {} if http.send({"url": "x"})', "http.send is refused"),
    "resolver": ('deny contains {} if net["lookup_ip_addr"]("x")', "net.lookup_ip_addr is refused"),
    "chance": ('deny contains {} if rand.intn("a", 2) == 1', "rand.intn is refused"),
    "identity": ('deny contains {} if uuid.rfc4122("a") == 1', "uuid.rfc4122 is refused"),
    "host": ("deny contains {} if opa.runtime().env", "opa.runtime is refused"),
    "clock by way of with": ("deny contains {} if abs(1) with abs as time.now_ns", "time.now_ns is refused"),
    "parser": ('deny contains {} if rego.parse_module("a", "b")', "rego.parse_module is refused"),
    "print": ('deny contains {} if print("a")', "print is for tests"),
    "unknown name in the head": ("deny contains x if true", "var x is unsafe"),
    "unused name of every": ("deny contains {} if every x in [1] { true }", "declared var x unused"),
    "call of a variable": ("deny contains {} if { count = 3; count([1]) > 0 }", "called function count shadowed"),
    "function of other arguments": ("deny contains {} if abs(1) with abs as object.get", "abs: arity mismatch"),
    "name of every again": ("deny contains {} if every x in [1] { some x in [1] }", "var x declared above"),
    "else after the last else": (
        "q := 1 if false\nelse := 2\nelse := 3",
        "p.rego:4:1: rego_parse_error: unexpected keyword `else`",
    ),
    "brackets": ("deny contains {} if " + "(" * 100_000, "p.rego:2:"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_evaluated_is_refused_at_once(name: str) -> None:
    """With the place and the name."""
    module, reason = REFUSED[name]
    with pytest.raises(rego.RegoError, match=re.escape(reason)):
        evaluated(module)


def test_names_in_strings_and_comments_are_no_calls() -> None:
    """A text that only looks like a refused call is a text."""
    assert evaluated('deny contains {"msg": "http.send()"} # time.now_ns()') == [{"msg": "http.send()"}]


def test_a_stored_program_finds_its_constants_in_another_process(tmp_path: Path) -> None:
    """Members that are sets, objects and arrays are found though every process hashes texts differently."""
    stored = tmp_path / "program"
    text = 'package p\nv if input.x in {{"a"}, {"a", "b"}}\nw if input.y in {["a"], {"k": {"c"}}}'
    stored.write_bytes(rego.compile({"p.rego": text}).compiled.dump())
    reading = (
        "import sys; from pathlib import Path;"
        "from policyeng import rego; from policyeng.rego.compiled import Compiled;"
        "program = rego.Program(Compiled.load(Path(sys.argv[1]).read_bytes()), {});"
        "given = {'x': {'a', 'b'}, 'y': {'k': {'c'}}};"
        "print(program.query('data.p.v', given), program.query('data.p.w', given))"
    )

    for seed in ("1", "2"):
        environ = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", reading, str(stored)]
        assert subprocess.run(command, capture_output=True, text=True, check=True, env=environ).stdout == "True True\n"


PATHS = {
    'data.hooks["test.target"].deny': ["a.b"],
    'data.hooks["test.target"].deny[0]': "a.b",
    'data.hooks["test.target"].sizes["é \\"x\\""]': 2,
    "data.hooks.test.target.deny": "of names",
    'data["hooks"].test["target"].deny': "of names",
    "data.hooks.test.missing": None,
    'data.base["a.b"][1].c': 3,
    "data.base.a.b": None,
}


@pytest.mark.parametrize("path", PATHS)
def test_a_path_is_read_as_rego_writes_it(path: str) -> None:
    """A name with dots is one name."""
    modules = {
        "a.rego": 'package hooks["test.target"]\ndeny := ["a.b"]\nsizes := {"é \\"x\\"": 2}\n',
        "b.rego": 'package hooks.test.target\ndeny := "of names"\n',
    }
    found = rego.compile(modules, {"base": {"a.b": [0, {"c": 3}]}}).query(path, {})
    assert (None if found is rego.UNDEFINED else found) == PATHS[path]


@pytest.mark.parametrize(
    "path", ["p.deny", "data..deny", "data.p.", "data.p[x]", "data.p[-1]", 'data["p', "data.p-q", "input.x", "datap"]
)
def test_what_is_no_path_is_refused(path: str) -> None:
    """A misspelt path is not a document that has no value."""
    program = compiled("deny := 1")
    for ask in (program.query, program.thread().function, program.thread().uncached):
        with pytest.raises(ValueError, match="is not the path of a rule or document"):
            ask(path)


def dispatching(count: int) -> rego.Program:
    """A program of as many packages and rules, of which names of the input ask for ten, and one is in error."""
    modules = {
        f"t{number}.rego": f"package templates.t{number}\nviolation contains n if {{ some n in input.ns; n > 1 }}\n"
        for number in range(count)
    }
    rules = [f"obj.t{number}.v := {number} if input.ns[_] == 2" for number in range(count)]
    modules["bad.rego"] = "package templates.bad\nviolation contains to_number(input.word)\n"
    modules["o.rego"] = "\n".join(["package o", *rules])
    modules["p.rego"] = (
        "package p\n"
        "by_package := {[k, v] | some k in input.names; data.templates[k].violation[v]}\n"
        "by_rule := {[k, v] | some k in input.names; v := data.o.obj[k].v}\n"
    )
    return rego.compile(modules)


@pytest.mark.parametrize("rule", ["by_package", "by_rule"])
def test_what_is_not_asked_for_costs_nothing(rule: str) -> None:
    """The same number of steps for 10, 40 and 160 packages and rules, and no error of another one."""
    given = {"names": [f"t{number}" for number in range(10)], "ns": [1, 2, 3], "word": "x"}
    counted = []
    for count in (10, 40, 160):
        program = dispatching(count)
        assert len(program.query(f"data.p.{rule}", given)) == (20 if rule == "by_package" else 10)
        thread = program.thread()
        thread.begin(given)
        counted.append(steps(lambda: thread.call(thread.function(f"data.p.{rule}"))))  # noqa: B023  # called at once
    assert counted[0] == counted[1] == counted[2]


def test_members_of_a_set_are_not_each_evaluated_by_a_loop() -> None:
    """After two of them the set is evaluated as a whole: the steps grow with its size, not with its square."""
    program = rego.compile(
        {"p.rego": "package p\ns contains x if some x in input.xs\nr if every x in input.xs { s[x] }\n"}
    )
    thread = program.thread()

    def work(size: int) -> Callable[[], object]:
        thread.begin({"xs": [str(number) for number in range(size)]})
        return lambda: thread.call(thread.function("data.p.r"))

    small, large = (steps(work(size)) for size in (50, 200))
    assert large < 5 * small


NOW = "now := time.now_ns() / 1000000000\n"
SENT = 'a := http.send({"url": "x"}).x\n'
REPLACED = {
    "the time of the evaluation": (f"{NOW}r := now", 1767225600),
    "a replaced time": (f"{NOW}r := x if x := now with time.now_ns as 5000000000", 5),
    "both times": (f"{NOW}r := [now, x] if x := now with time.now_ns as 5000000000", [1767225600, 5]),
    "a value": (SENT + 'r := x if x := a with http.send as {"x": 1}', 1),
    "a function": (SENT + 'f(request) := {"x": request.url}\nr := x if x := a with http.send as f', "x"),
    "no call": (SENT + 'r := 1 if input.no else := 2\nt if a with http.send as {"x": 1}', 2),
}


@pytest.mark.parametrize("name", REPLACED)
def test_a_refused_builtin_may_be_replaced(name: str) -> None:
    """What the same input gives is the same, so a program that replaces it is accepted."""
    module, value = REPLACED[name]
    program = rego.compile({"p.rego": f"package p\n{module}\n"}, has_time=True)
    for _ in range(2):
        found = program.query("data.p.r", {"no": False}, "2026-01-01T00:00:00Z")
        assert found == value
    assert program.query("data.p.r", {"no": False}, "2026-01-02T00:00:00Z") is not rego.UNDEFINED


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("r := time.now_ns()", "time.now_ns"),
        (SENT + 'r := a\nt if a with http.send as {"x": 1}', "http.send"),
        (SENT + 'r := 1 if not a\nt if a with http.send as {"x": 1}', "http.send"),
    ],
)
def test_a_refused_builtin_that_is_called_is_an_error(module: str, name: str) -> None:
    """Also where errors of builtins are undefined: nothing says what it would give."""
    program = rego.compile({"p.rego": f"package p\n{module}\n"}, has_time=True)
    with pytest.raises(
        rego.EvaluationError, match=f"{name} is refused: put .* or replace it by `with {name} as"
    ) as raised:
        program.query("data.p.r", {})
    assert (raised.value.file, raised.value.code) == ("p.rego", "eval_builtin_error")
    assert not isinstance(raised.value.__cause__, BuiltinError)


def test_the_time_is_refused_where_there_is_none() -> None:
    """A program that is never given a time refuses it when it is loaded."""
    with pytest.raises(rego.RegoError, match=r"time\.now_ns is refused: put the time into the input"):
        rego.compile({"p.rego": "package p\nr := time.now_ns()\n"})


CONFLICTS = {
    "of two rules": (
        'r := 1 if input.x\nr := "two" if input.x',
        'rule data.p.r produced conflicting values: 1 at p.rego:2, "two" at p.rego:3',
    ),
    "of one rule": (
        "r := x if some x in [1, 2]",
        "rule data.p.r produced conflicting values: 1 at p.rego:2, 2 at p.rego:2",
    ),
    "of an else": (
        "r := 1 if input.x\nr := 2 if not input.x\nelse := 3",
        "rule data.p.r produced conflicting values: 1 at p.rego:2, 3 at p.rego:3",
    ),
    "of a function": (
        "f(x) := x if x\nf(x) := x + 1 if x\nr := f(1)",
        "function data.p.f produced conflicting values: 1 at p.rego:2, 2 at p.rego:3",
    ),
    "of a key": (
        'r[k] := v if { k := "a"; some v in [1, 2] }',
        'object keys must be unique: "a" has the values 1 and 2',
    ),
    "of long values": (
        "r := x if some x in [1, numbers.range(1, 100)]",
        f"1 at p.rego:2, {str(list(range(1, 100)))[:80]}... at p.rego:2",
    ),
}


@pytest.mark.parametrize("name", CONFLICTS)
def test_a_conflict_names_values_and_places(name: str) -> None:
    """Of both values, so that nobody has to guess which rule gives which."""
    module, message = CONFLICTS[name]
    with pytest.raises(rego.EvaluationError, match=re.escape(message)) as raised:
        compiled(module).query("data.p.r", {"x": 1})
    assert raised.value.code == "eval_conflict_error"


def test_a_rule_at_the_path_of_base_data_names_both() -> None:
    """Where the rule is, and where in the data the value is."""
    modules = {"p.rego": "package p\n\nlimits.a.b := 1\n"}
    with pytest.raises(rego.RegoError) as raised:
        rego.compile(modules, {"p": {"limits": {"a": 2}}})
    text = str(raised.value)
    assert text.startswith("p.rego:3:1: rego_compile_error: conflicting rule for data path p/limits/a/b found\n")
    assert "hint: the base data has a value at data.p.limits.a: rename the rule data.p.limits.a.b or remove" in text
