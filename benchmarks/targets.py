"""The targets, what was measured against each, and whether it was met."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.estates import KINDS
from benchmarks.field import CHECK, CONFTEST, END_TO_END, OPA_EXEC, divided
from benchmarks.runs import COLD, GROWTH, WARM, WHOLE, Outcome


class Target(NamedTuple):
    """A target; `measured` is None when the run did not measure it."""

    what: str
    bar: str
    measured: str | None
    met: bool


#: From this snapshot on the memory of a run has settled.
_SETTLED = 0.2
#: Resident memory may rise by so much of itself and still be called flat.
_FLAT = 0.02


def seconds(outcome: Outcome, group: str, contestant: str, size: int) -> float | None:
    """Return the median of a contestant with all policies; a prefix of its name is enough."""
    found = [
        measure
        for measure in outcome.measures
        if (measure.group, measure.size) == (group, size) and measure.contestant.startswith(contestant)
    ]
    return found[-1].median if found else None


def targets(outcome: Outcome) -> list[Target]:
    """All targets, in the order in which they were set."""
    ours = divided(END_TO_END, 1)
    check = divided(CHECK, 1)
    per_pair = "OPA server, one query per pair, snapshot"
    return [
        _factor(
            outcome,
            WARM,
            "warm, end to end, 1,000 resources: the batched OPA server",
            1_000,
            "OPA server, one b",
            ours,
            5,
        ),
        _factor(outcome, WARM, "the same: OPA per pair, the snapshot in each query", 1_000, f"{per_pair} in", ours, 50),
        _factor(
            outcome, WARM, "the same: OPA per pair, the snapshot stored before", 1_000, f"{per_pair} stored", ours, 50
        ),
        _cost(outcome, "whole process, 1,000 resources, all policies: `opa exec`", 1_000, OPA_EXEC, check, 5),
        _cost(outcome, "whole process, 10,000 resources, all policies: `opa exec`", 10_000, OPA_EXEC, check, 7),
        _cost(outcome, "the same: Conftest", 10_000, CONFTEST, check, 8),
        _start(outcome, "the bare import of typer and pydantic", "python, import", 1.7),
        _start(outcome, "`opa exec` on the same", OPA_EXEC, 1.5),
        *_growth(outcome),
        _memory(outcome),
        _processes(outcome),
    ]


def _growth(outcome: Outcome) -> Iterator[Target]:
    """Yield the targets of policyeng alone with all policies."""
    of_size = {
        measure.size: measure
        for measure in outcome.measures
        if measure.group == GROWTH and measure.contestant == next(iter(KINDS))
    }
    small, large, largest = (of_size.get(size) for size in (10_000, 40_000, 100_000))
    what = "growth of the processor time, 40,000 resources: 10,000"
    ratio = large.processor / small.processor if small and large else None
    yield Target(what, "<= 4.5x", f"{ratio:.1f}x" if ratio else None, ratio is not None and ratio <= 4.5)
    seconds = largest.processor if largest else None
    what = "processor time, 100,000 resources"
    yield Target(what, "< 60 s", f"{seconds:.0f} s" if seconds else None, seconds is not None and seconds < 60)
    peak = largest.peak_mb if largest else None
    what = "peak memory, 100,000 resources"
    yield Target(what, "< 2 GB", f"{peak / 1000:.1f} GB" if peak else None, peak is not None and peak < 2000)
    times = small.peak_mb / outcome.input_mb["10000"] if small else None
    what = "peak memory, 10,000 resources: the file"
    yield Target(what, "<= 12x", f"{times:.1f}x" if times else None, times is not None and times <= 12)


def _factor(outcome: Outcome, group: str, what: str, size: int, other: str, ours: str, bar: float) -> Target:
    theirs, mine = seconds(outcome, group, other, size), seconds(outcome, group, ours, size)
    if theirs is None or mine is None:
        return Target(what, f">= {bar}x", None, met=False)
    return Target(what, f">= {bar}x", f"{theirs / mine:.1f}x", theirs / mine >= bar)


def _cost(outcome: Outcome, what: str, size: int, other: str, ours: str, bar: float) -> Target:
    """Compare the processor time of whole processes with all policies."""
    processor = {
        name: [
            measure.processor
            for measure in outcome.measures
            if (measure.group, measure.size) == (WHOLE, size) and measure.contestant.startswith(name)
        ]
        for name in (other, ours)
    }
    what = f"{what}, processor time"
    if not processor[other] or not processor[ours]:
        return Target(what, f">= {bar}x", None, met=False)
    ratio = processor[other][-1] / processor[ours][-1]
    return Target(what, f">= {bar}x", f"{ratio:.1f}x", ratio >= bar)


def _start(outcome: Outcome, against: str, contestant: str, most: float) -> Target:
    what, bar = f"start of `check` on 40 resources, all policies, processor time: {against}", f"<= {most}x"
    mine, other = (_processor(outcome, name) for name in ("policyeng check, 40", contestant))
    if mine is None or other is None:
        return Target(what, bar, None, met=False)
    return Target(what, bar, f"{mine / other:.2f}x", mine / other <= most)


def _processor(outcome: Outcome, contestant: str) -> float | None:
    starts = (one for one in outcome.measures if one.group == COLD and one.contestant.startswith(contestant))
    return next((one.processor for one in starts), None)


def _memory(outcome: Outcome) -> Target:
    settled = outcome.grown[int(len(outcome.grown) * _SETTLED) :]
    what = f"memory over {len(outcome.grown)} snapshots of {outcome.grown_size} resources in one process"
    if len(settled) < 4:
        return Target(what, "flat", None, met=False)
    half = len(settled) // 2
    early, late = statistics.median(settled[:half]), statistics.median(settled[half:])
    return Target(what, "flat", f"{early:.0f} MB, later {late:.0f} MB", late <= early * (1 + _FLAT))


def _processes(outcome: Outcome) -> Target:
    size = 10_000
    return _factor(
        outcome,
        WARM,
        "two processes, 10,000 resources, end to end: one",
        size,
        divided(END_TO_END, 1),
        divided(END_TO_END, 2),
        1.4,
    )
