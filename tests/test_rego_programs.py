"""Random programs give the same with this engine as with OPA."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.effort import effort
from tests.rego_programs import Program, Result, agree, draw_programs, run_opa, run_ours

_CHUNK = 2000
#: OPA 1.22 takes `count` in a template string for safe next to a variable of the body, its index of rules loses
#: `data.a in {data.a, "b"}`, and an object literal has the order of its keys before they are computed.
_FAULTS_OF_OPA = re.compile(
    r"\|\{(?:count|upper)\}|data\.[\w.]+ in [\[{][^\]}\n]*data\.|\{\"other\": [^\n]*, [a-z$][^\n]*: "
)


def test_programs_are_the_same_for_a_seed() -> None:
    """Of both versions of Rego."""
    programs = list(draw_programs(1, 100))
    assert programs == list(draw_programs(1, 100))
    assert {program.old for program in programs} == {True, False}


@pytest.mark.slow
@pytest.mark.parametrize("is_strict", [True, False])
def test_programs_mean_what_they_mean_in_opa(is_strict: bool, opa: Path) -> None:
    """The same are refused, the others have the same value or are both in error.

    A builtin that fails is undefined if that is not strict. OPA may not come to the second value of a function.
    """
    count = effort(200, 20_000)
    for start in range(0, count, _CHUNK):
        programs = list(draw_programs(start + 1, min(_CHUNK, count)))
        results = run_opa(opa, programs, is_strict=is_strict)
        assert sum(result.kind == "value" for result in results) > 0.45 * len(programs)
        assert sum(result.kind == "error" for result in results) > (0.05 if is_strict else 0) * len(programs)
        evaluated = (run_ours(program, is_strict=is_strict) for program in programs)
        compared = zip(programs, evaluated, results, strict=True)
        different = [
            (program, ours, theirs)
            for program, ours, theirs in compared
            if not agree(ours, theirs)
            and not (ours.value == ["eval_conflict_error"] and theirs.kind == "value")
            and not _FAULTS_OF_OPA.search(program.source)
        ]
        assert not different, "\n\n".join(map(_describe, different[:3]))


def _describe(difference: tuple[Program, Result, Result]) -> str:
    program, ours, theirs = difference
    return f"{program.library}\n{program.source}\ninput {program.input}\ndata {program.data}\n{ours}\nOPA: {theirs}"
