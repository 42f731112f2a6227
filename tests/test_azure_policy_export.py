"""Our policies as definitions of Azure Policy."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

import policyeng
from policyeng.bundle import load_bundle
from policyeng.testing.azure_policy_export import ExportRefusedError, export_policy
from tests.azure_policies import WORKSPACE, snapshot, workspace
from tests.command import policyeng as run
from tests.conftest_binary import AS_OF


def test_an_exported_policy_decides_the_same(tmp_path: Path) -> None:
    """The definition is read back and evaluated beside the policy."""
    ran = run("policies", "export", "aml-net-001", folder=tmp_path)
    assert ran.returncode == 0, ran.stderr
    definition = orjson.loads(ran.stdout)
    [kind, project, field] = definition["properties"]["policyRule"]["if"]["allOf"]
    assert kind == {"field": "type", "equals": WORKSPACE}
    assert project == {"field": "kind", "notEquals": "project"}
    assert field == {"field": f"{WORKSPACE}/publicNetworkAccess", "notEquals": "Disabled"}
    (tmp_path / "definition.json").write_bytes(orjson.dumps(definition))
    exported = load_bundle(azure_policy=[tmp_path / "definition.json"])
    [policy] = exported.policies
    assert (policy.id, str(policy.header.severity)) == ("aml-net-001", "high")
    for access, expected in (("Disabled", "pass"), ("Enabled", "fail"), (None, "fail")):
        properties = {} if access is None else {"publicNetworkAccess": access}
        (tmp_path / "s.json").write_bytes(orjson.dumps(snapshot(workspace(**properties))))
        state = policyeng.load_snapshot(tmp_path / "s.json")
        [finding] = policyeng.evaluate(exported, state, as_of=AS_OF).findings
        assert finding.outcome == expected


@pytest.mark.parametrize(
    ("identity", "reason"),
    [
        ("AML-CMP-008", "the field is a number, a list or an object"),
        ("AML-GOV-012", "it reads the clock"),
        ("AML-LOG-001", "it reads other resources"),
        ("AML-END-001", "without the field the outcome is not known, which a definition cannot say"),
        ("AML-CMP-005", "the values that pass are no names of an enumeration"),
        ("AML-END-002", "no alias of `Microsoft.MachineLearningServices/workspaces/serverlessEndpoints` is known"),
    ],
)
def test_what_a_definition_cannot_say_is_refused(identity: str, reason: str) -> None:
    """The reason names what the policy needs."""
    bundle = load_bundle()
    [policy] = [policy for policy in bundle.policies if policy.id == identity]
    with pytest.raises(ExportRefusedError) as caught:
        export_policy(bundle, policy)
    assert str(caught.value).startswith(reason)


def test_refusals_are_on_standard_error() -> None:
    """A policy that was asked for and is not exported is exit 2, one that does not exist exit 3."""
    ran = run("policies", "export", "AML-NET-001", "AML-CMP-008")
    assert ran.returncode == 2
    assert [entry["name"] for entry in orjson.loads(ran.stdout)] == ["aml-net-001"]
    assert "AML-CMP-008 is not exported: the field is a number" in ran.stderr
    assert run("policies", "export", "AML-NET-999").returncode == 3
    assert run("policies", "export", "AML-NET-001", "--to", "xml").returncode == 3
