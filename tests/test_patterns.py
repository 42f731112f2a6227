"""No text that others write can stall the product by a regular expression: each takes linear time."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.product_patterns import ROOT, Pattern, product_patterns, slowest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def patterns() -> tuple[list[Pattern], list[str]]:
    """The patterns of the product, and what cannot be determined."""
    return product_patterns()


def test_every_pattern_is_found(patterns: tuple[list[Pattern], list[str]]) -> None:
    """A pattern of constants is found by itself; for one of local variables, `_LOCALS` gives their values."""
    found, undetermined = patterns

    assert undetermined == []
    assert len(found) > 150
    assert {pattern.place.partition(":")[0] for pattern in found} > {
        "policyeng/redaction.py",
        "policyeng/sources/arm_resource.py",
    }


@pytest.mark.attack
@pytest.mark.slow
def test_every_pattern_takes_linear_time(patterns: tuple[list[Pattern], list[str]]) -> None:
    """Hostile texts, made of the parts of each pattern and of what has stalled other engines.

    What counts is the time of the processor in a process of its own, not the time that passes: an interval timer of the
    processor's time stops what takes too long. A text of 16,000 characters has 0.06 seconds, of which linear patterns
    take a tenth, and quadratic ones several times as much; then the slowest texts are repeated with 1 MB.
    Where a quarter of a text is quick, the whole is not tried.
    """
    process = subprocess.run(
        [sys.executable, "-m", "tests.product_patterns"], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert (process.returncode, process.stderr) == (0, "")
    timed = [json.loads(line) for line in process.stdout.splitlines()]
    assert len(timed) == len(patterns[0])
    assert [entry for entry in timed if entry[0] > 10] == []


@pytest.mark.parametrize(
    "text",
    [
        r"\{\{.*?\}\}",
        r"\s*x",
        r"^\s*module",
        r"\b[A-Za-z][A-Za-z0-9+.-]*://",
        r"\beyJ[A-Za-z0-9_-]{8,}\.",
        r"[-_.]?\d+$",
        r"(?:a|a)*b",
        r'"(?:[^"\\\n]|\\.)*"',
        r"/\*.*?\*/",
    ],
)
def test_a_pattern_that_is_not_linear_is_found(text: str) -> None:
    """Patterns that have stalled the product, and an exponential one."""
    seconds, _, _ = slowest(Pattern("x.py:1", text, 16 if "*/" in text else 8, "re", frozenset({"search"})))

    assert seconds == float("inf")
