"""Names of members are read without case in every format, and the same member twice is an error."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import permutations
from pathlib import Path
from typing import Any

import orjson
import pytest

from policyeng.bundle import Bundle
from policyeng.bundle.cases import Baselines
from policyeng.evaluation import EvaluationOptions, evaluate, prepare
from policyeng.evaluation.prepared_snapshot import estate_of
from policyeng.facts.arm_casing import as_arm_reads
from policyeng.models import Evaluation, JsonObject, Snapshot
from policyeng.parsing.json_pointer import escaped, keys_of
from policyeng.schema import ResourceType, find_type
from policyeng.sources import Inputs, arm_resource, normalize_context, read_inputs
from tests.bypassing import pointers_read

AS_OF = datetime(2026, 6, 1, tzinfo=UTC)
GROUP = "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/rg-ml"
ID = f"{GROUP}/providers/Microsoft.MachineLearningServices/workspaces/ws"
TYPE = "Microsoft.MachineLearningServices/workspaces"
OPEN = {"id": ID, "name": "ws", "type": TYPE, "location": "eastus", "properties": {"PublicNetworkACCESS": "Enabled"}}
SCHEMA = "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#"
IN_TEMPLATE = {"apiVersion": "2025-12-01", **{key: value for key, value in OPEN.items() if key != "id"}}
BODY = {"Properties": OPEN["properties"]}
PLANNED = {
    "address": "azapi_resource.ws",
    "mode": "managed",
    "type": "azapi_resource",
    "name": "ws",
    "values": {"type": f"{TYPE}@2025-12-01", "name": "ws", "parent_id": GROUP, "location": "eastus", "body": BODY},
}
ROW = {**OPEN, "resourceGroup": "rg-ml", "subscriptionId": "1", "tenantId": "", "kind": "", "managedBy": ""}
#: By what it is, a document that opens a workspace to the public network in other letters.
DOCUMENTS: dict[str, object] = {
    "native": {"snapshotVersion": 1, "resources": [OPEN]},
    "native with the envelope in other letters": {
        "snapshotVersion": 1,
        "resources": [{"ID": ID, "TYPE": TYPE, "Properties": OPEN["properties"]}],
    },
    "one REST response": OPEN,
    "one REST response with the envelope in other letters": {"Id": ID, "Type": TYPE, "Properties": OPEN["properties"]},
    "a REST list": {"value": [OPEN]},
    "Resource Graph": {"count": 1, "data": [ROW]},
    "Resource Graph with a column in other letters": {
        "count": 1,
        "data": [{"Properties" if key == "properties" else key: value for key, value in ROW.items()}],
    },
    "an ARM template": {"$schema": SCHEMA, "contentVersion": "1.0.0.0", "resources": [IN_TEMPLATE]},
    "a Terraform plan": {
        "format_version": "1.2",
        "planned_values": {"root_module": {"resources": [PLANNED]}},
        "resource_changes": [],
    },
}


#: Members below which users choose the names, and which some types lack in the schema.
MAPS = ("tags",)


def read(tmp_path: Path, document: object) -> Inputs:
    """What is read of a document that is written with one member on each line."""
    file = tmp_path / "in.json"
    file.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2))
    return read_inputs([file], context=normalize_context(GROUP, "", {}))


def checked(bundle: Bundle, inputs: Inputs, policy: str = "AML-NET-001") -> Evaluation:
    """What one policy finds in it."""
    only = bundle.only(one for one in bundle.policies if one.id == policy)
    return evaluate(only, inputs.snapshot, EvaluationOptions(AS_OF, problems=inputs.problems))


@pytest.mark.parametrize("name", ["enableNodePublicIP", "enablenodepublicip", "EnableNodePublicIp"])
@pytest.mark.parametrize(("value", "outcome"), [(False, "pass"), (True, "fail")])
def test_a_setting_of_a_compute_in_other_letters(
    bundle: Bundle, tmp_path: Path, name: str, value: bool, outcome: str
) -> None:
    """The setting of public addresses, which Azure itself spells in two ways."""
    properties = {"computeType": "AmlCompute", "properties": {name: value}}
    compute = {"id": f"{ID}/computes/c", "name": "c", "type": f"{TYPE}/computes", "properties": properties}
    document = {"snapshotVersion": 1, "resources": [compute]}

    (finding,) = checked(bundle, read(tmp_path, document), "AML-CMP-003").findings

    assert finding.outcome.value == outcome


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_member_in_other_letters_is_found_and_placed(name: str, bundle: Bundle, tmp_path: Path) -> None:
    """Where it is written: line and column lead to the member as the file spells it."""
    evaluation = checked(bundle, read(tmp_path, DOCUMENTS[name]))

    (finding,) = (one for one in evaluation.findings if one.outcome == "fail")
    place = finding.location.fields["/properties/publicNetworkAccess"]
    line = (tmp_path / "in.json").read_text().splitlines()[place.line - 1]
    assert line[place.column - 1 :].lstrip().startswith(('"PublicNetworkACCESS"', '"Enabled"'))
    assert evaluation.exit_code == 1


@pytest.mark.parametrize("name", ["Azure CLI", "Kubernetes"])
def test_formats_with_case_report_a_member_in_other_letters(name: str, bundle: Bundle, tmp_path: Path) -> None:
    """The Azure CLI and Kubernetes read names with case, so the member is unknown to them: the report names it."""
    file = tmp_path / "in.yaml"
    if name == "Azure CLI":
        schema = "$schema: https://azuremlschemas.azureedge.net/latest/workspace.schema.json\n"
        file.write_text(f"{schema}name: ws\nlocation: eastus\nPublic_Network_Access: Disabled\n")
    else:
        file.write_text(
            "apiVersion: machinelearningservices.azure.com/v1api20240401\nkind: Workspace\nmetadata: {name: ws}\n"
            "spec: {location: eastus, PublicNetworkAccess: Disabled}\n"
        )
    evaluation = checked(bundle, read_inputs([file], context=normalize_context(GROUP, "", {})))

    assert any("networkaccess" in problem.message.lower().replace("_", "") for problem in evaluation.problems)
    assert not any(finding.outcome == "pass" for finding in evaluation.findings)


@pytest.mark.parametrize(
    "names", [("vmPriority", "VmPriority"), ("VmPriority", "vmPriority"), ("VMPriority", "VmPriority")]
)
def test_the_same_member_twice_is_an_error_with_both_places(
    names: tuple[str, str], bundle: Bundle, baselines: Baselines, tmp_path: Path
) -> None:
    """Which of the two ARM takes is unknown, so nothing that reads it passes."""
    cluster = next(
        one for one in baselines.resources.values() if "vmPriority" in one["properties"].get("properties", {})
    )
    inner = {key: value for key, value in cluster["properties"]["properties"].items() if key != "vmPriority"}
    inner |= dict(zip(names, ("Dedicated", "LowPriority"), strict=True))
    twice = {**cluster, "properties": {**cluster["properties"], "properties": inner}}

    evaluation = checked(bundle, read(tmp_path, {"snapshotVersion": 1, "resources": [twice]}), "AML-SKU-104")

    (problem,) = (one for one in evaluation.problems if one.level == "error")
    lines = [
        number
        for number, line in enumerate((tmp_path / "in.json").read_text().splitlines(), 1)
        if line.strip().startswith(tuple(f'"{name}"' for name in names))
    ]
    assert [f"in.json:{line}:" in problem.message for line in lines] == [True, True]
    assert problem.place == cluster["id"]
    assert evaluation.exit_code == 2
    assert not any(finding.outcome == "pass" for finding in evaluation.findings)


@pytest.mark.parametrize("document", [[{"id": ID, "Id": ID, "type": TYPE}], {"value": [{"ID": ID, "Id": ID}]}])
def test_a_resource_whose_id_is_there_twice_is_refused(document: object, tmp_path: Path) -> None:
    """With the names of both."""
    (problem,) = read(tmp_path, document).problems

    assert problem.level == "error"
    assert "the same member" in problem.message


def test_maps_of_the_user_keep_their_names(bundle: Bundle) -> None:
    """Two of them that differ in case are two; the properties of a job or an asset are such a map."""
    maps: JsonObject = {"VmSize": "a", "vmsize": "b"}
    job: JsonObject = {
        "id": f"{ID}/jobs/j",
        "type": f"{TYPE}/jobs",
        "tags": maps,
        "properties": {
            "jobType": "Command",
            "properties": maps,
            "tags": maps,
            "environmentVariables": maps,
            "inputs": maps,
            "resources": {"properties": maps},
        },
    }
    asset = {"id": f"{ID}/models/m/versions/1", "type": f"{TYPE}/models/versions", "properties": {"properties": maps}}
    snapshot = Snapshot(resources=(job, asset))

    prepared = prepare(bundle, snapshot)

    assert prepared.snapshot is snapshot
    assert not [problem for problem in prepared.estate.problems if problem.level == "error"]


def test_nested_properties_of_computes_are_those_of_arm(bundle: Bundle) -> None:
    """`properties.properties` of a compute is no map of the user."""
    compute = {"id": f"{ID}/computes/c", "type": f"{TYPE}/computes", "properties": {"Properties": {"VMSize": "a"}}}

    (read,) = prepare(bundle, Snapshot(resources=(compute,))).snapshot.resources

    assert read["properties"] == {"properties": {"vmSize": "a"}}


def test_letters_beyond_ascii_make_another_name() -> None:
    """U+0130 becomes `i` in lower case and U+212A `k`, and ARM takes neither for one."""
    part = {"properties": {"publ\u0130cNetworkAccess": "Disabled", "publicNetwor\u212aAccess": "Disabled"}}

    assert as_arm_reads(part, TYPE).part is part


@pytest.mark.parametrize("keys", [("A", "b", "A2"), ("name", "A", "b"), ("A", "B", "c", "d")])
def test_which_members_are_there_twice_does_not_depend_on_their_order(keys: tuple[str, ...]) -> None:
    """One pair of them is reported, the same whatever comes first."""
    spelled = {"A": "PUBLICNETWORKACCESS", "b": "publicnetworkaccess", "A2": "PublicnetworkAccess"}
    spelled |= {"name": "publicNetworkAccess", "B": "HBIWORKSPACE", "c": "hbiworkspace", "d": "Publicnetworkaccess"}
    found = {
        as_arm_reads({"properties": {spelled[key]: None for key in order}}, TYPE).twice for order in permutations(keys)
    }

    assert len(found) == 1
    assert found != {()}


def test_an_estate_in_arm_spelling_is_not_copied(bundle: Bundle, baselines: Baselines) -> None:
    """So that reading names without case costs next to nothing; each type spells a name in its own way."""
    snapshot = Snapshot(resources=tuple(baselines.resources.values()))

    prepared = prepare(bundle, snapshot)

    assert prepared.snapshot is snapshot
    assert prepared.estate.digest == estate_of(snapshot, bundle.facts).digest


def is_member(known: ResourceType, place: str, name: str) -> bool:
    """Whether a name is that of a member, and not of the user."""
    holder = known.body.at(place)
    return holder is not None and (name in holder.types or holder.values is None)


@pytest.mark.slow
def test_every_name_that_a_policy_reads_is_known_in_other_letters(bundle: Bundle) -> None:
    """Otherwise a member in other letters is absent to the policy, which may then not fail."""
    read = {
        (arm_type, *keys[:length])
        for arm_type, pointers in pointers_read(bundle).items()
        for keys in map(keys_of, pointers if "/" in arm_type else ())
        for length in range(2, len(keys) + 1)
    }
    unknown = set()
    for arm_type, *above, name in read:
        known = find_type(arm_type)
        place = "".join(f"/{escaped(key)}" for key in above)
        if known and (known.body.at(f"{place}/{escaped(name)}") is None or not is_member(known, place, name)):
            continue  # a helper looks for it in resources of any type, or the name is the user's
        if name == "*" or above[-1] in MAPS:
            continue
        part: JsonObject = {name.upper(): 1}
        for key in reversed(above):
            part = {key: part}
        made: Any = as_arm_reads(part, arm_type, bundle.spellings).part
        for key in above:
            made = made[key]
        if name not in made:
            unknown.add((arm_type, *above, name))

    assert len(read) > 300
    assert unknown == set()


NESTED_LISTS = [(kind, name) for kind, names in arm_resource._PRINTED.items() for name in names]


@pytest.mark.parametrize(("kind", "name"), NESTED_LISTS)
@pytest.mark.parametrize("spelling", ["properties", "Properties", "PROPERTIES"])
def test_a_nested_resource_with_properties_in_other_letters_is_not_flat(kind: str, name: str, spelling: str) -> None:
    """The output of commands lacks `properties`; a second level would hide what is in the first."""
    entry = {"id": "/x", "type": kind, "properties": {name: [{"NAME": "a", spelling: {"groupIds": ["b"]}}]}}

    assert arm_resource.nest_printed(entry, "").resource == entry


def test_a_private_endpoint_in_other_letters_is_evaluated(bundle: Bundle) -> None:
    """Its connection to a workspace is found, and its missing DNS zones with it."""
    identity = f"{GROUP}/providers/Microsoft.Network/privateEndpoints/pe"
    connection = {"privateLinkServiceId": ID, "groupIds": ["amlworkspace"]}
    outcomes = set()
    for spelling in ("properties", "PROPERTIES"):
        parts = {"privateLinkServiceConnections": [{"name": "c", spelling: connection}]}
        endpoint = {"id": identity, "type": "Microsoft.Network/privateEndpoints", "name": "pe", "properties": parts}
        read = read_inputs(["-"], stdin=orjson.dumps({"snapshotVersion": 1, "resources": [endpoint]}))
        findings = evaluate(bundle, read.snapshot, EvaluationOptions(AS_OF)).findings
        outcomes.add(tuple((finding.policy, finding.outcome) for finding in findings))

    assert len(outcomes) == 1
    assert "AML-NET-005" in {policy for outcome in outcomes for policy, _ in outcome}
