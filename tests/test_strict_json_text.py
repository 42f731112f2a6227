"""Strict JSON: one meaning per document, or a refusal with file, place and remedy."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from unittest.mock import patch

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyeng.errors import InputError
from policyeng.parsing import json_places
from policyeng.parsing.json_places import JsonPlaces, lines_of
from policyeng.parsing.json_pointer import escaped
from policyeng.parsing.json_text import (
    MAX_DEPTH,
    find_fault,
    is_within,
    parse_json,
    require_readable,
    shortened,
)
from tests.growth import assert_linear

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
    "a key twice": (b'{"a": {"b": 1,\n"b": 2}}', "s.json:2:1: /a/b: duplicate key in one object; remove one"),
    "a key twice, once escaped": (b'{"a": 1, "\\u0061": 2}', "/a: duplicate key in one object; remove one"),
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


@pytest.mark.parametrize(("content", "message"), REFUSED.values(), ids=REFUSED)
def test_what_has_no_single_meaning_is_refused(content: bytes, message: str) -> None:
    """Every refusal names the file, the line and column or the pointer, and the remedy."""
    with pytest.raises(InputError) as refused:
        parse_json(content, "s.json")

    assert message in str(refused.value)
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
    """Texts of the standard library are read back equal."""
    assert parse_json(json.dumps(value).encode(), "s.json") == value


@given(st.binary() | st.text(alphabet='{}[]":,\\u0123456789eE.-+truefalsn \n\ufeff').map(str.encode))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    """Nothing but our own error comes out, and the value is that of the standard library."""
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
    """Long text is cut, control characters are shown, keys are escaped as in RFC 6901."""
    assert shortened("x" * 100) == "x" * 80 + "…"
    assert shortened("a\x1b[0m") == "a\\u001b[0m"
    assert escaped("a~b/c") == "a~0b~1c"


LISTS = {128: orjson.loads(b"[" * 128 + b"]" * 128), 129: orjson.loads(b"[" * 129 + b"]" * 129)}


def test_the_depth_of_values_is_limited() -> None:
    """A list of values of the greatest depth is one level deeper than each value."""
    assert is_within(LISTS[128], MAX_DEPTH)
    assert not is_within(LISTS[129], MAX_DEPTH)
    assert is_within(LISTS[129], MAX_DEPTH + 1)
    assert not is_within({"a": LISTS[128]}, MAX_DEPTH)


def test_a_too_deep_document_is_refused_with_its_place() -> None:
    """A value that orjson writes and `parse_json` refuses is refused as that."""
    require_readable(LISTS[128], orjson.dumps(LISTS[128]), "r")
    with pytest.raises(InputError, match=r"^r:1:129: (/0)+….*nested deeper than 128 levels"):
        require_readable(LISTS[129], orjson.dumps(LISTS[129]), "r")


FAULTS = {
    b"": ("empty", "", 1, 1),
    b" \n ": ("empty", "", 2, 2),
    b'["\xff"]': ("utf8", "/0", 1, 3),
    b"{} \xff": ("utf8", "", 1, 4),
    b'{"a": ["\xff"]}': ("utf8", "/a/0", 1, 9),
    b'["\\u12\xff': ("utf8", "/0", 1, 7),
    b"[1,]": ("syntax", "/1", 1, 4),
    b"[1 2]": ("syntax", "/0", 1, 4),
    b'{"a": tru}': ("syntax", "/a", 1, 7),
    b"{a: 1}": ("syntax", "", 1, 2),
    b'{"a": 1,}': ("syntax", "/a", 1, 9),
    b'{"a" 1}': ("syntax", "/a", 1, 6),
    b"[1}": ("syntax", "/0", 1, 3),
    b"[01]": ("syntax", "/0", 1, 3),
    b"[1.]": ("syntax", "/0", 1, 4),
    b"[-]": ("syntax", "/0", 1, 3),
    b"[1e+]": ("syntax", "/0", 1, 5),
    b'["\\ud800"]': ("syntax", "/0", 1, 3),
    b'["\\ud800\\u0041"]': ("syntax", "/0", 1, 3),
    b'["\\udc00"]': ("syntax", "/0", 1, 3),
    b'["\\x"]': ("syntax", "/0", 1, 3),
    b'["\\u12x4"]': ("syntax", "/0", 1, 5),
    b'["\\u12\xc3\xa9"]': ("syntax", "/0", 1, 5),
    b'["\\u12\xc3': ("utf8", "/0", 1, 7),
    b'["\\u1': ("syntax", "/0", 1, 6),
    b'["\\': ("syntax", "/0", 1, 4),
    b'["\\ud800\\': ("syntax", "/0", 1, 10),
    b'["a\nb"]': ("syntax", "/0", 1, 4),
    b"[": ("syntax", "/0", 1, 2),
    b"]": ("syntax", "", 1, 1),
    b'{"a":1,\n "\\u0061":2}': ("duplicate-key", "/a", 2, 2),
    b'{"\\u0061/": 1, "a/": 2}': ("duplicate-key", "/a~1", 1, 16),
    b"{" + b",".join(b'"k%d":0' % number for number in range(1_000)) + b',"k7":1}': ("duplicate-key", "/k7", 1, 8_892),
    b'[{}, {"x~/": [1, NaN]}]': ("nan", "/1/x~0~1/1", 1, 18),
    b'{"\xc3\xa9": -Infinity}': ("nan", "/é", 1, 7),
    b"[1e999]": ("number", "/0", 1, 2),
    b"1" * 400: ("number", "", 1, 1),
    b"[18446744073709551616]": ("number", "/0", 1, 2),
    b"[1, -9223372036854775809]": ("number", "/1", 1, 5),
    b"{} x": ("trailing", "", 1, 4),
    b"[" * 1_000_000: ("depth", "/0" * 128, 1, 129),
}


@pytest.mark.parametrize(("content", "fault"), FAULTS.items(), ids=lambda given: str(given)[:30])
def test_the_first_fault_has_its_kind_and_place(content: bytes, fault: tuple[str, str, int, int]) -> None:
    """Each kind of fault is found at the pointer, line and column of the place, also where others follow."""
    assert find_fault(content, MAX_DEPTH) == fault
    with pytest.raises(InputError):
        parse_json(content, "s.json")


def test_the_depth_is_the_requested_one() -> None:
    """The deepest allowed document passes and the next one does not."""
    assert find_fault(b"[[1]]", 2) is None
    assert find_fault(b"[[[]]]", 2) == ("depth", "/0/0", 1, 3)


DISGUISED = {
    "a second key next to a space": (b'{"a" :1,"a":2}', "duplicate-key"),
    "a second key next to an escaped colon": (b'{"a":1,"a":"\\u003a"}', "duplicate-key"),
    "a second key next to an escaped capital colon": (b'{"a":1,"a":"\\u003A"}', "duplicate-key"),
    "a second key in a deeper object": (b'[":",{"b":{"a":":","a":":"}}]', "duplicate-key"),
    "depth between brackets in strings": (
        b'["]",' * 200 + b"1" + b',"["]' * 200,
        "depth",
    ),
    "depth in objects": (b'{"a":' * 129 + b"1" + b"}" * 129, "depth"),
    "depth in a long document": (b"[" + b"1," * 100_000 + b"[" * 128 + b"]" * 129, "depth"),
    "a long number behind one in a string": (b'["12345678901234567890",12345678901234567890123]', "number"),
    "a long number by itself": (b"-9223372036854775809", "number"),
    "a long number after a line break": (b'{"a":\n99999999999999999999}', "number"),
}


@pytest.mark.parametrize(("content", "kind"), DISGUISED.values(), ids=DISGUISED)
def test_a_fault_that_orjson_lets_pass_is_found(content: bytes, kind: str) -> None:
    """Nothing next to the fault makes a document look as if it had none."""
    orjson.loads(content)
    fault = find_fault(content, MAX_DEPTH)
    assert fault is not None
    assert fault.kind == kind
    with pytest.raises(InputError):
        parse_json(content, "s.json")


@pytest.mark.parametrize(
    "content",
    [
        b'{"a" : ":", ":a": "\\u003a", "b": "\\u003A"}',
        b'["12345678901234567890", 18446744073709551615, -9223372036854775808, 18446744073709551616.0, 1e300]',
        b'["]", "[[[", "{", "}"]',
        b' [1, -0.5e-3, "\\ud83d\\ude00", null] \n',
        b"[" * 128 + b"1" + b"]" * 128,
    ],
)
def test_a_text_that_only_looks_like_a_fault_is_read(content: bytes) -> None:
    """Colons, digits and brackets in strings, and numbers that fit, are no fault."""
    assert parse_json(content, "s.json") == json.loads(content)
    assert find_fault(content, MAX_DEPTH) is None


def strict(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object whose keys must differ."""
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a duplicate key")
    return dict(pairs)


