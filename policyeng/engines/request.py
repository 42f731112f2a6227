"""What an engine is given and what it gives back."""

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
#: How often a policy may exceed its limit until it is switched off.
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
        excepted: marks denials that an `exception` rule of a Conftest policy takes back.
        is_partial: the evaluation met something that is not known.
        is_limit: the error is a limit that was exceeded; another evaluation may end in time.
    """

    applies: bool = True
    denials: tuple[Denial, ...] = ()
    unknowns: tuple[Unknown, ...] = ()
    error: str | None = None
    excepted: ExemptionMark | None = None
    is_partial: bool = False
    is_limit: bool = False


class Marking(Protocol):
    """What is not known of a snapshot.

    Attributes:
        named: the types outside `facts.coverage.LISTED` that policies look up.
    """

    @property
    def named(self) -> frozenset[str]:
        """Return them."""

    def mark(
        self, snapshot: Mapping[str, Value], documents: Sequence[Value]
    ) -> tuple[dict[str, Value], Sequence[Value]]:
        """Return copies with markers of a snapshot as policies see it, and of its subjects, the same objects."""

    def unknowns(self, causes: Iterable[Cause], subject: int, workspace: int) -> tuple[Unknown, ...]:
        """Return what an evaluation met, for the positions of its subject and of the workspace of that."""


@frozen
class EvaluationRequest:
    """Everything an engine needs.

    Attributes:
        subjects: resources, workloads, approvals, documents as they were written: what `Pair.subject` counts through.
        document: the snapshot with the keys `resources`, `workloads`, `approvals` and the others; its objects and lists
            are plain and not to be changed.
        parameters: one object per policy of the bundle, defaults filled in.
        made: by name, what engines make of `document`; whoever judges it again gives the same one again.
        marking: what is not known of the snapshot; None where all of it is.
        apart: by the number of a policy, what is not known of the snapshot to it, where that is more.
        clock: records what policies compare `as_of` with; None where nobody asks for it.
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
        """Yield the work in parts, in each of which the same is known to all policies."""
        alike: dict[Marking | None, list[Pair]] = {}
        for pair in self.pairs:
            alike.setdefault(self.apart.get(pair.policy, self.marking), []).append(pair)
        yield from (replace(self, pairs=pairs, marking=marking, apart={}) for marking, pairs in alike.items())


def is_switched_off(bundle: Bundle, policy: Policy) -> bool:
    """Return whether a policy exceeded its limit so often that it is not evaluated until the bundle is loaded again."""
    return bundle.overruns.get(policy.id, 0) >= MOST_OVERRUNS


def count_overrun(bundle: Bundle, policy: Policy) -> None:
    """Count an evaluation that exceeded its limit."""
    bundle.overruns[policy.id] = bundle.overruns.get(policy.id, 0) + 1


#: The outcome of every pair of a policy that is switched off.
SWITCHED_OFF = Judgement(
    error=f"limit: not evaluated: the policy exceeded its limit {MOST_OVERRUNS} times and is switched off "
    "until the bundle is loaded again; make it look at less",
    is_limit=True,
)
