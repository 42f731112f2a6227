"""What stands beside an evaluation and helps to sort its findings: owners, areas, controls and the past."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from policyeng.bundle import Bundle, Policy
from policyeng.models import Finding, Snapshot
from policyeng.models.base import lowered
from policyeng.redaction import masked_message
from policyeng.report.history import Since, Trend

OWNER_TAG = "owner"


class Owners(Mapping[str, str]):
    """By resource id as findings have it, in any letter case, who owns it; what nobody owns is not in it."""

    def __init__(self, tagged: Mapping[str, str]) -> None:
        """Take the owners of the resources that carry the tag, by their ids in lower case."""
        self._tagged = tagged

    def __getitem__(self, resource: str) -> str:
        above = lowered(resource)
        while above:
            if owner := self._tagged.get(above):
                return owner
            above = above.rpartition("/")[0]
        raise KeyError(resource)

    def __iter__(self) -> Iterator[str]:
        return iter(self._tagged)

    def __len__(self) -> int:
        return len(self._tagged)


def owners_of(snapshot: Snapshot, tag: str = OWNER_TAG) -> Owners:
    """Find who owns what: a tag of the resource, else of what contains it, such as its workspace.

    Args:
        snapshot: what was judged.
        tag: the name of the tag, in any letter case, as Azure compares it.
    """
    known = {}
    for resource in snapshot.resources:
        if owner := _tag(resource.get("tags"), tag):
            known[lowered(str(resource.get("id", "")))] = owner
    for workload in snapshot.workloads:
        above = Owners(known).get(workload.workspace_id or "", "")
        if owner := _tag(workload.tags, tag) or above:
            known[lowered(workload.id)] = owner
    return Owners(known)


def _tag(tags: object, name: str) -> str:
    if not isinstance(tags, Mapping):
        return ""
    values = (value for key, value in tags.items() if str(key).lower() == name.lower())
    return next((masked_message(value.strip()) for value in values if isinstance(value, str)), "")


@dataclass(frozen=True, slots=True)
class PolicyCategory:
    """Where a policy belongs: its area, and its controls such as `MCSB NS-2`."""

    area: str = ""
    controls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReportContext:
    """What a report may say beyond the evaluation; all of it can be absent.

    Attributes:
        owner_tag: the name of the tag that owners come from.
        owners: by resource id, who owns it.
        kinds: by policy id, where it belongs.
        trend: the estate and its past, where the report is about a run of a store.
    """

    owner_tag: str = OWNER_TAG
    owners: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, PolicyCategory] = field(default_factory=dict)
    trend: Trend | None = None

    def owner(self, finding: Finding) -> str:
        """Who owns the resource of a finding; empty where nobody does."""
        return self.owners.get(finding.resource, "")

    def kind(self, finding: Finding) -> PolicyCategory:
        """Where the policy of a finding belongs."""
        return self.kinds.get(finding.policy, PolicyCategory())

    def since(self, finding: Finding) -> Since | None:
        """Since when a finding stands, where the past is known."""
        return self.trend.since.get((finding.policy, finding.resource)) if self.trend else None


def about_of(bundle: Bundle, snapshot: Snapshot, owner_tag: str = OWNER_TAG) -> ReportContext:
    """Gather what a bundle and a snapshot say about the findings of the one over the other."""
    return ReportContext(owner_tag, owners_of(snapshot, owner_tag), kinds_of(bundle))


def kinds_of(bundle: Bundle) -> dict[str, PolicyCategory]:
    """Give by policy id where each policy of a bundle belongs."""
    return {policy.id: PolicyCategory(policy.area, tuple(_controls(policy))) for policy in bundle.policies}


def _controls(policy: Policy) -> list[str]:
    return [f"{framework} {control}" for framework, ids in policy.header.controls.items() for control in ids]
