"""`policyeng.facts.subnets`: how many addresses a subnet has, what sits in it, and what that can take."""

from __future__ import annotations

from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyeng.facts.subnets import addresses_taken, capacity, subnet_in, subnets_of, usable_addresses
from policyeng.models import JsonObject
from policyeng.rego import Undecided, UnknownValue

NETWORK = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/virtualNetworks/v"
SUBNET = f"{NETWORK}/subnets/A"
KEY = SUBNET.lower()
ML = "Microsoft.MachineLearningServices/workspaces"


def compute(kind: str, inner: object, name: str = "c", **properties: object) -> JsonObject:
    """A compute of a workspace."""
    body = {"computeType": kind, "properties": inner, **properties}
    return {"id": f"/subscriptions/s/{name}", "type": f"{ML}/computes", "properties": body}


def cluster(*pools: object, **profile: object) -> JsonObject:
    """A managed cluster with a network profile."""
    body = {"agentPoolProfiles": list(pools), "networkProfile": profile}
    return {"id": "/subscriptions/s/K", "type": "Microsoft.ContainerService/managedClusters", "properties": body}


@pytest.mark.parametrize(
    ("prefixes", "expected"),
    [
        (["10.0.0.0/29"], 3),
        (["10.0.0.0/24"], 251),
        (["10.0.0.0/30"], 0),
        (["10.0.0.0/32"], 0),
        (["0.0.0.0/0"], 2**32 - 5),
        (["10.0.0.0/28", "10.0.1.0/28"], 27),
        (["10.0.0.0/28", "10.0.0.0/28"], 11),
        (["10.0.0.0/24", "10.0.0.0/28"], 251),
        (["fd00::/64"], 0),
        (["10.0.0.0/29", "fd00::/64"], 3),
        ([" 10.0.0.0/29 "], 3),
        ([], 0),
        (["10.0.0.0/29", "x"], None),
        (["10.0.0.0"], None),
        (["10.0.0.0/33"], None),
        (["10.0.0.1/29"], None),
        (["10.0.0.0/255.255.255.248"], None),
        ([""], None),
        ([24], None),
        ([None], None),
        ([["10.0.0.0/29"]], None),
    ],
)
def test_capacity(prefixes: list[object], expected: int | None) -> None:
    """Azure keeps five addresses of a subnet; what is no prefix decides nothing."""
    assert capacity(prefixes) == expected


@given(st.integers(0, 2**32 - 1), st.integers(0, 32))
def test_a_prefix_has_its_size_less_five(address: int, length: int) -> None:
    """Whatever the address, one bit more halves what there is."""
    prefix = str(ip_network((address, length), strict=False))

    assert capacity([prefix]) == max(0, 2 ** (32 - length) - 5)


@given(st.lists(st.tuples(st.integers(0, 2**32 - 1), st.integers(20, 32)), min_size=1, max_size=5))
def test_order_and_repetition_of_prefixes_are_irrelevant(drawn: list[tuple[int, int]]) -> None:
    """There are as many addresses as distinct ones, at least those of the largest prefix, at most those of all."""
    networks = [ip_network((address, length), strict=False) for address, length in drawn]
    prefixes = [str(network) for network in networks]
    sizes = [network.num_addresses for network in networks]
    found = capacity(prefixes)

    assert found == capacity([*reversed(prefixes), *prefixes])
    assert found is not None
    assert max(0, max(sizes) - 5) <= found <= max(0, sum(sizes) - 5)


@given(st.recursive(st.none() | st.text() | st.integers() | st.floats(), lambda part: st.lists(part, max_size=3)))
def test_nothing_makes_capacity_raise(prefix: object) -> None:
    """What is no prefix is undecided, and what is one is not negative."""
    found = capacity([prefix])

    assert found is None or found >= 0


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"addressPrefix": "10.0.0.0/29"}, 3),
        ({"addressPrefixes": ["10.0.0.0/29"]}, 3),
        ({"addressPrefix": "10.0.0.0/29", "addressPrefixes": ["10.0.0.0/29"]}, 3),
        ({"addressPrefix": None, "addressPrefixes": ["10.0.0.0/28", "10.0.1.0/28"]}, 27),
        ({"addressPrefixes": "10.0.0.0/29"}, 3),
        ({"addressPrefixes": []}, None),
        ({}, None),
        (None, None),
        ("text", None),
    ],
)
def test_prefixes_of_a_subnet(properties: object, expected: int | None) -> None:
    """One prefix, several, or both ways to write the same."""
    assert usable_addresses({"properties": properties}) == expected


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        (compute("AmlCompute", {"subnet": {"id": SUBNET}}), [KEY]),
        (compute("computeinstance ", {"subnet": {"id": f"{SUBNET}/"}}), [KEY]),
        (compute("AKS", {"aksNetworkingConfiguration": {"subnetId": SUBNET.upper()}}), [KEY]),
        (compute("Kubernetes", {"subnet": {"id": SUBNET}}), []),
        (compute("AmlCompute", {"subnet": {"id": " "}}), []),
        (compute("AmlCompute", {"subnet": {"id": 7}}), []),
        (compute("AmlCompute", {"subnet": SUBNET}), []),
        (compute("AmlCompute", None), []),
        (cluster({"vnetSubnetID": SUBNET}, {"vnetSubnetID": KEY}, {"vnetSubnetID": f"{SUBNET}2"}), [KEY, f"{KEY}2"]),
        (cluster("text", {}, None), []),
    ],
)
def test_subnets_of_a_compute(resource: JsonObject, expected: list[str]) -> None:
    """Ids compare without case and without a slash at the end, and each counts once."""
    assert subnets_of(resource) == expected


