"""Classes of workloads as files: accepted files, and refused ones with their messages."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from policyeng.bundle import load_bundle
from policyeng.errors import BundleError, UsageError
from policyeng.verify.satisfiability.classes import classes_of, read_class
from policyeng.verify.satisfiability.result import answer
from tests.bundles import deny_when, rego, write

HEAD = "id: c\ntitle: t\nabout: [{type: Microsoft.MachineLearningServices/workspaces}]\n"
OURS = [
    "batch-scoring",
    "development",
    "production-online-inference",
    "realtime-gpu-inference",
    "regulated-gpu-training",
    "regulated-gpu-training-on-managed-compute",
    "regulated-realtime-gpu-inference",
    "regulated-realtime-gpu-inference-on-newer-sizes",
    "secure-regulated-training",
]
NOW = datetime(2026, 6, 1, tzinfo=UTC)


def test_ours_are_joined_by_those_of_the_bundle_and_those_that_are_given(tmp_path: Path) -> None:
    """Ids choose among them, and none is chosen twice."""
    files = {
        "b/a/a/a.rego": rego("a", deny_when("false")),
        "b/classes/c.yaml": HEAD,
        "c.yaml": HEAD.replace("t\n", "u\n"),
        "d.yaml": HEAD.replace("id: c", "id: d").replace("t\n", "u\n"),
    }
    write(tmp_path, files)
    bundle = load_bundle(tmp_path / "b")

    assert [entry.id for entry in classes_of(load_bundle())] == OURS
    assert [entry.id for entry in classes_of(bundle)] == sorted([*OURS, "c"])
    assert [entry.title for entry in classes_of(bundle, [tmp_path / "d.yaml"], ["D"])] == ["u"]
    with pytest.raises(BundleError, match=r"the class `c` is also in `.*`; give one of them another id"):
        classes_of(bundle, [tmp_path / "c.yaml"])
    with pytest.raises(
        UsageError, match="no class is called `batch-scorin`; did you mean `batch-scoring`; the classes"
    ):
        classes_of(bundle, chosen=["batch-scorin"])
    with pytest.raises(BundleError, match="there is no class; a class is a file"):
        classes_of(bundle, [write(tmp_path / "empty", {"x.txt": ""})])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- x\n", "a class is a mapping"),
        (HEAD.replace("about", "abuot"), "abuot: unknown key; did you mean `about`"),
        (HEAD.replace("id: c", "id: C d"), "id: string should match pattern"),
        (HEAD + "choices: {x: {at: {w: /a}}}\n", "choices.x: a choice has either `options` or `values`"),
        (HEAD + "choices: {x: {values: [1]}}\n", "choices.x: `values` needs `at`, the places of the value"),
        (HEAD + "choices: {x: {at: {w: {/a: b}}, values: [1]}}\n", "only if the values are rows of facts"),
        (HEAD + "choices: {x: {at: {w: /a}, values: {facts: t, where: {g: {over: 1}}}}}\n", "`g` takes a value"),
        (HEAD + "choices: {x: {at: {w: /a}, values: [1], when: {y: [z]}}}\n", "has `z`, which is not an option of `y`"),
        (HEAD + "expected: {impossible: 2026-01-01}\n", "expected.because: field required"),
        (HEAD + "with: {workspace: [1]}\n", "with.workspace: input should be a valid dictionary"),
    ],
)
def test_a_malformed_class_is_refused_by_key(tmp_path: Path, text: str, message: str) -> None:
    """The message names the file and the key, in our words where we have some."""
    path = write(tmp_path, {"c.yaml": text}) / "c.yaml"

    with pytest.raises(BundleError) as refused:
        read_class(path)

    assert str(path) in str(refused.value)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("estate: [workspaec]\n", "class `c`: no baseline is called `workspaec`; did you mean `workspace`"),
        ("estate: [workspace]\nchoices: {x: {at: {workspace: /tgs/a}, values: [1]}}\n", "`/tgs/a` does not exist"),
        ("choices: {x: {at: {wrokspace: /tags/a}, values: [1]}}\n", "did you mean `workspace`"),
        ("choices: {x: {at: {workspace: /tags}, values: {facts: vm_size}}}\n", "did you mean `vm_sizes`"),
        ("choices: {x: {at: {workspace: {/tags: y}}, values: {facts: vm_sizes}}}\n", "have no column `y`"),
        (
            "choices: {x: {at: {workspace: /t}, values: {facts: vm_sizes, where: {gpus: 9}}}}\n",
            "no row of `vm_sizes` fits",
        ),
        ("workloads: [{id: x, purpose: fun}]\n", "class `c`: no choice: workloads/0/purpose"),
    ],
)
def test_a_class_that_does_not_fit_is_refused(tmp_path: Path, more: str, message: str) -> None:
    """Its references have to exist, and its values have to be well formed."""
    bundle = load_bundle(write(tmp_path / "b", {"a/a/a.rego": rego("a", deny_when("false"))}))
    path = write(tmp_path, {"c.yaml": HEAD + more}) / "c.yaml"

    with pytest.raises(BundleError) as refused:
        answer(read_class(path), bundle, NOW)

    assert message in str(refused.value)
