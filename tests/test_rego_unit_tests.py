"""`policyeng test` runs Rego unit tests with the results of `opa test`, and counts lines as its coverage does."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from policyeng.bundle import load_bundle
from policyeng.facts.catalogue import built_in_root
from policyeng.rego import Program
from policyeng.rego.linking import link
from policyeng.rego.parser import parse_module
from policyeng.rego.syntax import lines_of
from policyeng.testing import rego_tests
from policyeng.testing.rego_tests import Session, coverage_of, open_session, run_unit_tests
from tests.bundles import write
from tests.command import policyeng

POLICY = """# METADATA
# title: A machine is named
# custom:
#   id: ORG-UNIT-001
#   severity: low
#   judges:
#     - type: Microsoft.MachineLearningServices/workspaces/computes
#   inspects: []
#   when_absent: pass
#   remediation: {text: Name it.}
#   source: a rule
package acme.named

import data.acme.words

deny contains {"msg": "it has no name", "path": "/name"} if {
	not words.filled(input.resource.name)
}
"""
WORDS = """package acme.words

filled(text) if {
	trim_space(text) != ""
}

size(text) := "long" if {
	count(text) > 3
} else := "short"

many[key] := value if {
	some key, value in {"a": 1}
}

default empty := false

empty if {
	some word in input.words
	word == ""
}
"""
TESTS = """package acme.words_test

import data.acme.words

test_filled if words.filled("a")

test_not_filled if words.filled(" ")

test_false := false

test_text := "x"

test_conflict if both == 1

both := 1

both := 2

todo_test_later if false

test_twice if true

test_twice if false

test_long if {
	some text in ["long"]
	print("size of", text, words.size(text), input.no, {"a": {1, "b"}})
	words.size(text) == "long"
}

test_sizes[note] if {
	some note, text in {"long": "a", "longer": "abcd"}
	words.size(text) == "long"
}

test_several[note] if {
	some note, text in {"one": "abcd", "two": "abcde"}
	words.size(text) == "long"
}

test_set contains "x"

test_object := {"a": true}

test_function(x) if x

default test_default := false

test_else if false

else := true

testing if false
"""
BRACKETS = 'package acme["words.rego"]["x-y"]\ntest_brackets if true\n'
FILES = {"acme/named/named.rego": POLICY, "acme/words.rego": WORDS, "acme/words_test.rego": TESTS}
OUTCOMES = {"fail": "failed", "error": "error", "skip": "skipped"}


def opa_test(opa: Path, *arguments: str) -> Any:
    """The output of `opa test` as JSON."""
    ran = subprocess.run([opa, "test", "--format", "json", *arguments], capture_output=True, text=True, check=False)
    return json.loads(ran.stdout)


def outcomes_of_opa(opa: Path, *arguments: str) -> dict[tuple[str, int], str]:
    """The outcome of each test by name and line."""
    return {
        (f"{found['package']}.{found['name']}", found["location"]["row"]): next(
            (outcome for member, outcome in OUTCOMES.items() if found.get(member)), "passed"
        )
        for found in opa_test(opa, *arguments)
    }


def outcomes_of(*paths: Path) -> dict[tuple[str, int], str]:
    """The same as ours."""
    session = open_session(load_bundle(*paths, require_policies=False), print)
    return {(f"{test.package}.{test.name}", test.line): test.outcome for test in run_unit_tests(session)}


@pytest.mark.slow
def test_our_own_tests_pass_as_with_opa(opa: Path) -> None:
    """Every test of `policies`, each by its name and line."""
    ours = outcomes_of()

    assert ours == outcomes_of_opa(opa, "--bundle", str(built_in_root()))
    assert set(ours.values()) == {"passed"}
    assert len(ours) > 100


def test_outcomes_are_those_of_opa(opa: Path, tmp_path: Path) -> None:
    """Tests that fail in every way, that are to do, that have cases, and two of one name."""
    folder = write(tmp_path, {**FILES, "acme/brackets_test.rego": BRACKETS})

    ours = outcomes_of(folder)

    assert ('data.acme["words.rego"]["x-y"].test_brackets', 2) in ours
    assert ours == outcomes_of_opa(opa, str(folder))
    assert set(ours.values()) == {"passed", "failed", "error", "skipped"}


CLOCK = """package clock_test

