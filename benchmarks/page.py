"""The page of a run, in Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from benchmarks.chart import FILES
from benchmarks.field import CHECK, END_TO_END, divided
from benchmarks.runs import COLD, GROWTH, WARM, WHOLE, Outcome
from benchmarks.targets import targets
from benchmarks.timing import Measure

_HOW = """\
Every contestant evaluates the same pairs of policy and resource with the same Rego, with the same results: before it
measures, the harness compares every result (policy, resource, message, path), and stops if one differs. Repetitions are
interleaved, and each round starts with another contestant. A figure is the median, with the minimum and the maximum
next to it. policyeng runs in one process and in two; the targets use one. The processor time is the mean of all
repetitions, and counts all processes of a contestant. Targets of whole processes compare processor time, because the
garbage collector of OPA uses other processors, which the clock does not show and a build agent may not have.

Warm measurements are compared with warm ones, and whole processes with whole processes. The estates are copies of the
samples in separate subscriptions, with some of the resources edited so that they fail; the seed is in
`benchmarks/estates.py`. Where others take part, the snapshot states that everything was read (`covers`), because OPA
has no unknowns. Policies in Python are left out, because OPA cannot evaluate them. Only the start and the growth
include them.

* **policyeng, bytes to findings**: reading the file, validating, planning, evaluating, findings, in one warm process.
* **policyeng, --engine opa**: the same with a private OPA server, including planning.
* **policyeng's engine alone**: from the bytes of the planned snapshot to results. `parsing alone` is the lower bound:
  orjson on the file.
* **OPA server, one batched query**: one document with the snapshot and the pairs, and a generated module that evaluates
  each pair with one `with`. Building the document and planning the pairs is not timed, which favors OPA.
* **OPA server, one query per pair**: over one connection that stays open. `snapshot in each`: the input of a policy as
  documented. `snapshot stored before`: the snapshot, with its indexes, is in a store that is optimized for reading, and
  storing it is not timed. If there are many pairs, a sample is queried and the figure is extrapolated to all.
* **opa exec** and **conftest test** read the same document and module as the batched query, from files. With one call
  per resource they could not evaluate policies that need the snapshot, so there is no line for that.

The policies are written for one resource, which favors policyeng: with `with`, OPA computes again for each pair what
pairs have in common. If the policies were rewritten as rules over all resources, OPA could reuse these results, and
would come closer; but they would be other policies.

