"""`audit prune` takes away what only old runs need, and the chain can still be verified."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import pytest

from policyeng.audit.store.integrity import prune, verify
from policyeng.errors import UsageError
from tests.audits import Audited
from tests.command import policyeng

NOW = datetime(2026, 7, 1, tzinfo=UTC)


def test_old_runs_lose_what_no_other_needs(tmp_path: Path, store_url: str) -> None:
    """Their headers, parts and spans stay, and what they share with newer ones can still be read."""
    audited = Audited(tmp_path, store_url)
    first = audited.audit()
    audited.put("b", {"other": {"x": 1, "owner": "o"}})
    second = audited.audit()
    spans = list(audited.store.spans("production"))
    pruned = prune(audited.store, now=NOW, keep_runs=1)
    assert (pruned.runs, pruned.contents > 0, pruned.size > 0) == ([1], True, True)
    store = audited.store
    assert store.run(1) == first
    a, b, _ = store.parts(first)
    with pytest.raises(UsageError, match="deleted by retention"):
        store.snapshot(b)
    with pytest.raises(UsageError, match="deleted by retention"):
        store.evaluation(a)
    assert store.snapshot(a).resources
    assert all(store.evaluation(part).findings for part in store.parts(second))
    assert list(store.spans("production")) == spans
    verified = verify(store)
    assert (verified.faults, verified.pruned, verified.retention) == ([], [1], pruned.hash)
    assert prune(store, now=NOW, keep_runs=1) == ([], 0, 0, "")
    audited.audit()
    assert verify(store, [pruned.hash]).faults == []
    audited.close()


def test_the_newest_run_of_every_estate_stays_whole(tmp_path: Path, store_url: str) -> None:
    """Whatever its age."""
    audited = Audited(tmp_path, store_url)
    audited.audit()
    audited.estate = audited.estate.model_copy(update={"name": "other"})
    audited.audit()
    late = datetime.now(UTC) + timedelta(days=4000)
    assert prune(audited.store, now=late, keep_since=late) == ([], 0, 0, "")
    audited.close()


def test_what_either_option_keeps_stays(tmp_path: Path) -> None:
    """Both are read together."""
    audited = Audited(tmp_path)
    for _ in range(4):
        audited.audit()
    words = ("audit", "prune", "--store", audited.url, "--format", "json")
    assert orjson.loads(policyeng(*words, "--keep-days", "1", "--keep-runs", "1").stdout)["runs"] == []
    assert orjson.loads(policyeng(*words, "--keep-runs", "2").stdout)["runs"] == [1, 2]
    assert orjson.loads(policyeng(*words, "--keep-days", "0").stdout)["runs"] == [3]
    refused = policyeng("audit", "prune", "--store", audited.url)
    assert refused.returncode == 3
    assert "add `--keep-days N` or `--keep-runs N`" in refused.stderr
    verified = policyeng("audit", "verify-history", "--store", audited.url)
    assert "pruned 3 runs: 1-3" in verified.stdout
    audited.close()
