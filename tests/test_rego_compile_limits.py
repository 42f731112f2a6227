"""Modules that are made to exhaust the compiler: compiled, or refused with the place."""

from __future__ import annotations

import json
import re

import pytest

from policyeng import rego

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
    "a long number": ("q := 1\nr := " + "1" * 1_000_000, "p.rego:3:1: rego_compile_error: a number of 1,000,000"),
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
