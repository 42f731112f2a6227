"""Which estates a schedule audits, and when the next time of each is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from policyeng.audit.history import History
from policyeng.audit.scheduling.times import Times, missed, times_of, upcoming
from policyeng.configuration.estates import EstateSettings
from policyeng.errors import UsageError


@dataclass(frozen=True, slots=True)
class Planned:
    """An estate and when it is due.

    Attributes:
        estate: as it is configured.
        times: when it is due.
        last: when its last run began; None without one.
    """

    estate: EstateSettings
    times: Times
    last: datetime | None = None

    def due(self, now: datetime) -> datetime | None:
        """A time that was missed and is made up for now; None where there is none."""
        return missed(self.times, self.last, now, self.estate.grace)

    def following(self, now: datetime) -> datetime | None:
        """When it is audited next: now, where a time was missed that is made up for."""
        return self.due(now) or upcoming(self.times, self.last, now)

    def too_late(self, now: datetime) -> datetime | None:
        """The first time since the last run that was missed and is not made up for; None where there is none."""
        if self.last is None or self.times.every is not None:
            return None
        first = self.times.after(self.last)
        return first if first is not None and first < now - self.estate.grace else None


def planned(estates: Sequence[EstateSettings], history: History | None) -> Mapping[str, Planned]:
    """The estates that have times, by name.

    Args:
        estates: all that are configured.
        history: where their last runs are; None where there are none.

    Raises:
        UsageError: the times of one do not fit, or none has any.
    """
    plans = {plan.estate.name: plan for plan in _planned(estates, history)}
    if not plans:
        remedy = 'add `cron = "0 3 * * *"` or `every = "PT6H"` to an `[[estates]]` table'
        raise UsageError("no estate has a time to be audited at", remedy=remedy)
    return plans


def _planned(estates: Sequence[EstateSettings], history: History | None) -> Iterator[Planned]:
    for estate in estates:
        times = times_of(estate)
        if times is not None:
            runs = history.runs(estate.name, last=1) if history is not None else ()
            yield Planned(estate, times, runs[-1].started_at if runs else None)
