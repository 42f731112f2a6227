"""Trends over stored runs: the history of findings, and the statuses of the controls of a framework."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain, groupby
from typing import Literal, NamedTuple

import orjson
from pydantic import AwareDatetime

from policyeng.audit.diff.comparison import compare_states
from policyeng.audit.diff.inputs import Cause, FindingKey, Flip, Readings, Stored, index_findings
from policyeng.audit.diff.report import alternatives_cell, because_lines, causes_sentences
from policyeng.audit.records import AuditRun, FindingSpan, History
from policyeng.engines import OpaOptions
from policyeng.errors import UsageError
from policyeng.facts.ids import fold_id
from policyeng.frameworks import evaluate_framework, framework_of
from policyeng.models import ControlStatus, Evaluation, FrameworkResult, Outcome, Severity, Snapshot, lowered
from policyeng.models.validated import ValidatedModel
from policyeng.report.escaping import markdown_code, markdown_text, section, visible
from policyeng.report.forms import Forms, prose_forms, table_forms
from policyeng.report.layout import BLANK, STYLES, Line, align, labelled
from policyeng.report.phrases import shorten_id, to_the_second

_UNEXPLAINED = "a new evaluation of both runs does not reproduce the flip"
_UNREAD = "its part could not be read in this run"


class Turn(ValidatedModel):
    """A run in which a finding changed.

    Attributes:
        turn: the kind of change.
        outcome: the outcome; None if it passed, was no longer evaluated, or was lost.
        causes: as of a flip; empty with a `note` that explains why.
    """

    run: int
    as_of: AwareDatetime
    turn: TurnName
    outcome: Outcome | None = None
    exempt: bool = False
    causes: tuple[tuple[Cause, ...], ...] = ()
    note: str = ""


class FindingHistory(ValidatedModel):
    """The history of one finding, with all or the requested changes."""

    estate: str
    part: str
    policy: str
    resource: str
    resource_type: str
    severity: Severity
    turns: tuple[Turn, ...]


def list_histories(
    history: History,
    estate: str,
    spans: Iterable[FindingSpan],
    wanted: Callable[[AuditRun], bool] | None = None,
    opa: OpaOptions | None = None,
) -> Iterator[FindingHistory]:
    """Yield the histories of the findings of some spans. The causes in one part are searched together.

    Args:
        history: the stored runs.
        estate: its name.
        spans: in the order of the store.
        wanted: selects the runs; all by default. Findings without changes in these are skipped.
        opa: the OPA for runs with that engine; a private server by default.
    """
    course = _Course(history, history.runs(estate), opa)
    for _, of_part in groupby(spans, lambda span: span.part):
        changed = [(life, course.turns(life, wanted)) for life in group_spans(of_part)]
        flips = course.flips([turn for _, turns in changed for turn in turns])
        for life, turns in changed:
            if turns:
                yield _build_history(estate, life, (course.turn(turn, span, flips) for turn, span in turns))


def _build_history(estate: str, life: Sequence[FindingSpan], turns: Iterable[Turn]) -> FindingHistory:
    last = life[-1]
    return FindingHistory(
        estate=estate,
        part=last.part,
        policy=last.policy,
        resource=last.resource,
        resource_type=last.resource_type,
        severity=last.severity,
        turns=tuple(turns),
    )


#: By run, the flips of one part by what they are about, or why they cannot be known.
_Flips = Mapping[int, Mapping[FindingKey, Flip] | str]


class _Course:
    """The runs of an estate, with a cache of the last used ones."""

    def __init__(self, history: History, runs: Sequence[AuditRun], opa: OpaOptions | None) -> None:
        self._history, self._opa = history, opa
        self._runs = {run.number: run for run in runs}
        self._numbers = [run.number for run in runs]
        self._is_unread = Readings(history, runs).is_unread
        self._stored: dict[int, Stored] = {}

    def turns(
        self, life: Sequence[FindingSpan], wanted: Callable[[AuditRun], bool] | None
    ) -> list[tuple[TurnName, FindingSpan]]:
        """Return the requested turns of a finding."""
        turns = list_changes(life, self._numbers[0], self._is_unread)
        return [(turn, span) for turn, span in turns if wanted is None or wanted(self._runs[number_of(turn, span)])]

    def flips(self, turns: Iterable[tuple[TurnName, FindingSpan]]) -> _Flips:
        """Return the flips of one part in the runs of some turns, with their causes."""
        keys_by_run: dict[int, set[FindingKey]] = {}
        part = ""
        for turn, span in turns:
            part = span.part
            if turn not in ("began", "lost", "again"):
                keys_by_run.setdefault(number_of(turn, span), set()).add(_key(span))
        return {number: self._compared(part, number, keys) for number, keys in sorted(keys_by_run.items())}

    def _compared(self, part: str, number: int, keys: set[FindingKey]) -> Mapping[FindingKey, Flip] | str:
        earlier = self._numbers[self._numbers.index(number) - 1]
        try:
            (before, old), (after, new) = (self._of(one).state(part) for one in (earlier, number))
        except UsageError as error:
            return str(error)
        comparison = compare_states(before, after, found=(old, new), only=lambda key: key._replace(number=0) in keys)
        return {key: flip for flip in comparison.flips for key in index_findings([flip.finding])}

    def turn(self, turn: TurnName, span: FindingSpan, flips: _Flips) -> Turn:
        """Return a turn with its causes."""
        number, is_current = number_of(turn, span), turn not in ("fixed", "lost")
        found = flips.get(number, "")
        flip = None if isinstance(found, str) else found.get(_key(span))
        causes = flip.causes if flip and turn not in ("began", "lost", "again") else ()
        note = {"began": "", "lost": _UNREAD, "again": ""}.get(turn, found if isinstance(found, str) else _UNEXPLAINED)
        return Turn(
            run=number,
            as_of=self._runs[number].as_of,
            turn=turn,
            outcome=span.outcome if is_current else None,
            exempt=is_current and span.exempt,
            causes=causes,
            note="" if causes else note,
        )

    def _of(self, number: int) -> Stored:
        if number not in self._stored:
            while len(self._stored) > 1:
                del self._stored[next(iter(self._stored))]
            self._stored[number] = Stored(self._history, self._runs[number], self._opa)
        return self._stored[number]


def _key(span: FindingSpan) -> FindingKey:
    return FindingKey(span.policy, lowered(span.resource_type), fold_id(span.resource))


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
    open_counts = Counter[str]()
    points = []
    for run in runs:
        open_counts.update({name: changes[run.number] for name, changes in standing.items()})
        counts = {name: changes[run.number] for name, changes in turns.items()}
        points.append(_point(run, counts, None if wanted is None else open_counts))
    return ComplianceTrend(estate=estate, points=tuple(points))


def group_spans(spans: Iterable[FindingSpan]) -> Iterator[list[FindingSpan]]:
    """Yield the spans of each finding, the first one first."""
    for _, alike in groupby(spans, lambda span: (span.part, span.policy, span.resource)):
        by_type: dict[str, list[FindingSpan]] = {}
        for span in alike:
            by_type.setdefault(span.resource_type, []).append(span)
        yield from by_type.values()


#: How a finding changes at a run: it `began` in the first run of its estate, so its start is unknown; it is `lost` if
#: its part could not be read, and there `again` if it could; `changed` is its outcome or its exemption.
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


def _point(run: AuditRun, turns: dict[str, int], open_counts: Counter[str] | None) -> TrendPoint:
    shared = {"run": run.number, "as_of": run.as_of, "parts": run.parts, "exit_code": run.exit_code, **turns}
    if open_counts is not None:
        return TrendPoint.model_validate({**shared, **open_counts})
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


#: The columns of a trend, of which some have other titles than their fields.
_COLUMNS = [*(name for name in TrendPoint.model_fields if name != "exit_code"), "exit_code"]
_TITLES = {
    "as_of": "as of",
    "pass_count": "pass",
    "strict_compliance": "strict %",
    "azure_compliance": "azure %",
    "exit_code": "exit",
}
_TREND_TITLES = [_TITLES.get(name, name) for name in _COLUMNS]


def _cells(point: TrendPoint, nothing: str = "-") -> list[str]:
    return [_format_cell(getattr(point, name), nothing) for name in _COLUMNS]


def _format_cell(value: datetime | float | None, nothing: str) -> str:
    if isinstance(value, datetime):
        return to_the_second(value)
    return nothing if value is None else f"{value:.2f}" if isinstance(value, float) else str(value)


def _trend_lines(course: ComplianceTrend, _: int) -> Iterator[Line]:
    yield ((visible(course.estate), ""),)
    yield from align([_TREND_TITLES, *map(_cells, course.points)], str.rjust)
    yield BLANK


#: The forms of trends.
COURSES = table_forms(
    "estates",
    _trend_lines,
    lambda course: section(markdown_text(course.estate), _TREND_TITLES, map(_cells, course.points)),
    ("estate", *_TREND_TITLES),
    lambda course: ([course.estate, *_cells(point, "")] for point in course.points),
)


def _history_lines(life: FindingHistory, width: int) -> Iterator[Line]:
    head = (visible(life.policy), "bold"), (f"  {life.severity}", STYLES[life.severity])
    yield (*head, (f"  on {shorten_id(life.resource)}, {visible(life.estate)}: {visible(life.part)}", ""))
    yield ((visible(life.resource), "dim"),)
    for turn in life.turns:
        yield from labelled(f"run {turn.run}", f"{to_the_second(turn.as_of)}  {turn_words(turn)}", width, indent=2)
        yield from because_lines(_describe_reason(turn), width, indent=4)
    yield BLANK


def turn_words(turn: Turn) -> str:
    """Return `new: fail`, or `fixed`."""
    if turn.outcome is None:
        return turn.turn
    return f"{turn.turn}: {turn.outcome}{' (exempt)' if turn.exempt else ''}"


def _describe_reason(turn: Turn) -> list[str]:
    return causes_sentences(turn.causes) or [visible(turn.note)] * bool(turn.note)


def _history_markdown(life: FindingHistory) -> str:
    rows = (
        (str(turn.run), to_the_second(turn.as_of), turn_words(turn), alternatives_cell(_describe_reason(turn)))
        for turn in life.turns
    )
    where = f"{markdown_code(life.policy)} on {markdown_code(life.resource)}, {markdown_code(life.part)}"
    return section(where, ("Run", "As of", "Turn", "Because"), rows)


def _history_rows(life: FindingHistory) -> Iterator[Sequence[str]]:
    names = (life.estate, life.part, life.policy, str(life.severity), life.resource)
    for turn in life.turns:
        yield *names, str(turn.run), to_the_second(turn.as_of), turn_words(turn), "; or ".join(_describe_reason(turn))


_HISTORY_COLUMNS = ("estate", "part", "policy", "severity", "resource", "run", "as of", "turn", "because")
#: The forms of histories of findings.
LIVES = table_forms("lives", _history_lines, _history_markdown, _HISTORY_COLUMNS, _history_rows)


#: The statuses of controls that no run can change.
_CONSTANT = (ControlStatus.BY_HAND, ControlStatus.NOT_COVERED)


class ControlTrend(NamedTuple):
    """The results of a framework in the runs of an estate, oldest first."""

    estate: str
    runs: Sequence[AuditRun]
    results: Sequence[FrameworkResult]


def evaluate_controls(history: History, run: AuditRun, name: str) -> FrameworkResult:
    """Return the statuses of the controls of a framework in a run, with the policies and parameters of the run.

    Raises:
        UsageError: the policies of the run have no such framework, or retention removed the evaluation of a part.
        InputError: the file of a framework is not well formed.
        StoreError: the store cannot be read.
    """
    bundle = history.bundle(run)
    parts = [part for part in history.parts(run) if part.evaluation]
    if not parts:
        raise UsageError(f"run {run.number} has no evaluations", remedy="choose a newer run with `--run`")
    evaluations = [history.evaluation(part) for part in parts]
    snapshots = [history.snapshot(part) for part in parts]
    findings = tuple(chain.from_iterable(evaluation.findings for evaluation in evaluations))
    whole: Evaluation = evaluations[0].model_copy(update={"findings": findings, "summary": run.summary})
    resources = tuple(chain.from_iterable(snapshot.resources for snapshot in snapshots))
    evidence = tuple(chain.from_iterable(snapshot.evidence for snapshot in snapshots))
    merged: Snapshot = snapshots[0].model_copy(update={"resources": resources, "evidence": evidence})
    return evaluate_framework(framework_of(bundle, name), whole, bundle, merged, run.parameters)


def compute_control_trend(history: History, estate: str, runs: Sequence[AuditRun], name: str) -> ControlTrend:
    """Return the results of a framework in runs of an estate; the errors are those of `evaluate_controls`."""
    return ControlTrend(estate, runs, [evaluate_controls(history, run, name) for run in runs])


def _rows(trend: ControlTrend) -> list[tuple[str, ...]]:
    """Return a row for each control that has a changing status: its id, its title and its status in each run."""
    by_run = [{control.id: control for control in result.controls} for result in trend.results]
    rows = []
    for control in trend.results[-1].controls:
        statuses = [found[control.id].status.value if control.id in found else "" for found in by_run]
        if any(status and status not in _CONSTANT for status in statuses):
            rows.append((control.id, control.title, *statuses))
    return rows


def _titles(trend: ControlTrend) -> list[str]:
    return ["control", "title", *(f"run {run.number}" for run in trend.runs)]


def _scores(trend: ControlTrend) -> list[str]:
    """Return the share of technical controls that pass in each run, in percent."""
    strict = [result.summary.strict for result in trend.results]
    return ["strict %", "", *("-" if value is None else f"{value:.2f}" for value in strict)]


def _control_lines(trend: ControlTrend, _: int) -> Iterator[Line]:
    """Yield a table without the titles of controls."""
    yield ((f"{trend.estate}: {trend.results[-1].id}", ""),)
    yield from align((row[0], *row[2:]) for row in (_titles(trend), *_rows(trend), _scores(trend)))
    yield ((trend.results[-1].disclaimer, ""),)
    yield BLANK


def _control_rows(trend: ControlTrend) -> Iterator[Sequence[str]]:
    for run, result in zip(trend.runs, trend.results, strict=True):
        yield from ((trend.estate, str(run.number), one.id, one.status.value) for one in result.controls)


def render_json(trends: Sequence[ControlTrend]) -> str:
    """Return an entry for each estate, with the summary and the statuses of each run."""
    document = [
        {
            "estate": trend.estate,
            "framework": trend.results[-1].id,
            "runs": [
                {
                    "run": run.number,
                    "asOf": run.as_of,
                    "strict": result.summary.strict,
                    "controls": {control.id: control.status.value for control in result.controls},
                }
                for run, result in zip(trend.runs, trend.results, strict=True)
            ],
        }
        for trend in trends
    ]
    return orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n"


#: The forms of the statuses of controls.
CONTROL_FORMATS: Forms = {
    "json": render_json,
    **prose_forms(
        _control_lines,
        lambda trend: section(
            f"{trend.estate}: {trend.results[-1].id}", _titles(trend), [*_rows(trend), _scores(trend)]
        ),
        ("estate", "run", "control", "status"),
        _control_rows,
    ),
}
