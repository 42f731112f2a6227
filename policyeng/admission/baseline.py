"""The findings of a snapshot that changes, and what they read: only what a change can affect is evaluated again."""

from __future__ import annotations

from collections import ChainMap, Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from datetime import datetime
from typing import NamedTuple

from policyeng import exemptions as exempting
from policyeng.admission.attribution import Touches, reported, touches_of
from policyeng.evaluation import EvaluationContext, find_scopes, problems_of
from policyeng.evaluation.changing_snapshot import ChangingSnapshot, Edits, Rows
from policyeng.evaluation.input_warnings import of_classifications, of_compute, unknown_classifications
from policyeng.evaluation.prepared_snapshot import Becomes
from policyeng.evaluation.reuse import Pairs, ReusableFindings, evaluate_once
from policyeng.evaluation.tracing import Differences, Numbers
from policyeng.facts.computes import COMPUTE_TYPE
from policyeng.facts.ids import fold_id
from policyeng.models import Exemption, Finding, Problem, Resource, lowered


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


class Baseline:
    """A snapshot with its findings, to which changes are compared. It is not thread-safe.

    Attributes:
        problems: the problems of the snapshot, which do not depend on findings.
    """

    def __init__(self, prepared: EvaluationContext) -> None:
        """Store a snapshot with all of its pairs; they are evaluated when they are first needed."""
        self.problems = set(problems_of(prepared))
        self._prepared = prepared
        self._numbers = {policy.id: number for number, policy in enumerate(prepared.bundle.policies)}
        self._snapshot = ChangingSnapshot(prepared)
        self._findings = ReusableFindings(prepared, self._snapshot)
        self._words = Counter(prepared.unknown_classifications)
        self._homes = find_scopes(prepared.estate.subjects)

    def change(self, becomes: Mapping[str, Becomes], moment: datetime) -> Edits | None:
        """Change the snapshot until the edits are undone; None if everything must be evaluated because of the change.

        Args:
            becomes: later states by id as `folded_id` returns it.
            moment: the evaluation time, in UTC.
        """
        affected, edits = self._findings.affected_by(becomes, (), moment), Edits()
        rows = affected.rows
        self._snapshot.change(edits, rows, affected.differences)
        if self._snapshot.changes_homes(affected.differences):
            edits.take_back()
            return None
        self._snapshot.keep(edits, rows)
        self._findings.change(edits, affected, moment)
        come, gone = self._words_of(rows)
        words = self._words - gone + come
        ended = {
            *_find_problems(row.before for row in rows.resources),
            *self._describe_words(gone.keys() - words),
        }
        edits.put(vars(self), "problems", {*(self.problems - ended), *self._problems_after(rows)})
        edits.put(vars(self), "_words", words)
        for key, home in find_scopes(row.after for row in rows.all if row.after).items():
            edits.put(self._homes, key, home)
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
        change = self._findings.affected_by(becomes, positions, moment)
        rows, differences = change.rows, change.differences
        used, used_after = set[str](), set[str]()
        before = _mark_exempted(self._findings.of(change.before, moment), in_force, self._homes, used)
        same = _mark_exempted(self._findings.of(change.same, moment), in_force, self._homes, used_after)
        with self._snapshot.changed(rows, differences) as context:
            if self._snapshot.changes_homes(differences):
                return None
            found = evaluate_once(context, change.after, moment)
        homes = ChainMap(find_scopes(row.after for row in rows.all if row.after), self._homes) if in_force else {}
        after = _mark_exempted(found, in_force, homes, used_after)
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

    def standing(self, pairs: Pairs, moment: datetime, in_force: Sequence[Exemption]) -> list[Finding]:
        """Return the failures and errors without an exemption.

        Args:
            pairs: the pairs to exclude.
            moment: the evaluation time, in UTC.
            in_force: the active exemptions.
        """
        found = self._findings.failing(self._numbers.values(), pairs, moment)
        return [finding for finding in _mark_exempted(found, in_force, self._homes, set()) if finding.exemption is None]

    def _is_used(self, exemption: Exemption, pairs: Pairs, moment: datetime) -> bool:
        """Check whether an exemption covers a failure of a pair that is not in `pairs`."""
        used = set[str]()
        if exemption.policy in self._numbers:
            found = self._findings.failing([self._numbers[exemption.policy]], pairs, moment)
            _mark_exempted(found, [exemption], self._homes, used)
        return bool(used)

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

        touches = touches_of(before, context, moment, differences, pairs_of, self._findings.reads.undecided)
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


def _find_problems(subjects: Iterable[Resource | None]) -> list[Problem]:
    """Return the problems of resources, and then those of computes."""
    there = [subject for subject in subjects if subject is not None]
    computes = (subject for subject in there if subject.target_type == COMPUTE_TYPE)
    problems = [problem for subject in there for problem in subject.remarks]
    return problems + [problem for one in computes for problem in of_compute(one.document, one.unreadable)]
