"""Law 11: the patches of our headers fix every case that they are for, and a wrong one is found.

`python -m tests.test_verify_remediation [N] [SEED]` tries N random examples and prints how often each patch was tried.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import replace
from itertools import islice
from pathlib import Path

import jsonpatch
import pytest

from policyeng import evaluate
from policyeng.bundle import Bundle, Policy, load_bundle
from policyeng.bundle.cases import DEFAULT_AS_OF, Baselines, baselines_of, estate, read_cases
from policyeng.models import Finding, JsonObject, Snapshot
from policyeng.verify.generators.examples import Example, examples_of
from policyeng.verify.json_patch import apply_edits, select_patches
from policyeng.verify.laws.header_laws import REMEDIATION, TRIED, check_patches
from policyeng.verify.laws.law import LawContext, Trial, Violation
from policyeng.verify.remediation import Suggestion, as_json
from policyeng.verify.shrinking import native

BUNDLE = load_bundle()
BROKEN_BUNDLE = load_bundle(Path(__file__).parent / "broken" / "remediation")
PATCHED = [one for one in BUNDLE.policies if one.header.remediation and one.header.remediation.patches]


def of_cases(bundle: Bundle, policy: Policy, baselines: Baselines, grounds: LawContext) -> list[tuple[str, Violation]]:
    """The violations of the law in the fail cases of a policy, by name; cases that no patch is for cost little."""
    file, alone, found = read_cases(policy), bundle.only([policy]), []
    for verdict, name, case in file.named() if file else ():
        snapshot = estate(baselines, case, name) if verdict == "fail" else None
        if snapshot is None:
            continue
        example = Example({}, {policy.id: case.parameters}, case.as_of or DEFAULT_AS_OF)
        evaluation = evaluate(alone, snapshot, as_of=example.as_of, parameters=example.parameters)
        trial = Trial(grounds, example, name, given=snapshot)
        for finding in evaluation.findings:
            claimed = select_patches(policy, finding, snapshot, example.parameters)
            violation = check_patches(trial, policy, _same(finding, trial), claimed) if claimed else None
            if violation is not None:
                found.append((name, violation))
    return found


def _same(finding: Finding, trial: Trial) -> Finding:
    """The finding as the whole bundle has it."""
    return next(one for one in trial.evaluation.findings if one == finding)


def run(bundle: Bundle, number: int, seed: int, grounds: LawContext) -> list[tuple[int, Violation]]:
    """The violations of the law in random examples, by their number."""
    found = []
    for position, example in enumerate(islice(examples_of(bundle, seed), number)):
        violation = REMEDIATION.violated(Trial(grounds, example, f"{seed}/{position}"))
        if violation is not None:
            found.append((position, violation))
    return found


def test_at_least_forty_policies_have_a_patch() -> None:
    """The task of the catalogue."""
    assert len(PATCHED) >= 40


@pytest.mark.slow
def test_every_patch_fixes_its_cases_and_breaks_nothing() -> None:
    """Each patch is tried on one case at least; none is without a case that needs it."""
    grounds, baselines = LawContext(BUNDLE), baselines_of(BUNDLE)
    faults = {policy.id: found for policy in PATCHED if (found := of_cases(BUNDLE, policy, baselines, grounds))}
    counts: Counter[tuple[str, str]] = grounds.made[TRIED]

    assert faults == {}
    untried = [policy.id for policy in PATCHED if not counts[policy.id, "tried"]]
    # After the patch other policies are unknown: no role assignment is left, and a declaration cannot name its cluster.
    assert untried == ["AML-RBAC-102", "AML-TRN-108"]


@pytest.mark.slow
def test_patches_are_printed_so_that_any_tool_performs_them() -> None:
    """Of each policy with patches, on the denials of its cases: RFC 6902 turns the stated into the evaluated form."""
    baselines, performed = baselines_of(BUNDLE), set()
    for policy in PATCHED:
        file, alone = read_cases(policy), BUNDLE.only([policy])
        for verdict, name, case in file.named() if file else ():
            if verdict != "fail":
                continue
            snapshot, parameters = estate(baselines, case, name), {policy.id: case.parameters}
            evaluation = evaluate(alone, snapshot, as_of=case.as_of or DEFAULT_AS_OF, parameters=parameters)
            claims = [
                (finding, select_patches(policy, finding, snapshot, parameters)) for finding in evaluation.findings
            ]
            edited = [Suggestion(finding, claimed.edits) for finding, claimed in claims if claimed]
            for suggestion, printed in zip(edited, json.loads(as_json(edited, snapshot))["suggestions"], strict=True):
                after = apply_edits(snapshot, suggestion.edits)
                assert after is not None
                assert done(stated(snapshot), printed["edits"]) == stated(after)
                performed.add(policy.id)

    assert performed == {policy.id for policy in PATCHED}


def stated(snapshot: Snapshot) -> dict[tuple[str, str], JsonObject]:
    """The documents of a snapshot by kind and id, as a native file has them."""
    document, _ = native(snapshot)
    kinds = {"resource": "resources", "workload": "workloads", "approval": "approvals"}
    return {(kind, entry["id"]): entry for kind, name in kinds.items() for entry in document.get(name, ())}


def done(documents: dict[tuple[str, str], JsonObject], edits: list[JsonObject]) -> dict[tuple[str, str], JsonObject]:
    """The documents after edits as they are printed, by a library that knows nothing else of them."""
    for edit in edits:
        place = (edit["kind"], edit["id"])
        if edit["patch"] == [{"op": "remove", "path": ""}]:
            del documents[place]
        else:
            documents[place] = jsonpatch.apply_patch(documents[place], edit["patch"])
    return documents


@pytest.mark.slow
def test_patches_hold_on_random_estates() -> None:
    """A few here; thousands with the driver."""
    grounds = LawContext(BUNDLE)

    assert run(BUNDLE, 30, 11, grounds) == []
    assert sum(count for (_, what), count in grounds.made[TRIED].items() if what == "tried") > 20


def test_a_wrong_patch_and_one_that_breaks_a_neighbour_are_found() -> None:
    """Within some hundred examples, and the policy with the patch is to blame."""
    found = {
        (violation.policy, violation.message) for _, violation in run(BROKEN_BUNDLE, 120, 1, LawContext(BROKEN_BUNDLE))
    }

    assert found == {
        ("BROKEN-REM-001", "the patch does not fix the finding"),
        ("BROKEN-REM-002", "the patch makes another finding worse"),
    }


def test_a_policy_that_decides_whether_it_can_be_done_withholds_a_patch() -> None:
    """A field that `provided` names is no violation, and counted as not tried."""
    policies = []
    for policy in BROKEN_BUNDLE.policies:
        remediation = policy.header.remediation
        assert remediation is not None
        patches = [entry.model_copy(update={"provided": ("BROKEN-REM-003",)}) for entry in remediation.patches]
        changed = remediation.model_copy(update={"patches": tuple(patches)})
        policies.append(replace(policy, header=policy.header.model_copy(update={"remediation": changed})))
    bundle = BROKEN_BUNDLE.only(policies)
    grounds = LawContext(bundle)

    found = {violation.policy for _, violation in run(bundle, 120, 1, grounds)}

    assert found == {"BROKEN-REM-001"}
    assert grounds.made[TRIED]["BROKEN-REM-002", "withheld"] > 0
    assert grounds.made[TRIED]["BROKEN-REM-002", "tried"] == 0


if __name__ == "__main__":
    total = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    chosen = int(sys.argv[2]) if len(sys.argv) > 2 else 7
    ground = LawContext(BUNDLE)
    seen: Counter[tuple[str, str]] = Counter()
    for place, fault in run(BUNDLE, total, chosen, ground):
        seen[fault.policy, fault.message] += 1
        if seen[fault.policy, fault.message] <= 2:
            sys.stdout.write(
                "\n  ".join([f"{place}: {fault.policy} {fault.message}", fault.resource, *fault.lines]) + "\n"
            )
    for key, count in sorted(seen.items()):
        sys.stdout.write(f"{key}: {count}\n")
    tried = ground.made[TRIED]
    for policy in PATCHED:
        sys.stdout.write(f"{policy.id} {[tried[policy.id, name] for name in ('met', 'tried', 'withheld')]}\n")
