"""Several at once on one store: each run has a number of its own, one estate is audited once, and readers read."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from policyeng.audit.store import open_store
from policyeng.audit.store.connection import lock_writes, retention_lock, run_lock, writing
from policyeng.audit.store.integrity import verify
from policyeng.errors import StoreError
from tests.audits import Audited


def test_estates_are_audited_at_once_and_numbered_one_after_the_other(tmp_path: Path, store_url: str) -> None:
    """The chain has no gap, whoever is first."""
    estates = [Audited(tmp_path / str(number), store_url, name=f"estate-{number}") for number in range(4)]
    with ThreadPoolExecutor(4) as threads:
        for _ in range(3):
            runs = list(threads.map(Audited.audit, estates))
            assert len({run.number for run in runs}) == 4
    with open_store(store_url) as store:
        verified = verify(store)
        assert (verified.faults, verified.runs) == ([], 12)
    for audited in estates:
        audited.close()


def test_an_estate_is_not_audited_twice_at_once(tmp_path: Path, store_url: str) -> None:
    """The second is refused; another estate is not."""
    audited, other = Audited(tmp_path, store_url), Audited(tmp_path / "b", store_url, name="other")
    with run_lock(other.store.engine, "production"):
        with pytest.raises(StoreError, match="running already"):
            audited.audit()
        assert other.audit().number == 1
    assert audited.audit().number == 2
    audited.close()
    other.close()


def test_retention_waits_for_audits_and_they_for_it(
    tmp_path: Path, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a run has written ahead must not be taken away, so neither begins while the other is at work."""
    monkeypatch.setattr("policyeng.audit.store.connection.PATIENCE", 0.0)
    audited = Audited(tmp_path, store_url)
    engine = audited.store.engine
    running = run_lock(engine, "a"), run_lock(engine, "b")
    with running[0], running[1], pytest.raises(StoreError, match="an audit is running"), retention_lock(engine):
        pass
    with retention_lock(engine), pytest.raises(StoreError, match="retention is at work"):
        audited.audit()
    assert audited.audit().number == 1
    audited.close()


def test_readers_are_not_kept_back_by_a_run_that_is_written(tmp_path: Path, store_url: str) -> None:
    """They see the runs that there were."""
    audited = Audited(tmp_path, store_url)
    audited.audit()
    with writing(audited.store.engine) as connection:
        lock_writes(connection)
        with open_store(store_url) as reader:
            assert [run.number for run in reader.runs("production")] == [1]
    audited.close()
