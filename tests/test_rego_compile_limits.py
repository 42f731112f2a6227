"""Modules that are made to exhaust the compiler: compiled, or refused with the place."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress

import pytest

from policyeng import rego
from policyeng.rego.budget import UNLIMITED, EvaluationLimits, compiling
from policyeng.rego.program import Program

#: By name: a module and the value of its rule `r` for `{"a": 1}`.
TAKEN = {
    "many else": (
        "r := 0 if input.a == 0\n" + "".join(f"else := {n} if input.a == {2001 - n}\n" for n in range(2001)),
        2000,
    ),
    "nested comprehensions": (
        "r := " + "".join(f"[x{n} | x{n} := " for n in range(30)) + "1" + "]" * 30,
        json.loads("[" * 30 + "1" + "]" * 30),
    ),
    "many loops": ("r := count([1 | " + "; ".join(f"some x{n} in [input.a]" for n in range(60)) + "])", 1),
    "many expressions": ("r if {\n" + "\tinput.a == 1\n" * 1000 + "}", True),
    "doubled types": ("r0 := 1\n" + "".join(f"r{n + 1} := [r{n}, r{n}]\n" for n in range(10)) + "r := count(r10)", 2),
}
#: By name: a module and what refuses it.
REFUSED = {
    "a long sum": (
        "r := input.a" + " + 1" * 3000,
        "p.rego:2:1014: rego_parse_error: there are more than 250 operators",
    ),
    "a long reference": ("r := input" + ".a" * 3000, "p.rego:2:513: rego_parse_error: there are more than 250 parts"),
    "a long name": ("r" + ".a" * 1000 + " := 1", "p.rego:2:504: rego_parse_error: there are more than 250 parts"),
    "deep terms": ("r := " + "[" * 3000 + "]" * 3000, "p.rego:2:105: rego_parse_error: terms are nested more than 100"),
    "loops in a reference": ("q := 1\n\nr if input" + "[_]" * 25, "p.rego:4:6: rego_compile_error: loops and terms"),
    "a long number": ("q := 1\nr := " + "1" * 400_000, "p.rego:3:1: rego_compile_error: a number of 400,000"),
    "a deep type": (
        "r0 := 1\n" + "".join(f"r{n + 1} := [r{n}]\n" for n in range(2000)) + "r := count(r2000)",
        "rego_type_error: the type of this rule, or of one that it reads, is nested too deeply",
    ),
    "a large number": ("r := 1e1000000000", "p.rego:2:1: rego_compile_error: the number 1.000e+1000000000 is out of"),
}


@pytest.mark.parametrize("name", TAKEN)
def test_a_large_module_compiles(name: str) -> None:
    """Its result is correct."""
    module, value = TAKEN[name]
    assert rego.compile({"p.rego": f"package p\n{module}\n"}).query("data.p.r", {"a": 1}) == value


@pytest.mark.parametrize("name", REFUSED)
def test_too_deep_modules_are_refused_with_the_place(name: str) -> None:
    """Without an exception of Python."""
    module, reason = REFUSED[name]
    with pytest.raises(rego.RegoError, match=re.escape(reason)):
        rego.compile({"p.rego": f"package p\n{module}\n"})


def test_a_long_chain_of_rules_compiles_and_ends_in_an_error() -> None:
    """Evaluation is as deep as the chain."""
    module = "package p\nr0 := input.a\n" + "".join(f"r{n + 1} := r{n}\n" for n in range(2000))
    program = rego.compile({"p.rego": module})
    assert program.query("data.p.r100", {"a": 1}) == 1
    with pytest.raises(rego.EvaluationError, match="nested too deeply"):
        program.query("data.p.r2000", {"a": 1})


def _body(line: Callable[[int], str], count: int) -> str:
    return "r if {\n" + "".join(f"\t{line(number)}\n" for number in range(count)) + "}\n"


def _lines(line: Callable[[int], str], count: int) -> str:
    return "".join(f"{line(number)}\n" for number in range(count))


#: By name: what makes a module of so many lines.
LINES: dict[str, Callable[[int], str]] = {
    "assignments": lambda count: _body(lambda n: f"v{n} := {n}", count),
    "a chain": lambda count: _body(lambda n: f"v{n} := v{n - 1} + 1" if n else "v0 := 1", count),
    "a chain from its end": lambda count: _body(
        lambda n: f"v{n} = v{n + 1} + 1" if n < count - 1 else f"v{n} = 1", count
    ),
    "conditions": lambda count: _body(lambda n: f"input.x{n} == {n}", count),
    "negations": lambda count: _body(lambda n: f"not input.x{n}", count),
    "comprehensions": lambda count: _body(lambda n: f"v{n} := [x | some x in input.a{n}; x > {n}]", count),
    "every": lambda count: _body(lambda n: f"every x in input.x{n} {{ x > {n} }}", count),
    "modifiers": lambda count: "q := input.x\n" + _body(lambda n: f"q == {n} with input.x as {n}", count),
    "calls": lambda count: "f(x) := x + 1\n" + _body(lambda n: f"f({n}) == {n}", count),
    "patterns": lambda count: _body(lambda n: f'regex.match("a{n}", input.x)', count),
    "used by one closure": lambda count: _body(
        lambda n: f"v{n} := input.v{n}" if n < count - 1 else "[1 | " + "; ".join(f"v{k}" for k in range(n)) + "]",
        count,
    ),
    "unsafe": lambda count: _body(lambda n: f"v{n} == w{n}", count),
    "else": lambda count: "r := 0 if input.x == 0\n" + _lines(lambda n: f"else := {n} if input.x == {n}", count),
    "rules": lambda count: _lines(lambda n: f"r{n} := {n}", count),
    "rules that read the one before": lambda count: _lines(lambda n: f"r{n} := r{n - 1}" if n else "r0 := 1", count),
    "members of one set": lambda count: _lines(lambda n: f"r contains {n} if input.x == {n}", count),
    "functions of one name": lambda count: _lines(lambda n: f"f({n}) := {n}", count),
    "paths": lambda count: _lines(lambda n: f"r.x{n} := {n}", count),
    "variable paths": lambda count: _lines(lambda n: f"r[x].x{n} := {n} if some x in input.y", count),
    "an array": lambda count: "r := [" + ",\n".join(f"input.x{n}" for n in range(count)) + "]",
    "an object": lambda count: "r := {" + ",\n".join(f'"k{n}": {{"x": {n}}}' for n in range(count)) + "}",
    "a template": lambda count: 'r := $"' + "{input.x}" * count + '"',
    "bodies of one rule": lambda count: "r if { input.x }\n" + _lines(lambda _: "{ input.y }", count),
    "default rules": lambda count: _lines(lambda _: "default r := 1", count),
}


def _steps(module: str) -> int:
    with compiling(UNLIMITED) as steps:
        with suppress(rego.RegoError):  # what is refused is bounded as well
            # As for a document with markers.
            rego.compile({"p.rego": f"package p\n{module}\n"}).compile_handled()
        return steps.used


@pytest.mark.attack
@pytest.mark.parametrize("name", LINES)
def test_compiling_takes_steps_in_proportion_to_the_lines(name: str) -> None:
    """Eight times as many lines take about eight times as many steps."""
    few, many = (_steps(LINES[name](count)) for count in (125, 1000))
    assert few > 125
    assert many < 10 * few


def _compile(module: str, limits: EvaluationLimits) -> Program:
    return rego.compile({"big.rego": f"package p\n{module}\n"}, limits=limits)


@pytest.mark.parametrize(
    ("module", "limit", "most", "message"),
    [
        ("#" + "-" * 500, "characters", 500, "1:1: rego_limit_error: the module has more than 500 characters"),
        ("r1 := 1\nr2 := 2\nr3 := 3", "rules", 2, "4:1: rego_limit_error: the module has more than 2 rules"),
        ("r if {\n 1\n 2\n 3\n}", "expressions", 2, "5:2: rego_limit_error: a body has more than 2 expressions"),
        ("r := [1 | 1; 2; 3]", "expressions", 2, "2:17: rego_limit_error: a body has more than 2 expressions"),
        (LINES["rules"](100), "compilation_steps", 50, "52:8: rego_limit_error: the module takes more than 50 steps"),
        ("q := 1\n" + LINES["conditions"](200), "compilation_steps", 2500, "3:1: rego_limit_error: the program takes"),
        ("r := 1", "compilation_seconds", 0, "2:6: rego_limit_error: the module takes longer than 0 s"),
    ],
)
def test_a_module_beyond_a_limit_is_refused_with_its_place(module: str, limit: str, most: int, message: str) -> None:
    """The message names module, line and limit."""
    with pytest.raises(rego.RegoError, match=re.escape(f"big.rego:{message}")) as caught:
        _compile(module, UNLIMITED._replace(**{limit: most}))
    assert f"(limit `{limit}`)" in str(caught.value)


@pytest.mark.parametrize(
    "module",
    [_body(lambda n: f"some v{n} in input.x", 1000), _lines(lambda n: f"q.x{n} := {n}\nr{n} := q", 1000)],
    ids=["loops in loops", "rules that read a whole package"],
)
def test_what_takes_more_steps_than_lines_is_ended(module: str) -> None:
    """It is not refused for its size."""
    with pytest.raises(rego.RegoError, match=r"big.rego:.*the program takes more than 250,000 steps to compile"):
        _compile(module, UNLIMITED._replace(compilation_steps=250_000))


def test_the_steps_of_a_compilation_that_was_refused_are_forgotten() -> None:
    """The next one has all steps again."""
    limits = UNLIMITED._replace(compilation_steps=2000)
    with pytest.raises(rego.RegoError, match="limit `compilation_steps`"):
        _compile(LINES["conditions"](500), limits)
    assert _compile("r := 1", limits).query("data.p.r") == 1
