"""The JSON report: the evaluation in camelCase; `Evaluation.model_validate_json` reads it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import orjson

from policyeng.models import (
    POLICY_FIELDS,
    Evaluation,
    Finding,
    FindingColumn,
    Findings,
    JsonObject,
    Model,
    SnapshotRef,
    to_bytes,
)
from policyeng.report.escaping import visible
from policyeng.report.phrases import in_utc

if TYPE_CHECKING:
    from policyeng.models.validated import ValidatedModel

_PASSED = '      "outcome": "pass",\n      "denials": [],\n      "unknowns": [],\n      "exemption": null,\n'


def render(evaluation: Evaluation) -> str:
    """Return the JSON report."""
    return "".join(write_parts(evaluation))


def write_parts(evaluation: Evaluation) -> Iterator[str]:
    """Yield the JSON report, with the findings of a policy in one part.

    Times are in UTC, and unprintable characters are JSON escapes.
    """
    times = {"as_of": in_utc(evaluation.as_of), "snapshot": snapshot_in_utc(evaluation.snapshot)}
    frame = dumped(evaluation.model_copy(update={**times, "findings": ()}))
    if not evaluation.findings:
        yield frame
        return
    # No string in the frame can match: in JSON, lines end only between tokens.
    before, marker, after = frame.partition('\n  "findings": []')
    yield f"{before}{marker[:-1]}"
    separator = "\n"
    subjects: dict[int, tuple[str, str]] = {}
    for column in Findings.of(evaluation.findings).columns:
        yield separator
        yield ",\n".join(_write_findings(column, subjects))
        separator = ",\n"
    yield f"\n  ]{after}"


def _write_findings(column: FindingColumn, subjects: dict[int, tuple[str, str]]) -> Iterator[str]:
    """Yield each finding of a column as JSON; passes are joined from what they share, which is written once.

    Args:
        column: the findings.
        subjects: what was written of subjects, by position.
    """
    head = middle = ""
    for position in column.order:
        if (finding := column.others.get(position)) is not None:
            yield "    " + _text(_expiry_in_utc(finding)).replace("\n", "\n    ")
            continue
        if not head:
            first, last = ({name: column.template[name] for name in names} for names in POLICY_FIELDS)
            head, middle = f"    {{\n{_render_members(first)},\n", f",\n{_PASSED}{_render_members(last)},\n"
        written = subjects.get(position)
        if written is None:
            resource, resource_type, owner, location = column.subjects[position]
            written = subjects[position] = (
                _render_members({"resource": resource, "resourceType": resource_type}),
                _render_members({"owner": owner, "location": location}) + "\n    }",
            )
        yield f"{head}{written[0]}{middle}{written[1]}"


def _render_members(fields: JsonObject) -> str:
    """Return the members of an object at the third level of indentation."""
    return "    " + _text(fields)[2:-2].replace("\n", "\n    ")


def report_schema() -> JsonObject:
    """Return the JSON Schema (2020-12) of the JSON report, as published in `docs/report.schema.json`."""
    return published(Evaluation, "urn:policyeng:schema:report:1", "policyeng JSON report, version 1")


def dumped(model: Model | ValidatedModel) -> str:
    """Return a model as JSON text with unprintable characters escaped."""
    if isinstance(model, Model):
        return _text(model) + "\n"
    return visible(model.model_dump_json(by_alias=True, indent=2, fallback=str), keep="\n") + "\n"


def list_text(name: str, members: Sequence[ValidatedModel]) -> str:
    """Return a JSON object with a list of the members."""
    listed = [member.model_dump(mode="json", by_alias=True, fallback=str) for member in members]
    return visible(json.dumps({name: listed}, indent=2, ensure_ascii=False), keep="\n") + "\n"


def _text(value: Model | JsonObject) -> str:
    try:
        text = to_bytes(value, orjson.OPT_INDENT_2).decode()
    except TypeError:  # a Python-only value or an integer beyond 64 bits, from a policy in Python
        if not isinstance(value, Model):
            raise
        text = value.model_dump_json(by_alias=True, indent=2, fallback=str)
    return visible(text, keep="\n")


def published(model: type[Model | ValidatedModel], identity: str, title: str) -> JsonObject:
    """Return the JSON Schema of a model as published, with its `$id` and title."""
    schema = model.model_json_schema(mode="serialization", by_alias=True)
    heading = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": identity, "title": title}
    return heading | {key: value for key, value in schema.items() if key not in heading}


def snapshot_in_utc(snapshot: SnapshotRef) -> SnapshotRef:
    """Return the reference with its time in UTC."""
    if snapshot.taken_at is None:
        return snapshot
    return snapshot.model_copy(update={"taken_at": in_utc(snapshot.taken_at)})


def findings_in_utc(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings with the expiry times of their exemptions in UTC."""
    return tuple(map(_expiry_in_utc, findings))


def _expiry_in_utc(finding: Finding) -> Finding:
    mark = finding.exemption
    if mark is None or mark.expires_at is None:
        return finding
    return finding.model_copy(update={"exemption": mark.model_copy(update={"expires_at": in_utc(mark.expires_at)})})
