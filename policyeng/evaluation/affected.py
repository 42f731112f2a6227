"""Which pairs of a policy and a subject a change can affect: all others are judged as they were."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from policyeng.bundle import Policy
from policyeng.bundle.header import Consulted
from policyeng.bundle.header_parts import WORKSPACE
from policyeng.bundle.reaching import Reach
from policyeng.evaluation.changing import Changed, Layout
from policyeng.evaluation.differences import Difference
from policyeng.evaluation.narrowing import Taking
from policyeng.evaluation.readings import Reading
from policyeng.evaluation.rows import Row
from policyeng.evaluation.selectors import Judging, selector_of
from policyeng.facts.ids import folded_id
from policyeng.models import lowered

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
    """What a change of a snapshot can affect; worked out once for many changes.

    A policy is taken at its word on which resources it reads (`consults`), as the plan takes it and as law 3 tries it.
    One that reads others and does not say which is judged of everything.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        prepared = layout.prepared
        policies, reaches = prepared.bundle.policies, prepared.bundle.reaches
        judged: dict[int, list[int]] = {number: [] for number in range(len(policies))}
        for entry in prepared.planned:
            judged[entry.pair.policy].append(entry.pair.subject)
        self._judged: Mapping[int, Sequence[int]] = judged
        told = [consults_of(policy, reach) for policy, reach in zip(policies, reaches, strict=True)]
        self._blind = [number for number, consults in enumerate(told) if consults is None]
        self._readers: dict[str, list[tuple[int, Reading]]] = {}
        for number, consults in enumerate(told):
            for one in consults or ():
                if not one.parameter or prepared.parameters[number].get(one.parameter):
                    reader = Reading(layout, one, judged[number])
                    self._readers.setdefault(reader.kind, []).append((number, reader))
        self._in_workspace = [workspace_reads_of(*each) for each in zip(policies, reaches, strict=True)]

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
    def _by_kind(self) -> Mapping[str, Sequence[tuple[int, Judging]]]:
        """The policies that judge subjects of a lower-case type, with what they narrow it to."""
        found: dict[str, list[tuple[int, Judging]]] = {}
        for number, policy in enumerate(self._layout.prepared.bundle.policies):
            for judging in selector_of(policy.header).judges:
                found.setdefault(judging.kind, []).append((number, judging))
        return found

    def by(
        self,
        changed: Changed,
        named: Iterable[int] = (),
        further: Iterable[tuple[int, int]] = (),
        *,
        promised: bool = True,
    ) -> Affected:
        """The pairs that a change can affect: of what it changes, and of what reads that.

        Args:
            changed: the snapshot after the change.
            named: the positions of other subjects whose pairs are wanted.
            further: other pairs to judge again.
            promised: whether policies are taken at their word on what they are insensitive to.
        """
        rows = (*changed.resources, *changed.workloads)
        differences = list(map(Difference, rows))
        replaced = {row.position for row in rows if row.before}
        taken = [set(self._taking(row)) for row in rows]
        before: Pairs = {}
        for number, at in (*self._reading(differences), *further):
            before.setdefault(number, set()).add(at)
        for row, difference, now in zip(rows, differences, taken, strict=True):
            for number in self._policies_of.get(row.position, ()) if row.before else ():
                is_same = promised and number in now and self._is_insensitive(number, difference)
                if not is_same:
                    before.setdefault(number, set()).add(row.position)
        for number, at in list(self._twins(before)):
            before[number].add(at)
        after = {
            number: {changed.position[at] for at in positions if at in changed.position and at not in replaced}
            for number, positions in before.items()
        }
        for row, now in zip(rows, taken, strict=True):
            for number in now:
                if row.before is None or _is_in(before, number, row.position) or not self._judges(number, row.position):
                    after.setdefault(number, set()).add(row.now)
        same: Pairs = {}
        for number, at in self._all_of({*named, *replaced}):
            if not _is_in(before, number, at):
                same.setdefault(number, set()).add(at)
        return Affected(before, after, same)

    def _taking(self, row: Row) -> Iterator[int]:
        """The policies that judge what a row becomes."""
        if row.after is None:
            return
        taking = Taking(row.after)
        yield from (number for number, judging in self._by_kind.get(row.after.judged_type, ()) if taking.takes(judging))

    def _judges(self, number: int, at: int) -> bool:
        return number in self._policies_of.get(at, ())

    def _is_insensitive(self, number: int, difference: Difference) -> bool:
        """Whether a policy promises to say the same of a resource: `insensitive_to`, which law 15 tries."""
        if difference.row.position >= self._layout.first:
            return False  # what a workload is comes of more than its fields
        policy = self._layout.prepared.bundle.policies[number]
        return difference.is_within(policy.header.insensitive_to)

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

    def _readers_of(self, row: Row) -> Iterator[tuple[int, Reading]]:
        """The entries of `consults` that may be about a row: of its types, of any, and of what lies in a workspace."""
        kinds = {side.judged_type for side in (row.before, row.after) if side is not None}
        if row.key in self._layout.inside:
            kinds |= self._readers.keys()
        for kind in sorted({"", *kinds}):
            yield from self._readers.get(kind, ())

    def _reading(self, differences: Iterable[Difference]) -> Iterator[tuple[int, int]]:
        """The policies and subjects that read something that changes; subjects that change themselves among them."""
        for number in self._blind:
            yield from ((number, at) for at in self._judged[number])
        for difference in differences:
            inside = self._layout.inside.get(difference.row.key, ())
            touched = {
                number
                for number, read in enumerate(self._in_workspace)
                if inside and read and (difference.is_read_otherwise or difference.at(read))
            }
            for at in inside:
                yield from ((number, at) for number in self._policies_of.get(at, ()) if number in touched)
            for number, reader in self._readers_of(difference.row):
                if difference.may_be_at(reader.tops):
                    yield from ((number, at) for at in reader.of(difference))


def _is_in(pairs: Pairs, number: int, at: int) -> bool:
    return at in pairs.get(number, ())


def consults_of(policy: Policy, reach: Reach) -> Sequence[Consulted] | None:
    """Return what a policy declares that it reads beside what it judges; None where it may read anything."""
    consults = policy.header.consults
    if reach.others and not consults:
        return None
    if reach.workloads and not any(lowered(one.type) == "workload" for one in consults):
        return None
    return consults


def workspace_reads_of(policy: Policy, reach: Reach) -> tuple[str, ...]:
    """Return the pointers at which a policy reads the workspace of what it judges; all of it where it does not say."""
    selector, consults = selector_of(policy.header), policy.header.consults
    further = [one.through[0] for one in consults if one.through and one.through[0].startswith(WORKSPACE)]
    said = (*selector.in_workspace, *(pointer.removeprefix(WORKSPACE) for pointer in further))
    return said or ((ALL,) if reach.workspace else ())


#: The pointer to all of a resource.
ALL = ""
