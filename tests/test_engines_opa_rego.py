"""Rego as text: what reaches for the host is refused, and a module moves with everything that it names."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from policyeng import rego
from policyeng.bundle import Bundle
from policyeng.engines.opa_bundles import package_root, relocated, require_pure
from policyeng.errors import EngineError
from policyeng.rego import RegoError
from policyeng.rego.builtins import IMPURE, REFUSED, load_function, signatures


@pytest.mark.parametrize(
    ("body", "builtin"),
    [
        ("x := time.now_ns()", "time.now_ns"),
        ('x := time["now_ns"]()', "time.now_ns"),
        ("x := time[`now_ns`]()", "time.now_ns"),
        ('x := http.send({"url": "x"})', "http.send"),
        ("x if count([1]) with count as rand.intn", "rand.intn"),
        ("x := opa.runtime().env", "opa.runtime"),
        ('x := "a\\"" == uuid.rfc4122("x")', "uuid.rfc4122"),
        ('x if print("x")', "print"),
        ('x if { input.y; trace("x") }', "trace"),
        ("x := input.y[print(1)]", "print"),
        ('x := `"` == net.lookup_ip_addr(`a`)', "net.lookup_ip_addr"),
    ],
)
def test_what_reaches_for_the_host_is_refused_with_its_line(body: str, builtin: str) -> None:
    """The embedded engine refuses the same."""
    with pytest.raises(EngineError) as caught:
        require_pure("a/p.rego", f"package a\n\n{body}\n")

    assert str(caught.value).startswith(f"a/p.rego:3: `{builtin}` is not available")


@pytest.mark.parametrize("builtin", sorted(IMPURE))
def test_both_engines_refuse_the_same_builtins(builtin: str) -> None:
    """Whichever of them evaluates, a policy of somebody else's is refused for the same call."""
    source = f"package p\n\ndeny contains 1 if {builtin}(1)\n"
    with pytest.raises(EngineError, match=rf"^p\.rego:3: `{re.escape(builtin)}` is not available"):
        require_pure("p.rego", source)
    with pytest.raises(RegoError, match=rf"^p\.rego:3:\d+: .*{re.escape(builtin)}"):
        rego.compile({"p.rego": source})


@pytest.mark.parametrize("builtin", sorted(REFUSED.keys() - IMPURE.keys()))
def test_what_only_opa_has_is_refused_by_the_embedded_engine_alone(builtin: str) -> None:
    """Before anything is evaluated, with the engine that has it."""
    arguments = ", ".join("1" for _ in signatures()[builtin]["arguments"])
    source = f"package p\n\ndeny contains 1 if {builtin}({arguments})\n"
    require_pure("p.rego", source)
    with pytest.raises(RegoError, match=rf"^p\.rego:3:\d+: .*{re.escape(builtin)} is refused: .*`--engine opa`"):
        rego.compile({"p.rego": source})


#: What the compiler itself evaluates.
_IN_PLACE = {"assign", "eq", "internal.test_case", "print", "rego.metadata.chain", "rego.metadata.rule"}


@pytest.mark.parametrize("builtin", sorted(signatures().keys() - REFUSED.keys() - _IN_PLACE))
def test_every_builtin_that_is_not_refused_has_a_function(builtin: str) -> None:
    """None is missing when a policy is evaluated."""
    assert callable(load_function(builtin))


@pytest.mark.parametrize(
    "body",
    [
        "# time.now_ns()",
        'x := "time.now_ns()"',
        "x := data.time.now_ns",
        "x := time.parse_rfc3339_ns(y)",
        "x := `\nhttp.send`",
        "x := input.print",
        "x := data.lib.print(1)",
        'x := input["print"]',
        "x if some print in input.y",
        "x if { input.y[print]\n(1) == 1 }",
        'x := ["trace", (1)]',
    ],
)
def test_what_only_looks_like_it_is_taken(body: str) -> None:
    """Comments, text, and what others call so."""
    require_pure("p.rego", f"package a\n\n{body}\n")


def test_expressions_of_template_strings_are_seen() -> None:
    """Their text is not code."""
    require_pure("p.rego", 'package a\nx := $"time.now_ns() {input.y} `"')
    with pytest.raises(EngineError, match=r"^p\.rego:2: `time\.now_ns` is not available"):
        require_pure("p.rego", 'package a\nx := $"at {time.now_ns()}"')


def test_what_is_not_rego_is_refused() -> None:
    """With its line."""
    for read in (require_pure, lambda path, text: relocated(path, text, "a.b"), package_root):
        with pytest.raises(EngineError, match=r"^p\.rego:2: non-terminated string"):
            read("p.rego", 'package a\nx := "')


@pytest.mark.parametrize(
    ("source", "moved"),
    [
        ("package a.b\nimport data.lib.x\n", "package n.m.a.b\nimport data.n.m.lib.x\n"),
        ("# package x\npackage a # data.x\nx := data.y", "# package x\npackage n.m.a # data.x\nx := data.n.m.y"),
        ('package a\nx := data["y"].data', 'package n.m.a\nx := data.n.m["y"].data'),
        ('package a\nx := {"data": input.data, "b": data}', 'package n.m.a\nx := {"data": input.data, "b": data.n.m}'),
        ("package a\nx := `data.x \"` + data.x", "package n.m.a\nx := `data.x \"` + data.n.m.x"),
        ('package a["b-c"]\nmetadata := data_x', 'package n.m.a["b-c"]\nmetadata := data_x'),
        ('package a\nx := $"data.y {data.z}"', 'package n.m.a\nx := $"data.y {data.n.m.z}"'),
        ('package a\nx if { "\\"data.y" ; data.z }', 'package n.m.a\nx if { "\\"data.y" ; data.n.m.z }'),
        ("package a\npackage_name := data.package", "package n.m.a\npackage_name := data.n.m.package"),
    ],
)  # fmt: skip
def test_a_module_moves_with_what_it_names(source: str, moved: str) -> None:
    """Text, comments and other names stay as they are, and so do the lines."""
    assert relocated("p.rego", source, "n.m") == moved


def test_the_root_of_a_package() -> None:
    """The first part, whatever is around it."""
    assert package_root("p.rego", '# c\n\npackage a["b"].c\n') == "a"


def test_opa_takes_the_built_in_policies_elsewhere(bundle: Bundle, opa: Path, tmp_path: Path) -> None:
    """All of them, strictly: nothing of them points back to where they were."""
    for path, source in bundle.modules:
        target = tmp_path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(relocated(path, source, "elsewhere.x"), encoding="utf-8")
        require_pure(path, source)

    assert subprocess.run([opa, "check", "--strict", tmp_path], capture_output=True, check=False).returncode == 0
    assert not [path for path in tmp_path.rglob("*.rego") if "data.lib" in path.read_text(encoding="utf-8")]
