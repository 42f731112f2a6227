"""Cache the findings of a changing snapshot and what they read, and evaluate again only what a change affects."""

from __future__ import annotations

from collections import ChainMap, Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from policyeng import exemptions as exempting
from policyeng.admission.attribution import Touches, reported, touches_of
from policyeng.bundle import Bundle
from policyeng.bundle.analysis import EVERYTHING
from policyeng.engines import run_engine
from policyeng.engines.request import Column
from policyeng.engines.tracing import Traced
from policyeng.evaluation import EvaluationContext, find_scopes, problems_of
from policyeng.evaluation.changing_snapshot import ChangingSnapshot, Edits, Invalidation, Pairs, Rows
from policyeng.evaluation.findings import find_holder, findings_by_pair
from policyeng.evaluation.input_warnings import of_classifications, of_compute, unknown_classifications
from policyeng.evaluation.matching import PlannedColumn
from policyeng.evaluation.prepared_snapshot import Becomes
from policyeng.evaluation.tracing import Differences, Numbers, Reads, name_of, trace_pairs
from policyeng.facts.computes import COMPUTE_TYPE
from policyeng.facts.ids import fold_id
from policyeng.frozen import replace
from policyeng.models import Exemption, Finding, Outcome, Problem, Resource, lowered

#: The number of evaluation times with cached findings; concurrent requests have the same time or the next one.
_MOMENTS = 4

#: Sorted findings with their pairs.
Found = list[tuple[Finding, Numbers]]
#: The pairs whose findings refer to a place in another resource, by the id of that resource as `folded_id` returns it.
_References = dict[str, set[Numbers]]


class _Moment(NamedTuple):
    """The findings at one time of pairs that read the clock.

    Attributes:
        findings: the findings of evaluated pairs; None if there is no finding.
        reads: the reads of the pairs that can read more than their own subjects.
    """

    findings: dict[Numbers, Finding | None]
    reads: Reads
    references: _References


class Compared(NamedTuple):
    """A snapshot before and after a change.

    Attributes:
        before: findings of the pairs that the change can affect, and of all other pairs of the resources it names.
        after: findings of the same pairs after the change.
        pairs: the pairs before the change.
        problems: the problems that the change can cause, in order.
        touches: checks whether something that the policy of an earlier finding reads changes.
    """

    before: Sequence[Finding]
    after: Sequence[Finding]
    pairs: Pairs
    problems: Sequence[Problem]
    touches: Touches


