"""The records of a comparison: new, fixed, changed and persisting findings, and the causes of each flip."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from pydantic import AwareDatetime

from policyeng.models import BundleRef, EngineRef, Finding, Outcome, Problem, SnapshotRef, Summary
from policyeng.models.validated import ValidatedModel


class CauseKind(StrEnum):
    """The kind of a cause; those from `resource` to `document` are in the snapshot.

    A `library` is shared modules and data, if the text and the header of the policy are the same.
    """

    RESOURCE = "resource"
    APPROVAL = "approval"
    WORKLOAD = "workload"
    QUOTA = "quota"
    METRIC = "metric"
    PRINCIPAL = "principal"
    EVIDENCE = "evidence"
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
    """A changed place.

    Attributes:
        path: a JSON Pointer; that of the list if its length changed.
        change: whether the value was added, removed or changed.
        before, after: the values, with possible secrets masked; null without a value.
    """

    path: str
    change: Literal["came", "went", "changed"]
    before: Any = None
    after: Any = None


class Cause(ValidatedModel):
    """A difference between two evaluations that a flip depends on.

    Attributes:
        subject: an ARM id, the id of an approval, a policy or an exemption, or the name of an engine.
        paths: where a resource, a statement or the parameters of a policy differ, if the flip depends on it.
        before, after: the digest of a policy, or of the bundle for a library; the engine, the clock, the end of an
            exemption; empty without one.
    """

    kind: CauseKind
    change: Became
    subject: str = ""
    paths: tuple[PathChange, ...] = ()
    before: str = ""
    after: str = ""


class Flip(ValidatedModel):
    """A changed finding.

    Attributes:
        before, after: the outcomes; None if the policy did not evaluate the resource.
        causes: alternatives. Reverting all members of one entry undoes the flip. Empty if another evaluation does not
            reproduce the findings, which a problem reports.
        finding: the current finding; the earlier one if it is fixed.
        reopened: whether an earlier run had it, and another one fixed it; only known with a history.
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
    """A comparison of two evaluations. Findings are those that do not pass, with or without an exemption.

    Attributes:
        exit_code: 0 without new failures at or above the gate, 1 with some, 2 with errors.
        new: findings that were not there before.
        fixed: findings that are no longer there.
        changed: findings on both sides with another outcome, another mark of an exemption, or other reasons.
        persisting: findings on both sides that are the same.
        problems: those of both sides; those of one side begin with `before: ` or `after: `.

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
        """All flips."""
        return (*self.new, *self.changed, *self.fixed)
