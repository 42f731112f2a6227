"""The laws of comparing, on estates that are drawn and then changed by chance."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policyeng.audit.diff.comparison import compare_states
from policyeng.audit.diff.inputs import Comparison, FindingKey, Flip, Status, evaluate_state, index_findings, status_of
from policyeng.audit.diff.root_causes import Splicing
from policyeng.facts.coverage import LISTED
from policyeng.models import Evaluation, Outcome
from policyeng.verify.generators.examples import Examples
from tests.comparing import Given, drifted, given_of, undone
from tests.drawn import BUNDLE
from tests.effort import effort

SOURCE = Examples(BUNDLE)
LAW = settings(deadline=None, derandomize=True, max_examples=effort(20, 400), suppress_health_check=list(HealthCheck))


def pair_of(seed: int) -> tuple[Given, Given]:
    """An estate, and the same later."""
    random = Random(seed)  # noqa: S311  # nothing here is secret
    before = given_of(BUNDLE, SOURCE.drawn(random, kind=random.choice(["estate", "nearly-compliant", "plausible"])))
    return before, drifted(random, SOURCE, before, SOURCE.drawn(random, kind="plausible"))


def status_by_key(evaluation: Evaluation) -> dict[FindingKey, Status | None]:
    """The findings that do not pass."""
    found = index_findings(evaluation.findings)
    return {key: status_of(one) for key, one in found.items() if one.outcome is not Outcome.PASS}


def about(*lists: tuple[Flip, ...]) -> list[FindingKey]:
    """What flips are about."""
    return sorted(key for flips in lists for key in index_findings(flip.finding for flip in flips))


def words(comparison: Comparison, *, mirrored: bool = False) -> list[tuple[object, ...]]:
    """The flips without their causes and reasons, or as they are the other way round."""
    found = []
    for name in ("new", "fixed", "changed"):
        for flip in getattr(comparison, name):
            sides = ((flip.before, flip.exempt_before), (flip.after, flip.exempt_after))
            title = {"new": "fixed", "fixed": "new"}.get(name, name) if mirrored else name
            key = flip.finding.policy, flip.finding.resource.lower().rstrip("/")
            found.append((title, *key, *(reversed(sides) if mirrored else sides)))
    return sorted(found, key=repr)


@pytest.mark.slow
@LAW
@given(st.integers(0, 2**32))
def test_every_finding_is_in_one_list_and_the_way_back_mirrors_it(seed: int) -> None:
    """New, changed and persisting are the findings of after; fixed, changed and persisting those of before."""
    before, after = (one.state for one in pair_of(seed))
    comparison = compare_states(before, after, with_causes=False)
    persisting = sorted(index_findings(comparison.persisting))

    assert sorted(about(comparison.new, comparison.changed) + persisting) == sorted(
        status_by_key(evaluate_state(after))
    )
    assert sorted(about(comparison.fixed) + about(comparison.changed) + persisting) == sorted(
        status_by_key(evaluate_state(before))
    )
    assert words(compare_states(after, before, with_causes=False)) == words(comparison, mirrored=True)
    same = compare_states(after, after)
    assert (same.flips, len(same.persisting)) == ((), len(status_by_key(evaluate_state(after))))


@pytest.mark.slow
@LAW
@given(st.integers(0, 2**32))
def test_a_cause_undone_undoes_the_flip(seed: int) -> None:
    """Each set of causes by itself, applied to the documents apart from the search, gives what was found before."""
    before, after = pair_of(seed)
    were = index_findings(evaluate_state(before.state).findings)

    for flip in compare_states(before.state, after.state).flips:
        (key,) = index_findings([flip.finding])
        assert flip.causes, key
        for together in flip.causes:
            again = index_findings(evaluate_state(undone(before, after, together).state).findings)
            assert status_of(again.get(key)) == status_of(were.get(key)), (key, together)


@pytest.mark.slow
@LAW
@given(st.integers(0, 2**32))
def test_sharing_what_stays_changes_no_cause(seed: int) -> None:
    """States that differ in resources are spliced; made ready one by one they give the same causes."""
    before, after = (one.state for one in pair_of(seed))
    if seed % 2:  # of these, lists were not read
        covers = tuple(f"{kind} at /" for kind in LISTED[: seed % len(LISTED)])
        before, after = (
            replace(one, snapshot=one.snapshot.model_copy(update={"covers": covers})) for one in (before, after)
        )
    spliced = compare_states(before, after)

    with patch.object(Splicing, "fits", lambda _: False):
        assert compare_states(before, after) == spliced
