"""Memory: what a run over one snapshot took is given back before the next."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from policyeng.bundle import Bundle, load_bundle
from policyeng.evaluation import evaluate
from tests.bundles import WORKSPACE, snapshot
from tests.test_evaluation import AS_OF

COMPUTES = "Microsoft.MachineLearningServices/workspaces/computes"
PAGES = Path("/proc/self/statm")


@pytest.mark.skipif(not PAGES.exists(), reason="only Linux says here how much memory a process has")
@pytest.mark.parametrize("threads", [1, 2])
def test_memory_does_not_grow_with_the_number_of_snapshots(threads: int) -> None:
    """Thirty different snapshots of a megabyte; keeping the last twenty, or their findings, would take more."""
    bundle = load_bundle()
    taken = [taken_after(bundle, number, threads) for number in range(30)]
    assert taken[-1] - taken[9] < 10 << 20


def taken_after(bundle: Bundle, number: int, threads: int) -> int:
    """Resident bytes after one more run."""
    computes = [
        {
            "id": f"{WORKSPACE}{number}/computes/c{index}",
            "type": COMPUTES,
            "properties": {"computeType": "AmlCompute", "description": f"{number}-{index} " * 1200},
        }
        for index in range(100)
    ]
    found = evaluate(bundle, snapshot(*computes), as_of=AS_OF, threads=threads).findings
    assert len(found) > len(computes)
    del computes, found
    gc.collect()
    return int(PAGES.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
