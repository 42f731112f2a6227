"""The OSCAL report follows NIST's schema for assessment results.

`tests/oscal/oscal_assessment-results_schema.json` is that of OSCAL 1.1.2 as published; works of NIST are in the public
domain in the United States.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft7Validator

from policyeng import evaluate
from policyeng.bundle import load_bundle
from policyeng.models import Evaluation, JsonObject
from policyeng.report.oscal import render, token_of
from tests.bundles import snapshot, workspace, write
from tests.report_samples import SAMPLES
from tests.test_frameworks import AS_OF, DOCUMENT, FILES, evidence, result

#: Python's expressions have no classes of Unicode properties.
_TEXT = (Path(__file__).parent / "oscal" / "oscal_assessment-results_schema.json").read_text("utf-8")
SCHEMA = json.loads(_TEXT.replace(r"\\p{L}", r"[^\\W\\d_]").replace(r"\\p{N}", r"\\d"))
VALIDATOR = Draft7Validator(SCHEMA)


def faults(document: JsonObject) -> list[str]:
    """The errors of the schema."""
    return [f"{list(error.absolute_path)}: {error.message}" for error in VALIDATOR.iter_errors(document)]


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory: pytest.TempPathFactory) -> Evaluation:
    """An evaluation with a framework that has every status but `accepted`."""
    folder = tmp_path_factory.mktemp("oscal")
    bundle = load_bundle(write(folder / "bundle", FILES))
    given = snapshot(workspace(), evidence=[evidence("T-DECL-1", statement="two\nlines")])
    found = evaluate(bundle, given, as_of=AS_OF)
    return found.model_copy(update={"frameworks": (result(bundle, folder, given),)})


def test_the_schema_refuses_something() -> None:
    """So that a valid report means something."""
    assert faults({"assessment-results": {"uuid": "1"}})


@pytest.mark.parametrize("name", list(SAMPLES))
def test_every_sample_is_valid(name: str) -> None:
    """Without frameworks there are observations alone."""
    document = json.loads(render(SAMPLES[name]))
    assert not faults(document)
    assert "findings" not in document["assessment-results"]["results"][0]


def test_controls_are_findings(evaluation: Evaluation) -> None:
    """Only controls about which policies found something are, and our objective is the satisfied one."""
    document = json.loads(render(evaluation))
    assert not faults(document)
    (shown,) = document["assessment-results"]["results"]
    found = {one["target"]["target-id"]: one["target"]["status"] for one in shown["findings"]}
    assert found == {
        "c-fail_checked-by-policies": {"state": "not-satisfied", "reason": "fail"},
        "c-err_checked-by-policies": {"state": "not-satisfied", "reason": "other"},
        "c-ask_checked-by-policies": {"state": "not-satisfied", "reason": "other"},
        "c-pass_checked-by-policies": {"state": "satisfied", "reason": "pass"},
        "c-read_checked-by-policies": {"state": "satisfied", "reason": "pass"},
    }
    selected = shown["reviewed-controls"]["control-selections"][0]["include-controls"]
    assert len(selected) == len(DOCUMENT["controls"])
    known = {one["uuid"] for one in shown["observations"]}
    assert all(link["observation-uuid"] in known for one in shown["findings"] for link in one["related-observations"])


def test_the_same_evaluation_gives_the_same_bytes(evaluation: Evaluation) -> None:
    """Identifiers follow from the content."""
    assert render(evaluation) == render(evaluation)


@pytest.mark.parametrize(
    ("control", "token"), [("AC-2(1)", "ac-2.1"), ("164.312(a)(2)(i)", "_164.312.a.2.i"), ("A.8.20", "a.8.20")]
)
def test_ids_become_tokens(control: str, token: str) -> None:
    """As NIST's catalogues write them."""
    assert token_of(control) == token
