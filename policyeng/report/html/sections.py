"""The sections of the HTML report: heading, charts, breakdowns and findings, escaped for HTML."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from math import ceil, log10

from markupsafe import Markup, escape

from policyeng import __version__
from policyeng.later import lazy_pattern
from policyeng.models import Evaluation, Finding, Findings, Outcome, Severity, relevant_entries
from policyeng.report.context import HistoryPoint, PolicyCategory, ReportContext, Since
from policyeng.report.escaping import visible
from policyeng.report.phrases import (
    count,
    failed,
    format_name,
    in_utc,
    ledger_sentence,
    rfc3339,
    select_outcome,
    shorten_id,
    to_the_second,
)

#: How many scopes or inputs are named; the others are counted.
_NAMED = 5
_SCOPE = lazy_pattern(r"/subscriptions/([^/]+)(?:/resourcegroups/([^/]+))?(/.+)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Fact:
    """A line at the top: its label, and values, each on a line of its own."""

    label: str
    values: Sequence[str]


def format_time(moment: datetime) -> str:
    """Return a time in UTC as `2026-06-01 23:59:59 UTC`."""
    return to_the_second(moment).replace("T", " ").replace("Z", " UTC")


def name_report(evaluation: Evaluation, about: ReportContext) -> str:
    """Return the name of the estate, or of the only input or resource group; empty if there are several."""
    if about.trend:
        return about.trend.estate
    files = _inputs(evaluation, about)
    if len(files) == 1:
        return files[0].replace("\\", "/").rstrip("/").rpartition("/")[2]
    scopes = _scopes(evaluation)
    match = _SCOPE.fullmatch(scopes[0]) if len(scopes) == 1 else None
    return (match[2] or match[1]) if match else ""


def list_facts(evaluation: Evaluation, about: ReportContext, profile: str | None) -> Iterator[Fact]:
    """Yield what was evaluated, when, and with what."""
    if scopes := [describe_scope(scope) for scope in _scopes(evaluation)]:
        yield Fact("Scope", _shorten(scopes, "scope"))
    if files := _inputs(evaluation, about):
        yield Fact("Input" if len(files) == 1 else "Inputs", _shorten(files, "input"))
    if evaluation.findings:
        found = Findings.of(evaluation.findings)
        checked = f"{count(len(found.resources), 'resource')} with {count(len(found.policies), 'policy')}"
        yield Fact("Evaluated", [f"{checked}, as of {format_time(evaluation.as_of)}"])
    else:
        yield Fact("Evaluated", [f"as of {format_time(evaluation.as_of)}"])
    if evaluation.snapshot.taken_at:
        yield Fact("Resources read", [format_time(evaluation.snapshot.taken_at)])
    if unread := ledger_sentence(evaluation.ledger):
        yield Fact("Not read", [unread])
    with_profile = f", profile {profile}" if profile else ""
    yield Fact("Policies", [f"{format_name(evaluation.bundle)}{with_profile}"])
    yield Fact("Program", [f"policyeng {__version__}"])


def describe_scope(scope: str) -> str:
    """Return a scope in words: `resource group rg-ml in subscription 1111...`; any other text unchanged."""
    match = _SCOPE.fullmatch(scope)
    if match is None or match[3]:
        return scope
    subscription = f"subscription {match[1]}"
    return f"resource group {match[2]} in {subscription}" if match[2] else subscription


def describe_result(evaluation: Evaluation) -> tuple[str, str]:
    """Return the result of a run as a word and a sentence that needs no knowledge of options and exit codes."""
    summary, limit = evaluation.summary, evaluation.fail_on
    failures = summary.fail - summary.exempt
    # A report that lists only some findings lists the most severe.
    counted = sum(finding.severity.rank >= limit.rank for finding in failed(evaluation))
    others = [
        _say(failures - counted, "failure", "is less severe", "are less severe") if counted else "",
        _say(summary.exempt, "failure", "is exempt", "are exempt"),
        _say(summary.unknown, "finding", "is undecided", "are undecided"),
    ]
    if evaluation.exit_code == 0:
        known = _say(counted, "failure", "is in the baseline", "are in the baseline")
        below = f"{count(failures, 'failure')} below severity {limit}" if failures and not counted else ""
        return "Passed", _join([known or below or "no failures", *others])
    if evaluation.exit_code == 1:
        at_least = _severity(limit)
        failing = _say(counted, "failure", f"has {at_least}", f"have {at_least}") if failures else ""
        if evaluation.strict_unknown and summary.unknown:
            others[-1] += ", which counts as failing"
        unread = len(relevant_entries(evaluation.ledger)) if evaluation.strict_unknown else 0
        missing = _say(
            unread, "input", "was not read, which counts as failing", "were not read, which counts as failing"
        )
        return "Failed", _join([failing, *others, missing])
    return "Undecided", _join([_undecided(evaluation), _say(failures, "failure", "was found", "were found")])


def _undecided(evaluation: Evaluation) -> str:
    errors = len(select_outcome(evaluation, Outcome.ERROR))
    problems = sum(problem.level == "error" for problem in evaluation.problems)
    words = [count(number, noun) for number, noun in ((errors, "policy error"), (problems, "problem")) if number]
    reason = " and ".join(words)
    if not evaluation.findings:
        return f"no resources were evaluated{f' ({reason})' if reason else ''}"
    return f"{reason} kept the evaluation from completing" if reason else "the evaluation did not complete"


def _severity(limit: Severity) -> str:
    if limit is Severity.INFO:
        return "a severity that fails the check"
    return f"severity {limit}" if limit is Severity.CRITICAL else f"severity {limit} or higher"


def _say(number: int, noun: str, one: str, many: str) -> str:
    if not number:
        return ""
    return f"{count(number, noun)} {one if number == 1 else many}"


def _join(parts: Sequence[str]) -> str:
    return "; ".join(filter(None, parts)) + "."


def _scopes(evaluation: Evaluation) -> list[str]:
    return [scope for scope in evaluation.snapshot.scope.split(", ") if scope]


def _inputs(evaluation: Evaluation, about: ReportContext) -> list[str]:
    if about.inputs:
        return list(about.inputs)
    places = (reference.location for reference in Findings.of(evaluation.findings).references)
    return sorted({place.file for place in places if place.file})


def _shorten(names: Sequence[str], noun: str) -> Sequence[str]:
    left = len(names) - _NAMED
    return names if left <= 1 else [*names[:_NAMED], f"and {count(left, f'more {noun}')}"]


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


_CODE = re.compile(r"`([^`\n]+)`")
_ADDRESS = re.compile(r"https://[A-Za-z0-9][A-Za-z0-9.-]*(?:/[!-~]*)?")
#: Characters that could end a script element or start a comment in it, as equivalent JSON escapes.
_ENDING = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def escape_unprintable(value: object) -> object:
    """Escape unprintable characters in a template value; trusted markup stays unchanged."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def prose(text: str) -> Markup:
    """Escape text for HTML, and format parts between backticks as code."""
    parts = _CODE.split(visible(text))
    return Markup("").join(_code(part) if number % 2 else escape(part) for number, part in enumerate(parts))


