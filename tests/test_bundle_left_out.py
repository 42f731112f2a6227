"""Bundles of others: builtins that fail are undefined, and modules that cannot be compiled are left out by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from policyeng import evaluate
from policyeng.bundle import load_bundle
from policyeng.engines import OpaOptions
from policyeng.errors import BundleError, EngineError
from policyeng.models import Evaluation
from policyeng.rego import EvaluationError, parse_module
from policyeng.rego.linking import link
from policyeng.rego.values import UNDEFINED, to_text
from policyeng.sources import load_snapshot
from tests.bundles import write
from tests.command import policyeng
from tests.conftest_binary import AS_OF

OURS = """# METADATA
# title: A machine is named
# custom:
#   id: ORG-UNIT-001
#   severity: low
#   judges: [document]
#   remediation: Name it.
#   source: a rule
package acme.named

deny contains "no number" if to_number(input.resource.a) == 1
"""


def evaluated(folder: Path, files: dict[str, str], document: object, **options: object) -> Evaluation:
    """The evaluation of one document with the policies of a folder."""
    write(folder / "p", files)
    write(folder / "in", {"x.json": json.dumps(document)})
    snapshot = load_snapshot(folder / "in/x.json", documents=True, resources=False)
    return evaluate(load_bundle(folder / "p"), snapshot, as_of=AS_OF, **options)  # type: ignore[arg-type]


def outcomes(evaluation: Evaluation) -> dict[str, str]:
    """By policy, the outcome with its reason."""
    return {
        finding.policy: " ".join(
            [str(finding.outcome), *(entry.msg for entry in (*finding.denials, *finding.unknowns))]
        )
        for finding in evaluation.findings
    }


#: Expressions with a builtin that fails, and the value that OPA gives where that is undefined.
FAILING = {
    "to_number(input.text)": "undefined",
    "[y | some x in [1, input.text, 3]; y := abs(x)]": "[1, 3]",
    "substring(input.number, 0, 1)": "undefined",
    "input.text + 1": "undefined",
    "1 / input.zero": "undefined",
    "contains(input.number, input.text)": "undefined",
    "startswith(input.number, input.text)": "undefined",
    "lower(input.number)": "undefined",
    'object.get(input.text, "a", 1)': "undefined",
    "count(input.number)": "undefined",
    'regex.match("[", input.text)': "undefined",
    'concat(",", [lower(input.number), input.text])': "undefined",
    "[double(x) | some x in [1, input.text]]": "[2]",
    'array.concat([1], [object.get(input.text, "a", 1)])': "undefined",
    '{"a": upper(input.number)}': "undefined",
    "json.unmarshal(input.text)": "undefined",
}


@pytest.mark.parametrize("expression", FAILING)
def test_a_builtin_that_fails_is_undefined_in_lenient_files(expression: str) -> None:
    """Inlined or not; `not` of it is true, and it is counted; in other files it is an error."""
    rules = f"package p\n\na := {expression}\n\nb if not c\n\nc if {expression}\n\ndouble(x) := 2 * x\n"
    document = {"text": "q", "number": 1, "zero": 0}
    program = link([parse_module("m.rego", rules, 1)], {}, lenient={"m.rego"})

    value = program.query("data.p.a", document)

    assert ("undefined" if value is UNDEFINED else to_text(value)) == FAILING[expression]
    assert len(program.thread().ignored) == 1
    assert program.query("data.p.b", document) is (True if value is UNDEFINED else UNDEFINED)
    for _ in range(2):  # what failed is not remembered
        program.query("data.p.a", document)
        assert len(program.thread().ignored) == 1
    with pytest.raises(EvaluationError):
        link([parse_module("m.rego", rules, 1)], {}).query("data.p.a", document)


LENIENT = {"main.rego": 'package main\n\ndeny contains "a" if not to_number(input.a)\n'}


def test_a_refused_builtin_stays_an_error_in_lenient_files() -> None:
    """It is no builtin that fails, so `not` of it is not true."""
    rules = "package p\n\na if not b\n\nb if time.now_ns() == 1\n"
    program = link([parse_module("m.rego", rules, 1)], {}, lenient={"m.rego"}, has_time=True)

    with pytest.raises(EvaluationError, match=r"time\.now_ns is refused"):
        program.query("data.p.a")


#: Calls for which OPA may have a value, and this engine has none; `DEEP` is a value that is nested deeply.
UNSUPPORTED = {
    "a class of characters of Go": r"regex.match(`\p{Letter}`, input.a)",
    "the same in a variable": r"regex.match(input.pattern, input.a)",
    "whether it is a pattern": r"regex.is_valid(input.pattern)",
    "bytes of a character": 'replace(input.a, "", "-")',
    "a number beyond floats": 'sprintf("%v", [2e308])',
    "the zone of the machine": 'time.clock([0, "Local"])',
    "a remote schema": 'json.match_schema({}, {"$ref": "https://example.org/schema"})',
    "networks of two families": 'net.cidr_merge(["0.0.0.0/0", "::1:0:0:0/96"])',
    "a deep text": "json.unmarshal(input.deep)",
    "a deep value": "json.marshal(input.nested)",
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_what_only_opa_evaluates_stays_an_error_in_lenient_files(name: str) -> None:
    """To take it for undefined would be another value than OPA's, without a word."""
    rules = f"package p\n\na if not b\n\nb if x := {UNSUPPORTED[name]}\n\nc := {UNSUPPORTED[name]}\n"
    program = link([parse_module("m.rego", rules, 1)], {}, lenient={"m.rego"})
    nested: list[Any] = []
    for _ in range(5000):
        nested = [nested]
    document = {"a": "é", "pattern": r"\p{Letter}", "deep": "[" * 20_000 + "]" * 20_000, "nested": nested}

    for rule in ("a", "b", "c"):
        with pytest.raises(EvaluationError):
            program.query(f"data.p.{rule}", document)
    assert not program.thread().ignored


