"""What each policy costs, and what all of them cost compared with those of the documents alone, in processor time.

`python -m benchmarks.policies` evaluates one estate of 1,000 resources and prints the slowest policies.
"""

from __future__ import annotations

import argparse
import gc
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.estates import document
from benchmarks.preparing import AS_OF, whole_bundle
from policyeng import evaluate
from policyeng.bundle import Bundle
from policyeng.engines import run_engine
from policyeng.evaluation.context import prepare
from policyeng.sources import load_snapshot

#: Policies of the documents have numbers from 101 to 199, with one exception; the others come from other rule sets.
_OF_DOCUMENTS = range(101, 200)
_FIRST = frozenset({"AML-CMP-002", "AML-CMP-008", "AML-NET-001"})
#: How many times the processor time may be that of the policies of the documents.
MOST = 2.5


class PolicyCost(NamedTuple):
    """What a policy costs: seconds of processor time for the resources that it evaluates."""

    policy: str
    resources: int
    seconds: float


def of_documents(bundle: Bundle) -> Bundle:
    """Return the bundle with the policies of the documents alone."""
    return bundle.only(
        policy
        for policy in bundle.policies
        if policy.id in _FIRST or int(policy.id.rpartition("-")[2]) in _OF_DOCUMENTS
    )


def measure_sets(bundles: Sequence[Bundle], file: Path, rounds: int) -> list[float]:
    """Return the least seconds of processor time of evaluating a snapshot with each bundle, in interleaved rounds.

    Reading the file is not a part of it; planning, evaluating and making findings are.
    """
    best = [float("inf")] * len(bundles)
    for _ in range(rounds):
        for number, bundle in enumerate(bundles):
            snapshot = load_snapshot(file)
            best[number] = min(best[number], _seconds(lambda b=bundle, s=snapshot: evaluate(b, s, as_of=AS_OF)))  # type: ignore[misc]  # defaults bind the loop's values
    return best


def measure_policies(bundle: Bundle, file: Path, rounds: int) -> list[PolicyCost]:
    """Return the cost of each policy in the engine alone, the slowest first."""
    prepared = prepare(bundle, load_snapshot(file))
    costs = []
    for number, positions in prepared.work(AS_OF).positions.items():
        seconds = min(
            _seconds(lambda number=number: run_engine(prepared.work(AS_OF).only({number})))  # type: ignore[misc]  # a default of a lambda
            for _ in range(rounds)
        )
        costs.append(PolicyCost(bundle.policies[number].id, len(positions), seconds))
    return sorted(costs, key=lambda cost: -cost.seconds)


def _seconds(work: Callable[[], object]) -> float:
    gc.collect()
    started = time.process_time()
    work()
    return time.process_time() - started


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.policies", description=__doc__)
    parser.add_argument("--resources", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--slowest", type=int, default=20, help="how many policies are listed")
    given = parser.parse_args()
    every = whole_bundle()
    few = of_documents(every)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        file = Path(folder) / "estate.json"
        file.write_bytes(document(given.resources))
        less, more = measure_sets((few, every), file, given.rounds + 1)
        costs = measure_policies(every, file, max(2, given.rounds // 2))
    print(f"{given.resources} resources, processor time: {len(few.policies)} policies {less * 1000:.0f} ms")
    print(f"{len(every.policies)} policies {more * 1000:.0f} ms: {more / less:.2f} times, at most {MOST}")
    for cost in costs[: given.slowest]:
        each = cost.seconds / max(1, cost.resources) * 1e6
        print(f"{cost.policy:14}{cost.seconds * 1000:8.2f} ms{cost.resources:6} resources{each:8.1f} µs each")


if __name__ == "__main__":
    main()
