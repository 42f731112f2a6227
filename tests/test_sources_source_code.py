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
    "metadata": {"_generator": {"name": "bicep", "version": "0.29.47.4906", "templateHash": "1234567890"}},
    "resources": [{"type": ML, "apiVersion": "2024-04-01", "name": "ws", "location": "westeurope", "properties": {}}],
}
WORKSPACE: JsonObject = {
    "address": "azurerm_machine_learning_workspace.ws",
    "mode": "managed",
    "type": "azurerm_machine_learning_workspace",
    "name": "ws",
    "values": {"name": "ws", "resource_group_name": "rg", "location": "westeurope"},
}
EMPTY: JsonObject = {"format_version": "1.2", "terraform_version": "1.9.0", "planned_values": {"root_module": {}}}
PLAN: JsonObject = {
    **EMPTY,
    "planned_values": {"root_module": {"resources": [WORKSPACE]}},
    "configuration": {
        "root_module": {
            "module_calls": {
                "ml": {"source": "../ml", "module": {"module_calls": {"deep": {"source": "./deep"}}}},
                "registry": {"source": "Azure/avm/azurerm"},
            }
        }
    },
}
STATE: JsonObject = {"format_version": "1.0", "values": {"root_module": {"resources": [WORKSPACE]}}}
BICEP = f"resource ws '{ML}@2024-04-01' = {{ name: 'ws' }}\n"
CALLING = "module ws '../b/x.bicep' = { name: 'ws' }\nmodule z 'br/public:avm/x:1' = { name: 'z' }\n"
CALLING_C = "module c 'c.bicep' = { name: 'c' }\n"
HCL = 'resource "azurerm_machine_learning_workspace" "ws" {}\n'
HCL_JSON: JsonObject = {"resource": {"azurerm_machine_learning_workspace": {"ws": {"name": "ws"}}}}


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
        ({"a/main.bicep": CALLING, "a/main.json": TEMPLATE, "b/x.bicep": BICEP}, "b/x.bicep", "a/main.json"),
        ({"ws.bicepparam": f"using './y.bicep'\n// {BICEP}", "ws.json": TEMPLATE}, "ws.bicepparam", "ws.json"),
        ({"main.tf": HCL, "plan.json": PLAN}, "main.tf", "plan.json"),
        ({"main.tf.json": HCL_JSON, "plan.json": PLAN}, "main.tf.json", "plan.json"),
        ({"env/plan.json": PLAN, "ml/main.tf": HCL}, "ml/main.tf", "env/plan.json"),
        ({"env/plan.json": PLAN, "ml/deep/main.tf": HCL}, "ml/deep/main.tf", "env/plan.json"),
    ],
)
def test_generated_files_are_read_in_place_of_their_source(
    files: dict[str, str | JsonObject], source: str, made: str, tmp_path: Path
) -> None:
    """The file of its name, the plan of its directory, and what those call; it is reported."""
    inputs = read(tmp_path, files)

    assert [problem for problem in inputs.problems if problem.level == "error"] == []
    reasons = {Path(skipped.place).relative_to(tmp_path).as_posix(): skipped.reason for skipped in inputs.ledger}
    assert reasons[source] == (f"`{tmp_path / made}` is read instead; it is assumed to be up to date")


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({"main.bicep": BICEP}, "az bicep build"),
        ({"main.bicep": "param a string", "main.json": TEMPLATE, "ws.bicep": BICEP}, "az bicep build"),
        ({"ws.bicep": BICEP, "below/ws.json": TEMPLATE}, "az bicep build"),
        ({"main.bicep": BICEP, "main.json": {**TEMPLATE, "metadata": {}}}, "az bicep build"),
        ({"main.tf": HCL}, "terraform show -json"),
        ({"main.tf": HCL, "main.json": TEMPLATE}, "terraform show -json"),
        ({"main.tf": HCL, "state.json": STATE}, "terraform show -json"),
        ({"main.BICEP": BICEP, "plan.json": PLAN}, "az bicep build"),
        ({"a.bicep": f"/*\n{CALLING_C}*/\n", "a.json": TEMPLATE, "c.bicep": BICEP}, "az bicep build"),
        ({"prod/main.tf": HCL, "plan.json": {**PLAN, "configuration": {}}}, "terraform show -json"),
        ({"main.tf": HCL, "plan.json": EMPTY}, "terraform show -json"),
        ({"main.tf.json": HCL_JSON, "ws.json": TEMPLATE}, "terraform show -json"),
    ],
)
def test_without_that_it_is_an_error(files: dict[str, str | JsonObject], command: str, tmp_path: Path) -> None:
    """A template or a plan of something else does not replace it."""
    [problem] = [problem for problem in read(tmp_path, files).problems if problem.level == "error"]

    assert command in problem.message


