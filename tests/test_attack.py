"""What attacks found once stays closed: each row is a reproduction with inputs of its own.

`make attack` runs these rows and the tests with the marker `attack`, which hold other reproductions.
"""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from policyeng import admit, load_bundle, load_snapshot
from policyeng.bundle import Bundle
from policyeng.errors import InputError, PolicyengError
from policyeng.models import JsonObject
from tests.command import policyeng
from tests.conftest import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.attack]

COMPLIANT = (ROOT / "samples/workspaces/compliant.json").read_text(encoding="utf-8")
WORKSPACE = json.loads((ROOT / "samples/baselines/workspace.json").read_text(encoding="utf-8"))
AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
SUBSCRIPTION = "11111111-1111-1111-1111-111111111111"
GROUP = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg-ml"
ML = "Microsoft.MachineLearningServices"
OPEN = json.dumps(WORKSPACE).replace('"publicNetworkAccess": "Disabled"', '"publicNetworkAccess": "Enabled"')
OPENED: JsonObject = json.loads(OPEN)
SCHEMA = "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#"
ASO: JsonObject = {
    "apiVersion": "machinelearningservices.azure.com/v1api20240401",
    "kind": "Workspace",
    "metadata": {"name": "ws", "namespace": "ml"},
    "spec": {"location": "eastus", "owner": {"armId": GROUP}, "publicNetworkAccess": "Enabled"},
}
POLICY = """{first}from policyeng import policy


@policy(id="T-A-1", title="t", severity="low", judges=["Microsoft.MachineLearningServices/workspaces"], source="s")
def evaluate(given):
    return []
"""
TEMPLATE_RESOURCE = {
    "type": f"{ML}/workspaces",
    "apiVersion": "2024-10-01",
    "name": "ws",
    "location": "eastus",
    "properties": {"publicNetworkAccess": "[parameters('access')]"},
}


def template(**parts: object) -> JsonObject:
    """A template with an open workspace, unless a part states another."""
    resource = {**TEMPLATE_RESOURCE, "properties": {"publicNetworkAccess": "Enabled"}}
    return {"$schema": SCHEMA, "contentVersion": "1.0.0.0", "resources": [resource], **parts}


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


def deployment(body: object, kind: str = "Microsoft.Resources/deployments@2024-03-01") -> JsonObject:
    """A deployment by the provider azapi."""
    return change("azapi_resource", {"type": kind, "name": "d", "parent_id": GROUP, "body": body}, "azure/azapi")


ACTION = change(
    "azapi_resource_action",
    {
        "type": f"{ML}/workspaces@2024-10-01",
        "resource_id": WORKSPACE["id"],
        "method": "PUT",
        "body": {"location": "eastus", "properties": {"publicNetworkAccess": "Enabled"}},
    },
    "azure/azapi",
)
NULL_RESOURCE = change("null_resource", {"triggers": None}, "hashicorp/null")
RUNS_A_COMMAND = plan(
    NULL_RESOURCE,
    configuration={
        "root_module": {
            "resources": [
                {
                    **{key: NULL_RESOURCE[key] for key in ("address", "mode", "type", "name")},
                    "provisioners": [{"type": "local-exec", "expressions": {"command": {"constant_value": "az ml"}}}],
                }
            ]
        }
    },
)
#: A parameter that a nested deployment passes as null has its default.
NULL_PARAMETER = template(
    resources=[
        {
            "type": "Microsoft.Resources/deployments",
            "apiVersion": "2022-09-01",
            "name": "d",
            "properties": {
                "mode": "Incremental",
                "expressionEvaluationOptions": {"scope": "inner"},
                "parameters": {"access": {"value": "[null()]"}},
                "template": {
                    "$schema": SCHEMA,
                    "contentVersion": "1.0.0.0",
                    "parameters": {"access": {"type": "string", "nullable": True, "defaultValue": "Enabled"}},
                    "resources": [TEMPLATE_RESOURCE],
                },
            },
        }
    ]
)

Files = dict[str, str | bytes]


class Row(NamedTuple):
    """A reproduction.

    Attributes:
        files: of the directory in which the command runs, by name; a name that ends in `@` is a link to the text.
        arguments: of `policyeng`.
        codes: what it may exit with.
        shown: a part of what it prints; empty for anything.
    """

    files: Files
    arguments: str
    codes: tuple[int, ...]
    shown: str = ""


def beside(name: str, content: object, **more: str | bytes) -> Files:
    """Files of which one is compliant and another is the one to find."""
    text = content if isinstance(content, str | bytes) else json.dumps(content)
    return {"good.json": COMPLIANT, name: text, **more}


def edited(*edits: tuple[str, str]) -> str:
    """The compliant snapshot with edits, each of which changes it."""
    text = COMPLIANT
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    return text


