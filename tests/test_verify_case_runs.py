"""The tests of absent fields, and what cases are observed to read."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

import pytest

from policyeng.bundle import load_bundle
from policyeng.errors import BundleError
from policyeng.models import JsonObject
from policyeng.testing.runner import run_cases, without
from tests.bundles import rego, workspace, write

POLICY = """# METADATA
# title: t
# custom:
#   id: T-1
#   severity: low
#   judges: [TYPE]
#   inspects: [POINTER]
#   when_absent: fail
package a

deny contains {"msg": "m", "path": "/series"} if input.resource.approvedBy == null
"""


def test_an_absent_test_leaves_out_what_an_approval_states(tmp_path: Path) -> None:
    """A pointer of an approval is left out of it; one that no approval is without is named."""
    made = {
        pointer: load_bundle(
            write(
                tmp_path / name,
                {
                    "area/a/a.rego": POLICY.replace("TYPE", "approval").replace("POINTER", pointer),
                    "area/a/cases.yaml": "judged: A-1\npass: {x: {}}",
                },
            )
        )
        for name, pointer in (("there", "/approvedBy"), ("required", "/status"))
    }

    assert [(run.name, run.reason) for run in run_cases(made["/approvedBy"])] == [("x", ""), ("absent /approvedBy", "")]
    with pytest.raises(BundleError, match="`/status` cannot be left out"):
        list(run_cases(made["/status"]))


def test_an_absent_test_needs_its_approval_in_any_letters(tmp_path: Path) -> None:
    """An approval that is not stated is an error, and never a test of nothing."""
    for approval, message in (("a-1", ""), ("A-2", "no approval has the id `A-2`")):
        bundle = load_bundle(
            write(
                tmp_path / approval,
                {
                    "area/a/a.rego": POLICY.replace("TYPE", "approval").replace("POINTER", "/approvedBy"),
                    "area/a/cases.yaml": f"judged: {approval}\npass: {{}}",
                },
            )
        )
        if message:
            with pytest.raises(BundleError, match=message):
                list(run_cases(bundle))
        else:
            assert [run.reason for run in run_cases(bundle)] == [""]


@pytest.mark.parametrize(
    ("pointer", "left"),
    [
        ("/tags/*/x", {"tags": {"owner": "o", "a/b": {"y": 1}}, "list": [{"x": 1}, 7, [2]]}),
        ("/tags/a~1b/x", {"tags": {"owner": "o", "a/b": {"y": 1}}, "list": [{"x": 1}, 7, [2]]}),
        ("/tags/*", {"tags": {}, "list": [{"x": 1}, 7, [2]]}),
        ("/list/*/x", {"tags": {"owner": "o", "a/b": {"x": 1, "y": 1}}, "list": [{}, 7, [2]]}),
        ("/list/1", {"tags": {"owner": "o", "a/b": {"x": 1, "y": 1}}, "list": [{"x": 1}, [2]]}),
        ("/list/2/0", {"tags": {"owner": "o", "a/b": {"x": 1, "y": 1}}, "list": [{"x": 1}, 7, []]}),
        ("/nowhere/x", {"tags": {"owner": "o", "a/b": {"x": 1, "y": 1}}, "list": [{"x": 1}, 7, [2]]}),
    ],
)
def test_the_value_at_a_pointer_is_left_out(pointer: str, left: JsonObject) -> None:
    """A star means every member, a tilde for its character; what has no members stays as it is."""
    document = {"tags": {"owner": "o", "a/b": {"x": 1, "y": 1}}, "list": [{"x": 1}, 7, [2]]}

    assert without(document, pointer) == left
    assert document == {"tags": {"owner": "o", "a/b": {"x": 1, "y": 1}}, "list": [{"x": 1}, 7, [2]]}


def test_a_case_states_what_could_not_be_read(tmp_path: Path) -> None:
    """`incomplete` reaches the policy, and other cases of the file have none."""
    text = rego("a", 'deny contains {"msg": "m"} if count(input.snapshot.incomplete) > 0')
    cases = 'baseline: workspace\npath: ""\npass: {whole: {}}\nfail: {cut: {incomplete: ["roles: forbidden"]}}\n'
    bundle = load_bundle(write(tmp_path, {"area/a/a.rego": text, "area/a/cases.yaml": cases}))
    assert [(run.name, run.reason) for run in run_cases(bundle)] == [("whole", ""), ("cut", "")]


UNPINNED = """from policyeng import Denial, policy


@policy(id="T-A-1", title="t", severity="low", judges=["Microsoft.MachineLearningServices/workspaces"])
def check(given):
    if BODY:
        yield Denial("m", path="/tags")
"""
CASES = """
    baseline: workspace
    pass:
      tagged: {patch: {tags: {owner: a, empty: {}}}}
"""


@pytest.mark.parametrize(
    ("body", "name", "reason"),
    [
        ("not given.resource['tags']['owner']", "absent /tags/owner", "fix the policy, which ends in an error"),
        (
            "not given.resource.get('tags', {}).get('owner')",
            "absent /tags/owner",
            "add this line to `absent` in the cases: `/tags/owner: fail`",
        ),
        ("type(given.resource).__name__ != 'ReadOnlyDict'", "absent", "while reads are recorded"),
    ],
)
def test_what_cases_read_and_do_not_pin_is_reported(tmp_path: Path, body: str, name: str, reason: str) -> None:
    """With the line to add, or that the policy fails without the field, or that reads cannot be recorded."""
    files = {
        "area/p/p.py": UNPINNED.replace("BODY", body),
        "area/p/cases.yaml": dedent(CASES),
        "baselines/workspace.json": json.dumps(workspace("w")),
    }
    runs = [run for run in run_cases(load_bundle(write(tmp_path, files))) if run.reason]

    assert [run.name for run in runs] == [name]
    assert reason in runs[0].reason
