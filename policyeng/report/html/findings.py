"""The findings as the page lists them, and the index that its script sorts, filters and groups them by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from markupsafe import Markup

from policyeng.models import Evaluation, Finding, Severity
from policyeng.report.context import PolicyCategory, ReportContext
from policyeng.report.history import Since
from policyeng.report.html.escaping import island
from policyeng.report.phrases import rfc3339, short_name

#: Outcomes as a reader tells them apart, the worst first; an exempt failure is one of its own.
OUTCOMES = ("fail", "error", "unknown", "exempt", "pass")


@dataclass(frozen=True, slots=True)
class Ruling:
    """A policy of the page: what its findings share, and how many there are of each outcome."""

    number: int
    finding: Finding
    kind: PolicyCategory
    counts: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class FindingRow:
    """A finding with what stands beside it."""

    finding: Finding
    outcome: str
    ruling: Ruling
    owner: str
    since: Since | None


def outcome_of(finding: Finding) -> str:
    """Give one of `OUTCOMES`."""
    return "exempt" if finding.exemption is not None else finding.outcome.value


class HtmlFindings:
    """The findings of an evaluation, the worst first; `listed` is how many passes are among them at most."""

    def __init__(self, evaluation: Evaluation, about: ReportContext, listed: int) -> None:
        self._rulings: dict[tuple[object, ...], Ruling] = {}
        rows = sorted((self._row(finding, about) for finding in evaluation.findings), key=_urgency)
        needing = sum(row.outcome != "pass" for row in rows)
        #: Those that need a reader, and those that pass.
        self.needing, self.passing = rows[:needing], rows[needing : needing + listed]
        self.counts = Counter(row.outcome for row in rows)
        self.unlisted = evaluation.summary.pass_ - len(self.passing)
        summary = evaluation.summary
        #: Whether tables count what the evaluation has, and not what of it is listed.
        self.whole = len(rows) == summary.pass_ + summary.fail + summary.unknown + summary.error
        self.resources = len({row.finding.resource for row in rows})
        self.severities = Counter((row.outcome, row.finding.severity) for row in rows)

    @cached_property
    def rulings(self) -> Sequence[Ruling]:
        """The policies, those with the most severe failures first."""
        return sorted(self._rulings.values(), key=_weight)

    @property
    def index(self) -> Markup:
        """The index as JSON: what each finding refers to by number, and the findings in their order."""
        resources: dict[tuple[str, str, str], int] = {}
        rows = [
            [
                OUTCOMES.index(row.outcome),
                row.ruling.number,
                resources.setdefault((row.finding.resource, row.finding.resource_type, row.owner), len(resources)),
                rfc3339(row.since.as_of) if row.since else "",
            ]
            for row in self._rows()
        ]
        return island(
            {"policies": list(map(_entry, self._rulings.values())), "resources": _named(resources), "rows": rows}
        )

    def _rows(self) -> Iterator[FindingRow]:
        yield from self.needing
        yield from self.passing

    def _row(self, finding: Finding, about: ReportContext) -> FindingRow:
        alike = (finding.policy, finding.title, finding.severity, finding.remediation, finding.source)
        ruling = self._rulings.get(alike)
        if ruling is None:
            ruling = self._rulings[alike] = Ruling(len(self._rulings), finding, about.kind(finding))
        outcome = outcome_of(finding)
        ruling.counts[outcome] += 1
        return FindingRow(finding, outcome, ruling, about.owner(finding), about.since(finding))


def _urgency(row: FindingRow) -> tuple[object, ...]:
    return (row.outcome == "pass", -row.finding.severity.rank, OUTCOMES.index(row.outcome), row.ruling.number)


def _weight(ruling: Ruling) -> tuple[int, ...]:
    failing = ruling.counts["fail"]
    found = failing + ruling.counts["error"] + ruling.counts["unknown"] + ruling.counts["exempt"]
    rank = ruling.finding.severity.rank
    return (-rank if failing else len(Severity), -failing, -found, -rank, ruling.number)


def _entry(ruling: Ruling) -> list[object]:
    finding, kind = ruling.finding, ruling.kind
    return [finding.policy, finding.title, finding.severity.rank, kind.area, list(kind.controls)]


def _named(resources: dict[tuple[str, str, str], int]) -> list[list[str]]:
    return [[short_name(resource), resource, kind, owner] for resource, kind, owner in resources]
