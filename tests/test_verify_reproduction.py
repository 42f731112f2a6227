"""How a counterexample is seen again: parts outside of files are printed, and the command names the files."""

from __future__ import annotations

import json
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import pytest

from policyeng.cli.files import FileWriter
from policyeng.cli.verify_modes import write_example
from policyeng.errors import UsageError
from policyeng.models import JsonObject
from policyeng.verify.example_documents import command, list_other_parts
from policyeng.verify.generators.examples import Example

AT = datetime(2026, 3, 1, tzinfo=UTC)
#: A text in which other readers of lines see two.
SNAPSHOT: JsonObject = {"resources": [{"id": "a\u2028b"}]}
SAYABLE = Example(SNAPSHOT, {"T-A-1": {"days": 3}}, AT)
#: TOML knows no null.
UNSAYABLE = Example(SNAPSHOT, {"T-A-1": {"days": None}}, AT)
DOCUMENTS = Example({"resources": [], "documents": [{"file": "a.json", "content": {"size": 1}}]}, {}, AT)


def test_the_command_names_policies_clock_and_files() -> None:
    """Without a file the snapshot comes on standard input; without parameters there is no configuration."""
    moment = ["--as-of", "2026-03-01T00:00:00+00:00"]
    chosen = ["--policy", "p", "--select", "T-A-1", *moment]

    assert command(SAYABLE, "T-A-1", ["--policy", "p"], Path("x.json")) == [
        *("policyeng", "check", "x.json", *chosen, "--config", "x.toml")
    ]
    assert command(DOCUMENTS, "T-A-1", ["--policy", "p"]) == ["policyeng", "check", "-", *chosen]
    assert command(DOCUMENTS, "") == ["policyeng", "check", "-", *moment]


def test_parts_outside_of_files_are_printed() -> None:
    """Parameters as a configuration, then the snapshot or the evaluated document."""
    at, days, *snapshot = list_other_parts(SAYABLE, None)

    assert (at, days.strip()) == ('parameters   [parameters."T-A-1"]', '"days" = 3')
    assert json.loads("\n".join(snapshot)) == {"snapshotVersion": 1, **SNAPSHOT}
    assert '      "id": "a\u2028b"' in snapshot
    assert json.loads("\n".join(list_other_parts(DOCUMENTS, None))) == {"size": 1}


def test_parts_in_files_are_not_printed_but_values_that_toml_cannot_express() -> None:
    """Parameters that no configuration can contain are printed as JSON."""
    assert list(list_other_parts(SAYABLE, Path("x.json"))) == []
    assert list(list_other_parts(UNSAYABLE, Path("x.json"))) == ['parameters   {"T-A-1": {"days": null}}']


def test_further_counterexamples_are_written_with_their_number(tmp_path: Path) -> None:
    """Each with its parameters next to it."""
    writer = FileWriter()

    first, second = (write_example(writer, tmp_path / "x.json", number, SAYABLE) for number in (1, 2))

    writer.require_all()
    assert (first, second) == (tmp_path / "x.json", tmp_path / "x-2.json")
    assert json.loads((tmp_path / "x-2.json").read_text(encoding="utf-8")) == {"snapshotVersion": 1, **SNAPSHOT}
    assert tomllib.loads((tmp_path / "x-2.toml").read_text(encoding="utf-8")) == {"parameters": {"T-A-1": {"days": 3}}}


def test_parameters_that_cannot_be_written_leave_no_file_to_name(tmp_path: Path) -> None:
    """A snapshot without its parameters is another one; the next is written all the same, and the fault is reported."""
    writer = FileWriter()
    (tmp_path / "x.toml").mkdir()

    first, second = (write_example(writer, tmp_path / "x.json", number, SAYABLE) for number in (1, 2))

    assert (first, second) == (None, tmp_path / "x-2.json")
    with pytest.raises(UsageError, match="cannot write the parameters of the counterexample"):
        writer.require_all()