def refuse(constant: str) -> float:
    """No constant is a number."""
    raise ValueError(constant)


def bounded(digits: str) -> int:
    """An integer of 64 bits, with a sign or without."""
    number = int(digits)
    if not -(2**63) <= number < 2**64:
        raise ValueError(digits)
    return number


def accepted(document: bytes) -> bool:
    """Whether the standard library takes a document, made as strict as it can be."""
    try:
        value = json.loads(document.decode(), object_pairs_hook=strict, parse_constant=refuse, parse_int=bounded)
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError, OverflowError):
        return False
    return not document.startswith(b"\xef\xbb\xbf")


NOISE = st.text(alphabet='{}[]",:01.eE+-\\u dtrfalsn\n', max_size=12).map(str.encode)


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(VALUES, st.sampled_from([None, 1]), st.booleans(), NOISE, st.integers(0, 60))
def test_documents_are_accepted_as_by_a_strict_parser(
    value: object, indent: int | None, ascii_only: bool, noise: bytes, place: int
) -> None:
    """A document, whole or with noise in it, passes exactly when the standard library reads it strictly."""
    document = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode()
    assert find_fault(document, MAX_DEPTH) is None
    spoiled = document[:place] + noise + document[place + len(noise) // 2 :]
    assert (find_fault(spoiled, MAX_DEPTH) is None) == accepted(spoiled) == _is_read(spoiled)


def _is_read(content: bytes) -> bool:
    try:
        parse_json(content, "s.json")
    except InputError:
        return False
    return True


def pointers(value: object, pointer: str = "") -> Iterator[tuple[str, object]]:
    """Every value of a document with its JSON Pointer."""
    yield pointer, value
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in members:
        yield from pointers(inner, f"{pointer}/{escaped(key)}")


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(VALUES, st.sampled_from([None, 2]), st.booleans())
def test_every_value_is_located(value: object, indent: int | None, ascii_only: bool) -> None:
    """The value that a pointer names begins at its place."""
    document = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    lines = document.split("\n")
    named = list(pointers(value))
    for (pointer, expected), place in zip(
        named, JsonPlaces(document.encode()).exact([name for name, _ in named]), strict=True
    ):
        assert place is not None, pointer
        line, column = place
        rest = "\n".join([lines[line - 1][column - 1 :], *lines[line:]])
        assert json.JSONDecoder().raw_decode(rest)[0] == expected


def test_missing_values_are_not_located() -> None:
    """Pointers that name nothing, or are none, have no place."""
    document = b'{"a": [1, {"b~/": 2}]}'
    assert JsonPlaces(document).exact(["/a/2", "/b", "a", "/a/01", "/a/1/b~0~1"]) == [None, None, None, None, (1, 19)]


def test_keys_and_columns_are_those_of_characters() -> None:
    """Escapes in keys are resolved, and a character of several bytes is one column."""
    document = '{\n "a": [10, {"b/c": "é", "~": 1}],\n "\\u0062": {} , "": 2}'.encode()
    found = {"": (1, 1), "/a": (2, 7), "/a/0": (2, 8), "/a/1/b~1c": (2, 20), "/a/1/~0": (2, 30)}
    found |= {"/b": (3, 12), "/": (3, 21)}
    assert JsonPlaces(document).exact(list(found)) == list(found.values())


def test_strings_of_several_lines_are_passed() -> None:
    """Templates have such strings, and keys."""
    assert JsonPlaces(b'{"a\nb": "x\ny]", "\\"\n": 1, "c": 2}').exact(["/c", "/a\nb"]) == [(4, 12), (2, 5)]


@pytest.mark.parametrize(
    "text", ["", "[", '{"a"', '{"a": [1', '{"a" 1', "[1 1 1", "[}", "{]", "[:", "{:::", "[,,", '{"a":"\\']
)
def test_a_broken_document_ends_the_search(text: str) -> None:
    """Nothing is found in it, and the search ends."""
    assert JsonPlaces(text.encode()).exact(["/a/7", "/9"]) == [None, None]


def test_many_pointers_take_one_pass() -> None:
    """Pointers into one large document take time in proportion to it."""

    def locate(size: int) -> None:
        document = json.dumps([{"id": number, "list": [1, 2]} for number in range(size)]).encode()
        assert all(JsonPlaces(document).exact([f"/{number}/list/1" for number in range(0, size, 5)]))

    assert_linear(locate, 10_000)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(VALUES, st.lists(st.lists(st.tuples(st.integers(0, 99), st.sampled_from(["", "/0", "/9", "/x"])))))
def test_a_repeated_request_gets_the_same_places(value: object, questions: list[list[tuple[int, str]]]) -> None:
    """Earlier requests do not matter, in documents that are well formed and in those that are cut off."""
    document = json.dumps(value).encode()
    named = [pointer for pointer, _ in pointers(value)]
    for content in (document, document[: len(document) // 2]):
        places = JsonPlaces(content)
        for question in questions:
            requested = [named[number % len(named)] + below for number, below in question]
            assert places.exact(requested) == JsonPlaces(content).exact(requested)


def test_a_repeated_request_reads_little() -> None:
    """A large list is read once, whatever is requested of it."""
    sizes: list[int] = []

    def record(text: bytes, content: bytes, start: int, end: int) -> object:
        sizes.append(end - start)
        return read(text, content, start, end)

    read = json_places._read_members
    list_of_objects = [{"id": number, "list": [1, 2]} for number in range(1_000)]
    document = json.dumps({"first": list_of_objects, "last": [{}]}).encode()
    places = JsonPlaces(document)
    with patch.object(json_places, "_read_members", record):
        places.exact(["/first/999"])
        first = len(sizes)
        places.exact(["/first/500/list", "/first/510/list"])
        places.exact(["/last/0", "/first/999"])

    assert first == 2
    assert len(sizes) == first + 3
    assert sum(sizes[first:]) < 100


HOSTILE = {
    "brackets": lambda size: b"[" * size,
    "nested objects": lambda size: b'{"a":' * size,
    "lists": lambda size: b"[" + b"[]," * size + b"0]",
    "unclosed lists": lambda size: b"[" + b"[]," * size,
    "escapes": lambda size: b'"' + b"\\\\" * size,
    "quotes": lambda size: b'["' + b'\\"' * size,
    "digits": lambda size: b"1" * size,
    "long numbers": lambda size: b"[" + b"12345678901234567890," * size + b"1]",
    "a small number": lambda size: b"0." + b"0" * size + b"1e" + b"9" * size,
    "the same key": lambda size: b"{" + b'"a":1,' * size + b'"a":1}',
    "keys": lambda size: b"{" + b",".join(b'"%d":1' % number for number in range(size)) + b',"0":1}',
    "objects": lambda size: b"[" + b'{"a":{"b":[1.5]}},' * size + b"]",
    "space": lambda size: b" " * size + b"x",
    "lines": lambda size: b"[\n" + b'"\xc3\xa9"\n,' * size + b"]",
}


@pytest.mark.parametrize("made", HOSTILE.values(), ids=HOSTILE)
def test_hostile_documents_take_linear_time(made: Callable[[int], bytes]) -> None:
    """Neither the search for a fault nor that for places takes more than in proportion to the size."""

    def read(size: int) -> None:
        _is_read(made(size))
        JsonPlaces(made(size)).exact(["", "/0", f"/{size - 1}/a/b", "/a/a/a"])

    assert_linear(read, 4_000)
