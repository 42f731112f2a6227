"""Forecasts: evaluations of the same inputs at later clocks, and the second of each flip.

Policies that read the clock are evaluated when exemptions begin and end, at every time in their data, their code or the
snapshot, shifted by the days in their numbers, and between each two of these. The second of a flip between two clocks
is found by bisection.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

from msgspec.structs import replace
from pydantic import AwareDatetime

from policyeng import exemptions as exempting
from policyeng._performance import uncollected
from policyeng.audit.diff.inputs import (
    Became,
    Cause,
    CauseKind,
    FindingKey,
    Flip,
    State,
    Status,
    Stored,
    evaluate_state,
    index_findings,
    status_of,
)
from policyeng.audit.diff.report import alternatives_cell, because_lines, causes_sentences, flip_head, flip_words
from policyeng.audit.records import AuditRun, History
from policyeng.bundle.moments import moments, samples
from policyeng.engines import OpaOptions
from policyeng.errors import UsageError
from policyeng.evaluation import EvaluationContext, evaluate_pairs, fails, find_scopes, prepare
from policyeng.facts.ids import fold_id
from policyeng.models import Approval, FailureCriteria, Finding, Outcome, Problem, lowered
from policyeng.models.validated import ValidatedModel
from policyeng.report.escaping import markdown_code, markdown_text, section, visible
from policyeng.report.forms import table_forms
from policyeng.report.layout import BLANK, Line, conclusion, heading, labelled
from policyeng.report.markdown import policy_cell
from policyeng.report.phrases import count, problem_sentence, rfc3339, shorten_id, to_the_second

_SECOND = timedelta(seconds=1)


class UpcomingChange(ValidatedModel):
    """A future flip.

    Attributes:
        at: the first second with the new finding.
        part: of a run; empty without parts.
        flip: its causes are exemptions or approvals that begin or expire then, or the clock.
    """

    at: AwareDatetime
    part: str = ""
    flip: Flip


def forecast_flips(state: State, until: datetime, part: str = "") -> Iterator[UpcomingChange]:
    """Yield the flips after the clock of a state up to a later clock, in the order of time.

    Flips have a finding other than a pass before or after.

    Raises:
        UsageError: a parameter is unknown or does not match its schema, or the engine is unknown.
        EngineError: the bundle does not compile, or the OPA server does not answer for every pair.
    """
    look = _Look(state, until)
    found = sorted(look.turns(), key=lambda turn: (turn[0], turn[1]))
    for at, key, was, now in found:
        yield UpcomingChange(at=at, part=part, flip=look.flip(at, key, was, now))


class _Look:
    """One snapshot, evaluated at many clocks."""

    def __init__(self, state: State, until: datetime) -> None:
        self._state, self._until = state, until
        self._whole = prepare(state.bundle, state.snapshot, state.options.parameters)
        self._homes = find_scopes(self._whole.estate.subjects)
        policies = zip(state.bundle.policies, state.bundle.clocked, strict=True)
        clocked = {policy.id for policy, reads_clock in policies if reads_clock}
        self._clocked = self._whole.only(lambda policy, _: policy.id in clocked)
        self._still = [
            finding for finding in self._judged(self._whole, state.options.as_of) if finding.policy not in clocked
        ]

    @uncollected()
    def _judged(self, prepared: EvaluationContext, at: datetime) -> Sequence[Finding]:
        return evaluate_pairs(prepared, replace(self._state.options, as_of=at))

    def _marked(self, findings: Sequence[Finding], at: datetime) -> dict[FindingKey, Finding]:
        state = self._state
        marked, _ = exempting.apply(findings, state.options.exemptions, state.bundle.policies, self._homes, at)
        return index_findings(marked)

    def turns(self) -> Iterator[tuple[datetime, FindingKey, Finding | None, Finding | None]]:
        """Yield the time, key, and both findings of each flip."""
        at = self._state.options.as_of
        earlier = self._found(at)
        for following in self._clocks:
            later = self._found(following)
            for key in sorted({**earlier, **later}):
                old, new = earlier.get(key), later.get(key)
                if status_of(old) != status_of(new) and (_is_reported(old) or _is_reported(new)):
                    yield self._exactly(key, at, following, new), key, old, new
            at, earlier = following, later

    def _found(self, at: datetime) -> dict[FindingKey, Finding]:
        """Everything that is found at a clock."""
        return self._marked([*self._still, *self._judged(self._clocked, at)], at)

    @cached_property
    def _clocks(self) -> list[datetime]:
        """The later clocks to evaluate at, in order."""
        begin, until = self._state.options.as_of, self._until
        if until <= begin:
            return []
        turns = (turn for one in self._state.options.exemptions for turn in (one.created_at, one.expires_at))
        ends = {max(_next_second(turn), begin + _SECOND) for turn in turns if begin <= turn < until}
        return sorted({*(end for end in ends if end < until), *(self._samples if self._clocked.planned else ()), until})

    def _exactly(self, key: FindingKey, before: datetime, after: datetime, new: Finding | None) -> datetime:
        """Return the first second in a period with the finding of its end."""
        alone = self._whole.only(
            lambda policy, subject: (policy.id, lowered(subject.reported_type), fold_id(subject.reported_id)) == key[:3]
        )
        wanted = status_of(new)
        while after - before > _SECOND:
            middle = _find_midpoint(before, after)
            if status_of(self._marked(self._judged(alone, middle), middle).get(key)) == wanted:
                after = middle
            else:
                before = middle
        return after

    @cached_property
    def _samples(self) -> list[datetime]:
        """The clocks at which policies that read the clock can have other findings."""
        begin, estate = self._state.options.as_of, self._whole.estate
        types = {subject.target_type for subject in estate.subjects}
        known = moments(self._state.bundle, self._whole.parameters, [estate.document], types)
        within = [at for at in known if begin < at <= self._until]
        return [at for at in samples([*within, self._until], begin) if begin < at <= self._until]

    def flip(self, at: datetime, key: FindingKey, was: Finding | None, now: Finding | None) -> Flip:
        """Return a flip with its causes."""
        standing = [one for one in (now, was) if _is_reported(one) and one is not None]
        return Flip(
            before=was.outcome if was else None,
            after=now.outcome if now else None,
            exempt_before=was is not None and was.exemption is not None,
            exempt_after=now is not None and now.exemption is not None,
            causes=tuple((cause,) for cause in self._causes(at, key, status_of(was))),
            finding=standing[0],
        )

    def _causes(self, at: datetime, key: FindingKey, wanted: Status | None) -> list[Cause]:
        """Return the exemptions and approvals that begin or expire then and cause the flip, or the clock."""
        found = [*self._exemptions(at, key, wanted), *self._approvals(at, key, wanted)]
        before, after = (rfc3339(moment) for moment in (self._state.options.as_of, at))
        return found or [Cause(kind=CauseKind.CLOCK, change="changed", before=before, after=after)]

    def _exemptions(self, at: datetime, key: FindingKey, wanted: Status | None) -> Iterator[Cause]:
        for one in self._state.options.exemptions:
            change = _has_turning_point(one.created_at, one.expires_at, at)
            if change is None or one.policy != key.policy:
                continue
            others = [other for other in self._state.options.exemptions if other.id != one.id]
            if change == "lapsed":
                others.append(one.model_copy(update={"expires_at": at + _SECOND}))
            if _status(self._state.with_options(exemptions=others), key, at) == wanted:
                ends = rfc3339(one.expires_at)
                yield Cause(kind=CauseKind.EXEMPTION, change=change, subject=one.id, before=ends, after=ends)

    def _approvals(self, at: datetime, key: FindingKey, wanted: Status | None) -> Iterator[Cause]:
        snapshot = self._state.snapshot
        for number, one in enumerate(snapshot.approvals):
            change = _has_turning_point(one.granted_at, one.expires_at, at)
            if change is None:
                continue
            still = [*snapshot.approvals]
            still[number] = _as_before(one, change)
            state = dataclasses.replace(self._state, snapshot=snapshot.model_copy(update={"approvals": tuple(still)}))
            if _status(state, key, at) == wanted:
                ends = rfc3339(one.expires_at) if one.expires_at else ""
                yield Cause(kind=CauseKind.APPROVAL, change=change, subject=one.id, before=ends, after=ends)


def _has_turning_point(begins: datetime | None, ends: datetime | None, at: datetime) -> Became | None:
    """Return whether a period begins or ends in a second."""
    if ends is not None and ends <= at < ends + _SECOND:
        return "lapsed"
    return "began" if begins is not None and begins <= at < begins + _SECOND else None


def _as_before(approval: Approval, change: Became) -> Approval:
    """Return an approval that does not expire, or that is not granted yet."""
    return approval.model_copy(update={"expires_at": None} if change == "lapsed" else {"status": "requested"})


def _status(state: State, key: FindingKey, at: datetime) -> Status | None:
    """Return one finding at a clock."""
    policies = [policy for policy in state.bundle.policies if policy.id == key.policy]
    alone = dataclasses.replace(state.with_options(as_of=at), bundle=state.bundle.only(policies))
    return status_of(index_findings(evaluate_state(alone).findings).get(key))


def _next_second(moment: datetime) -> datetime:
    """Return the first full second after a moment."""
    return moment.replace(microsecond=0) + _SECOND


def _is_reported(finding: Finding | None) -> bool:
    return finding is not None and finding.outcome is not Outcome.PASS


def _find_midpoint(one: datetime, other: datetime) -> datetime:
    """Return a moment between two others, at a full second if possible."""
    middle = one + (other - one) / 2
    rounded = middle.replace(microsecond=0)
    return rounded if rounded > one else middle


class Outlook(ValidatedModel):
    """A forecast of the flips if nothing changes, in the order of time.

    Attributes:
        run: the number of the run with the snapshots; None for new snapshots.
        begins, until: the period.
        problems: of parts that could not be evaluated.
    """

    exit_code: int
    estate: str
    run: int | None = None
    begins: AwareDatetime
    until: AwareDatetime
    parts: int = 0
    coming: tuple[UpcomingChange, ...] = ()
    problems: tuple[Problem, ...] = ()


class Ready(NamedTuple):
    """A part to evaluate, or its problems."""

    name: str
    state: State | None
    problems: tuple[Problem, ...] = ()


def stored_parts(history: History, run: AuditRun, begins: datetime, opa: OpaOptions | None = None) -> Iterator[Ready]:
    """Yield the parts of a run, with its policies and options, at another clock."""
    stored = Stored(history, run, opa)
    for part in history.parts(run):
        try:
            yield Ready(part.name, stored.of(history.snapshot(part), begins))
        except UsageError as error:
            yield Ready(part.name, None, (Problem(level="error", message=str(error)),))


def forecast_parts(
    parts: Iterable[Ready],
    estate: str,
    begins: datetime,
    until: datetime,
    criteria: FailureCriteria,
    run: int | None = None,
) -> Outlook:
    """Forecast each part, one by one.

    The exit code is 2 for errors, 1 for a future failure by the criteria, otherwise 0.

    Raises:
        UsageError: a parameter is unknown or does not match its schema, or the engine is unknown.
        EngineError: a bundle does not compile, or the OPA server does not answer for every pair.
    """
    found: list[UpcomingChange] = []
    problems: list[Problem] = []
    number = 0
    for part in parts:
        number += 1
        problems += (one.model_copy(update={"place": _place(part.name, one)}) for one in part.problems)
        if part.state is not None:
            found += forecast_flips(part.state, until, part.name)
    found.sort(key=lambda one: one.at)
    is_undecided = any(one.level == "error" for one in problems) or any(
        one.flip.after is Outcome.ERROR for one in found
    )
    return Outlook(
        exit_code=2 if is_undecided else int(any(_will_fail(one, criteria) for one in found)),
        estate=estate,
        run=run,
        begins=begins,
        until=until,
        parts=number,
        coming=tuple(found),
        problems=tuple(problems),
    )


def _place(name: str, problem: Problem) -> str:
    return f"{name}: {problem.place}" if problem.place and problem.place != name else name


def _will_fail(one: UpcomingChange, criteria: FailureCriteria) -> bool:
    is_current = one.flip.after is one.flip.finding.outcome
    return is_current and fails(one.flip.finding, criteria)


def _lines(outlook: Outlook, width: int) -> Iterator[Line]:
    """Yield the flips by their times, with causes."""
    for at, together in groupby(outlook.coming, lambda one: one.at):
        days = (at - outlook.begins).days
        yield from heading(f"{to_the_second(at)}, in {count(days, 'day')}")
        for one in together:
            where = f"{shorten_id(one.flip.finding.resource)}{f', {visible(one.part)}' if one.part else ''}"
            yield from flip_head(one.flip, where, width)
            yield from because_lines([" or ".join(causes_sentences(one.flip.causes))], width, indent=2)
            yield BLANK
    for problem in outlook.problems:
        yield from labelled(problem.level, problem_sentence(problem), width, indent=2)
    yield from conclusion(conclude(outlook), outlook.exit_code, width)


def conclude(outlook: Outlook) -> str:
    """Return the exit code and the number of flips in the period."""
    run = f", run {outlook.run}" if outlook.run else ""
    words = f"{count(len(outlook.coming), 'finding')} will flip" if outlook.coming else "nothing will flip"
    span = f"from {to_the_second(outlook.begins)} to {to_the_second(outlook.until)}"
    return visible(f"exit {outlook.exit_code}: {outlook.estate}{run}: {words} {span} if nothing changes")


def _markdown(outlook: Outlook) -> str:
    titles = ("At", "Severity", "Policy", "Part", "Resource", "Flip", "Because")
    return section(markdown_text(conclude(outlook)), titles, map(_row, outlook.coming))


def _row(one: UpcomingChange) -> tuple[str, ...]:
    finding = one.flip.finding
    return (
        to_the_second(one.at),
        str(finding.severity),
        policy_cell(finding),
        markdown_code(one.part) if one.part else "",
        markdown_code(shorten_id(finding.resource)),
        flip_words(one.flip),
        alternatives_cell(causes_sentences(one.flip.causes)),
    )


def _cells(outlook: Outlook) -> Iterator[Sequence[str]]:
    for one in outlook.coming:
        finding, because = one.flip.finding, "; or ".join(causes_sentences(one.flip.causes))
        names = (finding.severity, finding.policy, finding.title, one.part, finding.resource)
        yield outlook.estate, to_the_second(one.at), *names, flip_words(one.flip), because


_COLUMNS = ("estate", "at", "severity", "policy", "title", "part", "resource", "flip", "because")
FORMS = table_forms("outlooks", _lines, _markdown, _COLUMNS, _cells)
