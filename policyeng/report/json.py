"""The JSON report: the evaluation itself, camelCase; `Evaluation.model_validate_json` reads it back."""

from __future__ import annotations

from collections.abc import Iterable

from policyeng.models import Evaluation, Finding, JsonObject, Model, SnapshotRef
from policyeng.report.escapes import visible
from policyeng.report.wording import in_utc


def render(evaluation: Evaluation) -> str:
    """Give the JSON report; times are UTC, unprintable characters are JSON escapes, and the values stay exact."""
    times = {"as_of": in_utc(evaluation.as_of), "snapshot": snapshot_in_utc(evaluation.snapshot)}
    return dumped(evaluation.model_copy(update={**times, "findings": findings_in_utc(evaluation.findings)}))


def report_schema() -> JsonObject:
    """Give the JSON Schema (2020-12) of the JSON report, as published in `docs/report.schema.json`."""
    return published(Evaluation, "urn:policyeng:schema:report:1", "policyeng JSON report, version 1")


def dumped(noun: Model) -> str:
    """Give a noun as JSON text in which a reader sees every character."""
    return visible(noun.model_dump_json(by_alias=True, indent=2, fallback=str), keep="\n") + "\n"


def published(noun: type[Model], identity: str, title: str) -> JsonObject:
    """Give the JSON Schema of a noun as it is published, with its `$id` and title."""
    schema = noun.model_json_schema(mode="serialization", by_alias=True)
    heading = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": identity, "title": title}
    return heading | {key: value for key, value in schema.items() if key not in heading}


def snapshot_in_utc(snapshot: SnapshotRef) -> SnapshotRef:
    """Give the reference with its time in UTC."""
    if snapshot.taken_at is None:
        return snapshot
    return snapshot.model_copy(update={"taken_at": in_utc(snapshot.taken_at)})


def findings_in_utc(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Give findings with the times of their exemptions in UTC."""
    return tuple(map(_expiry_in_utc, findings))


def _expiry_in_utc(finding: Finding) -> Finding:
    mark = finding.exemption
    if mark is None or mark.expires_at is None:
        return finding
    return finding.model_copy(update={"exemption": mark.model_copy(update={"expires_at": in_utc(mark.expires_at)})})
