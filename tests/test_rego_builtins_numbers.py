"""The builtins of numbers, aggregates and units give what OPA gives."""

from __future__ import annotations

import json
import operator
import subprocess
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest

from policyeng import rego
from policyeng.rego.budget import BudgetExceededError
from policyeng.rego.builtins import load_function
from policyeng.rego.compiled import Compiled
from policyeng.rego.numbers import NumberTooLargeError, read_number
from policyeng.rego.values import Value, WrittenDecimal, WrittenFloat, make_set
from tests.effort import effort
from tests.rego_oracle import NUMBERS, Call, draw_calls, find_differences, limited, seeded

COUNT = effort(40, 1500)
# fmt: off
AMOUNTS = (
    "1", "10", "0.5", "-1.5", ".5", "5.", "1e3", "1E-2", "1e+2", "1e", "1e1234567", "1.2.3", "", "+7", "0.1", "1 ",
    '"3"', "12345678901234567890", "e5", "1-2",
)
# fmt: on
UNITS = (
    "",
    "k",
    "K",
    "m",
    "M",
    "g",
    "Gi",
    "ki",
    "KI",
    "MiB",
    "mb",
    "Ti",
    "tib",
    "p",
    "PB",
    "e",
    "E",
    "Ei",
    "b",
    "x",
    "kİ",
    "µ",
)


def draw_number(chance: Random) -> Value:
    """Draw a number, often a small one."""
    choice = chance.randrange(4)
    if choice == 0:
        return chance.randrange(-20, 20)
    return chance.choice(NUMBERS) if choice < 3 else round(chance.uniform(-1000, 1000), chance.randrange(1, 6))


def draw_step(chance: Random) -> Value:
    """Draw a number that is not large."""
    return chance.choice((0, 1, 2, 3, -1, -5, 70, 1.0, 2.5, 18446744073709551616, 130, 8))


def draw_numbers(chance: Random) -> Value:
    """Draw an array or a set of numbers."""
    found = [draw_number(chance) for _ in range(chance.randrange(5))]
    return found if chance.random() < 0.6 else make_set(found)


def draw_amount(chance: Random) -> Value:
    """Draw a number with a unit, or what only looks so."""
    number = chance.choice(AMOUNTS)
    return number + chance.choice(UNITS)


def draw_all(chance: Random) -> list[Call]:
    """Draw calls of all the builtins."""
    calls: list[Call] = []
    for name in ("plus", "minus", "mul", "div", "rem", "bits.and", "bits.or", "bits.xor"):
        calls += draw_calls(chance, name, COUNT, draw_number, draw_number)
    for name in ("abs", "round", "ceil", "floor", "bits.negate"):
        calls += draw_calls(chance, name, COUNT, draw_number)
    for name in ("bits.lsh", "bits.rsh", "numbers.range"):
        calls += draw_calls(chance, name, COUNT, draw_step if name == "numbers.range" else draw_number, draw_small)
    calls += draw_calls(chance, "numbers.range_step", COUNT, draw_small, draw_small, draw_step)
    for name in ("sum", "product", "max", "min", "sort", "count", "all", "any"):
        calls += draw_calls(chance, name, COUNT, draw_numbers)
    for name in ("units.parse", "units.parse_bytes"):
        calls += draw_calls(chance, name, 3 * COUNT, draw_amount)
    return calls


def draw_small(chance: Random) -> Value:
    """Draw a number that a range or a shift can end at."""
    return chance.choice((0, 1, 2, -3, 10, 70, 3.0, 1.5, 64))


def test_the_results_are_those_of_opa(opa: Path) -> None:
    """Arguments that are taken, and others."""
    assert find_differences(opa, draw_all(Random(1))) == []  # noqa: S311 # chance that is to be the same every time


def test_equal_members_are_distinguished_from_others(opa: Path) -> None:
    """Truth, the largest value and the order, among values of all types."""
    chance = Random(2)  # noqa: S311 # the same
    calls = [
        call
        for name in ("all", "any", "max", "min", "sort", "count")
        for call in draw_calls(chance, name, COUNT, lambda one: [True] * one.randrange(3))
    ]
    assert find_differences(opa, calls) == []


