"""What attacks found once stays closed: each row is a reproduction, with a harmless twin that passes.

`make attack` runs these rows and the tests with the marker `attack`, which hold other reproductions.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from policyeng.models import JsonObject
from tests.carriers import CHANGE_WRAPPINGS, SCOPE, template, wrapped
from tests.command import policyeng
from tests.conftest import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.attack]

COMPLIANT = (ROOT / "samples/workspaces/compliant.json").read_text(encoding="utf-8")
WORKSPACE = json.loads((ROOT / "samples/baselines/workspace.json").read_text(encoding="utf-8"))
ML = "Microsoft.MachineLearningServices"
Files = dict[str, str | bytes]
GOOD: Files = {"good.json": COMPLIANT}
#: One policy, so that its outcome decides.
ONE = "--strict-unknown --select AML-NET-001"
CHECK, ADMIT = f"check . {ONE}", f"admit change.json --snapshot good.json --scope {SCOPE} {ONE}"


def workspace(access: str, **more: object) -> JsonObject:
    """The workspace of the samples with an access."""
    return {**WORKSPACE, "properties": {**WORKSPACE["properties"], "publicNetworkAccess": access}, **more}


def manifest(access: str, **more: object) -> JsonObject:
    """A workspace of Azure Service Operator."""
    return {
        "apiVersion": "machinelearningservices.azure.com/v1api20240401",
        "kind": "Workspace",
        "metadata": {"name": "nw", "namespace": "ml"},
        "spec": {"azureName": "nw", "location": "eastus", "owner": {"armId": SCOPE}, "publicNetworkAccess": access},
        **more,
    }


def resource(access: object) -> JsonObject:
    """A workspace in a template."""
    return {
        "type": f"{ML}/workspaces",
        "apiVersion": "2024-10-01",
        "name": "nw",
        "location": "eastus",
        "properties": {"publicNetworkAccess": access},
    }


def nested(passed: object, access: str) -> JsonObject:
    """A template that passes a value to a nested one, whose parameter has the access as its default."""
    inner = template(
        resource("[parameters('access')]"), parameters={"access": {"type": "string", "defaultValue": access}}
    )
    properties = {
        "mode": "Incremental",
        "expressionEvaluationOptions": {"scope": "inner"},
        "parameters": {"access": {"value": passed}},
        "template": inner,
    }
    deployment = {"type": "Microsoft.Resources/deployments", "apiVersion": "2022-09-01", "name": "d"}
    options = {"options": {"type": "object", "defaultValue": {}}}
    return template({**deployment, "properties": properties}, parameters=options)


def plan(*changes: JsonObject, **parts: object) -> JsonObject:
    """A Terraform plan."""
    resources = [
        {key: change[key] for key in ("address", "mode", "type", "name", "provider_name")} for change in changes
    ]
    values = {
        "root_module": {
            "resources": [
                {**resource, "schema_version": 0, "values": change["change"]["after"]}
                for resource, change in zip(resources, changes, strict=True)
            ]
        }
    }
    document = {"format_version": "1.2", "terraform_version": "1.9.0", "planned_values": values}
    return {**document, "resource_changes": list(changes), **parts}


def change(kind: str, after: JsonObject, provider: str = "hashicorp/azurerm") -> JsonObject:
    """A planned creation."""
    return {
        "address": f"{kind}.x",
        "mode": "managed",
        "type": kind,
        "name": "x",
        "provider_name": f"registry.terraform.io/{provider}",
        "change": {"actions": ["create"], "before": None, "after": after, "after_unknown": {}},
    }


def azapi(kind: str, **values: object) -> JsonObject:
    """What a plan creates or does with the provider azapi."""
    return change(kind, values, "azure/azapi")


def action(access: str) -> JsonObject:
    """An action that puts a workspace."""
    body = {"location": "eastus", "properties": {"publicNetworkAccess": access}}
    kind, identity = f"{ML}/workspaces@2024-10-01", WORKSPACE["id"]
    return azapi("azapi_resource_action", type=kind, resource_id=identity, method="PUT", body=body)


def terraform(access: str) -> JsonObject:
    """A workspace of the provider azurerm."""
    values = {"name": "nw", "resource_group_name": "rg-ml", "location": "eastus"}
    return change(
        "azurerm_machine_learning_workspace", {**values, "public_network_access_enabled": access == "Enabled"}
    )


def carried(name: str, access: str) -> JsonObject:
    """A template with a workspace in what carries one."""
    return wrapped(Random(1), template(resource(access)), name, 1).document  # noqa: S311  # nothing here is secret


def running(*provisioners: JsonObject) -> JsonObject:
    """A plan with provisioners."""
    created = change("null_resource", {"triggers": None}, "hashicorp/null")
    configured = {**{key: created[key] for key in ("address", "mode", "type", "name")}, "provisioners": provisioners}
    return plan(created, configuration={"root_module": {"resources": [configured]}})


COMMAND: JsonObject = {"type": "local-exec", "expressions": {"command": {"constant_value": "az ml workspace update"}}}


class Row(NamedTuple):
    """A reproduction.

    Attributes:
        files: of the directory in which the command runs, by name; a name that ends in `@` is a link to the text.
        harmless: the same without what is hostile: exit 0.
        code: what it exits with.
        arguments: of `policyeng`.
        shown: a part of what it prints, which it does not print for what is harmless; empty for anything.
        hidden: what it must not print.
    """

    files: Files
    harmless: Files
    code: int
    arguments: str = CHECK
    shown: str = ""
    hidden: str = "internal error"


def beside(name: str, content: object, **more: str | bytes) -> Files:
    """A file next to a compliant one."""
    return {**GOOD, name: content if isinstance(content, str | bytes) else json.dumps(content), **more}


def row(name: str, make: Callable[[str], object], code: int = 1, *options: str) -> Row:
    """A row of a file that is harmless where the access is disabled."""
    return Row(beside(name, make("Enabled")), beside(name, make("Disabled")), code, *options)


def edited(*edits: tuple[str, str]) -> Files:
    """The compliant snapshot with edits, each of which changes it."""
    text = COMPLIANT
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    return {"s.json": text}


OPEN = json.dumps(workspace("Enabled"))
PRIORITY, LOW = '"vmPriority": "Dedicated"', '"VmPriority": "LowPriority"'
ACCESS, KIND = '"publicNetworkAccess": "', '"kind": "Default"'
CONFIG = {"subscription_id": "s", "resource_group": "g", "workspace_name": "w"}
UNREAD = "1 unread part of the inputs"
ROWS = {
    **{
        f"a template in a carrier: {name}": row("change.json", partial(carried, name), 1, ADMIT)
        for name in CHANGE_WRAPPINGS
    },
    "a document in UTF-16": row("bad.json", lambda access: json.dumps(workspace(access)).encode("utf-16")),
    "a member in other letters": Row(
        edited((PRIORITY, LOW)), edited(('"vmPriority"', '"VmPriority"')), 1, "check .", "AML-SKU-104"
    ),
    "a member twice in other letters": Row(
        edited((PRIORITY, f"{PRIORITY}, {LOW}")), edited((PRIORITY, PRIORITY)), 2, "check .", "twice"
    ),
    "a project without a hub": Row(
        edited((KIND, '"kind": "Project"'), (f'{ACCESS}Disabled"', f'{ACCESS}Enabled"')), GOOD, 1
    ),
    "a link to itself": Row(beside("bad.json", OPEN, **{"z.json@": "z.json"}), {**GOOD, "z.json@": "z.json"}, 1),
    "a link out of the directory": Row(
        {**GOOD, "../private.txt": "a line of it", "z.json@": "../private.txt"},
        GOOD,
        0,
        "check . --show-skipped",
        "a link to outside",
        "a line of it",
    ),
    **{
        f"{name}, which is not read": Row(beside(name, OPEN, **more), {**GOOD, **more}, 1, CHECK, UNREAD)
        for name, more in (
            (".infra/main.json", {}),
            ("node_modules/x/main.json", {}),
            ("main.template", {}),
            ("main.json5", {}),
            ("ignored.json", {".gitignore": "ignored.json\n"}),
            ("excluded.json", {"policyeng.toml": 'exclude = ["excluded.json"]\n'}),
        )
    },
    **{
        f"{name}, which --all-files reads": Row(
            beside(name, OPEN, **{".gitignore": "main.json\n"}),
            beside(name, json.dumps(workspace("Disabled")), **{".gitignore": "main.json\n"}),
            1,
            f"{CHECK} --all-files",
        )
        for name in ("main.json", ".infra/x.json", "node_modules/x.json", "main.template")
    },
    "a manifest with the members of a workspace's config.json": Row(
        beside("m.json", manifest("Enabled", **CONFIG)), beside("m.json", manifest("Disabled")), 2, CHECK, "two formats"
    ),
    "a resource with the members of a plan": Row(
        beside("r.json", workspace("Enabled", planned_values={})), beside("r.json", workspace("Disabled")), 2
    ),
    "resources twice": Row(
        beside("t.json", template(Resources=[resource("Enabled")])),
        beside("t.json", template(resource("Disabled"))),
        2,
        CHECK,
        "the same member",
    ),
    "an action that puts a resource": row("change.json", lambda access: plan(action(access)), 1, ADMIT),
    "an action that puts a resource, in a check": row("p.json", lambda access: plan(action(access))),
    "a change that a plan defers": row(
        "change.json",
        lambda access: plan(
            deferred_changes=[{"reason": "resource_config_unknown", "resource_change": terraform(access)}]
        ),
        1,
        ADMIT,
    ),
    "a command that a plan runs": Row(
        beside("change.json", running(COMMAND)), beside("change.json", running()), 1, ADMIT, "runs a command"
    ),
    "a command that a plan runs, in a check": Row(
        beside("p.json", running(COMMAND)), beside("p.json", running()), 1, CHECK, "runs a command"
    ),
    "an overlay that is not rendered": Row(
        {
            "base/w.yaml": json.dumps(manifest("Disabled")),
            "over/kustomization.yaml": "resources: [../base/w.yaml]\npatches: [{path: p.yaml}]\n",
            "over/p.yaml": "- {op: replace, path: /spec/publicNetworkAccess, value: Enabled}\n",
        },
        {"base/w.yaml": json.dumps(manifest("Disabled"))},
        1,
        CHECK,
        "kustomize build",
    ),
    "a type with an invisible letter": Row(
        beside("r.json", workspace("Enabled", type=f"{ML}/workspaces\u200b")),
        beside("r.json", workspace("Disabled")),
        2,
    ),
    **{
        f"a parameter that is passed as {passed}": row("change.json", partial(nested, passed), 1, ADMIT)
        for passed in (None, "[null()]", "[tryGet(parameters('options'), 'access')]")
    },
}


def run_in(folder: Path, files: Files, arguments: str) -> tuple[int, str]:
    """Run the command in a new directory with files, and return its exit code and what it prints."""
    folder.mkdir(parents=True)
    for name, content in files.items():
        path = folder / name.removesuffix("@")
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("@"):
            path.symlink_to(str(content))
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
    result = policyeng(*arguments.split(), "--as-of", "2026-06-01", folder=folder)
    return result.returncode, " ".join((result.stdout + result.stderr).split())  # lines are wrapped


@pytest.mark.parametrize("name", ROWS)
def test_a_reproduction_is_found_and_its_harmless_twin_passes(name: str, tmp_path: Path) -> None:
    """Without the twin, a row could be refused for another reason than its own."""
    files, harmless, code, arguments, shown, hidden = ROWS[name]

    exit_code, printed = run_in(tmp_path / "hostile/in", files, arguments)
    assert (exit_code, shown in printed, hidden in printed) == (code, True, False), printed
    exit_code, printed = run_in(tmp_path / "harmless/in", harmless, arguments)
    assert (exit_code, bool(shown) and shown in printed) == (0, False), printed
