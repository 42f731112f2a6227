"""Laws of every format: no JSON value makes a reader raise, detection is stable, no reader changes its input."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyeng.errors import InputError
from policyeng.sources import FORMATS, load_snapshot, read_inputs
from policyeng.sources.parsed import Surroundings, refuse_neighbors
from tests.fuzzing import ODD_SCALARS, SAMPLES, seeds, unsound
from tests.real_files import FOLDERS

SCOPE = "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/rg"
WORKSPACE = f"{SCOPE}/providers/Microsoft.MachineLearningServices/workspaces/w"
KEYS = st.sampled_from(
    [
        *(
            "id",
            "type",
            "name",
            "kind",
            "apiVersion",
            "metadata",
            "spec",
            "items",
            "$schema",
            "resources",
            "parameters",
        ),
        *("variables", "contentVersion", "copy", "properties", "value", "data", "totalRecords", "format_version"),
        *("planned_values", "root_module", "child_modules", "resource_changes", "after_unknown", "values", "lineage"),
        *("version", "terraform_version", "compute", "endpoint_name", "provisioning_state", "renamed_key", "roleName"),
        *("permissions", "snapshotVersion", "workspace_name", "subscription_id", "resource_group", "request", "object"),
    ]
)
WORDS = st.sampled_from(
    [
        *("https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#", "amlcompute", "v1", "1.2"),
        *("https://azuremlschemas.azureedge.net/latest/amlCompute.schema.json", "azurerm_machine_learning_workspace"),
        *("machinelearningservices.azure.com/v1api20240401", "WorkspacesCompute", "AdmissionReview", WORKSPACE),
        *("Microsoft.MachineLearningServices/workspaces/computes", "[parameters('x')]", "admission.k8s.io/v1"),
    ]
)
JSON_VALUES = st.recursive(
    st.sampled_from(ODD_SCALARS) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=12,
)


def broken_neighbor(path: str) -> object:
    """A file next to the document with unexpected content."""
    return [{"$schema": path, "parameters": {"x": [None]}}]


AROUND = st.builds(
    Surroundings,
    file=st.sampled_from(["", "x.yaml", "a/b/main.json", "<stdin>"]),
    scope=st.sampled_from([Surroundings().scope, SCOPE]),
    workspace=st.sampled_from([Surroundings().workspace, WORKSPACE]),
    parameters=st.dictionaries(st.sampled_from(["x", "name", "location"]), JSON_VALUES, max_size=2),
    neighbor=st.sampled_from([refuse_neighbors, broken_neighbor]),
)


@pytest.mark.parametrize("name", FORMATS)
@given(document=JSON_VALUES, around=AROUND)
def test_no_json_value_makes_a_reader_raise(name: str, document: object, around: Surroundings) -> None:
    """The surroundings may be any; the same value is read the same way again."""
    before = json.dumps(document)
    each = FORMATS[name]
    assert each.detect(document) is each.detect(json.loads(before))
    reading = each.read(document, around)

    assert unsound(reading, document) == ""
    assert reading == each.read(json.loads(before), around)
    assert json.dumps(document) == before


@cache
def contents() -> tuple[bytes, ...]:
    """Small real files and samples of all formats; samples alone where the real ones are missing."""
    folders = (*FOLDERS, SAMPLES) if seeds(SAMPLES) else FOLDERS
    return tuple(seed.content for folder in folders for seed in seeds(folder) if len(seed.content) < 4096)


@st.composite
def broken_bytes(draw: st.DrawFn) -> bytes:
    """A document with a slice replaced by other bytes."""
    content = draw(st.sampled_from(contents()))
    start = draw(st.integers(0, len(content)))
    return content[:start] + draw(st.binary(max_size=4)) + content[start + draw(st.integers(0, 8)) :]


@given(st.binary() | broken_bytes() | JSON_VALUES.map(lambda value: json.dumps(value).encode()), st.data())
def test_any_bytes_give_a_snapshot_and_problems(content: bytes, data: st.DataObject) -> None:
    """Nothing is raised, and resources are sound and have a place."""
    chosen = data.draw(st.sampled_from([None, *FORMATS]))
    snapshot, problems, *_ = read_inputs(["-"], stdin=content, from_format=chosen)
    for resource in snapshot.resources:
        assert resource["id"].startswith("/")
        assert "/" in resource["type"]
        assert resource["id"].lower() in snapshot.origins
    assert all(problem.place.startswith("<stdin>") and problem.message for problem in problems)


@given(broken_bytes())
def test_in_process_only_our_errors_are_raised(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    """A program that catches `InputError` catches all there is to catch."""
    path: Path = tmp_path_factory.getbasetemp() / "broken.json"
    path.write_bytes(content)
    try:
        snapshot = load_snapshot(path)
    except InputError as refused:
        message = str(refused)
    else:
        message = f"{path} was read: {len(snapshot.resources)}"
    assert message.startswith(str(path))
