"""The history of an estate for a report: compliance over time, and when findings first appeared."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import AwareDatetime

from policyeng.models import Severity
from policyeng.models.validated import ValidatedModel


class HistoryPoint(ValidatedModel):
    """One audit run in the trend of an estate.

    Attributes:
        run: the number of the run.
        as_of: the evaluation time.
        strict, azure: compliance as a percentage from 0 to 100, as `Summary` has it.
        failures: the number of failures without an exemption, by severity; severities without any may be absent.
    """

    run: int
    as_of: AwareDatetime
    strict: float
    azure: float
    failures: Mapping[Severity, int] = {}


class Since(ValidatedModel):
    """The first run with an unchanged finding, and the evaluation time of that run."""

    run: int
    as_of: AwareDatetime


class Trend(ValidatedModel):
    """The history of the estate of a report.

    Attributes:
        estate: its name.
        run: the number of the reported run.
        points: the runs up to that one, the oldest first.
        since: the first run with the finding, by its policy and resource.
    """

    estate: str
    run: int
    points: tuple[HistoryPoint, ...] = ()
    since: Mapping[tuple[str, str], Since] = {}
