"""The laws of consistency on the built-in policies: by hypothesis, and as `policyeng verify` runs them."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policyeng.verify.drawing.examples import Example
from policyeng.verify.laws import LAWS, Law
from policyeng.verify.laws.law import Grounds, Trial
from policyeng.verify.running.run import run
from tests.drawn import BUNDLE, EXAMPLES

GROUNDS = Grounds(BUNDLE)


@pytest.mark.parametrize("law", [law for law in LAWS if law.whole is None], ids=lambda law: law.name)
def test_a_law_holds_of_what_hypothesis_draws(law: Law) -> None:
    """No example that hypothesis draws breaks it, the same ones each time; `policyeng verify` draws others."""

    @settings(
        derandomize=True, deadline=None, max_examples=25 // min(law.every, 5), suppress_health_check=list(HealthCheck)
    )
    @given(EXAMPLES, st.integers(0, 2**32))
    def holds(example: Example, chance: int) -> None:
        assert law.violated(Trial(GROUNDS, example, str(chance))) is None

    holds()


def test_every_law_holds_of_the_examples_of_a_seed() -> None:
    """What `policyeng verify --examples 40 --seed 1` does: every law is tried, and none is violated."""
    done = run(BUNDLE, LAWS, examples=40, seed=1)

    assert done.found == []
    assert done.tally.broken == {}
    assert done.exit_code == 0
    assert all(done.tally.tried[law.name] for law in LAWS if law.every <= 40)
    assert done.tally.findings > 1000
