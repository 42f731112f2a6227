"""The findings of the HTML report, and the index that its script sorts, filters and groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from markupsafe import Markup

from policyeng.models import Evaluation, Finding, Severity
from policyeng.report.context import PolicyCategory, ReportContext
from policyeng.report.history import Since
from policyeng.report.html.escaping import embed_json
from policyeng.report.phrases import rfc3339, shorten_id

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
