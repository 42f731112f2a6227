"""The builtins of encodings give what OPA gives."""

from __future__ import annotations

import base64
import json
import random
import re
from pathlib import Path

import pytest

from policyeng import rego
from policyeng.rego.budget import BudgetExceededError
from policyeng.rego.builtins import BuiltinError, load_function
from policyeng.rego.values import Value
from tests.effort import effort
from tests.growth import assert_linear
from tests.rego_oracle import Call, find_differences, limited, wrong_operands

NAMES = [
    "base64.encode",
    "base64.decode",
    "base64.is_valid",
    "base64url.encode",
    "base64url.encode_no_pad",
    "base64url.decode",
    "hex.encode",
    "hex.decode",
    "json.unmarshal",
    "json.is_valid",
    "json.marshal",
    "urlquery.encode",
    "urlquery.decode",
    "urlquery.encode_object",
    "urlquery.decode_object",
    "uri.parse",
    "uri.is_valid",
    "uuid.parse",
    "yaml.unmarshal",
    "yaml.is_valid",
    "yaml.marshal",
]
TEXTS = [
    "",
    "a",
    "é",
    "😀",
    "\x00",
    "\x7f",
    "\ufeff",
    "<>&",
    "\u2028\u2029",
    "a b+c%d/e?f=g&h;i~j_k-l.m*'()",
    "ÿ" * 5,
    "a\nb\r\n\t",
    "\u0085",
    '\\"',
    "�",
]
NUMBERS: list[Value] = [
    0,
    1,
    -1,
    1.5,
    1e20,
    1e21,
    1e-7,
    123456789012345678901234567890,
    0.1,
    -2.5e-10,
    1 << 63,
    1 << 64,
    1234567.5,
]
JSON = [
    '{"a":1}',
    '[1,2,{"b":null}]',
    '"x\\u00e9\\ud83d\\ude00"',
    '"\\ud800"',
    '"\\ud800\\u0041"',
    '"\\udc00\\ud800\\udc00"',
    '{"a":1,"a":2}',
    "1 null",
    "1null",
    "null null x",
    "1 2",
    "1 nul",
    "nullnull",
    "NaN",
    "Infinity",
    "-Infinity",
    "-",
    "-0",
    "01",
    "1.",
    ".5",
    "1e5",
    "1E+5",
    "1e400",
    "[1,]",
    '{"a":}',
    "{,}",
    '"\x01"',
    '"\t"',
    '"\\x"',
    '"\\u12"',
    "\ufeff1",
    " \t\r\n1 ",
    "\x0b1",
    "tru",
    "true",
    "[[[[]]]]",
    "1.0",
    "100000000000000000000",
    '"\\/"',
    "'a'",
    '{"a":1}}',
    "1]",
    "1,",
    "// x\n1",
    '{"\\ud800":1,"\\udbff":2}',
    "123abc",
    "1 true",
    "1 {",
    "1 null]",
    "{}null",
]
URIS = [
    "http://a.b/c?d=e#f",
    "//host/p",
    "///p",
    "mailto:x@y",
    "http://u:p@h:80/x",
    "http://[::1]:80/",
    "http://[fe80::1%25en0]/",
    "http://[fe80::1%25%41]/",
    "http://[1.2.3.4]/",
    "http://[::1",
    "http://a:b/",
    "http://a:b:80/",
    "x://a:b:80/",
    "http://a b/",
    "http://a%20b/",
    "http://a%25b/",
    "http://%C3%A9/",
    "http://é/",
    "a:b",
    "1a:b",
    ":a",
    "a/b:c",
    "?",
    "#",
    "?x",
    "#x#y",
    "/%zz",
    "/%2f",
    "http://h/%2F?%zz",
    "http://h#%zz",
    "HTTP://H",
    "*",
    "*?a",
    "http://h:",
    "http://h??",
    "http://<h>",
    "http://h|",
    "http://us er@h",
    "http://u%zz@h",
    "http://a@b@c",
    "\x7f",
    "http://h/\x01",
    "http://h#\x01",
    "x://[::1]x",
    "http://[::ffff:1.2.3.4]",
    "http://[::1]]",
    "http://a[b]",
]
URI_PARTS = [
    "http:",
    "x:",
    "//",
    "a",
    "@",
    ":",
    "80",
    "[",
    "::1",
    "]",
    "/",
    "?",
    "#",
    "%20",
    "%25",
    "%C3%A9",
    "é",
    "*",
    "%",
]
QUERY_PARTS = ["a", "b", "=", "&", ";", "%20", "%", "%zz", "%C3%A9", "%ff", "+", "é", " ", "=&"]
QUERY_VALUES: list[Value] = ["x", "y z", ["a", "b"], [], {"&"}, ["é", 1], 1, None, {}]
SCALARS = [
    "a",
    "1",
    "0x1F",
    "0o17",
    "0b101",
    "017",
    "08",
    "1_000",
    "-5",
    "+3",
    "1.0",
    "1e3",
    ".5",
    "-.5",
    "1.",
    "1e400",
    "~",
    "null",
    "",
    "true",
    "True",
    "yes",
    "'q'",
    '"d\\n"',
    '"\\x41\\u00e9"',
    "<<",
    "2020-01-01",
    "2020-01-01T00:00:00Z",
    "12:30:45",
    ".inf",
    ".nan",
    "!!str 1",
    '!!int "5"',
    "!!float 3",
    "!!bool yes",
    "!foo x",
    "!!binary aGk=",
    "!!binary x",
    "! a",
    "!!null ''",
    "0b-1",
    "-0b1",
    "-0b-1",
    "0o8",
    "9223372036854775808",
    "18446744073709551616",
    "-9223372036854775809",
    "+18446744073709551615",
    "1e21",
    "1e20",
    "😀",
    "a b",
    "a: b",
    "a #c",
    "- x",
    "[1, 2]",
    "{a: 1, a: 2}",
    "[a, [b]]",
    "{}",
    "&x 1",
    "*x",
    "&y [1]",
    "|\n  l1\n  l2",
    "|+\n  l\n\n",
    ">\n  f1\n  f2\n\n  f3",
    '"a\\\n  b"',
    "%x",
    "@x",
    "a:b",
    "[a:b]",
    "{a, b: 1}",
    "[a: 1]",
    "1_2.3_4",
    "1e-400",
    "00",
    "-0.0",
    "1e-7",
    "0.1",
    "123456789.5",
    "\t",
    '"\\ud800"',
    '"\\/"',
    "!!set {a}",
    "!!seq {a: 1}",
    "!<tag:yaml.org,2002:int> 3",
    "\u0085",
]
KEYS = [
    "a",
    "b",
    "c",
    "1",
    '"1"',
    "0x1",
    "1.0",
    "true",
    '"true"',
    "null",
    "<<",
    '"<<"',
    "2020-01-01",
    "1e10",
    "1234567.5",
    ".inf",
    ".nan",
    "[1]",
    "{a: 1}",
    "&k k",
    "*k",
    "!!str a",
    "0.1",
    "3.4e38",
    "1e39",
    "1.17549435e-38",
    "1_0",
    "yes",
    "",
]
MERGES = ["*m1", "*m2", "[*m1, *m2]", "{z: 1, a: 9}", "[{y: 1}, *m1]", "[{y: 1},{y: 2, x: 1}]", "1", "*s1"]
#: Their keys are no others, because OPA takes any of two keys of the same text.
ANCHORS = "m: &m1 {a: 1, b: 2, 7: x}\nn: &m2\n  b: 3\n  false: 4\nt: &s1 [1]\n"


