"""Kustomizations over files that are read: what they change is not known, because only `kustomize` renders them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from policyeng.sources import read_inputs
from policyeng.sources.changes import read_changes

SAMPLE = Path(__file__).resolve().parents[1] / "samples" / "formats" / "manifests.yaml"
FOREIGN = "apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n"
HEAD = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
PATCH = "patches: [{path: patch.yaml}]\n"
OURS = "patches: [{target: {kind: WorkspacesCompute}, patch: '[]'}]\n"
OBJECT = """patchesStrategicMerge:
- |
  apiVersion: machinelearningservices.azure.com/v1api20240401
  kind: Workspace
  metadata: {name: w}
"""
JSON_PATCH = """patchesJson6902:
- target: {group: machinelearningservices.azure.com, version: v1, kind: Workspace, name: w}
  path: patch.json
"""
OTHERS = "patches: [{target: {kind: Deployment}, patch: '[]'}]\n"

Laid = Callable[..., Path]


@pytest.fixture
def laid(tmp_path: Path) -> Laid:
    """Lay out a base with manifests of ours, another one without, and an overlay next to them."""

    def lay(overlay: str, name: str = "kustomization.yaml") -> Path:
        for folder, content in (
            ("base", SAMPLE.read_text()),
            ("other", "apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n"),
        ):
            (tmp_path / folder).mkdir()
            (tmp_path / folder / "objects.yaml").write_text(content)
            (tmp_path / folder / "kustomization.yaml").write_text("resources: [objects.yaml]\n")
        (tmp_path / "overlay").mkdir()
        (tmp_path / "overlay" / name).write_text(overlay)
        return tmp_path

    return lay


@pytest.mark.parametrize("name", ["kustomization.yaml", "kustomization.yml"])
@pytest.mark.parametrize(
    "overlay",
    [
        f"resources: [../base]\n{PATCH}",
        f"{HEAD}resources: [../base]\n{PATCH}",
        f"{HEAD}resources: [../base/objects.yaml]\nnamePrefix: x-\n",
        f"{HEAD}bases: [../base]\ncommonLabels: {{a: b}}\n",
        f"{HEAD}components: [../base]\n",
        f"{HEAD}patchesStrategicMerge: [../base/objects.yaml]\n",
        f"{HEAD}resources: [../other]\n{OURS}",
        f"{HEAD}{OBJECT}",
        f"{HEAD}{JSON_PATCH}",
        f"{HEAD}resources: ['https://example.com/x?ref=v1', ../base]\n",
    ],
)
def test_an_overlay_over_files_that_are_read_is_incomplete(laid: Laid, overlay: str, name: str) -> None:
    """The line names the overlay and the command that renders it, for `check` and for `admit`."""
    folder = laid(overlay, name)
    inputs = read_inputs([folder])

    [line] = inputs.snapshot.incomplete
    assert line.startswith(f"{folder / 'overlay' / name}: a Kustomization changes objects")
    assert f"`kustomize build {folder / 'overlay'}`" in line
    assert len(inputs.snapshot.resources) == 2
    assert any("kustomize build" in problem.message for problem in read_changes([folder]).problems)


@pytest.mark.parametrize(
    "overlay",
    [
        f"{HEAD}resources: [../base]\n",
        "resources: [../base, ../other]\n",
        f"{HEAD}resources: [../other]\n{PATCH}",
        f"{HEAD}resources: [../other]\n{OTHERS}",
        f"{HEAD}resources: [../missing]\n{PATCH}",
    ],
)
def test_an_overlay_that_changes_nothing_of_ours_is_skipped(laid: Laid, overlay: str) -> None:
    """A Kustomization that only lists local files renders what is read."""
    folder = laid(overlay)
    inputs = read_inputs([folder])

    assert (inputs.snapshot.incomplete, inputs.problems) == ((), ())
    assert sum("a Kustomization" in entry.reason for entry in inputs.ledger) == 3
