"""Law 11: the patches of headers mend what they are for and break nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from policyeng.bundle import Policy
from policyeng.bundle.header_validators import WORKSPACE
from policyeng.models import Evaluation, Finding, JsonObject, Outcome, Snapshot
from policyeng.parsing.json_pointer import escaped
from policyeng.verify.laws.law import Law, Trial, Violation, by_pair, spelled
from policyeng.verify.remediation.header_patches import Claim, claim, of_defaults, worse
from policyeng.verify.remediation.json_patch import GONE, DocumentPatch, applied, document_of, patched

#: How many patches are tried on one example, each of another policy: every one costs an evaluation.
_MOST = 3
#: Under this name the grounds count, by policy id, the failures met, those that a patch is for, and those not tried.
TRIED = "remediation/tried"


def _violated(trial: Trial) -> Violation | None:
    said = (proved(trial, policy, finding, claimed) for policy, finding, claimed in _claims(trial))
    return next((violation for violation in said if violation is not None), None)


def proved(trial: Trial, policy: Policy, finding: Finding, claimed: Claim) -> Violation | None:
    """What the law says against the patches of a policy for one of its findings; None also where they are withheld."""
    counts: Counter[tuple[str, str]] = trial.grounds.once(TRIED, Counter)
    after = applied(trial.snapshot, claimed.edits)
    if after is None:
        return _violation("its patch makes of the document none that can be read", finding, claimed)
    evaluation = trial.judged(after)
    worsened = {pair[0] for pair in worse(trial.evaluation, evaluation)} - {policy.id}
    if any(one.id in worsened and {one.id, one.area} & claimed.provided for one in trial.bundle.policies):
        counts[policy.id, "withheld"] += 1
        return None
    counts[policy.id, "tried"] += 1
    return _said(trial, finding, claimed, after, evaluation)


def _claims(trial: Trial) -> Iterator[tuple[Policy, Finding, Claim]]:
    """One failure of each policy that a patch is for, of a few policies."""
    counts: Counter[tuple[str, str]] = trial.grounds.once(TRIED, Counter)
    chance = trial.random("remediation")
    failing: dict[str, list[Finding]] = {}
    for finding in trial.evaluation.findings:
        if finding.outcome is Outcome.FAIL:
            failing.setdefault(finding.policy, []).append(finding)
    mending = [one for one in trial.bundle.policies if one.header.remediation and one.header.remediation.patches]
    policies = [policy for policy in mending if policy.id in failing]
    chance.shuffle(policies)
    # What was tried least goes first: common failures must not keep rare ones from their turn.
    policies.sort(key=lambda policy: counts[policy.id, "tried"])
    tried = 0
    for policy in policies:
        findings = failing[policy.id]
        counts[policy.id, "met"] += len(findings)
        for finding in chance.sample(findings, len(findings)):
            claimed = claim(policy, finding, trial.snapshot, trial.example.parameters)
            if claimed is not None and tried < _MOST:
                tried += 1
                yield policy, finding, claimed
                break


def _said(trial: Trial, finding: Finding, claimed: Claim, after: Snapshot, evaluation: Evaluation) -> Violation | None:
    """What the law says against a patch that was done."""
    policy = next(policy for policy in trial.bundle.policies if policy.id == finding.policy)
    pair = next(pair for pair, found in by_pair(trial.evaluation).items() if found is finding)
    left = by_pair(evaluation).get(pair)
    if left is not None and left.outcome is not Outcome.PASS:
        return _violation("its patch does not clear the finding", finding, claimed, f"after: {spelled(left)}")
    counted = of_defaults(trial.bundle, trial.example.parameters) | {policy.id}
    for other, found in worse(trial.evaluation, evaluation).items():
        if other[0] in counted:
            said = f"{found.policy} of {found.resource} is worse: {spelled(found)}"
            return _violation("its patch makes another finding worse", finding, claimed, said)
    strayed = [path for edit in claimed.edits for path in _strayed(policy, edit, trial.snapshot, after, finding)]
    if strayed:
        return _violation("its patch changes what it does not inspect", finding, claimed, *strayed)
    if any(_is_changed_again(after, edit) for edit in claimed.edits):
        return _violation("its patch changes more when it is done again", finding, claimed)
    return None


def _violation(message: str, finding: Finding, claimed: Claim, *lines: str) -> Violation:
    done = [f"patch of {edit.identity}: {[*edit.patch]}" for edit in claimed.edits]
    return Violation(message, finding.policy, finding.resource, (f"before: {spelled(finding)}", *done, *lines))


def _is_changed_again(after: Snapshot, edit: DocumentPatch) -> bool:
    document = document_of(after, edit.kind, edit.identity)
    again = patched(document, edit.patch) if document is not None and edit.patch != GONE else None
    return again is not None and again != document


def _strayed(policy: Policy, edit: DocumentPatch, before: Snapshot, after: Snapshot, finding: Finding) -> Iterator[str]:
    """The places that an edit changed and no patch of the policy names."""
    remediation = policy.header.remediation
    named = [path for patch in remediation.patches for path in patch.written] if remediation else []
    for path in _changed(document_of(before, edit.kind, edit.identity), document_of(after, edit.kind, edit.identity)):
        own = edit.identity.lower() == finding.resource.lower()
        whole = {path, f"{WORKSPACE}{path}"} if own else {f"{WORKSPACE}{path}"}
        if not any(one == name or one.startswith(f"{name}/") for one in whole for name in named):
            yield path


def _changed(before: JsonObject | None, after: JsonObject | None) -> Iterator[str]:
    """The leaves that two documents do not share; what is null counts as absent."""
    if before is None or after is None:
        return
    ours, theirs = dict(_leaves(before)), dict(_leaves(after))
    yield from (path for path in sorted({*ours, *theirs}) if ours.get(path) != theirs.get(path))


def _leaves(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}/{escaped(key)}")
    elif isinstance(value, list) and value:
        for index, inner in enumerate(value):
            yield from _leaves(inner, f"{path}/{index}")
    elif value not in (None, {}):
        yield path, value


LAW = Law(
    11,
    "remediation",
    "where the patch of a policy applies, its finding passes after it and no other finding gets worse; it changes only "
    "what the policy reads, and done twice it does what it does once",
    "design, section 8, law 11; JSON Patch: RFC 6902",
    _violated,
)
