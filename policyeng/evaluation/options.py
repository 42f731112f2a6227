"""Options of an evaluation: all inputs except policies, parameters and snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from policyeng.engines import OpaOptions
from policyeng.frozen import frozen
from policyeng.models import Exemption, Problem, Severity

#: The number of pairs that take longer to evaluate than a process takes to start and to return the findings.
PAIRS_OF_A_PROCESS = 12_000


@frozen
class EvaluationOptions:
    """The options of an evaluation; see the arguments of `policyeng.evaluation.evaluate`."""

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
        """The evaluation time in UTC."""
        return self.as_of.astimezone(UTC) if self.as_of.tzinfo else self.as_of.replace(tzinfo=UTC)
