"""What authors of Rego read about typical mistakes: the place, the line with a caret, and how to put it right."""

from __future__ import annotations

import pytest

from policyeng import rego

#: By mistake: what is below `package p`, the line and the column of the fault, its message and its hint.
MISTAKES = {
    "single quotes": ("q := 'x'", "2:6", "illegal token", "write a text in double quotes or backquotes"),
    "a double ampersand": ("q if { input.a && input.b }", "2:17", "unexpected `&`", "write each condition on a line"),
    "and": ("q if { input.a and input.b }", "2:16", "unexpected name `and`", "write each condition on a line"),
    "a double bar": ("q if { input.a || input.b }", "2:17", "unexpected `|`", "write a rule for each alternative"),
    "or": ("q if { input.a or input.b }", "2:16", "unexpected name `or`", "write a rule for each alternative"),
    "an exclamation mark": ("q if !input.a", "2:6", "illegal ! character", "write `not` before a condition"),
    "slashes": ("// a comment", "2:1", "unexpected `/`", "a comment begins with `#`"),
    "None": ("q if input.x == None", "2:17", "var None is unsafe", "did you mean null?"),
    "nil": ("q if input.x == nil", "2:17", "var nil is unsafe", "did you mean null?"),
    "True": ("q if input.x == True", "2:17", "var True is unsafe", "did you mean true?"),
    "a misspelt input": ("q if inptu.x == 1", "2:6", "var inptu is unsafe", "did you mean input?"),
    "a misspelt variable": (
        "q if { name := input.x; nmae == 1 }",
        "2:25",
        "var nmae is unsafe",
        "did you mean name?",
    ),
    "a loop": (
        "q if {\n\tfor x in input.xs\n\tx > 1\n}",
        "3:6",
        "unexpected name `x`",
        "write `some x in xs` on a line",
    ),
    "a return": (
        "f(x) := y if {\n\ty := x\n\treturn y\n}",
        "4:9",
        "unexpected name `y`",
        "in its head: `f(x) := value",
    ),
    "a triple equals sign": ("q if input.x === 1", "2:16", "unexpected `=`", "compare with `==`"),
    "elif": ("q := 1 if input.x elif input.y", "2:19", "var cannot be used", "write `else := value if { ... }`"),
    "too many arguments": ("q if count(input.x, 1) > 2", "2:6", "function count has arity 1, got 2", "write count("),
    "too few arguments": (
        "f(x, y) := x\nq := f(1)",
        "3:6",
        "function data.p.f has arity 2, got 1",
        "write data.p.f(x, y)",
    ),
    "an unsafe variable": (
        'q contains msg if {\n\tx > 1\n\tmsg := sprintf("%d", [x])\n}',
        "3:2",
        "var x is unsafe",
        "write `x := ...`, or `some x in ...`",
    ),
    "no if": (
        "q { input.x }",
        "2:1",
        "`if` keyword is required",
        "write `q ... if { ... }`; the module is read as Rego v1",
    ),
    "assigned twice": (
        "q if { x := 1; x := 2 }",
        "2:16",
        "var x assigned above",
        "use another name, or compare with `x ==`",
    ),
    "an assigned reference": ("q if { input.x := 1 }", "2:8", "cannot assign to ref", "compare with `==`"),
    "every without braces": (
        "q if every x in input.xs x > 1",
        "2:26",
        "missing body",
        "write its conditions in braces",
    ),
    "a missing import": ("q if lib.f(1)", "2:6", "undefined function lib.f", "such as `import data.lib`"),
    "a misspelt function": ("q if starts_with(input.x, `a`)", "2:6", "undefined function", "did you mean startswith?"),
    "a missing comma": ('q := {"a": 1 "b": 2}', "2:14", "expected `,` or `}`", "separate the members with `,`"),
    "a missing brace": (
        "q if {\n\tinput.x == 1\n\nr := 1",
        "5:7",
        "end of file",
        "a `}` is missing for the one that line 2",
    ),
    "a cycle": ("q if r\nr if q", "2:1", "data.p.q -> data.p.r -> data.p.q", "no rule may read itself"),
    "added texts": ('q := "a" + "b"', "2:6", "plus: invalid argument(s)", "join texts with `concat`"),
    "a formatted string": ('q := f"x"', "2:7", 'unexpected string `"x"`', 'a template string such as `$"x"`'),
    "a semicolon": ("q := 1;", "2:1", "multiple expressions", "a rule ends with its line, without `;`"),
}


def refuse(text: str) -> rego.RegoError:
    """What is wrong with a module."""
    with pytest.raises(rego.RegoError) as raised:
        rego.compile({"p.rego": text})
    return raised.value


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_explained(name: str) -> None:
    """Once, with its place, its line and what to write."""
    text, place, message, hint = MISTAKES[name]
    error = refuse(f"package p\n{text}\n")
    assert len(error.diagnostics) == 1
    first, line, caret, *hints = str(error).split("\n")
    assert first.startswith(f"p.rego:{place}: rego_")
    assert message in first
    number, column = map(int, place.split(":"))
    assert line == f"  {['package p', *text.split(chr(10))][number - 1]}"
    assert caret.expandtabs(1) == f"  {' ' * (column - 1)}^"
    assert any(hint in each for each in hints)


def test_a_package_with_a_hyphen_is_explained() -> None:
    """The message names the sign, the hint what a name may have."""
    error = refuse("package my-pkg\nq := 1\n")
    assert str(error).startswith("p.rego:1:11: rego_parse_error: unexpected `-`")
    assert "hint: write `_` instead of `-`" in str(error)


def test_a_set_of_v0_names_both_keywords() -> None:
    """Each with what to write."""
    error = refuse('package p\ndeny[msg] { msg := "x" }\n')
    assert "hint: write `deny ... if { ... }`" in str(error)
    assert "hint: write `deny contains member if { ... }`" in str(error)


def test_types_are_shown_without_a_hint() -> None:
    """They are what is compared, not what to do."""
    lines = str(refuse('package p\nq if startswith(1, "a")\n')).split("\n")
    assert lines[-2:] == ["  have: (number, string)", "  want: (string, string)"]