def draw_value(draw: random.Random, depth: int = 3) -> Value:
    """A value of JSON."""
    kind = draw.random()
    if depth == 0 or kind < 0.4:
        return draw.choice(
            [None, True, False, draw.choice(TEXTS), draw_text(draw), draw.choice(NUMBERS), draw.random()]
        )
    if kind < 0.7:
        return [draw_value(draw, depth - 1) for _ in range(draw.randint(0, 3))]
    return {
        draw.choice(["a", "<", "é", draw_text(draw)]): draw_value(draw, depth - 1) for _ in range(draw.randint(0, 3))
    }


def draw_text(draw: random.Random) -> str:
    """Characters that the encodings treat in different ways."""
    return "".join(draw.choice('abcXYZ019 é😀\x00\n<>&%+/=_-.~"\\\u2028:#') for _ in range(draw.randint(0, 12)))


def changed(draw: random.Random, text: str, characters: str) -> str:
    """A text with up to two changes."""
    found = list(text)
    for _ in range(draw.choice([0, 0, 1, 2])):
        place = draw.randint(0, len(found))
        found[place : place + draw.randint(0, 1)] = draw.choice([*characters, ""])
    return "".join(found)


def draw_block(draw: random.Random, indent: int, depth: int) -> str:
    """A value in the blocks of YAML."""
    kind = draw.random()
    pad = " " * indent
    if depth == 0 or kind < 0.35:
        return " " + draw.choice(SCALARS).replace("\n", f"\n{pad}") + "\n"
    text = "\n" if indent else ""
    if kind > 0.7:
        return text + "".join(f"{pad}-{draw_block(draw, indent + 2, depth - 1)}" for _ in range(draw.randint(1, 3)))
    for _ in range(draw.randint(1, 4)):
        key = draw.choice(KEYS[:8] if draw.random() < 0.6 else KEYS)
        merge = key == "<<" or draw.random() < 0.12
        text += (
            f"{pad}<<: {draw.choice(MERGES)}\n" if merge else f"{pad}{key}:{draw_block(draw, indent + 2, depth - 1)}"
        )
    return text


