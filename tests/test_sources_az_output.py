"""Output of `az ml`: read by the ids it states, without what it loses, and refused where it states nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyeng import evaluate
from policyeng.bundle import Bundle
from policyeng.evaluation.pointers import has_value, value_at
from policyeng.models import JsonObject, Outcome, Problem
from policyeng.sources import FORMATS, az_output, azure_cli, read_inputs
from policyeng.sources.azure_cli.converter import CliDocumentKind, build_id
from policyeng.sources.parsed import Placed, Surroundings, refuse
from tests.effort import effort
from tests.test_sources_azure_cli import (
    AROUND,
    CONNECTIONS,
    ID,
    KEYS,
    ML,
    SCRIPTS,
    VALUES,
    WORKSPACE,
    C,
    P,
    estates,
    gaps,
    leaves,
    overlap,
)
from tests.writers import az_output as writer

CLUSTER: JsonObject = {
    "id": f"{WORKSPACE}/computes/c",
    "name": "c",
    "type": "amlcompute",
    "resourceGroup": "rg-ml",
    "location": "eastus",
    "size": "STANDARD_DS3_V2",
    "tier": "dedicated",
    "min_instances": 1,
    "max_instances": 2,
    "idle_time_before_scale_down": 120,
    "enable_node_public_ip": True,
    "ssh_public_access_enabled": True,
    "network_settings": {},
    "provisioning_state": "Succeeded",
}
INSTANCE: JsonObject = {
    "id": f"{WORKSPACE}/computes/i",
    "name": "i",
    "type": "computeinstance",
    "location": "eastus",
    "size": "s",
    "state": "Running",
    "enable_node_public_ip": False,
    "provisioning_state": "Succeeded",
}
SPARK: JsonObject = {
    "id": f"{WORKSPACE}/computes/s",
    "name": "s",
    "type": "synapsespark",
    "location": "eastus",
    "resource_id": ID,
    "provisioning_state": "Succeeded",
}
HOME: JsonObject = {
    "id": WORKSPACE,
    "name": "ws",
    "resource_group": "rg-ml",
    "location": "eastus",
    "discovery_url": "https://x",
    "hbi_workspace": False,
    "public_network_access": "Disabled",
    "tags": {},
}


def one(document: object, around: Surroundings = AROUND) -> Placed:
    """The only resource of an output."""
    reading = az_output.read(document, around)
    assert reading.refusals == ()
    [placed] = reading.resources
    return placed


@pytest.mark.parametrize(
    ("document", "more", "pointer", "value"),
    [
        (CLUSTER, {}, "/id", f"{WORKSPACE}/computes/c"),
        (CLUSTER, {}, f"{P}/computeType", "AmlCompute"),
        (CLUSTER, {}, f"{P}/isAttachedCompute", False),
        (CLUSTER, {}, f"{P}/provisioningState", "Succeeded"),
        (CLUSTER, {"provisioning_state": "ProvisioningState.SUCCEEDED"}, f"{P}/provisioningState", "Succeeded"),
        (CLUSTER, {"tier": "VmPriority.LOW_PRIORITY"}, f"{C}/vmPriority", "LowPriority"),
        (CLUSTER, {}, f"{C}/vmPriority", "Dedicated"),
        (CLUSTER, {}, f"{C}/scaleSettings/nodeIdleTimeBeforeScaleDown", "PT120S"),
        (
            CLUSTER,
            {"idle_time_before_scale_down": 120.0},
            f"{C}/scaleSettings/nodeIdleTimeBeforeScaleDown",
            "PT120S",
        ),
        (CLUSTER, {}, f"{C}/remoteLoginPortPublicAccess", "Enabled"),
        (CLUSTER, {"network_settings": {"subnet": ID}}, f"{C}/subnet/id", ID),
        (CLUSTER, {"created_on": "t"}, f"{P}/createdOn", "t"),
        (CLUSTER, {"identity": {"type": "system_assigned", "principal_id": "p"}}, "/identity/principalId", "p"),
        (CLUSTER, {"identity": {"type": "system_assigned", "tenant_id": "t"}}, "/identity/tenantId", "t"),
        (INSTANCE, {}, f"{C}/state", "Running"),
        (INSTANCE, {}, f"{C}/enableNodePublicIp", False),
        (INSTANCE, {"last_operation": {"operation_name": "Stop"}}, f"{C}/lastOperation", {"operationName": "Stop"}),
        (
            INSTANCE,
            {"network_settings": {"public_ip_address": "1.1.1.1"}},
            f"{C}/connectivityEndpoints/publicIpAddress",
            "1.1.1.1",
        ),
        (
            INSTANCE,
            {"os_image_metadata": {"is_latest_os_image_version": False}},
            f"{C}/osImageMetadata/isLatestOsImageVersion",
            False,
        ),
        (INSTANCE, {"ssh_settings": {"ssh_port": "50000"}}, f"{C}/sshSettings/sshPort", 50000),
        (
            INSTANCE,
            {"custom_applications": [{"name": "r", "type": "docker", "image": {"reference": "r:1"}}]},
            f"{C}/customServices",
            [{"type": "docker", "name": "r", "image": {"type": "docker", "reference": "r:1"}}],
        ),
        (SPARK, {}, f"{P}/isAttachedCompute", True),
        (SPARK, {"node_count": 3}, f"{C}/nodeCount", 3),
        (SPARK, {"scale_settings": {"auto_scale_enabled": True}}, f"{C}/autoScaleProperties/enabled", True),
        (SPARK, {"auto_pause_settings": {"delay_in_minutes": 15}}, f"{C}/autoPauseProperties/delayInMinutes", 15),
        (HOME, {}, f"{P}/publicNetworkAccess", "Disabled"),
        (HOME, {"hub_id": ID}, "/kind", "Project"),
        (HOME, {"associated_workspaces": []}, "/kind", "Hub"),
        (HOME, {"customer_managed_key": {"key_uri": "u"}}, f"{P}/encryption/status", "Enabled"),
        (HOME, {"sku": "Basic"}, "/sku/name", "Basic"),
    ],
)
def test_a_field_is_brought_into_arm_shape(document: JsonObject, more: JsonObject, pointer: str, value: object) -> None:
    """The keys of a file, with those that only an output has."""
    assert value_at(one({**document, **more}).resource, pointer) == value


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        (CLUSTER, f"{C}/subnet"),
        (CLUSTER, "/identity"),
        (INSTANCE, f"{C}/idleTimeBeforeShutdown"),
        (INSTANCE, f"{C}/sshSettings"),
        (INSTANCE, f"{C}/computeInstanceAuthorizationType"),
        (HOME, f"{P}/encryption"),
        (HOME, f"{P}/managedNetwork"),
        (HOME, "/kind"),
    ],
)
def test_nothing_is_filled_into_an_output(document: JsonObject, pointer: str) -> None:
    """The service has responded: what it did not state is absent, and no default of the CLI takes its place."""
    placed = one(document)

    assert not has_value(placed.resource, pointer)
    assert not [place for place in placed.unreadable if overlap(pointer, place)]


@pytest.mark.parametrize(
    ("document", "more", "pointer", "reason"),
    [
        (
            CLUSTER,
            {"ssh_public_access_enabled": False},
            f"{C}/remoteLoginPortPublicAccess",
            "both `Disabled` and `NotSpecified`",
        ),
        (INSTANCE, {"enable_node_public_ip": True}, f"{C}/enableNodePublicIp", "the service omits it"),
        (
            INSTANCE,
            {"custom_applications": [{"name": "r", "image": {"reference": "r:1"}}]},
            f"{C}/customServices/0/docker",
            "whether a custom application is privileged",
        ),
        (
            INSTANCE,
            {"setup_scripts": {"creation_script": {"path": "setup.sh"}}},
            f"{C}/setupScripts/scripts/creationScript/scriptSource",
            "a file or inline",
        ),
        (CLUSTER, {"type": "*** unsupported compute type ***"}, f"{P}/computeType", "prints no compute type"),
        (CLUSTER, {"type": None}, f"{P}/computeType", "prints no compute type"),
        (HOME, {"storage_account": "<X>"}, f"{P}/storageAccount", "placeholder"),
        (
            {"id": f"{WORKSPACE}/datastores/d", "name": "d", "type": "azure_blob", "account_name": "a"},
            {"credentials": {}},
            f"{P}/credentials/credentialsType",
            "whose secrets it hides",
        ),
    ],
)
def test_what_an_output_does_not_state_is_unreadable(
    document: JsonObject, more: JsonObject, pointer: str, reason: str
) -> None:
    """One printed value for several of ARM is none of them."""
    placed = one({**document, **more})

    assert reason in placed.unreadable[pointer]
    assert not has_value(placed.resource, pointer)


@pytest.mark.parametrize("missing", ["tier", "min_instances", "size", "ssh_public_access_enabled"])
def test_an_output_that_was_cut_short_proves_nothing_by_what_it_lacks(missing: str) -> None:
    """One key that is always printed is missing, so any other may have been cut off, too."""
    document = {key: value for key, value in CLUSTER.items() if key not in (missing, "network_settings")}
    placed = one(document)

    assert f"`az ml` always prints `{missing}`" in placed.unreadable[f"{C}/subnet/id"]
    assert placed.resource["id"] == CLUSTER["id"]
    assert "/name" not in placed.unreadable


#: By kind of output, the fields that policies inspect and it cannot state.
GAPS: dict[str, set[str]] = {
    "amlcompute": {*SCRIPTS, f"{P}/disableLocalAuth", f"{C}/connectivityEndpoints/publicIpAddress"},
    "computeinstance": {f"{P}/disableLocalAuth", f"{C}/applicationSharingPolicy"},
    "synapsespark": SCRIPTS,
    "workspace": {
        *CONNECTIONS,
        f"{P}/allowPublicAccessWhenBehindVnet",
        f"{P}/ipAllowlist",
        f"{P}/ipAllowlist/*",
        f"{P}/v1LegacyMode",
    },
}


@pytest.mark.parametrize("document", [CLUSTER, {**INSTANCE, "last_operation": {}}, SPARK, HOME])
def test_what_policies_inspect_and_an_output_cannot_state(document: JsonObject, bundle: Bundle) -> None:
    """The gaps are declared; a policy that looks into one is unknown."""
    assert gaps(one(document), bundle) == GAPS[document.get("type", "workspace")]


@pytest.mark.parametrize(
    "document",
    [
        CLUSTER,
        [CLUSTER, HOME],
        [{"id": f"{WORKSPACE}/computes/c", "name": "c", "type": "amlcompute"}],
        {"id": WORKSPACE, "name": "ws", "type": "Microsoft.MachineLearningServices/workspaces", "storage_account": ID},
        {"id": f"{WORKSPACE}/onlineEndpoints/e", "properties": {}, "auth_mode": "key", "name": "e"},
        {"id": f"azureml:{WORKSPACE}/environments/e/versions/1", "conda_file": {}, "name": "e"},
        {"name": "ws", "mlflow_tracking_uri": "azureml://x", "discovery_url": "x"},
        {"ERROR": "(ResourceNotFound) it is not there", "Code": "ResourceNotFound", "Message": "it is not there"},
    ],
)
def test_an_output_is_detected(document: object) -> None:
    """By its keys and its id, and by no other format."""
    assert [name for name, reader in FORMATS.items() if reader.detect(document)] == ["az-output"]


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {},
        {"name": "c", "type": "amlcompute"},
        {"id": WORKSPACE, "type": "Microsoft.MachineLearningServices/workspaces", "properties": {}, "a_b": 1},
        {"id": WORKSPACE, "type": "Microsoft.MachineLearningServices/workspaces", "friendlyName": "flat"},
        {"id": "/subscriptions/s/resourceGroups/g/providers/Microsoft.Storage/storageAccounts/a", "access_tier": "Hot"},
        {"ERROR": "x", "other": 1},
        {"subscription_id": "s", "resource_group": "g", "workspace_name": "w"},
    ],
)
def test_other_documents_are_left_alone(document: object) -> None:
    """Files, responses of REST, and the outputs of other commands."""
    assert not az_output.detect(document)
    assert not az_output.belongs_to_workspace(document)


@pytest.mark.parametrize(
    ("document", "pointer", "message", "remedy"),
    [
        ({"ERROR": "x"}, "", "the error of a command that failed", "save its output again"),
        ([CLUSTER, 3], "/1", "not the output of `az ml`: a number", "save the output"),
        ([CLUSTER, {"id": ID, "a_b": 1}], "/1", "no `id` of Azure Machine Learning", "save the output"),
        ([CLUSTER, {"a_b": 1}], "/1", "no `id` of Azure Machine Learning", "save the output"),
        ({"id": f"{ML}/workspaces/<ws>/computes/c", "a_b": 1}, "/id", "`id` is a placeholder", "with a value"),
        (
            {"id": "/subscriptions/s/providers/Microsoft.MachineLearningServices/locations/l/usages/u", "a_b": 1},
            "",
            "which no policy checks in the output of `az ml`",
            "leave it out",
        ),
        (None, "", "not the output of `az ml`: null", "save the output"),
    ],
)
def test_unreadable_outputs_are_refused(document: object, pointer: str, message: str, remedy: str) -> None:
    """With its place and what to do; it hides none of the others."""
    reading = az_output.read(document, AROUND)
    [refusal] = reading.refusals

    assert refusal.place == pointer
    assert message in refusal.message
    assert remedy in refusal.remedy
    assert len(reading.resources) == (1 if isinstance(document, list) else 0)


def test_an_old_flat_workspace_is_refused_with_the_remedy() -> None:
    """The first version of the extension printed the keys of ARM without `properties`."""
    document = {"id": WORKSPACE, "friendlyName": "x", "identityPrincipalId": "p", "workspaceid": "w", "name": "ws"}
    [reader] = [reader for reader in FORMATS.values() if reader.detect(document)]
    [refusal] = reader.read(document).refusals

    assert refusal.message.startswith("a flattened listing")
    assert "az rest --method get" in refusal.remedy


def test_assets_contain_nothing_to_evaluate() -> None:
    """Alone they are understood; among others they are passed over."""
    asset = {"id": f"azureml:{WORKSPACE}/models/m/versions/1", "type": "mlflow_model", "name": "m"}

    assert az_output.read(asset).nothing == "a model: nothing to check"
    assert [placed.pointer for placed in az_output.read([asset, CLUSTER]).resources] == ["/1"]


def test_environments_are_evaluated() -> None:
    """Their version is the name of the resource."""
    document = {"id": f"azureml:{WORKSPACE}/environments/e/versions/1", "conda_file": {}, "name": "e", "image": "i"}
    [placed] = az_output.read(document).resources

    assert placed.resource["id"] == f"{WORKSPACE}/environments/e/versions/1"
    assert placed.resource["properties"]["image"] == "i"


def test_a_kind_without_tables_is_converted_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kinds are chosen by the type of the id, whatever they are; nothing is reported of what they lack."""
    arm_type = "Microsoft.MachineLearningServices/workspaces/onlineEndpoints"

    def bring(document: JsonObject, pointer: str, around: Surroundings) -> Iterator[Placed | Problem]:
        yield Placed({"id": build_id(document, arm_type, around), "type": arm_type, "properties": {}}, pointer)
        yield refuse(pointer, "and a part of it that cannot be read")

    monkeypatch.setattr(azure_cli, "KINDS", (*azure_cli.KINDS, CliDocumentKind(arm_type, (), lambda _: False, bring)))
    reading = az_output.read([CLUSTER, {"id": f"{WORKSPACE}/onlineEndpoints/e", "auth_mode": "key"}])

    assert [placed.resource["id"] for placed in reading.resources] == [CLUSTER["id"], f"{WORKSPACE}/onlineEndpoints/e"]
    assert [refusal.place for refusal in reading.refusals] == ["/1"]


