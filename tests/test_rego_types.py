"""The type checker of Rego refuses what OPA refuses, and nothing else."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from policyeng.rego import RegoError, parse_module, parse_query
from policyeng.rego import types as rego_types
from policyeng.rego.builtins import signatures
from policyeng.rego.checker import Checker
from policyeng.rego.errors import Diagnostic, ModuleText
from policyeng.rego.resolver import Definition, resolve_module, resolve_query
from policyeng.rego.safety import Orderer
from policyeng.rego.syntax import Scalar, Term, Var, walk_terms
from policyeng.rego.tree import DataNode, build_tree, conflicts
from policyeng.rego.type_checker import check_query_types, check_types
from policyeng.rego.types import ANY, BOOLEAN, NUMBER, STRING, UNKNOWN
from tests.effort import effort
from tests.rego_mistakes import builtin_modules, drawn_modules

ROOT = Path(__file__).resolve().parents[1]


def link(modules: dict[str, str]) -> tuple[DataNode, Checker]:
    """Check modules with every stage before the types; no function of a builtin is needed."""
    parsed = [parse_module(file, text, 1) for file, text in modules.items()]
    siblings: dict[tuple[str, ...], set[str]] = {}
    paths = [tuple(str(part.value) for part in module.package.path if isinstance(part, Scalar)) for module in parsed]
    for path, module in zip(paths, parsed, strict=True):
        heads = (rule.head.ref.head for rule in module.rules)
        siblings.setdefault(path, set()).update(head.name for head in heads if isinstance(head, Var))
    definitions: list[Definition] = []
    for path, module in zip(paths, parsed, strict=True):
        definitions += resolve_module(module, siblings[path], signatures(), strict=False)
    root = build_tree(siblings, definitions)
    faults = list(conflicts(root))
    checker = Checker(root, allow_print=True, refused={})
    checker.check()
    for definition in definitions:
        orderer = Orderer(definition.source, checker.arity)
        names = {name for argument in definition.arguments or () for name in names_in(argument)}
        for branch in definition.branches:
            branch.body = orderer.order(branch.body, frozenset(names))
        faults += orderer.faults
    faults += checker.faults
    if faults:
        raise RegoError(*faults)
    return root, checker


def names_in(argument: Term) -> set[str]:
    """Return the names of the variables of an argument."""
    return {term.name for term in walk_terms(argument) if isinstance(term, Var)}


def check(text: str) -> list[Diagnostic]:
    """Return the faults in the types of one module of package `test`."""
    return check_types(*link({"x.rego": f"package test\n\n{text}\n"}))


def messages(text: str) -> list[str]:
    """Return the messages of the mistakes in rules."""
    return [fault.message for fault in check(text)]


MISTAKES = {
    "p if startswith(1, input.x)": "startswith: invalid argument(s)",
    "p if { x := [1]; startswith(x[0], input.x) }": "startswith: invalid argument(s)",
    "p := upper(1)": "upper: invalid argument(s)",
    'p := 1 + "a"': "plus: invalid argument(s)",
    'p if 1 == "a"': "match error",
    'p if { x := 1; x = "a" }': "match error",
    'q := 1\n\np if q == "a"': "match error",
    'q contains 1\n\np if q == "a"': "match error",
    "p := {1: 2}[3]": "undefined ref: {1: 2}[3]",
    'q := {"abc": 1}\n\np := q.abd': "undefined ref: data.test.q.abd",
    "q := 1\n\np := q.x": "undefined ref: data.test.q.x",
    'q contains 1\n\np if q["a"]': "undefined ref: data.test.q.a",
    'f(x) := x + 1\n\np := f("a")': "data.test.f: invalid argument(s)",
    "f([x]) := x\n\np := f({1})": "data.test.f: invalid argument(s)",
    "f(x) := 1\n\np := f": "function data.test.f used as reference, not called",
    'p if { some x in [1, 2]; upper(x) == "A" }': "upper: invalid argument(s)",
    'p if { y := [x | some x in {"a"}]; sum(y) > 1 }': "sum: invalid argument(s)",
    'p if "a" in [1, 2]': "match error",
    'q := 1 if input.a\n\nq := null if input.b\n\np if q == "a"': "match error",
    "p if { x := [1, 2, 3]; y := [1, 2]; x == y }": "match error",
    "p if { f := 1; count(f) > 1 with data.test.q as 1 }\n\nq := 2": "count: invalid argument(s)",
    "f(x) := x\n\np if count(input.x) == 1 with count as f\n\ng(x, y) := x\n\nq if count([]) == 1 with count as g": (
        "count: arity mismatch"
    ),
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_of_types_is_refused_as_opa_does(text: str) -> None:
    """Each with the code of OPA, its message, and the actual and the wanted type."""
    found = check(text)
    assert [fault.message for fault in found] == [MISTAKES[text]]
    assert found[0].code == "rego_type_error"
    assert found[0].hints


@pytest.mark.parametrize(
    "text",
    [
        "p if startswith(input.x, input.y)",
        'p := input.x + 1 if input.x == "a"',
        'q := 1 if input.a\n\nq := "a" if input.b\n\np if q == "a"',
        "p := data.base.x.y if data.base[_] == 1",
        "q[x] := 1 if some x in input.xs\n\np := q[input.z] if q.a == 1",
        'f(x) := x\n\np if f(1) == f("a")',
        'f(1) := 1\n\nf("a") := 2\n\np := f(input.x) + f(1)',
        "p if { every x in [1] { startswith(x, 1) } }",
        "p if set() == {1}",
        'q := {"a": 1}\n\np if q.b == 1 with data.test.q as {"b": 2}',
        'q := 1\n\nr := q\n\np if r == "a" with data.test.q as "a"',
        'p if { some i; [1, "a"][i] == "a"; i == 1 }',
        'p if { walk(input, [path, value]); path[_] == "a"; value > 1 }',
    ],
)
def test_what_may_be_is_accepted(text: str) -> None:
    """As OPA accepts it."""
    assert not messages(text)


def test_the_hints_name_both_types_and_a_similar_key() -> None:
    """The actual type, the wanted one, and what may be meant."""
    (fault,) = check('p if startswith(1, "a")')
    assert fault.hints == ("have: (number, string)", "want: (string, string)")
    (fault,) = check('q := {"colour": 1, "size": 2}\n\np := q.color')
    assert fault.hints == ("have: color", "want: one of: colour, size", "did you mean colour?")
    (fault,) = check('p if {"a": 1} == {"a": "b"}')
    assert fault.hints[:2] == ("left: object<a: number>", "right: object<a: string>")


def test_a_mistake_is_reported_once_and_not_where_the_rule_is_used() -> None:
    """A rule with a mistake may have any type."""
    assert messages("q := upper(1)\n\np if q == 1\n\nr if q.x.y") == ["upper: invalid argument(s)"]


def test_a_query_is_checked_with_the_types_of_the_rules() -> None:
    """`==` may be false in a query; everything else is as in a rule."""
    root, checker = link({"x.rego": "package test\n\nq := 1\n\nf(x) := x + 1"})
    assert not check_types(root, checker)

    def found(query: str) -> list[str]:
        source = ModuleText("query", query)
        body, _ = resolve_query(parse_query(query), source)
        ordered = Orderer(source, checker.arity).order(body, frozenset())
        return [fault.message for fault in check_query_types(root, checker, source, ordered)]

    assert not found('x := data.test.q == "a"')
    assert not found('data.test.q == "a"')
    assert found('data.test.q = "a"') == ["match error"]
    assert found("x := data.test.q.a") == ["undefined ref: data.test.q.a"]
    assert found('data.test.f("a")') == ["data.test.f: invalid argument(s)"]


def test_types_are_written_as_opa_writes_them() -> None:
    """With the parts of a union in their order."""
    either = rego_types.either(STRING, rego_types.either(NUMBER, STRING))
    assert rego_types.text(either) == "any<number, string>"
    assert rego_types.text(rego_types.array([NUMBER], ANY)) == "array<number>[any]"
    assert (
        rego_types.text(rego_types.object_([((3, "a"), BOOLEAN)], (STRING, ANY))) == "object<a: boolean>[string: any]"
    )
    assert rego_types.text(rego_types.function([rego_types.set_(UNKNOWN)], UNKNOWN)) == "(set) => ???"
    assert rego_types.text(rego_types.array([STRING] * 99)).endswith("…")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("p if any([true])", "deprecated built-in function calls in expression: any"),
        ("p if { every x in [1] { true } }", "declared var x unused"),
        ("p if { every k, x in [1] { x == 1 } }", "declared var k unused"),
        ("p if { [x, y] := 1; x == y }", "var x is unsafe"),
        ('p if { {"a": x, "b": y} := {"a": 1}; x == y }', "var x is unsafe"),
    ],
)
def test_a_mistake_before_the_types_is_refused(text: str, message: str) -> None:
    """Mistakes that the drawn modules found, and OPA refuses at an earlier stage."""
    with pytest.raises(RegoError) as raised:
        link({"x.rego": f"package test\n\n{text}\n"})
    assert raised.value.diagnostics[0].message == message


def test_the_first_of_two_equal_keys_is_not_evaluated() -> None:
    """OPA drops it when it parses."""
    assert messages('p := {"a": upper(1), "a": 1}.a + 1') == []
    assert messages('p := {"a": 1, "a": "b"}.a + 1') == ["plus: invalid argument(s)"]


def test_types_that_double_end() -> None:
    """Each rule has the type of the one before twice."""
    rules = "\n".join(f"p{index} := [p{index - 1}, p{index - 1}]" for index in range(1, 60))
    assert messages(f'p0 := 1\n{rules}\nq if p59[0][1] == "a"\nr if p9[0][0] == "a"') == ["match error"] * 2


@pytest.mark.slow
def test_our_policies_have_no_mistakes() -> None:
    """Those of this project, with their tests."""
    modules = {str(path): path.read_text(encoding="utf-8") for path in (ROOT / "policies").rglob("*.rego")}
    assert len(modules) > 60
    assert check_types(*link(modules)) == []


def refused_by_opa(opa: Path, folder: Path, modules: dict[str, str]) -> set[str]:
    """Return the files that OPA refuses for types; files that it refuses for something else are left out of both."""
    for file, text in modules.items():
        (folder / file).write_text(text, encoding="utf-8")
    while True:
        command = [str(opa), "check", "--format", "json", "--max-errors", "-1", "."]
        ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        errors = json.loads(ran.stdout or ran.stderr or "{}").get("errors", [])
        others = {error["location"]["file"] for error in errors if error["code"] != "rego_type_error"}
        others &= modules.keys()
        if not others:
            return {error["location"]["file"] for error in errors}
        # OPA stops at the stage that fails for any module.
        for file in others:
            del modules[file]
            (folder / file).unlink()


@pytest.mark.slow
@pytest.mark.parametrize(
    "drawn",
    [lambda: drawn_modules(effort(700, 8000), 20), lambda: builtin_modules(effort(4, 40), 20)],
    ids=["rules", "builtins"],
)
def test_drawn_modules_are_refused_exactly_where_opa_refuses_them(
    drawn: Callable[[], dict[str, str]], opa: Path, tmp_path: Path
) -> None:
    """Modules that pass all stages before, with mistakes and without."""
    modules, ours = {}, set()
    for file, text in drawn().items():
        try:
            linked = link({file: text})
        except RegoError:
            continue
        modules[file] = text
        if check_types(*linked):
            ours.add(file)
    theirs = refused_by_opa(opa, tmp_path, modules)
    ours &= modules.keys()
    assert {file: modules[file] for file in ours ^ theirs} == {}
    assert 0.2 < len(ours) / len(modules) < 0.9
