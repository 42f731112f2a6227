"""Findings that pass are made on request."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest

from policyeng import evaluate
from policyeng.bundle import load_bundle
from policyeng.models import Evaluation, Finding, FindingColumn, Outcome
from policyeng.report import FORMATS
from policyeng.sources import load_snapshot
from tests.test_evaluation import AS_OF

SAMPLE = Path(__file__).parents[1] / "samples/workspaces/regulated.json"


@pytest.fixture
def evaluation() -> Evaluation:
    """Of a sample, in which much passes."""
    return evaluate(load_bundle(), load_snapshot(SAMPLE), as_of=AS_OF)


def _refused(_: FindingColumn, position: int) -> NoReturn:
    raise AssertionError(f"the finding at {position} was made")


def test_neither_an_evaluation_nor_a_report_of_what_fails_makes_passes(
    evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A snapshot has thousands of them; JSON is written from what they have in common."""
    written = {name: FORMATS[name](evaluation) for name in ("json", "github", "azure-devops")}
    monkeypatch.setattr(FindingColumn, "finding", _refused)

    assert evaluation.summary.pass_ > 10
    assert {name: FORMATS[name](evaluation) for name in written} == written
    with pytest.raises(AssertionError, match="was made"):
        list(evaluation.findings)


def test_findings_are_a_sequence_of_equal_values(evaluation: Evaluation) -> None:
    """They are the same by index, by slice and one by one, and their kinds add up."""
    findings = evaluation.findings
    every = list(findings)

    assert [findings[index] for index in range(len(findings))] == every == list(findings[:])
    assert all(isinstance(finding, Finding) for finding in every)
    assert evaluation.others == [finding for finding in every if finding.outcome is not Outcome.PASS]
    assert findings == tuple(every)
