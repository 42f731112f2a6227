"""Source code found in a directory: what was made of it is read in its place, or it is an error with its command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from policyeng.models import JsonObject
from policyeng.sources import Inputs, read_inputs

ML = "Microsoft.MachineLearningServices/workspaces"
TEMPLATE: JsonObject = {
    "$schema": "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#",
    "contentVersion": "1.0.0.0",
    "resources": [{"type": ML, "apiVersion": "2024-04-01", "name": "ws", "location": "westeurope", "properties": {}}],
}
COMPILED: JsonObject = {**TEMPLATE, "metadata": {"_generator": {"name": "bicep", "version": "0.30.3"}}}
PLAN: JsonObject = {"format_version": "1.2", "terraform_version": "1.9.0", "planned_values": {"root_module": {}}}
BICEP = f"resource ws '{ML}@2024-04-01' = {{ name: 'ws' }}\n"
HCL = 'resource "azurerm_machine_learning_workspace" "ws" {}\n'


def read(folder: Path, files: dict[str, str | JsonObject]) -> Inputs:
    """A directory of files, read."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))
    return read_inputs([folder])


@pytest.mark.parametrize(
    ("files", "source", "made"),
    [
        ({"main.bicep": BICEP, "main.json": TEMPLATE}, "main.bicep", "main.json"),
        ({"infra/modules/ws.bicep": BICEP, "infra/main.json": COMPILED}, "infra/modules/ws.bicep", "infra/main.json"),
        ({"main.bicepparam": BICEP, "out.json": COMPILED}, "main.bicepparam", "out.json"),
        ({"ml/main.tf": HCL, "plan.json": PLAN}, "ml/main.tf", "plan.json"),
    ],
)
def test_what_was_made_of_it_is_read_in_its_place(
    files: dict[str, str | JsonObject], source: str, made: str, tmp_path: Path
) -> None:
    """From its directory or one above, and it is said."""
    inputs = read(tmp_path, files)

    assert [problem for problem in inputs.problems if problem.level == "error"] == []
    said = {Path(skipped.file).relative_to(tmp_path).as_posix(): skipped.reason for skipped in inputs.skipped}
    assert said[source] == f"`{tmp_path / made}`, which was made of it, is read in its place"


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({"main.bicep": BICEP}, "az bicep build"),
        ({"other.bicep": BICEP, "main.json": TEMPLATE}, "az bicep build"),
        ({"ws.bicep": BICEP, "below/main.json": COMPILED}, "az bicep build"),
        ({"main.tf": HCL}, "terraform show -json"),
        ({"main.tf": HCL, "main.json": COMPILED}, "terraform show -json"),
        ({"main.tf": HCL, "other/plan.json": PLAN}, "terraform show -json"),
    ],
)
def test_without_that_it_is_an_error(files: dict[str, str | JsonObject], command: str, tmp_path: Path) -> None:
    """A template or a plan of something else does not stand for it."""
    [problem] = [problem for problem in read(tmp_path, files).problems if problem.level == "error"]

    assert command in problem.message


def test_a_named_file_is_always_an_error(tmp_path: Path) -> None:
    """Who names it wants it judged."""
    read(tmp_path, {"main.bicep": BICEP, "main.json": TEMPLATE})
    [problem] = [each for each in read_inputs([tmp_path / "main.bicep"]).problems if each.level == "error"]

    assert "az bicep build" in problem.message


def test_source_code_of_something_else_is_skipped(tmp_path: Path) -> None:
    """It does not concern Machine Learning."""
    inputs = read(tmp_path, {"main.tf": 'resource "azurerm_dns_zone" "z" {}\n', "ws.json": TEMPLATE})

    assert [problem for problem in inputs.problems if problem.level == "error"] == []
    assert len(inputs.skipped) == 1
