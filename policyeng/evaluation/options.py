"""How to evaluate: all that an evaluation depends on besides policies, parameters and snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from policyeng.engines import OpaOptions
from policyeng.frozen import frozen
from policyeng.models import Exemption, Problem, Severity

#: Pairs that are worth a process: evaluating them takes longer than starting it and taking what it found.
PAIRS_OF_A_PROCESS = 12_000


@frozen
class EvaluationOptions:
    """The clock, and how failures count; see the arguments of `policyeng.evaluation.evaluate`.

    Attributes:
        jobs: how many processes evaluate; with 0 as many as pay, at most one for each processor.
    """

    as_of: datetime
    exemptions: Sequence[Exemption] = ()
    engine: str = "embedded"
    opa: OpaOptions | None = None
    jobs: int = 1
    fail_on: Severity = Severity.LOW
    strict_unknown: bool = False
    problems: Sequence[Problem] = ()

    @property
    def moment(self) -> datetime:
        """The clock in UTC."""
        return self.as_of.astimezone(UTC) if self.as_of.tzinfo else self.as_of.replace(tzinfo=UTC)
