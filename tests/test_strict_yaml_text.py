"""Strict YAML: the values that JSON has, or a refusal with file, place and remedy."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from policyeng.errors import InputError
from policyeng.parsing.yaml_text import parse_yaml

TEXT = st.text(st.characters(codec="ascii", min_codepoint=32))
SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False) | TEXT
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4), max_leaves=8
)

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 9)
)
REFUSED = {
    "nothing": (b"", "e.yaml: the file is empty; give a YAML document"),
    "only a comment": (b"# x\n", "e.yaml: the file is empty; give a YAML document"),
    "a byte order mark": (b"\xef\xbb\xbfa: 1", "e.yaml:1:1: begins with a byte order mark; save it as UTF-8"),
    "UTF-16": ("a: 1".encode("utf-16"), "e.yaml:1:1: encoded as UTF-16 or UTF-32; save it as UTF-8"),
    "bytes that are not UTF-8": (b"a: 1\nb: \xff", "e.yaml:2:4: not valid UTF-8; save it as UTF-8"),
    "a control character": (
        b"a: 1\nb: \x00",
        "e.yaml:2:4: not valid YAML (the character `\\u0000` is not allowed)",
    ),
    "broken syntax": (b"a: [1,\nb: {", "e.yaml:3:1: not valid YAML ("),
    "a tab": (b"a:\n\t- 1", "e.yaml:2:1: not valid YAML (found character that cannot start any token); correct it"),
    "a key twice": (b"a:\n  b: 1\n  b: 2", "e.yaml:3:3: /a/b: duplicate key `b`, first in line 2; remove one"),
    "a tag": (b"a: !!python/object:x 1", "the tag `tag:yaml.org,2002:python/object:x` is not read; write the value"),
    "a tagged key": (b"!!str a: 1", "e.yaml:1:1: a key that is not plain text; write the key as text"),
    "a list as key": (b"? [1]\n: 2", "e.yaml:1:3: a key that is not plain text; write the key as text"),
    "a merge key": (b"a: &x {b: 1}\nc:\n  <<: *x", "e.yaml:3:3: /c: merge keys (`<<`) are not read; write the keys"),
    "an alias to nothing": (b"a: *x", "e.yaml:1:4: /a: the alias `*x` refers to nothing before it, or to itself"),
    "an alias into itself": (b"a: &x [*x]", "e.yaml:1:8: /a/0: the alias `*x` refers to nothing before it, or to"),
    "a bomb of aliases": (BOMB.encode(), "more than 1000000 values once aliases are followed; write less"),
    "a second document": (b"a: 1\n---\nb: 2", "e.yaml:2:1: a second YAML document; keep one document per file"),
    "infinity": (b"a: -.inf", "e.yaml:1:4: /a: NaN and infinity are not read; write a number or null"),
    "NaN": (b"a: .NaN", "e.yaml:1:4: /a: NaN and infinity are not read; write a number or null"),
    "a number beyond doubles": (b"a: 1e999", "/a: the number `1e999` is too large; write it in quotes"),
    "an integer beyond 64 bits": (b"a: 18446744073709551616", "/a: the number `18446744073709551616` is too large"),
    "129 levels": (b"[" * 129, "nested deeper than 128 levels; flatten the document"),
    "100,000 open brackets": (b"[" * 100_000, "nested deeper than 128 levels; flatten the document"),
}


@pytest.mark.parametrize(("content", "message"), REFUSED.values(), ids=REFUSED)
def test_what_has_no_single_meaning_is_refused(content: bytes, message: str) -> None:
    """Every refusal names the file, the line and column, and the remedy."""
    with pytest.raises(InputError) as refused:
        parse_yaml(content, "e.yaml")

    assert message in str(refused.value)
    assert str(refused.value).startswith("e.yaml:")
    assert refused.value.remedy


def test_a_document_over_the_limit_is_refused() -> None:
    """The limit is an argument."""
    with pytest.raises(InputError, match=r"^e\.yaml: larger than the limit of 3 bytes; split it, or raise the limit$"):
        parse_yaml(b"a: 1", "e.yaml", max_bytes=3)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2026-11-01", "2026-11-01"),
        ("2026-11-01T00:00:00Z", "2026-11-01T00:00:00Z"),
        ("12:30:45", "12:30:45"),
        ("no", "no"),
        ("on", "on"),
        ("1_000", "1_000"),
        ("1.2.3", "1.2.3"),
        ("true", True),
        ("False", False),
        ("~", None),
        ("", None),
        ("null", None),
        ("12", 12),
        ("-7", -7),
        ("0o17", 15),
        ("0xff", 255),
        ("1.5", 1.5),
        ("-.5e1", -5.0),
        ("'12'", "12"),
        ('"true"', "true"),
        ("|\n  two\n  lines", "two\nlines\n"),
        ("[a, {b: 1}]", ["a", {"b": 1}]),
    ],
)
def test_plain_words_resolve_as_in_yaml_1_2(text: str, value: object) -> None:
    """Times, versions and words such as `no` stay text; only the core schema's words have another meaning."""
    assert parse_yaml(f"key: {text}\n".encode(), "e.yaml").value == {"key": value}


def test_keys_are_always_text() -> None:
    """A key that looks like a number or a truth value is what the user wrote."""
    assert parse_yaml(b"8080: a\ntrue: b\n", "e.yaml").value == {"8080": "a", "true": "b"}


def test_aliases_within_reason_are_followed() -> None:
    """An anchor gives the same value again."""
    assert parse_yaml(b"a: &x [1, 2]\nb: *x\n", "e.yaml").value == {"a": [1, 2], "b": [1, 2]}


def test_lines_lead_to_the_key_of_an_entry() -> None:
    """A value that begins below its key is found at the key."""
    lines = parse_yaml(b"# comment\nlist:\n  - id: 1\n    when:\n      later: 2\n", "e.yaml").places

    assert dict(lines) == {
        "": (2, 1),
        "/list": (2, 1),
        "/list/0": (3, 5),
        "/list/0/id": (3, 5),
        "/list/0/when": (4, 5),
        "/list/0/when/later": (5, 7),
    }


@given(VALUES)
def test_json_is_yaml(value: object) -> None:
    """A JSON document read as YAML gives the same."""
    assert parse_yaml(json.dumps(value).encode(), "e.yaml").value == value


@given(st.binary() | st.text(alphabet="ab:-[]{}&*!|>'\"#?, \n~.0").map(str.encode))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    """Nothing but our own error comes out."""
    with suppress(InputError):
        parse_yaml(content, "e.yaml")


def test_the_pure_python_loader_reads_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where PyYAML has no C library, nothing changes."""
    content = b"a: &x [1, 'two', 3.5]\nb: *x\nc: {d: no, e: ~}\n"
    before = parse_yaml(content, "e.yaml")
    monkeypatch.setattr("policyeng.parsing.yaml_text._LOADER", yaml.SafeLoader)

    assert parse_yaml(content, "e.yaml") == before
