"""An earlier JSON report read back: the same evaluation, or a refusal with file, place and remedy."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from policyeng.errors import InputError
from policyeng.models import (
    BundleRef,
    Denial,
    EngineRef,
    Evaluation,
    Finding,
    JsonObject,
    Outcome,
    Problem,
    Severity,
    SnapshotRef,
    Summary,
)
from policyeng.sources import read_report

EVALUATION = Evaluation(
    bundle=BundleRef(name="b", revision="1", digest="d"),
    snapshot=SnapshotRef(scope="/subscriptions/s", taken_at=None, digest="d"),
    as_of=datetime(2026, 11, 21, tzinfo=UTC),
    engine=EngineRef(name="embedded", version="1"),
    exit_code=1,
    summary=Summary(fail=1),
    findings=(
        Finding(
            policy="AML-NET-001",
            title="t",
            severity=Severity.HIGH,
            resource="/x",
            resource_type="A/b",
            outcome=Outcome.FAIL,
            denials=(Denial(msg="m", path="/p", actual=[1, {"a": None}], expected="Disabled"),),
        ),
    ),
    problems=(Problem(level="warning", message="m"),),
)
REPORT: JsonObject = EVALUATION.model_dump(mode="json", by_alias=True)


def test_a_report_is_read_back_equal(here: Path) -> None:
    """A written report is read back."""
    (here / "r.json").write_text(json.dumps(REPORT))

    assert read_report("r.json").model_dump(mode="json", by_alias=True) == REPORT


REFUSED: dict[str, tuple[object, str]] = {
    "a snapshot": ({"snapshotVersion": 1}, "r.json:1: not a JSON report: an object with the keys `snapshotVersion`; "),
    "a list": ([], "r.json:1: not a JSON report: an empty list; give a report that `--output json=PATH` wrote"),
    "another version": (
        {**REPORT, "reportVersion": 2},
        "r.json:2: /reportVersion: `reportVersion` is `2`; only version 1",
    ),
    "a version that is true": (
        {**REPORT, "reportVersion": True},
        "/reportVersion: `reportVersion` is true; only version 1",
    ),
    "an unknown key": (
        {**REPORT, "finding": []},
        "/finding: unknown key `finding`; did you mean `findings`; the known keys are",
    ),
    "an unknown outcome": (
        {**REPORT, "findings": [{**REPORT["findings"][0], "outcome": "maybe"}]},
        '/findings/0/outcome: `outcome` does not fit: `"maybe"`; it should be `pass`, `fail`, `unknown` or `error`',
    ),
    "no findings": (
        {key: value for key, value in REPORT.items() if key != "findings"},
        "r.json:1: `findings` is missing; add `findings`",
    ),
    "a time without zone": ({**REPORT, "asOf": "2026-11-21T00:00:00"}, "/asOf: `asOf` has no time zone"),
}


@pytest.mark.parametrize(("document", "message"), REFUSED.values(), ids=REFUSED)
def test_other_documents_than_reports_are_refused(here: Path, document: object, message: str) -> None:
    """File, line, pointer and remedy are in the message."""
    (here / "r.json").write_text(json.dumps(document, indent=1))
    with pytest.raises(InputError) as refused:
        read_report(Path("r.json"))

    assert message in str(refused.value)
    assert str(refused.value).startswith("r.json:")
    assert refused.value.remedy


def test_a_missing_report_is_refused() -> None:
    """The message names it."""
    with pytest.raises(InputError, match=r"^none\.json: cannot be read \(no such file or directory\)"):
        read_report("none.json")
