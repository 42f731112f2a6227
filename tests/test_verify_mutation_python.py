"""The faults that are written into a policy in Python."""

from __future__ import annotations

from policyeng.verify.mutation.mutants import normalize_source, python_mutations
from policyeng.verify.mutation.rego import Spoken, mutants


def changes(source: str, kind: str) -> list[str]:
    """The mutants of a text by a kind of fault."""
    made = mutants("T-1", "p.py", source, python_mutations(source, Spoken([["a", "b", "c"]])))
    return [mutant.source for mutant in made if mutant.kind == kind]


def test_operands_and_tests_are_dropped() -> None:
    """`and` and `or` lose an operand, conditions and filters hold always or never."""
    assert changes("x = a and (b or c)", "drop a condition") == [
        "x = True and (b or c)",
        "x = a and (False or c)",
        "x = a and (True)",
        "x = a and (b or False)",
    ]
    assert changes("if a:\n    b()", "drop a condition") == ["if True:\n    b()"]
    assert changes("if a:\n    b()", "drop a rule") == ["if False:\n    b()"]
    assert changes("x = [y for y in z if y.w]", "drop a condition") == ["x = [y for y in z if True]"]
    assert changes("x = not a", "negate a condition") == ["x = bool(a)"]


def test_comparisons_are_flipped() -> None:
    """Both neighbours of an order, membership and identity, each link of a chain."""
    assert changes("x = a < b", "flip a comparison") == ["x = a <= b", "x = a >= b"]
    assert changes("x = a not in b", "flip a comparison") == ["x = a in b"]
    assert changes("x = a is None", "flip a comparison") == ["x = a is not None"]
    assert changes("x = 'é' == b == c", "flip a comparison") == ["x = 'é' != b == c", "x = 'é' == b != c"]


def test_constants_are_shifted_flipped_and_changed() -> None:
    """Numbers, booleans, texts of one word; messages and docstrings stay, verdicts become each other."""
    assert changes("x = 3", "shift a number") == ["x = 2", "x = 4"]
    assert changes("x = True", "flip a boolean") == ["x = False"]
    assert changes("x = zip(a, b, strict=True)", "flip a boolean") == []
    assert changes("x = 'word'", "change a text") == ["x = 'word_'"]
    assert changes('"""Doc."""\nx = "several words"', "change a text") == []
    assert len(changes("x = {'/p': 'fail'}", "change an absence")) == 3


def test_collections_are_narrowed_and_widened() -> None:
    """Lists, sets, tuples of texts, and the entries of a dictionary that is not a schema."""
    assert changes("x = {'a', 'b'}", "narrow a set") == ["x = {'b'}", "x = {'a'}"]
    assert changes("x = ['a']", "narrow a set") == ["x = []"]
    assert changes("x = f([(a), (b)])", "narrow a set") == []
    assert changes("x = ['a', 'b']", "widen a set") == ["x = ['c', 'a', 'b']"]
    assert changes("x = {'k': y, 'l': z}", "narrow a set") == ["x = {'l': z}", "x = {'k': y}"]
    assert changes("x = {'type': 'integer', 'default': 1}", "narrow a set") == []
    assert changes("x = {'type': 'integer', 'default': 1}", "shift a number") == [
        "x = {'type': 'integer', 'default': 0}",
        "x = {'type': 'integer', 'default': 2}",
    ]


def test_paths_fallbacks_and_quantifiers_are_swapped() -> None:
    """The resource for its workspace, what `get` gives else, `all` for `any`."""
    assert changes("x = given.resource", "swap a path") == ["x = given.workspace"]
    assert changes("x = y.get(z, {})", "change a fallback") == ["x = y.get(z, None)"]
    assert changes("x = y.get(z, None)", "change a fallback") == ['x = y.get(z, "_")']
    assert changes("x = all(y)", "every to some") == ["x = any(y)"]


def test_denials_are_dropped_and_their_messages_stay() -> None:
    """The path of a denial is looked at by cases; names that are only used in messages are left alone."""
    source = "def f(g):\n    because = g or 1\n    yield Denial(msg='m', path='/p', actual=because)"
    assert changes(source, "drop a denial") == [
        "def f(g):\n    because = g or 1\n    yield from ()",
    ]
    assert [text.splitlines()[2].strip() for text in changes(source, "change a text")] == [
        "yield Denial(msg='m', path='/p_', actual=because)"
    ]
    assert changes(source, "drop a condition") == []
    assert changes("yield Unknown(msg='m', path='/p')", "change a text") == []


def test_of_a_header_only_what_decides_is_mutated() -> None:
    """Titles, severities and sources are for people."""
    source = "@policy(title='t', severity='low', judges=['x', 'y'])\ndef f(given):\n    pass"
    made = mutants("T-1", "p.py", source, python_mutations(source, Spoken([])))
    assert {mutant.kind for mutant in made} == {"narrow a set"}
    assert "judges=['y']" in made[0].after


def test_the_same_program_in_other_words_is_known() -> None:
    """Brackets and spaces make no other program."""
    assert normalize_source("x = (a)") == normalize_source("x=a")
    assert normalize_source("x = a") != normalize_source("x = b")
