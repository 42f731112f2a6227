"""Search for an estate that meets the requirements of a class of workloads, and evaluate candidates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any

import orjson

from policyeng.bundle import Bundle
from policyeng.bundle.header import TargetType
from policyeng.bundle.parameters import parameters_of
from policyeng.engines import Judgement, run_engine
from policyeng.errors import BundleError
from policyeng.evaluation.context import request_evaluation
from policyeng.evaluation.matching import PlannedColumn, plan
from policyeng.evaluation.pointers import value_at
from policyeng.evaluation.prepared_snapshot import PreparedSnapshot, estate_of
from policyeng.evaluation.unknown_markers import mark_for_bundle
from policyeng.models import Denial, JsonObject, Resource, Snapshot, Unknown, lowered
from policyeng.verify.satisfiability.classes import Assignment, ClassEstates, described


@dataclass(frozen=True)
class BlockingReason:
    """One reason why a policy does not pass on a subject; an error has only a message."""

    policy: str
    resource: str
    target_type: str
    statement: Denial | Unknown

    @property
    def words(self) -> str:
        """Return the reason in one line."""
        shown = (
            f"{self.statement.path}: {_to_text(self.statement.actual)}"
            if isinstance(self.statement, Denial)
            else self.statement.path
        )
        return f"{self.policy}: {self.statement.msg} ({shown})"

    @property
    def brief(self) -> str:
        """Return the reason without its place, and without why the policy applies."""
        actual = self.statement.actual if isinstance(self.statement, Denial) else None
        if isinstance(actual, dict):
            actual = {key: value for key, value in actual.items() if key != "because"}
        return f"{self.policy}: {self.statement.msg}{f' ({_to_text(actual)})' if actual else ''}"


def _to_text(value: object) -> str:
    """Return a JSON value as text: objects as pairs."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {_to_text(member)}" for key, member in value.items())
    return value if isinstance(value, str) else orjson.dumps(value, default=str).decode()


@dataclass(frozen=True)
class Evaluator:
    """A bundle with its parameters."""

    bundle: Bundle
    given: Mapping[str, JsonObject]

    @cached_property
    def parameters(self) -> list[JsonObject]:
        """The parameters of each policy, by position."""
        return parameters_of(self.bundle, self.given)

    @cached_property
    def timeless(self) -> frozenset[str]:
        """The ids of the policies that certainly do not depend on the clock."""
        policies = zip(self.bundle.policies, self.bundle.clocked, strict=True)
        return frozenset(policy.id for policy, is_clocked in policies if not is_clocked)

    def of(self, snapshot: Snapshot, place: str) -> PreparedEstate:
        """Prepare a snapshot for evaluation.

        Raises:
            BundleError: a part of it cannot be evaluated; `place` is the place of the error.
        """
        estate = estate_of(snapshot, self.bundle.facts)
        for problem in estate.problems:
            if problem.level == "error":
                raise BundleError(problem.message, place=(place, problem.place))
        return PreparedEstate(self, estate, tuple(plan(self.bundle, estate)))


@dataclass(frozen=True)
class Verdicts:
    """The results for a snapshot at one moment.

    Attributes:
        failing: the policies with a finding other than a pass, by id, and the reasons.
        evaluated: the positions of the subjects that have a finding.
    """

    failing: Mapping[str, Sequence[BlockingReason]]
    evaluated: frozenset[int]