def test_an_output_without_its_id_is_placed_by_its_name() -> None:
    """None of its parents is a fact then."""
    document = {key: value for key, value in CLUSTER.items() if key != "id"}
    placed = one(document)
    reading = az_output.read(document, Surroundings())

    assert placed.resource["id"] == f"{WORKSPACE}/computes/c"
    assert "it has no `id`" in placed.unreadable["/id"]
    assert az_output.belongs_to_workspace(document)
    assert not az_output.belongs_to_workspace(CLUSTER)
    assert reading.movable == reading.resources[0].resource["id"]
    assert az_output.read(CLUSTER, Surroundings()).movable == ""


def test_findings_point_at_the_key_of_the_output(tmp_path: Path, bundle: Bundle) -> None:
    """Line and column in the file that the output was saved in, be it JSON or YAML."""
    (tmp_path / "computes.json").write_text(json.dumps([CLUSTER], indent=1), encoding="utf-8")
    open_workspace = {**HOME, "public_network_access": "Enabled"}
    (tmp_path / "workspace.yaml").write_text(json.dumps(open_workspace, indent=1), encoding="utf-8")
    findings = evaluate(bundle, read_inputs([tmp_path]).snapshot).findings
    failed = {finding.policy: finding for finding in findings if finding.outcome is Outcome.FAIL}
    nodes = failed["AML-CMP-008"].location.fields[f"{C}/scaleSettings/minNodeCount"]
    access = failed["AML-NET-001"].location.fields[f"{P}/publicNetworkAccess"]

    assert (Path(nodes.file).name, nodes.line, nodes.column) == ("computes.json", 10, 20)
    assert (Path(access.file).name, access.line, access.column) == ("workspace.yaml", 8, 27)


