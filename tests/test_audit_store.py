"""A store gives back what audits put into it."""

from __future__ import annotations

from pathlib import Path

import pytest

from policyeng import evaluate
from policyeng.audit.store import open_store
from policyeng.errors import StoreError
from policyeng.models import Location
from policyeng.sources import load_snapshot
from tests.audits import START, Audited


def test_a_run_keeps_its_parts_and_what_was_found_in_them(tmp_path: Path, store_url: str) -> None:
    """The evaluation of a part is that of `check`, and its snapshot is the one that was read."""
    audited = Audited(tmp_path, store_url)
    run = audited.audit()
    assert (run.number, run.previous, run.parts, run.exit_code) == (1, "", 3, 1)
    assert (run.summary.pass_, run.summary.fail) == (7, 1)
    with open_store(audited.url) as store:
        assert store.run(1) == run
        parts = list(store.parts(run))
        assert [part.name for part in parts] == ["a.json", "b.json", "c.json"]
        snapshot = load_snapshot(tmp_path / "estate" / "a.json")
        assert store.snapshot(parts[0]).resources == snapshot.resources
        expected = evaluate(audited.held.bundle, snapshot, as_of=START)
        found = store.evaluation(parts[0])
        assert [finding.model_copy(update={"location": Location()}) for finding in found.findings] == [
            finding.model_copy(update={"location": Location()}) for finding in expected.findings
        ]
        assert {finding.location.file for finding in found.findings} == {"a.json"}
        assert (found.summary, found.exit_code) == (expected.summary, expected.exit_code) == (parts[0].summary, 1)
        assert store.part(run, "b.json") == parts[1]
        assert store.part(run, "z.json") is None
    audited.close()


def test_spans_begin_and_end_with_what_runs_find(tmp_path: Path, store_url: str) -> None:
    """A finding lasts from the first run that has it; one that passes again ends."""
    audited = Audited(tmp_path, store_url)
    audited.audit()
    audited.put("a", {"one": {"x": 0, "owner": "o"}, "two": {"x": 0, "owner": "o"}})
    audited.put("b", {"three": {"x": 1, "owner": "o"}})
    audited.audit()
    audited.audit()
    found = [(span.part, span.first, span.last, span.until) for span in audited.store.spans("production")]
    assert found == [("a.json", 1, 1, 2), ("b.json", 2, None, None)]
    audited.close()


def test_a_store_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """Only a run makes one."""
    with pytest.raises(StoreError, match="there is no store") as refused:
        open_store(f"sqlite:///{tmp_path}/none.db")
    assert "policyeng audit run" in refused.value.remedy
