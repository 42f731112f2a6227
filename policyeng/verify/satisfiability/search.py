"""The search through the snapshots of a class, which evaluates only those that can affect the answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from policyeng.verify.satisfiability.estates import Assignment, ClassEstates, described
from policyeng.verify.satisfiability.evaluations import BlockingReason, Judge, JudgedEstate


def minimal(family: Iterable[frozenset[str]]) -> list[frozenset[str]]:
    """Return the minimal sets of a family, the smallest first; what hits these hits all of them."""
    kept: list[frozenset[str]] = []
    for entry in sorted(set(family), key=lambda one: (len(one), sorted(one))):
        if not any(smaller <= entry for smaller in kept):
            kept.append(entry)
    return kept


def find_smallest_hitting_sets(family: Iterable[frozenset[str]]) -> list[frozenset[str]]:
    """Return all hitting sets of the least size, in the order of their members; none if a set is empty.

    A hitting set contains a member of each set, so branching on the members of one set that is not hit yet misses no
    hitting set. A branch ends if there are more disjoint sets left than members that may still be added.
    """
    sets = minimal(family)
    if frozenset() in sets:
        return []
    members = {member for entry in sets for member in entry}
    for size in range(len(members) + 1):
        found = set(_extend_hitting_set(sets, frozenset(), frozenset(), size))
        if found:
            return sorted(found, key=sorted)
    raise AssertionError("all members together hit every set")


def _extend_hitting_set(
    sets: list[frozenset[str]], taken: frozenset[str], barred: frozenset[str], left: int
) -> Iterator[frozenset[str]]:
    """Yield the hitting sets of `taken` and at most `left` more members, none of them `barred`."""
    if not sets:
        yield taken
        return
    if _count_disjoint(sets) > left:
        return
    for member in sorted(min(sets, key=len) - barred):
        yield from _extend_hitting_set(
            [entry for entry in sets if member not in entry], taken | {member}, barred, left - 1
        )
        barred |= {member}  # the hitting sets with it are all found


def _count_disjoint(sets: Iterable[frozenset[str]]) -> int:
    """Return a lower bound of the number of disjoint sets, each of which needs its own member."""
    seen: set[str] = set()
    count = 0
    for entry in sets:
        if seen.isdisjoint(entry):
            seen |= entry
            count += 1
    return count


@dataclass(frozen=True)
class Tried:
    """An evaluated snapshot of the class.

    Attributes:
        failing: the policies that it does not pass at the clock of the search, by id, and the reasons.
        lasting: those of them that do not depend on the clock, so they fail at every moment.
    """

    assignment: Assignment
    failing: Mapping[str, Sequence[BlockingReason]]
    lasting: frozenset[str]

    @property
    def policies(self) -> frozenset[str]:
        """The ids of the policies that it does not pass."""
        return frozenset(self.failing)


@dataclass
class EstateSearch:
    """A search that evaluates snapshots until each sampled moment has a passing one, or there are no more.

    A snapshot that fails a policy without a clock fails at all moments. One that passes those policies is evaluated
    only with the others, at the moments without a witness.

    Attributes:
        sampled: the moments, the clock `as_of` among them.
        open: the positions of the moments without a witness.
        survivors: the snapshots that pass every policy without a clock.
        outside: how many snapshots lack the resources of the class or have them unevaluated; they do not count.
    """

    estates: ClassEstates
    judge: Judge
    as_of: datetime
    sampled: Sequence[datetime]
    open: set[int] = field(default_factory=set)
    tried: list[Tried] = field(default_factory=list)
    survivors: list[tuple[Tried, JudgedEstate]] = field(default_factory=list)
    outside: int = 0
    unjudged: int = 0
    _waiting: list[JudgedEstate] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.open = set(range(len(self.sampled)))

    def walk(self, assignments: Iterable[Assignment]) -> None:
        """Evaluate snapshots until no moment is open."""
        for assignment in assignments:
            if not self.open:
                break
            self._evaluate(assignment)
        self._close_moments()

    @property
    def is_possible(self) -> bool:
        """Check whether a snapshot passes at the clock."""
        return any(not tried.failing for tried, _ in self.survivors)

    def least(self) -> list[Tried]:
        """Return one snapshot for each minimal set of policies that fail at the clock."""
        sets = set(minimal(tried.policies for tried in self.tried))
        first = {tried.policies: tried for tried in reversed(self.tried) if tried.policies in sets}
        return sorted(first.values(), key=lambda tried: (len(tried.policies), sorted(tried.policies)))

    def holds(self, moment: datetime) -> bool:
        """Check whether one of the evaluated snapshots passes at a moment."""
        return any(estate.passes(moment) for _, estate in self.survivors)

    def prepared(self, assignment: Assignment) -> JudgedEstate:
        """Prepare a snapshot for evaluation."""
        place = f"{self.estates.place}: {described(assignment)}"
        return self.judge.of(self.estates.snapshot(assignment), place)

    def failing_at(self, moment: datetime) -> Iterator[tuple[Tried, Mapping[str, Sequence[BlockingReason]]]]:
        """Yield every evaluated snapshot, with its failures at another moment."""
        for tried in self.tried:
            clocked = self.prepared(tried.assignment).verdicts(moment, clocked_alone=True).failing
            yield tried, {policy: tried.failing[policy] for policy in tried.lasting} | dict(clocked)

    def _evaluate(self, assignment: Assignment) -> None:
        estate = self.prepared(assignment)
        kinds = [estate.subjects_of(kind) for kind in self.estates.subject.about]
        if not all(kinds):
            self.outside += 1
            return
        verdicts = estate.verdicts(self.as_of)
        if verdicts.judged.isdisjoint(frozenset().union(*kinds)):
            self.unjudged += 1
            return
        tried = Tried(assignment, verdicts.failing, frozenset(verdicts.failing) & self.judge.timeless)
        self.tried.append(tried)
        if not tried.lasting:
            self.survivors.append((tried, estate))
            self._waiting.append(estate)
            if self.is_possible:
                self._close_moments()

    def _close_moments(self) -> None:
        """Close the moments at which a waiting snapshot passes.

        The snapshots wait until one passes at the clock; the search cannot end before. That one is evaluated first:
        it passes at most moments, and the others are evaluated only at the rest.
        """
        while self._waiting:
            estate = self._waiting.pop()
            self.open -= {number for number in self.open if estate.passes(self.sampled[number])}
