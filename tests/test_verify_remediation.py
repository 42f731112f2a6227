"""Law 11: the patches of our headers mend every case that they are for, and a wrong one is found.

`python -m tests.test_verify_remediation [N] [SEED]` tries N random examples and prints how often each patch was tried.
"""

from __future__ import annotations

import sys
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest

from policyeng.bundle import Bundle, Policy, load_bundle
from policyeng.verify.cases import DEFAULT_AS_OF, baselines_of, estate, read_cases
from policyeng.verify.drawing.examples import Example, examples_of
from policyeng.verify.laws.law import Grounds, Trial, Violation
from policyeng.verify.laws.remediation import LAW, TRIED

BROKEN = Path(__file__).parent / "broken" / "remediation"
BUNDLE = load_bundle()
PATCHED = [one for one in BUNDLE.policies if one.header.remediation and one.header.remediation.patches]


def of_cases(bundle: Bundle, policy: Policy, grounds: Grounds) -> list[tuple[str, Violation]]:
    """What the law says against the fail cases of a policy, by name."""
    file, baselines, found = read_cases(policy), baselines_of(bundle), []
    for verdict, name, case in file.named() if file else ():
        if verdict == "fail":
            snapshot = estate(baselines, case, name)
            example = Example({}, {policy.id: case.parameters}, case.as_of or DEFAULT_AS_OF)
            if (violation := LAW.violated(Trial(grounds, example, name, given=snapshot))) is not None:
                found.append((name, violation))
    return found


def run(bundle: Bundle, number: int, seed: int, grounds: Grounds) -> list[tuple[int, Violation]]:
    """What the law says against random examples, by their number."""
    found = []
    for position, example in enumerate(islice(examples_of(bundle, seed), number)):
        violation = LAW.violated(Trial(grounds, example, f"{seed}/{position}"))
        if violation is not None:
            found.append((position, violation))
    return found


def test_at_least_forty_policies_have_a_patch() -> None:
    """The task of the catalogue."""
    assert len(PATCHED) >= 40


def test_every_patch_mends_its_cases_and_breaks_nothing() -> None:
    """Each patch is tried on one case at least; none is there that no case needs."""
    grounds = Grounds(BUNDLE)
    faults = {policy.id: found for policy in PATCHED if (found := of_cases(BUNDLE, policy, grounds))}
    counts: Counter[tuple[str, str]] = grounds.made[TRIED]

    assert faults == {}
    assert [policy.id for policy in PATCHED if not counts[policy.id, "tried"]] == []


if __name__ == "__main__":
    total = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    chosen = int(sys.argv[2]) if len(sys.argv) > 2 else 7
    ground = Grounds(BUNDLE)
    seen: Counter[tuple[str, str]] = Counter()
    for place, fault in run(BUNDLE, total, chosen, ground):
        seen[fault.policy, fault.message] += 1
        if seen[fault.policy, fault.message] <= 2:
            sys.stdout.write("\n  ".join([f"{place}: {fault.policy} {fault.message}", fault.resource, *fault.lines]) + "\n")
    for key, count in sorted(seen.items()):
        sys.stdout.write(f"{key}: {count}\n")
    tried = ground.made[TRIED]
    for policy in PATCHED:
        sys.stdout.write(f"{policy.id} {[tried[policy.id, name] for name in ('met', 'tried', 'withheld')]}\n")