def draw_spellings(chance: Random) -> list[str]:
    """Draw ways to write one large number, or numbers whose floats have the same bits."""
    digits, exponent = chance.randrange(1, 10 ** chance.randrange(1, 20)), chance.randrange(1, 30)
    exact = digits * 10**exponent
    near = str(exact + chance.choice((-1, 1)))
    return [
        str(exact),
        near,
        f"{digits}e{exponent}",
        f"{digits}.0e{exponent}",
        f"{digits}0e{exponent - 1}",
        f"{exact:e}",
    ]


def test_a_number_equals_itself_however_it_is_written(opa: Path, tmp_path: Path) -> None:
    """A literal, what is read and what is computed compare as in OPA, and keep their texts."""
    chance = seeded(70)
    rules = []
    for index in range(effort(150, 1000)):
        left, right = chance.choices(draw_spellings(chance), k=2)
        texts = f"x := {left}\ny := {right}\nz := y + 0\nr := json.unmarshal({json.dumps(left)})"
        checks = "x == y, x == z, z == x, x != z, x < z, z < x, r == z, r >= y, [x] == [z], {x: 1} == {z: 1}, z in [x]"
        rules.append(f"r{index} := [{checks}, json.marshal([x, y, r])] if {{\n{texts}\n}}\n")
    text = f"package n\n{''.join(rules)}"
    (tmp_path / "n.rego").write_text(text)
    command = [str(opa), "eval", "--format", "json", "--data", str(tmp_path / "n.rego"), "data.n"]
    output = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    theirs = json.loads(output)["result"][0]["expressions"][0]["value"]
    ours = rego.compile({"n.rego": text}).query("data.n")
    assert {name: (rules[int(name[1:])], value) for name, value in ours.items() if value != theirs[name]} == {}
    assert len(ours) == len(rules)


def test_a_number_of_the_input_equals_a_literal_as_in_opa(opa: Path, tmp_path: Path) -> None:
    """A document is read by a parser of JSON, for which `7e24` is a float with the bits of another integer."""
    chance = seeded(71)
    rules, numbers, texts = [], {}, []
    for index in range(effort(150, 1000)):
        spellings = draw_spellings(chance)
        written = chance.choice(spellings[2:])
        if Fraction(repr(float(written))) != Fraction(written):
            continue  # a double has fewer digits
        numbers[f"r{index}"] = float(written)
        texts.append(f'"r{index}": {written}')
        checks = (
            "x == y, y == x, x != y, x < y, x >= y, x in {y}, x in [y], count({[x], [y]}), object.get({y: 1}, x, 0)"
        )
        equalities = f'[x] == [y], {{"k": x}} == {{"k": y}}, {{x: 1}} == {{y: 1}}, x == y + 0, x == {spellings[0]}'
        body = f"x := input.r{index}\ny := {chance.choice(spellings)}"
        rules.append(f"r{index} := [{checks}, {equalities}] if {{\n{body}\n}}\n")
    text = f"package n\n{''.join(rules)}"
    (tmp_path / "n.rego").write_text(text)
    (tmp_path / "input.json").write_text(f"{{{', '.join(texts)}}}")
    command = [
        str(opa),
        "eval",
        "-f",
        "json",
        "-i",
        str(tmp_path / "input.json"),
        "-d",
        str(tmp_path / "n.rego"),
        "data.n",
    ]
    output = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    theirs = json.loads(output)["result"][0]["expressions"][0]["value"]
    ours = rego.compile({"n.rego": text}).query("data.n", numbers)
    assert {name: (rules[int(name[1:])], value) for name, value in ours.items() if value != theirs[name]} == {}
    assert len(ours) == len(rules) > effort(50, 300)


def test_written_numbers_are_ordered_as_what_they_mean() -> None:
    """Every operator of Python decides by the decimal number, for floats and for decimals."""
    chance = seeded(72)
    operators = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
    for _ in range(effort(300, 5000)):
        texts = chance.choices([*draw_spellings(chance), "0.10", "0.1", "1e-30", "123456789012345678901.5"], k=2)
        left, right = map(read_number, texts)
        exact = tuple(map(Fraction, texts))
        written = (WrittenFloat, WrittenDecimal)
        if isinstance(left, written) or isinstance(right, written):
            assert [compare(left, right) for compare in operators] == [compare(*exact) for compare in operators], texts
            assert left != right or hash(left) == hash(right), texts


