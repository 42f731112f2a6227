"""Trend charts as coordinates for inline SVG; the template draws them, with a table of the same values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log10

from policyeng.models import Severity
from policyeng.report.history import HistoryPoint
from policyeng.report.phrases import in_utc

WIDTH, HEIGHT = 640, 240
#: Margins for the axis labels: left, top, right, bottom.
LEFT, TOP, RIGHT, BOTTOM = 44, 12, 12, 30
#: The maximum number of dates below a chart.
_DATES = 6


@dataclass(frozen=True, slots=True)
class Tick:
    """A label of an axis, with its coordinate."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A point or a bar: its center or top, its height, and its tooltip."""

    x: float
    y: float
    height: float
    label: str


@dataclass(frozen=True, slots=True)
class Series:
    """The marks of one name, such as a severity; `line` connects them."""

    name: str
    title: str
    marks: Sequence[Mark]

    @property
    def line(self) -> str:
        """The points of a polyline."""
        return " ".join(f"{mark.x:g},{mark.y:g}" for mark in self.marks)


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart: its description, axes and series; `breadth` is the width of bars, or 0 for lines."""

    name: str
    title: str
    description: str
    dates: Sequence[Tick]
    values: Sequence[Tick]
    series: Sequence[Series]
    breadth: float = 0

    width, height, left, top = WIDTH, HEIGHT, LEFT, TOP
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM


def compliance_chart(points: Sequence[HistoryPoint]) -> Chart:
    """Create the chart of strict and Azure Policy compliance over runs, in percent."""
    across, up = _across(points), _Axis(100)
    lines = [
        Series(
            name,
            title,
            [
                Mark(x, up.at(value), 0, f"run {point.run}, {_day(point)}: {value:.2f} % {title}")
                for x, point, value in zip(across, points, values, strict=True)
            ],
        )
        for name, title, values in (
            ("strict", "strict", [point.strict for point in points]),
            ("azure", "as in Azure Policy (dashed)", [point.azure for point in points]),
        )
    ]
    first, last = points[0], points[-1]
    description = f"{len(points)} runs: strict compliance from {first.strict:.2f} % to {last.strict:.2f} %, "
    description += f"Azure Policy compliance from {first.azure:.2f} % to {last.azure:.2f} %"
    percentages = [Tick(tick.at, f"{tick.label} %") for tick in up.ticks]
    return Chart("compliance", "Compliance over runs", description, _dates(points, across), percentages, lines)


def severity_chart(points: Sequence[HistoryPoint]) -> Chart:
    """Create the chart of failures without an exemption, a bar for each run, the worst severity at the bottom."""
    across = _across(points)
    totals = [sum(point.failures.values()) for point in points]
    up = _Axis(_round_up(max(totals)))
    below = [0] * len(points)
    bars = []
    for severity in reversed(Severity):
        marks = []
        for number, (x, point) in enumerate(zip(across, points, strict=True)):
            failures = point.failures.get(severity, 0)
            below[number] += failures
            if failures:
                top = up.at(below[number])
                label = f"run {point.run}, {_day(point)}: {failures} {severity}"
                marks.append(Mark(x, top, round(up.at(below[number] - failures) - top, 2), label))
        bars.append(Series(f"bar-{severity}", severity.value, marks))
    description = f"{len(points)} runs: from {totals[0]} to {totals[-1]} failures without an exemption"
    breadth = max(2.0, min(36.0, round(0.7 * (WIDTH - LEFT - RIGHT) / len(points), 2)))
    return Chart(
        "severity", "Failures by severity over runs", description, _dates(points, across), up.ticks, bars, breadth
    )


class _Axis:
    """A vertical axis from 0 to a value."""

    def __init__(self, highest: int) -> None:
        self._highest = highest
        steps = 5 if highest % 5 == 0 else 4 if highest % 4 == 0 else highest
        self.ticks = [Tick(self.at(value), f"{value:g}") for value in (highest * n // steps for n in range(steps + 1))]

    def at(self, value: float) -> float:
        length = HEIGHT - TOP - BOTTOM
        return round(HEIGHT - BOTTOM - length * value / self._highest, 2)


def _round_up(highest: int) -> int:
    """Round a value up to the next round number: 4, 5, 8, 10, 15, 20, 25, 30, 40, 50, 80, 100 and so on."""
    if highest <= 4:
        return 4
    ten: int = 10 ** int(log10(highest))
    return next(
        ceil(step * ten) for step in (1, 1.5, 2, 2.5, 3, 4, 5, 8, 10) if step * ten >= highest and step * ten % 1 == 0
    )


def _across(points: Sequence[HistoryPoint]) -> list[float]:
    """Return the x coordinate of each run; the runs have equal distances, whatever their dates."""
    part = (WIDTH - LEFT - RIGHT) / len(points)
    return [round(LEFT + part * (number + 0.5), 2) for number in range(len(points))]


def _dates(points: Sequence[HistoryPoint], across: Sequence[float]) -> list[Tick]:
    step = ceil(len(points) / _DATES)
    return [Tick(x, _day(point)) for x, point in list(zip(across, points, strict=True))[::step]]


def _day(point: HistoryPoint) -> str:
    return in_utc(point.as_of).date().isoformat()
