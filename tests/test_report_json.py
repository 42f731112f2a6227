"""The JSON report and its published schema."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator

from policyeng.models import Evaluation, Location
from policyeng.report.json import render, report_schema
from tests.report_samples import HOSTILE, SAMPLES, evaluations, laws

REGENERATE = (
    ".venv/bin/python -c 'import json; from policyeng.report.json import report_schema;"
    " print(json.dumps(report_schema(), indent=2))' > docs/report.schema.json"
)


@laws
@given(evaluations())
def test_a_report_reads_back_as_the_same_evaluation(evaluation: Evaluation) -> None:
    """Law 7: the JSON report loses nothing, whatever the names, values and zones."""
    assert Evaluation.model_validate_json(render(evaluation)) == evaluation


@laws
@given(evaluations())
def test_every_report_fits_the_published_schema(evaluation: Evaluation) -> None:
    """Any report validates against the schema."""
    Draft202012Validator(report_schema()).validate(json.loads(render(evaluation)))


def test_the_published_schema_is_up_to_date(root: Path) -> None:
    """`docs/report.schema.json` is the schema of the models."""
    published = (root / "docs" / "report.schema.json").read_text(encoding="utf-8")
    assert published == json.dumps(report_schema(), indent=2) + "\n", f"stale; write it with: {REGENERATE}"


def test_the_schema_is_a_schema_that_refuses_others() -> None:
    """It is valid JSON Schema, and a report with another key or without a finding's outcome does not fit."""
    schema = report_schema()
    Draft202012Validator.check_schema(schema)
    report = json.loads(render(SAMPLES["failures"]))
    assert not Draft202012Validator(schema).is_valid(report | {"other": 1})
    del report["findings"][0]["outcome"]
    assert not Draft202012Validator(schema).is_valid(report)


def test_the_form_is_the_documented_one() -> None:
    """Keys, their order and their camelCase are what readers rely on."""
    report = json.loads(render(SAMPLES["every outcome"]))
    assert list(report) == [
        "reportVersion", "bundle", "snapshot", "asOf", "engine", "exitCode", "summary", "findings", "problems",
        "settings", "frameworks", "evidence", "failOn", "strictUnknown", "ledger",
    ]  # fmt: skip
    assert list(report["bundle"]) == ["name", "revision", "digest"]
    assert list(report["snapshot"]) == ["scope", "takenAt", "digest"]
    assert report["summary"] == {
        "pass": 3, "fail": 5, "unknown": 1, "error": 1, "exempt": 1, "strictCompliance": 30.0, "azureCompliance": 50.0,
    }  # fmt: skip
    finding = report["findings"][0]
    assert list(finding) == [
        "policy", "title", "severity", "resource", "resourceType", "outcome", "denials", "unknowns", "exemption",
        "remediation", "source", "area", "controls", "why", "url", "owner", "location",
    ]  # fmt: skip
    assert list(finding["denials"][0]) == ["msg", "path", "actual", "expected"]
    assert finding["location"] == {
        "file": "samples/inference.json", "line": 48, "column": 1, "address": "", "fields": {},
    }  # fmt: skip


def test_places_of_fields_are_below_the_place_of_the_resource() -> None:
    """By the path of the denial or of the unknown, each with its file."""
    (finding,) = json.loads(render(SAMPLES["placed"]))["findings"]
    paths = [reason["path"] for reason in (*finding["denials"], *finding["unknowns"])]

    assert list(finding["location"]["fields"]) == paths
    assert finding["location"]["fields"][paths[0]] == {
        "file": "infra/cluster.yml", "line": 9, "column": 7, "address": "",
    }  # fmt: skip


def test_a_report_without_columns_is_read() -> None:
    """As a baseline that was written before reports had them."""
    report = json.loads(render(SAMPLES["placed"]))
    report["findings"][0]["location"] = {"file": "infra/cluster.yml", "line": 3}

    assert Evaluation.model_validate(report).findings[0].location == Location(file="infra/cluster.yml", line=3)


def test_times_are_rfc_3339_in_utc() -> None:
    """A moment of another zone is written in UTC, with Z."""
    evaluation = SAMPLES["only exempt"]
    report = json.loads(render(evaluation))
    assert report["asOf"] == "2026-06-01T00:00:00Z"
    assert report["snapshot"]["takenAt"] == "2026-05-31T22:15:00Z"
    assert report["findings"][0]["exemption"]["expiresAt"] == "2026-12-31T00:00:00Z"


@pytest.mark.parametrize("escape", ["\\u001b[31m", "\\u202e", "\\udb40\\udc41", "\\u0023#vso[", "\\u003a:stop"])
def test_hostile_characters_are_escapes_and_values_stay_exact(escape: str) -> None:
    """Invisible and control characters are JSON escapes; the value read back is the evaluated one."""
    text = render(SAMPLES["hostile"])
    assert escape in text
    assert json.loads(text)["findings"][0]["title"] == HOSTILE
