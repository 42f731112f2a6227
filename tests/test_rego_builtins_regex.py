"""The builtins of regular expressions give what OPA gives, in linear time, and the quick patterns mean the same."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
import re2

from policyeng.rego.budget import BudgetExceededError
from policyeng.rego.builtins import BuiltinError, load_function
from policyeng.rego.builtins.linear import translate
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

LITERALS = [
    *"abcsk01-_ ./:é\n",
    "\\.",
    "\\-",
    "\\n",
    "\\d",
    "\\w",
    "\\s",
    "\\D",
    "\\S",
    "\\W",
    "\\t",
    "\\]",
    "\\$",
]
MEMBERS = ["a-z", "0-9", "a", "b", "A-Z", "_", "\\d", "\\w", ".", "\\-", "\\s", "é", "a-c", "\\]", "s", "\\n"]
QUANTIFIERS = ["", "", "", "", "*", "+", "?", "{2}", "{1,3}", "{2,}", "*?", "{0}", "{0,2}"]


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


def draw_class(draw: random.Random) -> str:
    """A class of characters."""
    kind = draw.random()
    if kind < 0.6:
        return draw.choice(LITERALS) if kind < 0.5 else "."
    members = "".join(draw.choice(MEMBERS) for _ in range(draw.randint(1, 3)))
    return f"[{draw.choice(['', '', '^'])}{members}{draw.choice(['', '', '-'])}]"


def draw_sequence(draw: random.Random, depth: int) -> str:
    """Classes, boundaries and groups."""
    parts = []
    for _ in range(draw.randint(0, 4)):
        kind = draw.random()
        if depth and kind < 0.15:
            inner = "|".join(draw_sequence(draw, depth - 1) for _ in range(draw.randint(1, 3)))
            parts.append(f"({draw.choice(['', '?:'])}{inner}){draw.choice(['', '', '?'])}")
        else:
            parts.append("\\b" if kind < 0.2 else draw_class(draw) + draw.choice(QUANTIFIERS))
    return "".join(parts)


def draw_simple_pattern(draw: random.Random) -> str:
    """A pattern of the part of the syntax that may be translated."""
    alternatives = (
        draw.choice(["", "^"]) + draw_sequence(draw, 1) + draw.choice(["", "$"])
        for _ in range(draw.choice([1, 1, 1, 2]))
    )
    return draw.choice(["", "", "", "(?i)", "(?s)"]) + "|".join(alternatives)


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


def test_quick_patterns_mean_what_they_mean_to_re2() -> None:
    """Drawn patterns on drawn texts; more than a third of the patterns are quick."""
    draw = random.Random(5)  # noqa: S311  # the same cases every time
    options = re2.Options()
    options.log_errors = False
    patterns = [draw_simple_pattern(draw) for _ in range(effort(3000, 100_000))]
    quick = [(pattern, search) for pattern in patterns if (search := translate(pattern))]
    assert len(quick) > len(patterns) / 3
    for pattern, search in quick:
        reference = re2.compile(pattern, options)
        for _ in range(8):
            text = draw_text(draw, "aabbccssk01--__  ..//::éKſAB\n\t]$xyz", 10)
            assert bool(search(text)) == bool(reference.search(text)), (pattern, text)


def test_quick_patterns_take_linear_time() -> None:
    """Each of many drawn ones on long texts that repeat what it may contain."""
    draw = random.Random(6)  # noqa: S311  # the same cases every time
    for _ in range(effort(1200, 20_000)):
        search = translate(pattern := draw_simple_pattern(draw))
        if search is None:
            continue
        text = draw_text(draw, "ab01_- .", 3) * 4000 + draw.choice(["", "é", "\n"])
        started = time.thread_time()
        search(text)
        # A quadratic search takes seconds.
        assert time.thread_time() - started < 0.5, pattern


@pytest.mark.parametrize(
    "pattern",
    [
        "^(a+)+$",
        "xa*a*b",
        "^a*a*$",
        "[a-z]+x[a-z]+y",
        "^[ab]*a[ab]*$",
        r"\b[a-z]+\bx",
        "(a|b)*",
        "a(?=b)",
        "(?m)^a",
        r"\pL",
        "(" * 900 + "a" + ")" * 900,
    ],
)
def test_other_patterns_are_left_to_re2(pattern: str) -> None:
    """Those that Python may try again and again, or reads in another way."""
    assert translate(pattern) is None


@pytest.mark.parametrize(
    "pattern",
    ["^https?://", r"^[a-z][a-z0-9-]{1,61}[a-z0-9]$", "^(Standard_LRS|Premium_ZRS)$", r"\.json$", "(?i)prod", "^a.*$"],
)
def test_usual_patterns_are_quick(pattern: str) -> None:
    """Those that policies have."""
    assert translate(pattern) is not None


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
