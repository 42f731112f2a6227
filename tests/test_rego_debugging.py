"""Tracebacks and debuggers show the lines and names of Rego; typical mistakes have messages that help."""

from __future__ import annotations

import json
import os
import pdb
import re
import subprocess
import sys
import traceback
from io import StringIO
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from policyeng import rego
from policyeng.bundle import load_bundle
from policyeng.rego.linking import link
from tests.bundles import write
from tests.command import policyeng
from tests.conftest import ROOT

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGE = {found[1]: found[2] for found in BLOCK.finditer((ROOT / "docs/policy-authoring.md").read_text(encoding="utf-8"))}
PLACE = "acme/scale_to_zero/scale_to_zero.rego"
RULE = PAGE["rego"]
MODULE = """package p

size(given) := found if {
	found := given + 1
	found > 1
}

r := size(to_number(input.word))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The policy of the page with its cases."""
    return write(tmp_path, {PLACE: RULE, "acme/scale_to_zero/cases.yaml": PAGE["yaml"]})


@pytest.mark.slow
def test_the_session_of_the_page_is_what_pdb_prints(folder: Path) -> None:
    """Its commands, with the path of the file that is here."""
    commands = re.findall(r"^\(Pdb\) (.*)$", PAGE["text"], re.MULTILINE)
    options = PAGE["text"].partition("\n")[0].removeprefix("$ python ").split()
    session = "\n".join([*commands, 'p INPUT["resource"]["type"]', "quit", "quit", ""]).replace(
        "/policies", str(folder)
    )

    ran = subprocess.run(
        [sys.executable, *options], input=session, cwd=folder, capture_output=True, text=True, check=False
    )

    shown = [line.removeprefix("(Pdb) ") for line in ran.stdout.splitlines()]
    expected = re.findall(r"^(?:>|->|\d).*$", PAGE["text"].replace("/policies", str(folder)), re.MULTILINE)
    assert [line for line in shown if line in expected] == expected
    assert "'Microsoft.MachineLearningServices/workspaces/computes'" in ran.stdout


def test_a_breakpoint_stops_at_its_line_with_the_variables_of_rego(tmp_path: Path) -> None:
    """In a function that would be written in the place of its call otherwise."""
    file = str(write(tmp_path, {"p.rego": MODULE}) / "p.rego")
    program = link([rego.parse_module(file, MODULE)], {}, print_=lambda *_: None)
    output = StringIO()
    debugger = pdb.Pdb(stdin=StringIO("continue\np given, found\nwhere\ncontinue\n"), stdout=output, nosigint=True)
    debugger.use_rawinput = False
    debugger.set_break(file, 5)
    debugger.runcall(program.query, "data.p.r", {"word": "6"})

    assert f"{file}(5)" in output.getvalue()
    assert "found > 1" in output.getvalue()
    assert "(6, 7)" in output.getvalue(), output.getvalue()


def test_a_traceback_shows_the_line_of_rego(tmp_path: Path) -> None:
    """From the file, or from the text where there is no file, as in an archive."""
    for file in (str(write(tmp_path, {"p.rego": MODULE}) / "p.rego"), "bundle.tar.gz/p.rego"):
        program = rego.compile({file: MODULE})
        with pytest.raises(rego.EvaluationError) as raised:
            program.query("data.p.r", {"word": "x"})

        shown = "".join(traceback.format_exception(raised.value))
        assert f'File "{file}", line 8, in' in shown
        assert "    r := size(to_number(input.word))\n" in shown
        assert raised.value.text == "r := size(to_number(input.word))"
        assert raised.value.message.startswith("to_number: ")


def test_a_tracer_sees_the_lines_of_rego_that_are_evaluated() -> None:
    """As coverage.py does: not those after a condition that is not met."""
    module = "package p\n\nr if {\n\tinput.a == 1\n\tinput.b == 2\n\tinput.c == 3\n}\n"
    program = rego.compile({"/policies/p.rego": module})
    seen: set[int] = set()

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if event == "line" and frame.f_code.co_filename == "/policies/p.rego":
            seen.add(frame.f_lineno)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        program.query("data.p.r", {"a": 1, "b": 0, "c": 3})
    finally:
        sys.settrace(before)
    assert {4, 5} <= seen
    assert 6 not in seen