What the policies cost is measured by `python -m benchmarks.policies`, which lists the slowest ones.
"""


def render(outcome: Outcome) -> str:
    """Return the whole page."""
    return "\n".join(_lines(outcome)).rstrip("\n") + "\n"


def _lines(outcome: Outcome) -> Iterator[str]:
    yield from (
        "# Benchmarks",
        "",
        f"Written by `make bench`; the figures are in [benchmarks.json](benchmarks.json). {outcome.remark}".rstrip(),
        "",
    )
    if outcome.program != "full":
        yield from (f"**A {outcome.program} run: it tests the harness, and its figures prove nothing.**", "")
    yield from ("## Targets", "")
    yield from table(("target", "bar", "measured", ""), _targets(outcome))
    yield from ("", "## How it is measured", "", _HOW)
    yield from _facts(outcome)
    for group, title in ((WARM, "Warm"), (WHOLE, "Whole processes")):
        if any(measure.group == group for measure in outcome.measures):
            yield from (f"## {title}", "", f"![{title}]({FILES[group]})", "", *_group(outcome, group))
    yield from ("## Start", "", "Whole processes with little work; each ran once before the measurement.", "")
    yield from _starts(outcome)
    yield from ("", "## Growth", "", "policyeng alone in one process, with all policies, those in Python too.", "")
    yield from _growth(outcome)
    yield from ("", "## Memory", "")
    yield from _memory(outcome)
    yield from ("", "## Where the time goes", "")
    yield from _stages(outcome)


def _targets(outcome: Outcome) -> Iterator[Sequence[str]]:
    for target in targets(outcome):
        verdict = "not measured" if target.measured is None else "met" if target.met else "**missed**"
        yield target.what, target.bar, target.measured or "", verdict


def _facts(outcome: Outcome) -> Iterator[str]:
    machine = ", ".join(f"{name} {value}" for name, value in outcome.machine.items())
    versions = ", ".join(f"{name} {value}" for name, value in outcome.versions.items())
    yield from (
        f"Run of {outcome.began}, {outcome.minutes:.0f} minutes. Machine: {machine}.",
        f"Versions: {versions}.",
        "",
    )


def _group(outcome: Outcome, group: str) -> Iterator[str]:
    ours = divided(END_TO_END if group == WARM else CHECK, 1)
    measures = [measure for measure in outcome.measures if measure.group == group]
    for policies in dict.fromkeys(measure.policies for measure in measures):
        cells = [measure for measure in measures if measure.policies == policies]
        pairs = {measure.size: measure.pairs for measure in cells}
        head = [f"{_count(size, 'resource')}, {_count(count, 'pair')}" for size, count in pairs.items()]
        yield from (
            f"### {group.capitalize()}, {policies} policies",
            "",
            "Median, with minimum and maximum:",
            "",
        )
        yield from table(("contestant", *head), _rows(cells, pairs, _median_and_spread))
        bases = {measure.size: measure.median for measure in cells if measure.contestant == ours}
        yield from ("", f"Relative to `{ours}`:", "")
        yield from table(("contestant", *head), _rows(cells, pairs, partial(_factor, bases)))
        yield from ("", "Processor time:", "")
        yield from table(("contestant", *head), _rows(cells, pairs, lambda one: time_of(one.processor)))
        yield from ("", "Peak memory of the process:", "")
        yield from table(("contestant", *head), _rows(cells, pairs, lambda one: f"{one.peak_mb:,.0f} MB"))
        yield ""


def _rows(cells: Sequence[Measure], sizes: Iterable[int], shown: Callable[[Measure], str]) -> Iterator[Sequence[str]]:
    for contestant in dict.fromkeys(measure.contestant for measure in cells):
        of_size = {measure.size: shown(measure) for measure in cells if measure.contestant == contestant}
        yield (contestant, *(of_size.get(size, "") for size in sizes))


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _factor(bases: Mapping[int, float], measure: Measure) -> str:
    return f"{measure.median / bases[measure.size]:.2f}"


def _median_and_spread(measure: Measure) -> str:
    sample = f"; {measure.sample:,} pairs queried" if measure.sample else ""
    return f"{time_of(measure.median)} ({_spread(measure)}{sample})"


def _starts(outcome: Outcome) -> Iterator[str]:
    measures = [measure for measure in outcome.measures if measure.group == COLD]
    base = next(one.processor for one in measures if one.contestant.startswith("python, import")) or 1.0
    rows = (
        (
            *(one.contestant, time_of(one.median), _spread(one), time_of(one.processor)),
            *(f"{one.processor / base:.2f}", f"{one.peak_mb:.0f} MB"),
        )
        for one in measures
    )
    head = ("process", "median", "min to max", "processor", "processor, relative to the bare import", "peak memory")
    yield from table(head, rows)


def _growth(outcome: Outcome) -> Iterator[str]:
    measures = [measure for measure in outcome.measures if measure.group == GROWTH]
    rows = (
        (
            *(
                measure.contestant,
                f"{measure.size:,}",
                f"{outcome.input_mb[str(measure.size)]:.1f} MB",
                time_of(measure.median),
            ),
            *(
                time_of(measure.processor),
                f"{1e6 * measure.processor / measure.size:.0f} us",
                f"{measure.peak_mb:,.0f} MB",
            ),
        )
        for measure in sorted(measures, key=lambda measure: (measure.contestant, measure.size))
    )
    head = ("estate", "resources", "file", "median", "processor", "processor per resource", "peak memory")
    yield from table(head, rows)


def _memory(outcome: Outcome) -> Iterator[str]:
    count = len(outcome.grown)
    marks = sorted({0, count // 10, count // 4, count // 2, 3 * count // 4, count - 1})
    estates = f"{count} snapshots of {outcome.grown_size:,} resources"
    yield f"Resident memory of a process that evaluates {estates}, after each:"
    yield ""
    yield from table([f"{mark + 1}" for mark in marks], [[f"{outcome.grown[mark]:.1f} MB" for mark in marks]])


def _stages(outcome: Outcome) -> Iterator[str]:
    yield "One process, all policies; microseconds per pair, and the share of the total."
    yield ""
    sizes = list(outcome.stages)
    medians = {size: _medians(outcome.stages[size]) for size in sizes}
    rows = []
    for stage in medians[sizes[0]]:
        cells = []
        for size in sizes:
            share = medians[size][stage] / sum(medians[size].values())
            cells.append(f"{1e6 * medians[size][stage] / outcome.pairs[size]:.1f} ({share:.0%})")
        rows.append((stage, *cells))
    yield from table(("step", *(_count(int(size), "resource") for size in sizes)), rows)


def _medians(runs: Sequence[dict[str, float]]) -> dict[str, float]:
    return {stage: statistics.median(run[stage] for run in runs) for stage in runs[0]}


def _spread(measure: Measure) -> str:
    return f"{time_of(min(measure.seconds))} to {time_of(max(measure.seconds))}"


def time_of(seconds: float) -> str:
    """Seconds with three figures, in the unit that suits them."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}" if seconds / size < 1000 else f"{seconds / size:.0f} {unit}"
    return f"{seconds / 1e-6:.3g} us"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Return the lines of a table."""
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"