test_the_clock if time.now_ns() > 1700000000000000000

test_it_stands_still if { first := time.now_ns(); first == time.now_ns() }

test_a_replaced_clock if time.now_ns() == 5 with time.now_ns as 5

test_it_never_goes_back if { first := time.now_ns(); first > time.now_ns() }
"""


def test_the_clock_of_a_test_is_that_of_the_run(opa: Path, tmp_path: Path) -> None:
    """As for `opa test`, unless the test replaces it; the values of a test that fails are of the same time."""
    folder = write(tmp_path, {"clock_test.rego": CLOCK})
    session = open_session(load_bundle(folder, require_policies=False), print)
    tests = {(f"{test.package}.{test.name}", test.line): test for test in run_unit_tests(session)}

    assert {name: test.outcome for name, test in tests.items()} == outcomes_of_opa(opa, str(folder))
    (failed,) = (test for test in tests.values() if test.outcome == "failed")
    assert failed.expression is not None
    first, second = dict(failed.expression.values).values()
    assert first == second


def test_a_builtin_that_fails_is_an_error(tmp_path: Path) -> None:
    """For OPA it is undefined in a test; a policy has an error there, and so has its test."""
    folder = write(tmp_path, {**FILES, "acme/words_test.rego": 'package w_test\ntest_a if not to_number("a")\n'})

    (test,) = run_unit_tests(open_session(load_bundle(folder), print))

    assert test.outcome == "error"
    assert "words_test.rego:2: eval_builtin_error: to_number: " in test.reason
    assert test.reason.endswith('`test_a if not to_number("a")`')


def test_results_name_file_and_line(tmp_path: Path) -> None:
    """In text, JSON and JUnit; output of `print` goes to standard error, after its place."""
    write(tmp_path, FILES)

    ran = policyeng("test", "--policy", ".", "--junit", "j.xml", folder=tmp_path)
    as_json = json.loads(policyeng("test", "--policy", ".", "--format", "json", folder=tmp_path).stdout)

    assert ran.returncode == 1
    assert (
        "FAIL data.acme.words_test.test_not_filled: the result is undefined\n  acme/words_test.rego:7\n" in ran.stdout
    )
    assert 'FAIL data.acme.words_test.test_sizes: the cases fail: "long"\n' in ran.stdout
    assert (
        'acme/words_test.rego:27: data.acme.words_test.test_long: size of long long <undefined> {"a": {1, "b"}}\n'
        in ran.stderr
    )
    assert ran.stdout.endswith("7 passed, 10 failed, 1 skipped\n")
    assert {"file": "acme/words_test.rego", "line": 23, "outcome": "failed"}.items() <= as_json["tests"][7].items()
    assert '<testcase classname="data.acme.words_test" name="test_twice#01" file="acme/words_test.rego" line="23">' in (
        tmp_path / "j.xml"
    ).read_text(encoding="utf-8")


def test_modules_of_tests_are_not_evaluated_by_check(tmp_path: Path) -> None:
    """One that does not compile stops `test` alone."""
    folder = write(tmp_path, {**FILES, "acme/words_test.rego": "package w_test\ntest_a if nothing.like.this(1)\n"})

    assert policyeng("bundle", "verify", str(folder)).returncode == 0
    ran = policyeng("test", "--policy", str(folder))

    assert ran.returncode == 2
    assert "words_test.rego:2:11: rego_type_error: undefined function" in ran.stderr


def test_a_policy_that_prints_is_refused_elsewhere(tmp_path: Path) -> None:
    """The message names the place."""
    folder = write(tmp_path, {"acme/named/named.rego": POLICY.replace("\tnot", '\tprint("a")\n\tnot')})

    ran = policyeng("check", "samples/workspaces/regulated.json", "--policy", str(folder))

    assert ran.returncode == 2
    assert "named.rego:17:2: rego_compile_error: print is for tests: remove the call" in ran.stderr


#: Rules of which parts are never reached: heads beside conditions on one line, terms on several lines, else, every.
REACHED = """package parts