@settings(max_examples=effort(30, 150), deadline=None)
@given(estates())
def test_an_estate_that_is_printed_comes_back(resources: list[JsonObject]) -> None:
    """Every field is equal where the output states it, and unreadable where the output loses it."""
    read = {
        placed.resource["id"]: placed
        for content in writer.write(resources).values()
        for placed in az_output.read(json.loads(content)).resources
    }

    assert list(read) == [resource["id"] for resource in resources]
    for resource in resources:
        placed = read[resource["id"]]
        for pointer, value in leaves(resource):
            if any(overlap(pointer, place) for place in placed.unreadable):
                assert not has_value(placed.resource, pointer)
            elif pointer != "/kind":  # a feature store is printed as any other workspace
                assert value_at(placed.resource, pointer) == value, pointer


@settings(max_examples=effort(40, 200), deadline=None)
@given(
    st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=6),
    st.sampled_from([CLUSTER, INSTANCE, SPARK, HOME]),
)
def test_no_value_makes_it_raise(more: JsonObject, document: JsonObject) -> None:
    """Whatever its content, an output is read or refused."""
    for written in ({**document, **more}, [{**more, **document}, more], more):
        az_output.detect(written)
        az_output.belongs_to_workspace(written)
        for placed in az_output.read(written).resources:
            assert placed.resource["id"]
            assert isinstance(placed.resource["properties"], dict)