@dataclass(frozen=True)
class PreparedEstate:
    """A prepared snapshot and its pairs of policy and subject."""

    evaluator: Evaluator
    estate: PreparedSnapshot
    planned: Sequence[PlannedColumn]
    _made: dict[str, Any] = field(default_factory=dict)
    _failed: list[PlannedColumn] = field(default_factory=list)

    def subjects_of(self, about: TargetType) -> frozenset[int]:
        """Return the positions of the subjects that certainly meet an entry of `judges`."""
        return frozenset(index for index, subject in enumerate(self.estate.subjects) if _is_one(about, subject))

    def verdicts(self, as_of: datetime, *, clocked_alone: bool = False) -> Verdicts:
        """Evaluate all policies, or only those that may depend on the clock."""
        return self._evaluate(self._clocked if clocked_alone else self.planned, as_of)

    def passes(self, as_of: datetime) -> bool:
        """Check whether a snapshot that passes all policies without a clock passes the others at a moment."""
        policies = self.evaluator.bundle.policies
        in_rego = [column for column in self._clocked if policies[column.policy].rules]
        in_python = [column for column in self._clocked if not policies[column.policy].rules]
        # The last failing policy probably fails again, and Python costs less than Rego; the order is only for speed.
        for columns in (self._failed, in_python, in_rego):
            failing = self._evaluate(columns, as_of).failing if columns else {}
            if failing:
                self._failed[:] = [column for column in columns if policies[column.policy].id in failing]
                return False
        return True

    @cached_property
    def _clocked(self) -> list[PlannedColumn]:
        """The pairs of the policies that may depend on the clock."""
        policies, timeless = self.evaluator.bundle.policies, self.evaluator.timeless
        return [column for column in self.planned if policies[column.policy].id not in timeless]

    def _evaluate(self, planned: Sequence[PlannedColumn], as_of: datetime) -> Verdicts:
        bundle, subjects = self.evaluator.bundle, self.estate.subjects
        markings = mark_for_bundle(bundle, self.estate)
        request = request_evaluation(bundle, self.estate, planned, self.evaluator.parameters, as_of, markings)
        failing: dict[str, list[BlockingReason]] = {}
        evaluated = {position for column in planned for position in column.undecided}
        undecided = [
            (column.policy, position, Judgement(unknowns=unknowns))
            for column in planned
            for position, unknowns in column.undecided.items()
        ]
        columns = run_engine(replace(request, made=self._made))
        evaluated.update(*((*column.passes, *column.others) for column in columns))
        others = (
            (column.policy, position, judgement) for column in columns for position, judgement in column.others.items()
        )
        for number, position, judgement in (*undecided, *others):
            subject, policy = subjects[position], bundle.policies[number].id
            failing.setdefault(policy, []).extend(
                BlockingReason(policy, subject.reported_id, subject.target_type, reason)
                for reason in _reasons(judgement)
            )
        return Verdicts(failing, frozenset(evaluated))


def _reasons(judgement: Judgement) -> Sequence[Denial | Unknown]:
    if judgement.error is not None:
        return [Unknown(msg=f"the policy failed with an error: {judgement.error}")]
    return judgement.denials or judgement.unknowns


def _is_one(target: TargetType, subject: Resource) -> bool:
    """Check whether a subject certainly meets an entry of `judges`: its type, and a value at every pointer."""
    return lowered(target.type) == subject.target_type and all(
        any(_is_equal(value_at(subject.document, pointer), value) for value in allowed)
        for pointer, allowed in target.where.items()
    )


def _is_equal(found: object, wanted: object) -> bool:
    if isinstance(found, str) and isinstance(wanted, str):
        return lowered(found) == lowered(wanted)
    return type(found) is type(wanted) and found == wanted


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
    evaluator: Evaluator
    as_of: datetime
    sampled: Sequence[datetime]
    open: set[int] = field(default_factory=set)
    tried: list[Tried] = field(default_factory=list)
    survivors: list[tuple[Tried, PreparedEstate]] = field(default_factory=list)
    outside: int = 0
    unevaluated: int = 0
    _waiting: list[PreparedEstate] = field(default_factory=list)

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

    def prepared(self, assignment: Assignment) -> PreparedEstate:
        """Prepare a snapshot for evaluation."""
        place = f"{self.estates.place}: {described(assignment)}"
        return self.evaluator.of(self.estates.snapshot(assignment), place)

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
        if verdicts.evaluated.isdisjoint(frozenset().union(*kinds)):
            self.unevaluated += 1
            return
        tried = Tried(assignment, verdicts.failing, frozenset(verdicts.failing) & self.evaluator.timeless)
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