deny contains "f" if foo

deny contains "g" if { foo
  bar }

foo if 1 == 2

bar if true

qux := {
  "x": 1,
  "y": {z |
    some z in [1]
    z == 2
  },
}

double(x) if x > 1

half if { 1 == 1; false; 3 == 3 }

otherwise if {
  1 == 1
} else := 3 if 2 == 2

default limit := 4

limit := 5 if {
  1 == 2
  some w in [
    1,
    2,
  ]
  w == 1
} else := {
  "a": 1,
}

chosen := x if { x := 1 } else := 7

every_part if { every y in [1, 2] { y > 5 } }

members[name] := {
  "name": name,
} if some name in ["a", "b"]

test_a if {
  not deny.f
  not deny.g; bar
  not double(0)
  not half
  otherwise
  limit.a == 1
  chosen == 1
  not every_part
  count(members) == 2
}

todo_test_b if false
"""


def test_coverage_counts_the_lines_of_opa(opa: Path, tmp_path: Path) -> None:
    """Covered and not covered, on one line and on several, for tests in the file of the rules and in their own."""
    tests = "package t_test\n\nimport data.acme.words\n\ntest_a if words.filled(words.size)\n"
    tests += '\ntest_b if words.size("abcd") == "long"\n\ntest_c if not words.empty with input.words as ["a"]\n'
    files = {
        **FILES,
        "acme/words_test.rego": tests.replace("words.size)", 'words.size("abcde"))'),
        "parts.rego": REACHED,
    }
    folder = write(tmp_path, files)

    session = covered_session(folder)
    report = opa_test(opa, "--coverage", str(folder))["files"]

    for file, lines in coverage_of(session).items():
        assert lines.missed == rows(report[file].get("not_covered", []))
        assert lines.covered == rows(report[file].get("covered", []))


def covered_session(folder: Path) -> Session:
    """The session of all tests of a folder, which ran."""
    session = open_session(load_bundle(folder), print, cover=True)
    list(run_unit_tests(session))
    return session


@pytest.mark.slow
def test_coverage_of_our_library_is_that_of_opa(opa: Path) -> None:
    """OPA names what ran in a bundle `policies/lib/x.rego`."""
    session = open_session(load_bundle(), print, cover=True)
    list(run_unit_tests(session))
    missed = coverage_of(session)
    report = opa_test(opa, "--coverage", "--bundle", str(built_in_root()))["files"]

    library = [file for file in missed if "/lib/" in file]
    assert len(library) > 10
    for file in library:
        reached = [found for name, found in report.items() if name.endswith(f"lib/{Path(file).name}")]
        lines = lines_of(parse_module(file, Path(file).read_text(encoding="utf-8")))
        assert not missed[file].missed
        assert lines <= {row for found in reached for row in rows(found.get("covered", []))}


def rows(spans: list[dict[str, dict[str, int]]]) -> list[int]:
    """The lines of spans."""
    return sorted({row for span in spans for row in range(span["start"]["row"], span["end"]["row"] + 1)})


def test_lines_that_nothing_reaches_fail_the_run(tmp_path: Path) -> None:
    """They are printed by file, as ranges; the library that is lent is not the bundle's own."""
    tests = 'package acme.words_test\n\ntest_short if data.acme.words.size("a") == "short"\n'
    write(tmp_path, {**FILES, "acme/words_test.rego": tests})

    ran = policyeng("test", "--policy", ".", "--coverage", folder=tmp_path)
    as_json = json.loads(policyeng("test", "--policy", ".", "--coverage", "--format", "json", folder=tmp_path).stdout)

    assert ran.returncode == 1
    assert ran.stdout == (
        "acme/named/named.rego: no test covers lines 16-17\n"
        "acme/words.rego: no test covers lines 3-4, 7, 11, 15, 17, 19\n"
        "2 of 11 lines covered, 18.18 %\n"
        "1 passed, 0 failed\n"
    )
    assert as_json["coverage"]["missed"]["acme/named/named.rego"] == [16, 17]


