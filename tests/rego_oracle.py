"""What OPA gives for calls of builtins, in one process for all of them."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from policyeng.rego.budget import BUDGET, UNLIMITED, BudgetExceededError
from policyeng.rego.builtins import BuiltinError, UnsupportedError, load_function, signatures
from policyeng.rego.numbers import NumberTooLargeError, parse_number
from policyeng.rego.values import UNDEFINED, Value, from_key, make_set, members, number_text, to_json, to_key, type_name

#: A call of a builtin: its name and its arguments.
Call = tuple[str, Sequence[Value]]
#: A value of each type, for operands that take other ones.
WRONG: tuple[Value, ...] = (None, True, 1, 1.5, "x", [], ["x"], {}, {"a"})
#: Calls in one module; OPA takes much longer for larger ones.
_MOST = 1500


@dataclass(frozen=True)
class Outcome:
    """A value with its type, an error, or nothing.

    Attributes:
        message: of an error of an operand; the words of other errors are our own.
    """

    kind: str = ""
    value: Any = None
    code: str = ""
    message: str = ""


def seeded(seed: int) -> Random:
    """Return chance that is the same every time."""
    return Random(seed)  # noqa: S311  # nothing here is secret


@contextmanager
def limited(seconds: float, size: int) -> Iterator[None]:
    """Limit what the builtins of a block may use."""
    BUDGET.deadline, BUDGET.size = time.monotonic() + seconds, size
    try:
        yield
    finally:
        BUDGET.deadline, BUDGET.size = UNLIMITED.seconds, UNLIMITED.size


def literal(value: Value) -> str:
    """Write a value as Rego."""
    kind = type(value)
    if kind is list:
        return f"[{', '.join(map(literal, value))}]"
    if kind is dict:
        return f"{{{', '.join(f'{literal(from_key(key))}: {literal(one)}' for key, one in value.items())}}}"
    if kind is set:
        return f"{{{', '.join(map(literal, members(value)))}}}" if value else "set()"
    if value is None or kind in (bool, str):
        return json.dumps(value)
    return number_text(value)


def query_opa(opa: Path, calls: Sequence[Call]) -> list[Outcome]:
    """Return what OPA gives for each call."""
    if len(calls) > _MOST:
        return query_opa(opa, calls[:_MOST]) + query_opa(opa, calls[_MOST:])
    # The types of the arguments of a function are not known, so the compiler refuses none. OPA keeps what a function
    # gives, also for arguments that are equal but not the same (1 and 1.0), so each call has an argument of its own.
    lines = ["package t", "hide(_, x) = x"]
    lines += [f"r[[{index}, type_name(x), x]] {{ x := {_call(index, *call)} }}" for index, call in enumerate(calls)]
    with tempfile.TemporaryDirectory() as folder:
        module = Path(folder, "m.rego")
        module.write_text("\n".join(lines), encoding="utf-8")
        command = [str(opa), "eval", "--v0-compatible", "--show-builtin-errors", "-f", "json", "-d", str(module)]
        ran = subprocess.run([*command, "data.t.r"], capture_output=True, text=True, check=False, timeout=100)
    if "panic: " in ran.stderr:
        # OPA crashes on one of them.
        middle = len(calls) // 2
        return query_opa(opa, calls[:middle]) + query_opa(opa, calls[middle:]) if middle else [Outcome("crash")]
    assert ran.stdout, ran.stderr
    given = json.loads(ran.stdout, parse_int=parse_number, parse_float=parse_number)
    outcomes = [Outcome()] * len(calls)
    for error in given.get("errors", ()):
        index = error["location"]["row"] - 3
        outcomes[index] = Outcome("error", None, error["code"], error["message"])
    for index, kind, value in given["result"][0]["expressions"][0]["value"]:
        outcomes[index] = Outcome(kind, value)
    return outcomes


def _call(index: int, name: str, arguments: Sequence[Value]) -> str:
    shown = [f'hide("{index} {place}", {literal(one)})' for place, one in enumerate(arguments)]
    if name == "walk":
        return f"[y | walk({shown[0]}, y)]"
    infix = signatures()[name].get("infix")
    return f"{shown[0]} {infix} {shown[1]}" if infix else f"{name}({', '.join(shown)})"


def call_ours(name: str, arguments: Sequence[Value]) -> Outcome:
    """Return what our function gives."""
    try:
        with limited(10, 100_000):
            value = load_function(name)(*arguments)
    except (BuiltinError, UnsupportedError) as error:
        return Outcome("error", None, error.code, str(error))
    except (BudgetExceededError, NumberTooLargeError, RecursionError) as error:
        return Outcome("error", None, "limit", str(error))
    return Outcome() if value is UNDEFINED else Outcome(type_name(value), to_json(value))


def agree(ours: Outcome, theirs: Outcome) -> bool:
    """Return whether two outcomes are the same; of errors of operands the messages, too."""
    if ours.kind != "error" or theirs.kind != "error" or ours.code == "limit":
        return ours.kind == theirs.kind and canonical(ours.value) == canonical(theirs.value)
    return ours.code == theirs.code and (ours.code != "eval_type_error" or theirs.message.endswith(ours.message))


def canonical(value: Any) -> Any:
    """Return a JSON value in which true is not 1."""
    if isinstance(value, list):
        return [canonical(one) for one in value]
    if isinstance(value, dict):
        return {key: canonical(one) for key, one in value.items()}
    return (type_name(value), value)


def find_differences(opa: Path, calls: Sequence[Call]) -> list[tuple[str, str, Outcome, Outcome]]:
    """Return the calls for which OPA gives something else: name, arguments, our outcome and that of OPA.

    Calls that exceed our limits are left out: OPA, which has none, would fill the memory. So are those it crashes on.
    """
    ours = [(call, call_ours(*call)) for call in calls]
    queried = [(call, outcome) for call, outcome in ours if outcome.code != "limit"]
    assert len(queried) > 0.8 * len(calls)
    theirs = query_opa(opa, [call for call, _ in queried])
    return [
        (call[0], ", ".join(map(literal, call[1])), outcome, other)
        for (call, outcome), other in zip(queried, theirs, strict=True)
        if other.kind != "crash" and not agree(_in_order(call, outcome), _in_order(call, other))
    ]


def _in_order(call: Call, outcome: Outcome) -> Outcome:
    """Sort the errors of a schema, whose order is random in OPA."""
    if call[0] != "json.match_schema" or outcome.kind != "array":
        return outcome
    matches, errors = outcome.value
    return Outcome("array", [matches, sorted(errors, key=lambda error: json.dumps(error, sort_keys=True))])


def wrong_operands(name: str, *right: Value) -> list[Call]:
    """Return calls of a builtin with a value of each type in each place; the other operands are right."""
    places = range(len(right))
    return [(name, [*right[:place], one, *right[place + 1 :]]) for place in places for one in WRONG]


# fmt: off
TEXTS = (
    "", "a", "ab", "abc", "aba", "ABC", "é", "É", "ß", "İı", "ΑΣ Σς", "ǆ ǅ ŉ ᾳ", "日本語", "😀a😀", "a,b,,c", ",", "/",
    "//a/~1b~0/", "0", "1", "-1", "10", "1.0", "01", "-", "1e3", " a ", "\t\u00a0x\u2003\x1c", "%", "%d %s", 'say "hi"',
    "back\\slash", "\x00\x1f\x7f", "\u200b\ufeff", "aaaa", "path/to/x", "null", "true", "[1]", "a.b.c", "x" * 50,
)
NUMBER_TEXTS = (
    "0 1 2 3 -1 -2 5 7 8 10 16 64 100 255 1000 -1000 2147483647 2147483648 -2147483649 4294967296 9007199254740993 "
    "9223372036854775807 9223372036854775808 -9223372036854775808 -9223372036854775809 18446744073709551617 "
    "123456789012345678901234567890 0.5 -0.5 1.5 2.5 -2.5 0.1 0.2 0.3 3.14159 -0.1 1.0 2.0 -3.0 100.25 "
    "0.49999999999999994 1e-7 1.5e-9 5e-324 0.1234567890123456789012 12345678901234567.5 99999999999999999.99"
)
# fmt: on
NUMBERS = tuple(map(parse_number, NUMBER_TEXTS.split()))
SCALARS = (None, True, False)


def draw_value(chance: Random, depth: int = 2) -> Value:
    """Draw a value of any type, with collections in collections down to a depth."""
    kind = chance.choice(("text", "number", "scalar", "list", "dict", "set")[: 6 if depth > 0 else 3])
    if kind == "text":
        return chance.choice(TEXTS)
    if kind == "number":
        return chance.choice(NUMBERS)
    if kind == "scalar":
        return chance.choice(SCALARS)
    size = chance.randrange(5)
    if kind == "dict":
        return {to_key(draw_value(chance, depth - 2)): draw_value(chance, depth - 1) for _ in range(size)}
    found = [draw_value(chance, depth - 1) for _ in range(size)]
    return found if kind == "list" else make_set(found)


def draw_calls(chance: Random, name: str, count: int, *good: Callable[[Random], Value]) -> list[Call]:
    """Draw calls of a builtin, most of them with arguments that it takes, the others with values of any types."""
    calls: list[Call] = []
    for _ in range(count):
        wrong = chance.randrange(3 * len(good)) if chance.random() < 0.3 else None
        drawn = [draw_value(chance) if wrong == place else draw(chance) for place, draw in enumerate(good)]
        calls.append((name, drawn))
    return calls
