"""Schemas in annotations give documents types, with which the type checker refuses what OPA refuses."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from policyeng import rego

_DOCUMENT = (
    "input: {type: object, properties: {a: {type: string}, n: {type: integer}, "
    "xs: {type: array, items: {type: string}}, "
    "o: {type: object}, t: {type: array, items: [{type: string}, {type: number}]}, b: {type: boolean}, "
    "z: {type: 'null'}, an: {}, e: {enum: [1, x]}}}"
)
#: Rules that are refused with schemas.
REFUSED: dict[tuple[str, ...], tuple[str, ...]] = {
    (_DOCUMENT,): (
        "q := input.b2",
        "q := input.a + 1",
        "q if input.a == 1",
        "q contains x + 1 if some x in input.xs",
        "q := input.xs.foo",
        "q := input.xs[0] + 1",
        "q := input.o + 1",
        "q := input.t[0] + 1",
        "q := input.t[2]",
        "q if input.b == 1",
        "q := input.a.b",
        "q := x if x := input.zz with input as {}",
        "q if not input.zz",
        "q := [x | x := input.xs[_].y]",
        "q := f(input.a)\nf(x) := x + 1",
        "q := upper(input.n)",
    ),
    ("input.x: {type: string}",): ("q := input.x + 1",),
    ("input.x.y: {type: string}",): ("q := input.x.y + 1",),
    (
        "input: {type: object, properties: {x: {type: object, properties: {y: {type: number}}}}}",
        "input.x.y: {type: string}",
    ): ("q := input.x.y + 1", "q := input.x.z"),
    (
        "input: {type: object, properties: {x: {type: object, properties: {y: {type: number}}}}}",
        "input.w: {type: string}",
    ): ("q := input.w + 1", "q := input.v"),
    ("data.x: {type: string}",): ("q := data.x + 1",),
    ("data.x: {type: object, properties: {a: {}}}",): ("q := data.x.b",),
    ("data.p.r: {type: string}",): ("q := data.p.r + 1\nr := 1",),
    ("input: {type: 7}",): ("q := 1",),
    ("input: {type: foo}",): ("q := 1",),
    ("input: {properties: {a: {}}}",): ("q := input.x",),
    ("input: {items: {type: string}}",): ("q := input.x",),
    ("input: {anyOf: [{type: string}, {type: boolean}]}",): ("q := input + 1",),
    ("input: {anyOf: [{properties: {a: {type: string}}}, {properties: {b: {type: string}}}]}",): ("q := input.c",),
    ("input: {type: object, properties: {z: {}}, anyOf: [{properties: {a: {type: string}}}]}",): ("q := input.y",),
    ("input: {allOf: [{properties: {a: {type: string}}}, {properties: {b: {type: string}}}]}",): (
        "q := input.b + 1",
        "q := input.c",
    ),
    ("input: {allOf: [{type: string}, {type: number}]}",): ("q := input",),
    ("input: {type: string, allOf: [{type: number}]}",): ("q := input",),
    ("input: {type: [string, number]}",): ("q := input + 1",),
    ("input: {type: [object, 'null'], properties: {a: {}}}",): ("q := input.b",),
    ("input: {$ref: '#/definitions/x', definitions: {x: {properties: {a: {$ref: '#/definitions/x'}, b: {}}}}}",): (
        "q := input.c",
    ),
    ("input: {$ref: '#/definitions/nope'}",): ("q := input.c",),
}
#: Rules that are not.
TAKEN: dict[tuple[str, ...], tuple[str, ...]] = {
    (_DOCUMENT,): (
        "q := input.a",
        "q := input.n + 1",
        "q := input.o.x.y",
        "q := input.t[1] + 1",
        "q if input.b == true",
        "q := input.z + 1",
        "q := input.an + 1",
        "q := input.e + 1",
        'q := input[x] if x := "a"',
        "q[k] := v if some k, v in input",
        "q if every x in input.xs { x > 1 }",
        "q := count(input)",
        "q := data.p.r.zz\nr := input.a",
        'q := object.get(input, "zz", 1)',
        "q := upper(input.a)",
    ),
    ("input.x: {type: string}",): ("q := input.y + 1",),
    ("input.x.y: {type: string}",): ("q := input.x.z + 1",),
    ("input: {}",): ("q := input.x",),
    ("input: {anyOf: [{type: string}, {type: number}]}",): ("q := input + 1",),
    ("input: {anyOf: [{properties: {a: {type: string}}}, {properties: {b: {type: string}}}]}",): ("q := input.b",),
    ("input: {type: object, properties: {z: {}}, anyOf: [{properties: {a: {type: string}}}]}",): ("q := input.z",),
    ("input: {type: object, properties: {z: {}}, allOf: [{properties: {a: {type: string}}}]}",): ("q := input.z",),
    ("input: {oneOf: [{type: string}]}",): ("q := input + 1",),
    ("input: {$ref: '#/definitions/x', definitions: {x: {properties: {a: {$ref: '#/definitions/x'}, b: {}}}}}",): (
        "q := input.a.a.b",
    ),
    ("input: schema.foo",): ("q := input.c",),
    ("foo.x: {type: string}",): ("q := input.c",),
    ("input: {type: object, properties: {}}",): ("q := input.c",),
}


#: Modules in which a schema is for a rule, or is not.
_SCHEMA = "# METADATA\n# schemas:\n# - input.x: {type: string}\n"
_TWICE = "q := 1 if input.w\n\nq := 2 if input.x + 1 == 2\n"
SCOPES = {
    "of a package": (f"{_SCHEMA}package p\n\nq := input.x + 1\n", True),
    "of a document": (f"package p\n\n{_SCHEMA}# scope: document\n{_TWICE}", True),
    "of a document by its path": (f"package p\n\n{_SCHEMA}# scope: document\n{_TWICE.replace('q :=', 'a.q :=')}", True),
    "of another rule": (f"package p\n\n{_SCHEMA}{_TWICE}", False),
    "not of an else": (f"package p\n\n{_SCHEMA}q := 1 if input.w\nelse := 2 if input.x + 1 == 2\n", False),
    "of the document of an else": (
        f"package p\n\n{_SCHEMA}# scope: document\nq := 1 if input.w\nelse := 2 if input.x + 1 == 2\n",
        True,
    ),
    "of a function": (f"package p\n\n{_SCHEMA}f(a) := input.x + a\n\nq := f(1)\n", True),
}


def _modules() -> dict[str, tuple[str, bool]]:
    """The module of each case by its file, and whether it is refused; each has a package of its own."""
    cases = [
        (
            f"package p\n\n# METADATA\n# schemas:\n{''.join(f'# - {schema}{chr(10)}' for schema in schemas)}{text}\n",
            refused,
        )
        for table, refused in ((REFUSED, True), (TAKEN, False))
        for schemas, texts in table.items()
        for text in texts
    ]
    cases += SCOPES.values()
    return {
        f"m{number}.rego": (
            text.replace("package p\n", f"package p{number}\n").replace("data.p.", f"data.p{number}."),
            fault,
        )
        for number, (text, fault) in enumerate(cases)
    }


@pytest.mark.parametrize("file", _modules())
def test_schemas_refuse_what_can_never_be(file: str) -> None:
    """Members that a schema does not have, and operands of other types than it states."""
    text, is_refused = _modules()[file]
    if is_refused:
        with pytest.raises(rego.RegoError) as caught:
            rego.compile({file: text})
        assert {fault.code for fault in caught.value.diagnostics} == {"rego_type_error"}
    else:
        rego.compile({file: text})


def test_opa_refuses_the_same(opa: Path, tmp_path: Path) -> None:
    """All modules at once: no type error hides that of another module."""
    modules = _modules()
    for file, (text, _) in modules.items():
        (tmp_path / file).write_text(text, encoding="utf-8")
    command = [str(opa), "check", "--format", "json", "--max-errors", "10000", "."]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    errors = json.loads(ran.stderr or ran.stdout)["errors"]
    assert {Path(error["location"]["file"]).name for error in errors} == {
        file for file, (_, is_refused) in modules.items() if is_refused
    }


def test_a_schema_of_subpackages_is_for_the_packages_below() -> None:
    """And one of a package is for that package alone."""
    below = "package p.z\n\nq := input.x + 1\n"
    with pytest.raises(rego.RegoError, match="rego_type_error"):
        rego.compile({"p.rego": f"{_SCHEMA}# scope: subpackages\npackage p\n", "z.rego": below})
    rego.compile({"p.rego": f"{_SCHEMA}package p\n", "z.rego": below})
