"""Python policies cannot change what they share, print into no report, and yield no more than a limit."""

from __future__ import annotations

import io
import json
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from policyeng import evaluate
from policyeng.bundle import load_bundle
from policyeng.bundle.python_output import printing_to_standard_error
from policyeng.cli import run
from policyeng.engines.python import MOST_YIELDED, input_of
from policyeng.evaluation import EvaluationOptions, evaluate_prepared
from policyeng.evaluation.changing_snapshot import ChangingSnapshot
from policyeng.evaluation.context import prepare
from policyeng.evaluation.prepared_snapshot import Becomes
from policyeng.models import Finding, Outcome, Snapshot
from policyeng.sources import load_snapshot
from tests.bundles import snapshot, workspace, write
from tests.conftest import ROOT
from tests.test_cli import file

AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
POLICY = """
{before}
from policyeng import Denial, Unknown, policy
@policy(id="{identity}", title="t", severity="low", judges=["Microsoft.MachineLearningServices/workspaces"],
        parameters={{"words": {{"type": "array", "default": ["a"]}}}})
def rule(given):
    {body}
"""


def python(body: str, identity: str = "T-A-1", before: str = "") -> str:
    """Return the text of a policy; its body yields."""
    return POLICY.format(identity=identity, body=body.replace("\n", "\n    "), before=before)


def findings(folder: Path, *bodies: str, given: Snapshot | None = None) -> list[Finding]:
    """Return the findings of policies on a workspace."""
    files = {f"p/p{at}.py": python(body, f"T-A-{at}") for at, body in enumerate(bodies)}
    given = given or snapshot(workspace("a", size={"x": [1]}))
    return list(evaluate(load_bundle(write(folder, files)), given, as_of=AS_OF).findings)


MUTATIONS = [
    'given.resource["properties"] = {}',
    'given.resource["properties"]["size"]["x"].append(2)',
    'given.resource["properties"].update(size=1)',
    'del given.resource["properties"]["size"]',
    'given.workspace["properties"].clear()',
    'given.parameters["words"].append("b")',
    'given.parameters["words"] = []',
    "given.snapshot.resources.clear()",
    "given.snapshot.resources[0].clear()",
    "given.snapshot.by_id.clear()",
    'given.snapshot.by_type["x"] = []',
    "next(iter(given.snapshot.by_type.values())).clear()",
    "given.snapshot.by_scope.clear()",
    "given.snapshot.by_host.clear()",
    "next(iter(given.snapshot.by_scope.values())).clear()",
    "next(iter(next(iter(given.snapshot.by_scope.values())).values())).clear()",
    "given.snapshot.by_series.clear()",
    "given.snapshot.approvals.append({})",
    'given.snapshot.approvals[0]["scope"] = "/"',
    "given.snapshot.quotas.clear()",
    "given.snapshot.metrics.clear()",
    "given.snapshot.principals.clear()",
    "given.snapshot.incomplete.clear()",
    "given.snapshot.workloads.clear()",
    'given.snapshot.workloads[0]["model"].clear()',
    'given.facts.role("Owner").permissions[0].clear()',
    "given.resource = {}",
    "given.snapshot.resources = []",
]
APPROVAL = {
    "id": "1",
    "kind": "vmSeries",
    "series": "NC",
    "scope": "/subscriptions/s",
    "status": "granted",
    "approvedBy": "x",
    "grantedAt": "2026-01-01T00:00:00Z",
    "expiresAt": "2027-01-01T00:00:00Z",
}
WORKLOAD = {"id": "w", "workspaceId": workspace("a")["id"], "purpose": "training", "model": {"memoryGiB": 1}}


@pytest.mark.parametrize("statement", MUTATIONS)
def test_a_policy_that_changes_its_input_gets_an_error_and_changes_nothing(tmp_path: Path, statement: str) -> None:
    """Another policy, evaluated before and after it, sees the same."""
    look = (
        "import json\nview = given.snapshot\nfacts = [*given.facts.role('Owner').permissions]\n"
        "seen = [given.resource, given.parameters, view.resources, view.by_id, view.by_type, view.by_scope, facts]\n"
        "seen += [view.by_host, view.by_series, view.approvals, view.incomplete, view.workloads]\n"
        "yield Denial(msg=json.dumps(seen))"
    )
    given = snapshot(workspace("a", size={"x": [1]}), approvals=[APPROVAL], workloads=[WORKLOAD])

    first, error, last = findings(tmp_path, look, f"{statement}\nyield Denial(msg='unnoticed')", look, given=given)

    assert error.outcome is Outcome.ERROR
    assert error.policy == "T-A-1"
    assert "read-only" in str(error.unknowns) or "cannot assign to field" in str(error.unknowns)
    assert first.denials == last.denials


