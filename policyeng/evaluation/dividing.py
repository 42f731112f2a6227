"""Divide the pairs of an evaluation among processes, which have the prepared snapshot from their beginning on.

They are divided by resources: those that are next to each other by id, as those of a workspace are, are evaluated in
one process. What comes back is small: of a pair that passes a number, and of another what only its finding says.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import repeat
from typing import NamedTuple

from policyeng.engines import Judgement, Work, judge, share
from policyeng.engines.work import MOST_OVERRUNS
from policyeng.errors import UsageError
from policyeng.evaluation.context import EvaluationContext
from policyeng.evaluation.findings import entries_of, reference_of, template_of
from policyeng.evaluation.options import PAIRS_OF_A_PROCESS, EvaluationOptions
from policyeng.evaluation.plan import Planned
from policyeng.models import (
    Denial,
    ExemptionMark,
    Finding,
    Findings,
    Location,
    Outcome,
    Passed,
    SubjectRef,
    Unknown,
    lowered,
)
from policyeng.processes import REMEDY, Lost, processes, processors

#: Parts for each process, so that none has much left to do when the others have nothing.
_PARTS = 6


class _Said(NamedTuple):
    """What only one finding says."""

    outcome: Outcome
    denials: tuple[Denial, ...]
    unknowns: tuple[Unknown, ...]
    exemption: ExemptionMark | None
    location: Location


class _Answer(NamedTuple):
    """What was found of pairs.

    Attributes:
        passed: the numbers of those that pass.
        said: what is found of others, by their numbers.
        overruns: how often policies exceeded their limits, by id.
    """

    passed: array[int]
    said: dict[int, _Said]
    overruns: Counter[str]


def processes_for(options: EvaluationOptions, pairs: int) -> int:
    """Return how many processes evaluate so many pairs.

    Raises:
        UsageError: the engine evaluates in one process, and more are asked for.
    """
    if options.engine != "embedded":
        if options.jobs > 1:
            raise UsageError(f"the engine `{options.engine}` evaluates in one process", remedy="leave out `--jobs`")
        return 1
    return options.jobs or min(processors(), pairs // PAIRS_OF_A_PROCESS)


def findings_by_processes(prepared: EvaluationContext, work: Work, count: int) -> Findings:
    """Return the findings of all pairs, as `findings_of` does, evaluated in several processes.

    What a process that ends before its time was at is an error. A policy that exceeds its limit too often in all of
    them together is evaluated again in this one, so that it is switched off where it would have been.

    Raises:
        EngineError: the bundle does not compile, or no process can be started.
    """
    share(work)
    dividing = _Dividing(prepared, work, list(_parts_of(prepared, count * _PARTS)))
    lost: set[int] = set()
    answers: list[_Answer] = []
    with processes(dividing, count, ahead=2) as spread:
        tasks = [spread.ask(_Dividing.evaluated, number) for number in range(len(dividing.parts))]
        _ = dividing.references  # made while the processes evaluate
        for number, task in enumerate(tasks):
            found = spread.outcome(task)
            if isinstance(found, Lost):
                lost.add(number)
                found = dividing.answer_of(dividing.parts[number], repeat(_unevaluated(found)))
            answers.append(found)
    again = dividing.too_slow(answers)
    if again:
        kept = [part for number, part in enumerate(dividing.parts) if number not in lost]
        answers = [dividing.without(answer, again) for answer in answers]
        answers.append(dividing.evaluated_here(entry for part in kept for entry in part if entry.pair.policy in again))
    return dividing.findings_of(answers)


def _unevaluated(lost: Lost) -> Judgement:
    return Judgement(error=f"limit: not evaluated: the process that evaluates it {lost.how}; {REMEDY}", is_limit=True)


def _parts_of(prepared: EvaluationContext, count: int) -> Iterator[Sequence[Planned]]:
    """Yield the pairs in about so many parts of about as many pairs, each of subjects that follow one another."""
    by_subject: list[list[Planned]] = [[] for _ in prepared.estate.subjects]
    for entry in prepared.planned:
        by_subject[entry.pair.subject].append(entry)
    size = len(prepared.planned) / count
    part: list[Planned] = []
    for entries in by_subject:
        part += entries
        if len(part) >= size:
            yield sorted(part)
            part = []
    if part:
        yield sorted(part)


class _Dividing:
    """What processes evaluate with. Pairs are numbered in the order of their findings."""

    def __init__(self, prepared: EvaluationContext, work: Work, parts: Sequence[Sequence[Planned]]) -> None:
        self._prepared, self._work, self.parts = prepared, work, parts
        subjects, policies = prepared.estate.subjects, prepared.bundle.policies
        ids = [(lowered(subject.reported_id), subject.reported_id) for subject in subjects]
        self._subjects = sorted(range(len(subjects)), key=ids.__getitem__)
        self._policies = sorted(range(len(policies)), key=lambda number: policies[number].id)
        self._rank_of_subject = _inverse(self._subjects)
        self._rank_of_policy = _inverse(self._policies)

    @cached_property
    def references(self) -> list[SubjectRef]:
        """What findings say of their resources, in the order of findings."""
        subjects = self._prepared.estate.subjects
        return [reference_of(subjects[position]) for position in self._subjects]

    def evaluated(self, number: int) -> _Answer:
        """Evaluate the pairs of a part."""
        return self.evaluated_here(self.parts[number])

    def evaluated_here(self, planned: Iterable[Planned]) -> _Answer:
        """Evaluate pairs."""
        entries, overruns = list(planned), self._prepared.bundle.overruns
        before = Counter(overruns)
        found = judge(replace(self._work, pairs=[entry.pair for entry in entries if not entry.unknowns]))
        return self.answer_of(entries, found)._replace(overruns=Counter(overruns) - before)

    def answer_of(self, planned: Sequence[Planned], judgements: Iterable[Judgement]) -> _Answer:
        """Return what judgements of pairs come to."""
        passed, said = array("Q"), {}
        for entry, pair in entries_of(replace(self._prepared, planned=planned), judgements):
            number = self._rank_of_policy[pair.policy] * len(self._subjects) + self._rank_of_subject[pair.subject]
            if isinstance(entry, Passed):
                passed.append(number)
            else:
                said[number] = _Said(entry.outcome, entry.denials, entry.unknowns, entry.exemption, entry.location)
        return _Answer(passed, said, Counter())

    def too_slow(self, answers: Iterable[_Answer]) -> set[int]:
        """Count how often policies exceeded their limits, and return those that did too often, which are not counted.

        A process knows of its own only, so that it may have evaluated what would not be evaluated here.
        """
        bundle, overruns = self._prepared.bundle, sum((answer.overruns for answer in answers), Counter[str]())
        again = {name for name, count in overruns.items() if bundle.overruns.get(name, 0) + count >= MOST_OVERRUNS}
        bundle.overruns.update(Counter(bundle.overruns) + Counter({n: overruns[n] for n in overruns.keys() - again}))
        return {number for number, policy in enumerate(bundle.policies) if policy.id in again}

    def without(self, answer: _Answer, policies: Collection[int]) -> _Answer:
        """Return an answer without what was found by some policies."""
        left_out = {self._rank_of_policy[number] for number in policies}
        count = len(self._subjects)
        passed = array("Q", (number for number in answer.passed if number // count not in left_out))
        said = {number: one for number, one in answer.said.items() if number // count not in left_out}
        return answer._replace(passed=passed, said=said)

    def findings_of(self, answers: Iterable[_Answer]) -> Findings:
        """Return all that was found, in the order of findings."""
        passed, said = array("Q"), dict[int, _Said]()
        for answer in answers:
            passed += answer.passed
            said |= answer.said
        templates = [template_of(self._prepared.bundle.policies[number]) for number in self._policies]
        count, references = len(self._subjects), self.references
        return Findings(
            [
                Passed(templates[number // count], references[number % count])
                if (found := said.get(number)) is None
                else Finding(**templates[number // count], **(references[number % count]._asdict() | found._asdict()))
                for number in sorted([*passed, *said])
            ]
        )


def _inverse(order: Sequence[int]) -> list[int]:
    """Return at each position where it stands in an order of all positions."""
    ranks = [0] * len(order)
    for rank, position in enumerate(order):
        ranks[position] = rank
    return ranks
