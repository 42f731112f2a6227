"""The records of an audit store: the runs of estates, their parts, and the spans of findings.

An estate is the named set of snapshots that one audit covers. A part is one of these snapshots, such as a file of a
directory or a workspace of a subscription. A run evaluates every part once, at one clock and with one bundle.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from pydantic import AwareDatetime

from policyeng.bundle import Bundle
from policyeng.models import (
    AppliedSettings,
    BundleRef,
    EngineRef,
    Evaluation,
    Exemption,
    JsonObject,
    LedgerEntry,
    Outcome,
    Problem,
    Severity,
    Snapshot,
    Summary,
)
from policyeng.models.validated import ValidatedModel

if TYPE_CHECKING:
    from policyeng.engines import OpaOptions
    from policyeng.evaluation import EvaluationOptions


class AuditRun(ValidatedModel):
    """One audit of an estate. The chain of hashes covers its JSON.

    Attributes:
        number: from 1, over all estates of a store and without gaps.
        started_at, finished_at: times of the machine's clock.
        as_of: the evaluation clock.
        inputs: the configured inputs of the estate, without secrets.
        parameters: by policy id, the values that replaced the defaults, including those of the profile.
        exemptions: the active exemptions.
        exit_code: the exit code that `check` of all the parts would have.
        summary: of the findings of all parts.
        parts: the number of parts.
        problems: of parts that could not be read or evaluated. Problems within a part are in its evaluation.
        ledger: what was not read of the estate. What was not read of an evaluated part is in its evaluation.
        settings: the configured settings and their places.
        content: the hash of the parts with the digests of their snapshots and evaluations, in order.
        previous: the hash of the previous run of any estate; empty for the first.
        hash: of all the above.
    """

    number: int
    estate: str
    started_at: AwareDatetime
    finished_at: AwareDatetime
    as_of: AwareDatetime
    inputs: tuple[str, ...]
    bundle: BundleRef
    engine: EngineRef
    parameters: Mapping[str, JsonObject] = {}
    exemptions: tuple[Exemption, ...] = ()
    fail_on: Severity = Severity.LOW
    strict_unknown: bool = False
    exit_code: int
    summary: Summary
    parts: int
    problems: tuple[Problem, ...] = ()
    ledger: tuple[LedgerEntry, ...] = ()
    settings: AppliedSettings = AppliedSettings()
    content: str
    previous: str
    hash: str

    def options(self, opa: OpaOptions | None = None) -> EvaluationOptions:
        """Return the options for evaluating its parts again; `opa` is the server to use if that was its engine."""
        from policyeng.evaluation import EvaluationOptions  # most commands only read runs

        return EvaluationOptions(
            self.as_of,
            self.exemptions,
            self.parameters,
            self.engine.name,
            opa if self.engine.name == "opa" else None,
            fail_on=self.fail_on,
            strict_unknown=self.strict_unknown,
        )


class RunPart(ValidatedModel):
    """A part of a run.

    Attributes:
        name: unique in a run, and the same in every run: a path below the input, a URL, an ARM id.
        snapshot: the digest of the stored snapshot; empty if it could not be read.
        evaluation: the digest of the stored evaluation; empty if the snapshot could not be read.
    """

    name: str
    snapshot: str
    evaluation: str
    exit_code: int
    summary: Summary


class FindingSpan(ValidatedModel):
    """The runs in which a finding other than a pass persists without a break.

    Attributes:
        part: the name of the part.
        exempt: whether an exemption covers it; a change of this, or of the outcome, starts a new span.
        first: the number of the first run with the finding.
        first_seen: the clock of that run.
        last: the number of the last run with the finding; None if the newest run of the estate has it.
        last_seen: the clock of that run, or of the newest run of the estate.
        until: the number of the first run without it; None if the newest run has it.
    """

    part: str
    policy: str
    resource: str
    resource_type: str
    severity: Severity
    outcome: Outcome
    exempt: bool
    first: int
    first_seen: AwareDatetime
    last: int | None
    last_seen: AwareDatetime
    until: int | None


class History(Protocol):
    """Stored runs, for comparisons, notifications and reports. Every method raises StoreError for a broken store."""

    def estates(self) -> Sequence[str]:
        """Return the names of all estates that have a run, sorted."""

    def runs(self, estate: str, *, last: int | None = None) -> Sequence[AuditRun]:
        """Return the runs of an estate, the oldest first; only the newest `last` of them if given."""

    def run(self, number: int) -> AuditRun:
        """Return a run by its number.

        Raises:
            UsageError: there is no such run.
        """

    def parts(self, run: AuditRun) -> Iterator[RunPart]:
        """Yield the parts of a run in order."""

    def part(self, run: AuditRun, name: str) -> RunPart | None:
        """Return the part of a name; None if the run has none."""

    def bundle(self, run: AuditRun) -> Bundle:
        """Return the policies of a run, with its selection.

        Raises:
            UsageError: retention removed them.
        """

    def snapshot(self, part: RunPart) -> Snapshot:
        """Return the snapshot of a part.

        Raises:
            UsageError: the run could not read it, or retention removed it.
        """

    def evaluation(self, part: RunPart) -> Evaluation:
        """Return the evaluation of a part.

        Raises:
            UsageError: the run could not read it, or retention removed it.
        """

    def spans(self, estate: str, *, since: int = 0) -> Iterator[FindingSpan]:
        """Yield the spans of an estate, sorted by part, policy, resource and first run.

        Args:
            estate: its name.
            since: only spans that include a run of this number or a later one, or ended there.
        """
