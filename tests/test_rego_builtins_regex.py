"""The builtins of regular expressions give what OPA gives, in linear time."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from policyeng.rego.budget import BudgetExceededError
from policyeng.rego.builtins import BuiltinError, load_function
from policyeng.rego.builtins.regex import compile_pattern
from policyeng.rego.values import Value
from tests.effort import effort
from tests.growth import assert_linear
from tests.rego_oracle import Call, find_differences, limited, wrong_operands

ATOMS = [
    "a",
    "b",
    "é",
    "😀",
    ".",
    "\\d",
    "\\w",
    "\\b",
    "[ab]",
    "[^a]",
    "(a)",
    "(?P<n>b)",
    "(?:ab)",
    "^",
    "$",
    "a|b",
    "(a|b)",
    "x*",
    "a+?",
    "(a*)",
    "()",
    "\\pL",
    "[[:alpha:]]",
    "(?i:A)",
    "\\x{e9}",
    "\\Qa.\\E",
    "(?s).",
    "(?m)^",
    "\\z",
    "\\A",
    "\\B",
    "a{2}",
]
ODD_ATOMS = [
    "\\C",
    "\\1",
    "(?=a)",
    "[",
    "(",
    "*",
    "\\",
    "a{,2}",
    "a{1001}",
    "\\Z",
    "a**",
    "(?P<n>a",
    "(?<m>a)",
    "]",
    "}",
]
REPLACEMENTS = [
    "$1",
    "$0",
    "${1}",
    "$n",
    "${n}",
    "$",
    "$$",
    "x",
    "é",
    "${",
    "}",
    "$9",
    "$01",
    "$1x",
    "${1}x",
    "$²",
    "$1000000000",
]
COUNTS: list[Value] = [-1, -1, -1, 0, 1, 2, 100, 1.0, 1.5, None, -5, 1 << 63]
TEMPLATE_PARTS = [
    "<a+>",
    "{a|b}",
    "a",
    "b",
    ".",
    "<[ab]>",
    "<",
    "{",
    "}",
    ">",
    "<<a>>",
    "{a{2}}",
    "(",
    "[",
    "<(>",
    "é",
]
DELIMITERS = [("<", ">"), ("{", "}"), ("<", ">"), ("a", "a"), ("é", ">"), ("", ""), ("<", "é"), ("<<", ">")]
TOKENS = ["a", "b", ".", "[ab]", "[a-c]", "[b-d]"]
ODD_TOKENS = ["[]", "[^a]", "\\.", "\\", "[", "]", "+", "*", "[a-", "[-a]", "[a-c-e]", "é", "[\\]]", "[c-a]", "[a\\-c]"]


def draw_text(draw: random.Random, parts: list[str] | str, most: int) -> str:
    """Parts in a row."""
    return "".join(draw.choice(parts) for _ in range(draw.randint(0, most)))


def draw_pattern(draw: random.Random) -> str:
    """A pattern, most often a valid one."""
    return draw_text(draw, ATOMS if draw.random() < 0.85 else [*ATOMS, *ODD_ATOMS], 4)


def draw_tokens(draw: random.Random) -> str:
    """A glob of tokens, most often a valid one."""
    tokens = TOKENS if draw.random() < 0.9 else [*TOKENS, *ODD_TOKENS]
    return "".join(draw.choice(tokens) + draw.choice(["", "", "", "+", "*", "*"]) for _ in range(draw.randint(0, 6)))


def test_patterns_match_as_in_opa(opa: Path) -> None:
    """Drawn patterns, texts, counts and replacements, and operands of other types."""
    draw = random.Random(4)  # noqa: S311  # the same cases every time
    cases: list[Call] = [
        *wrong_operands("regex.is_valid", "a"),
        *wrong_operands("regex.match", "a", "a"),
        *wrong_operands("regex.split", "a", "a"),
        *wrong_operands("regex.find_n", "a", "a", 1),
        *wrong_operands("regex.find_all_string_submatch_n", "a", "a", 1),
        *wrong_operands("regex.replace", "a", "a", "b"),
        *wrong_operands("regex.template_match", "a", "a", "<", ">"),
        *wrong_operands("regex.globs_match", "a", "a"),
        ("re_match", ["a", "b"]),
    ]
    for _ in range(effort(180, 2000)):
        text = draw_text(draw, "aabbé😀 x1\n.A", 9)
        cases += [
            ("regex.is_valid", [draw_pattern(draw)]),
            ("regex.match", [draw_pattern(draw), text]),
            ("regex.split", [draw_pattern(draw), text]),
            ("regex.find_n", [draw_pattern(draw), text, draw.choice(COUNTS)]),
            ("regex.find_all_string_submatch_n", [draw_pattern(draw), text, draw.choice(COUNTS)]),
            ("regex.replace", [text, draw_pattern(draw), draw_text(draw, REPLACEMENTS, 4)]),
            ("regex.template_match", [draw_text(draw, TEMPLATE_PARTS, 3), text, *draw.choice(DELIMITERS)]),
            ("regex.globs_match", [draw_tokens(draw), draw_tokens(draw)]),
            ("regex.globs_match", [draw_tokens(draw), draw_tokens(draw)]),
        ]
    assert find_differences(opa, cases) == []


def test_matching_takes_linear_time() -> None:
    """Patterns that are slow by backtracking, and globs that are slow by recursion."""
    match, globs = load_function("regex.match"), load_function("regex.globs_match")
    assert_linear(lambda size: match("(a*)*c|(a|aa)+$", "a" * size + "b"), 10_000)
    assert_linear(lambda size: globs("a*b*.*" * 30, "b*a*.*" * (size // 100) + "c"), 4_000)


def test_a_replacement_is_limited() -> None:
    """Before it is made."""
    with limited(10, 100_000), pytest.raises(BudgetExceededError):
        load_function("regex.replace")("a" * 1000, "(a*)|.", "$1" * 1000)


def test_an_invalid_pattern_names_the_reason() -> None:
    """In the words of RE2."""
    with pytest.raises(BuiltinError, match=r"error parsing regexp: missing \): \(a"):
        compile_pattern("(a")
