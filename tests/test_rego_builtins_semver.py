"""The builtins of semantic versions give what OPA gives."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from policyeng.rego.builtins import UnsupportedError, load_function
from tests.effort import effort
from tests.rego_oracle import Call, find_differences, wrong_operands

NUMBERS = ["0", "1", "2", "10", "01", "", "-1", "9223372036854775807", "9223372036854775808", "x", "+1", "1_0", "١"]
IDENTIFIERS = ["0", "1", "2", "10", "01", "a", "b", "a-b", "-", "x1", "", "é", "9223372036854775807"]


def version(draw: random.Random) -> str:
    """A version, most often a valid one."""
    numbers = NUMBERS[: 4 if draw.random() < 0.9 else None]
    text = draw.choice(["", "", "v", "V"])
    text += ".".join(draw.choice(numbers) for _ in range(3 if draw.random() < 0.95 else draw.randint(1, 4)))
    for separator, share in (("-", 0.6), ("+", 0.3)):
        if draw.random() < share:
            identifiers = IDENTIFIERS[: 10 if draw.random() < 0.95 else None]
            text += separator + ".".join(draw.choice(identifiers) for _ in range(draw.randint(1, 3)))
    return text


def test_versions_are_those_of_opa(opa: Path) -> None:
    """Drawn ones, alone and in pairs, and operands of other types."""
    draw = random.Random(1)  # noqa: S311  # the same cases every time
    cases: list[Call] = [
        *wrong_operands("semver.compare", "1.0.0", "1.0.0"),
        *wrong_operands("semver.is_valid", "1.0.0"),
    ]
    for _ in range(effort(500, 5000)):
        cases += [("semver.compare", [version(draw), version(draw)]), ("semver.is_valid", [version(draw)])]
    cases.append(("semver.compare", ["1.0.0-99999999999999999999", "1.0.0-9223372036854775807.1"]))
    assert find_differences(opa, cases) == []


def test_numbers_that_opa_never_compares_are_refused() -> None:
    """OPA does not end where versions differ only in numbers beyond 64 bits."""
    with pytest.raises(UnsupportedError, match="beyond 64 bits"):
        load_function("semver.compare")("1.0.0-99999999999999999999", "1.0.0-99999999999999999998")
