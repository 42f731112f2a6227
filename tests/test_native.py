"""The native engine: hostile and awkward Rego on both engines, strict JSON, and places in documents."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyeng._native import Documents, Program, check_json, locate

if TYPE_CHECKING:
    from policyeng._native import Outcome

RESOURCE = {"id": "/A", "type": "T", "name": "box", "xs": list(range(300)), "text": "x" * 5_000, "word": "no number"}
SNAPSHOT = {"resources": [RESOURCE], "workloads": [{"id": "w"}], "approvals": [{"id": "a"}], "takenAt": "now"}
GOOD = 'package good\ndeny contains {"msg": "m", "n": x} if {\n\tsome x in [1, 2]\n\tx > 1\n}\n'
GOOD_FINDINGS = b'{"deny":[{"msg":"m","n":2}],"unknown":[]}'
DEEP = "a0 := [1]\n" + "\n".join(f"a{n + 1} := [a{n}, a{n}]" for n in range(60)) + "\n"
RUN = "; ".join(f"some {name} in input.resource.xs" for name in "ijkl")
WORD = "input.resource.word"
ENGINES = [False, True]


@pytest.fixture(scope="module")
def documents() -> Documents:
    """A snapshot of one resource, one workload and one approval."""
    return Documents(json.dumps(SNAPSHOT).encode())


def program(rego: str, *roles: str, interpreter: bool = False) -> Program:
    """A bundle of the package `p` and the good policy, `p` first."""
    named = [(role, f"data.p.{role}") for role in roles or ("deny",)]
    modules = [("p.rego", f"package p\n{rego}\n"), ("good.rego", GOOD)]
    return Program(modules, b'{"facts": {"two": 2}}', [("P", named), ("G", [("deny", "data.good.deny")])], interpreter)


def judged(documents: Documents, rego: str, *roles: str, interpreter: bool = False) -> Outcome:
    """The outcome of one policy on the resource."""
    return program(rego, *roles, interpreter=interpreter).judge(documents, [(0, 0, -1)], [b"{}", b"{}"], "2026")[0]


def findings(outcome: Outcome) -> dict[str, list[dict[str, object]]]:
    """The findings of an outcome that must have some."""
    assert isinstance(outcome, bytes), outcome
    parsed: dict[str, list[dict[str, object]]] = json.loads(outcome)
    return parsed


HOSTILE = {
    "endless product": (f"deny contains {{}} if count([1 | {RUN}]) > 0", {"deadline", "memory"}),
    "endless memory": (f"deny contains {{}} if count([[i, j, k] | {RUN}]) > 0", {"deadline", "memory"}),
    "endless condition in not": (f"q if {{ {RUN}; i + j + k + l < 0 }}\ndeny contains {{}} if not q", {"deadline"}),
    "endless function in not": (
        f"q(x) if {{ {RUN}; i + j + k + l < x }}\ndeny contains {{}} if not q(0)",
        {"deadline"},
    ),
    "shared parts walked": (DEEP + "deny contains {} if { walk(a60, [_, v]); v == 7 }", {"deadline", "memory"}),
    "shared parts written": (DEEP + "deny contains {} if count(json.marshal(a60)) > 0", {"builtin"}),
    "shared parts denied": (DEEP + 'deny contains {"a": a60}', {"memory"}),
    "doubled strings": (
        "s0 := input.resource.text\n"
        + "\n".join(f's{n + 1} := concat("", [s{n}, s{n}])' for n in range(40))
        + "\ndeny contains {} if count(s40) > 0",
        {"builtin"},
    ),
    "replaced strings": (
        'deny contains {} if count(replace(input.resource.text, "x", input.resource.text)) > 0',
        {"builtin"},
    ),
    "wide format": ('deny contains {} if count(sprintf("%999999999d", [1])) > 0', {"builtin"}),
    "long range": ("deny contains {} if count(numbers.range(1, 1000000000)) > 0", {"builtin"}),
    "squared numbers": (
        "b0 := 7\n" + "\n".join(f"b{n + 1} := b{n} * b{n}" for n in range(40)) + "\ndeny contains {} if b40 > 0",
        {"builtin"},
    ),
    "large shift": ("deny contains {} if bits.lsh(1, 100000000000) > 0", {"builtin"}),
    "large network": ('deny contains {} if count(net.cidr_expand("::/0")) > 0', {"builtin"}),
    "nested quantifiers": (
        "deny contains {} if {\n\tsome i in numbers.range(1, 1000000)\n"
        '\tregex.match(`^(a+)+$`, sprintf("%s%d", [input.resource.text, i]))\n}',
        {"deadline"},
    ),
    "counted repetition": (
        "deny contains {} if regex.match(`((a{1,999}){1,999}){1,999}`, input.resource.text)",
        {"builtin"},
    ),
}


@pytest.mark.parametrize("interpreter", ENGINES)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_rego_fails_alone(documents: Documents, name: str, threads: int, interpreter: bool) -> None:
    """A pair that runs away becomes a fault of its kind, soon, and the pairs around it have their outcomes."""
    rego, kinds = HOSTILE[name]
    pairs = [(1, 0, -1), (0, 0, -1), *[(1, 0, -1)] * 40]
    compiled = program(rego, interpreter=interpreter)
    started = time.process_time()
    outcomes = compiled.judge(documents, pairs, [b"{}"] * 2, "2026", threads=threads, deadline_ms=150, memory_mb=32)
    assert time.process_time() - started < 60
    fault = outcomes.pop(1)
    assert isinstance(fault, tuple), fault
    assert fault[0] in kinds, fault
    assert outcomes == [GOOD_FINDINGS] * 41


def test_instructions_are_limited_on_the_rvm(documents: Documents) -> None:
    """A rule that takes more instructions than allowed is a fault of that kind."""
    compiled = program(HOSTILE["endless product"][0])
    assert compiled.engines[0] == ("rvm", "")
    outcomes = compiled.judge(documents, [(0, 0, -1), (1, 0, -1)], [b"{}"] * 2, "2026", instructions=10_000)
    assert isinstance(outcomes[0], tuple)
    assert outcomes[0][0] == "instructions"
    assert outcomes[1] == GOOD_FINDINGS


FAULTY = {
    "in deny": (f"deny contains {{}} if to_number({WORD}) > 1", "builtin"),
    "in not": (f"deny contains {{}} if not to_number({WORD})", "builtin"),
    "in a function in not": (f"f(x) if to_number(x) > 1\ndeny contains {{}} if not f({WORD})", "builtin"),
    "in a rule in not": (f"q if to_number({WORD}) > 1\ndeny contains {{}} if not q", "builtin"),
    "in every": (f'deny contains {{}} if {{ every x in ["1", {WORD}] {{ to_number(x) }} }}', "builtin"),
    "in a list": (f'deny contains {{}} if count([y | some x in ["1", {WORD}]; y := to_number(x)]) < 2', "builtin"),
    "in a set": (f'deny contains {{}} if count({{y | some x in ["1", {WORD}]; y := to_number(x)}}) < 2', "builtin"),
    "behind a default": (f"default q := true\nq := false if to_number({WORD})\ndeny contains {{}} if q", "builtin"),
    "before an else": (f"q := 1 if {{ to_number({WORD}) }} else := 2\ndeny contains {{}} if q == 2", "builtin"),
    "in the head": (f'deny contains {{"msg": to_number({WORD})}}', "builtin"),
    "of an operand": (f"deny contains {{}} if not {WORD} + 1 > 0", "builtin"),
    "of a division": ("deny contains {} if not 1 / input.resource.xs[0] > 0", "builtin"),
    "of a remainder": ("deny contains {} if not 1 % input.resource.xs[0] > 0", "builtin"),
    "of a type": ("deny contains {} if count(input.resource.xs[0]) > 1", "builtin"),
    "conflicting rule": ("q := 1\nq := input.resource.xs[2]\ndeny contains {} if not q", "conflict"),
    "conflicting function": ("f(x) := 1\nf(x) := x\ndeny contains {} if not f(input.resource.xs[2])", "conflict"),
    "conflicting loop": ("q := x if some x in input.resource.xs\ndeny contains {} if not q", "conflict"),
    "conflicting function loop": ("f(y) := x if some x in y\ndeny contains {} if f(input.resource.xs)", "conflict"),
    "conflicting key": ("deny contains {} if not {1: x | some x in input.resource.xs}[1]", "conflict"),
    "conflicting key of a rule": (
        "q[k] := x if { some x in input.resource.xs; k := x % 2 }\ndeny contains {} if q[1]",
        "conflict",
    ),
    "deny of numbers": ("deny contains 7", "evaluation"),
    "deny of an object": ('deny := {"msg": "m"}', "evaluation"),
}


@pytest.mark.parametrize("interpreter", ENGINES)
@pytest.mark.parametrize("name", FAULTY)
def test_errors_are_never_swallowed(documents: Documents, name: str, interpreter: bool) -> None:
    """An error or a conflict anywhere ends the pair, and the next pair is judged as if nothing had happened."""
    rego, kind = FAULTY[name]
    outcomes = program(rego, interpreter=interpreter).judge(documents, [(0, 0, -1), (1, 0, -1)], [b"{}"] * 2, "2026")
    assert isinstance(outcomes[0], tuple), outcomes
    assert outcomes[0][0] == kind, outcomes
    assert outcomes[1] == GOOD_FINDINGS


# Each rule `q` gives what OPA 1.22 gives with --strict-builtin-errors; None stands for undefined.
MISSING = "input.resource.missing"
MEANINGS: dict[str, tuple[str, object]] = {
    "negated call of nothing": (f'q if not startswith({MISSING}, "a")', None),
    "negated membership of nothing": (f'q if not {MISSING} in {{"a"}}', None),
    "negated comparison of nothing": (f"q if not {MISSING} > 1", None),
    "negated equality of nothing": (f"q if not {MISSING} == 1", True),
    "negated function of nothing": (f"f(x) if x == 1\nq if not f({MISSING})", None),
    "negated nothing": (f"q if not {MISSING}.a.b", True),
    "assigned nothing": (f"q if {{ x := {MISSING}; not x == 1 }}", None),
    "assigned undefined rule": (f"r := {MISSING}\nq if {{ x := r; not x == 1 }}", None),
    "function of nothing": (f"f(_) := 1\nq := f({MISSING})", None),
    "list of some nothing": ('q := [x.a | some x in [{"a": 1}, {}, {"a": 2}]]', [1, 2]),
    "list assigned nothing": ('q := [y | some x in [{"a": 1}, {}]; y := x.a]', [1]),
    "list of calls of nothing": ('q := [upper(x.a) | some x in [{"a": "b"}, {}]]', ["B"]),
    "set loses nothing": ('r contains x.a if some x in [{"a": 1}, {"a": 2}, {}]\nq := count(r)', 2),
    "set of objects with nothing": ('r contains {"b": x.a} if some x in [{"a": 1}, {}, {"a": 2}]\nq := count(r)', 2),
    "condition in an inner list": (
        'q := [x | some x in [{"a": 1}, {"b": 2}]; c := [1 | x.a]; count(c) == 0]',
        [{"b": 2}],
    ),
    "list within a list": ("q := [[y | some y in [1, 2]; y > x] | some x in [0, 1]]", [[1, 2], [2]]),
    "some in null": ("q := [x | some x in [null, 1][_]]", []),
    "some in a missing list": (f"q := [x | some x in {MISSING}]", []),
    "some in a string": ("q := count([x | some x in input.resource.name])", 0),
    "every in nothing": (f"q if {{ every x in {MISSING} {{ x }} }}", None),
    "default function": ("default f(_) := 5\nf(x) := x if x > 9\nq := f(1)", 5),
    "default computed": ("default q := [x | some x in [1, 2]]\nq := 1 if false", [1, 2]),
    "else": (f"q := 1 if {MISSING}\nelse := 2 if input.resource.name\nelse := 3", 2),
    "function of literals": ('f("a") := 1\nf("b") := 2\nq := [f(x) | some x in ["a", "b", "c"]]', [1, 2]),
    "object of some nothing": ('q := {x.a: 1 | some x in [{"a": "k"}, {}]}', {"k": 1}),
    "with": ('q if input.a with input as {"a": true}', True),
    "types in order": ('q if 1 < "a"', True),
    "occurrences": ('q := strings.count("11111", "11")', 2),
    "replaced once": ('q := strings.replace_n({"a": "b", "b": "a"}, "abba")', "baab"),
    "walked": ('q := {v | walk({"a": [1, {"b": 2}]}, [_, v]); is_number(v)}', [1, 2]),
    "facts": ("q := data.facts.two * 3", 6),
}


@pytest.mark.parametrize("interpreter", ENGINES)
@pytest.mark.parametrize("name", MEANINGS)
def test_rego_means_what_it_means_in_opa(documents: Documents, name: str, interpreter: bool) -> None:
    """Constructs that regorus by itself reads otherwise than OPA have OPA's meaning on whichever engine judges."""
    rego, meaning = MEANINGS[name]
    outcome = judged(documents, f'{rego}\ndeny contains {{"value": v}} if v := q', interpreter=interpreter)
    assert outcome is None if meaning is None else findings(outcome)["deny"] == [{"value": meaning}]