class BaselineFindings:
    """The findings of a snapshot, evaluated when first needed. It is not thread-safe.

    The findings of pairs that do not read the clock are valid at any time. The others are evaluated for each time:
    immediately if they can read other subjects, because they can read different ones at another time, and otherwise
    when they are needed.

    Attributes:
        problems: the problems of the snapshot, which do not depend on findings.
    """

    def __init__(self, prepared: EvaluationContext) -> None:
        """Store a snapshot with all of its pairs."""
        self.problems = set(problems_of(prepared))
        self._prepared = prepared
        self._numbers = {policy.id: number for number, policy in enumerate(prepared.bundle.policies)}
        self._snapshot = ChangingSnapshot(prepared)
        self._words = Counter(prepared.unknown_classifications)
        self._affecting = Invalidation(prepared.bundle, self._snapshot, prepared.planned)
        self._homes = find_scopes(prepared.estate.subjects)
        self._waiting: Sequence[PlannedColumn] = prepared.planned
        self._findings: dict[Numbers, Finding] = {}
        self._reads = Reads()
        #: Failures and errors, and pairs whose outcome depends on the clock, both by the number of the policy.
        self._failing: dict[int, dict[Numbers, None]] = {}
        self._timed: dict[int, dict[Numbers, None]] = {}
        self._references: _References = {}
        self._moments: dict[datetime, _Moment] = {}

    def change(self, becomes: Mapping[str, Becomes], moment: datetime) -> Edits:
        """Change the snapshot until the edits are undone.

        Args:
            becomes: later states by id as `folded_id` returns it.
            moment: the evaluation time, in UTC.
        """
        now, edits = self._cache_at(moment), Edits()
        for name in ("problems", "_words", "_moments"):
            edits.keep(vars(self), name)
        self._moments = {moment: now}
        rows = self._snapshot.rows(becomes)
        differences = self._snapshot.differences(rows)
        referring = (pair for key in becomes for one in (self._references, now.references) for pair in one.get(key, ()))
        affected = self._affecting.by(rows, differences, [self._reads, now.reads], (), referring)
        for numbers in {*_in_order(affected.before), *_in_order(affected.after)}:
            self._keep_for_undo(edits, numbers, now)
        for numbers in _in_order(affected.before):
            self._forget(numbers, now)
        come, gone = self._words_of(rows)
        left = gone.keys() - (self._words - gone + come)
        ended = {*_find_problems(row.before for row in rows.resources), *self._describe_words(left)}
        self.problems = {*(self.problems - ended), *self._problems_after(rows)}
        self._words = self._words - gone + come
        self._snapshot.change(edits, rows, differences)
        self._affecting.change(edits, rows.all)
        homes = find_scopes(row.after for row in rows.all if row.after)
        for key in homes:
            edits.keep(self._homes, key)
        self._homes.update(homes)
        self._add(self._snapshot.context.with_pairs(affected.after).planned, moment)
        return edits

    def compare(
        self, becomes: Mapping[str, Becomes], named: Iterable[str], moment: datetime, in_force: Sequence[Exemption]
    ) -> Compared:
        """Compare the snapshot after a change with the one before it.

        Args:
            becomes: later states by id as `folded_id` returns it.
            named: the ids that the change names.
            moment: the evaluation time, in UTC.
            in_force: the active exemptions.
        """
        now = self._cache_at(moment)
        rows = self._snapshot.rows(becomes)
        differences = self._snapshot.differences(rows)
        positions = [at for key in named if (at := self._snapshot.position_of(key)) is not None]
        # A resource from another file has other source locations, even if its content is the same.
        referring = (pair for key in becomes for one in (self._references, now.references) for pair in one.get(key, ()))
        affected = self._affecting.by(rows, differences, [self._reads, now.reads], positions, referring)
        used, used_after = set[str](), set[str]()
        before = _mark_exempted(self._findings_of(affected.before, moment), in_force, self._homes, used)
        same = _mark_exempted(self._findings_of(affected.same, moment), in_force, self._homes, used_after)
        with self._snapshot.changed(rows, differences) as context:
            found = _evaluate(context.with_pairs(affected.after), moment)
        homes = ChainMap(find_scopes(row.after for row in rows.all if row.after), self._homes) if in_force else {}
        after = _mark_exempted((finding for finding, _ in found), in_force, homes, used_after)
        pairs = {number: affected.before.get(number, set()) | positions for number, positions in affected.same.items()}
        pairs = {**affected.before, **pairs}
        lapsed = (one for one in in_force if one.id in used - used_after)
        idle = [one for one in lapsed if not self._is_used(one, pairs, moment)]
        # An error about a named resource counts even if it existed before.
        problems = [*self._problems_after(rows, positions), *exempting.unused(idle, ())]
        touches = self._make_touches(before, same, differences, moment)
        return Compared([*before, *same], [*same, *after], pairs, problems, touches)

    def standing(self, pairs: Pairs, moment: datetime, in_force: Sequence[Exemption]) -> list[Finding]:
        """Return the failures and errors without an exemption.

        Args:
            pairs: the pairs to exclude.
            moment: the evaluation time, in UTC.
            in_force: the active exemptions.
        """
        numbers = {*self._failing, *self._timed}
        found = (finding for number in sorted(numbers) for finding in self._failing_of(number, pairs, moment))
        return [finding for finding in _mark_exempted(found, in_force, self._homes, set()) if finding.exemption is None]

    def _failing_of(self, number: int, pairs: Pairs, moment: datetime) -> list[Finding]:
        """Return the failures and errors of a policy, without those of some pairs."""
        of_policy = (*self._failing.get(number, ()), *self._timed.get(number, ()))
        positions = {at for _, at in of_policy}.difference(pairs.get(number, ()))
        return [finding for finding in self._findings_of({number: positions}, moment) if _is_failing(finding)]

    def _is_used(self, exemption: Exemption, pairs: Pairs, moment: datetime) -> bool:
        """Check whether an exemption covers a failure of a pair that is not in `pairs`."""
        used = set[str]()
        if exemption.policy in self._numbers:
            _mark_exempted(
                self._failing_of(self._numbers[exemption.policy], pairs, moment), [exemption], self._homes, used
            )
        return bool(used)

    def _findings_of(self, pairs: Pairs, moment: datetime) -> Iterator[Finding]:
        """Yield the findings of some pairs at a time, in the order of a plan."""
        now = self._cache_at(moment)
        missing: Pairs = {}
        for number, at in _in_order(pairs):
            if (number, at) in self._timed.get(number, ()) and (number, at) not in now.findings:
                missing.setdefault(number, set()).add(at)
        if missing:
            now.findings.update(dict.fromkeys(_in_order(missing)))
            found = _evaluate(self._snapshot.context.with_pairs(missing), moment)
            now.findings.update((numbers, finding) for finding, numbers in found)
        for numbers in _in_order(pairs):
            finding = now.findings[numbers] if numbers in now.findings else self._findings.get(numbers)
            if finding is not None:
                yield finding

    def _cache_at(self, moment: datetime) -> _Moment:
        """Return the findings at a time of the pairs that read the clock and can read more than their own subjects."""
        self._evaluate_waiting(moment)
        now = self._moments.get(moment)
        if now is None:
            now = self._begin(moment)
            reaches, has_places = self._bundle.reaches, bool(self._prepared.snapshot.texts)
            wanted = {
                number: {at for _, at in pairs}
                for number, pairs in self._timed.items()
                if has_places or reaches[number].others or reaches[number].workspace
            }
            context = self._snapshot.context.with_pairs(wanted)
            now.findings.update(dict.fromkeys(_in_order(wanted)))
            found, traced = _evaluate_traced(context, moment, lambda _: True)
            now.findings.update((numbers, finding) for finding, numbers in found)
            self._note_reads(now.reads, traced)
            self._note_places(now.references, found)
        return now

    def _begin(self, moment: datetime) -> _Moment:
        """Start a cache for a time, and remove the oldest one if there are too many."""
        now = _Moment({}, Reads(), {})
        self._moments = {**dict([*self._moments.items()][1 - _MOMENTS :]), moment: now}
        return now

    def _evaluate_waiting(self, moment: datetime) -> None:
        waiting, self._waiting = self._waiting, ()
        if waiting:
            self._add(waiting, moment)

    def _add(self, planned: Sequence[PlannedColumn], moment: datetime) -> None:
        """Evaluate pairs, and cache their findings and reads."""
        reaches = self._bundle.reaches
        context = replace(self._snapshot.context, planned=planned)
        found, traced = _evaluate_traced(
            context, moment, lambda number: reaches[number].others or reaches[number].workspace or reaches[number].clock
        )
        timed = {numbers for numbers, trace in traced.items() if self._is_timed(numbers[0], trace)}
        now = self._moments.get(moment) or self._begin(moment)
        for numbers in timed:
            self._timed.setdefault(numbers[0], {})[numbers] = None
            now.findings[numbers] = None
        for finding, numbers in found:
            if numbers in timed:
                now.findings[numbers] = finding
            else:
                self._findings[numbers] = finding
                if _is_failing(finding):
                    self._failing.setdefault(numbers[0], {})[numbers] = None
        for reads, references, is_timed in ((self._reads, self._references, False), (now.reads, now.references, True)):
            self._note_reads(
                reads, {numbers: trace for numbers, trace in traced.items() if (numbers in timed) is is_timed}
            )
            self._note_places(references, [entry for entry in found if (entry[1] in timed) is is_timed])

    def _is_timed(self, number: int, traced: Traced) -> bool:
        """Check whether the outcome of a pair can differ at another time."""
        reach = self._bundle.reaches[number]
        is_veiled = reach._replace(types=frozenset()) == EVERYTHING
        return reach.clock and (is_veiled or traced.reads_clock)

    def _forget(self, numbers: Numbers, now: _Moment) -> None:
        for findings, reads in ((self._findings, self._reads), (now.findings, now.reads)):
            findings.pop(numbers, None)
            reads.forget(numbers)
        for index in (self._failing, self._timed):
            index.get(numbers[0], {}).pop(numbers, None)

    def _keep_for_undo(self, edits: Edits, numbers: Numbers, now: _Moment) -> None:
        """Restore the cached data of a pair when the edits are undone."""
        for findings, reads in ((self._findings, self._reads), (now.findings, now.reads)):
            edits.keep(findings, numbers)
            edits.keep(reads.undecided, numbers)
            edits.keep(reads.own, numbers)
        for index in (self._failing, self._timed):
            edits.keep(index.setdefault(numbers[0], {}), numbers)

    @property
    def _bundle(self) -> Bundle:
        return self._prepared.bundle

    def _note_reads(self, reads: Reads, traced: Mapping[Numbers, Traced]) -> None:
        subjects = self._snapshot.subjects
        for numbers, trace in traced.items():
            reads.add(numbers, trace, name_of(subjects[numbers[1]]))

    def _note_places(self, references: _References, found: Found) -> None:
        subjects = self._snapshot.subjects
        for finding, numbers in found if self._prepared.snapshot.texts else ():
            for reason in (*finding.denials, *finding.unknowns):
                holder, _ = find_holder(reason.path, subjects[numbers[1]], subjects)
                if holder != finding.resource:
                    references.setdefault(fold_id(holder), set()).add(numbers)

    def _make_touches(
        self, before: Sequence[Finding], same: Sequence[Finding], differences: Differences, moment: datetime
    ) -> Touches:
        """Return a function that checks whether something that the policy of an earlier finding reads changes.

        It returns false for the findings that stay the `same`.
        """
        snapshot, untouched = self._snapshot, set(map(id, same))

        def pairs_of(finding: Finding) -> Iterator[Numbers]:
            number, key = self._numbers[finding.policy], (finding.resource_type, fold_id(finding.resource))
            return ((number, at) for at in snapshot.positions_of(key[1]) if reported(snapshot.subjects[at]) == key)

        traced = ChainMap(self._cache_at(moment).reads.undecided, self._reads.undecided)
        touches = touches_of(before, snapshot.context, moment, differences, pairs_of, traced)
        return lambda finding: id(finding) not in untouched and touches(finding)

    def _problems_after(self, rows: Rows, further: Iterable[int] = ()) -> list[Problem]:
        """Return the problems of changed resources, and of the resources at further positions."""
        come, _ = self._words_of(rows)
        subjects = {at: self._snapshot.subjects[at] for at in further}
        after = {row.position: row.after for row in rows.resources}
        there = [subject for subject in (subjects | after).values() if subject is not None]
        there.sort(key=lambda subject: lowered(subject.reported_id))
        return [*_find_problems(there), *self._describe_words(come)]

    def _describe_words(self, words: Iterable[str]) -> list[Problem]:
        return of_classifications(words, self._prepared.known_classifications)

    def _words_of(self, rows: Rows) -> tuple[Counter[str], Counter[str]]:
        """Return the unknown classifications of resources after a change, and before it."""
        known = self._prepared.known_classifications
        sides = ([row.after for row in rows.resources], [row.before for row in rows.resources])
        come, gone = (
            unknown_classifications((subject.document for subject in subjects if subject is not None), known)
            for subjects in sides
        )
        return come, gone


