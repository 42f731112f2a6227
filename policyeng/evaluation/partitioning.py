"""Divide the pairs of an evaluation among forked processes, which share the prepared snapshot.

Pairs are divided by resource: resources with neighboring ids, such as those of one workspace, are evaluated in one
process. The results are small: a number for a pair that passes, and only the fields of its own for another finding.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import islice, repeat
from typing import NamedTuple

from policyeng.engines import EvaluationRequest, Judgement, Pair, prepare_shared_data, run_engine
from policyeng.engines.request import MOST_OVERRUNS
from policyeng.errors import UsageError
from policyeng.evaluation.context import PAIRS_OF_A_PROCESS, EvaluationContext, EvaluationOptions
from policyeng.evaluation.findings import (
    Entry,
    SubjectOwners,
    count_builtin_errors,
    entries_of,
    reference_of,
    template_of,
)
from policyeng.evaluation.matching import PlannedPair
from policyeng.frozen import replace
from policyeng.models import (
    Denial,
    ExemptionMark,
    Finding,
    Findings,
    JsonObject,
    Location,
    Outcome,
    Passed,
    SubjectRef,
    Unknown,
    lowered,
)
from policyeng.processes import REMEDY, Lost, processes, processors
from policyeng.progress import counted

#: Parts for each process; with several parts the processes finish at about the same time.
_PARTS = 4


class _Explained(NamedTuple):
    """The fields of a finding that depend on neither its policy nor its resource alone."""

    outcome: Outcome
    denials: tuple[Denial, ...]
    unknowns: tuple[Unknown, ...]
    exemption: ExemptionMark | None
    location: Location


class _PartResult(NamedTuple):
    """The findings of some pairs.

    Attributes:
        passed: the numbers of the pairs that pass.
        explained: the other findings, by the numbers of their pairs.
        overruns: how often policies exceeded their limits, by policy id.
        builtin_errors: as in `Findings`.
    """

    passed: array[int]
    explained: dict[int, _Explained]
    overruns: Counter[str]
    builtin_errors: Counter[tuple[str, str]]


def processes_for(options: EvaluationOptions, pairs: int) -> int:
    """Return the number of processes for a number of pairs.

    Raises:
        UsageError: more than one process is requested, and the engine cannot use several.
    """
    if options.engine != "embedded":
        if options.jobs > 1:
            raise UsageError(f"the engine `{options.engine}` cannot use several processes", remedy="leave out `--jobs`")
        return 1
    return options.jobs or min(processors(), pairs // PAIRS_OF_A_PROCESS)


def findings_by_processes(prepared: EvaluationContext, work: EvaluationRequest, count: int) -> Findings:
    """Return the findings of all pairs, as `findings_of` does, evaluated in several processes.

    If a process ends early, the pairs that it was evaluating are errors. A policy that exceeds its limit too often in
    all processes together is evaluated again in this process, which switches it off after the usual number of times.

    Raises:
        EngineError: the bundle does not compile, or no process can be started.
    """
    prepare_shared_data(work)
    partition = _Partition(prepared, work, _parts_of(prepared, count * _PARTS))
    evaluated: list[PlannedPair] = []
    found, overruns, builtin_errors = dict[int, Entry](), Counter[str](), Counter[tuple[str, str]]()
    with processes(partition, count, ahead=2) as pool:
        tasks = [pool.submit(_Partition.evaluate, number) for number in range(len(partition.parts))]
        for part, task in counted(zip(partition.parts, tasks, strict=True), len(tasks)):
            result = pool.outcome(task)
            if isinstance(result, Lost):
                result = partition.to_result(part, repeat(_unevaluated(result)))
            else:
                evaluated += part
            overruns += result.overruns
            builtin_errors += result.builtin_errors
            found |= partition.entries(result)  # while the processes evaluate others
    if slow := partition.count_overruns(overruns):
        again = [entry for entry in evaluated if entry.pair.policy in slow]
        for entry in again:
            found.pop(partition.number_of(entry.pair), None)
        found |= partition.entries(partition.evaluate_pairs(again))
    return Findings([found[number] for number in sorted(found)], builtin_errors)


def _unevaluated(lost: Lost) -> Judgement:
    return Judgement(error=f"limit: not evaluated: the process that evaluates it {lost.how}; {REMEDY}", is_limit=True)


def _parts_of(prepared: EvaluationContext, count: int) -> list[list[PlannedPair]]:
    """Divide the pairs into about `count` parts of similar size, each of consecutive subjects."""
    pairs = Counter(entry.pair.subject for entry in prepared.planned)
    size, before = len(prepared.planned) / count, 0
    of_subject: dict[int, int] = {}
    for subject in sorted(pairs):
        of_subject[subject] = int(before / size)
        before += pairs[subject]
    parts: dict[int, list[PlannedPair]] = {number: [] for number in of_subject.values()}
    for entry in prepared.planned:
        parts[of_subject[entry.pair.subject]].append(entry)
    return list(parts.values())


class _Partition:
    """The state that processes share. Pairs are numbered in the order of their findings."""

    def __init__(
        self, prepared: EvaluationContext, work: EvaluationRequest, parts: Sequence[Sequence[PlannedPair]]
    ) -> None:
        self._prepared, self._work, self.parts = prepared, work, parts
        subjects, policies = prepared.estate.subjects, prepared.bundle.policies
        ids = [(lowered(subject.reported_id), subject.reported_id) for subject in subjects]
        self._subjects = sorted(range(len(subjects)), key=ids.__getitem__)
        self._policies = sorted(range(len(policies)), key=lambda number: policies[number].id)
        self._rank_of_subject = _inverse(self._subjects)
        self._rank_of_policy = _inverse(self._policies)

    @cached_property
    def _references(self) -> list[SubjectRef]:
        """The fields of findings that depend on the resource, in the order of findings."""
        subjects, owners = self._prepared.estate.subjects, SubjectOwners(self._prepared.estate)
        return [reference_of(subjects[position], owners) for position in self._subjects]

    @cached_property
    def _templates(self) -> list[JsonObject]:
        """The fields of findings that depend on the policy, in the order of findings."""
        bundle = self._prepared.bundle
        return [template_of(bundle.policies[number], bundle.controls) for number in self._policies]

    def number_of(self, pair: Pair) -> int:
        """Return the position of the finding of a pair among those of all possible pairs."""
        return self._rank_of_policy[pair.policy] * len(self._subjects) + self._rank_of_subject[pair.subject]

    def evaluate(self, number: int) -> _PartResult:
        """Evaluate the pairs of a part."""
        return self.evaluate_pairs(self.parts[number])

    def evaluate_pairs(self, planned: Sequence[PlannedPair]) -> _PartResult:
        """Evaluate pairs."""
        overruns = self._prepared.bundle.overruns
        before = Counter(overruns)
        found = run_engine(replace(self._work, pairs=[entry.pair for entry in planned if not entry.unknowns]))
        return self.to_result(planned, found)._replace(overruns=Counter(overruns) - before)

    def to_result(self, planned: Sequence[PlannedPair], judgements: Iterable[Judgement]) -> _PartResult:
        """Return the findings that the results of pairs lead to."""
        passed, explained = array("Q"), {}
        prepared = replace(self._prepared, planned=planned)
        results = list(islice(judgements, len(planned)))
        for entry, pair in entries_of(prepared, results):
            if isinstance(entry, Passed):
                passed.append(self.number_of(pair))
            else:
                explained[self.number_of(pair)] = _Explained(
                    entry.outcome, entry.denials, entry.unknowns, entry.exemption, entry.location
                )
        return _PartResult(passed, explained, Counter(), count_builtin_errors(prepared, results))

    def entries(self, result: _PartResult) -> dict[int, Entry]:
        """Return the findings by the numbers of their pairs."""
        count, templates, references = len(self._subjects), self._templates, self._references
        found: dict[int, Entry] = {
            number: Passed(templates[number // count], references[number % count]) for number in result.passed
        }
        for number, own in result.explained.items():
            of_both = {**templates[number // count], **references[number % count]._asdict()}
            found[number] = Finding(**(of_both | own._asdict()))
        return found

    def count_overruns(self, overruns: Counter[str]) -> set[int]:
        """Add the overruns of policies, and return the policies that exceeded their limits too often.

        The overruns of the returned policies are not added, because they are evaluated again. A process counts only its
        own overruns, so it may have evaluated a policy that one process would have switched off.
        """
        bundle = self._prepared.bundle
        counted = Counter(bundle.overruns) + overruns
        slow = {name for name in overruns if counted[name] >= MOST_OVERRUNS}
        bundle.overruns.update({name: counted[name] for name in overruns.keys() - slow})
        return {number for number, policy in enumerate(bundle.policies) if policy.id in slow}


def _inverse(order: Sequence[int]) -> list[int]:
    """Return the rank of each position in an order of all positions."""
    ranks = [0] * len(order)
    for rank, position in enumerate(order):
        ranks[position] = rank
    return ranks
