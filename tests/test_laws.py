"""The laws of consistency on the built-in policies: by hypothesis, and as `policyeng verify` runs them."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policyeng.verify.generators.examples import Example
from policyeng.verify.laws import LAWS, Law, outcome_laws
from policyeng.verify.laws.law import LawContext, Trial
from policyeng.verify.runner import run
from tests.drawn import BUNDLE, EXAMPLES
from tests.effort import THOROUGH, effort

GROUNDS = LawContext(BUNDLE)


@pytest.mark.slow
@pytest.mark.parametrize("law", [law for law in LAWS if law.whole is None], ids=lambda law: law.name)
def test_a_law_holds_of_what_hypothesis_draws(law: Law) -> None:
    """No example that hypothesis draws breaks it, the same ones each time; `policyeng verify` draws others."""
    most = effort(10, 100) // min(law.every, 5)

    @settings(derandomize=True, deadline=None, max_examples=most, suppress_health_check=list(HealthCheck))
    @given(EXAMPLES, st.integers(0, 2**32))
    def check(example: Example, chance: int) -> None:
        assert law.violated(Trial(GROUNDS, example, str(chance))) is None

    check()


@pytest.mark.slow
def test_every_law_holds_of_the_examples_of_a_seed() -> None:
    """What `policyeng verify --examples 12 --seed 1` does: every law is tried, and none is violated."""
    examples = effort(12, 120)
    # Another test checks the responses to our classes.
    laws = [law for law in LAWS if THOROUGH or law is not outcome_laws.SATISFIABILITY]
    done = run(BUNDLE, laws, examples=examples, seed=1)

    assert done.found == []
    assert done.tally.broken == {}
    assert done.exit_code == 0
    assert all(done.tally.tried[law.name] for law in laws if law.every <= examples)
    assert done.tally.findings > 25 * examples
