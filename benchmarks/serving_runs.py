"""The requests to servers, their order, and all results."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import estates
from benchmarks.load import Generator, Load, Phase, places
from benchmarks.serving_field import Contestant, serving
from benchmarks.timing import DifferentVerdictsError
from benchmarks.worker import resident_of

#: How much more than it sustains a server gets in the overload.
FACTOR = 10
#: Requests that the generator has under way at a time in the overload.
UNDER_WAY = 1000
#: A rate that is this much above one that is sustained, and is not, ends the search.
_NEAR = 1.12


@dataclass(frozen=True, slots=True)
class Program:
    """What a run does.

    Attributes:
        seconds: of each run at a rate while the sustained one is searched for.
        rounds: runs that the search may have.
        low: seconds at the low rate.
        overload: seconds of it.
    """

    name: str
    seconds: float
    rounds: int
    low: float
    overload: float


FULL, FAST = Program("full", 4, 8, 10, 5), Program("fast", 1, 2, 2, 0.5)


@dataclass(frozen=True, slots=True)
class Task:
    """The requests to servers, and what is expected of them.

    Attributes:
        limit: milliseconds in which 99 of 100 responses have to come for a rate to be sustained.
        low: requests in a second, the same for all.
        start: the rate of the first run.
    """

    name: str
    limit: float
    low: float
    start: float


CHANGES = Task("a decision on a change", 100, 20, 40)
DOCUMENTS = Task("a whole document", 1000, 1, 4)


@dataclass(frozen=True, slots=True)
class Measured:
    """One server at one task.

    Attributes:
        sustained: the run at the highest rate that is sustained; None where none was found.
        low: the run at the low rate.
        tried: rates and whether they were sustained, in the order of the runs.
    """

    task: Task
    contestant: str
    sustained: Load | None
    low: Load
    tried: Sequence[tuple[float, bool]]


@dataclass(frozen=True, slots=True)
class Overloaded:
    """One server that gets ten times what it sustains, and then little again.

    Attributes:
        load: of the overload.
        after: of each of the two seconds that follow at the low rate.
        before_mb, most_mb, after_mb: of resident memory.
    """

    contestant: str
    load: Load
    after: Sequence[Load]
    before_mb: float
    most_mb: float
    after_mb: float


@dataclass
class Outcome:
    """A run: where and when, and its figures; `size` is that of the state, in resources."""

    program: str
    remark: str
    began: str
    machine: dict[str, str]
    versions: dict[str, str]
    size: int
    measured: list[Measured] = field(default_factory=list)
    overloaded: list[Overloaded] = field(default_factory=list)
    minutes: float = 0.0


@dataclass
class Search:
    """The highest rate that a server sustains, by doubling and halving, then by the mean of what it does and not."""

    task: Task
    best: Load | None = None
    failed: float = math.inf
    tried: list[tuple[float, bool]] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """The next rate to try; whole from ten on."""
        if self.best is None:
            rate = self.task.start if math.isinf(self.failed) else self.failed / 2
        else:
            rate = self.best.rate * 2 if math.isinf(self.failed) else math.sqrt(self.best.rate * self.failed)
        return round(rate) if rate >= 10 else round(rate, 1)

    @property
    def ended(self) -> bool:
        """Whether it is known well enough; a server that does not do one in ten seconds does nothing."""
        if self.rate in (rate for rate, _ in self.tried):  # rounded, there is none between
            return True
        return self.failed < (0.1 if self.best is None else self.best.rate * _NEAR)

    def learn(self, load: Load) -> None:
        """Take in a run at the rate."""
        done = load.whole and load.right.p99 is not None and load.right.p99 < self.task.limit
        self.tried.append((load.rate, done))
        if done:
            self.best = load
        else:
            self.failed = load.rate


def measure(task: Task, contestants: Sequence[Contestant], generator: Generator, program: Program) -> list[Measured]:
    """Measure the sustained rate of each server and its latencies at the low rate, in turns."""
    searches = [Search(task) for _ in contestants]
    for number in range(program.rounds):
        for step in range(len(contestants)):
            place = (number + step) % len(contestants)
            search = searches[place]
            if not search.ended:
                most = places(search.rate, task.limit / 1e3)
                search.learn(_run(generator, contestants[place], Phase("load", search.rate, program.seconds, most))[0])
    figures = []
    for contestant, search in zip(contestants, searches, strict=True):
        low = _run(generator, contestant, Phase("low", task.low, program.low, places(task.low, 1)))[0]
        figures.append(Measured(task, contestant.name, search.best, low, search.tried))
    return figures


def _run(generator: Generator, contestant: Contestant, *phases: Phase) -> list[Load]:
    rates = ", ".join(f"{phase.rate:g}/s" for phase in phases)
    print(f"   {contestant.name}: {rates}", file=sys.stderr, flush=True)
    return generator.run(contestant.url, contestant.requests, *phases)


def overload(one: Measured, contestant: Contestant, generator: Generator, program: Program) -> Overloaded:
    """Ten times what it sustains, and then at once the low rate.

    A server that sustains nothing gets ten times the low rate.

    Raises:
        DifferentVerdictsError: an answer was wrong.
    """
    rate = FACTOR * (one.sustained.rate if one.sustained else one.task.low)
    after = [
        Phase(name, one.task.low, 1, 100, start=program.overload + second)
        for second, name in enumerate(("first", "second"))
    ]
    before = resident_of(contestant.pid)
    with _watched(contestant.pid) as memory:
        load, *later = _run(generator, contestant, Phase("load", rate, program.overload, UNDER_WAY), *after)
    if wrong := load.wrong + sum(each.wrong for each in later):
        raise DifferentVerdictsError(f"{contestant.name}: {wrong} wrong answers in the overload")
    return Overloaded(contestant.name, load, later, before, max(memory), resident_of(contestant.pid))


@contextmanager
def _watched(process: int) -> Iterator[list[float]]:
    """Return the memory of a process in MB, twenty times a second."""
    memory, ended = [resident_of(process)], threading.Event()

    def watch() -> None:
        while not ended.wait(0.05):
            memory.append(resident_of(process))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield memory
    finally:
        ended.set()
        thread.join()


def measured(program: Program, opa: Path, generator: Generator, folder: Path, outcome: Outcome) -> None:
    """All of a program, into an outcome.

    Raises:
        DifferentVerdictsError: the results of two servers differ.
    """
    started = time.monotonic()
    file = folder / "snapshot.json"
    file.write_bytes(estates.document(outcome.size))
    with serving(opa, folder, file) as servers:
        outcome.measured += measure(CHANGES, servers.changes, generator, program)
        outcome.measured += measure(DOCUMENTS, servers.documents, generator, program)
        for one, contestant in zip(outcome.measured, servers.changes, strict=False):
            outcome.overloaded.append(overload(one, contestant, generator, program))
    outcome.minutes = (time.monotonic() - started) / 60
