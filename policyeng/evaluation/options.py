"""The options of an evaluation, which every entry makes once and passes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from msgspec import Struct, field

from policyeng.engines import OpaOptions
from policyeng.models import Exemption, JsonObject, Problem, Severity


class EvaluationOptions(Struct, frozen=True):
    """The options of an evaluation.

    Attributes:
        as_of: the evaluation time; UTC if it has no time zone.
        exemptions: accepted failures; they mark findings until they expire.
        parameters: values that replace the defaults, by policy id.
        engine: the engine that evaluates Rego, one of `policyeng.engines.ENGINES`.
        opa: the OPA server of the engine `opa`; by default a private server is started.
        jobs: the number of processes; 0 chooses one, at most one for each processor. Processes are forked, so no other
            thread may be running. Only for the engine `embedded`.
        fail_on: the lowest severity whose failures set the exit code to 1.
        strict_unknown: count unknown findings, and relevant entries of the ledger, as failures.
        problems: problems found while reading the inputs; an error sets the exit code to 2.
    """

    as_of: datetime
    exemptions: Sequence[Exemption] = ()
    parameters: Mapping[str, JsonObject] = field(default_factory=dict)
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
