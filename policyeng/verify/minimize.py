"""The smallest part of a snapshot on which a policy still fails, as a native document that the reader takes."""

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
from policyeng.verify.shrink_document import shrunk

#: How `policyeng check` judges: the bundle and the snapshot may differ, the clock and everything else are its own.
Judge = Callable[[Bundle, Snapshot], Evaluation]

#: What ids have where nobody says the subscription, the resource group or the workspace; no reader takes it in one.
_OPEN = re.compile(r"\{[^{}/]*\}")


@dataclass(frozen=True)
class Minimised:
    """A failing snapshot made small.

    Attributes:
        document: a native snapshot but for its version, which goes without saying; its values are those of the whole.
        finding: the failure on it.
        whole: the snapshot that it was, as a native document.
        notes: what the reader of it should know, a sentence each.
    """

    document: JsonObject
    finding: Finding
    whole: JsonObject
    notes: tuple[str, ...] = ()


def failing(findings: Sequence[Finding], fail_on: Severity = Severity.LOW) -> list[str]:
    """The ids of the policies that fail at or above a severity without an exemption: most severe first, then by id."""
    severities = {finding.policy: finding.severity for finding in findings if fails(finding, fail_on)}
    return sorted(severities, key=lambda policy: (-severities[policy].rank, policy))


def minimised(bundle: Bundle, snapshot: Snapshot, policy: str, judge: Judge, *, most: int = 5000) -> Minimised | None:
    """The smallest document on which a policy still fails, on the same resource or on another.

    It is 1-minimal: without any one member of an object or a list the policy would not fail, or the reader would
    refuse the document. Values stay as they are.

    Args:
        bundle: the policies, among them the one that fails.
        snapshot: on which it fails.
        policy: its id.
        judge: judges every smaller snapshot; the answer must depend on nothing else.
        most: how many of them are judged.

    Returns:
        None where the failure does not outlive the native form.
    """
    search = _MinimizeSearch(bundle.only([entry for entry in bundle.policies if entry.id == policy]), judge)
    whole, notes = native(snapshot)
    if not search.holds(whole):
        return None
    shrunk(whole, search.holds, most=most, plainer=False)
    if search.asked > most:
        notes.append(f"it may be smaller still: the search ended after {most:,} tries")
    document, finding = search.last
    return Minimised(document, finding, whole, tuple(notes))


def native(snapshot: Snapshot) -> tuple[JsonObject, list[str]]:
    """A snapshot as a native document but for its version, and what of it is said otherwise there."""
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
    return _placed(document)


def text_of(document: JsonObject) -> str:
    """A document as it is printed, its version first."""
    return orjson.dumps({"snapshotVersion": 1, **document}, option=orjson.OPT_INDENT_2).decode()


def _placed(document: JsonObject) -> tuple[JsonObject, list[str]]:
    """The document with its open ids filled in, everywhere that they stand."""
    ids = [str(resource.get("id")) for resource in document["resources"]]
    left_open = sorted({sign for identity in ids for sign in _OPEN.findall(identity)})
    text = orjson.dumps(document).decode()
    for sign in left_open:
        text = text.replace(sign, sign.strip("{}"))
    signs = ", ".join(f"`{sign}`" for sign in left_open)
    notes = [f"nobody says where the resources lie: {signs} of their ids stand there as names"] if left_open else []
    placed: JsonObject = orjson.loads(text)
    return placed, notes


class _MinimizeSearch:
    """The question that shrinking asks, with the last document of which the answer was yes."""

    def __init__(self, alone: Bundle, judge: Judge) -> None:
        self._alone = alone
        self._judge = judge
        self.asked = 0
        self.last: tuple[JsonObject, Finding]

    def holds(self, document: Json) -> bool:
        """Whether the reader takes a document and the policy fails on it."""
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
