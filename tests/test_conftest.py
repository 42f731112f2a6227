"""The same policies and inputs through the real Conftest: the same messages, by file, rule and severity.

`collections/` has policies of our own in the styles of public collections. The examples inside the Conftest module
are taken as the Go module proxy carries them; nothing of them is kept here.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.bundles import write
from tests.conftest_binary import difference, parsed_as_json, run_conftest, run_ours

COLLECTIONS = Path(__file__).parent / "collections"
MODULE = "github.com/open-policy-agent/conftest@v0.71.1"
#: Name, Rego version for Conftest, failures, warnings and exceptions in it: a comparison of nothing proves nothing.
STYLES = [
    ("annotated", "v1", 2, 0, 0),
    ("deprecations", "v0", 2, 1, 0),
    ("konstraint", "v0", 4, 0, 0),
    ("kubernetes", "v1", 5, 5, 3),
    ("suffixes", "v1", 3, 2, 1),
    ("terraform_plan", "v1", 3, 1, 0),
]
#: Folders of examples, and where their policies are.
EXAMPLES = {
    "awssam": "policy",
    "codeowners": "policy",
    "compose": "policy",
    "configfile": "test",
    "cue": "policy",
    "cyclonedx": "policy",
    "data": "policy",
    "docker": "policy",
    "dotenv": "policy",
    "edn": "policy",
    "exceptions": "policy",
    "hcl1": "policy",
    "hcl2": "policy",
    "ini": "policy",
    "jsonnet": "policy",
    "kubernetes": "policy",
    "kustomize": "policy",
    "nginx": "policy",
    "properties": "policy",
    "spdx": "policy",
    "traefik": "policy",
    "vcl": "policy",
    "xml": "policy",
}
_NO_INPUT = {".md", ".rego", ".tfplan"}


@pytest.mark.parametrize(("style", "version", "failures", "warnings", "exceptions"), STYLES)
def test_a_collection_of_each_style(style: str, version: str, failures: int, warnings: int, exceptions: int) -> None:
    """Own text in the style of public collections; the counts are those that Conftest gives, too."""
    folder = COLLECTIONS / style
    data = [folder / "data"] if (folder / "data").is_dir() else []
    inputs = sorted((folder / "inputs").iterdir())
    theirs = run_conftest(folder / "policy", inputs, data, version)
    ours, evaluation = run_ours(folder / "policy", inputs, data)

    assert difference(theirs, ours) == []
    assert (ours.failures.total(), ours.warnings.total(), len(ours.exceptions)) == (failures, warnings, exceptions)
    assert evaluation.summary.error == evaluation.summary.unknown == 0


def test_gatekeeper_policies_through_conftest(tmp_path: Path) -> None:
    """Conftest knows no reviews; given one as its input, it finds what we find in the object."""
    policy = COLLECTIONS / "gatekeeper/policy/hostnamespace"
    objects = [
        {"kind": "Pod", "metadata": {"name": name}, "spec": {key: True}}
        for name, key in (("a", "hostPID"), ("b", "hostNetwork"), ("c", "other"))
    ]
    reviews = {
        f"review/{one['metadata']['name']}.json": json.dumps({"review": {"object": one}, "parameters": {}})  # type: ignore[index]  # a literal above
        for one in objects
    }
    plain = {f"plain/{one['metadata']['name']}.json": json.dumps(one) for one in objects}  # type: ignore[index]  # likewise
    write(tmp_path, {**reviews, **plain})
    theirs = run_conftest(policy, sorted((tmp_path / "review").iterdir()), version="v0")
    ours, _ = run_ours(policy, sorted((tmp_path / "plain").iterdir()))

    assert sorted(message for _, _, message in theirs.failures) == sorted(message for _, _, message in ours.failures)
    assert ours.failures.total() == 2


@pytest.fixture(scope="module")
def examples() -> Path:
    """The examples inside the Conftest module, in Go's cache of modules."""
    if shutil.which("go") is None:
        if os.environ.get("CI"):
            pytest.fail("go is missing; `make test` needs it")
        pytest.skip("go is not installed")
    ran = subprocess.run(["go", "mod", "download", "-json", MODULE], capture_output=True, text=True, check=True)
    return Path(json.loads(ran.stdout)["Dir"]) / "examples"


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_of_conftest(name: str, examples: Path, tmp_path: Path) -> None:
    """Inputs of formats that we do not read go to both programs as the JSON that Conftest makes of them."""
    folder = examples / name
    files = [file for file in folder.iterdir() if file.is_file() and file.suffix not in _NO_INPUT]
    inputs = [
        file if file.suffix in (".json", ".yaml", ".yml") else parsed_as_json(file, tmp_path)
        for file in sorted(files)
        if file.name not in ("Makefile", "conftest.toml")
    ]
    data = [folder / "exclusions"] if name == "data" else []
    theirs = run_conftest(folder / EXAMPLES[name], inputs, data)
    ours, evaluation = run_ours(folder / EXAMPLES[name], inputs, data)

    assert difference(theirs, ours) == []
    assert evaluation.findings
    assert evaluation.summary.error == 0


def test_the_examples_contain_something(examples: Path) -> None:
    """Together, so that a change of the module does not leave us comparing nothing."""
    folder = examples / "kubernetes"
    theirs = run_conftest(folder / "policy", sorted(folder.glob("*.yaml")))
    assert theirs.failures.total() >= 8
    assert theirs.warnings.total() >= 2
