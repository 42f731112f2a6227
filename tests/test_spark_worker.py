"""The code of the workers of Spark, called as Spark calls it."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from policyeng import __version__
from policyeng.bundle import load_bundle
from policyeng.bundle.assembling import pack_bundle, unpack_bundle
from policyeng.errors import UsageError
from policyeng.evaluation import EvaluationOptions
from policyeng.spark import COLUMNS, Worker
from tests.bundles import deny_when, rego, workspace, write


@pytest.fixture
def worker(tmp_path: Path) -> Worker:
    """One with a policy."""
    bundle = load_bundle(write(tmp_path, {"area/a/a.rego": rego("a", deny_when("input.resource.properties.x == 1"))}))
    as_of = datetime(2026, 6, 1, tzinfo=UTC)
    return Worker(pack_bundle(bundle), __version__, EvaluationOptions(as_of), max_bytes=1 << 20)


def batches(count: int, size: int) -> Iterator[pa.RecordBatch]:
    """Snapshots of so many workspaces, one a batch."""
    text = json.dumps({"snapshotVersion": 1, "resources": [workspace(str(number), x=1) for number in range(size)]})
    for number in range(count):
        yield pa.RecordBatch.from_pydict({"name": [str(number)], "snapshot": [text]})


@pytest.mark.slow
def test_rows_are_handed_over_before_all_are_ready(worker: Worker) -> None:
    """So that memory is bounded however many snapshots a partition has; no snapshot is lost, and none is split."""
    read: list[str] = []

    def watched() -> Iterator[pa.RecordBatch]:
        for batch in batches(30, 300):
            read.append(batch["name"][0].as_py())
            yield batch

    given = worker(watched())
    first = next(given)
    rest = list(given)

    assert len(read) == 30
    assert first.schema.names == list(COLUMNS)
    assert 4096 <= first.num_rows < 4096 + 300
    assert [batch.num_rows for batch in rest] == [4200, 600]
    names = [name for batch in (first, *rest) for name in batch["name"].to_pylist()]
    assert names == [str(number) for number in range(30) for _ in range(300)]


def test_an_empty_partition_gives_nothing(worker: Worker) -> None:
    """Spark has some."""
    assert list(worker(iter(()))) == []


def test_a_process_opens_a_bundle_once(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each task brings a copy of its own."""
    from functools import lru_cache

    opened: list[bytes] = []

    def counted(content: bytes) -> object:
        opened.append(content)
        return unpack_bundle(content)

    monkeypatch.setattr("policyeng.spark._opened", lru_cache(maxsize=2)(counted))
    for _ in range(3):
        list(pickle.loads(pickle.dumps(worker))(batches(2, 1)))  # noqa: S301  # our own, as Spark does

    assert len(opened) == 1


def test_other_code_than_that_of_the_driver_evaluates_nothing(worker: Worker) -> None:
    """The same policies could mean something else there."""
    with pytest.raises(UsageError, match="install the same policyeng on the driver and on every worker"):
        next(replace(worker, build="0.0.1 (f00)")(batches(1, 1)))


def test_a_snapshot_over_the_limit_is_an_error(worker: Worker) -> None:
    """The table has the error."""
    (batch,) = replace(worker, max_bytes=10)(batches(1, 1))

    assert set(batch["outcome"].to_pylist()) == {"error"}
    assert batch["message"][0].as_py() == "larger than the limit of 10 bytes; split it, or raise the limit"