@pytest.mark.parametrize("engine", ["embedded", "opa"])
@pytest.mark.parametrize(
    ("files", "outcome"),
    [
        (LENIENT, "fail a"),
        ({**LENIENT, ".manifest": '{"metadata": {"policyeng": {"builtin_errors": "undefined"}}}'}, "fail a"),
        ({**LENIENT, ".manifest": '{"metadata": {"policyeng": {"builtin_errors": "error"}}}'}, "error "),
    ],
)
def test_the_manifest_chooses_what_a_failing_builtin_is(
    files: dict[str, str], outcome: str, engine: str, opa: Path, tmp_path: Path
) -> None:
    """By default it is undefined, as for the tools that the policies are written for."""
    evaluation = evaluated(tmp_path, files, {"a": "x"}, engine=engine, opa=OpaOptions(binary=opa))

    assert outcomes(evaluation)["main.deny"].startswith(outcome)
    problems = [problem.message for problem in evaluation.problems if problem.kind == "builtin_errors"]
    assert len(problems) == (outcome == "fail a" and engine == "embedded")
    assert all("to_number 1 (1 in all)" in problem for problem in problems)


@pytest.mark.parametrize("jobs", [1, 2])
def test_errors_are_counted_alike_in_several_processes(jobs: int, tmp_path: Path) -> None:
    """Also those of rules that do not read the input, which are evaluated once."""
    rules = 'package main\n\ndeny contains "a" if {\n\tnot fixed\n\tnot to_number(input.a)\n}\n\n'
    write(tmp_path / "p", {"main.rego": f'{rules}fixed if to_number("x") == 1\n'})
    write(tmp_path / "in", {f"{number}.json": '{"a": "x"}' for number in range(7)})
    snapshot = load_snapshot(tmp_path / "in", documents=True, resources=False)

    evaluation = evaluate(load_bundle(tmp_path / "p"), snapshot, as_of=AS_OF, jobs=jobs)

    assert [problem.message.count("to_number 14 (14 in all)") for problem in evaluation.problems] == [1]


def test_our_policies_stay_strict(tmp_path: Path) -> None:
    """In a bundle with one of ours nothing is undefined that failed, and the manifest cannot change it."""
    assert outcomes(evaluated(tmp_path, {"named.rego": OURS}, {"a": "x"}))["ORG-UNIT-001"].startswith("error ")

    write(tmp_path / "p", {".manifest": '{"metadata": {"policyeng": {"builtin_errors": "undefined"}}}'})
    with pytest.raises(BundleError, match="they are strict"):
        load_bundle(tmp_path / "p")
    write(tmp_path / "p", {".manifest": '{"metadata": {"policyeng": {"builtin_errors": "no"}}}'})
    with pytest.raises(BundleError, match="write one of undefined, error"):
        load_bundle(tmp_path / "p")


