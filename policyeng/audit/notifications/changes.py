"""The changes of an estate since its last notification: new and fixed findings, and new problems."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from policyeng.audit.records import AuditRun, FindingSpan, History
from policyeng.errors import UsageError
from policyeng.models import Outcome, Problem
from policyeng.report.context import Owners, owners_of

_IN_PART = "something in it could not be read or judged"


@dataclass(frozen=True, slots=True)
class FindingChange:
    """A new or fixed finding.

    Attributes:
        span: the current or last span of the finding.
        fixed: whether the policy passes now, or the resource is gone.
        owner: of the resource; empty without one.
    """

    span: FindingSpan
    fixed: bool
    owner: str = ""


@dataclass(frozen=True, slots=True)
class RunChanges:
    """The changes of an estate since its last notification.

    Attributes:
        run: the newest run.
        since: the run of the last notification; None without one, when all findings are new.
        changes: the most severe first.
        exempted: the number of findings that are newly exempt.
        problems: new ones of reading and evaluating.
    """

    run: AuditRun
    since: AuditRun | None
    changes: Sequence[FindingChange]
    exempted: int = 0
    problems: Sequence[Problem] = ()


def find_news(history: History, estate: str, told: int | None, *, owned: bool = True) -> RunChanges | None:
    """Return the changes of an estate since its last notification; None if that covers the newest run.

    A part that the newest run could not read is skipped: its findings are not fixed. When it is read again, it is
    compared with the last run that could read it.

    Args:
        history: the runs.
        estate: its name; one that has a run.
        told: the number of the last run that targets were notified of; None without one.
        owned: whether to read snapshots for the owners.

    Raises:
        StoreError: the store is broken.
    """
    newest = history.runs(estate, last=1)[-1]
    if told is not None and told >= newest.number:
        return None
    since = None if told is None else history.run(told)
    before = _Before(history, since)
    unread, faulty = _unread(history, newest), _find_faulty_parts(history, newest)
    changes: list[FindingChange] = []
    exempted = 0
    spans = history.spans(estate, since=before.earliest if since else newest.number)
    for part, members in groupby(spans, attrgetter("part")):
        if part in unread:
            continue
        moved, taken = _find_moved_findings(members, before.run_of(part), newest.number)
        exempted += taken if since else 0
        changes += _owned(moved, history, newest, since, part) if owned else moved
    changes.sort(key=_sort_by_severity)
    known = () if since is None else since.problems
    problems = [each for each in newest.problems if each.level == "error" and each not in known]
    if since is not None:
        others = sorted(faulty - _find_faulty_parts(history, since))
        problems += [Problem(level="error", message=_IN_PART, place=part) for part in others]
    return RunChanges(newest, since, changes, exempted, problems)


class _Before:
    """By part, the run to compare with: that of the last notification, or the last that could read the part."""

    def __init__(self, history: History, since: AuditRun | None) -> None:
        self._told = 0 if since is None else since.number
        self._others: dict[str, int] = {}
        missing = set() if since is None else _unread(history, since)
        if missing and since is not None:
            self._look_back(history, since, missing)
        self.earliest = min((number for number in self._others.values() if number), default=self._told)

    def _look_back(self, history: History, since: AuditRun, missing: set[str]) -> None:
        for run in reversed(history.runs(since.estate)):
            if run.number < since.number and missing:
                found = {part.name for part in history.parts(run) if part.evaluation} & missing
                self._others |= dict.fromkeys(found, run.number)
                missing -= found
        self._others |= dict.fromkeys(missing, 0)

    def run_of(self, part: str) -> int:
        return self._others.get(part, self._told)


def _unread(history: History, run: AuditRun) -> set[str]:
    return {part.name for part in history.parts(run) if not part.evaluation}


def _find_faulty_parts(history: History, run: AuditRun) -> set[str]:
    """Return the parts with problems that no finding reports."""
    parts = history.parts(run)
    return {part.name for part in parts if part.evaluation and part.exit_code > 1 and not part.summary.error}


def _find_moved_findings(spans: Iterable[FindingSpan], before: int, now: int) -> tuple[list[FindingChange], int]:
    """Return the new and the gone findings of a part, and the number of newly exempt ones."""
    changes: list[FindingChange] = []
    exempted = 0
    for _, members in groupby(spans, attrgetter("policy", "resource")):
        same = list(members)
        earlier, later = _find_period(same, before), _find_period(same, now)
        counted = earlier is not None and not earlier.exempt
        if later is None:
            changes += [FindingChange(earlier, fixed=True)] if earlier is not None and counted else []
        elif later.exempt:
            exempted += counted
        elif earlier is None or not counted or earlier.outcome is not later.outcome:
            changes.append(FindingChange(later, fixed=False))
    return changes, exempted


def _find_period(spans: Iterable[FindingSpan], run: int) -> FindingSpan | None:
    """Return the period of a run."""
    return next((span for span in spans if span.first <= run and (span.until is None or run < span.until)), None)


def _owned(
    changes: Sequence[FindingChange], history: History, newest: AuditRun, since: AuditRun | None, part: str
) -> Iterator[FindingChange]:
    """Return the changes of a part with their owners; a gone finding keeps its owner."""
    if not changes:
        return
    now = _owners(history, newest, part)
    then = now
    if since is not None and any(change.fixed for change in changes):
        then = {**now, **_owners(history, since, part)}
    for change in changes:
        owners = Owners(then) if change.fixed else Owners(now)
        yield FindingChange(change.span, change.fixed, owners.get(change.span.resource, ""))


def _owners(history: History, run: AuditRun, name: str) -> Mapping[str, str]:
    """Return the owners in a part of a run; none if the part is missing or retention removed it."""
    part = history.part(run, name)
    try:
        return {} if part is None else dict(owners_of(history.snapshot(part)))
    except UsageError:
        return {}


def _sort_by_severity(change: FindingChange) -> tuple[object, ...]:
    span = change.span
    return -span.severity.rank, span.outcome is not Outcome.FAIL, span.policy, span.part, span.resource
