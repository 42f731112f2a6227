"""The JSON report: the evaluation itself, camelCase; `Evaluation.model_validate_json` reads it back."""

from __future__ import annotations

from policyeng.models import Evaluation, Finding, JsonObject
from policyeng.report.escapes import visible
from policyeng.report.wording import in_utc

_SCHEMA_ID = "urn:policyeng:schema:report:1"


def render(evaluation: Evaluation) -> str:
    """Give the JSON report; times are UTC, unprintable characters are JSON escapes, and the values stay exact."""
    dumped = _in_utc(evaluation).model_dump_json(by_alias=True, indent=2, fallback=str)
    return visible(dumped, keep="\n") + "\n"


def report_schema() -> JsonObject:
    """Give the JSON Schema (2020-12) of the JSON report, as published in `docs/report.schema.json`."""
    schema = Evaluation.model_json_schema(mode="serialization", by_alias=True)
    heading = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": _SCHEMA_ID,
        "title": "policyeng JSON report, version 1",
    }
    return heading | {key: value for key, value in schema.items() if key not in heading}


def _in_utc(evaluation: Evaluation) -> Evaluation:
    snapshot = evaluation.snapshot
    if snapshot.taken_at is not None:
        snapshot = snapshot.model_copy(update={"taken_at": in_utc(snapshot.taken_at)})
    findings = tuple(_expiry_in_utc(finding) for finding in evaluation.findings)
    return evaluation.model_copy(update={"as_of": in_utc(evaluation.as_of), "snapshot": snapshot, "findings": findings})


def _expiry_in_utc(finding: Finding) -> Finding:
    mark = finding.exemption
    if mark is None or mark.expires_at is None:
        return finding
    return finding.model_copy(update={"exemption": mark.model_copy(update={"expires_at": in_utc(mark.expires_at)})})
