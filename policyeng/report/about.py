"""What stands beside an evaluation and helps to sort its findings: owners, areas, controls and the past."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from policyeng.bundle import Bundle, Policy
from policyeng.models import Finding, Snapshot
from policyeng.report.history import Since, Trend
from policyeng.report.owners import OWNER_TAG, owners_of


@dataclass(frozen=True, slots=True)
class Kind:
    """Where a policy belongs: its area, and its controls such as `MCSB NS-2`."""

    area: str = ""
    controls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class About:
    """What a report may say beyond the evaluation; all of it can be absent.

    Attributes:
        owner_tag: the name of the tag that owners come from.
        owners: by resource id, who owns it.
        kinds: by policy id, where it belongs.
        trend: the estate and its past, where the report is about a run of a store.
    """

    owner_tag: str = OWNER_TAG
    owners: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    trend: Trend | None = None

    def owner(self, finding: Finding) -> str:
        """Who owns the resource of a finding; empty where nobody does."""
        return self.owners.get(finding.resource, "")

    def kind(self, finding: Finding) -> Kind:
        """Where the policy of a finding belongs."""
        return self.kinds.get(finding.policy, Kind())

    def since(self, finding: Finding) -> Since | None:
        """Since when a finding stands, where the past is known."""
        return self.trend.since.get((finding.policy, finding.resource)) if self.trend else None


def about_of(bundle: Bundle, snapshot: Snapshot, owner_tag: str = OWNER_TAG) -> About:
    """Gather what a bundle and a snapshot say about the findings of the one over the other."""
    return About(owner_tag, owners_of(snapshot, owner_tag), kinds_of(bundle))


def kinds_of(bundle: Bundle) -> dict[str, Kind]:
    """Give by policy id where each policy of a bundle belongs."""
    return {policy.id: Kind(policy.area, tuple(_controls(policy))) for policy in bundle.policies}


def _controls(policy: Policy) -> list[str]:
    return [f"{framework} {control}" for framework, ids in policy.header.controls.items() for control in ids]
