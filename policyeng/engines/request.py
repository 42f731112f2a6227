"""The input and the output of engines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from policyeng.bundle import Bundle, Policy, SnapshotView
from policyeng.frozen import field, frozen, replace
from policyeng.models import Denial, ExemptionMark, JsonObject, Unknown
from policyeng.named import NamedTuple
from policyeng.rego.clock import Clock
from policyeng.rego.markers import Cause
from policyeng.rego.values import Value

#: The name of the view with markers in `EvaluationRequest.made`.
MARKED_VIEW = "marked view"
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
        subjects: resources, workloads, approvals and documents as written; `Pair.subject` is a position in this list.
        document: the snapshot with the keys `resources`, `workloads`, `approvals` and the others; its objects and lists
            are plain and must not be changed.
        parameters: one object for each policy of the bundle, with defaults.
        made: data that engines derive from `document`, by name; pass the same object to evaluate it again.
        marking: the unknown parts of the snapshot; None if everything is known.
        apart: the unknown parts for policies with more unknowns, by the number of the policy.
        clock: records the comparisons of policies with `as_of`; None if they are not needed.
    """

    bundle: Bundle
    snapshot: SnapshotView
    subjects: Sequence[JsonObject]
    document: JsonObject
    pairs: Sequence[Pair]
    parameters: Sequence[JsonObject]
    as_of: datetime
    made: dict[str, Any] = field(default_factory=dict)
    marking: Marking | None = None
    apart: Mapping[int, Marking] = field(default_factory=dict)
    clock: Clock | None = None

    def parts(self) -> Iterator[EvaluationRequest]:
        """Yield parts of the request, in each of which all policies have the same unknowns."""
        alike: dict[Marking | None, list[Pair]] = {}
        for pair in self.pairs:
            alike.setdefault(self.apart.get(pair.policy, self.marking), []).append(pair)
        yield from (replace(self, pairs=pairs, marking=marking, apart={}) for marking, pairs in alike.items())


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
