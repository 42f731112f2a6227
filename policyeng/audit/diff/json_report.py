"""The JSON form of a comparison and its schema; `Comparison.model_validate_json` reads it back."""

from __future__ import annotations

from policyeng.audit.diff.records import ComparedEvaluation, Comparison, Flip
from policyeng.models import JsonObject
from policyeng.report.json import dumped, findings_in_utc, published, snapshot_in_utc
from policyeng.report.phrases import in_utc


def render(comparison: Comparison) -> str:
    """Return the comparison with times in UTC, escaped unprintable characters and exact values."""
    flips = {name: tuple(map(_flip, getattr(comparison, name))) for name in ("new", "fixed", "changed")}
    sides = {name: _render_side(getattr(comparison, name)) for name in ("before", "after")}
    return dumped(
        comparison.model_copy(update={**flips, **sides, "persisting": findings_in_utc(comparison.persisting)})
    )


def _flip(flip: Flip) -> Flip:
    (finding,) = findings_in_utc([flip.finding])
    return flip.model_copy(update={"finding": finding})


def _render_side(side: ComparedEvaluation) -> ComparedEvaluation:
    return side.model_copy(update={"as_of": in_utc(side.as_of), "snapshot": snapshot_in_utc(side.snapshot)})


def diff_schema() -> JsonObject:
    """Return the JSON Schema (2020-12) of a comparison, as published in `docs/diff.schema.json`."""
    return published(Comparison, "urn:policyeng:schema:diff:1", "policyeng comparison, version 1")
