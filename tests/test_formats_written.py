"""An estate has the same findings in every format, and what a format cannot state is left out."""

from __future__ import annotations

import json
from itertools import islice

import pytest

from policyeng.bundle import load_bundle
from policyeng.bundle.cases import DEFAULT_AS_OF
from policyeng.bundle.policy_selection import selected
from policyeng.models import JsonObject
from policyeng.verify.generators.examples import Example, examples_of
from policyeng.verify.laws.law import LawContext, Trial, Violation
from tests.laws.formats import compared, violated, written
from tests.writers import WRITERS, sayable
from tests.writers.arm_template import SCOPE

WORKSPACE = f"{SCOPE}/providers/Microsoft.MachineLearningServices/workspaces/ws-ml"


def workspace(**properties: object) -> JsonObject:
    """A workspace that every format can state."""
    stated = {"publicNetworkAccess": "Disabled", "managedNetwork": {"isolationMode": "Disabled"}, **properties}
    kind = "Microsoft.MachineLearningServices/workspaces"
    return {
        "id": WORKSPACE,
        "name": "ws-ml",
        "type": kind,
        "location": "eastus",
        "kind": "Default",
        "properties": stated,
    }


def violations(grounds: LawContext, examples: int) -> list[Violation]:
    """What the law finds on the first examples of a seed."""
    tried = (Trial(grounds, example, str(number)) for number, example in enumerate(examples_of(grounds.bundle, 1)))
    return [found for trial in islice(tried, examples) if (found := violated(trial))]


@pytest.mark.slow
def test_our_policies_decide_the_same_in_every_format() -> None:
    """On random examples nothing differs, and the remarks state how many findings were compared with each format."""
    grounds = LawContext(load_bundle())

    assert violations(grounds, 8) == []
    assert sum(grounds.remarks[f"formats: findings compared with `{name}`"] for name in WRITERS) > 100


@pytest.mark.parametrize("name", WRITERS)
def test_a_plain_workspace_can_be_written_in_every_format(name: str) -> None:
    """It is written, read back and decided alike; a command does not print whether it is a project."""
    grounds = LawContext(selected(load_bundle(), ["AML-NET-001"]))
    for access, others in (("Disabled", {}), ("Enabled", {"friendlyName": "w"})):
        document: JsonObject = {"resources": [workspace(publicNetworkAccess=access, **others)]}
        outcome = compared(Trial(grounds, Example(document, {}, DEFAULT_AS_OF)), name)

        assert (list(outcome.different), outcome.refused) == ([], "")
        assert outcome.decided == int(name != "az-output")


@pytest.mark.parametrize(
    "resource",
    [
        workspace() | {"type": "Microsoft.MachineLearningServices/registries"},
        workspace() | {"name": "another"},
        workspace() | {"tags": {"a": 1}},
        workspace() | {"tags": ["a"]},
        workspace() | {"properties": "text"},
        workspace() | {"id": "ws"},
        {"type": "Microsoft.MachineLearningServices/workspaces"},
        {"id": WORKSPACE},
    ],
)
def test_strange_resources_are_left_out(resource: JsonObject) -> None:
    """No writer takes what its format cannot state, and none raises."""
    assert all(written(name, [resource]) == ([], {}) for name in WRITERS)


@pytest.mark.parametrize("name", ["azure-cli", "az-output"])
def test_what_a_writer_omits_is_not_stated(name: str) -> None:
    """A resource with a value that the format has no key for, and that the writer does not know, is left out."""
    [writer, *_] = WRITERS[name]

    assert sayable(writer, workspace(v1LegacyMode=True))
    assert not sayable(writer, workspace(unheardOf=True))


def test_what_the_cli_chooses_itself_is_not_stated() -> None:
    """Without a size the CLI makes an instance of its default one, which is another estate than one that has none."""
    [writer, *_] = WRITERS["azure-cli"]
    sent = {"vmSize": "Standard_DS3_v2", "enableNodePublicIp": True}
    instance = {
        "id": f"{WORKSPACE}/computes/c",
        "name": "c",
        "type": "Microsoft.MachineLearningServices/workspaces/computes",
        "properties": {"computeType": "ComputeInstance", "properties": sent},
    }

    assert sayable(writer, instance)
    assert not sayable(writer, {**instance, "properties": {"computeType": "ComputeInstance"}})


def test_what_the_cli_sends_by_default_is_stated() -> None:
    """Where a file omits these, the CLI sends a value, and ARM has one where the resource states none."""
    [_, writer] = WRITERS["azure-cli"]
    kind = "Microsoft.MachineLearningServices/workspaces/onlineEndpoints"
    endpoint: JsonObject = {"id": f"{WORKSPACE}/onlineEndpoints/e", "name": "e", "type": kind}
    endpoint |= {"identity": {"type": "SystemAssigned"}}
    deployment = {"id": f"{endpoint['id']}/deployments/d", "name": "d", "type": f"{kind}/deployments"}
    served = {"endpointComputeType": "Managed"}

    assert sayable(writer, {**endpoint, "properties": {"authMode": "Key"}})
    assert not sayable(writer, {**endpoint, "properties": {}})
    assert sayable(writer, {**deployment, "properties": {**served, "appInsightsEnabled": False}})
    assert not sayable(writer, {**deployment, "properties": served})


def test_what_is_not_an_object_is_not_omitted() -> None:
    """A file of the CLI cannot express it, and a row of a query states it as it is."""
    [writer, *_] = WRITERS["azure-cli"]

    assert not sayable(writer, {**workspace(), "identity": 1})
    [statement], files = written("resource-graph", [{**workspace(), "kind": []}])
    assert statement["kind"] == json.loads(files["0/graph.json"])["data"][0]["kind"] == []


def test_a_resource_is_described_with_its_name() -> None:
    """No format lacks it, so a finding about it has the same path in each."""
    document: JsonObject = {"resources": [{key: value for key, value in workspace().items() if key != "name"}]}
    grounds = LawContext(selected(load_bundle(), ["AML-GOV-002"]))
    for name in WRITERS:
        [statement], _ = written(name, document["resources"])
        assert statement["name"] == "ws-ml"
        assert list(compared(Trial(grounds, Example(document, {}, DEFAULT_AS_OF)), name).different) == []


def test_an_estate_that_no_format_can_state_is_reported() -> None:
    """The run counts it, and does not pass for compared."""
    grounds = LawContext(load_bundle())
    trial = Trial(grounds, Example({"resources": [{"id": "x", "type": "y"}]}, {}, DEFAULT_AS_OF))

    assert violated(trial) is None
    assert grounds.remarks == {"formats: examples of which no format states what is decided": 1}


@pytest.mark.parametrize("name", ["arm-template", "resource-graph"])
def test_a_resource_without_properties_is_described_as_that(name: str) -> None:
    """A deployment without any is a workload of which nothing is known, not one of which nothing is stated."""
    grounds = LawContext(selected(load_bundle(), ["AML-INF-104"]))
    kind = "Microsoft.MachineLearningServices/workspaces/batchEndpoints/deployments"
    bare = {"id": f"{WORKSPACE}/batchEndpoints/b/deployments/n", "type": kind}
    for resource in (bare, {**bare, "properties": {}}):
        assert compared(Trial(grounds, Example({"resources": [resource]}, {}, DEFAULT_AS_OF)), name).different == []