def test_compiled_policies_have_the_paths_of_their_files(folder: Path) -> None:
    """Those that debuggers look for; errors in reports name them within the bundle."""
    from policyeng.engines.embedded import compile_rego

    bundle = load_bundle(folder)
    files = {code.co_filename for code in compile_rego(bundle).compiled.code}

    assert str(folder / PLACE) in files
    assert bundle.places[PLACE] == str(folder / PLACE)


MISTAKES = {
    "missing brace": (
        "most\n}\n",
        "most\n",
        ":26:101: rego_parse_error: ",
        "hint: a `}` is missing for the one that line 22 opens",
    ),
    "misspelt key": ("severity:", "serverity:", ":7:5: unknown field `serverity`", "did you mean `severity`\n  #   "),
    "unknown builtin": (
        ":= object.get(",
        ":= object.gett(",
        ":27:9: rego_type_error: undefined function object.gett",
        "  kept := object.gett(input",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
@pytest.mark.parametrize("command", ["check", "test"])
def test_a_mistake_is_shown_where_it_is(name: str, command: str, folder: Path) -> None:
    """File, line, column, code, the line with a caret, and what to do, within 80 columns."""
    before, after, place, message = MISTAKES[name]
    write(folder, {PLACE: RULE.replace(before, after, 1)})
    inputs = [str(ROOT / "samples/workspaces/regulated.json")] if command == "check" else []

    ran = policyeng(command, *inputs, "--policy", ".", folder=folder)

    assert ran.returncode == 2
    assert f"{PLACE}{place}" in ran.stderr
    assert message in ran.stderr
    assert re.search(r"^ +\^$", ran.stderr, re.MULTILINE)
    assert "unsafe" not in ran.stderr
    assert all(len(line) < 80 for line in ran.stderr.splitlines() if line.startswith("  "))


def test_a_pointer_that_no_baseline_has_is_remarked_on(folder: Path) -> None:
    """With the one that was meant."""
    write(folder, {PLACE: RULE.replace('"minNodeCount"], 0', '"minNodesCount"], 0')})

    ran = policyeng("test", "--policy", ".", folder=folder)

    assert "reads `/properties/properties/scaleSettings/minNodesCount`, which no evaluated baseline has" in ran.stderr
    assert ran.stderr.endswith("did you mean `/properties/properties/scaleSettings/minNodeCount`\n")


def test_a_case_that_fails_names_its_line_and_what_it_changes(folder: Path) -> None:
    """So that the reader need not look for it."""
    write(folder, {"acme/scale_to_zero/cases.yaml": PAGE["yaml"].replace("minNodeCount: 1", "minNodeCount: 0")})

    ran = policyeng("test", "--policy", ".", folder=folder)

    assert "FAIL ACME-CLUSTER-001 one node stays: expected fail, found pass\n" in ran.stdout
    change = "{properties: {properties: {scaleSettings: {minNodeCount: 0}}}}"
    assert f"  acme/scale_to_zero/cases.yaml:8\n  input: compute_cluster, patch: {change}\n" in ran.stdout


def test_coverage_py_reports_lines_of_rego(tmp_path: Path) -> None:
    """With the plugin, as the page about the engine names it; files that nothing evaluates are reported, too."""
    program = (
        "from pathlib import Path\n\nfrom policyeng import rego\n\n"
        'file = Path("size.rego").resolve()\nprogram = rego.compile({str(file): file.read_text()})\n'
        'assert program.query("data.p.r", {"word": "0"}) is rego.UNDEFINED\n'
    )
    rules = MODULE + "\nother if {\n\tinput.word\n\tinput.more\n}\n"
    write(tmp_path, {"size.rego": rules, "more/unused.rego": "package q\n\nr if input.x\n", "run.py": program})
    write(tmp_path, {".coveragerc": "[run]\nplugins = policyeng.rego.coverage_plugin\nsource = .\n"})
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    for command in (["run", "run.py"], ["json", "-o", "coverage.json"]):
        subprocess.run([sys.executable, "-m", "coverage", *command], cwd=tmp_path, env=environ, check=True)
    files = json.loads((tmp_path / "coverage.json").read_text(encoding="utf-8"))["files"]
    assert {name: entry["missing_lines"] for name, entry in files.items()} == {
        "run.py": [],
        "size.rego": [11, 12],
        "more/unused.rego": [3],
    }