REAL = Path(__file__).resolve().parents[2] / "shared" / "real" / "cli_v2_output"
NOUNS = ("workspace", "compute", "registry", "connection", "datastore")


@pytest.mark.skipif(not REAL.is_dir(), reason="the real outputs are next to the repository")
def test_real_outputs_are_read() -> None:
    """Every one of a workspace, a compute or a store becomes its resources."""
    files = [path for path in sorted(REAL.rglob("*.json")) if any(f"_ml_{noun}" in path.name for noun in NOUNS)]

    assert len(files) == 12
    for path in files:
        inputs = read_inputs([path])
        assert inputs.problems == ()
        document = json.loads(path.read_text(encoding="utf-8"))
        assert len(inputs.snapshot.resources) == (len(document) if isinstance(document, list) else 1)


OTHER = WORKSPACE.replace("/workspaces/ws", "/workspaces/other")
PRINTED: list[tuple[JsonObject, str, str]] = [
    (
        {"type": "command", "command": "x", "environment": "azureml:e:1", "compute": "azureml:c1"},
        "jobs/j",
        f"{P}/computeId",
    ),
    (
        {"type": "model", "endpoint_name": "b", "compute": "azureml:c1"},
        "batchEndpoints/b/deployments/d",
        f"{P}/compute",
    ),
    (
        {"trigger": {"type": "cron"}, "create_job": {"type": "command", "command": "x", "compute": "azureml:c1"}},
        "schedules/s",
        f"{P}/action/jobDefinition/computeId",
    ),
]


