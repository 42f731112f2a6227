"""The charts of the page: seconds over resources, both axes in powers of ten."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.runs import WARM, WHOLE, Outcome

FILES = {WARM: "benchmarks-warm.svg", WHOLE: "benchmarks-process.svg"}


def write_charts(outcome: Outcome, folder: Path) -> None:
    """Write one SVG for what is warm and one for whole processes, with all policies."""
    for group, name in FILES.items():
        (folder / name).write_bytes(_chart(outcome, group))


def _chart(outcome: Outcome, group: str) -> bytes:
    import pygal  # type: ignore[import-untyped]  # it has no types

    measures = [measure for measure in outcome.measures if measure.group == group]
    *_, policies = dict.fromkeys(measure.policies for measure in measures)
    sizes = list(dict.fromkeys(measure.size for measure in measures))
    lines: dict[str, dict[int, float]] = {}
    for measure in measures:
        if measure.policies == policies:
            lines.setdefault(measure.contestant, {})[measure.size] = measure.median
    chart: Any = pygal.Line(
        logarithmic=True,
        js=[],  # the page shows an image; a script from elsewhere has no business in it
        title=f"{group}: seconds by resources, {policies} policies (medians)",
        legend_at_bottom=True,
        legend_at_bottom_columns=2,
        width=900,
        height=640,
        truncate_legend=-1,
        value_formatter=lambda value: f"{value:.4g} s",
        style=pygal.style.CleanStyle,
    )
    chart.x_labels = [f"{size:,}" for size in sizes]
    for contestant, medians in lines.items():
        chart.add(contestant, [medians.get(size) for size in sizes])
    drawn: bytes = chart.render()
    return drawn
