"""The patches of a policy's header that fix a finding, and their edits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from policyeng.bundle import Bundle, Policy
from policyeng.bundle.remediation import Patch, split_pointer
from policyeng.models import Denial, Evaluation, Finding, JsonObject, Outcome, Snapshot
from policyeng.verify.laws.law import by_pair
from policyeng.verify.remediation.json_patch import DocumentPatch, PatchBuilder, plain_value
from policyeng.verify.remediation.subjects import FindingDocument, Place, find_subject

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
    judged = find_subject(policy, finding, snapshot)
    chosen = _choose_patches(remediation.patches, finding.denials, judged, snapshot) if judged else None
    if chosen is None:
        return None
    patches, draft = chosen
    if not is_default(policy, parameters) and not all(_is_expected(denial, patches) for denial in finding.denials):
        return None
    return Claim(draft.edits, frozenset(name for patch in patches for name in patch.provided)) if draft.edits else None


def _choose_patches(
    patches: Sequence[Patch], denials: Iterable[Denial], judged: FindingDocument, snapshot: Snapshot
) -> tuple[list[Patch], PatchBuilder] | None:
    """Return the first applicable patch for each denial, and their combined result."""
    draft, chosen = PatchBuilder(snapshot), list[Patch]()
    for denial in denials:
        answering = [patch for patch in patches if _answers(patch, denial.path)]
        if any(patch in chosen for patch in answering):
            continue
        for patch in answering:
            trial = draft.fork()
            if _apply_patch(patch, judged, trial):
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


def _apply_patch(patch: Patch, judged: FindingDocument, draft: PatchBuilder) -> bool:
    """Apply a patch, if it is for the evaluated document; return whether that succeeds."""
    kind = str(judged.document.get("type", "")).lower()
    if judged.derived != bool(patch.of) or (patch.of and patch.of.lower() != kind):
        return False
    return all(_apply_step(step, judged, draft) for step in patch.patch)


def _apply_step(step: JsonObject, judged: FindingDocument, draft: PatchBuilder) -> bool:
    place, path = _place(step["path"], judged)
    if place is None:
        return False
    if step["op"] != "copy":
        return draft.do(place, {**step, "path": path})
    source, origin = _place(step["from"], judged)
    document = draft.document(source) if source else None
    value = plain_value(document, origin) if document else None
    return value is not None and draft.do(place, {"op": "add", "path": path, "value": value})


def _place(path: str, judged: FindingDocument) -> tuple[Place | None, str]:
    of_workspace, pointer = split_pointer(path)
    return (judged.workspace if of_workspace else judged.place), pointer


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
