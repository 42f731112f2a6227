"""The inputs of comparisons, and the parts of findings that are compared."""

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
from policyeng.facts.ids import fold_id
from policyeng.models import Evaluation, Exemption, Finding, JsonObject, Outcome, Problem, Severity, Snapshot, lowered

#: A position in a list, which moves when something before it comes or goes.
_POSITION = re.compile(r"/\d+(?=/|$)")


@dataclass(frozen=True)
class State:
    """Everything that findings depend on.

    Attributes:
        parameters: by policy id, values that replace the defaults.
        problems: of reading.
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
        """The parameters by policy id, including defaults."""
        values = parameters_of(self.bundle, self.parameters)
        return {policy.id: given for policy, given in zip(self.bundle.policies, values, strict=True)}


@dataclass(frozen=True, slots=True)
class ComparisonThreshold:
    """The findings that fail a comparison, as for `check`."""

    fail_on: Severity = Severity.LOW
    strict_unknown: bool = False


#: Every failure that has no exemption.
ANY = ComparisonThreshold()


def evaluate_state(state: State, gate: ComparisonThreshold = ANY) -> Evaluation:
    """Evaluate a state.

    Raises:
        UsageError: a parameter is unknown or does not match its schema, or the engine is unknown.
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
    def stands(self) -> bool:
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
    """The parts that runs of an estate could not read, queried from the store on demand."""

    def __init__(self, history: History, runs: Iterable[AuditRun]) -> None:
        self._history, self._runs = history, {run.number: run for run in runs}
        self._known: dict[tuple[int, str], bool] = {}

    def is_unread(self, number: int, part: str) -> bool:
        """Check whether a run could not read a part."""
        asked = number, part
        if asked not in self._known:
            found = self._history.part(self._runs[number], part)
            self._known[asked] = found is not None and not found.snapshot
        return self._known[asked]
