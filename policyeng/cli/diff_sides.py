"""The two sides of `policyeng diff`, and directories of which file is compared with file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from policyeng.audit.collecting.parts import Collected, Source, read, sources_of
from policyeng.audit.comparing.by_parts import Pair, compared_by_parts
from policyeng.audit.comparing.nouns import Comparison
from policyeng.audit.comparing.states import Gate, State
from policyeng.cli.printing import busy
from policyeng.configuration.estates import EstateSettings
from policyeng.engines import OpaOptions
from policyeng.errors import UsageError
from policyeng.in_force import Held
from policyeng.models import Problem, Snapshot
from policyeng.sources import Given, Walk


@dataclass(frozen=True, slots=True)
class Reading:
    """How both sides are read and judged."""

    from_format: str | None
    said: Given
    walk: Walk
    show_skipped: bool
    engine: str
    opa: OpaOptions
    with_causes: bool


@dataclass(frozen=True, slots=True)
class Side:
    """What is named on one side, and what it is judged with."""

    named: str
    held: Held
    as_of: datetime

    @property
    def gate(self) -> Gate:
        """What fails the comparison, where this is the later side."""
        return Gate(self.held.settings.fail_on, self.held.settings.strict_unknown)

    def state(self, snapshot: Snapshot, reading: Reading, problems: Sequence[Problem] = ()) -> State:
        """A snapshot with what it is judged with."""
        held = self.held
        return State(
            held.bundle,
            snapshot,
            self.as_of,
            held.exemptions,
            held.parameters,
            reading.engine,
            reading.opa,
            problems,
        )


def by_parts(before: Side, after: Side, reading: Reading) -> Comparison:
    """Compare file with file of two directories, by their paths in there.

    Raises:
        UsageError: a side is no directory, or an option is given that only counts for a whole.
    """
    if reading.from_format or reading.show_skipped or reading.said != Given():
        remedy = "leave out --from, --scope, --workspace, --parameters and --show-skipped"
        raise UsageError("--parts reads each file for itself", remedy=remedy)
    for side in (before, after):
        if not Path(side.named).is_dir():
            raise UsageError("--parts compares directories", place=(side.named,), remedy="name two directories")
    with busy("comparing"):
        return compared_by_parts(
            _pairs(before, after, reading),
            (before.state(Snapshot(), reading), after.state(Snapshot(), reading)),
            after.gate,
            problems=tuple(dict.fromkeys((*before.held.problems, *after.held.problems))),
            with_causes=reading.with_causes,
        )


def _pairs(before: Side, after: Side, reading: Reading) -> Iterator[Pair]:
    """The parts of both sides by their names, each read when it is asked for."""
    named = [{one.name: one for one in sources_of(_estate(side), reading.walk)} for side in (before, after)]
    for name in sorted({**named[0], **named[1]}):
        one, other = (sources.get(name) for sources in named)
        old = read(one, before.held.bundle.wanted) if one else Collected(name, None)
        if before.held is after.held and before.as_of == after.as_of and _same(one, other):
            state = _state(before, old, reading)
            yield Pair(name, state, state, () if state else old.problems)
            continue
        new = read(other, after.held.bundle.wanted) if other else Collected(name, None)
        said = (*(old.problems if old.snapshot is None else ()), *(new.problems if new.snapshot is None else ()))
        was, now = _state(before, old, reading), _state(after, new, reading)
        yield Pair(name, was, now, said)


def _state(side: Side, part: Collected, reading: Reading) -> State | None:
    return None if part.snapshot is None else side.state(part.snapshot, reading, part.problems)


def _estate(side: Side) -> EstateSettings:
    return EstateSettings(name="parts", inputs=(side.named,))


def _same(one: Source | Collected | None, other: Source | Collected | None) -> bool:
    """Whether two files hold the same bytes."""
    if not (isinstance(one, Source) and isinstance(other, Source)):
        return False
    try:
        return Path(one.address).read_bytes() == Path(other.address).read_bytes()
    except OSError:  # reading says why
        return False
