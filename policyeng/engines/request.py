"""The input and the output of engines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, Protocol

from policyeng.bundle import Bundle, Policy, SnapshotView
from policyeng.frozen import field, frozen, replace
from policyeng.models import Denial, ExemptionMark, JsonObject, Resource, Unknown
from policyeng.named import NamedTuple
from policyeng.rego.clock import Clock
from policyeng.rego.markers import Cause
from policyeng.rego.values import Value

#: The names in `EvaluationRequest.made` of the views of snapshots with markers, and of the read-only copy.
VIEWS, READ_ONLY = "views", "read-only copy"
#: The number of times that a policy can exceed its limit before it is switched off.
MOST_OVERRUNS = 3


class Pair(NamedTuple):
    """Indices of a policy in the bundle, of a subject, and of the subject's workspace (-1: none)."""

    policy: int
    subject: int
    workspace: int


class Judgement(NamedTuple):
    """The outcome of a policy for a subject.

    Attributes:
        error: why there is no other outcome.
        excepted: the mark for denials that an `exception` rule of a Conftest policy accepts.
        is_partial: whether the evaluation read something unknown.
        is_limit: whether the error is an exceeded limit; another evaluation can succeed.
        builtin_errors: the names of the builtins that failed where that is undefined, once for each call.
    """

    applies: bool = True
    denials: tuple[Denial, ...] = ()
    unknowns: tuple[Unknown, ...] = ()
    error: str | None = None
    excepted: ExemptionMark | None = None
    is_partial: bool = False
    is_limit: bool = False
    builtin_errors: tuple[str, ...] = ()


#: The outcome of a pair that passes, and of a pair to which the policy does not apply.
PASSES, SKIPPED = Judgement(), Judgement(applies=False)


class Column(NamedTuple):
    """The outcomes of a policy. Subjects to which it does not apply are in neither of its parts.

    Attributes:
        policy: the number of the policy in the bundle.
        passes: the positions of the subjects that pass, in ascending order.
        others: the outcomes of the subjects that do not pass, by position.
        builtin_errors: by builtin, how often it failed where that is undefined.
    """

    policy: int
    passes: Sequence[int]
    others: Mapping[int, Judgement]
    builtin_errors: Mapping[str, int] = MappingProxyType({})

    @staticmethod
    def of(policy: int, positions: Iterable[int], judgements: Iterable[Judgement]) -> Column:
        """Return the column of a policy from its outcomes for the subjects at some positions."""
        passes: list[int] = []
        others: dict[int, Judgement] = {}
        builtin_errors = Counter[str]()
        for position, judgement in zip(positions, judgements, strict=True):
            if judgement is PASSES:
                passes.append(position)
            elif judgement is not SKIPPED:
                builtin_errors.update(judgement.builtin_errors)
                if judgement.denials or judgement.unknowns or judgement.error is not None:
                    others[position] = judgement
                elif judgement.applies:
                    passes.append(position)
        return Column(policy, passes, others, builtin_errors)


class Marking(Protocol):
    """The unknown parts of a snapshot.

    Attributes:
        named: the types outside `facts.coverage.LISTED` that policies read.
    """

    @property
    def named(self) -> frozenset[str]:
        """Return the types."""

    def mark(
        self, snapshot: Mapping[str, Value], documents: Sequence[Value]
    ) -> tuple[dict[str, Value], Sequence[Value]]:
        """Return copies with markers of a snapshot as policies see it, and of its subjects."""

    def unknowns(self, causes: Iterable[Cause], subject: int, workspace: int) -> tuple[Unknown, ...]:
        """Return the unknowns of an evaluation, by the positions of its subject and of the subject's workspace."""


@frozen
class EvaluationRequest:
    """The input of an engine.

    Attributes:
        subjects: resources, workloads, approvals and documents.
        documents: the documents of the subjects, in the same order.
        document: the snapshot with the keys `resources`, `workloads`, `approvals` and the others; its objects and lists
            are plain and must not be changed.
        positions: the positions of the subjects to evaluate, in ascending order, by the number of the policy.
        parameters: one object for each policy of the bundle, with defaults.
        made: data that engines derive from `document`, by name; pass the same object to evaluate it again.
        marking: the unknown parts of the snapshot; None if everything is known.
        apart: the unknown parts for policies with more unknowns, by the number of the policy.
        clock: records the comparisons of policies with `as_of`; None if they are not needed.
    """

    bundle: Bundle
    snapshot: SnapshotView
    subjects: Sequence[Resource]
    documents: Sequence[JsonObject]
    document: JsonObject
    positions: Mapping[int, Sequence[int]]
    parameters: Sequence[JsonObject]
    as_of: datetime
    made: dict[str, Any] = field(default_factory=dict)
    marking: Marking | None = None
    apart: Mapping[int, Marking] = field(default_factory=dict)
    clock: Clock | None = None

    def parts(self) -> Iterator[EvaluationRequest]:
        """Yield parts of the request, in each of which all policies have the same unknowns."""
        alike: dict[Marking | None, dict[int, Sequence[int]]] = {}
        for policy, positions in self.positions.items():
            alike.setdefault(self.apart.get(policy, self.marking), {})[policy] = positions
        for marking, of_policies in alike.items():
            yield replace(self, positions=of_policies, marking=marking, apart={})

    @property
    def pairs(self) -> list[Pair]:
        """The pairs to evaluate, by policy and then by position."""
        return [pair for policy, positions in self.positions.items() for pair in self.pairs_of(policy, positions)]

    def with_pairs(self, pairs: Iterable[Pair]) -> EvaluationRequest:
        """Return a request for some pairs, which have the order of `pairs`."""
        positions: dict[int, list[int]] = {}
        for policy, subject, _ in pairs:
            positions.setdefault(policy, []).append(subject)
        return replace(self, positions=positions)

    def pairs_of(self, policy: int, positions: Iterable[int]) -> Iterator[Pair]:
        """Yield the pairs of a policy with the subjects at some positions."""
        return (Pair(policy, position, self.subjects[position].workspace) for position in positions)

    def only(self, policies: Container[int]) -> EvaluationRequest:
        """Return the part of the request for some policies, by number."""
        chosen = {policy: positions for policy, positions in self.positions.items() if policy in policies}
        return replace(self, positions=chosen)


def is_switched_off(bundle: Bundle, policy: Policy) -> bool:
    """Check whether a policy exceeded its limit too often, and is skipped until the bundle is loaded again."""
    return bundle.overruns.get(policy.id, 0) >= MOST_OVERRUNS


def count_overrun(bundle: Bundle, policy: Policy) -> None:
    """Count an evaluation that exceeded its limit."""
    bundle.overruns[policy.id] = bundle.overruns.get(policy.id, 0) + 1


#: The outcome of every pair of a policy that is switched off.
SWITCHED_OFF = Judgement(
    error=f"limit: not evaluated: the policy exceeded its limit {MOST_OVERRUNS} times and is switched off "
    "until the bundle is loaded again; change it to read less",
    is_limit=True,
)
