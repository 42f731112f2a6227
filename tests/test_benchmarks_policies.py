"""The benchmark of single policies: which it compares, and that it measures each. No times are asserted."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.estates import document
from benchmarks.policies import measure_policies, measure_sets, of_documents
from benchmarks.preparing import whole_bundle


def test_the_policies_of_the_documents_are_the_first_61() -> None:
    """What is compared does not change with further policies."""
    assert len(of_documents(whole_bundle()).policies) == 61


@pytest.mark.slow
def test_each_policy_and_both_sets_are_measured(tmp_path: Path) -> None:
    """An estate with something for every one of a few policies."""
    file = tmp_path / "estate.json"
    file.write_bytes(document(70))
    few = whole_bundle().only(
        policy for policy in whole_bundle().policies if policy.id in ("AML-NET-001", "AML-CMP-002")
    )

    costs = measure_policies(few, file, 1)

    assert {cost.policy for cost in costs} == {policy.id for policy in few.policies}
    assert all(cost.resources > 0 and cost.seconds > 0 for cost in costs)
    assert all(seconds > 0 for seconds in measure_sets((few, few), file, 1))
