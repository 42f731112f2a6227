"""`policyeng policies new`: what it writes compiles, decides nothing, and once filled in is a policy like any other."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import pytest

from policyeng.bundle import load_bundle
from policyeng.bundle.scaffold import Scaffold, Subject, next_id
from policyeng.cli import run
from policyeng.errors import UsageError
from policyeng.testing.runner import run_cases
from tests import test_policies
from tests.bundles import write

#: What an author changes in a scaffold, by language; the rule is that a cluster keeps no more than one node.
FIELD = "/properties/properties/scaleSettings/minNodeCount"
FILLED = {
    "rego": {
        'description: ""': "description: '\"Idle nodes cost money.\"'",
        "where: {}": "where: {/properties/computeType: [AmlCompute]}",
        "remediation: null": "remediation: {text: Set the minimum number of nodes to 1.}",
        'source: ""': 'source: 001 "Cost"',
        "parameters: {}": "parameters: {most: {type: integer, default: 1}}",
        '"the problem"': '"idle nodes are kept"',
        '"/properties/x"': f'"{FIELD}"',
        '"the required value"': "input.parameters.most",
        'found == "a forbidden value"': "found > input.parameters.most",
        '["properties", "x"], null': '["properties", "properties", "scaleSettings", "minNodeCount"], 0',
    },
    "python": {
        'description=""': "description='\"Idle nodes cost money.\"'",
        'judges=["Microsoft.MachineLearningServices/workspaces/computes"]': 'judges=[{"type": '
        '"Microsoft.MachineLearningServices/workspaces/computes", "where": {"/properties/computeType": '
        '["AmlCompute"]}}]',
        "remediation=None": 'remediation="Set the minimum number of nodes to 1."',
        'source=""': "source='001 \"Cost\"'",
        "parameters={}": 'parameters={"most": {"type": "integer", "default": 1}}',
        '"the problem"': '"idle nodes are kept"',
        '"/properties/x", actual': f'"{FIELD}", actual',
        '"the required value"': 'given.parameters["most"]',
        'found == "a forbidden value"': 'found > given.parameters["most"]',
        'given.resource.get("properties")': 'given.resource["properties"]["properties"]["scaleSettings"]',
        'within.get("x") if isinstance(within, dict) else None': 'within.get("minNodeCount", 0)',
    },
}
NOT_WRITTEN = {"rego": "# Remove this", "python": "    # Remove this"}
CASES = """\
baseline: compute_cluster
absent: {FIELD: pass, /properties/computeType: not_judged}
pass:
  just under: {patch: {properties: {properties: {scaleSettings: {minNodeCount: 1}}}}}
fail:
  just over: {patch: {properties: {properties: {scaleSettings: {minNodeCount: 2}}}}, path: FIELD}
  as the parameter says:
    patch: {properties: {properties: {scaleSettings: {minNodeCount: 4}}}}
    parameters: {most: 3}
    path: FIELD
