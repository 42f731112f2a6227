"""The hash of a file as OPA computes it; `test_bundle_with_opa.py` compares with OPA itself."""

from __future__ import annotations

import hashlib
import json
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyeng.bundle.signing import ALGORITHMS, file_hash
from policyeng.errors import BundleError

DATA = PurePosixPath("x/data.json")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def hashed(text: str, name: str = "data.json") -> str:
    """The SHA-256 of a file."""
    return file_hash(PurePosixPath(name), text.encode(), "SHA-256", name)


def canonical(text: str) -> str:
    """The SHA-256 of a text as it is."""
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    ("document", "form"),
    [
        ('{"b": 1, "a": [1, 2 ,{}]}', '{"a":[1,2,{}],"b":1}'),
        ('{"n": [1.0, 1e3, 1E+2, -0, 12345678901234567890123]}', '{"n":[1.0,1e3,1E+2,-0,12345678901234567890123]}'),
        (
            r'{"s": "\u00e4<>&\/\u2028\u2029\u0001\b\f\n\r\t\"\\\u007f"}',
            '{"s":"ä<>&/\\u2028\\u2029\\u0001\\b\\f\\n\\r\\t\\"\\\\\x7f"}',
        ),
        (r'{"\uffff": 1, "\ud83d\ude00": 2, "a": 3}', '{"a":3,"\uffff":1,"😀":2}'),
        (r'["\ud800x"]', '["\ufffdx"]'),
        ("\ufeff[true, false, null]", "[true,false,null]"),
    ],
)
def test_documents_are_hashed_by_value_with_numbers_as_written(document: str, form: str) -> None:
    """Spaces and the order of keys make no difference; the digits of a number do."""
    assert hashed(document) == canonical(form)
    assert hashed(document, ".manifest") == canonical(form)


@pytest.mark.parametrize(
    ("document", "form"),
    [
        ("b: 1\na: [x, null]\n", '{"a":["x",null],"b":1}'),
        (
            "a: [1.5, 1.0, 1e21, 1e-7, 1.25e-7, 100000.0, 0.000001]\n",
            '{"a":[1.5,1,1e+21,1e-7,1.25e-7,100000,0.000001]}',
        ),
        ("a: [0.0, 1e20, 12e20, 1.5e+21]\n", '{"a":[0,100000000000000000000,1.2e+21,1.5e+21]}'),
    ],
)
def test_yaml_is_hashed_as_the_json_that_go_makes_of_it(document: str, form: str) -> None:
    """OPA turns YAML into JSON before it hashes."""
    assert hashed(document, "data.yaml") == canonical(form)
    assert hashed(document, "data.yml") == canonical(form)


@pytest.mark.parametrize("name", ["a.rego", "p.py", "cases.yaml", "other.json", "data.json.txt"])
def test_everything_else_is_hashed_byte_by_byte(name: str) -> None:
    """A space more is another file."""
    assert hashed("{ }", name) == canonical("{ }")


@pytest.mark.parametrize("document", ["[" * 100_000, "a: [", "\x00"])
def test_what_is_no_document_is_refused(document: str) -> None:
    """Nothing is hashed as something else."""
    with pytest.raises(BundleError):
        hashed(document)


@pytest.mark.parametrize("document", ["[NaN]", "[Infinity]"])
def test_words_of_python_are_no_numbers(document: str) -> None:
    """YAML reads them as strings, as OPA does."""
    assert hashed(document) == canonical(json.dumps(document[1:-1]).join("[]"))


@pytest.mark.parametrize("content", [b'"\xff"', b"[" * 100_000])
def test_a_document_that_cannot_be_read_is_named(content: bytes) -> None:
    """Neither bytes that are not UTF-8 nor a nesting without end gets through."""
    with pytest.raises(BundleError) as refusal:
        file_hash(DATA, content, "SHA-256", "b/x/data.json")

    assert str(refusal.value) == "b/x/data.json: the document cannot be read; write JSON in UTF-8"


def test_the_algorithms_are_those_of_opa_that_are_strong() -> None:
    """Under OPA's names; each gives the hash of its name."""
    empty = {
        "SHA-224": "d14a028c2a3a2bc9476102bb288234c415a2b01f828ea62ac5b3e42f",
        "SHA-256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "SHA-384": ("38b060a751ac96384cd9327eb1b1e36a21fdb71114be07434c0cc7bf63f6e1da274edebfe76f65fbd51ad2f14898b95b"),
        "SHA-512": (
            "cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce47d0d13c5d85f2b0ff8318d2877eec2f63b931bd474"
            "17a81a538327af927da3e"
        ),
        "SHA-512-224": "6ed0dd02806fa89e25de060c19d3ac86cabb87d6a0ddd05c333b84f4",
        "SHA-512-256": "c672b8d1ef56ed28ab87c3622c5114069bdd3ad7b8f9737498d0c01ecef0967a",
    }

    assert {name: file_hash(PurePosixPath("x"), b"", name, "x") for name in ALGORITHMS} == empty


@given(JSON)
def test_the_form_on_disk_makes_no_difference(value: object) -> None:
    """A document that was written again has the hash that it had."""
    plain, indented = json.dumps(value), json.dumps(value, indent=3, ensure_ascii=False)

    assert file_hash(DATA, plain.encode(), "SHA-512", "x") == file_hash(DATA, indented.encode(), "SHA-512", "x")
