"""The statuses of the controls of a framework in stored runs, and how they changed from run to run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain

import orjson

from policyeng.audit.diff.report import as_csv
from policyeng.audit.records import AuditRun, History
from policyeng.errors import UsageError
from policyeng.frameworks import evaluate_framework, framework_of
from policyeng.models import ControlStatus, Evaluation, FrameworkResult, Snapshot
from policyeng.named import NamedTuple
from policyeng.report.markdown_tables import table

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


def render_text(trends: Sequence[ControlTrend]) -> str:
    """Return a table for each estate, without the titles of controls."""
    blocks = []
    for trend in trends:
        rows = [(row[0], *row[2:]) for row in (_titles(trend), *_rows(trend), _scores(trend))]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
        blocks.append("\n".join((f"{trend.estate}: {trend.results[-1].id}", *lines, trend.results[-1].disclaimer)))
    return "\n\n".join(blocks) + "\n"


def render_markdown(trends: Sequence[ControlTrend]) -> str:
    """Return a heading and a table for each estate."""
    return "\n".join(
        f"## {trend.estate}: {trend.results[-1].id}\n\n{table(_titles(trend), [*_rows(trend), _scores(trend)])}\n"
        for trend in trends
    )


def render_csv(trends: Sequence[ControlTrend]) -> str:
    """Return a row for each estate, run and control."""
    rows = [
        (trend.estate, str(run.number), control.id, control.status.value)
        for trend in trends
        for run, result in zip(trend.runs, trend.results, strict=True)
        for control in result.controls
    ]
    return as_csv(("estate", "run", "control", "status"), rows)


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


CONTROL_FORMATS: Mapping[str, Callable[[Sequence[ControlTrend]], str]] = {
    "text": render_text,
    "json": render_json,
    "csv": render_csv,
    "markdown": render_markdown,
}
