"""Reuse the findings of a snapshot that changes: only what reads a change, or what has changed, is evaluated again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from policyeng.bundle import Bundle
from policyeng.bundle.header import ANY_TYPE
from policyeng.engines import run_engine
from policyeng.engines.request import Column
from policyeng.engines.tracing import Traced
from policyeng.evaluation.changing_snapshot import ChangingSnapshot, Edits, Rows
from policyeng.evaluation.context import EvaluationContext
from policyeng.evaluation.findings import find_holder, findings_by_pair
from policyeng.evaluation.matching import PlannedColumn, Selector, Taking, is_of_kind, selectors_in
from policyeng.evaluation.prepared_snapshot import Becomes
from policyeng.evaluation.tracing import (
    Differences,
    Numbers,
    Reads,
    SubjectChange,
    is_added_or_removed,
    name_of,
    trace_pairs,
)
from policyeng.facts.ids import fold_id
from policyeng.models import Finding, Outcome
from policyeng.rego.clock import Clock, Unchanged

#: Of a pair whose outcome does not depend on the clock.
_ALWAYS = Unchanged()

#: Positions of subjects by the number of a policy.
Pairs = dict[int, set[int]]


class Affected(NamedTuple):
    """A change, and the pairs to evaluate again, before it and after it.

    Attributes:
        same: the other pairs of changed or named subjects, which keep their findings.
    """

    rows: Rows
    differences: Differences
    before: Pairs
    after: Pairs
    same: Pairs


class Invalidation:
    """An index of the pairs that changes of a snapshot can affect."""

    def __init__(self, bundle: Bundle, snapshot: ChangingSnapshot, planned: Iterable[PlannedColumn]) -> None:
        """Index all pairs of a snapshot."""
        self._bundle = bundle
        self._snapshot = snapshot
        #: The numbers of the policies that apply to a subject, by its position.
        self._policies_of: dict[int, list[int]] = {}
        for column in planned:
            for position in column.all():
                self._policies_of.setdefault(position, []).append(column.policy)

    @cached_property
    def _by_kind(self) -> Mapping[str, Sequence[tuple[int, Selector]]]:
        """The policies that apply to subjects of a lower-case type, with their selectors."""
        found: dict[str, list[tuple[int, Selector]]] = {}
        for number, judges in enumerate(selectors_in(self._bundle)):
            for selector in judges:
                found.setdefault(selector.kind, []).append((number, selector))
        return found

    def by(
        self,
        rows: Rows,
        reads: Reads,
        named: Iterable[int] = (),
        further: Iterable[Numbers] = (),
    ) -> Affected:
        """Return the pairs that a change can affect, which are those that read something that differs.

        Args:
            rows: the changed subjects.
            reads: recorded reads of the pairs before the change; the reads of other pairs are unknown.
            named: positions of other subjects whose pairs to return.
            further: other pairs to evaluate again.
        """
        differences = self._snapshot.differences(rows)
        replaced = {row.position for row in rows.all if row.before}
        applying = {row.position: set(self._policies_for(row)) for row in rows.all}
        unaffected = set(self._unaffected(rows, differences, reads, applying))
        before, after, same = Pairs(), Pairs(), Pairs()
        reading = (*reads.affected_by(differences), *self._in_workspaces(rows.all), *further)
        own = ((number, at) for at in replaced for number in self._policies_of.get(at, ()))
        for number, at in (*reading, *(pair for pair in own if pair not in unaffected)):
            # A finding does not state whether it is about a resource or its workload.
            for position in (at, self._snapshot.twin(at)):
                if number in self._policies_of.get(position, ()):  # the reader may no longer exist
                    before.setdefault(number, set()).add(position)
        for number, positions in before.items():
            after[number] = positions - replaced
        for at, numbers in applying.items():
            for number in numbers:
                if (number, at) not in unaffected or at in before.get(number, ()):
                    after.setdefault(number, set()).add(at)
        for number, at in self.pairs_of({*named, *replaced}):
            if at not in before.get(number, ()):
                same.setdefault(number, set()).add(at)
        return Affected(rows, differences, before, after, same)

    def _unaffected(
        self, rows: Rows, differences: Differences, reads: Reads, applying: Mapping[int, Set[int]]
    ) -> Iterator[Numbers]:
        """Yield the pairs of changed subjects that read nothing that differs."""
        for row in rows.all:
            if row.before and row.after and self._snapshot.is_read_alike(rows, row):
                own = name_of(row.after)
                for number in applying[row.position] & set(self._policies_of.get(row.position, ())):
                    if reads.keeps((number, row.position), differences, own):
                        yield number, row.position

    def change(self, edits: Edits, rows: Iterable[SubjectChange]) -> None:
        """Change the snapshot until the edits are taken back."""
        for row in rows:
            edits.keep(self._policies_of, row.position)
            self._policies_of.pop(row.position, None)
            if applying := sorted(set(self._policies_for(row))):
                self._policies_of[row.position] = applying

    def _in_workspaces(self, rows: Iterable[SubjectChange]) -> Iterator[Numbers]:
        """Yield the pairs in workspaces that come or go, for policies that read workspaces."""
        reaches = self._bundle.reaches
        for row in rows:
            for at in self._snapshot.inside(row.key) if is_added_or_removed(row) else ():
                yield from ((number, at) for number in self._policies_of.get(at, ()) if reaches[number].workspace)

    def _policies_for(self, row: SubjectChange) -> Iterator[int]:
        """Yield the policies that apply to the later state of a subject."""
        if row.after is None:
            return
        matcher = Taking(row.after)
        selectors = [
            entry
            for kind in (row.after.target_type, ANY_TYPE)
            for entry in self._by_kind.get(kind, ())
            if is_of_kind(row.after, entry[1])
        ]
        yield from (number for number, selector in selectors if matcher.takes(selector))

    def pairs_of(self, own: Set[int]) -> Iterator[Numbers]:
        """Yield all pairs of some subjects, and of the subjects with the same ids."""
        for at in {*own, *map(self._snapshot.twin, own)}:
            yield from ((number, at) for number in self._policies_of.get(at, ()))


class ReusableFindings:
    """The findings of a changing snapshot, evaluated when first needed. It is not thread-safe.

    For each pair that reads the clock, the times are recorded at which its outcome is the same. At another time it is
    evaluated again: if it can read other subjects, for any change, because it can read different ones at that time;
    otherwise when its finding is needed.

    Attributes:
        reads: what the pairs read that can read other subjects or the clock.
    """

    def __init__(self, prepared: EvaluationContext, snapshot: ChangingSnapshot) -> None:
        """Store a snapshot with all of its pairs."""
        self._prepared, self._snapshot = prepared, snapshot
        self._affecting = Invalidation(prepared.bundle, snapshot, prepared.planned)
        #: Whether what a policy reads can be outside its own subject, and its findings can refer to other files.
        self._is_wide = [
            bool(prepared.snapshot.texts) or one.others or one.workspace for one in prepared.bundle.reaches
        ]
        self._waiting: Sequence[PlannedColumn] = prepared.planned
        #: The findings that do not pass, and the times at which outcomes are the same, if they depend on the clock.
        self._findings: dict[Numbers, Finding] = {}
        self._unchanged: dict[Numbers, Unchanged] = {}
        #: The times at which the outcomes of all pairs are the same that can read other subjects.
        self._all_unchanged = _ALWAYS
        self.reads = Reads()
        #: The pairs whose findings refer to a place in another resource, by its id as `folded_id` returns it.
        self._references: dict[str, set[Numbers]] = {}
        #: What undoes the last change, and what was evaluated since.
        self._edits: Edits | None = None

    def affected_by(self, becomes: Mapping[str, Becomes], named: Iterable[int], moment: datetime) -> Affected:
        """Return a change with the pairs that it can affect.

        Args:
            becomes: later states by id as `folded_id` returns it.
            named: positions of other subjects whose pairs to return.
            moment: the evaluation time, in UTC.
        """
        waiting, self._waiting = self._waiting, ()
        if waiting:
            self._add(replace(self._snapshot.context, planned=waiting), moment)
        if not self._all_unchanged.includes(moment):
            self._all_unchanged = _ALWAYS
            self._refresh([numbers for numbers in self._unchanged if self._is_wide[numbers[0]]], moment)
        rows, named = self._snapshot.rows(becomes), set(named)
        self._refresh(self._affecting.pairs_of(named | {row.position for row in rows.all if row.before}), moment)
        # A resource from another file has other source locations, even if its content is the same.
        referring = (pair for key in becomes for pair in self._references.get(key, ()))
        return self._affecting.by(rows, self.reads, named, referring)

    def change(self, edits: Edits, affected: Affected, moment: datetime) -> None:
        """Evaluate the pairs that a change affects, after the snapshot has changed, until the edits are taken back."""
        for name in ("_all_unchanged", "_edits"):
            edits.keep(vars(self), name)
        self._edits = edits
        self._affecting.change(edits, affected.rows.all)
        self._forget({*in_order(affected.before), *in_order(affected.after)})
        self._add(self._snapshot.context.with_pairs(affected.after), moment)

    def of(self, pairs: Pairs, moment: datetime) -> Iterator[Finding]:
        """Return the findings of some pairs at a time that do not pass, in the order of a plan."""
        self._refresh(in_order(pairs), moment)
        return (self._findings[numbers] for numbers in in_order(pairs) if numbers in self._findings)

    def failing(self, policies: Iterable[int], pairs: Pairs, moment: datetime) -> list[Finding]:
        """Return the failures and errors of some policies, without those of some pairs."""
        numbers, known = set(policies), self._findings
        self._refresh([pair for pair in self._unchanged if pair[0] in numbers], moment)
        found = (pair for pair in known if pair[0] in numbers and pair[1] not in pairs.get(pair[0], ()))
        return [known[pair] for pair in sorted(found) if known[pair].outcome in (Outcome.FAIL, Outcome.ERROR)]

    def _refresh(self, pairs: Iterable[Numbers], moment: datetime) -> None:
        """Evaluate those of some pairs again whose outcome may be another at a time."""
        known, stale = self._unchanged, Pairs()
        for numbers in pairs:
            if numbers in known and not known[numbers].includes(moment):
                stale.setdefault(numbers[0], set()).add(numbers[1])
            elif numbers in known and self._is_wide[numbers[0]]:
                self._all_unchanged = self._all_unchanged.both(known[numbers])
        if stale:
            self._forget(set(in_order(stale)))
            self._add(self._snapshot.context.with_pairs(stale), moment)

    def _forget(self, pairs: Iterable[Numbers]) -> None:
        """Remove what is known of pairs until the last change is undone."""
        for holder in (self._findings, self._unchanged, self.reads.undecided, self.reads.own):
            for numbers in pairs:
                if self._edits is not None:
                    self._edits.keep(holder, numbers)
                holder.pop(numbers, None)

    def _add(self, context: EvaluationContext, moment: datetime) -> None:
        """Evaluate the planned pairs of a context, and store their findings and reads."""
        work, reaches = context.work(moment), self._prepared.bundle.reaches
        recorded = {
            number
            for number in work.positions
            if reaches[number].others or reaches[number].workspace or reaches[number].clock
        }
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
            self.reads.add(numbers, trace, name_of(subjects[numbers[1]]))
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


def evaluate_once(context: EvaluationContext, pairs: Pairs, moment: datetime) -> list[Finding]:
    """Return the findings of some pairs at a time that do not pass; nothing of them is stored."""
    planned = context.with_pairs(pairs)
    return [finding for finding, _ in findings_by_pair(planned, run_engine(planned.work(moment)))]


def in_order(pairs: Pairs) -> Iterator[Numbers]:
    """Return pairs in the order of a plan."""
    return ((number, at) for number in sorted(pairs) for at in sorted(pairs[number]))
