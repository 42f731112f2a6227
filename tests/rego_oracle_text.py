"""OPA as the reference for builtins: many calls in one process."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from policyeng.rego.budget import BudgetExceededError
from policyeng.rego.builtins import BuiltinError, load_function
from policyeng.rego.numbers import NumberTooLargeError, parse_number
from policyeng.rego.values import UNDEFINED, Value, equal, number_text, to_json

Case = tuple[str, list[Value]]
#: A value of each type, for operands that take other ones.
WRONG: list[Value] = [None, True, 1, 1.5, "x", [], ["x"], {}, {"a"}]
_MOST = 1500


def assert_like_opa(opa: Path, cases: list[Case], folder: Path) -> None:
    """Fail where our result, undefined or error is not the one of OPA.

    Args:
        opa: its program.
        cases: names of builtins with arguments.
        folder: for the module and the input.

    Raises:
        AssertionError: with the first calls, our result and OPA's.
    """
    different = differences(opa, cases, folder)
    assert different == [], "\n".join(f"{case}\n  ours: {one}\n  OPA:  {other}" for case, one, other in different[:9])


def wrong_operands(name: str, *right: Value) -> list[Case]:
    """Return calls of a builtin with a value of each type in each place; the other operands are right."""
    return [(name, [*right[:place], one, *right[place + 1 :]]) for place in range(len(right)) for one in WRONG]


def differences(opa: Path, cases: list[Case], folder: Path) -> list[tuple[Case, object, object]]:
    """Return the calls for which our result, undefined or error is not the one of OPA, with ours and OPA's."""
    # Larger modules take OPA much longer.
    parts = [cases[start : start + _MOST] for start in range(0, len(cases), _MOST)]
    expected = [result for part in parts for result in evaluate_with_opa(opa, part, folder)]
    ours = [evaluate(name, arguments) for name, arguments in cases]
    return [
        (case, one, other)
        for case, one, other in zip(cases, ours, expected, strict=True)
        if one is not other and (one is UNDEFINED or other is UNDEFINED or not equal(one, other))
    ]


def evaluate(name: str, arguments: list[Value]) -> object:
    """Call our function: the JSON form of its result, `UNDEFINED`, or an exception type for an error."""
    try:
        result = load_function(name)(*arguments)
    except (BuiltinError, BudgetExceededError, NumberTooLargeError):
        return BuiltinError
    return result if result is UNDEFINED else to_json(result)


def evaluate_with_opa(opa: Path, cases: list[Case], folder: Path) -> list[object]:
    """Call the builtins with OPA; results as those of `evaluate`."""
    # What the function makes has no type that the compiler could refuse.
    lines = ["package t", "to_set(x) = {y | y := x[_]} { is_array(x) } else = x { true }"]
    for index, (name, arguments) in enumerate(cases):
        texts = [
            f"to_set(input[{index}][{i}])" if type(argument) is set else f"input[{index}][{i}]"
            for i, argument in enumerate(arguments)
        ]
        lines.append(f"r[{index}] := {name}({', '.join(texts)})")
    (folder / "t.rego").write_text("\n".join(lines), encoding="utf-8")
    (folder / "input.json").write_text(_json([to_json(arguments) for _, arguments in cases]), encoding="utf-8")
    command = [
        str(opa),
        "eval",
        "--show-builtin-errors",
        "--v0-compatible",
        "-d",
        "t.rego",
        "-i",
        "input.json",
        "data.t.r",
    ]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    answer = json.loads(ran.stdout, parse_int=parse_number, parse_float=parse_number)
    assert "result" in answer, ran.stdout[:2000]
    values = answer["result"][0]["expressions"][0]["value"]
    failed = {error["location"]["row"] - 3 for error in answer.get("errors", [])}
    return [
        BuiltinError if index in failed else values.get(str(index), UNDEFINED)
        for index in range(len(cases))
    ]


def _json(value: Value) -> str:
    if type(value) is list:
        return f"[{','.join(map(_json, value))}]"
    if type(value) is dict:
        return f"{{{','.join(f'{json.dumps(key)}:{_json(item)}' for key, item in value.items())}}}"
    if value is None or type(value) in (bool, str):
        return json.dumps(value)
    return number_text(value)
