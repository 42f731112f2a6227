"""What programs of Rego mean, as OPA has it: shapes that people write and that are easily misunderstood."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rego_meanings import Meaning, evaluate_ours, evaluate_with_opa, fails, means

_DENY = 'deny[msg] { input.kind == "Pod"; msg := "no pods" }\n'

EMPTY_ARGUMENTS = {
    "a rule": means("f() := input.x if input.x == 1\ng := f", f=1, g=1),
    "without a body": means("f() := 1\ng := f", f=1, g=1),
    "of v0": means(
        "f() = out { out := {p | p := input.xs[_]} }\ng { not f.q }", is_old=True, f=["a", "b", "z"], g=True
    ),
    "iterated": means('f() := {"a": input.x} if true\ng := f.a\nh := f[_]\ni := f[k]', f={"a": 1}, g=1, h=1, i=1),
    "called": means(
        "f() := input.y\ng := f()\nh if f().a\ni if not f()\nj := [x | x := f()]\nk := [f(), f] if f() == f",
        f={"a": True},
        g={"a": True},
        h=True,
        j=[{"a": True}],
        k=[{"a": True}, {"a": True}],
    ),
    "a call of a rule without parentheses": means("f := input.x\ng := f()\nh := y if f(y)", f=1, g=1, h=1),
    "called where its type is known": fails("rego_type_error", "f() := 1 if input.x\ng := f()"),
    "called as a set": fails("rego_type_error", "f contains input.x\ng := f()"),
    "called with an argument too many": fails("rego_type_error", "f() := input.x\ng := f(1, 2)"),
    "called where nothing has the name": fails("rego_type_error", "g := data.q.f()"),
    "replaced": means(
        "f := input.x\ng := x if x := f with f as 3\n"
        "h := x if x := f() with f as 3\ni := x if x := f() with input.x as 3",
        f=1,
        g=3,
        h=1,
        i=3,
    ),
    "a default": means("default f() := 3\nf() := 4 if input.x == 2\ng := f", f=3, g=3),
    "an else": means('f() := 1 if input.k == "z" else := input.x\ng := f()', f=1, g=1),
    "undefined": means("f() := input.missing\ng := f()\nh if not f", h=True),
    "false": means("f() := input.no\ng if not f()\nh := f()", f=False, g=True, h=False),
    "at a reference": means("a.b() := input.x\ng := a.b()\nh := a", a={"b": 1}, g=1, h={"b": 1}),
    "recursive": fails("rego_recursion_error", "f() := g()\ng() := f()"),
    "together with a function": fails("rego_type_error", "f() := input.x\nf(x) := x"),
    "together with a rule": means("f() := input.x\nf := 1", f=1),
    "an error": fails("eval_builtin_error", "f() := to_number(input.word)\ng if not f"),
}

OLD_NAMES = {
    "input as input": means(
        _DENY + 't { input := {"kind": "Pod"}; deny["no pods"] with input as input }', is_old=True, deny=[], t=True
    ),
    "a part of input": means(
        _DENY + 't { input := "Pod"; deny["no pods"] with input.kind as input }', is_old=True, deny=[], t=True
    ),
    "in a comprehension": means(
        _DENY + 't = [x | input := {"kind": "Pod"}; deny[x] with input as input]', is_old=True, deny=[], t=["no pods"]
    ),
    "a declared name": means(
        _DENY + 't = [x | some input; input = {"kind": "Pod"}; deny[x] with input as input]',
        is_old=True,
        deny=[],
        t=["no pods"],
    ),
    "data as data": means(
        'q = data.foo\nt = x { data := {"a": 1}; x := q with data.foo as data }', is_old=True, t={"a": 1}
    ),
    "the local value is not replaced": means(
        "t { input := 3; x := [input] with input as 2; x == [3] }\nf { input := 3; input == 2 with input as 2 }",
        is_old=True,
        t=True,
    ),
    "a function of the replaced input": means(
        "t { input := 3; f(1) with input as 2 }\nf(x) { input == 2 }", is_old=True, t=True
    ),
    "an argument": fails("rego_compile_error", "f(input) = input.a", is_old=True),
    "an argument called data": fails("rego_compile_error", "f(data) = data.a", is_old=True),
    "a part of an argument": fails("rego_compile_error", "f([input]) = input.a", is_old=True),
    "a variable of v1": fails("rego_compile_error", "t if { input := 3; input == 3 }"),
}

TABLES = {"empty arguments": EMPTY_ARGUMENTS, "old names": OLD_NAMES}
MEANINGS = {f"{title}: {name}": meaning for title, table in TABLES.items() for name, meaning in table.items()}


@pytest.mark.parametrize("name", MEANINGS)
def test_a_program_means_what_is_written(name: str) -> None:
    """Its value, or what is wrong with it."""
    meaning: Meaning = MEANINGS[name]
    assert evaluate_ours(meaning) == (meaning.value, meaning.codes)


@pytest.mark.slow
@pytest.mark.parametrize("name", MEANINGS)
def test_a_program_means_the_same_in_opa(name: str, opa: Path) -> None:
    """What is written here is not only what this engine gives."""
    meaning: Meaning = MEANINGS[name]
    assert evaluate_with_opa(opa, meaning) == (meaning.value, meaning.codes)
