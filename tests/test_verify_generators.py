"""What is drawn for a bundle meets every policy from both sides; `python -m tests.test_verify_generators` counts it."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping

from policyeng.bundle import Bundle, load_bundle
from policyeng.evaluation import evaluate
from policyeng.verify.drawing.examples import Example, Examples, Kind

SEED = 20261121
OUTCOMES = ("fail", "pass", "unknown", "error")


def met(bundle: Bundle, examples: Iterable[Example]) -> tuple[Mapping[str, Counter[str]], list[int]]:
    """By policy id, in how many examples it has a finding of each outcome; and how many findings each example has."""
    counts: dict[str, Counter[str]] = {policy.id: Counter() for policy in bundle.policies}
    sizes = []
    for example in examples:
        findings = evaluate(bundle, example.snapshot, as_of=example.as_of, parameters=example.parameters).findings
        for policy, outcome in {(finding.policy, finding.outcome.value) for finding in findings}:
            counts[policy][outcome] += 1
        sizes.append(len(findings))
    return counts, sizes


def main(number: int, kind: Kind | None) -> None:
    """Print how often each policy is met in so many examples of a kind, and what drawing and judging them costs."""
    bundle = load_bundle()
    source = Examples(bundle)
    source.numbered(SEED, 0)
    began = time.process_time()
    examples = [source.numbered(SEED, one, kind) for one in range(number)]
    drawn = time.process_time()
    counts, sizes = met(bundle, examples)
    judged = time.process_time()
    print(f"{'policy':16}" + "".join(f"{outcome:>9}" for outcome in OUTCOMES))
    for policy, outcomes in sorted(counts.items(), key=lambda entry: min(entry[1]["fail"], entry[1]["pass"])):
        print(f"{policy:16}" + "".join(f"{outcomes[outcome]:9}" for outcome in OUTCOMES))
    deciles = [sorted(sizes)[len(sizes) * tenth // 10] for tenth in range(10)]
    print(f"{number} examples; findings: mean {sum(sizes) / number:.0f}, deciles {deciles}, most {max(sizes)}")
    print(f"drawing {(drawn - began) / number * 1000:.2f} ms, judging {(judged - drawn) / number * 1000:.2f} ms each")


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 1000, sys.argv[2] if sys.argv[2:] else "nearly-compliant")  # type: ignore[arg-type]  # the text of a user
