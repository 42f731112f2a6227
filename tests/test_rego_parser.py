"""The Rego parser reads modules as OPA does, and its errors name the place and the remedy."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from policyeng.rego import RegoError, parse_module, parse_query
from policyeng.rego.syntax import Template
from tests.effort import effort
from tests.growth import assert_linear
from tests.rego_json import canonical, module_json

ROOT = Path(__file__).resolve().parents[1]


def opa_cases() -> Path | None:
    """Find the cases that OPA carries, for both versions; they come with the module that `make test` builds OPA of."""
    ran = subprocess.run(["go", "env", "GOMODCACHE"], capture_output=True, text=True, check=False)
    cases = Path(ran.stdout.strip(), "github.com/open-policy-agent/opa@v1.22.0/v1/test/cases/testdata")
    return cases if cases.is_dir() else None


def opa_json(opa: Path, text: str, version: int) -> object:
    """Parse a module with OPA; None where it refuses."""
    command = [str(opa), "parse", "--format", "json", f"--v{version}-compatible", "/dev/stdin"]
    ran = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    return canonical(json.loads(ran.stdout, parse_int=float)) if ran.stdout.strip() else None


def our_json(text: str, version: int) -> object:
    """Parse a module with our parser; None where it refuses."""
    try:
        return json.loads(json.dumps(module_json(parse_module("x.rego", text, version))), parse_int=float)
    except RegoError:
        return None


@pytest.mark.slow
def test_the_policies_have_the_nodes_of_opa(opa: Path) -> None:
    """Every Rego file of the product, by one process of OPA for each."""
    files = sorted((ROOT / "policies").rglob("*.rego"))
    assert len(files) > 60
    different = [str(file) for file in files if our_json(text := file.read_text(), 1) != opa_json(opa, text, 1)]
    assert different == []


@pytest.mark.parametrize("version", [0, 1])
def test_the_modules_of_opas_cases_have_its_nodes(opa: Path, version: int) -> None:
    """A sample of OPA's own modules; all of them in a thorough run."""
    folder = opa_cases()
    if folder is None:
        pytest.skip("the Go module of OPA is not downloaded")
    texts = sorted(
        {
            module
            for file in (folder / f"v{version}").rglob("*.yaml")
            for case in yaml.load(file.read_bytes(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))["cases"]  # noqa: S506 # a safe loader
            for module in case.get("modules") or ()
        }
    )
    sample = texts[:: effort(40, 1)]
    assert len(sample) > 40
    pairs = [(text, opa_json(opa, text, version)) for text in sample]
    # OPA cannot print `.0` as JSON.
    assert [text for text, expected in pairs if our_json(text, version) != expected and ".0])" not in text] == []


BROKEN = {
    "package a\nallow if {\n  input.x == 1\n": (
        "a.rego:3:15: rego_parse_error: unexpected end of file: expected \\n or ; or }\n    input.x == 1\n"
        "                ^\n  hint: a `}` is missing for the one that line 2 opens"
    ),
    'package a\np := "x\n': 'a.rego:2:6: rego_parse_error: non-terminated string\n  p := "x\n       ^',
    "package a\np { 1 }\n": (
        "a.rego:2:1: rego_parse_error: `if` keyword is required before rule body\n  p { 1 }\n  ^\n"
        "  hint: write `p ... if { ... }`; the module is read as Rego v1"
    ),
    "package a\np[x] { x := 1 }\n": (
        "a.rego:2:1: rego_parse_error: `if` keyword is required before rule body\n  p[x] { x := 1 }\n  ^\n"
        "  hint: write `p ... if { ... }`; the module is read as Rego v1\n"
        "a.rego:2:1: rego_parse_error: `contains` keyword is required for partial set rules\n  p[x] { x := 1 }\n  ^\n"
        "  hint: write `p contains member if { ... }`"
    ),
    "package a\nimport input.if\n": (
        "a.rego:2:8: rego_parse_error: unexpected import path, must not end with a keyword, got: if\n"
        "  import input.if\n         ^\n  hint: import a different path or use an alias"
    ),
    "package a\nimport future.keywords.evry\n": (
        "a.rego:2:8: rego_parse_error: unexpected keyword, must be one of and, contains, every, if, in, not, or\n"
        "  import future.keywords.evry\n         ^\n  hint: did you mean `every`?"
    ),
    "package a\nimport foo.bar\n": (
        "a.rego:2:8: rego_parse_error: unexpected import path, must begin with one of: data, future, input, rego, "
        "got: foo\n  import foo.bar\n         ^"
    ),
    "package a\n\tp := 1 +\n": "a.rego:2:10: rego_parse_error: unexpected end of file\n  \tp := 1 +\n  \t        ^",
    "p := 1": "a.rego:1:1: rego_parse_error: package expected\n  p := 1\n  ^",
    "": "a.rego:1:1: rego_parse_error: empty module\n  \n  ^",
}


@pytest.mark.parametrize(("text", "message"), BROKEN.items())
def test_an_error_shows_the_place_and_what_to_do(text: str, message: str) -> None:
    """File, line, column, the line with a caret, and a hint where there is one."""
    with pytest.raises(RegoError) as caught:
        parse_module("a.rego", text)
    assert str(caught.value) == message


def test_a_template_in_a_template_is_read() -> None:
    """Braces of objects in an expression do not end it."""
    [expression] = parse_query('$"a{$"b{ {"c": 1} }" }d"')
    assert isinstance(expression.value, Template)
    assert len(expression.value.parts) == 3


@pytest.mark.parametrize(
    ("begin", "again", "end"),
    [
        ("x := ", "{1|", ""),
        ("x := ", "[1|", ""),
        ("x := ", "{", ""),
        ("x := ", "((", ""),
        ("x := ", "f(", ""),
        ("x := ", '$"{', ""),
        ("", "not ", "x"),
        ("x := ", "-", "1"),
        ("x := ", "a.", "b"),
        ("x := 1", " + 1", ""),
        ("x := {1", ", 1", "}"),
        ('x := "', "\\n", ""),
        ("x := `", "a", ""),
        ("# ", "a", "\n"),
    ],
)
def test_hostile_text_takes_linear_time(begin: str, again: str, end: str) -> None:
    """Text that repeats is read or refused in time that grows with its length."""

    def read(times: int) -> None:
        try:
            parse_query(begin + again * times + end)
        except RegoError:
            return

    assert_linear(read, 1000)


@pytest.mark.parametrize(
    "text", ["p if { a[_]; b[_] }", "p if { a[_] == 1; [x | b[_]] }", "p if { some x in a[_]; b[_] }"]
)
def test_each_wildcard_has_its_own_name(text: str) -> None:
    """The parser reads some terms before it knows what they belong to, and goes back."""
    names = re.findall(r"'(\$\d+)'", repr(parse_module("x.rego", f"package x\n{text}\n", 1).rules))
    assert len(names) == len(set(names)) == text.count("_")
