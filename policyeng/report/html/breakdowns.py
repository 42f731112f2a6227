"""Bar charts of the findings by severity, area, owner and control; each bar is in the row of its numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from policyeng.models import Severity
from policyeng.report.html.findings import OUTCOMES, HtmlFindings

#: The width of the longest bar, in units of its SVG element, and the most rows of a chart.
WIDTH, ROWS = 200, 10


@dataclass(frozen=True, slots=True)
class Part:
    """The part of a bar for one outcome."""

    outcome: str
    number: int
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class Bar:
    """A row: its label, the number of findings by outcome, and the parts of its bar."""

    label: str
    counts: Mapping[str, int]
    parts: Sequence[Part]


@dataclass(frozen=True, slots=True)
class Breakdown:
    """A chart: what it is by, its rows, the outcomes that are columns, and how many rows are left out."""

    by: str
    bars: Sequence[Bar]
    outcomes: Sequence[str]
    left: int

    width = WIDTH


def break_down(findings: HtmlFindings) -> list[Breakdown]:
    """Return the charts; none if all findings pass, and none by what only one value is known of, such as owners."""
    if not findings.open:
        return []
    severities = {str(severity): findings.by_severity(severity) for severity in reversed(Severity)}
    outcomes = [outcome for outcome in OUTCOMES if findings.counts[outcome]]
    charts = [_chart("severity", severities, outcomes, len(severities))]
    for by, counts in (
        ("area", _sum((policy.kind.area, policy.counts) for policy in findings.policies)),
        ("owner", findings.owners),
        (
            "control",
            _sum((control, policy.counts) for policy in findings.policies for control in policy.kind.controls),
        ),
    ):
        ranked = dict(_rank(counts))
        if any(ranked):
            charts.append(_chart(by, ranked, outcomes, ROWS))
    return charts


def _sum(entries: Iterable[tuple[str, Counter[str]]]) -> dict[str, Counter[str]]:
    sums: dict[str, Counter[str]] = {}
    for name, counts in entries:
        sums.setdefault(name, Counter()).update(counts)
    return sums


def _rank(counts: Mapping[str, Counter[str]]) -> Iterator[tuple[str, Counter[str]]]:
    """Yield what has findings that do not pass: the most failures first, then the most others."""
    ranked = sorted(counts.items(), key=lambda entry: (-entry[1]["fail"], -_open(entry[1]), entry[0]))
    yield from (entry for entry in ranked if _open(entry[1]))


def _open(counts: Counter[str]) -> int:
    return counts.total() - counts["pass"]


def _chart(by: str, counts: Mapping[str, Counter[str]], outcomes: Sequence[str], rows: int) -> Breakdown:
    highest = max(map(_open, counts.values()))
    bars = [Bar(name or f"no {by}", found, list(_parts(found, highest))) for name, found in [*counts.items()][:rows]]
    return Breakdown(by, bars, outcomes, len(counts) - len(bars))


def _parts(counts: Counter[str], highest: int) -> Iterator[Part]:
    below = 0
    for outcome in OUTCOMES:
        if outcome != "pass" and counts[outcome]:
            begin, below = below, below + counts[outcome]
            x = round(WIDTH * begin / highest, 2)
            yield Part(outcome, counts[outcome], x, round(WIDTH * below / highest - x, 2))
