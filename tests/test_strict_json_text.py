"""Strict JSON: one meaning per document, or a refusal with file, place and remedy."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyeng.errors import InputError
from policyeng.strict.json_pointer import escaped
from policyeng.strict.json_text import is_json, lines_of, parse_json, shortened

TEXT = st.text(st.characters(codec="utf-8"))
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner))

REFUSED = {
    "nothing": (b"", "s.json:1:1: the file is empty; give a JSON document"),
    "only blanks": (b" \n ", "s.json:2:2: the file is empty; give a JSON document"),
    "a byte order mark": (b"\xef\xbb\xbf{}", "s.json:1:1: begins with a byte order mark; save it as UTF-8 without"),
    "UTF-16, little end first": ("{}".encode("utf-16"), "s.json:1:1: encoded as UTF-16 or UTF-32; save it as UTF-8"),
    "UTF-16, big end first": (b"\xfe\xff\x00{\x00}", "s.json:1:1: encoded as UTF-16 or UTF-32; save it as UTF-8"),
    "bytes that are not UTF-8": (b'{"a":\n"\xff"}', "s.json:2:2: /a: not valid UTF-8; save it as UTF-8"),
    "an encoded surrogate": (b'"\xed\xa0\x80"', "s.json:1:2: not valid UTF-8; save it as UTF-8"),
    "a lone surrogate": (b'"\\ud800"', "not valid JSON; correct the syntax there"),
    "an unclosed object": (b'{"a": 1', "s.json:1:8: /a: not valid JSON; correct the syntax there"),
    "a comma too many": (b"[1,\n]", "s.json:2:1: /1: not valid JSON; correct the syntax there"),
    "a key twice": (b'{"a": {"b": 1,\n"b": 2}}', "s.json:2:1: /a/b: this key stands twice in one object; remove one"),
    "a key twice, once escaped": (b'{"a": 1, "\\u0061": 2}', "/a: this key stands twice in one object; remove one"),
    "NaN": (b"[1,\n NaN]", "s.json:2:2: /1: NaN and Infinity are not JSON; write a number or null"),
    "Infinity": (b"[Infinity]", "s.json:1:2: /0: NaN and Infinity are not JSON; write a number or null"),
    "a whole number beyond 64 bits": (
        b"[18446744073709551616]",
        "s.json:1:2: /0: this number does not fit a double, or 64",
    ),
    "a number beyond doubles": (b"[1e999]", "s.json:1:2: /0: this number does not fit a double, or 64 bits"),
    "more text": (b"{}\nx", "s.json:2:1: more text follows the JSON document; keep one document per file"),
    "JSON Lines": (b"{}\n{}", "s.json:2:1: several JSON documents one after another, as in JSON Lines; make them one"),
    "UTF-16 without a mark": ("{}".encode("utf-16-le"), "s.json:1:1: encoded as UTF-16 or UTF-32; save it as UTF-8"),
    "129 levels": (b"[" * 129 + b"]" * 129, "s.json:1:129: /0/0"),
    "a million open brackets": (b"[" * 1_000_000, "nested deeper than 128 levels; flatten the document"),
}


@pytest.mark.parametrize(("content", "said"), REFUSED.values(), ids=REFUSED)
def test_what_has_no_single_meaning_is_refused(content: bytes, said: str) -> None:
    """Every refusal names the file, the line and column or the pointer, and the remedy."""
    with pytest.raises(InputError) as refused:
        parse_json(content, "s.json")

    assert said in str(refused.value)
    assert str(refused.value).startswith("s.json:")
    assert refused.value.remedy


def test_a_document_over_the_limit_is_refused() -> None:
    """The limit is an argument, and exactly the limit is still read."""
    assert parse_json(b"[1]", "s.json", max_bytes=3) == [1]
    with pytest.raises(InputError, match=r"^s\.json: larger than the limit of 2 bytes; split it, or raise the limit$"):
        parse_json(b"[1]", "s.json", max_bytes=2)


def test_exactly_128_levels_are_read() -> None:
    """The limit of the depth is inclusive."""
    parse_json(b"[" * 128 + b"]" * 128, "s.json")


@given(VALUES)
def test_every_json_value_is_read_as_it_is(value: object) -> None:
    """What the standard library writes is read back equal."""
    assert parse_json(json.dumps(value).encode(), "s.json") == value


@given(st.binary() | st.text(alphabet='{}[]":,\\u0123456789eE.-+truefalsn \n\ufeff').map(str.encode))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    """Nothing but our own error comes out, and what is read is what the standard library reads."""
    try:
        document = parse_json(content, "s.json")
    except InputError:
        return
    assert document == json.loads(content, parse_int=_integer)


def _integer(digits: str) -> int | float:
    """Integers beyond 64 bits are read as doubles."""
    return int(digits) if -(2**63) <= int(digits) < 2**64 else float(digits)


def test_lines_are_those_of_the_values() -> None:
    """A pointer that leads nowhere is given the first line."""
    content = b'{"a": [\n1,\n{"b/c":\n2}]}'

    assert lines_of(content, ["", "/a", "/a/1", "/a/1/b~1c", "/z"]) == [1, 1, 3, 4, 1]
    assert lines_of(content, []) == []


def test_user_text_is_made_fit_for_messages() -> None:
    """Long text is cut, control characters are shown, keys are escaped as RFC 6901 says."""
    assert shortened("x" * 100) == "x" * 80 + "…"
    assert shortened("a\x1b[0m") == "a\\u001b[0m"
    assert escaped("a~b/c") == "a~0b~1c"


def test_is_json_goes_deeper_when_asked() -> None:
    """A list of documents of the greatest depth is one level deeper than each of them."""
    deepest = b"[" * 128 + b"]" * 128
    assert is_json(deepest)
    assert not is_json(b"[" + deepest + b"]")
    assert is_json(b"[" + deepest + b"]", deeper=1)
    assert not is_json(b"[NaN]", deeper=1)
