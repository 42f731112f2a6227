"""The document of the snapshot that can be patched to fix a finding."""

from __future__ import annotations

from dataclasses import dataclass

from policyeng.bundle import Policy
from policyeng.facts.ids import workspace_of
from policyeng.models import Finding, JsonObject, Snapshot, lowered
from policyeng.verify.remediation.json_patch import Kind, document_of

Place = tuple[Kind, str]


@dataclass(frozen=True, slots=True)
class FindingDocument:
    """The evaluated document.

    Attributes:
        place: the kind and id of the document.
        document: the document, as in the snapshot.
        derived: whether the policy evaluated a workload derived from it.
    """

    place: Place
    document: JsonObject
    derived: bool

    @property
    def workspace(self) -> Place | None:
        """The workspace, for paths with `workspace:/...`; None if there is no reference to one."""
        stated = self.document.get("workspaceId") if self.place[0] == "workload" else None
        home = stated or workspace_of(lowered(self.place[1])) or ""
        return ("resource", str(home)) if home else None


def find_subject(policy: Policy, finding: Finding, snapshot: Snapshot) -> FindingDocument | None:
    """Return the document that a finding is about; None if the snapshot has none, as for foreign policies."""
    kinds = {lowered(judged.type) for judged in policy.header.judges}
    resource = document_of(snapshot, "resource", finding.resource)
    if resource is not None and lowered(str(resource.get("type"))) == lowered(finding.resource_type):
        own = lowered(finding.resource_type) in kinds
        if own or "workload" in kinds:
            return FindingDocument(("resource", str(resource["id"])), resource, not own)
    named: tuple[Kind, Kind] = ("workload", "approval")
    for kind in named:
        stated = document_of(snapshot, kind, finding.resource) if kind in kinds else None
        if stated is not None:
            return FindingDocument((kind, str(stated["id"])), stated, False)
    return None
