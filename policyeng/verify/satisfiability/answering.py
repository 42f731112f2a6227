"""The answer for a class of workloads: a witness, or the fewest policies that conflict, and since when that is so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Literal

from policyeng.bundle import Bundle
from policyeng.bundle.moments import moments
from policyeng.errors import EngineError
from policyeng.evaluation import evaluate
from policyeng.models import JsonObject, Outcome, Snapshot
from policyeng.verify.cases import STATED
from policyeng.verify.satisfiability.classes import Expected, WorkloadClass
from policyeng.verify.satisfiability.estates import Assignment, Estates
from policyeng.verify.satisfiability.extending import Extension, extend
from policyeng.verify.satisfiability.hitting import smallest_hitting_sets
from policyeng.verify.satisfiability.judging import Judge, Reason
from policyeng.verify.satisfiability.searching import Search
from policyeng.verify.satisfiability.timeline import Span, samples, spans

Status = Literal["possible", "impossible", "not judged"]


@dataclass(frozen=True)
class Remainder:
    """What passes a conflicting set of policies but for one, with all that it fails."""

    policy: str
    assignment: Assignment
    failing: Mapping[str, Sequence[Reason]]

    @property
    def reason(self) -> str:
        """Why it does not pass the policy itself, in one line."""
        return self.failing[self.policy][0].words


@dataclass(frozen=True)
class Conflict:
    """A smallest set of policies that no estate of the class passes together.

    Attributes:
        at: a moment at which they conflict.
        remainders: for each of the policies, in order, an estate that passes all the others.
    """

    at: datetime
    remainders: tuple[Remainder, ...]

    @property
    def policies(self) -> tuple[str, ...]:
        """The ids, sorted."""
        return tuple(remainder.policy for remainder in self.remainders)


@dataclass(frozen=True)
class Witness:
    """An estate of the class that passes every policy."""

    assignment: Assignment
    snapshot: Snapshot

    @cached_property
    def document(self) -> JsonObject:
        """The estate as a native snapshot."""
        stated = {
            kind: [
                entry.model_dump(mode="json", by_alias=True, exclude_none=True)
                for entry in getattr(self.snapshot, kind)
            ]
            for kind in STATED
        }
        return {"snapshotVersion": 1, "resources": list(self.snapshot.resources), **stated}


@dataclass(frozen=True)
class Answer:
    """What was found out about a class.

    Attributes:
        spans: the times in which it is possible and impossible, in order; one alone where only the clock was asked.
        endings: by the beginning of a time in which it is impossible, why what was possible ends there.
        conflicts: all smallest sets of policies that conflict: at the clock, else at the next time that is impossible.
        tried: how many estates were judged.
        outside: how many combinations lack what the class is about.
        extension: what was tried beyond the choices of the class; None where that was not needed.
    """

    subject: WorkloadClass
    as_of: datetime
    status: Status
    tried: int = 0
    outside: int = 0
    witness: Witness | None = None
    spans: tuple[Span, ...] = ()
    endings: Mapping[datetime, tuple[str, ...]] | None = None
    conflicts: tuple[Conflict, ...] = ()
    extension: Extension | None = None

    @property
    def is_as_expected(self) -> bool:
        """Whether it is possible, or impossible since when the class says that it is."""
        expected = self.subject.expected
        return (
            self.status != "impossible"
            if expected is None
            else self.status == "not judged" or _fits(expected, self.spans)
        )


def answer(
    subject: WorkloadClass,
    bundle: Bundle,
    as_of: datetime,
    parameters: Mapping[str, JsonObject] | None = None,
    *,
    timeline: bool = True,
) -> Answer:
    """Find out whether an estate of a class passes every policy of a bundle.

    Args:
        subject: the class.
        bundle: the policies in force.
        as_of: the clock; that of the class is its caller's to look at.
        parameters: by policy id, what replaces the defaults.
        timeline: find out for all dates; else for the clock alone, which is quicker.

    Raises:
        BundleError: the class does not fit the baselines and facts, or an estate of it cannot be judged.
        UsageError: a parameter does not exist or does not fit.
        EngineError: the bundle does not compile.
    """
    clock = as_of.astimezone(UTC)
    if all(policy.input_form != "policy" for policy in bundle.policies):  # they judge documents, and no resource
        return Answer(subject, clock, "not judged")
    estates, judge = Estates(bundle, subject), Judge(bundle, parameters or {})
    known = moments(bundle, judge.parameters, estates.documents(), estates.types()) if timeline else []
    sampled = samples(known, clock) if timeline else [clock]
    search = Search(estates, judge, clock, sampled)
    search.walk(estates.assignments())
    if not search.tried:
        return Answer(subject, clock, "not judged", outside=search.outside + search.unjudged)
    extension = None if search.is_possible else extend(search)
    held = [number not in search.open for number in range(len(sampled))]
    found = tuple(spans(sampled, held, search.holds))
    broken = clock if not search.is_possible else _next_impossible(found, clock)
    return Answer(
        subject,
        clock,
        "possible" if search.is_possible else "impossible",
        tried=len(search.tried),
        outside=search.outside + search.unjudged,
        witness=_witness(search, parameters or {}) if search.is_possible else None,
        spans=found,
        endings=_endings(search, found),
        conflicts=_conflicts(search, broken) if broken else (),
        extension=extension,
    )


def _fits(expected: Expected, found: Sequence[Span]) -> bool:
    last = found[-1]
    if expected.impossible == "always" or last.begins is None:
        return len(found) == 1 and not last.possible and expected.impossible == "always"
    return not last.possible and last.begins.date() == expected.impossible


def _next_impossible(found: Iterable[Span], clock: datetime) -> datetime | None:
    return next((span.begins for span in found if span.begins and span.begins > clock and not span.possible), None)


def _witness(search: Search, parameters: Mapping[str, JsonObject]) -> Witness:
    """The first estate that passes, once more as `policyeng check` judges it.

    Raises:
        EngineError: it does not pass there.
    """
    tried = next(tried for tried, _ in search.survivors if not tried.failing)
    snapshot = search.estates.snapshot(tried.assignment)
    evaluation = evaluate(search.judge.bundle, snapshot, as_of=search.as_of, parameters=parameters)
    failed = [finding.policy for finding in evaluation.findings if finding.outcome is not Outcome.PASS]
    if failed or evaluation.exit_code:
        raise EngineError(
            f"the witness does not pass `{', '.join(failed)}` a second time", place=(search.estates.place,)
        )
    return Witness(tried.assignment, snapshot)


def _endings(search: Search, found: Sequence[Span]) -> dict[datetime, tuple[str, ...]]:
    endings = {}
    for span in found:
        if span.begins and not span.possible:
            before = span.begins - timedelta(seconds=1)
            reasons = [
                reason.brief
                for _, estate in search.survivors
                if estate.passes(before)
                for said in estate.verdicts(span.begins, clocked_alone=True).failing.values()
                for reason in said
            ]
            endings[span.begins] = tuple(dict.fromkeys(reasons))
    return endings


def _conflicts(search: Search, at: datetime) -> tuple[Conflict, ...]:
    if at == search.as_of:
        failing = [(tried.assignment, tried.failing) for tried in search.tried]
    else:
        failing = [(tried.assignment, said) for tried, said in search.failing_at(at)]
    sets = smallest_hitting_sets(frozenset(said) for _, said in failing)
    failing.sort(key=lambda entry: len(entry[1]))
    return tuple(
        Conflict(
            at,
            tuple(
                Remainder(policy, *next(entry for entry in failing if conflicting & entry[1].keys() == {policy}))
                for policy in sorted(conflicting)
            ),
        )
        for conflicting in sets
    )
