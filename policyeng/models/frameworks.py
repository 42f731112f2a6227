"""The controls of a framework, and the result of an evaluation for each."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Literal

from policyeng.frozen import field, frozen
from policyeng.models.base import Limited, Model
from policyeng.models.documents import Evidence

Basis = Literal["published", "analogue", "derived", "own"]
ControlKind = Literal["technical", "process"]
_Text = Annotated[str, Limited(min_length=1)]


class ControlStatus(StrEnum):
    """What is known of a control; the first of these that holds, in this order."""

    FAILING = "failing"
    ERROR = "error"
    UNDECIDED = "undecided"
    ACCEPTED = "accepted"
    PASSING = "passing"
    DECLARED = "declared"
    NOT_APPLICABLE = "not applicable here"
    BY_HAND = "by hand"
    NOT_COVERED = "not covered"


@frozen(kw_only=True)
class ControlMapping(Model):
    """A policy that maps to a control.

    Attributes:
        id: of the policy.
        basis: whose word the mapping is: Microsoft's for this very setting, Microsoft's or prowler's for the same
            setting of another service, derived from Microsoft's tables, or the author's own.
        relevance: `direct` if the policy tests what the control requires; only direct mappings count.
        source: where the mapping is defined.
    """

    id: _Text
    basis: Basis
    relevance: Literal["direct", "related"]
    source: str = ""
    note: str = ""

    @property
    def is_direct(self) -> bool:
        """Whether the mapping counts in a status."""
        return self.relevance == "direct"


@frozen(kw_only=True)
class FindingCounts(Model):
    """The findings of the direct policies of a control; `exempt` counts the failures that an exemption covers."""

    pass_: int = 0
    fail: int = 0
    unknown: int = 0
    error: int = 0
    exempt: int = 0

    @property
    def total(self) -> int:
        """The number of findings."""
        return self.pass_ + self.fail + self.unknown + self.error


@frozen(kw_only=True)
class ControlResult(Model):
    """One control of a framework in a report.

    Attributes:
        words: the status in words, with counts.
        guidance: how a person would show the control, where no policy is direct.
        policies: the policies of the bundle that map to it.
        evidence: the entries in force for the control, or for its policies on evaluated resources.
    """

    id: str
    title: str
    domain: str = ""
    kind: ControlKind = "technical"
    status: ControlStatus
    words: str
    guidance: str = ""
    policies: tuple[ControlMapping, ...] = ()
    findings: FindingCounts = field(default_factory=FindingCounts)
    evidence: tuple[Evidence, ...] = ()


_Percentage = float | None


@frozen(kw_only=True)
class ControlScore(Model):
    """Percentages from 0 to 100 with two decimals; null where there is nothing to divide by.

    Attributes:
        controls: the number of controls.
        strict: technical controls that pass, of all technical controls.
        decided: controls that pass, of those that pass, fail, are accepted or could not be decided.
        coverage: technical controls with a finding, of all technical controls.
    """

    controls: int
    strict: _Percentage
    decided: _Percentage
    coverage: _Percentage


@frozen(kw_only=True)
class FrameworkSummary(ControlScore):
    """The scores of a framework, and the number of controls with each status.

    Attributes:
        technical: the number of technical controls.
        domains: the scores of each domain.
    """

    technical: int
    statuses: dict[str, int]
    domains: dict[str, ControlScore]


@frozen(kw_only=True)
class FrameworkResult(Model):
    """The results of an evaluation for the controls of a framework, in the order of its document.

    No score and no status means that a control is met.
    """

    id: str
    version: str
    title: str
    preview: bool = False
    disclaimer: str = ""
    summary: FrameworkSummary
    controls: tuple[ControlResult, ...]

    @property
    def by_domain(self) -> Iterator[tuple[str, list[ControlResult]]]:
        """Each domain with its controls, in their order."""
        found: dict[str, list[ControlResult]] = {}
        for control in self.controls:
            found.setdefault(control.domain, []).append(control)
        return iter(found.items())