STRICT, ADMIT = "check . --strict-unknown", "admit change.json --snapshot good.json --strict-unknown"
LONG = "a-" * 60_000
ROWS = {
    "a pattern that backtracks over braces": Row(
        {"m.yaml": json.dumps({**ASO, "spec": {**ASO["spec"], "description": "{{" * 20_000}})},
        "check m.yaml",
        (1,),
    ),
    "a pattern that backtracks over a text without secrets": Row(
        {"s.json": edited(('"Standard_M128ms"', f'"{LONG}"'))}, "check s.json", (1, 2)
    ),
    "a deployment of a template in a plan": Row(
        beside("change.json", plan(deployment({"properties": {"mode": "Incremental", "template": template()}}))),
        ADMIT,
        (1,),
    ),
    "a template that a plan gives as text": Row(
        beside(
            "change.json",
            plan(
                change(
                    "azurerm_resource_group_template_deployment",
                    {
                        "name": "d",
                        "resource_group_name": "rg-ml",
                        "deployment_mode": "Incremental",
                        "template_content": json.dumps(template()),
                    },
                )
            ),
        ),
        ADMIT,
        (1, 2),
    ),
    "a document in UTF-16": Row(beside("bad.json", OPEN.encode("utf-16")), "check .", (1,), "AML-NET-001"),
    "a member in other letters": Row(
        {"s.json": COMPLIANT.replace('"vmPriority"', '"VMPriority"').replace('"Dedicated"', '"LowPriority"')},
        "check s.json",
        (1,),
        "AML-SKU-104",
    ),
    "a member twice in other letters": Row(
        {"s.json": COMPLIANT.replace('"vmPriority"', '"VmPriority": "LowPriority", "vmPriority"')},
        "check s.json",
        (2,),
        "twice",
    ),
    "a project without a hub": Row(
        {
            "s.json": COMPLIANT.replace('"kind": "Default"', '"kind": "Project"').replace(
                '"publicNetworkAccess": "Disabled"', '"publicNetworkAccess": "Enabled"'
            )
        },
        "check s.json --strict-unknown",
        (1,),
    ),
    "a classification twice in other letters": Row(
        {
            "s.json": COMPLIANT.replace(
                '"data-classification": "internal"',
                '"Data-Classification": "internal", "data-classification": "restricted"',
            )
        },
        "check s.json",
        (1, 2),
    ),
    "a link to itself": Row({"good.json": COMPLIANT, "z.json@": "z.json"}, "check .", (0,)),
    "a link to a file of the system": Row(
        {"good.json": COMPLIANT, "z.json@": "/etc/passwd"}, "check . --show-skipped", (0,), "a link to outside"
    ),
    "a hidden folder": Row(beside(".infra/main.json", OPEN), STRICT, (1,), "not read"),
    "a folder of a tool": Row(beside("node_modules/x/main.json", OPEN), STRICT, (1,), "not read"),
    "another suffix": Row(beside("main.template", OPEN), STRICT, (1,), "not read"),
    "an ignored file": Row(beside("main.json", OPEN, **{".gitignore": "main.json\n"}), STRICT, (1,), "not read"),
    "an ignored file that is read": Row(
        beside("main.json", OPEN, **{".gitignore": "main.json\n"}), "check . --all-files", (1,), "AML-NET-001"
    ),
    "an exclusion by the directory that is read": Row(
        beside("main.json", OPEN, **{"policyeng.toml": 'exclude = ["main.json"]\n'}), STRICT, (1,), "not read"
    ),
    "a manifest with the members of a workspace's config.json": Row(
        beside("m.json", {**ASO, "subscription_id": "s", "resource_group": "g", "workspace_name": "w"}),
        STRICT,
        (2,),
        "two formats",
    ),
    "a resource with the members of a plan": Row(
        beside("r.json", {**OPENED, "planned_values": {}}), STRICT, (2,), "`planned_values`"
    ),
    "resources twice": Row(
        beside(
            "t.json",
            {"$schema": SCHEMA, "contentVersion": "1.0.0.0", "resources": [], "Resources": template()["resources"]},
        ),
        STRICT,
        (2,),
        "the same member",
    ),
    "an action that puts a resource": Row(beside("change.json", plan(ACTION)), ADMIT, (1,), "AML-NET-001"),
    "a change that a plan defers": Row(
        beside(
            "change.json",
            plan(
                deferred_changes=[
                    {
                        "reason": "resource_config_unknown",
                        "resource_change": change(
                            "azurerm_machine_learning_workspace",
                            {
                                "name": "ws",
                                "resource_group_name": "rg-ml",
                                "location": "eastus",
                                "public_network_access_enabled": True,
                            },
                        ),
                    }
                ]
            ),
        ),
        ADMIT,
        (1, 2),
    ),
    "a command that a plan runs": Row(beside("change.json", RUNS_A_COMMAND), ADMIT, (1, 2), "runs a command"),
    "a command that a plan runs, in a check": Row(beside("p.json", RUNS_A_COMMAND), STRICT, (1,), "runs a command"),
    "an overlay that is not rendered": Row(
        {
            "base/w.yaml": json.dumps({**ASO, "spec": {**ASO["spec"], "publicNetworkAccess": "Disabled"}}),
            "over/kustomization.yaml": "resources: [../base]\npatches: [{path: p.yaml}]\n",
            "over/p.yaml": "- {op: replace, path: /spec/publicNetworkAccess, value: Enabled}\n",
        },
        "check . --strict-unknown --select AML-NET-001",
        (1, 2),
        "kustomize build",
    ),
    "a type with an invisible letter": Row(
        beside("r.json", {**OPENED, "type": f"{ML}/workspaces\u200b"}), "check .", (2,), "type"
    ),
    "a null parameter": Row(
        beside("change.json", NULL_PARAMETER), f"{ADMIT} --select AML-NET-001 --scope {GROUP}", (1,), "AML-NET-001"
    ),
    "a deletion of what is not there": Row(
        {"good.json": COMPLIANT}, f"admit --delete {GROUP}/providers/{ML}/workspaces/none --snapshot good.json", (2,)
    ),
    "nothing to decide": Row({"good.json": COMPLIANT, "change.json": "[]"}, ADMIT, (2,)),
    "a text that is no change": Row({"good.json": COMPLIANT, "change.json": json.dumps(OPEN)}, ADMIT, (2,)),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_reproduction_is_found(name: str, tmp_path: Path) -> None:
    """It exits as it has to, with the reason and without a traceback."""
    row = ROWS[name]
    for file, content in row.files.items():
        path = tmp_path / file.removesuffix("@")
        path.parent.mkdir(parents=True, exist_ok=True)
        if file.endswith("@"):
            path.symlink_to(str(content))
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
    as_of = () if "--as-of" in row.arguments else ("--as-of", "2026-06-01")
    result = policyeng(*row.arguments.split(), *as_of, folder=tmp_path)

    printed = " ".join((result.stdout + result.stderr).split())  # lines are wrapped
    assert result.returncode in row.codes, printed
    assert row.shown in printed
    assert "internal error" not in printed


@pytest.mark.parametrize(
    "make",
    [
        json.dumps,
        lambda resource: json.dumps(json.dumps(resource)),
        lambda resource: json.dumps(resource).encode(),
        lambda _: "x",
        lambda _: "",
        lambda _: "samples/formats/az-output.json",
        lambda _: [],
        lambda _: {},
        lambda _: None,
    ],
)
def test_what_is_no_change_is_never_allowed(bundle: Bundle, make: Callable[[JsonObject], object]) -> None:
    """Whatever a program passes by mistake."""
    snapshot = load_snapshot(json.loads(COMPLIANT))
    with pytest.raises(InputError):
        admit(bundle, snapshot, make(OPENED), as_of=AS_OF)  # type: ignore[arg-type]  # as a program would


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A directory with a policy that leaves a file when it runs."""
    folder = tmp_path / "policies" / "area" / "x"
    folder.mkdir(parents=True)
    trace = f"open({str(tmp_path / 'ran')!r}, 'w').close()\n"
    (folder / "x.py").write_text(POLICY.format(first=trace), encoding="utf-8")
    return tmp_path


def test_verifying_a_bundle_runs_nothing_of_it(hostile: Path) -> None:
    """Also without a key."""
    with tarfile.open(hostile / "b.tar.gz", "w:gz") as archive:
        archive.add(hostile / "policies/area/x/x.py", "area/x/x.py")
    result = policyeng("bundle", "verify", str(hostile / "b.tar.gz"))

    assert "not signed" in result.stdout
    assert not (hostile / "ran").exists()


def test_a_directory_in_the_place_of_a_signed_archive_is_refused(hostile: Path) -> None:
    """Taking the signature away is no way around it."""
    shutil.copytree(hostile / "policies", hostile / "b.tar.gz")
    key = hostile / "key.pem"
    key.write_text("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", encoding="utf-8")
    (hostile / "s.json").write_text(COMPLIANT, encoding="utf-8")
    result = policyeng("check", "s.json", "--policy", "b.tar.gz", "--verification-key", str(key), folder=hostile)

    assert result.returncode in (2, 3)
    assert not (hostile / "ran").exists()


def test_a_configuration_of_another_user_is_refused(tmp_path: Path) -> None:
    """One that is found, which others can write, weakens nothing."""
    folder = tmp_path / "shared" / "job"
    folder.mkdir(parents=True)
    configuration = folder.parent / "policyeng.toml"
    configuration.write_text('ignore = ["AML-NET-001"]\n', encoding="utf-8")
    configuration.chmod(0o666)
    (folder / "s.json").write_text(OPEN, encoding="utf-8")
    result = policyeng("check", "s.json", "--select", "AML-NET-001", folder=folder)

    assert (result.returncode, "policyeng.toml" in result.stderr) == (3, True), result.stdout


def test_an_older_version_of_an_object_hides_no_member(bundle: Bundle) -> None:
    """A manifest of a version without a member cannot set it, and its value is judged or refused, never dropped."""
    document = {**ASO, "apiVersion": "machinelearningservices.azure.com/v1api20210701"}
    try:
        decision = admit(bundle, load_snapshot(json.loads(COMPLIANT)), document, as_of=AS_OF, strict_unknown=True)
    except PolicyengError:
        return
    assert not decision.allowed


def test_the_built_in_policies_are_what_the_rows_are_checked_with(bundle: Bundle) -> None:
    """A row that expects no failure would prove nothing without policies."""
    assert len(bundle.policies) == len(load_bundle().policies) > 100
