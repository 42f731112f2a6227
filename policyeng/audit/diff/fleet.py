"""Comparison of many pairs of snapshots, one by one, as one comparison."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from policyeng.audit.diff.comparison import compare_states, summarize
from policyeng.audit.diff.inputs import ComparedEvaluation, Comparison, ComparisonThreshold, Flip, State, evaluate_state
from policyeng.evaluation import added
from policyeng.models import Evaluation, Finding, Problem, Snapshot, SnapshotRef, Summary


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
    gate: ComparisonThreshold,
    *,
    problems: Sequence[Problem] = (),
    with_causes: bool = True,
) -> Comparison:
    """Compare pairs one by one, with only the results in memory.

    Args:
        pairs: in the order of the report.
        around: the policies and options of both sides; their snapshots are ignored.
        gate: as for one comparison.
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
        found = _list_findings(pair, states, gate)
        one = compare_states(states[0], states[1], gate, found=found, with_causes=with_causes)
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


def _list_findings(pair: PartPair, states: Sequence[State], gate: ComparisonThreshold) -> tuple[Evaluation, Evaluation]:
    """Return the findings on both sides; a missing part counts as empty."""
    if pair.before is pair.after:
        both = evaluate_state(states[0], gate)
        return both, both
    before, after = (evaluate_state(state, gate) for state in states)
    absent = {"problems": (), "exit_code": 0}
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
