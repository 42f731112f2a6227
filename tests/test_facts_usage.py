"""`policyeng.facts.usage`: which samples count, how long they reach, and their value together."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import Any

import pytest

from policyeng.facts.catalogue import VmSize
from policyeng.facts.usage import samples_of, usage_over, usages_of

NONE, UNMEASURED = "a metric has no sample", "there is no metric of their use"
END = datetime(2026, 6, 1, tzinfo=UTC)


def _sample(begin: float | None, end: float | None, p95: float | None = 10, **more: Any) -> dict[str, Any]:
    """A sample from so many days before `END` to so many."""
    moments = [None if days is None else (END - timedelta(days=days)).isoformat() for days in (begin, end)]
    return {"name": "cpuUtilization", "unit": "percent", "from": moments[0], "to": moments[1], "p95": p95, **more}


@pytest.mark.parametrize(
    ("samples", "p95"),
    [
        ([_sample(14, 0)], 10),
        ([_sample(30, 0)], 10),
        ([_sample(13.99, 0)], None),
        ([_sample(14, 7, 20), _sample(7, 0, 30)], 30),
        ([_sample(14, 7, 30), _sample(7, 0, 20)], 30),
        ([_sample(14, 7), _sample(6.9, 0)], None),
        ([_sample(14, 5), _sample(7, 0), _sample(7, 6)], 10),
        ([_sample(20, 14, 90), _sample(14, 0)], 10),
        ([_sample(20, 13.9, 90), _sample(14, 0)], 90),
        ([_sample(14, 0), _sample(1, 0, 90)], 90),
        ([_sample(14, 0), _sample(1, 0, None)], None),
        ([_sample(14, 0), _sample(20, 15, None)], 10),
        ([_sample(14, 0, 10, unit="PERCENT")], 10),
        ([_sample(14, 0, 10, unit="ratio")], None),
        ([_sample(14, 0, -1)], None),
        ([_sample(14, 0, 0)], 0),
        ([_sample(14, 0), _sample(None, 0)], None),
        ([_sample(14, 0), _sample(14, None)], None),
        ([_sample(0, 14)], None),
        ([], None),
    ],
)
def test_samples_cover_the_days_together(samples: list[dict[str, Any]], p95: float | None) -> None:
    """Without a gap, up to the end of the last one; the highest p95 of those days counts, in any order."""
    for order in permutations(samples):
        usage = usage_over(order, 14)
        assert usage.p95 == p95
        assert bool(usage.reason) == (p95 is None)


def test_no_days_at_all_require_the_last_sample_alone() -> None:
    """A window of nothing is covered by anything, and only what ends last reaches into it."""
    assert usage_over([_sample(2, 1, 90), _sample(1, 0, 10)], 0).p95 == 10


def test_what_lies_after_the_moment_does_not_count() -> None:
    """A sample that ends exactly then does; one without an end counts, and cannot be dated."""
    samples = [_sample(14, 0), _sample(14, -0.0001), _sample(-1, None), _sample(14, None), _sample(1, 0, name=" CPU ")]
    found = samples_of({"id": "/A/"}, [{}, *samples], {"/a": [1, 2, 3, 4, 5]}, END)
    assert samples_of({"id": "/b"}, samples, {"/a": [0]}, END) == {}
    assert found == {"cpuutilization": [samples[0], samples[3]], "cpu": [samples[4]]}


@pytest.mark.parametrize(
    ("gpus", "fpgas", "measured", "reasons"),
    [
        (0, 0, (), {"cpuUtilization": "", "memoryUtilization": NONE}),
        (0, 0, ("gpuUtilization",), {"cpuUtilization": "", "memoryUtilization": NONE, "gpuUtilization": ""}),
        (0.25, 0, (), {"cpuUtilization": "", "memoryUtilization": NONE, "gpuUtilization": NONE}),
        (0, 1, (), {"cpuUtilization": "", "memoryUtilization": NONE, "FPGAs": UNMEASURED}),
        (0, 1, ("gpuUtilization",), {"cpuUtilization": "", "memoryUtilization": NONE, "FPGAs": UNMEASURED}),
    ],
)
def test_every_part_of_a_machine_is_required(
    gpus: float, fpgas: int, measured: tuple[str, ...], reasons: dict[str, str]
) -> None:
    """GPUs where it has any or where they were measured; for FPGAs there is no metric, not even that of GPUs."""
    size = VmSize("S", "S", "f", 1, 1, gpus, fpgas, "s")
    samples = {name.lower(): [_sample(14, 0)] for name in ("cpuUtilization", *measured)}

    assert {name: usage.reason for name, usage in usages_of(samples, size, 14).items()} == reasons