def test_policies_may_change_copies_and_report_what_they_read(tmp_path: Path) -> None:
    """Also with the views themselves in denials: these are plain values."""
    body = (
        "import copy\n"
        "mine = copy.deepcopy(given.resource)\nmine['properties']['size']['x'].append(2)\n"
        "yield Denial(msg='m', actual=given.resource['properties'], expected=mine['properties'])"
    )

    (finding,) = findings(tmp_path, body)

    (denial,) = finding.denials
    assert (denial.actual, denial.expected) == ({"size": {"x": [1]}}, {"size": {"x": [1, 2]}})
    assert type(denial.actual) is dict


def test_what_is_seen_after_a_change_is_read_only_too(tmp_path: Path) -> None:
    """A decision shares most of what was prepared before it, and replaces the rest."""
    bundle = load_bundle(write(tmp_path, {"p/p.py": python("yield Denial(msg='m')")}))
    state = ChangingSnapshot(prepare(bundle, snapshot(workspace("a"), workspace("b"))))
    for changes in ({"a": workspace("a", x=[1])}, {"c": workspace("c", x=[1])}, {"b": None}):
        becomes = {str(workspace(name)["id"]).lower(): Becomes(after) for name, after in changes.items()}
        rows = state.rows(becomes)
        with state.changed(rows, state.differences(rows)) as context:
            view, _ = input_of(context.work(AS_OF))
            assert view.by_id
            assert view.by_scope
            shared: list[Any] = [view.by_id, view.by_type, view.by_scope, view.resources, view.workloads]
            shared += [*view.by_id.values(), *view.by_scope.values(), *view.by_type.values()]
            for each in shared:
                with pytest.raises(TypeError, match="read-only"):
                    each.clear()
            for resource in view.resources:
                with pytest.raises(TypeError, match="read-only"):
                    resource["properties"].clear()


@pytest.mark.parametrize(
    "statement",
    ["print('noise')", "import sys; sys.stdout.write('noise')", "from sys import stdout; stdout.write('noise')"],
)
@pytest.mark.parametrize("at_import", [False, True])
def test_what_a_policy_prints_reaches_no_report(
    tmp_path: Path, statement: str, *, at_import: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """It goes to standard error, when the module runs as when it is called."""
    body = "yield Denial(msg='m')" if at_import else f"{statement}\nyield Denial(msg='m')"
    text = python(body, before=statement if at_import else "")
    write(tmp_path / "policies", {"p/p.py": text})
    given = file(tmp_path, workspace("a"))

    assert run(["check", str(given), "--policy", str(tmp_path / "policies"), "--format", "json"]) == 1

    printed = capsys.readouterr()
    assert [finding["outcome"] for finding in json.loads(printed.out)["findings"]] == ["fail"]
    assert "noise" in printed.err


def test_threads_leave_standard_output_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever of them is the first in and the last out."""
    output, error = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", output)
    monkeypatch.setattr(sys, "stderr", error)
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with printing_to_standard_error:
            inside.set()
            leave.wait(60)

    thread = threading.Thread(target=other)
    with printing_to_standard_error:
        thread.start()
        inside.wait(60)
    assert sys.stdout is error
    leave.set()
    thread.join()

    assert sys.stdout is output


ENDLESS = (
    "while True:\n    yield Denial(msg='m')",
    "while True:\n    yield Unknown(msg='m')\n    yield Denial(msg='m')",
)


@pytest.mark.parametrize("body", ENDLESS)
def test_a_policy_that_yields_for_ever_is_an_error(tmp_path: Path, body: str) -> None:
    """Its memory is bounded, and the others are evaluated."""
    bounded, other = findings(tmp_path, body, "yield Denial(msg='m')")

    assert (bounded.outcome, other.outcome) == (Outcome.ERROR, Outcome.FAIL)
    assert bounded.unknowns[0].msg.startswith(f"the policy yielded more than {MOST_YIELDED} denials and unknowns")


@pytest.mark.parametrize("more", [0, 1])
def test_as_many_as_the_limit_are_kept(tmp_path: Path, more: int) -> None:
    """One more is an error."""
    (finding,) = findings(tmp_path, f"for n in range({MOST_YIELDED + more}):\n    yield Denial(msg=str(n))")

    assert finding.outcome is (Outcome.ERROR if more else Outcome.FAIL)


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "samples" / "workspaces").glob("*.json")))
def test_the_policies_that_come_with_policyeng_change_no_input(name: str) -> None:
    """They read the same objects as Rego; a copy is made for policies of others only."""
    bundle = load_bundle()
    context = prepare(bundle, load_snapshot(ROOT / "samples" / "workspaces" / name))
    before = orjson.dumps(context.estate.document, option=orjson.OPT_SORT_KEYS)

    evaluate_prepared(context, EvaluationOptions(AS_OF))

    assert not bundle.has_own_python
    assert input_of(context.work(AS_OF))[1][0] is context.estate.documents[0]
    assert orjson.dumps(context.estate.document, option=orjson.OPT_SORT_KEYS) == before