"""


class Ran(NamedTuple):
    """What a run in this process came to."""

    code: int
    out: str
    err: str


def ran(folder: Path, *arguments: str) -> Ran:
    """Run the command line in a folder."""
    with chdir(folder), redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        code = run(arguments)
    return Ran(code, out.getvalue(), err.getvalue())


def new(folder: Path, *arguments: str) -> Ran:
    """Run `policies new` in a folder."""
    return ran(folder, "policies", "new", *arguments)


@pytest.mark.parametrize("language", ["rego", "python"])
def test_a_policy_that_is_filled_in_is_one_like_any_other(tmp_path: Path, language: str) -> None:
    """Until then its cases fail; then they pass, and so does what every built-in policy has to fulfil."""
    made = new(tmp_path, "cost/idle_nodes", "--language", language, "--id", "AML-COST-901", "--severity", "low")
    assert (made.code, made.err) == (0, "")
    command = shlex.split(made.out.splitlines()[-1])
    unwritten = ran(tmp_path, *command[1:])
    assert (unwritten.code, unwritten.out.splitlines()[-1]) == (1, "1 passed, 3 failed")
    folder = tmp_path / "policies" / "cost" / "idle_nodes"
    file = folder / ("idle_nodes.rego" if language == "rego" else "idle_nodes.py")
    text = file.read_text(encoding="utf-8").partition(NOT_WRITTEN[language])[0].rstrip() + "\n"
    for before, after in FILLED[language].items():
        assert before in text, before
        text = text.replace(before, after)
    file.write_text(text, encoding="utf-8")
    (folder / "cases.yaml").write_text(CASES.replace("FIELD", FIELD), encoding="utf-8")

    written = ran(tmp_path, *command[1:])
    policy = load_bundle(tmp_path / "policies").policies[0]

    assert (written.code, written.out) == (0, "5 passed, 0 failed\n")
    test_policies.test_the_header_is_complete(policy)
    test_policies.test_there_are_passing_and_failing_cases(policy)
    test_policies.test_id_folder_and_package_are_one_name(policy)


@pytest.mark.parametrize("evaluates", ["workload", "approval", "microsoft.machinelearningservices/WORKSPACES", ""])
@pytest.mark.parametrize("language", ["rego", "python"])
def test_what_is_written_is_formatted_and_decides_nothing(
    tmp_path: Path, opa: Path, root: Path, language: str, evaluates: str
) -> None:
    """It compiles for OPA strictly, is formatted as OPA does, and no case passes, whatever it evaluates."""
    choice = ("--judges", evaluates) if evaluates else ()
    made = new(tmp_path, "acme/a_policy", "--language", language, "--title", 'He said "a: b": c\\d', *choice)
    runs = list(run_cases(load_bundle(tmp_path / "policies")))
    ruff = (sys.executable, "-m", "ruff")
    options = ("--config", str(root / "pyproject.toml"), "--no-cache", str(tmp_path))
    commands: list[tuple[str, ...]] = [
        (str(opa), "fmt", "--fail", str(tmp_path)),
        (str(opa), "check", "--strict", str(tmp_path / "policies")),
    ]
    if language == "python":
        commands = [(*ruff, "format", "--check", *options), (*ruff, "check", *options)]

    assert made.code == 0
    assert [run.expected for run in runs] == ["pass", "fail", "fail", "unknown"]
    assert all("found unknown: this policy is not written yet" in run.reason for run in runs[:3])
    assert runs[3].reason == ""
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("idle",), "`idle` is not AREA/NAME"),
        (("a/b/c",), "is not AREA/NAME"),
        (("Acme/Idle-Nodes",), "`acme/idle_nodes` would do"),
        (("1/2",), "`a_1/a_2` would do"),
        (("acme/import",), "`acme/import_` would do"),
        (("acme/class",), "`acme/class_` would do"),
        (("lib/idle",), "`lib` holds something else than policies"),
        (("acme/idle_test",), "would be taken for a test"),
        (("acme/idle", "--id", "idle"), "`id`: an id is upper-case parts"),
        (("acme/idle", "--id", "T-A-1"), "present/a/b/b.rego: the id `T-A-1` is already in use"),
        (
            ("acme/idle", "--severity", "hgh"),
            "unknown severity `hgh`; did you mean `high`; choose from info",
        ),
        (("High/idle",), "`high/idle` would do"),
        (("high/idle",), "`high` is a severity"),
        (("acme/" + "x" * 101,), "xxx…` has 101 characters, and a name has at most 100"),
        (("x" * 300 + "/idle",), "has 300 characters"),
        (("acme/idle", "--title", "one\ntwo"), "contains a line break"),
        (("acme/idle", "--title", "one\x1b[31m"), "the title `one\\u001b[31m` contains"),
        (("acme/idle", "--language", "go"), "choose from rego, python"),
        (("acme/idle", "--judges", "workloads"), "did you mean `workload`"),
        (("acme/idle", "--title", "x" * 151), "`title`"),
        (("a/b",), "present/a/b: the directory already exists"),
        (("acme/idle", "--policy", "present/a/b/b.rego"), "not a directory"),
        (("file/idle",), "cannot write the policy"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_written(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    """A wrong use: exit 3, with what would do."""
    write(tmp_path / "present", {"a/b/b.rego": "#   id: T-A-1\n", "file": ""})
    before = sorted(tmp_path.rglob("*"))
    made = new(tmp_path, *arguments, *(() if "--policy" in arguments else ("--policy", "present")))

    assert (made.code, made.out) == (3, "")
    assert message in made.err
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("files", "where"),
    [
        ({}, "policies/acme/idle"),
        ({".manifest": "{}"}, "acme/idle"),
        ({"a/b/b.rego": "# METADATA\n# custom:\n#   id: T-A-1\npackage a.b\n"}, "acme/idle"),
        ({"policies/a/b/b.rego": "#   id: T-A-1\n", "tests/lib/lib.py": "x = 1\n"}, "policies/acme/idle"),
    ],
)
def test_where_a_policy_goes(tmp_path: Path, files: dict[str, str], where: str) -> None:
    """Into the current directory when it is a bundle or has policies, else into `policies`."""
    new(write(tmp_path, files), "acme/idle")

    assert (tmp_path / where / "cases.yaml").is_file()


@pytest.mark.parametrize(
    ("area", "in_area", "elsewhere", "directory", "identity"),
    [
        ("network", ["AML-NET-001", "AML-NET-104", "X-Y-900"], ["AML-ISO-101"], "policies", "AML-NET-105"),
        ("training", [], ["AML-ISO-101", "AML-NET-001", "X-NET-001"], "policies", "AML-TRN-001"),
        ("network", [], ["ACME-NET-0099"], "policies", "ACME-NET-0100"),
        ("network", [], [], "acme-rules", "ACME-NET-001"),
        ("own_area", [], [], "policies", "ORG-OWNAREA-001"),
        ("network", ["main"], [], "1st", "ORG-NET-001"),
        ("network", ["A-NET-999"], [], "x", "A-NET-1000"),
    ],
)
def test_the_next_free_id(area: str, in_area: list[str], elsewhere: list[str], directory: str, identity: str) -> None:
    """After the highest of the area; the owner is that of the directory, by its policies or by its name."""
    assert next_id(area, in_area, elsewhere, directory) == identity


@pytest.mark.parametrize("language", ["rego", "Python"])
@pytest.mark.parametrize(
    ("evaluates", "present", "absent"),
    [
        ("Workload", ("/purpose", "realtime-inference"), "computeType"),
        ("approval", ("/status", "granted"), "computeType"),
        ("Microsoft.MachineLearningServices/workspaces/computes", ("/properties/computeType", "AmlCompute"), "purpose"),
        ("Microsoft.MachineLearningServices/workspaces", ("/properties/x",), "computeType"),
    ],
)
def test_examples_are_of_what_is_evaluated(
    tmp_path: Path, language: str, evaluates: str, present: tuple[str, ...], absent: str
) -> None:
    """How to narrow it; options are taken in any letters."""
    made = new(tmp_path, "acme/a", "--judges", evaluates, "--language", language, "--severity", "HIGH")
    (rule,) = (path for path in (tmp_path / "policies/acme/a").iterdir() if path.stem == "a")
    text = rule.read_text(encoding="utf-8")

    assert made.code == 0
    assert [word for word in present if word not in text] == []
    assert absent not in text
    assert load_bundle(tmp_path / "policies").policies[0].header.severity == "high"


def test_a_baseline_that_is_not_there_comes_with_a_remedy(tmp_path: Path) -> None:
    """The scaffold for a type without a baseline names one that has to be made."""
    new(tmp_path, "acme/a", "--judges", "Microsoft.Search/searchServices", "--policy", ".")
    tested = ran(tmp_path, "test", "--policy", ".")

    assert tested.code == 2
    assert "no baseline is called `search_services`" in tested.err
    assert "put a compliant resource into `baselines/search_services.json` of the policies" in tested.err


def test_an_id_is_found_without_running_anything(tmp_path: Path) -> None:
    """In Rego and in Python, in quotes or not; a module that would fail is only looked at."""
    files = {
        "acme/a/a.rego": '# METADATA\n# custom:\n#   id: "X-ACME-007"\npackage acme.a\n',
        "acme/b/b.py": 'raise SystemExit\n@policy(\n    id="X-ACME-011",\n)\n',
    }
    assert "X-ACME-012 is a template" in new(write(tmp_path, files), "acme/c").out


@pytest.mark.parametrize(
    ("roots", "path", "after", "message"),
    [
        ('["lib", "acme"]', "acme/x", '["lib", "acme"]', ""),
        ('[""]', "acme/x", '[""]', ""),
        ('["lib", "acme"]', "new/x", '["lib", "acme", "new"]', "added `new` to the roots in .manifest"),
        ('["lib",\n  "acme"\n]', "new/x", '["lib",\n  "acme",\n  "new"\n]', "added `new`"),
        ("[]", "new/x", '["new"]', "added `new`"),
        ('["acme/y"]', "acme/x", '["acme/y", "acme/x"]', "added `acme/x`"),
        ('["acme/[a]"]', "new/x", '["acme/[a]"]', "add `new` to the `roots` in .manifest"),
    ],
)
def test_a_manifest_that_leaves_the_area_out(tmp_path: Path, roots: str, path: str, after: str, message: str) -> None:
    """It gets the area, where nothing but that changes; else a message states it, as OPA refuses what lies outside."""
    manifest = '{"revision": "7.1", "roots": ROOTS, "metadata": {"a": [1]}}'
    write(tmp_path, {".manifest": manifest.replace("ROOTS", roots)})
    made = new(tmp_path, path)

    assert (tmp_path / ".manifest").read_text(encoding="utf-8") == manifest.replace("ROOTS", after)
    assert message in made.out
    assert message or "root" not in made.out
    assert load_bundle(tmp_path).policies[0].header.since == "7.1"


def test_what_is_lacking_is_reported(tmp_path: Path) -> None:
    """A type that no baseline has, and a signature that is no longer valid."""
    write(tmp_path, {".manifest": "{}", ".signatures.json": "{}"})
    other = new(tmp_path, "acme/a", "--judges", "Microsoft.Search/searchServices")
    close = new(tmp_path, "acme/b", "--judges", "Microsoft.MachineLearningServices/workspaces/compute")
    stem = "Microsoft.Search/searchServices/x"
    resource = {
        "id": f"/subscriptions/s/resourceGroups/g/providers/{stem}",
        "type": "Microsoft.Search/searchServices",
    }
    write(tmp_path, {"baselines/search_services.json": json.dumps({**resource, "properties": {}})})

    assert "for the test cases, add a compliant one to baselines/search_services.json" in other.out
    assert "did you mean `Microsoft.MachineLearningServices/workspaces/computes`" in close.out
    assert "the directory is signed; sign it again" in other.out
    bundle = load_bundle(tmp_path)
    assert len(list(run_cases(bundle.only(bundle.policies[:1])))) == 4


def test_a_title_that_yaml_or_python_would_read_otherwise_stays_a_title(tmp_path: Path) -> None:
    """Quotes, words of YAML, signs of structure: the header has it as it was given."""
    for number, title in enumerate(("null", "a: b", "x # y", 'it\'s \\ "q"', "Größe", "- a", "{b}")):
        for language in ("rego", "python"):
            scaffold = Scaffold(
                "acme",
                "p",
                "rego" if language == "rego" else "python",
                "T-A-1",
                title,
                "low",
                Subject("workload", "baseline: online_deployment"),
            )
            folder = write(tmp_path / f"{language}{number}", scaffold.files())

            assert load_bundle(folder).policies[0].header.title == title
    with pytest.raises(UsageError, match="title"):
        Scaffold("acme", "p", "rego", "T-A-1", "", "low", Subject("workload", "")).files()