@pytest.mark.parametrize("prefix", ["", "azureml:", "AzureML:"])
@pytest.mark.parametrize(("document", "below", "pointer"), PRINTED)
def test_names_are_those_of_the_workspace_that_the_id_states(
    document: JsonObject, below: str, pointer: str, prefix: str
) -> None:
    """The SDK prefixes some ids with `azureml:`; they precede the surroundings of the output."""
    printed = {"id": f"{prefix}{OTHER}/{below}", "name": "x", "creation_context": {}, **document}
    assert [name for name, reader in FORMATS.items() if reader.detect(printed)] == ["az-output"]
    for around in (AROUND, Surroundings()):
        first, *rest = az_output.read(printed, around).resources
        assert first.resource["id"] == f"{OTHER}/{below}"
        assert value_at(first.resource, pointer) == f"{OTHER}/computes/c1"
        assert "/id" not in first.unreadable
        assert [placed.resource["properties"]["computeId"] for placed in rest] in ([], [f"{OTHER}/computes/c1"])
        assert not [placed for placed in rest if not placed.resource["id"].startswith(f"{OTHER}/jobs/")]


def test_an_id_outside_of_workspaces_states_none() -> None:
    """That of a registry leaves what surrounds it."""
    printed = {"id": f"{ML}/registries/r", "name": "r", "location": "eastus", "replication_locations": []}
    assert one(printed).resource["id"] == f"{ML}/registries/r"


def test_a_job_runs_on_the_cluster_of_its_workspace(tmp_path: Path, bundle: Bundle) -> None:
    """Printed one by one, they are reported as one workspace."""
    job = {
        "id": f"azureml:{WORKSPACE}/jobs/j",
        "name": "j",
        "creation_context": {},
        "status": "Running",
        **PRINTED[0][0],
    }
    for name, document in {
        "workspace": HOME,
        "cluster": {**CLUSTER, "id": f"{WORKSPACE}/computes/c1", "name": "c1"},
        "job": job,
    }.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(document), encoding="utf-8")
    inputs = read_inputs([tmp_path])

    failed = [
        finding.policy
        for finding in evaluate(bundle, inputs.snapshot).findings
        if finding.outcome is Outcome.FAIL and finding.policy == "AML-TRN-109"
    ]
    assert len(inputs.snapshot.resources) == 3
    assert failed == []
