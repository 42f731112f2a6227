"""The faults that are written into a Rego module and its header."""

from __future__ import annotations

from policyeng.verify.mutation.mutants import header_mutations
from policyeng.verify.mutation.rego import Mutant, MutationTargets, Spoken, mutants, rego_mutations

PLACES = MutationTargets(("/properties/size", "/properties/kind"), ("least", "most"), Spoken([["a", "b", "c"]]))
HEADER = """\
# METADATA
# title: é t
# custom:
#   id: T-1
#   severity: low
#   judges:
#     - type: Some.Thing/one
#       where: {/kind: [a,
#         b]}
#     - Some.Thing/two
#   inspects: [/x, /y]
#   when_absent: {/x: fail, /y: pass}
#   parameters:
#     least: {type: integer, minimum: 0, default: 3}
#     names: {type: array, default: [a]}
package p
"""


def of_body(body: str) -> list[Mutant]:
    """The mutants of a module with this below its package, whose sources are cut down to it."""
    source = f"package p\n\n{body}\n"
    return mutants("T-1", "p.rego", source, rego_mutations(source, False, PLACES))


def changes(body: str, kind: str) -> list[str]:
    """The mutants of a body by a kind of fault."""
    head = len("package p\n\n")
    return [mutant.source[head:].rstrip("\n") for mutant in of_body(body) if mutant.kind == kind]


def of_header(kind: str) -> list[tuple[str, str]]:
    """The mutants of the lines of a header by a kind of fault."""
    made = mutants("T-1", "p.rego", HEADER, header_mutations(HEADER, Spoken([["a", "b", "c"]])))
    return [(mutant.before, mutant.after) for mutant in made if mutant.kind == kind]


def test_conditions_are_dropped_and_negated() -> None:
    """Every condition of a body and of a comprehension; what gives a name stays."""
    body = "x if {\n\ty := input.q\n\tis_string(y)\n\tnot y in {z | some z in input.k; z.l}\n}"
    dropped = changes(body, "drop a condition")

    assert [text.split("\n")[2].strip() for text in dropped[:1]] == ["true"]
    assert [text.split("\n")[3].strip() for text in dropped[1:]] == [
        "true",
        "not y in {z | true; z.l}",
        "not y in {z | some z in input.k; true}",
    ]
    negated = changes(body, "negate a condition")
    assert [text.split("\n")[2].strip() for text in negated[:1]] == ["not is_string(y)"]
    assert negated[1].split("\n")[3].strip() == "y in {z | some z in input.k; z.l}"
    assert negated[2].split("\n")[3].strip() == "not y in {z | some z in input.k; not z.l}"


def test_rules_bodies_and_elses_never_hold() -> None:
    """In braces or not, each once."""
    assert changes("x if input.a", "drop a rule") == ["x if { false; input.a }"]
    assert changes("x := 1 if {\n\tinput.a\n} else := 2 if input.b", "drop a rule") == [
        "x := 1 if {\n\tfalse; input.a\n} else := 2 if input.b",
        "x := 1 if {\n\tinput.a\n} else := 2 if { false; input.b }",
    ]


def test_comparisons_are_flipped_to_both_neighbours() -> None:
    """The boundary, and the other side."""
    assert changes('x if "<" < input.a', "flip a comparison") == ['x if "<" <= input.a', 'x if "<" >= input.a']
    assert changes("x if f(1) >= 2", "flip a comparison") == ["x if f(1) < 2", "x if f(1) > 2"]
    assert changes("x if input.a != null", "flip a comparison") == ["x if input.a == null"]


def test_constants_are_shifted_flipped_and_changed() -> None:
    """Numbers by one, booleans, texts in quotes of both kinds."""
    assert changes("x := 3", "shift a number") == ["x := 2", "x := 4"]
    assert changes("x := -3", "shift a number") == ["x := -2", "x := -4"]
    assert changes("default x := false", "flip a boolean") == ["default x := true"]
    assert changes('x if input.a == "é"', "change a text") == ['x if input.a == "é_"']
    assert changes("x if regex.match(`b+`, input.a)", "change a text") == ["x if regex.match(`b+_`, input.a)"]


def test_texts_for_people_stay() -> None:
    """Of a denial only the path is looked at by cases, of an unknown nothing."""
    body = 'NAME contains {"msg": "m", "path": "/p", "actual": {"a": 1}, "expected": "e"} if input.k'

    of_unknown = {"drop a rule", "drop a condition", "negate a condition"}
    assert {mutant.kind for mutant in of_body(body.replace("NAME", "deny"))} == of_unknown | {"change a text"}
    assert {mutant.kind for mutant in of_body(body.replace("NAME", "unknown"))} == of_unknown
    assert changes(body.replace("NAME", "deny"), "change a text") == [
        body.replace("NAME", "deny").replace('"/p"', '"/p_"')
    ]


