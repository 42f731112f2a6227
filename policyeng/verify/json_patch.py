"""Apply the JSON Patches of remediation headers to the subjects of findings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import jsonpatch
import jsonpointer
from pydantic import ValidationError

from policyeng.bundle import Bundle, Policy
from policyeng.bundle.header import Patch, split_pointer
from policyeng.evaluation.summary import by_pair
from policyeng.facts.ids import workspace_of
from policyeng.models import (
    Approval,
    DeclaredWorkload,
    Denial,
    Evaluation,
    Finding,
    JsonObject,
    Outcome,
    Snapshot,
    lowered,
)
from policyeng.parsing.json_pointer import escaped, keys_of, member, value_at
from policyeng.verify.generators.json_mutations import copied


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
    kinds = {lowered(target.type) for target in policy.header.judges}
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


#: The kinds of documents of a snapshot that can be patched.
Kind = Literal["resource", "workload", "approval"]
#: The kind and the id of a document.
Place = tuple[Kind, str]
#: The patch that removes a document from the snapshot.
GONE: tuple[JsonObject, ...] = ({"op": "remove", "path": ""},)
_STATED: dict[Kind, tuple[str, type[DeclaredWorkload] | type[Approval]]] = {
    "workload": ("workloads", DeclaredWorkload),
    "approval": ("approvals", Approval),
}


@dataclass(frozen=True, slots=True)
class DocumentPatch:
    """A JSON Patch of one document; plain RFC 6902, all operations can be applied in turn.

    Attributes:
        kind: the kind of the document.
        identity: the id of the document, as in the snapshot.
        patch: the operations.
    """

    kind: Kind
    identity: str
    patch: tuple[JsonObject, ...]


def document_of(snapshot: Snapshot, kind: Kind, identity: str) -> JsonObject | None:
    """Return the document with an id, ignoring case, as in its file; None if the snapshot has none."""
    key = lowered(identity)
    if kind == "resource":
        return next((one for one in snapshot.resources if lowered(str(one.get("id"))) == key), None)
    stated: Sequence[DeclaredWorkload | Approval] = getattr(snapshot, _STATED[kind][0])
    found = next((one for one in stated if lowered(one.id) == key), None)
    return found.model_dump(mode="json", by_alias=True, exclude_defaults=True) if found else None


def complete_operation(document: JsonObject, step: JsonObject) -> tuple[JsonObject, ...] | None:
    """Return an operation with those that create the objects on its path; None if it cannot be applied.

    Only for `add`: absent or null values on the path become objects.
    """
    if step["op"] != "add":
        return (step,)
    made: list[JsonObject] = []
    holder: object = document
    path = ""
    for key in keys_of(step["path"])[:-1]:
        path += f"/{escaped(key)}"
        holder = member(holder, key)
        if holder is None:
            made.append({"op": "add", "path": path, "value": {}})
            holder = {}
        elif not isinstance(holder, dict | list):
            return None
    return (*made, step)


def makes_room(patch: Sequence[JsonObject], number: int) -> bool:
    """Check whether an operation only creates the object that a later one fills."""
    step = patch[number]
    return step.get("value") == {} and any(
        later["path"].startswith(f"{step['path']}/") for later in patch[number + 1 :]
    )


def apply_patch(document: JsonObject, patch: Iterable[JsonObject]) -> JsonObject | None:
    """Return a copy of a document after a patch; None if an operation cannot be applied, or a `test` fails."""
    try:
        after = jsonpatch.apply_patch(copied(document), list(patch), in_place=True)
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError, ValueError):
        return None
    return after if isinstance(after, dict) else None


def apply_edits(snapshot: Snapshot, edits: Iterable[DocumentPatch]) -> Snapshot | None:
    """Return a copy of a snapshot after edits; None if one cannot be applied."""
    for edit in edits:
        after = _apply_edit(snapshot, edit)
        if after is None:
            return None
        snapshot = after
    return snapshot


def _apply_edit(snapshot: Snapshot, edit: DocumentPatch) -> Snapshot | None:
    before = document_of(snapshot, edit.kind, edit.identity)
    after = None if before is None or edit.patch == GONE else apply_patch(before, edit.patch)
    if after is None and (before is None or edit.patch != GONE):
        return None
    key = lowered(edit.identity)
    if edit.kind == "resource":
        kept = [after if lowered(str(one.get("id"))) == key else one for one in snapshot.resources]
        return snapshot.model_copy(update={"resources": tuple(one for one in kept if one is not None)})
    name, model = _STATED[edit.kind]
    try:
        made: Any = None if after is None else model.model_validate(after)
    except ValidationError:
        return None
    entries = [made if lowered(one.id) == key else one for one in getattr(snapshot, name)]
    return snapshot.model_copy(update={name: tuple(one for one in entries if one is not None)})


@dataclass
class PatchBuilder:
    """A builder of edits: the documents with all operations so far.

    Attributes:
        documents: the patched documents by kind and id; None for removed ones.
        patches: the operations, by kind and id.
    """

    snapshot: Snapshot
    documents: dict[tuple[Kind, str], JsonObject | None] = field(default_factory=dict)
    patches: dict[tuple[Kind, str], tuple[JsonObject, ...]] = field(default_factory=dict)

    def document(self, place: tuple[Kind, str]) -> JsonObject | None:
        """Return the current state of a document."""
        return self.documents[place] if place in self.documents else document_of(self.snapshot, *place)

    def do(self, place: tuple[Kind, str], step: JsonObject) -> bool:
        """Apply an operation to a document; return whether that succeeds."""
        before = self.document(place)
        if before is None:
            return False
        if step["op"] == "remove" and step["path"] == "":
            if any(lowered(one.source_id or "") == lowered(place[1]) for one in self.snapshot.workloads):
                return False  # its declarations would refer to nothing
            self.documents[place], self.patches[place] = None, GONE
            return True
        steps = complete_operation(before, step)
        after = apply_patch(before, steps) if steps else None
        if steps is None or after is None:
            return False
        self.documents[place] = after
        self.patches[place] = (*self.patches.get(place, ()), *steps)
        return True

    @classmethod
    def joined(cls, drafts: Sequence[PatchBuilder]) -> PatchBuilder:
        """Merge the edits of several builders of one snapshot, without those that can no longer be applied.

        Removals come last, and the later entries of a list first, so each path refers to the value that it has in the
        snapshot.
        """
        whole = cls(drafts[0].snapshot)
        steps = [
            (place, step)
            for draft in drafts
            for place, patch in draft.patches.items()
            for number, step in enumerate(patch)
            if not makes_room(patch, number)
        ]
        removed = [entry for entry in steps if entry[1]["op"] == "remove"]
        removed.sort(key=lambda entry: _sort_key(entry[1]["path"]), reverse=True)
        for place, step in (*(entry for entry in steps if entry[1]["op"] != "remove"), *removed):
            whole.do(place, step)
        return whole

    def fork(self) -> PatchBuilder:
        """Return a copy with the same edits."""
        return PatchBuilder(self.snapshot, dict(self.documents), dict(self.patches))

    @property
    def edits(self) -> tuple[DocumentPatch, ...]:
        """Return the edits, without those that change nothing."""
        made = []
        for (kind, identity), patch in self.patches.items():
            before = document_of(self.snapshot, kind, identity)
            if before is not None and before != self.documents[kind, identity]:
                made.append(DocumentPatch(kind, str(before["id"]), patch))
        return tuple(made)


def _sort_key(path: str) -> list[tuple[int, str]]:
    """Return the sort key of a path: the entries of a list by their number."""
    return [(int(key) if key.isdecimal() else -1, key) for key in keys_of(path)]


def plain_value(document: JsonObject, pointer: str) -> str | bool | int | float | None:
    """Return the value at a JSON Pointer if it is a plain, meaningful value; otherwise None."""
    value = value_at(document, pointer)
    if isinstance(value, str):
        return value if value.strip() else None
    return value if isinstance(value, bool | int | float) else None


Pair = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Claim:
    """The fix for a finding from the header: its edits, and the policies that decide whether it can be applied."""

    edits: tuple[DocumentPatch, ...]
    provided: frozenset[str]


def select_patches(
    policy: Policy, finding: Finding, snapshot: Snapshot, parameters: Mapping[str, JsonObject]
) -> Claim | None:
    """Return the patches of a policy for a finding; None if they do not apply.

    They apply if the finding fails and has no unknowns, every denial has a patch that can be applied, and, unless the
    policy has its default parameters, the written values are expected by each denial.
    """
    remediation = policy.header.remediation
    if remediation is None or not remediation.patches or finding.outcome is not Outcome.FAIL or finding.unknowns:
        return None
    subject = find_subject(policy, finding, snapshot)
    chosen = _choose_patches(remediation.patches, finding.denials, subject, snapshot) if subject else None
    if chosen is None:
        return None
    patches, draft = chosen
    if not is_default(policy, parameters) and not all(_is_expected(denial, patches) for denial in finding.denials):
        return None
    return Claim(draft.edits, frozenset(name for patch in patches for name in patch.provided)) if draft.edits else None


def _choose_patches(
    patches: Sequence[Patch], denials: Iterable[Denial], subject: FindingDocument, snapshot: Snapshot
) -> tuple[list[Patch], PatchBuilder] | None:
    """Return the first applicable patch for each denial, and their combined result."""
    draft, chosen = PatchBuilder(snapshot), list[Patch]()
    for denial in denials:
        answering = [patch for patch in patches if _answers(patch, denial.path)]
        if any(patch in chosen for patch in answering):
            continue
        for patch in answering:
            trial = draft.fork()
            if _apply_patch(patch, subject, trial):
                draft = trial
                chosen.append(patch)
                break
        else:
            return None
    return chosen, draft


def _answers(patch: Patch, path: str) -> bool:
    parts = path.split("/")
    shapes = [answer.split("/") for answer in patch.answers]
    return not shapes or any(
        len(shape) == len(parts) and all(one in ("*", part) for part, one in zip(parts, shape, strict=True))
        for shape in shapes
    )


def _apply_patch(patch: Patch, subject: FindingDocument, draft: PatchBuilder) -> bool:
    """Apply a patch, if it is for the evaluated document; return whether that succeeds."""
    kind = str(subject.document.get("type", "")).lower()
    if subject.derived != bool(patch.of) or (patch.of and patch.of.lower() != kind):
        return False
    return all(_apply_step(step, subject, draft) for step in patch.patch)


def _apply_step(step: JsonObject, subject: FindingDocument, draft: PatchBuilder) -> bool:
    place, path = _place(step["path"], subject)
    if place is None:
        return False
    if step["op"] != "copy":
        return draft.do(place, {**step, "path": path})
    source, origin = _place(step["from"], subject)
    document = draft.document(source) if source else None
    value = plain_value(document, origin) if document else None
    return value is not None and draft.do(place, {"op": "add", "path": path, "value": value})


def _place(path: str, subject: FindingDocument) -> tuple[Place | None, str]:
    of_workspace, pointer = split_pointer(path)
    return (subject.workspace if of_workspace else subject.place), pointer


def is_default(policy: Policy, parameters: Mapping[str, JsonObject]) -> bool:
    """Check whether a policy has the parameters of its header."""
    given = parameters.get(policy.id, {})
    return all(policy.header.defaults.get(name) == value for name, value in given.items())


def _is_expected(denial: Denial, patches: Iterable[Patch]) -> bool:
    """Check whether the written values are, or are among, those that the denial expects."""
    wanted = denial.expected if isinstance(denial.expected, list) else [denial.expected]
    return any(step.get("value") in wanted for patch in patches for step in patch.patch if step["op"] != "test")


def find_worse(before: Evaluation, after: Evaluation) -> dict[Pair, Finding]:
    """Return the findings that are worse than in another evaluation: new failures, unknowns and errors.

    A failure that becomes unknown counts, too: it is no longer denied, but not known to pass either.
    """
    known = by_pair(before)
    return {
        pair: finding
        for pair, finding in by_pair(after).items()
        if finding.outcome is not Outcome.PASS and (pair not in known or known[pair].outcome is not finding.outcome)
    }


def of_defaults(bundle: Bundle, parameters: Mapping[str, JsonObject]) -> frozenset[str]:
    """Return the ids of the policies with the parameters of their headers, which patches are written for."""
    return frozenset(policy.id for policy in bundle.policies if is_default(policy, parameters))
