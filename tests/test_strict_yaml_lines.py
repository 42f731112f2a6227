"""YAML that we write is read back as the value it was written from, and is short."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from policyeng.parsing.yaml_text import parse_kubernetes_yaml, parse_yaml
from policyeng.parsing.yaml_writer import block, flow

TEXT = st.text(max_size=9) | st.text(alphabet="ab:1.-_ #,'\"{}[]*&!|>%@`~=/xonify0e+?<\t\n", max_size=7)
NUMBERS = st.integers(-(2**60), 2**60) | st.floats(-1e15, 1e15)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(TEXT, VALUES, min_size=1, max_size=4), st.integers(5, 100))
def test_written_text_is_read_back(value: dict[str, object], width: int) -> None:
    """As YAML 1.2 has its words, and as Kubernetes reads those of YAML 1.1, in lines and on one line."""
    for text in (block(value, width).encode(), flow(value).encode()):
        assert parse_yaml(text, "x").value == value
        assert parse_kubernetes_yaml(text, "x")[0].value == value


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a cluster that is AML-CMP-002's", "a cluster that is AML-CMP-002's"),
        ("2026-10-01T23:59:59Z", "2026-10-01T23:59:59Z"),
        ("azureml:k8s", "azureml:k8s"),
        ("0.1.0", "0.1.0"),
        ("7.1", '"7.1"'),
        ("no", '"no"'),
        ("0o14", '"0o14"'),
        (".inf", '".inf"'),
        ("*/read", '"*/read"'),
        ("a: b", '"a: b"'),
        ("a #b", '"a #b"'),
        ("a, b", '"a, b"'),
        ("", '""'),
        ('"\\', '"\\"\\\\"'),
        ("a\nb\u202e\U000e0001", '"a\\u000ab\\u202e\\U000e0001"'),
    ],
)
def test_only_what_needs_quotes_has_them(text: str, written: str) -> None:
    """Text that reads as another type, or as structure, or that cannot be seen, is quoted."""
    assert flow(text) == written
    assert yaml.safe_load(f"x: {written}") is not None


def test_short_values_are_on_one_line() -> None:
    """The rest goes below its key, level by level, and commas in a key part nothing."""
    value = {"a, b": {"c": [1, True, None]}, "d": {"e": {"f": "g" * 20}, "h": [{"i": "j" * 20, "k": []}]}}

    assert block(value, 30).splitlines() == [
        "a, b: {c: [1, true, null]}",
        "d:",
        f"  e: {{f: {'g' * 20}}}",
        "  h:",
        f"    - i: {'j' * 20}",
        "      k: []",
    ]
