"""The work of a decision grows with the change, not with the state."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from benchmarks import estates
from benchmarks.admission import changes
from benchmarks.preparing import whole_bundle
from policyeng.admission import AdmissionOptions, AdmissionSession, changes_of
from policyeng.models import JsonObject, Snapshot
from policyeng.sources import load_snapshot
from tests.growth import steps

OPTIONS = AdmissionOptions(datetime(2026, 6, 1, tzinfo=UTC))


def estate(folder: Path, size: int) -> Snapshot:
    """The first resources of the same estate, whatever the size."""
    file = folder / f"{size}.json"
    file.write_bytes(estates.document(size))
    return load_snapshot(file)


def work(state: Snapshot, kinds: Mapping[str, JsonObject | str]) -> dict[str, int]:
    """The steps of a later decision on each change, with another one part of the state."""
    basis, found = AdmissionSession(whole_bundle(), state), {}
    existing = changes_of({**state.resources[0], "tags": {"environment": "dev"}})
    for name, change in kinds.items():
        basis.decide(change, OPTIONS, existing)
        found[name] = steps(partial(basis.decide, change, OPTIONS, existing))
    return found


@pytest.mark.parametrize("size", [800, pytest.param(3200, marks=pytest.mark.slow)])
def test_work_grows_with_the_change(tmp_path: Path, size: int) -> None:
    """Every kind of change takes less than 1.5 times as much in a state that is many times as large."""
    small = estate(tmp_path, 200)
    kinds = changes(small)
    few, many = (work(state, kinds) for state in (small, estate(tmp_path, size)))

    assert {name: count / few[name] for name, count in many.items() if count > 1.5 * few[name]} == {}


def test_another_second_costs_nothing(tmp_path: Path) -> None:
    """What reads the clock is evaluated again when it reaches a moment that it is compared with, not for each time."""
    state = estate(tmp_path, 200)
    basis, kinds = AdmissionSession(whole_bundle(), state), changes(state)
    later = AdmissionOptions(OPTIONS.as_of + timedelta(seconds=1))
    for change in kinds.values():
        basis.decide(change, OPTIONS)
    now = {name: steps(partial(basis.decide, change, OPTIONS)) for name, change in kinds.items()}
    then = {name: steps(partial(basis.decide, change, later)) for name, change in kinds.items()}

    assert {name: count / now[name] for name, count in then.items() if count > 1.1 * now[name]} == {}
