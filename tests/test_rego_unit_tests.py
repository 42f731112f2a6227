"""`policyeng test` runs Rego unit tests with the results of `opa test`, and counts lines as its coverage does."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from policyeng.bundle import load_bundle
from policyeng.facts.catalogue import built_in_root
from policyeng.rego.syntax import lines_of
from policyeng.testing.rego_tests import lines_missed, open_session, run_unit_tests
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
    session = open_session(load_bundle(*paths), print)
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
    assert 'acme/words_test.rego:27: size of long long <undefined> {"a": {1, "b"}}\n' in ran.stderr
    assert ran.stdout.endswith("5 passed, 10 failed, 1 skipped\n")
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


def test_coverage_counts_the_lines_of_opa(opa: Path, tmp_path: Path) -> None:
    """Those that unit tests reach, and those that they do not."""
    tests = "package t_test\n\nimport data.acme.words\n\ntest_a if words.filled(words.many.a) == true\n"
    tests += '\ntest_b if words.size("abcd") == "long"\n\ntest_c if not words.empty with input.words as ["a"]\n'
    folder = write(tmp_path, {**FILES, "acme/words_test.rego": tests.replace("words.many.a)", 'words.size("abcde"))')})
    session = open_session(load_bundle(folder), print, cover=True)
    assert [test.outcome for test in run_unit_tests(session)] == ["passed"] * 3
    report = opa_test(opa, "--coverage", str(folder))["files"]

    for module in session.modules:
        if module.source.file.endswith("words.rego"):
            found = report[module.source.file]
            missed = lines_missed(session)[module.source.file]
            assert missed == rows(found["not_covered"]) == [9, 11, 17]
            assert lines_of(module) - set(missed) == set(rows(found["covered"])) - {18}


@pytest.mark.slow
def test_coverage_of_our_library_is_that_of_opa(opa: Path) -> None:
    """OPA names what ran in a bundle `policies/lib/x.rego`."""
    session = open_session(load_bundle(), print, cover=True)
    list(run_unit_tests(session))
    missed = lines_missed(session)
    report = opa_test(opa, "--coverage", "--bundle", str(built_in_root()))["files"]

    library = [module for module in session.modules if "/lib/" in module.source.file]
    assert len(library) > 10
    for module in library:
        reached = [found for name, found in report.items() if name.endswith(f"lib/{Path(module.source.file).name}")]
        assert module.source.file not in missed
        assert lines_of(module) <= {row for found in reached for row in rows(found.get("covered", []))}


def rows(spans: list[dict[str, dict[str, int]]]) -> list[int]:
    """The lines of spans."""
    return [row for span in spans for row in range(span["start"]["row"], span["end"]["row"] + 1)]


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
        "2 of 11 lines covered\n"
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
