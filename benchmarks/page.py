"""The page of a run, in Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from benchmarks.chart import FILES
from benchmarks.field import CHECK, END_TO_END, divided
from benchmarks.runs import COLD, WARM, WHOLE, Outcome
from benchmarks.targets import targets
from benchmarks.timing import Measure

_HOW = """\
Every contestant judges the same pairs of policy and resource with the same Rego, and says the same: the harness
compares every verdict (policy, resource, message, path) before it measures, and stops when one differs. Repetitions are
interleaved, each round starts with another contestant, and a figure is the median with the smallest and the largest
beside it. policyeng runs in one process and in two; the targets take one, while OPA has the whole machine, as its
collector uses other processors. The time of the processor is the mean of all repetitions, and counts all processes of
a contestant.

Warm is compared with warm and whole processes with whole processes. The estates are copies of the samples in distinct
subscriptions, a share of the resources edited so that they fail or stay undecided; the seed is in
`benchmarks/estates.py`. Policies in Python are left out, because OPA cannot judge them; only the start has them.

* **policyeng, bytes to findings**: reading the file, validating, planning, judging and findings, in one warm process.
* **policyeng, --engine opa**: the same with a private OPA server behind it, planning and all.
* **policyeng's engine alone**: the planned snapshot as bytes to judgements. `parsing alone` is the limit: orjson on the
  file, and our engine on what it is given, with its indices.
* **OPA server, one batched query**: one document with the snapshot and the pairs, and a generated module that judges
  each pair with one `with`. Making the document and planning the pairs is not timed, which favours OPA.
* **OPA server, one query per pair**: over one connection that stays open, `snapshot in each`: the input of a policy as
  it is documented; `snapshot stored before`: the snapshot, with its indices, is in a store that is optimised for
  reading, and storing it is not timed. Of many pairs a sample is asked, and the figure reckoned for all.
* **opa exec** and **conftest test** get the same document and module as the batched query, from files. Asked once per
  resource they could not decide what needs the snapshot, so that is no line here.

The policies are written for one resource, which favours policyeng: with `with`, OPA computes again for each pair what
pairs have in common. Policies that were rewritten as rules over all resources would let OPA keep that, and come
closer; they would be other policies.
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
        yield from (f"**A {outcome.program} run: it tries the harness, and its figures prove nothing.**", "")
    yield from ("## Targets", "")
    yield from table(("target", "bar", "measured", ""), _targets(outcome))
    yield from ("", "## How it is measured", "", _HOW)
    yield from _facts(outcome)
    for group, title in ((WARM, "Warm"), (WHOLE, "Whole processes")):
        if any(measure.group == group for measure in outcome.measures):
            yield from (f"## {title}", "", f"![{title}]({FILES[group]})", "", *_group(outcome, group))
    yield from ("## Start", "", "Whole processes that do little; each has run once before.", "")
    yield from _starts(outcome)
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
            "Median, and from the fastest to the slowest:",
            "",
        )
        yield from table(("contestant", *head), _rows(cells, pairs, _median_and_spread))
        bases = {measure.size: measure.median for measure in cells if measure.contestant == ours}
        yield from ("", f"The time of `{ours}` is 1:", "")
        yield from table(("contestant", *head), _rows(cells, pairs, partial(_factor, bases)))
        yield from ("", "Time of the processor:", "")
        yield from table(("contestant", *head), _rows(cells, pairs, lambda one: time_of(one.processor)))
        yield from ("", "Most memory that the process held:", "")
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
    asked = f"; {measure.sample:,} pairs asked" if measure.sample else ""
    return f"{time_of(measure.median)} ({_spread(measure)}{asked})"


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
    head = ("process", "median", "min to max", "processor", "processor, times the bare import", "peak memory")
    yield from table(head, rows)


def _memory(outcome: Outcome) -> Iterator[str]:
    count = len(outcome.grown)
    marks = sorted({0, count // 10, count // 4, count // 2, 3 * count // 4, count - 1})
    yield f"Resident memory of a process that judges {count} snapshots of {outcome.grown_size:,} resources, after each:"
    yield ""
    yield from table([f"{mark + 1}" for mark in marks], [[f"{outcome.grown[mark]:.1f} MB" for mark in marks]])


def _stages(outcome: Outcome) -> Iterator[str]:
    yield "One process, all policies; microseconds per pair, and the share of the whole."
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