def test_a_subnet_is_found_by_itself_and_in_its_network() -> None:
    """By its id, or by its name where templates leave the id out; a resource of its own goes first."""
    own = {"id": SUBNET, "type": "Microsoft.Network/virtualNetworks/Subnets", "properties": {}}
    other = {"id": SUBNET, "type": "Microsoft.Network/virtualNetworks"}

    def network(*parts: object, kind: str = "Microsoft.Network/virtualNetworks") -> dict[str, JsonObject]:
        return {NETWORK.lower(): {"id": NETWORK, "type": kind, "properties": {"subnets": list(parts)}}}

    named, by_id = {"name": "a"}, {"id": f"{SUBNET.upper()}/", "name": "x"}

    assert subnet_in({KEY: own, **network(by_id)}, KEY) is own
    assert subnet_in({KEY: other, **network(by_id)}, KEY) is by_id
    assert subnet_in(network("text", {"name": 7}, named), KEY) is named
    assert subnet_in(network(named, kind="t"), KEY) is None
    assert subnet_in(network({"id": f"{SUBNET}2", "name": "A"}), KEY) is None
    assert subnet_in(network(named), f"{KEY}2") is None
    assert subnet_in({NETWORK.lower(): {**network()[NETWORK.lower()], "properties": "text"}}, KEY) is None
    assert subnet_in({}, "") is None


def test_a_part_that_cannot_be_read_hides_those_after_it() -> None:
    """A subnet before it is found all the same."""
    before, after = {"name": "a"}, {"name": "b"}
    parts = [before, {"name": UnknownValue("/name", "an expression")}, after]
    network = {"id": NETWORK, "type": "Microsoft.Network/virtualNetworks", "properties": {"subnets": parts}}

    assert subnet_in({NETWORK.lower(): network}, KEY) is before
    with pytest.raises(Undecided):
        subnet_in({NETWORK.lower(): network}, f"{NETWORK.lower()}/subnets/b")


FLAT = {"networkPlugin": "Azure"}
POOL = {"vnetSubnetID": SUBNET, "count": 2, "maxCount": 5, "maxPods": 10}


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        (compute("AmlCompute", {"scaleSettings": {"maxNodeCount": 4}}), [4]),
        (compute("AmlCompute", {"scaleSettings": {"maxNodeCount": "4"}}), [4]),
        (compute("AmlCompute", {"scaleSettings": 4}), [None]),
        (compute("ComputeInstance", None), [1]),
        (compute("AKS", {"agentCount": 3}), [3]),
        (compute("AKS", {"agentCount": None}), [None]),
        (cluster(POOL), [2]),
        (cluster(POOL, {**POOL, "vnetSubnetID": f"{SUBNET}2"}, {"name": "p"}, {**POOL, "count": 1}), [2, 1]),
        (cluster(POOL, "text", {**POOL, "count": 1}), [2, None, 1]),
        (cluster(POOL, None, {}), [2, None, None]),
        (cluster(POOL, {**POOL, "vnetSubnetID": 7}), [2, None]),
        (cluster({**POOL, "enableAutoScaling": True}), [5]),
        (cluster({**POOL, "enableAutoScaling": "true"}), [2]),
        (cluster({**POOL, "count": None}), [None]),
        (cluster(POOL, **FLAT), [22]),
        (cluster({**POOL, "maxPods": None}, **FLAT), [62]),
        (cluster({**POOL, "maxPods": "many"}, **FLAT), [None]),
        (cluster(POOL, **FLAT, networkPluginMode="Overlay"), [2]),
        (cluster({**POOL, "podSubnetID": f"{SUBNET}2"}, **FLAT), [2]),
        (cluster(POOL, networkPlugin="kubenet"), [2]),
    ],
)
def test_addresses_at_full_scale(resource: JsonObject, expected: list[int | None]) -> None:
    """Nodes at their largest scale, with Azure CNI also their pods."""
    assert list(addresses_taken(KEY, [resource], {})) == expected


def test_the_nodes_of_aks_count_once() -> None:
    """The AKS compute and the cluster that it names have the same nodes."""
    whole = cluster(POOL)
    attached = compute("AKS", {"agentCount": 9}, resourceId=str(whole["id"]).upper())
    by_id = {str(whole["id"]).lower(): whole}

    assert list(addresses_taken(KEY, [attached, whole], by_id)) == [2]
    assert list(addresses_taken(KEY, [attached], by_id)) == [9]
    assert list(addresses_taken(KEY, [attached], {})) == [9]
