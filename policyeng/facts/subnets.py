"""Subnets: how many addresses they have for nodes, which computes sit in them, and how many addresses those can take.

Source: learn.microsoft.com, "Azure Virtual Network frequently asked questions", on the addresses that Azure reserves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from ipaddress import IPv4Network, collapse_addresses, ip_network

from policyeng.facts.computes import cluster_of, kind_of, max_nodes, pools
from policyeng.facts.ids import fold_id
from policyeng.facts.numbers import parse_whole_number
from policyeng.facts.words import fold, get_inside, trim
from policyeng.models import JsonObject, lowered
from policyeng.rego import Undecided

#: Azure keeps the first four addresses of a subnet and its last one.
RESERVED_ADDRESSES = 5
#: The default number of pods of a node with Azure CNI.
#: Source: learn.microsoft.com, "IP address planning for your Azure Kubernetes Service (AKS) clusters".
DEFAULT_PODS = 30

_NETWORK_TYPE = "microsoft.network/virtualnetworks"
_SUBNET_TYPE = f"{_NETWORK_TYPE}/subnets"
_SUBNET_PLACES = {
    "amlcompute": ("properties", "properties", "subnet", "id"),
    "computeinstance": ("properties", "properties", "subnet", "id"),
    "aks": ("properties", "properties", "aksNetworkingConfiguration", "subnetId"),
}
#: Where computes and managed clusters name the subnets of their nodes.
SUBNET_POINTERS = (
    "/properties/computeType",
    *("/" + "/".join(place) for place in dict.fromkeys(_SUBNET_PLACES.values())),
    "/properties/agentPoolProfiles/*/vnetSubnetID",
)


#: The parts of a network by the keys of subnets; None where one of them cannot be read.
_Parts = Mapping[str | None, JsonObject] | None


def _each_time(_network: str, make: Callable[[], _Parts]) -> _Parts:
    return make()


def usable_addresses(subnet: JsonObject) -> int | None:
    """Return how many IPv4 addresses a subnet has for nodes; None when it states no prefix, or one that is malformed.

    It states `properties.addressPrefix`, `properties.addressPrefixes` or both; what they share counts once.
    """
    several = get_inside(subnet, "properties", "addressPrefixes")
    stated = [get_inside(subnet, "properties", "addressPrefix"), *(several if isinstance(several, list) else [several])]
    prefixes = [prefix for prefix in stated if prefix is not None]
    return capacity(prefixes) if prefixes else None


def capacity(prefixes: Iterable[object]) -> int | None:
    """Return the IPv4 addresses of all prefixes less those that Azure keeps, never negative.

    None when one is malformed.
    """
    networks = [_network(prefix) for prefix in prefixes]
    if any(network is None for network in networks):
        return None
    distinct = collapse_addresses(network for network in networks if isinstance(network, IPv4Network))
    return max(0, sum(network.num_addresses for network in distinct) - RESERVED_ADDRESSES)


def _network(prefix: object) -> object:
    """Return an IPv4 or IPv6 network; None for what is no prefix in CIDR notation."""
    text = trim(prefix) if isinstance(prefix, str) else ""
    try:
        return ip_network(text) if text.rpartition("/")[2].isdecimal() and "/" in text else None
    except ValueError:
        return None


def subnets_of(resource: JsonObject) -> list[str]:
    """Return the keys of the subnets of the nodes of a compute or managed cluster, each once."""
    kind = kind_of(resource)
    if kind == "managedcluster":
        stated = [get_inside(pool, "vnetSubnetID") for pool in pools(resource)]
    else:
        place = _SUBNET_PLACES.get(kind or "")
        stated = [get_inside(resource, *place)] if place else []
    return list(dict.fromkeys(fold_id(subnet) for subnet in stated if isinstance(subnet, str) and fold(subnet)))


def subnet_in(
    by_id: Mapping[str, JsonObject], key: str, once: Callable[[str, Callable[[], _Parts]], _Parts] = _each_time
) -> JsonObject | None:
    """Return the subnet of a key: a resource of its own, or a part of its virtual network; None if neither exists.

    Args:
        by_id: the resources of a snapshot by lower-case id.
        key: of the subnet.
        once: returns what a function gives for a network, perhaps what it gave before.
    """
    own = by_id.get(key)
    if own is not None and lowered(str(own["type"])) == _SUBNET_TYPE:
        return own
    network = key.rpartition("/subnets/")[0]
    holder = by_id.get(network, {})
    parts = get_inside(holder, "properties", "subnets") if lowered(str(holder.get("type"))) == _NETWORK_TYPE else None
    if not isinstance(parts, list):
        return None
    named = once(network, lambda: _by_key(network, parts))
    if named is not None:
        return named.get(key)
    return next((part for part in parts if _key_in(network, part) == key), None)


def _by_key(network: str, parts: Iterable[JsonObject]) -> _Parts:
    try:
        return {_key_in(network, part): part for part in reversed(list(parts))}
    except Undecided:
        return None


def _key_in(network: str, part: object) -> str | None:
    """Return the key of a part of a virtual network: its id, or its name where templates leave the id out."""
    stated = get_inside(part, "id")
    if isinstance(stated, str):
        return fold_id(stated)
    name = fold(get_inside(part, "name"))
    return None if name is None else f"{network}/subnets/{name}"


def addresses_taken(key: str, resources: Sequence[JsonObject], by_id: Mapping[str, JsonObject]) -> Iterator[int | None]:
    """Yield the most addresses that each of the resources in a subnet can take there; None where it cannot be read.

    A managed cluster and the AKS compute on it have the same nodes, which count once.
    """
    present = {lowered(str(resource["id"])) for resource in resources}
    for resource in resources:
        kind = kind_of(resource)
        if kind == "managedcluster":
            yield from _of_cluster(resource, key)
        elif kind == "aks":
            cluster = cluster_of(resource, by_id)
            if cluster is None or lowered(str(cluster["id"])) not in present:
                yield parse_whole_number(get_inside(resource, "properties", "properties", "agentCount"))
        else:
            yield 1 if kind == "computeinstance" else max_nodes(resource)


def _of_cluster(cluster: JsonObject, key: str) -> Iterator[int | None]:
    """Yield the addresses of each pool in a subnet; None for one that may be there, because it cannot be read."""
    for pool in pools(cluster):
        stated = get_inside(pool, "vnetSubnetID")
        if isinstance(stated, str) and fold_id(stated) == key:
            yield _of_pool(cluster, pool)
        elif not pool or not isinstance(stated, str | None):
            yield None


def _of_pool(cluster: JsonObject, pool: JsonObject) -> int | None:
    """Return a node takes one address, and with Azure CNI one more for each pod that it may run."""
    scales = get_inside(pool, "enableAutoScaling") is True
    nodes = parse_whole_number(get_inside(pool, "maxCount" if scales else "count"))
    pods = _pods_per_node(cluster, pool)
    return None if nodes is None or pods is None else nodes * (1 + pods)


def _pods_per_node(cluster: JsonObject, pool: JsonObject) -> int | None:
    """Return how many pods of a node have an address of the node's subnet; None when it cannot be read."""
    profile = get_inside(cluster, "properties", "networkProfile")
    is_flat = (
        fold(get_inside(profile, "networkPlugin")) == "azure"
        and fold(get_inside(profile, "networkPluginMode")) != "overlay"
    )
    if not is_flat or fold(get_inside(pool, "podSubnetID")):
        return 0
    stated = get_inside(pool, "maxPods")
    return DEFAULT_PODS if stated is None else parse_whole_number(stated)
