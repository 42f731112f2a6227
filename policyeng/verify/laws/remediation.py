"""Law 11: the patches of headers fix the findings that they are for and make no others worse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from policyeng.bundle import Policy
from policyeng.bundle.header import WORKSPACE
from policyeng.models import Evaluation, Finding, JsonObject, Outcome, Snapshot
from policyeng.parsing.json_pointer import escaped
from policyeng.verify.laws.law import Law, Trial, Violation, by_pair, format_finding
from policyeng.verify.remediation.json_patch import (
    GONE,
    Claim,
    DocumentPatch,
    apply_edits,
    apply_patch,
    document_of,
    find_worse,
    of_defaults,
    select_patches,
)

#: The most patches that are tested on one example, each of another policy, because each costs an evaluation.
_MOST = 3
#: The name under which the context counts, by policy id, the failures met, the patches tested and those withheld.
TRIED = "remediation/tried"


def _find_violations(trial: Trial) -> Violation | None:
    violations = (check_patches(trial, policy, finding, claimed) for policy, finding, claimed in _claims(trial))
    return next((violation for violation in violations if violation is not None), None)


def check_patches(trial: Trial, policy: Policy, finding: Finding, claimed: Claim) -> Violation | None:
    """Return the violation of the patches of a policy for a finding; None if there is none, or if they are withheld."""
    counts: Counter[tuple[str, str]] = trial.grounds.once(TRIED, Counter)
    after = apply_edits(trial.snapshot, claimed.edits)
    if after is None:
        return _violation("the patch makes the document unreadable", finding, claimed)
    evaluation = trial.judged(after)
    worsened = {pair[0] for pair in find_worse(trial.evaluation, evaluation)} - {policy.id}
    if any(one.id in worsened and {one.id, one.area} & claimed.provided for one in trial.bundle.policies):
        counts[policy.id, "withheld"] += 1
        return None
    counts[policy.id, "tried"] += 1
    return _check_patch(trial, finding, claimed, after, evaluation)


def _claims(trial: Trial) -> Iterator[tuple[Policy, Finding, Claim]]:
    """Yield one failure of each of a few policies, with the patch for it."""
    counts: Counter[tuple[str, str]] = trial.grounds.once(TRIED, Counter)
    chance = trial.random("remediation")
    failing: dict[str, list[Finding]] = {}
    for finding in trial.evaluation.findings:
        if finding.outcome is Outcome.FAIL:
            failing.setdefault(finding.policy, []).append(finding)
    with_patches = [one for one in trial.bundle.policies if one.header.remediation and one.header.remediation.patches]
    policies = [policy for policy in with_patches if policy.id in failing]
    chance.shuffle(policies)
    # The least tested patches first, so that common failures do not displace rare ones.
    policies.sort(key=lambda policy: counts[policy.id, "tried"])
    tried = 0
    for policy in policies:
        findings = failing[policy.id]
        counts[policy.id, "met"] += len(findings)
        for finding in chance.sample(findings, len(findings)):
            claimed = select_patches(policy, finding, trial.snapshot, trial.example.parameters)
            if claimed is not None and tried < _MOST:
                tried += 1
                yield policy, finding, claimed
                break


def _check_patch(
    trial: Trial, finding: Finding, claimed: Claim, after: Snapshot, evaluation: Evaluation
) -> Violation | None:
    """Return the violation of a patch that was applied."""
    policy = next(policy for policy in trial.bundle.policies if policy.id == finding.policy)
    pair = next(pair for pair, found in by_pair(trial.evaluation).items() if found is finding)
    left = by_pair(evaluation).get(pair)
    if left is not None and left.outcome is not Outcome.PASS:
        return _violation("the patch does not fix the finding", finding, claimed, f"after: {format_finding(left)}")
    counted = of_defaults(trial.bundle, trial.example.parameters) | {policy.id}
    for other, found in find_worse(trial.evaluation, evaluation).items():
        if other[0] in counted:
            line = f"{found.policy} of {found.resource} is worse: {format_finding(found)}"
            return _violation("the patch makes another finding worse", finding, claimed, line)
    unexpected = [
        path for edit in claimed.edits for path in _find_unexpected(policy, edit, trial.snapshot, after, finding)
    ]
    if unexpected:
        return _violation("the patch changes a field that the policy does not inspect", finding, claimed, *unexpected)
    if any(_is_changed_again(after, edit) for edit in claimed.edits):
        return _violation("the patch makes further changes when it is applied again", finding, claimed)
    return None


def _violation(message: str, finding: Finding, claimed: Claim, *lines: str) -> Violation:
    done = [f"patch of {edit.identity}: {[*edit.patch]}" for edit in claimed.edits]
    return Violation(message, finding.policy, finding.resource, (f"before: {format_finding(finding)}", *done, *lines))


def _is_changed_again(after: Snapshot, edit: DocumentPatch) -> bool:
    document = document_of(after, edit.kind, edit.identity)
    again = apply_patch(document, edit.patch) if document is not None and edit.patch != GONE else None
    return again is not None and again != document


def _find_unexpected(
    policy: Policy, edit: DocumentPatch, before: Snapshot, after: Snapshot, finding: Finding
) -> Iterator[str]:
    """Yield the places that an edit changed and that no patch of the policy names."""
    remediation = policy.header.remediation
    named = [path for patch in remediation.patches for path in patch.written] if remediation else []
    for path in _find_differences(
        document_of(before, edit.kind, edit.identity), document_of(after, edit.kind, edit.identity)
    ):
        own = edit.identity.lower() == finding.resource.lower()
        whole = {path, f"{WORKSPACE}{path}"} if own else {f"{WORKSPACE}{path}"}
        if not any(one == name or one.startswith(f"{name}/") for one in whole for name in named):
            yield path


def _find_differences(before: JsonObject | None, after: JsonObject | None) -> Iterator[str]:
    """Yield the leaves in which two documents differ; null counts as absent."""
    if before is None or after is None:
        return
    ours, theirs = dict(_list_leaves(before)), dict(_list_leaves(after))
    yield from (path for path in sorted({*ours, *theirs}) if ours.get(path) != theirs.get(path))


def _list_leaves(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _list_leaves(inner, f"{path}/{escaped(key)}")
    elif isinstance(value, list) and value:
        for index, inner in enumerate(value):
            yield from _list_leaves(inner, f"{path}/{index}")
    elif value not in (None, {}):
        yield path, value


LAW = Law(
    11,
    "remediation",
    "where the patch of a policy applies, its finding then passes and no other finding gets worse; it changes only "
    "what the policy reads, and applying it twice has the same result as applying it once",
    "design, section 8, law 11; JSON Patch: RFC 6902",
    _find_violations,
)
