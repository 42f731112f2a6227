"""Interleaved repetitions, medians and spread."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from benchmarks.verdicts import Verdicts


class Contestant(Protocol):
    """One way to evaluate a snapshot.

    Attributes:
        name: what the tables call it.
        sample: how many pairs of a run are evaluated, the rest being estimated from them; None for all of them.
    """

    name: str
    sample: int | None

    def verdicts(self) -> Verdicts | None:
        """Warm up and return the verdicts; None for a pure measure."""

    def expected(self) -> Verdicts | None:
        """Return the expected verdicts."""

    def run(self) -> float:
        """Evaluate once and return the seconds."""

    def processor(self) -> float:
        """Return the CPU seconds that its processes have used so far."""

    def peak_mb(self) -> float:
        """Return the peak memory of its process, in MB."""

    def close(self) -> None:
        """End what it started."""


@dataclass(frozen=True, slots=True)
class Measure:
    """Repetitions of one contestant on one snapshot with one set of policies, in seconds.

    Attributes:
        processor: seconds of processors, the mean of all repetitions.
    """

    group: str
    contestant: str
    size: int
    policies: str
    pairs: int
    seconds: list[float]
    peak_mb: float
    processor: float = 0.0
    sample: int | None = None

    @property
    def median(self) -> float:
        """The median of the repetitions."""
        return statistics.median(self.seconds)


class DifferentVerdictsError(Exception):
    """Two contestants decided differently, so that their times cannot be compared."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How often to repeat: at least and at most so often, and no new round after so many seconds."""

    least: int
    most: int
    seconds: float


def require_equal(contestants: Sequence[Contestant]) -> None:
    """Let every contestant evaluate once, which warms it up.

    Raises:
        DifferentVerdictsError: one differs from policyeng's engine.
    """
    for contestant in contestants:
        actual, expected = contestant.verdicts(), contestant.expected()
        if actual is None or expected is None:
            continue
        difference = expected.difference(actual)
        if difference:
            raise DifferentVerdictsError(f"{contestant.name}: {difference}")


def repeated(contestants: Sequence[Contestant], pace: Pace) -> list[list[float]]:
    """Seconds by contestant; every round runs each once, and each round starts with another one."""
    seconds: list[list[float]] = [[] for _ in contestants]
    started = time.perf_counter()
    for number in range(pace.most):
        if number >= pace.least and time.perf_counter() - started > pace.seconds:
            break
        for step in range(len(contestants)):
            position = (number + step) % len(contestants)
            seconds[position].append(contestants[position].run())
    return seconds
