"""What an engine is given and what it gives back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from policyeng.bundle import Bundle, SnapshotView
from policyeng.models import Denial, ExemptionMark, JsonObject, Unknown


class Pair(NamedTuple):
    """Indices of a policy in the bundle, of a subject, and of the subject's workspace (-1: none)."""

    policy: int
    subject: int
    workspace: int


class Judgement(NamedTuple):
    """What a policy says about a subject; `error` says why nothing else could be said.

    `excepted` marks denials that an `exception` rule beside the policy takes back.
    """

    applies: bool = True
    denials: tuple[Denial, ...] = ()
    unknowns: tuple[Unknown, ...] = ()
    error: str | None = None
    excepted: ExemptionMark | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """Everything an engine needs.

    Attributes:
        subjects: resources, workloads, approvals, documents as they were written: what `Pair.subject` counts through.
        document: the snapshot as JSON with the keys `resources`, `workloads`, `approvals` and the others.
        parameters: one object per policy of the bundle, defaults filled in.
        threads: how many threads judge Rego; at least 1.
        made: by name, what engines make of `document`; whoever judges it again gives the same one again.
    """

    bundle: Bundle
    snapshot: SnapshotView
    subjects: Sequence[JsonObject]
    document: bytes
    pairs: Sequence[Pair]
    parameters: Sequence[JsonObject]
    as_of: datetime
    threads: int = 1
    made: dict[str, Any] = field(default_factory=dict)