def test_a_named_file_is_always_an_error(tmp_path: Path) -> None:
    """A file that is named is evaluated."""
    read(tmp_path, {"main.bicep": BICEP, "main.json": TEMPLATE})
    [problem] = [each for each in read_inputs([tmp_path / "main.bicep"]).problems if each.level == "error"]

    assert "az bicep build" in problem.message


def test_source_code_of_something_else_is_skipped(tmp_path: Path) -> None:
    """It does not concern Machine Learning."""
    inputs = read(tmp_path, {"main.tf": 'resource "azurerm_dns_zone" "z" {}\n', "ws.json": TEMPLATE})

    assert [problem for problem in inputs.problems if problem.level == "error"] == []
    assert len(inputs.ledger) == 1


def test_a_state_gives_way_to_the_plan_next_to_it(tmp_path: Path) -> None:
    """The plan contains what stays, too."""
    inputs = read(tmp_path, {"plan.json": {**PLAN, "prior_state": STATE}, "state.json": STATE})

    assert len(inputs.snapshot.resources) == 1
    assert not inputs.problems
    assert [Path(skipped.place).name for skipped in inputs.ledger] == ["state.json"]
    assert [skipped.relevant for skipped in inputs.ledger] == [False]
    assert len(read_inputs([tmp_path / "state.json"]).snapshot.resources) == 1


def test_a_plan_of_other_resources_hides_no_state(tmp_path: Path) -> None:
    """The state has a resource that the plan does not know of, so leaving it out is relevant."""
    values = {**WORKSPACE["values"], "id": f"/subscriptions/s/resourceGroups/rg/providers/{ML}/ws"}
    state = {**STATE, "values": {"root_module": {"resources": [{**WORKSPACE, "values": values}]}}}
    known = read(tmp_path, {"plan.json": {**PLAN, "prior_state": state}, "state.json": state})
    other = read(tmp_path, {"plan.json": {**PLAN, "prior_state": STATE}, "state.json": state})

    assert [entry.relevant for each in (known, other) for entry in each.ledger] == [False, True]


def test_links_are_not_read_twice_and_those_to_directories_are_reported(tmp_path: Path) -> None:
    """A finding is in the file; files outside are read when they are named."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "repository").mkdir()
    (tmp_path / "repository" / "all").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "repository" / "a.json").symlink_to("main.json")
    inputs = read(tmp_path / "repository", {"main.json": TEMPLATE})

    assert [Path(file).name for file in inputs.files] == ["main.json"]
    assert not inputs.problems
    assert [(Path(skipped.place).name, skipped.reason[:21]) for skipped in inputs.ledger] == [
        ("all", "a link to a directory")
    ]


@pytest.mark.parametrize("content", ["", '{"a": 1,}', '{"a": 1}\n{"a": 2}\n', '{"a": NaN}', '{"a": 1, "a": 2}'])
def test_broken_json_of_something_else_is_skipped(content: str, tmp_path: Path) -> None:
    """A configuration of an editor fails no run; one that may contain resources of Azure does."""
    (tmp_path / "tsconfig.json").write_text(content)
    inputs = read(tmp_path, {"main.json": TEMPLATE})
    assert not inputs.problems
    assert [Path(skipped.place).name for skipped in inputs.ledger] == ["tsconfig.json"]

    (tmp_path / "tsconfig.json").write_text('{"resources": [{"type": "Microsoft.Network/virtualNetworks",}]}')
    assert [problem.level for problem in read_inputs([tmp_path]).problems] == ["error"]


def test_a_state_stays_next_to_a_plan_that_was_made_without_one(tmp_path: Path) -> None:
    """The plan does not state what stays, so nothing of the state is left out."""
    inputs = read(tmp_path, {"plan.json": EMPTY, "state.json": STATE})

    assert len(inputs.snapshot.resources) == 1
    assert "state.json" not in [Path(skipped.place).name for skipped in inputs.ledger]
