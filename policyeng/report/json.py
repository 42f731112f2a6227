"""The JSON report: the evaluation in camelCase; `Evaluation.model_validate_json` reads it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

import orjson

from policyeng.models import (
    POLICY_FIELDS,
    Evaluation,
    Finding,
    Findings,
    JsonObject,
    Model,
    Passed,
    SnapshotRef,
    to_bytes,
)
from policyeng.report.escaping import visible
from policyeng.report.phrases import in_utc

if TYPE_CHECKING:
    from policyeng.models.validated import ValidatedModel

_PASSED = '      "outcome": "pass",\n      "denials": [],\n      "unknowns": [],\n      "exemption": null,\n'


def render(evaluation: Evaluation) -> str:
    """Return the JSON report; times are in UTC, and unprintable characters are JSON escapes."""
    times = {"as_of": in_utc(evaluation.as_of), "snapshot": snapshot_in_utc(evaluation.snapshot)}
    frame = dumped(evaluation.model_copy(update={**times, "findings": ()}))
    if not evaluation.findings:
        return frame
    # No string in the frame can match: in JSON, lines end only between tokens.
    before, marker, after = frame.partition('\n  "findings": []')
    findings = ",\n".join(_findings(Findings.of(evaluation.findings)))
    return f"{before}{marker[:-1]}\n{findings}\n  ]{after}"


def _findings(findings: Findings) -> Iterator[str]:
    """Yield each finding as JSON; passes are assembled from cached parts, for speed."""

    @cache
    def of_policy(policy: int) -> tuple[str, str]:
        fields = policies[policy]
        first, last = ({name: fields[name] for name in names} for names in POLICY_FIELDS)
        return _render_members(first), _render_members(last)

    @cache
    def of_subject(subject: int) -> tuple[str, str]:
        resource, resource_type, owner, location = subjects[subject]
        names = {"resource": resource, "resourceType": resource_type}
        return _render_members(names), _render_members({"owner": owner, "location": location})

    passed = [entry for entry in findings.entries if isinstance(entry, Passed)]
    policies = {id(entry.policy): entry.policy for entry in passed}
    subjects = {id(entry.subject): entry.subject for entry in passed}
    for entry in findings.entries:
        if isinstance(entry, Passed):
            first, last = of_policy(id(entry.policy))
            names, rest = of_subject(id(entry.subject))
            yield f"    {{\n{first},\n{names},\n{_PASSED}{last},\n{rest}\n    }}"
        else:
            yield "    " + _text(_expiry_in_utc(entry)).replace("\n", "\n    ")


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
