"""Names of members as ARM spells them, known wherever policies or workloads look at them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from policyeng.bundle import load_bundle
from policyeng.bundle.cases import baselines_of
from policyeng.facts.arm_casing import as_arm_reads

ML = "Microsoft.MachineLearningServices/workspaces"


def members(value: object, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of all members of a document."""
    if isinstance(value, list):
        yield from (path for inner in value[:1] for path in members(inner, (*above, "0")))
    if isinstance(value, dict):
        for name, inner in value.items():
            yield (*above, name)
            yield from members(inner, (*above, name))


def with_other_letters(value: object, path: tuple[str, ...]) -> object:
    """The document with the last name of a path in other letters."""
    first, *rest = path
    if isinstance(value, list):
        return [with_other_letters(value[0], tuple(rest)), *value[1:]]
    assert isinstance(value, dict)
    name = first if rest else first.swapcase()
    return {
        name if key == first else key: with_other_letters(inner, tuple(rest)) if key == first and rest else inner
        for key, inner in value.items()
    }


#: Where the names are the user's, behind the type, and what only looks like ARM: the spec of a component is YAML, and
#: `actionsRequired` is `actionRequired` in a storage account.
USERS = {
    "accounts/properties/endpoints",
    "budgets/properties/notifications",
    "policyAssignments/properties/metadata",
    "policyAssignments/properties/parameters",
    "storageAccounts/properties/privateEndpointConnections/0/properties/privateLinkServiceConnectionState",
    "workspaces/components/versions/properties/componentSpec",
    "workspaces/computes/properties/properties/instanceTypes",
    "workspaces/computes/properties/properties/instanceTypes/large/resources/limits",
    "workspaces/computes/properties/properties/instanceTypes/large/resources/requests",
    "workspaces/connections/properties/metadata",
    "workspaces/jobs/properties/jobs",
    "workspaces/jobs/properties/searchSpace",
    "workspaces/onlineEndpoints/properties/traffic",
    "workspaces/properties/managedNetwork/outboundRules",
    "workspaces/schedules/properties/action/monitorDefinition/signals",
}


def test_every_name_of_the_baselines_is_known() -> None:
    """A member in other letters is read, wherever it is; tags and other maps have names of the user."""
    unknown, count = set(), 0
    for resource in baselines_of(load_bundle()).resources.values():
        for *above, name in {*members({"properties": resource["properties"]})}:
            if name.swapcase() == name or above[-1:] == ["tags"]:
                continue
            document: Any = with_other_letters(resource, (*above, name))
            if as_arm_reads(document, resource["type"]).part == resource:
                count += 1
            else:
                unknown.add(f"{resource['type'].partition('/')[2]}/{'/'.join(above)}")

    assert count > 500
    assert unknown == USERS


def test_data_columns_that_differ_in_case_are_no_duplicate() -> None:
    """The features of a monitor, the settings of Spark and the keys of a connection are maps of the user."""
    columns = {"Count": "Numerical", "count": "Categorical"}
    signal = {"signalType": "DataQuality", "featureDataTypeOverride": columns}
    monitor = {"actionType": "CreateMonitor", "monitorDefinition": {"signals": {"quality": signal}}}
    schedule = {"properties": {"action": monitor}}
    job = {"properties": {"jobType": "Spark", "conf": {"Memory": " a ", "memory": "b", "VMSIZE": "c"}}}
    keys = {"properties": {"authType": "CustomKeys", "credentials": {"keys": {"Value": "a", "value": "b"}}}}
    for kind, document in (("schedules", schedule), ("jobs", job), ("connections", keys)):
        assert as_arm_reads(document, f"{ML}/{kind}").part is document
        assert not as_arm_reads(document, f"{ML}/{kind}").twice


def test_a_type_spells_a_name_in_its_own_way() -> None:
    """A cluster of AKS has `enableNodePublicIP`, a compute `enableNodePublicIp`."""
    pools = {"properties": {"agentPoolProfiles": [{"ENABLENODEPUBLICIP": True}]}}
    compute = {"properties": {"computeType": "AmlCompute", "properties": {"ENABLENODEPUBLICIP": True}}}

    cluster = as_arm_reads(pools, "Microsoft.ContainerService/managedClusters").part
    assert cluster["properties"]["agentPoolProfiles"] == [{"enableNodePublicIP": True}]
    made = as_arm_reads(compute, f"{ML}/computes").part
    assert made["properties"]["properties"] == {"enableNodePublicIp": True}


def test_words_are_trimmed_and_texts_are_not() -> None:
    """The schema knows which members are enumerations, also in types that no list named."""
    job = {"properties": {"jobType": " command ", "displayName": " a ", "resources": {"instanceType": " b "}}}
    read = {"properties": {"jobType": "command", "displayName": " a ", "resources": {"instanceType": " b "}}}

    assert as_arm_reads(job, f"{ML}/jobs").part == read


def test_places_in_the_document_are_kept() -> None:
    """Those with another name there, with their children."""
    spelled = as_arm_reads({"Properties": {"PublicNetworkAccess": " a "}, "tags": {"VmSize": " b "}}, ML)

    assert spelled.part == {"properties": {"publicNetworkAccess": "a"}, "tags": {"VmSize": " b "}}
    assert spelled.fields["/properties"] == "/Properties"
    assert spelled.fields["/properties/publicNetworkAccess"] == "/Properties/PublicNetworkAccess"


def test_a_document_in_the_spelling_of_arm_is_the_same_object() -> None:
    """So that it costs nothing; names of users, and unknown ones, are left as they are."""
    part = {"properties": {"VMSIZES": 1, "jobs": {"VmSize": {}, "vmsize": {}}, "A": 1, "a": 2}}
    assert as_arm_reads(part, ML).part is part
    assert not as_arm_reads(part, ML).twice
