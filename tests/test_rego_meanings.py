"""What programs of Rego mean, as OPA has it: shapes that people write and that are easily misunderstood."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.rego_meanings import Meaning, evaluate_ours, evaluate_with_opa, fails, is_value, means

_DENY = 'deny[msg] { input.kind == "Pod"; msg := "no pods" }\n'

EMPTY_ARGUMENTS = {
    "a rule": means("f() := input.x if input.x == 1\ng := f", f=1, g=1),
    "without a body": means("f() := 1\ng := f", f=1, g=1),
    "of v0": means(
        "f() = out { out := {p | p := input.xs[_]} }\ng { not f.q }", is_old=True, f=["a", "b", "z"], g=True
    ),
    "iterated": means('f() := {"a": input.x} if true\ng := f.a\nh := f[_]\ni := f[k]', f={"a": 1}, g=1, h=1, i=1),
    "called": means(
        "f() := input.y\ng := f()\nh if f().a\ni if not f()\nj := [x | x := f()]\nk := [f(), f] if f() == f",
        f={"a": True},
        g={"a": True},
        h=True,
        j=[{"a": True}],
        k=[{"a": True}, {"a": True}],
    ),
    "a call of a rule without parentheses": means("f := input.x\ng := f()\nh := y if f(y)", f=1, g=1, h=1),
    "called where its type is known": fails("rego_type_error", "f() := 1 if input.x\ng := f()"),
    "called as a set": fails("rego_type_error", "f contains input.x\ng := f()"),
    "called with an argument too many": fails("rego_type_error", "f() := input.x\ng := f(1, 2)"),
    "called where nothing has the name": fails("rego_type_error", "g := data.q.f()"),
    "replaced": means(
        "f := input.x\ng := x if x := f with f as 3\n"
        "h := x if x := f() with f as 3\ni := x if x := f() with input.x as 3",
        f=1,
        g=3,
        h=1,
        i=3,
    ),
    "a default": means("default f() := 3\nf() := 4 if input.x == 2\ng := f", f=3, g=3),
    "an else": means('f() := 1 if input.k == "z" else := input.x\ng := f()', f=1, g=1),
    "undefined": means("f() := input.missing\ng := f()\nh if not f", h=True),
    "false": means("f() := input.no\ng if not f()\nh := f()", f=False, g=True, h=False),
    "at a reference": means("a.b() := input.x\ng := a.b()\nh := a", a={"b": 1}, g=1, h={"b": 1}),
    "recursive": fails("rego_recursion_error", "f() := g()\ng() := f()"),
    "together with a function": fails("rego_type_error", "f() := input.x\nf(x) := x"),
    "together with a rule": means("f() := input.x\nf := 1", f=1),
    "an error": fails("eval_builtin_error", "f() := to_number(input.word)\ng if not f"),
}

OLD_NAMES = {
    "input as input": means(
        _DENY + 't { input := {"kind": "Pod"}; deny["no pods"] with input as input }', is_old=True, deny=[], t=True
    ),
    "a part of input": means(
        _DENY + 't { input := "Pod"; deny["no pods"] with input.kind as input }', is_old=True, deny=[], t=True
    ),
    "in a comprehension": means(
        _DENY + 't = [x | input := {"kind": "Pod"}; deny[x] with input as input]', is_old=True, deny=[], t=["no pods"]
    ),
    "a declared name": means(
        _DENY + 't = [x | some input; input = {"kind": "Pod"}; deny[x] with input as input]',
        is_old=True,
        deny=[],
        t=["no pods"],
    ),
    "data as data": means(
        'q = data.foo\nt = x { data := {"a": 1}; x := q with data.foo as data }', is_old=True, t={"a": 1}
    ),
    "the local value is not replaced": means(
        "t { input := 3; x := [input] with input as 2; x == [3] }\nf { input := 3; input == 2 with input as 2 }",
        is_old=True,
        t=True,
    ),
    "a function of the replaced input": means(
        "t { input := 3; f(1) with input as 2 }\nf(x) { input == 2 }", is_old=True, t=True
    ),
    "an argument": fails("rego_compile_error", "f(input) = input.a", is_old=True),
    "an argument called data": fails("rego_compile_error", "f(data) = data.a", is_old=True),
    "a part of an argument": fails("rego_compile_error", "f([input]) = input.a", is_old=True),
    "a variable of v1": fails("rego_compile_error", "t if { input := 3; input == 3 }"),
}


_A = "package a.a\nr := 1\ns contains 1\nf(x) := x\n"
_B = "package a.b\nr := to_number(input.word)\n"

#: A reference with a part that is bound: what else there is may be in error.
PARTS = {
    "a package by a key of the input": means("q := data.a[input.k].r", _A, _B, q=1),
    "the package that is in error": fails("eval_builtin_error", 'q := data.a[k].r if k := "b"', _A, _B),
    "a package by each member": means('q := [v | some k in ["a", "z"]; v := data.a[k].r]', _A, _B, q=[1]),
    "an alias": means("import data.a as lib\nq := lib[input.k].r", _A, _B, q=1),
    "below data": means('q := data[k].a.r if k := "a"', _A, _B, q=1),
    "a package that is not there": means(
        "q := data.a[input.missing].r\nr := data.a.zz.r\ns := data.a[input.word].r", _A, _B
    ),
    "a whole package": means("q := data.a[input.k]", _A, _B, q={"r": 1, "s": [1]}),
    "a set of a package": means("q if data.a[input.k].s[1]\nr if data.a[input.k].s[2]", _A, _B, q=True),
    "a function that is not called": means("q := data.a[input.k].f\nr if not q", _A, r=True),
    "a rule of several": means(
        "q := data.o.obj[input.k]", "package o\nobj.a := 2\nobj.b := to_number(input.word)\n", q=2
    ),
    "two parts": means('q := data.a[input.k][r] if r := "r"', _A, _B, q=1),
    "a part in a part": means(
        "q := data.a[data.o.obj[input.k]].r", _A, _B, 'package o\nobj.a := "a"\nobj.b := to_number(input.word)\n', q=1
    ),
    "a part that is bound and one that is not": means("q := {n | data.a[input.k][n] == 1}", _A, _B, q=["r"]),
    "parts that are not bound": means(
        "q := {[k, n] | data.a[k][n] == 1}", _A, "package a.c\nt := 1\nu := 2\n", q=[["a", "r"], ["c", "t"]]
    ),
    "a part that is not bound, which is in error": fails("eval_builtin_error", "q := {k | data.a[k].r == 1}", _A, _B),
    "base data before packages": means(
        "q := [[k, v] | v := data.a[k].r]",
        _A,
        "package a.d\nr := 5\n",
        data={"a": {"c": {"r": 2}, "e": {"r": 3}, "a": {"w": 1}}},
        q=[["a", 1], ["c", 2], ["e", 3], ["d", 5]],
    ),
    "base data of a package": means(
        "q := data.a[input.k].list[input.x]\nr := {v | v := data.a[_].list[_]}",
        _A,
        data={"a": {"a": {"list": [3, 4]}}},
        q=4,
        r=[3, 4],
    ),
    "a number as a key of base data": means(
        "q := data.base[input.x]\nr := data.a[input.x].r\ns := data.a[input.k][input.x].r",
        _A,
        data={"base": {"1": "x"}, "a": {"1": {"r": 2}, "a": {"1": {"r": 3}}}},
        q="x",
        r=2,
        s=3,
    ),
    "a replaced part": means('q := x if x := data.a[input.k].r with input.k as "b" with data.a.b.r as 7', _A, _B, q=7),
    "a replaced package": means(
        'q := x if x := data.a[k].r with data.a as {"c": {"r": 7}}\nk := "c"\n'
        'r := [x | x := data.a[_].r with data.a as {"c": {"r": 7}, "a": {"r": 6}}]',
        _A,
        _B,
        k="c",
        q=7,
        r=[6, 7],
    ),
    "a function of the key": means(
        'f(k) := data.a[k].r\nq := f(input.k)\nr := [f(k) | some k in ["a", "a"]]', _A, _B, q=1, r=[1, 1]
    ),
    "in every, not and with": means(
        'q if every k in ["a"] { data.a[k].r == 1 }\nr if not data.a[input.k].r == 2\n'
        's if data.a[input.y].r == 1 with input.y as "a"',
        _A,
        _B,
        q=True,
        r=True,
        s=True,
    ),
    "an object by a constant": means(
        "q := data.o.many.a", 'package o\nmany[k] := to_number(v) if some k, v in {"a": "1", "b": input.word}\n', q=1
    ),
    "an object by a key": means(
        'q := data.o.many[input.k]\nr := data.o.many[k] if k := "c"',
        'package o\nmany[k] := to_number(v) if some k, v in {"a": "1", "b": input.word}\n',
        q=1,
    ),
    "an object by the key that is in error": fails(
        "eval_builtin_error",
        "q := data.o.many.b",
        'package o\nmany[k] := to_number(v) if some k, v in {"a": "1", "b": input.word}\n',
    ),
    "an object by many keys": means(
        'q := [v | some k in ["a", "c", "d", "e", "a"]; v := data.o.many[k]]',
        "package o\n"
        'many[k] := to_number(v) if some k, v in {"a": "1", "b": input.word, "c": "3", "d": "4", "e": "5"}\n',
        q=[1, 3, 4, 5, 1],
    ),
    "a conflict at another key": means(
        "q := data.o.many.a", 'package o\nmany[k] := v if some [k, v] in [["a", 1], ["b", 1], ["b", 2]]\n', q=1
    ),
    "a conflict at the key": fails(
        "eval_conflict_error",
        "q := data.o.many.b",
        'package o\nmany[k] := v if some [k, v] in [["a", 1], ["b", 1], ["b", 2]]\n',
    ),
    "several rules of an object": means(
        "q := data.o.many[input.k]\nr := data.o.many.c",
        'package o\nmany[k] := 1 if k := "a"\nmany[k] := to_number(input.word) if k := "b"\nmany.c := 3\n',
        q=1,
        r=3,
    ),
    "the key of the head is computed": means(
        "q := data.o.many.A",
        'package o\nmany[upper(k)] := to_number(v) if some k, v in {"a": "1", "b": input.word}\n',
        q=1,
    ),
    "keys that are no strings": means(
        "q := data.o.many[input.x]\nr := data.o.many[[1, input.k]]\ns := data.o.many[true]",
        'package o\nmany[k] := 1 if some k in [1, [1, "a"], true]\nmany[2] := to_number(input.word)\n',
        q=1,
        r=1,
        s=1,
    ),
    "constant keys that are no strings": means(
        "q := data.o.n[1]\nr := data.o.n[x] if x := 2",
        'package o\nn[1] := 1\nn[2] := to_number("2")\nn[3] := to_number(input.word)\n',
        q=1,
        r=2,
    ),
    "two keys": means(
        'q := data.o.m.a.x\nr := data.o.m[input.k][j] if j := "x"',
        "package o\n"
        'm[k][j] := to_number(v) if some [k, j, v] in\n[["a", "x", "1"], ["a", "y", input.word],\n'
        '["b", "x", input.word]]\n',
        q=1,
        r=1,
    ),
    "a second key that is not bound": means(
        "q := {[j, v] | v := data.o.m.a[j].k}",
        'package o\nm[k][j].k := to_number(v) if some [k, j, v] in [["a", "x", 1], ["b", "z", input.word]]\n'
        "m.a.c.k := 1\nm.b.c.k := to_number(input.word)\n",
        q=[["c", 1], ["x", 1]],
    ),
    "a first key that is not bound": means(
        "q := {[k, v] | v := data.o.m[k].x}",
        'package o\nm[k][j] := v if some [k, j, v] in [["a", "x", 1], ["b", "x", 2], ["b", "y", 3]]\n',
        q=[["a", 1], ["b", 2]],
    ),
    "sets in an object": means(
        "q := {j | data.o.m[input.k][j]}\nr if data.o.m[input.k][3]\ns if data.o.m.x[2]",
        'package o\nm[k] contains v if some [k, v] in [["a", "x"], ["b", "z"], ["a", 3]]\n'
        "m.b contains to_number(input.word)\nm.x contains 2\n",
        q=[3, "x"],
        r=True,
        s=True,
    ),
    "a member of a set": means(
        'q if data.o.s["1"]\nr if data.o.s["9"]',
        'package o\ns contains x if { some x in ["1", "2"]; to_number(x) }\n'
        's contains x if { x := "3"; to_number(input.word) }\n',
        q=True,
    ),
    "the member of a set that is in error": fails(
        "eval_builtin_error",
        'q if data.o.s["3"]',
        'package o\ns contains x if { some x in ["1", "2"]; to_number(x) }\n'
        's contains x if { x := "3"; to_number(input.word) }\n',
    ),
    "a member that is an array": means(
        'q if data.o.s[["a", 1]]\nr := {x | data.o.s[["a", x]]}\nt if data.o.s[{"k": "a"}]',
        'package o\ns contains [k, 1] if some k in ["a", "b"]\ns contains {"k": k} if some k in ["a"]\n'
        's contains {k} if some k in ["a"]\n',
        q=True,
        r=[1],
        t=True,
    ),
    "a set as a whole": fails(
        "eval_builtin_error",
        'q := "1" in data.o.s',
        'package o\ns contains x if { some x in ["1", "2"]; to_number(x) }\n'
        's contains x if { x := "3"; to_number(input.word) }\n',
    ),
    "a replaced object": means(
        'q := x if x := data.o.many[input.k] with data.o.many as {"a": 5}',
        'package o\nmany[k] := to_number(v) if some k, v in {"a": input.word}\n',
        q=5,
    ),
    "a replaced part of an object": fails(
        "rego_compile_error",
        "q := x if x := data.o.many[input.k] with data.o.many.a as 5",
        'package o\nmany[k] := to_number(v) if some k, v in {"a": input.word}\n',
    ),
    "a rule that selects itself": fails("rego_recursion_error", "q := data.p[input.k]\nr := 1"),
    "a part of what may have any names": means(
        'r := object.union(input.y, {"k": 1}) if { input.no }\n'
        'else := {"n": -1} if { input.x } else := {lower(input.k): 1}\n'
        's contains r["n"]\nq if not s["b"]',
        r={"n": -1},
        s=[-1],
        q=True,
    ),
    "a part next to one whose type is of a later module": means(
        'r[abs(1)] := 10\nr["a.b"] := data.q.n\ns contains v if v := data.p.r[""]',
        "package q\nn := 1 if input.x\n",
        r={"1": 10, "a.b": 1},
        s=[],
    ),
    "a query of a part": is_value(
        1,
        "q := 1",
        'package o\nmany[k] := to_number(v) if some k, v in {"a": "1", "b": input.word}\n',
        query="data.o.many.a",
    ),
    "a query of a part that is not there": is_value(
        None,
        "q := 1",
        'package o\nmany[k] := to_number(v) if some k, v in {"a": "1", "b": input.word}\n',
        query="data.o.many.c",
    ),
    "a query of a package with errors next to it": is_value(1, "q := 1", _A, _B, query="data.a.a.r"),
}

#: Texts that YAML takes for times, and some that it does not.
_TIMES = [
    *("2020-01-01", "2020-1-2", "0001-01-01", "2020-01-01T10:00:00Z", "2020-01-01t1:2:3Z", "2020-01-01 10:00:00"),
    *("2020-01-01 1:0:0.120", "2020-01-01T10:00:00.1234567891Z", "2020-01-01T10:00:00+01:00"),
    *("2020-01-01T10:00:00-00:00", "2020-01-01T10:00:00.000Z", "2020-01-01T10:00:00-05:30"),
    *("2020-02-30", "2020-01-01T10:00:00", "2020-01-01 10:00:00Z"),
]
_TIMES_READ = [
    *("2020-01-01T00:00:00Z", "2020-01-02T00:00:00Z", "0001-01-01T00:00:00Z", "2020-01-01T10:00:00Z"),
    *("2020-01-01T01:02:03Z", "2020-01-01T10:00:00Z", "2020-01-01T01:00:00.12Z", "2020-01-01T10:00:00.123456789Z"),
    *("2020-01-01T10:00:00+01:00", "2020-01-01T10:00:00Z", "2020-01-01T10:00:00Z", "2020-01-01T10:00:00-05:30"),
]

#: What `rego.metadata` returns, and blocks that are refused.
ANNOTATIONS = {
    "the fields of a rule": means(
        "# METADATA\n# title: x\n# description: |\n#  a\n#   b\n# organizations: [1, a]\n# authors:\n"
        "# - John Doe <j@x>\n# - name: J\n# - {email: e}\n# related_resources:\n# - https://x/y\n"
        '# - ref: https://z\n#   description: " Z "\n# custom:\n#   code: X401\n#   n: [1, 2.5, {a: b}]\n'
        "q := rego.metadata.rule()",
        q={
            "authors": [{"email": "j@x", "name": "John Doe"}, {"name": "J"}, {"email": "e"}],
            "custom": {"code": "X401", "n": [1, 2.5, {"a": "b"}]},
            "description": "a\n b\n",
            "organizations": ["1", "a"],
            "related_resources": [{"ref": "https://x/y"}, {"description": "Z", "ref": "https://z"}],
            "scope": "rule",
            "title": "x",
        },
    ),
    "times": means(
        "# METADATA\n# custom:\n"
        + "".join(f"#   t{place:02}: {text}\n" for place, text in enumerate(_TIMES))
        + "q := [rego.metadata.rule().custom[k] | some k in object.keys(rego.metadata.rule().custom)]\n"
        f'r := [x | some t in {json.dumps(_TIMES[:12])}; x := yaml.unmarshal(concat("", ["!!timestamp ", t]))]\n'
        f"s := [x | some t in {json.dumps(_TIMES)}; x := yaml.unmarshal(t)]",
        q=[*_TIMES_READ, *_TIMES[12:]],
        r=_TIMES_READ,
        s=_TIMES,
    ),
    "flags of YAML 1.1": means(
        "# METADATA\n# entrypoint: yes\nq := rego.metadata.chain()[1].annotations\n"
        "# METADATA\n# title: x\n# entrypoint: Off\nr := rego.metadata.rule()",
        q={"entrypoint": True, "scope": "document"},
        r={"scope": "rule", "title": "x"},
    ),
    "no annotation": means("q := rego.metadata.rule()\nr := rego.metadata.chain()", q={}, r=[{"path": ["p", "r"]}]),
    "a chain": means(
        "# METADATA\n# title: x\n# scope: document\n\n# METADATA\n# title: x\n\n# METADATA\n"
        "# description: y\nq := rego.metadata.chain()\nr := rego.metadata.rule() if q",
        q=[
            {"annotations": {"description": "y", "scope": "rule"}, "path": ["p", "q"]},
            {"annotations": {"scope": "rule", "title": "x"}, "path": ["p", "q"]},
            {"annotations": {"scope": "document", "title": "x"}, "path": ["p", "q"]},
        ],
        r={},
    ),
    "a chain through packages": means(
        "q := data.p.a.q(1)",
        "# METADATA\n# title: above\n# scope: subpackages\npackage p\n",
        "# METADATA\n# title: of the package\npackage p.a\n\n# METADATA\n# title: x\n# schemas:\n"
        "# - input: schema.foo\n# - data.x.y: {type: object}\n# labels: {a: 1}\n# entrypoint: true\n"
        "q(x) := rego.metadata.chain()\n",
        a={},
        q=[
            {"path": ["p", "a", "q"]},
            {
                "annotations": {
                    "entrypoint": True,
                    "labels": {"a": 1},
                    "schemas": [
                        {"path": ["input"], "schema": ["schema", "foo"]},
                        {"definition": {"type": "object"}, "path": ["data", "x", "y"]},
                    ],
                    "scope": "document",
                    "title": "x",
                },
                "path": ["p", "a", "q"],
            },
            {"annotations": {"scope": "package", "title": "of the package"}, "path": ["p", "a"]},
            {"annotations": {"scope": "subpackages", "title": "above"}, "path": ["p"]},
        ],
    ),
    "an else": means(
        "# METADATA\n# title: x\n"
        "q := 1 if { input.x == 2 } else := [rego.metadata.rule(), rego.metadata.chain()] if { true }",
        q=[{}, [{"path": ["p", "q"]}]],
    ),
    "inside of terms": means(
        "# METADATA\n# title: x\n"
        "q contains [a, b] if { a := [y | y := rego.metadata.rule().title]; b := rego.metadata.chain()[0].path }",
        q=[[["x"], ["p", "q"]]],
    ),
    "paths that are not constant": means(
        '# METADATA\n# title: x\nq[k].r := rego.metadata.chain() if k := "a"\n# METADATA\n# title: x\n'
        'a.b["c d"][1] := rego.metadata.chain()',
        a={
            "b": {"c d": {"1": [{"annotations": {"scope": "rule", "title": "x"}, "path": ["p", "a", "b", "c d", "1"]}]}}
        },
        q={"a": {"r": [{"annotations": {"scope": "rule", "title": "x"}, "path": ["p", "q"]}]}},
    ),
    "a condition": fails(
        "rego_type_error",
        "# METADATA\n# title: x\nq if not rego.metadata.rule()\nr if not rego.metadata.rule().title\n"
        "s if rego.metadata.rule()",
    ),
    "an output": means("# METADATA\n# title: x\nq := y if rego.metadata.rule(y)", q={"scope": "rule", "title": "x"}),
    "every rule by itself": means(
        "# METADATA\n# title: x\ndefault q := 1\n# METADATA\n# title: b\nq := rego.metadata.rule() if true",
        q={"scope": "rule", "title": "b"},
    ),
    "a rule called rego": means('rego := {"metadata": 1}\nq := rego.metadata', q=1, rego={"metadata": 1}),
    "lines below a blank line": means(
        "# METADATA\n# title: x\n\n# other\nq := rego.metadata.rule()", q={"scope": "rule", "title": "x"}
    ),
    "an indented block": means("q := rego.metadata.rule() if {\n\t# METADATA\n\t# title: x\n\ttrue\n}", q={}),
    "a member that is not there": fails("rego_type_error", "# METADATA\n# title: x\nq if rego.metadata.rule().titel"),
    "not YAML": fails("rego_parse_error", "# METADATA\n# title: [\nq := 1"),
    "a tab": fails("rego_parse_error", "# METADATA\n#   title: x\n# \tdescription: y\nq := 1"),
    "a blank line": fails("rego_parse_error", "# METADATA\n\nq := 1"),
    "a list": fails("rego_parse_error", "# METADATA\n# - a\nq := 1"),
    "a text": fails("rego_parse_error", "# METADATA\n# title:x\nq := 1"),
    "a key twice": fails("rego_parse_error", "# METADATA\n# title: x\n# title: y\nq := 1"),
    "an unknown scope": fails("rego_parse_error", "# METADATA\n# scope: foo\nq := 1"),
    "nothing below": fails("rego_parse_error", "q := 1\n# METADATA\n# title: x"),
    "nothing below in a body": fails("rego_parse_error", "q if {\n# METADATA\n# title: x\n\ttrue\n}"),
    "an import below": fails("rego_parse_error", "# METADATA\n# title: x\nimport data.foo\nq := 1"),
    "the scope of a package above a rule": fails(
        "rego_parse_error", "# METADATA\n# title: x\n# scope: package\nq := 1"
    ),
    "the scope of a rule above a package": fails(
        "rego_parse_error", "q := 1", "# METADATA\n# title: x\n# scope: rule\npackage p\n"
    ),
    "a package twice": fails(
        "rego_type_error", "q := 1", "# METADATA\n# title: x\npackage p\n", "# METADATA\n# title: x\npackage p\n"
    ),
    "a document twice": fails(
        "rego_type_error",
        "# METADATA\n# title: x\n# scope: document\nq := 1 if input.x\n# METADATA\n# title: x\n"
        "# scope: document\nq := 1",
    ),
    "an entrypoint of a rule": fails("rego_parse_error", "# METADATA\n# entrypoint: true\n# scope: rule\nq := 1"),
    "a title that is no text": fails("rego_parse_error", "# METADATA\n# title: {a: 1}\nq := 1"),
    "organizations that are no list": fails("rego_parse_error", "# METADATA\n# organizations: x\nq := 1"),
    "a related resource without a URL": fails("rego_parse_error", "# METADATA\n# related_resources: [{}]\nq := 1"),
    "a related resource that is no URL": fails("rego_parse_error", '# METADATA\n# related_resources: ["::a"]\nq := 1'),
    "a flag that is no boolean": fails("rego_parse_error", "# METADATA\n# entrypoint: 'x'\nq := 1"),
    "an author without a name": fails("rego_parse_error", '# METADATA\n# authors: [""]\nq := 1'),
    "custom that is no mapping": fails("rego_parse_error", "# METADATA\n# custom: x\nq := 1"),
}

#: Base data at the path of a rule.
BASE_DATA = {
    "an object": fails(
        "rego_compile_error", 'limits[k] := v if some k, v in {"a": 1}', data={"p": {"limits": {"b": 2}}}
    ),
    "a value": fails("rego_compile_error", "limits := 1", data={"p": {"limits": 2}}),
    "an undefined rule": fails("rego_compile_error", "limits := 1 if input.no", data={"p": {"limits": 2}}),
    "other members of the package": means("limits := 1", data={"p": {"other": 2}}, limits=1, other=2),
    "a function": fails("rego_compile_error", "f(x) := 1", data={"p": {"f": 2}}),
    "a set": fails("rego_compile_error", "s contains 1", data={"p": {"s": [1]}}),
    "a value above a rule": fails("rego_compile_error", "a.b.c := 1", data={"p": {"a": {"b": 2}}}),
    "a value next to a rule": means("a.b.c := 1", data={"p": {"a": {"b": {"d": 2}}}}, a={"b": {"c": 1, "d": 2}}),
    "a value at the place of the package": fails("rego_compile_error", "r := 1", data={"p": [1]}),
    "a value at the place of a package without rules": means("r := 1", "package q.s\n", data={"q": 5}, r=1),
    "variables in the head": fails("rego_compile_error", 'a[x].c := 1 if x := "b"', data={"p": {"a": {"z": 1}}}),
    "keys that are no strings": means("a[1] := 1", data={"p": {"a": {"z": 1}}}, a={"1": 1, "z": 1}),
    "null": fails("rego_compile_error", "r := 1", data={"p": {"r": None}}),
}

TABLES = {
    "empty arguments": EMPTY_ARGUMENTS,
    "old names": OLD_NAMES,
    "parts": PARTS,
    "annotations": ANNOTATIONS,
    "base data": BASE_DATA,
}
MEANINGS = {f"{title}: {name}": meaning for title, table in TABLES.items() for name, meaning in table.items()}


@pytest.mark.parametrize("name", MEANINGS)
def test_a_program_means_what_is_written(name: str) -> None:
    """Its value, or what is wrong with it."""
    meaning: Meaning = MEANINGS[name]
    assert evaluate_ours(meaning) == (meaning.value, meaning.codes)


@pytest.mark.slow
@pytest.mark.parametrize("name", MEANINGS)
def test_a_program_means_the_same_in_opa(name: str, opa: Path) -> None:
    """What is written here is not only what this engine gives."""
    meaning: Meaning = MEANINGS[name]
    assert evaluate_with_opa(opa, meaning) == (meaning.value, meaning.codes)