def test_sets_are_narrowed_and_widened() -> None:
    """A set of one becomes the empty set; the added member is in the place of another."""
    assert changes('x := {"a", "b"}', "narrow a set") == ['x := {"b"}', 'x := {"a"}']
    assert changes('x := {"a"}', "narrow a set") == ["x := set()"]
    assert changes('x := {"A", "B"}', "widen a set") == ['x := {"c", "A", "B"}']
    assert changes('x := {"elsewhere"}', "widen a set") == []
    assert changes('x := {"k": input.a, "l": input.b}', "narrow a set") == [
        'x := {"l": input.b}',
        'x := {"k": input.a}',
    ]


def test_sets_are_widened_by_a_text_that_a_trimmed_value_can_equal() -> None:
    """A blank text and a member with blanks around it are none; another text is added without its blanks."""
    assert Spoken([["a", " ", " a", "A "]]).another(["a"]) is None
    assert Spoken([["a ", "", " b "]]).another(["a"]) == "b"
    assert Spoken([["a", " B"]]).another(["a"]) is None  # the set is in lower case
    assert Spoken([["A", " B"]]).another(["A"]) == "B"


def test_paths_are_swapped() -> None:
    """For another inspected pointer, another parameter or another field; packages and functions stay."""
    (swapped,) = changes("x := input.resource.properties.size", "swap a path")
    assert swapped == "x := input.resource.properties.kind"
    assert changes("x := input.parameters.least", "swap a path") == ["x := input.parameters.most"]
    assert changes("x if { y := input.k[_]; f(y.left); f(y.right) }", "swap a path") == [
        "x if { y := input.k[_]; f(y.right); f(y.right) }",
        "x if { y := input.k[_]; f(y.left); f(y.left) }",
    ]
    source = "package p\nimport data.lib.words\nx := words.folded(words.known)\n"
    assert list(rego_mutations(source, False, PLACES)) == []


def test_fallbacks_are_changed() -> None:
    """Of `object.get`, whose path is mutated key by key, and of `default`."""
    body = 'x := object.get(input, ["k", "l"], null)'
    assert changes(body, "change a fallback") == ['x := object.get(input, ["k", "l"], "_")']
    assert changes(body, "change a text") == [
        'x := object.get(input, ["k_", "l"], null)',
        'x := object.get(input, ["k", "l_"], null)',
    ]
    assert changes("x := object.get(input, `k`, {})", "change a fallback") == ["x := object.get(input, `k`, null)"]
    assert changes("default x := []", "change a fallback") == ["default x := null"]


def test_every_becomes_some() -> None:
    """In braces or alone."""
    assert changes("x if every y in input.k { y.l }", "every to some") == ["x if { some y in input.k\ny.l }"]
    assert changes("x if { every i, y in input.k { y; i } }", "every to some") == [
        "x if { some i, y in input.k\ny; i }"
    ]


def test_old_rego_is_mutated_too() -> None:
    """The version is that of the bundle."""
    source = "package p\ndeny[m] { input.a > 1; m := input.b }\n"
    made = mutants("T-1", "p.rego", source, rego_mutations(source, True, PLACES))
    assert "deny[m] { false; input.a > 1; m := input.b }" in [mutant.after for mutant in made]


def test_headers_evaluate_other_types() -> None:
    """An entry, its narrowing, a value less and one more."""
    assert of_header("drop a selector") == [
        ("- type: Some.Thing/one where: {/kind: [a, b]}", "(nothing)"),
        ("where: {/kind: [a, b]}", "(nothing)"),
        ("- Some.Thing/two", "(nothing)"),
    ]
    assert of_header("widen a set")[:1] == [("where: {/kind: [a,", 'where: {/kind: ["c", a,')]
    narrowed = [after for _, after in of_header("narrow a set")]
    assert narrowed == ["where: {/kind: [b]}", "where: {/kind: [a]}", "names: {type: array, default: []}"]


def test_headers_have_other_defaults() -> None:
    """The default of a parameter, and nothing else of its schema."""
    assert [after for _, after in of_header("shift a number")] == [
        "least: {type: integer, minimum: 0, default: 2}",
        "least: {type: integer, minimum: 0, default: 4}",
    ]


def test_a_module_without_a_header_has_no_faults_there() -> None:
    """As those of others."""
    assert list(header_mutations("package p\n", Spoken([]))) == []