WHOLE = 'package main\n\ndeny contains "whole" if input.a\n'


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ("package other\n\ndeny contains 1 if {\n", "b.rego:3:21: rego_parse_error: "),
        ('package other\n\ndeny contains 1 if http.send({"url": "x"})\n', "b.rego:3:20: rego_type_error: http.send"),
        ("package other\n\ndeny contains 1 if nothing(1)\n", "b.rego:3:20: rego_type_error: undefined function"),
        ("package other\n\ndeny contains x if true\n", "b.rego:3:15: rego_unsafe_var_error: "),
        ('package other\n\ndeny contains 1 if "a" == 1\n', "b.rego:3:20: rego_type_error: match error"),
        ("package other\n\n# METADATA\n# title: [\ndeny contains 1 if {\n", "b.rego:5:21: rego_parse_error: "),
    ],
)
def test_a_module_that_cannot_be_compiled_is_an_error(broken: str, reason: str, tmp_path: Path) -> None:
    """It names file and line; the rest of the bundle runs, now and from the cache."""
    for _ in ("compiled", "stored"):
        evaluation = evaluated(tmp_path, {"a.rego": WHOLE, "b.rego": broken}, {"a": 1})

        found = outcomes(evaluation)
        assert found["main.deny"] == "fail whole"
        assert found["other.deny"].startswith("error the module cannot be compiled: ")
        assert reason in found["other.deny"]
        assert evaluation.exit_code == 2


def test_what_depends_on_it_is_left_out_too(tmp_path: Path) -> None:
    """By package, by import, by a name of the same package, and at one more remove; others are not."""
    files = {
        "lib.rego": "package lib\n\nfits(x) if http.send({}).x == x\n",
        "direct.rego": 'package direct\n\ndeny contains "a" if data.lib.fits(1)\n',
        "imported.rego": 'package imported\n\nimport data.lib as l\n\ndeny contains "a" if l.fits(1)\n',
        "local.rego": 'package lib\n\nwarn contains "a" if fits(1)\n',
        "further.rego": 'package further\n\ndeny contains "a" if count(data.direct.deny) > 0\n',
        "whole.rego": 'package whole\n\ndeny contains "a" if count(data.lib) > 0\n',
        "alone.rego": 'package alone\n\ndeny contains "a" if input.a\n',
        "sibling.rego": 'package lib\n\ndeny contains "a" if input.a\n',
    }

    found = outcomes(evaluated(tmp_path, files, {"a": 1}))

    assert {name for name, outcome in found.items() if outcome == "fail a"} == {"alone.deny", "lib.deny"}
    for name in ("direct.deny", "imported.deny", "lib.warn", "further.deny", "whole.deny"):
        assert "which is left out" in found[name]
        assert "http.send is refused" in found[name]


def test_a_rule_of_which_a_part_is_left_out_passes_nothing(tmp_path: Path) -> None:
    """What the other modules deny is denied; where they deny nothing, the rule is an error."""
    files = {"a.rego": WHOLE, "b.rego": 'package main\n\ndeny contains "part" if http.send({}).x\n'}

    denied, undecided = (outcomes(evaluated(tmp_path, files, {name: 1}))["main.deny"] for name in "ab")

    assert denied.startswith("fail whole the module cannot be compiled: ")
    assert undecided.startswith("error the module cannot be compiled: ")


@pytest.mark.parametrize(
    ("policy", "outcome", "line"),
    [
        ("main.deny", "fail", "undefined to_number(input.n) > 1"),
        ('hooks["test.target"].deny', "error", "The policy was not evaluated: the module cannot be compiled"),
        ('hooks["test.target"].sub.deny', "error", "The policy was not evaluated: the module cannot be compiled"),
        ("no_package.no-package", "error", "The policy was not evaluated: the module cannot be compiled"),
    ],
)
def test_findings_are_explained_where_modules_are_left_out(
    policy: str, outcome: str, line: str, tmp_path: Path
) -> None:
    """What is left is explained, with builtins that fail as undefined, and what is left out has its reason."""
    files = {
        "main.rego": 'package main\ndeny contains "n" if to_number(input.n) > 1\ndeny contains "k" if input.k == 1\n',
        "hook.rego": 'package hooks["test.target"]\ndeny contains "h" if nothing(input.n)\n',
        "sub.rego": 'package hooks["test.target"].sub\ndeny contains "s" if 1 = = 2\n',
        "no-package.rego": " no module (\n",
    }
    write(tmp_path / "p", files)
    document = tmp_path / "x.json"
    document.write_text('{"n": "text", "k": 1}', encoding="utf-8")

    done = policyeng("explain", "--policy", str(tmp_path / "p"), policy, str(document))

    assert f"{policy}  {outcome}" in done.stdout
    assert line in done.stdout


