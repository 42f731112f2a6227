"""Every path by which an estate is evaluated decides the same."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from policyeng.bundle import Bundle, load_bundle
from policyeng.bundle.cases import DEFAULT_AS_OF
from policyeng.models import JsonObject
from policyeng.verify.generators.examples import Example, examples_of
from policyeng.verify.laws.law import LawContext, Trial, Violation
from tests.bundles import deny_when, rego, snapshot, workspace, write
from tests.laws import paths
from tests.laws.paths import PATHS, violated

pytestmark = pytest.mark.slow

BROKEN = Path(__file__).parent / "broken" / "paths"


def tried(grounds: LawContext, document: JsonObject, parameters: JsonObject | None = None) -> Violation | None:
    """The result of the law for an estate."""
    return violated(Trial(grounds, Example(document, parameters or {}, DEFAULT_AS_OF), "1"))


def alike(grounds: LawContext) -> set[str]:
    """The paths that evaluated alike."""
    return {name for name in PATHS if grounds.remarks[f"paths: examples evaluated alike by `{name}`"]}


@pytest.mark.slow
def test_every_path_decides_the_same_of_our_policies() -> None:
    """An example with parameters, an exemption and every path."""
    grounds = LawContext(load_bundle())
    # Admission does not try the first two: there are names that ARM spells otherwise.
    examples = (example for example in islice(examples_of(grounds.bundle, 5), 2, 40) if example.parameters)
    trial = Trial(grounds, next(examples), "exempted")

    assert violated(trial) is None
    assert alike(grounds) == set(PATHS)


def test_a_policy_that_looks_at_the_directory_is_found() -> None:
    """It is lenient here, where there is a `pyproject.toml`, and strict where the process runs."""
    violation = tried(LawContext(load_bundle(BROKEN)), {"resources": [workspace()]})

    assert violation is not None
    assert (violation.policy, violation.message) == ("BROKEN-PATHS", "`policyeng check FILE` gives other findings")
    assert '"outcome": "pass"' in violation.lines[0]
    assert '"outcome": "fail"' in violation.lines[1]


@pytest.mark.slow
def test_what_the_reader_refuses_is_refused_on_every_path(tmp_path: Path) -> None:
    """One resource is none, so `load_snapshot` raises, the processes exit 2, and the rest is evaluated alike."""
    text = rego("a", deny_when("input.resource.properties.x == 1"))
    grounds = LawContext(load_bundle(write(tmp_path, {"area/a/a.rego": text})))

    assert tried(grounds, {"resources": [workspace(x=1), {"id": "none", "type": "x/y"}]}) is None
    assert alike(grounds) == set(PATHS) - {"policyeng.evaluate", "policyeng.admit"}


def test_the_process_is_given_directories_data_selection_and_parameters(tmp_path: Path) -> None:
    """Each decides a finding, so a path without it would differ."""
    parameters = """parameters: {limit: {type: object, default: {}}}"""
    by_parameter = rego("a", deny_when("input.parameters.limit.of[0] == input.resource.properties.x"), more=parameters)
    by_data = rego("b", deny_when("data.words[_] == input.resource.properties.x"), identity="T-A-2")
    unwanted = rego("c", deny_when("true"), identity="T-A-3")
    files = {
        f"area/{name}/{name}.rego": text for name, text in zip("abc", (by_parameter, by_data, unwanted), strict=True)
    }
    (tmp_path / "words.json").write_text('{"words": [7]}')
    whole = load_bundle(write(tmp_path / "bundle", files), data=[tmp_path / "words.json"])
    grounds = LawContext(whole.only(policy for policy in whole.policies if policy.id != "T-A-3"))
    given = {"T-A-1": {"limit": {"of": [7, 'a "quoted"\n\x7f text', {"deep": True}]}}}
    trial = Trial(grounds, Example({"resources": [workspace(x=7)]}, given, DEFAULT_AS_OF), "1")

    assert [(finding.policy, finding.outcome) for finding in trial.evaluation.findings] == [
        ("T-A-1", "fail"),
        ("T-A-2", "fail"),
    ]
    assert violated(trial) is None
    assert alike(grounds) == set(PATHS)


def test_a_bundle_that_no_process_can_be_given_is_reported(tmp_path: Path) -> None:
    """One that was made in memory is evaluated here alone, and the run reports it."""
    read = load_bundle(write(tmp_path, {"area/a/a.rego": rego("a", deny_when("true"))}))
    made: Bundle = replace(read, digest="another")
    grounds = LawContext(made)

    assert tried(grounds, {"resources": [workspace()]}) is None
    assert alike(grounds) == {"policyeng.evaluate", "policyeng.load_snapshot", "policyeng.admit"}
    message = "paths: `policyeng check` was not tried as a process: the bundle is not that of its directories"
    assert message in grounds.remarks


def test_a_path_that_leaves_out_a_resource_in_silence_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A snapshot without one of the resources of the file has one finding less."""
    grounds = LawContext(load_bundle(write(tmp_path, {"area/a/a.rego": rego("a", deny_when("true"))})))
    monkeypatch.setattr(paths, "load_snapshot", lambda *_, **__: snapshot(workspace("one")))
    violation = tried(grounds, {"resources": [workspace("one"), workspace("two")]})

    assert violation is not None
    assert violation.message == "`policyeng.load_snapshot` gives other findings"


def test_documents_are_evaluated_alike(tmp_path: Path) -> None:
    """Policies of others evaluate the file as it was written, on every path that has a file."""
    text = "package main\nimport rego.v1\ndeny contains msg if {\n\tcount(input.resources) > 0\n\tmsg := `found`\n}\n"
    grounds = LawContext(load_bundle(write(tmp_path, {"policy/a.rego": text})))

    assert tried(grounds, {"resources": [workspace()]}) is None
    assert alike(grounds) == set(PATHS) - {"policyeng.evaluate", "policyeng.admit"}
