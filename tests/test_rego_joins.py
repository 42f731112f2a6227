"""A look-up in a list by equality gives what a walk through the list gives, with the same reads."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from random import Random

import pytest

from policyeng import rego
from policyeng.rego import compiler, runtime
from policyeng.rego.markers import show
from policyeng.rego.program import Program
from policyeng.rego.tracing import RecordedReads
from policyeng.rego.values import Value, to_json
from tests.effort import effort
from tests.markings import Marking

MODULE = """
package p

by_name contains one.id if {
	wanted := input.wanted
	some one in input.all
	lower(one.name) == wanted
}

by_two := [one.id |
	some name in input.names
	some one in input.all
	one.kind == "a"
	trimmed := trim_space(one.name)
	trimmed == name
]

first if {
	wanted := input.wanted
	some one in input.all
	lower(one.name) == wanted
	one.id > 3
}

by_position(snapshot, name) := [one.id |
	some position in snapshot.positions
	one := snapshot.all[position]
	one.name == name
]

positions := [by_position(input, name) | some name in input.names]

by_part := [one.id |
	some name in input.names
	some one in input.all
	name in one.parts
]

by_set contains one.id if {
	wanted := input.wanted
	some one in input.all
	wanted in parts(one)
}

parts(one) := {part | some part in one.parts; part != "b"}

nested := {name: ids |
	some name in input.names
	ids := [one.id | some one in input.all; one.name == name; not one.kind == "b"]
}
"""
RULES = ("by_name", "by_two", "by_part", "by_set", "first", "positions", "nested")
#: What members have at times: texts, equal values, values of another type, and nothing.
NAMES = ("a", " a", "A", "b", "", 1, 1.0, True, None, ["a"], {"b": 1})


def drawn(seed: int) -> Value:
    """Draw an input."""
    chance = Random(seed)  # noqa: S311  # the same for a seed
    members: list[Value] = [{"id": at, "kind": chance.choice("ab")} for at in range(chance.randint(0, 40))]
    for member in members:
        if chance.random() < 0.9:
            member["name"] = chance.choice(NAMES)
        if chance.random() < 0.9:
            names = chance.choices(NAMES, k=chance.randint(0, 3))
            member["parts"] = chance.choice((names, {str(at): name for at, name in enumerate(names)}, "a"))
    if chance.random() < 0.3:
        members += ["text", 7, None]
    positions = [chance.randint(0, 45) for _ in members]
    names = chance.sample(NAMES, 5)
    return {"all": members, "wanted": chance.choice(NAMES), "names": names, "positions": positions}


def joining() -> Program:
    """The program as it is compiled."""
    return rego.compile({"p.rego": MODULE})


def walking() -> Program:
    """The program with loops alone."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(compiler._Writer, "join", lambda *_: False)
        return rego.compile({"p.rego": MODULE})


def repeat(query: Callable[[str], object]) -> list[str]:
    """Query each rule several times: lists are indexed when they are used again."""
    found = []
    for rule in RULES * 3:
        try:
            found.append(repr(query(f"data.p.{rule}")))
        except rego.EvaluationError as error:
            found.append(str(error))
    return found


def test_the_joins_of_the_program_are_compiled_as_such() -> None:
    """Each rule has one; what a program without them compares with has none."""
    names = [
        program.compiled.dump().count(how) for program in (joining(), walking()) for how in (b"matching", b"containing")
    ]

    assert names == [1, 1, 0, 0]


@pytest.mark.parametrize("seed", range(effort(40, 2_000)))
def test_joins_find_what_loops_find(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values and errors are the same, and so are members and their order."""
    monkeypatch.setattr(runtime, "FEWEST_JOINED", 8 * (seed % 2))
    document = drawn(seed)
    one, other = joining(), walking()

    assert repeat(lambda rule: to_json(one.query(rule, document))) == repeat(
        lambda rule: to_json(other.query(rule, document))
    )


@pytest.mark.parametrize("seed", range(effort(40, 2_000)))
def test_joins_decide_what_loops_decide(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over inputs with markers, the results are the same."""
    monkeypatch.setattr(runtime, "FEWEST_JOINED", 0)
    chance = Random(seed)  # noqa: S311  # the same for a seed
    marked = Marking.draw(chance, drawn(seed), 3, ["/names", "/positions"]).marked
    one, other = joining(), walking()

    def show_outcome(program: Program, rule: str) -> str:
        value, undecided = program.decide(rule, marked)
        return f"{show(value)} {sorted(undecided)}"

    assert repeat(lambda rule: show_outcome(one, rule)) == repeat(lambda rule: show_outcome(other, rule))


@pytest.mark.parametrize("seed", range(5))
def test_joins_read_what_loops_read(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each evaluation that is traced records all that it depends on, whatever was indexed before."""
    monkeypatch.setattr(runtime, "FEWEST_JOINED", 0)
    document = drawn(seed)

    def reads(program: Program, rule: str) -> list[RecordedReads]:
        thread = program.marked_thread()
        thread.begin(document)
        with suppress(rego.Undecided):
            thread.call(thread.function(rule))
            return thread.trace(thread.function(rule))[1]
        return []

    one, other = joining(), walking()

    assert repeat(lambda rule: reads(one, rule)) == repeat(lambda rule: reads(other, rule))
    assert any(reads(one, f"data.p.{rule}") for rule in RULES)


def test_another_list_in_the_same_place_is_another() -> None:
    """What was found for a list is not found for one that has its address after it is gone."""
    program = joining()
    found = []
    for name in "abcd":
        document = {"all": [{"id": at, "name": f"{name}{at}"} for at in range(50)], "wanted": f"{name}7"}
        found += [program.query("data.p.by_name", document) for _ in range(3)]
        del document

    assert found == [{7}] * 12


def test_an_error_after_the_result_is_not_raised() -> None:
    """The first member that decides ends the loop, and what has no key comes in its turn."""
    members: list[Value] = [{"id": at, "name": "a"} for at in range(9)]
    program = joining()

    def first(*added: Value) -> list[str]:
        document = {"all": [*members, *added], "wanted": "b"}
        return repeat(lambda _: program.query("data.p.first", document))

    assert set(first({"id": 9, "name": "b"}, {"id": 10, "name": 7})) == {"True"}
    assert {result.rpartition(":")[2] for result in first({"id": 9, "name": 7}, {"id": 10, "name": "b"})} != {"True"}


def test_a_comparison_that_gives_its_result_to_a_variable_is_no_join() -> None:
    """`equal` has a third argument there."""
    source = "package p\n\nfound := [y |\n\tsome x in input.xs\n\tequal(x.name, input.s, y)\n]\n"
    given = {"xs": [{"name": str(number)} for number in range(9)], "s": "3"}

    found = rego.compile({"p.rego": source}).query("data.p.found", given)
    assert found == [number == 3 for number in range(9)]
