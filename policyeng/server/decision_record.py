"""One entry of the decision log: what was asked, what came of it, and by which policies, in OPA's field names.

Source: https://www.openpolicyagent.org/docs/management-decision-logs. Ours are `request_id`, `point`, `mode`, `engine`,
`policyset_digest`, `snapshot_digest`, `state_age_seconds`, `outcome_counts` and `exemptions_applied`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import orjson

from policyeng.models import Decision, Evaluation, Finding, JsonObject, Mode, Outcome
from policyeng.parsing.json_pointer import escaped
from policyeng.redaction import masked
from policyeng.server.problems import status_of
from policyeng.server.service import Answered

#: How many bytes an entry may have before what is long in it is left out.
MAX_ENTRY_BYTES = 1 << 18

_TRACE = re.compile(r"[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}(-.*)?")
#: The lists of a decision that stand in an entry; `standing` may have thousands, and only their count stands there.
_LISTED = ("denied", "warned", "shadowed", "undecided", "exempted", "cleared")


def line_of(answered: Answered, labels: Mapping[str, str], longest: int = MAX_ENTRY_BYTES) -> bytes:
    """Return the entry as a line of masked JSON, without `input` or `result` if they are too long.

    Args:
        answered: what came of a request.
        labels: of the server.
        longest: bytes that the line may have.
    """
    entry = entry_of(answered, labels)
    masks = [*_mask(entry, "input", "/input"), *_mask(entry, "error", "/error")]
    if (
        said := entry.get("result")
    ) is not None:  # its findings are masked already, with the names that they stand under
        masks += _mask(said, "problems", "/result/problems")
    if masks:
        entry["masked"] = masks
    line = _json(entry)
    for name in ("input", "result"):
        if len(line) > longest and name in entry:
            del entry[name]
            entry["erased"] = [*entry.get("erased", []), f"/{name}"]
            line = _json(entry)
    return line + b"\n"


def entry_of(answered: Answered, labels: Mapping[str, str]) -> JsonObject:
    """Return the entry before masking; empty members are omitted."""
    outcome, held = answered.outcome, answered.held
    entry: JsonObject = {
        "decision_id": answered.decision_id,
        "request_id": answered.request_id,
        "timestamp": timestamp(),
        "labels": dict(labels),
        "path": f"v1/{answered.point}",
        "point": answered.point,
        "requested_by": answered.requested_by or answered.client,
        "metrics": {"timer_server_handler_ns": round(answered.seconds * 1e9)},
    }
    if found := _TRACE.fullmatch(answered.traceparent):
        entry["trace_id"], entry["span_id"] = found[1], found[2]
    if held is not None:
        entry["bundles"] = {held.bundle.name: {"revision": held.bundle.revision}}
        entry["policyset_digest"] = held.bundle.digest
    if answered.document is not None:
        entry["input"] = answered.document
    if outcome is not None:
        entry |= _encode_answer(outcome)
    if answered.state_age is not None:
        entry["state_age_seconds"] = answered.state_age
    if answered.refusal is not None:
        entry["error"] = {"code": str(status_of(answered.refusal)), "message": str(answered.refusal)}
    return entry


def timestamp() -> str:
    """Now, as the log writes it, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def mode_of(decision: Decision) -> str:
    """Return the strictest mode of a decision with findings that do not pass; empty without any."""
    found = {Mode.DENY: decision.denied, Mode.WARN: decision.warned, Mode.SHADOW: decision.shadowed}
    return next((str(mode) for mode, findings in found.items() if findings), "")


def _encode_answer(outcome: Evaluation | Decision) -> JsonObject:
    findings: list[Finding]
    if isinstance(outcome, Decision):
        listed = {name: getattr(outcome, name) for name in _LISTED}
        findings = [finding for each in listed.values() for finding in each]
        counts = {name: len(getattr(outcome, name)) for name in (*_LISTED, "standing")}
        changes = [{"operation": str(each.operation), "id": each.id} for each in outcome.changes]
        shown = {name: [_encode_finding(finding) for finding in each] for name, each in listed.items() if each}
        said: JsonObject = {"allowed": outcome.allowed, "exitCode": outcome.exit_code, "changes": changes, **shown}
    else:
        counts = {
            name: count for name, count in outcome.summary.model_dump(by_alias=True).items() if isinstance(count, int)
        }
        findings = [finding for finding in outcome.findings if finding.outcome is not Outcome.PASS]
        said = {"exitCode": outcome.exit_code, "findings": [_encode_finding(finding) for finding in findings]}
    if outcome.problems:
        said["problems"] = [{"level": each.level, "message": each.message} for each in outcome.problems]
    return {
        "result": said,
        "outcome_counts": counts,
        "snapshot_digest": outcome.snapshot.digest,
        "exemptions_applied": sorted({each.exemption.id for each in findings if each.exemption is not None}),
        "engine": {"name": outcome.engine.name, "version": outcome.engine.version},
        "mode": mode_of(outcome) if isinstance(outcome, Decision) else "",
    }


def _encode_finding(finding: Finding) -> JsonObject:
    """Return the content of a finding, without the static fields of its policy."""
    return {
        "policy": finding.policy,
        "severity": str(finding.severity),
        "resource": finding.resource,
        "outcome": str(finding.outcome),
        "denials": [{"msg": each.msg, "path": each.path, "actual": each.actual} for each in finding.denials],
        "unknowns": [{"msg": each.msg, "path": each.path} for each in finding.unknowns],
    }


def _mask(holder: JsonObject, name: str, pointer: str) -> list[str]:
    """Mask a part of an entry, and give the JSON Pointers of what was.

    Args:
        holder: has the part, or has it not.
        name: of the part in it.
        pointer: of the part in the entry.
    """
    if name not in holder:
        return []
    before, holder[name] = holder[name], masked(holder[name])
    return [] if before == holder[name] else list(_find_differences(before, holder[name], pointer))


def _find_differences(before: object, after: object, pointer: str) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key, below in before.items():
            yield from _find_differences(below, after[key], f"{pointer}/{escaped(str(key))}")
    elif isinstance(before, list | tuple) and isinstance(after, list):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _find_differences(old, new, f"{pointer}/{index}")
    elif before != after:
        yield pointer


def _json(entry: JsonObject) -> bytes:
    try:
        return orjson.dumps(entry)
    except TypeError:  # a number beyond 64 bits, half a character: what came in as JSON goes out as JSON
        return json.dumps(entry, default=str, separators=(",", ":")).encode()
