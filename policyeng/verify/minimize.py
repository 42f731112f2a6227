"""Minimize a snapshot on which a policy fails, as a native document that the reader accepts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import orjson

from policyeng.bundle import Bundle
from policyeng.bundle.cases import STATED
from policyeng.errors import PolicyengError
from policyeng.evaluation import fails
from policyeng.facts.coverage import is_whole
from policyeng.models import Evaluation, Finding, JsonObject, Severity, Snapshot
from policyeng.verify.example_documents import read
from policyeng.verify.generators.json_mutations import Json
from policyeng.verify.shrink_document import shrink

#: The evaluation of `policyeng check`; only the bundle and the snapshot vary.
Judge = Callable[[Bundle, Snapshot], Evaluation]

#: Placeholders in ids for an unknown subscription, resource group or workspace; no reader accepts them in a snapshot.
_OPEN = re.compile(r"\{[^{}/]*\}")


@dataclass(frozen=True)
class Minimised:
    """A minimized snapshot.

    Attributes:
        document: a native snapshot without its version; its values are those of the complete one.
        finding: the failure.
        whole: the original snapshot as a native document.
        notes: notes for the reader, one sentence each.
    """

    document: JsonObject
    finding: Finding
    whole: JsonObject
    notes: tuple[str, ...] = ()


def failing(findings: Sequence[Finding], fail_on: Severity = Severity.LOW) -> list[str]:
    """Return the ids of policies that fail at or above a severity without exemption: most severe first, then by id."""
    severities = {finding.policy: finding.severity for finding in findings if fails(finding, fail_on)}
    return sorted(severities, key=lambda policy: (-severities[policy].rank, policy))


def minimize(bundle: Bundle, snapshot: Snapshot, policy: str, judge: Judge, *, most: int = 5000) -> Minimised | None:
    """Return the smallest document on which a policy still fails, on the same resource or on another one.

    It is 1-minimal: without any one member of an object or a list, the policy would not fail or the reader would
    refuse the document. Values stay as they are.

    Args:
        bundle: the bundle with the policy that fails.
        snapshot: the snapshot on which it fails.
        policy: the id of the policy.
        judge: evaluates every smaller snapshot; the result must depend on nothing else.
        most: the maximum number of evaluations.

    Returns:
        None if the policy does not fail on the native form.
    """
    search = _MinimizeSearch(bundle.only([entry for entry in bundle.policies if entry.id == policy]), judge)
    whole, notes = native(snapshot)
    if not search.holds(whole):
        return None
    shrink(whole, search.holds, most=most, plainer=False)
    if search.asked > most:
        notes.append(f"a smaller snapshot may exist: the search ended after {most:,} attempts")
    document, finding = search.last
    return Minimised(document, finding, whole, tuple(notes))


def native(snapshot: Snapshot) -> tuple[JsonObject, list[str]]:
    """Return a snapshot as a native document without its version, and notes on what differs there."""
    document: JsonObject = {}
    if snapshot.scope:
        document["scope"] = snapshot.scope
    if snapshot.taken_at:
        document["takenAt"] = snapshot.taken_at.isoformat()
    document["resources"] = list(snapshot.resources)
    for kind in STATED:
        if entries := getattr(snapshot, kind):
            document[kind] = [entry.model_dump(mode="json", by_alias=True, exclude_defaults=True) for entry in entries]
    if snapshot.incomplete:
        document["incomplete"] = list(snapshot.incomplete)
    if not is_whole(snapshot.covers):
        document["covers"] = list(snapshot.covers or ())
    return _fill_placeholders(document)


def text_of(document: JsonObject) -> str:
    """Return a document as printed, its version first."""
    return orjson.dumps({"snapshotVersion": 1, **document}, option=orjson.OPT_INDENT_2).decode()


def _fill_placeholders(document: JsonObject) -> tuple[JsonObject, list[str]]:
    """Return the document with the placeholders of ids replaced everywhere, and a note on them."""
    ids = [str(resource.get("id")) for resource in document["resources"]]
    open_parts = sorted({placeholder for identity in ids for placeholder in _OPEN.findall(identity)})
    text = orjson.dumps(document).decode()
    for placeholder in open_parts:
        text = text.replace(placeholder, placeholder.strip("{}"))
    listed = ", ".join(f"`{placeholder}`" for placeholder in open_parts)
    note = f"the input does not state where the resources are: {listed} in their ids are replaced by names"
    notes = [note] if open_parts else []
    placed: JsonObject = orjson.loads(text)
    return placed, notes


class _MinimizeSearch:
    """The predicate for shrinking, with the last document for which it was true."""

    def __init__(self, alone: Bundle, judge: Judge) -> None:
        self._alone = alone
        self._judge = judge
        self.asked = 0
        self.last: tuple[JsonObject, Finding]

    def holds(self, document: Json) -> bool:
        """Check whether the reader accepts a document and the policy fails on it."""
        self.asked += 1
        if not isinstance(document, dict):
            return False
        try:
            snapshot = read(document)
        except PolicyengError:
            return False
        if snapshot is None:
            return False
        findings = self._judge(self._alone, snapshot).findings
        found = next((finding for finding in findings if fails(finding, Severity.INFO)), None)
        if found is not None:
            self.last = (document, found)
        return found is not None
