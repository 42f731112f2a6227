"""What a comparison says: which findings are new, fixed, changed or persisting, and what each flip comes from."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from pydantic import AwareDatetime

from policyeng.models import BundleRef, EngineRef, Finding, Outcome, Problem, SnapshotRef, Summary
from policyeng.models.validated import ValidatedModel


class CauseKind(StrEnum):
    """Of what kind a cause is; from `resource` to `document` it stands in the snapshot.

    A `library` is what a policy shares with others, modules and data, where its own text and header are the same.
    """

    RESOURCE = "resource"
    APPROVAL = "approval"
    WORKLOAD = "workload"
    QUOTA = "quota"
    METRIC = "metric"
    PRINCIPAL = "principal"
    SNAPSHOT = "snapshot"
    DOCUMENT = "document"
    POLICY = "policy"
    LIBRARY = "library"
    PARAMETERS = "parameters"
    EXEMPTION = "exemption"
    ENGINE = "engine"
    CLOCK = "clock"


#: What became of a cause; an exemption begins, ends by its time (`lapsed`) or is taken back (`ended`).
Became = Literal["came", "went", "changed", "began", "lapsed", "ended"]


class PathChange(ValidatedModel):
    """One place that is no longer the same.

    Attributes:
        path: a JSON Pointer; of a list that has become longer or shorter, that of the list.
        change: whether it came, went, or holds something else.
        before, after: the values, what looks like a secret masked; null where nothing was or is there.
    """

    path: str
    change: Literal["came", "went", "changed"]
    before: Any = None
    after: Any = None


class Cause(ValidatedModel):
    """One thing that differs between two judgings and without which a flip would not be.

    Attributes:
        subject: what it is: an ARM id, the id of an approval, a policy, an exemption, or the name of an engine.
        paths: where a resource, a statement or the parameters of a policy differ, as far as the flip hangs on it.
        before, after: the digest of a policy, or of the bundle for a library; the engine, the clock, the end of an
            exemption; empty where there is none.
    """

    kind: CauseKind
    change: Became
    subject: str = ""
    paths: tuple[PathChange, ...] = ()
    before: str = ""
    after: str = ""


class Flip(ValidatedModel):
    """A finding that is no longer what it was.

    Attributes:
        before, after: what was found; None where the policy did not judge the resource.
        causes: each entry undoes the flip by itself when it is as it was before; the members of an entry do so only
            together. Empty where judging again does not give what was found, which a problem then says.
        finding: as it is now; of what is fixed, as it was.
        reopened: whether it stood earlier, was fixed, and stands again; only a history knows.
    """

    before: Outcome | None
    after: Outcome | None
    exempt_before: bool = False
    exempt_after: bool = False
    reopened: bool = False
    causes: tuple[tuple[Cause, ...], ...] = ()
    finding: Finding


class ComparedEvaluation(ValidatedModel):
    """One of the two evaluations that are compared."""

    bundle: BundleRef
    snapshot: SnapshotRef
    as_of: AwareDatetime
    engine: EngineRef
    summary: Summary


class Comparison(ValidatedModel):
    """Two evaluations compared; a finding here is one that does not pass, with an exemption or without.

    Attributes:
        exit_code: 0 nothing new fails at or above the gate, 1 something does, 2 something could not be decided.
        new: findings of after that were none before.
        fixed: findings of before that are none now.
        changed: findings on both sides with another outcome, another mark of an exemption, or other reasons.
        persisting: findings on both sides that are the same.
        problems: those of both sides; what is only said of one begins with `before: ` or `after: `.

    The lists are disjoint: new, changed and persisting are the findings of after; fixed, changed and persisting those
    of before. They are sorted by policy and resource.
    """

    diff_version: Literal[1] = 1
    exit_code: int
    before: ComparedEvaluation
    after: ComparedEvaluation
    new: tuple[Flip, ...] = ()
    fixed: tuple[Flip, ...] = ()
    changed: tuple[Flip, ...] = ()
    persisting: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def flips(self) -> tuple[Flip, ...]:
        """What is not as it was."""
        return (*self.new, *self.changed, *self.fixed)
