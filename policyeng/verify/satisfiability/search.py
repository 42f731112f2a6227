"""The search through the estates of a class: every one that could matter is judged, and no other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from policyeng.verify.satisfiability.estates import Assignment, ClassEstates, described
from policyeng.verify.satisfiability.evaluations import BlockingReason, Judge, JudgedEstate


def minimal(family: Iterable[frozenset[str]]) -> list[frozenset[str]]:
    """The sets that no other set of the family lies in, the smallest first; what hits these hits them all."""
    kept: list[frozenset[str]] = []
    for entry in sorted(set(family), key=lambda one: (len(one), sorted(one))):
        if not any(smaller <= entry for smaller in kept):
            kept.append(entry)
    return kept


def smallest_hitting_sets(family: Iterable[frozenset[str]]) -> list[frozenset[str]]:
    """All hitting sets of the least size, in the order of their members; none where a set is empty.

    A hitting set contains a member of a set that is not hit yet, so branching on the members of one such set leaves
    none out; a branch ends where as many sets without a common member are left as members may still be taken.
    """
    sets = minimal(family)
    if frozenset() in sets:
        return []
    members = {member for entry in sets for member in entry}
    for size in range(len(members) + 1):
        found = set(_of_size(sets, frozenset(), frozenset(), size))
        if found:
            return sorted(found, key=sorted)
    raise AssertionError("all members together hit every set")


def _of_size(
    sets: list[frozenset[str]], taken: frozenset[str], barred: frozenset[str], left: int
) -> Iterator[frozenset[str]]:
    """The hitting sets that are `taken` and at most `left` members more, none of them `barred`."""
    if not sets:
        yield taken
        return
    if _apart(sets) > left:
        return
    for member in sorted(min(sets, key=len) - barred):
        yield from _of_size([entry for entry in sets if member not in entry], taken | {member}, barred, left - 1)
        barred |= {member}  # the hitting sets with it are all found


def _apart(sets: Iterable[frozenset[str]]) -> int:
    """How many sets at least have no member in common: each of them needs a member of its own."""
    seen: set[str] = set()
    count = 0
    for entry in sets:
        if seen.isdisjoint(entry):
            seen |= entry
            count += 1
    return count


@dataclass(frozen=True)
class Tried:
    """An estate of the class that was judged.

    Attributes:
        failing: by id, the policies that it does not pass at the clock of the search, and why.
        lasting: those of them that do not look at the clock, so that they fail at every moment.
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
    """Judges estates one after another until each sampled moment has one that passes, or there is none left.

    What fails a policy that does not look at the clock is judged once and fails at all moments; what passes those is
    judged at the moments that have no witness yet, and only by the others.

    Attributes:
        sampled: the moments, the clock `as_of` among them.
        open: positions of the moments without a witness.
        survivors: what passes every policy that does not look at the clock.
        outside: how many estates lack what the class is about, or have it unjudged; they say nothing of the class.
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
        """Try estates until no moment is open."""
        for assignment in assignments:
            if not self.open:
                break
            self._try(assignment)
        self._close()

    @property
    def is_possible(self) -> bool:
        """Whether an estate passes at the clock."""
        return any(not tried.failing for tried, _ in self.survivors)

    def least(self) -> list[Tried]:
        """One estate for each inclusion-minimal set of policies that fail at the clock."""
        sets = set(minimal(tried.policies for tried in self.tried))
        first = {tried.policies: tried for tried in reversed(self.tried) if tried.policies in sets}
        return sorted(first.values(), key=lambda tried: (len(tried.policies), sorted(tried.policies)))

    def holds(self, moment: datetime) -> bool:
        """Whether one of the estates that were tried passes at a moment."""
        return any(estate.passes(moment) for _, estate in self.survivors)

    def prepared(self, assignment: Assignment) -> JudgedEstate:
        """An estate, ready to be judged."""
        place = f"{self.estates.place}: {described(assignment)}"
        return self.judge.of(self.estates.snapshot(assignment), place)

    def failing_at(self, moment: datetime) -> Iterator[tuple[Tried, Mapping[str, Sequence[BlockingReason]]]]:
        """Every estate that was tried, with what it fails at another moment."""
        for tried in self.tried:
            clocked = self.prepared(tried.assignment).verdicts(moment, clocked_alone=True).failing
            yield tried, {policy: tried.failing[policy] for policy in tried.lasting} | dict(clocked)

    def _try(self, assignment: Assignment) -> None:
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
                self._close()

    def _close(self) -> None:
        """Close the moments at which a waiting estate passes.

        The estates wait until one passes at the clock, before which the search cannot end. That one is evaluated first:
        it passes at most moments, and the others are evaluated only at the rest.
        """
        while self._waiting:
            estate = self._waiting.pop()
            self.open -= {number for number in self.open if estate.passes(self.sampled[number])}
