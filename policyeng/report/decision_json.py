"""The JSON report of an admission decision, in camelCase; `Decision.model_validate_json` reads it."""

from __future__ import annotations

from policyeng.models import Decision, JsonObject
from policyeng.report.json import dumped, findings_in_utc, published, snapshot_in_utc
from policyeng.report.phrases import in_utc

_FINDINGS = ("denied", "warned", "shadowed", "undecided", "exempted", "standing", "cleared")


def render(decision: Decision) -> str:
    """Return the decision as JSON; times are in UTC, and unprintable characters are JSON escapes."""
    lists = {name: findings_in_utc(getattr(decision, name)) for name in _FINDINGS}
    times = {"as_of": in_utc(decision.as_of), "snapshot": snapshot_in_utc(decision.snapshot)}
    return dumped(decision.model_copy(update={**lists, **times}))


def decision_schema() -> JsonObject:
    """Return the JSON Schema (2020-12) of a decision, as published in `docs/decision.schema.json`."""
    return published(Decision, "urn:policyeng:schema:decision:1", "policyeng decision, version 1")
