"""How much the suite tries: enough for every change, and with `THOROUGH_TESTS=1` (`make thorough`) much more.

Tests with the marker `slow` run in CI (`make test-slow`), and not with `make test`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from _pytest.mark import ParameterSet

THOROUGH = os.environ.get("THOROUGH_TESTS", "") not in ("", "0")


def effort(usual: int, thorough: int) -> int:
    """How many examples, pairs or cases a test takes: the first number, or the second in a thorough run."""
    return thorough if THOROUGH else usual


def sweep(values: Iterable[Any], every: int, name: Callable[[Any], str] = str) -> list[ParameterSet]:
    """Return the parameters of a test that tries all of something: the first of `every` is quick, the rest are slow."""
    return [
        pytest.param(value, id=name(value), marks=[pytest.mark.slow] if number % every else [])
        for number, value in enumerate(values)
    ]
