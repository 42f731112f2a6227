"""Look up the owners of subjects while findings are made."""

from __future__ import annotations

from policyeng.evaluation.prepared_snapshot import PreparedSnapshot, Resource
from policyeng.models import lowered
from policyeng.ownership import owner_in_tags
from policyeng.rego.markers import Undecided


class SubjectOwners:
    """The owners of the subjects of a snapshot, each looked up when a finding needs it."""

    def __init__(self, estate: PreparedSnapshot) -> None:
        self._subjects = estate.subjects
        self._by_id = estate.view.by_id
        self._above: dict[str, str] = {}

    def owner(self, subject: Resource) -> str:
        """Return the owner in the tags of a subject or of the nearest resource above it; empty without one.

        A workload without a tag belongs to the owner of its workspace. Empty, too, if tags are unknown.
        """
        try:
            return self._find(subject)
        except Undecided:
            return ""

    def _find(self, subject: Resource) -> str:
        document = subject.document
        if isinstance(document, dict) and (own := owner_in_tags(document.get("tags"))):
            return own
        if subject.reported_id.startswith("/"):
            return self._at(lowered(subject.reported_id).rpartition("/")[0])
        workspace = subject.workspace
        return self._at(lowered(self._subjects[workspace].reported_id)) if workspace >= 0 else ""

    def _at(self, key: str) -> str:
        """Return the owner of the resource with a lower-case id, or of the nearest one above it."""
        known = self._above.get(key)
        if known is None:
            resource = self._by_id.get(key)
            known = owner_in_tags(resource.get("tags")) if resource is not None else ""
            self._above[key] = known = known or (self._at(key.rpartition("/")[0]) if key else "")
        return known
