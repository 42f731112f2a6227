"""The memory of an audit does not grow with the number of its parts."""

from __future__ import annotations

import gc
from pathlib import Path
from unittest.mock import patch

import pytest

from benchmarks.estates import fleet
from policyeng.audit import runner
from policyeng.audit.runner import EvaluatedPart, read_and_evaluate
from policyeng.models import Evaluation, Snapshot
from tests.command import policyeng


@pytest.mark.slow
def test_an_audit_keeps_one_part_at_a_time(tmp_path: Path) -> None:
    """What a part is read into and evaluated to is gone before the next part but one, where batches are short."""
    for name, content in fleet(20, 10):
        (tmp_path / name).write_bytes(content)
    alive: list[int] = []

    def counted(*arguments: object) -> EvaluatedPart:
        kinds = (EvaluatedPart, Snapshot, Evaluation)
        alive.append(sum(type(each) in kinds for each in gc.get_objects()))
        return read_and_evaluate(*arguments)  # type: ignore[arg-type]  # whatever it is called with

    words = [
        "audit",
        "run",
        "--input",
        str(tmp_path),
        "--store",
        f"sqlite:///{tmp_path}/audits.db",
        "--estate",
        "fleet",
    ]
    with (
        patch.object(runner, "read_and_evaluate", counted),
        patch("policyeng.audit.store.store._BATCH", 1),
    ):
        ran = policyeng(*words, "--jobs", "1", "--as-of", "2026-06-01T00:00:00Z")

    assert ran.returncode == 1, ran.stderr
    assert len(alive) == 20
    assert max(alive) - alive[0] <= 3, alive
