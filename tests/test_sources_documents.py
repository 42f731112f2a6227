"""Inputs as documents: which files, which of their parts, and the reports about the others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from policyeng.bundle import load_bundle
from policyeng.errors import UsageError
from policyeng.evaluation import EvaluationOptions, evaluate
from policyeng.models import Document, Snapshot
from policyeng.sources import Inputs, read_inputs
from tests.bundles import deny_when, rego, workspace, write
from tests.conftest_binary import AS_OF

THEIRS = {"k/a.rego": 'package k\ndeny contains "bad" if input.bad'}


def documents(*paths: str | Path, stdin: bytes | None = None) -> Inputs:
    """Documents alone."""
    return read_inputs(paths, stdin=stdin, documents=True, resources=False)


def test_the_documents_of_a_stream_and_the_elements_of_a_list_are_evaluated_one_by_one(tmp_path: Path) -> None:
    """As Conftest does, with file and line; a list inside a stream is one document."""
    write(tmp_path, {"a.yaml": "# c\na: 1\n---\n\n- 1\n---\n", "b.yml": "- x\n-\n  k: 1\n", "c.json": "[\n1,\n{}]"})
    read = documents(tmp_path).snapshot.documents

    a, b, c = (str(tmp_path / name) for name in ("a.yaml", "b.yml", "c.json"))
    assert [(document.name, document.content, document.line) for document in read] == [
        (a, {"a": 1}, 2),
        (f"{a}#1", [1], 5),
        (f"{a}#2", None, 7),
        (b, "x", 1),
        (f"{b}#1", {"k": 1}, 3),
        (c, 1, 2),
        (f"{c}#1", {}, 3),
    ]


@pytest.mark.parametrize(
    ("content", "value"), [(b' {"a": 1}', {"a": 1}), (b"a: on\n", {"a": True}), (b"[]", None), (b"- 1", 1)]
)
def test_standard_input_is_json_or_yaml(content: bytes, value: object) -> None:
    """By how it begins."""
    read = documents("-", stdin=content).snapshot.documents
    assert [document.content for document in read] == ([] if value is None else [value])


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("main.tf", "", "only JSON and YAML"),
        ("Dockerfile", "", "only JSON and YAML"),
        ("Dockerfile.debug", "", "only JSON and YAML"),
        ("x.toml", "", "only JSON and YAML"),
        ("x.json", '{"a": 1, "a": 2}', "duplicate key"),
        ("x.yaml", "a: 1\na: 2", "duplicate key"),
        ("x.yaml", "a: [", "not valid YAML"),
        ("x.yaml", "", "empty"),
        ("x.json", "a: 1", "not valid JSON"),
    ],
)
def test_an_unreadable_file_is_an_error_with_its_reason(tmp_path: Path, name: str, text: str, reason: str) -> None:
    """It hides no other input."""
    write(tmp_path, {name: text, "good.json": "{}"})
    read = documents(tmp_path / name, tmp_path / "good.json")
    [problem] = read.problems
    assert problem.level == "error"
    assert reason in problem.message
    assert name in problem.place
    assert len(read.snapshot.documents) == 1


def test_a_directory_with_other_formats_names_them(tmp_path: Path) -> None:
    """Files that Conftest would evaluate and we do not are named; any others are ignored."""
    write(tmp_path, {"a.json": "{}", "b/main.tf": "", "c/Dockerfile": "", "notes.md": ""})
    [problem] = documents(tmp_path).problems
    assert problem.level == "warning"
    assert "b/main.tf` and 1 more" in problem.message


def test_a_mixed_bundle_evaluates_resources_and_documents(tmp_path: Path) -> None:
    """Every input is a document, too; one without a resource is no error."""
    ours = {"area/x/x.rego": rego("x", deny_when("true"))}
    bundle = load_bundle(write(tmp_path / "p", {**THEIRS, **ours}))
    write(tmp_path / "in", {"w.json": json.dumps(workspace()), "k.yaml": "bad: 1\n", "other.json": '{"bad": 1}'})
    snapshot, problems, files, *_ = read_inputs([tmp_path / "in"], documents=True)
    evaluation = evaluate(bundle, snapshot, EvaluationOptions(AS_OF, problems=problems))

    assert len(files) == 3
    assert [(finding.policy, finding.resource_type, str(finding.outcome)) for finding in evaluation.findings] == [
        ("T-A-1", "Microsoft.MachineLearningServices/workspaces", "fail"),
        ("k.deny", "document", "fail"),
        ("k.deny", "document", "fail"),
        ("k.deny", "document", "pass"),
    ]
    assert (problems, evaluation.exit_code) == ((), 1)


def test_without_policies_for_documents_nothing_changes(tmp_path: Path) -> None:
    """Unrelated YAML is skipped, and the snapshot has no documents."""
    write(tmp_path, {"w.json": json.dumps(workspace()), "k.yaml": "bad: ["})
    snapshot, problems, _, _ = read_inputs([tmp_path])
    assert (snapshot.documents, problems) == ((), ())
    assert [one.place for one in snapshot.ledger] == [str(tmp_path / "k.yaml")]


def test_the_digest_of_a_snapshot_covers_its_documents(tmp_path: Path) -> None:
    """Name and content; a snapshot without documents keeps the digest that it had."""
    bundle = load_bundle(write(tmp_path / "p", THEIRS))
    write(tmp_path, {"a.json": '{"x": 1}', "b.json": '{"x": 1}', "c/a.json": '{"x": 2}'})
    digests = {
        evaluate(bundle, documents(tmp_path / name).snapshot, EvaluationOptions(AS_OF)).snapshot.digest
        for name in ("a.json", "b.json", "c/a.json")
    }
    assert len(digests) == 3
    assert Document(file="a", index=2).name == "a#2"


def test_a_format_of_azure_does_not_concern_policies_of_documents(tmp_path: Path) -> None:
    """`--from` would be ignored, so it is refused."""
    with pytest.raises(UsageError, match="check only documents"):
        read_inputs([tmp_path], from_format="arm-rest", documents=True, resources=False)


@pytest.mark.parametrize("content", [-(2**63) - 1, {1: 2}, float("nan"), "\ud800", object()])
def test_a_document_that_is_no_json_is_a_problem(tmp_path: Path, content: object) -> None:
    """Nothing that a program puts into a snapshot makes an evaluation raise, and nothing is left out without a word."""
    bundle = load_bundle(write(tmp_path, THEIRS))
    snapshot = Snapshot(documents=(Document(file="x", content=content), Document(file="y", content={"bad": 1})))
    evaluation = evaluate(bundle, snapshot, EvaluationOptions(AS_OF))

    evaluated = [finding.resource for finding in evaluation.findings]
    assert evaluated[-1] == "y"
    assert (evaluation.exit_code == 2) == (evaluated == ["y"])


def test_large_numbers_of_yaml_are_no_crash(tmp_path: Path) -> None:
    """YAML has numbers that JSON readers do not take."""
    write(tmp_path, {"p/a.rego": THEIRS["k/a.rego"], "x.yaml": "a: -9223372036854775809\n"})
    snapshot = documents(tmp_path / "x.yaml").snapshot
    evaluation = evaluate(load_bundle(tmp_path / "p"), snapshot, EvaluationOptions(AS_OF))
    assert evaluation.exit_code == 2
    assert "cannot be evaluated" in evaluation.problems[0].message
