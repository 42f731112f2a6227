"""What is judged with what, and what of the findings counts when two of these are compared."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

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
class Gate:
    """What fails a comparison, as for `check`."""

    fail_on: Severity = Severity.LOW
    strict_unknown: bool = False


#: Every failure that has no exemption.
ANY = Gate()


def judged(state: State, gate: Gate = ANY) -> Evaluation:
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


class Key(NamedTuple):
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


def keyed(findings: Iterable[Finding]) -> dict[Key, Finding]:
    """Findings by what they are about, in their order."""
    seen = Counter[Key]()
    found: dict[Key, Finding] = {}
    for finding in findings:
        first = Key(finding.policy, lowered(finding.resource_type), folded_id(finding.resource))
        found[first._replace(number=seen[first])] = finding
        seen[first] += 1
    return found


def status_of(finding: Finding | None) -> Status | None:
    """What of a finding counts; None where there is none."""
    if finding is None:
        return None
    reasons = sorted((reason.msg, _POSITION.sub("/*", reason.path)) for reason in (*finding.denials, *finding.unknowns))
    return Status(finding.outcome, finding.exemption is not None, tuple(reasons))
