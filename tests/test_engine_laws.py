"""What holds for every bundle because of the engine alone, on the examples that `policyeng verify` draws."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from policyeng.bundle import Bundle, load_bundle
from policyeng.models import Evaluation
from policyeng.report import FORMATS, PROSE
from policyeng.verify.generators.examples import Example, examples_of
from policyeng.verify.laws.law import LawContext, Trial, Violation
from tests.bundles import snapshot, workspace
from tests.drawn import BUNDLE, EXAMPLES
from tests.effort import THOROUGH, effort
from tests.laws import exemptions, formats, gate, paths, round_trips
from tests.laws.elsewhere import with_its_copy
from tests.laws.reports_read import READERS

BROKEN = Path(__file__).parent / "broken"
GROUNDS = LawContext(BUNDLE)
Law = Callable[[Trial], Violation | None]
#: Each with how many examples it is tried on, usually and in a thorough run.
LAWS: dict[str, tuple[Law, int, int]] = {
    "exemptions": (exemptions.violated, 10, 100),
    "gate": (gate.violated, 10, 100),
    "round-trips": (round_trips.violated, 3, 25),
    "formats": (formats.violated, 20, 100),
    "paths": (paths.violated, 2, 20),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
def test_a_law_holds_of_what_hypothesis_draws(name: str) -> None:
    """No example that hypothesis draws breaks it, the same ones each time."""
    violated, *numbers = LAWS[name]

    @settings(
        derandomize=True,
        deadline=None,
        max_examples=effort(*numbers),
        suppress_health_check=list(HealthCheck),
        phases=[phase for phase in Phase if THOROUGH or phase is not Phase.shrink],  # that takes five minutes
    )
    @given(EXAMPLES, st.integers(0, 2**32))
    def check(example: Example, chance: int) -> None:
        assert violated(Trial(GROUNDS, example, str(chance))) is None

    check()


def violations(law: Law, bundle: Bundle, examples: int) -> Iterator[Violation]:
    """What is wrong with the first examples of a seed."""
    grounds = LawContext(bundle)
    tried = (law(Trial(grounds, example, f"7/{number}")) for number, example in enumerate(examples_of(bundle, 7)))
    return (found for found in islice(tried, examples) if found)


@pytest.mark.parametrize("name", ["exemptions", "gate"])
def test_a_policy_that_is_as_a_broken_engine_would_be_is_found(name: str) -> None:
    """One that looks at its callers for exemptions, or lets large estates off."""
    bundle = load_bundle(BROKEN / name)
    (policy,) = bundle.policies
    found = next(violations(LAWS[name][0], bundle, 90))

    assert found.policy == policy.id


def test_an_evaluation_that_is_read_back_as_another_one_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """No policy can cause that: what it gives is plain JSON before it is a finding."""
    written = Evaluation.model_dump_json
    monkeypatch.setattr(Evaluation, "model_dump_json", lambda *a, **b: written(*a, **b).replace('"fail"', '"pass"'))

    assert {found.message for found in violations(round_trips.violated, load_bundle(BROKEN / "total"), 12)} == {
        "an evaluation is another one after it was written as JSON and read back"
    }


def test_every_machine_report_has_a_reader() -> None:
    """A format that is added must be read back, too."""
    assert set(READERS) == set(FORMATS) - set(PROSE)


def test_an_estate_elsewhere_shares_nothing_with_the_first() -> None:
    """Every id of the copy is in another subscription; what has no subscription is not copied."""
    private = {"id": "nowhere", "type": "x", "properties": {}}
    approval = {"id": "A", "scope": "/subscriptions/s", "status": "granted"}
    twice = with_its_copy(snapshot(workspace(link="/subscriptions/s/x"), private, approvals=[approval]))

    assert [resource["id"].split("/")[2:3] for resource in twice.resources] == [["s"], [], ["s-copy"]]
    assert twice.resources[2]["properties"]["link"] == "/subscriptions/s-copy/x"
    assert [(entry.id, entry.scope) for entry in twice.approvals] == [
        ("A", "/subscriptions/s"),
        ("A-copy", "/subscriptions/s-copy"),
    ]
