"""The sentences that the reports share."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from policyeng.models import Denial, Severity
from policyeng.report.phrases import (
    denial_sentence,
    describe_counts,
    describe_denial,
    describe_exit_code,
    level,
    rfc3339,
    shorten_id,
    to_the_second,
)
from tests.report_samples import ASSIGNMENT, CLUSTER, GROUP, SAMPLES, WORKSPACE


@pytest.mark.parametrize(
    ("resource", "name"),
    [
        (WORKSPACE, "ws"),
        (CLUSTER, "ws/train-gpu"),
        (ASSIGNMENT, "5a1c2f0e-7f43-4d8e-9a53-0a4b4f6c9d10"),
        (GROUP, GROUP),
        ("/subscriptions/1/providers/", "/subscriptions/1/providers/"),
        ("/x/providers/Microsoft.ML/workspaces/", "/x/providers/Microsoft.ML/workspaces/"),
        ("scoring", "scoring"),
        ("a\nb", "a\\nb"),
        ("", ""),
    ],
)
def test_short_name(resource: str, name: str) -> None:
    """An ARM id is named by what follows its last provider; any other id by itself."""
    assert shorten_id(resource) == name


@pytest.mark.parametrize(
    ("denial", "sentence"),
    [
        (Denial(msg="is open", path="/a", actual="x", expected="y"), "is open: /a is x, expected y"),
        (Denial(msg="is open", actual=1), "is open: found 1"),
        (Denial(msg="is open", path="/a"), "is open: /a"),
        (Denial(msg="is open"), "is open"),
        (
            Denial(msg="is open", path="/a", actual={"x": 1, "because": "`stage` is `y`"}, expected=2),
            "is open: /a is 1, expected 2, because `stage` is `y`",
        ),
        (Denial(msg="is open", actual={"because": 7}, expected=2), "is open: found 7, expected 2"),
    ],
)
def test_denial_sentence(denial: Denial, sentence: str) -> None:
    """Members that a denial omits are omitted."""
    assert denial_sentence(denial) == sentence


@pytest.mark.parametrize(
    ("actual", "expected", "prose"),
    [
        ({"size": "Standard_E8s_v3"}, "an isolated size", "found Standard_E8s_v3, expected an isolated size"),
        (2, {"at most": 0}, "found 2, expected at most 0"),
        (None, "a value", "subnet.id not set, expected a value"),
        ({"isolationMode": None}, "x", "isolationMode not set, expected x"),
        ([], ["a", "b"], "found none, expected a, b"),
        ({"actions": ["x"], "role": "Owner"}, None, "is open: found role Owner, actions x"),
        (31.0, {"days": 7}, "found 31, expected 7 days"),
        (False, True, "found false, expected true"),
        ("", "a name", "found empty, expected a name"),
        (None, None, "is open"),
    ],
)
def test_values_are_prose(actual: object, expected: object, prose: str) -> None:
    """No JSON where a reader expects words."""
    denial = Denial(msg="is open", path="/properties/subnet/id", actual=actual, expected=expected)
    assert describe_denial(denial) == prose


def test_levels() -> None:
    """High and above are errors, info is a note."""
    levels = [level(severity) for severity in Severity]
    assert levels == ["note", "warning", "warning", "error", "error"]


def test_moments_are_utc_with_z() -> None:
    """Other zones are converted; the edge of the calendar stays as it is."""
    assert rfc3339(datetime(2026, 6, 1, 2, tzinfo=timezone(timedelta(hours=2)))) == "2026-06-01T00:00:00Z"
    assert rfc3339(datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1)))) == "0001-01-01T00:00:00+01:00"
    assert rfc3339(datetime(2026, 6, 1, microsecond=5, tzinfo=UTC)) == "2026-06-01T00:00:00.000005Z"
    assert to_the_second(datetime(2026, 6, 1, microsecond=5, tzinfo=UTC)) == "2026-06-01T00:00:00Z"


@pytest.mark.parametrize(
    ("sample", "words"),
    [
        ("every outcome", "UNDECIDED: 1 policy error, 2 problems; also 4 failures"),
        ("failures", "FAILED: 2 failures (>= low)"),
        ("all pass", "PASSED: no failures"),
        ("only exempt", "PASSED: no failures, 1 exempt"),
        ("below the limit", "PASSED: 1 failure below --fail-on critical"),
        ("empty", "UNDECIDED: no resources evaluated"),
        ("only problems", "UNDECIDED: 2 problems, no resources evaluated"),
    ],
)
def test_verdict(sample: str, words: str) -> None:
    """The exit code is explained by what decided it; 2 outranks 1 and both are reported."""
    assert describe_exit_code(SAMPLES[sample]) == words


@pytest.mark.parametrize(
    ("sample", "words"),
    [
        ("every outcome", "4 failures, 1 exempt, 1 unknown, 1 error, 3 problems"),
        ("all pass", "all 2 findings pass"),
        ("empty", "no resources evaluated"),
    ],
)
def test_headline(sample: str, words: str) -> None:
    """Only what exists is counted."""
    assert describe_counts(SAMPLES[sample]) == words


def test_a_run_that_passes_its_gate_reports_what_it_could_not_decide() -> None:
    """Exit 0 with unknown findings never reads as if everything had been evaluated."""
    evaluation = SAMPLES["all pass"]
    unsure = evaluation.model_copy(update={"summary": evaluation.summary.model_copy(update={"unknown": 2})})

    assert describe_exit_code(unsure) == "PASSED: no failures, 2 unknown"


@pytest.mark.parametrize(
    ("exit_code", "changes", "words"),
    [
        (1, {}, "FAILED: 2 failures (>= low)"),
        (1, {"fail_on": Severity.CRITICAL}, "FAILED: 1 failure (>= critical), 1 below"),
        (0, {}, "PASSED: 2 failures in the baseline"),
        (0, {"fail_on": Severity.CRITICAL}, "PASSED: 1 failure in the baseline, 1 failure below --fail-on critical"),
    ],
)
def test_the_result_names_the_limit(exit_code: int, changes: dict[str, object], words: str) -> None:
    """What counts, and why other failures do not."""
    assert describe_exit_code(SAMPLES["failures"].model_copy(update={"exit_code": exit_code, **changes})) == words
