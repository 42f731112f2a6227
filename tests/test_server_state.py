"""The state that changes are evaluated against: its moment, its age, and files that are read again."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import pytest

from policyeng.bundle.loader import WantedInputs
from policyeng.errors import InputError
from policyeng.server.file_watcher import Watched
from policyeng.server.request_body import RequestRefusedError
from policyeng.server.service import SnapshotState, read_state, require_fresh
from tests.bundles import snapshot, workspace
from tests.servers import look, send_to, service_of, setup_of

RESOURCES = WantedInputs(documents=False, resources=True)
NOW = datetime(2026, 6, 1, tzinfo=UTC)


def written(path: Path, moment: datetime, **more: object) -> Path:
    """A snapshot of one workspace, written at a moment."""
    path.write_bytes(orjson.dumps({"snapshotVersion": 1, "resources": [workspace(path.stem)], **more}))
    os.utime(path, (moment.timestamp(),) * 2)
    return path


def test_the_moment_is_that_of_the_snapshot_else_when_it_was_written(tmp_path: Path) -> None:
    """Of several files without a time, the oldest counts."""
    written(tmp_path / "a.json", NOW)
    written(tmp_path / "b.json", NOW - timedelta(hours=2))
    stated = written(tmp_path / "c.json", NOW, takenAt="2026-01-01T00:00:00Z")

    assert read_state((tmp_path / "a.json",), RESOURCES).since == NOW
    assert read_state((tmp_path / "a.json", tmp_path / "b.json"), RESOURCES).since == NOW - timedelta(hours=2)
    assert read_state((stated,), RESOURCES).since == datetime(2026, 1, 1, tzinfo=UTC)
    assert len(read_state((tmp_path,), RESOURCES).snapshot.resources) == 3


def test_a_state_that_cannot_be_read_whole_is_none(tmp_path: Path) -> None:
    """The other files do not make up for it."""
    written(tmp_path / "a.json", NOW)
    (tmp_path / "b.json").write_text('{"snapshotVersion": 1, "resources": [', encoding="utf-8")
    with pytest.raises(InputError, match="not valid JSON"):
        read_state((tmp_path,), RESOURCES)


@pytest.mark.parametrize(("age", "fresh"), [(0, True), (60, True), (60.001, False), (-60, True), (-61, False)])
def test_a_state_that_is_too_old_decides_nothing(age: float, fresh: bool) -> None:
    """A state from the future decides nothing, either."""
    state = SnapshotState(snapshot(workspace()), NOW - timedelta(seconds=age))
    assert require_fresh(state, NOW, None) == age
    if fresh:
        assert require_fresh(state, NOW, 60) == age
    else:
        with pytest.raises(RequestRefusedError, match="no decision"):
            require_fresh(state, NOW, 60)


def test_changes_are_evaluated_against_the_new_content_of_a_file(tmp_path: Path) -> None:
    """A broken file leaves the state as it was, older and older."""
    file = written(tmp_path / "a.json", NOW)
    service = service_of(setup_of(tmp_path))
    service.state = Watched("state", lambda: read_state((file,), RESOURCES), (file,))
    patch = {"operation": "patch", "id": workspace("b")["id"], "patch": {"properties": {"x": 2}}}

    before = send_to(service, "/v1/admit", patch).json()
    file.write_bytes(orjson.dumps({"snapshotVersion": 1, "resources": [workspace("b")]}))
    look(service.state)
    after = send_to(service, "/v1/admit", patch).json()
    file.write_text("{", encoding="utf-8")
    look(service.state)
    broken = send_to(service, "/v1/admit", patch).json()

    assert [decision["exitCode"] for decision in (before, after, broken)] == [2, 1, 1]
    assert before["snapshot"]["digest"] != after["snapshot"]["digest"] == broken["snapshot"]["digest"]
    assert service.faults()[0].startswith("state: ")
