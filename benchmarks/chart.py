"""The charts of the page: seconds over resources, both axes in powers of ten."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from benchmarks.runs import WARM, WHOLE, Outcome

#: Of Paul Tol's palettes for readers who do not see every colour.
_COLORS = ("#332288", "#88ccee", "#117733", "#999933", "#44aa99", "#888888", "#bbbbbb", "#cc6677", "#882255", "#aa4499")
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
        js=[],
        title=f"{group}: seconds by resources, {policies} policies (medians)",
        legend_at_bottom=True,
        legend_at_bottom_columns=2,
        width=900,
        height=640,
        truncate_legend=-1,
        value_formatter=lambda value: f"{value:.4g} s",
        show_minor_y_labels=False,
        style=pygal.style.Style(
            background="#ffffff",
            plot_background="#ffffff",
            colors=_COLORS,
            guide_stroke_color="#cccccc",
            major_guide_stroke_color="#bbbbbb",
        ),
    )
    medians = [seconds for of_size in lines.values() for seconds in of_size.values()]
    chart.y_labels = [10.0**power for power in range(math.floor(math.log10(min(medians))), _above(max(medians)) + 1)]
    chart.x_labels = [f"{size:,}" for size in sizes]
    for contestant, of_size in lines.items():
        chart.add(contestant, [of_size.get(size) for size in sizes])
    return _without_scripts(chart.render_tree())


def _without_scripts(tree: Any) -> bytes:
    """Return the drawing as text, without the script that pygal adds for web pages."""
    for holder in list(tree.iter()):
        for part in list(holder):
            if str(part.tag).endswith("script"):
                holder.remove(part)
    return ElementTree.tostring(tree)


def _above(seconds: float) -> int:
    return math.ceil(math.log10(seconds))
