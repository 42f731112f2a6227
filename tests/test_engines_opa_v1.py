"""Rego v0 as v1: every form of rule, dropped builtins, and what v1 cannot name."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from policyeng.bundle import load_bundle
from policyeng.engines.opa_bundles import module_in_v1, modules_in_v1
from policyeng.errors import EngineError
from tests.bundles import write

FORMS = [
    ('deny[msg] {\n\tmsg = "a"\n}', 'deny contains msg if {\n\tmsg = "a"\n}'),
    ('deny[{"msg": m}] { m := 1 }', 'deny contains {"msg": m} if { m := 1 }'),
    ('p["a"]', 'p contains "a"'),
    ("p.a { true }", 'p contains "a" if { true }'),
    ("p[x] = y { y = input[x] }", "p[x] = y if { y = input[x] }"),
    ("p { input.a } { input.b }", "p if { input.a } { input.b }"),
    ('f(x) = "a" { x } else = "b" { # c {\n true }', 'f(x) = "a" if { x } else = "b" if { # c {\n true }'),
    ("p { input.a } else { input.b }", "p if { input.a } else if { input.b }"),
    ("p { input.a } else = 3 { input.b } else = 4", "p if { input.a } else = 3 if { input.b } else = 4"),
    ("p { # {\n# }\n{1} == {1} }", "p if { # {\n# }\n{1} == {1} }"),
    ("p = 3", "p = 3"),
    ("p[x] { x = 1 } { x = 2 }\n{ x = 3 }", "p contains x if { x = 1 } { x = 2 }\n{ x = 3 }"),
    ('f("a", _)\ng(x) { x }', 'f("a", _) := true\ng(x) if { x }'),
    ("default p = false", "default p = false"),
    ("import future.keywords\np contains x if x := 1", "import future.keywords\np contains x if x := 1"),
    ('p { re_match("a", input.b) }', 'p if { regex.match("a", input.b) }'),
    ("p { any([1, all([])]) }", "p if { data.policyeng_v0.any([1, data.policyeng_v0.all([])]) }"),
    ("any(x) { x }\np { any(1) }", "any(x) if { x }\np if { any(1) }"),
    ('p = "ü" { cast_set(["é"]) }', 'p = "ü" if { data.policyeng_v0.cast_set(["é"]) }'),
]


@pytest.mark.parametrize(("v0", "v1"), FORMS)
def test_every_form_is_written_as_v1(v0: str, v1: str) -> None:
    """On the lines where it was."""
    assert module_in_v1("p.rego", f"package p\n{v0}\n") == f"package p\n{v1}\n"


def test_opa_takes_every_form(opa: Path, tmp_path: Path) -> None:
    """With the module that replaces dropped builtins."""
    files = {
        f"p{number}.rego": f"package p{number}\n{v0}\nwarn[1] {{ input.x }}\n" for number, (v0, _) in enumerate(FORMS)
    }
    files |= {".manifest": '{"rego_version": 0}'}
    bundle = load_bundle(write(tmp_path / "v0", {**files, "q.rego": "package q\nimport rego.v1\nx := 1\n"}))
    written = write(tmp_path / "v1", dict(modules_in_v1(bundle)))

    assert bundle.rego_v0 == {f"p{number}.rego" for number in range(len(FORMS))}
    assert subprocess.run([opa, "check", written], capture_output=True, check=False).stderr == b""


def test_what_is_no_v1_is_refused() -> None:
    """By its line."""
    with pytest.raises(EngineError, match=r"^p\.rego:2: the module cannot be written as Rego v1"):
        module_in_v1("p.rego", "package p\nq { if := 1; if > 0 }")