def _evaluate_traced(
    context: EvaluationContext, moment: datetime, is_traced: Callable[[int], bool]
) -> tuple[Found, dict[Numbers, Traced]]:
    """Evaluate all planned pairs, and record the reads of the pairs whose policy `is_traced`."""
    work = context.work(moment)
    policies = {number for number in work.positions if is_traced(number)}
    traced = {(pair.policy, pair.subject): trace for pair, trace in trace_pairs(context, work.only(policies))}
    columns = run_engine(work.only(work.positions.keys() - policies))
    for number in policies:
        positions = work.positions[number]
        columns.append(Column.of(number, positions, [traced[number, position].judgement for position in positions]))
    return findings_by_pair(context, columns), traced


def _evaluate(context: EvaluationContext, moment: datetime) -> Found:
    """Return the findings of all planned pairs."""
    return findings_by_pair(context, run_engine(context.work(moment)))


def _mark_exempted(
    findings: Iterable[Finding], in_force: Sequence[Exemption], homes: Mapping[tuple[str, str], str], used: set[str]
) -> list[Finding]:
    """Return findings with the marks of exemptions; add the ids of exemptions that cover any to `used`."""
    if not in_force:
        return list(findings)
    return [exempting.marked_by(finding, in_force, homes, used.add) for finding in findings]


def _in_order(pairs: Pairs) -> Iterator[Numbers]:
    """Return pairs in the order of a plan."""
    return ((number, at) for number in sorted(pairs) for at in sorted(pairs[number]))


def _is_failing(finding: Finding) -> bool:
    return finding.outcome in (Outcome.FAIL, Outcome.ERROR)


def _find_problems(subjects: Iterable[Resource | None]) -> list[Problem]:
    """Return the problems of resources, and then those of computes."""
    there = [subject for subject in subjects if subject is not None]
    computes = (subject for subject in there if subject.target_type == COMPUTE_TYPE)
    problems = [problem for subject in there for problem in subject.remarks]
    return problems + [problem for one in computes for problem in of_compute(one.document, one.unreadable)]
