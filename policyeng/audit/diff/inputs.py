"""What is judged with what, and what of the findings counts when two of these are compared."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from policyeng.audit.records import AuditRun, History
from policyeng.bundle import Bundle
from policyeng.bundle.parameters import parameters_of
from policyeng.engines import OpaOptions
from policyeng.evaluation import evaluate
from policyeng.facts.ids import folded_id
from policyeng.models import Evaluation, Exemption, Finding, JsonObject, Outcome, Problem, Severity, Snapshot, lowered

#: A position in a list, which moves when something before it comes or goes.
_POSITION = re.compile(r"/\d+(?=/|$)")


@dataclass(frozen=True)
class State:
    """Everything that findings hang on.

    Attributes:
        parameters: by policy id, what replaces the defaults.
        problems: what went wrong on the way here.
    """

    bundle: Bundle
    snapshot: Snapshot
    as_of: datetime
    exemptions: Sequence[Exemption] = ()
    parameters: Mapping[str, JsonObject] = field(default_factory=dict)
    engine: str = "embedded"
    opa: OpaOptions | None = None
    problems: Sequence[Problem] = ()

    @cached_property
    def filled(self) -> Mapping[str, JsonObject]:
        """By policy id, what it is judged with, defaults filled in."""
        values = parameters_of(self.bundle, self.parameters)
        return {policy.id: given for policy, given in zip(self.bundle.policies, values, strict=True)}


@dataclass(frozen=True, slots=True)
class ComparisonThreshold:
    """What fails a comparison, as for `check`."""

    fail_on: Severity = Severity.LOW
    strict_unknown: bool = False


#: Every failure that has no exemption.
ANY = ComparisonThreshold()


def judged(state: State, gate: ComparisonThreshold = ANY) -> Evaluation:
    """The evaluation of a state.

    Raises:
        UsageError: a parameter does not exist or does not fit its schema, or the engine does not exist.
        EngineError: the bundle does not compile, or the OPA server does not answer for every pair.
    """
    return evaluate(
        state.bundle,
        state.snapshot,
        as_of=state.as_of,
        exemptions=state.exemptions,
        parameters=state.parameters,
        engine=state.engine,
        opa=state.opa,
        fail_on=gate.fail_on,
        strict_unknown=gate.strict_unknown,
        problems=state.problems,
    )


class FindingKey(NamedTuple):
    """What one finding is about; `number` tells several apart, which are there where ids stand twice."""

    policy: str
    resource_type: str
    resource: str
    number: int = 0


class Status(NamedTuple):
    """What of a finding counts: two of one status say the same.

    Attributes:
        reasons: message and path of each, positions in lists left open; what was found there does not count, or every
            new measurement would be a change.
    """

    outcome: Outcome
    exempt: bool
    reasons: tuple[tuple[str, str], ...]

    @property
    def stands(self) -> bool:
        """Whether it is more than a pass."""
        return self.outcome is not Outcome.PASS


def keyed(findings: Iterable[Finding]) -> dict[FindingKey, Finding]:
    """Findings by what they are about, in their order."""
    seen = Counter[FindingKey]()
    found: dict[FindingKey, Finding] = {}
    for finding in findings:
        first = FindingKey(finding.policy, lowered(finding.resource_type), folded_id(finding.resource))
        found[first._replace(number=seen[first])] = finding
        seen[first] += 1
    return found


def status_of(finding: Finding | None) -> Status | None:
    """What of a finding counts; None where there is none."""
    if finding is None:
        return None
    reasons = sorted((reason.msg, _POSITION.sub("/*", reason.path)) for reason in (*finding.denials, *finding.unknowns))
    return Status(finding.outcome, finding.exemption is not None, tuple(reasons))


class Stored:
    """The parts of one run; its bundle is read once."""

    def __init__(self, history: History, run: AuditRun, opa: OpaOptions | None = None) -> None:
        self.history, self.run, self._opa = history, run, opa
        self._bundle: Bundle | None = None

    @property
    def bundle(self) -> Bundle:
        """The policies that judged.

        Raises:
            UsageError: retention has taken them.
        """
        if self._bundle is None:
            self._bundle = self.history.bundle(self.run)
        return self._bundle

    def state(self, name: str) -> tuple[State, Evaluation]:
        """One part with what was found in it; what the run has no part of is empty.

        Raises:
            UsageError: it could not be read then, or retention has taken it.
        """
        part = self.history.part(self.run, name)
        if part is None:
            empty = self.of(Snapshot())
            return empty, judged(empty)
        return self.of(self.history.snapshot(part)), self.history.evaluation(part)

    def of(self, snapshot: Snapshot, as_of: datetime | None = None) -> State:
        """A snapshot with everything that the run judged with, at its clock or another."""
        run = self.run
        return State(
            self.bundle,
            snapshot,
            as_of or run.as_of,
            run.exemptions,
            run.parameters,
            run.engine.name,
            self._opa if run.engine.name == "opa" else None,
        )


class Readings:
    """Which parts could not be read in which runs of an estate, asked of the store where it is wanted."""

    def __init__(self, history: History, runs: Iterable[AuditRun]) -> None:
        self._history, self._runs = history, {run.number: run for run in runs}
        self._known: dict[tuple[int, str], bool] = {}

    def is_unread(self, number: int, part: str) -> bool:
        """Whether a run had a part that it could not read."""
        asked = number, part
        if asked not in self._known:
            found = self._history.part(self._runs[number], part)
            self._known[asked] = found is not None and not found.snapshot
        return self._known[asked]