def test_a_selection_takes_the_unit_tests_in_the_folder_of_its_policies(tmp_path: Path) -> None:
    """Those of the library belong to no policy."""
    own = "package acme.named_test\n\ntest_own if true\n"
    write(tmp_path, {**FILES, "acme/named/named_test.rego": own})

    ran = policyeng("test", "--policy", ".", "--select", "ORG-UNIT-001", "-v", folder=tmp_path)

    assert ran.stdout == "ok   data.acme.named_test.test_own\n1 passed, 0 failed\n"


@pytest.mark.parametrize("text", ["# print(x)\n", "x := 1\n"])
def test_plain_bundles_keep_their_compiled_program(text: str, tmp_path: Path) -> None:
    """Only one that prints or has unit tests is compiled again."""
    from policyeng.testing.rego_tests import needs_session

    assert not needs_session(
        load_bundle(write(tmp_path, {"acme/named/named.rego": POLICY, "acme/words.rego": f"{WORDS}\n{text}"}))
    )


def write_tests(folder: Path, *, tests: str, file: str = "main.rego") -> Path:
    """A bundle of one module of unit tests and nothing else."""
    return write(folder, {file: f"package main\n\n{tests}\n"})


@pytest.mark.parametrize(
    ("package", "name"),
    [
        ("main.style", "data.main.style.test_a"),
        ('lib["a.b"]["messy-rule_test"]', 'data.lib["a.b"]["messy-rule_test"].test_a'),
        ('lib["with space"]["é"].in', 'data.lib["with space"]["é"]["in"].test_a'),
    ],
)
def test_names_are_those_of_opa(package: str, name: str, opa: Path, tmp_path: Path) -> None:
    """In the text, in JSON and in JUnit, whatever the package is called."""
    folder = write(tmp_path, {"a_test.rego": f"package {package}\n\ntest_a if 1 == 2\n"})

    ran = policyeng("test", "--policy", str(folder), "--junit", str(tmp_path / "j.xml"), "-r", "a$")

    assert f"FAIL {name}: the result is undefined\n" in ran.stdout
    assert outcomes_of(folder) == outcomes_of_opa(opa, str(folder)) == {(name, 3): "failed"}
    package_name = name.removesuffix(".test_a").replace('"', "&quot;")
    assert f'<testcase classname="{package_name}" name="test_a"' in (tmp_path / "j.xml").read_text(encoding="utf-8")


FAILING = [
    ('x := {"a": [1, 2]}\n\ty := x.a[1]\n\ty == 3', 6, "y == 3", {"y": "2"}),
    ("some x in [1, 2, 3]\n\tx > 1\n\tx > 3", 6, "x > 3", {"x": "3"}),
    ("b == 3\n\tb = a\n\ta = 4", 4, "b == 3", {"b": "4"}),
    ('rule.a with input as {"v": 2}', 4, 'rule.a with input as {"v": 2}', {"rule.a": "undefined"}),
    ("not double(1) == 2", 4, "not double(1) == 2", {"double(1)": "2"}),
    ("x := double(input.x)", 4, "x := double(input.x)", {"double(input.x)": "undefined", "input.x": "undefined"}),
    ('every k, v in {"a": 1, "b": 2} {\n\t\tk != ""\n\t\tv < 2\n\t}', 6, "v < 2", {"v": "2"}),
    ("every v in [1, 2] { v < input.most } with input.most as 2", 4, "v < input.most", {"v": "2", "input.most": "2"}),
    ("x := {1, 2}\n\tcount({y | some y in x; y > 1}) == 2", 5, None, {"count({y | some y in x; y > 1})": "1"}),
    ('input.a == 1 with input as {"a": to_number("2")}', 4, None, {"input.a": "2"}),
]


