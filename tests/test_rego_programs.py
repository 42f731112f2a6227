"""Random programs are the same for a seed, and OPA takes most of them."""

from __future__ import annotations

from pathlib import Path

from tests.rego_programs import draw_programs, run_opa


def test_most_programs_have_a_value(opa: Path) -> None:
    """Those of both versions of Rego; none is wrong in its syntax."""
    programs = list(draw_programs(1, 100))
    assert programs == list(draw_programs(1, 100))
    results = run_opa(opa, programs)
    assert {program.old for program in programs} == {True, False}
    assert sum(result.kind == "value" for result in results) > 50
    assert sum(result.kind == "compile" for result in results) < 25
    assert not any("rego_parse_error" in result.value for result in results if result.kind == "compile")
