"""What reports add to findings: owners, areas, controls and history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pydantic import AwareDatetime

from policyeng.bundle import Bundle
from policyeng.models import Evaluation, Finding, Severity, Snapshot
from policyeng.models.base import lowered
from policyeng.models.validated import ValidatedModel
from policyeng.ownership import OWNER_TAG, owner_in_tags


class HistoryPoint(ValidatedModel):
    """One audit run in the trend of an estate.

    Attributes:
        run: the number of the run.
        as_of: the evaluation time.
        strict, azure: compliance as a percentage from 0 to 100, as `Summary` has it.
        failures: the number of failures without an exemption, by severity; severities without any may be absent.
    """

    run: int
    as_of: AwareDatetime
    strict: float
    azure: float
    failures: Mapping[Severity, int] = {}


class Since(ValidatedModel):
    """The first run with an unchanged finding, and the evaluation time of that run."""

    run: int
    as_of: AwareDatetime


class Trend(ValidatedModel):
    """The history of the estate of a report.

    Attributes:
        estate: its name.
        run: the number of the reported run.
        points: the runs up to that one, the oldest first.
        since: the first run with the finding, by its policy and resource.
    """

    estate: str
    run: int
    points: tuple[HistoryPoint, ...] = ()
    since: Mapping[tuple[str, str], Since] = {}


class Owners(Mapping[str, str]):
    """Owners by resource id, in any letter case; resources without an owner are absent."""

    def __init__(self, tagged: Mapping[str, str]) -> None:
        """Store the owners of tagged resources, by resource id in lower case."""
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
    """Return the owners of resources, from a tag of the resource or of its parent, such as its workspace.

    Args:
        snapshot: the evaluated snapshot.
        tag: the name of the tag, in any letter case, as Azure compares it.
    """
    known = {}
    for resource in snapshot.resources:
        if owner := owner_in_tags(resource.get("tags"), tag):
            known[lowered(str(resource.get("id", "")))] = owner
    for workload in snapshot.workloads:
        above = Owners(known).get(workload.workspace_id or "", "")
        if owner := owner_in_tags(workload.tags, tag) or above:
            known[lowered(workload.id)] = owner
    return Owners(known)


def assign_owners(evaluation: Evaluation, owners: Mapping[str, str]) -> Evaluation:
    """Return an evaluation with these owners of its resources."""
    findings = tuple(
        finding.model_copy(update={"owner": owners.get(finding.resource, "")}) for finding in evaluation.findings
    )
    return evaluation.model_copy(update={"findings": findings})


@dataclass(frozen=True, slots=True)
class PolicyCategory:
    """The area of a policy, and its controls such as `mcsb-v1:NS-2`."""

    area: str = ""
    controls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReportContext:
    """Optional information for a report beyond the evaluation.

    Attributes:
        owner_tag: the name of the tag that contains the owner.
        owners: owners by resource id, where they are not those of the findings.
        kinds: categories by policy id.
        trend: the history of the estate, where the report is about a stored audit run.
        inputs: the configured inputs of the run; otherwise the files of the findings are the inputs.
    """

    owner_tag: str = OWNER_TAG
    owners: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, PolicyCategory] = field(default_factory=dict)
    trend: Trend | None = None
    inputs: tuple[str, ...] = ()

    def owner(self, finding: Finding) -> str:
        """Return the owner of the resource of a finding; empty if unknown."""
        return self.owners.get(finding.resource, finding.owner)

    def kind(self, finding: Finding) -> PolicyCategory:
        """Return the category of the policy of a finding."""
        return self.kinds.get(finding.policy) or PolicyCategory(finding.area, finding.controls)

    def since(self, finding: Finding) -> Since | None:
        """Return when the finding first appeared, if the history is known."""
        return self.trend.since.get((finding.policy, finding.resource)) if self.trend else None


def kinds_of(bundle: Bundle) -> dict[str, PolicyCategory]:
    """Return the categories of the policies of a bundle, by policy id."""
    return {policy.id: PolicyCategory(policy.area, bundle.controls.get(policy.id, ())) for policy in bundle.policies}
