"""Memory: what a run over one snapshot took is given back before the next."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator

import pytest

from policyeng import evaluate
from policyeng.bundle import Bundle, load_bundle
from tests.bundles import WORKSPACE, snapshot
from tests.test_evaluation import AS_OF

pytestmark = pytest.mark.slow

BUNDLE = load_bundle()
COMPUTES = "Microsoft.MachineLearningServices/workspaces/computes"


@pytest.fixture
def traced() -> Iterator[None]:
    """What Python allocates is counted: unlike resident memory, it depends on nothing else on the machine."""
    allocated_after(BUNDLE, 99)  # compiles the policies, which takes long where it is traced
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.usefixtures("traced")
def test_memory_does_not_grow_with_the_number_of_snapshots() -> None:
    """Fifteen different snapshots of 300 kB; keeping the last ten, or their findings, would take more."""
    allocated = [allocated_after(BUNDLE, number) for number in range(15)]
    assert allocated[-1] - allocated[4] < 500_000


def allocated_after(bundle: Bundle, number: int) -> int:
    """Return the allocated bytes after one more run."""
    computes = [
        {
            "id": f"{WORKSPACE}{number}/computes/c{index}",
            "type": COMPUTES,
            "properties": {"computeType": "AmlCompute", "description": f"{number}-{index} " * 18_000},
        }
        for index in range(4)
    ]
    found = evaluate(bundle, snapshot(*computes), as_of=AS_OF).findings
    assert len(found) > len(computes)
    del computes, found
    gc.collect()
    return tracemalloc.get_traced_memory()[0]
