"""Which pairs of a policy and a subject a change can affect: all others keep their findings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from typing import NamedTuple

from policyeng.bundle import Bundle
from policyeng.evaluation.changing_snapshot import ChangingSnapshot, Edits, Rows
from policyeng.evaluation.matching import Selector, Taking, selectors_in
from policyeng.evaluation.plan import PlannedPair
from policyeng.evaluation.subject_changes import SubjectChange
from policyeng.evaluation.tracing import Differences, Numbers, Reads, comes_or_goes, name_of

#: By the number of a policy, positions of subjects.
Pairs = dict[int, set[int]]


class Affected(NamedTuple):
    """The pairs to evaluate again, before a change and after it.

    Attributes:
        same: other pairs of what is changed or named: they are what they were.
    """

    before: Pairs
    after: Pairs
    same: Pairs


class Invalidation:
    """What a change of a snapshot can affect; worked out once for many changes."""

    def __init__(self, bundle: Bundle, snapshot: ChangingSnapshot, planned: Iterable[PlannedPair]) -> None:
        """Take a snapshot with all of its pairs."""
        self._bundle = bundle
        self._snapshot = snapshot
        #: The policies that evaluate a subject, by its position.
        self._policies_of: dict[int, Sequence[int]] = {}
        found: dict[int, list[int]] = {}
        for entry in planned:
            found.setdefault(entry.pair.subject, []).append(entry.pair.policy)
        self._policies_of.update(found)

    @cached_property
    def _by_kind(self) -> Mapping[str, Sequence[tuple[int, Selector]]]:
        """The policies that judge subjects of a lower-case type, with what they narrow it to."""
        found: dict[str, list[tuple[int, Selector]]] = {}
        for number, judges in enumerate(selectors_in(self._bundle)):
            for judging in judges:
                found.setdefault(judging.kind, []).append((number, judging))
        return found

    @cached_property
    def _of_both(self) -> Set[int]:
        """The policies that evaluate both workloads and resources."""
        kinds = ({judging.kind for judging in judges} for judges in selectors_in(self._bundle))
        return {number for number, found in enumerate(kinds) if "workload" in found and len(found) > 1}

    def by(
        self,
        rows: Rows,
        differences: Differences,
        reads: Collection[Reads],
        named: Iterable[int] = (),
        further: Iterable[Numbers] = (),
    ) -> Affected:
        """The pairs that a change can affect: of what it changes, as far as they read that, and of what else reads it.

        Args:
            rows: what changes.
            differences: of that.
            reads: what the pairs have read before the change; of others it is not known.
            named: the positions of other subjects whose pairs are wanted.
            further: other pairs to evaluate again.
        """
        replaced = {row.position for row in rows.all if row.before}
        taking = {row.position: set(self._taking(row)) for row in rows.all}
        before: Pairs = {}
        reading = (numbers for one in reads for numbers in one.affected_by(differences))
        for number, at in (*reading, *self._in_workspaces(rows.all), *further):
            if number in self._policies_of.get(at, ()):  # what has read something may be there no more
                before.setdefault(number, set()).add(at)
        kept = set(self._kept(rows, differences, reads, taking))
        for at in replaced:
            for number in self._policies_of.get(at, ()):
                if (number, at) not in kept:
                    before.setdefault(number, set()).add(at)
        for number, at in list(self._twins(before)):
            before[number].add(at)
        after = {number: positions - replaced for number, positions in before.items()}
        for at, numbers in taking.items():
            for number in numbers:
                if (number, at) not in kept or at in before.get(number, ()):
                    after.setdefault(number, set()).add(at)
        same: Pairs = {}
        for number, at in self._all_of({*named, *replaced}):
            if at not in before.get(number, ()):
                same.setdefault(number, set()).add(at)
        return Affected(before, after, same)

    def _kept(
        self, rows: Rows, differences: Differences, reads: Collection[Reads], taking: Mapping[int, Set[int]]
    ) -> Iterator[Numbers]:
        """The pairs of what changes that read nothing of what differs in it."""
        for row in rows.all:
            if row.before and row.after and self._snapshot.is_read_alike(rows, row):
                own = name_of(row.after)
                for number in taking[row.position] & set(self._policies_of.get(row.position, ())):
                    if any(one.keeps((number, row.position), differences, own) for one in reads):
                        yield number, row.position

    def change(self, edits: Edits, rows: Iterable[SubjectChange]) -> None:
        """Have the snapshot changed until the edits are taken back."""
        for row in rows:
            edits.keep(self._policies_of, row.position)
            self._policies_of.pop(row.position, None)
            if taking := sorted(set(self._taking(row))):
                self._policies_of[row.position] = taking

    def _in_workspaces(self, rows: Iterable[SubjectChange]) -> Iterator[Numbers]:
        """The pairs in workspaces that come or go, of the policies that read these."""
        reaches = self._bundle.reaches
        for row in rows:
            for at in self._snapshot.inside(row.key) if comes_or_goes(row) else ():
                yield from ((number, at) for number in self._policies_of.get(at, ()) if reaches[number].workspace)

    def _taking(self, row: SubjectChange) -> Iterator[int]:
        """The policies that judge what a row becomes."""
        if row.after is None:
            return
        taking = Taking(row.after)
        yield from (number for number, judging in self._by_kind.get(row.after.judged_type, ()) if taking.takes(judging))

    def _all_of(self, own: Iterable[int]) -> Iterator[Numbers]:
        """All pairs of some subjects, and of those that have the same id."""
        twins = (self._snapshot.twin(at) for at in own)
        for at in {*own, *(twin for twin in twins if twin is not None)}:
            yield from ((number, at) for number in self._policies_of.get(at, ()))

    def _twins(self, pairs: Pairs) -> Iterator[Numbers]:
        """The pairs of the same policies with what has the same id: findings do not say which of them they are of."""
        for number, positions in pairs.items():
            for at in list(positions) if number in self._of_both else ():
                twin = self._snapshot.twin(at)
                if twin is not None and number in self._policies_of.get(twin, ()):
                    yield number, twin