def draw_yaml(draw: random.Random) -> str:
    """A YAML document, most often a valid one."""
    text = draw_block(draw, 0, draw.randint(0, 3))
    if draw.random() < 0.35:
        text = f"{ANCHORS}z:{draw_block(draw, 2, 2)}"
    if draw.random() < 0.1:
        text = draw.choice(["---\n", "--- ", "%YAML 1.2\n---\n", "%YAML 1.1\n---\n", "# c\n", "\ufeff"]) + text
    if draw.random() < 0.1:
        text += draw.choice(["---\n", "...\n", "--- a\n", "---\n*m1\n", "--- [\n", "---\n- *y\n", "...\n---\nb: 1\n"])
    return changed(draw, text, " \n:-[]{}#&*!|>'\"%\t,?") if draw.random() < 0.15 else text


def test_every_builtin_takes_every_type_as_opa_does(opa: Path) -> None:
    """Odd texts, values of each type and drawn texts."""
    draw = random.Random(9)  # noqa: S311  # the same cases every time
    cases: list[Call] = wrong_operands("json.marshal_with_options", [1], {"indent": " "})
    for name in NAMES:
        cases += wrong_operands(name, None)
        cases += [(name, [text]) for text in [*TEXTS, *(draw_text(draw) for _ in range(effort(15, 200)))]]
    assert find_differences(opa, cases) == []


def test_values_are_written_as_by_opa(opa: Path) -> None:
    """As JSON, with an indentation, and as YAML."""
    draw = random.Random(10)  # noqa: S311  # the same cases every time
    cases: list[Call] = [("yaml.marshal", [{"k" * 130: {"a": 1}, "a\nb": "c\n", "a10": 1, "a9": 2, "a01b": [[], {}]}])]
    options: dict[str, list[Value]] = {"prefix": ["", ">", 1], "indent": ["", "  ", None], "pretty": [True, False, 1]}
    for _ in range(effort(300, 5000)):
        chosen = {name: draw.choice(values) for name, values in options.items() if draw.random() < 0.5}
        chosen |= {"other": 1} if draw.random() < 0.05 else {}
        value = draw_value(draw)
        cases += [("json.marshal", [value]), ("yaml.marshal", [value]), ("json.marshal_with_options", [value, chosen])]
    assert find_differences(opa, cases) == []


