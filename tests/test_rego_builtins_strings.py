"""The builtins of strings give what OPA gives."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from random import Random

import pytest

from policyeng.rego.budget import BudgetExceededError
from policyeng.rego.builtins import BuiltinError, UnsupportedError, load_function
from policyeng.rego.values import Value, make_set
from tests.effort import effort
from tests.rego_oracle import NUMBERS, TEXTS, Call, draw_calls, draw_value, find_differences, limited

COUNT = effort(40, 1500)


PIECES = ("a", "b", "ab", "ba", "aa", "c", ",", "é", "日", "")


def draw_text(chance: Random) -> Value:
    """Draw a text, often one that repeats itself."""
    if chance.random() < 0.4:
        return chance.choice(TEXTS)
    return "".join(chance.choice(PIECES) for _ in range(chance.randrange(8)))


def draw_texts(chance: Random) -> Value:
    """Draw a text, an array or a set of texts."""
    if chance.random() < 0.3:
        return draw_text(chance)
    return draw_text_collection(chance)


def draw_text_collection(chance: Random) -> Value:
    """Draw an array or a set of texts."""
    found = [draw_text(chance) for _ in range(chance.randrange(4))]
    return found if chance.random() < 0.5 else make_set(found)


def draw_index(chance: Random) -> Value:
    """Draw an index, or a value that is none."""
    return chance.choice((0, 1, 2, 3, 5, 100, -1, -2, 1.0, 2.5, 1 << 62, 1 << 63, -(1 << 63)))


def draw_ascii(chance: Random) -> Value:
    """Draw a text of ASCII: others cannot be replaced between their bytes."""
    return "".join(char for char in draw_text(chance) if char.isascii())


def draw_patterns(chance: Random) -> Value:
    """Draw an object of texts."""
    return {draw_ascii(chance): draw_text(chance) for _ in range(chance.randrange(4))}


def draw_format(chance: Random) -> Value:
    """Draw a text with verbs, of all flags, widths and precisions."""
    parts = []
    for _ in range(chance.randrange(1, 4)):
        flags = "".join(chance.choice("+-# 0") for _ in range(chance.choice((0, 0, 0, 1, 2))))
        width = chance.choice(("", "", "", "5", "12", "*", "[1]", "[2]*", "0", "[9]", "[x]", "[", "1" * 9))
        precision = chance.choice(("", "", "", ".", ".0", ".2", ".10", ".*", ".[1]*", ".[1]", ".25"))
        index = chance.choice(("", "", "", "", "[1]", "[2]", "[0]"))
        verb = chance.choice("vvvsssdddqqxXobOcUeEfFgGtTpw%!é\n")
        parts += [chance.choice(("", "a ", "é", "100%% ")), "%", flags, width, precision, index, verb]
    return "".join(parts) + chance.choice(("", "", "", "%", "%5"))


def draw_arguments(chance: Random) -> Value:
    """Draw arguments of a format."""
    choices = (lambda: chance.choice(NUMBERS), lambda: chance.randrange(-300, 70000), lambda: draw_value(chance))
    return [
        chance.choice(choices)() if chance.random() < 0.7 else draw_text(chance) for _ in range(chance.randrange(4))
    ]


def draw_plain_format(chance: Random) -> Value:
    """Draw a text with verbs as policies have them."""
    return "".join(chance.choice(("%s", "%d", "%v", "a", " ", "%%", ": ", "é")) for _ in range(chance.randrange(6)))


def draw_parts(chance: Random) -> Value:
    """Draw the parts of a template string."""
    scalars = [draw_value(chance, 0), make_set([draw_value(chance)]), set(), make_set([draw_value(chance)])]
    return [chance.choice(scalars) for _ in range(chance.randrange(4))]


def draw_all(chance: Random) -> list[Call]:
    """Draw calls of all the builtins."""
    calls: list[Call] = []
    for name in ("lower", "upper", "trim_space", "strings.reverse"):
        calls += draw_calls(chance, name, COUNT, draw_text)
    for name in ("startswith", "endswith", "contains", "indexof", "indexof_n", "strings.count", "split", "trim",
                 "trim_left", "trim_right", "trim_prefix", "trim_suffix"):  # fmt: skip
        calls += draw_calls(chance, name, COUNT, draw_text, draw_text)
    for name in ("strings.any_prefix_match", "strings.any_suffix_match"):
        calls += draw_calls(chance, name, COUNT, draw_texts, draw_texts)
    calls += draw_calls(chance, "concat", COUNT, draw_text, draw_text_collection)
    calls += draw_calls(chance, "substring", 2 * COUNT, draw_text, draw_index, draw_index)
    calls += draw_calls(chance, "strings.split_n", COUNT, draw_text, draw_text, draw_index)
    calls += draw_calls(chance, "replace", COUNT, draw_ascii, draw_ascii, draw_text)
    calls += draw_calls(chance, "strings.replace_n", 2 * COUNT, draw_patterns, draw_ascii)
    bases = (2, 8, 10, 16, 16, 10, 3, 10.0)
    calls += draw_calls(chance, "format_int", COUNT, lambda one: one.choice(NUMBERS), lambda one: one.choice(bases))
    calls += draw_calls(chance, "sprintf", 10 * COUNT, draw_format, draw_arguments)
    calls += draw_calls(chance, "sprintf", 2 * COUNT, draw_plain_format, draw_arguments)
    calls += [("internal.template_string", [draw_parts(chance)]) for _ in range(COUNT)]
    return calls


def test_the_results_are_those_of_opa(opa: Path) -> None:
    """Arguments that are taken, and others; what would be an address or the parts of a struct is refused."""
    different = find_differences(opa, draw_all(Random(1)))  # noqa: S311 # chance that is to be the same every time
    assert [one for one in different if "more than 64 bits is not supported" not in one[2].message] == []


def test_letters_are_mapped_one_by_one(opa: Path) -> None:
    """All characters that have a case, as Go maps them."""
    cased = "".join(char for char in map(chr, range(0x110000)) if char.lower() != char or char.upper() != char)
    calls: list[Call] = [(name, [cased[start::50]]) for name in ("lower", "upper") for start in range(50)]
    assert find_differences(opa, calls) == []


def test_characters_are_quoted_as_go_quotes_them(opa: Path) -> None:
    """A sample of all characters; those that are not printable in Go are escaped."""
    chars = [char for char in map(chr, range(0x110000)) if not 0xD800 <= ord(char) < 0xE000]
    step = effort(37, 1)
    calls: list[Call] = [("sprintf", ["%q", ["".join(chars[start::1000][::step])]]) for start in range(1000)]
    assert find_differences(opa, calls) == []


def test_print_writes_a_line_for_each_choice() -> None:
    """The parts of it are sets; without a value they are undefined."""
    lines = load_function("internal.print")([{"a", 1}, set(), make_set([[1, "x"], None])])
    assert lines == ["1 <undefined> null", '1 <undefined> [1, "x"]', "a <undefined> null", 'a <undefined> [1, "x"]']


def test_what_cannot_be_shown_is_refused() -> None:
    """An address, a number that OPA shows as it is written, half a character; a template string with several values."""
    for parts in ([{1, 2}], [[1]]):
        with pytest.raises(BuiltinError):
            load_function("internal.template_string")(parts)
    for name, arguments in (
        ("sprintf", ["%p", [1 << 70]]),
        ("sprintf", ["%v", [Decimal("2e308")]]),
        ("replace", ["é", "", "x"]),
    ):
        with pytest.raises(UnsupportedError):
            load_function(name)(*arguments)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("replace", ["a" * 1000, "a", "b" * 1000]),
        ("replace", ["a" * 1000, "", "b" * 1000]),
        ("strings.replace_n", [{"a": "b" * 1000}, "a" * 1000]),
        ("concat", ["x" * 1000, ["y"] * 1000]),
        ("concat", ["", ["y" * 1000] * 1000]),
        ("sprintf", ["%1000000d", [1]]),
        ("sprintf", ["%*d", [999999, 1]]),
        ("sprintf", ["%.1000000f", [0.5]]),
        ("sprintf", ["%s" * 1000, ["y" * 1000] * 1000]),
        ("internal.template_string", [["y" * 1000] * 1000]),
        ("internal.print", [[{1, 2, 3}] * 100]),
        ("indexof_n", ["a" * 10000, "a" * 5000]),
    ],
)
def test_a_result_is_charged_for_before_it_is_made(name: str, arguments: list[Value]) -> None:
    """It would fill the memory."""
    with limited(10, 100_000), pytest.raises(BudgetExceededError):
        load_function(name)(*arguments)
