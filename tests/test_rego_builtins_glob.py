"""The builtins of globs give what OPA gives, in linear time."""

from __future__ import annotations

import random
from pathlib import Path

from policyeng.rego.builtins import load_function
from policyeng.rego.values import Value
from tests.effort import effort
from tests.growth import assert_linear
from tests.rego_oracle import Call, find_differences, wrong_operands

PLAIN = ["a", "b", "*", "**", "?", "[ab]", "[!a]", "[a-c]", "[!b-c]", "{a,b}", "{a*,}", "."]
PARTS = [
    *PLAIN,
    "{",
    "}",
    ",",
    "a.b",
    "/",
    "\\*",
    "\\",
    "[",
    "]",
    "[a-]",
    "[]a]",
    "[!]",
    "[\\]]",
    "[\\-a]",
    "é",
    "{**,b}",
    "{a,{b,*}}",
    "*{*a,}",
    "[--a]",
    "[a,b]",
    "{[,],b}",
    "[!!a]",
    "-",
    "!",
    "[é-ü]",
    "***",
    "\n",
    "**?",
    "[c-a]",
    "^",
]
DELIMITERS: list[Value] = [
    None,
    [],
    ["."],
    ["/"],
    [".", "/"],
    ["a"],
    ["-", "]", "^", "\\"],
    ["ab"],
    [""],
    [1],
    "x",
    {"."},
    ["é"],
]


def glob(draw: random.Random) -> str:
    """A glob, most often a valid one."""
    parts = PLAIN if draw.random() < 0.7 else PARTS
    return "".join(draw.choice(parts) for _ in range(draw.randint(0, 6)))


def test_globs_match_as_in_opa(opa: Path) -> None:
    """Drawn ones with all kinds of delimiters, and operands of other types."""
    draw = random.Random(3)  # noqa: S311  # the same cases every time
    cases: list[Call] = [*wrong_operands("glob.match", "a", [], "a"), *wrong_operands("glob.quote_meta", "a")]
    for _ in range(effort(1400, 20_000)):
        text = "".join(draw.choice("aabbc./é-*\n,") for _ in range(draw.randint(0, 8)))
        cases.append(("glob.match", [glob(draw), draw.choice(DELIMITERS), text]))
    cases += [("glob.quote_meta", [glob(draw)]) for _ in range(50)]
    assert find_differences(opa, cases) == []


def test_globs_take_linear_time() -> None:
    """Many stars on a text that nearly matches."""
    match = load_function("glob.match")
    assert_linear(lambda size: match("*a*a*a*a*a*b", None, "a" * size), 20_000)
    assert_linear(lambda size: match("{*a,*b}{*a,*b}{*a,*b}c", [], "ab" * size), 20_000)
