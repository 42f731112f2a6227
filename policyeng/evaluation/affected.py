"""Which pairs of a policy and a subject a change can affect: all others keep their findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from policyeng.evaluation.changing import Changed, Layout
from policyeng.evaluation.narrowing import Taking
from policyeng.evaluation.rows import Row
from policyeng.evaluation.selectors import Selector, selectors_of
from policyeng.evaluation.tracing import Differences, Numbers, Reads, comes_or_goes
from policyeng.facts.ids import folded_id

#: By the number of a policy, positions of subjects.
Pairs = dict[int, set[int]]


class Affected(NamedTuple):
    """The pairs to judge again, by the positions of subjects before a change and after it.

    Attributes:
        same: other pairs of what is changed or named, by the positions before: they are what they were.
    """

    before: Pairs
    after: Pairs
    same: Pairs


class Affecting:
    """What a change of a snapshot can affect; worked out once for many changes."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        judged: dict[int, list[int]] = {number: [] for number in range(len(layout.prepared.bundle.policies))}
        for entry in layout.prepared.planned:
            judged[entry.pair.policy].append(entry.pair.subject)
        self._judged: Mapping[int, Sequence[int]] = judged

    @cached_property
    def _same(self) -> Mapping[int, int]:
        """The positions of resources and of the workloads derived from them, each by the other's."""
        layout = self._layout
        pairs = (
            (at, layout.by_folded[folded_id(key)])
            for at, key in enumerate(layout.workloads, layout.first)
            if folded_id(key) in layout.by_folded
        )
        return {one: other for pair in pairs for one, other in (pair, pair[::-1])}

    @cached_property
    def _policies_of(self) -> Mapping[int, Sequence[int]]:
        """The policies that judge a subject, by its position."""
        found: dict[int, list[int]] = {}
        for number, positions in self._judged.items():
            for at in positions:
                found.setdefault(at, []).append(number)
        return found

    @cached_property
    def _by_kind(self) -> Mapping[str, Sequence[tuple[int, Selector]]]:
        """The policies that judge subjects of a lower-case type, with what they narrow it to."""
        found: dict[str, list[tuple[int, Selector]]] = {}
        for number, policy in enumerate(self._layout.prepared.bundle.policies):
            for judging in selectors_of(policy.header):
                found.setdefault(judging.kind, []).append((number, judging))
        return found

    def by(
        self, changed: Changed, reads: Iterable[Reads], named: Iterable[int] = (), further: Iterable[Numbers] = ()
    ) -> Affected:
        """The pairs that a change can affect: of what it changes, and of what reads that.

        Args:
            changed: the snapshot after the change.
            reads: what the pairs have read before the change.
            named: the positions of other subjects whose pairs are wanted.
            further: other pairs to evaluate again.
        """
        rows = (*changed.resources, *changed.workloads)
        differences = Differences(rows, self._layout.prepared.estate.view)
        replaced = {row.position for row in rows if row.before}
        taken = [set(self._taking(row)) for row in rows]
        before: Pairs = {}
        reading = (numbers for one in reads for numbers in one.affected_by(differences))
        for number, at in (*reading, *self._in_workspaces(rows), *further):
            before.setdefault(number, set()).add(at)
        for at in replaced:
            for number in self._policies_of.get(at, ()):
                before.setdefault(number, set()).add(at)
        for number, at in list(self._twins(before)):
            before[number].add(at)
        after = {
            number: {changed.position[at] for at in positions if at in changed.position and at not in replaced}
            for number, positions in before.items()
        }
        for row, now in zip(rows, taken, strict=True):
            for number in now:
                after.setdefault(number, set()).add(row.now)
        same: Pairs = {}
        for number, at in self._all_of({*named, *replaced}):
            if not _is_in(before, number, at):
                same.setdefault(number, set()).add(at)
        return Affected(before, after, same)

    def _in_workspaces(self, rows: Iterable[Row]) -> Iterator[Numbers]:
        """The pairs in workspaces that come or go, of the policies that read these."""
        reaches = self._layout.prepared.bundle.reaches
        for row in rows:
            for at in self._layout.inside.get(row.key, ()) if comes_or_goes(row) else ():
                yield from ((number, at) for number in self._policies_of.get(at, ()) if reaches[number].workspace)

    def _taking(self, row: Row) -> Iterator[int]:
        """The policies that judge what a row becomes."""
        if row.after is None:
            return
        taking = Taking(row.after)
        yield from (number for number, judging in self._by_kind.get(row.after.judged_type, ()) if taking.takes(judging))

    def _all_of(self, own: Iterable[int]) -> Iterator[tuple[int, int]]:
        """All pairs of some subjects, and of those that have the same id."""
        for at in {*own, *(self._same[at] for at in own if at in self._same)}:
            yield from ((number, at) for number in self._policies_of.get(at, ()))

    def _twins(self, pairs: Pairs) -> Iterator[tuple[int, int]]:
        """The pairs of the same policies with what has the same id: findings do not say which of them they are of."""
        for number, positions in pairs.items():
            for at in list(positions):
                twin = self._same.get(at)
                if twin is not None and number in self._policies_of.get(twin, ()):
                    yield number, twin


def _is_in(pairs: Pairs, number: int, at: int) -> bool:
    return at in pairs.get(number, ())
