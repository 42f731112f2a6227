"""Readers fed with mutants: whatever comes in, they return in time, and with resources, problems or reasons only.

A thorough run tries more than 20,000; `POLICYENG_MUTANTS` sets how many each folder gives, and
`python -m tests.fuzzing` tries others by hand.
"""

from __future__ import annotations

import os
import sys
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as beginning
from hypothesis import strategies as st

from policyeng.bundle import Bundle
from tests.effort import effort, sweep
from tests.fuzzing import SAMPLES, fault, kept, mutant, seeds
from tests.real_files import FOLDERS, REAL

#: Distinct mutants of each folder.
MUTANTS = int(os.environ.get("POLICYENG_MUTANTS", effort(250, 1600)))
#: One mutant in so many is evaluated by all policies, too.
EVALUATED = 20
#: Chance repeats itself now and then.
_SPARE = 1.15
#: Terraform configuration is refused by its suffix, so mutants of it prove nothing about a reader.
FUZZED = [folder for folder in (*FOLDERS, SAMPLES) if folder != "terraform"]


@pytest.mark.parametrize("folder", sweep(FUZZED, 7))
def test_no_mutant_breaks_a_reader(folder: str, bundle: Bundle, capsys: pytest.CaptureFixture[str]) -> None:
    """Each is read by detection, by every format and, now and then, evaluated; one with a fault is kept for replay."""
    if folder != SAMPLES and not REAL.is_dir():
        pytest.skip(f"no real documents at {REAL}")
    assert seeds(folder)
    tried: dict[bytes, str] = {}

    @beginning(20260601)
    @settings(
        max_examples=int(MUTANTS * _SPARE),
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.integers(0, 2**64 - 1))
    def each(chance: int) -> None:
        name, content = mutant(Random(chance), folder)  # noqa: S311  # chance that hypothesis repeats
        if content not in tried:
            tried[content] = fault(content, bundle if len(tried) % EVALUATED == 0 else None)
        message = tried[content]
        assert not message, f"{name}: {message}; try it again with `python -m tests.fuzzing --replay {kept(content)}`"

    each()
    with capsys.disabled():
        sys.stdout.write(f"\n{folder}: {len(tried)} distinct mutants, {len(tried) // EVALUATED} of them evaluated")
    assert len(tried) >= MUTANTS


def test_there_are_enough_mutants() -> None:
    """A run tries at least 3,000, a thorough one 20,000, unless another number is set."""
    assert "POLICYENG_MUTANTS" in os.environ or MUTANTS * len(FUZZED) >= effort(3_000, 20_000)
