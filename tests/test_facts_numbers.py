"""`policyeng.facts.numbers`: whole numbers, as `policies/lib/numbers.rego` reads them."""

from __future__ import annotations

import pytest

from policyeng.facts.numbers import parse_whole_number


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, 0),
        (7, 7),
        (7.0, 7),
        (999_999_999, 999_999_999),
        ("0", 0),
        ("007", 7),
        ("000000000", 0),
        ("999999999", 999_999_999),
    ],
)
def test_whole_numbers_are_read_as_numbers_and_as_text(value: object, expected: int) -> None:
    """Templates and command lines write numbers as text."""
    assert parse_whole_number(value) == expected
    assert type(parse_whole_number(value)) is int


@pytest.mark.parametrize(
    "value",
    [
        -1,
        1.5,
        1_000_000_000,
        float("inf"),
        float("nan"),
        True,
        None,
        [],
        "",
        " 7",
        "-1",
        "1.0",
        "1e3",
        "1000000000",
        "٧",
    ],
)
def test_others_are_none(value: object) -> None:
    """Nothing is rounded, and a boolean is no number."""
    assert parse_whole_number(value) is None