def test_texts_are_read_as_by_opa(opa: Path) -> None:
    """JSON, Base64, hexadecimal digits, queries, URIs and UUIDs, many of them not valid."""
    draw = random.Random(11)  # noqa: S311  # the same cases every time
    cases: list[Call] = [
        (name, [text]) for name in ("json.unmarshal", "json.is_valid", "yaml.unmarshal") for text in JSON
    ]
    cases += [("uri.parse", [text]) for text in URIS]
    cases += [("urlquery.decode_object", ["&" * 9999]), ("urlquery.decode_object", ["&" * 10_000])]
    for _ in range(effort(120, 2000)):
        text = changed(draw, json.dumps(draw_value(draw)), '[]{},:"\\0123eE+-.ntu ')
        cases += [("json.unmarshal", [text]), ("json.is_valid", [text])]
        code = changed(draw, base64.b64encode(draw.randbytes(draw.randint(0, 9))).decode(), "Ag/+-_=\n")
        cases += [("base64.decode", [code]), ("base64.is_valid", [code]), ("base64url.decode", [code])]
        cases.append(("hex.decode", [changed(draw, draw.randbytes(4).hex(), "09afAFg ")]))
        query = "".join(draw.choice(QUERY_PARTS) for _ in range(draw.randint(0, 6)))
        cases += [("urlquery.decode", [query]), ("urlquery.decode_object", [query])]
        parameters = {draw.choice(["a", "é ", "&"]): draw.choice(QUERY_VALUES) for _ in range(draw.randint(0, 3))}
        cases.append(("urlquery.encode_object", [parameters]))
        uri = "".join(draw.choice(URI_PARTS) for _ in range(draw.randint(0, 8)))
        cases += [("uri.parse", [uri]), ("uri.is_valid", [changed(draw, draw.choice(URIS), "a1:/?#[]@%<>^ é")])]
        digits = draw.randbytes(16).hex()
        digits = digits[:12] + draw.choice("112247f") + digits[13:]
        uuid = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
        form = draw.choice(["{}", "{}", "urn:uuid:{}", "URN:UUID:{}", "x{}y", "é{}", "{}0", "urn-uuid:{}"])
        cases.append(("uuid.parse", [form.format(draw.choice([uuid, uuid, digits, uuid.upper()]))]))
    assert find_differences(opa, cases) == []


def test_yaml_is_read_as_by_opa(opa: Path) -> None:
    """Scalars in each context, keys of each kind, merges, aliases, several documents, and texts that are not YAML."""
    draw = random.Random(12)  # noqa: S311  # the same cases every time
    cases: list[Call] = [("yaml.unmarshal", [form + text]) for text in SCALARS for form in ("", "k: ", "- ")]
    cases += [("yaml.unmarshal", [f"{key}: 1\n{draw.choice(KEYS)}: 2\n"]) for key in KEYS]
    for _ in range(effort(500, 10_000)):
        text = draw_yaml(draw)
        # The parser does not take a bracket for a part of a tag, as go-yaml does.
        if not re.search(r"!\S*[\[\]{},]", text):
            cases.append((draw.choice(["yaml.unmarshal", "yaml.unmarshal", "yaml.is_valid"]), [text]))
    assert find_differences(opa, cases) == []


def test_aliases_that_repeat_too_much_are_refused() -> None:
    """As by go-yaml: each of nine lines has nine times the line before."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9)]
    with pytest.raises(BuiltinError, match="excessive aliasing"):
        load_function("yaml.unmarshal")("\n".join(lines))
    assert load_function("yaml.is_valid")("a: &a [*a]") is False


def test_deep_texts_are_refused() -> None:
    """Without an error of Python's."""
    for name, text in (("json.unmarshal", "[" * 100_000), ("yaml.unmarshal", "[" * 5000 + "]" * 5000)):
        program = rego.compile({"m.rego": f"package p\nr := {name}(input)\n"})
        with pytest.raises(rego.EvaluationError, match=r"m\.rego:2.*nested too deeply"):
            program.query("data.p.r", text)


def test_an_indentation_is_limited() -> None:
    """Before it is made."""
    with limited(10, 100_000), pytest.raises(BudgetExceededError):
        load_function("json.marshal_with_options")([[[[1] * 100]]], {"indent": " " * 1000})


@pytest.mark.parametrize("name", ["json.unmarshal", "yaml.unmarshal"])
def test_reading_takes_linear_time(name: str) -> None:
    """Many strings with escapes and many keys."""
    entry = '"\\u00e9\\"a{}": ["b c", 1.5]'
    assert_linear(lambda size: load_function(name)(f"{{{', '.join(map(entry.format, range(size)))}}}"), 1000)
