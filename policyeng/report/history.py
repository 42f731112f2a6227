"""What a report takes from a history of audits: how compliance went, and since when a finding stands."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import AwareDatetime

from policyeng.models import Severity
from policyeng.models.validated import ValidatedModel


class HistoryPoint(ValidatedModel):
    """One run of an estate in its trends.

    Attributes:
        run: the number of the run.
        as_of: its clock.
        strict, azure: compliance as a percentage from 0 to 100, as `Summary` has it.
        failures: by severity, those that no exemption covers; a severity without any may be left out.
    """

    run: int
    as_of: AwareDatetime
    strict: float
    azure: float
    failures: Mapping[Severity, int] = {}


class Since(ValidatedModel):
    """Since which run a finding stands as it is, and the clock of that run."""

    run: int
    as_of: AwareDatetime


class Trend(ValidatedModel):
    """What the store says of the estate that a report is about.

    Attributes:
        estate: its name.
        run: the number of the run that is reported.
        points: runs up to that one, the oldest first.
        since: by policy and resource, both as the finding has them, since when it stands.
    """

    estate: str
    run: int
    points: tuple[HistoryPoint, ...] = ()
    since: Mapping[tuple[str, str], Since] = {}
