"""Rego policies that are made to exhaust time or memory."""

from __future__ import annotations

from policyeng.models import JsonObject
from tests.bundles import deny_when, rego, workspace

#: What the bombs read: a list of 300 numbers and texts of repeated characters.
SUBJECT: JsonObject = workspace("w", xs=list(range(300)), text="x" * 5_000)

_GIVEN = "xs := input.resource.properties.xs\n\ntext := input.resource.properties.text\n\n"
_LOOPS = "; ".join(f"some {name} in xs" for name in "ijkl")


def _chain(first: str, step: str, count: int, used: str) -> str:
    """Rules of which each is made of the one before it."""
    rules = "".join(f"v{n + 1} := {step.replace('V', f'v{n}')}\n\n" for n in range(count))
    return f"v0 := {first}\n\n{rules}{deny_when(used.replace('V', f'v{count}'))}"


def _each(values: str, expression: str) -> str:
    return deny_when(f"count([y | some x in {values}; y := {expression}]) < 0")


GROUPS: dict[str, dict[str, str]] = {
    "loops": {
        "product": deny_when(f"count([1 | {_LOOPS}]) > 0"),
        "product of arrays": deny_when(f"count([[i, j, k] | {_LOOPS}]) > 0"),
        "product of sets": deny_when(f"count({{[i, j, k] | {_LOOPS}}}) > 0"),
        "product of objects": deny_when(f"count({{[i, j, k, l]: i | {_LOOPS}}}) > 0"),
        "product in every": deny_when("every i in xs { every j in xs { every k in xs { i + j + k >= 0 } } }"),
        "product in not": f"q if {{ {_LOOPS}; i + j + k + l < 0 }}\n\n{deny_when('not q')}",
        "product in a set of denials": "deny contains {"
        f'"msg": sprintf("%d", [i + j * 300 + k * 90000])}} if {{ {_LOOPS} }}',
        "function in a loop": "f(x) := count([1 | some i in xs; some j in xs; i < j + x])\n\n"
        + _each("numbers.range(1, 100000)", "f(x)"),
        "loops over a range": _each("numbers.range(1, 1000000)", 'sprintf("%d", [x])'),
        "union in a loop": _each("xs", "{y | some z in xs; y := z * x} | {z | some z in numbers.range(1, 10000)}"),
    },
    "sizes": {
        "range": deny_when("count(numbers.range(1, 1000000000)) > 0"),
        "range with a step": deny_when("count(numbers.range_step(1, 100000000, 2)) > 0"),
        "network": deny_when('count(net.cidr_expand("10.0.0.0/8")) > 0'),
        "large network": deny_when('count(net.cidr_expand("::/0")) > 0'),
        "width": deny_when('count(sprintf("%1000000d", [1])) > 0; count(sprintf("%*d", [999999, 1])) > 0')
        + "\n\n"
        + _each("xs", 'sprintf("%999999d", [x])'),
        "precision": _each("xs", 'sprintf("%.999999f", [0.5 + x])'),
        "replaced": deny_when('count(replace(text, "x", text)) > 0'),
        "replaced twice": deny_when('count(strings.replace_n({"x": replace(text, "x", "yy")}, text)) > 0'),
        "joined": _each("xs", "concat(text, [text | some z in xs; z < x])"),
        "split": _each("numbers.range(1, 10000)", 'split(text, "")'),
        "doubled strings": _chain("text", 'concat("", [V, V])', 40, "count(V) > 0"),
        "doubled arrays": _chain("xs", "array.concat(V, V)", 40, "count(V) > 0"),
        "copied objects": _each("numbers.range(1, 10000)", "object.union({z: z | some z in xs}, {x: x})"),
        "cross product": deny_when(
            "count({[a, b] | some a in numbers.range(1, 3000); some b in numbers.range(1, 3000)}) > 0"
        ),
    },
    "shared": {
        "walked": _chain("[1]", "[V, V]", 60, "walk(V, [_, 7])"),
        "written": _chain("[1]", "[V, V]", 60, "count(json.marshal(V)) > 0"),
        "written as YAML": _chain("[1]", "[V, V]", 60, "count(yaml.marshal(V)) > 0"),
        "in a set": _chain("[1]", "[V, V]", 60, "count({V}) > 0"),
        "compared": _chain("[1]", "[V, V]", 60, "V == json.unmarshal(json.marshal(V))"),
        "formatted": _chain("[1]", "[V, V]", 60, 'count(sprintf("%v", [V])) > 0'),
        "denied": _chain("[1]", "[V, V]", 60, "true").replace('"actual": 1', '"actual": v60'),
        "filtered": _chain("{}", '{"a": V, "b": V}', 60, 'count(json.filter(V, ["a/b"])) > 0; walk(V, [_, 7])'),
    },
    "numbers": {
        "squares": _chain("7", "V * V", 40, "V > 0"),
        "shift": deny_when("bits.lsh(1, 100000000000) > 0"),
        "shifts": _chain("1", "bits.lsh(V, 4000)", 40, "V > 0"),
        "product of numbers": deny_when("product([x | some i in xs; some j in xs; x := 9007199254740993]) > 0"),
        "long text": deny_when('to_number(replace(text, "x", "9999")) > 0'),
        "exponent": deny_when('to_number("1e1000000000") > 0'),
        "units": deny_when('units.parse("1e999999999G") > 0'),
    },
    "patterns": {
        "nested quantifiers": _each("numbers.range(1, 1000000)", 'regex.match(`^(a+)+$`, sprintf("%s%d", [text, x]))'),
        "counted repetition": deny_when("regex.match(`((a{1,999}){1,999}){1,999}`, text)"),
        "alternatives": _each("numbers.range(1, 1000000)", "regex.find_n(`(a|aa|aaa|x)*y`, text, -1)"),
        "replacement": deny_when('count(regex.replace(text, "x", text)) > 0'),
        "matches": _each("numbers.range(1, 100000)", 'regex.find_n("x", text, -1)'),
        "glob": _each("numbers.range(1, 1000000)", 'glob.match("*a*a*a*a*a*a*a*a*a*b", [], text)'),
        "globs in common": _each("numbers.range(1, 1000000)", f'regex.globs_match("{"a*" * 40}b", "{"a+" * 40}c")'),
    },
    "documents": {
        "deep JSON": deny_when(
            'count(json.unmarshal(concat("", [replace(text, "x", "["), replace(text, "x", "]")]))) > 0'
        ),
        "many documents": _each("numbers.range(1, 100000)", "json.unmarshal(json.marshal(xs))"),
        "aliases": deny_when(
            'count(yaml.unmarshal("a: &a [1,1,1,1,1,1,1,1,1]\\n'
            + "".join(f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]\\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True))
            + '")) > 0'
        ),
        "wide JSON": deny_when(
            'count(json.unmarshal(sprintf("[%s]", [concat(",", [x | some y in numbers.range(1, 400000); x := "[]"])])))'
            " < 0"
        ),
        "graph": deny_when(
            "count(graph.reachable_paths("
            "{a: [b | some b in numbers.range(1, 30)] | some a in numbers.range(1, 30)}, [1])) > 0"
        ),
        "patches": deny_when(
            'count(json.patch({"a": xs}, [{"op": "copy", "from": "/a", "path": sprintf("/%d", [n])} | '
            "some n in numbers.range(1, 100000)])) > 0"
        ),
        "schema": deny_when(
            'json.match_schema({"a": text}, {"$ref": "#/definitions/a", "definitions": {"a": {"anyOf": ['
            '{"$ref": "#/definitions/a"}, {"$ref": "#/definitions/a"}]}}})[0]'
        ),
        "hexadecimal": _chain("text", "hex.encode(V)", 40, "count(V) > 0"),
        "escapes": _chain('"\\""', "json.marshal(V)", 60, "count(V) > 0"),
        "recursion": _chain("1", "V + 1", 2000, "V > 0"),
    },
}


def bomb(group: str, name: str) -> str:
    """The text of a policy."""
    number = list(GROUPS[group]).index(name) + 1
    return rego(f"{group}{number}", _GIVEN + GROUPS[group][name], identity=f"T-{group[0].upper()}-{number}")
