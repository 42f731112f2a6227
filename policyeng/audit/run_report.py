"""Reports of a run: the findings of all parts, with the history of the estate."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeVar

from msgspec.structs import replace

from policyeng.audit.records import AuditRun, FindingSpan, History, RunPart
from policyeng.errors import UsageError, suggest_nearest
from policyeng.models import Evaluation, Finding, LedgerEntry, Outcome, Problem, Severity, SnapshotRef
from policyeng.ownership import OWNER_TAG
from policyeng.report.context import HistoryPoint, ReportContext, Since, Trend, assign_owners, kinds_of, owners_of
from policyeng.report.csv import lines

#: How many findings a report on all parts lists, of those that need a reader and of passes; the rest is counted.
LISTED, LISTED_PASSES = 20_000, 20_000
_Placed = TypeVar("_Placed", Problem, LedgerEntry)
#: How many problems it lists, and how many runs its trends have.
PROBLEMS, RUNS = 1_000, 60


@dataclass(frozen=True, slots=True)
class Reported:
    """The evaluation of a run and its report context."""

    evaluation: Evaluation
    about: ReportContext


def run_to_report(history: History, estate: str | None, number: int | None = None) -> AuditRun:
    """Return the run of a number, or the newest run of an estate or of the only estate.

    Raises:
        UsageError: there is no such run, or no estate is named and there are several.
    """
    if number is not None:
        run = history.run(number)
        if estate is not None and run.estate != estate:
            raise UsageError(f"run {number} is of estate `{run.estate}`", remedy=f"leave `{estate}` out, or name that")
        return run
    known = history.estates()
    if estate is None and len(known) != 1:
        remedy = (
            f"name one of {', '.join(f'`{name}`' for name in known)}" if known else "`policyeng audit run` makes one"
        )
        raise UsageError("there are several estates" if known else "the store has no run", remedy=remedy)
    name = known[0] if estate is None else estate
    if not (runs := history.runs(name, last=1)):
        raise UsageError(
            f"there is no run of estate `{name}`{suggest_nearest(name, known)}",
            remedy="`policyeng audit run` makes one",
        )
    return runs[0]


def reported(history: History, run: AuditRun, *, owner_tag: str = OWNER_TAG) -> Reported:
    """Return the report of a run. Memory contains one part at a time, and the listed findings.

    The report lists the `LISTED` most severe findings other than passes, and the first `LISTED_PASSES` passes. Problems
    of the report state how many others there are.

    Raises:
        UsageError: retention removed the evaluation of a part.
        StoreError: the store cannot be read.
    """
    kept, problems, ledger = Listed(), list(run.problems), list(run.ledger)
    owners: dict[str, str] = {}
    snapshot = SnapshotRef(scope="", taken_at=None, digest=run.content)
    for part, evaluation, about in _parts(history, run, owner_tag):
        kept.add(evaluation.findings)
        owners |= {finding.resource: owner for finding in evaluation.findings if (owner := about.owner(finding))}
        problems += _add_part_name(part, evaluation.problems, alone=run.parts == 1)
        ledger += _add_part_name(part, evaluation.ledger, alone=run.parts == 1)
        snapshot = evaluation.snapshot if run.parts == 1 else snapshot
    findings = kept.findings()
    evaluation = Evaluation(
        bundle=run.bundle,
        snapshot=snapshot,
        as_of=run.as_of,
        engine=run.engine,
        exit_code=run.exit_code,
        fail_on=run.fail_on,
        strict_unknown=run.strict_unknown,
        summary=run.summary,
        findings=findings,
        problems=(*kept.problems(), *problems[:PROBLEMS], *_shorten(problems)),
        ledger=tuple(ledger),
        settings=run.settings,
    )
    resources = {finding.resource for finding in findings}
    named = {resource: owner for resource, owner in owners.items() if resource in resources}
    if owner_tag.lower() != OWNER_TAG:
        evaluation = assign_owners(evaluation, named)
    trend = trend_of(history, run, findings)
    return Reported(evaluation, ReportContext(owner_tag, named, kinds_of(history.bundle(run)), trend, run.inputs))


def csv_lines(history: History, run: AuditRun, *, owner_tag: str = OWNER_TAG) -> Iterator[str]:
    """Yield every finding of a run as CSV, with one part at a time in memory.

    Raises:
        UsageError: retention removed the evaluation of a part.
        StoreError: the store cannot be read.
    """
    kinds = kinds_of(history.bundle(run))
    since: dict[str, dict[tuple[str, str], Since]] = {}
    for span in history.spans(run.estate, since=run.number):
        if _is_open(span, run):
            since.setdefault(span.part, {})[span.policy, span.resource] = _since(span)
    yield from lines((), ReportContext(), headed=True)
    for part, evaluation, about in _parts(history, run, owner_tag):
        trend = Trend.model_construct(estate=run.estate, run=run.number, since=since.pop(part.name, {}))
        yield from lines(evaluation.findings, ReportContext(owner_tag, about.owners, kinds, trend), headed=False)


def trend_of(history: History, run: AuditRun, findings: Sequence[Finding]) -> Trend:
    """Return the history of an estate up to a run, with the ages of these findings."""
    runs = [each for each in history.runs(run.estate) if each.number <= run.number][-RUNS:]
    numbers = [each.number for each in runs]
    changes = {severity: [0] * (len(runs) + 1) for severity in Severity}
    queried = {(finding.policy, finding.resource) for finding in findings if finding.outcome is not Outcome.PASS}
    since: dict[tuple[str, str], Since] = {}
    for span in history.spans(run.estate, since=numbers[0]):
        if span.outcome is Outcome.FAIL and not span.exempt:
            changes[span.severity][bisect_left(numbers, span.first)] += 1
            changes[span.severity][len(runs) if span.until is None else bisect_left(numbers, span.until)] -= 1
        key = (span.policy, span.resource)
        if key in queried and _is_open(span, run) and (key not in since or span.first < since[key].run):
            since[key] = _since(span)
    failures = {severity: list(accumulate(counts)) for severity, counts in changes.items()}
    points = tuple(
        HistoryPoint(
            run=each.number,
            as_of=each.as_of,
            strict=each.summary.strict_compliance,
            azure=each.summary.azure_compliance,
            failures={severity: counts[at] for severity, counts in failures.items()},
        )
        for at, each in enumerate(runs)
    )
    return Trend(estate=run.estate, run=run.number, points=points, since=since)


class Listed:
    """The findings that a report lists, of all that are added."""

    def __init__(self, needing: int = LISTED, passing: int = LISTED_PASSES) -> None:
        self._room, self._passing_room = needing, passing
        self._needing: dict[Severity, list[Finding]] = {severity: [] for severity in Severity}
        self._passing: list[Finding] = []
        self._dropped = self._dropped_passes = 0

    def add(self, findings: Iterable[Finding]) -> None:
        """Add findings. Beyond the limit, drop the least severe, the last added first."""
        for finding in findings:
            if finding.outcome is not Outcome.PASS:
                self._needing[finding.severity].append(finding)
                self._room -= 1
            elif len(self._passing) < self._passing_room:
                self._passing.append(finding)
            else:
                self._dropped_passes += 1
            if self._room < 0:
                next(filter(None, self._needing.values())).pop()
                self._room += 1
                self._dropped += 1

    def findings(self) -> tuple[Finding, ...]:
        """Return the listed findings in the order of an evaluation."""
        every = [*self._passing, *(finding for each in self._needing.values() for finding in each)]
        return tuple(sorted(every, key=lambda finding: (finding.policy, finding.resource.lower())))

    def problems(self) -> Iterator[Problem]:
        """Yield a warning for the findings that are not listed."""
        for number, what in ((self._dropped, "of the least severe findings"), (self._dropped_passes, "passes")):
            if number:
                message = f"{number} {what} are counted and not listed; the report as csv has them all"
                yield Problem(level="warning", message=message)


def _parts(history: History, run: AuditRun, owner_tag: str) -> Iterator[tuple[RunPart, Evaluation, ReportContext]]:
    """Yield each part that was evaluated, with the owners of its resources."""
    for part in history.parts(run):
        if part.evaluation:
            evaluation = history.evaluation(part)
            yield part, evaluation, ReportContext(owner_tag, owners_of(history.snapshot(part), owner_tag))


def _add_part_name(part: RunPart, entries: Iterable[_Placed], *, alone: bool) -> list[_Placed]:
    """Return problems or entries of the ledger of a part, with its name unless it is the only part."""
    return [
        entry if alone or part.name in entry.place else replace(entry, place=f"{part.name} {entry.place}".strip())
        for entry in entries
    ]


def _shorten(problems: Sequence[Problem]) -> list[Problem]:
    more = len(problems) - PROBLEMS
    return [Problem(level="warning", message=f"{more} more problems are not listed")] if more > 0 else []


def _is_open(span: FindingSpan, run: AuditRun) -> bool:
    return span.first <= run.number and (span.until is None or run.number < span.until)


def _since(span: FindingSpan) -> Since:
    return Since(run=span.first, as_of=span.first_seen)
