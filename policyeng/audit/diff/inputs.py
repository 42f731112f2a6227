"""Read the two sides of a comparison, from inputs and from stored runs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Any, Literal, NamedTuple

from msgspec import structs
from pydantic import AwareDatetime

from policyeng.audit.records import AuditRun, History
from policyeng.bundle import Bundle
from policyeng.bundle.parameters import parameters_of
from policyeng.engines import OpaOptions
from policyeng.evaluation import EvaluationOptions, evaluate
from policyeng.facts.ids import fold_id
from policyeng.models import (
    BundleRef,
    EngineRef,
    Evaluation,
    Finding,
    JsonObject,
    Outcome,
    Problem,
    Snapshot,
    SnapshotRef,
    Summary,
    lowered,
)
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


#: A position in a list, which moves when something before it comes or goes.
_POSITION = re.compile(r"/\d+(?=/|$)")


@dataclass(frozen=True)
class State:
    """Everything that findings depend on.

    Attributes:
        options: `problems` are those of reading.
    """

    bundle: Bundle
    snapshot: Snapshot
    options: EvaluationOptions

    @cached_property
    def filled(self) -> Mapping[str, JsonObject]:
        """The parameters by policy id, including defaults."""
        values = parameters_of(self.bundle, self.options.parameters)
        return {policy.id: given for policy, given in zip(self.bundle.policies, values, strict=True)}

    def with_options(self, **changes: Any) -> State:
        """Return a state with other values for some options."""
        return replace(self, options=structs.replace(self.options, **changes))


def evaluate_state(state: State) -> Evaluation:
    """Evaluate a state.

    Raises:
        UsageError: a parameter is unknown or does not match its schema, or the engine is unknown.
        EngineError: the bundle does not compile, or the OPA server does not answer for every pair.
    """
    return evaluate(state.bundle, state.snapshot, state.options)


class FindingKey(NamedTuple):
    """The key of a finding; `number` distinguishes findings of duplicate ids."""

    policy: str
    resource_type: str
    resource: str
    number: int = 0


class Status(NamedTuple):
    """The parts of a finding that are compared.

    Attributes:
        reasons: message and path of each, without positions in lists. Values are not compared, because every new
            measurement would be a change.
    """

    outcome: Outcome
    exempt: bool
    reasons: tuple[tuple[str, str], ...]

    @property
    def is_open(self) -> bool:
        """Whether the outcome is not a pass."""
        return self.outcome is not Outcome.PASS


def index_findings(findings: Iterable[Finding]) -> dict[FindingKey, Finding]:
    """Return findings by their keys, in order."""
    seen = Counter[FindingKey]()
    found: dict[FindingKey, Finding] = {}
    for finding in findings:
        first = FindingKey(finding.policy, lowered(finding.resource_type), fold_id(finding.resource))
        found[first._replace(number=seen[first])] = finding
        seen[first] += 1
    return found


def status_of(finding: Finding | None) -> Status | None:
    """Return the compared parts of a finding; None without one."""
    if finding is None:
        return None
    reasons = sorted((reason.msg, _POSITION.sub("/*", reason.path)) for reason in (*finding.denials, *finding.unknowns))
    return Status(finding.outcome, finding.exemption is not None, tuple(reasons))


class Stored:
    """The parts of one run, with a cache of its bundle."""

    def __init__(self, history: History, run: AuditRun, opa: OpaOptions | None = None) -> None:
        self.history, self.run, self._opa = history, run, opa
        self._bundle: Bundle | None = None

    @property
    def bundle(self) -> Bundle:
        """The policies of the run.

        Raises:
            UsageError: retention removed them.
        """
        if self._bundle is None:
            self._bundle = self.history.bundle(self.run)
        return self._bundle

    def state(self, name: str) -> tuple[State, Evaluation]:
        """Return a part with its evaluation; an empty one if the run has no such part.

        Raises:
            UsageError: the run could not read it, or retention removed it.
        """
        part = self.history.part(self.run, name)
        if part is None:
            empty = self.of(Snapshot())
            return empty, evaluate_state(empty)
        return self.of(self.history.snapshot(part)), self.history.evaluation(part)

    def of(self, snapshot: Snapshot, as_of: datetime | None = None) -> State:
        """Return a snapshot with the policies and options of the run, at its clock or another."""
        run = self.run
        options = run.options(self._opa)
        return State(self.bundle, snapshot, structs.replace(options, as_of=as_of or run.as_of))


class Readings:
    """The parts that runs of an estate could not read, queried from the store on demand."""

    def __init__(self, history: History, runs: Iterable[AuditRun]) -> None:
        self._history, self._runs = history, {run.number: run for run in runs}
        self._known: dict[tuple[int, str], bool] = {}

    def is_unread(self, number: int, part: str) -> bool:
        """Check whether a run could not read a part."""
        key = number, part
        if key not in self._known:
            found = self._history.part(self._runs[number], part)
            self._known[key] = found is not None and not found.snapshot
        return self._known[key]
