"""Find the pairs of a policy and a subject that a change can affect; all others keep their findings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from typing import NamedTuple

from policyeng.bundle import Bundle
from policyeng.evaluation.changing_snapshot import ChangingSnapshot, Edits, Rows
from policyeng.evaluation.matching import Selector, Taking, selectors_in
from policyeng.evaluation.plan import PlannedPair
from policyeng.evaluation.subject_changes import SubjectChange
from policyeng.evaluation.tracing import Differences, Numbers, Reads, is_added_or_removed, name_of

#: Positions of subjects by the number of a policy.
Pairs = dict[int, set[int]]


class Affected(NamedTuple):
    """The pairs to evaluate again, before a change and after it.

    Attributes:
        same: the other pairs of changed or named subjects, which keep their findings.
    """

    before: Pairs
    after: Pairs
    same: Pairs


class Invalidation:
    """An index of the pairs that changes of a snapshot can affect."""

    def __init__(self, bundle: Bundle, snapshot: ChangingSnapshot, planned: Iterable[PlannedPair]) -> None:
        """Index all pairs of a snapshot."""
        self._bundle = bundle
        self._snapshot = snapshot
        #: The numbers of the policies that apply to a subject, by its position.
        self._policies_of: dict[int, Sequence[int]] = {}
        found: dict[int, list[int]] = {}
        for entry in planned:
            found.setdefault(entry.pair.subject, []).append(entry.pair.policy)
        self._policies_of.update(found)

    @cached_property
    def _by_kind(self) -> Mapping[str, Sequence[tuple[int, Selector]]]:
        """The policies that apply to subjects of a lower-case type, with their selectors."""
        found: dict[str, list[tuple[int, Selector]]] = {}
        for number, judges in enumerate(selectors_in(self._bundle)):
            for selector in judges:
                found.setdefault(selector.kind, []).append((number, selector))
        return found

    @cached_property
    def _of_both(self) -> Set[int]:
        """The policies that evaluate both workloads and resources."""
        kinds = ({selector.kind for selector in judges} for judges in selectors_in(self._bundle))
        return {number for number, found in enumerate(kinds) if "workload" in found and len(found) > 1}

    def by(
        self,
        rows: Rows,
        differences: Differences,
        reads: Collection[Reads],
        named: Iterable[int] = (),
        further: Iterable[Numbers] = (),
    ) -> Affected:
        """Return the pairs that a change can affect, which are those that read something that differs.

        Args:
            rows: the changed subjects.
            differences: the differences in these subjects.
            reads: recorded reads of the pairs before the change; the reads of other pairs are unknown.
            named: positions of other subjects whose pairs to return.
            further: other pairs to evaluate again.
        """
        replaced = {row.position for row in rows.all if row.before}
        applying = {row.position: set(self._policies_for(row)) for row in rows.all}
        before: Pairs = {}
        reading = (numbers for one in reads for numbers in one.affected_by(differences))
        for number, at in (*reading, *self._in_workspaces(rows.all), *further):
            if number in self._policies_of.get(at, ()):  # the reader may no longer exist
                before.setdefault(number, set()).add(at)
        unaffected = set(self._unaffected(rows, differences, reads, applying))
        for at in replaced:
            for number in self._policies_of.get(at, ()):
                if (number, at) not in unaffected:
                    before.setdefault(number, set()).add(at)
        for number, at in list(self._twins(before)):
            before[number].add(at)
        after = {number: positions - replaced for number, positions in before.items()}
        for at, numbers in applying.items():
            for number in numbers:
                if (number, at) not in unaffected or at in before.get(number, ()):
                    after.setdefault(number, set()).add(at)
        same: Pairs = {}
        for number, at in self._all_of({*named, *replaced}):
            if at not in before.get(number, ()):
                same.setdefault(number, set()).add(at)
        return Affected(before, after, same)

    def _unaffected(
        self, rows: Rows, differences: Differences, reads: Collection[Reads], applying: Mapping[int, Set[int]]
    ) -> Iterator[Numbers]:
        """Yield the pairs of changed subjects that read nothing that differs."""
        for row in rows.all:
            if row.before and row.after and self._snapshot.is_read_alike(rows, row):
                own = name_of(row.after)
                for number in applying[row.position] & set(self._policies_of.get(row.position, ())):
                    if any(one.keeps((number, row.position), differences, own) for one in reads):
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
        selectors = self._by_kind.get(row.after.judged_type, ())
        yield from (number for number, selector in selectors if matcher.takes(selector))

    def _all_of(self, own: Iterable[int]) -> Iterator[Numbers]:
        """Yield all pairs of some subjects, and of the subjects with the same ids."""
        twins = (self._snapshot.twin(at) for at in own)
        for at in {*own, *(twin for twin in twins if twin is not None)}:
            yield from ((number, at) for number in self._policies_of.get(at, ()))

    def _twins(self, pairs: Pairs) -> Iterator[Numbers]:
        """Yield the pairs of the same policies with the subjects of the same ids.

        A finding does not state which of the two subjects it is about.
        """
        for number, positions in pairs.items():
            for at in list(positions) if number in self._of_both else ():
                twin = self._snapshot.twin(at)
                if twin is not None and number in self._policies_of.get(twin, ()):
                    yield number, twin