def test_a_library_without_dependents_is_a_problem(tmp_path: Path) -> None:
    """Nothing is silent, even if no policy needs it."""
    files = {"a.rego": WHOLE, "lib.rego": "package lib\n\nfits(x) if http.send({}).x == x\n"}
    evaluation = evaluated(tmp_path, files, {"a": 1})

    assert [(problem.kind, problem.level) for problem in evaluation.problems] == [("left_out", "error")]
    assert evaluation.exit_code == 2


def test_a_bundle_of_ours_is_refused_as_a_whole(tmp_path: Path) -> None:
    """Ours are written for this engine."""
    with pytest.raises(EngineError, match="undefined function"):
        evaluated(tmp_path, {"named.rego": OURS.replace("to_number", "nothing")}, {"a": "x"})
    with pytest.raises(BundleError, match="rego_parse_error"):
        evaluated(tmp_path, {"named.rego": OURS, "b.rego": "package b\n\ndeny contains {\n"}, {"a": "x"})


def test_what_is_left_out_is_in_the_way_of_lists_and_archives(tmp_path: Path) -> None:
    """They promise that everything can be evaluated; tests of what is left out are errors."""
    tests = 'package t_test\n\ntest_a if data.main.deny["whole"] with input.a as 1\n'
    lost = "package l_test\n\ntest_b if data.lib.fits(1)\n"
    library = "package lib\n\nfits(x) if http.send({}).x == x\n"
    folder = write(tmp_path, {"a.rego": WHOLE, "lib.rego": library, "t_test.rego": tests, "l_test.rego": lost})

    listed = policyeng("policies", "list", "--policy", str(folder))
    built = policyeng("bundle", "build", "--policy", str(folder), "--output", str(tmp_path / "b.tar.gz"))
    tested = policyeng("test", "--policy", str(folder), "-v")

    assert (listed.returncode, built.returncode, tested.returncode) == (2, 2, 2)
    assert "http.send is refused" in listed.stderr
    assert "ok   data.t_test.test_a\n" in tested.stdout
    assert "ERROR data.l_test.test_b: " in tested.stdout


@pytest.mark.parametrize(
    ("custom", "is_ours"),
    [
        ("{id: AWS-0086, aliases: [a], severity: HIGH, input: {selector: [{type: cloud}]}}", False),
        ("{id: KSV-0001, severity: LOW}", False),
        ("{id: AWS-0086, remediation: Fix it., controls: {cis: [a]}}", False),
        ("{id: ORG-A-001, severity: low, judges: [document]}", True),
        ("{id: ORG-A-001, severity: low, targets: [document]}", True),
        ("{id: ORG-A-001, when_absent: pass}", True),
        ("{id: ORG-A-001, inspects: [/a]}", True),
        ("{id: ORG-A-001, severity: low, judge: [document]}", True),
        ("{id: a, judges: [document]}", True),
    ],
)
def test_keys_tell_our_header_from_those_of_others(custom: str, is_ours: bool, tmp_path: Path) -> None:
    """An id of our form does not; a header of ours that lacks a key gets a message about it."""
    text = f'# METADATA\n# title: T\n# custom: {custom}\npackage main\n\ndeny contains "a" if input.kind\n'
    folder = write(tmp_path, {"main.rego": text})

    if "severity: low, judges" in custom or "targets" in custom:
        assert [policy.id for policy in load_bundle(folder).policies] == ["ORG-A-001"]
    elif is_ours:
        with pytest.raises(BundleError, match="header"):
            load_bundle(folder)
    else:
        assert [policy.id for policy in load_bundle(folder).policies] == ["main.deny"]


def test_a_forgotten_key_is_named(tmp_path: Path) -> None:
    """A module that reads what ours read, with an id and without `judges`."""
    text = OURS.replace("#   judges: [document]\n", "").replace("input.resource.a", "input.resource.properties.a")

    with pytest.raises(BundleError, match="its header has no `judges`"):
        load_bundle(write(tmp_path, {"main.rego": text}))
