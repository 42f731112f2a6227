"""What functions of texts gave, and rules that are constant, are not computed again."""

from __future__ import annotations

import pytest

from policyeng import rego
from policyeng.rego import runtime
from policyeng.rego.program import Program
from policyeng.rego.runtime import Remembered
from policyeng.rego.values import Value

MODULE = """
package p

import data.names

limit := 3

parts(text) := split(lower(text), "/") if not startswith(text, "-")

parts(text) := names if startswith(text, "-")

deep(text) := [[part, parts(text)] | some part in parts(text)]

all := [parts(each) | some each in input.all]

all_deep := [deep(each) | some each in input.all]

few if count(input.all) < limit
"""


def compiled(module: str = MODULE) -> Program:
    """The program, with base data."""
    return rego.compile({"p.rego": module}, {"names": ["x", "y"]})


def kept(program: Program) -> list[Remembered]:
    """What the functions of this thread have kept."""
    return [value for value in program.thread().globals.values() if type(value) is Remembered]


def test_a_function_of_a_text_is_called_once() -> None:
    """What it gave is kept for the next evaluation; values of other types and errors are not."""
    program = compiled()
    for _ in range(3):
        assert program.query("data.p.all", {"all": ["A/b", "c", "A/b"]}) == [["a", "b"], ["c"], ["a", "b"]]
    assert sorted(kept(program)[0]) == ["A/b", "c"]

    for wrong in (7, None, ["a"], {"a": "b"}):
        with pytest.raises(rego.EvaluationError, match="must be string"):
            program.query("data.p.all", {"all": ["c", wrong]})
    assert sorted(kept(program)[0]) == ["A/b", "c"]


def test_results_with_collections_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A value that shares its parts is weighed in the evaluation that makes it; long texts take memory."""
    program = compiled()
    program.query("data.p.all_deep", {"all": ["a/b", "a" * 501]})
    assert [text for one in kept(program) for text in one] == ["a/b"]
    assert [value for one in kept(program) for value in one.values()] == [["a", "b"]]

    monkeypatch.setattr(runtime, "_MOST_REMEMBERED", 10)
    program.query("data.p.all", {"all": [str(number) for number in range(95)]})
    assert len(kept(program)[0]) <= 10


def test_nothing_is_kept_where_it_may_be_replaced() -> None:
    """A program that replaces data or functions computes each time, and constants too."""
    program = compiled(
        MODULE
        + """
replaced := [parts("-a"), value] if {
	value := parts("-a") with data.names as ["z"]
}
more if few with data.p.limit as 9
"""
    )

    assert program.query("data.p.replaced", {}) == [["x", "y"], ["z"]]
    assert program.query("data.p.few", {"all": [1, 2, 3, 4]}) is rego.UNDEFINED
    assert program.query("data.p.more", {"all": [1, 2, 3, 4]}) is True
    assert kept(program) == []


def test_reads_are_recorded_each_time() -> None:
    """A traced evaluation reads base data through a function that it has called before."""
    program = compiled()
    document: Value = {"all": ["-a"]}
    found = []
    for _ in range(3):
        thread = program.marked_thread()
        thread.begin(document)
        found.append(thread.trace(thread.function("data.p.all")))

    assert found[0] == found[1] == found[2]
    assert found[0][0] == [["x", "y"]]
    assert any(read.document == "data" and read.pointer.startswith("/names") for read in found[0][1])
