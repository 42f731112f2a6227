"""The Python interface: what it loads, what it renders, and what it refuses."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import policyeng
from tests.command import policyeng as policyeng_command

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT / "samples" / "workspaces" / "regulated.json"
AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
POLICY = """\
# METADATA
# scope: package
# title: A cluster is small
# custom:
#   id: ACME-1
#   severity: low
#   judges: [Microsoft.MachineLearningServices/workspaces/computes]
package acme.small

deny contains {"msg": "the cluster is large", "path": "/properties/properties/scaleSettings/maxNodeCount"} if {
	input.resource.properties.properties.scaleSettings.maxNodeCount > 1
}
"""


@pytest.fixture(scope="module")
def bundle() -> policyeng.Bundle:
    """The built-in policies."""
    return policyeng.load_bundle()


@pytest.fixture(scope="module")
def evaluation(bundle: policyeng.Bundle) -> policyeng.Evaluation:
    """The evaluation of a sample."""
    return policyeng.evaluate(bundle, policyeng.load_snapshot(SAMPLE), as_of=AS_OF)


def test_a_parsed_document_gives_the_findings_of_its_file(
    bundle: policyeng.Bundle, evaluation: policyeng.Evaluation
) -> None:
    """Only the places in files differ."""
    document = json.loads(SAMPLE.read_text(encoding="utf-8"))
    found = policyeng.evaluate(bundle, policyeng.load_snapshot(document), as_of=AS_OF)
    assert [(one.policy, one.resource, one.outcome, one.denials) for one in found.findings] == [
        (one.policy, one.resource, one.outcome, one.denials) for one in evaluation.findings
    ]


def test_sources_of_both_kinds_are_merged(tmp_path: Path) -> None:
    """A list has paths and documents."""
    first, second = (
        {
            "id": f"/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/{name}",
            "type": "Microsoft.MachineLearningServices/workspaces",
            "location": "eastus",
            "properties": {},
        }
        for name in ("one", "two")
    )
    path = tmp_path / "one.json"
    path.write_text(json.dumps(first), encoding="utf-8")
    assert [one["id"] for one in policyeng.load_snapshot([path, second]).resources] == [first["id"], second["id"]]


def test_policies_load_from_texts() -> None:
    """A dict of texts is a directory in memory."""
    loaded = policyeng.load_bundle({"acme/small/small.rego": POLICY})
    found = policyeng.evaluate(loaded, policyeng.load_snapshot(SAMPLE), as_of=AS_OF)
    assert {one.policy for one in found.findings} == {"ACME-1"}
    assert {one.outcome for one in found.findings} == {policyeng.Outcome.FAIL, policyeng.Outcome.PASS}


def test_an_installed_package_of_policies_is_found_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its entry point names the Python package that contains the policies."""
    package = tmp_path / "acme_policies"
    (package / "acme" / "small").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "acme" / "small" / "small.rego").write_text(POLICY, encoding="utf-8")
    metadata = tmp_path / "acme_policies-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-policies\nVersion: 1.0\n", encoding="utf-8")
    (metadata / "entry_points.txt").write_text("[policyeng.policies]\nacme-rules = acme_policies\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert [one.id for one in policyeng.load_bundle("acme-rules").policies] == ["ACME-1"]

    assert "ACME-1" in policyeng_command("policies", "list", "--policy", "acme-rules").stdout


def test_an_evaluation_renders_itself(evaluation: policyeng.Evaluation, tmp_path: Path) -> None:
    """As dict, JSON, HTML, DataFrame and as a file of each suffix."""
    assert evaluation.to_dict() == json.loads(evaluation.to_json())
    assert evaluation.to_dict()["exitCode"] == 1
    assert evaluation.to_html().lstrip().lower().startswith("<!doctype html>")
    frame = evaluation.to_frame()
    assert len(frame) == len(evaluation.findings)
    assert set(frame["outcome"]) >= {"fail", "pass"}
    for suffix, start in ((".json", "{"), (".md", "#"), (".sarif", "{"), (".xml", "<?xml"), (".csv", "policy")):
        path = evaluation.save(tmp_path / f"report{suffix}")
        assert path.read_text(encoding="utf-8").lstrip("\ufeff").startswith(start), suffix
    assert evaluation.save(tmp_path / "report", format="json").read_text(encoding="utf-8") == evaluation.to_json()


def test_a_notebook_shows_a_summary(bundle: policyeng.Bundle, evaluation: policyeng.Evaluation) -> None:
    """Representations fit one line; the table of a notebook has the worst first, and no markup of resources."""
    snapshot = policyeng.load_snapshot(SAMPLE)
    for value in (bundle, snapshot, evaluation, evaluation.findings):
        assert len(repr(value)) < 160
    table = evaluation._repr_html_()
    assert table.index("critical") < table.index("medium")
    renamed = evaluation.model_copy(
        update={"findings": tuple(one.model_copy(update={"title": "<script>"}) for one in evaluation.others)}
    )
    assert "<script>" not in renamed._repr_html_()


def test_wrong_arguments_are_usage_errors(bundle: policyeng.Bundle) -> None:
    """They name the remedy."""
    api: Any = policyeng  # the types of its arguments are the subject
    snapshot = api.load_snapshot(SAMPLE)
    calls: list[Callable[[], object]] = [
        lambda: api.evaluate(bundle, snapshot, as_of=AS_OF.replace(tzinfo=None)),
        lambda: api.evaluate(bundle, snapshot, as_of="2026-01-01"),
        lambda: api.evaluate(bundle, snapshot, fail_on="severe"),
        lambda: api.evaluate(bundle, {"resources": []}),
        lambda: api.admit("policies", snapshot, "/id"),
        lambda: api.load_snapshot(3),
        lambda: api.load_snapshot({"resources": {1, 2}}),
        lambda: api.load_bundle(3),
        lambda: api.evaluate(bundle, snapshot, exemptions="exemptions.yaml"),
        lambda: api.admit(bundle, snapshot, "/id", exemptions=["E-1"]),
        lambda: api.admit(bundle, snapshot, "/id", modes="warn"),
        lambda: api.evaluate(bundle, snapshot, parameters=["AML-NET-001"]),
    ]
    for call in calls:
        with pytest.raises(api.UsageError) as raised:
            call()
        assert raised.value.remedy


@pytest.mark.parametrize("render", [lambda one: one.save("report.pdf"), lambda one: one.render("htm")])
def test_unknown_formats_are_usage_errors(evaluation: policyeng.Evaluation, render: Any) -> None:
    """The message lists those that exist."""
    with pytest.raises(policyeng.UsageError, match=r"json|html"):
        render(evaluation)


def test_the_notebook_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every code cell of the sample notebook, in order; the last expression of a cell has a representation."""
    monkeypatch.chdir(ROOT / "samples")
    cells = json.loads(Path("notebook.ipynb").read_text(encoding="utf-8"))["cells"]
    names: dict[str, Any] = {}
    shown = []
    for source in ("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"):
        *body, last = ast.parse(source).body
        assert isinstance(last, ast.Expr)
        exec(compile(ast.Module(body, []), "notebook", "exec"), names)  # noqa: S102  # our own notebook
        shown.append(eval(compile(ast.Expression(last.value), "notebook", "eval"), names))  # noqa: S307  # our own notebook
    assert [type(value).__name__ for value in shown] == ["tuple", "Evaluation", "Series", "Evaluation", "PosixPath"]
    assert shown[1].exit_code == 1
