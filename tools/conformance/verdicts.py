"""Evaluate cases and compare the results with those of OPA."""

import json
import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

from conformance.cases import Case, read_cases
from policyeng import rego
from policyeng.rego.numbers import parse_number
from policyeng.rego.values import to_json

Verdict = Literal["passed", "failed", "refused", "silent"]
#: What `time.now_ns()` is in every case.
_TIME = "2026-01-01T00:00:00Z"
_REFUSED = re.compile(r"rego_type_error: ([\w.]+) is refused")


@dataclass(frozen=True)
class Outcome:
    """What one case gave.

    Attributes:
        verdict: `passed` for the values of OPA, or an error where OPA has one; `failed` for an error where OPA has
            values; `refused` for a builtin that is refused when a module is loaded; `silent` for other values than
            those of OPA, or values where OPA has an error.
        reason: why it is not `passed`; the name of the builtin for `refused`.
    """

    version: int
    folder: str
    note: str
    verdict: Verdict
    reason: str


def evaluate_cases(cases: Path, opa: Path) -> Iterator[Outcome]:
    """Evaluate every case below a folder.

    Args:
        cases: the folder with `v0` and `v1`.
        opa: the program, which is run if an error of a builtin is not an error in the case.
    """
    for case in read_cases(cases):
        verdict, reason = evaluate_case(case, opa)
        yield Outcome(case.version, case.folder, case.note, verdict, reason)


def evaluate_case(case: Case, opa: Path) -> tuple[Verdict, str]:
    """Return the verdict on one case and the reason."""
    try:
        found = to_json(_evaluate(case))
    except rego.RegoError as error:
        refused = _REFUSED.search(str(error))
        if case.expected is None:
            return "passed", ""
        return ("refused", refused[1]) if refused else ("failed", str(error).partition("\n")[0])
    except rego.EvaluationError as error:
        if case.expected is None or _fails_in_opa(case, opa):
            return "passed", ""
        return "failed", str(error)
    except Exception as error:  # a defect of the engine is to be listed, not to end the run
        return "failed", f"{type(error).__name__}: {error}"
    if case.expected is not None:
        expected = json.loads(json.dumps(case.expected), parse_int=parse_number, parse_float=parse_number)
        if _comparable(found, unordered=case.unordered) == _comparable(expected, unordered=case.unordered):
            return "passed", ""
    theirs = "an error" if case.expected is None else json.dumps(case.expected)
    return "silent", f"{json.dumps(found, default=str)} where OPA has {theirs}"


def _evaluate(case: Case) -> list[dict[str, Any]]:
    data = json.loads(case.data, parse_int=parse_number, parse_float=parse_number)
    program = rego.compile(case.modules, data, version=case.version, print_=lambda *_: None, has_time=True)
    given = rego.UNDEFINED
    if case.term is not None:
        given = rego.compile({}).bindings(f"found := {case.term}")[0]["found"]
    elif case.input is not None:
        given = json.loads(case.input, parse_int=parse_number, parse_float=parse_number)
    return program.bindings(case.query, given, _TIME)


def _fails_in_opa(case: Case, opa: Path) -> bool:
    """Return whether the query is an error where OPA takes an error of a builtin for an error, as this engine does."""
    with tempfile.TemporaryDirectory() as folder:
        texts = {**case.modules, "data.json": case.data}
        command = [str(opa), "eval", "--strict-builtin-errors", "--format=json"]
        command += ["--v0-compatible"] * (case.version == 0)
        for name, text in texts.items():
            Path(folder, name).write_text(text, encoding="utf-8")
            command += ["--data", str(Path(folder, name))]
        if case.input is not None:
            Path(folder, "input.json").write_text(case.input, encoding="utf-8")
            command += ["--input", str(Path(folder, "input.json"))]
        query = case.query if case.term is None else f"{case.query} with input as {case.term}"
        ran = subprocess.run([*command, query], capture_output=True, text=True, check=False)
    return "errors" in json.loads(ran.stdout)


def _comparable(rows: list[dict[str, Any]], *, unordered: bool) -> list[str]:
    """Return rows in a form that is equal for equal values only, without their order."""
    if unordered:
        rows = [{name: _without_order(value) for name, value in row.items()} for row in rows]
    return sorted(repr(_canonical(row)) for row in rows)


def _without_order(value: Any) -> Any:
    return sorted(value, key=lambda item: repr(_canonical(item))) if isinstance(value, list) else value


def _canonical(value: Any) -> Any:
    match value:
        case dict():
            return ("object", tuple(sorted((key, _canonical(field)) for key, field in value.items())))
        case list():
            return ("array", tuple(_canonical(item) for item in value))
        case bool() | None | str():
            return (type(value).__name__, value)
    return ("number", str(Decimal(str(value)).normalize()))
