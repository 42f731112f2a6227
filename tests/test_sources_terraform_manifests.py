"""Objects of Azure Service Operator that Terraform applies are evaluated as in a file of Kubernetes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from policyeng.models import JsonObject, Operation
from policyeng.sources.parsed import remark
from tests.command import ROOT, policyeng
from tests.terraform_parts import SCOPE, change, plan, read, resource, state, state_file

FILE = ROOT / "samples" / "formats" / "manifests.yaml"
WORKSPACE, CLUSTER = yaml.safe_load_all(FILE.read_text(encoding="utf-8"))
OBJECT, TEXT = "kubernetes_manifest", "kubectl_manifest"
WORKSPACES = f"{SCOPE}/providers/Microsoft.MachineLearningServices/workspaces"
NOT_READ = "is not read: its manifest, or the kind in it, is known only after apply or is sensitive"


def applied(kind: str, document: JsonObject, name: str = "this") -> JsonObject:
    """A resource that applies an object."""
    values = {"manifest": document} if kind == OBJECT else {"yaml_body": yaml.safe_dump(document)}
    return resource(kind, values, name)


def planned(*entries: JsonObject) -> JsonObject:
    """A plan that creates resources."""
    return plan(entries, [change(entry) for entry in entries])


def brief(finding: JsonObject) -> tuple[str, str, str]:
    """The subject of a finding."""
    return finding["policy"], finding["resource"], finding["outcome"]


@pytest.mark.parametrize("kind", [OBJECT, TEXT])
def test_the_findings_are_those_of_the_file(kind: str, tmp_path: Path) -> None:
    """Of `check` and of `admit`; the workspace of the cluster is an object of another resource of the plan."""
    entries = [applied(kind, WORKSPACE, "claims"), applied(kind, CLUSTER, "nodes")]
    (tmp_path / "plan.json").write_text(json.dumps(planned(*entries)))
    (tmp_path / "empty.json").write_text('{"snapshotVersion": 1}')
    given = ("--as-of", "2026-06-01T00:00:00Z", "--format", "json", "--scope", SCOPE)
    admitting = ("--snapshot", str(tmp_path / "empty.json"))
    checked, admitted = [], []
    for file in (str(FILE), str(tmp_path / "plan.json")):
        found = policyeng("check", file, *given)
        decided = policyeng("admit", file, *given, *admitting)
        assert (found.returncode, decided.returncode) == (1, 1)
        checked.append(sorted(map(brief, json.loads(found.stdout)["findings"])))
        admitted.append(sorted(map(brief, json.loads(decided.stdout)["denied"])))

    assert checked[0] == checked[1]
    assert ("AML-NET-001", f"{WORKSPACES}/claims", "fail") in checked[0]
    assert admitted[0] == admitted[1]
    assert ("AML-NET-001", f"{WORKSPACES}/claims", "fail") in admitted[0]


@pytest.mark.parametrize(
    ("document", "place"),
    [
        (planned(applied(OBJECT, WORKSPACE)), "/planned_values/root_module/resources/0/values/manifest"),
        (planned(applied(TEXT, WORKSPACE)), "/planned_values/root_module/resources/0/values/yaml_body"),
        (state([applied(OBJECT, WORKSPACE)]), "/values/root_module/resources/0/values/manifest"),
        (
            state_file(OBJECT, {"manifest": {"type": ["object", {}], "value": WORKSPACE}}),
            "/resources/0/instances/0/attributes/manifest/value",
        ),
    ],
)
def test_an_object_is_placed_in_its_document(document: JsonObject, place: str) -> None:
    """Fields too; in a text they are in the whole of it."""
    [placed] = read(document).resources
    access = placed.fields["/properties/publicNetworkAccess"]
    assert (placed.resource["id"], placed.pointer) == (f"{WORKSPACES}/claims", place)
    assert access == (place if place.endswith("yaml_body") else f"{place}/spec/publicNetworkAccess")


def test_a_field_that_is_known_only_after_apply_is_not_read() -> None:
    """The others are."""
    spec = {key: value for key, value in WORKSPACE["spec"].items() if key != "publicNetworkAccess"}
    entry = applied(OBJECT, {**WORKSPACE, "spec": spec})
    unknown = {"manifest": {"spec": {"publicNetworkAccess": True}}}
    [placed] = read(plan([entry], [change(entry, unknown)])).resources
    assert "<known after apply>" in placed.unreadable["/properties/publicNetworkAccess"]
    assert placed.resource["location"] == "westeurope"


@pytest.mark.parametrize(
    "unknown", [{"manifest": True}, {"manifest": {"kind": True}}, {"manifest": {"apiVersion": True}}]
)
def test_a_manifest_that_is_not_known_is_reported(unknown: JsonObject) -> None:
    """With the address, and no policy that needs it is decided without it."""
    entry = applied(OBJECT, WORKSPACE)
    reading = read(plan([entry], [change(entry, unknown)]))
    assert reading.resources == ()
    assert reading.remarks == (remark("/planned_values/root_module/resources/0", f"`{OBJECT}.this` {NOT_READ}"),)
    assert reading.incomplete == (f"plan.json: `{OBJECT}.this` {NOT_READ}",)


def test_a_text_that_is_sensitive_is_read_where_secrets_are_hidden() -> None:
    """The provider marks `yaml_body` so, and shows it without secrets in `yaml_body_parsed`."""
    text = yaml.safe_dump(WORKSPACE)
    for parsed, count in ((text, 1), (None, 0)):
        entry = resource(TEXT, {"yaml_body": text, "yaml_body_parsed": parsed})
        reading = read(planned({**entry, "sensitive_values": {"yaml_body": True}}))
        assert (len(reading.resources), len(reading.incomplete)) == (count, 1 - count)


def test_a_text_that_is_no_yaml_is_reported() -> None:
    """With the address."""
    [remark] = read(planned(resource(TEXT, {"yaml_body": "a: ["}))).remarks
    assert remark.message.startswith(f"`{TEXT}.this` is not read: not valid YAML")


def test_an_object_of_another_kind_has_nothing_to_evaluate() -> None:
    """A text without a document has nothing to evaluate, either."""
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
    reading = read(planned(applied(OBJECT, config), resource(TEXT, {"yaml_body": "# nothing\n---\n"}, "empty")))
    assert (reading.resources, reading.refusals, reading.remarks, reading.incomplete) == ((), (), (), ())
    assert reading.nothing.startswith("Terraform resources that no policy checks")


@pytest.mark.parametrize("kind", [OBJECT, TEXT])
def test_an_object_that_is_taken_away_is_a_deletion(kind: str) -> None:
    """Of the resource in Azure, which the operator deletes with it."""
    entry = applied(kind, WORKSPACE)
    gone = change(entry, before=entry["values"], actions=["delete"])
    [deletion] = read(plan([], [gone])).changes
    assert (deletion.change.operation, deletion.change.id) == (Operation.DELETE, f"{WORKSPACES}/claims")


def test_unchanged_values_are_known() -> None:
    """A change of an object of another kind touches no resource of Azure."""
    kept = applied(OBJECT, WORKSPACE, "kept")
    other = applied(OBJECT, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}, "other")
    stays = change(kept, before=kept["values"], actions=["no-op"])
    for changes, unchanged in (([stays, change(other)], 1), ([change(kept), change(other)], 0)):
        assert len(read(plan([kept, other], changes)).unchanged) == unchanged