def link(address: str) -> Markup:
    """Return a link to a page on the web, or any other text escaped. Only policies name addresses, and no snapshot."""
    if not _ADDRESS.fullmatch(address):
        return Markup.escape(visible(address))
    anchor = '<a class="page" href="{0}" target="_blank" rel="noopener noreferrer">{1}</a>'
    return Markup(anchor).format(address, address.removeprefix("https://"))  # noqa: S704  # our own markup


def embed_json(value: object) -> Markup:
    """Return a JSON value for a script element; nothing in it can end the element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return Markup(visible(text).translate(_ENDING))  # noqa: S704  # no markup is left in it


def _code(text: str) -> Markup:
    return Markup("<code>{}</code>").format(text)


#: Outcomes as shown, the worst first; an exempt failure has its own.
OUTCOMES = ("fail", "error", "unknown", "exempt", "pass")


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """A policy of the page: what its findings share, and their number by outcome."""

    number: int
    finding: Finding
    kind: PolicyCategory
    counts: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class FindingRow:
    """A finding with its context."""

    finding: Finding
    outcome: str
    policy: PolicyRow
    owner: str
    since: Since | None


def outcome_of(finding: Finding) -> str:
    """Return one of `OUTCOMES`."""
    return "exempt" if finding.exemption is not None else finding.outcome.value


def group_controls(controls: Iterable[str]) -> str:
    """Return controls as `FRAMEWORK: CONTROL, CONTROL; FRAMEWORK: CONTROL`."""
    frameworks: dict[str, list[str]] = {}
    for control in controls:
        framework, _, number = control.rpartition(":")
        frameworks.setdefault(framework, []).append(number)
    groups = ((name, ", ".join(numbers)) for name, numbers in frameworks.items())
    return "; ".join(f"{name}: {numbers}" if name else numbers for name, numbers in groups)


class HtmlFindings:
    """The findings of an evaluation, the worst first, with at most `listed` passes."""

    def __init__(self, evaluation: Evaluation, about: ReportContext, listed: int) -> None:
        self._policies: dict[tuple[object, ...], PolicyRow] = {}
        rows = sorted((self._row(finding, about) for finding in evaluation.findings), key=_rank)
        open_count = sum(row.outcome != "pass" for row in rows)
        #: Findings that do not pass, and listed passes.
        self.open, self.passing = rows[:open_count], rows[open_count : open_count + listed]
        self.counts = Counter(row.outcome for row in rows)
        self.unlisted = evaluation.summary.pass_ - len(self.passing)
        summary = evaluation.summary
        #: Whether the counts in tables include all findings of the evaluation.
        self.complete = len(rows) == summary.pass_ + summary.fail + summary.unknown + summary.error
        self.resources = len({row.finding.resource for row in rows})
        self._severities = Counter((row.outcome, row.finding.severity) for row in rows)
        #: The number of findings by outcome of each owner; an empty name is no owner.
        self.owners: dict[str, Counter[str]] = {}
        for row in rows:
            self.owners.setdefault(row.owner, Counter())[row.outcome] += 1

    def by_severity(self, severity: Severity) -> Counter[str]:
        """Return the number of findings of a severity, by outcome."""
        return Counter({outcome: self._severities[outcome, severity] for outcome in OUTCOMES})

    @cached_property
    def policies(self) -> Sequence[PolicyRow]:
        """The policies, those with the most severe failures first."""
        return sorted(self._policies.values(), key=_weight)

    @property
    def index(self) -> Markup:
        """The index as JSON: policies and resources, and the findings, which refer to them by number."""
        resources: dict[tuple[str, str, str], int] = {}
        rows = [
            [
                OUTCOMES.index(row.outcome),
                row.policy.number,
                resources.setdefault((row.finding.resource, row.finding.resource_type, row.owner), len(resources)),
                rfc3339(row.since.as_of) if row.since else "",
            ]
            for row in self._rows()
        ]
        return embed_json(
            {"policies": list(map(_entry, self._policies.values())), "resources": _find_named(resources), "rows": rows}
        )

    def _rows(self) -> Iterator[FindingRow]:
        yield from self.open
        yield from self.passing

    def _row(self, finding: Finding, about: ReportContext) -> FindingRow:
        key = (finding.policy, finding.title, finding.severity, finding.remediation, finding.source)
        policy = self._policies.get(key)
        if policy is None:
            policy = self._policies[key] = PolicyRow(len(self._policies), finding, about.kind(finding))
        outcome = outcome_of(finding)
        policy.counts[outcome] += 1
        return FindingRow(finding, outcome, policy, about.owner(finding), about.since(finding))


def _rank(row: FindingRow) -> tuple[object, ...]:
    return (row.outcome == "pass", -row.finding.severity.rank, OUTCOMES.index(row.outcome), row.policy.number)


def _weight(policy: PolicyRow) -> tuple[int, ...]:
    failing = policy.counts["fail"]
    total = failing + policy.counts["error"] + policy.counts["unknown"] + policy.counts["exempt"]
    rank = policy.finding.severity.rank
    return (-rank if failing else len(Severity), -failing, -total, -rank, policy.number)


def _entry(policy: PolicyRow) -> list[object]:
    finding, kind = policy.finding, policy.kind
    return [finding.policy, finding.title, finding.severity.rank, kind.area, list(kind.controls)]


def _find_named(resources: dict[tuple[str, str, str], int]) -> list[list[str]]:
    return [[shorten_id(resource), resource, kind, owner] for resource, kind, owner in resources]


#: The width of the longest bar, in units of its SVG element, and the most rows of a chart.
TABLE_WIDTH, ROWS = 200, 10


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

    width = TABLE_WIDTH


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
        ranked = dict(_rank_groups(counts))
        if any(ranked):
            charts.append(_chart(by, ranked, outcomes, ROWS))
    return charts


def _sum(entries: Iterable[tuple[str, Counter[str]]]) -> dict[str, Counter[str]]:
    sums: dict[str, Counter[str]] = {}
    for name, counts in entries:
        sums.setdefault(name, Counter()).update(counts)
    return sums


def _rank_groups(counts: Mapping[str, Counter[str]]) -> Iterator[tuple[str, Counter[str]]]:
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
            x = round(TABLE_WIDTH * begin / highest, 2)
            yield Part(outcome, counts[outcome], x, round(TABLE_WIDTH * below / highest - x, 2))
