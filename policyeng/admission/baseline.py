"""The findings of a snapshot that changes, and what they read: only what a change can affect is evaluated again."""

from __future__ import annotations

from collections import ChainMap, Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from policyeng import exemptions as exempting
from policyeng.admission.attribution import Touches, reported, touches_of
from policyeng.engines import run_engine
from policyeng.engines.request import Column
from policyeng.engines.tracing import Traced
from policyeng.evaluation import EvaluationContext, find_scopes, problems_of
from policyeng.evaluation.changing_snapshot import Affected, ChangingSnapshot, Edits, Invalidation, Pairs, Rows
from policyeng.evaluation.findings import find_holder, findings_by_pair
from policyeng.evaluation.input_warnings import of_classifications, of_compute, unknown_classifications
from policyeng.evaluation.matching import PlannedColumn
from policyeng.evaluation.prepared_snapshot import Becomes
from policyeng.evaluation.tracing import Differences, Numbers, Reads, name_of, trace_pairs
from policyeng.facts.computes import COMPUTE_TYPE
from policyeng.facts.ids import fold_id
from policyeng.models import Exemption, Finding, Outcome, Problem, Resource, lowered
from policyeng.rego.clock import Clock, Unchanged

#: Of a pair whose outcome does not depend on the clock.
_ALWAYS = Unchanged()


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

    For each pair that reads the clock, the times are recorded at which its outcome is the same. At another time it is
    evaluated again: if it can read other subjects, for any change, because it can read different ones at that time;
    otherwise when its finding is needed.

    Attributes:
        problems: the problems of the snapshot, which do not depend on findings.
    """

    def __init__(self, prepared: EvaluationContext) -> None:
        """Store a snapshot with all of its pairs."""
        self.problems = set(problems_of(prepared))
        self._prepared = prepared
        self._numbers = {policy.id: number for number, policy in enumerate(prepared.bundle.policies)}
        #: Whether what a policy reads can be outside its own subject, and its findings can refer to other files.
        self._is_wide = [
            bool(prepared.snapshot.texts) or one.others or one.workspace for one in prepared.bundle.reaches
        ]
        self._snapshot = ChangingSnapshot(prepared)
        self._words = Counter(prepared.unknown_classifications)
        self._affecting = Invalidation(prepared.bundle, self._snapshot, prepared.planned)
        self._homes = find_scopes(prepared.estate.subjects)
        self._waiting: Sequence[PlannedColumn] = prepared.planned
        #: The findings that do not pass, and the times at which outcomes are the same, if they depend on the clock.
        self._findings: dict[Numbers, Finding] = {}
        self._unchanged: dict[Numbers, Unchanged] = {}
        #: The times at which the outcomes of all pairs are the same that can read other subjects.
        self._all_unchanged = _ALWAYS
        self._reads = Reads()
        #: The pairs whose findings refer to a place in another resource, by its id as `folded_id` returns it.
        self._references: dict[str, set[Numbers]] = {}
        #: What undoes the last change, and what was evaluated since.
        self._edits: Edits | None = None

    def change(self, becomes: Mapping[str, Becomes], moment: datetime) -> Edits | None:
        """Change the snapshot until the edits are undone; None if everything must be evaluated because of the change.

        Args:
            becomes: later states by id as `folded_id` returns it.
            moment: the evaluation time, in UTC.
        """
        change, edits = self._find_affected(becomes, (), moment), Edits()
        for name in ("problems", "_words", "_all_unchanged", "_edits"):
            edits.keep(vars(self), name)
        rows, self._edits = change.rows, edits
        come, gone = self._words_of(rows)
        left = gone.keys() - (self._words - gone + come)
        ended = {*_find_problems(row.before for row in rows.resources), *self._describe_words(left)}
        self.problems = {*(self.problems - ended), *self._problems_after(rows)}
        self._words = self._words - gone + come
        self._snapshot.change(edits, rows, change.differences)
        if self._snapshot.changes_homes(change.differences):
            edits.take_back()
            return None
        self._snapshot.keep(edits, rows)
        self._affecting.change(edits, rows.all)
        for key, home in find_scopes(row.after for row in rows.all if row.after).items():
            edits.put(self._homes, key, home)
        self._forget({*_in_order(change.before), *_in_order(change.after)})
        self._add(self._snapshot.context.with_pairs(change.after), moment)
        return edits

    def compare(
        self, becomes: Mapping[str, Becomes], named: Iterable[str], moment: datetime, in_force: Sequence[Exemption]
    ) -> Compared | None:
        """Compare the snapshot after a change with the one before it; None if everything must be evaluated.

        Args:
            becomes: later states by id as `folded_id` returns it.
            named: the ids that the change names.
            moment: the evaluation time, in UTC.
            in_force: the active exemptions.
        """
        positions = [at for key in named if (at := self._snapshot.position_of(key)) is not None]
        change = self._find_affected(becomes, positions, moment)
        rows, differences = change.rows, change.differences
        used, used_after = set[str](), set[str]()
        before = _mark_exempted(self._findings_of(change.before, moment), in_force, self._homes, used)
        same = _mark_exempted(self._findings_of(change.same, moment), in_force, self._homes, used_after)
        with self._snapshot.changed(rows, differences) as context:
            if self._snapshot.changes_homes(differences):
                return None
            after_change = context.with_pairs(change.after)
            found = findings_by_pair(after_change, run_engine(after_change.work(moment)))
        homes = ChainMap(find_scopes(row.after for row in rows.all if row.after), self._homes) if in_force else {}
        after = _mark_exempted((finding for finding, _ in found), in_force, homes, used_after)
        pairs = {
            number: change.before.get(number, set()) | change.same.get(number, set())
            for number in (*change.before, *change.same)
        }
        lapsed = (one for one in in_force if one.id in used - used_after)
        idle = [one for one in lapsed if not self._is_used(one, pairs, moment)]
        # An error about a named resource counts even if it existed before.
        problems = [*self._problems_after(rows, positions), *exempting.unused(idle, ())]
        touches = self._make_touches(before, set(map(id, same)), pairs, differences, moment)
        return Compared([*before, *same], [*same, *after], pairs, problems, touches)

    def _find_affected(self, becomes: Mapping[str, Becomes], named: Sequence[int], moment: datetime) -> Affected:
        """Return a change with the pairs that it can affect; their outcomes before it are those at a time."""
        waiting, self._waiting = self._waiting, ()
        if waiting:
            self._add(replace(self._snapshot.context, planned=waiting), moment)
        if not self._all_unchanged.includes(moment):
            self._all_unchanged = _ALWAYS
            self._refresh([numbers for numbers in self._unchanged if self._is_wide[numbers[0]]], moment)
        rows = self._snapshot.rows(becomes)
        own = {*named, *(row.position for row in rows.all if row.before)}
        self._refresh(self._affecting.pairs_of(own), moment)
        # A resource from another file has other source locations, even if its content is the same.
        referring = (pair for key in becomes for pair in self._references.get(key, ()))
        return self._affecting.by(rows, self._reads, named, referring)

    def standing(self, pairs: Pairs, moment: datetime, in_force: Sequence[Exemption]) -> list[Finding]:
        """Return the failures and errors without an exemption.

        Args:
            pairs: the pairs to exclude.
            moment: the evaluation time, in UTC.
            in_force: the active exemptions.
        """
        found = self._list_failing(self._numbers.values(), pairs, moment)
        return [finding for finding in _mark_exempted(found, in_force, self._homes, set()) if finding.exemption is None]

    def _list_failing(self, policies: Iterable[int], pairs: Pairs, moment: datetime) -> list[Finding]:
        """Return the failures and errors of some policies, without those of some pairs."""
        numbers, known = set(policies), self._findings
        self._refresh([pair for pair in self._unchanged if pair[0] in numbers], moment)
        found = (pair for pair in known if pair[0] in numbers and pair[1] not in pairs.get(pair[0], ()))
        return [known[pair] for pair in sorted(found) if known[pair].outcome in (Outcome.FAIL, Outcome.ERROR)]

    def _is_used(self, exemption: Exemption, pairs: Pairs, moment: datetime) -> bool:
        """Check whether an exemption covers a failure of a pair that is not in `pairs`."""
        used = set[str]()
        if exemption.policy in self._numbers:
            found = self._list_failing([self._numbers[exemption.policy]], pairs, moment)
            _mark_exempted(found, [exemption], self._homes, used)
        return bool(used)

    def _findings_of(self, pairs: Pairs, moment: datetime) -> Iterator[Finding]:
        """Return the findings of some pairs at a time, in the order of a plan."""
        self._refresh(_in_order(pairs), moment)
        return (self._findings[numbers] for numbers in _in_order(pairs) if numbers in self._findings)

    def _refresh(self, pairs: Iterable[Numbers], moment: datetime) -> None:
        """Evaluate those of some pairs again whose outcome may be another at a time."""
        known, stale = self._unchanged, Pairs()
        for numbers in pairs:
            if numbers in known and not known[numbers].includes(moment):
                stale.setdefault(numbers[0], set()).add(numbers[1])
            elif numbers in known and self._is_wide[numbers[0]]:
                self._all_unchanged = self._all_unchanged.both(known[numbers])
        if stale:
            self._forget(set(_in_order(stale)))
            self._add(self._snapshot.context.with_pairs(stale), moment)

    def _forget(self, pairs: Iterable[Numbers]) -> None:
        """Remove what is known of pairs until the last change is undone."""
        for holder in (self._findings, self._unchanged, self._reads.undecided, self._reads.own):
            for numbers in pairs:
                if self._edits is not None:
                    self._edits.keep(holder, numbers)
                holder.pop(numbers, None)

    def _add(self, context: EvaluationContext, moment: datetime) -> None:
        """Evaluate the planned pairs of a context, and store their findings and reads."""
        work, reaches = context.work(moment), self._prepared.bundle.reaches
        recorded = {number for number in work.positions if self._is_wide[number] or reaches[number].clock}
        timed = context.work(moment, Clock(moment)).only(recorded)
        traced = {(pair.policy, pair.subject): trace for pair, trace in trace_pairs(context, timed)}
        columns = run_engine(work.only(work.positions.keys() - recorded))
        for number, positions in timed.positions.items():
            columns.append(Column.of(number, positions, [traced[number, position].judgement for position in positions]))
        found = findings_by_pair(context, columns)
        self._findings.update((numbers, finding) for finding, numbers in found)
        self._note_reads(traced, moment)
        self._note_places(found)

    def _note_reads(self, traced: Mapping[Numbers, Traced], moment: datetime) -> None:
        subjects = self._snapshot.subjects
        for numbers, trace in traced.items():
            self._reads.add(numbers, trace, name_of(subjects[numbers[1]]))
            if trace.unchanged != _ALWAYS:
                self._unchanged[numbers] = trace.unchanged or Unchanged.only(moment)
                if self._is_wide[numbers[0]]:
                    self._all_unchanged = self._all_unchanged.both(self._unchanged[numbers])

    def _note_places(self, found: Iterable[tuple[Finding, Numbers]]) -> None:
        subjects = self._snapshot.subjects
        for finding, numbers in found if self._prepared.snapshot.texts else ():
            for reason in (*finding.denials, *finding.unknowns):
                holder, _ = find_holder(reason.path, subjects[numbers[1]], subjects)
                if holder != finding.resource:
                    self._references.setdefault(fold_id(holder), set()).add(numbers)

    def _make_touches(
        self, before: Sequence[Finding], same: Set[int], pairs: Pairs, differences: Differences, moment: datetime
    ) -> Touches:
        """Return a function that checks whether something that the policy of an earlier finding reads changes.

        It returns false for the findings that stay the `same`, given by their `id()`.
        """
        context, subjects = self._snapshot.context, self._snapshot.subjects

        def pairs_of(finding: Finding) -> Iterator[Numbers]:
            number, key = self._numbers[finding.policy], (finding.resource_type, fold_id(finding.resource))
            return ((number, at) for at in pairs.get(number, ()) if reported(subjects[at]) == key)

        touches = touches_of(before, context, moment, differences, pairs_of, self._reads.undecided)
        return lambda finding: id(finding) not in same and touches(finding)

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


def _find_problems(subjects: Iterable[Resource | None]) -> list[Problem]:
    """Return the problems of resources, and then those of computes."""
    there = [subject for subject in subjects if subject is not None]
    computes = (subject for subject in there if subject.target_type == COMPUTE_TYPE)
    problems = [problem for subject in there for problem in subject.remarks]
    return problems + [problem for one in computes for problem in of_compute(one.document, one.unreadable)]
