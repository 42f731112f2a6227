"""Comparison of two states: new, fixed, changed and persisting findings, and the causes of each flip."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from policyeng.audit.diff.inputs import (
    Cause,
    CauseKind,
    ComparedEvaluation,
    Comparison,
    FindingKey,
    Flip,
    State,
    Status,
    evaluate_state,
    index_findings,
    status_of,
)
from policyeng.audit.diff.root_causes import CauseSearch, Counterfactuals
from policyeng.evaluation import added, fails
from policyeng.models import Evaluation, FailureCriteria, Finding, Outcome, Problem, Snapshot, SnapshotRef, Summary

#: The message for a flip that a new evaluation does not reproduce.
_UNEXPLAINED = "a new evaluation does not reproduce the stored findings, so the cause of this flip is unknown"


def compare_states(
    before: State,
    after: State,
    *,
    found: tuple[Evaluation, Evaluation] | None = None,
    with_causes: bool = True,
    only: Callable[[FindingKey], bool] | None = None,
) -> Comparison:
    """Compare two states.

    Args:
        before: the earlier state.
        after: the later state; its options say which findings fail the comparison.
        found: the evaluations of both; evaluated now by default.
        with_causes: whether to search for causes, with further evaluations.
        only: selects the findings; all by default.

    Raises:
        UsageError: a parameter is unknown or does not match its schema, or an engine is unknown.
        EngineError: a bundle does not compile, or the OPA server does not answer for every pair.
    """
    earlier, later = found or (evaluate_state(before), evaluate_state(after))
    were, are = index_findings(earlier.findings), index_findings(later.findings)
    about = [key for key in {**were, **are} if only is None or only(key)]
    pairs = {key: (status_of(were.get(key)), status_of(are.get(key))) for key in about}
    flipped = sorted(
        key for key, (old, new) in pairs.items() if old != new and (_is_reported(old) or _is_reported(new))
    )
    versions = _spelled(earlier), _spelled(later)
    explained = _explained(before, after, {key: pairs[key] for key in flipped}, versions) if with_causes else {}
    lists: dict[str, list[Flip]] = {"new": [], "fixed": [], "changed": []}
    for key in flipped:
        flip = _flip(were.get(key), are.get(key), explained.get(key, ()))
        lists[_list_of(*pairs[key])].append(flip)
    unexplained = [key for key in flipped if with_causes and not explained[key]]
    return Comparison(
        exit_code=_exit_code((earlier, later), ((were.get(key), are.get(key)) for key in flipped), after.options),
        before=summarize(earlier),
        after=summarize(later),
        new=tuple(lists["new"]),
        fixed=tuple(lists["fixed"]),
        changed=tuple(lists["changed"]),
        persisting=tuple(are[key] for key, (old, new) in sorted(pairs.items()) if old == new and _is_reported(new)),
        problems=(*_problems(earlier, later), *(_list_unexplained(key) for key in unexplained)),
    )


def summarize(evaluation: Evaluation) -> ComparedEvaluation:
    """Return a summary of an evaluation, without findings."""
    return ComparedEvaluation(
        bundle=evaluation.bundle,
        snapshot=evaluation.snapshot,
        as_of=evaluation.as_of,
        engine=evaluation.engine,
        summary=evaluation.summary,
    )


def _spelled(evaluation: Evaluation) -> str:
    return f"{evaluation.engine.name} {evaluation.engine.version}"


def _is_reported(status: Status | None) -> bool:
    return status is not None and status.is_open


def _list_of(old: Status | None, new: Status | None) -> str:
    if not _is_reported(old):
        return "new"
    return "changed" if _is_reported(new) else "fixed"


def _flip(was: Finding | None, now: Finding | None, causes: tuple[tuple[Cause, ...], ...]) -> Flip:
    standing = [finding for finding in (now, was) if finding is not None and finding.outcome is not Outcome.PASS]
    return Flip(
        before=was.outcome if was else None,
        after=now.outcome if now else None,
        exempt_before=was is not None and was.exemption is not None,
        exempt_after=now is not None and now.exemption is not None,
        causes=causes,
        finding=standing[0],
    )


def _explained(
    before: State, after: State, flips: dict[FindingKey, tuple[Status | None, Status | None]], versions: tuple[str, str]
) -> dict[FindingKey, tuple[tuple[Cause, ...], ...]]:
    """Return the causes of each flip; none if a new evaluation does not reproduce the findings.

    If a new evaluation reproduces the findings of the later state but not those of the earlier one, the cause is the
    engine version, if it differs.
    """
    worlds = Counterfactuals(before, after, flips)
    search = CauseSearch(worlds)
    found: dict[FindingKey, tuple[tuple[Cause, ...], ...]] = {}
    for key, (old, new) in flips.items():
        found[key] = ()
        if worlds.undoes(key, frozenset(), new):
            found[key] = search.causes(key, old)
            if not found[key] and versions[0] != versions[1]:
                found[key] = ((Cause(kind=CauseKind.ENGINE, change="changed", before=versions[0], after=versions[1]),),)
    return found


def _exit_code(
    sides: Sequence[Evaluation], pairs: Iterable[tuple[Finding | None, Finding | None]], criteria: FailureCriteria
) -> int:
    """Return 2 for an error on a side, 1 for a new failure or a new reason of one, otherwise 0."""
    if any(problem.level == "error" for side in sides for problem in side.problems):
        return 2
    if any(finding.outcome is Outcome.ERROR for side in sides for finding in side.findings):
        return 2
    return int(any(_is_new_failure(was, now, criteria) for was, now in pairs))


def _is_new_failure(was: Finding | None, now: Finding | None, criteria: FailureCriteria) -> bool:
    if now is None or not fails(now, criteria):
        return False
    if was is None or not fails(was, criteria):
        return True
    old, new = status_of(was), status_of(now)
    return old is None or new is None or not {*new.reasons} <= {*old.reasons}


def _problems(earlier: Evaluation, later: Evaluation) -> Iterator[Problem]:
    """Yield the problems of both sides, marked if they are of one side."""
    both = {*earlier.remarks} & {*later.remarks}
    yield from (problem for problem in later.remarks if problem in both)
    for name, side in (("before", earlier), ("after", later)):
        for problem in side.remarks:
            if problem not in both:
                yield problem.model_copy(update={"message": f"{name}: {problem.message}"})


def _list_unexplained(key: FindingKey) -> Problem:
    return Problem(level="warning", message=f"{key.policy}: {_UNEXPLAINED}", place=key.resource)


class PartPair(NamedTuple):
    """A part on both sides; None if it is missing. If both sides are one object, it is evaluated once.

    Attributes:
        problems: of reading; a part with errors is skipped.
    """

    name: str
    before: State | None
    after: State | None
    problems: Sequence[Problem] = ()


def compare_parts(
    pairs: Iterable[PartPair],
    around: tuple[State, State],
    *,
    problems: Sequence[Problem] = (),
    with_causes: bool = True,
) -> Comparison:
    """Compare pairs one by one, with only the results in memory.

    Args:
        pairs: in the order of the report.
        around: the policies and options of both sides; their snapshots are ignored.
        problems: other problems.
        with_causes: whether to search for causes.

    Raises:
        UsageError, EngineError: as one comparison.
    """
    sums = (_Sum(), _Sum())
    lists: dict[str, list[Flip]] = {"new": [], "fixed": [], "changed": []}
    persisting: list[Finding] = []
    found_problems, exit_code = [*problems], 0
    for pair in pairs:
        found_problems += pair.problems
        if any(problem.level == "error" for problem in pair.problems):
            continue
        states = [side or replace(one, snapshot=Snapshot()) for side, one in zip(pair[1:3], around, strict=True)]
        found = _list_findings(pair, states)
        one = compare_states(states[0], states[1], found=found, with_causes=with_causes)
        for side, evaluation in zip(sums, found, strict=True):
            side.add(pair.name, evaluation)
        for name, flips in lists.items():
            flips += getattr(one, name)
        persisting += one.persisting
        found_problems += (problem.model_copy(update={"place": _place(pair.name, problem)}) for problem in one.problems)
        exit_code = max(exit_code, one.exit_code)
    empty = [summarize(evaluate_state(replace(one, snapshot=Snapshot()))) for one in around]
    return Comparison.model_validate(
        {
            "exit_code": max(exit_code, 2 * any(problem.level == "error" for problem in found_problems)),
            "before": sums[0].side(empty[0]),
            "after": sums[1].side(empty[1]),
            **lists,
            "persisting": persisting,
            "problems": found_problems,
        }
    )


def _list_findings(pair: PartPair, states: Sequence[State]) -> tuple[Evaluation, Evaluation]:
    """Return the findings on both sides; a missing part counts as empty."""
    if pair.before is pair.after:
        both = evaluate_state(states[0])
        return both, both
    before, after = (evaluate_state(state) for state in states)
    absent = {"problems": (), "ledger": (), "exit_code": 0}
    return (
        before if pair.before else before.model_copy(update=absent),
        after if pair.after else after.model_copy(update=absent),
    )


def _place(name: str, problem: Problem) -> str:
    return problem.place if problem.place.startswith(name) else f"{name}: {problem.place}".removesuffix(": ")


@dataclass
class _Sum:
    """The totals of one side."""

    summaries: list[Summary] = field(default_factory=list)
    digest: str = ""

    def add(self, name: str, evaluation: Evaluation) -> None:
        """Add a part."""
        self.summaries.append(evaluation.summary)
        self.digest = hashlib.sha256(f"{self.digest}\0{name}\0{evaluation.snapshot.digest}".encode()).hexdigest()

    def side(self, empty: ComparedEvaluation) -> ComparedEvaluation:
        """Return the totals with the policies and options of the side."""
        snapshot = SnapshotRef(scope="", taken_at=None, digest=self.digest)
        return empty.model_copy(update={"snapshot": snapshot, "summary": added(self.summaries)})
