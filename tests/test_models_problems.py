"""A problem is one type from the reader of a part of a document to the report."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from pydantic import ValidationError

from policyeng.models import PartKind, Problem, to_bytes
from policyeng.sources.parsed import reading_of, refuse, remark
from policyeng.sources.reader import read_inputs

_WITH_SECRET = "AccountKey=" + "aGVsbG8gd29ybGQgaGVsbG8gd29ybGQ" * 2


@pytest.mark.parametrize("kind", get_args(PartKind))
def test_a_located_problem_has_its_remedy_and_its_pointer_in_the_message(kind: PartKind) -> None:
    """Reports have no kind of a part, and no remedy of its own."""
    located = refuse("/a", "not a number", "give one", kind).located("a.json:3", "/a")

    assert to_bytes(located) == (
        b'{"level":"error","message":"/a: not a number; give one","place":"a.json:3","kind":"other"}'
    )
    assert Problem.model_validate_json(to_bytes(located)) == located
    assert located.model_dump_json() == to_bytes(located).decode()


@pytest.mark.parametrize("member", [{"remedy": "give one"}, *({"kind": kind} for kind in get_args(PartKind))])
def test_a_document_cannot_state_what_is_not_written(member: dict[str, str]) -> None:
    """Nor does the schema have it."""
    with pytest.raises(ValidationError):
        Problem.model_validate({"level": "error", "message": "not a number", **member})

    properties = Problem.model_json_schema()["properties"]
    assert list(properties) == ["level", "message", "place", "kind"]
    assert set(properties["kind"]["enum"]).isdisjoint(get_args(PartKind))


def test_secrets_are_masked_once_the_line_is_known(tmp_path: Path) -> None:
    """The pointer to a member with a secret in its name leads to its line, and the report has neither."""
    (tmp_path / "a.json").write_text(f'{{\n"snapshotVersion": 1,\n"resources": [],\n"{_WITH_SECRET}": 1\n}}')
    [problem] = read_inputs([str(tmp_path / "a.json")]).problems

    assert problem.place.endswith("a.json:4")
    assert "aGVsbG8" not in problem.message


def test_remarks_come_after_refusals_and_are_not_joined() -> None:
    """Whatever the order in which a reader yields them."""
    entries = [remark("/b", "unknown key"), refuse("/a", "no id"), remark("/c", "unknown key"), refuse("/d", "no id")]

    assert [(problem.place, problem.message) for problem in reading_of(entries).problems] == [
        ("/a", "no id (same for the next one)"),
        ("/b", "unknown key"),
        ("/c", "unknown key"),
    ]
