"""Trends of an estate over its runs: counts, compliance, and new, fixed and reopened findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Literal

from pydantic import AwareDatetime

from policyeng.audit.records import AuditRun, FindingSpan
from policyeng.models import Outcome
from policyeng.models.validated import ValidatedModel


class TrendPoint(ValidatedModel):
    """One run in the trend of an estate. Findings are those that do not pass.

    Attributes:
        pass_count, strict_compliance, azure_compliance: None if findings are filtered.
        new: findings that the previous run did not have; all in the first run.
        changed: findings with another outcome or exemption than in the previous run.
        fixed: findings of the previous run that pass now or are no longer evaluated.
        lost: findings of the previous run in parts that could not be read.
        reopened: new findings that an earlier run had.
    """

    run: int
    as_of: AwareDatetime
    parts: int
    exit_code: int
    fail: int = 0
    exempt: int = 0
    unknown: int = 0
    error: int = 0
    pass_count: int | None = None
    strict_compliance: float | None = None
    azure_compliance: float | None = None
    new: int = 0
    changed: int = 0
    fixed: int = 0
    lost: int = 0
    reopened: int = 0


class ComplianceTrend(ValidatedModel):
    """The runs of an estate, the oldest first."""

    estate: str
    points: tuple[TrendPoint, ...]


#: As what each turn counts.
_COUNTED: Mapping[str, tuple[str, ...]] = {
    "began": ("new",),
    "new": ("new",),
    "again": ("new",),
    "reopened": ("new", "reopened"),
    "changed": ("changed",),
    "fixed": ("fixed",),
    "lost": ("lost",),
}

#: Whether a span is looked at; None for all of them.
Wanted = Callable[[FindingSpan], bool] | None


#: Whether a part could not be read in the run of a number.
Unread = Callable[[int, str], bool]


def all_read(_: int, __: str) -> bool:
    """Return False, for runs that could read every part."""
    return False


def compute_trend(
    estate: str,
    runs: Sequence[AuditRun],
    spans: Iterable[FindingSpan],
    wanted: Wanted = None,
    is_unread: Unread = all_read,
) -> ComplianceTrend:
    """Return the trend of an estate.

    Args:
        estate: its name.
        runs: all of its runs, the oldest first.
        spans: all of its spans, in the order of the store.
        wanted: selects the spans; all by default.
        is_unread: returns whether a part could not be read in a run; called only if findings end.
    """
    turns = {name: Counter[int]() for name in ("new", "changed", "fixed", "lost", "reopened")}
    standing = {name: Counter[int]() for name in ("fail", "exempt", "unknown", "error")}
    for one in group_spans(span for span in spans if wanted is None or wanted(span)):
        for turn, span in list_changes(one, runs[0].number if runs else 0, is_unread):
            for name in _COUNTED[turn]:
                turns[name][number_of(turn, span)] += 1
        for span in one:
            for name in _counts_of(span):
                standing[name][span.first] += 1
                if span.until is not None:
                    standing[name][span.until] -= 1
    held = Counter[str]()
    points = []
    for run in runs:
        held.update({name: changes[run.number] for name, changes in standing.items()})
        counts = {name: changes[run.number] for name, changes in turns.items()}
        points.append(_point(run, counts, None if wanted is None else held))
    return ComplianceTrend(estate=estate, points=tuple(points))


def group_spans(spans: Iterable[FindingSpan]) -> Iterator[list[FindingSpan]]:
    """Yield the spans of each finding, the first one first."""
    for _, alike in groupby(spans, lambda span: (span.part, span.policy, span.resource)):
        by_type: dict[str, list[FindingSpan]] = {}
        for span in alike:
            by_type.setdefault(span.resource_type, []).append(span)
        yield from by_type.values()


#: What becomes of a finding at a run. It `began` in the first run of its estate, of which nobody knows more; it is
#: `lost` when its part could not be read, and there `again` when it could; `changed` is its outcome or its mark.
TurnName = Literal["began", "new", "changed", "fixed", "lost", "again", "reopened"]


def list_changes(life: Sequence[FindingSpan], first: int, is_unread: Unread) -> Iterator[tuple[TurnName, FindingSpan]]:
    """Yield the changes of a finding in the order of runs, each with the span that begins or ends there.

    Args:
        life: its spans, the first one first.
        first: the number of the first run of the estate.
        is_unread: returns whether a part could not be read in a run.
    """
    before: TurnName | None = None
    for at, span in enumerate(life):
        if before is None:
            yield "began" if span.first == first else "new", span
        elif life[at - 1].until == span.first:
            yield "changed", span
        else:
            yield "again" if before == "lost" else "reopened", span
        before = "new"
        follows = at + 1 < len(life) and life[at + 1].first == span.until
        if span.until is not None and not follows:
            before = "lost" if is_unread(span.until, span.part) else "fixed"
            yield before, span


def number_of(turn: TurnName, span: FindingSpan) -> int:
    """Return the number of the run of a turn."""
    ends = turn in ("fixed", "lost") and span.until is not None
    return span.until if ends and span.until is not None else span.first


def _counts_of(span: FindingSpan) -> list[str]:
    return ["fail", "exempt"] if span.outcome is Outcome.FAIL and span.exempt else [str(span.outcome)]


def _point(run: AuditRun, turns: dict[str, int], held: Counter[str] | None) -> TrendPoint:
    shared = {"run": run.number, "as_of": run.as_of, "parts": run.parts, "exit_code": run.exit_code, **turns}
    if held is not None:
        return TrendPoint.model_validate({**shared, **held})
    summary = run.summary
    return TrendPoint.model_validate(
        {
            **shared,
            **{name: getattr(summary, name) for name in ("fail", "exempt", "unknown", "error")},
            "pass_count": summary.pass_,
            "strict_compliance": summary.strict_compliance,
            "azure_compliance": summary.azure_compliance,
        }
    )
