"""What a store gives back: the runs of estates, the parts that they judged, and what was found for how long.

An estate is what one audit is asked to look at, under a name; a part of it is one snapshot, such as a file of a
directory or a workspace of a subscription. A run judges every part of an estate once, at one clock and with one bundle.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from pydantic import AwareDatetime

from policyeng.bundle import Bundle
from policyeng.models import (
    AppliedSettings,
    BundleRef,
    EngineRef,
    Evaluation,
    Exemption,
    JsonObject,
    Outcome,
    Problem,
    Severity,
    Snapshot,
    Summary,
)
from policyeng.models.validated import ValidatedModel


class AuditRun(ValidatedModel):
    """One audit of an estate; its JSON is what the chain of hashes is made over.

    Attributes:
        number: from 1, over all estates of a store and without gaps.
        started_at, finished_at: by the machine's clock.
        as_of: the evaluation clock.
        inputs: where the estate was read from, as it was configured; no secrets.
        parameters: by policy id, what replaced the defaults, those of the profile among them.
        exemptions: those in force at the run.
        exit_code: what `check` of all the parts would end with.
        summary: over the findings of all parts.
        parts: how many there are.
        problems: what kept a part from being read or judged; what is wrong within one is in its evaluation.
        settings: what was configured, and where.
        content: the hash over the parts with the digests of their snapshots and evaluations, in their order.
        previous: the hash of the run before, of whatever estate; empty for the first.
        hash: over all the above.
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
    settings: AppliedSettings = AppliedSettings()
    content: str
    previous: str
    hash: str


class RunPart(ValidatedModel):
    """What a run read under one name.

    Attributes:
        name: unique in a run, and the same in every run: a path below the input, a URL, an ARM id.
        snapshot: the digest under which the store keeps what was judged; empty when it could not be read.
        evaluation: the digest under which the store keeps what came of it; empty when it could not be read.
    """

    name: str
    snapshot: str
    evaluation: str
    exit_code: int
    summary: Summary


class FindingSpan(ValidatedModel):
    """For how long a finding other than a pass has stood without a break; at its end it passed or was judged no more.

    Attributes:
        part: the name of the part.
        exempt: whether an exemption covered it all the while; a change of that, or of the outcome, begins a new one.
        first: the number of the first run that says so.
        first_seen: the clock of that run.
        last: the number of the last run that says so; None while the newest run of the estate does.
        last_seen: the clock of that run, or of the newest of the estate.
        until: the number of the run that no longer says so; None while it stands.
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
    """What was kept, for those who compare, tell and report it; every method raises StoreError for a broken store."""

    def estates(self) -> Sequence[str]:
        """The names of all estates that have a run, sorted."""

    def runs(self, estate: str, *, last: int | None = None) -> Sequence[AuditRun]:
        """The runs of an estate, the oldest first; only the newest `last` of them where that is given."""

    def run(self, number: int) -> AuditRun:
        """One run.

        Raises:
            UsageError: there is none of the number.
        """

    def parts(self, run: AuditRun) -> Iterator[RunPart]:
        """The parts of a run in their order."""

    def part(self, run: AuditRun, name: str) -> RunPart | None:
        """The part of that name; None where the run has none."""

    def bundle(self, run: AuditRun) -> Bundle:
        """The policies that judged a run, as they were, with its selection.

        Raises:
            UsageError: retention has taken them.
        """

    def snapshot(self, part: RunPart) -> Snapshot:
        """What was judged.

        Raises:
            UsageError: it could not be read then, or retention has taken it.
        """

    def evaluation(self, part: RunPart) -> Evaluation:
        """What came of it, with every finding.

        Raises:
            UsageError: it could not be read then, or retention has taken it.
        """

    def spans(self, estate: str, *, since: int = 0) -> Iterator[FindingSpan]:
        """The spans of an estate, sorted by part, policy, resource and first run.

        Args:
            estate: its name.
            since: only spans that stand in a run of this number or a later one, or ended there.
        """
