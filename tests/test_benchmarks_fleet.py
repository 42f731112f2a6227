"""The benchmark of audits of a fleet: what it writes, what it times, and the table of it. No times are asserted."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks.fleet import Fleet, Measured, audits, measured, rendered
from policyeng.sources import load_snapshot


def test_every_workspace_is_a_file_with_ids_of_its_own(tmp_path: Path) -> None:
    """Of as many resources as requested; a change changes one of them."""
    fleet = Fleet(tmp_path, workspaces=3, resources=12)
    fleet.write()
    files = sorted(fleet.files.iterdir())
    before = [file.read_bytes() for file in files]

    fleet.change()

    by_file = [{resource["id"] for resource in load_snapshot(file).resources} for file in files]
    assert [len(ids) for ids in by_file] == [12, 12, 12]
    assert len(set.union(*by_file)) == 36
    assert [file.read_bytes() == content for file, content in zip(files, before, strict=True)] == [True, False, True]


def test_a_command_that_fails_gives_no_figure() -> None:
    """Its output is in the error."""
    found = measured("quick", [sys.executable, "-c", "print(1)"])

    assert found.seconds >= found.processor > 0
    assert found.peak > 1
    with pytest.raises(RuntimeError, match="broken: exit 3: no such fleet"):
        measured("broken", [sys.executable, "-c", "import sys; sys.stderr.write('no such fleet'); sys.exit(3)"])


@pytest.mark.slow
def test_audits_are_those_of_the_command(tmp_path: Path) -> None:
    """The first evaluates; it is a process that ends as `check` would."""
    fleet = Fleet(tmp_path, workspaces=2, resources=12)
    fleet.write()

    first = next(audits(fleet, f"sqlite:///{tmp_path}/audits.db", 1))

    assert first.name == "first audit"
    assert (tmp_path / "audits.db").stat().st_size > 0


def test_the_table_has_medians_and_how_much_faster_the_next_is(tmp_path: Path) -> None:
    """By the processor and by the clock."""
    again = [Measured("next audit, nothing changed", seconds, seconds / 2, 50) for seconds in (2.0, 9.0, 1.0)]
    rows = [Measured("first audit", 60, 40, 100), *again, Measured("opa exec", 30, 50, 90)]

    table = rendered(rows, Fleet(tmp_path, 1000, 40), 1, 100)

    assert "| next audit, nothing changed | 2.00 | 1.00 | 1.0 | 50 |" in table
    assert "| opa exec | 30.00 | 50.00 | 50.0 | 90 |" in table
    assert "40.0 times as fast as the first one in processor time, and 30.0 times in wall-clock time" in table
    assert "on 100 files, extrapolated by a factor of 10." in table