def test_a_computed_integer_is_found_under_a_literal() -> None:
    """Keys of objects and members of sets are equal where their numbers are."""
    rules = 'one := count({70.0e23, 7e24, 7e24 + 0})\nby_key := {70.0e23: "a"}[7000000000000000000000000]'
    value = rego.compile({"n.rego": f"package n\n{rules}\n"}).query("data.n")
    assert value == {"one": 1, "by_key": "a"}


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("bits.lsh", [1, 100_000]),
        ("bits.lsh", [1, 1 << 62]),
        ("mul", [10**3999, 10**3999]),
        ("product", [[10**3000, 10**3000]]),
        ("product", [[1e-300, 0.5] * 20]),
        ("units.parse", ["1e5000"]),
        ("units.parse_bytes", ["1e-5000"]),
    ],
)
def test_a_result_that_is_too_large_is_an_error(name: str, arguments: list[Value]) -> None:
    """Numbers have bounded exponents."""
    with pytest.raises(NumberTooLargeError):
        load_function(name)(*arguments)


def test_a_range_is_charged_for_before_it_is_made() -> None:
    """It would fill the memory."""
    with limited(10, 1000), pytest.raises(BudgetExceededError):
        load_function("numbers.range")(0, 10**15)
    with limited(10, 1000), pytest.raises(BudgetExceededError):
        load_function("numbers.range_step")(10**15, -5, 2)


def draw_written(draw: Random) -> str:
    """A number as people write it: with zeros at its ends, exponents and signs."""
    whole = str(draw.randrange(1, 10 ** draw.randrange(1, 8)))
    fraction = draw.choice(["", "", f".{draw.randrange(1000):03}", ".0", ".50", ".00"])
    exponent = draw.choice(["", "", f"{draw.choice('eE')}{draw.choice(['', '+', '-'])}{draw.randrange(9)}"])
    return f"{draw.choice(['', '', '-'])}{whole}{fraction}{exponent}"


def test_numbers_keep_the_text_that_they_were_written_with(opa: Path, tmp_path: Path) -> None:
    """Where they become text again, and not where they are computed with."""
    draw = seeded(11)
    numbers = [draw_written(draw) for _ in range(effort(150, 1500))]
    rules = [
        f'r{place} := [json.marshal({{[{text}]: {text}}}), $"{{{text}}}", sprintf("%v %v", [{text}, [{text}]]), '
        f'json.marshal(json.unmarshal("[{text}]")), json.marshal(to_number("{text}")), json.marshal({text} + 1), '
        f"json.marshal([{text} == {text} * 1, {{{text}: 1}}[{text} * 1], max({{{text}, -1e30}}), sort([{text}, 1])])]"
        for place, text in enumerate(numbers)
    ]
    module = "\n".join(["package p", *rules])
    (tmp_path / "p.rego").write_text(module, encoding="utf-8")
    command = [str(opa), "eval", "--format=values", "--data", str(tmp_path / "p.rego"), "data.p"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    (expected,) = json.loads(printed)

    found = rego.compile({"p.rego": module}).query("data.p")

    differing = {
        numbers[int(name[1:])]: (found.get(name), expected[name])
        for name in expected
        if found.get(name) != expected[name]
    }
    assert differing == {}
    assert len(expected) == len(numbers)


def test_numbers_with_their_text_are_stored_with_a_program() -> None:
    """A cached program writes what a compiled one does, and equal numbers that are written differently stay apart."""
    program = rego.compile({"p.rego": "package p\n\nx := json.marshal([1.50, 1.500, 15e-1, 1.5])"})
    stored = rego.Program(Compiled.load(program.compiled.dump()), {})

    assert program.query("data.p.x") == stored.query("data.p.x") == "[1.50,1.500,15e-1,1.5]"