REFUSED = {
    "syntax": ("deny contains {", "p.rego:"),
    "unknown function": ("deny contains {} if nothing.such(1)", "nothing.such"),
    "unknown rule": ("other := 1", "data.p.deny"),
    "recursion": ("deny contains {} if q\nq if r\nr if q", "data.p.q -> data.p.r -> data.p.q"),
    "recursive function": ("f(x) := y if y := f(x - 1)\ndeny contains {} if f(1)", "data.p.f -> data.p.f"),
    "clock": ("deny contains {} if time.now_ns() > 0", "p.rego:2:"),
    "network": ('deny contains {} if http.send({"url": "x"})', "`http.send`"),
    "resolver": ('deny contains {} if net["lookup_ip_addr"]("x")', "`net.lookup_ip_addr`"),
    "chance": ('deny contains {} if rand.intn("a", 2) == 1', "`rand.intn`"),
    "identity": ('deny contains {} if uuid.rfc4122("a") == 1', "`uuid.rfc4122`"),
    "host": ("deny contains {} if opa.runtime().env", "`opa.runtime`"),
    "clock by way of with": ("deny contains {} if abs(1) with abs as time.now_ns", "`time.now_ns`"),
    "parser": ('deny contains {} if rego.parse_module("a", "b")', "`rego.parse_module`"),
    "other negation": ("import future.keywords.not\ndeny contains {} if not false", "future.keywords.not"),
    "walk as a term": ("deny contains {} if [_, v] := walk(input)", "walk(x, [path, value])"),
    "brackets": ("deny contains {} if " + "(" * 100_000, "brackets"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_judged_is_refused_at_once(name: str) -> None:
    """A bundle that does not compile, or reaches for the host, is refused with the place and the name."""
    rego, reason = REFUSED[name]
    with pytest.raises(ValueError, match=re.escape(reason)):
        program(rego)


def test_names_in_strings_and_comments_are_no_calls(documents: Documents) -> None:
    """A text that only looks like a host call is judged."""
    assert judged(documents, 'deny contains {"msg": "http.send()"} # time.now_ns()') is not None


@pytest.mark.parametrize("interpreter", ENGINES)
@pytest.mark.parametrize(
    ("applies", "outcome"),
    [
        ("applies if input.resource.name", b'{"deny":[{"a":1}],"unknown":[{"b":2}]}'),
        ("applies if input.resource.missing", False),
        ("applies := false", False),
        ("default applies := false", False),
        ('applies := "yes"', ("evaluation", "data.p.applies is not a boolean")),
    ],
)
def test_applies_comes_first(documents: Documents, applies: str, outcome: Outcome, interpreter: bool) -> None:
    """Without a true `applies` there is no finding; anything but a boolean is a fault."""
    rego = f'{applies}\ndeny contains {{"a": 1}}\nunknown contains {{"b": 2}}'
    assert judged(documents, rego, "unknown", "deny", "applies", interpreter=interpreter) == outcome


@pytest.mark.parametrize("interpreter", ENGINES)
def test_an_undefined_deny_denies_nothing(documents: Documents, interpreter: bool) -> None:
    """A list rule whose body does not hold gives no findings."""
    assert judged(documents, 'deny := [{"a": 1}] if input.resource.missing', interpreter=interpreter) is None


@pytest.mark.parametrize("interpreter", ENGINES)
def test_the_input_is_shared_and_complete(interpreter: bool) -> None:
    """A rule sees the subject, its workspace, the snapshot with its indices, parameters and the time."""
    snapshot = Documents(json.dumps({**SNAPSHOT, "resources": [RESOURCE, {"id": "/Ws", "type": "t"}]}).encode())
    assert len(snapshot) == 4
    rego = """deny contains {
        "subject": input.resource.id, "workspace": input.workspace.id, "time": input.as_of,
        "limit": input.parameters.limit, "by_id": input.snapshot.by_id["/ws"].id,
        "by_type": count(input.snapshot.by_type.t), "taken": input.snapshot.takenAt,
    } if input.workspace
    deny contains {"none": true} if input.workspace == null"""
    compiled = program(rego, interpreter=interpreter)
    outcomes = compiled.judge(snapshot, [(0, 2, 1), (0, 3, -1)], [b'{"limit": 7}', b"{}"], "2026-01-01T00:00:00Z")
    expected = {"subject": "w", "workspace": "/Ws", "time": "2026-01-01T00:00:00Z", "limit": 7, "by_id": "/Ws"}
    assert findings(outcomes[0])["deny"] == [expected | {"by_type": 2, "taken": "now"}]
    assert findings(outcomes[1])["deny"] == [{"none": True}]


def test_engines_are_chosen_policy_by_policy() -> None:
    """A policy that the RVM must not judge goes to the interpreter with the reason; the other stays."""
    compiled = program("q := {x: 1 | some x in [1, 2]}\ndeny contains {} if q[3]")
    (engine, reason), good = compiled.engines
    assert (engine, good) == ("interpreter", ("rvm", ""))
    assert "object comprehension" in reason
    assert program("deny := []", interpreter=True).engines[1] == ("interpreter", "asked for")


def test_indices_and_parameters_are_checked(documents: Documents) -> None:
    """An index out of range is an IndexError, parameters that are no object a ValueError."""
    compiled = program("deny := []")
    for pair in [(2, 0, -1), (0, 3, -1), (0, 0, 3), (0, 0, -2)]:
        with pytest.raises(IndexError):
            compiled.judge(documents, [pair], [b"{}"] * 2, "2026")
    with pytest.raises(IndexError):
        compiled.judge(documents, [], [b"{}"], "2026")
    with pytest.raises(ValueError, match="parameters"):
        compiled.judge(documents, [], [b"[]", b"{}"], "2026")
    with pytest.raises(ValueError, match="resources"):
        Documents(b"{}")


def test_python_runs_on_while_pairs_are_judged(documents: Documents) -> None:
    """The interpreter lock is free during judging: another thread counts on."""
    counted = 0
    stop = threading.Event()

    def count() -> None:
        nonlocal counted
        while not stop.wait(0.005):
            counted += 1

    thread = threading.Thread(target=count)
    thread.start()
    program(HOSTILE["endless product"][0]).judge(documents, [(0, 0, -1)], [b"{}"] * 2, "2026", deadline_ms=500)
    stop.set()
    thread.join()
    assert counted > 10


def test_outcomes_keep_the_order_of_the_pairs() -> None:
    """Thousands of pairs on two threads come back in their places."""
    resources = [{"id": str(number)} for number in range(3_000)]
    documents = Documents(json.dumps({"resources": resources}).encode())
    compiled = program('deny contains {"id": input.resource.id}')
    outcomes = compiled.judge(documents, [(0, n, -1) for n in range(3_000)], [b"{}"] * 2, "2026", threads=2)
    assert [findings(outcome)["deny"][0]["id"] for outcome in outcomes] == [str(number) for number in range(3_000)]


@pytest.mark.parametrize(
    ("document", "refusal"),
    [
        (b"", ("empty", "", 1, 1)),
        (b" \n", ("empty", "", 2, 1)),
        (b"\xef\xbb\xbf{}", ("bom", "", 1, 1)),
        (b'{"a": ["\xff"]}', ("utf8", "/a/0", 1, 9)),
        (b'{"a": 1,\n "a": 2}', ("duplicate-key", "/a", 2, 2)),
        (b'{"\\u0061/": 1, "a/": 2}', ("duplicate-key", "/a~1", 1, 16)),
        (b"[1, NaN]", ("nan", "/1", 1, 5)),
        (b'{"\xc3\xa9": -Infinity}', ("nan", "/\u00e9", 1, 7)),
        (b"[1e999]", ("number", "/0", 1, 2)),
        (b"1" * 400, ("number", "", 1, 1)),
        (b"{} x", ("trailing", "", 1, 4)),
        (b"[1,]", ("syntax", "/1", 1, 4)),
        (b'["\\ud800"]', ("syntax", "/0", 1, 3)),
        (b"[" * 10_000_000, ("depth", "/0" * 128, 1, 129)),
    ],
)
def test_refusals_name_kind_and_place(document: bytes, refusal: tuple[str, str, int, int]) -> None:
    """Each kind of bad document is refused with the pointer, line and column of the place."""
    assert check_json(document) == refusal


def test_depth_is_what_is_asked_for() -> None:
    """The deepest allowed document passes and the next one does not."""
    assert check_json(b"[[1]]", max_depth=2) is None
    assert check_json(b"[[[]]]", max_depth=2) == ("depth", "/0/0", 1, 3)


def strict(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object whose keys must differ."""
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a duplicate key")
    return dict(pairs)


def refuse(constant: str) -> float:
    """No constant is a number."""
    raise ValueError(constant)


def bounded(digits: str) -> int:
    """An integer of 64 bits, with a sign or without."""
    number = int(digits)
    if not -(2**63) <= number < 2**64:
        raise ValueError(digits)
    return number


def accepted(document: bytes) -> bool:
    """Whether the standard library takes a document, made as strict as it can be."""
    try:
        value = json.loads(document.decode(), object_pairs_hook=strict, parse_constant=refuse, parse_int=bounded)
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError, OverflowError):
        return False
    return True


INTEGERS = st.integers(-(2**63), 2**64 - 1)
SCALARS = st.none() | st.booleans() | INTEGERS | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12)
NOISE = st.text(alphabet='{}[]",:01.eE+-\\u dtrfalsn\n', max_size=12).map(str.encode)


@settings(max_examples=400, deadline=None)
@given(VALUES, st.sampled_from([None, 1]), st.booleans(), NOISE, st.integers(0, 60))
def test_documents_are_accepted_as_by_a_strict_parser(
    value: object, indent: int | None, escaped: bool, noise: bytes, place: int
) -> None:
    """A document, whole or with noise in it, passes exactly when the standard library reads it strictly."""
    document = json.dumps(value, indent=indent, ensure_ascii=escaped).encode()
    assert check_json(document) is None
    spoiled = document[:place] + noise + document[place + len(noise) // 2 :]
    assert (check_json(spoiled) is None) == accepted(spoiled), spoiled


def pointers(value: object, pointer: str = "") -> Iterator[tuple[str, object]]:
    """Every value of a document with its JSON Pointer."""
    yield pointer, value
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in members:
        yield from pointers(inner, f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}")


@settings(max_examples=200, deadline=None)
@given(VALUES, st.sampled_from([None, 2]), st.booleans())
def test_every_value_is_located(value: object, indent: int | None, escaped: bool) -> None:
    """At the place of each pointer stands the value that the pointer names."""
    document = json.dumps(value, indent=indent, ensure_ascii=escaped)
    lines = document.split("\n")
    named = list(pointers(value))
    for (pointer, expected), place in zip(named, locate(document.encode(), [name for name, _ in named]), strict=True):
        assert place is not None, pointer
        line, column = place
        rest = "\n".join([lines[line - 1][column - 1 :], *lines[line:]])
        assert json.JSONDecoder().raw_decode(rest)[0] == expected


def test_what_is_not_there_is_not_located() -> None:
    """Pointers that name nothing, or are none, have no place."""
    document = b'{"a": [1, {"b~/": 2}]}'
    assert locate(document, ["/a/2", "/b", "a", "/a/01", "/a/1/b~0~1"]) == [None, None, None, None, (1, 19)]


def test_ten_thousand_pointers_are_fast() -> None:
    """Many pointers into one large document take one pass."""
    document = json.dumps([{"id": number, "list": [1, 2]} for number in range(50_000)]).encode()
    wanted = [f"/{number * 5}/list/1" for number in range(10_000)]
    started = time.thread_time()
    assert all(locate(document, wanted))
    assert time.thread_time() - started < 60


def test_both_engines_agree_on_a_good_bundle(documents: Documents) -> None:
    """Pairs of a good bundle have the same outcomes on both engines and on one or two threads."""
    outcomes = [
        program('deny contains {"n": x} if { some x in input.resource.xs; x > 297 }', interpreter=interpreter).judge(
            documents, [(0, 0, -1), (1, 0, -1), (0, 1, -1)] * 20, [b"{}"] * 2, "2026", threads=threads
        )
        for interpreter, threads in product(ENGINES, [1, 2])
    ]
    assert outcomes[0][0] == b'{"deny":[{"n":298},{"n":299}],"unknown":[]}'
    assert all(other == outcomes[0] for other in outcomes)
