"""The text report of an admission decision, for a terminal or a log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from policyeng.models import Decision, Finding, JsonObject, relevant_entries
from policyeng.report.escaping import visible
from policyeng.report.json import dumped, findings_in_utc, published, snapshot_in_utc
from policyeng.report.layout import (
    BLANK,
    Line,
    conclusion,
    finding_head,
    heading,
    labelled,
    ledger_section,
    make_margin,
    problems_section,
    text_form,
)
from policyeng.report.phrases import (
    count,
    format_name,
    in_utc,
    settings_text,
    shorten_id,
    subjects_title,
    to_the_second,
)
from policyeng.report.text import group_by_resource

#: How many findings of a list are shown that need no action.
_SHOWN = 10
#: The lists of a decision with their titles: those shown with every reason, and those shown with one line per finding.
_DETAILED = {"denied": "Denied", "warned": "Warned", "undecided": "Undecided", "shadowed": "Shadowed"}
_BRIEF = {"exempted": "Exempt", "standing": "Existing failures", "cleared": "Cleared"}


def _lines(decision: Decision, width: int) -> Iterator[Line]:
    """Yield the denials with their fixes, the other lists, the problems, and last the verdict."""
    for name, title in _DETAILED.items():
        findings: Sequence[Finding] = getattr(decision, name)
        if findings:
            yield from heading(subjects_title(title, findings))
            yield from group_by_resource(findings, width)
    for name, title in _BRIEF.items():
        findings = getattr(decision, name)
        if findings:
            yield from heading(subjects_title(title, findings))
            yield from _render_brief_lines(findings)
    yield from problems_section(decision.problems, width)
    yield from ledger_section(decision.ledger, width)
    yield from _summary(decision, width)


#: Returns a decision as text.
render = text_form(_lines)


def _render_brief_lines(findings: Sequence[Finding]) -> Iterator[Line]:
    """Yield one line per finding, the most severe first, up to a limit."""
    worst = sorted(findings, key=lambda finding: -finding.severity.rank)
    for finding in worst[:_SHOWN]:
        words = f"  {shorten_id(finding.resource)}: {visible(finding.title)}"
        yield *make_margin(2), *finding_head(finding), (words, "")
    if len(worst) > _SHOWN:
        yield *make_margin(2), (f"and {len(worst) - _SHOWN} more; the JSON report lists all", "dim")
    yield BLANK


def _summary(decision: Decision, width: int) -> Iterator[Line]:
    yield from heading("Decision")
    for change in decision.changes[:_SHOWN]:
        yield from labelled(change.operation, visible(change.id), width, indent=2)
    if len(decision.changes) > _SHOWN:
        yield from labelled("", f"and {len(decision.changes) - _SHOWN} more", width, indent=2)
    snapshot = decision.snapshot
    taken = f" taken {to_the_second(snapshot.taken_at)}" if snapshot.taken_at else ""
    evaluated = (
        f"with {format_name(decision.bundle)}, against the snapshot{taken}, as of {to_the_second(decision.as_of)}"
    )
    yield from labelled("evaluated", visible(f"{evaluated}, engine {format_name(decision.engine)}"), width, indent=2)
    if configured := settings_text(decision.settings):
        yield from labelled("settings", configured, width, indent=2)
    yield BLANK
    yield from conclusion(render_verdict(decision), decision.exit_code, width)


def render_verdict(decision: Decision) -> str:
    """Return the decision on one line, with the exit code and the counts."""
    lists = {**_DETAILED, **_BRIEF}
    counts = ", ".join(f"{len(getattr(decision, name))} {name}" for name in lists if getattr(decision, name))
    errors = sum(problem.level == "error" for problem in decision.problems)
    lead = "allowed" if decision.allowed else "denied" if decision.exit_code == 1 else "denied, could not decide"
    unread = len(relevant_entries(decision.ledger))
    parts = [count(len(decision.changes), "change"), counts, count(errors, "error") if errors else ""]
    parts += [f"{count(unread, 'part')} not read"] if unread else []
    return f"exit {decision.exit_code}: {lead}: {'; '.join(filter(None, parts))}"


_FINDINGS = ("denied", "warned", "shadowed", "undecided", "exempted", "standing", "cleared")


def render_json(decision: Decision) -> str:
    """Return the decision as JSON; times are in UTC, and unprintable characters are JSON escapes."""
    lists = {name: findings_in_utc(getattr(decision, name)) for name in _FINDINGS}
    times = {"as_of": in_utc(decision.as_of), "snapshot": snapshot_in_utc(decision.snapshot)}
    return dumped(decision.model_copy(update={**lists, **times}))


def decision_schema() -> JsonObject:
    """Return the JSON Schema (2020-12) of a decision, as published in `docs/decision.schema.json`."""
    return published(Decision, "urn:policyeng:schema:decision:1", "policyeng decision, version 1")