@pytest.mark.parametrize(("body", "line", "text", "values"), FAILING)
def test_a_failing_test_shows_the_expression_and_its_values(
    body: str, line: int, text: str | None, values: dict[str, str], tmp_path: Path
) -> None:
    """As `opa test --verbose --var-values`: the first one without a solution, with what it names."""
    rules = 'double(x) := 2 * x\n\nrule[name] := input.v if {\n\tname := "a"\n\tinput.v == 1\n}\n'
    folder = write_tests(tmp_path, tests=f"test_a if {{\n\t{body}\n}}\n\n{rules}")

    for _ in ("compiled", "stored"):
        (test,) = run_unit_tests(open_session(load_bundle(folder, require_policies=False), print))

        assert test.expression is not None
        assert (test.expression.line, test.expression.values) == (line, values)
        assert text is None or test.expression.text == text


def test_a_failing_case_shows_its_own_expression(tmp_path: Path) -> None:
    """With the values of the case; a test with several keys has a case for each pair."""
    tests = 'test_sizes[note][side] if {\n\tsome note, tc in {"one": {"l": 1}, "two": {"l": 1, "r": 3}}\n'
    folder = write_tests(tmp_path, tests=f"{tests}\tsome side, size in tc\n\tsize < 3\n}}")

    ran = policyeng("test", "--policy", str(folder))

    assert ran.stdout.startswith('FAIL data.main.test_sizes: the cases fail: "two", "r"\n')
    assert f'  "two", "r":\n    {folder}/main.rego:6: size < 3\n      size: 3\n' in ran.stdout
    assert ran.stdout.endswith("2 passed, 1 failed\n")


@pytest.mark.parametrize("file", ["main.rego", "main_test.rego", "lib/deep/words.rego"])
def test_tests_in_any_file_run_and_need_no_policy(file: str, opa: Path, tmp_path: Path) -> None:
    """A library has no rule that denies; its tests are those that OPA finds."""
    tests = 'test_right if {\n\ttrue\n}\n\ntest_wrong if {\n\t"a" == lower("B")\n}'
    folder = write_tests(tmp_path, tests=tests, file=file)

    ran = policyeng("test", "--policy", str(folder), "--verbose")

    assert ran.returncode == 1
    assert "ok   data.main.test_right\n" in ran.stdout
    assert ran.stdout.endswith("1 passed, 1 failed\n")
    assert outcomes_of(folder) == outcomes_of_opa(opa, str(folder))


V0_POLICY = 'package main\n\ndeny[msg] {\n\tinput.a\n\tmsg := "a"\n}\n'


@pytest.mark.parametrize(
    ("tests", "manifest"),
    [
        ('test_a {\n\tdeny["a"] with input as {"a": 1}\n}', None),
        ('test_a if {\n\tdeny["a"] with input as {"a": 1}\n}', None),
        ('import rego.v1\n\ntest_a if {\n\tdeny["a"] with input as {"a": 1}\n}', None),
        ('test_a { deny["a"] with input as {"a": 1} }', {"rego_version": 0}),
        (
            'test_a if { deny["a"] with input as {"a": 1} }',
            {"rego_version": 0, "file_rego_versions": {"/t_test.rego": 1}},
        ),
    ],
)
def test_tests_are_read_in_the_version_that_policies_are(
    tests: str, manifest: dict[str, object] | None, tmp_path: Path
) -> None:
    """The manifest says it, or `import rego.v1`; else what reads as v1 is v1, and other modules are v0."""
    files = {"main.rego": V0_POLICY, "t_test.rego": f"package main\n\n{tests}\n"}
    if manifest is not None:
        files[".manifest"] = json.dumps(manifest)
    folder = write(tmp_path, files)

    ran = policyeng("test", "--policy", str(folder))

    assert (ran.returncode, ran.stdout) == (0, "1 passed, 0 failed\n"), ran.stderr


