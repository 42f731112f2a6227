"""Traps of Rego engines: each is set here, and real OPA decides what is right.

A test is named after its trap; what is compared is `deny` of one policy on one resource, in our engine and in
`opa eval --strict-builtin-errors`.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from policyeng import rego
from policyeng.engines.embedded import LIMITS, json_value
from policyeng.errors import InputError
from policyeng.parsing.json_text import parse_json

ROOT = Path(__file__).resolve().parents[1]
OPA = ROOT / ".tools" / "bin" / "opa"
FACTS = {"lib": {"deep": {"given": 1}}}
RESOURCE = {"id": "/a", "type": "t", "word": "no number", "none": None, "list": [1, 2, 3], "empty": []}
ERROR = "error"


def evaluated(module: str, resource: object = RESOURCE, **more: str) -> object:
    """What the package `p` denies for one resource, or `ERROR`."""
    try:
        program = rego.compile({"p.rego": f"package p\n\n{module}\n", **more}, FACTS)
        thread = program.thread()
        thread.begin({"resource": resource}, LIMITS)
        value = thread.call(thread.function("data.p.deny"))
    except (rego.RegoError, rego.EvaluationError):
        return ERROR
    return [] if value is rego.UNDEFINED else json_value(value)


def opa(module: str, folder: Path, resource: object = RESOURCE, *, strict: bool = True) -> object:
    """What OPA denies, or `ERROR`."""
    (folder / "p.rego").write_text(f"package p\n\n{module}\n", encoding="utf-8")
    (folder / "data.json").write_text(json.dumps(FACTS), encoding="utf-8")
    (folder / "input").write_text(json.dumps({"resource": resource}), encoding="utf-8")
    command = [
        str(OPA),
        "eval",
        "--format",
        "raw",
        "--input",
        str(folder / "input"),
        "--bundle",
        str(folder),
        "data.p.deny",
    ]
    result = subprocess.run(
        [*command, *(["--strict-builtin-errors"] if strict else [])], capture_output=True, check=False
    )
    if result.returncode != 0:
        assert b"_error" in result.stdout + result.stderr, result
        return ERROR
    return json.loads(result.stdout or b"[]")


def assert_as_opa(module: str, folder: Path, expected: object, resource: object = RESOURCE) -> None:
    """OPA gives what is expected, and so does our engine."""
    assert opa(module, folder, resource) == expected
    assert evaluated(module, resource) == expected


def test_trap_2_undefined_entrypoint(tmp_path: Path) -> None:
    """A rule that is undefined for the input denies nothing."""
    assert_as_opa('deny := ["m"] if input.resource.missing', tmp_path, [])


BROKEN = {
    "deny": 'deny contains "m" if to_number(input.resource.word) > 1',
    "not": 'deny contains "m" if not to_number(input.resource.word) > 1',
    "every": 'deny contains "m" if {\n\tevery x in ["1", input.resource.word] { to_number(x) == 1 }\n}',
    "a list": 'deny contains "m" if count([y | some x in ["1", input.resource.word]; y := to_number(x)]) == 1',
    "a set": 'deny contains "m" if count({y | some x in ["1", input.resource.word]; y := to_number(x)}) == 1',
    "an object": 'deny contains "m" if count({x: y | some x in ["1", input.resource.word]; y := to_number(x)}) == 1',
}


@pytest.mark.parametrize("place", BROKEN)
def test_trap_3_builtin_error_inside(place: str, tmp_path: Path) -> None:
    """An error of a builtin is an error of the pair wherever it happens, and never "does not hold"."""
    assert_as_opa(BROKEN[place], tmp_path, ERROR)


def test_trap_5_strict_and_lenient_engines(tmp_path: Path) -> None:
    """Lenient OPA denies where strict OPA is in error; we are strict."""
    module = 'large if to_number(input.resource.word) > 1\n\ndeny contains "m" if not large'
    assert opa(module, tmp_path, strict=False) == ["m"]
    assert_as_opa(module, tmp_path, ERROR)


NUMBERS = {
    "one and 1.0": ('deny contains "m" if input.resource.list[0] == 1.0', ["m"]),
    "one and 1.0 in a set": ('deny contains {"n": count({1, 1.0})}', [{"n": 1}]),
    "beyond 2 to the 53": ('deny contains {"n": 9007199254740993 + 0}', [{"n": 9007199254740993}]),
    "beyond 2 to the 63": ('deny contains {"n": 9223372036854775807 + 1}', [{"n": 9223372036854775808}]),
    "large and unequal": ('deny contains "m" if 18446744073709551616 == 18446744073709551617', []),
    "null is defined": ('deny contains "m" if input.resource.none == null', ["m"]),
    "null is not undefined": ('deny contains "m" if not input.resource.none', []),
    "undefined is not null": ('deny contains "m" if input.resource.missing == null', []),
    "not undefined": ('deny contains "m" if not input.resource.missing', ["m"]),
    "divided by zero": ('deny contains "m" if 1 / count(input.resource.empty) > 0', ERROR),
    "order of kinds": ('deny contains "m" if {\n\tnull < false\n\tfalse < 0\n\t0 < "a"\n\t"a" < []\n}', ["m"]),
    "count of letters": ('deny contains {"n": count("😀é")}', [{"n": 2}]),
    "letters of a word": ('deny contains {"w": lower("ΑΣ İ"), "u": upper("ß")}', [{"w": "ασ i", "u": "ß"}]),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_trap_21_numbers_null_and_undefined(name: str, tmp_path: Path) -> None:
    """Numbers, `null` and what is undefined are what they are to OPA."""
    module, expected = NUMBERS[name]
    assert_as_opa(module, tmp_path, expected)


@pytest.mark.parametrize("text", [b'{"a": NaN}', b'{"a": [Infinity]}', b'{"a": 1e999}', b"[18446744073709551616]"])
def test_trap_21_no_number_that_is_compared_exactly(text: bytes) -> None:
    """What is no number of JSON never reaches an engine, nor what it would round."""
    with pytest.raises(InputError):
        parse_json(text, "s.json")


BUILTINS = {
    "a network within": ('deny contains "m" if net.cidr_contains("10.0.0.0/8", "10.1.0.0/16")', ["m"]),
    "an address outside": ('deny contains "m" if net.cidr_contains("10.0.0.0/8", "11.0.0.1")', []),
    "IPv6": ('deny contains "m" if net.cidr_contains("fd00::/8", "fd12::1")', ["m"]),
    "no network": ('deny contains "m" if net.cidr_contains("10.0.0.0/99", "10.0.0.1")', ERROR),
    "a time with Z": (
        'deny contains {"n": time.parse_rfc3339_ns("2026-01-02T03:04:05Z")}',
        [{"n": 1767323045000000000}],
    ),
    "a time with an offset": (
        'deny contains {"n": time.parse_rfc3339_ns("2026-01-02T03:04:05.5+02:00")}',
        [{"n": 1767315845500000000}],
    ),
    "a time without T": ('deny contains "m" if time.parse_rfc3339_ns("2026-01-02 03:04:05Z") > 0', ERROR),
    "a time without a zone": ('deny contains "m" if time.parse_rfc3339_ns("2026-01-02T03:04:05") > 0', ERROR),
    "a schema that fits": (
        'deny contains "m" if {\n\t[fits, _] := json.match_schema(input.resource, {"type": "object"})\n\tfits\n}',
        ["m"],
    ),
    "a schema that does not": (
        'deny contains "m" if {\n\t[fits, _] := json.match_schema(input.resource, {"type": "array"})\n\tnot fits\n}',
        ["m"],
    ),
    "a broken pattern": ('deny contains "m" if not regex.match("[", "a")', ERROR),
    "a broken pattern to replace": ('deny contains "m" if not regex.replace("a", "[", "b")', ERROR),
    "a patch of nothing": (
        'deny contains "m" if not json.patch({}, [{"op": "remove", "path": "/a"}])',
        ERROR,
    ),
    "pairs in a set": ('deny contains "m" if "a", "a" in {"a"}', ["m"]),
    "text in JSON": ('deny contains json.marshal("<&>")', ['"\\u003c\\u0026\\u003e"']),
}


@pytest.mark.parametrize("name", BUILTINS)
def test_trap_22_builtins_that_engines_read_otherwise(name: str, tmp_path: Path) -> None:
    """Networks, times, schemas, patterns and patches mean what they mean in OPA, errors included."""
    module, expected = BUILTINS[name]
    assert_as_opa(module, tmp_path, expected)


def test_trap_22_duplicate_keys(tmp_path: Path) -> None:
    """A document with a key twice never reaches an engine; two values for a key of a rule are an error."""
    with pytest.raises(InputError, match=r"s\.json:1:10: /a: duplicate key"):
        parse_json(b'{"a": 1, "a": 2}', "s.json")
    module = 'q[k] := v if {\n\tsome v in [1, 2]\n\tk := "a"\n}\n\ndeny contains "m" if q.a'
    assert_as_opa(module, tmp_path, ERROR)


EVERY = {
    "one fails": ('deny contains "m" if {\n\tevery x in input.resource.list { x < 3 }\n}', []),
    "the first fails": ('deny contains "m" if {\n\tevery x in input.resource.list { x > 1 }\n}', []),
    "all match": ('deny contains "m" if {\n\tevery x in input.resource.list { x < 4 }\n}', ["m"]),
    "none to match": ('deny contains "m" if {\n\tevery x in input.resource.empty { x > 9 }\n}', ["m"]),
    "over nothing": ('deny contains "m" if {\n\tevery x in input.resource.missing { x > 9 }\n}', []),
    "undefined for one": ('deny contains "m" if {\n\tevery x in [{"a": 1}, {}] { x.a == 1 }\n}', []),
    "nested": ('deny contains "m" if {\n\tevery x in [1, 2] { every y in [2, 3] { x < y } }\n}', []),
    "under not": (
        'all_small if {\n\tevery x in input.resource.list { x < 3 }\n}\n\ndeny contains "m" if not all_small',
        ["m"],
    ),
    "as an index": ('deny contains "m" if {\n\tevery i in [0, 1, 2] { input.resource.list[i] < 3 }\n}', []),
    "as an index in a call": (
        "small(n) if n < 3\n\n"
        'deny contains "m" if {\n\tevery i, _ in input.resource.list { small(input.resource.list[i]) }\n}',
        [],
    ),
    "in a comprehension": (
        'deny contains "m" if {\n\tevery i in [0, 2] { count([1 | input.resource.list[i] < 3]) == 1 }\n}',
        [],
    ),
    "as an index that fits": ('deny contains "m" if {\n\tevery i in [0, 1] { input.resource.list[i] < 3 }\n}', ["m"]),
    "with a key": ('deny contains "m" if {\n\tevery i, x in input.resource.list { x == i + 1 }\n}', ["m"]),
}


@pytest.mark.parametrize("name", EVERY)
def test_trap_23_every(name: str, tmp_path: Path) -> None:
    """`every` fails where one element fails."""
    module, expected = EVERY[name]
    assert_as_opa(module, tmp_path, expected)


@pytest.mark.parametrize("second", ["f() := 2", "f() := x if some x in [1, 2]"])
def test_trap_23_conflicting_function_without_arguments(second: str, tmp_path: Path) -> None:
    """A function without arguments and with two values is an error, and not its last value."""
    assert_as_opa(f'f() := 1\n\n{second}\n\ndeny contains "m" if f() > 0', tmp_path, ERROR)


def test_trap_23_facts_and_rules_meet_deep_down(tmp_path: Path) -> None:
    """Facts below the package of a rule stay, and so does the rule."""
    module = 'deny contains {"given": data.lib.deep.given, "made": data.lib.deep.made}'
    lib = "package lib.deep\n\nmade := 2\n"
    (tmp_path / "lib.rego").write_text(lib, encoding="utf-8")
    expected = [{"given": 1, "made": 2}]
    assert opa(module, tmp_path) == expected
    assert evaluated(module, **{"lib.rego": lib}) == expected