def test_a_test_that_reads_as_no_version_names_its_place(tmp_path: Path) -> None:
    """As a policy does."""
    folder = write(tmp_path, {"main.rego": V0_POLICY, "t_test.rego": "package main\n\ntest_a {{\n"})

    ran = policyeng("test", "--policy", str(folder))

    assert ran.returncode == 2
    assert "the module cannot be compiled: " in ran.stdout
    assert "t_test.rego:3" in ran.stdout


def test_a_pattern_selects_tests_by_name(tmp_path: Path) -> None:
    """It is one of RE2, may match anywhere in the name, and leaves out the cases of policies."""
    write(tmp_path, FILES)

    ran = policyeng("test", "--policy", ".", "-r", r"words_test\.test_(filled|twice#01)$", "-v", folder=tmp_path)
    none = policyeng("test", "--policy", ".", "--run", "nothing", folder=tmp_path)
    wrong = policyeng("test", "--policy", ".", "--run", "(", folder=tmp_path)

    assert "ok   data.acme.words_test.test_filled\n" in ran.stdout
    assert ran.stdout.endswith("1 passed, 1 failed\n")
    assert (none.returncode, wrong.returncode) == (3, 3)
    assert "no Rego test has a name that `nothing` matches" in none.stderr
    assert "`(` is not a regular expression" in wrong.stderr


@pytest.mark.parametrize(("threshold", "code"), [("18.19", 1), ("18.18", 0), ("0", 0), ("100", 1)])
def test_a_threshold_for_coverage(threshold: str, code: int, tmp_path: Path) -> None:
    """Lines that are missed do not fail a run above it."""
    tests = 'package acme.words_test\n\ntest_short if data.acme.words.size("a") == "short"\n'
    write(tmp_path, {**FILES, "acme/words_test.rego": tests})

    ran = policyeng("test", "--policy", ".", "--coverage-threshold", threshold, folder=tmp_path)

    assert ran.returncode == code
    assert "2 of 11 lines covered, 18.18 %\n" in ran.stdout


def test_compiled_tests_are_stored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The second run compiles nothing; a change of a test, of a policy or of data does."""
    monkeypatch.setenv("POLICYENG_CACHE_DIR", str(tmp_path / "cache"))
    folder = write(tmp_path / "bundle", FILES)
    compiled: list[int] = []

    def counted_link(*parts: Any, **named: Any) -> Program:
        compiled.append(1)
        return link(*parts, **named)

    monkeypatch.setattr(rego_tests, "link", counted_link)

    def outcomes() -> tuple[dict[tuple[str, int], str], int]:
        compiled.clear()
        bundle = load_bundle(folder)
        session = open_session(bundle, print, cover=True)
        found = {(test.name, test.line): test.outcome for test in run_unit_tests(session)}
        return found | {(file, 0): str(lines) for file, lines in coverage_of(session).items()}, len(compiled)

    monkeypatch.setattr(rego_tests, "_explain", lambda *_: None)
    first, times = outcomes()

    assert times == 1
    assert outcomes() == (first, 0)
    for file, text in (("acme/words_test.rego", f"{TESTS}\ntest_more if true\n"), ("acme/words.rego", f"{WORDS}\n#\n")):
        (folder / file).write_text(text, encoding="utf-8")
        assert outcomes()[1] == 1
    (folder / "data.json").write_text('{"a": 1}', encoding="utf-8")
    assert outcomes()[1] == 1


def test_a_bundle_without_tests_has_to_compile(tmp_path: Path) -> None:
    """An undefined function is an error although nothing is tested."""
    folder = write(tmp_path, {"main.rego": "package main\n\ndeny contains 1 if nothing.like.this(1)\n"})

    for command in ("test", "policies list"):
        ran = policyeng(*command.split(), "--policy", str(folder))

        assert ran.returncode == 2
        assert "main.rego:3:" in ran.stderr
        assert "undefined function" in ran.stderr
